"""Makes what a log can sign that lies: other trees, other blocks, other answers."""

import base64
import hashlib
import json
import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import verify
from backend.chain import merkle
from backend.chain.block import Block, block_of, mined
from backend.chain.columns import COLUMN_NAMES, decode_body, directory_of
from backend.trust.log.checkpoints import Checkpoint
from backend.trust.log.secret_keys import log_key
from tests.chain.inclusion import consistency_proof
from tests.index.tampering import blocks_in, relinked
from tests.trust.proofs.proofs import Json, Proofs

STRANGE_QUESTIONS: list[tuple[str, dict[str, Any]]] = [
    ("delays", {"OP_CARRIER_AIRLINE_ID": "19393"}),
    ("delays", {"OP_CARRIER_AIRLINE_ID": None}),
    ("delays", {"OP_CARRIER_AIRLINE_ID": True}),
    ("delays", {"ORIGIN": "LAX"}),
    ("count", {"OP_CARRIER_AIRLINE_ID": None}),
    ("count", {"OP_CARRIER_AIRLINE_ID": 19393}),
    ("count", {"ORIGIN_CITY_NAME": None}),
    ("count", {"ORIGIN_CITY_NAME": 7}),
    ("count", {"INITIAL_DATE": 20150102}),
    ("legs", {"OP_CARRIER_FL_NUM": "7"}),
    ("legs", {"OP_CARRIER_FL_NUM": None}),
    ("legs", {"FL_DATE": None}),
    ("legs", {"OP_CARRIER_AIRLINE_ID": None}),
    ("legs", {"INITIAL_DATE": "2015-01-01", "FINAL_DATE": "2015-01-08"}),
    ("legs", {"name": "no question"}),
]
STRANGE_MEMBERS: list[Json] = [
    {"root": "AAAA"},
    {"root": 43 * "A" + "="},
    {"root": None},
    {"from_root": 43 * "A" + "="},
    {"from": True},
    {"from": "9"},
    {"size": True},
    {"size": "31"},
    {"size": None},
    {"flightchain_proof": 2},
]
STRANGE_VALUES = ["7.0", "7.5", "1e3", "-0", "true", "[]", '{"x":1}', " 7", '"\\u0041"', "NaN"]
NO_LINE = "a line is .* not as in a proof"
MORE_THAN_AN_ANSWER: list[Json] = [{"x": "x"}, {"count": True}, {"x": None}]
CARRIER = "OP_CARRIER_AIRLINE_ID"
Cells = list[Json]
STRANGE_CELLS: list[tuple[str, Callable[[Cells], Cells]]] = [
    ("it is damaged", lambda cells: [{**cell, CARRIER: str(cell[CARRIER])} for cell in cells]),
    ("it is damaged", lambda cells: [{**cell, "FL_DATE": 20150102} for cell in cells]),
    ("its cells are out of order", lambda cells: cells[::-1]),
    ("its cells are out of order", lambda cells: [*cells, cells[-1]]),
]


