"""Puts a damaged log right: it keeps what is whole, names what is lost, and changes no id.

The process that holds the lock between processes reads every segment byte by byte:

- A record in which one bit has flipped is written back as it was. Nothing is lost.
- Bytes after the last record that held no acknowledged flight were left by a process that died
  while it wrote: they are cut off. If it is not known what was acknowledged, because
  `acknowledged.dat` is missing or damaged, then flights that heads in these bytes name may have
  been acknowledged, and count as lost; and if no head can be believed, the bytes are kept in
  `perhaps-acknowledged-NEXT.bin`.
- Any other bytes that are no record are copied to `lost-FIRST-COUNT.bin`, which is never
  overwritten, so that a person can look at it. The segment is written anew without them, with a
  record that says that the flights they held are void. So each whole record keeps its ids, and no
  id is given twice. Files that are missing or too short are noticed by the missing ids, and are
  treated in the same way.
- If the flights in such bytes are in blocks already, the bytes are left out and kept in
  `damaged-NEXT.bin`: the newest block may be torn itself, and they are the only other copy.

The old file is removed last, so a crash on the way loses nothing: the next process does the same
again. If transactions are missing that blocks once held, then the chain has lost blocks. That
cannot be put right here, and nothing is changed.
"""

import os
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import NamedTuple

from backend.clock import now_ms
from backend.errors import DamagedMempool
from backend.mempool.acknowledged import Mark
from backend.mempool.record import (
    MAGIC,
    Record,
    beginnings_in,
    end_named_in,
    mended,
    mended_behind_length,
    packed_void,
    record_at,
)
from backend.mempool.segments import (
    DAMAGED,
    PERHAPS_ACKNOWLEDGED,
    Segment,
    all_segments_in,
    segments_in,
)
from backend.storage import files
from backend.words import counted

KEYS_FORGOTTEN = "idempotency keys that came with it may be used again"
SEGMENTS_MISSING = f"a segment of the log is missing; blocks hold its flights; {KEYS_FORGOTTEN}"
MARK_UNKNOWN = (
    "acknowledged.dat was missing or damaged, so nobody knows whether the data there was "
    "acknowledged"
)
BIT_PUT_RIGHT = "a bit had flipped on the disk and was repaired; nothing is lost"
OLD_BIT_PUT_RIGHT = (
    "a bit had flipped on the disk in a record of an earlier release and was repaired as its CRC "
    "says; its flights are valid now, but there is no hash that would prove them"
)


class Piece(NamedTuple):
    """Bytes of a segment: a record, as it was when it was written, or no record at all."""

    offset: int
    data: bytes
    record: Record | None
    is_mended: bool = False


class Gap(NamedTuple):
    """Transactions that are missing between two records.

    follows: the id after the record before them. first, flights: the first missing id and how many
    are missing; 0 if all are in blocks. bad: the bytes that are in their place now. void: the
    record that will take their place.
    """

    follows: int
    first: int
    flights: int
    bad: Piece
    void: bytes


def lost_words(first: int, flights: int, lost: Path) -> str:
    """The message about lost flights and the file that holds what is left of them."""
    return (
        f"{counted(flights, 'acknowledged flight is lost', 'acknowledged flights are lost')}, "
        f"transactions {first} to {first + flights - 1}; "
        f"void entries take their places, and {lost} keeps what is left of them: post them "
        "again, then move that file out of the folder; idempotency keys that came with them may be "
        "used again"
    )


def aside_words(aside: Path) -> str:
    """The message about a file with damaged bytes for which no flight is known to be missing."""
    return f"damaged bytes of the mempool's log are kept in {aside}: look at them, then move it"


def require_blocks(missing: int, mined: int) -> None:
    """Raise DamagedMempool if blocks held a transaction once that is missing now.

    missing: its id. mined: how many transactions blocks held at some time.
    """
    if missing < mined:
        raise DamagedMempool(
            f"the chain ends at transaction {missing - 1}, but its blocks held {mined} "
            "transactions once: the chain has lost blocks; restore it from a copy"
        )


def pieces_of(data: bytes, segment: Segment) -> Iterator[Piece]:
    """Split the bytes of a segment into pieces, without a gap."""
    at = 0
    while at < len(data):
        piece = _piece_at(data, at, segment, mended) or _no_record(data, at, segment)
        yield piece
        at += len(piece.data)


