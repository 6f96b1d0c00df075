"""Compares the blocks of a copy with those of a ledger, and copies those that are missing.

Frames go to the same place in a file of the same name, a batch at a time: the frames are checked,
written, synced and read again, and then the table of heights is. So every block that the table of
the copy names is good and on the disk, and a copy that was interrupted goes on where it stopped.
"""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from backend.base import files
from backend.base.errors import BackupRefused, WriteFailed
from backend.chain.block import NO_PREVIOUS, Block
from backend.storage import layout
from backend.storage.block_store import BlockStore
from backend.storage.codec import linked, verified_block
from backend.storage.layout import ENTRY_BYTES, Place, place_from

BLOCKS_AT_ONCE = 1024
REMEDY = "nothing in it was changed; keep it, and make a new backup in another folder"


def blocks_in_copy(store: BlockStore, copy: Path, named: int) -> int:
    """Return how many blocks the copy in folder `copy` has already, from genesis on.

    named: up to which block it must be whole. What an interrupted run has left after that counts
    up to the first damaged entry of the table, or block that a file lacks. Raises BackupRefused if
    the copy names a block that `store` does not have, or lacks one up to `named`.
    """
    table = copy / layout.BLOCKS_FOLDER / layout.TABLE_NAME
    data = table.read_bytes() if table.exists() else b""
    entries = [data[at : at + ENTRY_BYTES] for at in range(0, len(data), ENTRY_BYTES)]
    places = store.places(0, store.height() + 1)
    agreed = 0
    while agreed < min(len(entries), len(places)) and entries[agreed] == places[agreed].packed():
        agreed += 1
    if agreed < len(entries) and place_from(entries[agreed]) is not None:
        raise _not_ours(copy, agreed, len(places) - 1)
    if agreed <= named:
        raise _damaged(copy, f"{table} does not name block {agreed}")
    whole = _whole_blocks(table.parent, places[:agreed])
    if whole <= named:
        path = table.with_name(layout.block_file_name(places[whole].file))
        raise _damaged(copy, f"{path} is {'cut off' if path.exists() else 'missing'}")
    return whole


def _whole_blocks(blocks: Path, places: Sequence[Place]) -> int:
    """Return how many blocks at these places, from genesis on, do not end beyond their files."""
    sizes = {path.name: path.stat().st_size for path in blocks.glob("*")}
    for height, place in enumerate(places):
        if place.end > sizes.get(layout.block_file_name(place.file), 0):
            return height
    return len(places)


def _not_ours(copy: Path, height: int, tip: int) -> BackupRefused:
    """Return the error for a copy whose block `height` the chain, up to `tip`, lacks."""
    what = (
        f"holds block {height}, but this chain ends at block {tip}"
        if height > tip
        else f"holds another block {height} than this chain, which goes to block {tip}"
    )
    return BackupRefused(
        f"the backup in {copy} {what}: the chain has lost blocks, or its copy was continued "
        f"elsewhere; {REMEDY}"
    )


def _damaged(copy: Path, what: str) -> BackupRefused:
    return BackupRefused(
        f"the backup in {copy} is damaged: {what}, so no ledger can be restored from it; {REMEDY}"
    )


def bytes_of(store: BlockStore, first: int, height: int) -> int:
    """Return how many bytes a copy of blocks `first` to `height` takes."""
    places = store.places(first, height + 1 - first)
    return sum(place.length + ENTRY_BYTES for place in places)


def copy_blocks(store: BlockStore, first: int, height: int, folder: Path) -> Iterator[int]:
    """Copy blocks `first` to `height` into `folder`; after each batch yield how many it has.

    Raises DamagedBlock for a bad block of `store`, and WriteFailed.
    """
    blocks = folder / layout.BLOCKS_FOLDER
    files.make_folder(blocks)
    while first <= height:
        run = _checked_frames(store, first, min(BLOCKS_AT_ONCE, height + 1 - first))
        for file in {place.file for place, _ in run}:
            frames = {place.offset: frame for place, frame in run if place.file == file}
            _write(blocks / layout.block_file_name(file), frames)
        entries = b"".join(place.packed() for place, _ in run)
        _write(blocks / layout.TABLE_NAME, {first * ENTRY_BYTES: entries})
        first += len(run)
        yield first


def _checked_frames(store: BlockStore, first: int, count: int) -> list[tuple[Place, bytes]]:
    """Return frames of a run of blocks. Raises DamagedBlock unless they are whole and linked."""
    frames = store.frames(first, count)

    def block(height: int) -> Block:
        place, frame = frames[height - first]
        return verified_block(frame, height, place.hash)

    below = store.places(first - 1, 1)
    hash_below = below[0].hash.hex() if below else NO_PREVIOUS
    for _ in linked(range(first, first + len(frames)), block, hash_below):
        pass
    return frames


def _write(path: Path, pieces: dict[int, bytes]) -> None:
    """Write, at each offset, a piece of a file; sync it, and read it again from the disk."""
    descriptor = files.open_for_writing(path)
    try:
        for offset, data in pieces.items():
            files.write_at(descriptor, data, offset, path)
        files.sync(descriptor, path)
        files.forget_cached(descriptor)
        for offset, data in pieces.items():
            if files.read_at(descriptor, len(data), offset, path) != data:
                raise WriteFailed(f"{path} has other bytes when read back: do not trust its disk")
    finally:
        os.close(descriptor)
