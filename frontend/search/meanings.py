"""What a text in the search field may mean. Pure: whether it exists is asked elsewhere.

`meanings` compares the text with a table of patterns; every row that fits adds a meaning, so that
"335" may be a transaction, a block and a flight number.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import date

MAX_CHARACTERS = 200
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


@dataclass(frozen=True, slots=True)
class Transaction:
    """A transaction by its id."""

    id: int


@dataclass(frozen=True, slots=True)
class Block:
    """A block by its height."""

    height: int


@dataclass(frozen=True, slots=True)
class BlockHash:
    """A block by its hash or the beginning of it: 8 to 64 hex digits in small letters."""

    digits: str


@dataclass(frozen=True, slots=True)
class Day:
    """A day, YYYY-MM-DD."""

    iso: str


@dataclass(frozen=True, slots=True)
class Flight:
    """A flight number. code: the carrier's, in capitals; "" for any. day: "" for any."""

    number: int
    code: str = ""
    day: str = ""


@dataclass(frozen=True, slots=True)
class Airports:
    """A route from one airport to another, by their codes in capitals. day: "" for any."""

    origin: str
    destination: str
    day: str = ""


@dataclass(frozen=True, slots=True)
class Route:
    """A route from one place to another, each a city or a code as typed. day: "" for any."""

    origin: str
    destination: str
    day: str = ""


Meaning = Transaction | Block | BlockHash | Day | Flight | Airports | Route


def meanings(text: str) -> list[Meaning]:
    """Everything that `text` may mean, in the order of the table; [] if it fits nowhere."""
    text = " ".join(text.split())
    if len(text) > MAX_CHARACTERS:
        return []
    found = list(_undated(text))
    for match in _ENDS_WITH_DAY.finditer(text):
        if day := day_in(match["day"]):
            found += [
                replace(meaning, day=day)
                for meaning in _undated(match["what"])
                if isinstance(meaning, Flight | Airports | Route)
            ]
    return list(dict.fromkeys(found))


def day_in(text: str) -> str:
    """`text` as YYYY-MM-DD; "" if it is no day of the calendar."""
    for pattern, order in _DAYS:
        if match := pattern.fullmatch(text):
            parts = dict(zip(order, match.groups(), strict=True))
            try:
                return date(int(parts["y"]), _month(parts["m"]), int(parts["d"])).isoformat()
            except ValueError:
                return ""
    return ""


def _month(text: str) -> int:
    """The month for a number or three letters of a name. Raises ValueError for others."""
    return int(text) if text.isdigit() else MONTHS.index(text[:3].lower()) + 1


def _undated(text: str) -> Iterator[Meaning]:
    for pattern, meaning in _PATTERNS:
        if match := pattern.fullmatch(text):
            yield from meaning(match)


# --- the tables --------------------------------------------------------------------------------


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text, re.ASCII | re.IGNORECASE)


_WEEKDAY = r"(?:[a-z]{3,6}(?:day)?,? )?"
_DAYS = (  # (pattern of a day, which part is year, month and day)
    (_pattern(r"(\d{4})-(\d{1,2})-(\d{1,2})"), "ymd"),
    (_pattern(r"(\d{1,2})/(\d{1,2})/(\d{4})"), "mdy"),  # as in the files of the BTS
    (_pattern(r"(\d{1,2})\.(\d{1,2})\.(\d{4})"), "dmy"),
    (_pattern(_WEEKDAY + r"(\d{1,2})\.? ([a-z]{3,9})\.?,? (\d{4})"), "dmy"),
    (_pattern(_WEEKDAY + r"([a-z]{3,9})\.? (\d{1,2}),? (\d{4})"), "mdy"),
)
_ENDS_WITH_DAY = _pattern(
    r"^(?P<what>.+?)(?:,| on)? "
    r"(?P<day>[\d/.-]+|\d{1,2}\.? [a-z.]+,? \d{4}|[a-z.]+ \d{1,2},? \d{4})$"
)


def _day(match: re.Match[str]) -> list[Meaning]:
    day = day_in(match[0])
    return [Day(day)] if day else []


_CODE = r"[a-z0-9]{3,4}"
_PATTERNS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], list[Meaning]]], ...] = (
    (
        _pattern(r"(?:transaction |id )?#?(\d{1,15})"),
        lambda match: [Transaction(int(match[1]))],
    ),
    (
        _pattern(r"(?:block |height )?#?(\d{1,15})"),
        lambda match: [Block(int(match[1]))],
    ),
    (
        _pattern(r"(?:block |hash )?([0-9a-f]{8,64})(?:…|\.{2,3})?"),  # as pages shorten it
        lambda match: [BlockHash(match[1].lower())],
    ),
    (
        _pattern(r"(?:flight |flight number )?(\d{1,5})"),
        lambda match: [Flight(int(match[1]))],
    ),
    (
        _pattern(r"(?:flight )?([a-z][a-z0-9]|[0-9][a-z]) ?-?(\d{1,5})"),
        lambda match: [Flight(int(match[2]), match[1].upper())],
    ),
    (
        _pattern(r".*\d{4}.*"),
        _day,
    ),
    (
        _pattern(rf"(?:from )?({_CODE})(?:-| )({_CODE})"),
        lambda match: [Airports(match[1].upper(), match[2].upper())],
    ),
    (
        _pattern(r"(?:from )?(.+?) ?(?: to | - |->|→|–|—) ?(.+)"),
        lambda match: [Route(match[1], match[2])],
    ),
)
