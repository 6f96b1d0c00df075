"""Which group is the best by a measure, and whether that is more than chance."""

import random

import pytest

from frontend.questions.group_rows import SORTS, Row, best_first, in_order, worst_first
from frontend.questions.verdicts import verdict


def row(name: str, flights: int, on_time: int, cancelled: int = 0, mean: float = 0.0) -> Row:
    arrived = flights - cancelled
    figures = {
        "flights": flights,
        "arrived": arrived,
        "cancelled": cancelled,
        "average_delay": mean,
        "on_time_share_of_arrived": on_time / arrived,
        "on_time_share_of_scheduled": on_time / flights,
    }
    return Row({}, name, "", figures)


SHARE = "on_time_share_of_scheduled"
LEAST_CANCELLED = row("Virgin", 1000, 813, 5, 2.1)
WORSE = row("JetBlue", 1000, 753, 40, 2.0)


def test_a_share_of_few_flights_is_likely_within_its_bounds() -> None:
    (_, most), (least, _) = (row("", 2, on_time).likely for on_time in (2, 0))
    assert (least, most) == (0.0, 1.0)


def test_it_says_by_which_measure() -> None:
    rows = [WORSE, LEAST_CANCELLED]
    punctual = str(verdict(rows, SHARE, is_descending=True))
    assert punctual.startswith(
        "Virgin has the highest share of scheduled flights on time (81.3\xa0%), "
        "JetBlue the lowest (75.3\xa0%)."
    )
    assert "more than chance: between 2.4 and 9.6 points" in punctual
    cancelled = str(verdict(rows, "cancelled", is_descending=True))
    assert cancelled.startswith(
        "JetBlue has the highest share of flights cancelled (4.0\xa0%), Virgin"
    )
    assert "delay" not in cancelled
    mean = str(verdict(rows, "average_delay", is_descending=False))
    assert mean.startswith("JetBlue has the lowest mean arrival delay (2.0 min)")
    assert "perhaps only chance" in mean
    flights = str(verdict(rows, "flights", is_descending=True))
    assert "chance" not in flights


def test_it_says_which_of_two_is_better_whatever_their_order() -> None:
    for rows in ([WORSE, LEAST_CANCELLED], [LEAST_CANCELLED, WORSE]):
        punctual, late = verdict(rows, SHARE), verdict(rows, "average_delay")
        assert punctual
        assert punctual.better.startswith(
            "Virgin is better: its share of scheduled flights on time is 81.3\xa0%, "
            "that of JetBlue is 75.3\xa0%. The difference is more than chance"
        )
        assert late
        assert late.better.startswith("Neither is clearly better: JetBlue's mean arrival delay is")
    assert verdict([WORSE], SHARE) is None


def test_a_difference_is_more_than_chance_only_if_its_least_end_as_shown_is() -> None:
    """Between 0.0 and 3.6 points is no difference that a page may call certain."""
    comparison = verdict([row("A", 1000, 804, 5), row("B", 1000, 768, 40)], SHARE)
    assert comparison
    assert comparison.interval
    assert 0 < comparison.interval[0] < 0.0005
    assert comparison.chance.startswith(
        "The difference is perhaps only chance: between 0.0 and 7.2"
    )
    assert comparison.better.startswith("Neither is clearly better")


def test_of_equal_groups_the_one_with_most_flights_is_first_in_any_order() -> None:
    rows = [row("A", 100, 90), row("B", 900, 810), row("C", 500, 450), row("D", 200, 100)]
    for sort in (SHARE, "cancelled"):
        for ordered in (
            best_first(rows, sort),
            worst_first(rows, sort),
            in_order(rows, sort, is_descending=True),
            in_order(rows, sort, is_descending=False),
        ):
            assert [each.name for each in ordered if each.name != "D"] == ["B", "C", "A"]
    assert [best_first(rows, SHARE)[-1].name, worst_first(rows, SHARE)[0].name] == ["D", "D"]


def test_shares_of_all_and_of_none_are_uncertain_too() -> None:
    comparison = verdict([row("A", 100, 100), row("B", 100, 98)], SHARE, is_descending=True)
    assert comparison is not None
    assert comparison.interval is not None
    assert comparison.interval[0] < 0 < comparison.interval[1]


@pytest.mark.parametrize("groups", [2, 8])
def test_equal_groups_seldom_differ_by_more_than_chance(groups: int) -> None:
    """However many are compared, the best and the worst are told apart in 5 % of all cases."""
    draw, told_apart, cases = random.Random(groups), 0, 300
    for _ in range(cases):
        counts = [sum(draw.random() < 0.8 for _ in range(200)) for _ in range(groups)]
        rows = [row(str(place), 200, count) for place, count in enumerate(counts)]
        comparison = verdict(rows, SHARE, is_descending=True)
        told_apart += bool(comparison and comparison.interval and comparison.interval[0] > 0)
    assert told_apart <= 0.05 * cases + 10


def test_every_order_has_words() -> None:
    for sort in SORTS:
        for is_descending, end in ((True, "highest"), (False, "lowest")):
            comparison = verdict([LEAST_CANCELLED, WORSE], sort, is_descending=is_descending)
            assert f"has the {end} {SORTS[sort].noun}" in str(comparison)
