"""A second reading of the chain format, to check the first one against.

Written from the documents alone (the design and the docstrings of `backend.chain`), with nothing
but the standard library, and importing nothing of this project. It is naive on purpose: it works on
rows instead of columns, takes the definitions of RFC 6962 literally, recursion included, and
re-encodes everything it decodes. Slow and obvious beats fast and clever here.

Whatever is wrong is a `Rejected`, with the number of the rule that is broken, or "header".
"""

import hashlib
import json
import re
import struct
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

Value = int | str | None
Row = dict[str, Value]

# name, kind, may be null, minimum, maximum
FIELDS: tuple[tuple[str, str, bool, int, int], ...] = (
    ("YEAR", "integer", False, 1900, 2199),
    ("DAY_OF_WEEK", "integer", False, 1, 7),
    ("FL_DATE", "date", False, 0, 0),
    ("OP_CARRIER_AIRLINE_ID", "integer", False, 1, 99999),
    ("OP_CARRIER_FL_NUM", "integer", False, 1, 99999),
    ("ORIGIN_AIRPORT_ID", "integer", True, 1, 99999),
    ("ORIGIN", "code", False, 0, 0),
    ("ORIGIN_CITY_NAME", "text", False, 0, 0),
    ("ORIGIN_STATE_NM", "text", False, 0, 0),
    ("DEST_AIRPORT_ID", "integer", True, 1, 99999),
    ("DEST", "code", False, 0, 0),
    ("DEST_CITY_NAME", "text", False, 0, 0),
    ("DEST_STATE_NM", "text", False, 0, 0),
    ("DEP_TIME", "time", True, 0, 0),
    ("DEP_DELAY", "integer", True, -10000, 10000),
    ("ARR_TIME", "time", True, 0, 0),
    ("ARR_DELAY", "integer", True, -10000, 10000),
    ("CANCELLED", "integer", False, 0, 1),
    ("AIR_TIME", "integer", True, 0, 3000),
)
COLUMNS = (*(field[0] for field in FIELDS), "timestamp")
HEADER_NUMBERS = {
    "version",
    "height",
    "timestamp",
    "first_transaction",
    "transaction_count",
    "difficulty_bits",
    "nonce",
}
HEADER_HASHES = {
    "previous_hash",
    "transactions_root",
    "body_hash",
    "summary_root",
    "history_root",
}
MAX_SAFE_INTEGER = 9007199254740991
MAX_TRANSACTIONS = 1000


class Rejected(Exception):
    """What was looked at is not what it must be. `rule`: "R0" to "R15", or "header"."""

    def __init__(self, rule: str, what: str) -> None:
        super().__init__(f"{rule}: {what}")
        self.rule = rule


def demand(condition: bool, rule: str, what: str) -> None:
    if not condition:
        raise Rejected(rule, what)


# --- canonical bytes


