"""Holds the transactions of a block as columns, and writes and reads the body that stores them.

A column is dictionary-coded: `values` lists the distinct values in order of first appearance, and
`codes[i]` is the position in it of row i's value. Twenty columns make a block's transactions: the
19 fields of `fields.FIELDS`, then `timestamp`. A TRANSACTION_ID is not stored: it is the block's
`first_transaction` plus the row number, so a body does not change with its place in the ledger.

Body (frozen; `block_rules` R11 accepts no other spelling of the same rows):

    directory   one line, canonical JSON: for each column [bytes of its dictionary, bytes of codes]
    columns     for each: its dictionary, a JSON array without spaces; then its codes, one byte a
                row if the dictionary has at most 256 values, else all low bytes, then all high
                bytes

The sizes fill the body exactly. Dictionaries are UTF-8, escaped as in canonical JSON; the column of
a block without transactions is `[]` and no codes.

So one flight takes about 39 bytes, and 15 when it is compressed. A reader can decode just the
columns it needs.
"""

import json
import sys
from array import array
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, chain
from itertools import count as counting
from operator import add

import msgspec

from backend.base.words import counted
from backend.chain.canonical import literal
from backend.chain.fields import FIELD_NAMES, Value
from backend.chain.flight import Flight
from backend.chain.parse_cache import ParseCache

COLUMN_NAMES: tuple[str, ...] = (*FIELD_NAMES, "timestamp")
COLUMN_INDEX: dict[str, int] = {name: i for i, name in enumerate(COLUMN_NAMES)}
TRANSACTION_NAMES: tuple[str, ...] = tuple(sorted((*COLUMN_NAMES, "TRANSACTION_ID")))

_BYTE_CODES = 256
_ALL_CODES = bytes(range(_BYTE_CODES))
_WRITTEN_ENTRIES = 8192  # a column; the same cities, times and delays come again in every block

_decode_values = msgspec.json.Decoder(list[int | str | None]).decode
_decode_directory = msgspec.json.Decoder(list[tuple[int, int]]).decode


UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, IndexError, ValueError)


class BodyError(ValueError):
    """The bytes are not a body."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its distinct values, and which of them each row has.

    values: in order of first appearance. codes: for each row the position of its value there.
    """

    values: Sequence[Value]
    codes: Sequence[int]

    def expanded(self) -> list[Value]:
        """Return the value of every row."""
        return list(map(self.values.__getitem__, self.codes))


def column_of(rows: Sequence[Value]) -> Column:
    """Return the column with these row values."""
    position: defaultdict[Value, int] = defaultdict(counting().__next__)
    codes = list(map(position.__getitem__, rows))
    fits_bytes = len(position) <= _BYTE_CODES
    return Column(list(position), bytes(codes) if fits_bytes else array("H", codes))


@dataclass(frozen=True, slots=True)
class Columns:
    """The transactions of a block.

    count: rows. by_name: column name -> Column; all twenty, or those that were asked for.
    """

    count: int
    by_name: Mapping[str, Column]

    def __getitem__(self, name: str) -> Column:
        return self.by_name[name]

    def row(self, index: int) -> dict[str, Value]:
        """Return one row: column name -> value."""
        return {name: c.values[c.codes[index]] for name, c in self.by_name.items()}

    def rows(self, names: Sequence[str] = FIELD_NAMES) -> Iterator[tuple[Value, ...]]:
        """Yield the values of some columns row by row: those of flights, if not told which."""
        return zip(*(self[name].expanded() for name in names), strict=True)


def columns_of(flights: Sequence[Flight], timestamps: Sequence[int]) -> Columns:
    """Return the columns of `flights` accepted at `timestamps` (UTC milliseconds), row by row."""
    values: list[Sequence[Value]] = list(zip(*flights, strict=True))
    return columns_from([*(values or [()] * len(FIELD_NAMES)), timestamps])


def columns_from(rows: Sequence[Sequence[Value]]) -> Columns:
    """Return the columns with these row values: a sequence for each of COLUMN_NAMES, in order."""
    return Columns(len(rows[0]), dict(zip(COLUMN_NAMES, map(column_of, rows), strict=True)))


def encode_body(columns: Columns) -> bytes:
    """Return the body that stores `columns` (all twenty)."""
    directory: list[list[int]] = []
    parts: list[bytes] = []
    for name in COLUMN_NAMES:
        column = columns[name]
        dictionary = json.dumps(column.values, ensure_ascii=False, separators=(",", ":")).encode()
        codes = _pack(column)
        directory.append([len(dictionary), len(codes)])
        parts += (dictionary, codes)
    head = json.dumps(directory, separators=(",", ":")).encode()
    return b"%b\n%b" % (head, b"".join(parts))


