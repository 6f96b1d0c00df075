"""`/filter_transactions`: what happened to flight N on day D.

Every question raises BackendAway and Refused.
"""

from collections import Counter
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cached_property

from flask import Blueprint, redirect, request
from werkzeug.wrappers import Response as AnyResponse

from frontend import field_labels
from frontend.backend_client import Json
from frontend.context import backend, coverage
from frontend.coverage import Coverage
from frontend.evidence import Answered, uncited
from frontend.filters import plus
from frontend.form_request import cited_page, filled_in
from frontend.question import AS_OF, CARRIER, DAY, DAYS, KINDS, NUMBER, Question, require_known
from frontend.questions import flights_of_day
from frontend.questions.flights_of_day import Leg
from frontend.questions.group_queries import periods_with_flights
from frontend.search.fields import with_number
from frontend.twins import Twin, twins

NAME = "filter_transactions"
PATH = f"/{NAME}"
DAYS_AROUND, REACH_DAYS = 3, 31
DAYS_OFFERED = 10
NUMBERS_OFFERED = 8
MOST_LEGS_SHOWN = 100
COLUMNS = ("carrier", "leg", *field_labels.TRANSACTION_NAMES, "BLOCK_HEIGHT", "status", "outcome")

routes = Blueprint("flight_status", __name__)
for template_filter in (
    flights_of_day.outcome,
    flights_of_day.outcome_of_all,
    flights_of_day.worst,
    flights_of_day.departure_day,
    flights_of_day.arrival_day,
    flights_of_day.scheduled_day,
    flights_of_day.day_in_words,
    flights_of_day.scheduled,
):
    routes.add_app_template_filter(template_filter)


@dataclass(frozen=True, slots=True)
class CarrierFlights:
    """One carrier's legs: one route, or several if they do not form a single chain."""

    number: int
    label: str
    routes: list[list[Leg]]

    @property
    def legs(self) -> list[Leg]:
        return [leg for route in self.routes for leg in route]

    @property
    def paths(self) -> list[str]:
        """The cities along each route, in words, each once."""
        paths = (
            [route[0]["ORIGIN_CITY_NAME"], *(leg["DEST_CITY_NAME"] for leg in route)]
            for route in self.routes
        )
        return list(dict.fromkeys(" → ".join(path) for path in paths))


@dataclass(frozen=True, slots=True)
class Day:
    """A day and the legs on it. is_covered: whether the ledger has any flights then."""

    date: str
    legs: list[Leg]
    is_covered: bool = True

    @property
    def has_flown(self) -> bool:
        return not all(leg["CANCELLED"] for leg in self.legs)


@dataclass(frozen=True)
class DayStatus(Answered):
    """A flight number's legs on a day, or from FL_DATE to FINAL_DATE. answer: the backend's."""

    @property
    def day(self) -> str:
        """The day, or the first of several."""
        return str(self.question.values[DAY])

    @cached_property
    def carriers(self) -> list[CarrierFlights]:
        return _by_carrier(self.answer["flights"], self.known)

    @property
    def legs(self) -> list[Leg]:
        return [leg for carrier in self.carriers for leg in carrier.legs]

    @property
    def ends(self) -> list[tuple[str, str]]:
        """The airports of the legs, each pair once."""
        return list(dict.fromkeys((str(leg["ORIGIN"]), str(leg["DEST"])) for leg in self.legs))

    @cached_property
    def days(self) -> list[Day]:
        """A single day and its neighbours; none of several days."""
        if self.question.values.get(DAYS[1], self.day) != self.day:
            return []
        days = [plus(self.day, offset) for offset in range(-DAYS_AROUND, DAYS_AROUND + 1)]
        by_day = {**self._legs_by_day(days[0], days[-1]), self.day: self.answer["flights"]}
        covered = {day for day in days if by_day.get(day)}
        if others := sorted({*days} - covered):  # to count all flights of a day takes long
            covered |= self._covered(others[0], others[-1])
        return [Day(day, by_day.get(day, []), day in covered) for day in days]

    @property
    def is_covered(self) -> bool:
        """Whether the ledger has any flights on the days that are asked about."""
        if self.days:
            return any(day.is_covered for day in self.days if day.date == self.day)
        return bool(self._covered(self.day, str(self.question.values[DAYS[1]])))

    @cached_property
    def flown(self) -> list[Day]:
        """The days around on which it flew, not only cancelled; if there are none, the nearest."""
        if around := [day for day in self.days if day.has_flown]:
            return around
        middle = min(max(self.day, self.known.first_date or ""), self.known.last_date or self.day)
        by_day = self._legs_by_day(plus(middle, -REACH_DAYS), plus(middle, REACH_DAYS))

        def distance(day: str) -> tuple[timedelta, str]:
            return abs(date.fromisoformat(day) - date.fromisoformat(middle)), day

        flown = {day for day, legs in by_day.items() if Day(day, legs).has_flown}
        closest = sorted(flown - {self.day}, key=distance)[:DAYS_OFFERED]
        return [Day(day, by_day[day]) for day in sorted(closest)]

    @property
    def others(self) -> list[CarrierFlights]:
        """The flights of other carriers, if one is named."""
        asked = {n: value for n, value in self.question.values.items() if n != CARRIER}
        is_one = CARRIER in self.question.values
        return _by_carrier(backend.get(PATH, asked)["flights"] if is_one else [], self.known)

    def _covered(self, first: str, last: str) -> set[str]:
        """Return the days from `first` to `last` on which the ledger has flights of any number."""
        first, last = self._between_ends(first, last)
        height = self.answer[AS_OF]["height"]
        return periods_with_flights(first, last, "day", height) if first <= last else set()

    def _legs_by_day(self, first: str, last: str) -> dict[str, list[Leg]]:
        """Return the legs of the days that the ledger covers; days without any are left out."""
        first, last = self._between_ends(first, last)
        values, by_day = self.question.values, dict[str, list[Leg]]()
        if first <= last:
            same = {name: values[name] for name in (NUMBER, CARRIER, AS_OF) if name in values}
            for leg in backend.get(PATH, {**same, DAY: first, DAYS[1]: last})["flights"]:
                by_day.setdefault(leg[DAY], []).append(leg)
        return by_day

    def _between_ends(self, first: str, last: str) -> tuple[str, str]:
        """Return the part of an interval from the first to the last day of the ledger."""
        return max(first, self.known.first_date or ""), min(last, self.known.last_date or "")


