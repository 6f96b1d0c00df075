"""A block whose body is none, though its header commits to it: whoever reads it names it."""

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from backend.base.settings import Settings
from backend.chain.block import block_of, mined
from backend.export.parquet import tables
from backend.index.follower import IndexFollower
from backend.ledger.ledger import Ledger
from backend.mempool.recovery_view import PendingInRecovery
from backend.questions.values import AverageDelays
from backend.storage.block_store import BlockStore
from backend.trust.proofs import Anchor, Prover
from tests.cases import each_of
from tests.index.tampering import blocks_in, relinked, write_blocks
from tests.index.worlds import make_chain, plain_flight
from tests.storage.chains import damage_named

TIP, BAD = 3, 2
ASKED = AverageDelays(19393, "1900-01-01", "2199-12-31")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lying")
    make_chain(folder, [[plain_flight(), plain_flight(ARR_DELAY=height)] for height in range(TIP)])
    blocks = blocks_in(folder)
    bad = replace(blocks[BAD].header, transaction_count=3)
    blocks[BAD] = block_of(mined(bad), blocks[BAD].body)
    write_blocks(folder, relinked(blocks, BAD))
    return folder


@pytest.fixture
def ledger(folder: Path) -> Iterator[Ledger]:
    with closing(Ledger(Settings(dir=str(folder)), print)) as ledger:
        yield ledger


def exported(ledger: Ledger, store: BlockStore) -> None:
    list(tables(store, 0, TIP, lambda done, to_do: None))


def indexed(ledger: Ledger, store: BlockStore) -> None:
    with closing(IndexFollower(ledger.settings.folder, store)) as follower:
        follower.follow()


def proved(ledger: Ledger, store: BlockStore) -> None:
    list(ledger.prover.answer(ASKED, {}, Anchor(TIP + 1, TIP + 1, {})))


def proved_alone(ledger: Ledger, store: BlockStore) -> None:
    prover: Any = Prover(ledger.settings.folder, ledger.cached_blocks, ledger._tree)
    prover.anchor = lambda tip: Anchor(TIP + 1, TIP + 1, {})
    prover.transaction(2)


def recovered(ledger: Ledger, store: BlockStore) -> None:
    held: Any = SimpleNamespace(
        readable=lambda: [
            SimpleNamespace(timestamp=0, next=9, first=0, decoded=lambda: [plain_flight()] * 9)
        ]
    )
    PendingInRecovery(held).contradiction(store.place(BAD), lambda: store.block(BAD))


READERS: dict[str, Callable[[Ledger, BlockStore], object]] = {
    "the rows of a block": lambda ledger, store: ledger.encoded_block(BAD, 0, 10),
    "a flight": lambda ledger, store: ledger.transaction(2),
    "an export": exported,
    "the index": indexed,
    "the proof of an answer": proved,
    "the proof of a flight": proved_alone,
    "recovery": recovered,
}


@each_of("reader", READERS)
def test_whoever_reads_the_body_names_the_block(ledger: Ledger, reader: str) -> None:
    with closing(BlockStore(ledger.settings.folder)) as store, damage_named(BAD, "not a body"):
        READERS[reader](ledger, store)
