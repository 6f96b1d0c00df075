"""Repairs the end of the block files, before the writer appends to them.

The table of heights names the blocks that were committed. A block is synced before any byte of its
entry is written, so what the table names was on the disk, whole. There are four cases, which are
never mixed up:

- *Behind the table*: whole blocks that follow the last one named are added to the table, after they
  have been synced: a disk that lied about its syncs may have lost their entries. But a writer may
  also have died before anybody could see them, and then flights that were posted since have their
  ids. What contradicts the mempool, and what is no block, was never committed: it is copied aside,
  cut off, synced and reported.
- *A torn tip*: the file of the newest block that the table names ends within that block, as on a
  disk that said it had synced and had not. It goes the same way, but only if the mempool still
  holds all of its transactions, which are then mined again.
- *Damage*: any other block that the table names is bad or missing, or a bad one has valid blocks
  behind it. Nothing is changed, writing stops, and the error names the block.
- *A missing or damaged table* is made again from the block files. Its length still tells how many
  blocks were committed. If nothing tells that, what is no block at the end of the files may have
  been one, so it is damage, too.

Nobody is given ids meanwhile. The rest of the chain is not read: that is what `verify` does.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import Protocol

from backend.base import files
from backend.base.errors import DamagedBlock
from backend.base.words import counted
from backend.chain.block import NO_PREVIOUS, Block, Header, HeaderError, header_from
from backend.chain.canonical import sha256_hex
from backend.chain.merkle import Frontier, frontier_of
from backend.storage import layout
from backend.storage.codec import FrameError, frame_from, verified_block
from backend.storage.layout import ENTRY_BYTES, MAGIC, Place, places_from

WHAT_TO_DO = "restore the chain from a backup"


class Pending(Protocol):
    """Answers what recovery asks of the mempool: `holds` and `contradiction`, inside `locked`."""

    def locked(self) -> AbstractContextManager[None]:
        """Return a lock: while it is held, no process gives ids."""

    def holds(self, first: int, following: int) -> bool:
        """Return whether the mempool holds all ids from `first` to `following` (exclusive)."""

    def contradiction(self, place: Place, block: Callable[[], Block]) -> str | None:
        """Return what the mempool holds, and the block at `place` does not, under one id; in words.

        block: reads it, if that is needed.
        """


@dataclass(frozen=True, slots=True)
class Recovered:
    """The place of the newest block, None if there is no block; and a message for each repair.

    history: the tree over all blocks. is_tip_left_out: whether the newest block was torn, and its
    transactions are mined again.
    """

    tip: Place | None
    history: Frontier
    messages: list[str]
    is_tip_left_out: bool


@dataclass(frozen=True, slots=True)
class _Found:
    """A whole frame in a block file: where it stands, its header and hash."""

    place: Place
    header: Header


@dataclass(frozen=True, slots=True)
class _Bad:
    """Bytes that do not continue the chain. is_whole: they are a block, but not the next one."""

    offset: int
    problem: str
    is_whole: bool = False


@dataclass(frozen=True, slots=True)
class _Rest:
    """The rest that does not continue the chain: from `bad` on in `path`, and the files `later`."""

    path: Path
    bad: _Bad
    later: list[Path]

    def has_valid_blocks(self) -> bool:
        """Return whether the rest has anything but torn bytes."""
        is_alone = not (self.bad.is_whole or self.later)
        return not is_alone or _valid_after(self.path, self.bad.offset + 1)


def recover(folder: Path, pending: Pending) -> Recovered:
    """Make the table and the block files under `folder` agree, or say what is damaged.

    The caller holds the writer lock. Raises DamagedBlock before anything was changed, TryLater if
    the mempool stays locked, or WriteFailed.
    """
    with pending.locked():
        return _recover(folder, pending)


def _recover(folder: Path, pending: Pending) -> Recovered:
    blocks = folder / layout.BLOCKS_FOLDER
    data, named, history = _read_table(blocks)
    messages: list[str] = []
    if named is None and _block_files(blocks):
        messages.append("the table of heights was missing or damaged, and was rebuilt")
    places = list(named or [])
    bad_tip = _without_bad_tip(blocks, places) if places else None
    known = len(places)
    rest = _take_in_the_rest(blocks, places, pending)
    is_tip_left_out = bad_tip is not None and len(places) == known
    if bad_tip is not None and is_tip_left_out:
        messages.append(_left_out(blocks, bad_tip, known, rest, pending))
    elif rest is not None:
        _require_uncommitted(len(places), rest, data, is_table_good=named is not None)
    else:
        _require_all_named(places, data or b"")
    messages += _repair(blocks, places, known, rest)
    _rewrite_table(blocks / layout.TABLE_NAME, places, named)
    for place in places[history.size :]:
        history = history.extended(place.hash)
    return Recovered(places[-1] if places else None, history, messages, is_tip_left_out)


def _read_table(blocks: Path) -> tuple[bytes | None, list[Place] | None, Frontier]:
    """Return the bytes of the table, its entries, and the history of the blocks below its tip.

    The entries are None, and the history is empty, if the table is damaged or contradicts blocks.
    """
    table = blocks / layout.TABLE_NAME
    data = _read_from(table, 0) if table.exists() else None
    named = _table_entries(data or b"")
    if named and _is_of_another_ledger(blocks, named):
        return b"", None, Frontier()
    history = _history_below_tip(named or [])
    if named and _is_wrong_about_the_tip(blocks, named, history):
        return data, None, Frontier()
    return data, named, history


def _table_entries(data: bytes) -> list[Place] | None:
    """Return the entries in a table; None if it has no good one, or a bad one before a good one."""
    places = places_from(data)
    while places and places[-1] is None:
        places.pop()
    good = [place for place in places if place is not None]
    return good if good and len(good) == len(places) else None


def _require_all_named(places: list[Place], data: bytes) -> None:
    """Raise DamagedBlock if a damaged table names a block behind `places`, which are all."""
    hashes = {place.hash for place in places}
    behind = places_from(data[len(places) * ENTRY_BYTES :])
    for height, place in enumerate(behind, len(places)):
        if place is not None and place.hash not in hashes:
            raise _damaged(height, "the table of heights names it, but no block file has it")


def _entries_written(data: bytes) -> int:
    """Return how many entries a table has; sectors that never reached the disk are zeros."""
    return -(-len(data.rstrip(b"\0")) // ENTRY_BYTES)


def _block_files(blocks: Path) -> list[int]:
    """Return the first heights of all block files that hold anything, in order."""
    entries = ((layout.first_height_of(entry.name), entry) for entry in blocks.iterdir())
    return sorted(first for first, entry in entries if first is not None and entry.stat().st_size)


def _path(blocks: Path, first: int) -> Path:
    return blocks / layout.block_file_name(first)


def _size(path: Path) -> int:
    """Return the size of a file in bytes, -1 if there is none."""
    return path.stat().st_size if path.exists() else -1


# --- the blocks that the table names ---------------------------------------------------------


def _is_of_another_ledger(blocks: Path, places: list[Place]) -> bool:
    """Return whether a whole block 0 stands at its place, but not the one that the table names."""
    genesis = _frame_at(blocks, places[0]._replace(file=0, offset=0), layout.MOST_GENESIS_BYTES)
    if isinstance(genesis, _Bad) or genesis.header.height:
        return False
    return genesis.place.hash != places[0].hash


def _history_below_tip(places: list[Place]) -> Frontier:
    return frontier_of(place.hash for place in places[:-1])


def _is_wrong_about_the_tip(blocks: Path, places: list[Place], history: Frontier) -> bool:
    """Return whether a whole block stands at the tip's place, but not the one in the table.

    history: that of the blocks below the tip.
    """
    tip = _frame_at(blocks, places[-1])
    if isinstance(tip, _Bad):
        return False
    described = (places[-1], len(places) - 1, history.root().hex())
    return described != (tip.place, tip.header.height, tip.header.history_root)


def _frame_at(blocks: Path, place: Place, most: int = -1) -> _Found | _Bad:
    """Return the frame that begins at `place`. most: of how many bytes it may be, if not of any."""
    path = _path(blocks, place.file)
    if not path.exists():
        return _Bad(place.offset, f"its file {path.name} is missing")
    nothing = _Bad(place.offset, f"{path.name} ends before it")
    return next(_walk(path, place.file, place.offset, most), nothing)


def _without_bad_tip(blocks: Path, places: list[Place]) -> tuple[Place, str] | None:
    """Take the tip off `places` if it is bad. Returns where it should be, and what is wrong then.

    Raises DamagedBlock if the block below is bad, too, or an earlier file is not there in full.
    """
    _require_earlier_files(blocks, places)
    newest = _frame_at(blocks, places[-1])
    if isinstance(newest, _Found):
        return None
    tip = places.pop()
    if places and isinstance(below := _frame_at(blocks, places[-1]), _Bad):
        raise _damaged(len(places) - 1, f"{below.problem}; it is below the tip")
    if places and _is_wrong_about_the_tip(blocks, places, _history_below_tip(places)):
        problem = "another block is in its place; it is below the tip"
        raise _damaged(len(places) - 1, problem)
    return tip, newest.problem


def _require_earlier_files(blocks: Path, places: list[Place]) -> None:
    """Raise DamagedBlock if a file before the tip's ends before a block that it must hold."""
    ends = {place.file: place.end for place in places}
    del ends[places[-1].file]
    for file, end in ends.items():
        path = _path(blocks, file)
        if (size := _size(path)) < end:
            heights = (h for h, p in enumerate(places) if p.file == file and p.end > size)
            problem = (
                f"{path.name} ends before it" if size >= 0 else f"its file {path.name} is missing"
            )
            raise _damaged(next(heights), problem)


