"""Headers and blocks for the vector files, each wrong in one way and right in all others."""

import json
from collections.abc import Iterator

from tests.chain import independent
from tests.chain.independent import Rejected, Row, Value
from tests.chain.naive_builder import (
    DIFFICULTY_BITS,
    ZEROS,
    Entry,
    Made,
    block,
    packed,
    rejected,
    row,
    wide_rows,
)
from tests.chain.naive_builder import GENESIS_TIME as T
from tests.chain.spoiled_bodies import TWO, odd_columns, odd_dictionaries, odd_directories


def bad_headers(good: bytes) -> list[Entry]:
    members: Row = json.loads(good)
    first = str(members["previous_hash"])

    def member(name: str, text: str) -> bytes:
        old = independent.compact({name: members[name]})[1:-1]
        return good.replace(old, f'"{name}":{text}'.encode())

    without_nonce = {name: value for name, value in members.items() if name != "nonce"}
    texts_and_bytes = [
        ("no bytes", b""),
        ("not JSON", b"header"),
        ("an array", independent.compact(list(members.values()))),
        ("null", b"null"),
        ("an empty object", b"{}"),
        ("truncated", good[:-1]),
        ("a trailing line end", good + b"\n"),
        ("a trailing brace", good + b"}"),
        ("two headers", good + good),
        ("a leading space", b" " + good),
        ("a space after a colon", good.replace(b":", b": ", 1)),
        ("a space after a comma", good.replace(b",", b", ", 1)),
        ("indented", json.dumps(members, indent=1).encode()),
        ("members not sorted", independent.compact(dict(reversed(members.items())))),
        ("a member missing", independent.canonical(without_nonce)),
        ("a member too many", independent.canonical({**members, "zone": "UTC"})),
        ("a member too many, nested", good[:-1] + b',"zone":[[{}]]}'),
        ("a member in capitals", good.replace(b'"nonce"', b'"NONCE"')),
        ("a member twice", good[:-1] + b',"version":1}'),
        ("a member twice in place", good.replace(b'"height":2,', b'"height":2,"height":2,')),
        ("an integer as a float", member("height", "2.0")),
        ("an integer with an exponent", member("height", "2e0")),
        ("an integer as text", member("height", '"2"')),
        ("an integer as null", member("nonce", "null")),
        ("true", member("height", "true")),
        ("not a number", member("height", "NaN")),
        ("minus zero", member("height", "-0")),
        ("a leading zero", member("height", "02")),
        ("a plus sign", member("height", "+2")),
        ("beyond exact integers", member("height", str(2**53))),
        ("below exact integers", member("nonce", str(-(2**53)))),
        ("beyond 64 bits", member("timestamp", str(10**30))),
        ("5000 digits", member("nonce", "9" * 5000)),
        ("a hash as null", member("body_hash", "null")),
        ("a hash as a number", member("body_hash", "0")),
        ("a hash in an array", member("previous_hash", f'["{first}"]')),
        ("a digit escaped", member("previous_hash", f'"\\u{ord(first[0]):04x}{first[1:]}"')),
        ("half a surrogate pair", member("previous_hash", '"\\ud800"')),
        ("not UTF-8", good.replace(first.encode(), b"\xff" + first[1:].encode())),
        ("UTF-16", good.decode().encode("utf-16")),
        ("a byte order mark", b"\xef\xbb\xbf" + good),
        ("a NUL at the end", good + b"\0"),
    ]
    root = "transactions_root"
    no_hashes = [
        ("a hash of 63 digits", root, "0" * 63),
        ("a hash of 65 digits", root, "0" * 65),
        ("a hash and a line end", root, "0" * 64 + "\\n"),
        ("a hash with a sign", root, "+" + "0" * 63),
        ("a hash in wide digits", root, "０" * 64),
        ("a hash that is none", root, "z" * 64),
        ("a hash that is empty", "previous_hash", ""),
        *((f"{each} in capitals", each, "AB" * 32) for each in sorted(independent.HEADER_HASHES)),
    ]
    cases = [(name, "not a header", data) for name, data in texts_and_bytes]
    cases += [(name, f"{each} is not", member(each, f'"{text}"')) for name, each, text in no_hashes]
    for name, _, data in cases:
        if not rejected(independent.header_from, data):
            raise AssertionError(f"{name} is a good header")
    return [{"name": name, "says": says, **as_text(data)} for name, says, data in cases]


def as_text(data: bytes) -> Entry:
    try:
        return {"text": data.decode()} if b"\0" not in data else {"hex": data.hex()}
    except UnicodeDecodeError:
        return {"hex": data.hex()}


Case = tuple[str, list[str], str, list[Made], Made]  # rule, fragments, name, blocks below, block


