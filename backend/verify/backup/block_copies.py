"""Copies blocks into another folder, and checks the copies.

Frames go to the same place in a file of the same name, a batch at a time: frames, sync, entries of
the table of heights, sync. So every block that the table of the copy names is there, and a copy
that was interrupted goes on where it stopped.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

from backend.base import files
from backend.base.errors import BackupRefused, DamagedBlock
from backend.chain.block import NO_PREVIOUS
from backend.storage import layout
from backend.storage.block_store import BlockStore
from backend.storage.codec import linked
from backend.storage.layout import ENTRY_BYTES, Place, place_from

BLOCKS_AT_ONCE = 1024

Progress = Callable[[int, int], None]  # blocks done, blocks to do


def agreeing_blocks(chain: Path, copy: Path, height: int) -> int:
    """Return how many entries of the two tables of heights agree, from genesis on.

    chain, copy: the folders. height: the block up to which the chain's table counts. Raises
    BackupRefused if the copy names a block that the chain does not have.
    """
    tables = (_table_path(folder) for folder in (chain, copy))
    ours, theirs = (table.read_bytes() if table.exists() else b"" for table in tables)
    ours = ours[: (height + 1) * ENTRY_BYTES]
    at = 0
    while (entry := theirs[at : at + ENTRY_BYTES]) and entry == ours[at : at + ENTRY_BYTES]:
        at += ENTRY_BYTES
    if place_from(entry) is not None:  # a block whose entry is damaged is copied again
        raise not_ours(copy, at // ENTRY_BYTES, height)
    return at // ENTRY_BYTES


def not_ours(copy: Path, height: int, tip: int) -> BackupRefused:
    """Return the error for a backup whose block `height` the chain, up to `tip`, lacks."""
    what = (
        f"holds block {height}, but this chain ends at block {tip}"
        if height > tip
        else f"holds another block {height} than this chain, which goes to block {tip}"
    )
    return BackupRefused(
        f"the backup in {copy} {what}: the chain has lost blocks, or its copy was continued "
        "elsewhere; keep that backup, and make another one in another folder"
    )


def _table_path(folder: Path) -> Path:
    return folder / layout.BLOCKS_FOLDER / layout.TABLE_NAME


def bytes_of(store: BlockStore, first: int, height: int) -> int:
    """Return how many bytes a copy of blocks `first` to `height` takes."""
    places = store.places(first, height + 1 - first)
    return sum(place.length + ENTRY_BYTES for place in places)


def check_blocks(
    store: BlockStore, first: int, following: int, progress: Progress = lambda done, to_do: None
) -> None:
    """Read blocks `first` to `following` (exclusive) of `store`.

    Raises DamagedBlock for the first one that is not whole or does not follow the one below.
    """
    below = store.places(first - 1, 1)
    transactions = below[0].next_transaction if below else 0
    hash_below = below[0].hash.hex() if below else NO_PREVIOUS
    for block in linked(range(first, following), store.block, hash_below):
        header, place = block.header, store.place(block.header.height)
        named = (place.first_transaction, place.transaction_count)
        counted = (header.first_transaction, header.transaction_count)
        if named != counted or header.first_transaction != transactions:
            what = "the table of heights names other ids than its header"
            raise DamagedBlock(header.height, what)
        transactions = place.next_transaction
        progress(header.height + 1 - first, following - first)


class BlockCopy:
    """Copies blocks of `store` into `folder`. It is a context manager, which closes its files.

    copied: the blocks of the copy.
    """

    def __init__(self, store: BlockStore, folder: Path) -> None:
        self._store = store
        self._folder = folder
        self._blocks = folder / layout.BLOCKS_FOLDER
        self.copied = BlockStore(folder)
        self._opened = ExitStack()
        self._descriptors: dict[Path, int] = {}

    def __enter__(self) -> "BlockCopy":
        files.make_folder(self._blocks)
        return self

    def __exit__(self, *error: object) -> None:
        self._opened.close()
        self.copied.close()

    def copy(self, first: int, height: int) -> Iterator[int]:
        """Copy blocks `first` to `height`; after each batch yield how many blocks the copy has.

        Blocks that the copy holds from `first` on are overwritten, and nothing is checked. Raises
        WriteFailed, or DamagedBlock if a block cannot be read.
        """
        self._cut(first)
        while first <= height:
            run = self._store.frames(first, min(BLOCKS_AT_ONCE, height + 1 - first))
            for place, frame in run:
                path = self._blocks / layout.block_file_name(place.file)
                files.write_at(self._descriptor(path), frame, place.offset, path)
            self._name(first, [place for place, _ in run])
            first += len(run)
            yield first

    def _name(self, first: int, places: list[Place]) -> None:
        """Sync the frames of the blocks from `first` on, then enter them in the table."""
        for file in {place.file for place in places}:
            self._sync(self._blocks / layout.block_file_name(file))
        table = _table_path(self._folder)
        entries = b"".join(place.packed() for place in places)
        files.write_at(self._descriptor(table), entries, first * ENTRY_BYTES, table)
        self._sync(table)

    def _sync(self, path: Path) -> None:
        """Sync a file, and drop it from the kernel's memory, so that it is read from the disk."""
        descriptor = self._descriptor(path)
        files.sync(descriptor, path)
        files.forget_cached(descriptor)

    def _cut(self, first: int) -> None:
        """Cut off everything from block `first` on: first the table's entries, then the frames."""
        below = self._store.places(first - 1, 1)
        end = (below[0].file, below[0].end) if below else (0, 0)
        table = _table_path(self._folder)
        self._cut_file(table, first * ENTRY_BYTES)
        for path in self._blocks.iterdir():
            file = layout.first_height_of(path.name)
            if file is not None and file > end[0]:
                files.remove(path)
            elif file == end[0]:
                self._cut_file(path, end[1])

    def _cut_file(self, path: Path, size: int) -> None:
        if path.exists() and path.stat().st_size > size:
            files.cut(self._descriptor(path), size, path)

    def _descriptor(self, path: Path) -> int:
        if path not in self._descriptors:
            self._descriptors[path] = descriptor = files.open_for_writing(path)
            self._opened.callback(os.close, descriptor)
        return self._descriptors[path]
