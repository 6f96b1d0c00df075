"""The names of a ledger's carriers, airports and cities, as sequences of words. Pure.

A carrier is named by its code, its name, both as on pages, an earlier name in brackets, and each
name without "Airlines" and the like. A city is named with and without its state, also by the
state's name unless that names a city, too, as "Washington" does, and by each part of a name such as
"Dallas/Fort Worth", even where another city is called "Dallas". An airport is named by its code.
Travellers' names are in `vocabulary.NICKNAMES`.
"""

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from frontend.coverage import Carrier, Coverage
from frontend.search.vocabulary import GENERIC, NICKNAMES

Words = tuple[str, ...]

_WORDS = re.compile(r"[^\W_]+(?:'[^\W_]+)?")


@dataclass(frozen=True, slots=True)
class Place:
    """An end of a route. airport: its code; "" for a whole city. flights: that leave or arrive."""

    city: str
    airport: str = ""
    flights: int = 0

    @property
    def label(self) -> str:
        """A name such as "Chicago, IL" or "Chicago, IL (ORD)"."""
        return f"{self.city} ({self.airport})" if self.airport else self.city

    def as_end(self, end: str) -> dict[str, str]:
        """Return the parameter of the service for it as an end, "ORIGIN" or "DEST"."""
        return {end: self.airport} if self.airport else {f"{end}_CITY_NAME": self.city}


Thing = Carrier | Place


def bare(text: str) -> str:
    """Return `text` without accents, and with one kind of apostrophe and single spaces."""
    decomposed = unicodedata.normalize("NFKD", text.replace("\u2019", "'"))
    return " ".join("".join(c for c in decomposed if not unicodedata.combining(c)).split())


def words_of(text: str) -> Words:
    """Return the words of a name, without case, accents and the "'s" of "Martha's Vineyard"."""
    return tuple(word.removesuffix("'s") for word in _WORDS.findall(bare(text).lower()))


class Names:
    """The names in a ledger.

    longest: the most words that a name has. states: the name of each city's state.

    What has a name as a whole comes before what has it as a part: "Delta" is no "Montrose/Delta".
    But "Jackson" may be "Jackson, WY" or "Jackson/Vicksburg, MS": both are cities, and the name
    says no state.
    """

    def __init__(self, known: Coverage) -> None:
        self._things: dict[Words, dict[Thing, None]] = {}
        self.codes = frozenset(
            {carrier.code.lower() for carrier in known.carriers if carrier.code}
            | {airport.code.lower() for airport in known.airports}
        )
        cities = [Place(city, flights=flights) for city, flights in known.cities.items()]
        whole: list[tuple[Thing, Iterable[Words]]] = [
            *((carrier, _names_of_carrier(carrier)) for carrier in known.carriers),
            *((c, [words_of(c.city), words_of(c.city.partition(",")[0])]) for c in cities),
            *((Place(a.city, a.code, a.flights), [(a.code.lower(),)]) for a in known.airports),
        ]
        self._add(whole)
        self.states = {a.city: words_of(a.state) for a in known.airports}
        own = {city: state for city, state in self.states.items() if not self.named(state)}
        parts = ((city, _parts_of_city(city.city, own.get(city.city, ()))) for city in cities)
        self._add(parts, are_parts=True)
        self._add(
            (thing, [words_of(nickname)])
            for nickname, name in NICKNAMES.items()
            for thing in self.named(words_of(name))
        )
        self.all: Collection[Words] = self._things
        self.longest = max(map(len, self._things), default=0)

    def _add(
        self, things: Iterable[tuple[Thing, Iterable[Words]]], *, are_parts: bool = False
    ) -> None:
        """Add names of things, but those that name something already.

        are_parts: whether they are of cities, and may name other cities as well.
        """
        added: dict[Words, dict[Thing, None]] = {}
        for thing, names in things:
            for name in names:
                if name and (name not in self._things or (are_parts and self._lacks_state(name))):
                    added.setdefault(name, {})[thing] = None
        for name, named in added.items():
            self._things[name] = self._things.get(name, {}) | named

    def _lacks_state(self, name: Words) -> bool:
        """Return whether all that has the name so far are cities of which it says no state."""
        return all(
            isinstance(thing, Place) and not thing.airport and words_of(thing.city) != name
            for thing in self._things[name]
        )

    def named(self, name: Words) -> tuple[Thing, ...]:
        """Return what has that name, in the order of the coverage."""
        return tuple(self._things.get(name, ()))

    def beginning(self, text: str) -> list[Thing]:
        """Return what has a name that begins with `text`, the most flights first."""
        wanted = " ".join(words_of(text))
        if not wanted:
            return []
        matches = {
            thing: None
            for name, things in self._things.items()
            if " ".join(name).startswith(wanted)
            for thing in things
        }
        return sorted(matches, key=lambda thing: -thing.flights)


@lru_cache(maxsize=1)
def names_in(known: Coverage) -> Names:
    """Return the names in the ledger that `known` covers; they are kept for the next text."""
    return Names(known)


def _names_of_carrier(carrier: Carrier) -> Iterator[Words]:
    if carrier.code:
        yield (carrier.code.lower(),)
    yield ("carrier", str(carrier.number))
    yield words_of(carrier.label)
    for name in re.split(r"[()]", carrier.name or ""):
        words = words_of(name)
        yield words
        while words and words[-1] in GENERIC:
            words = words[:-1]
            yield words


def _parts_of_city(city: str, state_name: Words) -> Iterator[Words]:
    name, _, state = city.partition(",")
    for part in name.split("/"):
        yield words_of(part)
        yield words_of(f"{part} {state}")
        yield (*words_of(part), *state_name)
