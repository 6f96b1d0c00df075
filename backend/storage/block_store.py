"""Reads blocks, in any number of processes and threads, without a lock.

The store trusts the table of heights: what it does not name is not there yet. It hands out
frames; `codec.verified_block` checks them. Nothing is kept in memory but open descriptors.
"""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

from backend.base.errors import Damage, DamagedBlock, NotFound, TryLater
from backend.base.files import forget_cached, reason_of
from backend.chain.block import Block
from backend.storage import layout
from backend.storage.codec import verified_block
from backend.storage.layout import ENTRY_BYTES, Place, places_from

MAX_RUN_BYTES = 64 * 2**20
MAX_OPEN_FILES = 64
NO_CHAIN = "the chain does not exist yet; the miner creates it when it starts"
SEARCHED_AT_ONCE = 4096  # entries of the table


class _OpenFile:
    """A file that is open as long as anybody uses it: closing is left to the last reference.

    So a thread may forget it while another still reads. inode: tells whether the name still means
    this file.
    """

    __slots__ = ("_descriptor", "inode")

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self.inode = os.fstat(self._descriptor).st_ino

    def __del__(self) -> None:
        if hasattr(self, "_descriptor"):
            os.close(self._descriptor)

    def read(self, length: int, offset: int) -> bytes:
        """Read up to `length` bytes from `offset` on."""
        return os.pread(self._descriptor, length, offset)

    def forget(self, length: int, offset: int) -> None:
        """Have a range of the file read from the disk the next time."""
        forget_cached(self._descriptor, offset, length)


