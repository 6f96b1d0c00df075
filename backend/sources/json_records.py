"""Reads records in JSON: an object a line, an array of objects, or a block file of the study.

The titles are the names of the members. An object may leave out members, but what none of the first
names, a later one may name only if it means nothing in a flight and the object lacks nothing that
does, so that no misspelt name is overlooked. In a request, objects with the names of a flight's
fields may have no others but those that an export has. An export ends with the line
`{"complete":true,"count":N,…}`; then N must be the number of flights, and nothing may follow.
"""

import json
import re
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from typing import NamedTuple

from backend.base.errors import BadRow
from backend.base.words import counted
from backend.chain.fields import FIELD_NAMES, FIELDS
from backend.chain.flight import unknown_reason
from backend.chain.json_objects import MAX_BYTES, RepeatedNameError, decoded, each_once
from backend.sources.kinds import has_meaning, plain
from backend.sources.packed import BLOCK_BYTES, PackedFile
from backend.sources.records import RecordBatch, Records, batch_of_objects, text_of
from backend.sources.source import BATCH_ROWS, Fault, NumberedObject
from backend.sources.text import line_batches, line_blocks

MOST_BLOCKS = 256  # of bytes in a block file of the study, which is read whole
MOST_POSTED_BLOCKS = 8
SHORTEST_BYTES = 80  # of an object that is a flight under any names
FOREIGN = 3  # as many unknown names are those of another table, and no slips
LEDGERS_OWN = {"TRANSACTION_ID", "timestamp", "BLOCK_HEIGHT"}  # in an export, besides the fields
_NULLABLE = [field.name for field in FIELDS if field.nullable]
_SHOWN_CHARACTERS = 1000  # of a line that is wrong; an excerpt of them is kept
_to_element = re.compile(r"[ \t\r\n]*(,?)[ \t\r\n]*")
NO_OBJECT = "must be a JSON object with the fields of a flight"
NDJSON_NEEDED = "flights are an array of objects, or an object a line (NDJSON)"


class Part(NamedTuple):
    """Objects, at most `BATCH_ROWS`.

    hopeless: how many more were too short to be flights. text: as in `RecordBatch`.
    """

    objects: Sequence[NumberedObject]
    hopeless: int
    text: Callable[[int], str]


@dataclass(frozen=True, slots=True)
class _Names:
    """What the members of objects may be named.

    titles: those that are read. known: those that objects had so far. used: those that the first
    objects have, and that mean something. is_own: whether they are those of a flight's fields.
    """

    titles: Sequence[str]
    known: set[str]
    used: frozenset[str]
    is_own: bool

    def fault(self, number: int, value: Mapping[str, object]) -> Fault | None:
        """Return what is wrong with an object that has unknown names; None if they do no harm."""
        unknown = [name for name in value if name not in self.known]
        if self.is_own:
            return Fault(number, unknown[0], value[unknown[0]], unknown_reason(unknown[0]))
        name = next(filter(has_meaning, unknown), None)
        if name is None and self.used <= value.keys():
            return None
        name = name or unknown[0]
        return Fault(number, name, value[name], "is a member that the first rows do not have")


def read_json(file: PackedFile, start: bytes, blocks: Iterator[bytes]) -> Records:
    """Return the records in a file of JSON. start: how its text begins, without blanks.

    Raises InvalidInput if it is not what it seems; the iterator `batches` does, too.
    """
    first_line = start.partition(b"\n")[0].rstrip()
    if not file.is_json:
        if start.startswith(b"["):
            return _records(file, _slices(_array(file, blocks)), "object")
        if not first_line.endswith(b"}") or _is_block(first_line):
            return _records(file, _slices(_transactions(file, blocks)), "transaction")
    return _records(file, _lines(file, blocks), "line")


def _is_block(line: bytes) -> bool:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and "transactions" in value


def _records(file: PackedFile, parts: Iterator[Part], unit: str) -> Records:
    first = next(parts, Part([], 0, str))
    objects = (value for _, value in first.objects if not isinstance(value, Fault))
    members = dict.fromkeys(chain.from_iterable(objects))
    is_own = not members or (
        file.is_json is True and len(members.keys() - set(FIELD_NAMES) - LEDGERS_OWN) < FOREIGN
    )
    if is_own:
        names = _Names(FIELD_NAMES, LEDGERS_OWN.union(FIELD_NAMES), frozenset(), is_own)
    else:
        there = set(map(plain, members))
        nullable = _NULLABLE if {"fldate", "dest"} <= there else ()
        others = (name for name in nullable if plain(name) not in there)
        titles = tuple(members | dict.fromkeys(others))
        names = _Names(titles, set(titles), frozenset(filter(has_meaning, members)), is_own)
    batches = (partial(_batch, part, names) for part in chain([first], parts))
    return Records(tuple(names.titles), batches, unit=unit)


def _batch(part: Part, names: _Names) -> RecordBatch:
    objects, harmless = list[NumberedObject](), dict[str, None]()
    for number, value in part.objects:
        fault = None
        if not (isinstance(value, Fault) or names.known >= value.keys()):
            fault = names.fault(number, value)
            harmless |= {} if fault else dict.fromkeys(n for n in value if n not in names.known)
        objects.append((number, fault or value))
    names.known.update(harmless)
    return batch_of_objects(objects, names.titles, part.text, part.hopeless, tuple(harmless))


