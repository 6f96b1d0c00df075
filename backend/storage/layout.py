"""Says where things are on disk: arithmetic and names. Nothing here opens a file of a ledger.

`blocks/blocks-HHHHHHHHHH.dat` hold consecutive blocks and are named after the first. A block is one
frame, little-endian:

    4  magic "FCB1"
    4  bytes of the header
    4  bytes of the body, compressed (zstd)
    4  bytes of the body, uncompressed
    4  CRC-32 of the 16 bytes before, the header and the compressed body
    …  header (canonical JSON), compressed body

`blocks/heights.dat` is the table of heights, one entry of 64 bytes a block, in order. It can always
be made again from the block files. An entry:

    32 block hash     4 first height of the block file     8 offset of the frame     4 its length
    8  first_transaction     4 transaction_count     4 CRC-32 of the 60 bytes before
"""

import struct
import zlib
from pathlib import Path
from typing import NamedTuple

from backend.base import files
from backend.base.errors import Damage
from backend.base.words import COMMAND
from backend.chain.block import Block

BLOCKS_FOLDER = "blocks"
TABLE_NAME = "heights.dat"
MARK_NAME = "acknowledged.dat"  # the watermark of what was acknowledged
BACKUP_NAME = "backup.json"  # in the folder of a backup, and in no ledger's
RESTORING_FOLDER = "restoring"  # in the chain's folder, while a backup is put in its place
PARTS = {BLOCKS_FOLDER, "index", "mempool"}  # the folders that every ledger has

MAGIC = b"FCB1"
PREFIX = struct.Struct("<4s4I")
PREFIX_BYTES = PREFIX.size
MAX_HEADER_BYTES = 4096
MAX_BODY_BYTES = 16 * 2**20
MOST_GENESIS_BYTES = 2 * MAX_HEADER_BYTES  # of the frame of block 0, which holds no flights

_ENTRY = struct.Struct("<32sIQIQI")
_CHECKED = struct.Struct(f"<{_ENTRY.size}sI")
ENTRY_BYTES = _CHECKED.size


def block_file_name(first_height: int) -> str:
    """Return the name of the block file that starts with block `first_height`."""
    return f"blocks-{first_height:010d}.dat"


def first_height_of(name: str) -> int | None:
    """Return the first height of a block file by its name; None for any other file."""
    digits = name.removeprefix("blocks-").removesuffix(".dat")
    if digits.isascii() and digits.isdigit() and block_file_name(int(digits)) == name:
        return int(digits)
    return None


class Place(NamedTuple):
    """An entry of the table of heights.

    hash: the block's, 32 bytes. file: first height of the block file. offset, length: where the
    frame begins and how long it is, in bytes. first_transaction, transaction_count: what the header
    says.
    """

    hash: bytes
    file: int
    offset: int
    length: int
    first_transaction: int
    transaction_count: int

    @property
    def end(self) -> int:
        """Offset of the byte after the frame."""
        return self.offset + self.length

    @property
    def next_transaction(self) -> int:
        """The id after the last one in this block."""
        return self.first_transaction + self.transaction_count

    def packed(self) -> bytes:
        """Return the 64 bytes of this entry."""
        data = _ENTRY.pack(*self)
        return _CHECKED.pack(data, zlib.crc32(data))


def place_of(block: Block, file: int, offset: int, length: int) -> Place:
    """Return the place of a block. file, offset, length: as in `Place`."""
    header = block.header
    counts = header.first_transaction, header.transaction_count
    return Place(bytes.fromhex(block.hash), file, offset, length, *counts)


def place_from(entry: bytes) -> Place | None:
    """Return the place in the 64 bytes of `entry`, or None if they are not an entry."""
    return places_from(entry)[0] if len(entry) == ENTRY_BYTES else None


def places_from(entries: bytes) -> list[Place | None]:
    """Return the place in each 64 bytes, or None if they are not an entry.

    Less than 64 bytes at the end are left out.
    """
    whole = entries[: len(entries) // ENTRY_BYTES * ENTRY_BYTES]
    return [
        Place._make(_ENTRY.unpack(data)) if zlib.crc32(data) == crc else None
        for data, crc in _CHECKED.iter_unpack(whole)
    ]


def unfinished_restore(folder: Path) -> str:
    """Return a message if a restore into `folder` is at work, or was killed; "" if none is.

    It keeps its copy in `restoring/`, and moves the blocks out of it last. So while that folder is
    there and no blocks are, there is no ledger to write to, and what was written would be lost.
    """
    stage = folder / RESTORING_FOLDER
    if not stage.exists() or (folder / BLOCKS_FOLDER).exists():
        return ""
    return (
        f"a backup is being restored to {folder}, or that was interrupted; wait until it ends, or "
        "restore it again"
    )


def is_backup(folder: Path) -> bool:
    """Return whether a folder is a backup, in which nobody has gone on with the ledger."""
    return (folder / BACKUP_NAME).exists() and not (folder / MARK_NAME).exists()


def require_ledger(folder: Path, *, may_be_half_restored: bool = False) -> None:
    """Raise Damage if nothing may be written to a folder: a backup, or one half restored.

    Nor may a ledger be begun in a folder that is a part of one.
    """
    problem = "" if may_be_half_restored else unfinished_restore(folder)
    place = folder.resolve()
    is_in_ledger = (place.parent / BLOCKS_FOLDER / TABLE_NAME).exists()
    if (folder / TABLE_NAME).exists() or (is_in_ledger and place.name in PARTS):
        problem = f"{folder} is a part of a ledger: set FLIGHTCHAIN_DIR to {place.parent}"
    if is_backup(folder):
        problem = (
            f"{folder} is a backup, and is not changed: set FLIGHTCHAIN_DIR to an empty folder and "
            f"run `{COMMAND} restore {folder}`; or, if this copy is to become the ledger, "
            f"remove {BACKUP_NAME}"
        )
    if problem:
        raise Damage(problem)


def make_ledger_folder(folder: Path) -> None:
    """Make a ledger's folder if it is missing.

    Raises WriteFailed if a new ledger cannot be kept there: what it accepted would not be mined.
    """
    files.make_folder(folder)
    if not (folder / BLOCKS_FOLDER).exists():
        files.require_links(folder)