def _left_out(
    blocks: Path, bad_tip: tuple[Place, str], height: int, rest: _Rest | None, pending: Pending
) -> str:
    """Return words about a torn tip that is left out. Raises DamagedBlock if it is not torn."""
    place, problem = bad_tip
    if not 0 <= _size(_path(blocks, place.file)) < place.end:
        raise _damaged(height, f"{problem}; it was on the disk when the table of heights named it")
    if rest is not None and rest.has_valid_blocks():
        raise _damaged(height, f"{problem}; more data follows it")
    if not pending.holds(place.first_transaction, place.next_transaction):
        raise _damaged(height, f"{problem}; the mempool no longer holds its transactions")
    return f"block {height} was torn ({problem}) and is left out; its transactions are mined again"


def _damaged(height: int, problem: str) -> DamagedBlock:
    return DamagedBlock(height, f"{problem}; nothing was changed; {WHAT_TO_DO}")


# --- what stands behind them -----------------------------------------------------------------


def _take_in_the_rest(blocks: Path, places: list[Place], pending: Pending) -> _Rest | None:
    """Add the blocks that follow `places`. Returns what does not continue the chain, if any."""
    file, offset = (places[-1].file, places[-1].end) if places else (0, 0)
    behind = [first for first in _block_files(blocks) if first >= file]
    for index, first in enumerate(behind):
        start = offset if first == file else 0
        bad = _take_in_file(_path(blocks, first), first, start, places, pending)
        if bad is not None:
            later = [_path(blocks, height) for height in behind[index + 1 :]]
            return _Rest(_path(blocks, first), bad, later)
    return None


