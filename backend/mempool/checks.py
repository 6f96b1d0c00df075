"""Checks the mempool's folder for `verify`: every page, record and key, and that none is missing.

No lock is taken, so a service may run at the same time.
"""

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from backend.base.errors import DamagedMempool, NeedsRepair
from backend.mempool import last_release
from backend.mempool.database import FILE_NAME
from backend.mempool.idempotency_keys import KeyUse
from backend.mempool.lost_files import aside_in, aside_words, lost_in, lost_words
from backend.mempool.mempool import FOLDER
from backend.mempool.rebuild import END_MISSING
from backend.mempool.records import Record
from backend.mempool.store import Store, missing_ids, require_blocks
from backend.mempool.watermark import NAME as MARK_NAME
from backend.mempool.watermark import Mark, Watermark
from backend.storage.genesis import Genesis

WHAT_NEXT = "the next process that accepts or mines flights repairs it, and says what is lost"
MARK_MISSING = "is missing or damaged, so nobody can tell whether the end of the mempool was lost"
MARK_WHAT_NEXT = "the next process that accepts or mines flights rebuilds it from the mempool"
OF_LAST_RELEASE = (
    "is of the last release; the next process that accepts or mines flights takes it over"
)


@dataclass(frozen=True, slots=True)
class Checked:
    """What a mempool holds that has passed the check.

    pending: how many accepted transactions are in no block yet. void: how many of them stand for
    lost flights. keys: how many idempotency keys are kept whose records are removed. lost: messages
    about lost flights, a store that lacks its end, and damaged files that were kept.
    """

    pending: int
    void: int
    keys: int
    lost: list[str]


def check_mempool(folder: Path, chain_transactions: Callable[[], int]) -> Checked:
    """Check the mempool of the chain in `folder`.

    chain_transactions: how many transactions blocks hold now. Raises DamagedMempool, which names
    the file and the ids.
    """
    mempool, genesis = folder / FOLDER, Genesis(folder)
    with closing(Watermark(folder, genesis)) as watermark:
        mark = watermark.read()  # before the store, so that the store is not behind
        is_mark_there = watermark.is_there()
    lost = [lost_words(*each) for each in lost_in(mempool)]
    lost += map(aside_words, aside_in(mempool))
    if last_release.is_to_be_read(mempool):
        lost.append(f"{mempool} {OF_LAST_RELEASE}")
    path = mempool / FILE_NAME
    try:
        records, keys = _contents(mempool, chain_transactions, genesis)
        mined = chain_transactions()  # after the records, so that it is not behind
        following = _require_all(path, records, mark or Mark(), mined)
    except NeedsRepair as error:
        raise DamagedMempool(f"{error}; {WHAT_NEXT}") from error
    if mark is None and (is_mark_there or records):
        lost.append(f"{folder / MARK_NAME}: {MARK_MISSING}; {MARK_WHAT_NEXT}")
    if mark is not None and following < mark.stored:
        lost.append(f"{path}: {END_MISSING}")
    void = sum(max(0, r.next - max(r.first, mined)) for r in records if r.is_void)
    return Checked(max(0, following - mined), void, len(keys), lost)


def _contents(
    folder: Path, chain_transactions: Callable[[], int], genesis: Genesis
) -> tuple[list[Record], dict[str, KeyUse]]:
    """Read all records and keys, in whatever format."""
    if last_release.is_to_be_read(folder):
        records, keys, problem = last_release.read(folder)
        if problem:
            raise NeedsRepair(problem)
        return records, keys
    with closing(Store(folder, chain_transactions, genesis)) as store:
        return store.check()


def _require_all(path: Path, records: list[Record], mark: Mark, mined: int) -> int:
    """Return the id after the last record. Raises DamagedMempool if a transaction is nowhere.

    mined: how many transactions blocks hold.
    """
    for ids in missing_ids(records, mark.next, mined):
        require_blocks(ids[0], max([mark.mined, *(record.mined for record in records)]))
        raise NeedsRepair(f"{path}: acknowledged transactions {ids[0]} to {ids[-1]} are missing")
    return records[-1].next if records else 0
