"""Tells the time for what is written, and doubts a clock that has leapt ahead.

`docs/explanation/trust.md` says when, and why: times in the chain never go back. The clock of a
machine without a battery may be wrong for a while after it was switched on; after
FLIGHTCHAIN_CLOCK_WAIT_S it is believed, because the machine may have been off for long.

Two times are on record: that of the newest block, and the last time that was believed, which the
miner and imports note in `clock.json` every hour, so that an idle ledger never doubts. A time
before all that was on record when a process began is not noted: a clock that starts in 1970 will be
corrected, and the correction must not look like a leap. A chain that has only its genesis block has
nothing to compare with, and its clock is never doubted.

All processes of a machine agree: while a miner runs and does not hang, the others wait until the
miner believes the clock, which its status tells.
"""

import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import msgspec

from backend.base import clock
from backend.base.errors import FlightchainError, TryLater, WriteFailed
from backend.base.settings import Settings, variable
from backend.base.state_file import StateFile
from backend.base.words import Report
from backend.sealing.miner_status import miner_status
from backend.storage.block_store import BlockStore

FILE_NAME = "clock.json"
LEAP_MS = 24 * 60 * 60 * 1000
NOTED_EVERY_MS = 60 * 60 * 1000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class _Noted(msgspec.Struct):
    believed_ms: int


_FILE = StateFile(FILE_NAME, _Noted)


@dataclass(frozen=True, slots=True)
class Doubt:
    """Says why the clock is not believed now.

    now_ms: what the clock says. newest_ms: the newest time on record. Both are UTC milliseconds.
    left_s: how much longer it will be doubted, at most.
    """

    now_ms: int
    newest_ms: int
    left_s: float

    def __str__(self) -> str:
        days = (self.now_ms - self.newest_ms) // LEAP_MS
        return (
            f"the clock says {_shown(self.now_ms)}, {days} days after the newest time on record, "
            f"{_shown(self.newest_ms)}, so nothing is written for {math.ceil(self.left_s)} s; if "
            "the clock is wrong, set it; if it is right, wait, or start "
            f"with {variable('clock_wait_s')}=0"
        )


class TrustedClock:
    """Tells the time of day for the chain in `settings.folder`. It is safe for threads."""

    def __init__(
        self,
        settings: Settings,
        store: BlockStore,
        report: Report,
        *,
        is_miner: bool = False,
        seals: bool = False,
        now_ms: Callable[[], int] | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """report: takes a message when a time cannot be noted.

        is_miner: whether this is the miner, which decides for others. seals: whether this process
        seals blocks, and so notes the time now and then. now_ms: reads the clock, UTC milliseconds.
        monotonic: reads seconds that never go back.
        """
        self._folder = settings.folder
        self._wait_s = settings.clock_wait_s
        self._store = store
        self._report = report
        self._is_miner = is_miner
        self._seals = seals
        self._says = now_ms or clock.now_ms
        self._monotonic = monotonic
        self._believed_ms: int | None = None
        self._least_ms = 0  # the newest time on record when a time was first believed
        self._noted_ms: int | None = None
        self._known_at_first_ms: int | None = None  # no time before this is noted
        self._doubted_since_s: float | None = None
        self._doubted_at_s = 0.0  # when it was doubted last
        self._noting = threading.Lock()
        self._tip = (0, 0)  # height and time of the newest block that was looked at

    def now_ms(self) -> int:
        """Return UTC milliseconds, not before what was on record. Raises TryLater in doubt."""
        if doubt := self.doubt():
            raise TryLater(str(doubt), math.ceil(doubt.left_s))
        assert self._believed_ms is not None
        return max(self._believed_ms, self._least_ms)

    def doubt(self) -> Doubt | None:
        """Return why the clock is not believed now; None if it is."""
        now = self._says()
        if self._believed_ms is None or now - self._believed_ms > LEAP_MS:
            newest = self._newest_ms()
            if self._wait_s and newest is not None and now - newest > LEAP_MS:
                self._known_at_first_ms = self._known_at_first_ms or newest
                left_s = self._left_s()
                if left_s > 0:
                    return Doubt(now, newest, left_s)
                self._note(now)
            self._least_ms = newest or 0
        self._doubted_since_s = None
        self._believed_ms = now
        if self._seals and (self._noted_ms is None or abs(now - self._noted_ms) > NOTED_EVERY_MS):
            self._note_now_and_then(now)
        return None

    def _left_s(self) -> float:
        """Return how much longer the doubt lasts, at most; it begins now if there was none lately.

        If this was not called for long, the clock may have been right in between.
        """
        now_s = self._monotonic()
        if self._doubted_since_s is None or now_s - self._doubted_at_s > 2 * self._wait_s:
            self._doubted_since_s = now_s
        self._doubted_at_s = now_s
        if not self._is_miner:
            miner = miner_status(self._folder)
            until_s = None
            if miner is not None and not miner.overdue_s(now_s):  # a miner that hangs cannot decide
                until_s = miner.clock_doubted_until_s
            if until_s is not None:
                return max(1.0, until_s - now_s)
        return self._doubted_since_s + self._wait_s - now_s

    def _newest_ms(self) -> int | None:
        """Return the newest time on record; None if there is none to compare with."""
        try:
            height = self._store.height()
            if height < 1:
                return None
            if height != self._tip[0]:
                self._tip = (height, self._store.block(height).header.timestamp)
        except (FlightchainError, OSError) as error:
            # Sealing and answering meet the same error, and say what to do.
            self._report(f"the clock cannot be compared with the newest block: {error}")
            return self._noted()
        return max(self._tip[1], self._noted() or 0)

    def _noted(self) -> int | None:
        """Return the last time that any process believed; None if none is on record."""
        try:
            return _FILE.load(self._folder).believed_ms
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            self._report(f"{self._folder / FILE_NAME} cannot be used, and is rewritten: {error}")
            return None

    def _note_now_and_then(self, now: int) -> None:
        """Note `now` unless it is before all that was on record when this process began.

        It may be before the time that this process noted last, because a wrong time may have been
        believed in the end.
        """
        if self._known_at_first_ms is None:
            self._known_at_first_ms = self._newest_ms()
        if now >= (self._known_at_first_ms or 0):
            self._note(now)

    def _note(self, now: int) -> None:
        """Write down that the clock is believed, in a small file whose loss does no harm."""
        if not self._folder.is_dir():  # whoever writes the first block makes it
            return
        self._noted_ms = now
        try:
            with self._noting:
                _FILE.write_unsynced(self._folder, _Noted(now))
        except WriteFailed as error:
            self._report(f"{error}; the clock is trusted anyway")


def _shown(ms: int) -> str:
    """Return the time as people read it, in whatever year."""
    try:
        return f"{EPOCH + timedelta(milliseconds=ms):%Y-%m-%d %H:%M} UTC"
    except OverflowError:
        return f"{ms} ms after 1970"