class Forger:
    """Has the key of the log in `folder`, and so can sign whatever it likes."""

    def __init__(self, folder: Path) -> None:
        self.key = log_key(folder)
        self.blocks = blocks_in(folder)

    @property
    def origin(self) -> str:
        return self.key.verifier.name

    def note(self, size: int, root: bytes) -> str:
        """Sign a checkpoint."""
        return str(self.key.note(str(Checkpoint(self.origin, size, root))))

    def head(self, leaves: Sequence[bytes], **members: Any) -> Json:
        """Returns a proof's first line, under a checkpoint of the tree of leaf hashes."""
        return {
            "flightchain_proof": 1,
            "size": len(leaves),
            "consistency": [],
            "checkpoint": self.note(len(leaves), merkle.root(leaves)),
            "key": str(self.key.verifier),
            "successions": [],
            **members,
        }

    def consistency(self, leaves: Sequence[bytes], old: int) -> Json:
        """The proof that the tree of these leaf hashes begins with the tree of the first ones."""
        return self.head(
            leaves,
            kind="consistency",
            **{"from": old},
            from_root=text(merkle.root(leaves[:old])),
            root=text(merkle.root(leaves)),
            path=[text(digest) for digest in consistency_proof(leaves, old)],
        )

    def leaves(self) -> list[bytes]:
        return merkle.leaf_hashes(bytes.fromhex(block.hash) for block in self.blocks)

    def chain(self, **members: Any) -> list[Json]:
        """Returns a proof with all blocks; by default of the chain."""
        return [self.head(self.leaves(), **{"kind": "chain", **members}), *map(whole, self.blocks)]

    def mine(self, height: int, body: bytes, **changes: Any) -> None:
        """Give a block another body and header, and mine what is above it again."""
        digest = hashlib.sha256(body).hexdigest()
        header = replace(self.blocks[height].header, body_hash=digest, **changes)
        self.blocks[height] = block_of(mined(header), body)
        self.blocks = relinked(self.blocks, height)

    def with_shifted_values(self) -> list[Json]:
        """A chain whose texts that are hashed are those of the rows, and its values others.

        A dictionary has a list of two texts in it, so that whoever splits it at commas counts one
        value more. Each delay would be the one of the next row.
        """
        block = self.blocks[1]
        columns = columns_in(block)
        late = columns["ARR_DELAY"]
        cells = verify.cells_of({**columns, "ARR_DELAY": [*late[1:], 7]})
        root = merkle.root(merkle.leaf_hashes(verify.canonical(cell).encode() for cell in cells))
        values = in_json([["a", "b"], 0, *late, 7])
        body = with_column(block.body, "ARR_DELAY", values, bytes(range(3, 3 + len(late))))
        self.mine(1, body, summary_root=root.hex())
        return self.chain()

    def with_value(self, value: str) -> list[Json]:
        """A chain with a dictionary that has one value more, which no row uses."""
        block = self.blocks[1]
        column = decode_body(block.body, block.header.transaction_count)["ARR_DELAY"]
        values = f"{in_json(list(column.values))[:-1]},{value}]"
        self.mine(1, with_column(block.body, "ARR_DELAY", values, bytes(column.codes)))
        return self.chain()

    def with_cells(self, question: Json, change: Callable[[Cells], Cells]) -> list[Json]:
        """The proof of an answer in which a block has other cells."""
        block = self.blocks[1]
        texts = list(map(verify.canonical, change(verify.cells_of(columns_in(block)))))
        root = merkle.root(merkle.leaf_hashes(text.encode() for text in texts))
        self.mine(1, block.body, summary_root=root.hex())
        proof = self.chain(kind="answer", question=question, answer={})
        shown = {"first": 0, "count": len(texts), "cells": texts, "hashes": []}
        proof[2] = {"header": proof[2]["header"], **shown}
        lines = ((line, json.loads(line["header"])) for line in [proof[1], *proof[3:]])
        proof[0]["answer"] = verify.answer_to(question, lines)
        return proof

    def with_header(self, **changes: Any) -> list[Json]:
        """A chain whose newest block has another header, which is not mined again."""
        newest = self.blocks[-1]
        self.blocks[-1] = block_of(replace(newest.header, **changes), newest.body)
        return self.chain()


def with_more(proofs: Proofs) -> Iterator[tuple[str, list[Json]]]:
    """Proofs with a hash that leads nowhere, or with a value that is in no block."""
    (growth,) = proofs["consistency"]
    yield "do not begin with", [{**growth, "path": [text(bytes(32)), *growth["path"]]}]
    (proof,) = proofs["transaction"]
    changed = proof["transaction"].replace('"CANCELLED":0', '"CANCELLED":1')
    yield "it is not in block", [{**proof, "transaction": changed}]


def with_other_cells(
    blocks: Sequence[Block], proof: list[Json]
) -> Iterator[tuple[str, list[Json]]]:
    """Proofs of an answer in which a block that has no flights that count shows other cells."""
    asked, size = proof[0]["question"], proof[0]["size"]
    low, high = ((asked[CARRIER], asked[day]) for day in ("INITIAL_DATE", "FINAL_DATE"))
    for height in range(size):
        cells = verify.cells_of(columns_in(blocks[height]))
        keys = [(cell[CARRIER], cell["FL_DATE"]) for cell in cells]
        at = bisect_left(keys, low)
        if 0 < at == bisect_right(keys, high) < len(cells):
            break
    else:
        return
    texts = list(map(verify.canonical, cells))
    more = verify.canonical({**cells[-1], CARRIER: 99999})
    other = verify.canonical({**cells[0], "flights": 99})
    leaves = merkle.leaf_hashes(cell.encode() for cell in texts)
    none, all_of_them = "the hashes beside cells do not fit", (0, len(texts))
    for reason, first, shown, (start, end), beside in (
        (none, -1, [*texts[:at], more], (0, at), []),
        (none, 0, [*texts, more], all_of_them, []),
        (none, 0, texts, all_of_them, [bytes(32)]),
        ("has other cells than these", 0, [other, *texts[1:]], all_of_them, []),
        ("cells may be missing", at - 1, texts[at - 1 : at], (at - 1, at), []),
        ("cells may be missing", at, texts[at : at + 1], (at, at + 1), []),
    ):
        path = merkle.range_path(start, end, len(leaves), lambda a, b: merkle.root(leaves[a:b]))
        line = {"header": proof[height + 1]["header"], "count": len(texts), "first": first}
        line |= {"cells": shown, "hashes": list(map(text, [*path, *beside]))}
        yield reason, [*proof[: height + 1], line, *proof[height + 2 :]]