def bad_blocks(chain: list[Made]) -> list[Entry]:
    cases = [
        *bad_header_blocks(chain),
        *bad_body_blocks(chain),
        *bad_field_blocks(chain),
        *bad_time_blocks(chain),
        *bad_root_blocks(chain),
    ]
    entries = bad_given_blocks(chain)
    for rule, says, name, below, bad in cases:
        blocks = [(each.header_bytes, each.body) for each in [*below, bad]]
        try:
            independent.verify_chain(blocks, DIFFICULTY_BITS)
        except Rejected as problem:
            if problem.rule != rule:
                raise AssertionError(f"{name}: {problem} instead of {rule}") from problem
        else:
            raise AssertionError(f"{name} is a good block")
        entries.append(
            {
                "rule": rule,
                "name": name,
                "says": says,
                "blocks_below": len(below),
                "header": bad.header_bytes.decode(),
                **packed(bad.body),
            }
        )
    return entries


def bad_given_blocks(chain: list[Made]) -> list[Entry]:
    """Good blocks (but the last) that are handed round with other header bytes or another hash."""
    below, good, tip = chain[:2], chain[2], chain[1]
    spaced = good.header_bytes.replace(b":", b": ", 1)
    new = block(below, [], T + 2000, version=2)
    cases = [
        ("the hash of the block below", good, good.header_bytes, tip.hash),
        ("a hash with all the zero bits one could wish for", good, good.header_bytes, ZEROS),
        ("the hash in capitals", good, good.header_bytes, good.hash.upper()),
        ("no hash", good, good.header_bytes, ""),
        ("the bytes of another header", good, tip.header_bytes, good.hash),
        ("the bytes and the hash of another header", good, tip.header_bytes, tip.hash),
        ("other bytes for the same header", good, spaced, good.hash),
        ("other bytes and their hash", good, spaced, independent.sha256_hex(spaced)),
        ("no bytes", good, b"", good.hash),
        ("another hash, and another version", new, new.header_bytes, ZEROS),
    ]
    entries: list[Entry] = []
    for name, made, header_bytes, block_hash in cases:
        if not rejected(independent.check_given, made.header_bytes, header_bytes, block_hash):
            raise AssertionError(f"{name} is a good block")
        entries.append(
            {
                "rule": "R0",
                "name": name,
                "says": [f"hash {block_hash} or the header's bytes"],
                "blocks_below": len(below),
                "header": made.header_bytes.decode(),
                "header_bytes": header_bytes.decode(),
                "hash": block_hash,
                **packed(made.body),
            }
        )
    return entries


def bad_header_blocks(chain: list[Made]) -> Iterator[Case]:
    below = chain[:2]
    tip = T + 1000
    flights = [row(timestamp=T + 990)]

    def over(
        rule: str, says: list[str], name: str, bits: int = DIFFICULTY_BITS, **members: Value
    ) -> Case:
        return rule, says, name, below, block(below, flights, tip, None, bits, False, **members)

    for version in (0, 2, -1):
        yield over("R1", [f"version is {version}"], f"version {version}", version=version)
    for height in (0, 1, 3, -1):
        yield over("R2", [f"height is {height}"], f"height {height}", height=height)
    for name, wrong in (("genesis", chain[0].hash), ("zeros", ZEROS)):
        yield over("R3", ["previous_hash", wrong], f"follows {name}", previous_hash=wrong)
    bad = block([], [], T, previous_hash=chain[0].hash)
    yield "R3", ["previous_hash", ZEROS], "genesis follows something", [], bad
    bad = block(below, flights, tip - 1)
    yield "R4", [f"timestamp {tip - 1}", str(tip)], "a millisecond early", below, bad
    yield "R4", ["timestamp -1"], "genesis before 1970", [], block([], [], -1)
    for bits in (7, 9, 0, 256, -1):
        mine = max(0, min(bits, 9))
        name = f"difficulty {bits}"
        yield over("R5", [f"difficulty_bits is {bits}"], name, bits=mine, difficulty_bits=bits)
    for bits in (0, 7):
        bad = block(below, flights, tip, bits=bits, exactly=True)
        yield "R6", [bad.hash, f"{bits} zero bits"], f"{bits} zero bits", below, bad
    for first in (0, 2, -1):
        says = [f"first_transaction is {first}"]
        yield over("R7", says, f"first transaction {first}", first_transaction=first)
    bad = block(below, wide_rows(1001), T + 61_500)
    yield "R8", ["1,001 transactions"], "1001 transactions", below, bad
    yield "R8", ["1 transaction;"], "a transaction in genesis", [], block([], [row()], T + 1000)
    yield (
        "R8",
        ["-1 transactions"],
        "fewer than none",
        below,
        block(below, [], tip, transaction_count=-1),
    )
    for name, wrong in (
        ("history of no blocks", independent.history_root([])),
        ("history without the tip", independent.history_root([chain[0].hash])),
        ("history in reverse", independent.history_root([chain[1].hash, chain[0].hash])),
        (
            "history of texts, not of raw hashes",
            independent.tree_hash([b.hash.encode() for b in below]).hex(),
        ),
    ):
        yield over("R9", ["history_root", wrong], name, history_root=wrong)


