"""What the writer does with the end of the block files before it appends to them.

The table of heights names the blocks that were committed. Three cases, never mixed up:

- *Behind the table*: whole blocks that follow the last one named are added to the table, after they
  have been synced. What comes after them was never committed: it is copied aside, cut off, synced
  and reported.
- *A torn tip*: the newest block that the table names is incomplete, and nothing valid follows. It
  goes the same way. The mempool keeps transactions until the block after theirs, so those that came
  through it are mined again.
- *Damage*: a bad block with valid blocks behind it, or below the tip. Nothing is changed, writing
  stops, and the error names the block.

A missing or damaged table is made again from the block files; then any bad block with something
valid behind it is damage. The rest of the chain is not read: that is what `verify` does.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from backend.chain.block import NO_PREVIOUS, Header, HeaderError, header_from
from backend.chain.canonical import sha256_hex
from backend.chain.merkle import frontier_of
from backend.errors import DamagedBlock
from backend.storage import files, layout
from backend.storage.codec import FrameError, frame_from
from backend.storage.layout import ENTRY_BYTES, MAGIC, Place, place_from


@dataclass(frozen=True, slots=True)
class Recovered:
    """places: of all blocks, genesis first. messages: what was put right, one line each."""

    places: list[Place]
    messages: list[str] = field(default_factory=list)


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


def recover(folder: Path) -> Recovered:
    """Bring table and block files under `folder` to agree, as the module says.

    The caller holds the writer lock. Raises DamagedBlock, or WriteFailed.
    """
    blocks = folder / layout.BLOCKS_FOLDER
    table = blocks / layout.TABLE_NAME
    named = _table_entries(table)
    messages: list[str] = []
    if named and _is_wrong_about_the_tip(blocks, named):
        named = None
    if named is None and _block_files(blocks):
        messages.append("the table of heights was missing or damaged and has been made again")
    places = list(named or [])
    if places:
        messages += _drop_torn_tip(blocks, places)
    messages += _take_in_the_rest(blocks, places, is_table_good=named is not None)
    _rewrite_table(table, places, named)
    return Recovered(places, messages)


def _table_entries(path: Path) -> list[Place] | None:
    """The entries of the table; None if it has no good one, or a bad one before a good one."""
    if not path.exists():
        return None
    data = _read_from(path, 0)
    whole = range(0, len(data) - ENTRY_BYTES + 1, ENTRY_BYTES)
    places = [place_from(data[start : start + ENTRY_BYTES]) for start in whole]
    while places and places[-1] is None:  # a torn end: those were never committed
        places.pop()
    good = [place for place in places if place is not None]
    return good if good and len(good) == len(places) else None


def _block_files(blocks: Path) -> list[int]:
    """The first heights of all block files that hold anything, in order."""
    entries = ((layout.first_height_of(entry.name), entry) for entry in blocks.iterdir())
    return sorted(first for first, entry in entries if first is not None and entry.stat().st_size)


def _path(blocks: Path, first: int) -> Path:
    return blocks / layout.block_file_name(first)


# --- the tip that the table names ------------------------------------------------------------


def _is_wrong_about_the_tip(blocks: Path, places: list[Place]) -> bool:
    """Whether a whole block stands at the tip's place, but not the one that the table describes."""
    found = _frame_at(blocks, places[-1])
    if isinstance(found, _Bad):
        return False
    history = frontier_of(place.hash for place in places[:-1]).root().hex()
    described = (places[-1], len(places) - 1, history)
    return described != (found.place, found.header.height, found.header.history_root)


def _frame_at(blocks: Path, place: Place) -> _Found | _Bad:
    path = _path(blocks, place.file)
    if not path.exists():
        return _Bad(place.offset, f"its file {path.name} is missing")
    nothing = _Bad(place.offset, f"{path.name} ends before it")
    return next(_walk(path, place.file, place.offset), nothing)