def lies(folder: Path, proofs: Proofs) -> Iterator[tuple[str, list[Json]]]:
    """Proofs that everybody must refuse, though the log has signed them, and why, as a pattern."""
    forger = Forger(folder)
    leaves, (_, *blocks) = forger.leaves(), forger.chain()
    for kind, changes in STRANGE_QUESTIONS:
        asked = proofs[kind][0]["question"]
        questions = {**asked, **changes}, {"name": asked["name"]}
        answers = {"count": 0}, {"count": 0, "flights": []}, proofs[kind][0]["answer"]
        for question, answer in product(questions, answers):
            head = forger.head(leaves, kind="answer", question=question, answer=answer)
            yield f"does not have these parameters|{NO_LINE}", [head, *blocks]
    for change in STRANGE_MEMBERS:
        yield "", [{**proofs["consistency"][0], **change}]
    yield "block 1: column ARR_DELAY", Forger(folder).with_shifted_values()
    for value in STRANGE_VALUES:
        yield "block 1: column ARR_DELAY", Forger(folder).with_value(value)
    for reason, changed in STRANGE_CELLS:
        yield reason, Forger(folder).with_cells(proofs["delays"][0]["question"], changed)
    yield from with_more(proofs)
    yield from with_other_cells(forger.blocks, proofs["delays"])
    other = forger.consistency([*leaves[:-1], merkle.leaf_hash(b"other")], 3)
    signed = {"checkpoint": proofs["consistency"][0]["checkpoint"]}
    yield "does not lead to the signed checkpoint", [other | signed]
    for header in ({"difficulty_bits": 99}, {"difficulty_bits": -1}, {"transaction_count": 1001}):
        yield "no proof of work|unknown version", Forger(folder).with_header(**header)
    for kind in ("transaction", "consistency", "delays", "legs"):
        yield "", [*proofs[kind], {}]
    for kind, more in product(("delays", "count", "legs"), MORE_THAN_AN_ANSWER):
        head, *rest = proofs[kind]
        wrong = {**head, "answer": {**head["answer"], **more}}
        yield f"the answer is wrong|{NO_LINE}", [wrong, *rest]
    for size, root in ((0, merkle.EMPTY_ROOT), (-5, bytes(32))):
        checkpoint = {"checkpoint": forger.note(size, root)}
        yield "", [forger.consistency(leaves, 9) | checkpoint]


def columns_in(block: Block) -> Json:
    columns = decode_body(block.body, block.header.transaction_count)
    return {name: columns[name].expanded() for name in COLUMN_NAMES}


def in_json(values: list[Any]) -> str:
    return json.dumps(values, ensure_ascii=False, separators=(",", ":"))


def with_column(body: bytes, name: str, values: str, codes: bytes) -> bytes:
    """Give a column of a body another dictionary and other codes."""
    parts = [(body[at:codes_at], body[codes_at:end]) for at, codes_at, end in directory_of(body)]
    parts[COLUMN_NAMES.index(name)] = (values.encode(), codes)
    sizes = in_json([[len(dictionary), len(numbers)] for dictionary, numbers in parts])
    return sizes.encode() + b"\n" + b"".join(dictionary + numbers for dictionary, numbers in parts)


def whole(block: Block) -> Json:
    """Returns the line of a proof that holds a block with its body."""
    return {"header": block.header_bytes.decode(), "body": text(zlib.compress(block.body))}


def text(data: bytes) -> str:
    return base64.b64encode(data).decode()
