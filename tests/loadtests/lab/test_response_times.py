"""Percentiles, how often their intervals hold, and thresholds."""

from math import log, sqrt
from pathlib import Path

import numpy as np
import pytest

from loadtests.generation.rows import Row, closed_index
from loadtests.lab.content import Figure, Table
from loadtests.lab.response_times import (
    Group,
    Times,
    broken,
    check_threshold,
    groups_of,
    metrics,
    section,
    times_of,
)
from loadtests.lab.results import Results, ResultsError
from loadtests.models.estimates import Interval
from tests.cases import each_of
from tests.effort import tries
from tests.loadtests.experiments.made_up import JudgedLine, keep

REPEATED = tries(60, exploring=400)


def times(values: list[float], failed: int = 0) -> Times:
    starts = np.arange(len(values), dtype=float)
    total = len(values) + failed
    return Times(total, failed, total / 10, sum(values) / len(values), starts, np.array(values))


def percentile(group: Group, share: float) -> Interval:
    estimate = group.percentile_s(share)
    assert estimate is not None
    return estimate


def queue(rng: np.random.Generator, load: float, count: int) -> Times:
    """An M/M/1 queue with E[S] = 1, whose response times are exponential."""
    arrivals, services = np.cumsum(rng.exponential(1 / load, count)), rng.exponential(1, count)
    done = np.cumsum(services)
    responses = np.maximum.accumulate(arrivals - done + services) + done - arrivals
    length, mean = float(arrivals[-1]), float(responses.mean())
    return Times(count, 0, length, mean, arrivals, responses)


@pytest.mark.parametrize(
    ("runs", "share", "least"), [(6, 0.5, 0.94), (6, 0.99, 0.92), (1, 0.5, 0.94), (1, 0.95, 0.88)]
)
def test_the_interval_of_a_percentile_holds_about_as_often_as_it_says(
    runs: int, share: float, least: float
) -> None:
    rng, held, true = np.random.default_rng(1), 0, -log(1 - share) / 0.5
    for _ in range(REPEATED):
        estimate = percentile(Group("", [queue(rng, 0.5, 2000) for _ in range(runs)]), share)
        held += estimate.covers(true)
    assert held / REPEATED >= least - 3 * sqrt(least * (1 - least) / REPEATED)


def test_a_percentile_is_that_of_all_requests_together() -> None:
    group = Group("", [times([1.0] * 90), times([9.0] * 10)])
    assert percentile(group, 0.9).estimate == 1.0
    assert percentile(group, 0.95).estimate == 9.0


def test_the_interval_of_a_percentile_by_hand() -> None:
    runs = [times([value] * 100) for value in (1.0, 2.0, 3.0, 4.0)]
    four, three = (percentile(Group("", runs[:count]), 0.5) for count in (4, 3))
    assert (four.estimate, four.values, three.values) == (2.0, 4, 5 * 3)
    assert four.half_width == pytest.approx(3.182446 * sqrt((1 + 0 + 1 + 4) / (4 * 3)))


def test_a_percentile_that_few_requests_exceed_has_no_interval() -> None:
    long, short = times([1.0, 2.0, 3.0, 4.0] * 30), times([1.0, 2.0, 3.0, 4.0] * 20)
    none = (None, None)
    for runs, ends in (([long], none), ([long] * 4, (4.0, 4.0)), ([*[long] * 3, short], none)):
        assert percentile(Group("", runs), 0.5).high is not None
        assert percentile(Group("", runs), 0.99).ends == ends


def test_runs_that_are_summed_up_have_an_interval_from_four_on() -> None:
    summed = [
        Times(10, 0, 1.0, 2.0, quantiles=[(0.0, 1.0), (0.5, high), (1.0, 9.0)])
        for high in (3.0, 5.0)
    ]
    assert percentile(Group("", summed), 0.5).ends == (None, None)
    assert percentile(Group("", summed), 0.5).estimate == pytest.approx(4.0)
    assert percentile(Group("", summed * 2), 0.5).high is not None


