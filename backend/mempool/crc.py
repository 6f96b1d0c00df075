"""Finds the bit that has flipped in some bytes, from the change of their CRC-32.

A flip in the last byte changes the CRC by one of eight values, and each byte after the flip takes
that value through one step of the CRC. The steps can be undone, but there may be many bytes. So the
changes that flips in the last `_NEAR` bytes make are kept in a table, and `_NEAR` steps at a time
are undone until the change is in the table. In less than 500 MB no two bits make the same change.
"""

import zlib
from functools import cache

_NEAR = 4096  # bytes

_TABLE = [zlib.crc32(bytes([byte])) ^ zlib.crc32(b"\0") for byte in range(256)]
_PLACE_OF_TOP = {entry >> 24: byte for byte, entry in enumerate(_TABLE)}


def flipped_bit(change: int, length: int) -> int | None:
    """The bit of `length` bytes whose flip changes their CRC-32 by `change` (exclusive or)."""
    for behind in range(0, length, _NEAR):
        if found := _near_flips().get(change):
            bit, nearer = found
            place = length - 1 - behind - nearer
            return 8 * place + bit if place >= 0 else None
        change = _far_back(change)
    return None


@cache
def _near_flips() -> dict[int, tuple[int, int]]:
    """Maps a change of the CRC to the bit that made it and the number of bytes after the flip."""
    found: dict[int, tuple[int, int]] = {}
    for bit in range(8):
        change = _TABLE[1 << bit]
        for behind in range(_NEAR):
            found[change] = bit, behind
            change = _TABLE[change & 0xFF] ^ change >> 8
    return found


def _far_back(change: int) -> int:
    """A change of the CRC with `_NEAR` steps undone."""
    one, two, three, four = _far_back_tables()
    return (
        one[change & 0xFF]
        ^ two[change >> 8 & 0xFF]
        ^ three[change >> 16 & 0xFF]
        ^ four[change >> 24]
    )


@cache
def _far_back_tables() -> list[list[int]]:
    """Four tables, one for each byte of a change: each value of it with `_NEAR` steps undone.

    The exclusive or of the four entries is the whole change, undone.
    """
    bits = [_back(1 << bit) for bit in range(32)]
    tables = [[0] * 256 for _ in range(4)]
    for byte in range(1, 256):
        lowest = (byte & -byte).bit_length() - 1
        for number, table in enumerate(tables):
            table[byte] = table[byte & byte - 1] ^ bits[8 * number + lowest]
    return tables


def _back(change: int) -> int:
    for _ in range(_NEAR):
        byte = _PLACE_OF_TOP[change >> 24]
        change = ((change ^ _TABLE[byte]) << 8 | byte) & 0xFFFFFFFF
    return change
