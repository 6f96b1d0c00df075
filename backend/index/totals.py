"""Computes what a batch of flights adds to the totals of the index.

An import spends most of its time in one process, and this is part of it: so flights are put
together by carrier and day first, and the flights of a carrier on a day are counted by C code.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from datetime import date
from functools import lru_cache
from operator import itemgetter
from typing import Any

from backend.chain.summary import Cell
from backend.index.periods import periods_of

FlightRow = tuple[Any, ...]
CarrierPeriod = tuple[int, int, int]  # carrier, span, period

# Positions in a row of table flight.
_DAY, _NUMBER, _CARRIER, _ORIGIN, _DEST, _ARR_DELAY = 0, 1, 3, 4, 5, 9

_number_of = itemgetter(_NUMBER)
_route_of = itemgetter(_ORIGIN, _DEST)
_delay_of = itemgetter(_ARR_DELAY)


@lru_cache(maxsize=4096)
def _periods(day: int) -> tuple[tuple[int, int], ...]:
    return periods_of(date.fromordinal(day))


def carrier_rows(cells: Iterable[Cell]) -> list[tuple[int, ...]]:
    """Return what to add to carrier_total."""
    found: defaultdict[CarrierPeriod, list[int]] = defaultdict(lambda: [0] * 7)
    for cell in cells:
        counts = (
            cell.flights,
            cell.cancelled,
            cell.arrived,
            cell.departed,
            cell.on_time,
            cell.sum_arr_delay,
            cell.sum_dep_delay,
        )
        for span, period in periods_of(date.fromisoformat(cell.FL_DATE)):
            total = found[cell.OP_CARRIER_AIRLINE_ID, span, period]
            total[:] = map(sum, zip(total, counts, strict=True))
    return [(*key, *counts) for key, counts in sorted(found.items())]


class Grouped:
    """The rows of a batch, put together by carrier and day."""

    def __init__(self, rows: Iterable[FlightRow]) -> None:
        self._groups: defaultdict[tuple[int, int], list[FlightRow]] = defaultdict(list)
        for row in rows:
            self._groups[row[_CARRIER], row[_DAY]].append(row)
        self._routes = {key: Counter(map(_route_of, group)) for key, group in self._groups.items()}

    def route_rows(self, city_of: Mapping[int, int]) -> list[tuple[int, ...]]:
        """Return what to add to route_total, in the order of its key.

        city_of: the city of each place.
        """
        found: defaultdict[tuple[int, int, int, int, int], int] = defaultdict(int)
        for (carrier, ordinal), routes in self._routes.items():
            (by_day, day), (by_month, month), (by_year, year) = _periods(ordinal)
            for (origin_place, dest_place), flights in routes.items():
                origin, dest = city_of[origin_place], city_of[dest_place]
                found[origin, dest, by_day, day, carrier] += flights
                found[origin, dest, by_month, month, carrier] += flights
                found[origin, dest, by_year, year, carrier] += flights
        return sorted((*key, flights) for key, flights in found.items())

    def number_rows(self) -> list[tuple[int, int, int]]:
        """Return what to add to number_total."""
        found: defaultdict[int, Counter[int]] = defaultdict(Counter)
        for (carrier, _), group in self._groups.items():
            found[carrier].update(map(_number_of, group))
        return [
            (number, carrier, flights)
            for carrier, numbers in found.items()
            for number, flights in numbers.items()
        ]

    def place_rows(self) -> list[tuple[int, int]]:
        """Return what to add to the flights of each place."""
        found: defaultdict[int, int] = defaultdict(int)
        for routes in self._routes.values():
            for (origin, dest), flights in routes.items():
                found[origin] += flights
                found[dest] += flights
        return list(found.items())

    def delay_counts(self) -> dict[CarrierPeriod, Counter[int]]:
        """Return what to add to carrier_delays: how often the arrived had each ARR_DELAY."""
        found: defaultdict[CarrierPeriod, Counter[int]] = defaultdict(Counter)
        for (carrier, day), group in self._groups.items():
            counts = Counter(map(_delay_of, group))
            counts.pop(None, None)
            for period in _periods(day) if counts else ():
                found[carrier, *period].update(counts)
        return found
