"""Which group is the best by a measure, and whether that is more than chance."""

import random
from collections.abc import Sequence
from dataclasses import replace
from math import sqrt
from statistics import NormalDist, stdev

import pytest

from frontend.backend_client import Json
from frontend.questions.group_rows import SORTS, Row, best_first, in_order, worst_first
from frontend.questions.verdicts import best_and_worst, verdict
from loadtests.models import student_t


def figures(flights: int, on_time: int, cancelled: int = 0, mean: float | None = 0.0) -> Json:
    arrived = flights - cancelled
    return {
        "flights": flights,
        "arrived": arrived,
        "cancelled": cancelled,
        "average_delay": mean if arrived else None,
        "on_time_share_of_arrived": on_time / arrived if arrived else None,
        "on_time_share_of_scheduled": on_time / flights,
    }


def row(
    name: str, flights: int, on_time: int, cancelled: int = 0, mean: float = 0.0, days: int = 0
) -> Row:
    """A group. days: on which it flew, each a bit better or worse than the one before."""
    of_days = [
        {
            "FL_DATE": f"day {day}",
            **figures(
                flights // days,
                on_time // days + (-1) ** day,
                cancelled // days,
                mean + (-1) ** day,
            ),
        }
        for day in range(days)
    ]
    return Row({}, name, "", figures(flights, on_time, cancelled, mean), of_days)


def of_days(name: str, counts: Sequence[tuple[int, int]], first: int = 0) -> Row:
    """A group with so many flights each day, and so many of them on time."""
    flights, on_time = map(sum, zip(*counts, strict=True))
    days = [{"FL_DATE": str(day), **figures(*c)} for day, c in enumerate(counts, first)]
    return Row({}, name, "", figures(flights, on_time), days)


SHARE = "on_time_share_of_scheduled"
LEAST_CANCELLED = row("Virgin", 1000, 820, 20, 5.0, days=20)
WORSE = row("JetBlue", 900, 684, 36, 2.0, days=20)


def test_a_group_is_ranked_by_the_figure_of_that_name() -> None:
    group = row("any", 100, on_time=60, cancelled=20, mean=3.0)
    for name in SORTS.keys() - {"cancelled"}:
        assert SORTS[name].value(group) == group.figures[name]


def test_it_says_by_which_measure() -> None:
    rows = [WORSE, LEAST_CANCELLED]
    punctual = str(verdict(rows, SHARE, is_descending=True))
    assert punctual.startswith(
        "Virgin has the highest share of scheduled flights on time (82.0\xa0%), "
        "JetBlue the lowest (76.0\xa0%)."
    )
    assert "this is more than chance: the difference is between" in punctual
    cancelled = str(verdict(rows, "cancelled", is_descending=True))
    assert cancelled.startswith(
        "JetBlue has the highest share of flights cancelled (4.0\xa0%), Virgin"
    )
    assert "delay" not in cancelled
    mean = str(verdict(rows, "average_delay", is_descending=False))
    assert mean.startswith("JetBlue has the lowest mean arrival delay (2.0 min)")
    assert "the difference is between 3.0 and 3.0 minutes, with 95" in mean
    flights = str(verdict(rows, "flights", is_descending=True))
    assert "chance" not in flights


def test_others_with_the_highest_or_the_lowest_value_are_counted() -> None:
    none = [row(name, 1000, 800) for name in "BCD"]
    most = [row("A", 1000, 800, cancelled=20)]
    words = "the lowest (0.0\xa0%, like 2 others)."
    assert str(verdict([*most, *none], "cancelled", is_descending=True)).endswith(words)
    words = "A has the highest share of flights cancelled (2.0\xa0%, like 1 other), "
    assert str(verdict([*most, *most, *none], "cancelled", is_descending=True)).startswith(words)


def test_with_a_third_it_says_that_the_interval_is_wider() -> None:
    rows = [WORSE, LEAST_CANCELLED]
    third = replace(WORSE, name="Delta", figures=figures(900, 690, 36))
    two, three = verdict(rows, SHARE), verdict([*rows, third], SHARE)
    assert two
    assert two.interval
    assert three
    assert three.interval
    assert two.interval[0] > three.interval[0]
    assert two.interval[1] < three.interval[1]
    assert "at once" not in two.better
    assert "confidence for all 3 at once: the best and the worst of many differ" in three.better


def test_it_says_which_of_two_is_better_whatever_their_order() -> None:
    alike = row("Delta", 1000, 818, 20, 5.0, days=20)
    alike = Row({}, "Delta", "", alike.figures, of_days("", [(50, 38), (50, 44)] * 10).days)
    for rows in ([WORSE, LEAST_CANCELLED], [LEAST_CANCELLED, WORSE]):
        punctual = verdict(rows, SHARE)
        assert punctual
        assert punctual.better.startswith(
            "Virgin is better: its share of scheduled flights on time is 82.0\xa0%, "
            "that of JetBlue is 76.0\xa0%. Judged by how days differ, this is more than chance"
        )
    close = verdict([alike, LEAST_CANCELLED], SHARE)
    assert close
    assert close.better.startswith("Neither is clearly better: Virgin's share of scheduled")
    assert "perhaps only chance: the difference is between −2.8" in close.better
    assert verdict([WORSE], SHARE) is None


