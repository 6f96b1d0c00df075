"""Compares the parts of a chain's folder: whether they are of one ledger, and of one time.

The blocks alone look right even if they are another ledger's, or older than the rest. So whoever
wants to write blocks is refused as long as something else in the folder contradicts them: the log's
key, which is named after block 0; the checkpoint that this key has signed; the index. What is
derived from the blocks is made again only where nothing contradicts them.
"""

import os
import time
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import closing
from errno import EROFS
from pathlib import Path

import apsw

from backend.base.errors import Damage, FlightchainError, NotFound, TryLater
from backend.base.files import require_free
from backend.base.settings import Settings
from backend.index.index_file import Position, index_path, open_to_read, position_in
from backend.index.table_checks import IndexCheck
from backend.mempool.mempool import LOCK_NAME as MEMPOOL_LOCK_NAME
from backend.mempool.store import no_blocks
from backend.mempool.watermark import Watermark
from backend.storage.block_store import BlockStore
from backend.storage.codec import decoded
from backend.storage.genesis import genesis_in
from backend.storage.layout import unfinished_restore
from backend.storage.receipt_store import belongs_to_cluster
from backend.storage.tokens import Tokens
from backend.trust.log.log_checks import (
    LOG_FILES,
    check_log,
    foreign_log,
    lost_blocks,
    lost_since_signed,
    traces_of_log,
)
from backend.trust.log.tree import HistoryTree
from backend.verify.folder_files import has_block_files, missing_chain, short_block_files, unusable

LOOK_AGAIN_S = 0.1  # the key may be changed by a rotation at this moment
WRITES_REFUSED = "flights are neither accepted nor sealed"
NOT_SIGNED = "until then new blocks are not signed, and flights in them have no proofs"


def require_own_blocks(folder: Path) -> None:
    """Raise Damage if everything else in the folder says that the blocks are another ledger's."""
    if problem := foreign_log(folder):
        with closing(Watermark(folder, lambda: "")) as watermark:
            mark = watermark.read()
        if mark is None or mark.genesis != genesis_in(folder):  # else the log does not belong here
            raise Damage(problem)


def lost_part(folder: Path, tree: HistoryTree, store: BlockStore) -> str:
    """Say which blocks are missing by what the rest of the folder says; "" if none are."""
    position = _indexed(folder)  # before the blocks, which may be more in the next moment
    return lost_since_signed(folder, tree) or _lost_since_indexed(folder, store, position)


def _indexed(folder: Path) -> Position | None:
    """Return where the index stands; None if there is none that can be read."""
    path = index_path(folder)
    if not path.is_file():
        return None
    try:
        with closing(open_to_read(path)) as connection:
            return position_in(connection)
    except (apsw.Error, OSError):
        return None


def _lost_since_indexed(folder: Path, store: BlockStore, position: Position | None) -> str:
    try:
        if position is None or store.place(0).hash.hex() != position.genesis_hash:
            return ""
        store.place(position.height)
    except NotFound:
        assert position is not None
        evidence = f"{index_path(folder)} has {position.height + 1}"
        return lost_blocks(folder, store.height() + 1, evidence)
    return ""


def exchanged_from(folder: Path) -> int | None:
    """Return the first id that stands for another flight in the blocks than in the index.

    None if there is none, or that cannot be told.
    """
    with closing(BlockStore(folder)) as store, IndexCheck(folder) as index:
        if index.position is None or index.problem:
            return None

        def is_other(height: int) -> bool:
            block = store.block(height)
            return bool(index.look_up(block, decoded(block)))

        heights = range(min(store.height(), index.position.height) + 1)
        try:
            at = bisect_left(heights, True, key=is_other)  # so are all blocks after the first one
        except (Damage, TryLater):
            return None
        return store.place(at).first_transaction if at < len(heights) else None


def require_one_ledger(
    folder: Path, store: BlockStore, tree: HistoryTree | None = None, *, accepts_loss: bool
) -> None:
    """Raise Damage unless the blocks may be written to.

    tree: of the chain, if one is kept, which is faster. accepts_loss: whether a person has decided
    to go on with blocks that are older than the rest.
    """
    problem = foreign_log(folder)
    if not (problem or accepts_loss):
        problem = lost_part(folder, tree or HistoryTree(store), store)
    if problem:
        raise Damage(problem)


