"""Finding records in damaged bytes: the bit that flipped, and how long it takes."""

import random
import time
import zlib

import pytest

from backend.chain.flight import Flight
from backend.mempool.crc import flipped_bit
from backend.mempool.record import packed
from backend.mempool.salvage import Piece, pieces_of
from backend.mempool.segments import Segment
from tests.flights import flight, flights
from tests.mempool.house import T

LARGE = 16_000_000  # bytes
# Damaged bytes may take so many times the processor time of whole ones; 5 and 10 were measured.
SOON, SOON_FOR_MANY = 20, 50


def read(data: bytes) -> tuple[list[Piece], float]:
    """The pieces of these bytes, and the processor time of this thread that they took, seconds.

    What else the machine does meanwhile does not count.
    """
    start = time.thread_time()
    pieces = list(pieces_of(data, Segment(0)))
    return pieces, time.thread_time() - start


def flipped(data: bytes, *bits: int) -> bytes:
    changed = bytearray(data)
    for bit in bits:
        changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


@pytest.mark.parametrize("length", [1, 2, 100, 4095, 4096, 4097, 100_000, LARGE])
def test_a_flipped_bit_is_found_however_many_bytes_there_are(length: int) -> None:
    data = random.Random(length).randbytes(length)
    places = {0, 7, 8 * length // 2, 8 * length - 1, max(0, 8 * (length - 4096)), 8 * length - 8}
    for bit in places:
        change = zlib.crc32(data) ^ zlib.crc32(flipped(data, bit))
        assert flipped_bit(change, length) == bit


def test_two_flipped_bits_are_not_taken_for_one_of_these_bytes() -> None:
    data = random.Random(1).randbytes(1000)
    for first in range(0, 8000, 97):
        change = zlib.crc32(data) ^ zlib.crc32(flipped(data, first, 4001))
        assert flipped_bit(change, len(data)) is None


def with_city(city: str) -> Flight:
    return tuple(city if value == flight(1)[7] else value for value in flight(1))


def large_batch(each: Flight) -> bytes:
    once = len(packed(0, T, [each] * 100))
    return packed(0, T, [each] * (100 * LARGE // once))


@pytest.mark.parametrize("city", ["New York, NY", "FCM2 is a city", "FCM2" * 20, "FCM1FCM" * 10])
def test_a_large_batch_that_is_damaged_holds_nobody_up(city: str) -> None:
    whole, behind = large_batch(with_city(city)), packed(10**6, T, flights(1))
    two_flips = flipped(whole, 1000, 50_000)
    torn = whole[:-10]
    _, whole_s = read(whole)
    for damaged in (torn, two_flips, torn + behind, two_flips + behind):
        pieces, damaged_s = read(damaged)
        assert damaged_s < SOON * whole_s
        rest = [behind] if damaged.endswith(behind) else []
        assert [piece.data for piece in pieces] == [
            damaged[: len(damaged) - len(behind) * len(rest)],
            *rest,
        ]
        assert [piece.record is not None for piece in pieces] == [False, *(True for _ in rest)]


def test_many_damaged_records_hold_nobody_up() -> None:
    records = [packed(number, T, [flight(number)]) for number in range(20_000)]
    data = b"".join(flipped(each, 500, 700) if n % 2 else each for n, each in enumerate(records))
    _, whole_s = read(b"".join(records))
    pieces, damaged_s = read(data)
    assert damaged_s < SOON_FOR_MANY * whole_s
    assert [piece.record is not None for piece in pieces] == [True, False] * 10_000


def test_behind_a_damaged_record_one_with_a_flipped_bit_is_put_right() -> None:
    records = [packed(number, T, [flight(number)]) for number in range(3)]
    data = flipped(records[0], 500, 700) + flipped(records[1], 900) + records[2]
    pieces: list[Piece] = list(pieces_of(data, Segment(0)))
    assert [piece.data for piece in pieces[1:]] == records[1:]
    assert [piece.is_mended for piece in pieces] == [False, True, False]