def _piece_at(
    data: bytes, at: int, segment: Segment, mended_at: Callable[[bytes, int], bytes | None]
) -> Piece | None:
    """The record that starts `at`, put right if one bit of it has flipped.

    mended_at: finds that bit: `mended`, or `mended_behind_length`.
    """
    if record := record_at(data, at, segment, at):
        return Piece(at, data[at : at + record.length], record)
    whole = mended_at(data, at)
    return Piece(at, whole, record_at(whole, 0, segment, at), is_mended=True) if whole else None


def _no_record(data: bytes, at: int, segment: Segment) -> Piece:
    """The bytes from `at` to the next record or the end.

    Each byte of a large batch is looked at about once, because the log is locked meanwhile.
    """
    for end in beginnings_in(data, at + 1):
        if _piece_at(data, end, segment, mended_behind_length):
            return Piece(at, data[at:end], None)
    return Piece(at, data[at:], None)


class Salvage:
    """Puts the log in `folder` right. Only under the lock between processes."""

    def __init__(
        self, folder: Path, mined: int, mark: Mark | None, report: Callable[[str], None]
    ) -> None:
        """mined: how many transactions blocks hold.

        mark: how far flights have been acknowledged; None if that is not known.
        """
        self._folder = folder
        self._mined = mined
        self._mark = mark or Mark()
        self._is_mark_known = mark is not None
        self._report = report
        self._next = 0  # the id after the last record that was handled
        self._timestamp = 0  # the acceptance time of that record

    def run(self) -> None:
        """Put right every segment of the log that needs it.

        Raises WriteFailed, or DamagedMempool if blocks are lost; then nothing is changed.
        """
        segments = segments_in(self._folder)
        contents = [list(pieces_of(self._read(segment), segment)) for segment in segments]
        records = [piece.record for pieces in contents for piece in pieces if piece.record]
        self._require_all_blocks(records)
        for outdated in set(all_segments_in(self._folder)).difference(segments):
            files.remove(self._folder / outdated.name)  # a rewrite was interrupted here
        if self._mined < (segments[0].first if segments else self._mark.next):
            # The first segment is gone.
            segments, contents = [Segment(self._mined), *segments], [[], *contents]
        self._timestamp = records[0].timestamp if records else now_ms()
        ends = [segment.first for segment in segments[1:]]
        for segment, pieces, end in zip(segments, contents, [*ends, None], strict=False):
            self._put_right(segment, pieces, end)

    def _read(self, segment: Segment) -> bytes:
        return (self._folder / segment.name).read_bytes()

    def _require_all_blocks(self, records: list[Record]) -> None:
        """Raise DamagedMempool if any missing transaction was in a block once."""
        once = max([self._mark.mined, *(record.mined for record in records)])
        expected = self._mined
        for record in records:
            if expected < record.first:
                require_blocks(expected, once)
            expected = max(expected, record.next)
        if expected < self._mark.next:
            require_blocks(expected, once)

    def _put_right(self, segment: Segment, pieces: list[Piece], end: int | None) -> None:
        """Put one segment right. end: the first id of the next segment; None for the last one."""
        kept: list[bytes] = []
        gaps: list[Gap] = []
        bad = Piece(0, b"", None)  # the bytes since the last record, which are no record
        for piece in pieces:
            record = piece.record
            if record is None or record.first < self._next:
                bad = bad._replace(data=bad.data + piece.data)
                continue
            gaps.append(self._gap(record.first, bad))
            kept += [gaps[-1].void, piece.data]
            self._next, self._timestamp = record.next, record.timestamp
            bad = Piece(piece.offset + len(piece.data), b"", None)
        path = self._folder / segment.name
        last = self._gap(self._end_of_log(bad) if end is None else end, bad)
        if end is None and not last.flights and bad.data:
            self._cut_off(path, bad)
        else:
            gaps.append(last)
            self._next = max(self._next, end or 0)
        if any(gap.flights or gap.bad.data for gap in gaps):
            self._make_anew(segment, gaps, b"".join([*kept, last.void]))
        else:
            self._write_back(path, [piece for piece in pieces if piece.is_mended])

    def _gap(self, end: int, bad: Piece) -> Gap:
        """What is missing before id `end`, in the place of `bad`."""
        first = max(self._next, self._mined)
        missing = max(0, end - first)
        void = packed_void(first, missing, self._timestamp, self._mined) if missing else b""
        return Gap(self._next, first, missing, bad, void)

    def _end_of_log(self, bad: Piece) -> int:
        """The id after the last one that may have been acknowledged. bad: the log's last bytes."""
        if self._is_mark_known:
            return self._mark.next
        starts = {self._next, max(self._next, self._mined)}  # what was imported is not in the log
        return max(end_named_in(bad.data, start) for start in starts)

    # --- writing -----------------------------------------------------------------------------

    def _cut_off(self, path: Path, bad: Piece) -> None:
        was = self._words_before_cut(bad)
        descriptor = files.open_for_writing(path)
        try:
            files.cut(descriptor, bad.offset, path)
        finally:
            os.close(descriptor)
        self._report(
            f"{path}, byte {bad.offset}: an incomplete record of "
            f"{counted(len(bad.data), 'byte')} was cut off; {was}"
        )

    def _words_before_cut(self, bad: Piece) -> str:
        """The message about the bytes that are cut off; they are kept if they may matter."""
        if self._end_of_log(bad) > self._next:
            aside = self._keep(f"{DAMAGED}-{self._next}", bad.data)
            return f"blocks hold what it held; it is kept in {aside}; {KEYS_FORGOTTEN}"
        if self._is_mark_known:
            return "it was never acknowledged"
        aside = self._keep(f"{PERHAPS_ACKNOWLEDGED}-{self._next}", bad.data)
        return f"it is kept in {aside}; {MARK_UNKNOWN}"

    def _write_back(self, path: Path, pieces: list[Piece]) -> None:
        """Write the records in which a bit had flipped back in their places."""
        if not pieces:
            return
        descriptor = files.open_for_writing(path)
        try:
            for piece in pieces:
                files.write_at(descriptor, piece.data, piece.offset, path)
                words = BIT_PUT_RIGHT if piece.data.startswith(MAGIC) else OLD_BIT_PUT_RIGHT
                self._report(f"{path}, byte {piece.offset}: {words}")
            files.sync(descriptor, path)
        finally:
            os.close(descriptor)

    def _make_anew(self, segment: Segment, gaps: list[Gap], data: bytes) -> None:
        """Keep what is lost in files, write the segment anew, and remove the old one."""
        path = self._folder / segment.name
        messages = [self._kept_aside(path, gap) for gap in gaps if gap.flights or gap.bad.data]
        files.write_new(self._folder / segment.renewed.name, data)
        files.remove(path)
        for message in messages:
            self._report(message)

    def _kept_aside(self, path: Path, gap: Gap) -> str:
        """Keep what is left of lost flights in a file. Returns the message about it."""
        where = f"{path}, byte {gap.bad.offset}"
        damaged = len(gap.bad.data)
        if not gap.flights:
            aside = self._keep(f"{DAMAGED}-{gap.follows}", gap.bad.data)
            return (
                f"{where}: left out {counted(damaged, 'damaged byte')}; blocks hold what stood "
                f"there, and {aside} what was left out; {KEYS_FORGOTTEN}"
            )
        lost = self._keep(f"lost-{gap.first}-{gap.flights}", gap.bad.data)
        doubt = "" if self._is_mark_known else f" ({MARK_UNKNOWN})"
        told = counted(damaged, "byte is", "bytes are")
        words = lost_words(gap.first, gap.flights, lost)
        return f"{where}: {told} damaged or missing: {words}{doubt}"

    def _keep(self, stem: str, data: bytes) -> Path:
        """Keep bytes in a file whose name begins with `stem`. Returns its path."""
        paths = (self._folder / f"{stem}{again}.bin" for again in _numbers())
        # a file with the same bytes was made by a process that died in this place
        aside = next(p for p in paths if not p.exists() or p.read_bytes() == data)
        if not aside.exists():
            files.write_new(aside, data)
        return aside


def _numbers() -> Iterator[str]:
    """The endings that are tried until a name is not taken: none, `.2`, `.3` and so on."""
    yield ""
    for number in count(2):
        yield f".{number}"