def _lines(file: PackedFile, blocks: Iterator[bytes]) -> Iterator[Part]:
    rows, end = 0, dict[str, object]()
    for first, lines in line_batches(line_blocks(file, blocks)):
        shortest = SHORTEST_BYTES if file.needs_no_reason() else 0
        objects, hopeless = list[NumberedObject](), 0
        for number, line in enumerate(lines, first):
            if not line or line.isspace():
                continue
            if end:
                reason = f"continues in line {number} after the line that says it is complete"
                raise file.problem(reason)
            if len(line) < shortest:
                hopeless += 1
                continue
            value = _object(number, line, takes_nan=not file.is_json)
            if (
                not isinstance(value, Fault)
                and value.get("complete") is True
                and "DEST" not in value
            ):
                end = value
            else:
                objects.append((number, value))
        if objects or hopeless:
            rows += len(objects) + hopeless
            yield Part(objects, hopeless, text_of(lines, first))
    if end and end.get("count") != rows:
        reason = f"has {counted(rows, 'flight')} but says that it has {end.get('count')}"
        raise file.problem(f"{reason}; download it again")


def _object(number: int, line: str, *, takes_nan: bool) -> dict[str, object] | Fault:
    """Return the object in a line, or what is wrong with it."""
    if len(line) > MAX_BYTES:
        return _fault(number, line, f"is longer than {MAX_BYTES} bytes")
    try:
        if takes_nan and "NaN" in line:
            record = json.loads(line, parse_constant=_constant, object_pairs_hook=each_once)
        else:
            record = decoded(line.encode(errors="surrogateescape"))
    except RepeatedNameError as error:
        return Fault(number, error.name, error.value, str(error))
    except (ValueError, RecursionError) as error:
        return _fault(number, line, f"is not JSON: {error}")
    if not isinstance(record, dict):
        return _fault(number, line, NO_OBJECT)
    return record


def _fault(number: int, line: str, reason: str) -> Fault:
    return Fault(number, "line", line[:_SHOWN_CHARACTERS].rstrip(), reason)


def _array(file: PackedFile, blocks: Iterator[bytes]) -> Iterator[NumberedObject]:
    """Yield the elements of an array one by one, so that it may be of any length."""
    decode = getincrementaldecoder("utf-8")("surrogateescape").decode
    decoder = json.JSONDecoder(parse_constant=_constant, object_pairs_hook=each_once)
    text, number, block = decode(next(blocks, b"")).lstrip("\ufeff \t\r\n")[1:], 0, b"more"
    while block:
        place = 0
        while (start := _next_element(text, place, is_first=number == 0)) is not None:
            try:
                if start < 0:
                    raise ValueError("a comma is missing, or there are two")
                value, end = decoder.raw_decode(text, start)
            except RepeatedNameError as error:
                where = f"{file.label}, object {number + 1}"
                raise BadRow(where, error.name, error.value, str(error)) from error
            except (ValueError, RecursionError) as error:
                if start >= 0 and len(text) - place < BLOCK_BYTES:
                    break  # it may go on in the next block
                where, given = f"{file.label}, object {number + 1}", text[place : place + 80]
                raise BadRow(where, "object", given, f"is not JSON ({error})") from error
            number += 1
            is_object = isinstance(value, dict)
            yield number, value if is_object else Fault(number, "object", value, NO_OBJECT)
            place = end
        block = next(blocks, b"")
        text = text[place:] + decode(block, not block)
        if _continues(text):
            raise file.problem("continues after the end of its array; it must be one array")
    if text.strip() != "]":
        raise file.problem(f"ends within its array, after {number} objects; download it again")


def _next_element(text: str, place: int, *, is_first: bool) -> int | None:
    """Return where the next element of an array begins; -1 if a comma is missing or too many.

    None if the array ends, or the text does.
    """
    match = _to_element.match(text, place)
    assert match is not None  # it may be empty
    start = match.end()
    if start == len(text) or (text[start] == "]" and not match[1]):
        return None
    return start if bool(match[1]) != is_first and text[start] not in ",]" else -1


def _continues(text: str) -> bool:
    """Return whether something follows the end of an array."""
    rest = text.lstrip(" \t\r\n")
    return rest.startswith("]") and bool(rest[1:].strip())


def _constant(name: str) -> str | None:
    """Return what a number that is no JSON means: Python writes NaN for a missing value."""
    return None if name == "NaN" else name


def _slices(objects: Iterator[NumberedObject]) -> Iterator[Part]:
    while part := list(islice(objects, BATCH_ROWS)):
        yield Part(part, 0, partial(_written_again, part))


def _written_again(objects: Sequence[NumberedObject], number: int) -> str:
    value = objects[number - objects[0][0]][1]
    return json.dumps(value.value if isinstance(value, Fault) else value)


def _transactions(file: PackedFile, blocks: Iterator[bytes]) -> Iterator[NumberedObject]:
    """Return the transactions in a block file. Raises InvalidInput if there are none."""
    most = MOST_POSTED_BLOCKS if file.is_posted else MOST_BLOCKS
    content = b"".join(islice(blocks, most))
    if next(blocks, b""):
        raise file.problem(f"is JSON longer than {most * BLOCK_BYTES:,} bytes; {NDJSON_NEEDED}")
    try:
        value = json.loads(content, object_pairs_hook=each_once)
    except (ValueError, RecursionError) as error:
        raise file.problem(f"is not JSON ({error}); {NDJSON_NEEDED}") from error
    transactions = value.get("transactions")
    if not isinstance(transactions, list):
        raise file.problem(f"is JSON without a list of flights; {NDJSON_NEEDED}")
    return (
        (
            number,
            value if isinstance(value, dict) else Fault(number, "transaction", value, NO_OBJECT),
        )
        for number, value in enumerate(transactions, 1)
    )
