"""Makes the page of a route from answers: its ends, carriers, hours, weekdays, and the way back."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from frontend.backend_client import Json
from frontend.coverage import Airport, Coverage
from frontend.errors import Refused
from frontend.questions.group_queries import (
    Breakdowns,
    Groups,
    asked_like,
    interval_of,
    require_known,
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
class Route:
    """A route. ends: the parameters that name it. answers: by each of GROUPS. back: a total.

    only_origins: see `Breakdowns`; asked for only if there are no flights in a direction.
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
        """The days."""
        return interval_of(self.total)

    @property
    def names(self) -> list[str]:
        """Both ends as the page names them."""
        return [_name(self.ends, end, self.known) for end in ("ORIGIN", "DEST")]

    @property
    def cities(self) -> list[str]:
        """The cities of both ends."""
        return [_city(self.ends, end, self.known) for end in ("ORIGIN", "DEST")]

    @property
    def turned(self) -> dict[str, str]:
        """The parameters that name the way back."""
        return turned(self.ends)

    @property
    def more_airports(self) -> list[str]:
        """Other airports of the cities of which an airport is named."""
        airports = [self.known.airport(self.ends.get(end, "")) for end in ("ORIGIN", "DEST")]
        more = [one for airport in airports if airport for one in _others(self.known, airport)]
        return list(dict.fromkeys(more))

    @cached_property
    def rows(self) -> dict[str, list[Row]]:
        """The rows of each breakdown."""
        interval = self.interval
        return {by: rows_of(self.answers[by], by, self.known, interval) for by in GROUPS}

    @property
    def carriers(self) -> Extremes | None:
        """The best and the worst carrier."""
        return extremes(self.rows["carrier"])

    @property
    def hours(self) -> Extremes | None:
        """The best and the worst hour."""
        return extremes(self.rows["hour"])


def asked_route(given: Mapping[str, str], known: Coverage, breakdowns: Breakdowns) -> Route:
    """The route that a request asks for. Raises Refused, BackendAway."""
    require_known(given, ENDS)
    ends: dict[str, str] = {}
    for end in ("ORIGIN", "DEST"):
        ends |= _end(given, end, known)
    more = asked_like(given)
    answers = breakdowns.by(ends | more, GROUPS)
    height = answers["carrier"]["as_of"]["height"]
    back = breakdowns.total(turned(ends) | more, height)
    is_one_way = not (answers["carrier"]["flights"] and back["flights"])
    only = breakdowns.only_origins(known) if is_one_way else []
    return Route(known, ends, answers, back, only)


def turned(ends: Mapping[str, str]) -> dict[str, str]:
    """The parameters for the other direction."""
    return {ENDS[name]: text for name, text in ends.items()}


def _end(given: Mapping[str, str], end: str, known: Coverage) -> dict[str, str]:
    """The parameters that name an end, as the backend knows it: an airport, a city, or both.

    Raises Refused if the end is not named, or the ledger does not know it.
    """
    code, name = given.get(end, "").upper(), f"{end}_CITY_NAME"
    if code and known.airport(code) is None:
        raise Refused.parameter(end, code, f"no airport in the ledger has the code {code}")
    if name in given:
        return ({end: code} if code else {}) | _place(given[name], end, known)
    if not code:
        raise Refused({"field": name, "detail": "is missing"}, 400, None)
    return {end: code}


def _place(typed: str, end: str, known: Coverage) -> dict[str, str]:
    """The city that is called so, or the airport with that code. Raises Refused."""
    name = f"{end}_CITY_NAME"
    if airport := known.airport(typed.upper()):
        return {end: airport.code}
    cities = [typed] if typed in known.cities else called(known, typed)
    if len(cities) == 1:
        return {name: cities[0]}
    offered = " or ".join(meant(known, typed))
    reason = f"no city in the ledger matches “{typed}”"
    if cities:
        reason = f"several cities in the ledger are called “{typed}”"
    raise Refused.parameter(
        name, typed, f"{reason}; did you mean {offered}?" if offered else reason
    )


def _name(ends: Mapping[str, str], end: str, known: Coverage) -> str:
    airport = known.airport(ends.get(end, ""))
    return place(airport.code, airport.city) if airport else ends[f"{end}_CITY_NAME"]


def _city(ends: Mapping[str, str], end: str, known: Coverage) -> str:
    airport = known.airport(ends.get(end, ""))
    return airport.city if airport else ends[f"{end}_CITY_NAME"]


def _others(known: Coverage, airport: Airport) -> list[str]:
    return [one.code for one in other_airports(known, airport)]
