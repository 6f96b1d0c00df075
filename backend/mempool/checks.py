"""Checks the mempool's folder for `verify`: the log, its end, and the file of idempotency keys.

Nothing is written and no lock is taken, so a service may run at the same time: a record that it is
writing at the end of the log, and segments that it removes, do not count as damage.
"""

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from backend.clock import now_ms
from backend.errors import DamagedMempool
from backend.mempool.acknowledged import NAME as MARK_NAME
from backend.mempool.acknowledged import Acknowledged, Mark
from backend.mempool.idempotency_keys import Keys
from backend.mempool.mempool import FOLDER
from backend.mempool.record import Record, flights_in, is_void
from backend.mempool.salvage import (
    SEGMENTS_MISSING,
    Piece,
    aside_words,
    lost_words,
    pieces_of,
    require_blocks,
)
from backend.mempool.segments import Segment, aside_in, lost_in, segments_in
from backend.words import counted

WHAT_NEXT = "the next process that accepts or mines flights repairs it, and says what is lost"
MARK_MISSING = "is missing or damaged, so nobody can tell whether the end of the log was lost"
MARK_WHAT_NEXT = "the next process that accepts or mines flights rebuilds it from the log"


@dataclass(frozen=True, slots=True)
class Checked:
    """What a mempool holds that has passed the check.

    pending: how many accepted transactions are in no block yet. void: how many of them stand for
    lost flights. keys: how many idempotency keys are in their file. lost: messages about lost
    flights, missing segments, and damaged bytes that were kept.
    """

    pending: int
    void: int
    keys: int
    lost: list[str]


def check_mempool(folder: Path, chain_transactions: Callable[[], int]) -> Checked:
    """Check the mempool of the chain in `folder`.

    chain_transactions: how many transactions blocks hold now. Raises DamagedMempool, which names
    the file, the byte and the ids.
    """
    mempool_folder = folder / FOLDER
    with closing(Acknowledged(folder)) as acknowledged:
        mark = acknowledged.read()
        firsts = [segment.first for segment in segments_in(mempool_folder)]
        trimmed = acknowledged.read()
        is_mark_there = acknowledged.is_there()
    check = _LogCheck(mempool_folder, mark)
    check.run()
    mined = chain_transactions()  # read after the log, so that it is not behind the log
    check.require_all(mined)
    keys = Keys(mempool_folder, mark.keys_until if mark else 0).check(now_ms())
    lost = [lost_words(*one) for one in lost_in(mempool_folder)]
    lost += map(aside_words, aside_in(mempool_folder))
    if mark is None and (is_mark_there or check.has_record_of_this_release):
        lost.append(f"{folder / MARK_NAME}: {MARK_MISSING}; {MARK_WHAT_NEXT}")
    lacks_ends = mark and trimmed and mark._replace(oldest=trimmed.oldest).lacks_segments(firsts)
    if lacks_ends or check.lacks_segment:
        lost.append(f"{mempool_folder}: {SEGMENTS_MISSING}")
    return Checked(max(0, check.next - mined), check.void_from(mined), keys, lost)


class _LogCheck:
    """Walks once through all segments in `folder`."""

    def __init__(self, folder: Path, mark: Mark | None) -> None:
        self._folder = folder
        self._mark = mark or Mark()
        self._is_mark_known = mark is not None
        self._gaps: list[tuple[int, int, str]] = []  # first id, id after the last, and where
        self._voids: list[Record] = []
        self._once = self._mark.mined  # how many transactions blocks are known to have held
        self._end = str(folder)  # where the log ends
        self.lacks_segment = False  # one is missing between two others, or one lacks its end
        self.has_record_of_this_release = False
        self.next = 0

    def run(self) -> None:
        segments = segments_in(self._folder)
        follows = False
        for segment in segments:
            try:
                data = (self._folder / segment.name).read_bytes()
            except FileNotFoundError:  # it has just been trimmed or put right
                follows = False
                continue
            self.lacks_segment |= follows and self.next < segment.first
            follows = True
            for piece in pieces_of(data, segment):
                is_end = segment == segments[-1] and piece.offset + len(piece.data) == len(data)
                self._take(piece, segment, is_end=is_end)

    def _take(self, piece: Piece, segment: Segment, *, is_end: bool) -> None:
        where = f"{self._folder / segment.name}, byte {piece.offset}"
        record = piece.record
        if piece.is_mended:
            raise DamagedMempool(f"{where}: a bit of the record has flipped; {WHAT_NEXT}")
        if record is None:
            if is_end and self._is_mark_known and self._mark.next <= self.next:
                return  # it is being written, or its writer died
            raise DamagedMempool(
                f"{where}: {counted(len(piece.data), 'byte is', 'bytes are')} not a record, after "
                f"transaction {self.next - 1}; {WHAT_NEXT}"
            )
        if record.first < self.next:
            raise DamagedMempool(f"{where}: id {record.first} instead of {self.next}; {WHAT_NEXT}")
        if record.first > self.next:
            self._gaps.append((self.next, record.first, where))
        if len(flights_in(piece.data, record)) != record.count:
            told = counted(record.count, "flight")
            raise DamagedMempool(f"{where}: the record does not hold {told}")
        if is_void(piece.data, record):
            self._voids.append(record)
        self._once = max(self._once, record.mined)
        self.has_record_of_this_release |= not record.is_of_earlier_release
        self.next = record.next
        self._end = f"{self._folder / segment.name}, byte {piece.offset + len(piece.data)}"

    def require_all(self, mined: int) -> None:
        """Raise DamagedMempool if a transaction is neither in the log nor in a block.

        mined: how many transactions blocks hold.
        """
        end = (self.next, self._mark.next, self._end)
        for first, after, where in [*self._gaps, end]:
            missing = max(first, mined)
            if missing < after:
                require_blocks(missing, self._once)
                raise DamagedMempool(
                    f"{where}: acknowledged transactions {missing} to {after - 1} are missing; "
                    f"{WHAT_NEXT}"
                )

    def void_from(self, mined: int) -> int:
        """How many pending transactions stand for lost flights."""
        return sum(max(0, record.next - max(record.first, mined)) for record in self._voids)
