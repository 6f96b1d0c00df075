"""The bytes of the chain's format, written the slow way, to check `backend.chain` against.

Written from the documents alone, with nothing of this project but the names of columns. It works
on rows instead of columns and takes the definitions of RFC 6962 literally, recursion included: slow
and obvious beats fast and clever here. What must be refused stands in the files of `vectors`, and
`scripts/verify.py` is a second reader.
"""

import hashlib
import json
import struct
from collections.abc import Mapping, Sequence

from backend.chain.columns import COLUMN_NAMES
from backend.chain.fields import FIELDS

Value = int | str | None
Row = dict[str, Value]

EXAMPLE: Row = {**{field.name: field.example for field in FIELDS}, "timestamp": 1_199_145_601_000}


def row(**changes: Value) -> Row:
    """A flight with its acceptance time, with some columns changed."""
    return {**EXAMPLE, **changes}


# --- canonical bytes


def sha256_hex(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def canonical(value: Mapping[str, Value]) -> bytes:
    text = json.dumps(dict(value), ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return text.encode("utf-8")


def compact(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8")


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
    for name in COLUMN_NAMES:
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


def zero_bits(hash_hex: str) -> int:
    """How many zero bits the hash starts with: counted one by one."""
    bits = "".join(f"{int(digit, 16):04b}" for digit in hash_hex)
    return len(bits) - len(bits.lstrip("0"))