def test_the_interval_is_that_of_the_days() -> None:
    """Computed from the definition for groups that fly on the same days, and on others."""
    draw = random.Random(1)
    counts = [[(100, draw.randint(60, 95)) for _ in range(30)] for _ in range(2)]
    for first_day in (0, 100):
        rows = [of_days("A", counts[0]), of_days("B", counts[1], first_day)]
        interval = getattr(verdict(rows, SHARE), "interval", None)
        shares = [[on_time / flights for flights, on_time in days] for days in counts]
        if first_day:
            squares = sum(stdev(days) ** 2 / 30 for days in shares) * (60 / 59) / (30 / 29)
        else:
            squares = stdev([a - b for a, b in zip(*shares, strict=True)]) ** 2 / 30
        gap = abs(sum(shares[0]) - sum(shares[1])) / 30
        half = student_t.quantile(0.975, 29) * sqrt(squares)
        assert interval == pytest.approx((gap - half, gap + half), rel=1e-3)


def test_no_share_differs_by_more_than_all() -> None:
    rows = [of_days("A", [(20, 20)] * 10), of_days("B", [(100, 0)] + [(1, 1)] * 9)]
    interval = getattr(verdict(rows, SHARE), "interval", None)
    assert interval is not None
    assert interval[1] == 1.0


@pytest.mark.parametrize("on_time", [0, 10])
def test_a_share_of_none_or_of_all_is_not_known_exactly(on_time: int) -> None:
    """Two groups of which no flight was cancelled differ by nothing, but not for certain."""
    comparison = verdict([of_days("A", [(10, on_time)] * n) for n in (20, 30)], SHARE)
    half = student_t.quantile(0.975, 19) * sqrt((1 / 200**2 + 1 / 300**2) * 30 / 29)
    assert comparison
    assert comparison.interval == pytest.approx((-half, half))
    assert "perhaps only chance: the difference is between −1.3 and 1.3 points" in comparison.better


def test_a_difference_that_pages_write_as_nothing_is_perhaps_only_chance() -> None:
    comparison = verdict([of_days("A", [(10, 9)] * 20), of_days("B", [(10, 8)] * 20)], SHARE)
    assert comparison
    vars(comparison)["interval"] = (0.0004, 0.05)
    assert comparison.better.startswith("Neither is clearly better: A's share")
    assert "perhaps only chance: the difference is between 0.0 and 5.0 points" in comparison.better


@pytest.mark.parametrize("counts", [[(50, 40)] * 9, [(4, 3)] * 20])
def test_few_days_or_flights_cannot_be_told_from_chance(counts: list[tuple[int, int]]) -> None:
    comparison = verdict([of_days("A", counts), LEAST_CANCELLED], SHARE)
    assert comparison
    assert comparison.interval is None
    assert comparison.better.endswith(
        "With fewer than 10 days or 100 arrivals, a difference cannot be told from chance."
    )


def test_groups_without_days_are_not_compared_with_chance() -> None:
    comparison = best_and_worst([row("A", 1000, 900), row("B", 1000, 100), row("C", 99, 0)])
    assert str(comparison) == (
        "Of those with 100 arrivals or more, A has the highest share of scheduled flights on time "
        "(90.0\xa0%), B the lowest (10.0\xa0%)."
    )


def test_equal_groups_have_neither_a_highest_nor_a_lowest() -> None:
    text = str(verdict([row("A", 1000, 900), row("B", 100, 90)], SHARE))
    assert text == "All have the same share of scheduled flights on time (90.0\xa0%)."


@pytest.mark.parametrize("groups", [2, 6])
@pytest.mark.parametrize("share_days", [True, False])
def test_equal_groups_seldom_differ_by_more_than_chance(groups: int, *, share_days: bool) -> None:
    """However many are compared, the best and the worst are told apart in 5 % of all cases.

    Flights of a day are late together, which single flights taken as independent do not show.
    """
    draw, told_apart, cases = random.Random(groups), 0, 200
    scatter = NormalDist(0.8, 0.1)
    for case in range(cases):
        weather = scatter.samples(30, seed=case)
        rows = []
        for place in range(groups):
            own = weather if share_days else scatter.samples(30, seed=1000 * case + place)
            chances = [min(max(chance, 0.0), 1.0) for chance in own]
            counts = [(60, sum(draw.random() < chance for _ in range(60))) for chance in chances]
            rows.append(of_days(str(place), counts))
        comparison = verdict(rows, SHARE)
        told_apart += bool(comparison and comparison.interval and comparison.interval[0] > 0)
    assert told_apart <= 0.05 * cases + 10


def test_of_equal_groups_the_one_with_most_flights_is_first_in_any_order() -> None:
    rows = [row("A", 100, 90), row("B", 900, 810), row("C", 500, 450), row("D", 200, 100)]
    for sort in (SHARE, "cancelled"):
        for ordered in (
            best_first(rows, sort),
            worst_first(rows, sort),
            in_order(rows, sort, is_descending=True),
            in_order(rows, sort, is_descending=False),
        ):
            assert [group.name for group in ordered if group.name != "D"] == ["B", "C", "A"]
    assert [best_first(rows, SHARE)[-1].name, worst_first(rows, SHARE)[0].name] == ["D", "D"]


def test_every_order_has_words() -> None:
    for sort in SORTS:
        for is_descending, end in ((True, "highest"), (False, "lowest")):
            comparison = verdict([LEAST_CANCELLED, WORSE], sort, is_descending=is_descending)
            assert f"has the {end} {SORTS[sort].noun}" in str(comparison)
