"""The question of a page as one value: heading, form, links, citation and proof are made from it.

The service reads the parameters and says how it understood them; a `Question` is made from that, or
from what a page of several answers has in common. A page refuses what it cannot show, and names
what it takes.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from frontend.coverage import Airport, Coverage
from frontend.errors import Refused
from frontend.filters import short_interval

NUMBER, CARRIER = "OP_CARRIER_FL_NUM", "OP_CARRIER_AIRLINE_ID"
DAY, DAYS = "FL_DATE", ("INITIAL_DATE", "FINAL_DATE")
ITEM = "item"  # of several that are compared
MOST_ITEMS = 6
ENDS = {
    "ORIGIN": "DEST",
    "DEST": "ORIGIN",
    "ORIGIN_CITY_NAME": "DEST_CITY_NAME",
    "DEST_CITY_NAME": "ORIGIN_CITY_NAME",
}
"""Each parameter that names an end of a route, and the one for the other end."""
BOTH = ("ORIGIN", "DEST")
HOUR = "hour"
AS_OF = "as_of"
OPTIONS = (AS_OF, "engine")


@dataclass(frozen=True, slots=True)
class Kind:
    """One of the three questions.

    parameters: those that ask it. provable, if_provable: those that may be in a question whose
    answer is proved, the first of which must be, and that in words. proved: members of the answer
    that are proved.
    """

    parameters: tuple[str, ...]
    provable: tuple[str, ...]
    if_provable: str
    proved: tuple[str, ...]


KINDS: Mapping[str, Kind] = {
    "filter_transactions": Kind(
        (NUMBER, DAY, CARRIER, "FINAL_DATE"),
        (NUMBER, DAY, CARRIER),
        "the flights of a single day",
        ("count", "flights"),
    ),
    "average_delays": Kind(
        (CARRIER, *DAYS, *ENDS),
        (CARRIER, *DAYS),
        "all flights of a carrier, from and to anywhere",
        (
            *("average_delay", "average_departure_delay", "flights", "arrived", "cancelled"),
            *("no_arrival", "on_time_share_of_arrived", "on_time_share_of_scheduled"),
        ),
    ),
    "flight_counter": Kind(
        (*ENDS, *DAYS),
        ("ORIGIN_CITY_NAME", "DEST_CITY_NAME", *DAYS),
        "cities with all of their airports",
        ("count",),
    ),
}
"""The three questions by their names in addresses. A test compares them with the service's."""

_PLACE = {
    name: place for place, name in enumerate((NUMBER, DAY, CARRIER, *ENDS, *DAYS, HOUR, AS_OF))
}
"""In which order an address has its parameters; others stand first."""

_IN_WORDS = {
    "ORIGIN": "only from {}",
    "ORIGIN_CITY_NAME": "only from {}",
    "DEST": "only to {}",
    "DEST_CITY_NAME": "only to {}",
    CARRIER: "only carrier {}",
    AS_OF: "only up to block {}",
}


