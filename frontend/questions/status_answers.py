"""Makes the page about a flight from several answers of the backend."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import date

from frontend.backend_client import Backend, Json
from frontend.coverage import Coverage, CoverageKeeper
from frontend.errors import Refused
from frontend.flight_numbers import CARRIER, NUMBER
from frontend.questions import flight_days, flights_of_day
from frontend.questions.flight_days import Day, Found
from frontend.questions.flights_of_day import Leg

PATH = "/filter_transactions"
DAY = "FL_DATE"
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
        """All legs in order."""
        return [leg for route in self.routes for leg in route]

    @property
    def paths(self) -> list[list[str]]:
        """The cities along each route."""
        return [
            [route[0]["ORIGIN_CITY_NAME"], *(leg["DEST_CITY_NAME"] for leg in route)]
            for route in self.routes
        ]


@dataclass(frozen=True, slots=True)
class DayStatus:
    """A flight number's legs on a day. found: the backend's answer.

    days: this day and its neighbours.
    """

    found: Json
    carriers: list[CarrierFlights]
    days: list[Day]

    @property
    def query(self) -> Json:
        """The question, as the backend understood it."""
        query: Json = self.found["query"]
        return query

    @property
    def count(self) -> int:
        """How many legs there are."""
        count: int = self.found["count"]
        return count

    @property
    def legs(self) -> list[Leg]:
        """The legs of all carriers."""
        return [leg for one in self.carriers for leg in one.legs]


@dataclass(frozen=True, slots=True)
class NumberStatus:
    """The days on which a flight number flew. numbers: similar ones if there are no such days."""

    query: Json
    found: Found
    carriers: list[CarrierFlights]
    numbers: list[Json]


@dataclass(frozen=True, slots=True)
class Offers:
    """Offers for a question without flights: days that have some, other carriers and numbers."""

    flown: list[Day]
    others: list[CarrierFlights]
    numbers: list[Json]


class FlightStatus:
    """Asks about flights. Every method raises BackendAway and Refused."""

    def __init__(self, backend: Backend, coverage: CoverageKeeper) -> None:
        self._backend = backend
        self._coverage = coverage

    def of_day(self, given: Mapping[str, str]) -> DayStatus:
        """The legs of a flight number on a day."""
        answer, known = self._ask(given), self._coverage.now()
        flights, query = answer["flights"], answer["query"]
        days = flight_days.around(query[DAY], flights, DAYS_AROUND, known, self._asker(given))
        carriers = _by_carrier(flights, known)
        return DayStatus(answer, carriers, days)

    def of_number(self, given: Mapping[str, str]) -> NumberStatus:
        """The last days on which a flight number flew, before the day `before` if that is given."""
        known = self._coverage.now()
        others = {name: text for name, text in given.items() if name != "before"}
        after_all = flight_days.plus(known.last_date or date.min.isoformat(), 1)
        before = _iso("before", given.get("before", after_all))
        some_day = known.last_date or date.today().isoformat()  # noqa: DTZ011  any day will do
        query = self._ask({**others, DAY: some_day})["query"]  # refuses an invalid number
        del query[DAY]
        found = flight_days.last_before(before, DAYS_OFFERED, known, self._asker(given))
        carriers = _by_carrier([leg for day in found.flown for leg in day.legs], known)
        numbers = [] if found.flown else self._numbers_like(str(query[NUMBER]))
        return NumberStatus(query, found, carriers, numbers)

    def offers(self, asked: DayStatus) -> Offers:
        """What to offer for a day without flights."""
        known, query = self._coverage.now(), asked.query
        given = {name: str(query[name]) for name in (NUMBER, DAY, CARRIER) if name in query}
        flown = [day for day in asked.days if day.legs] or flight_days.nearest(
            given[DAY], DAYS_OFFERED, known, self._asker(given)
        )
        others: list[Leg] = []
        if given.pop(CARRIER, None):
            others = self._ask(given)["flights"]
        numbers = [] if flown else self._numbers_like(given[NUMBER])
        return Offers(flown, _by_carrier(others, known), numbers)

    def _ask(self, given: Mapping[str, str]) -> Json:
        return self._backend.get(PATH, given)

    def _asker(self, given: Mapping[str, str]) -> flight_days.AskDay:
        same = {name: text for name, text in given.items() if name in {NUMBER, CARRIER, "as_of"}}

        def ask(day: str) -> list[Leg]:
            flights: list[Leg] = self._ask({**same, DAY: day})["flights"]
            return flights

        return ask

    def _numbers_like(self, number: str) -> list[Json]:
        """Flight numbers that begin like `number`, those with the most digits in common first."""
        alike: dict[int, Json] = {}
        for digits in range(len(number), 0, -1):
            wanted = {"field": "flight_number", "q": number[:digits], "limit": NUMBERS_OFFERED + 1}
            for one in self._backend.get("/suggest", wanted)["suggestions"]:
                alike.setdefault(one["value"], one)
            if len(alike) > NUMBERS_OFFERED:
                break
        alike.pop(int(number), None)
        return list(alike.values())[:NUMBERS_OFFERED]


def _iso(name: str, text: str) -> str:
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        raise Refused.parameter(name, text, "must be a date, YYYY-MM-DD") from None


def _by_carrier(flights: list[Leg], known: Coverage) -> list[CarrierFlights]:
    """The flights by carrier; those of each day in order, the days as they come."""
    found: dict[int, dict[str, list[Leg]]] = {}
    for leg in flights:
        found.setdefault(leg[CARRIER], {}).setdefault(leg[DAY], []).append(leg)
    carriers = (
        CarrierFlights(
            number,
            known.carrier(number).label,
            [route for of_day in days.values() for route in flights_of_day.routes(of_day)],
        )
        for number, days in found.items()
    )
    return sorted(carriers, key=lambda one: one.label)


# --- for programs ----------------------------------------------------------------------------


def rows(carriers: list[CarrierFlights]) -> list[Json]:
    """Each leg with its carrier's name, its place among that carrier's legs, and its outcome."""
    found: list[Json] = []
    for one in carriers:
        places: Counter[str] = Counter()
        for leg in one.legs:
            places[leg[DAY]] += 1
            more = {
                "carrier": one.label,
                "leg": places[leg[DAY]],
                "outcome": flights_of_day.outcome(leg),
            }
            found.append({**leg, **more})
    return found


def plain(answer: DayStatus | NumberStatus) -> Json:
    """The answer for JSON."""
    if isinstance(answer, DayStatus):
        return {
            "query": answer.query,
            "count": answer.count,
            "flights": rows(answer.carriers),
            "days": list(map(_plain_day, answer.days)),
            "as_of": answer.found["as_of"],
        }
    found = asdict(answer.found)
    return {"query": answer.query, **found, "flown": list(map(_plain_day, answer.found.flown))}


def _plain_day(day: Day) -> Json:
    return {
        "FL_DATE": day.date,
        "is_covered": day.is_covered,
        "count": len(day.legs),
        "outcome": flights_of_day.outcome_of_all(day.legs) if day.is_covered else None,
    }