def numbers_like(number: object) -> list[Json]:
    """Return flight numbers that begin like `number`, those with the most common digits first."""
    text = str(number)
    alike: dict[int, Json] = {}
    for digits in range(len(text), 0, -1):
        wanted = {"field": "flight_number", "q": text[:digits], "limit": NUMBERS_OFFERED + 1}
        for suggestion in backend.get("/suggest", wanted)["suggestions"]:
            alike.setdefault(suggestion["value"], suggestion)
        if len(alike) > NUMBERS_OFFERED:
            break
    alike.pop(int(text), None)
    return list(alike.values())[:NUMBERS_OFFERED]


def _by_carrier(flights: list[Leg], known: Coverage) -> list[CarrierFlights]:
    """Return the flights by carrier; the days in order, and those of each day."""
    by_day: dict[int, dict[str, list[Leg]]] = {}
    for leg in flights:
        by_day.setdefault(leg[CARRIER], {}).setdefault(leg[DAY], []).append(leg)
    carriers = (
        CarrierFlights(
            number,
            known.carrier(number).label,
            [route for day in sorted(days) for route in flights_of_day.routes(days[day])],
        )
        for number, days in by_day.items()
    )
    return sorted(carriers, key=lambda carrier: carrier.label)


def _rows(carriers: list[CarrierFlights]) -> list[Json]:
    """Return each leg with its carrier's name, its place among the carrier's legs, its outcome."""
    legs: list[Json] = []
    for carrier in carriers:
        places: Counter[str] = Counter()
        for leg in carrier.legs:
            places[leg[DAY]] += 1
            outcome = flights_of_day.outcome(leg)
            legs.append(
                {**leg, "carrier": carrier.label, "leg": places[leg[DAY]], "outcome": outcome}
            )
    return legs


@routes.get(PATH)
def page() -> AnyResponse | tuple[str, int]:
    """Return the flights of a day; without a day, the report of the number."""
    given = filled_in(request.args)
    if NUMBER in given and not {DAY, DAYS[1]} & given.keys():
        return redirect(Question("report", uncited(given)).address())
    return cited_page("flight_status.html", _status, most=MOST_LEGS_SHOWN)


@twins(routes, PATH)
def twin() -> Twin:
    """Return the legs in order, and the days around."""
    status = _status(filled_in(uncited(request.args)))
    legs, query, as_of = _rows(status.carriers), status.answer["query"], status.answer["as_of"]
    days = [
        {
            "FL_DATE": day.date,
            "is_covered": day.is_covered,
            "count": len(day.legs),
            "outcome": flights_of_day.outcome_of_all(day.legs) if day.is_covered else None,
        }
        for day in status.days
    ]
    answer = {"query": query, "count": status.answer["count"], "flights": legs, "days": days}
    return Twin({**answer, "as_of": as_of}, COLUMNS, legs, as_of)


def _status(given: dict[str, str]) -> DayStatus:
    require_known(given, *KINDS[NAME].parameters)
    given = with_number(given, coverage.now())
    answer = backend.get(PATH, given)
    return DayStatus(coverage.at(given.get(AS_OF)), Question.of(NAME, answer, given), answer)
