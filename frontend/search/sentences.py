"""Takes the words from a text that name something: carriers, places, days, a flight number. Pure.

`readings` goes through the words from left to right and takes the longest name at each place.
Filler words are left out. A word that is neither is `unknown`, and a text with unknown words must
not be answered as if they were not there. A text may have several readings: "united 2013" is a
carrier in a year, or a flight.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date
from itertools import islice, product
from typing import NamedTuple

from frontend.coverage import Carrier, Coverage
from frontend.search.names import Names, Place, Words, bare, names_in
from frontend.search.times import Days, interval, time_at
from frontend.search.vocabulary import (
    AND,
    BETWEEN,
    COMMON,
    FILLER,
    FROM,
    JOINING,
    NUMBER_FOLLOWS,
    PHRASES,
    TO,
    WANTED,
    YEAR_FOLLOWS,
)

MAX_CHARACTERS = 200
MOST_READINGS = 8

Carriers = tuple[Carrier, ...]
Places = tuple[Place, ...]


class CarrierNamed(NamedTuple):
    """A name of one or more carriers."""

    carriers: Carriers


class PlaceNamed(NamedTuple):
    """A name of one or more airports and cities."""

    places: Places


class Number(NamedTuple):
    """A flight number."""

    value: int


class Joining(NamedTuple):
    """A word that says how its neighbours belong together: FROM, TO, AND or BETWEEN."""

    word: str


class Wanted(NamedTuple):
    """A word that says what is asked for: a value of `vocabulary.WANTED`."""

    word: str


class Unknown(NamedTuple):
    """A word that names nothing. start, end: its place in the text without accents."""

    word: str
    start: int
    end: int


Part = CarrierNamed | PlaceNamed | Days | Number | Joining | Wanted | Unknown


@dataclass(frozen=True, slots=True)
class Reading:
    """What a text names. Each carrier, and each end of a route, has one or more alternatives.

    at: a place that is no end of a route.
    """

    carriers: tuple[Carriers, ...] = ()
    origin: Places = ()
    destination: Places = ()
    at: Places = ()
    days: Days | None = None
    number: int | None = None
    wanted: frozenset[str] = frozenset()
    unknown: tuple[Unknown, ...] = ()

    @property
    def says_nothing(self) -> bool:
        """Whether it names nothing and asks for nothing."""
        return replace(self, unknown=()) == Reading()


def readings(text: str, known: Coverage) -> list[Reading]:
    """What `text` may say about the ledger that `known` covers, the most likely reading first."""
    if len(text) > MAX_CHARACTERS or known.last_date is None:
        return []
    newest = date.fromisoformat(known.last_date)
    parts = list(_Scanner(bare(text), names_in(known), newest).parts())
    all_readings = map(_reading, islice(product(*parts), MOST_READINGS))
    return list(
        dict.fromkeys(
            reading for reading in all_readings if not reading.says_nothing or reading.unknown
        )
    )


# --- from a text to parts ----------------------------------------------------------------------

_TOKEN = re.compile(
    r"->|→| [–—-] |#?\d+(?:[-/.]\d+)+|#?[^\W_]+(?:'[^\W_]+)?|[^\s\w,.;:?!()\"“”'/-]"
)
_CODE_AND_NUMBER = re.compile(r"([a-z][a-z0-9]|[0-9][a-z])(\d{1,5})", re.ASCII | re.IGNORECASE)
_FLIGHT_NUMBER = re.compile(r"0*[1-9]\d{0,4}", re.ASCII)
_FOUR_DIGITS = re.compile(r"\d{4}", re.ASCII)


class _Token(NamedTuple):
    text: str
    start: int
    end: int

    @property
    def word(self) -> str:
        return self.text.lower()


class _Scanner:
    def __init__(self, text: str, names: Names, newest: date) -> None:
        self._text = text
        self._names = names
        self._newest = newest
        self._tokens = list(self._split())
        self._is_shouted = text == text.upper()
        words = [t.word for t in self._tokens if JOINING.get(t.word) not in {FROM, TO}]
        self._is_all_codes = all(word in names.codes for word in words)

    def _split(self) -> Iterator[_Token]:
        """Yield the words of the text; a carrier's code is parted from the number behind it."""
        for match in _TOKEN.finditer(self._text):
            token = match[0].strip().removesuffix("'s")
            start = match.start() + match[0].index(token)
            with_code = _CODE_AND_NUMBER.fullmatch(token)
            if with_code and with_code[1].lower() in self._names.codes:
                middle = start + len(with_code[1])
                yield _Token(with_code[1], start, middle)
                start, token = middle, with_code[2]
            yield _Token(token, start, start + len(token))

    def parts(self) -> Iterator[list[Part]]:
        """For each name or word, what it may be."""
        at = 0
        while at < len(self._tokens):
            parts, after = self._longest(at)
            if at and self._text[self._tokens[at - 1].end : self._tokens[at].start] == "-":
                yield [Joining(TO)]
            if parts:
                yield parts
            at = after

    def _longest(self, at: int) -> tuple[list[Part], int]:
        """Return what begins with the token at `at`, and the place behind it."""
        named, after_name = self._name_at(at)
        days, after_days = self._days_at(at)
        token = self._tokens[at]
        for words, wanted in PHRASES.items():
            if words == self._words(at, len(words)):
                return ([Wanted(wanted)] if wanted else []), at + len(words)
        if days and after_days >= after_name:
            if _FOUR_DIGITS.fullmatch(token.text) and after_days == at + 1:
                return self._year_or_number(days, at), after_days
            also = named if after_days == after_name else []
            return [*also, days], after_days
        if named:
            return named, after_name
        return self._word(token), at + 1

    def _name_at(self, at: int) -> tuple[list[Part], int]:
        """The longest name that begins at `at`: carriers and places are different meanings."""
        for length in range(self._names.longest, 0, -1):
            words = self._words(at, length)
            things = self._names.named(words) if words else ()
            if things and (length > 1 or self._is_name(at)):
                carriers = tuple(thing for thing in things if isinstance(thing, Carrier))
                places = tuple(thing for thing in things if isinstance(thing, Place))
                if carriers:  # "Delta" is no short name of "Montrose/Delta, CO"
                    places = tuple(place for place in places if place.is_named(words))
                named: list[Part] = [CarrierNamed(carriers)] if carriers else []
                return named + ([PlaceNamed(places)] if places else []), at + length
        return [], at

    def _words(self, at: int, length: int) -> Words:
        tokens = self._tokens[at : at + length]
        return tuple(token.word for token in tokens) if len(tokens) == length else ()

    def _is_name(self, at: int) -> bool:
        """Return whether a single word is meant as a name although it may be a common word."""
        token = self._tokens[at]
        if token.word not in COMMON or self._is_all_codes:
            return True
        if token.text.isupper() and not self._is_shouted:
            return True
        return at + 1 < len(self._tokens) and bool(
            _FLIGHT_NUMBER.fullmatch(self._tokens[at + 1].text)
            and self._tokens[at + 1].start - token.end <= 1
            and token.word not in FILLER
            and token.word not in JOINING
            and token.word not in WANTED
        )

    def _days_at(self, at: int) -> tuple[Days | None, int]:
        days, end = time_at(self._text, self._tokens[at].start, self._newest) or (None, 0)
        after = at
        while after < len(self._tokens) and self._tokens[after].start < end:
            after += 1
        return days, after

    def _year_or_number(self, year: Days, at: int) -> list[Part]:
        before = self._tokens[at - 1].word if at else ""
        number = self._flight_number(self._tokens[at])
        if before in YEAR_FOLLOWS or not number:
            return [year]
        if before in NUMBER_FOLLOWS or (
            abs(year.first.year - self._newest.year) > _YEARS_OF_A_LEDGER
        ):
            return [number]
        return [year, number]

    def _flight_number(self, token: _Token) -> Number | None:
        return Number(int(token.text)) if _FLIGHT_NUMBER.fullmatch(token.text) else None

    def _word(self, token: _Token) -> list[Part]:
        """Return what a word is that begins no name; [] if it is filler."""
        if number := self._flight_number(token):
            return [number]
        if token.word in JOINING:
            return [Joining(JOINING[token.word])]
        if token.word in WANTED:
            return [Wanted(WANTED[token.word])]
        if token.word in FILLER:
            return []
        return [Unknown(token.text, token.start, token.end)]


