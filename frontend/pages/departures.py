"""`/departures`: the flights of an airport or route on a day or at an hour, or the usual ones.

A flight whose scheduled time is not recorded, as that of most cancelled ones, may have been to
leave in any hour: it is shown apart, and counts where its flight number does.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from functools import cached_property, partial
from typing import Any

from flask import Blueprint, request

from frontend import field_labels
from frontend.backend_client import Json
from frontend.context import backend, coverage
from frontend.coverage import Coverage
from frontend.errors import Refused
from frontend.filters import short_interval
from frontend.form_request import answer_page, filled_in
from frontend.question import (
    AS_OF,
    BOTH,
    CARRIER,
    DAY,
    DAYS,
    ENDS,
    HOUR,
    NUMBER,
    OPTIONS,
    Question,
    as_of_in,
    require_known,
)
from frontend.questions import flights_of_day
from frontend.questions.figures import FIGURES, together
from frontend.questions.flights_of_day import Leg
from frontend.questions.group_queries import answers_by_group
from frontend.questions.group_rows import Row, hours, rows_of
from frontend.twins import Twin, twins

MOST_SHOWN = 100
FLIGHT = (*field_labels.TRANSACTION_NAMES, "BLOCK_HEIGHT", "status")
GROUP = ("OP_CARRIER_AIRLINE_ID", "OP_CARRIER_FL_NUM", "ORIGIN", "DEST", "departure", *FIGURES)
BY_HOUR = (HOUR, "name", *FIGURES)

PATH = "/departures"
HOURS = 24
MOST_DAYS, MOST_DAYS_OF_AIRPORT = 366, 31
"""The most days of which departures are counted: on a route, and of an airport with all routes."""

routes = Blueprint("departures", __name__)


@dataclass
class UsualFlight:
    """A flight number on a route. times: how often it was scheduled when, hhmm; "" if unknown."""

    carrier: int
    number: int
    origin: str
    dest: str
    flights: int = 0
    on_time: int = 0
    cancelled: int = 0
    times: Counter[str] = field(default_factory=Counter)

    def add(self, group: Json) -> None:
        """Add the flights at one of its times."""
        self.flights += group["flights"]
        self.on_time += round((group["on_time_share_of_scheduled"] or 0) * group["flights"])
        self.cancelled += group["cancelled"]
        self.times[group["departure"]] += group["flights"]

    def in_hour(self, hour: int | None) -> tuple[int, str]:
        """Return how many flights were scheduled in an hour, or at all, and their commonest time.

        That is "" if several times are as common.
        """
        times = Counter({t: n for t, n in self.times.items() if t and hour in {None, int(t[:2])}})
        (time, most), (_, next_most) = [*times.most_common(2), ("", 0), ("", 0)][:2]
        return times.total(), time if most > next_most else ""


@dataclass(frozen=True)
class Departures:
    """Says what leaves a place, or for a place. by_hour: the answer about the hours of these days.

    answer: of the service, with the flights of a day or the groups of several.
    """

    known: Coverage
    question: Question
    by_hour: Json
    answer: Json

    @property
    def hour(self) -> int | None:
        return self.question.values.get(HOUR)

    @cached_property
    def hours(self) -> list[Row]:
        """The hours in which flights leave, each with the address of its departures."""
        return rows_of(self.by_hour, "hour", self.known, self.question)

    @property
    def figures(self) -> Json | None:
        """The figures of the flights at the hour, or of all; None if none leaves at the hour."""
        if self.hour is None:
            return self.by_hour
        return next((row.figures for row in self.hours if row.key[HOUR] == self.hour), None)

    @property
    def groups(self) -> list[Json]:
        """The flight numbers and times of several days, only those at the hour if one is named."""
        groups = self.answer.get("by_departure", ())
        start = "" if self.hour is None else f"{self.hour:02}"
        return [group for group in groups if group["departure"].startswith(start)]

    @property
    def counted_days(self) -> str:
        """The days of which departures are counted, in words."""
        return short_interval(*(self.answer["query"][name] for name in DAYS))

    @property
    def timed_count(self) -> int:
        """How many flights of the day, and of the hour if one is named, have a scheduled time."""
        return int(self.answer["count"] - self.by_hour["without_hour"])

    def piece(self, offset: int) -> list[Leg]:
        """Return flights of the day from one on: as many as the answer may have."""
        as_of = {AS_OF: self.answer[AS_OF]["height"], "offset": offset}
        flights: list[Leg] = backend.get(PATH, {**self.answer["query"], **as_of})["flights"]
        return flights

    def all_flights(self) -> Iterator[Leg]:
        """Yield all flights of the day; the service gives so many at once."""
        passed, flights = 0, self.answer["flights"]
        while flights:
            yield from flights
            passed += len(flights)
            flights = self.piece(passed) if passed < self.answer["count"] else []

    def flights(self, *, are_timed: bool) -> list[Leg]:
        """Return the flights of the day that have a scheduled time, or the others."""
        legs = self.answer["flights"]
        return [leg for leg in legs if bool(flights_of_day.scheduled(leg, "DEP")) == are_timed]

    @cached_property
    def usual(self) -> list[tuple[int, str, UsualFlight]]:
        """The flights that leave at the hour, and their commonest time, of each number."""
        flights: dict[tuple[object, ...], UsualFlight] = {}
        for group in self.answer.get("by_departure", ()):
            key = (group[CARRIER], group[NUMBER], group["ORIGIN"], group["DEST"])
            flights.setdefault(key, UsualFlight(*key)).add(group)
        counted = [(*flight.in_hour(self.hour), flight) for flight in flights.values()]
        counted.sort(key=lambda row: -row[0])
        return [row for row in counted if row[0]]


def with_days(given: Mapping[str, str]) -> Mapping[str, str]:
    """Return the parameters with both ends of an interval that was typed as a day."""
    if DAY not in given or given.keys() & DAYS != {DAYS[1]}:
        return given
    return {DAYS[0] if name == DAY else name: value for name, value in given.items()}


def departures(given: Mapping[str, str], most: int | None = None) -> Departures:
    """Return the departures that a request asks for. Raises Refused, BackendAway.

    most: of the flights of a day with a scheduled time, and of those without; by default as many
    as the service gives at once, in the order of their schedule.
    """
    require_known(given, *ENDS, CARRIER, HOUR, *((DAY,) if DAY in given else DAYS))
    known, hour = coverage.at(given.get(AS_OF)), _hour(given)
    ends = _some(given, tuple(ENDS))
    if not ends and DAY not in given:
        raise Refused.missing("ORIGIN_CITY_NAME")
    asked, span = {**ends, **_some(given, (CARRIER, *OPTIONS))}, _some(given, DAYS)
    of_day: Json = {}
    if DAY in given:
        of_day = _flights({**asked, DAY: given[DAY]}, hour, most)
        span = {**dict.fromkeys(DAYS, of_day["query"][DAY]), AS_OF: str(of_day[AS_OF]["height"])}
    by_hour = answers_by_group({**asked, **span}, {"hour": {}})["hour"]
    answer = of_day or _usual(asked, by_hour, hour) or by_hour
    days = {DAY: span[DAYS[0]]} if of_day else _some(by_hour["query"], DAYS)
    hours = {} if hour is None else {HOUR: hour}
    carrier = _some(by_hour["query"], (CARRIER,))
    question = Question("departures", {**ends, **carrier, **days, **hours, **as_of_in(given)})
    board = Departures(known, question, by_hour, answer)
    if of_day and most:
        answer["flights"] = answer["flights"][: board.timed_count]
        if by_hour["without_hour"]:
            answer["flights"] += board.piece(board.timed_count)
    return board


def _some(given: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: given[name] for name in names if name in given}


def _flights(asked: Mapping[str, str], hour: int | None, most: int | None) -> Json:
    """Return the answer with the flights of a day."""
    at = {} if hour is None else {HOUR: str(hour)}
    piece = {"limit": str(most)} if most else {}
    return backend.get(PATH, {**asked, **at, **piece})


def _usual(asked: Mapping[str, str], by_hour: Json, hour: int | None) -> Json | None:
    """Return the departures by flight number and time; None for all of an airport, at any hour.

    Only those of the last days are counted if there are more than MOST_DAYS.
    """
    is_route = all({end, f"{end}_CITY_NAME"} & asked.keys() for end in BOTH)
    if hour is None and not is_route:
        return None
    first, last = (date.fromisoformat(by_hour["query"][name]) for name in DAYS)
    most = MOST_DAYS if is_route else MOST_DAYS_OF_AIRPORT
    first = max(first, last - timedelta(most - 1))
    counted = {**dict(zip(DAYS, (str(first), str(last)), strict=True)), "group_by": "departure"}
    as_of = {AS_OF: str(by_hour[AS_OF]["height"])}
    return backend.get("/average_delays", {**asked, **counted, **as_of})


def _hour(given: Mapping[str, str]) -> int | None:
    """Return the hour that is asked for, if any. Raises Refused."""
    text = given.get(HOUR)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 2 and int(text) < HOURS):
        raise Refused.parameter(HOUR, text, "must be an hour from 0 to 23")
    return int(text)


@routes.get(PATH)
def page() -> tuple[str, int]:
    given = with_days(filled_in(request.args))
    return answer_page(
        "departures.html",
        partial(departures, most=MOST_SHOWN),
        given,
        most=MOST_SHOWN,
        hour_names=[(hour, hours(hour)) for hour in range(HOURS)],
    )


@twins(routes, PATH)
def twin() -> Twin:
    """Return the service's answers; as CSV a day's flights, or several days' numbers or hours."""
    board = departures(with_days(filled_in(request.args)))
    answer = board.answer
    rows: Iterable[Leg]
    if DAY in board.question.values:
        columns, rows = FLIGHT, board.all_flights()
    elif "by_departure" in answer:
        columns, rows = GROUP, board.groups
        if board.hour is not None:
            figures = together(rows)  # of flights that all have a departure delay
            delays = [row["average_departure_delay"] * row["flights"] for row in rows]
            mean = sum(delays) / figures["flights"] if rows else None
            asked = answer["query"] | {HOUR: board.hour}
            answer = {**answer, **figures, "average_departure_delay": mean, "query": asked}
        answer = {**answer, "by_departure": rows, "groups": len(rows)}
    else:
        columns, rows = BY_HOUR, [row.as_json() for row in board.hours]
    return Twin({"departures": answer, "hours": board.by_hour}, columns, rows, answer["as_of"])