def bad_body_blocks(chain: list[Made]) -> Iterator[Case]:
    below = chain[:2]
    good = block(below, TWO, T + 2000)
    another = independent.encode_body(TWO[::-1])
    yield "R10", ["body_hash"], "another body", below, Made(good.header, good.header_bytes, another)
    no_body = Made(good.header, good.header_bytes, b"")
    yield "R10", ["body_hash"], "no body", below, no_body
    for name, body in [*odd_dictionaries(), *odd_columns(), *odd_directories()]:
        if name in CHOSEN_FOR_R11:
            yield "R11", ["bod"], name, below, block(below, TWO, T + 2000, body=body)


CHOSEN_FOR_R11 = {
    "a space in the dictionary",
    "a letter escaped",
    "not UTF-8",
    "a float",
    "a code beyond the values",
    "two bytes where one is enough",
    "a value twice",
    "a valid value that no row has",
    "an invalid value that no row has",
    "values not in order of appearance",
    "a trailing byte",
    "too few rows",
}


def bad_field_blocks(chain: list[Made]) -> Iterator[Case]:
    changes: list[tuple[str, Row]] = [
        ("YEAR", {"YEAR": 1899}),
        ("YEAR", {"YEAR": 2009}),
        ("DAY_OF_WEEK", {"DAY_OF_WEEK": 0}),
        ("DAY_OF_WEEK", {"DAY_OF_WEEK": 5}),
        ("FL_DATE", {"FL_DATE": "2008-02-30"}),
        ("FL_DATE", {"FL_DATE": "２００８-01-03"}),
        ("FL_DATE", {"FL_DATE": 20080103}),
        ("OP_CARRIER_AIRLINE_ID", {"OP_CARRIER_AIRLINE_ID": 0}),
        ("OP_CARRIER_AIRLINE_ID", {"OP_CARRIER_AIRLINE_ID": None}),
        ("OP_CARRIER_AIRLINE_ID", {"OP_CARRIER_AIRLINE_ID": "UA"}),
        ("OP_CARRIER_FL_NUM", {"OP_CARRIER_FL_NUM": 100_000}),
        ("OP_CARRIER_FL_NUM", {"OP_CARRIER_FL_NUM": 10**30}),
        ("ORIGIN_AIRPORT_ID", {"ORIGIN_AIRPORT_ID": -1}),
        ("ORIGIN", {"ORIGIN": "iad"}),
        ("ORIGIN", {"ORIGIN": None}),
        ("ORIGIN_CITY_NAME", {"ORIGIN_CITY_NAME": ""}),
        ("ORIGIN_CITY_NAME", {"ORIGIN_CITY_NAME": "Washing\nton"}),
        ("ORIGIN_CITY_NAME", {"ORIGIN_CITY_NAME": "x\u2028x"}),
        ("ORIGIN_CITY_NAME", {"ORIGIN_CITY_NAME": "x\u2029x"}),
        ("ORIGIN_CITY_NAME", {"ORIGIN_CITY_NAME": "\u202ex"}),
        ("ORIGIN_CITY_NAME", {"ORIGIN_CITY_NAME": "Washing\xadton"}),
        ("ORIGIN_CITY_NAME", {"ORIGIN_CITY_NAME": "\ufeffx"}),
        ("ORIGIN_CITY_NAME", {"ORIGIN_CITY_NAME": "\ue000"}),
        ("ORIGIN_CITY_NAME", {"ORIGIN_CITY_NAME": "\U0010fffd"}),
        ("ORIGIN_CITY_NAME", {"ORIGIN_CITY_NAME": "\u0958" * 51}),
        ("ORIGIN_CITY_NAME", {"ORIGIN_CITY_NAME": "\u0915\u093c" * 51}),
        ("ORIGIN_CITY_NAME", {"ORIGIN_CITY_NAME": 5}),
        ("ORIGIN_STATE_NM", {"ORIGIN_STATE_NM": "x" * 101}),
        ("DEST", {"DEST": "TAMPA"}),
        ("DEST", {"DEST": "TPÅ"}),
        ("DEST_CITY_NAME", {"DEST_CITY_NAME": None}),
        ("DEST_STATE_NM", {"DEST_STATE_NM": "\x7f"}),
        ("DEP_TIME", {"DEP_TIME": "1260"}),
        ("DEP_DELAY", {"DEP_DELAY": -10_001}),
        ("ARR_TIME", {"ARR_TIME": "2401"}),
        ("CANCELLED", {"CANCELLED": 2}),
        ("CANCELLED", {"CANCELLED": None}),
        ("AIR_TIME", {"AIR_TIME": 3001}),
        ("ARR_DELAY", {"CANCELLED": 1, "ARR_TIME": None, "AIR_TIME": None}),
        ("ARR_TIME", {"CANCELLED": 1, "ARR_DELAY": None, "AIR_TIME": None}),
        ("AIR_TIME", {"CANCELLED": 1, "ARR_TIME": None, "ARR_DELAY": None}),
    ]
    not_as_stored: list[tuple[str, Value, Value]] = [
        ("YEAR", "2008", 2008),
        ("FL_DATE", "1/3/2008", "2008-01-03"),
        ("FL_DATE", "2008-01-03 00:00", "2008-01-03"),
        ("ORIGIN_CITY_NAME", " Washington", "Washington"),
        ("ORIGIN_CITY_NAME", "Washington\xa0", "Washington"),
        ("ORIGIN_CITY_NAME", "Sa\u0303o", "São"),
        ("ORIGIN_CITY_NAME", "\u0958", "\u0915\u093c"),
        ("ORIGIN_CITY_NAME", "\u2028x", "x"),
        ("DEST_AIRPORT_ID", "", None),
        ("DEP_TIME", 2003, "2003"),
        ("DEP_TIME", "754", "0754"),
        ("ARR_DELAY", "-14", -14),
    ]
    below = chain[:2]
    for field, change in changes:
        bad = block(below, [row(), row(**change)], T + 2000)
        name = f"{field}: {independent.compact(change).decode()}"
        yield "R12", [f"transaction 2: {field}"], name, below, bad
    for field, value, meaning in not_as_stored:
        bad = block(below, [row(), row(**{field: value})], T + 2000)
        name = f"{field}: {independent.compact({field: value}).decode()}"
        says = f"transaction 2: {field} {value!a} is stored instead of {meaning!a}"
        yield "R12", [says], name, below, bad
    cancelled = row(CANCELLED=1, ARR_TIME=None, ARR_DELAY=None, AIR_TIME=None)
    for name, rows, field in (
        ("one cancelled flight arrived", [cancelled, {**cancelled, "ARR_DELAY": 5}], "ARR_DELAY"),
        ("one flight of a day has another weekday", [row(), row(DAY_OF_WEEK=3)], "DAY_OF_WEEK"),
    ):
        bad = block(below, rows, T + 2000)
        yield "R12", [f"transaction 2: {field}"], name, below, bad


