import struct
import tracemalloc
import zlib
from dataclasses import replace

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from backend.base.errors import DamagedBlock
from backend.chain.block import Block, block_of
from backend.chain.state import empty_state
from backend.storage.codec import (
    Frame,
    FrameError,
    body_of,
    compress,
    frame_from,
    frame_length,
    frame_of,
    verified_block,
)
from backend.storage.layout import MAGIC, MAX_BODY_BYTES, MAX_HEADER_BYTES, PREFIX_BYTES
from tests.cases import each_of
from tests.storage.chains import flights
from tests.submitting import run_together

BLOCK = replace(empty_state(0), height=5, transactions=40).build(2_000, flights(4, 1_500))
HASH = bytes.fromhex(BLOCK.hash)


def stored(block: Block) -> bytes:
    return frame_of(block.header_bytes, block.body, compress(block.body))


FRAME = stored(BLOCK)


def framed(header: bytes, compressed: bytes, body_bytes: int) -> bytes:
    """A frame with a good checksum around anything, made without the code under test."""
    content = struct.pack("<4s3I", b"FCB1", len(header), len(compressed), body_bytes)
    crc = zlib.crc32(content + header + compressed)
    return content + struct.pack("<I", crc) + header + compressed


def test_a_frame_is_laid_out_as_documented() -> None:
    assert framed(BLOCK.header_bytes, compress(BLOCK.body), len(BLOCK.body)) == FRAME


@given(st.binary(max_size=600), st.binary(max_size=2000), st.binary(max_size=50))
def test_what_goes_into_a_frame_comes_out(header: bytes, body: bytes, behind: bytes) -> None:
    compressed = compress(body)
    data = frame_of(header, body, compressed)
    frame = frame_from(data + behind)
    assert frame == Frame(header, compressed, len(body), len(data))
    assert frame_length(data[:PREFIX_BYTES]) == len(data)
    assert body_of(frame, 6) == body


def test_a_frame_cut_anywhere_is_no_frame() -> None:
    for length in range(len(FRAME)):
        with pytest.raises(FrameError):
            frame_from(FRAME[:length])


def test_a_frame_with_any_bit_flipped_is_no_frame() -> None:
    for at in range(len(FRAME)):
        data = bytearray(FRAME)
        data[at] ^= 1 << at % 8
        with pytest.raises(FrameError):
            frame_from(bytes(data))
        with pytest.raises(DamagedBlock, match="block 6 is damaged"):
            verified_block(bytes(data), 6, HASH)


@pytest.mark.parametrize(
    ("header_size", "compressed_size", "body_size"),
    [
        (MAX_HEADER_BYTES + 1, 0, 0),
        (0, MAX_BODY_BYTES + 1, 0),
        (0, 0, MAX_BODY_BYTES + 1),
        (2**32 - 1, 2**32 - 1, 2**32 - 1),
    ],
)
def test_impossible_sizes_are_refused_before_anything_is_read(
    header_size: int, compressed_size: int, body_size: int
) -> None:
    prefix = struct.pack("<4s4I", MAGIC, header_size, compressed_size, body_size, 0)
    with pytest.raises(FrameError, match="are impossible"):
        frame_length(prefix)


def test_the_largest_possible_sizes_are_accepted() -> None:
    prefix = struct.pack("<4s4I", MAGIC, MAX_HEADER_BYTES, MAX_BODY_BYTES, MAX_BODY_BYTES, 0)
    assert frame_length(prefix) == PREFIX_BYTES + MAX_HEADER_BYTES + MAX_BODY_BYTES


COMPRESSED, BODY_BYTES = compress(BLOCK.body), len(BLOCK.body)
UNSIZED = zstandard.ZstdCompressor(write_content_size=False).compress(bytes(10_000_000))
NO_BODIES = (  # compressed, and how many bytes it is said to be
    *((compress(b"four"), size) for size in (0, 3, 5, 400)),
    *((COMPRESSED[:length], BODY_BYTES) for length in range(len(COMPRESSED))),
    *((COMPRESSED + more, BODY_BYTES) for more in (b"x", compress(b""), COMPRESSED)),
    (UNSIZED, 100),  # the size that is declared is a bound
)


@each_of(("compressed", "body_bytes"), NO_BODIES)
def test_a_body_that_is_not_what_its_frame_says_is_refused(
    compressed: bytes, body_bytes: int
) -> None:
    with pytest.raises(DamagedBlock, match="body"):
        body_of(Frame(b"", compressed, body_bytes, 0), 6)


@given(st.binary(max_size=200))
def test_bytes_that_are_not_compressed_are_refused(data: bytes) -> None:
    with pytest.raises(DamagedBlock, match="body"):
        body_of(Frame(b"", data, 10_000, 0), 6)


@pytest.mark.parametrize("declared", [0, 100, MAX_BODY_BYTES])
def test_what_a_body_takes_in_memory_is_bounded_by_the_declared_size(declared: int) -> None:
    """zstandard allocates what the compressed body says, whatever limit it is given."""
    bomb = zstandard.ZstdCompressor().compress(bytes(20 * MAX_BODY_BYTES))
    tracemalloc.start()
    try:
        with pytest.raises(DamagedBlock, match="body"):
            body_of(Frame(b"", bomb, declared, 0), 6)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < declared + 1_000_000


def with_byte(data: bytes, at: int) -> bytes:
    return data[:at] + b"\xff" + data[at + 1 :]


LAZY = block_of(replace(BLOCK.header, difficulty_bits=64), BLOCK.body)
SWAPPED = flights(5, 1_500).body
HEAD = BLOCK.header_bytes
NO_HEADERS = (b"", b"{}", b"null", HEAD[:-1], *(with_byte(HEAD, n) for n in range(0, len(HEAD), 7)))
DAMAGED = (  # what is stored, the height and the hash on record, and what is said
    *((FRAME + more, 6, HASH, "the table of heights says") for more in (b"x", bytes(20), FRAME)),
    *((framed(head, COMPRESSED, BODY_BYTES), 6, HASH, "not a header") for head in NO_HEADERS),
    (FRAME, 7, HASH, r"^block 7 is damaged: it says that it is block 6$"),
    (FRAME, 6, bytes(32), "block 6 is damaged: .*on record"),
    (stored(LAZY), 6, bytes.fromhex(LAZY.hash), "too few zero bits"),
    (frame_of(HEAD, SWAPPED, compress(SWAPPED)), 6, HASH, "body_hash"),
)


@each_of(("data", "height", "on_record", "words"), DAMAGED)
def test_a_block_that_is_not_the_one_on_record_is_damaged(
    data: bytes, height: int, on_record: bytes, words: str
) -> None:
    with pytest.raises(DamagedBlock, match=words):
        verified_block(data, height, on_record)


def test_threads_decompress_without_disturbing_each_other() -> None:
    def read(_: int) -> None:
        for _ in range(40):
            assert verified_block(FRAME, 6, HASH) == BLOCK

    run_together(8, read)
