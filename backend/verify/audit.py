"""Verifies a chain: derives everything again from the bytes on the disk, and compares.

Each block is checked first: its entry in the table of heights, framing and checksum, header, links,
proof of work, every transaction, roots, summaries, ids (rules R1 to R15). Then the index is
compared with the chain. Then the receipts of a cluster, flights that are in no block yet, the
idempotency keys, the tokens and what the log has signed are checked.
"""

from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from backend.base.errors import Damage, TryLater
from backend.base.progress import Progress, no_progress
from backend.base.words import COMMAND, counted
from backend.index.index_file import OUTDATED, difference_from
from backend.index.table_checks import PARTS, Examined, IndexCheck
from backend.mempool import check_mempool
from backend.storage.block_store import BlockStore
from backend.storage.codec import decoded
from backend.storage.layout import MARK_NAME, is_backup
from backend.storage.receipt_store import Receipts
from backend.storage.tokens import Tokens
from backend.trust.log.log_checks import check_log
from backend.verify.chain_check import checked, joined, mapping, stretches_of
from backend.verify.folder_check import require_chain, require_one_ledger
from backend.verify.folder_files import unusable


@dataclass(frozen=True, slots=True)
class Verified:
    """A chain that has passed all checks.

    index: a message about the index. mempool: a message about all the rest. is_index_whole: whether
    the index was checked, and holds all blocks.
    """

    height: int
    transactions: int
    tip_hash: str
    index: str
    mempool: str
    is_index_whole: bool


def verify(
    folder: Path,
    progress: Progress = no_progress,
    processes: int = 1,
    *,
    first: int = 0,
    with_index: bool = True,
    with_accepted: bool = True,
) -> Verified:
    """Check the chain in `folder`, then its index, then its mempool, keys and tokens.

    processes: how many processes check blocks at the same time, while this one adds up the index,
    and then its tables; more than one only where no other thread runs. first: the lowest block;
    those below it were verified before. with_index: whether the index is checked, which needs all
    blocks. with_accepted: whether pending flights, keys, tokens and the log are.

    Raises DamagedBlock, RuleViolation or Damage naming the first block, transaction and field that
    are wrong; the chain comes first, because the index can be rebuilt. Blocks that are sealed
    meanwhile are not checked.
    """
    if problems := unusable(folder, blocks_only=not (with_index or with_accepted)):
        raise Damage(problems[0])
    require_chain(folder)
    with closing(BlockStore(folder)) as store, ExitStack() as opened:
        height = store.height()
        index = opened.enter_context(IndexCheck(folder)) if with_index else None
        if first <= height:
            _verify_blocks(folder, store, index, progress, processes, range(first, height + 1))
        else:
            require_one_ledger(folder, store, accepts_loss=False)
        tip = store.place(height)
        words = (
            _index_words(index, height)
            if index and (index.position or not is_backup(folder))
            else "",
            accepted_words(folder, store) if with_accepted else "",
        )
        is_whole = bool(index and index.position and index.position.height == height)
        return Verified(height, tip.next_transaction, tip.hash.hex(), *words, is_whole)


def _verify_blocks(
    folder: Path,
    store: BlockStore,
    index: IndexCheck | None,
    progress: Progress,
    processes: int,
    heights: range,
) -> None:
    """Check blocks, and the index if it is given, which needs all blocks."""
    stretches = list(stretches_of(store, heights[-1], heights[0]))
    processes = min(processes, len(stretches))
    summand = index.expected.sum if index else None
    with mapping(processes) as map_all:
        results = map_all(partial(checked, folder, summand), stretches)
        examined = _examined(index, store)  # while other processes check blocks
        chain = joined(stretches, results, heights[-1], progress)
        require_one_ledger(folder, store, accepts_loss=False)
        if isinstance(examined, TryLater):
            raise examined
        problem = _index_problem(index, store, chain.sum, examined) if index else ""
    if index and index.position and not problem:
        index.close()  # SQLite must not be open where a process forks that opens it, too
        with mapping(processes) as map_all:
            problems = map_all(partial(_wrong_part_in, folder, index.path), PARTS)
            problem = next(filter(None, problems), "")
    if problem:
        raise Damage(f"the index is wrong: {problem}; run `{COMMAND} reindex`")


def accepted_words(folder: Path, store: BlockStore) -> str:
    """Check the mempool, its keys, the tokens and the log. Returns a message; raises Damage."""
    with closing(Receipts(folder, store)) as receipts:
        is_in_cluster = receipts.is_there()  # then the mempool numbers what this node accepted
        entries = receipts.check() if is_in_cluster else 0
        mined = receipts.own_mined if is_in_cluster else store.transactions
        mempool = check_mempool(folder, mined, has_mark=not is_backup(folder))
    tokens = len(Tokens(folder).all())
    words = (
        f"{counted(mempool.pending, 'transaction is', 'transactions are')} pending; "
        f"{counted(mempool.keys, 'idempotency key')} and {counted(tokens, 'token')} are as they "
        "were written"
    )
    if entries:
        words += f"; the receipts of {counted(entries, 'block')} fit"
    signed = check_log(folder, store)
    if is_backup(folder):
        signed = f"this is a backup, which has no index, no {MARK_NAME} and no key of the log"
    return "; but ".join([f"{words}; {signed}", *mempool.lost])


def _examined(index: IndexCheck | None, store: BlockStore) -> Examined | TryLater:
    """Return what the index holds by itself, or why that cannot be told now.

    It is nothing if the index is missing or ahead of the chain.
    """
    position = index.position if index else None
    if index is None or position is None or position.height > store.height():
        return Examined()
    try:
        return index.add_up()
    except TryLater as error:  # errors of blocks come first
        return error


def _index_problem(
    index: IndexCheck, store: BlockStore, expected_sum: int, examined: Examined
) -> str:
    """Return what is wrong with the index of a sound chain, in words; "" if nothing is."""
    if index.problem or index.position is None:
        return index.problem
    problem = ""
    if index.position.height <= store.height() and examined.sum != expected_sum:
        problem = _wrong_flight(index, store)
    return problem or difference_from(store, index.position) or examined.problem


def _wrong_part_in(folder: Path, path: Path, part: str) -> str:
    """Call `wrong_part` with a store and an index of its own, for processes that share none.

    path: the index whose flights were compared. Raises TryLater if another is in its place.
    """
    with closing(BlockStore(folder)) as store, IndexCheck(folder) as index:
        if index.path != path or (index.position is None and not index.problem):
            raise TryLater(f"the index was rebuilt meanwhile; run `{COMMAND} verify` again")
        return index.problem or wrong_part(store, index, part)


def wrong_part(store: BlockStore, index: IndexCheck, part: str) -> str:
    """Return what is wrong with one of `table_checks.PARTS` of an index; "" if nothing is."""
    assert index.position is not None
    flights = index.position.transactions
    return difference_from(store, index.position) or index.wrong_part(part, flights)


def _wrong_flight(index: IndexCheck, store: BlockStore) -> str:
    """Return a message about the first flight that the index lacks or has otherwise; "" if none."""
    for at in range(index.expected.height + 1):
        block = store.block(at)
        columns = decoded(block)
        if problem := index.look_up(block, columns):
            return problem
    return ""


def _index_words(index: IndexCheck, height: int) -> str:
    position = index.position
    if index.is_outdated:
        return f"the index is not checked: {OUTDATED}; the miner rebuilds it"
    if position is None:
        return "the index does not exist yet; the miner makes it"
    if position.height < height:
        return f"the index agrees up to block {position.height}; the miner will add the rest"
    return "the index agrees with every block"
