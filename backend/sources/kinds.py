"""Tells the kind of a file by its columns, and what they mean, by the table in `kinds.toml`.

A kind is told by its columns, whatever their case and with or without underscores. What a kind does
not have is derived as `DERIVED` says, or stays empty if it may. Never guessed are the flight
number, whether a flight was cancelled, its times and delays, and the operating carrier from the
marketing carrier. The reader, the command line's help, documents and tests use this table.
"""

import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import chain
from pathlib import Path

from backend.base.errors import shown
from backend.base.lru import remembered
from backend.chain.fields import FIELD_NAMES

MONTH, DAY, CARRIER = "MONTH", "DAY", "CARRIER"  # what is not stored, but derived from
DIVERTED = "DIVERTED"  # which tells what zeros mean
ORIGIN_STATE, DEST_STATE = "ORIGIN_STATE", "DEST_STATE"
NO_TEXT = "is neither text nor in a supported format; save it as CSV (UTF-8)"
_LEAST_TITLES = 6  # of flights, by which they are known
MOST_CHARACTERS = 60  # of a title that are shown
MOST_NOT_USED = 1000  # titles that are kept for people; objects may have any number of names
BTS_TABLE = "Reporting Carrier On-Time Performance"
MAY_BE_EMPTY = ("ORIGIN_AIRPORT_ID", "DEST_AIRPORT_ID", "AIR_TIME")
DERIVED: Mapping[str, Sequence[tuple[str, ...]]] = {
    "FL_DATE": [("YEAR", MONTH, DAY)],
    "YEAR": [("FL_DATE",)],
    "DAY_OF_WEEK": [("FL_DATE",)],
    "OP_CARRIER_AIRLINE_ID": [(CARRIER, "FL_DATE")],
    "ORIGIN": [("ORIGIN_AIRPORT_ID",)],
    "ORIGIN_CITY_NAME": [("ORIGIN",)],
    "ORIGIN_STATE_NM": [(ORIGIN_STATE,), ("ORIGIN",)],
    "DEST": [("DEST_AIRPORT_ID",)],
    "DEST_CITY_NAME": [("DEST",)],
    "DEST_STATE_NM": [(DEST_STATE,), ("DEST",)],
}
"""From what a field is derived that a file does not have: the first of these that is there."""
_ROOTS = {"FL_DATE", "ORIGIN", "DEST"}  # from which alone others follow
_HOW = {
    CARRIER: " (table of carriers)",
    **dict.fromkeys(("ORIGIN", "ORIGIN_AIRPORT_ID"), " (table of airports)"),
    **dict.fromkeys(("DEST", "DEST_AIRPORT_ID"), " (table of airports)"),
    "DEP_TIME": " (without it a flight was cancelled; if it was cancelled after it left the gate, "
    "it counts as not arrived)",
}
"""How a field is derived, by the first of its sources."""


@dataclass(frozen=True)
class Kind:
    """A kind of file.

    The attributes are explained at the top of `kinds.toml`.
    """

    name: str
    source: str
    columns: str
    marks: str
    is_cancelled_without_departure: bool = False
    is_of_ledger: bool = False
    is_from_bts: bool = False

    @cached_property
    def pairs(self) -> list[tuple[str, str]]:
        """Meanings and titles, the preferred title of a meaning first."""
        pairs = (word.partition("=") for word in words(self.columns))
        return [(meaning, title or meaning) for meaning, _, title in pairs]

    @cached_property
    def meanings(self) -> dict[str, str]:
        """Titles in plain form -> meanings."""
        return {plain(title): meaning for meaning, title in self.pairs}

    @cached_property
    def plain_marks(self) -> frozenset[str]:
        """The titles, in plain form, that tell this kind from others."""
        return frozenset(map(plain, words(self.marks)))


@remembered(128)
def has_meaning(title: str) -> bool:
    """Return whether a title is one that a kind of file uses."""
    return plain(title) in _KNOWN


def are_of_flights(titles: Iterable[str]) -> bool:
    """Return whether so many titles are ones that files use that they must be of flights."""
    return sum(map(has_meaning, titles)) >= _LEAST_TITLES


