"""What a text names: its words, what each of them is, and a reading of all. Pure."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from frontend.coverage import Carrier
from frontend.search.names import Place
from frontend.search.times import Days

Carriers = tuple[Carrier, ...]
Places = tuple[Place, ...]


class Token(NamedTuple):
    """A word of a text. start, end: its place in the text without accents."""

    text: str
    start: int
    end: int

    @property
    def word(self) -> str:
        return self.text.lower()


class Part(NamedTuple):
    """Says what a word or a name is. kind: of its value, below."""

    kind: str
    value: Any


CARRIERS, PLACES, DAYS, NUMBER, HOUR = "carriers", "places", "days", "number", "hour"
JOIN = "join"  # says how its neighbours belong together: a value of JOINING
ASKED = "asked"  # says what is asked for: a value of WANTED
WHEN = "when"  # on a weekday, or at a time of day
AMOUNT = "amount"  # of hours or flights, or some of many flights, of which no page tells
STATE = "state"  # of the place in front of it
UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Reading:
    """Says what a text names. The carrier, and each end of a route, has one or more alternatives.

    at: a place that is no end of a route. compared: what they are, and each of them: carriers, ends
    of a route, routes, flights or days. when: texts such as "Mondays" and "evening". amounts: such
    as "5 hours" and "first flight".
    """

    carriers: Carriers = ()
    origin: Places = ()
    destination: Places = ()
    at: Places = ()
    days: Days | None = None
    number: int | None = None
    hour: int | None = None
    compared: tuple[Any, ...] = ()
    wanted: frozenset[str] = frozenset()
    when: tuple[str, ...] = ()
    amounts: tuple[str, ...] = ()
    unknown: tuple[Token, ...] = ()

    @property
    def says_nothing(self) -> bool:
        """Whether it names nothing and asks for nothing."""
        return replace(self, unknown=(), amounts=()) == Reading()

    @property
    def of_arrivals(self) -> "Reading":
        """It with a place, or airports that are compared, as those of arrival."""
        if self.at:
            wanted = self.wanted - {"destination"}
            return replace(self, at=(), destination=self.at, wanted=wanted)
        if self.compared[:1] == ("origin",) and not self.destination:
            return replace(self, compared=("destination", *self.compared[1:]))
        return self

    @property
    def all_days(self) -> list[Days]:
        """The days that it names, also those that are compared."""
        return [item for item in (self.days, *self.compared) if isinstance(item, Days)]
