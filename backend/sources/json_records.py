"""Reads records in JSON: an object a line, an array of objects, or an object that holds one.

The titles are the names of the members. An object may leave out members, and all may leave out the
times of flights that were cancelled or diverted; but what none of the first names, a later one may
name only if it means nothing in a flight and the object lacks nothing that does, so that no
misspelt name is overlooked. In a request, objects with the names of a flight's fields may have no
others but those that an export has, and those that mean something in files.

An export ends with the line `{"complete":true,"count":N,…}`; then N must be the number of flights,
and nothing may follow.
"""

import json
import re
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from functools import partial
from itertools import chain, islice
from typing import Any, NamedTuple

from backend.base.errors import BadRow
from backend.base.words import counted
from backend.chain.fields import FIELD_NAMES, FIELDS
from backend.chain.flight import EMPTY_WHEN_CANCELLED
from backend.chain.json_objects import MAX_BYTES, RepeatedNameError, decoded, each_once
from backend.sources.cells import flag
from backend.sources.kinds import (
    DIVERTED,
    MAY_BE_EMPTY,
    are_of_flights,
    columns_of,
    has_meaning,
    plain,
)
from backend.sources.packed import BLOCK_BYTES, PackedFile
from backend.sources.records import RecordBatch, Records, line_batches, text_of, usable
from backend.sources.source import BATCH_ROWS

UNIT = "object"  # what the rows of a list are
FOREIGN = 3  # as many unknown names are those of another table, and no slips
LEDGERS_OWN = {"TRANSACTION_ID", "timestamp", "BLOCK_HEIGHT"}  # in an export, besides the fields
_NULLABLE = [field.name for field in FIELDS if field.nullable]
_TIMES = set(_NULLABLE) - set(MAY_BE_EMPTY)
_EMPTY = {"CANCELLED": {*_TIMES, "AIR_TIME"}, DIVERTED: EMPTY_WHEN_CANCELLED}
"""What is empty for a flight with the column before it."""
_OF_FIELDS = frozenset(map(plain, FIELD_NAMES))
_SHOWN_CHARACTERS = 1000  # of a line that is wrong; an excerpt of them is kept
_BLANKS = " \t\r\n"
_LISTS = {"transactions", "flights", "data", "results", "records", "rows", "items"}
"""What an object calls a list of flights: a block file of the study, or what services answer.

Programs name it after a table, sheet or query, too; then its first object tells."""
_TOTALS = re.compile(
    "(odata)?count|nhits|numfound|numbermatched|recordsfiltered|"
    "total(count|rows|records|results|items|hits)?"
).fullmatch
_CONTINUED = re.compile(
    "(odata)?next(link|url|page|pageurl|pagetoken|cursor)?|has(more|next|nextpage)|"
    "exceededtransferlimit|(is)?truncated"
).fullmatch
"""What services call the number of all flights, and what says that their answer is a part."""
_to_member = re.compile(rf'[{_BLANKS}]*[{{,][{_BLANKS}]*(?=")')
_to_value = re.compile(rf"[{_BLANKS}]*:[{_BLANKS}]*")
_to_element = re.compile(rf"[{_BLANKS}]*(,?)[{_BLANKS}]*")
NO_OBJECT = "must be a JSON object with the fields of a flight"
NO_FIELD = "is not a field of a flight"
NOT_BEFORE = "is a member that the first rows do not have; correct its name, or remove it"
NO_LIST = (
    "is JSON without a list of flights; download it again if it is an error message, or write an "
    "array of objects (pandas: orient='records'), or one object per line (NDJSON), with the fields "
    "of a flight as their members"
)


NumberedObject = tuple[int, Mapping[str, object] | BadRow]
"""The number of a row, and its JSON object or what is wrong with it."""


Part = tuple[Sequence[NumberedObject], Callable[[int], str]]
"""Objects, at most `BATCH_ROWS`, and what returns each as it stands in the file."""