def words(text: str) -> list[str]:
    """Return the words of a text, and for "@NAME" those of the group of this name."""
    groups = _TABLE["groups"]
    meant = (words(groups[word[1:]]) if word[0] == "@" else [word] for word in text.split())
    return list(chain.from_iterable(meant))


def plain(title: str) -> str:
    """Return the letters and digits of a title, in small ones, behind what turns its meaning."""
    letters = re.sub(r"(?!^[-~!%])[\W_]", "", title.strip().lower())
    return letters.replace("canceled", "cancelled")


def unqualified(titles: Sequence[str]) -> Sequence[str]:
    """Return titles without the table's name if most have it: flights.origin, Flights[origin]."""
    tables = Counter(title[: max(map(title.rfind, ".[")) + 1] for title in titles)  # Hive, DAX
    table = next((table for table, count in tables.items() if 2 * count > len(titles)), "")
    return [title.removeprefix(table) for title in titles]


_TABLE = tomllib.loads(Path(__file__).with_name("kinds.toml").read_text(encoding="utf-8"))
KINDS = tuple(Kind(**row) for row in _TABLE["kind"])
REFUSED: Mapping[str, str] = {row["marks"]: row["reason"] for row in _TABLE["refused"]}
"""Titles of files that are no flights, or not enough, and what to say of them."""

_ONLY_OF_ITS_KIND = {"airline", "flight", "date"}  # a name, a code with a number, any day elsewhere
_KNOWN = {
    title: meaning
    for kind in KINDS
    for title, meaning in kind.meanings.items()
    if title not in _ONLY_OF_ITS_KIND
}
_SCHEDULED = {
    "CRS_DEP_TIME": {"crsdeptime", "scheddeptime", "scheduleddeparture"},
    "CRS_ARR_TIME": {"crsarrtime", "schedarrtime", "scheduledarrival"},
}
_OPERATING = frozenset({"OP_CARRIER_AIRLINE_ID", "OP_CARRIER_FL_NUM"})
_is_marketing = re.compile("mkt(carrier|unique)|.*marketing").match
_is_operating = re.compile("op|.*(operat|report)ing").match  # as opposed to carriers that sell
_BOXES, _OPERATING_BOXES = (
    next(dict(kind.pairs) for kind in KINDS if kind.name.endswith(end))
    for end in ("since 2018", "marketing carriers")
)