def bad_time_blocks(chain: list[Made]) -> Iterator[Case]:
    below = chain[:2]
    times: list[tuple[str, list[Value]]] = [
        ("accepted after the block was sealed", [T, T + 2001]),
        ("accepted before the one above", [T + 1, T]),
        ("no acceptance time", [T, None]),
        ("acceptance time as text", [T, str(T)]),
        ("accepted before 1970", [T, -1]),
        ("accepted beyond all time", [T, 10**30]),
    ]
    for name, (one, two) in times:
        bad = block(below, [row(timestamp=one), row(timestamp=two)], T + 2000)
        yield "R13", ["transaction 2", str(two)], name, below, bad


def bad_root_blocks(chain: list[Made]) -> Iterator[Case]:
    below = chain[:2]
    late = row(ARR_DELAY=15, OP_CARRIER_AIRLINE_ID=20355)
    rows = [late, row(FL_DATE="2008-01-04", DAY_OF_WEEK=5), row()]
    leaves, cells = independent.transactions(rows, 1), independent.cells(rows)
    for name, tree_leaves in (
        ("transactions in reverse", leaves[::-1]),
        ("transactions numbered from 0", independent.transactions(rows, 0)),
        ("a transaction missing", leaves[:-1]),
        ("no transactions", []),
        ("leaves hashed twice", [independent.leaf_hash(leaf) for leaf in leaves]),
    ):
        wrong = independent.tree_hash(tree_leaves).hex()
        bad = block(below, rows, T + 2000, transactions_root=wrong)
        yield "R14", ["transactions_root", wrong], name, below, bad
    on_time = [c.replace(b'"on_time":0', b'"on_time":1') for c in cells]
    for name, tree_leaves in (
        ("cells not sorted", cells[::-1]),
        ("a cell missing", cells[:-1]),
        ("15 minutes late counted as on time", on_time),
        ("an empty cell too many", [*cells, cells[0].replace(b'"flights":1', b'"flights":0')]),
    ):
        wrong = independent.tree_hash(tree_leaves).hex()
        bad = block(below, rows, T + 2000, summary_root=wrong)
        yield "R15", ["summary_root", wrong], name, below, bad