def _take_in_file(
    path: Path, first: int, start: int, places: list[Place], pending: Pending
) -> _Bad | None:
    """Add the blocks of a file from offset `start` on. Returns what ends them early, if any."""
    if start == 0 and first != len(places):
        return _Bad(0, f"{path.name} does not start with block {len(places)}", is_whole=True)
    for block in _walk(path, first, start):
        if isinstance(block, _Bad):
            return block
        header = block.header
        previous = places[-1].hash.hex() if places else NO_PREVIOUS
        if (header.height, header.previous_hash) != (len(places), previous):
            problem = f"block {header.height} on {header.previous_hash} stands there"
            return _Bad(block.place.offset, problem, is_whole=True)
        if contradiction := pending.contradiction(block.place, partial(_block_at, path, block)):
            return _Bad(block.place.offset, contradiction, is_whole=True)
        places.append(block.place)
    return None


def _block_at(path: Path, block: _Found) -> Block:
    place = block.place
    frame = _read_from(path, place.offset, place.length)
    return verified_block(frame, block.header.height, place.hash)


def _require_uncommitted(
    height: int, rest: _Rest, table: bytes | None, *, is_table_good: bool
) -> None:
    """Raise DamagedBlock if block `height`, where `rest` stands, may have been committed.

    table: as it was found. An empty one without genesis is that of a chain which just begins.
    """
    problem = rest.bad.problem
    if not is_table_good and rest.has_valid_blocks():
        raise _damaged(height, f"{problem}; more data follows it")
    written = _entries_written(table or b"")
    if height < written:
        raise _damaged(height, f"{problem}; the table of heights had {counted(written, 'block')}")
    if written == 0 and (height or table is None):
        raise _damaged(
            height,
            f"{problem}; without a table of heights it is unknown whether a block stood there (if "
            f"none did, cut {rest.path.name} at byte {rest.bad.offset})",
        )