class _Names(NamedTuple):
    """What the members of objects may be named.

    titles: those that are read. known: those that are expected. needed: those of them without which
    an unknown one may be a slip; None if it always is. reason: what is wrong with a slip. empty:
    those that may be absent, for each that says why if it is 1.
    """

    titles: tuple[str, ...]
    known: Set[str]
    needed: Set[str] | None
    reason: str
    empty: Mapping[str, Set[str]] = {}

    def slip(self, value: Mapping[str, object]) -> str | None:
        """Return an unknown name that may be meant for another one; None if all do no harm."""
        has_all = self.needed is not None and not self.are_lacking([value], self.needed)
        unknown = (name for name in value if name not in self.known)
        return next((name for name in unknown if not has_all or has_meaning(name)), None)

    def are_lacking(self, objects: Iterable[Mapping[str, object]], needed: Set[str]) -> bool:
        """Return whether an object lacks needed members that its flight should have."""
        for value in objects:
            absent = needed - value.keys()
            reasons = (self.empty[name] for name in self.empty if flag(value.get(name)) == 1)
            if absent and not any(absent <= empty for empty in reasons):
                return True
        return False


def read_json(file: PackedFile, start: bytes, blocks: Iterator[bytes]) -> Records:
    """Return the records in a file of JSON. start: how its text begins, without blanks.

    Raises InvalidInput if it is not what it seems; the iterator `batches` does, too.
    """
    first = start.partition(b"\n")[0].rstrip()
    is_line = first.endswith(b"}") and len(first) <= MAX_BYTES
    if not file.is_strict and (_opening(start.decode(errors="replace")) or not is_line):
        return _records(file, _slices(_elements(file, blocks)), UNIT)
    return _records(file, _lines(file, blocks), "line")


def _opening(text: str) -> str | None:
    """Return what stands before the first object of a list; None if a flight begins the text."""
    if text.startswith("["):
        return "["
    place, names = 0, list[str]()
    with suppress(ValueError, RecursionError):  # it is no JSON, or goes on in the next block
        while match := _to_member.match(text, place):
            name, place = _decoder.raw_decode(text, match.end())
            value = _to_value.match(text, place)
            start = value.end() if value else len(text)
            names.append(name)
            if text.startswith("[", start) and (name in _LISTS or _begins_with_flight(text, start)):
                return None if any(map(has_meaning, names)) else text[: start + 1]
            _, place = _decoder.raw_decode(text, start)
    return None


def _begins_with_flight(text: str, start: int) -> bool:
    """Return whether the list at `start` begins with an object of flights. Raises ValueError."""
    element = _to_element.match(text, start + 1)
    first = _decoder.raw_decode(text, element.end())[0] if element else None
    return isinstance(first, dict) and are_of_flights(first)


def _records(file: PackedFile, parts: Iterator[Part], unit: str) -> Records:
    first: Part = next(parts, ([], str))
    if not (first[0] or file.is_posted):
        raise file.without_rows("has no flights")
    objects = [value for _, value in first[0] if not isinstance(value, BadRow)]
    is_alone = bool(first[0]) and len(objects) == (unit != UNIT)
    names = _names(file, objects, is_alone=is_alone)
    batches = (partial(_batch, file, part, names, unit) for part in chain([first], parts))
    return Records(names.titles, batches, unit=unit)


def _names(file: PackedFile, objects: Sequence[Mapping[str, object]], *, is_alone: bool) -> _Names:
    """Return what members may be named, by the first objects. Raises InvalidInput.

    is_alone: whether there is one in no list, as in the answer of a service, or a list has none.
    """
    members = dict.fromkeys(chain.from_iterable(objects))
    own = LEDGERS_OWN.union(FIELD_NAMES)
    lacking, unknown = set(FIELD_NAMES) - members.keys(), members.keys() - own
    is_other = any(plain(name) not in _OF_FIELDS for name in filter(has_meaning, unknown))
    strict = _Names(FIELD_NAMES, own, None, NO_FIELD)
    if not (members or is_alone) or (file.is_strict and len(unknown) < FOREIGN and not is_other):
        return strict
    if _are_around_flights(objects, is_alone=is_alone):
        raise file.problem(f"{NO_LIST}{file.or_leave_out}")
    columns = columns_of(tuple(members), _NULLABLE)
    empty = _may_be_absent(columns)
    names = _Names((), set(members), set(filter(has_meaning, members)), NOT_BEFORE, empty)
    if file.is_strict and lacking <= set(_NULLABLE) and names.are_lacking(objects, lacking):
        return strict
    absent = [columns[name] for name in _NULLABLE if name in columns]
    absent = [title for title in absent if title not in members]
    times = {columns[name] for name in _TIMES & columns.keys()} - members.keys()
    if names.are_lacking(objects, times):
        absent = [title for title in absent if title not in times]
    return names._replace(titles=(*members, *absent), known={*names.known, *absent})