def decode_body(body: bytes, count: int, names: Sequence[str] = COLUMN_NAMES) -> Columns:
    """Return the columns `names` of a body of `count` rows.

    Raises BodyError if the bytes are not such a body. What the values mean is not looked at: that
    is the work of `block_rules`.
    """
    try:
        return _decode(body, count, names)
    except UNREADABLE as error:
        raise BodyError(f"not a body of {counted(count, 'transaction')}: {error}") from error


def directory_of(body: bytes) -> Sequence[tuple[int, int, int]]:
    """Return for each column where its dictionary and its codes begin, and where these end.

    Raises one of UNREADABLE.
    """
    places = _places(body[: body.index(b"\n")])
    if places[-1][-1] != len(body):
        raise BodyError(f"{counted(len(body), 'byte')} instead of {places[-1][-1]:,}")
    return places


@lru_cache(maxsize=128)  # transactions of the same blocks are asked for again and again
def _places(line: bytes) -> Sequence[tuple[int, int, int]]:
    """Return what the first line of a body says of each column."""
    sizes = _decode_directory(line)
    if len(sizes) != len(COLUMN_NAMES):
        raise BodyError(f"{counted(len(sizes), 'column')} instead of {len(COLUMN_NAMES)}")
    places = list(accumulate(chain.from_iterable(sizes), initial=len(line) + 1))
    return tuple(zip(places[:-1:2], places[1::2], places[2::2], strict=True))


def _decode(body: bytes, count: int, names: Sequence[str]) -> Columns:
    places = directory_of(body)
    columns: dict[str, Column] = {}
    for name in names:
        at, codes_at, end = places[COLUMN_INDEX[name]]
        code_bytes = end - codes_at
        values = _decode_values(body[at:codes_at])
        width = 1 if len(values) <= _BYTE_CODES else 2
        if code_bytes != width * count:
            shape = f"{counted(count, 'row')} of {counted(len(values), 'value')}"
            raise BodyError(f"{counted(code_bytes, 'code byte')} for {shape}")
        codes: Sequence[int] = body[codes_at : codes_at + count]
        if width == 2:
            codes = joined(codes, body[codes_at + count : end])
        if _has_code_beyond(codes, len(values)):
            raise BodyError(f"column {name} has a code beyond its {counted(len(values), 'value')}")
        columns[name] = Column(values, codes)
    return Columns(count, columns)


def _has_code_beyond(codes: Sequence[int], distinct: int) -> bool:
    if isinstance(codes, bytes):  # what is left without the good ones; ten times faster than max
        return len(codes.translate(None, _ALL_CODES[:distinct])) > 0
    return max(codes, default=-1) >= distinct


def _pack(column: Column) -> bytes:
    if len(column.values) <= _BYTE_CODES:
        return bytes(column.codes)
    pairs = _swapped_if_big_endian(array("H", column.codes)).tobytes()
    return pairs[0::2] + pairs[1::2]


def joined(low: Sequence[int], high: Sequence[int]) -> Sequence[int]:
    """Return codes of two bytes, from all low and all high bytes."""
    interleaved = bytearray(2 * len(low))
    interleaved[0::2] = low
    interleaved[1::2] = high
    return _swapped_if_big_endian(array("H", bytes(interleaved)))


def _swapped_if_big_endian(numbers: "array[int]") -> "array[int]":
    """Return codes low byte first, as they are stored, whatever the machine's order is."""
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


def _writer(start: bytes) -> ParseCache[Value, bytes]:
    """Return what writes a field's value behind what stands before it in canonical bytes."""
    return ParseCache(lambda value: start + literal(value), _WRITTEN_ENTRIES)


_pieces = {
    name: _writer((b"," if i else b"{") + literal(name) + b":")
    for i, name in enumerate(TRANSACTION_NAMES)
}


def transaction_bytes(columns: Columns, first_transaction: int) -> list[bytes]:
    """Return the canonical bytes of every transaction, in order.

    Each distinct value is written once, and neighbours with the same codes, such as an airport's
    code and number, together. The rows are joined from such pieces: the same bytes as
    `canonical.canonical` of each transaction, many times faster.
    """
    ids = range(first_transaction, first_transaction + columns.count)
    pieces: list[tuple[Sequence[int], list[bytes]]] = []  # codes of rows, and what each stands for
    for name, written in _pieces.items():
        if name == "TRANSACTION_ID":
            pieces.append((range(columns.count), [b',"TRANSACTION_ID":%d' % i for i in ids]))
            continue
        codes, values = columns[name].codes, list(map(written.__getitem__, columns[name].values))
        if pieces and pieces[-1][0] == codes:
            codes, before = pieces.pop()
            values = list(map(add, before, values))
        pieces.append((codes, values))
    codes, values = pieces.pop()
    pieces.append((codes, [value + b"}" for value in values]))
    rows = zip(*(map(values.__getitem__, codes) for codes, values in pieces), strict=True)
    return list(map(b"".join, rows))
