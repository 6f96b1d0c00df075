"""Forecasts: what a change does, ranges that hold, and both against a service in miniature."""

import json
from collections.abc import Sequence
from dataclasses import replace
from math import exp
from pathlib import Path
from random import Random

import pytest
from click.testing import CliRunner

from loadtests.__main__ import main
from loadtests.experiments.open_workload import demands, servers
from loadtests.experiments.running import resume, run
from loadtests.experiments.what_if import EXPERIMENT, forecasting, measuring, scoring
from loadtests.experiments.what_if.forecasting import (
    CHANGES,
    LEARNT,
    RANKINGS,
    RESPONSE,
    THROUGHPUT,
    Change,
    Demand,
    Forecast,
    Known,
    Stream,
    forecasts,
    known,
)
from loadtests.experiments.what_if.measuring import PressedLine
from loadtests.experiments.what_if.scoring import scored
from loadtests.generation import run as generation_run
from loadtests.generation.rows import Row, RowFile, closed_index
from loadtests.generation.rules import RULES, Facts, Verdict
from loadtests.lab.experiment import Mode, Options
from loadtests.lab.results import Results, ResultsError
from loadtests.models.random_times import Gamma, poisson_times

BY_NAME = {change.name: change for change in CHANGES}
DEMAND = Demand(
    processor_s=0.021,
    files_s=0.008,
    turn_s=0.001,
    kept_s=0.002,
    network_s=0.002,
    generator_s=0.002,
)


@pytest.fixture(autouse=True)
def _few_simulated_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forecasting, "SIMULATED_RUNS", 80)


def times(demand: Demand) -> tuple[float, float]:
    """For how long a request keeps a worker busy, and for how long it is on its way."""
    return demand.processor_s + demand.files_s + demand.turn_s, demand.network_s


def busy_ms(name: str, seed: int = 1) -> float:
    busy_s, _ = times(BY_NAME[name].applied(DEMAND, Random(seed)))
    return round(1000 * busy_s, 6)


def test_each_change_takes_away_what_it_saves() -> None:
    assert [busy_ms(change.name) for change in LEARNT] == [30.0, 30.0, 30.0]
    assert busy_ms("two-workers") == 30.0
    assert BY_NAME["two-workers"].workers == 2
    assert busy_ms("faster-storage") == 23.0
    kept = [busy_ms("kept-answers", seed) for seed in range(400)]
    assert set(kept) == {2.0, 30.0}
    assert 160 < kept.count(2.0) < 240


def test_the_index_takes_the_place_of_scans_in_the_handler_alone() -> None:
    index, by_index = BY_NAME["index"], Demand(0.005, 0.0, 9.0, 9.0, 9.0, 9.0)
    asked = {index.of: [DEMAND] * 3, index.engine: [by_index]}
    found = [index.applied(one, Random(1)) for one in index.learnt_of(asked)]
    assert found == [replace(DEMAND, processor_s=0.005, files_s=0.0)] * 3
    assert BY_NAME["scans"].learnt_of({"scans": [DEMAND]}) == [DEMAND]


def stream(count: int, seed: int = 1) -> Stream:
    """So many Poisson arrivals."""
    return lambda rate_per_s: poisson_times(rate_per_s, Random(seed), count=count)


def always(asked: Sequence[Demand]) -> Known:
    """Each service demands this on both of two occasions."""
    return known({change.name: [asked, asked] for change in LEARNT})


def throughput(asked: Sequence[Demand], change: Change, cores: int = 4) -> float:
    known = always(asked)
    x, _ = forecasts(change, known, known, 400, cores, stream(100), Random(1))
    return x.middle


def test_throughput_is_that_of_a_busy_worker_and_doubles_with_two() -> None:
    one, two = BY_NAME["rankings"], BY_NAME["two-workers"]
    assert throughput([DEMAND], one) == pytest.approx(1 / 0.030, rel=0.01)
    assert throughput([DEMAND], two) == pytest.approx(2 / 0.030, rel=0.01)


def test_a_generator_without_a_core_of_its_own_takes_its_time_from_the_workers() -> None:
    one, two = BY_NAME["rankings"], BY_NAME["two-workers"]
    assert throughput([DEMAND], one, cores=2) == pytest.approx(1 / 0.030, rel=0.01)
    busy_s = 0.030 + DEMAND.generator_s
    assert throughput([DEMAND], two, cores=2) == pytest.approx(2 / busy_s, rel=0.01)


def test_a_response_time_has_the_way_and_the_queue_in_it() -> None:
    known = always([DEMAND])
    _, found = forecasts(BY_NAME["scans"], known, known, 400, 2, stream(20_000), Random(1))
    queued_s = 0.030 * (1 + 0.5 / (2 * 0.5))  # M/D/1 at half of the throughput
    assert found.middle == pytest.approx(queued_s + DEMAND.network_s, rel=0.03)
    assert found.low < found.middle < found.high