def _are_around_flights(objects: Iterable[Mapping[str, object]], *, is_alone: bool) -> bool:
    """Return whether objects are no flights, but may have some in their lists. As in `_names`."""
    pairs = chain.from_iterable(value.items() for value in objects)
    known = [(isinstance(value, list | dict), has_meaning(name)) for name, value in pairs]
    return (is_alone or any(is_list for is_list, _ in known)) and (False, True) not in known


def _may_be_absent(columns: Mapping[str, str]) -> dict[str, Set[str]]:
    """Return which members may be absent, for each that says why. columns: of some meanings."""
    return {
        columns[mark]: {columns[field] for field in fields if field in columns}
        for mark, fields in _EMPTY.items()
        if mark in columns
    }


def _batch(
    file: PackedFile, part: Part, names: _Names, unit: str, places: tuple[int, ...]
) -> RecordBatch:
    rows: list[Mapping[str, object]] = []
    numbers, faults = [], []
    for number, value in part[0]:
        if isinstance(value, BadRow):
            faults.append(value)
        elif names.known >= value.keys() or (name := names.slip(value)) is None:
            rows.append(value)
            numbers.append(number)
        else:
            faults.append(file.bad_row(number, name, value[name], names.reason, unit))
    columns = {place: usable([row.get(names.titles[place]) for row in rows]) for place in places}
    return RecordBatch(columns, numbers, faults, text=part[1])


def _lines(file: PackedFile, blocks: Iterator[bytes]) -> Iterator[Part]:
    rows, end = 0, dict[str, object]()
    for first, lines in line_batches(file, blocks):
        objects = list[NumberedObject]()
        for number, line in enumerate(lines, first):
            if not line or line.isspace():
                continue
            if end:
                reason = f"continues in line {number}, after the line that marks its end"
                raise file.problem(f"{reason}; put each export into a file of its own")
            value = _object(file, number, line)
            if isinstance(value, dict) and value.get("complete") is True and "DEST" not in value:
                end = value
            else:
                objects.append((number, value))
        if objects:
            rows += len(objects)
            yield objects, text_of(lines, first)
    if end and end.get("count") != rows:
        reason = f"has {counted(rows, 'flight')}, but its last line says {end.get('count')}"
        raise file.problem(f"{reason}; download it again")


def _object(file: PackedFile, number: int, line: str) -> dict[str, object] | BadRow:
    """Return the object in a line, or what is wrong with it."""
    start = line[:_SHOWN_CHARACTERS].rstrip()
    if len(line) > MAX_BYTES:
        return file.bad_row(number, "line", start, f"is longer than {MAX_BYTES} bytes")
    try:
        if not file.is_strict and "NaN" in line:
            record = json.loads(line, parse_constant=_constant, object_pairs_hook=each_once)
        else:
            record = decoded(line.encode(errors="surrogateescape"))
    except RepeatedNameError as error:
        return file.bad_row(number, error.name, error.value, str(error))
    except (ValueError, RecursionError) as error:
        return file.bad_row(number, "line", start, f"is not JSON: {error}")
    return record if isinstance(record, dict) else file.bad_row(number, "line", start, NO_OBJECT)