def test_a_percentile_that_a_file_does_not_tell_is_not_made_up() -> None:
    known = [(0.0, 0.001), (0.5, 0.01), (0.9, 0.04), (0.95, 0.06), (1.0, 0.2)]  # k6's own choice
    group = Group("5/s", [Times(200, 0, 10.0, 0.02, quantiles=known)])
    assert percentile(group, 0.95).estimate == pytest.approx(0.06)
    assert group.percentile_s(0.93) is group.percentile_s(0.99) is None
    assert {metric.name for metric in metrics([group])} == {
        f"response_time_p{p}[5/s]" for p in (50, 90, 95)
    }
    table = section([group]).parts[0]
    assert isinstance(table, Table)
    assert "count failed requests, too. Percentiles of a load with such a file" in table.note
    (whole, *_) = section([Group("", [times([1.0] * 9)])]).parts
    assert "failed" not in str(whole.note if isinstance(whole, Table) else None)
    (row,) = table.rows
    assert (row[7], row[8]) == (None, 200.0)
    (sentence,) = broken(["p99 > 9 s"], [group])
    assert sentence == "5/s: its files lack p99, so 'p99 > 9 s' is not judged"
    both = Group("", [*group.runs, times([0.1, 0.3])])
    assert both.percentile_s(0.99) is None
    assert [*broken(["max > 0.25 s"], [both])] == [": max is 0.3 s, and it fails if max > 0.25 s"]
    dense = [(at / 200, at / 200) for at in range(201)]
    assert Times(200, 0, 1.0, 0.5, quantiles=dense).quantile_s(0.987) == pytest.approx(0.987)


@each_of(
    ("threshold", "is_broken"),
    [
        ("p90 > 80 ms", True),
        ("p90 > 82 ms", False),
        ("mean>0.045s", True),
        ("max < 200 ms", True),
        ("failed > 9 %", True),
        ("failed > 10 %", False),
        ("rate < 10 /s", True),
        ("rate < 9 /s", False),
        ("p99.9 > 89000 us", True),
        ("p90 > .08 s", True),
        ("p90 > 82. ms", False),
    ],
)
def test_a_threshold_is_true_of_a_load_or_not(threshold: str, is_broken: bool) -> None:
    group = Group("12/s", [times([0.001 * at for at in range(1, 91)], failed=10)])
    sentences = list(broken([threshold], [group]))
    assert bool(sentences) == is_broken
    assert all(sentence.startswith("12/s: ") for sentence in sentences)


@pytest.mark.parametrize(
    "text",
    [
        "p99",
        "p99 > 5",
        "failed > 5 ms",
        "rate < 5 %",
        "p999 > 1 s",
        "p99 > 1.2.3 s",
        "p99 > . s",
        "",
    ],
)
def test_what_is_no_threshold_is_refused(text: str) -> None:
    with pytest.raises(ResultsError, match="write one like 'p99 > 50 ms'"):
        check_threshold(text)


def test_the_course_over_a_run_is_that_of_its_requests_by_the_thirds_of_its_time() -> None:
    """A customer is answered in 2 ms, ten times in 60 ms, then in 2 ms; one pause is long."""
    took = np.repeat([0.002, 0.06, 0.002, 0.3, 0.002], [100, 10, 100, 1, 50])
    run = Times(261, 0, 1.0, float(took.mean()), np.cumsum(took) - took, took)
    figure = section([Group("one", [run])]).parts[-1]
    assert isinstance(figure, Figure)
    ((_, *cells),) = figure.table.rows
    means, counts = cells[::2], cells[1::2]
    thirds = [
        took[np.digitize(run.starts_s / run.starts_s[-1], (1 / 3, 2 / 3)) == n] for n in range(3)
    ]
    assert counts == [len(third) for third in thirds]
    assert means == [pytest.approx(1000 * third.mean()) for third in thirds]
    assert np.average(np.array(means, float), weights=np.array(counts)) == pytest.approx(
        1000 * run.mean_s
    )


def test_a_third_of_a_run_in_which_nothing_began_is_no_number() -> None:
    run = Times(4, 0, 9.0, 2.0, np.array([0.0, 1.0, 8.0, 9.0]), np.array([1.0, 2.0, 3.0, 2.0]))
    figure = section([Group("few", [run])]).parts[-1]
    assert isinstance(figure, Figure)
    assert figure.table.rows == [["few", 1500.0, 2, None, 0, 2500.0, 2]]


@each_of(("count", "drawn"), [(6, "each load"), (7, "the 6 loads with the most requests")])
def test_figures_say_which_loads_they_show(count: int, drawn: str) -> None:
    figures = section([Group(str(n), [times([1.0] * 9)]) for n in range(count)]).parts[1:]
    captions = [figure.caption for figure in figures if isinstance(figure, Figure)]
    assert [drawn in caption for caption in captions] == [True, True]


