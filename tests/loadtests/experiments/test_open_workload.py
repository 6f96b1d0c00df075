"""The open workload in miniature: simulated, against real servers, and with made-up rows."""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import groupby, repeat
from math import sqrt
from pathlib import Path
from random import Random
from statistics import fmean
from time import monotonic
from typing import Any

import pytest
from click.testing import CliRunner

from loadtests.__main__ import main
from loadtests.experiments import open_workload_comparison as comparing
from loadtests.experiments import open_workload_loads as loads
from loadtests.experiments import open_workload_measurements as measuring
from loadtests.experiments.open_workload import EXPERIMENT, _metrics, load_findings
from loadtests.experiments.open_workload_comparison import (
    percent,
    steady_points,
    study_points,
)
from loadtests.experiments.open_workload_loads import (
    AS_THE_STUDY,
    SCAN,
    STEADY,
    STUDY,
    STUDY_SERVICES,
    Load,
    OpenRun,
    RunLine,
    open_runs,
    planned,
)
from loadtests.experiments.open_workload_measurements import Measured
from loadtests.experiments.running import analyse, resume, run
from loadtests.generation.calibration import Calibration
from loadtests.generation.rows import Row, closed_index
from loadtests.generation.run import Generator, RunRecord
from loadtests.generation.schedule import Arrival, Choices, Request
from loadtests.lab import generator_check
from loadtests.lab.content import shown
from loadtests.lab.experiment import Options, Run
from loadtests.lab.generator_check import CheckLine
from loadtests.lab.results import Results, ResultsError
from loadtests.models import replay
from loadtests.models.estimates import Verdict
from loadtests.models.open_queue import ONE
from loadtests.processes import Site
from loadtests.servers import study
from tests.loadtests.experiments.made_up import SERVICE_S, a_run, keep

QUICK = Options(scale=1000, quick=True)


@pytest.fixture(scope="module", autouse=True)
def _little_of_everything() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(comparing, "SIMULATED_RUNS", 300)
        patch.setattr(measuring, "QUICK_CALIBRATION_REQUESTS", 2)
        yield


def plan(monkeypatch: pytest.MonkeyPatch, *chosen: Load) -> None:
    monkeypatch.setattr(loads, "planned", lambda options: chosen)


def measure(folder: Path, scale: float) -> Results:
    run(EXPERIMENT, Options(scale=scale, quick=True), folder, lambda text: None)
    return Results(folder)


def emulated(folder: Path) -> Results:
    """A folder of results of a run whose measurement is about to begin."""
    results = Results(folder)
    results.write_manifest({"mode": "emulated"})
    return results


def sent_late(row: Row) -> Row:
    """The row if the generator had planned to send it long before."""
    return replace(row, intended_s=row.intended_s - SERVICE_S)


def with_another_thread(run: OpenRun) -> OpenRun:
    """The run if another thread connects and answers, and each request is handed over to it."""
    around_s, turn_s, free_s, rows = SERVICE_S / 10, SERVICE_S / 100, 0.0, list[Row]()
    for row in run.rows:
        assert row.service_s is not None
        start_s = max(row.sent_s + around_s / 2, free_s)
        end_s = start_s + row.service_s
        rows.append(replace(row, server_start_s=start_s, done_s=end_s + around_s / 2))
        free_s = end_s + turn_s
    return replace(run, rows=rows, service_time_s=SERVICE_S + around_s, overhead_s=around_s)


