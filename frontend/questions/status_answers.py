"""Makes the page about a flight from several answers of the backend.

Every question raises BackendAway and Refused.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from frontend.backend_client import Json
from frontend.context import backend, coverage
from frontend.coverage import Coverage
from frontend.question import AS_OF, CARRIER, DAY, NUMBER
from frontend.questions import flight_days, flights_of_day
from frontend.questions.flight_days import Day
from frontend.questions.flights_of_day import Leg

PATH = "/filter_transactions"
DAYS_AROUND = 3
DAYS_OFFERED = 10
NUMBERS_OFFERED = 8


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
class DayStatus:
    """A flight number's legs on a day, or on some days.

    answer: the backend's. days: a single day and its neighbours; none of several days.
    """

    answer: Json
    carriers: list[CarrierFlights]
    days: list[Day]

    @property
    def query(self) -> Any:
        return self.answer["query"]

    @property
    def count(self) -> Any:
        return self.answer["count"]

    @property
    def legs(self) -> list[Leg]:
        return [leg for carrier in self.carriers for leg in carrier.legs]


@dataclass(frozen=True, slots=True)
class Offers:
    """Offers for a question without flights: days that have some, other carriers and numbers."""

    flown: list[Day]
    others: list[CarrierFlights]
    numbers: list[Json]


def status_of_day(given: Mapping[str, str]) -> DayStatus:
    """Return the legs of a flight number on a day, or from FL_DATE to FINAL_DATE."""
    answer, known = backend.get(PATH, given), coverage.at(given.get(AS_OF))
    flights, day = answer["flights"], answer["query"][DAY]
    days: list[Day] = []
    if answer["query"].get("FINAL_DATE", day) == day:
        days = flight_days.around(day, flights, DAYS_AROUND, known, _legs_by_day(given))
    return DayStatus(answer, _by_carrier(flights, known), days)


def offers(status: DayStatus, known: Coverage, given: dict[str, str]) -> Offers:
    """Return what to offer for days without flights. given: what was asked."""
    flown = [day for day in status.days if day.legs] or flight_days.nearest(
        given[DAY], DAYS_OFFERED, known, _legs_by_day(given)
    )
    others: list[Leg] = []
    if given.pop(CARRIER, None):
        others = backend.get(PATH, given)["flights"]
    numbers = [] if flown else numbers_like(given[NUMBER])
    return Offers(flown, _by_carrier(others, known), numbers)


def _legs_by_day(given: Mapping[str, str]) -> flight_days.AskDays:
    same = {name: text for name, text in given.items() if name in {NUMBER, CARRIER, AS_OF}}

    def ask(first: str, last: str) -> flight_days.LegsByDay:
        by_day: dict[str, list[Leg]] = {}
        for leg in backend.get(PATH, {**same, DAY: first, "FINAL_DATE": last})["flights"]:
            by_day.setdefault(leg[DAY], []).append(leg)
        return by_day

    return ask


def numbers_like(number: object) -> list[Json]:
    """Flight numbers that begin like `number`, those with the most digits in common first."""
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
    """Return the flights by carrier; those of each day in order, the days as they come."""
    by_day: dict[int, dict[str, list[Leg]]] = {}
    for leg in flights:
        by_day.setdefault(leg[CARRIER], {}).setdefault(leg[DAY], []).append(leg)
    carriers = (
        CarrierFlights(
            number,
            known.carrier(number).label,
            [route for legs in days.values() for route in flights_of_day.routes(legs)],
        )
        for number, days in by_day.items()
    )
    return sorted(carriers, key=lambda carrier: carrier.label)


# --- for programs ----------------------------------------------------------------------------


def rows(carriers: list[CarrierFlights]) -> list[Json]:
    """Each leg with its carrier's name, its place among that carrier's legs, and its outcome."""
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


def as_json(status: DayStatus) -> Json:
    return {
        "query": status.query,
        "count": status.count,
        "flights": rows(status.carriers),
        "days": list(map(_day_as_json, status.days)),
        "as_of": status.answer["as_of"],
    }


def _day_as_json(day: Day) -> Json:
    return {
        "FL_DATE": day.date,
        "is_covered": day.is_covered,
        "count": len(day.legs),
        "outcome": flights_of_day.outcome_of_all(day.legs) if day.is_covered else None,
    }
