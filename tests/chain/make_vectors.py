"""Write `vectors/*.json`. Run by hand, once for each case that is added:

    python -m tests.chain.make_vectors

Everything is made by `independent` and `naive_builder`, never by `backend.chain`, and what must be
rejected is tried on `independent` before it is written. The tests only read the files. A file that
changes in any other way than by added cases means that the format has changed.

Bytes are hexadecimal (hashes, proofs), text (headers), or base64 (bodies; the large ones
deflated first, then called `body_zlib`).
"""

import json
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from tests.chain import independent
from tests.chain.independent import COLUMNS, Row
from tests.chain.naive_builder import (
    DIFFICULTY_BITS,
    SPECIAL_ROWS,
    Entry,
    Made,
    block,
    packed,
    row,
    several_rows,
    wide_rows,
)
from tests.chain.naive_builder import GENESIS_TIME as T
from tests.chain.spoiled_blocks import bad_blocks, bad_headers
from tests.chain.spoiled_bodies import bad_bodies
from tests.chain.spoiled_proofs import bad_consistency, bad_inclusion, merkle

FOLDER = Path(__file__).parent / "vectors"


def main() -> None:
    chain = good_chain()
    write("canonical", canonical_objects())
    write("transactions", transactions())
    write("merkle", merkle())
    write("bad_inclusion", bad_inclusion())
    write("bad_consistency", bad_consistency())
    write("bodies", bodies())
    write("bad_bodies", bad_bodies())
    write("chain", chain_entries(chain))
    write("bad_headers", bad_headers(chain[2].header_bytes))
    write("bad_blocks", bad_blocks(chain))


def write(name: str, entries: Sequence[Entry] | Entry) -> None:
    text = shown(entries, "") + "\n"
    invisible = {c for c in text if not c.isprintable() and c != "\n"}
    for each in invisible:
        text = text.replace(each, json.dumps(each)[1:-1])
    (FOLDER / f"{name}.json").write_text(text, encoding="utf-8")


def shown(value: object, margin: str) -> str:
    """JSON with an item a line, but what fits on a line in one."""
    line = json.dumps(value, ensure_ascii=False)
    if len(line) < 100 or not isinstance(value, list | dict):
        return line
    inner = margin + " "
    if isinstance(value, dict):
        items = [f"{json.dumps(name)}: {shown(item, inner)}" for name, item in value.items()]
    else:
        items = [shown(item, inner) for item in value]
    left, right = "{}" if isinstance(value, dict) else "[]"
    return f"{left}\n{inner}" + f",\n{inner}".join(items) + f"\n{margin}{right}"


def canonical_objects() -> list[Entry]:
    controls = "".join(map(chr, range(0x20)))
    cases: list[tuple[str, Row]] = [
        ("nothing", {}),
        ("sorted by name", {"b": 1, "a": 2, "B": 3, "_": 4, "AA": 5, "A": 6}),
        ("the largest integers", {"least": -(2**53) + 1, "most": 2**53 - 1, "zero": 0}),
        ("null and empty text", {"null": None, "text": ""}),
        ("control characters", {"text": controls}),
        ("delete and line separator stand for themselves", {"text": "\x7f\u2028"}),
        ("quote, backslash and slash", {"text": 'a"b\\c/d'}),
        ("beyond the basic plane", {"text": "😀 \U0010ffff"}),
        ("no normalisation", {"composed": "\u00e9", "decomposed": "e\u0301"}),
        ("text like a number", {"text": "-11.00"}),
    ]
    return [
        {"name": name, "value": value, "canonical": independent.canonical(value).decode()}
        for name, value in cases
    ]


def transactions() -> list[Entry]:
    entries: list[Entry] = []
    for number, (name, flight) in enumerate(SPECIAL_ROWS.items()):
        independent.check_row(flight)
        transaction_id = 2**53 - 1 if name == "most of everything" else number
        data = independent.transactions([flight], transaction_id)[0]
        entries.append(
            {
                "name": name,
                "transaction": {**flight, "TRANSACTION_ID": transaction_id},
                "canonical": data.decode(),
                "leaf_hash": independent.leaf_hash(data).hex(),
            }
        )
    return entries


def bodies() -> list[Entry]:
    cases = {
        "empty": [],
        "one": [row()],
        "two alike": [row(), row()],
        "several": several_rows(T),
        "256 values, one byte each": wide_rows(256),
        "257 values, two bytes each": wide_rows(257),
    }
    return [body_entry(name, rows) for name, rows in cases.items()]


def body_entry(name: str, rows: list[Row]) -> Entry:
    body = independent.encode_body(rows)
    cells = independent.cells(rows)
    return {
        "name": name,
        "count": len(rows),
        "columns, as runs of [value, rows]": {
            column: [[value, len(list(run))] for value, run in groupby(r[column] for r in rows)]
            for column in COLUMNS
        },
        **packed(body),
        "body_hash": independent.sha256_hex(body),
        "first_transaction": 7,
        "transactions_root": independent.tree_hash(independent.transactions(rows, 7)).hex(),
        "cells": [cell.decode() for cell in cells],
        "summary_root": independent.tree_hash(cells).hex(),
    }


def good_chain() -> list[Made]:
    """Genesis, one transaction, several, three hundred, none."""
    chain = [block([], [], T)]
    chain.append(block(chain, [row(timestamp=T + 900)], T + 1000))
    chain.append(block(chain, several_rows(T + 1000), T + 60_000))
    chain.append(block(chain, wide_rows(300), T + 60_299))
    chain.append(block(chain, [], T + 60_299))
    independent.verify_chain([(each.header_bytes, each.body) for each in chain], DIFFICULTY_BITS)
    return chain


def chain_entries(chain: Sequence[Made]) -> Entry:
    blocks = [{"header": b.header_bytes.decode(), "hash": b.hash, **packed(b.body)} for b in chain]
    return {"difficulty_bits": DIFFICULTY_BITS, "blocks": blocks}


if __name__ == "__main__":
    main()
