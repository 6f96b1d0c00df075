"""Proofs that need no trust: from a transaction, an answer or the chain to a signed checkpoint.

`scripts/verify.py` checks them, and is written to be read beside this text. A proof is a file of
lines of JSON. The first says what is proved:

    flightchain_proof   1, the number of this form
    kind                "transaction", "answer", "chain" or "consistency"
    size                up to which block it goes: it covers blocks 0 to size - 1
    consistency         proof that the tree of `size` blocks is a beginning of the checkpoint's tree
    checkpoint          the signed checkpoint, with the signatures of witnesses that it has
    key                 the verifier key of the log: for comparison, as a proof cannot vouch for it
    successions         signed notes with which older keys of the log name the ones that followed

Hashes in proofs are in Base64. Their order is that of RFC 6962 section 2.1: from the leaf up.

*A transaction* has one line, with `transaction` (its canonical bytes, as a text), `path` (to
`transactions_root` of its block), `header` (canonical), and `history` (the path of the block's hash
in the tree of `size` blocks).

*An answer* has `question` (its name and parameters) and `answer` in the first line, and a line for
each block from 0 on. So no block is left out. Each line has the block's `header`, and either its
`cells`, or its whole `body`, compressed with zlib, where flights must be looked at. The cells that
are shown begin at number `first` of `count`, and `hashes` (see `merkle.range_path`) lead to
`summary_root`. If a carrier is asked for, they are its cells of the days in question and one
neighbour on each side: cells are sorted by carrier and day, so that nothing can be missing between
neighbours. Otherwise all cells are shown. A block whose cells name none of the carriers and days in
question holds no flight that counts. For that the cells must be those of the block's flights, and
sorted. The proof of an answer does not show this, the proof of the chain does: a log that signs
blocks with wrong cells can hide flights from answers, and is found out by whoever checks the chain.

*The chain* has a line with `header` and `body` for each block.

*Consistency* has one line, with `from` and `size` (numbers of blocks), `from_root`, `root`, and
`path`.

No line follows those that are named here.
"""

import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from backend.base.errors import NotFound, TryLater
from backend.base.words import counted
from backend.chain import merkle
from backend.chain.block import Block
from backend.chain.columns import transaction_bytes
from backend.chain.json_objects import Json
from backend.chain.summary import CELL_COLUMNS, Cell, cells_of
from backend.questions.answer_types import Answer, Count, Milliseconds
from backend.questions.values import NAMES, AverageDelays, FlightCounter, Question, asked_for
from backend.storage.caches import CachedBlocks
from backend.storage.codec import decoded
from backend.trust.log import CHECKPOINT_NAME, COSIGNED_NAME, VERIFIER_NAME, checkpoints
from backend.trust.log.checkpoints import Checkpoint
from backend.trust.log.notes import TIME_BYTES, Note, NoteError, encoded
from backend.trust.log.successions import successions_in
from backend.trust.log.tree import HistoryTree

FORM = 1
_ZLIB_LEVEL = 6


class Cosigner(Answer):
    """A witness that has cosigned the newest checkpoint."""

    name: str
    cosigned_at: Milliseconds


class Witnesses(Answer):
    """The witnesses that have cosigned the newest checkpoint."""

    size: Annotated[Count, Meta(description="the number of blocks in the newest checkpoint")]
    witnesses: list[Cosigner]


@dataclass(frozen=True, slots=True)
class Anchor:
    """Blocks 0 to `size` - 1, and how they hang below a signed checkpoint of `signed` blocks.

    members: those of every proof that say so.
    """

    size: int
    signed: int
    members: Json


