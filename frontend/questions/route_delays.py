"""Makes the page of a route from answers: its ends, carriers, hours, weekdays, and the way back."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from frontend.backend_client import Json
from frontend.context import coverage
from frontend.coverage import Airport, Coverage
from frontend.errors import Refused
from frontend.questions.group_queries import (
    DAYS,
    OPTIONS,
    Groups,
    answers_by_group,
    interval_of,
    only_origins,
    require_known,
    total,
)
from frontend.questions.group_rows import Extremes, Row, extremes, other_airports, place, rows_of
from frontend.search.cities import called, meant

ENDS = {
    "ORIGIN": "DEST",
    "DEST": "ORIGIN",
    "ORIGIN_CITY_NAME": "DEST_CITY_NAME",
    "DEST_CITY_NAME": "ORIGIN_CITY_NAME",
}
"""Each parameter that names an end of a route, and the one for the other end."""
GROUPS: Groups = {"carrier": {"distribution": "true"}, "hour": {}, "weekday": {}, "route": {}}


@dataclass(frozen=True)
class RouteDelays:
    """A route. ends: the parameters that name it. answers: by each of GROUPS. back: a total.

    only_origins: see `group_queries`; asked for only if there are no flights in a direction.
    """

    known: Coverage
    ends: Mapping[str, str]
    answers: Json
    back: Json
    only_origins: list[str]

    @property
    def total(self) -> Json:
        """The answer about all flights, with their distribution."""
        answer: Json = self.answers["carrier"]
        return answer

    @property
    def interval(self) -> dict[str, str]:
        return interval_of(self.total)

    @cached_property
    def names(self) -> list[str]:
        """Both ends as the page names them."""
        return [
            place(airport.code, airport.city) if airport else self.ends[f"{end}_CITY_NAME"]
            for end, airport in zip(("ORIGIN", "DEST"), self._airports, strict=True)
        ]

    @property
    def cities(self) -> list[str]:
        return [
            airport.city if airport else self.ends[f"{end}_CITY_NAME"]
            for end, airport in zip(("ORIGIN", "DEST"), self._airports, strict=True)
        ]

    @property
    def turned(self) -> dict[str, str]:
        return turned(self.ends)

    @property
    def more_airports(self) -> list[str]:
        """Other airports of the cities of which an airport is named."""
        others = [other_airports(self.known, airport) for airport in self._airports if airport]
        return list(dict.fromkeys(other.code for airports in others for other in airports))

    @cached_property
    def _airports(self) -> list[Airport | None]:
        return [self.known.airport(self.ends.get(end, "")) for end in ("ORIGIN", "DEST")]

    @cached_property
    def rows(self) -> dict[str, list[Row]]:
        return {by: rows_of(self.answers[by], by, self.known, self.interval) for by in GROUPS}

    @property
    def carriers(self) -> Extremes | None:
        return extremes(self.rows["carrier"])

    @property
    def hours(self) -> Extremes | None:
        return extremes(self.rows["hour"])


def route_delays(given: Mapping[str, str]) -> RouteDelays:
    """Return the route that a request asks for. Raises Refused, BackendAway."""
    require_known(given, ENDS)
    known = coverage.now()
    ends = _end(given, "ORIGIN", known) | _end(given, "DEST", known)
    more = {name: given[name] for name in (*DAYS, *OPTIONS) if name in given}
    answers = answers_by_group(ends | more, GROUPS)
    back = total(turned(ends) | more, answers["carrier"]["as_of"]["height"])
    is_one_way = not (answers["carrier"]["flights"] and back["flights"])
    return RouteDelays(known, ends, answers, back, only_origins(known) if is_one_way else [])


def turned(ends: Mapping[str, str]) -> dict[str, str]:
    return {ENDS[name]: text for name, text in ends.items()}


def _end(given: Mapping[str, str], end: str, known: Coverage) -> dict[str, str]:
    """Return the parameters that name an end, as the backend knows it: an airport, a city, or both.

    Raises Refused if the end is not named, or the ledger does not know it.
    """
    code, name = given.get(end, "").upper(), f"{end}_CITY_NAME"
    if code and known.airport(code) is None:
        raise Refused.parameter(end, code, f"no airport in the ledger has the code {code}")
    if name in given:
        return ({end: code} if code else {}) | _city_or_airport(given[name], end, known)
    if not code:
        raise Refused({"field": name, "detail": "is missing"}, 400)
    return {end: code}


def _city_or_airport(typed: str, end: str, known: Coverage) -> dict[str, str]:
    """Return the city that is called so, or the airport with that code. Raises Refused."""
    name = f"{end}_CITY_NAME"
    if airport := known.airport(typed.upper()):
        return {end: airport.code}
    cities = [typed] if typed in known.cities else called(known, typed)
    if len(cities) == 1:
        return {name: cities[0]}
    reason = f"no city in the ledger matches “{typed}”"
    if cities:
        reason = f"several cities in the ledger are called “{typed}”"
    if offered := " or ".join(meant(known, typed)):
        reason = f"{reason}; did you mean {offered}?"
    raise Refused.parameter(name, typed, reason)
