"""Bodies that cost a careless reader more than their bytes: much time, or much memory.

Each kind is made in the size that is asked for. They are sent as every media type, because a reader
may be careless in any.
"""

import gzip
import json
from collections.abc import Callable
from typing import Any

from backend.chain.fields import FIELD_NAMES
from backend.chain.flight import as_mapping
from tests.flights import flights

MEDIA_TYPES = (
    "application/json",
    "application/x-ndjson",
    "text/csv",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=b",
)
HEADER = ",".join(FIELD_NAMES).encode() + b"\n"
TEXTS = [name for name in FIELD_NAMES if name.endswith(("CITY_NAME", "STATE_NM"))]

Make = Callable[[int], bytes]


def _times(piece: bytes, size: int) -> bytes:
    """`piece` again and again, `size` bytes or hardly more."""
    return piece * -(-size // len(piece))


def _again(piece: bytes) -> Make:
    return lambda size: _times(piece, size)


def _rows(piece: bytes) -> Make:
    """A table with the columns of a flight, and these lines."""
    return lambda size: HEADER + _times(piece, size)


def _line(start: bytes, piece: bytes, end: bytes) -> Make:
    return lambda size: start + _times(piece, size) + end + b"\n"


def _lines(start: bytes, piece: bytes, end: bytes, length: int = 60_000) -> Make:
    """Makes lines of a usual length, each of which is evil."""
    return _again(start + _times(piece, length) + end + b"\n")


def _flight(**changed: Any) -> bytes:
    row = {**as_mapping(flights(1)[0]), **changed}
    return json.dumps({n: v for n, v in row.items() if v != ...}, ensure_ascii=False).encode()


def _flights_of_wide_texts(size: int) -> bytes:
    """Good flights, whose texts take four times as much memory as bytes; no two are equal."""
    rows = []
    for number in range(size // 500):
        wide = {name: f"{name[:6]}{number:05d}{'a' * 80}\U0001f600" for name in TEXTS}
        rows.append(_flight(**wide))
    return b"\n".join(rows)


def _names(size: int) -> bytes:
    """One object of many names, the last of which comes twice."""
    count = size // 12
    return b"{" + b",".join(b'"a%d":1' % n for n in range(count)) + b',"a%d":2}\n' % (count - 1)


def _many_lines_of_names(size: int) -> bytes:
    return _times(_names(50_000), size)


def _fields(size: int) -> bytes:
    return b"&".join(b"a%d=1" % n for n in range(size // 9))


def _parts(size: int) -> bytes:
    part = b'--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\nx\r\n'
    return _times(part, size) + b"--b--\r\n"


EVIL: dict[str, Make] = {
    "lines that are not JSON": _again(b"x\n"),
    "empty objects": _again(b"{}\n"),
    "objects of two names": _again(b'{"a":1}\n'),
    "numbers beyond all": _again(b'{"YEAR":1e999999}\n'),
    "one name twice among many": _names,
    "lines of names": _many_lines_of_names,
    "open brackets": _again(b"["),
    "objects in objects": _again(b'{"a":'),
    "empty lists on one line": _line(b'{"a":[', b"[],", b"[]]}"),
    "empty lists": _lines(b'{"a":[', b"[],", b"[]]}"),
    "empty lists in a flight": _again(_flight(YEAR=[[]] * 10_000).replace(b" ", b"") + b"\n"),
    "a number of a million digits": _line(b'{"YEAR":', b"9", b"}"),
    "numbers of many digits": _lines(b'{"YEAR":', b"9", b"}"),
    "a number as a long text": _line(b'{"YEAR":"', b"9", b'"}'),
    "numbers as long texts": _again(_flight(YEAR="2008" + " " * 3000) + b"\n"),
    "NUL bytes": _again(b"\0"),
    "byte order marks": _again(b"\xef\xbb\xbf"),
    "no UTF-8": _again(b"\xff\xfe\n"),
    "blank lines": _again(b"\r\n"),
    "flights without a year": _again(_flight(YEAR=...) + b"\n"),
    "flights that are wrong everywhere": _again(
        json.dumps(dict.fromkeys(FIELD_NAMES, "\u20ac")).encode() + b"\n"
    ),
    "flights of wide texts": _flights_of_wide_texts,
    "rows of one cell": _rows(b"x\n"),
    "rows of empty cells": _rows(b"," * (len(FIELD_NAMES) - 1) + b"\n"),
    "rows of many cells": _rows(b"ab," * 80_000 + b"\n"),
    "a header of a million columns": lambda size: HEADER[:-1] + _times(b",ab", size) + b"\n",
    "headers again and again": _again(HEADER[:-1] + b",ab" * 80_000 + b"\n"),
    "one column again and again": _again(b"YEAR,"),
    "quotes that are never closed": _rows(b'"ab\n'),
    "one cell": _rows(b"a"),
    "short rows that are good": _rows(b"2008,4,2008-01-03,1,1,,IAD,a,b,,TPA,c,d,,,,,0,\n"),
    "fields of a form": _fields,
    "percent signs": _again(b"%41&"),
    "parts of a form": _parts,
    "an open part": _again(b"--b\r\n"),
    "packed": lambda size: gzip.compress(bytes(100 * size)),
}
