"""Scrubs a chain: reads and checks everything that it has on its disk, again and again, gently.

A disk decays in silence, in places that are never read. So the miner has a thread that checks one
small piece after the other: each block as `verify` does, then its flights in the index; after all
blocks the index as a whole; then what is in no block yet, with the idempotency keys and the tokens.
It reads from the disk and not from the kernel's memory. The pieces of a pass are spread over
`scrub_hours`, and each is followed by a pause that keeps the thread at a few percent of one core.

A problem is reported once, and kept in `scrub.json` for `ready` and `/metrics`. It is checked again
every half minute, in turn with other problems, so that it is withdrawn when it has gone. The same
is done with an unexpected error, which does not end the scrub. A wrong index is marked, and the
miner makes it anew. Blocks that readers found to be damaged (`damage_notes`) are looked at when the
scrub wakes. The scrub takes no lock, writes nothing else, and goes on where it stopped.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec

from backend.base import files
from backend.base.clock import now_ms
from backend.base.errors import Damage, NotFound, TryLater, WriteFailed
from backend.base.settings import Settings
from backend.base.words import Report
from backend.chain.columns import BodyError, decode_body
from backend.index import damage_mark
from backend.index.index_file import index_path
from backend.index.table_checks import FILE, PARTS, IndexCheck
from backend.mempool import FOLDER
from backend.mempool.database import FILE_NAME as MEMPOOL_NAME
from backend.mempool.watermark import NAME as ACKNOWLEDGED_NAME
from backend.storage import damage_notes
from backend.storage.block_store import BlockStore
from backend.storage.damage_notes import DamageNotes
from backend.storage.tokens import FILE_NAME as TOKENS_NAME
from backend.verify.audit import accepted_words, wrong_part
from backend.verify.chain_check import Checked, Stretch, checked, nothing, stretch_at
from backend.verify.scrub_state import BLOCK, Problem, ScrubState, read
from backend.verify.scrub_state import FILE as STATE_FILE

SHARE = 0.03  # how much of one core the scrub may use
LEAST_WORK_S = 0.01  # how long it works at least between two pauses
LOOK_AGAIN_S = 30.0
SAVE_EVERY_S = 10.0
RETRY_S = 10.0
MOST_PROBLEMS = 100
READ_BYTES = 2**18

FLIGHTS, INDEX, ACCEPTED = "flights", "index", "accepted"
SCRUB = "scrub"  # the kind of a problem that the scrub has with itself

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
        self._index_file, self._mempool_file = _KeptOpen(), _KeptOpen()
        self._error = ""  # the unexpected error of the last step, if there was one
        self._turn = 0  # which of the problems is checked again next
        self._below: Checked | None = None  # the chain up to the block that was checked last
        self._is_over = self._is_unsaved = False
        self._woke = self._due = self._saved = self._looked_again = timer()
        self.state = read(settings.folder, report) or ScrubState()
        if self.state.pieces not in {0, _pieces(self.state.height)}:  # another release wrote it
            self._put(pieces=0, done=0)

    def run(self) -> None:
        """Scrub until `pause` returns True."""
        try:
            while not self._is_over:
                seconds = self._tried_step()
                self._is_over = self._is_over or self._pause(seconds)
        finally:
            self._save()
            self._index_file.close()
            self._mempool_file.close()
            self._store.close()

    def _tried_step(self) -> float:
        """Do what is due, and note an unexpected error. Returns how many seconds to pause."""
        try:
            seconds = self.step()
        except Exception as error:  # noqa: BLE001  a scrub that ended would find nothing wrong
            self._error = f"it cannot go on: {error!r}"
            self._note(SCRUB, 0, self._error)
            return RETRY_S
        self._error = ""
        return seconds

    def step(self) -> float:
        """Do what is due. Returns how many seconds to pause."""
        self._woke = self._timer()
        if self.state.problems and self._woke >= self._looked_again + LOOK_AGAIN_S:
            self._look_again()
        for height in self._notes.take():  # readers met them
            self._note(BLOCK, height, self._problem(BLOCK, height))
        if self._woke >= self._due:
            self._next_piece()
        if self._is_unsaved and self._timer() - self._saved >= SAVE_EVERY_S:
            self._save()
        now = self._timer()
        until = self._due
        if self.state.problems:
            until = min(until, self._looked_again + LOOK_AGAIN_S)
        return max(until - now, _rest_after(now - self._woke))

    # --- pieces ------------------------------------------------------------------------------

    def _next_piece(self) -> None:
        if self.state.done >= self.state.pieces and not self._begin():
            self._due = self._timer() + RETRY_S
            return
        kind, number = _piece(self.state, self.state.done)
        try:
            problem = "" if self._is_passed_over(kind, number) else self._problem(kind, number)
        except TryLater:  # the index is being replaced, or the disk is full; its turn comes again
            self._due = self._timer() + RETRY_S
            return
        if self._is_over:  # the scrub was ended in the middle of this piece
            return
        self._due = self._woke + self._period_s / self.state.pieces
        self._note(kind, number, problem)
        self._put(done=self.state.done + 1)
        if self.state.done == self.state.pieces:
            self._put(completed_at=self._now())
            self._save()

    def _begin(self) -> bool:
        """Begin a pass. Returns whether there is a chain."""
        height = self._store.height()
        if height >= 0:
            self._put(height=height, pieces=_pieces(height), done=0)
            self._below = None
        return height >= 0

    def _problem(self, kind: str, number: int) -> str:
        """Return what is wrong with a piece, in words; "" if nothing is."""
        try:
            return self._wrong(kind, number)
        except (NotFound, Damage):  # the chain is shorter now, or its block is a problem already
            return ""
        except OSError as error:
            return f"{error.filename or self._folder} cannot be read: {error.strerror or error}"
        except TryLater:
            raise
        except Exception as error:  # noqa: BLE001  the other pieces must still be checked
            return f"{kind} {number} cannot be checked: {error!r}"

    def _wrong(self, kind: str, number: int) -> str:
        wrong: dict[str, Callable[[int], str]] = {
            BLOCK: self._wrong_block,
            FLIGHTS: self._wrong_flights,
            INDEX: self._wrong_part,
            ACCEPTED: lambda _: self._wrong_accepted(),
            SCRUB: lambda _: self._error,
        }
        return wrong[kind](number) if kind in wrong else ""  # a kind of another release

    def _wrong_block(self, height: int) -> str:
        with suppress(OSError, Damage):  # then reading it says what is wrong
            self._store.forget_cached(self._store.place(height))
        try:
            self._below = self._checked(height)
        except Damage as error:
            self._below = None
            return str(error)
        return ""

    def _checked(self, height: int) -> Checked | None:
        """Check the block at `height`. Returns the chain up to it. Raises Damage.

        If the blocks below are damaged, the block can only be checked by itself, and the chain up
        to it is unknown (None).
        """
        below = self._below
        try:
            if below is not None and below.state.height == height - 1:
                stretch = Stretch(height, 1, below.state, below.end)
            else:
                stretch = stretch_at(self._store, height, 1)
        except Damage:
            self._store.block(height)
            return None
        return checked(self._store, nothing, stretch)

    def _wrong_flights(self, height: int) -> str:
        try:
            block = self._store.block(height)
            columns = decode_body(block.body, block.header.transaction_count)
        except BodyError:  # the block is a problem already
            return ""
        return self._wrong_index(lambda index: index.look_up(block, columns))

    def _wrong_part(self, number: int) -> str:
        if number >= len(PARTS):  # a part of another release
            return ""
        part = PARTS[number]
        if part == FILE:
            self._read_index_again()
        return self._wrong_index(lambda index: wrong_part(self._store, index, part))

    def _wrong_accepted(self) -> str:
        self._forget_accepted()
        try:
            accepted_words(self._folder, self._store)
        except (Damage, TryLater) as error:
            return str(error)
        return ""

    def _forget_accepted(self) -> None:
        """Drop the mempool and the tokens from the kernel's memory where possible.

        So they are read from the disk. The mempool stays open, as the index does, because SQLite
        has locks on it.
        """
        mempool = self._folder / FOLDER
        with suppress(OSError):  # then reading it says what is wrong
            files.forget_cached(self._mempool_file.opened(mempool / MEMPOOL_NAME))
        names = (ACKNOWLEDGED_NAME, TOKENS_NAME)
        log = mempool / f"{MEMPOOL_NAME}-wal"
        for path in (log, *(self._folder / name for name in names)):
            with suppress(OSError), path.open("rb") as file:
                files.forget_cached(file.fileno())

    def _wrong_index(self, look: Callable[[IndexCheck], str]) -> str:
        """Return what `look` finds wrong with the index, which is then marked, to be rebuilt."""
        with IndexCheck(self._folder, self._rest) as index:
            problem = index.problem
            if not problem and index.position is not None:
                problem = look(index)
            if not problem or self._is_over:
                return ""
            damage_mark.mark(index.path, problem)
            return f"the index is wrong: {problem}; the miner rebuilds it"

    def _read_index_again(self) -> None:
        """Have the kernel read the index from the disk again, a little at a time.

        The file stays open, because closing it would release the locks that SQLite has on it in
        this process (https://sqlite.org/howtocorrupt.html, section 2.2).
        """
        path = index_path(self._folder).resolve()
        try:
            descriptor = self._index_file.opened(path)
            for offset in range(0, path.stat().st_size, READ_BYTES):
                files.forget_cached(descriptor, offset, READ_BYTES)
                os.pread(descriptor, READ_BYTES, offset)
                if self._rest():
                    return
        except FileNotFoundError:  # it is not there yet, or just made anew
            return

    # --- pace --------------------------------------------------------------------------------

    def _rest(self) -> bool:
        """Pause in the middle of a piece if it has worked enough. Returns whether to end."""
        worked = self._timer() - self._woke
        if worked >= LEAST_WORK_S:
            self._is_over = self._is_over or self._pause(_rest_after(worked))
            self._woke = self._timer()
        return self._is_over

    # --- what was found ----------------------------------------------------------------------

    def _look_again(self) -> None:
        """Check one of the problems again; they take turns."""
        self._turn += 1
        self._looked_again = self._timer()
        known = self.state.problems[self._turn % len(self.state.problems)]
        with suppress(TryLater):
            problem = self._problem(known.kind, known.number)
            if not self._is_over:
                self._note(known.kind, known.number, problem)

    def _note(self, kind: str, number: int, what: str) -> None:
        """Note what is wrong with a piece now. what: "" if nothing is."""
        others = [p for p in self.state.problems if (p.kind, p.number) != (kind, number)]
        known = [p for p in self.state.problems if (p.kind, p.number) == (kind, number)]
        if [p.what for p in known] == [what] or not (known or what):
            return
        for problem in known if not what else ():
            self._report(f"a problem that the scrub found is solved: {problem.what}")
        if what and len(others) < MOST_PROBLEMS:
            self._report(f"the scrub found that {what}")
            others.append(Problem(kind, number, what))
        self._put(problems=tuple(others))
        self._save()

    def _is_passed_over(self, kind: str, number: int) -> bool:
        """Return whether a piece belongs to an index in which another was found to be wrong."""
        of_index = {FLIGHTS, INDEX}
        known = [(p.kind, p.number) for p in self.state.problems if p.kind in of_index]
        return kind in of_index and known not in ([], [(kind, number)])

    def _put(self, **changed: Any) -> None:
        self.state = msgspec.structs.replace(self.state, **changed)
        self._is_unsaved = True

    def _save(self) -> None:
        """Write the state down. If that fails, problems will be found again after a restart."""
        self._saved = self._timer()
        if not self._is_unsaved:
            return
        try:
            STATE_FILE.write_unsynced(self._folder, self.state)
        except WriteFailed as error:
            self._report(f"{error}; the scrub continues")
        self._is_unsaved = False


def _pieces(height: int) -> int:
    """Return how many pieces a pass has if it begins when the tip is at `height`."""
    return 2 * (height + 1) + len(PARTS) + 1


def _piece(state: ScrubState, number: int) -> tuple[str, int]:
    """Return the kind of the pass's piece `number`, and its number among its kind."""
    of_blocks = 2 * (state.height + 1)
    if number < of_blocks:
        return (BLOCK, FLIGHTS)[number % 2], number // 2
    part = number - of_blocks
    return (INDEX, part) if part < len(PARTS) else (ACCEPTED, 0)


def _rest_after(worked_s: float) -> float:
    return worked_s * (1 / SHARE - 1)


class _KeptOpen:
    """Keeps a file open until another file has its name."""

    def __init__(self) -> None:
        self._descriptor: int | None = None

    def opened(self, path: Path) -> int:
        """Return a descriptor to read `path`. Raises OSError."""
        if self._descriptor is None or os.fstat(self._descriptor).st_ino != path.stat().st_ino:
            self.close()
            self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        return self._descriptor

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


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
