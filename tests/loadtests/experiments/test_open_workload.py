"""The open workload in miniature: simulated, against real servers, and with made-up rows."""

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from random import Random
from typing import Any

import pytest

from loadtests.experiments.open_workload import EXPERIMENT, comparing, measuring
from loadtests.experiments.open_workload.comparing import steady_points, study_points
from loadtests.experiments.open_workload.plan import (
    AS_THE_STUDY,
    FCFS,
    SHARED,
    STEADY,
    STUDY_SERVICES,
    Load,
    loads,
)
from loadtests.experiments.open_workload.reading import OpenRun, open_runs
from loadtests.experiments.open_workload.servers import Measured, measured
from loadtests.generation.calibration import Calibration
from loadtests.generation.rows import Row
from loadtests.generation.run import Elsewhere, RunRecord
from loadtests.generation.schedule import Arrival, Choices, Request
from loadtests.lab.analysing import analyse
from loadtests.lab.experiment import Mode, Options, Run
from loadtests.lab.results import Results
from loadtests.lab.running import resume, run
from loadtests.models import replay
from loadtests.models.arrivals import poisson_count
from loadtests.models.estimates import Verdict
from loadtests.processes import Service

SERVICE_S = 0.04
QUICK = Options(Mode.MODEL, scale=1000, quick=True)
QUICK_EMULATED = Options(Mode.EMULATED, scale=1000, quick=True)


@pytest.fixture(autouse=True)
def _little_of_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparing, "SIMULATED_RUNS", 300)
    monkeypatch.setattr(measuring, "QUICK_CALIBRATION_REQUESTS", 2)


def plan(monkeypatch: pytest.MonkeyPatch, *chosen: Load) -> None:
    monkeypatch.setattr(measuring, "loads", lambda options: chosen)


def made(folder: Path, mode: Mode, scale: float) -> Results:
    run(EXPERIMENT, Options(mode, scale=scale, quick=True), folder, lambda text: None)
    return Results(folder)


def a_run(
    fraction: float, slower: float = 1.0, seed: int = 1, arrivals: int = 600, *, counts: bool = True
) -> OpenRun:
    """A run whose server takes `slower` times what it is thought to take."""
    times_s = poisson_count(fraction / SERVICE_S, arrivals, Random(seed))
    responses_s = replay.fcfs(times_s, [SERVICE_S * slower] * arrivals)
    rows = [
        Row(f"r{seed}", number, "k", at_s, at_s, None, at_s + response_s, None, 200, "")
        for number, (at_s, response_s) in enumerate(zip(times_s, responses_s, strict=True))
    ]
    return OpenRun(
        *(f"r{seed}", FCFS, STEADY, fraction, fraction / SERVICE_S, times_s[-1]),
        *(SERVICE_S, 0.0, 0.0, counts, rows, [SERVICE_S] * arrivals),
    )