def _drop_torn_tip(blocks: Path, places: list[Place]) -> list[str]:
    """Take the tip off `places` if it is torn. Raises DamagedBlock if more than that is wrong."""
    place, height = places[-1], len(places) - 1
    found = _frame_at(blocks, place)
    if isinstance(found, _Found):
        return []
    path = _path(blocks, place.file)
    if path.exists() and _valid_after(path, place.offset + 1):
        raise DamagedBlock(height, f"{found.problem}; valid blocks stand behind it")
    if any(first > place.file for first in _block_files(blocks)):
        raise DamagedBlock(height, f"{found.problem}; later block files stand behind it")
    places.pop()
    if places and isinstance(below := _frame_at(blocks, places[-1]), _Bad):
        raise DamagedBlock(height - 1, f"{below.problem}; it is below the tip")
    if places and _is_wrong_about_the_tip(blocks, places):
        raise DamagedBlock(height - 1, "another block stands in its place; it is below the tip")
    message = f"block {height} was torn ({found.problem}) and is left out"
    return [f"{message}; what came through the mempool is mined again"]


# --- what stands behind it -------------------------------------------------------------------


def _take_in_the_rest(blocks: Path, places: list[Place], *, is_table_good: bool) -> list[str]:
    """Add the blocks that follow `places`, cut off what does not; what was done, in words."""
    known, messages = len(places), []
    file, offset = (places[-1].file, places[-1].end) if places else (0, 0)
    behind = [first for first in _block_files(blocks) if first >= file]
    for index, first in enumerate(behind):
        path, later = _path(blocks, first), behind[index + 1 :]
        bad = _take_in_file(path, first, offset if first == file else 0, places)
        if bad is None:
            continue
        is_torn_end = not (bad.is_whole or later or _valid_after(path, bad.offset + 1))
        if not (is_table_good or is_torn_end):
            raise DamagedBlock(len(places), f"{bad.problem}; more stands behind it")
        messages += [_cut_off(path, bad), *(_set_aside(_path(blocks, each)) for each in later)]
        break
    if len(places) > known:
        _sync(blocks, {place.file for place in places[known:]})
        messages.append(f"blocks {known} to {len(places) - 1} were added to the table of heights")
    return messages


def _take_in_file(path: Path, first: int, start: int, places: list[Place]) -> _Bad | None:
    """Add the blocks of one file from offset `start` on; what ends them early, if anything."""
    if start == 0 and first != len(places):
        return _Bad(0, f"{path.name} does not start with block {len(places)}", is_whole=True)
    for found in _walk(path, first, start):
        if isinstance(found, _Bad):
            return found
        header = found.header
        previous = places[-1].hash.hex() if places else NO_PREVIOUS
        if (header.height, header.previous_hash) != (len(places), previous):
            problem = f"block {header.height} on {header.previous_hash} stands there"
            return _Bad(found.place.offset, problem, is_whole=True)
        places.append(found.place)
    return None


def _walk(path: Path, first: int, offset: int) -> Iterator[_Found | _Bad]:
    """The frames of a file from `offset` on, up to its end or the first bad one (included)."""
    data = memoryview(_read_from(path, offset))
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


def _read_from(path: Path, offset: int) -> bytes:
    with files.refusals("read", path), path.open("rb") as stream:
        if offset > path.stat().st_size:
            return b""
        stream.seek(offset)
        return stream.read()


def _valid_after(path: Path, offset: int) -> bool:
    """Whether a whole frame starts anywhere after `offset`."""
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


def _sync(blocks: Path, firsts: set[int]) -> None:
    """Blocks may be named only when they are on the disk, not just in the kernel's memory."""
    for first in firsts:
        descriptor = files.open_for_writing(_path(blocks, first))
        try:
            files.sync(descriptor, _path(blocks, first))
        finally:
            os.close(descriptor)
    files.sync_folder(blocks)


# --- putting right ---------------------------------------------------------------------------


def _aside(path: Path, offset: int) -> Path:
    """A name that is not taken for what is cut off `path` at `offset`."""
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
        f"{len(tail)} bytes that are no committed block ({bad.problem}) were cut off {path.name} "
        f"and kept in {aside.name}"
    )


def _set_aside(path: Path) -> str:
    """Rename a file that holds nothing committed."""
    aside = _aside(path, 0)
    files.rename(path, aside)
    return f"{path.name} holds nothing that was committed and is now {aside.name}"


def _rewrite_table(path: Path, places: list[Place], named: list[Place] | None) -> None:
    """Make the table hold exactly `places`; untouched if it already does."""
    unchanged = places == named and path.stat().st_size == len(places) * ENTRY_BYTES
    if not unchanged:
        files.write_new(path, b"".join(place.packed() for place in places))
