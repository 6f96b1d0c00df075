"""Defines the counts behind answers, and the figures that are made of them, all exact.

The distribution of delays has three:

    median     the middle delay, or the mean of the middle two
    p90        the smallest delay that at least 90 % of the flights do not exceed
    histogram  bins of 15 minutes, `from` inclusive, `to` exclusive, without gaps from the lowest
               to the highest delay that occurs; the bins below -60 and from 180 on are open (null)

Without flights, the median and p90 are None and the histogram is empty.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import accumulate, chain
from math import inf
from operator import attrgetter, itemgetter, sub
from types import MappingProxyType
from typing import NamedTuple

from backend.chain.summary import ON_TIME_BEFORE_MINUTES
from backend.questions.answer_types import Bin, Distribution
from backend.questions.groups import GROUPS, Key, Shown

BIN_MINUTES = 15
OPEN_BELOW, OPEN_FROM = -60, 180

_FIRST_BIN, _LAST_BIN = OPEN_BELOW // BIN_MINUTES - 1, OPEN_FROM // BIN_MINUTES

RATIOS: Mapping[str, tuple[str, str]] = {
    "average_delay": ("sum_arr_delay", "arrived"),
    "average_departure_delay": ("sum_dep_delay", "departed"),
    "on_time_share_of_arrived": ("on_time", "arrived"),
    "on_time_share_of_scheduled": ("on_time", "flights"),
}
"""The members of an answer about delays that are ratios, and of which two counts."""

_RATIO_OF: dict[str, Callable[[object], tuple[int, int]]] = {
    name: attrgetter(*counts) for name, counts in RATIOS.items()
}

DELAY_NAMES = ("flights", "cancelled", *RATIOS)
"""The members of an answer about delays by which groups can be sorted."""


class DelayTotals(NamedTuple):
    """The seven counts from which averages are made; `chain.summary.Cell` explains them."""

    flights: int = 0
    cancelled: int = 0
    arrived: int = 0
    departed: int = 0
    on_time: int = 0
    sum_arr_delay: int = 0
    sum_dep_delay: int = 0

    def figure(self, name: str) -> float | None:
        """Return one of DELAY_NAMES, or another count; None for a ratio to nothing."""
        if name in _RATIO_OF:
            part, whole = _RATIO_OF[name](self)
            return part / whole if whole else None
        count: int = getattr(self, name)
        return count

    def __sub__(self, other: "DelayTotals") -> "DelayTotals":
        """Return the totals of these flights without others that are among them."""
        return DelayTotals(*map(sub, self, other))


def total_of(counts: Collection[Sequence[int]]) -> DelayTotals:
    """Return what the seven counts of several groups add up to."""
    if len(counts) == 1:  # as most answers have, which are asked for often
        return DelayTotals(*chain.from_iterable(counts))
    return DelayTotals(*map(sum, zip(*counts, strict=True)))


class FlightCounts(NamedTuple):
    """The counts behind an answer to `average_delays` or `flight_counter`.

    The latter may have nothing but the number of flights in its totals. groups: the totals of each
    group that has flights. delays: how often each ARR_DELAY occurs. Both are empty unless they were
    asked for. group_count: how many groups have flights enough to be shown, if `groups` lacks some
    of these because they come too late; None: it has all.
    """

    totals: DelayTotals
    groups: Mapping[Key, DelayTotals] = MappingProxyType({})
    delays: Mapping[int, int] = MappingProxyType({})
    group_count: int | None = None

    def __sub__(self, later: "FlightCounts") -> "FlightCounts":
        """Return the counts without those of flights that came later; both have all groups."""
        changed = {key: self.groups[key] - totals for key, totals in later.groups.items()}
        groups = {**self.groups, **changed}
        left = {key: totals for key, totals in groups.items() if totals.flights}
        delays = Counter(self.delays) - Counter(later.delays)
        return FlightCounts(self.totals - later.totals, left, delays)


def arranged(
    by: str, groups: Mapping[Key, DelayTotals], shown: Shown
) -> tuple[list[tuple[Key, DelayTotals]], int]:
    """Return the groups that are shown, with their keys, and how many have flights enough.

    by: a name of GROUPS. Equals are in the order of their keys, and groups whose figure is not
    known come last.
    """
    chosen = [group for group in groups.items() if group[1].flights >= shown.least_flights]
    chosen.sort(key=itemgetter(0))
    if shown.sort is None and GROUPS[by].is_period:
        return shown.page(chosen[::-1] if shown.order == "descending" else chosen), len(chosen)
    name = "flights" if shown.sort in {None, "count"} else str(shown.sort)
    sign = -1 if shown.is_largest_first else 1

    def place(group: tuple[Key, DelayTotals]) -> float:
        figure = group[1].figure(name)
        return inf if figure is None else sign * figure

    chosen.sort(key=place)
    return shown.page(chosen), len(chosen)


def status_of(cancelled: object, arr_delay: object) -> str:
    """Return what happened to a flight.

    It is "cancelled", "no_arrival", "late" (15 minutes or more) or "on_time".
    """
    if cancelled:
        return "cancelled"
    if not isinstance(arr_delay, int):
        return "no_arrival"
    return "on_time" if arr_delay < ON_TIME_BEFORE_MINUTES else "late"


def distribution_of(counts: Mapping[int, int]) -> Distribution:
    """Return the distribution in which each delay (minutes) occurs `counts[delay]` times."""
    delays = sorted(counts)
    if not delays:
        return Distribution(None, None, [])
    up_to = list(accumulate(counts[delay] for delay in delays))
    flights = up_to[-1]

    def ranked(rank: int) -> int:
        """Return the delay at position `rank`, counted from 1, when all delays are sorted."""
        return delays[bisect_left(up_to, rank)]

    return Distribution(
        median=(ranked((flights + 1) // 2) + ranked(flights // 2 + 1)) / 2,
        p90=ranked(-(-flights * 9 // 10)),
        histogram=_histogram(counts),
    )


def _histogram(counts: Mapping[int, int]) -> list[Bin]:
    bins: Counter[int] = Counter()
    for delay, flights in counts.items():
        bins[max(_FIRST_BIN, min(delay // BIN_MINUTES, _LAST_BIN))] += flights
    return [
        Bin(
            from_=None if number == _FIRST_BIN else number * BIN_MINUTES,
            to=None if number == _LAST_BIN else (number + 1) * BIN_MINUTES,
            flights=bins[number],
        )
        for number in range(min(bins), max(bins) + 1)
    ]
