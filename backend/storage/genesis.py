"""Reads the hash of block 0, which names the ledger that a file belongs to."""

from contextlib import suppress
from pathlib import Path

from backend.chain.canonical import sha256_hex
from backend.storage import layout
from backend.storage.codec import FrameError, frame_from


def genesis_in(folder: Path) -> str:
    """Return the hash of block 0 in hexadecimal; "" while there is none, or nobody knows it.

    The table of heights says it and the block file does. If one of them is damaged, the other is
    trusted; if they differ, then one is another ledger's, and neither is.
    """
    blocks = folder / layout.BLOCKS_FOLDER
    hashes = set[str]()
    place = layout.place_from(_start_of(blocks / layout.TABLE_NAME, layout.ENTRY_BYTES))
    if place is not None:
        hashes.add(place.hash.hex())
    with suppress(FrameError):
        frame = frame_from(_start_of(blocks / layout.block_file_name(0), layout.MOST_GENESIS_BYTES))
        hashes.add(sha256_hex(frame.header_bytes))
    return hashes.pop() if len(hashes) == 1 else ""


def _start_of(path: Path, length: int) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(length)
    except OSError:
        return b""


class Genesis:
    """Says what `genesis_in` says of a folder, read until it is known."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._hash = ""

    def __call__(self) -> str:
        self._hash = self._hash or genesis_in(self._folder)
        return self._hash
