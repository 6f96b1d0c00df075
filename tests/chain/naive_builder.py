"""Flights, bodies and blocks made the slow way, with `independent` alone.

`block` takes overrides for single members of the header and a body of any bytes, so that a block
can be made that breaks one rule and keeps all others, its proof of work included.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from tests.chain import independent
from tests.chain.independent import COLUMNS, Row, Value

GENESIS_TIME = 1_199_145_600_000  # 2008-01-01T00:00:00Z
DIFFICULTY_BITS = 8
ZEROS = "0" * 64

EXAMPLE: Row = {
    "YEAR": 2008,
    "DAY_OF_WEEK": 4,
    "FL_DATE": "2008-01-03",
    "OP_CARRIER_AIRLINE_ID": 19393,
    "OP_CARRIER_FL_NUM": 335,
    "ORIGIN_AIRPORT_ID": 12264,
    "ORIGIN": "IAD",
    "ORIGIN_CITY_NAME": "Washington, DC",
    "ORIGIN_STATE_NM": "District of Columbia",
    "DEST_AIRPORT_ID": 15304,
    "DEST": "TPA",
    "DEST_CITY_NAME": "Tampa, FL",
    "DEST_STATE_NM": "Florida",
    "DEP_TIME": "2003",
    "DEP_DELAY": 8,
    "ARR_TIME": "2211",
    "ARR_DELAY": -14,
    "CANCELLED": 0,
    "AIR_TIME": 116,
    "timestamp": GENESIS_TIME + 1000,
}


def row(**changes: Value) -> Row:
    """The example flight with some columns changed."""
    unknown = changes.keys() - EXAMPLE.keys()
    if unknown:
        raise KeyError(f"no such columns: {unknown}")
    return {**EXAMPLE, **changes}


@dataclass(frozen=True)
class Made:
    """A block as bytes, and the header it was made from."""

    header: Row
    header_bytes: bytes
    body: bytes

    @property
    def hash(self) -> str:
        return independent.sha256_hex(self.header_bytes)


def block(
    below: Sequence[Made],
    rows: Sequence[Row],
    timestamp: int,
    body: bytes | None = None,
    bits: int = DIFFICULTY_BITS,
    exactly: bool = False,
    **members: Value,
) -> Made:
    """The mined block over `below` that holds `rows`.

    body: other bytes than the encoding of `rows`. members: header members to override. bits: zero
    bits to mine for; `exactly` makes it no more than that.
    """
    body = independent.encode_body(rows) if body is None else body
    held = sum(independent._int(each.header["transaction_count"]) for each in below)
    first = independent._int(members.get("first_transaction", held))
    header: Row = {
        "version": 1,
        "height": len(below),
        "previous_hash": below[-1].hash if below else ZEROS,
        "timestamp": timestamp,
        "first_transaction": first,
        "transaction_count": len(rows),
        "transactions_root": independent.tree_hash(independent.transactions(rows, first)).hex(),
        "body_hash": independent.sha256_hex(body),
        "summary_root": summary_root(rows),
        "history_root": independent.history_root(each.hash for each in below),
        "difficulty_bits": DIFFICULTY_BITS,
        "nonce": 0,
        **members,
    }
    return mined(header, body, bits, exactly=exactly)


def summary_root(rows: Sequence[Row]) -> str:
    """Zeros where the rows are too broken to be added up: a rule before R15 finds them."""
    try:
        return independent.tree_hash(independent.cells(rows)).hex()
    except TypeError:
        return ZEROS


def mined(header: Row, body: bytes, bits: int, *, exactly: bool) -> Made:
    nonce = 0
    while True:
        made = Made(header, independent.canonical({**header, "nonce": nonce}), body)
        found = independent.zero_bits(made.hash)
        if found == bits or (found > bits and not exactly):
            return Made({**header, "nonce": nonce}, made.header_bytes, body)
        nonce += 1


def with_column(rows: Sequence[Row], name: str, dictionary: bytes, codes: bytes) -> bytes:
    """The body of `rows`, but for the dictionary and the codes of one column."""
    line, _, rest = independent.encode_body(rows).partition(b"\n")
    parts: dict[str, tuple[bytes, bytes]] = {}
    for column, (values, places) in zip(COLUMNS, json.loads(line), strict=True):
        parts[column] = rest[:values], rest[values : values + places]
        rest = rest[values + places :]
    parts[name] = dictionary, codes
    line = independent.compact([[len(d), len(c)] for d, c in parts.values()])
    return line + b"\n" + b"".join(d + c for d, c in parts.values())
