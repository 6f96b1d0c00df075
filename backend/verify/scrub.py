"""Scrubs a chain: reads and checks everything that it has on its disk, again and again, gently.

A disk decays in silence, in places that are never read. So the miner has a thread that reads one
small piece after the other, from the disk and not from the kernel's memory: each block, which must
have its hash; then the index, of which pages have checksums and tables must add up; then what is in
no block yet, with the idempotency keys, the tokens and the log. A block with its hash is as it was
sealed, so the rules of the chain are left to `verify`. The pieces of a pass are spread over
`scrub_hours`, and each is followed by a pause that keeps the thread at a few percent of one core.

A damaged block is noted where readers note those that they meet (`damage_notes`). All noted blocks
are read again every half minute, so that a note is withdrawn when the block is whole. A wrong index
is marked, and the miner rebuilds it. What is wrong with the rest is kept in `scrub.json` until it
is well, and checked every half minute, too. The scrub takes no lock, and goes on where it stopped.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from msgspec.structs import replace

from backend.base import files
from backend.base.clock import now_ms
from backend.base.errors import Damage, DamagedBlock, NotFound, TryLater, WriteFailed
from backend.base.settings import Settings
from backend.base.words import Report, Trouble
from backend.index import damage_mark
from backend.index.index_file import index_path
from backend.index.table_checks import FILE, PARTS, IndexCheck
from backend.mempool import FOLDER
from backend.mempool.database import FILE_NAME as MEMPOOL_NAME
from backend.storage import damage_notes
from backend.storage.block_store import BlockStore
from backend.storage.damage_notes import DamageNotes
from backend.storage.layout import MARK_NAME
from backend.storage.tokens import FILE_NAME as TOKENS_NAME
from backend.verify.audit import accepted_words, wrong_part
from backend.verify.scrub_state import FILE as STATE_FILE
from backend.verify.scrub_state import ScrubState

SHARE = 0.03  # how much of one core the scrub may use
LEAST_WORK_S = 0.01  # how long it works at least between two pauses
LOOK_AGAIN_S = 30.0
SAVE_EVERY_S = 10.0
RETRY_S = 10.0
READ_BYTES = 2**18

ACCEPTED_FILES = (
    *(f"{FOLDER}/{MEMPOOL_NAME}", f"{FOLDER}/{MEMPOOL_NAME}-wal"),
    *(MARK_NAME, TOKENS_NAME),
)

Pause = Callable[[float], bool]  # waits for so many seconds; True ends the scrub


class Scrub:
    """Checks the chain in `settings.folder`, piece by piece, in one thread."""

    def __init__(
        self,
        settings: Settings,
        report: Report,
        pause: Pause,
        now: Callable[[], int] = now_ms,
        timer: Callable[[], float] = time.monotonic,
    ) -> None:
        """report: takes a message for each problem that comes or goes. pause: waits between pieces.

        now: reads the clock, UTC milliseconds. timer: reads seconds that never go back.
        """
        self._folder = settings.folder
        self._period_s = 3600 * settings.scrub_hours
        self._report, self._pause, self._now, self._timer = report, pause, now, timer
        self._store = BlockStore(settings.folder)
        self._notes = DamageNotes(settings.folder)
        self._opened: dict[Path, int] = {}
        self._is_over = False
        self._woke = self._due = self._saved = self._looked_again = timer()
        self.state = STATE_FILE.read(settings.folder) or ScrubState()
        if self.state.pieces not in {0, _pieces(self.state.height)}:  # another release wrote it
            self.state = ScrubState()

    def run(self) -> None:
        """Scrub until `pause` returns True."""
        trouble = Trouble(self._report)
        try:
            while not self._is_over:
                try:
                    seconds = self.step()
                    trouble.end()
                except Exception as error:  # noqa: BLE001  the other pieces must still be checked
                    trouble.report(f"the scrub fails at piece {self.state.done}: {error!r}")
                    self.state, seconds = replace(self.state, done=self.state.done + 1), RETRY_S
                self._is_over = self._is_over or self._pause(seconds)
        finally:
            if self.state.pieces:
                self._save()
            while self._opened:
                os.close(self._opened.popitem()[1])
            self._store.close()

    def step(self) -> float:
        """Do what is due. Returns how many seconds to pause."""
        self._woke = self._timer()
        if self._woke >= self._looked_again + LOOK_AGAIN_S:
            self._looked_again = self._woke
            for height in self._notes.known():
                self._read_block(height)
            if self.state.problem:
                self._check_accepted()
        if self._woke >= self._due:
            self._next_piece()
        until = min(self._due, self._looked_again + LOOK_AGAIN_S)
        now = self._timer()
        return max(until - now, _rest_after(now - self._woke))

    # --- pieces ------------------------------------------------------------------------------

    def _next_piece(self) -> None:
        if self.state.done >= self.state.pieces and not self._begin():
            self._due = self._timer() + RETRY_S
            return
        try:
            self._check(self.state.done)
        except (Damage, NotFound):  # the blocks are noted already, or the chain is shorter now
            pass
        except TryLater:  # the index is being replaced, or the disk is full; its turn comes again
            self._due = self._timer() + RETRY_S
            return
        if self._is_over:  # the scrub was ended in the middle of this piece
            return
        self._due = self._woke + self._period_s / self.state.pieces
        self.state = replace(self.state, done=self.state.done + 1)
        is_whole = self.state.done == self.state.pieces
        if is_whole:
            self.state = replace(self.state, completed_at=self._now())
        if is_whole or self._timer() - self._saved >= SAVE_EVERY_S:
            self._save()

    def _begin(self) -> bool:
        """Begin a pass. Returns whether there is a chain."""
        height = self._store.height()
        if height >= 0:
            self.state = replace(self.state, height=height, pieces=_pieces(height), done=0)
        return height >= 0

    def _check(self, piece: int) -> None:
        """Check a piece of the pass: its blocks come first, then the index, then the rest."""
        part = piece - (self.state.height + 1)
        if part < 0:
            self._read_block(piece)
        elif part < len(PARTS):
            self._check_index(PARTS[part])
        else:
            self._check_accepted()

    def _read_block(self, height: int) -> None:
        """Read a block from the disk, and note whether it is damaged."""
        is_known = height in self._notes.known()
        with suppress(OSError, Damage, NotFound):  # then reading it says what is wrong
            self._store.forget_cached(self._store.place(height))
        try:
            self._store.block(height)
        except NotFound:  # the chain is shorter now
            self._notes.read_well(height)
        except Damage as error:
            damaged = error if isinstance(error, DamagedBlock) else DamagedBlock(height, str(error))
            self._notes.met(damaged)
            if not is_known:
                self._report(f"the scrub found that {damaged}")
        else:
            self._notes.read_well(height)
            if is_known:
                self._report(f"block {height}, which was damaged, can be read again")

    def _check_index(self, part: str) -> None:
        """Check a part of the index, which is marked if it is wrong, to be rebuilt."""
        if part == FILE:
            self._read_from_disk(index_path(self._folder))
        with IndexCheck(self._folder, self._rest) as index:
            problem = index.problem
            if not problem and index.position is not None:
                problem = wrong_part(self._store, index, part)
            if problem and not self._is_over and damage_mark.damage_of(index.path) is None:
                damage_mark.mark(index.path, problem)
                self._report(
                    f"the scrub found that the index is wrong: {problem}; the miner rebuilds it"
                )

    def _check_accepted(self) -> None:
        """Check what is in no block yet, with keys, tokens and the log, and keep what is wrong."""
        for name in ACCEPTED_FILES:
            self._read_from_disk(self._folder / name)
        problem = ""
        try:
            accepted_words(self._folder, self._store)
        except (Damage, TryLater) as error:
            problem = str(error)
        if problem != self.state.problem:
            known = f"a problem that the scrub found is solved: {self.state.problem}"
            self._report(f"the scrub found that {problem}" if problem else known)
            self.state = replace(self.state, problem=problem)
            self._save()

    def _read_from_disk(self, path: Path) -> None:
        """Have the kernel read a file from the disk again, a little at a time.

        The file stays open until another has its name, because closing it would release the locks
        that SQLite has on it in this process (https://sqlite.org/howtocorrupt.html, section 2.2).
        """
        with suppress(OSError):  # it is not there, or the check itself says what is wrong
            opened = self._opened.get(path)
            if opened is None or os.fstat(opened).st_ino != path.stat().st_ino:
                self._opened[path] = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
                if opened is not None:
                    os.close(opened)
            for offset in range(0, path.stat().st_size, READ_BYTES):
                files.forget_cached(self._opened[path], offset, READ_BYTES)
                os.pread(self._opened[path], READ_BYTES, offset)
                if self._rest():
                    return

    def _rest(self) -> bool:
        """Pause in the middle of a piece if it has worked enough. Returns whether to end."""
        worked = self._timer() - self._woke
        if worked >= LEAST_WORK_S:
            self._is_over = self._is_over or self._pause(_rest_after(worked))
            self._woke = self._timer()
        return self._is_over

    def _save(self) -> None:
        """Write the state down. If that fails, problems will be found again after a restart."""
        self._saved = self._timer()
        try:
            STATE_FILE.write_unsynced(self._folder, self.state)
        except WriteFailed as error:
            self._report(f"{error}; the scrub continues")


def _pieces(height: int) -> int:
    """Return how many pieces a pass has if it begins when the tip is at `height`."""
    return height + 1 + len(PARTS) + 1


def _rest_after(worked_s: float) -> float:
    return worked_s * (1 / SHARE - 1)


@contextmanager
def scrubbing(settings: Settings, report: Report) -> Iterator[None]:
    """Scrub in a thread of its own; if `scrub_hours` is 0, forget what an earlier scrub found."""
    if not settings.scrub_hours:
        try:
            for name in (damage_notes.NAME, STATE_FILE.name):
                files.remove(settings.folder / name)
        except WriteFailed as error:
            report(str(error))
        yield
        return
    is_over = threading.Event()
    thread = threading.Thread(target=Scrub(settings, report, is_over.wait).run, name="scrub")
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
