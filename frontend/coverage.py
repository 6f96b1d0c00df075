"""Tells what the ledger covers; asks the backend every few seconds at most."""

import time
from calendar import monthrange
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from itertools import groupby
from typing import Any

from frontend.backend_client import Backend
from frontend.errors import BackendAway, Refused
from frontend.filters import short_interval

ASK_AGAIN_S = 5.0
MOST_PERIODS = 5  # that are named


@dataclass(frozen=True)
class Carrier:
    """A carrier. number: OP_CARRIER_AIRLINE_ID. code, name: None if they are not known.

    shares_code: whether another carrier of the ledger has its code, as Comair and PSA Airlines do.
    """

    number: int
    code: str | None
    name: str | None
    flights: int
    shares_code: bool = False

    @property
    def called(self) -> str:
        """A name such as "United Airlines"; the number if the name is not known."""
        return self.name or f"Carrier {self.number}"

    @property
    def label(self) -> str:
        """A name such as "United Airlines (UA)"; the number if the name is not known."""
        return f"{self.name} ({self.code})" if self.name else f"Carrier {self.number}"

    def flight(self, number: int | str) -> str:
        """Return the name of its flight with a number, such as "UA 1545" or "Comair 5453"."""
        return f"{(self.name if self.shares_code else self.code) or self.number} {number}"


@dataclass(frozen=True)
class Airport:
    """An airport. flights: those that leave it and those that arrive."""

    code: str
    city: str
    state: str
    flights: int


@dataclass(frozen=True)
class Coverage:
    """Says what a ledger covers: mined flights. first_date, last_date: None without any flights.

    Airports and carriers are in the order of their flights, most first. months: asks which months
    have flights, as `months_with_flights`.
    """

    flights: int
    first_date: str | None
    last_date: str | None
    carriers: tuple[Carrier, ...]
    airports: tuple[Airport, ...]
    months: Callable[[], Sequence[str]] = field(default=tuple, compare=False)

    def covers(self, day: str) -> bool:
        """Return whether `day` lies between the first and last one, in a month with flights."""
        first, last = self.first_date, self.last_date
        if not (self.flights and first and last and first <= day <= last):
            return False
        months = self.months()
        return not months or day[:7] in months

    def days(self, first: str = "", last: str = "9999-12-31") -> str:
        """Return which days from `first` to `last` it covers, such as "January 2008 and 2013".

        Months without flights are left out. "" if it covers none of these days.
        """
        if not self.first_date or not self.last_date:
            return ""
        first, last = max(first, self.first_date), min(last, self.last_date)
        periods = [*self._periods(first, last)] if first <= last else []
        names = [short_interval(*period) for period in periods]
        if len(names) > MOST_PERIODS:
            return f"{len(names)} periods from {short_interval(periods[0][0], periods[-1][1])}"
        return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))

    def _periods(self, first: str, last: str) -> Iterator[tuple[str, str]]:
        """Yield the first and last day of each run of months with flights, cut at both ends."""
        if not self.months():
            yield first, last
        months = (month for month in self.months() if first[:7] <= month <= last[:7])
        numbered = ((int(month[:4]) * 12 + int(month[5:]), month) for month in months)
        for _, group in groupby(enumerate(numbered), lambda item: item[1][0] - item[0]):
            run = [month for _, (_, month) in group]
            days_of_last = monthrange(int(run[-1][:4]), int(run[-1][5:]))[1]
            yield max(first, f"{run[0]}-01"), min(last, f"{run[-1]}-{days_of_last}")

    @cached_property
    def cities(self) -> dict[str, int]:
        """City names and their flights, those with the most flights first."""
        flights: Counter[str] = Counter()
        for airport in self.airports:
            flights[airport.city] += airport.flights
        return dict(flights.most_common())

    @cached_property
    def carrier_options(self) -> list[tuple[int, str]]:
        """(number, label) of each carrier, by label: for a list to choose from."""
        return sorted(
            ((carrier.number, carrier.label) for carrier in self.carriers),
            key=lambda option: option[1],
        )

    @cached_property
    def _airports(self) -> dict[str, Airport]:
        most_first = reversed(self.airports)  # for a code that moved, the place with most flights
        return {airport.code: airport for airport in most_first}

    def airport(self, code: str) -> Airport | None:
        return self._airports.get(code)

    @cached_property
    def _carriers(self) -> dict[int, Carrier]:
        return {carrier.number: carrier for carrier in self.carriers}

    def carrier(self, number: Any) -> Carrier:
        number = int(number)
        return self._carriers.get(number) or Carrier(number, None, None, 0)


NOTHING_KNOWN = Coverage(0, None, None, (), ())


class CoverageKeeper:
    """The coverage of the ledger behind `backend`, a few seconds old at most."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._known: tuple[float, Coverage] | None = None
        self._up_to: dict[str, Coverage] = {}

    def now(self) -> Coverage:
        """Return the coverage. Raises BackendAway, Refused."""
        known = self._known
        if known is None or time.monotonic() - known[0] > ASK_AGAIN_S:
            known = self._known = (time.monotonic(), _coverage(self._backend))
            self._up_to.clear()
        return known[1]

    def at(self, height: str | None) -> Coverage:
        """Return the coverage with the days and the number of flights up to a block, if there are.

        Carriers and airports are those of now. Raises BackendAway.
        """
        known = self.now()
        if not height or not known.first_date:
            return known
        if (up_to := self._up_to.get(height)) is None:
            try:
                up_to = self._up_to[height] = _up_to(self._backend, known, height)
            except Refused:  # as the question itself will be
                return known
        return up_to

    def last_known(self) -> Coverage:
        """Return the coverage now; without an answer the last one, or an empty one."""
        try:
            return self.now()
        except (BackendAway, Refused):
            return self._known[1] if self._known else NOTHING_KNOWN


def _coverage(backend: Backend) -> Coverage:
    answer = backend.get("/coverage")
    codes = Counter(row["code"] for row in answer["carriers"])
    carriers = tuple(
        Carrier(
            row["OP_CARRIER_AIRLINE_ID"],
            row["code"],
            row["name"],
            row["flights"],
            shares_code=codes[row["code"]] > 1,
        )
        for row in answer["carriers"]
    )
    airports = tuple(Airport(**row) for row in answer["airports"])
    known = Coverage(
        answer["flights"], answer["first_date"], answer["last_date"], carriers, airports
    )
    return replace(known, months=cache(partial(months_with_flights, backend, known)))


def months_with_flights(backend: Backend, known: Coverage) -> list[str]:
    """Return the months in which the ledger has flights, each as `yyyy-mm`, in their order.

    Raises BackendAway, Refused.
    """
    answer = backend.get("/flight_counter", {**all_days(known), "group_by": "month"})
    return [group["month"] for group in answer["by_month"]]


def _up_to(backend: Backend, known: Coverage, height: str) -> Coverage:
    question = {**all_days(known), "group_by": "day", "limit": "1", "as_of": height}
    orders = ("ascending", "descending")
    ends = [backend.get("/average_delays", {**question, "order": order}) for order in orders]
    days = [row["FL_DATE"] for end in ends for row in end["by_day"]]
    if not days:
        return replace(known, flights=0)
    return replace(known, flights=ends[0]["flights"], first_date=days[0], last_date=days[1])


def all_days(known: Coverage) -> dict[str, str]:
    """Return the interval for a question without days: all days that the ledger covers."""
    if not known.first_date or not known.last_date:
        return {}
    return {"INITIAL_DATE": known.first_date, "FINAL_DATE": known.last_date}
