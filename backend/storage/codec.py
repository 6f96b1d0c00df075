"""Makes frames of blocks, as they stand in a block file, and checked blocks of frames.

`verified_block` is what every read goes through: the frame's CRC, the header against the hash on
record, the proof of work, the body against the header. `chain.block_rules` proves the rest. Of a
frame that has passed and stayed in memory, `block_again` looks at the CRC alone.
"""

import hashlib
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from time import perf_counter

import zstandard

from backend.base.errors import DamagedBlock
from backend.base.words import counted
from backend.chain.block import Block, Header, HeaderError, decode_header, leading_zero_bits
from backend.chain.columns import COLUMN_NAMES, BodyError, Columns, decode_body
from backend.chain.single_transactions import transactions_json
from backend.storage.layout import MAGIC, MAX_BODY_BYTES, MAX_HEADER_BYTES, PREFIX, PREFIX_BYTES
from backend.storage.scan_costs import DECOMPRESS, HASH, Costs

ZSTD_LEVEL = 6  # 14.1 bytes a flight at 0.6 µs; level 3: 14.9 at 0.2, level 9: 14.0 at 1.1

_local = threading.local()


def compress(body: bytes) -> bytes:
    """Compress a body into the form in which it is stored."""
    return zstandard.ZstdCompressor(level=ZSTD_LEVEL).compress(body)


def _decompressor() -> zstandard.ZstdDecompressor:
    """Return the decompressor of this thread; making one costs as much as decompressing a block."""
    if not hasattr(_local, "decompressor"):
        _local.decompressor = zstandard.ZstdDecompressor()
    decompressor: zstandard.ZstdDecompressor = _local.decompressor
    return decompressor


class FrameError(ValueError):
    """The bytes are not a whole frame."""


@dataclass(frozen=True, slots=True)
class Frame:
    """The content of a frame. length: how long the whole frame is, in bytes."""

    header_bytes: bytes
    compressed_body: bytes
    body_bytes: int
    length: int


def frame_of(header_bytes: bytes, body: bytes, compressed_body: bytes) -> bytes:
    """Return the frame of a block."""
    sizes = (len(header_bytes), len(compressed_body), len(body))
    content = PREFIX.pack(MAGIC, *sizes, 0)[:-4]
    crc = _crc(content, header_bytes, compressed_body)
    return b"%b%b%b%b" % (content, crc.to_bytes(4, "little"), header_bytes, compressed_body)


def _crc(content: bytes | memoryview, header_bytes: bytes, compressed_body: bytes) -> int:
    return zlib.crc32(compressed_body, zlib.crc32(header_bytes, zlib.crc32(content)))


def frame_length(prefix: bytes | memoryview) -> int:
    """Return the length of the frame that starts with `prefix`. Raises FrameError if none can."""
    if len(prefix) < PREFIX_BYTES:
        raise FrameError(
            f"{counted(len(prefix), 'byte is', 'bytes are')} less than the start of a frame"
        )
    magic, header_size, compressed_size, body_size, _ = PREFIX.unpack(prefix[:PREFIX_BYTES])
    if magic != MAGIC:
        raise FrameError(f"it starts with {magic!r}, not {MAGIC!r}")
    if header_size > MAX_HEADER_BYTES or max(compressed_size, body_size) > MAX_BODY_BYTES:
        raise FrameError(f"sizes {header_size}, {compressed_size} and {body_size} are impossible")
    return PREFIX_BYTES + int(header_size) + int(compressed_size)


def stated_body_bytes(frame: bytes) -> int:
    """Return the length in bytes that a frame states for its uncompressed body, unchecked."""
    return int(PREFIX.unpack_from(frame)[3]) if len(frame) >= PREFIX_BYTES else 0


def frame_from(data: bytes | memoryview) -> Frame:
    """Return the frame at the start of `data`. Raises FrameError unless it is there and whole."""
    length = frame_length(data)
    if len(data) < length:
        raise FrameError(f"{counted(len(data), 'byte is', 'bytes are')} there of {length:,}")
    _, header_size, _, body_size, crc = PREFIX.unpack(data[:PREFIX_BYTES])
    header_bytes = bytes(data[PREFIX_BYTES : PREFIX_BYTES + header_size])
    compressed_body = bytes(data[PREFIX_BYTES + header_size : length])
    if _crc(data[: PREFIX_BYTES - 4], header_bytes, compressed_body) != crc:
        raise FrameError("its checksum is wrong")
    return Frame(header_bytes, compressed_body, body_size, length)