_YEARS_OF_A_LEDGER = 40

# --- from parts to a reading ---------------------------------------------------------------------


def _reading(parts: tuple[Part, ...]) -> Reading:
    places: list[tuple[Places, str]] = []
    days: list[tuple[Days, str]] = []
    numbers: list[int] = []
    carriers: list[Carriers] = []
    wanted: set[str] = set()
    unknown: list[Unknown] = []
    joining = ""
    for part in parts:
        match part:
            case Joining(word):
                joining = word
                continue
            case Days():
                days.append((part, joining))
            case Number(value):
                numbers.append(value)
            case Wanted(word):
                wanted.add(word)
            case Unknown():
                unknown.append(part)
            case CarrierNamed(same_name):
                carriers.append(same_name)
            case PlaceNamed(alternatives):
                _add_place(places, alternatives, joining)
        joining = ""
    named_days = _one_interval(days)
    if len(numbers) > 1 or len(places) > 2 or (days and named_days is None):
        unknown.append(Unknown("", 0, 0))
    return Reading(
        carriers=tuple(dict.fromkeys(carriers)),
        **_ends(places),
        days=named_days,
        number=numbers[0] if numbers else None,
        wanted=frozenset(wanted),
        unknown=tuple(unknown),
    )


def _one_interval(days: list[tuple[Days, str]]) -> Days | None:
    """Return the interval that is named by its ends, or at once; None if there is no such interval.

    days: each with the word in front of it.
    """
    match days:
        case [(only, _)]:
            return only
        case [(first, before), (last, middle)] if middle == TO or (before, middle) == (
            BETWEEN,
            AND,
        ):
            return interval(first, last)
    return None


def _add_place(places: list[tuple[Places, str]], new: Places, joining: str) -> None:
    """Add a place, or narrow the last one: "New York (JFK)". joining: the word in front of it."""
    if places and not joining:
        before, word = places[-1]
        if same := _in_both(before, new):
            places[-1] = (same, word)
            return
    places.append((new, joining))


def _ends(places: list[tuple[Places, str]]) -> dict[str, Places]:
    """The members of a reading for one or two places: the ends of a route, or a single place."""
    match places:
        case [(only, word)]:
            return {{FROM: "origin", TO: "destination"}.get(word, "at"): only}
        case [(left, first), (right, word)] if word == AND and first != BETWEEN:
            return {"at": (*left, *right)}
        case [(left, first), (right, second)]:
            is_swapped = (second == FROM and first != FROM) or (first == TO and second != TO)
            origin, destination = (right, left) if is_swapped else (left, right)
            return {"origin": origin, "destination": destination}
    return {}


def _in_both(some: Places, others: Places) -> Places:
    """The airports where one name is of a city and the other of its airport: "New York (JFK)"."""
    cities = {place.city for place in (*some, *others) if not place.airport}
    airports = tuple(place for place in (*some, *others) if place.airport and place.city in cities)
    is_mixed = {bool(place.airport) for place in some} != {bool(place.airport) for place in others}
    return airports if is_mixed else ()
