"""Checks the mempool's folder for `verify`: every page, record and key, and that none is missing.

No lock is taken, so a service may run at the same time.
"""

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from backend.base.errors import DamagedMempool, NeedsRepair
from backend.mempool import last_release
from backend.mempool.idempotency_keys import KeyUse
from backend.mempool.lost_files import aside_in, lost_in
from backend.mempool.mempool import FOLDER
from backend.mempool.rebuild import WHAT_NEXT, what_next
from backend.mempool.records import Record, missing_ids
from backend.mempool.store import Store
from backend.mempool.watermark import Mark, Watermark
from backend.storage.genesis import Genesis
from backend.storage.layout import MARK_NAME

MARK_MISSING = "is missing or damaged, so it is unknown whether the end of the mempool was lost"
MARK_WHAT_NEXT = "the next process that accepts or mines flights rebuilds it from the mempool"


@dataclass(frozen=True, slots=True)
class Checked:
    """Says what a mempool holds that has passed the check.

    pending: how many accepted transactions are in no block yet. keys: how many idempotency keys are
    kept. lost: messages about lost flights, and damaged files that were kept. following: the id
    after the last record; 0 without any.
    """

    pending: int
    keys: int
    lost: list[str]
    following: int = 0


def check_mempool(
    folder: Path, chain_transactions: Callable[[], int], *, has_mark: bool = True
) -> Checked:
    """Check the mempool of the chain in `folder`.

    chain_transactions: how many transactions blocks hold now. has_mark: whether there must be a
    watermark, as in any ledger. Raises DamagedMempool, which names the file and the ids.
    """
    mempool, genesis = folder / FOLDER, Genesis(folder)
    with closing(Watermark(folder, genesis)) as watermark:
        mark = watermark.read()  # before the store, so that the store is not behind
    lost = [*map(str, lost_in(mempool)), *aside_in(mempool)]
    if last_release.is_to_be_read(mempool):
        lost.append(f"{mempool} is of the last release; {what_next(mempool)}")
    try:
        with closing(Store(mempool, chain_transactions, genesis)) as store:
            records, keys = _contents(store, mark, chain_transactions)
    except NeedsRepair as error:
        raise DamagedMempool(f"{error}; {WHAT_NEXT}") from error
    mined = chain_transactions()  # after the records, so that it is not behind
    if has_mark and mark is None and (records or (folder / MARK_NAME).exists()):
        lost.append(f"{folder / MARK_NAME}: {MARK_MISSING}; {MARK_WHAT_NEXT}")
    following = records[-1].next if records else 0
    return Checked(max(0, following - mined), len(keys), lost, following)


def _contents(
    store: Store, mark: Mark | None, chain_transactions: Callable[[], int]
) -> tuple[list[Record], dict[str, KeyUse]]:
    """Read all records and keys, in whatever format. Raises NeedsRepair, DamagedMempool."""
    folder = store.path.parent
    if not last_release.is_to_be_read(folder):
        store.look(mark)
        return store.check()
    records, keys, problem = last_release.read(folder)
    missing = missing_ids(records, mark.end if mark else 0, chain_transactions())
    for ids in missing:
        problem = problem or f"{folder}: transactions {ids[0]} to {ids[-1]} are missing"
    if problem:
        raise NeedsRepair(problem)
    return records, keys
