"""Two results of one experiment, side by side."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from loadtests.experiments import running
from loadtests.experiments.running import comparison_page, run
from loadtests.lab.content import Metric
from loadtests.lab.experiment import Mode, Options
from loadtests.lab.results import Results, ResultsError
from loadtests.models.estimates import confidence_interval
from tests.loadtests.lab.miniature import EXPERIMENT

Make = Callable[..., Results]


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    """Return a function that makes results with these metrics, or the experiment's own."""
    monkeypatch.setattr(running, "experiment", {"miniature": EXPERIMENT}.__getitem__)

    def done(*metrics: Metric, mode: Mode = Mode.REAL, **options: Any) -> Results:
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        own = EXPERIMENT.analyse
        given = replace(
            EXPERIMENT,
            analyse=lambda r: replace(own(r), metrics=metrics) if metrics else own(r),
        )
        monkeypatch.setattr(running, "experiment", {"miniature": given}.__getitem__)
        run(given, Options(mode, **options), folder, lambda text: None)
        return Results(folder)

    return done


def metric(name: str, value: float, unit: str = "s", half: float = 0.1) -> Metric:
    return Metric(name, value, unit, value - half, value + half)


def test_decides_by_intervals(make: Make) -> None:
    short, long = make(quick=True), make()
    assert "<td>more</td>" in comparison_page(short, long)
    assert "no difference seen" in comparison_page(long, long)
    assert "<td>less</td>" in comparison_page(long, short)


def test_twice_every_time_is_seen_in_every_row(make: Make) -> None:
    times = {"E[S]": 0.04, "response": 0.2, "paired": 0.01}
    once = make(*(metric(name, s, half=s / 20) for name, s in times.items()))
    twice = make(*(metric(name, 2 * s, half=s / 10) for name, s in times.items()))
    page = comparison_page(once, twice)
    assert page.count("<td>more</td>") == len(times)
    assert "<strong>3 results: more 3.</strong>" in page


def test_overlapping_intervals_may_well_differ(make: Make) -> None:
    page = comparison_page(make(metric("a", 1.0)), make(metric("a", 1.15)))
    assert "<td>more</td>" in page
    assert "no difference seen" in comparison_page(make(metric("a", 1.0)), make(metric("a", 1.13)))


def test_refuses_different_modes(make: Make) -> None:
    real, emulated = make(), make(mode=Mode.EMULATED, scale=2)
    with pytest.raises(ResultsError, match="mode is real in the first and emulated in the second"):
        comparison_page(real, emulated)


def test_at_different_scales_only_what_has_no_unit_is_compared(make: Make) -> None:
    metrics = metric("time", 1.0), metric("ratio", 2.0, unit="")
    first, second = (make(*metrics, mode=Mode.EMULATED, scale=scale) for scale in (100, 400))
    page = comparison_page(first, second)
    assert "K is 100 in the first and 400 in the second" in page
    assert "<td>ratio</td>" in page
    assert "<td>time</td>" not in page
    with_times = [make(metric("time", 1.0), mode=Mode.EMULATED, scale=k) for k in (100, 400)]
    with pytest.raises(ResultsError, match="no result in common"):
        comparison_page(*with_times)


def test_says_which_results_each_side_has(make: Make) -> None:
    old, new = make(metric("old", 1.0)), make(*(metric(f"new[{n:02}]", 1.0) for n in range(20)))
    with pytest.raises(ResultsError) as refused:
        comparison_page(old, new)
    message = str(refused.value)
    assert "Only the first has: old." in message
    assert "Only the second has: new[00], new[01]" in message
    assert message.endswith("new[11] and 8 more.")
    both = make(metric("old", 1.0), metric("new[00]", 1.0))
    assert "Only the second has: new[00]." in comparison_page(old, both)


def test_no_difference_is_taken_for_one_as_seldom_as_it_says() -> None:
    random = Random(3)

    def measured() -> Mapping[str, Any]:
        mean = confidence_interval([random.gauss(10, 1) for _ in range(10)])
        return {"value": mean.estimate, "low": mean.low, "high": mean.high}

    verdicts = [running._verdict(measured(), measured()) for _ in range(2000)]
    assert verdicts.count("no difference seen") / len(verdicts) == pytest.approx(0.96, abs=0.015)