class TestComparing:
    def verdict_of(self, runs: Sequence[OpenRun]) -> Verdict:
        (point,) = steady_points(runs, is_simulated=False)
        return point.verdict

    def test_a_server_as_modelled_agrees(self) -> None:
        assert self.verdict_of([a_run(0.85, seed=seed) for seed in range(10)]) is Verdict.AGREES

    def test_a_server_that_is_slower_than_calibrated_disagrees(self) -> None:
        runs = [a_run(0.5, slower=1.1, seed=seed) for seed in range(5)]
        assert self.verdict_of(runs) is Verdict.DISAGREES

    @pytest.mark.parametrize(
        ("fraction", "runs", "verdict"),
        [
            pytest.param(0.5, 1, Verdict.AGREES, id="low load"),
            pytest.param(0.8, 9, Verdict.NOT_DECIDED, id="high load, few runs"),
            pytest.param(0.9, 10, Verdict.NOT_DECIDED, id="runs that do not reach the long run"),
        ],
    )
    def test_nothing_is_decided_by_too_little(
        self, fraction: float, runs: int, verdict: Verdict
    ) -> None:
        assert self.verdict_of([a_run(fraction, seed=seed) for seed in range(runs)]) is verdict

    def test_rejected_runs_do_not_count_and_are_counted(self) -> None:
        runs = [a_run(0.5, seed=1), a_run(0.5, seed=2), a_run(0.5, slower=3, seed=3, counts=False)]
        (point,) = steady_points(runs, is_simulated=False)
        assert (point.runs, point.rejected, point.verdict) == (2, 1, Verdict.AGREES)

    def test_a_load_without_a_run_that_counts_is_left_out(self) -> None:
        assert steady_points([a_run(0.5, counts=False)], is_simulated=False) == []

    def test_a_load_that_was_gone_on_with_is_still_one(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        results = made(tmp_path / "one", Mode.MODEL, 1000)
        plan(monkeypatch, *(replace(load, runs=load.runs + 1) for load in loads(QUICK)))
        resume(results.folder, lambda text: None)
        runs = open_runs(results)
        assert [key for key, _ in groupby(runs, key=lambda run: (run.part, run.fraction))] == [
            (load.part, load.fraction) for load in loads(QUICK)
        ]
        assert [point.runs for point in steady_points(runs, is_simulated=True)] == [2, 2, 2]

    @pytest.mark.parametrize(("fraction", "left_out"), [(0.3, 50), (0.5, 50), (0.8, 200)])
    def test_the_warm_up_is_shorter_where_the_queue_is_soon_settled(
        self, fraction: float, left_out: int
    ) -> None:
        (point,) = steady_points([a_run(fraction, arrivals=400)], is_simulated=False)
        assert point.arrivals == 400 - left_out

    def test_a_run_that_was_cut_short_is_left_out(self) -> None:
        runs = [a_run(0.5, seed=1), a_run(0.5, seed=2, arrivals=50)]
        (point,) = steady_points(runs, is_simulated=False)
        assert point.runs == 1


class TestPlan:
    @pytest.mark.parametrize("quick", [True, False])
    def test_has_both_parts_and_both_servers(self, quick: bool) -> None:
        planned = loads(Options(Mode.EMULATED, quick=quick))
        assert {load.part for load in planned} == {AS_THE_STUDY, STEADY}
        assert {load.server for load in planned} == {FCFS, SHARED}

    def test_of_a_full_run_takes_less_than_an_hour(self) -> None:
        service_s = 0.084
        total_s = sum(
            load.runs * (load.services or load.arrivals / load.fraction) * service_s
            for load in loads(Options(Mode.EMULATED))
        )
        assert total_s < 3600


class TestRepeating:
    """Without servers: calibrations are made up, and every request takes E[S]."""

    @pytest.fixture
    def asked(self, monkeypatch: pytest.MonkeyPatch, means_s: Sequence[float]) -> Sequence[Choices]:
        """What each calibration was to ask for."""
        asked, means = list[Choices](), iter(means_s)

        def requests(random: Random) -> Iterator[Request]:
            while True:
                yield Request("k", f"/{random.random()}")

        @contextmanager
        def given(*ignored: object) -> Iterator[Measured]:
            yield Measured(Elsewhere("http://x"), requests)

        def calibrate(_: object, choices: Choices, *, run: str, **__: object) -> Calibration:
            asked.append(choices)
            return Calibration(run, 9, next(means), 0, 0)

        def open_run(target: object, schedule: Sequence[Arrival], *, run: str, **_: object) -> Any:
            rows = tuple(
                Row(run, one.index, "k", at_s, at_s, at_s, at_s + 0.04, 0.04, 200, "1")
                for one in schedule
                for at_s in [one.intended_s]
            )
            return RunRecord(run, "open", rows, (), len(rows), 0.0)

        monkeypatch.setattr(measuring, "measured", given)
        monkeypatch.setattr(measuring, "open_run", open_run)
        monkeypatch.setattr(measuring, "calibrate", calibrate)
        return asked

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
        asked: Sequence[Choices],
    ) -> None:
        load = Load(FCFS, STEADY, 0.5, 3, arrivals=1000)
        assert measuring.CALIBRATED_EVERY_S // (1000 / load.fraction * 0.04) == 2  # so many at once
        plan(monkeypatch, load)
        options = Options(Mode.EMULATED, scale=1000)
        measuring.measure(Run(options, Results(tmp_path), tmp_path, lambda text: None))
        rows = Results(tmp_path).rows("runs")
        assert [row["run"] for row in rows] == [
            f"fcfs-steady-0.5-{number:02}" for number in range(1, len(rows) + 1)
        ]
        assert [row["accepted"] for row in rows] == accepted.split()
        assert len(asked) > 2
        assert all(choices == asked[0] for choices in asked)

    @pytest.mark.parametrize("means_s", [[0.04, 0.05, 0.04, 0.04, 0.04, 0.04]])
    def test_what_is_missing_is_made_when_it_goes_on(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: Sequence[Choices]
    ) -> None:
        disturbed, quiet = (Load(FCFS, STEADY, f, 3, arrivals=1000) for f in (0.5, 0.8))
        plan(monkeypatch, disturbed, quiet)
        monkeypatch.setattr(measuring, "CALIBRATED_EVERY_S", 300)  # all three of a load at once
        run = Run(
            Options(Mode.EMULATED, scale=1000), Results(tmp_path), tmp_path, lambda text: None
        )
        told = []
        for _ in range(2):
            measuring.measure(run)
            rows = Results(tmp_path).rows("runs")
            told.append([(row["run"][-6:], row["accepted"]) for row in rows])
        rejected = [(f"0.5-0{number}", "no") for number in range(1, 7)]
        accepted = [(f"0.8-0{number}", "yes") for number in range(1, 4)]
        assert told[0] == rejected + accepted
        assert told[1][9:] == [(f"0.5-0{number}", "yes") for number in range(7, 10)]
        assert all(choices == asked[0] for choices in asked)  # also of another day

    @pytest.mark.parametrize("means_s", [[0.04]])
    def test_runs_without_a_calibration_after_them_are_listed_and_do_not_count(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: Sequence[Choices]
    ) -> None:
        plan(monkeypatch, Load(FCFS, AS_THE_STUDY, 0.5, 3, services=STUDY_SERVICES))
        open_run = vars(measuring)["open_run"]

        def interrupted(*args: Any, run: str, **more: Any) -> Any:
            if run.endswith("03"):
                raise KeyboardInterrupt
            return open_run(*args, run=run, **more)

        monkeypatch.setattr(measuring, "open_run", interrupted)
        results = Results(tmp_path)
        with pytest.raises(KeyboardInterrupt):
            measuring.measure(Run(QUICK_EMULATED, results, tmp_path, lambda text: None))
        assert len(asked) == 1
        rows = [(row["run"][-2:], row["accepted"], row["reasons"]) for row in results.rows("runs")]
        assert [row[:2] for row in rows] == [("01", "no"), ("02", "no")]
        assert all("interrupted" in row[2] for row in rows)