def body_of(frame: Frame, height: int) -> bytes:
    """Return the uncompressed body of a frame. Raises DamagedBlock if it cannot be had."""
    try:
        stated = zstandard.frame_content_size(frame.compressed_body)
        if stated != frame.body_bytes:  # zstandard would trust it and allocate as much
            sizes = f"{counted(stated, 'byte')} instead of {frame.body_bytes:,}"
            raise DamagedBlock(height, f"its body says it has {sizes}")
        return _decompressor().decompress(frame.compressed_body, allow_extra_data=False)
    except zstandard.ZstdError as error:
        raise DamagedBlock(height, f"its body cannot be decompressed: {error}") from error


def verified_block(
    data: bytes, height: int, hash_on_record: bytes, costs: Costs | None = None
) -> Block:
    """Return the block in frame `data`. costs: its costs are added there.

    Raises DamagedBlock unless frame, header and body are whole, the header hashes to
    `hash_on_record` (32 bytes), has enough zero bits, is of `height`, and commits to the body.
    """
    costs = Costs() if costs is None else costs
    start_s = perf_counter()
    frame, header = opened(data, height)
    start_s = costs.spend(HASH, start_s)
    body = body_of(frame, height)
    start_s = costs.spend(DECOMPRESS, start_s)
    digest = hashlib.sha256(frame.header_bytes).digest()
    block_hash = digest.hex()
    if digest != hash_on_record:
        raise DamagedBlock(
            height, f"its hash is {block_hash}, not {hash_on_record.hex()} on record"
        )
    if header.height != height:
        raise DamagedBlock(height, f"it says that it is block {header.height}")
    if leading_zero_bits(block_hash) < header.difficulty_bits:
        raise DamagedBlock(height, f"its hash {block_hash} has too few zero bits")
    if hashlib.sha256(body).hexdigest() != header.body_hash:
        raise DamagedBlock(height, "its body does not hash to body_hash of its header")
    costs.spend(HASH, start_s)
    return Block(header, frame.header_bytes, block_hash, body)


def block_again(data: bytes, height: int, hash_on_record: bytes) -> Block:
    """Return the block in a frame that has passed `verified_block` and stayed in memory since.

    Only its checksum is compared. That spares the hashing, which takes half of the time where a
    processor has no instructions for it. Raises DamagedBlock.
    """
    frame, header = opened(data, height)
    return Block(header, frame.header_bytes, hash_on_record.hex(), body_of(frame, height))


def opened(
    data: bytes, height: int, read_header: Callable[[bytes], Header] = decode_header
) -> tuple[Frame, Header]:
    """Return the frame that `data` is, and the header in it. Raises DamagedBlock."""
    try:
        frame = frame_from(data)
        if frame.length != len(data):
            raise FrameError(
                f"it has {counted(frame.length, 'byte')}, the table of heights says {len(data):,}"
            )
        return frame, read_header(frame.header_bytes)
    except (FrameError, HeaderError) as error:
        raise DamagedBlock(height, str(error)) from error


def decoded(block: Block, names: Sequence[str] = COLUMN_NAMES) -> Columns:
    """Return columns of a block that hashes right. Raises DamagedBlock if its body is none."""
    try:
        return decode_body(block.body, block.header.transaction_count, names)
    except BodyError as error:
        raise DamagedBlock(block.header.height, str(error)) from error


def encoded_rows(block: Block, offset: int, limit: int) -> list[bytes]:
    """Return up to `limit` transactions of a block from row `offset` on, each as JSON.

    Raises DamagedBlock as `decoded`.
    """
    header, after = block.header, offset + limit
    try:
        return transactions_json(
            block.body, header.transaction_count, header.first_transaction, offset, after
        )
    except BodyError as error:
        raise DamagedBlock(header.height, str(error)) from error


def linked(
    heights: Iterable[int], read: Callable[[int], Block], hash_below: str
) -> Iterator[Block]:
    """Yield the blocks that `read` has of adjacent heights. hash_below: of the one below the first.

    Raises DamagedBlock if one names another block below it.
    """
    for height in heights:
        block = read(height)
        if (named := block.header.previous_hash) != hash_below:
            raise DamagedBlock(height, f"it names {named} below it, not {hash_below}")
        hash_below = block.hash
        yield block