def sha256_hex(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def canonical(value: Mapping[str, Value]) -> bytes:
    text = json.dumps(dict(value), ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return text.encode("utf-8")


def compact(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8")


def parsed(data: bytes, rule: str) -> object:
    """The JSON value that `data` is exactly the compact text of."""
    try:
        value: object = json.loads(data.decode("utf-8"))
        written = compact(value)
    except (ValueError, RecursionError) as error:
        raise Rejected(rule, f"not JSON: {error}") from error
    demand(written == data, rule, "not the one JSON text of its value")
    return value


# --- Merkle trees, RFC 6962 section 2.1


def leaf_hash(data: bytes) -> bytes:
    return hashlib.sha256(b"\x00" + data).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\x01" + left + right).digest()


def split(size: int) -> int:
    """k: the largest power of two smaller than `size`."""
    k = 1
    while k * 2 < size:
        k *= 2
    return k


def tree_hash(data: Sequence[bytes]) -> bytes:
    """MTH(D)."""
    if not data:
        return hashlib.sha256(b"").digest()
    if len(data) == 1:
        return leaf_hash(data[0])
    k = split(len(data))
    return node_hash(tree_hash(data[:k]), tree_hash(data[k:]))


# --- body


def encode_body(rows: Sequence[Row]) -> bytes:
    """The one body of these rows (a row: the twenty columns by name)."""
    directory, parts = [], b""
    for name in COLUMNS:
        values: list[Value] = []
        for row in rows:
            if row[name] not in values:
                values.append(row[name])
        codes = [values.index(row[name]) for row in rows]
        dictionary, packed = compact(values), pack_codes(codes, len(values))
        directory.append([len(dictionary), len(packed)])
        parts += dictionary + packed
    return compact(directory) + b"\n" + parts


def pack_codes(codes: Sequence[int], distinct: int) -> bytes:
    """One byte a row up to 256 values, else all low bytes and then all high bytes."""
    if distinct <= 256:
        return struct.pack(f"{len(codes)}B", *codes)
    low = struct.pack(f"{len(codes)}B", *(code % 256 for code in codes))
    high = struct.pack(f"{len(codes)}B", *(code // 256 for code in codes))
    return low + high


def decode_body(body: bytes, count: int) -> list[Row]:
    """The rows of a body. Rejects (R11) every body but the one that `encode_body` makes of them."""
    line, newline, rest = body.partition(b"\n")
    demand(bool(newline), "R11", "no directory")
    rows: list[Row] = [{} for _ in range(count)]
    sizes = _sizes(line)
    demand(sum(map(sum, sizes)) == len(rest), "R11", "the sizes do not add up to the body")
    for name, (dictionary_size, codes_size) in zip(COLUMNS, sizes, strict=True):
        dictionary, rest = rest[:dictionary_size], rest[dictionary_size:]
        packed, rest = rest[:codes_size], rest[codes_size:]
        values = _values(dictionary)
        for row, code in zip(rows, unpack_codes(packed, count, len(values)), strict=True):
            demand(code < len(values), "R11", f"code {code} of {len(values)} values")
            row[name] = values[code]
    demand(encode_body(rows) == body, "R11", "not the one encoding of these transactions")
    return rows


def _sizes(line: bytes) -> list[tuple[int, int]]:
    found = parsed(line, "R11")
    sizes: list[tuple[int, int]] = []
    for pair in found if isinstance(found, list) else []:
        shape = isinstance(pair, list) and [type(size) for size in pair] == [int, int]
        demand(shape and min(pair) >= 0, "R11", f"{pair!r} is no pair of sizes")
        sizes.append((pair[0], pair[1]))
    demand(len(sizes) == len(COLUMNS), "R11", "a directory has twenty columns")
    return sizes


def _values(dictionary: bytes) -> list[Value]:
    found = parsed(dictionary, "R11")
    demand(isinstance(found, list), "R11", "a dictionary is an array")
    values: list[Value] = list(found) if isinstance(found, list) else []
    plain = all(value is None or type(value) in {int, str} for value in values)
    demand(plain, "R11", "a dictionary holds integers, texts and null")
    return values


def unpack_codes(packed: bytes, count: int, distinct: int) -> list[int]:
    width = 1 if distinct <= 256 else 2
    demand(len(packed) == width * count, "R11", "codes of the wrong width or number")
    low = struct.unpack(f"{count}B", packed[:count])
    high = struct.unpack(f"{count}B", packed[count:]) if width == 2 else (0,) * count
    return [a + 256 * b for a, b in zip(low, high, strict=True)]


# --- transactions, cells


def transactions(rows: Sequence[Row], first: int) -> list[bytes]:
    """Canonical bytes of each transaction."""
    return [
        canonical({**row, "TRANSACTION_ID": number}) for number, row in enumerate(rows, start=first)
    ]


def cells(rows: Sequence[Row]) -> list[bytes]:
    """Canonical bytes of each (carrier, day) cell, sorted by carrier and day."""
    keys = {(_int(row["OP_CARRIER_AIRLINE_ID"]), str(row["FL_DATE"])) for row in rows}
    return [canonical(_cell(carrier, day, rows)) for carrier, day in sorted(keys)]


def _cell(carrier: int, day: str, rows: Sequence[Row]) -> Row:
    mine = [r for r in rows if r["OP_CARRIER_AIRLINE_ID"] == carrier and r["FL_DATE"] == day]
    arrivals = [_int(r["ARR_DELAY"]) for r in mine if r["ARR_DELAY"] is not None]
    departures = [_int(r["DEP_DELAY"]) for r in mine if r["DEP_DELAY"] is not None]
    return {
        "OP_CARRIER_AIRLINE_ID": carrier,
        "FL_DATE": day,
        "flights": len(mine),
        "cancelled": len([r for r in mine if r["CANCELLED"] == 1]),
        "arrived": len(arrivals),
        "departed": len(departures),
        "on_time": len([delay for delay in arrivals if delay < 15]),
        "sum_arr_delay": sum(arrivals),
        "sum_dep_delay": sum(departures),
    }


def _int(value: Value) -> int:
    if not isinstance(value, int):
        raise TypeError(f"{value!r} is not an integer")
    return value


def check_row(row: Row) -> None:
    """R12: every field valid in its stored form, and the fields in agreement."""
    for name, kind, nullable, minimum, maximum in FIELDS:
        value = row[name]
        if value is None:
            demand(nullable, "R12", f"{name} is missing")
        elif kind == "integer":
            good = isinstance(value, int) and minimum <= value <= maximum
            demand(good, "R12", f"{name} is {value!r}")
        else:
            good = isinstance(value, str) and _TEXT_CHECKS[kind](value)
            demand(good, "R12", f"{name} is {value!r}")
    day = date.fromisoformat(str(row["FL_DATE"]))
    demand(row["YEAR"] == day.year, "R12", "YEAR disagrees with FL_DATE")
    demand(row["DAY_OF_WEEK"] == day.isoweekday(), "R12", "DAY_OF_WEEK disagrees with FL_DATE")
    if row["CANCELLED"] == 1:
        arrival = (row["ARR_TIME"], row["ARR_DELAY"], row["AIR_TIME"])
        demand(arrival == (None, None, None), "R12", "a cancelled flight has no arrival")


def _is_text(value: str) -> bool:
    invisible = {"Cc", "Cf", "Co", "Cs", "Zl", "Zp"}
    forbidden = any(unicodedata.category(c) in invisible for c in value)
    normal = unicodedata.normalize("NFC", value) == value
    return 1 <= len(value) <= 100 and normal and not forbidden and value == value.strip()


def _is_date(value: str) -> bool:
    if not re.fullmatch("[0-9]{4}-[0-9]{2}-[0-9]{2}", value):
        return False
    try:
        return 1900 <= date.fromisoformat(value).year <= 2199
    except ValueError:
        return False


def _is_time(value: str) -> bool:
    return bool(re.fullmatch("([01][0-9]|2[0-3])[0-5][0-9]|2400", value))


def _is_code(value: str) -> bool:
    return bool(re.fullmatch("[A-Z0-9]{3,4}", value))


_TEXT_CHECKS = {"text": _is_text, "date": _is_date, "time": _is_time, "code": _is_code}


# --- blocks


@dataclass(frozen=True)
class Header:
    """A header as it was written: its numbers, its hashes, its own hash."""

    numbers: Mapping[str, int]
    hashes: Mapping[str, str]
    hash: str


def header_from(data: bytes) -> Header:
    """The header in `data`; Rejected("header") unless it is canonical and has the right members."""
    found = parsed(data, "header")
    demand(isinstance(found, dict), "header", "not an object")
    members: dict[str, object] = dict(found) if isinstance(found, dict) else {}
    demand(list(members) == sorted(HEADER_NUMBERS | HEADER_HASHES), "header", "other members")
    numbers = {n: v for n in HEADER_NUMBERS if type(v := members[n]) is int}
    demand(len(numbers) == len(HEADER_NUMBERS), "header", "a number is none")
    demand(max(map(abs, numbers.values())) <= MAX_SAFE_INTEGER, "header", "beyond 2^53 - 1")
    hashes = {n: v for n in HEADER_HASHES if isinstance(v := members[n], str) and _is_hash(v)}
    demand(len(hashes) == len(HEADER_HASHES), "header", "a hash is none")
    return Header(numbers, hashes, sha256_hex(data))


def _is_hash(value: str) -> bool:
    return bool(re.fullmatch("[0-9a-f]{64}", value))


def zero_bits(hash_hex: str) -> int:
    """How many zero bits the hash starts with: counted one by one."""
    bits = "".join(f"{int(digit, 16):04b}" for digit in hash_hex)
    return len(bits) - len(bits.lstrip("0"))


def history_root(hashes: Iterable[str]) -> str:
    """The tree whose leaves are the 32 raw bytes of each block's hash, from genesis up."""
    return tree_hash([bytes.fromhex(each) for each in hashes]).hex()


def verify_chain(blocks: Sequence[tuple[bytes, bytes]], difficulty_bits: int) -> None:
    """Verify (header bytes, body) from genesis up; Rejected with the first rule that is broken."""
    below: list[Header] = []
    for header_bytes, body in blocks:
        header = header_from(header_bytes)
        check_header(header, below, difficulty_bits)
        check_body(header, body)
        below.append(header)


def check_given(header: bytes, header_bytes: bytes, block_hash: str) -> None:
    """R0, of a block that is handed round with its header's bytes and its hash beside the header.

    header: the canonical bytes of the header itself.
    """
    demand(header_bytes == header, "R0", "other bytes than the header's")
    demand(block_hash == sha256_hex(header), "R0", "another hash than the header's")


def check_header(header: Header, below: Sequence[Header], difficulty_bits: int) -> None:
    """R1 to R9, against all blocks below."""
    number, hashes = header.numbers, header.hashes
    tip = below[-1] if below else None
    demand(number["version"] == 1, "R1", "version")
    demand(number["height"] == len(below), "R2", "height")
    demand(hashes["previous_hash"] == (tip.hash if tip else "0" * 64), "R3", "previous_hash")
    demand(number["timestamp"] >= (tip.numbers["timestamp"] if tip else 0), "R4", "timestamp")
    demand(number["difficulty_bits"] == difficulty_bits, "R5", "difficulty_bits")
    demand(zero_bits(header.hash) >= difficulty_bits, "R6", "proof of work")
    held = sum(each.numbers["transaction_count"] for each in below)
    demand(number["first_transaction"] == held, "R7", "first_transaction")
    most = MAX_TRANSACTIONS if below else 0
    demand(0 <= number["transaction_count"] <= most, "R8", "transaction_count")
    history = history_root(each.hash for each in below)
    demand(hashes["history_root"] == history, "R9", "history_root")


def check_body(header: Header, body: bytes) -> None:
    """R10 to R15."""
    first = header.numbers["first_transaction"]
    demand(header.hashes["body_hash"] == sha256_hex(body), "R10", "body_hash")
    rows = decode_body(body, header.numbers["transaction_count"])
    for row in rows:
        check_row(row)
    times = [0, *(row["timestamp"] for row in rows), header.numbers["timestamp"]]
    numbers = [time for time in times if isinstance(time, int)]
    demand(len(numbers) == len(times) and numbers == sorted(numbers), "R13", "acceptance times")
    root = tree_hash(transactions(rows, first)).hex()
    demand(header.hashes["transactions_root"] == root, "R14", "transactions_root")
    demand(header.hashes["summary_root"] == tree_hash(cells(rows)).hex(), "R15", "summary_root")
