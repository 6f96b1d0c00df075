"""Appends blocks, in the one process that holds the writer lock.

`acquire` takes the lock, recovers the end of the files, and makes genesis if there is no chain.
Then `append` any number of blocks and `commit`: block files are synced first, then the table of
heights, so a block that a reader can see is on the disk. `release` lets another process write; the
next `acquire` looks whether one did. Blocks that were appended and not committed may be taken in by
the next writer, or not.

After a failed write or sync the writer refuses everything; a new process recovers.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from backend.base import files
from backend.base.errors import WriteFailed, WriterBusy
from backend.base.settings import Settings
from backend.base.words import Report
from backend.chain.block import Block, header_from
from backend.chain.block_rules import check_header
from backend.chain.merkle import Frontier
from backend.chain.state import ChainState, empty_state, genesis, state_at
from backend.storage import layout
from backend.storage.codec import compress, frame_from, frame_of
from backend.storage.layout import ENTRY_BYTES, Place, unfinished_restore
from backend.storage.recovery import Pending, recover

WRITER_LOCK_NAME = "writer.lock"
LAST_ENTRIES = 1024  # of the table, among them those of the last commit, whose sync may have failed
NOTICE_AFTER_S, LONGEST_WAIT_S = 5.0, 600.0  # of who waits for another writer


@dataclass(slots=True)
class _OpenFile:
    """A block file that is being appended to. end: bytes in it so far."""

    path: Path
    first_height: int
    descriptor: int
    end: int


class BlockWriter:
    """The end of the chain in `settings.folder`."""

    def __init__(
        self,
        settings: Settings,
        now_ms: Callable[[], int],
        report: Report,
        pending: Pending,
        require_may_begin: Callable[[], None] = lambda: None,
        require_may_go_on: Callable[[Frontier], None] = lambda history: None,
    ) -> None:
        """Touch nothing yet.

        now_ms: gives the time of a new genesis, UTC milliseconds. report: takes what recovery did,
        line by line. pending: the mempool, as recovery asks it. require_may_begin: raises if there
        was a chain here, so that no other may be begun. require_may_go_on: raises if the blocks
        that are there, with this tree over them, are not those that belong here; it is not asked
        about a chain whose torn tip has just been left out.
        """
        self._settings = settings
        self._now_ms = now_ms
        self._report = report
        self._pending = pending
        self._require_may_begin = require_may_begin
        self._require_may_go_on = require_may_go_on
        self._blocks = settings.folder / layout.BLOCKS_FOLDER
        self._table_path = self._blocks / layout.TABLE_NAME
        self._lock = files.FileLock(settings.folder / WRITER_LOCK_NAME)
        self._table = -1
        self._file: _OpenFile | None = None
        self._tip: Place | None = None
        self._uncommitted: list[Place] = []
        self._state: ChainState | None = None
        self._failed = False

    @property
    def state(self) -> ChainState:
        """Where the chain stands with the appended blocks; known only after `acquire`."""
        if self._state is None:
            raise WriteFailed("the writer has not been acquired")
        return self._state

    def acquire(self, *, wait: bool) -> None:
        """Become the writer. Raises WriterBusy, DamagedBlock or WriteFailed.

        wait: wait for another writer, ten minutes at most.
        """
        if problem := unfinished_restore(self._settings.folder):  # rather than begin a chain there
            raise WriteFailed(problem)
        files.make_folder(self._blocks)
        self._acquire_lock(wait=wait)
        try:
            with self._poisoned_on_error():
                if not self._is_current():
                    self._load()
        except BaseException:
            self.release()
            raise

    def _acquire_lock(self, *, wait: bool) -> None:
        """Take the lock; who waits for long is told for what."""
        try:
            self._lock.acquire(wait=wait, within_s=NOTICE_AFTER_S)
        except WriterBusy as error:
            if not wait:
                raise
            self._report(f"waiting, {LONGEST_WAIT_S:g} s at most: {error}")
            self._lock.acquire(wait=True, within_s=LONGEST_WAIT_S)

    def release(self) -> None:
        """Let another process write. Blocks that were not committed are left to it."""
        if self._uncommitted:
            self._forget()
        self._lock.release()

    def close(self) -> None:
        self._forget()
        self._lock.release()

    def append(self, block: Block, compressed_body: bytes | None = None) -> None:
        """Write the next block; nobody sees it before `commit`.

        compressed_body: `codec.compress(block.body)`, if the caller has it. Raises RuleViolation if
        the block does not fit on the tip, and WriteFailed.
        """
        with self._poisoned_on_error():
            state = self.state
            check_header(block, state)
            body = compressed_body if compressed_body is not None else compress(block.body)
            frame = frame_of(block.header_bytes, block.body, body)
            file = self._file_for(block.header.height)
            files.write_at(file.descriptor, frame, file.end, file.path)
            place = layout.place_of(block, file.first_height, file.end, len(frame))
            self._uncommitted.append(place)
            file.end += len(frame)
            self._state = state.applied(block)

    def commit(self) -> None:
        """Make every appended block durable, then visible. Raises WriteFailed."""
        with self._poisoned_on_error():
            if not self._uncommitted or self._file is None:
                return
            files.sync(self._file.descriptor, self._file.path)
            entries = b"".join(place.packed() for place in self._uncommitted)
            offset = (self.state.height + 1) * ENTRY_BYTES - len(entries)
            files.write_at(self._table, entries, offset, self._table_path)
            files.sync(self._table, self._table_path)
            self._tip = self._uncommitted[-1]
            self._uncommitted.clear()

    @contextmanager
    def _poisoned_on_error(self) -> Iterator[None]:
        if self._failed:
            raise WriteFailed(
                "an earlier write failed, so no block is written; restart the miner, which recovers"
            )
        if not self._lock.is_held:
            raise WriteFailed("the writer does not hold its lock; acquire it first")
        if not self._lock.keeps_others_out():
            raise WriteFailed(
                f"{self._lock.path} was removed, so another process may write blocks at the same "
                "time, and this one writes none; run it again, and leave locks to those who hold "
                "them: a lock is given back when its process ends, however it ends"
            )
        try:
            yield
        except WriteFailed:
            self._failed = True
            raise

    def _file_for(self, height: int) -> _OpenFile:
        """Return the file for block `height`; a full one is synced before the next is made."""
        full = self._file is not None and self._file.end >= self._settings.block_file_bytes
        if self._file is not None and full:
            files.sync(self._file.descriptor, self._file.path)
            os.close(self._file.descriptor)
            self._file = None
        if self._file is None:
            path = self._blocks / layout.block_file_name(height)
            self._file = _OpenFile(path, height, files.open_for_writing(path), 0)
        return self._file

    def _is_current(self) -> bool:
        """Return whether the files still end where this writer left them."""
        if self._state is None or self._file is None or self._tip is None:
            return False
        next_file = self._blocks / layout.block_file_name(self._state.height + 1)
        entries = (self._state.height + 1) * ENTRY_BYTES
        return (
            self._table_path.exists()
            and self._table_path.stat().st_ino == os.fstat(self._table).st_ino
            and os.fstat(self._table).st_size == entries
            and files.read_at(self._table, ENTRY_BYTES, entries - ENTRY_BYTES, self._table_path)
            == self._tip.packed()
            and os.fstat(self._file.descriptor).st_size == self._file.end
            and not next_file.exists()
        )

    def _load(self) -> None:
        """Recover the files and take up their end; begin a chain if there is none."""
        self._forget()
        recovered = recover(self._settings.folder, self._pending)
        for message in recovered.messages:
            self._report(message)
        if recovered.tip is None:
            self._require_may_begin()
        elif not recovered.is_tip_left_out:
            self._require_may_go_on(recovered.history)
        self._table = files.open_for_writing(self._table_path)
        end = os.fstat(self._table).st_size - LAST_ENTRIES * ENTRY_BYTES
        files.write_again(self._table, self._table_path, max(0, end))
        files.sync(self._table, self._table_path)
        files.sync_folder(self._settings.folder)
        if recovered.tip is not None:
            self._resume(recovered.tip, recovered.history)
            return
        bits = self._settings.difficulty_bits
        self._state = empty_state(bits)
        self.append(genesis(self._now_ms(), bits))
        self.commit()

    def _resume(self, tip: Place, history: Frontier) -> None:
        self._tip = tip
        path = self._blocks / layout.block_file_name(tip.file)
        self._file = _OpenFile(path, tip.file, files.open_for_writing(path), tip.end)
        frame = files.read_at(self._file.descriptor, tip.length, tip.offset, path)
        header = header_from(frame_from(frame).header_bytes)
        self._state = state_at(header, tip.hash.hex(), history)

    def _forget(self) -> None:
        """Close the files; the next `acquire` starts from what is on the disk."""
        if self._file is not None:
            os.close(self._file.descriptor)
        if self._table >= 0:
            os.close(self._table)
        self._file, self._table, self._tip, self._state = None, -1, None, None
        self._uncommitted.clear()
