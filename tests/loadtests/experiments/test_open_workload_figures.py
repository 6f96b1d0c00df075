"""The study's figures 2 to 5, drawn from made-up runs."""

from dataclasses import replace
from math import exp

import pytest

from loadtests.experiments.open_workload_comparison import steady_points, study_points
from loadtests.experiments.open_workload_figures import REPORT_S, Course, over_time, response
from loadtests.experiments.open_workload_loads import AS_THE_STUDY, SCAN, OpenRun
from loadtests.generation.rows import Row
from tests.loadtests.experiments.made_up import a_run


def brief(fraction: float, seed: int = 1) -> OpenRun:
    return a_run(fraction, seed=seed, arrivals=40, part=AS_THE_STUDY)


def test_figure_2_has_the_range_of_the_protocol_and_the_paired_estimate() -> None:
    runs = [a_run(0.5, arrivals=200), brief(0.5)]
    points, short = steady_points(runs), study_points(runs, seed=1)
    figure = response(points, short)
    assert ">paired estimate<" in figure.svg
    assert ">M/G/1, as the study did<" in figure.svg
    (row,) = (dict(zip(figure.table.columns, cells, strict=True)) for cells in figure.table.rows)
    assert row["Paired estimate / s"] == points[0].paired.estimate * REPORT_S
    assert row["M/G/1, as the study did / s"] == short[0].expected.mean_s * REPORT_S
    low_s, high_s = short[0].expected.low_s * REPORT_S, short[0].expected.high_s * REPORT_S
    assert row["95 % range / s"] == f"{low_s:.1f} to {high_s:.1f}"


def test_short_runs_stand_beside_the_steady_state_of_their_own_server() -> None:
    runs = [a_run(0.5, arrivals=200, server=SCAN), brief(0.5)]
    figure = response(steady_points(runs), study_points(runs, seed=1))
    (row,) = (dict(zip(figure.table.columns, cells, strict=True)) for cells in figure.table.rows)
    assert row["Server"] == "our scan"
    assert row["Ours, as the study did / s"] is row["95 % range / s"] is None


def test_figures_3_and_4_show_what_is_known_of_the_studys_curves() -> None:
    durations, customers, _ = over_time([brief(0.3), brief(0.5), brief(0.85)])
    assert [row[-1] for row in durations.table.rows] == [73.75, 223.94]
    assert [[*row[-2:]] for row in customers.table.rows] == [[2, 0.29], [6, 1.92]]
    assert durations.svg.count(">the study's longest<") == 1
    assert customers.svg.count(">the study's peak<") == 1
    elsewhere, *_ = over_time([brief(0.6)])
    assert "longest" not in elsewhere.svg
    assert [row[-1] for row in elsewhere.table.rows] == [None]


def test_the_captions_of_figures_3_to_5_name_the_server() -> None:
    for figure in over_time([brief(0.3), brief(0.85)]):
        assert figure.caption.endswith("Server: the study's way.")


def test_the_computed_load_average_stands_beside_the_studys() -> None:
    *_, figure = over_time([brief(0.85), brief(0.3), brief(0.3, 2)])
    rows = figure.table.rows
    assert [(row[0], row[-1]) for row in rows] == [("0.3 of L", 0.50), ("0.85 of L", 1.07)]
    means = [row[1] for row in rows]
    assert means == pytest.approx([0.3, 0.85], abs=0.15)


def stayed(*stays_s: tuple[float, float]) -> Course:
    """A run of these arrivals and departures, in report seconds, of a single worker."""
    rows = [
        Row("r", n, "k", at_s, at_s, None, end_s, None, 200, "")
        for n, (at_s, end_s) in enumerate(stays_s)
    ]
    made = replace(brief(0.3), service_time_s=REPORT_S, duration_s=600.0, servers=1, rows=rows)
    return Course(made)


def test_customers_are_those_who_have_arrived_and_not_left() -> None:
    course = stayed((0, 3), (1, 5), (1, 4), (6, 8))
    assert course.steps == [(0, 1), (1, 3), (3, 2), (4, 1), (5, 0), (6, 1), (8, 0)]
    assert course.mean_customers == pytest.approx((3 + 4 + 3 + 2) / 600)
    assert course.responses_s[0] == (3, 3)


def test_the_load_average_rises_and_falls_with_a_minutes_time_constant() -> None:
    course = stayed((0, 300), (0, 300))
    load = dict(course.load_average)
    assert load[55] == pytest.approx(1 - exp(-1)), "of one worker, who has two customers"
    assert load[295] == pytest.approx(1 - exp(-5))
    assert load[355] == pytest.approx(load[295] * exp(-1))
    both = Course(replace(course.run, servers=2)).load_average
    assert all(value == pytest.approx(2 * load[at_s]) for at_s, value in both)