@dataclass(frozen=True)
class Reading:
    """What the columns of a file mean.

    kind: its kind. places: meaning -> the position of its column. titles: as in the file, but so
    that they can be shown. others: meaning -> the positions of further columns that mean the same,
    and of the scheduled times; they are compared and not used.
    """

    kind: Kind
    places: Mapping[str, int]
    titles: Sequence[str]
    others: Mapping[str, Sequence[int]]

    def without_weekdays(self, counted: str) -> "Reading":
        """Return what the other columns mean. counted: how weekdays are, for people."""
        places, titles = dict(self.places), list(self.titles)
        titles[places.pop("DAY_OF_WEEK")] += f" (counted from {counted})"
        return replace(self, places=places, titles=titles)

    @cached_property
    def is_of_fields(self) -> bool:
        """Whether its columns are the 19 of a flight, as they are posted; the ledger judges it."""
        return sorted(self.titles) == sorted(FIELD_NAMES)

    @cached_property
    def sources(self) -> Mapping[str, tuple[str, ...]]:
        """From which meanings each field is derived; from none if it is there, or cannot be."""
        sources: dict[str, tuple[str, ...]] = dict.fromkeys(FIELD_NAMES, ())
        if self.kind.is_cancelled_without_departure:
            sources["CANCELLED"] = ("DEP_TIME",)
        for field, choices in DERIVED.items():
            sources[field] = next((s for s in choices if all(map(self._has, s))), ())
        return sources | dict.fromkeys(self.columns, ())

    @cached_property
    def columns(self) -> Mapping[str, str]:
        """Field -> title of its column."""
        return {n: self.titles[self.places[n]] for n in FIELD_NAMES if n in self.places}

    @cached_property
    def left_empty(self) -> Sequence[str]:
        """The fields that the file neither has nor lets derive."""
        return [n for n in FIELD_NAMES if n not in self.places and not self.sources[n]]

    @cached_property
    def not_used(self) -> Sequence[str]:
        """The titles of columns that mean nothing, those first that resemble a missing field."""
        used = self.places.values()
        titles = [title for place, title in enumerate(self.titles) if title and place not in used]
        titles.sort(key=lambda title: not self.resembles(title, FIELD_NAMES))
        return titles[:MOST_NOT_USED]

    def resembles(self, title: str, fields: Sequence[str]) -> bool:
        """Return whether a title is that of one of some fields and a unit: AIR_TIME (min)."""
        name, bracket, _ = title.replace("[", "(").partition("(")
        meaning = _KNOWN.get(plain(name), "")
        return bool(bracket) and meaning in fields and meaning not in self.places

    @cached_property
    def derivations(self) -> Mapping[str, str]:
        """From what fields are derived, and their names, for people."""
        fields: dict[str, list[str]] = {}
        for field, source in self.sources.items():
            if source:
                titles = (self.titles[p[m]] if m in (p := self.places) else m for m in source)
                what = " and ".join(titles) + _HOW.get(source[0], "")
                fields.setdefault(what, []).append(field)
        return {what: ", ".join(names) for what, names in fields.items()}

    def _has(self, meaning: str) -> bool:
        sources = DERIVED.get(meaning, ())
        return meaning in self.places or any(self.places.keys() >= set(s) for s in sources)

    def missing(self) -> list[str]:
        """Return the fields that the file neither has nor lets derive, but must have.

        Of what a field is derived from, only YEAR may be named instead.
        """
        fields = [
            field
            for field in FIELD_NAMES
            if not (field in self.places or field in MAY_BE_EMPTY or self.sources[field])
            and not any(len(s) == 1 and s[0] in _ROOTS for s in DERIVED.get(field, ()))
            and not (field == "OP_CARRIER_AIRLINE_ID" and CARRIER in self.places)  # lacks the day
        ]
        has_days = self.places.keys() >= {MONTH, DAY}
        return ["YEAR" if has_days and field == "FL_DATE" else field for field in fields]


class UnknownKindError(ValueError):
    """A file cannot be understood; the message says what is missing and what to do.

    day: that may be two days; None if no single one is in doubt. is_of_flights: whether the file
    has columns of where they went.
    """

    def __init__(self, reason: str, day: object = None, *, is_of_flights: bool = False) -> None:
        super().__init__(reason)
        self.day = day
        self.is_of_flights = is_of_flights


@lru_cache(maxsize=8)  # small batches come with the same titles again and again
def reading_of(titles: tuple[str, ...]) -> Reading:
    """Return what the columns of a file mean. Raises UnknownKindError if they are not enough."""
    names = list(map(plain, unqualified(titles)))
    there = set(names)
    for marks, reason in REFUSED.items():
        if there.issuperset(map(plain, marks.split())):
            raise UnknownKindError(f"{reason}; download {BTS_TABLE} from TranStats")
    kind = next(kind for kind in KINDS if kind.plain_marks <= there)
    columns = _columns(kind, names)
    places = {meaning: at[0] for meaning, at in columns.items()}
    others = {meaning: at[1:] for meaning, at in columns.items() if at[1:]}
    for meaning, known in _SCHEDULED.items():
        others[meaning] = [names.index(name) for name in known & there][:1]
    reading = Reading(kind, places, [readable(title) for title in titles], others)
    if missing := reading.missing():
        is_of_flights = reading.places.keys() >= {"ORIGIN", "DEST"}
        raise UnknownKindError(_reason(reading, missing, there), is_of_flights=is_of_flights)
    return reading