class BlockStore:
    """The blocks under `folder` (the chain's folder, which need not exist yet)."""

    def __init__(
        self,
        folder: Path,
        require_ours: Callable[[], None] = lambda: None,
        why_no_blocks: Callable[[], str] = lambda: "",
    ) -> None:
        """require_ours: raises Damage if the blocks in the folder are another ledger's.

        why_no_blocks: says why there are none though there were some once; "" if there were none.
        """
        self._require_ours = require_ours
        self._why_no_blocks = why_no_blocks
        self._ours = -1  # the inode of the table of heights that was found to be ours
        self._blocks = folder / layout.BLOCKS_FOLDER
        self._table_path = self._blocks / layout.TABLE_NAME
        self._lock = threading.Lock()
        self._open: dict[Path, _OpenFile] = {}

    def close(self) -> None:
        with self._lock:
            self._open.clear()

    def height(self) -> int:
        """Return the height of the tip, -1 if there is no block."""
        return self._seen()[1]

    def no_chain(self) -> TryLater:
        """Return the error for a question that cannot be answered because there is no block."""
        return TryLater(self._why_no_blocks() or NO_CHAIN)

    def _seen(self) -> tuple[int, int]:
        """Return the inode of the table of heights and the tip's height, -1 without a block."""
        try:
            status = self._table_path.stat()
        except FileNotFoundError:
            return -1, -1
        return status.st_ino, status.st_size // ENTRY_BYTES - 1

    def places(self, first: int, count: int) -> list[Place]:
        """Return the places of blocks `first` to `first + count - 1`, fewer where the chain ends.

        Raises Damage if an entry of the table is not one, or cannot be read.
        """
        inode, height = self._seen()
        count = min(count, height + 1 - first)
        if first < 0 or count <= 0:
            return []
        return self._entries(self._table(inode), first, count)

    def place(self, height: int) -> Place:
        """Return the place of one block. Raises NotFound if there is no such block."""
        places = self.places(height, 1)
        if not places:
            newest = self.height()
            others = f"the newest is block {newest}" if newest >= 0 else "there are no blocks"
            raise NotFound(f"block {height} does not exist; {others}")
        return places[0]

    def tip(self) -> tuple[int, Place] | None:
        """Return height and place of the newest block; None if there is none."""
        inode, height = self._seen()
        if height < 0:
            return None
        return height, self._entries(self._table(inode), height, 1)[0]

    def transactions(self) -> int:
        tip = self.tip()
        return 0 if tip is None else tip[1].next_transaction

    def _entries(self, table: _OpenFile, first: int, count: int) -> list[Place]:
        try:
            data = table.read(count * ENTRY_BYTES, first * ENTRY_BYTES)
        except OSError as error:
            raise self._unreadable(error) from error
        places = list[Place]()
        for height, place in enumerate(places_from(data), first):
            if place is None:
                raise Damage(
                    f"the entry of block {height} in {self._table_path} is damaged; restart the "
                    "service, which rebuilds the table from the block files"
                )
            places.append(place)
        if not places:
            raise NotFound(f"block {first} no longer exists, because the chain has been cut")
        return places

    def frames(self, first: int, count: int) -> list[tuple[Place, bytes]]:
        """Return the frames of a run of adjacent blocks, each file in one sequential read.

        There are fewer than `count` where the chain ends, or where 64 MB are reached. Nothing is
        checked yet.
        """
        runs: list[list[Place]] = []
        total = 0
        for place in self.places(first, count):
            total += place.length
            if runs and total > MAX_RUN_BYTES:
                break
            if runs and runs[-1][-1].file == place.file and runs[-1][-1].end == place.offset:
                runs[-1].append(place)
            else:
                runs.append([place])
        frames: list[tuple[Place, bytes]] = []
        for run in runs:
            frames += self._read(first + len(frames), run)
        return frames

    def _read(self, first: int, run: list[Place]) -> list[tuple[Place, bytes]]:
        """Return the frames of the blocks from `first` on, which follow each other in a file."""
        path = self._blocks / layout.block_file_name(run[0].file)
        start = run[0].offset
        try:
            data = self._file(path).read(run[-1].end - start, start)
        except FileNotFoundError:
            raise DamagedBlock(first, f"its file {path} is missing") from None
        except PermissionError as error:  # the block may be whole
            raise Damage(f"cannot read {reason_of(error, path)}") from error
        except (OSError, OverflowError) as error:
            raise DamagedBlock(first, f"cannot read {path}: {error}") from error
        frames = [(place, data[place.offset - start : place.end - start]) for place in run]
        for height, (place, frame) in enumerate(frames, first):
            if len(frame) < place.length:
                raise DamagedBlock(height, f"{path} ends within it")
        return frames

    def file_bytes(self, first: int) -> int:
        """Return the size of the block file that begins with block `first`."""
        return (self._blocks / layout.block_file_name(first)).stat().st_size

    def forget_cached(self, place: Place) -> None:
        """Have the block at `place` read from the disk the next time. Raises OSError."""
        path = self._blocks / layout.block_file_name(place.file)
        self._file(path).forget(place.length, place.offset)

    def block(self, height: int) -> Block:
        """Return one block, read from disk and checked. Raises NotFound or DamagedBlock."""
        place, frame = self.frame(height)
        return verified_block(frame, height, place.hash)

    def frame(self, height: int) -> tuple[Place, bytes]:
        """Return one frame, unchecked. Raises NotFound, or DamagedBlock if it cannot be read."""
        place = self.place(height)
        return self._read(height, [place])[0]

    def place_of_transaction(self, transaction_id: int) -> tuple[int, Place] | None:
        """Return height and place of the block that holds a transaction; None if no block does."""
        tip = self.tip()
        if tip is None or not 0 <= transaction_id < tip[1].next_transaction:
            return None
        table = self._table()
        low, high = 0, tip[0]
        while low <= high:
            height = (low + high) // 2
            place = self._entries(table, height, 1)[0]
            if transaction_id < place.first_transaction:
                high = height - 1
            elif transaction_id >= place.next_transaction:
                low = height + 1
            else:
                return height, place
        return None  # the chain has been cut meanwhile

    def heights_of_hash(self, beginning: str) -> Iterator[int]:
        """Yield the heights of the blocks whose hash begins with these hex digits, newest first.

        beginning: 2 to 64 digits in small letters. It is looked for in the table, from the tip
        down. For 60,000 blocks these are 4 MB, which takes a few milliseconds.
        """
        start = bytes.fromhex(beginning[: len(beginning) & ~1])
        above = self.height() + 1
        while above > 0:
            first = max(0, above - SEARCHED_AT_ONCE)
            try:
                data = self._table().read((above - first) * ENTRY_BYTES, first * ENTRY_BYTES)
            except OSError as error:
                raise self._unreadable(error) from error
            at = len(data)
            while (at := data.rfind(start, 0, at + len(start) - 1)) >= 0:
                if at % ENTRY_BYTES == 0 and data[at : at + 32].hex().startswith(beginning):
                    yield first + at // ENTRY_BYTES
            above = first

    def _unreadable(self, error: OSError) -> Damage:
        return Damage(f"cannot read {reason_of(error, self._table_path)}")

    def _table(self, inode: int | None = None) -> _OpenFile:
        try:
            table = self._file(self._table_path, inode)
        except OSError as error:
            raise self._unreadable(error) from error
        if table.inode != self._ours:
            self._require_ours()
            self._ours = table.inode
        return table

    def _file(self, path: Path, inode: int | None = None) -> _OpenFile:
        """Return the file of that name, opened again if another one has it now.

        inode: if just seen.
        """
        if inode is None:
            inode = path.stat().st_ino
        with self._lock:
            opened = self._open.get(path)
            if opened is None or opened.inode != inode:
                opened = _OpenFile(path)
                self._open.pop(path, None)
                if len(self._open) >= MAX_OPEN_FILES:
                    self._open.pop(next(iter(self._open)))
                self._open[path] = opened
            return opened


def short_table(folder: Path) -> str:
    """Say that the block files of a chain go on where its table of heights ends; "" if not."""
    with closing(BlockStore(folder)) as store:
        tip = store.tip()
    if tip is None:
        return ""
    height, place = tip
    newest = max((folder / layout.BLOCKS_FOLDER).glob("blocks-*.dat"), default=None)
    last = layout.block_file_name(place.file)
    if newest is None or (newest.name == last and newest.stat().st_size <= place.end):
        return ""
    return (
        f"{newest.with_name(layout.TABLE_NAME)} ends at block {height}, but the block files go on; "
        "restart the service, which adds the other blocks to the table"
    )