def lost_chain(folder: Path) -> str:
    """Say what shows that blocks were in a folder that has none now; "" if nothing does."""
    with closing(Watermark(folder, lambda: "")) as watermark:
        mark = watermark.read()
    if mark is not None and mark.mined:
        return no_blocks(folder, mark.mined)
    if (names := traces_of_log(folder)) and not belongs_to_cluster(folder):
        is_are = "is" if len(names) == 1 else "are"
        return (
            f"{folder / 'blocks'} holds no chain, but {', '.join(names)} {is_are} left of an "
            "earlier chain: is the disk mounted? If it is, restore the chain from a backup; for a "
            f"new chain, use an empty folder, or move {LOG_FILES} away"
        )
    return ""


def why_no_blocks(folder: Path) -> str:
    """Say why a folder shows no blocks though there were some once; "" if there were none."""
    problem = unfinished_restore(folder) or lost_chain(folder)
    return missing_chain(folder) if problem and has_block_files(folder) else problem


def require_may_begin(folder: Path) -> None:
    """Raise Damage rather than begin a chain where another one was."""
    if problem := lost_chain(folder):
        raise Damage(problem)


def require_chain(folder: Path, *, recovers: bool = False) -> None:
    """Raise Damage if `folder` holds no chain.

    recovers: whether the caller makes a missing table of heights again from the block files.
    """
    with closing(BlockStore(folder)) as store:
        has_blocks = store.height() >= 0 or (recovers and has_block_files(folder))
    if not has_blocks:
        words = why_no_blocks(folder)
        raise Damage(words or f"{folder} holds no chain: {missing_chain(folder)}")


class FolderCheck:
    """Says again and again what is wrong with the folder of a chain, for `ready`."""

    def __init__(self, settings: Settings, store: BlockStore, tree: HistoryTree) -> None:
        """tree: of the blocks in `store`."""
        self._folder, self._min_free_bytes = settings.folder, settings.min_free_bytes
        self._store = store
        self._tree = tree

    def problems(self) -> list[str]:
        """Return what is wrong now, with consequence and remedy."""
        return [
            *self._unwritable(),
            *unusable(self._folder),
            *short_block_files(self._folder, self._store),
            *self._wrong_parts(),
        ]

    def _unwritable(self) -> Iterator[str]:
        if not self._folder.is_dir():  # then there is no chain either
            return
        if self._is_read_only():
            yield (
                f"the disk of {self._folder} is read-only: {WRITES_REFUSED}; see the system's log "
                "for why, check the disk, and mount it for writing"
            )
        elif not os.access(self._folder, os.W_OK, effective_ids=True):
            yield (
                f"{self._folder} cannot be written to: {WRITES_REFUSED}; "
                "give it to the user of the service"
            )
        else:
            try:
                require_free(self._folder, self._min_free_bytes)
            except TryLater as error:
                yield f"{error}; until then {WRITES_REFUSED}"

    def _is_read_only(self) -> bool:
        """Return whether the disk refuses writes. Newer kernels do not mark one that had errors."""
        if os.statvfs(self._folder).f_flag & os.ST_RDONLY:
            return True
        try:
            os.close(os.open(self._folder / MEMPOOL_LOCK_NAME, os.O_RDWR | os.O_CLOEXEC))
        except OSError as error:  # it may not be there yet
            return error.errno == EROFS
        return False

    def _wrong_parts(self) -> Iterator[str]:
        if self._store.height() >= 0:
            yield from self._wrong_blocks()
        try:
            Tokens(self._folder).all()
        except FlightchainError as error:
            yield f"{error}; until then writes that need a token are refused"
        except OSError:  # it cannot be read, which is said already
            pass

    def _wrong_blocks(self) -> Iterator[str]:
        """Say what is wrong with the log, or which blocks are missing by what the rest says."""
        try:
            if problem := self._wrong_log():
                time.sleep(LOOK_AGAIN_S)
                problem = self._wrong_log()
            problem = problem or lost_part(self._folder, self._tree, self._store)
        except (Damage, NotFound):  # of a block or the table of heights, which is said already
            return
        if problem:
            yield problem

    def _wrong_log(self) -> str:
        try:
            check_log(self._folder, self._store, self._tree)
        except Damage as error:
            return f"{error}; {NOT_SIGNED}"
        return ""
