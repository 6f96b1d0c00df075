"""Makes up flights for tests of scale: any number of them, for months or centuries.

A fixed weekly schedule over a network of real airports and carriers is flown day after day with
random delays: most flights are a little early, some are very late, a bad day is bad for all, about
2 % are cancelled and 0.2 % diverted. The same seed gives the same flights, and fewer flights are
the beginning of more, so that a longer run continues a shorter one. It needs memory for one day.
"""

import math
from collections.abc import Generator, Sequence
from datetime import date, timedelta
from functools import cache
from random import Random

from backend.base.errors import InvalidInput
from backend.chain.fields import FIELD_NAMES, LAST_YEAR
from backend.sources.network import DAY_MINUTES, Leg, by_departure, schedule
from backend.sources.source import BATCH_ROWS, RawRows, Source

FIRST_DAY = date(2015, 1, 1)
SHARE_ON_SATURDAY = 0.9  # the thinnest day of the week
SATURDAY = 6

_FLOWN, _CANCELLED, _DIVERTED = 0, 1, 2
_FATES = [_CANCELLED] * 20 + [_DIVERTED] * 2 + [_FLOWN] * 978
_CLOCK = [f"{minute // 60:02d}{minute % 60:02d}" for minute in range(DAY_MINUTES)]
_NO_ARRIVAL = ("ARR_TIME", "ARR_DELAY", "AIR_TIME")
_FIXED = FIELD_NAMES[3:13]  # carrier, flight number and both airports
_EMPTIED = {_DIVERTED: _NO_ARRIVAL, _CANCELLED: ("DEP_TIME", "DEP_DELAY", *_NO_ARRIVAL)}

Columns = dict[str, list[object]]


def _departure_delays(mean_tail: float) -> list[int]:
    """Return 4096 equally likely delays in minutes: 60 % at most 0, the rest an exponential tail.

    mean_tail: the mean of that tail, in minutes.
    """
    shares = [(step + 0.5) / 4096 for step in range(4096)]
    return [
        int(-10 + 10 * (share / 0.6) ** 1.5)
        if share < 0.6
        else int(-mean_tail * math.log((1 - share) / 0.4))
        for share in shares
    ]


# One entry is drawn for each day: mostly fair weather, now and then a storm.
_DAYS = [_departure_delays(tail) for tail in (18, 20, 22, 24, 26, 28, 30, 35, 45, 80)]
# Minutes that a flight gains or loses on its way: two dice of 15 faces, shifted.
_EN_ROUTE = [first + second - 18 for first in range(15) for second in range(15)]


class Generated(Source):
    """Makes `flights` flights from `FIRST_DAY` on, `flights_per_day` on most days.

    Raises InvalidInput for a number out of range, or if the flights do not fit into the years
    before 2200.
    """

    label = "generated flights"
    is_made_up = True

    def __init__(self, flights: int, seed: int = 1, flights_per_day: int = 20_000) -> None:
        if flights < 0:
            raise InvalidInput("flights", flights, "must not be negative")
        self._flights, self._seed, self._per_day = flights, seed, flights_per_day
        self._made = 0
        days = math.ceil(flights / int(flights_per_day * SHARE_ON_SATURDAY))
        if days > (date(LAST_YEAR, 12, 31) - FIRST_DAY).days:
            reason = f"do not fit into the years to {LAST_YEAR}; give fewer"
            raise InvalidInput("flights", flights, reason)

    def progress(self) -> float:
        return self._made / self._flights if self._flights else 1.0

    def rows(self) -> Generator[RawRows, None, None]:
        """Yield all flights, day by day and in the order of scheduled departure."""
        self._made = made = 0
        for columns in self._days():
            today = min(len(columns[0]), self._flights - made)
            for start in range(0, today, BATCH_ROWS):
                stop = min(start + BATCH_ROWS, today)
                numbers = range(made + start + 1, made + stop + 1)
                self._made = made + stop
                cut = [column[start:stop] for column in columns]
                yield RawRows(cut, numbers, f"{self.label}, flight")
            made += today
            if made == self._flights:
                return

    def _days(self) -> Generator[list[list[object]], None, None]:
        """Yield the columns of one day's flights after the other's, without end."""
        every_day = schedule(f"{self._seed} schedule", self._per_day)

        @cache
        def plan(is_saturday: bool) -> tuple[Sequence[Leg], Columns]:
            legs = every_day
            if is_saturday:
                count = int(self._per_day * SHARE_ON_SATURDAY)
                legs = by_departure(self._random("saturday").sample(every_day, count))
            return legs, _fixed(legs)

        day = FIRST_DAY
        while True:
            legs, fixed = plan(day.isoweekday() == SATURDAY)
            columns = fixed | _flown(legs, day, self._random(day.isoformat()))
            yield [columns[name] for name in FIELD_NAMES]
            day += timedelta(days=1)

    def _random(self, purpose: str) -> Random:
        """Return a generator that depends on seed and purpose, not on what was drawn before."""
        return Random(f"{self._seed} {purpose}")  # noqa: S311 - made-up flights, no secrets


def _fixed(legs: Sequence[Leg]) -> Columns:
    """Return the columns that stay the same from day to day."""
    rows = [
        (leg.carrier.number, leg.flight_number, *leg.origin[:4], *leg.destination[:4])
        for leg in legs
    ]
    return dict(zip(_FIXED, map(list, zip(*rows, strict=True)), strict=True))


def _flown(legs: Sequence[Leg], day: date, random: Random) -> Columns:
    """Return the columns that differ from day to day: the date, times, delays and cancellations."""
    count = len(legs)
    late = random.choices(random.choice(_DAYS), k=count)
    en_route = random.choices(_EN_ROUTE, k=count)
    fates = random.choices(_FATES, k=count)
    arrivals = [
        delay + lost + leg.carrier.lateness
        for leg, delay, lost in zip(legs, late, en_route, strict=True)
    ]
    columns: Columns = {
        "YEAR": [day.year] * count,
        "DAY_OF_WEEK": [day.isoweekday()] * count,
        "FL_DATE": [day.isoformat()] * count,
        "DEP_TIME": _clock([leg.departure for leg in legs], late),
        "DEP_DELAY": [*late],
        "ARR_TIME": _clock([leg.arrival for leg in legs], arrivals),
        "ARR_DELAY": [*arrivals],
        "CANCELLED": [1 if fate == _CANCELLED else 0 for fate in fates],
        "AIR_TIME": [leg.air_minutes + lost // 3 for leg, lost in zip(legs, en_route, strict=True)],
    }
    for row, fate in enumerate(fates):
        for name in _EMPTIED.get(fate, ()):
            columns[name][row] = None
    return columns


def _clock(scheduled: list[int], late: list[int]) -> list[object]:
    """Return the local times (hhmm) of `scheduled` minutes of the day, `late` minutes later."""
    return [
        _CLOCK[(minute + delay) % DAY_MINUTES]
        for minute, delay in zip(scheduled, late, strict=True)
    ]