def test_accepted_open_and_closed_runs_are_grouped_by_their_names(tmp_path: Path) -> None:
    results = Results(tmp_path)
    for run in ("steady-0.5-1", "steady-0.5-rep02", "steady-0.8-1", "closed-2-1", "noisy-1"):
        rows = [Row(run, n, "k", n, n + 0.25, None, n + 1.0, None, 200, "") for n in range(9)]
        keep(results, [*rows, Row(run, 9, "k", 9, 9.0, None, 9.5, None, 500, "")])
        with results.more("runs", JudgedLine) as table:
            workload = "closed" if run == "closed-2-1" else "open"
            table.add(JudgedLine(run, run != "noisy-1", workload=workload))
    groups = {group.name: group for group in groups_of(results)}
    assert {name: len(group.runs) for name, group in groups.items()} == {
        "steady-0.5": 2,
        "steady-0.8": 1,
        "closed-2": 1,
    }
    assert percentile(groups["steady-0.5"], 0.5).estimate == pytest.approx(1.0)  # from the arrival
    assert percentile(groups["closed-2"], 0.5).estimate == pytest.approx(0.75)  # from sending
    assert groups["closed-2"].failed == pytest.approx(0.1)


def test_a_load_is_an_open_run_or_has_several_customers(tmp_path: Path) -> None:
    results = Results(tmp_path)
    for run, customers in (("open-1", 1), ("alone-scan-1", 1), ("closed-4", 4)):
        indices = [closed_index(n % customers, n // customers) for n in range(8)]
        keep(results, [Row(run, n, "k", n, n, None, n + 1.0, None, 200, "") for n in indices])
        with results.more("runs", JudgedLine) as table:
            workload = "open" if run == "open-1" else "closed"
            table.add(JudgedLine(run, True, workload=workload))
    groups = groups_of(results)
    assert {group.name for group in groups} == {"open", "alone-scan", "closed"}
    assert {group.name for group in groups if group.is_load} == {"open", "closed"}


FAILED = "failed_requests 20 % of the requests, limit 1: failed requests take more or less time"


@pytest.mark.parametrize(
    ("statuses", "reasons", "sentences"),
    [
        pytest.param([200] * 5, "", [], id="it counts"),
        pytest.param([200] * 4 + [500], FAILED, ["x: failed is 10 %, and"], id="some failed"),
        pytest.param([500] * 5, FAILED, ["x: failed is 50 %, and"], id="all failed"),
        pytest.param([200] * 4 + [0], f"interrupted 1 times; {FAILED}", [], id="it was stopped"),
        pytest.param([200] * 5, "foreign_cpu 57 %", [], id="others were busy"),
    ],
)
def test_failed_requests_break_a_threshold_although_their_run_does_not_count(
    statuses: list[int], reasons: str, sentences: list[str], tmp_path: Path
) -> None:
    results = Results(tmp_path)
    for run, of_run, why in (("x-1", [200] * 5, ""), ("x-2", statuses, reasons)):
        rows = [Row(run, n, "k", n, n, None, n + 1.0, None, s, "") for n, s in enumerate(of_run)]
        keep(results, rows)
        with results.more("runs", JudgedLine) as table:
            table.add(JudgedLine(run, not why, why, workload="open"))
    found = list(broken(["failed > 1 %", "p99 > 9 s"], groups_of(results, with_failed=True)))
    assert [text[: len(start)] for text, start in zip(found, sentences, strict=True)] == sentences
    (reported,) = groups_of(results)
    assert reported.failed == 0


def test_a_load_of_which_no_run_counts_is_not_judged() -> None:
    (sentence,) = broken(["p99 > 9 s"], [Group("x", [])])
    assert sentence == "x: none of its runs counts, so 'p99 > 9 s' is not judged"
    assert [*broken(["failed > 1 %"], [Group("x", [], lost=9)])] == [
        "x: failed is 100 %, and it fails if failed > 1 %"
    ]


def test_a_run_lasts_until_its_last_answer() -> None:
    rows = [Row("r", n, "k", n, n, None, done, None, 200, "") for n, done in enumerate((9.0, 2.0))]
    run = times_of(rows, is_open=True)
    assert run is not None
    assert run.duration_s == 9.0


def test_a_run_in_which_all_failed_has_no_times() -> None:
    assert times_of([Row("r", 0, "k", 0, 0, None, 1, None, 500, "")], is_open=True) is None
