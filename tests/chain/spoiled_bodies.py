"""Bodies for the vector files that are not the one encoding of any transactions."""

import json
from collections.abc import Sequence

from tests.chain import independent
from tests.chain.independent import COLUMNS, Row
from tests.chain.naive_builder import GENESIS_TIME as T
from tests.chain.naive_builder import Entry, packed, rejected, row, wide_rows

Parts = dict[str, tuple[bytes, bytes]]


def parts_of(rows: Sequence[Row]) -> Parts:
    """Column name -> (dictionary, codes)."""
    line, _, rest = independent.encode_body(rows).partition(b"\n")
    parts: Parts = {}
    for name, (dictionary, codes) in zip(COLUMNS, json.loads(line), strict=True):
        parts[name] = rest[:dictionary], rest[dictionary : dictionary + codes]
        rest = rest[dictionary + codes :]
    return parts


def assembled(parts: Parts) -> bytes:
    line = independent.compact([[len(d), len(c)] for d, c in parts.values()])
    return line + b"\n" + b"".join(d + c for d, c in parts.values())


def with_column(rows: Sequence[Row], name: str, dictionary: bytes, codes: bytes) -> bytes:
    return assembled({**parts_of(rows), name: (dictionary, codes)})


TWO = [row(), row(OP_CARRIER_FL_NUM=336, ORIGIN_CITY_NAME="São Tomé")]


def odd_dictionaries() -> list[tuple[str, bytes]]:
    """Dictionaries for ORIGIN_STATE_NM (or numbers for YEAR) that are not the compact JSON."""
    text = [
        ("a space in the dictionary", b'[ "Texas"]'),
        ("a line end in the dictionary", b'["Texas"\n]'),
        ("a letter escaped", b'["Tex\\u0061s"]'),
        ("a slash escaped", b'["a\\/b"]'),
        ("a surrogate pair for an emoji", b'["\\ud83d\\ude00"]'),
        ("half a surrogate pair", b'["\\ud83d"]'),
        ("a surrogate in UTF-8", b'["\xed\xa0\xbd"]'),
        ("not UTF-8", b'["Te\xffas"]'),
        ("overlong UTF-8", b'["Te\xc0\xafas"]'),
        ("a raw control character", b'["Te\x01as"]'),
        ("a raw NUL", b'["\x00"]'),
        ("a byte order mark", b'\xef\xbb\xbf["Texas"]'),
        ("no bracket", b'"Texas"'),
        ("an object", b'{"a":"Texas"}'),
        ("an array inside", b'[["Texas"]]'),
        ("an unfinished text", b'["Texas'),
        ("a comma too many", b'["Texas",]'),
        ("more after the array", b'["Texas"][]'),
        ("nothing at all", b""),
        ("single quotes", b"['Texas']"),
    ]
    numbers = [
        ("a float", b"[2008.0]"),
        ("an exponent", b"[2008e0]"),
        ("true", b"[true]"),
        ("not a number", b"[NaN]"),
        ("minus zero", b"[-0]"),
        ("a plus sign", b"[+2008]"),
        ("a leading zero", b"[02008]"),
        ("5000 digits", b"[" + b"9" * 5000 + b"]"),
        ("a float beyond all floats", b"[1e400]"),
    ]
    bodies = [(name, with_column(TWO, "ORIGIN_STATE_NM", d, b"\0\0")) for name, d in text]
    return bodies + [(name, with_column(TWO, "YEAR", d, b"\0\0")) for name, d in numbers]