class TestComparing:
    def verdict_of(self, runs: Sequence[OpenRun]) -> Verdict:
        (point,) = steady_points(runs)
        return point.forecast

    @pytest.mark.parametrize(
        ("fraction", "runs", "verdict"),
        [
            pytest.param(0.5, 5, Verdict.AGREES, id="low load"),
            pytest.param(0.8, 9, Verdict.NOT_DECIDED, id="high load, few runs"),
        ],
    )
    def test_nothing_is_decided_by_too_little(
        self, fraction: float, runs: int, verdict: Verdict
    ) -> None:
        assert self.verdict_of([a_run(fraction, seed=seed) for seed in range(runs)]) is verdict

    def test_requests_that_failed_are_not_in_a_mean(self) -> None:
        run = a_run(0.5)
        *others, last = run.rows
        failed = replace(run, rows=[*others, replace(last, done_s=1e6, status=500)])
        assert failed.mean(failed.responses_s) < 1

    def test_its_cv_is_that_of_the_mean_variance_of_the_calibrations(self) -> None:
        (point,) = steady_points([a_run(0.5, seed=seed, cv=seed) for seed in range(2)])
        assert point.cv == pytest.approx(sqrt(0.5))

    def test_a_server_that_does_not_tell_its_times_has_a_forecast_and_no_order(self) -> None:
        runs = [a_run(0.5, seed=seed, cv=0.2, reports_times=False) for seed in range(10)]
        (point,) = steady_points(runs)
        assert (point.forecast, point.order) == (Verdict.AGREES, None)

    def test_a_server_that_became_slower_serves_in_order_and_is_not_as_forecast(self) -> None:
        runs = [a_run(0.5, slower=1.1, seed=seed, cv=0.2) for seed in range(5)]
        (point,) = steady_points(runs)
        assert (point.forecast, point.order) == (Verdict.DISAGREES, Verdict.AGREES)
        assert point.error.value == pytest.approx(point.paired.estimate / point.predicted - 1)

    def test_late_sending_is_no_disorder_and_spoils_the_forecast(self) -> None:
        runs = [a_run(0.5, seed=seed) for seed in range(5)]
        late = [replace(run, rows=[sent_late(row) for row in run.rows]) for run in runs]
        (point,) = steady_points(late)
        assert (point.forecast, point.order) == (Verdict.DISAGREES, Verdict.AGREES)

    def test_what_is_around_a_service_keeps_nobody_if_its_starts_show_that(self) -> None:
        runs = [with_another_thread(a_run(0.8, seed=s, server=SCAN)) for s in range(10)]
        (point,) = steady_points(runs)
        assert point.order is Verdict.AGREES
        unreported = [
            replace(run, rows=[replace(row, server_start_s=None) for row in run.rows])
            for run in runs
        ]
        (point,) = steady_points(unreported)
        assert point.order is Verdict.DISAGREES

    @pytest.mark.parametrize(
        ("calibrations", "verdict"), [(4, Verdict.NOT_DECIDED), (5, Verdict.AGREES)]
    )
    def test_fewer_than_five_calibrations_decide_nothing(
        self, calibrations: int, verdict: Verdict
    ) -> None:
        runs = [a_run(0.5, seed=seed) for seed in range(10)]
        shared = [replace(run, calibration=f"c{n % calibrations}") for n, run in enumerate(runs)]
        assert self.verdict_of(shared) is verdict

    def test_one_calibration_does_not_tell_how_wrong_it_is(self) -> None:
        runs = [replace(a_run(0.5, seed=seed), calibration="c") for seed in range(3)]
        (point,) = steady_points(runs)
        assert point.raw.ends == point.difference.ends == (None, None)
        assert shown(point.raw) == shown(point.raw.estimate)

    def test_a_load_that_was_gone_on_with_is_still_one(
        self, simulated: Results, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        plan(monkeypatch, *(replace(load, runs=load.runs + 1) for load in planned(QUICK)))
        measuring.measure(Run(QUICK, simulated, simulated.folder, lambda text: None))
        runs = open_runs(simulated)
        assert [key for key, _ in groupby(runs, key=lambda run: (run.part, run.fraction))] == [
            (load.part, load.fraction) for load in planned(QUICK)
        ]
        assert [len(point.runs) for point in steady_points(runs)] == [2, 2, 2]

    @pytest.mark.parametrize(("fraction", "left_out"), [(0.3, 50), (0.5, 50), (0.8, 200)])
    def test_the_warm_up_is_shorter_where_the_queue_is_soon_settled(
        self, fraction: float, left_out: int
    ) -> None:
        run = a_run(fraction, arrivals=400)
        assert run.warm_up == left_out
        (point,) = steady_points([run])
        counted = [row.open_response_s / SERVICE_S for row in run.rows[left_out:]]
        assert point.arrivals == len(counted) == 400 - left_out
        assert point.raw.estimate == pytest.approx(fmean(counted))

    def test_a_run_that_was_cut_short_or_rejected_is_left_out(self) -> None:
        runs = [a_run(0.5, seed=1), a_run(0.5, seed=2, arrivals=50)]
        (point,) = steady_points(runs)
        assert len(point.runs) == 1
        assert steady_points([a_run(0.5, counts=False)]) == []


@pytest.mark.parametrize(
    ("sent_s", "begun_s", "is_overtaken"),
    [(0.1, 0.4, True), (0.04, 0.4, False), (0.1, 0.78, False), (0.1, 0.9, False)],
)
def test_who_is_overtaken_waits_longer_than_the_time_around_a_service_varies(
    sent_s: float, begun_s: float, is_overtaken: bool
) -> None:
    times_s = (0.0, 1.0), (sent_s, begun_s + 0.2)
    rows = [
        Row("r", i, "k", at, at, None, done, 0.2, 200, "") for i, (at, done) in enumerate(times_s)
    ]
    run = replace(a_run(0.5, arrivals=2), rows=rows, overhead_s=0.05)
    assert run.overtaken([0.2, 0.2]) == [is_overtaken, False]


class TestPlan:
    @pytest.mark.parametrize("quick", [True, False])
    def test_has_both_parts_and_both_servers(self, quick: bool) -> None:
        chosen = planned(Options(quick=quick))
        assert {load.part for load in chosen} == {AS_THE_STUDY, STEADY}
        assert {load.server for load in chosen} == {STUDY, SCAN}


@pytest.mark.parametrize(
    ("slower", "can"),
    [
        (1.0, ""),
        (1.0085, "by 5.3 %, more than the 5 % that"),
        (1.02, "--loads 0.3,0.5"),
        (1.032, "--loads 0.3."),
        (1.3, "No load can be decided"),
    ],
)
def test_what_cannot_be_decided_on_a_machine_that_changes_is_said(slower: float, can: str) -> None:
    times_s = [0.04] * 100 + [slower * 0.04] * 100
    calibration = Calibration("c", 200, fmean(times_s), 0.0, 0.0, times_s)
    warning = measuring.describe_changes(calibration, ONE, loads.STUDY_FRACTIONS)
    assert can in warning
    assert bool(can) == bool(warning)


class TestChosenLoads:
    @pytest.mark.usefixtures("pretended")
    def test_only_of_these_it_is_said_whether_they_can_be_decided(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        judged = list[Sequence[float]]()

        def describe(_: object, __: object, shares: Sequence[float]) -> str:
            judged.append(shares)
            return ""

        monkeypatch.setattr(measuring, "describe_changes", describe)
        words = ["run", "open-workload", "--quick", "--loads", "0.5", "--out", str(tmp_path)]
        CliRunner().invoke(main, words)
        assert judged == [[0.5], [0.5]]  # of the study's way and of our scan

    @pytest.mark.usefixtures("pretended")
    def test_are_measured_alone_and_so_they_are_when_it_goes_on(self, tmp_path: Path) -> None:
        out = tmp_path / "out"
        words = ["run", "--shared", "open-workload", "--quick", "--reps", "2", "--loads", "0.85"]
        outcome = CliRunner().invoke(main, [*words, "--out", str(out)])
        assert outcome.exit_code == 0, outcome.output
        (folder,) = out.iterdir()
        assert "Measured on a machine that others share" in page_of(Results(folder))
        conclusion = Results(folder).summary()["conclusion"]
        assert conclusion.startswith("On a shared machine: The forecast of the mean")
        resume(folder, lambda text: None)
        runs = open_runs(Results(folder))
        assert {(run.part, run.fraction) for run in runs} == {(STEADY, 0.85), (AS_THE_STUDY, 0.85)}
        assert len(runs) == 4

    def test_must_be_some_that_there_are(self, tmp_path: Path) -> None:
        options = replace(QUICK, loads=(0.5, 0.4))
        with pytest.raises(ResultsError, match=r"has no load 0\.4; it has 0\.3, 0\.5, 0\.85$"):
            run(EXPERIMENT, options, tmp_path / "one", print)
        assert not (tmp_path / "one").exists()

    def test_are_numbers(self) -> None:
        outcome = CliRunner().invoke(main, ["run", "open-workload", "--loads", "0.5,half"])
        assert outcome.exit_code == 2
        assert "it takes numbers like 0.5,0.85" in outcome.output


def pretend(
    patch: pytest.MonkeyPatch, means_s: Iterator[float], queue: replay.Discipline
) -> list[Choices]:
    """Take servers away: calibrations are made up, and requests of 40 ms go through `queue`.

    Returns what calibrations will ask for.
    """
    calibrated = list[Choices]()

    def requests(random: Random) -> Iterator[Request]:
        while True:
            yield Request("k", f"/{random.random()}")

    @contextmanager
    def given(*ignored: object) -> Iterator[Measured]:
        yield Measured(Site("http://x"), requests)

    def calibrate(
        generator: Generator, _: object, choices: Choices, run: str, **how: object
    ) -> Calibration:
        assert how["each_once"]
        calibrated.append(choices)
        row = Row(run, 0, "k", 0.0, 0.0, 0.0, 0.04, 0.04, 200, "1")
        keep(Results(generator.folder), [row])
        return Calibration(run, 9, next(means_s), 0, 0)

    def open_run(
        generator: Generator, target: object, schedule: Sequence[Arrival], run: str
    ) -> RunRecord:
        times_s = [arrival.intended_s for arrival in schedule]
        rows = tuple(
            Row(run, n, "k", at_s, at_s, at_s + stay_s - 0.04, at_s + stay_s, 0.04, 200, "1")
            for n, (at_s, stay_s) in enumerate(
                zip(times_s, queue(times_s, [0.04] * len(times_s)), strict=True)
            )
        )
        keep(Results(generator.folder), rows)
        return RunRecord(run, "open", rows, (), len(rows))

    patch.setattr(measuring, "STARTS", defaultdict(lambda: given))
    patch.setattr(Generator, "open", open_run)
    patch.setattr(Generator, "calibrate", calibrate)
    return calibrated


class TestRepeating:
    """Every request takes E[S], so no queue forms."""

    @pytest.fixture
    def calibrated(
        self, monkeypatch: pytest.MonkeyPatch, means_s: Sequence[float]
    ) -> Sequence[Choices]:
        """What each calibration was to ask for."""
        return pretend(monkeypatch, iter(means_s), lambda times_s, took_s: [*took_s])

    @pytest.mark.parametrize(
        ("means_s", "accepted"),
        [
            pytest.param([0.04, 0.04, 0.04], "yes yes yes", id="quiet"),
            pytest.param([0.04, 0.05, 0.05, 0.05], "no no yes yes yes", id="changed once"),
            pytest.param([0.04, 0.05, 0.04, 0.05], "no no no no no no", id="never the same"),
        ],
    )
    def test_rejected_runs_are_made_once_more(
        self,
        accepted: str,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        calibrated: Sequence[Choices],
    ) -> None:
        load = Load(STUDY, AS_THE_STUDY, 0.5, 3, services=2000)
        assert measuring.CALIBRATED_EVERY_S // (load.services * 0.04) == 2  # so many at once
        plan(monkeypatch, load)
        options, lines = Options(scale=1000), list[str]()
        measuring.measure(Run(options, emulated(tmp_path), tmp_path, lines.append))
        rows = Results(tmp_path).rows("runs")
        assert [row["run"] for row in rows] == [
            f"study-as-the-study-0.5-{number:02}" for number in range(1, len(rows) + 1)
        ]
        assert [row["accepted"] for row in rows] == accepted.split()
        messages = [line for line in lines if "does not count: calibration_drift" in line]
        assert bool(messages) == ("no" in accepted)
        assert len(calibrated) > 2
        assert all(choices != calibrated[0] for choices in calibrated[1:])

    @pytest.mark.parametrize("means_s", [[0.04]])
    @pytest.mark.usefixtures("calibrated")
    def test_rates_beyond_the_generator_are_refused(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        proven = [CheckLine("generator-1", 10.0, 9, 0.0, 0.0, 0.0, 0.0)]
        monkeypatch.setattr(generator_check, "last_check", lambda results: proven)
        plan(monkeypatch, Load(STUDY, STEADY, 0.5, 2, arrivals=100))
        results, lines = emulated(tmp_path), list[str]()
        measuring.measure(Run(Options(scale=1000), results, tmp_path, lines.append))
        message = "measured, because it needs 12.5 requests a second, more than the 10 up to which"
        assert message in lines[-1]
        assert load_findings(results, [], []) == lines[-1:]
        assert results.rows("plan") == []
        assert len(results.rows("refused")) == 1

    @pytest.mark.parametrize("means_s", [[0.04, 0.05, 0.04, 0.04, 0.04, 0.04]])
    def test_what_is_missing_is_made_when_it_goes_on(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, calibrated: Sequence[Choices]
    ) -> None:
        disturbed, quiet = (Load(STUDY, AS_THE_STUDY, f, 3, services=2000) for f in (0.5, 0.8))
        plan(monkeypatch, disturbed, quiet)
        monkeypatch.setattr(measuring, "CALIBRATED_EVERY_S", 300)  # all three of a load at once
        run = Run(Options(scale=1000), emulated(tmp_path), tmp_path, lambda text: None)
        runs_after = []
        for _ in range(2):
            measuring.measure(run)
            rows = Results(tmp_path).rows("runs")
            runs_after.append([(row["run"][-6:], row["accepted"]) for row in rows])
        rejected = [(f"0.5-0{number}", "no") for number in range(1, 7)]
        accepted = [(f"0.8-0{number}", "yes") for number in range(1, 4)]
        assert runs_after[0] == rejected + accepted
        assert runs_after[1][9:] == [(f"0.5-0{number}", "yes") for number in range(7, 10)]

    @pytest.mark.parametrize("means_s", [[0.04] * 7])
    def test_runs_are_spread_over_five_calibrations(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, calibrated: Sequence[Choices]
    ) -> None:
        plan(monkeypatch, Load(STUDY, STEADY, 0.5, 10, arrivals=100))
        options = Options(scale=1000)
        results = emulated(tmp_path)
        measuring.measure(Run(options, results, tmp_path, lambda text: None))
        shared = Counter(run.calibration for run in open_runs(results))
        assert list(shared.values()) == [2] * 5
        assert len(calibrated) == 6

    @pytest.mark.parametrize("means_s", [[0.04] * 40])
    @pytest.mark.usefixtures("calibrated")
    def test_each_load_says_how_long_it_and_all_that_is_left_take(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        plan(monkeypatch, *(Load(server, STEADY, 0.5, 3, arrivals=600) for server in (STUDY, SCAN)))
        lines = list[str]()
        options = Options(scale=1000)
        results = emulated(tmp_path)
        measuring.measure(Run(options, results, tmp_path, lines.append, later_s=60))
        times = [line.partition("runs: 3, ")[2] for line in lines if "runs: 3" in line]
        runs_min = 3 * 600 / 0.5 * 0.04 / 60
        own, left = (float(minutes) for minutes in re.findall(r"about ([\d.]+) min", times[0]))
        assert runs_min < own < 1.4 * runs_min  # calibrations are made besides
        assert left == pytest.approx(2 * own + 1, abs=0.1)  # and what comes after these loads
        own, left = (float(minutes) for minutes in re.findall(r"about ([\d.]+) min", times[1]))
        assert left == pytest.approx(own + 1, abs=0.1)

    @pytest.mark.parametrize("means_s", [[0.04] * 40])
    @pytest.mark.usefixtures("calibrated")
    def test_no_more_is_left_than_the_time_that_is_given(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        lines, options = list[str](), Options(scale=1000)
        brief = Run(options, emulated(tmp_path), tmp_path, lines.append, until_s=monotonic() + 9)
        plan(monkeypatch, Load(STUDY, STEADY, 0.5, 3, arrivals=600))
        measuring.measure(brief)
        assert any("about 0.1 min of about 0.1 min left in all" in line for line in lines)

    @pytest.mark.parametrize("means_s", [[0.04]])
    def test_runs_without_a_calibration_after_them_are_listed_and_do_not_count(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, calibrated: Sequence[Choices]
    ) -> None:
        plan(monkeypatch, Load(STUDY, AS_THE_STUDY, 0.5, 3, services=STUDY_SERVICES))
        open_run = Generator.open

        def interrupted(*args: Any) -> Any:
            if args[-1].endswith("03"):
                raise KeyboardInterrupt
            return open_run(*args)

        monkeypatch.setattr(Generator, "open", interrupted)
        results = emulated(tmp_path)
        with pytest.raises(KeyboardInterrupt):
            measuring.measure(Run(QUICK, results, tmp_path, lambda text: None))
        assert len(calibrated) == 1
        rows = [(row["run"][-2:], row["accepted"], row["reasons"]) for row in results.rows("runs")]
        assert [row[:2] for row in rows] == [("01", "no"), ("02", "no")]
        assert all("interrupted" in row[2] for row in rows)


@pytest.fixture
def pretended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers in order of arrival that need not be started."""
    pretend(monkeypatch, repeat(0.04), replay.fcfs)


@pytest.fixture
def simulated(pretended: None, tmp_path: Path) -> Results:
    """Results of a quick run over simulated servers."""
    return measured(tmp_path / "simulated")


def measured(folder: Path) -> Results:
    folder.mkdir()
    results = emulated(folder)
    measuring.measure(Run(QUICK, results, folder, lambda text: None))
    return results


@pytest.mark.usefixtures("pretended")
def test_a_report_is_made_again_byte_for_byte(tmp_path: Path) -> None:
    results = measure(tmp_path / "one", 1000)
    runs, manifest = open_runs(results), results.manifest()
    assert {run.part for run in runs} == {AS_THE_STUDY, STEADY}
    before = (results.folder / "report.html").read_bytes()
    resume(results.folder, lambda text: None)  # which lacks nothing
    assert len(open_runs(results)) == len(runs)
    assert (manifest["commit"] or "") in results.manifest()["resumed"][0]
    results.write_manifest(manifest)
    analyse(results)
    assert (results.folder / "report.html").read_bytes() == before
    assert "M/G/1" in before.decode()
    assert "Where the gaps come from" in before.decode()
    summary = json.loads((results.folder / "summary.json").read_bytes())
    assert "within 5 %, is not decided at 3 of 3 loads. Req" in summary["conclusion"]
    assert f"<strong>{summary['conclusion']}</strong>" in before.decode().replace("\u00a0", " ")
    low = {metric["name"]: metric["low"] for metric in summary["metrics"]}
    assert low["response_time[study,0.5]"] is None  # of one run
    assert "forecast_error[study,0.5]" in low


def test_a_load_has_the_same_arrivals_for_the_same_seed(simulated: Results, tmp_path: Path) -> None:
    again = measured(tmp_path / "again")
    arrivals = [
        [[row.intended_s for row in run.rows] for run in open_runs(results)]
        for results in (simulated, again)
    ]
    assert arrivals[0] == arrivals[1]


def page_of(results: Results) -> str:
    return (results.folder / "report.html").read_text(encoding="utf-8").replace("\u00a0", " ")


@pytest.mark.long
@pytest.mark.usefixtures("everything_counts")
def test_both_ways_of_scanning_really_read_blocks_and_wait_for_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocks, flights, scale = 60, 2000, 2000
    monkeypatch.setattr(study, "BLOCKS", blocks)
    monkeypatch.setattr(measuring, "QUICK_FLIGHTS", flights)
    plan(
        monkeypatch,
        Load(STUDY, STEADY, 0.5, 1, arrivals=75),
        Load(SCAN, AS_THE_STUDY, 0.5, 1, services=STUDY_SERVICES),
    )
    results = measure(tmp_path / "one", scale)
    of_study, of_scan = open_runs(results)
    assert len(of_study.rows) == 75
    assert {row["status"] for row in results.rows("requests")} == {"200"}
    assert of_study.service_time_s > (blocks - 2 * 19) * 0.085 / scale
    assert of_scan.service_time_s > 0
    assert of_study.served_s is not None
    assert all(0 < time_s < 1 for time_s in of_study.served_s)
    page = page_of(results)
    assert f"K = {scale}" in page


def test_published_points_stand_beside_those_that_were_measured() -> None:
    (point,) = study_points([a_run(0.85, arrivals=38, part=AS_THE_STUDY)], seed=1)
    assert point.published == pytest.approx(102.12 / 40.499375)
    assert point.of_study is not None
    assert point.published is not None
    assert point.of_study.covers(point.published)


def test_a_run_has_the_rows_of_its_calibration_without_the_warm_up(tmp_path: Path) -> None:
    results, run = emulated(tmp_path), a_run(0.5, arrivals=1)
    runs = {"one": "0", "two": "0", "three": "1"}
    for name in ("calibration-study-0", "one", "two", "calibration-study-1", "three"):
        alone = [
            Row(name, closed_index(0, n), "k", n, n, None, n + 1, 1, 200, "") for n in range(40)
        ]
        keep(results, [replace(run.rows[0], run=name)] if name in runs else alone)
    with results.table("plan", RunLine) as table:
        for name, number in runs.items():
            table.add(replace(run, run=name, calibration=f"calibration-study-{number}"))
    by_name = {run.run: run for run in open_runs(results)}
    assert {name: run.before[0].run[-1] for name, run in by_name.items()} == runs
    assert {len(run.before) for run in by_name.values()} == {30}


def test_a_difference_of_one_calibration_has_no_interval() -> None:
    points = steady_points([a_run(0.5)])
    assert "±" not in percent(points[0].difference, 1.0)
    (metric,) = (m for m in _metrics([], points) if m.name.startswith("forecast"))
    assert (metric.low, metric.high) == (None, None)