def _elements(file: PackedFile, blocks: Iterator[bytes]) -> Iterator[NumberedObject]:
    """Yield the objects of an array, or of that in an object; there may be any number of them."""
    decode = getincrementaldecoder("utf-8")("surrogateescape").decode
    text = decode(next(blocks, b"")).lstrip(f"\ufeff{_BLANKS}")
    if (opening := _opening(text)) is None:
        raise file.problem(f"{NO_LIST}{file.or_leave_out}")
    text, number, is_whole = text[len(opening) :], 0, False
    while True:
        place = 0
        while element := _element(file, text, place, number + 1, is_whole=is_whole):
            number += 1
            value, place = element
            yield number, value
        rest = text[place:].strip(_BLANKS)
        if is_whole and rest.startswith("]"):
            _require_end(file, opening + rest, number)
            return
        block = b"" if is_whole else next(blocks, b"")
        if not block and (is_whole or not rest.endswith(("}", "]"))):
            raise file.problem(f"ends too early, after {number} objects; download it again")
        if len(text) - place > BLOCK_BYTES:
            where = "after its list of flights" if rest.startswith("]") else "without a flight"
            raise file.problem(f"has more than {BLOCK_BYTES:,} bytes {where}; remove them")
        text, is_whole = text[place:] + decode(block, not block), not block


def _require_end(file: PackedFile, text: str, number: int) -> None:
    """Raise InvalidInput unless a file ends as it began, and has no other flights.

    text: all of it but its objects. number: of these.
    """
    try:
        value = _decoder.decode(text)
    except (RepeatedNameError, ValueError, RecursionError) as error:
        reason = "is not JSON after its list of flights"
        raise file.problem(f"{reason}; put each list into a file of its own") from error
    for name, member in value.items() if isinstance(value, dict) else ():
        lists = filter(None, member) if isinstance(member, list) else ()
        if any(isinstance(item, dict) and any(map(has_meaning, item)) for item in lists):
            reason = f"has a second list of flights, {name!r}"
            raise file.problem(f"{reason}; put each list into a file of its own")
    for name, member in _members(value):
        is_total = _TOTALS(plain(name)) and str(member).isdecimal() and int(member) > number
        if is_total or (_CONTINUED(plain(name)) and member and flag(member) != 0):
            says = member if is_total else "that there are more"
            reason = f"has {counted(number, 'flight')}, but its member {name!r} says {says}"
            raise file.problem(f"{reason}; download all flights")


def _members(value: object) -> Iterator[tuple[str, Any]]:
    """Yield the members of an object and of the objects in it, but of no list."""
    for name, member in value.items() if isinstance(value, dict) else ():
        yield name, member
        yield from _members(member)


def _element(
    file: PackedFile, text: str, place: int, number: int, *, is_whole: bool
) -> tuple[Mapping[str, object] | BadRow, int] | None:
    """Return the element of an array behind `place`, and where it ends. Raises BadRow.

    None if the array ends, or the text does; then it goes on in the next block unless `is_whole`.
    """
    match = _to_element.match(text, place)
    assert match is not None  # it may be empty
    start = match.end()
    if start == len(text) or (text[start] == "]" and not match[1]):
        return None
    try:
        if bool(match[1]) == (number == 1) or text[start] in ",]":
            raise ValueError("a comma is missing, or there are two")
        value, end = _decoder.raw_decode(text, start)
    except RepeatedNameError as error:
        raise file.bad_row(number, error.name, error.value, str(error), UNIT) from error
    except (ValueError, RecursionError) as error:
        is_short = len(text) - place < BLOCK_BYTES and not is_whole
        if is_short and isinstance(error, json.JSONDecodeError):
            return None
        given, reason = text[place : place + 80], f"is not JSON ({error})"
        raise file.bad_row(number, UNIT, given, reason, UNIT) from error
    is_object = isinstance(value, dict)
    return value if is_object else file.bad_row(number, UNIT, value, NO_OBJECT, UNIT), end


def _constant(name: str) -> str | None:
    """Return what a number that is no JSON means: Python writes NaN for a missing value."""
    return None if name == "NaN" else name


_decoder = json.JSONDecoder(parse_constant=_constant, object_pairs_hook=each_once)


def _slices(objects: Iterator[NumberedObject]) -> Iterator[Part]:
    while part := list(islice(objects, BATCH_ROWS)):
        yield part, partial(_written_again, part)


def _written_again(objects: Sequence[NumberedObject], number: int) -> str:
    value = objects[number - objects[0][0]][1]
    return json.dumps(value.value if isinstance(value, BadRow) else value)
