"""What experiments do with the repetitions of a measurement."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from loadtests.generation.rows import Row
from loadtests.lab.repeated import (
    Estimate,
    Repeated,
    estimate,
    lines,
    measured,
    recorded_runs,
)
from loadtests.lab.results import Line
from loadtests.models.estimates import confidence_interval
from tests.loadtests.experiments.made_up import judge, keep, results_of


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


def test_a_measurement_has_the_runs_of_one_key() -> None:
    runs = [Run(2), Run(1), Run(2, 3.0)]
    two, one = Repeated.of_each(runs, lambda run: run.customers)
    assert (two.runs, one.runs) == ([runs[0], runs[2]], [runs[1]])
    assert two.over(lambda run: run.took_s).value == 2


def test_lines_are_of_each_name() -> None:
    (line,) = lines(
        {"a": [Run(1, 2.0), Run(2, 3.0)]},
        {"a": "second"},
        lambda run: run.customers,
        lambda run: Estimate(run.took_s),
        1000,
    )
    assert (line.name, line.source, line.xs, line.ys) == ("a", "second", [1, 2], [2000, 3000])


def test_one_value_has_no_interval_and_several_have_students() -> None:
    assert estimate([3.0]) == Estimate(3.0)
    assert str(estimate([3.0])) == "3.00"
    ours, expected = estimate([1.0, 2.0, 4.0]), confidence_interval([1.0, 2.0, 4.0])
    assert (ours.value, ours.low, ours.high) == (expected.estimate, expected.low, expected.high)
    assert ours.half_width == pytest.approx(expected.half_width)
    assert (estimate([3.0]).give_or_take(), Estimate(1, 0.5, 1.5).give_or_take(1000)) == (
        "–",
        "±\N{NO-BREAK SPACE}500",
    )
    assert (estimate([3.0]).plus_minus(), Estimate(1, 0.5, 1.5).plus_minus(1000)) == (
        "3.00",
        "1,000 ±\N{NO-BREAK SPACE}500",
    )
    assert Estimate(1.0, -1.0, 3.0).metric("a", "s").low == 0


@pytest.mark.parametrize(
    ("values", "states"),
    [
        ([3.0], True),
        ([2.9, 3.1], False),
        ([2.9, 3.0, 3.1], True),
        ([0.1, 3.0, 6.0], False),
    ],
)
def test_a_finding_has_no_interval_that_holds_0_or_is_of_two_values(
    values: list[float], states: bool
) -> None:
    assert estimate(values).is_finding is states


def test_a_series_has_gaps_and_no_interval_far_below_its_mean() -> None:
    series = measured("a", "ours", [1, 2, 3], [Estimate(2, -5, 9), None, Estimate(4)], factor=10)
    assert list(series.ys) == [20, None, 40]
    assert list(series.low) == [2, None, None]
    assert list(series.high) == [90, None, None]
