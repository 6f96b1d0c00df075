"""What experiments do with the repetitions of a measurement."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from loadtests import machine_samples
from loadtests.generation.rows import Row
from loadtests.generation.run import SAMPLES
from loadtests.lab.repeated import (
    Repeated,
    lines,
    measured,
    recorded_runs,
    rows_by_run,
    unused_name,
)
from loadtests.lab.results import Line, ResultsError
from loadtests.models.estimates import Interval
from tests.loadtests.experiments.made_up import JudgedLine, judge, keep, results_of


@dataclass(frozen=True)
class Run:
    customers: int = 1
    took_s: float = 1.0


@dataclass(frozen=True, slots=True)
class Listed(Line):
    run: str


def test_a_run_counts_that_was_judged_and_accepted(tmp_path: Path) -> None:
    results, names = results_of("miniature", tmp_path), ("good", "noisy", "interrupted")
    assert not [*recorded_runs(results, "plan", Listed)]
    with results.table("plan", Listed) as table:
        for name in names:
            table.add(Listed(name))
    rows = {name: Row(name, 0, "k", 0.0, 0.0, None, 0.1, None, 200, "") for name in names}
    keep(results, rows.values())
    judge(results, {"good": True, "noisy": False})
    assert [*recorded_runs(results, "plan", Listed)] == [(Listed("good"), [rows["good"]])]


def test_rows_that_were_lost_after_their_run_was_judged_are_missed(tmp_path: Path) -> None:
    results = results_of("miniature", tmp_path)
    keep(results, [Row("a", n, "k", 0.0, 0.0, None, 0.1, None, 200, "") for n in range(3)])
    with results.table("runs", JudgedLine) as table:
        table.add(JudgedLine("a", True, requests=3))
    assert len(rows_by_run(results)["a"]) == 3
    path = tmp_path / "requests.csv"
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(ResultsError, match=r"requests.csv has 2 of the 3 rows of a; take its line"):
        rows_by_run(results)


def test_a_measurement_has_the_runs_of_one_key() -> None:
    runs = [Run(2), Run(1), Run(2, 3.0)]
    two, one = Repeated.of_each(runs, lambda run: run.customers)
    assert (two.runs, one.runs) == ([runs[0], runs[2]], [runs[1]])
    assert two.over(lambda run: run.took_s).estimate == 2


def test_lines_are_of_each_name() -> None:
    (line,) = lines(
        {"a": [Run(1, 2.0), Run(2, 3.0)]},
        {"a": "second"},
        lambda run: run.customers,
        lambda run: Interval(run.took_s),
        1000,
    )
    assert (line.name, line.source, line.xs, line.ys) == ("a", "second", [1, 2], [2000, 3000])


def test_a_series_has_gaps_and_no_interval_far_below_its_mean() -> None:
    series = measured("a", "ours", [1, 2, 3], [Interval(2, 7, 3), None, Interval(4)], factor=10)
    assert list(series.ys) == [20, None, 40]
    assert list(series.low) == [2, None, None]
    assert list(series.high) == [90, None, None]


def test_a_name_is_new_even_if_an_earlier_run_was_broken_off(tmp_path: Path) -> None:
    results = results_of("miniature", tmp_path)
    assert unused_name(results, "closed") == "closed-1"
    keep(results, [Row("closed-1", 0, "k", 0.0, 0.0, None, 0.1, None, 200, "")])
    sample = machine_samples.Sample(1.0, 0.1, None, 0.0)
    machine_samples.append(tmp_path / SAMPLES, "closed-2", [sample])
    judge(results, {"closed-4": False})
    assert unused_name(results, "closed") == "closed-3"
    assert unused_name(results, "open") == "open-1"