def test_a_response_time_is_that_of_a_service_which_is_idle_half_of_the_time() -> None:
    pressed, half_idle = always([DEMAND]), always([slowed(DEMAND, 1.1)])
    scans = BY_NAME["rankings"]
    x, slower = forecasts(scans, pressed, half_idle, 400, 2, stream(400), Random(1))
    same_x, same = forecasts(scans, pressed, pressed, 400, 2, stream(400), Random(1))
    assert x == same_x
    assert slower.middle > 1.1 * same.middle


def slowed(demand: Demand, factor: float) -> Demand:
    """The demand on a processor that takes `factor` times as long; files take as long as ever."""
    names = ("processor_s", "turn_s", "network_s")
    return replace(demand, **{name: factor * getattr(demand, name) for name in names})


def held(deviation: float, wrong: float = 1.0) -> dict[str, int]:
    """How many of 100 forecasts of each quantity hold.

    deviation: how much the speed of the machine varies from one occasion to the next. wrong: how
    many times as long requests take when they are measured.
    """
    rounds, arrivals, law = 60, 70, Gamma(0.02, 0.3)
    true = BY_NAME["scans"]
    found = dict.fromkeys((THROUGHPUT, RESPONSE), 0)

    def asked(random: Random, count: int, factor: float = 1.0) -> list[Demand]:
        slower = factor * exp(random.gauss(0, deviation))
        drawn = (replace(DEMAND, processor_s=law.draw(random)) for _ in range(count))
        return [slowed(one, slower) for one in drawn]

    for seed in range(100):
        random = Random(seed)
        of = known({of.name: [asked(random, 60) for _ in range(4)] for of in LEARNT})
        arriving = stream(arrivals, seed)
        x, response = forecasts(true, of, of, rounds, 2, arriving, random)
        closed, opened = (
            [times(one) for one in asked(random, count, wrong)] for count in (rounds, arrivals)
        )
        times_s = arriving(0.5 * x.middle)
        found[THROUGHPUT] += x.covers(forecasting._throughput_per_s(closed, true.workers))
        found[RESPONSE] += response.covers(forecasting._response_s(opened, true.workers, times_s))
    return found


@pytest.mark.parametrize("deviation", [0.0, 0.05])
def test_ranges_hold_if_the_model_does(monkeypatch: pytest.MonkeyPatch, deviation: float) -> None:
    monkeypatch.setattr(forecasting, "TOLERANCE", 0.0)
    found = held(deviation)
    assert all(89 <= number <= 99 for number in found.values()), found  # 95 are expected


def test_ranges_hold_if_the_model_is_wrong_by_less_than_the_tolerance_and_not_by_more() -> None:
    assert held(0.0, wrong=1.04)[THROUGHPUT] >= 95
    assert held(0.0, wrong=1.5)[THROUGHPUT] <= 5


def test_a_speed_needs_two_occasions() -> None:
    with pytest.raises(ValueError, match="two occasions"):
        known({"scans": [[DEMAND]]})


def test_a_worker_that_is_pressed_takes_its_own_time_for_the_same_requests() -> None:
    line = PressedLine("run", "scans", handler_s=0.02, turn_s=0.001, generator_s=0.0)
    half_idle = [replace(DEMAND, processor_s=time_s) for time_s in (0.012, 0.018)]
    found = measuring._as_pressed(half_idle, line)
    assert [one.processor_s for one in found] == pytest.approx([0.0096, 0.0144])  # 0.012 is left
    assert [one.files_s for one in found] == [DEMAND.files_s] * 2


# --- the score -----------------------------------------------------------------------------------


def made_up(folder: Path, *, counts: bool = True) -> Results:
    """A result with two forecasts about one worker, of which the first holds."""
    folder.mkdir()
    results = Results(folder)
    results.write_manifest({"experiment": "what-if", "machine": {"cpu": "A72"}})
    with results.table("forecasts", Forecast) as table:
        for quantity, low, middle, high in (
            (THROUGHPUT, 90.0, 100.0, 110.0),
            (RESPONSE, 0.005, 0.006, 0.0075),
        ):
            given = {"quantity": quantity, "low": low, "middle": middle, "high": high}
            table.write(made="2026-01-02T03:04:05+00:00", change="rankings", **given)
    rows = RowFile(folder / "requests.csv")
    closed, opened = (f"rankings-{name}-1" for name in (THROUGHPUT, RESPONSE))
    for number in range(200):
        at_s = number / 100
        index = closed_index(0, number)
        rows.write([Row(closed, index, "k", at_s, at_s, None, at_s + 0.01, None, 200, "")])
        rows.write([Row(opened, number, "k", at_s, at_s, None, at_s + 0.008, None, 200, "")])
    rows.close()
    with results.table("runs", ("run", "accepted")) as table:
        for run in (closed, opened):
            table.write(run=run, accepted="yes" if counts else "no")
    return results