@dataclass(frozen=True)
class Question:
    """A question at the address of a page.

    name: of the page. values: parameter -> value, or values where several carriers are compared.
    """

    name: str
    values: Mapping[str, Any]

    @classmethod
    def of(
        cls, name: str, answer: Mapping[str, Any], given: Mapping[str, str], *parameters: str
    ) -> "Question":
        """Return the question of a page from an answer to it. given: what it was asked with.

        parameters: of the question; those of one of the KINDS by default.
        """
        query = answer["query"]
        values = {n: query[n] for n in parameters or KINDS[name].parameters if n in query}
        return cls(name, values | as_of_in(given))

    def address(self, **changed: Any) -> str:
        """Return where this question is shown, with other values; None leaves a parameter out."""
        values = {**self.values, **changed}
        values = {name: value for name, value in values.items() if value is not None}
        path = f"/days/{values.pop(DAY)}" if self.name == "days" and DAY in values else self.name
        pairs = sorted(values.items(), key=lambda pair: _PLACE.get(pair[0], -1))
        path = f"/{path.removeprefix('/')}"
        return f"{path}?{urlencode(pairs, doseq=True)}" if pairs else path

    def elsewhere(self, name: str, **changed: Any) -> str:
        """Return `address` at another page."""
        return replace(self, name=name).address(**changed)

    def only(self, name: str, **values: Any) -> "Question":
        """Return another question, at another page, as of the same block."""
        return Question(name, {**values, **as_of_in(self.values)})

    def page(self) -> str:
        """Return the address of a page with the figures of these flights; "" if there is none."""
        flights, places = self.values, self.values.keys() & ENDS.keys()
        name = ""
        if HOUR in flights:
            name = "departures" if places or DAY in flights else ""
        elif NUMBER in flights:
            name = "report" if CARRIER in flights else ""
        elif DAY in flights:
            name = "days"
        elif CARRIER in flights:
            name = "average_delays"
        elif all({end, f"{end}_CITY_NAME"} & places for end in BOTH):
            name = "route"
        elif len(places) == 1 and (end := next(iter(places))) in BOTH:
            part = "#arrivals" if end == "DEST" else ""
            return self.elsewhere(f"airports/{flights[end]}", **{end: None}) + part
        return self.elsewhere(name) if name else ""

    @property
    def turned(self) -> "Question":
        """The question about the other direction."""
        return replace(self, values={ENDS.get(name, name): v for name, v in self.values.items()})

    @property
    def is_provable(self) -> bool:
        kind = KINDS.get(self.name)
        if kind is None or kind.provable[0] not in self.values:
            return False
        return {*kind.provable, AS_OF} >= self.values.keys()

    @property
    def days(self) -> str:
        first = self.values.get("INITIAL_DATE") or self.values[DAY]
        return short_interval(first, self.values.get("FINAL_DATE") or first)

    def covered_days(self, known: Coverage) -> str:
        """Return which days of its interval the ledger covers; "" if all of them or none."""
        asked = [self.values[name] for name in DAYS if name in self.values]
        if len(asked) < len(DAYS):
            return ""
        covered = known.days(*asked)
        return covered if covered != short_interval(*asked) else ""

    def beside(self, fields: Collection[str], known: Coverage) -> list[tuple[str, Any, str]]:
        """Return (parameter, value, in words) of all that is in none of these fields of a form.

        A field for a city has the airport where no city is named; fields for days have all days.
        """
        cities = {city for city in fields if city in ENDS and city not in self.values}
        held = {*fields, *(city.removesuffix("_CITY_NAME") for city in cities)}
        others = [pair for pair in self.values.items() if pair[0] in _IN_WORDS.keys() - held]
        names = {(CARRIER, str(c.number)): c.name for c in known.carriers if c.name}
        return [
            (name, value, _IN_WORDS[name].format(names.get((name, str(value)), value)))
            for name, value in others
        ]

    # --- places ----------------------------------------------------------------------------------

    def airport(self, end: str, known: Coverage) -> Airport | None:
        """Return the airport that is named as an end, "ORIGIN" or "DEST"."""
        return known.airport(self.values.get(end, ""))

    def airports(self, end: str, known: Coverage) -> list[Airport]:
        """Return the airports that an end may be, those with the most flights first."""
        code, city = self.values.get(end), self.values.get(f"{end}_CITY_NAME")
        return [
            airport
            for airport in known.airports
            if code in {None, airport.code} and city in {None, airport.city}
        ]

    def city(self, end: str, known: Coverage) -> str:
        """Return the city of an end; "" if neither it nor an airport that is known is named."""
        airport = self.airport(end, known)
        city: str = self.values.get(f"{end}_CITY_NAME") or (airport.city if airport else "")
        return city

    def end(self, end: str, known: Coverage) -> str:
        """Return the name of an end: "Newark, NJ (EWR)", "Newark, NJ", "EWR", or "" for any."""
        code, city, airport = self.values.get(end), self.city(end, known), self.airport(end, known)
        if code and airport and airport.city != city:
            return f"{city} (only {code}, which is in {airport.city})"
        return f"{city} ({code})" if code and city else code or city

    def route(self, known: Coverage) -> str:
        """Return " from Newark, NJ (EWR) to Chicago, IL", or as much of it as is named."""
        ends = (
            (word, self.end(end, known)) for word, end in zip(("from", "to"), BOTH, strict=True)
        )
        return "".join(f" {word} {name}" for word, name in ends if name)


def as_of_in(given: Mapping[str, str]) -> dict[str, str]:
    """Return the block up to which a visitor wants answers, as a parameter; {} for the newest."""
    return {AS_OF: given[AS_OF]} if AS_OF in given else {}


def ends_in(given: Mapping[str, str]) -> dict[str, str]:
    """Return the parameters that name the ends of a route. Raises Refused if one is not named."""
    for end in BOTH:
        if not {end, f"{end}_CITY_NAME"} & given.keys():
            raise Refused.missing(f"{end}_CITY_NAME")
    return {name: given[name] for name in ENDS if name in given}


def require_known(given: Mapping[str, str], *names: str) -> None:
    """Raise Refused for a parameter that a page with these does not take."""
    for name in given:
        if name not in {*names, *OPTIONS}:
            *others, last = *names, *OPTIONS
            reason = f"unknown parameter {name}; this page takes {', '.join(others)} and {last}"
            if name == "format":
                reason += "; add .json or .csv to its address for other formats"
            raise Refused({"field": name, "detail": reason}, 400)
