"""Flights, bodies and blocks made the slow way, with `independent` alone, for the vector files.

`block` takes overrides for single members of the header and a body of any bytes, so that a block
can be made that breaks one rule and keeps all others, its proof of work included.
"""

import base64
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

from tests.chain import independent
from tests.chain.independent import Rejected, Row, Value

Entry = dict[str, object]

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


SPECIAL_ROWS: dict[str, Row] = {
    "plain": row(),
    "accents": row(ORIGIN_CITY_NAME="São Tomé", ORIGIN_STATE_NM="Água Grande"),
    "other scripts": row(ORIGIN_CITY_NAME="東京", DEST_CITY_NAME="القاهرة"),
    "beyond the basic plane": row(ORIGIN_CITY_NAME="Airport ✈ 😀"),
    "no-break space": row(ORIGIN_CITY_NAME="a\xa0b"),
    "100 characters that were 50 before normalisation": row(ORIGIN_CITY_NAME="\u0915\u093c" * 50),
    "quote and backslash": row(ORIGIN_CITY_NAME='"Bob\\Hope" / Burbank', DEST_CITY_NAME='\\"'),
    "early both ways": row(DEP_DELAY=-7, ARR_DELAY=-60),
    "midnight": row(DEP_TIME="0000", ARR_TIME="2400", ARR_DELAY=0),
    "leading zeros": row(DEP_TIME="0007", ARR_TIME="0101"),
    "airports without numbers": row(ORIGIN_AIRPORT_ID=None, DEST_AIRPORT_ID=None),
    "diverted": row(ARR_TIME=None, ARR_DELAY=None, AIR_TIME=None),
    "cancelled": row(
        CANCELLED=1, DEP_TIME=None, DEP_DELAY=None, ARR_TIME=None, ARR_DELAY=None, AIR_TIME=None
    ),
    "cancelled after departure": row(CANCELLED=1, ARR_TIME=None, ARR_DELAY=None, AIR_TIME=None),
    "least of everything": row(
        YEAR=1900,
        DAY_OF_WEEK=1,
        FL_DATE="1900-01-01",
        OP_CARRIER_AIRLINE_ID=1,
        OP_CARRIER_FL_NUM=1,
        ORIGIN_AIRPORT_ID=1,
        ORIGIN="000",
        ORIGIN_CITY_NAME="x",
        DEST_AIRPORT_ID=1,
        DEP_DELAY=-10000,
        ARR_DELAY=-10000,
        AIR_TIME=0,
        timestamp=0,
    ),
    "most of everything": row(
        YEAR=2199,
        DAY_OF_WEEK=2,
        FL_DATE="2199-12-31",
        OP_CARRIER_AIRLINE_ID=99999,
        OP_CARRIER_FL_NUM=99999,
        ORIGIN_AIRPORT_ID=99999,
        ORIGIN="ZZZZ",
        ORIGIN_CITY_NAME="W" * 100,
        DEST_AIRPORT_ID=99999,
        DEP_DELAY=10000,
        ARR_DELAY=10000,
        AIR_TIME=3000,
        timestamp=2**53 - 1,
    ),
}


def wide_rows(count: int) -> list[Row]:
    """Rows with `count` distinct flight numbers and acceptance times, a few days and carriers."""
    days = (("2008-01-03", 4), ("2008-01-04", 5), ("2008-01-05", 6))
    return [
        row(
            FL_DATE=days[i % 3][0],
            DAY_OF_WEEK=days[i % 3][1],
            OP_CARRIER_AIRLINE_ID=(19393, 20355)[i // 2 % 2],
            OP_CARRIER_FL_NUM=1 + 7 * i,
            ARR_DELAY=i % 40 - 20,
            timestamp=GENESIS_TIME + 60_000 + i,
        )
        for i in range(count)
    ]


SEVERAL = ("accents", "quote and backslash", "diverted", "cancelled", "midnight", "early both ways")


def several_rows(start: int) -> list[Row]:
    return [{**SPECIAL_ROWS[n], "timestamp": start + i // 2} for i, n in enumerate(SEVERAL)]


def packed(body: bytes) -> Entry:
    if len(body) <= 2000:
        return {"body": base64.b64encode(body).decode()}
    return {"body_zlib": base64.b64encode(zlib.compress(body, 9)).decode()}


def rejected(verify: object, *arguments: object) -> bool:
    if not callable(verify):
        raise TypeError(verify)
    try:
        verify(*arguments)
    except Rejected:
        return True
    return False
