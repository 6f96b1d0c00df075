"""Two results of one experiment, side by side."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from loadtests.experiments import running
from loadtests.experiments.running import comparison_page, run
from loadtests.lab.content import Metric
from loadtests.lab.experiment import Experiment, Options
from loadtests.lab.results import Results, ResultsError
from tests.loadtests.lab.miniature import EMULATED, EXPERIMENT

Make = Callable[..., Results]


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    """Return a function that makes results with these metrics."""

    def done(*metrics: Metric, chosen: Experiment = EXPERIMENT, **options: Any) -> Results:
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        own = EXPERIMENT.analyse
        given = replace(chosen, analyse=lambda r: replace(own(r), metrics=metrics))
        monkeypatch.setattr(running, "experiment", {given.name: given}.__getitem__)
        run(given, Options(**options), folder, lambda text: None)
        return Results(folder)

    return done


def metric(name: str, value: float, unit: str = "s") -> Metric:
    return Metric(name, value, unit, value - 0.1, value + 0.1)


def row(*cells: str) -> str:
    return "".join(f"<td>{cell}</td>" for cell in cells)


def test_results_of_both_are_side_by_side_with_their_intervals(make: Make) -> None:
    first, second = make(metric("a", 2.0), metric("old", 1.0)), make(metric("a", 3.0), quick=True)
    page = comparison_page(first, second)
    assert "Before: 0. After: 1, quick." in page
    page = page.replace(' class="number"', "")
    assert row("a", "s", "2.00 (1.90 to 2.10)", "3.00 (2.90 to 3.10)", "1.50") in page
    assert row("old", "s", "1.00 (0.900 to 1.10)", "\N{EN DASH}", "\N{EN DASH}") in page


def test_refuses_a_result_of_a_mode_that_there_was_before(make: Make) -> None:
    real, _ = make(), make(chosen=replace(EMULATED, name="miniature"))
    with pytest.raises(ResultsError, match="has the mode real, which miniature no longer has"):
        comparison_page(real, real)


def test_refuses_metrics_that_analyse_did_not_write(make: Make) -> None:
    known = make(metric("a", 2.0))
    for strange in ([{"name": "a", "value": "fast"}], [1], None):
        other = make()
        summary = {key: value for key, value in other.summary().items() if key != "metrics"}
        other.write_analysis(summary if strange is None else summary | {"metrics": strange}, "")
        with pytest.raises(ResultsError, match=r"summary\.json is not of this lab: "):
            comparison_page(known, other)


def test_at_different_scales_only_what_has_no_unit_is_compared(make: Make) -> None:
    metrics = metric("time", 1.0), metric("ratio", 2.0, unit="")
    first, second = (make(*metrics, chosen=EMULATED, scale=scale) for scale in (100, 400))
    page = comparison_page(first, second)
    assert "K is 100 in the first and 400 in the second" in page
    assert "<td>ratio</td>" in page
    assert "<td>time</td>" not in page
    with_times = [make(metric("time", 1.0), chosen=EMULATED, scale=k) for k in (100, 400)]
    with pytest.raises(ResultsError, match=r"no result in common\. K is 100 in .* are left out\.$"):
        comparison_page(*with_times)
