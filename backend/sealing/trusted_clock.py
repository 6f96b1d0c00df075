"""Tells the time for what is written, and doubts a clock that has leapt ahead.

`docs/explanation/trust.md` says when, and why: times in the chain never go back. The clock of a
machine without a battery may be wrong for a while after it was switched on; after
FLIGHTCHAIN_CLOCK_WAIT_S it is believed, because the machine may have been off for long.

Two times are on record: that of the newest block, and `clock.json`, in which the miner and imports
note every hour that they believe the clock. Without that an idle ledger would doubt the clock at
each start. A chain that has only its genesis block has nothing to compare with, and its clock is
never doubted. Each process decides for itself.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import msgspec

from backend.base import clock
from backend.base.errors import FlightchainError, TryLater, WriteFailed
from backend.base.settings import Settings, variable
from backend.base.state_file import StateFile
from backend.base.words import Report, counted
from backend.storage.block_store import BlockStore

LEAP_MS = 24 * 60 * 60 * 1000
NOTED_EVERY_MS = 60 * 60 * 1000
DOUBTED = "the clock says"  # begins the words of every doubt
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class _Noted(msgspec.Struct):
    believed_ms: int


FILE = StateFile("clock.json", _Noted)


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
        days = counted((self.now_ms - self.newest_ms) // LEAP_MS, "day")
        return (
            f"{DOUBTED} {_shown(self.now_ms)}, {days} after the newest time on record, "
            f"{_shown(self.newest_ms)}, so flights are neither accepted nor sealed for "
            f"{math.ceil(self.left_s)} s; if the clock is wrong, set it; if it is right, wait, or "
            f"start with {variable('clock_wait_s')}=0"
        )


class TrustedClock:
    """Tells the time of day for the chain in `settings.folder`."""

    def __init__(
        self,
        settings: Settings,
        store: BlockStore,
        report: Report,
        *,
        seals: bool = False,
        now_ms: Callable[[], int] | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """report: takes a message when a time cannot be noted.

        seals: whether this process seals blocks, and so notes the time every hour. now_ms: reads
        the clock, UTC milliseconds. monotonic: reads seconds that never go back.
        """
        self._folder = settings.folder
        self._wait_s = settings.clock_wait_s
        self._store = store
        self._report = report
        self._seals = seals
        self._says = now_ms or clock.now_ms
        self._monotonic = monotonic
        self._believed_ms: int | None = None
        self._least_ms = 0  # the time of the newest block when a time was first believed
        self._noted_ms: int | None = None
        self._doubted_since_s: float | None = None

    def now_ms(self) -> int:
        """Return UTC milliseconds, not before what is in blocks. Raises TryLater in doubt."""
        if doubt := self.doubt():
            raise TryLater(str(doubt), math.ceil(doubt.left_s))
        assert self._believed_ms is not None
        return max(self._believed_ms, self._least_ms)

    def doubt(self) -> Doubt | None:
        """Return why the clock is not believed now; None if it is."""
        now = self._says()
        if self._believed_ms is None or now - self._believed_ms > LEAP_MS:
            block_ms, noted, passed_s = self._block_ms(), FILE.read(self._folder), self._monotonic()
            newest = max(block_ms or 0, noted.believed_ms if noted else 0)
            if block_ms is not None and newest and now - newest > LEAP_MS:
                self._doubted_since_s = self._doubted_since_s or passed_s
                left_s = self._doubted_since_s + self._wait_s - passed_s
                if left_s > 0:
                    return Doubt(now, newest, left_s)
            self._least_ms = block_ms or 0
        self._doubted_since_s = None
        self._believed_ms = now
        if self._seals and (self._noted_ms is None or abs(now - self._noted_ms) > NOTED_EVERY_MS):
            self._note(now)
        return None

    def _block_ms(self) -> int | None:
        """Return the time of the newest block; None without flights, 0 if it cannot be read."""
        try:
            height = self._store.height()
            return self._store.block(height).header.timestamp if height > 0 else None
        except (FlightchainError, OSError):  # sealing meets it as well, and says what to do
            return 0

    def _note(self, now: int) -> None:
        """Write down that the clock is believed, in a small file whose loss does no harm.

        A time before the newest block's is not: a clock that starts in 1970 will be corrected, and
        the correction must not look like a leap.
        """
        self._noted_ms = now
        if now < self._least_ms or not self._folder.is_dir():  # who writes the first block makes it
            return
        try:
            FILE.write_unsynced(self._folder, _Noted(now))
        except WriteFailed as error:
            self._report(f"{error}; the clock is trusted anyway")


def _shown(ms: int) -> str:
    """Return the time as people read it, in whatever year."""
    try:
        return f"{EPOCH + timedelta(milliseconds=ms):%Y-%m-%d %H:%M} UTC"
    except OverflowError:
        return f"{ms} ms after 1970"