def test_the_server_that_burns_leaves_the_others_a_core(tmp_path: Path) -> None:
    mine = os.sched_getaffinity(0)
    run = Run(QUICK_EMULATED, Results(tmp_path), tmp_path, lambda text: None)
    with measured(run, SHARED) as server:
        assert isinstance(server.target, Service)
        assert len(os.sched_getaffinity(server.target.pid)) == 1
        assert os.sched_getaffinity(0) == mine


def test_simulated_runs_are_reported_like_measured_ones(tmp_path: Path) -> None:
    results = made(tmp_path / "one", Mode.MODEL, 1000)
    runs, manifest = open_runs(results), results.manifest()
    assert {(run.server, run.part) for run in runs} == {
        (FCFS, AS_THE_STUDY),
        (FCFS, STEADY),
        (SHARED, STEADY),
    }
    before = (results.folder / "report.html").read_bytes()
    resume(results.folder, lambda text: None)  # which lacks nothing
    assert len(open_runs(results)) == len(runs)
    assert (manifest["commit"] or "") in results.manifest()["resumed"][0]
    results.write_manifest(manifest)
    analyse(results)
    assert (results.folder / "report.html").read_bytes() == before
    assert "M/G/1" in before.decode()
    said = json.loads((results.folder / "summary.json").read_bytes())
    assert said["conclusion"].startswith("At ")
    assert f"<strong>{said['conclusion']}</strong>" in before.decode().replace("\u00a0", " ")
    assert all(metric["low"] >= 0 for metric in said["metrics"])


def test_a_load_has_the_same_arrivals_for_the_same_seed(tmp_path: Path) -> None:
    arrivals = [
        [run.arrivals_s for run in open_runs(made(tmp_path / name, Mode.MODEL, 1000))]
        for name in "ab"
    ]
    assert arrivals[0] == arrivals[1]


def test_real_servers_are_calibrated_loaded_and_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan(
        monkeypatch,
        Load(FCFS, AS_THE_STUDY, 0.5, 1, services=STUDY_SERVICES),
        Load(FCFS, STEADY, 0.5, 1, arrivals=80),
        Load(SHARED, STEADY, 0.5, 1, arrivals=80),
    )
    results = made(tmp_path / "one", Mode.EMULATED, 4000)
    runs = open_runs(results)
    assert [len(run.rows) for run in runs[1:]] == [80, 80]
    # A sleep that ended late is taken off the next, so that two requests may take less than asked.
    assert all(run.service_time_s > 0.5 * 40.4 / 4000 for run in runs)
    assert len(results.rows("runs")) == 3
    page = (results.folder / "report.html").read_text(encoding="utf-8")
    assert "K = 4000" in page


def test_a_block_takes_its_waits_up_to_a_scale_of_250(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan(monkeypatch, Load(FCFS, AS_THE_STUDY, 0.5, 1, services=4))
    results = made(tmp_path / "one", Mode.EMULATED, 250)
    assert "disk" not in results.rows("requests")[0]["kind"]
    assert all(run.service_time_s >= 503 * 0.085 / 250 for run in open_runs(results))


def test_the_service_itself_is_asked_to_scan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan(
        monkeypatch,
        Load(FCFS, AS_THE_STUDY, 0.5, 1, services=STUDY_SERVICES),
        Load(SHARED, AS_THE_STUDY, 0.5, 1, services=STUDY_SERVICES),
    )
    results = made(tmp_path / "one", Mode.REAL, 1)
    assert {row["status"] for row in results.rows("requests")} == {"200"}
    assert "the service as shipped" in (results.folder / "report.html").read_text(encoding="utf-8")


def test_published_points_stand_beside_those_that_were_measured() -> None:
    runs = [
        OpenRun(
            *("r", FCFS, AS_THE_STUDY, 0.85, 0.85 / SERVICE_S, 44 * SERVICE_S),
            *(SERVICE_S, 0.0, 0.0, True, a_run(0.85).rows[:38], [SERVICE_S] * 38),
        )
    ]
    (point,) = study_points(runs, seed=1)
    assert point.published == pytest.approx(102.12 / 40.499375)
    assert point.of_study is not None
    assert point.published is not None
    assert point.of_study.covers(point.published)