def _walk(path: Path, first: int, offset: int, most: int = -1) -> Iterator[_Found | _Bad]:
    """Yield the frames of a file from `offset` on, up to the first bad one (included).

    most: how many bytes are read, -1 for all.
    """
    data = memoryview(_read_from(path, offset, most))
    at = 0
    while at < len(data):
        try:
            frame = frame_from(data[at:])
            header = header_from(frame.header_bytes)
        except (FrameError, HeaderError) as error:
            yield _Bad(offset + at, str(error))
            return
        digest = bytes.fromhex(sha256_hex(frame.header_bytes))
        counts = (header.first_transaction, header.transaction_count)
        yield _Found(Place(digest, first, offset + at, frame.length, *counts), header)
        at += frame.length


def _read_from(path: Path, offset: int, most: int = -1) -> bytes:
    with files.refusals("read", path), path.open("rb") as stream:
        if offset > path.stat().st_size:
            return b""
        stream.seek(offset)
        return stream.read(most)


def _valid_after(path: Path, offset: int) -> bool:
    """Return whether a whole frame starts anywhere after `offset`."""
    data = _read_from(path, offset)
    at = data.find(MAGIC)
    while at >= 0:
        try:
            frame_from(memoryview(data)[at:])
        except FrameError:
            at = data.find(MAGIC, at + 1)
        else:
            return True
    return False


# --- repairs ---------------------------------------------------------------------------------


def _repair(blocks: Path, places: list[Place], known: int, rest: _Rest | None) -> list[str]:
    """Cut off what is no block, and sync the blocks behind the `known` ones. Returns messages."""
    messages: list[str] = []
    if rest is not None:
        messages = [_cut_off(rest.path, rest.bad), *map(_set_aside, rest.later)]
    if len(places) > known:
        _sync(blocks, places[known:])  # only what is on the disk may be named
        messages.append(f"blocks {known} to {len(places) - 1} were added to the table of heights")
    return messages


def _sync(blocks: Path, places: list[Place]) -> None:
    """Return only when the blocks at `places` are on the disk.

    The writer may have died of a sync that failed. That can only have been one of the last file, as
    it makes no other after it; so what stands there is written again.
    """
    newest = next(place for place in places if place.file == places[-1].file)
    for file in {place.file for place in places} - {newest.file}:
        files.sync_file(_path(blocks, file))
    path = _path(blocks, newest.file)
    descriptor = files.open_for_writing(path)
    try:
        files.write_again(descriptor, path, newest.offset)
        files.sync(descriptor, path)
    finally:
        os.close(descriptor)


def _aside(path: Path, offset: int) -> Path:
    """Return a name that is not taken for what is cut off `path` at `offset`."""
    names = (f"torn-{path.stem}-{offset}-{number}.bin" for number in count(1))
    return next(p for p in map(path.with_name, names) if not p.exists())


def _cut_off(path: Path, bad: _Bad) -> str:
    """Copy what is bad aside, cut it off, and say so."""
    if bad.offset == 0:
        return _set_aside(path)
    tail = _read_from(path, bad.offset)
    aside = _aside(path, bad.offset)
    files.write_new(aside, tail)
    descriptor = files.open_for_writing(path)
    try:
        files.cut(descriptor, bad.offset, path)
    finally:
        os.close(descriptor)
    return (
        f"cut {counted(len(tail), 'byte')} off {path.name}, because no committed block stands "
        f"there ({bad.problem}); these bytes are now in {aside.name}"
    )


def _set_aside(path: Path) -> str:
    """Rename a file that holds nothing committed."""
    aside = _aside(path, 0)
    files.rename(path, aside)
    return f"{path.name} holds no committed block and is now {aside.name}"


def _rewrite_table(path: Path, places: list[Place], named: list[Place] | None) -> None:
    """Make the table hold exactly `places`; untouched if it already does."""
    unchanged = places == named and path.stat().st_size == len(places) * ENTRY_BYTES
    if not unchanged:
        files.write_new(path, b"".join(place.packed() for place in places))