def test_forecasts_are_held_against_what_was_measured(tmp_path: Path) -> None:
    results = made_up(tmp_path / "one")
    x, response = scored(results)
    assert x.measured == pytest.approx(100, rel=0.01)
    assert response.measured == pytest.approx(0.008)
    assert (x.held, response.held) == (True, False)
    report = scoring.analyse(results)
    assert report.conclusion == "1 of 2 forecasts held."
    assert "8, not as forecast (5 to 7.5)" in report.findings[2]
    assert {one.name: one.value for one in report.metrics}["forecasts_held"] == 0.5


def test_a_rejected_run_scores_nothing(tmp_path: Path) -> None:
    results = made_up(tmp_path / "one", counts=False)
    assert [one.held for one in scored(results)] == [None, None]
    report = scoring.analyse(results)
    assert report.conclusion.startswith(
        "2 of 2 forecasts were measured, but every run was rejected"
    )
    assert report.failure == report.conclusion
    assert report.findings == [report.conclusion]


def test_forecasts_that_were_not_measured_wait_and_fail_nothing(tmp_path: Path) -> None:
    results = made_up(tmp_path / "one")
    (results.folder / "runs.csv").unlink()
    report = scoring.analyse(results)
    assert report.conclusion == "2 forecasts were made and wait for their measurement."
    assert not report.failure


def test_a_result_whose_raw_rows_are_gone_is_not_analysed_anew(tmp_path: Path) -> None:
    results = made_up(tmp_path / "one")
    (results.folder / "requests.csv").unlink()
    with pytest.raises(ResultsError, match="no raw rows of its run rankings-throughput-1"):
        scoring.analyse(results)


def test_the_record_adds_up_all_forecasts_of_a_folder(tmp_path: Path) -> None:
    for name in ("one", "two"):
        made_up(tmp_path / name)
    made_up(tmp_path / "three", counts=False)
    (tmp_path / "other").mkdir()
    Results(tmp_path / "other").write_manifest({"experiment": "micro"})
    found = scoring.record(tmp_path)
    assert "6 forecasts were made and 4 measured. 2 of these held, 50 %" in found
    assert found.count("A72") == 6
    with pytest.raises(ResultsError, match="none is not a folder"):
        scoring.record(tmp_path / "none")


def test_the_command_line_writes_the_record(tmp_path: Path) -> None:
    made_up(tmp_path / "one")
    out = tmp_path / "record.html"
    asked = CliRunner().invoke(main, ["record", str(tmp_path), "--out", str(out)])
    assert (asked.exit_code, asked.stdout.strip()) == (0, str(out))
    assert "1 of these held" in out.read_text()


# --- a service in miniature ----------------------------------------------------------------------


def test_a_forecast_is_written_first_and_put_to_the_test_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each kind of change is made to the services that were learnt from, two of them at once."""
    both = Change("both", RANKINGS, "Two workers that keep answers", workers=2, kept=0.5)
    changes = [both, BY_NAME["index"], BY_NAME["faster-storage"]]

    def everything_counts(facts: Facts) -> Verdict:
        return Verdict((), {rule.name: rule.value(facts) for rule in RULES})

    monkeypatch.setattr(generation_run, "judge", everything_counts)
    for module, name, value in (
        (demands, "QUICK_REQUESTS", 20),
        (measuring, "QUICK_ROUNDS", 40),
        (measuring, "QUICK_ARRIVALS", 60),
        (servers, "QUICK_FLIGHTS", 2000),
        (forecasting, "CHANGES", changes),
    ):
        monkeypatch.setattr(module, name, value)
    folder = tmp_path / "one"
    first = replace(EXPERIMENT, measure=measuring.forecast)
    run(first, Options(Mode.REAL, quick=True), folder, lambda text: None)
    results = Results(folder)
    before = (folder / "forecasts.csv").read_bytes()
    assert [one.measured for one in scored(results)] == [None] * 2 * len(changes)
    assert f"{2 * len(changes)} forecasts were made" in (folder / "report.html").read_text()

    resume(folder, lambda text: None)
    assert (folder / "forecasts.csv").read_bytes() == before
    assert all(one.measured and one.measured > 0 for one in scored(results))
    assert {row["status"] for row in results.rows("requests")} == {"200"}
    assert json.loads((folder / "summary.json").read_text())["conclusion"].endswith("held.")