class Prover:
    """Proves what is in `blocks`, whose tree is `tree`. folder: the chain's folder."""

    def __init__(self, folder: Path, blocks: CachedBlocks, tree: HistoryTree) -> None:
        self._folder = folder
        self._blocks = blocks
        self._tree = tree

    def checkpoint(self) -> bytes:
        """Return the newest signed checkpoint, a note, with the signatures of witnesses if any.

        Raises NotFound while there is none.
        """
        newest = self._signed(CHECKPOINT_NAME, "no checkpoint has been signed yet")
        with suppress(OSError):
            cosigned = (self._folder / COSIGNED_NAME).read_bytes()
            if cosigned.startswith(newest):
                return cosigned
        return newest

    def cosigners(self) -> Witnesses:
        """Return who has cosigned the newest checkpoint, and when. Raises NotFound, TryLater."""
        note, signed = self._newest()
        cosigners = [
            Cosigner(signature.name, 1000 * int.from_bytes(signature.signature[:TIME_BYTES], "big"))
            for signature in note.signatures
            if signature.name != signed.origin
        ]
        return Witnesses(signed.size, cosigners)

    def verifier_key(self) -> bytes:
        """Return the key that verifies checkpoints. Raises NotFound while there is none."""
        return self._signed(VERIFIER_NAME, "the log has no key yet")

    def _signed(self, name: str, if_missing: str) -> bytes:
        try:
            return (self._folder / name).read_bytes()
        except FileNotFoundError:
            raise NotFound(f"{if_missing}; the miner creates it when it starts") from None

    def anchor(self, tip: int | None = None) -> Anchor:
        """Return blocks 0 to `tip`, or all that are signed. Raises NotFound, TryLater."""
        note, signed = self._newest()
        size = signed.size if tip is None else tip + 1
        if size > signed.size:
            raise NotFound(
                f"block {tip} is not signed yet; the newest checkpoint has "
                f"{counted(signed.size, 'block')}"
            )
        path = self._tree.consistency_proof(size, signed.size)
        members = {
            "size": size,
            "consistency": _written(path),
            "checkpoint": str(note),
            "key": self.verifier_key().decode().strip(),
            "successions": successions_in(self._folder),
        }
        return Anchor(size, signed.size, members)

    def _newest(self) -> tuple[Note, Checkpoint]:
        """Return the newest checkpoint, as a note and as what it says."""
        try:
            note, checkpoint = checkpoints.in_note(self.checkpoint())
        except NoteError as error:
            reason = f"the signed checkpoint is damaged: {error}; the miner makes it again"
            raise TryLater(reason) from error
        if checkpoint.size > self._tree.size():
            raise TryLater(
                "the signed checkpoint has more blocks than the chain; see the log of the service"
            )
        return note, checkpoint

    def transaction(self, transaction_id: int, tip: int | None = None) -> Json:
        """Return the proof of one transaction. Raises NotFound, also for one above block `tip`."""
        anchor = self.anchor(tip)
        where = self._blocks.where_transaction(transaction_id)
        if where is None or where.height >= anchor.size:
            place = "block that is signed" if tip is None else f"block up to {tip}"
            raise NotFound(f"transaction {transaction_id} is not in any {place}")
        block = self._blocks.cached_block(where.height)
        columns = decoded(block)
        texts = transaction_bytes(columns, block.header.first_transaction)
        row = transaction_id - block.header.first_transaction
        return {
            **_kind("transaction"),
            "transaction": texts[row].decode(),
            "path": _written(merkle.inclusion_proof(merkle.leaf_hashes(texts), row)),
            "header": block.header_bytes.decode(),
            "history": _written(self._tree.inclusion_proof(where.height, anchor.size)),
            **anchor.members,
        }

    def consistency(self, old_size: int, size: int | None = None) -> Json:
        """Return the proof that the tree of `old_size` blocks is a beginning of that of `size`.

        size: by default that of the newest checkpoint. Raises NotFound for more than are signed.
        """
        anchor = self.anchor(None if size is None else size - 1)
        if old_size > anchor.size:
            raise NotFound(f"the log has {counted(anchor.size, 'signed block')}, not {old_size}")
        return {
            **_kind("consistency"),
            "from": old_size,
            "from_root": encoded(self._tree.root(old_size)),
            "root": encoded(self._tree.root(anchor.size)),
            "path": _written(self._tree.consistency_proof(old_size, anchor.size)),
            **anchor.members,
        }

    def answer(self, question: Question, answer: Json, anchor: Anchor) -> Iterator[Json]:
        """Yield the lines that prove an answer about the blocks of `anchor`."""
        wanted = _wanted(question)
        yield {
            **_kind("answer"),
            "question": {"name": NAMES[type(question)], **asked_for(question)},
            "answer": answer,
            **anchor.members,
        }
        for height in range(anchor.size):
            yield _evidence(self._blocks.block(height), wanted)

    def chain(self, anchor: Anchor) -> Iterator[Json]:
        """Yield the lines that prove all blocks of `anchor`."""
        yield {**_kind("chain"), **anchor.members}
        for height in range(anchor.size):
            yield _whole(self._blocks.block(height))


def _kind(kind: str) -> Json:
    return {"flightchain_proof": FORM, "kind": kind}


@dataclass(frozen=True, slots=True)
class _Wanted:
    """Flights of a carrier (None: of all) from one day to another.

    from_cells: whether their cells answer the question, so that no flight need be looked at.
    """

    carrier: int | None
    first_day: str
    last_day: str
    from_cells: bool

    def covers(self, cell: Cell) -> bool:
        is_of_carrier = self.carrier in {None, cell.OP_CARRIER_AIRLINE_ID}
        return is_of_carrier and self.first_day <= cell.FL_DATE <= self.last_day


def _wanted(question: Question) -> _Wanted:
    carrier = None if isinstance(question, FlightCounter) else question.OP_CARRIER_AIRLINE_ID
    return _Wanted(carrier, *question.interval, from_cells=isinstance(question, AverageDelays))


def _evidence(block: Block, wanted: _Wanted) -> Json:
    columns = decoded(block, CELL_COLUMNS)
    cells = cells_of(columns)
    if not wanted.from_cells and any(map(wanted.covers, cells)):
        return _whole(block)
    first, stop = 0, len(cells)
    if wanted.carrier is not None:
        keys = [(cell.OP_CARRIER_AIRLINE_ID, cell.FL_DATE) for cell in cells]
        first = max(first, bisect_left(keys, (wanted.carrier, wanted.first_day)) - 1)
        stop = min(stop, bisect_right(keys, (wanted.carrier, wanted.last_day)) + 1)
    texts = [cell.canonical() for cell in cells]
    leaves = merkle.leaf_hashes(texts)
    path = merkle.range_path(first, stop, len(leaves), lambda a, b: merkle.root(leaves[a:b]))
    return {
        "header": block.header_bytes.decode(),
        "first": first,
        "count": len(cells),
        "cells": [text.decode() for text in texts[first:stop]],
        "hashes": _written(path),
    }


def _whole(block: Block) -> Json:
    body = encoded(zlib.compress(block.body, _ZLIB_LEVEL))
    return {"header": block.header_bytes.decode(), "body": body}


def _written(path: Sequence[bytes]) -> list[str]:
    return [encoded(digest) for digest in path]