def odd_columns() -> list[tuple[str, bytes]]:
    """Columns whose dictionary and codes do not fit, or fit in more ways than one."""
    many = independent.compact(list(range(1900, 2157)))
    numbers, flights = b"[335,336]", "OP_CARRIER_FL_NUM"
    cases = [
        ("a code beyond the values", with_column(TWO, flights, numbers, b"\0\2")),
        ("the largest code", with_column(TWO, flights, numbers, b"\0\xff")),
        ("no values", with_column(TWO, flights, b"[]", b"\0\1")),
        ("a code missing", with_column(TWO, flights, numbers, b"\0")),
        ("a code too many", with_column(TWO, flights, numbers, b"\0\1\0")),
        ("two bytes where one is enough", with_column(TWO, flights, numbers, b"\0\1\0\0")),
        ("one byte where two are needed", with_column(TWO, "YEAR", many, b"\0\0")),
        ("a value twice", with_column(TWO, "YEAR", b"[2008,2008]", b"\0\0")),
        ("a value twice, both used", with_column(TWO, "YEAR", b"[2008,2008]", b"\0\1")),
        ("a valid value that no row has", with_column(TWO, "YEAR", b"[2008,2009]", b"\0\0")),
        ("an invalid value that no row has", with_column(TWO, "YEAR", b'[2008,"x"]', b"\0\0")),
        ("a time that no row has", with_column(TWO, "timestamp", b"[%d,1]" % (T + 1000), b"\0\0")),
        ("values not in order of appearance", with_column(TWO, flights, b"[336,335]", b"\1\0")),
        ("257 values for two rows", with_column(TWO, "YEAR", many, b"\x6c\x6c\0\0")),
    ]
    wide = wide_rows(257)
    dictionary, codes = parts_of(wide)[flights]
    interleaved = bytes(codes[i // 2 + 257 * (i % 2)] for i in range(514))
    cases += [
        ("low and high bytes in turn", with_column(wide, flights, dictionary, interleaved)),
        ("high bytes first", with_column(wide, flights, dictionary, codes[257:] + codes[:257])),
    ]
    return cases


def odd_directories() -> list[tuple[str, bytes]]:
    good = independent.encode_body(TWO)
    line, _, rest = good.partition(b"\n")
    sizes = json.loads(line)

    def with_sizes(changed: object) -> bytes:
        return independent.compact(changed) + b"\n" + rest

    (d0, c0), (d1, c1) = sizes[:2]
    return [
        ("no bytes", b""),
        ("no line end", good.replace(b"\n", b"", 1)),
        ("a line end alone", b"\n"),
        ("a directory alone", line),
        ("truncated by one byte", good[:-1]),
        ("truncated in the directory", good[: len(line) // 2]),
        ("a trailing byte", good + b"\0"),
        ("a trailing line end", good + b"\n"),
        ("carriage return and line end", line + b"\r\n" + rest),
        ("a space in the directory", line.replace(b",", b", ", 1) + b"\n" + rest),
        ("a space before the directory", b" " + good),
        ("a byte order mark", b"\xef\xbb\xbf" + good),
        ("not UTF-8 in the directory", b"\xff" + good[1:]),
        ("nineteen columns", with_sizes(sizes[:-1])),
        ("twenty-one columns", with_sizes([*sizes, [0, 0]])),
        ("an empty directory", with_sizes([])),
        ("a directory that is no array", with_sizes({"YEAR": sizes[0]})),
        ("three sizes", with_sizes([[d0, c0, 0], *sizes[1:]])),
        ("a size is text", with_sizes([[str(d0), c0], *sizes[1:]])),
        ("a size is a float", with_sizes([[float(d0), c0], *sizes[1:]])),
        ("a size is true", with_sizes([[True, c0], *sizes[1:]])),
        ("a size is null", with_sizes([[None, c0], *sizes[1:]])),
        ("a size is negative", with_sizes([[d0, c0], [-1, c1 + d1 + 1], *sizes[2:]])),
        ("sizes that go back", with_sizes([[d0 + 40, c0], [d1 - 40, c1], *sizes[2:]])),
        ("a size is huge", with_sizes([[10**30, c0], *sizes[1:]])),
        ("sizes shifted by one", with_sizes([[d0 + 1, c0 - 1], *sizes[1:]])),
        ("a size is minus zero", line.replace(b"[%d," % d0, b"[-0,", 1) + b"\n" + rest),
        ("a size has a leading zero", line.replace(b"[%d," % d0, b"[0%d," % d0, 1) + b"\n" + rest),
        ("too few rows", independent.encode_body(TWO[:1])),
        ("too many rows", independent.encode_body([*TWO, row()])),
        ("no rows", independent.encode_body([])),
    ]


# Bodies that can be decoded (`decode_body` does not say that it refuses them), and yet are not the
# one encoding of their transactions.
DECODABLE = {
    "a space in the dictionary",
    "a line end in the dictionary",
    "a letter escaped",
    "a slash escaped",
    "a surrogate pair for an emoji",
    "minus zero",
    "a value twice",
    "a value twice, both used",
    "a valid value that no row has",
    "an invalid value that no row has",
    "a time that no row has",
    "values not in order of appearance",
    "257 values for two rows",
    "carriage return and line end",
    "a space in the directory",
    "a space before the directory",
    "values in an empty block",
    "an invalid value in an empty block",
}


def bad_bodies() -> list[Entry]:
    cases = [(name, 2, body) for name, body in odd_dictionaries() + odd_directories()]
    cases += [(name, 257 if len(body) > 2000 else 2, body) for name, body in odd_columns()]
    cases += [
        ("values in an empty block", 0, with_column([], "YEAR", b"[2008]", b"")),
        ("an invalid value in an empty block", 0, with_column([], "YEAR", b'["x"]', b"")),
        ("codes in an empty block", 0, with_column([], "YEAR", b"[2008]", b"\0")),
    ]
    for name, count, body in cases:
        if not rejected(independent.decode_body, body, count):
            raise AssertionError(f"{name} is a good body")
    return [
        {"name": name, "count": count, "decodable": name in DECODABLE, **packed(body)}
        for name, count, body in cases
    ]