def columns_of(titles: tuple[str, ...], nullable: Sequence[str]) -> Mapping[str, str]:
    """Return meaning -> title of a table, and of what tables of its kind have that may be empty.

    nullable: the fields that may be. Nothing is returned if it is of no kind even with these.
    """
    names = set(map(plain, titles))
    for kind in KINDS:
        never = {"DEP_TIME"} if kind.is_cancelled_without_departure else set[str]()
        empty = {plain(t): t for meaning, t in kind.pairs if meaning in set(nullable) - never}
        if kind.plain_marks - empty.keys() <= names:
            break
    there = {kind.meanings.get(name, _KNOWN.get(name)) for name in names}
    absent = [title for name, title in empty.items() if kind.meanings[name] not in there]
    titles = (*titles, *absent)
    try:
        return {meaning: titles[place] for meaning, place in reading_of(titles).places.items()}
    except UnknownKindError:
        return {}


def readable(title: str) -> str:
    """Return a title without what a terminal or JSON would not take, and not too long."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in title[:MOST_CHARACTERS])


def _columns(kind: Kind, names: Sequence[str]) -> dict[str, list[int]]:
    """Return the positions of the columns of each meaning, the preferred one first."""
    is_doubtful = any(map(_is_marketing, names))
    columns: dict[str, list[int]] = {}
    for title, meaning in (*kind.meanings.items(), *_KNOWN.items()):
        if title not in names or meaning != kind.meanings.get(title, meaning):
            continue
        if is_doubtful and meaning in {CARRIER, *_OPERATING} and not _is_operating(title):
            continue
        places = columns.setdefault(meaning, [])
        places += {names.index(title)} - set(places)
        if names.count(title) > 1 or (meaning in FIELD_NAMES and len(places) > 1):
            raise UnknownKindError(f"has more than one column for {meaning}; remove all but one")
    cities = [city for city in ("ORIGIN_CITY_NAME", "DEST_CITY_NAME") if city in columns]
    if len(cities) == 1 and any("city" in name and name not in _KNOWN for name in names):
        del columns[cities[0]]  # or the names of its end would not be those of the other end
    return columns


def _reason(reading: Reading, missing: Sequence[str], there: set[str]) -> str:
    numbers = sum(map(str.isdecimal, reading.titles))
    if len(reading.places) <= numbers:
        titles = ", ".join(reading.titles)
        strange = titles.count(r"\udc")  # characters that are not UTF-8, of six letters each
        if 4 * strange >= len(titles) - 5 * strange:
            return NO_TEXT
        if numbers:
            remedy = "add a first line with the titles of its columns"
        elif len(reading.titles) == 1:
            remedy = (
                "download it again if this is an error message, delete any lines above the titles, "
                "or separate cells by commas, semicolons, tabs or bars, and quote no whole line"
            )
        else:
            remedy = f"delete any lines above the titles, or download {BTS_TABLE} from TranStats"
        return f"has no column of a flight, but {shown(titles)}; {remedy}"
    known = ", ".join(reading.titles[place] for place in sorted(reading.places.values()))
    what = f"lacks the columns {', '.join(missing)}, which cannot be derived; it has {known}"
    if alike := [title for title in reading.not_used if reading.resembles(title, missing)]:
        what += f"; rename {', '.join(alike)}, because titles with brackets are not read"
        missing = [
            name for name in missing if not any(reading.resembles(title, [name]) for title in alike)
        ]
    return f"{what}; {_remedy(reading, missing, there)}" if missing else what


def _remedy(reading: Reading, missing: Sequence[str], there: set[str]) -> str:
    """Return where to get fields that are missing; a file that is not from BTS has no boxes."""
    if any(map(_is_marketing, there)) and not _OPERATING.isdisjoint(missing):
        boxes = ", ".join(_OPERATING_BOXES[name] for name in missing)
        return f"it has the marketing carrier instead of the operating one: tick {boxes}"
    has_day = "FL_DATE" not in missing
    if reading.kind.is_from_bts and (has_day or len(reading.places) > len(missing)):
        boxes = ", ".join(_BOXES[name] for name in missing)
        return f"on TranStats ({BTS_TABLE}) tick {boxes}, and download it again"
    return f"add what is missing, or download {BTS_TABLE} from TranStats"
