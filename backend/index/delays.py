"""How the index stores a distribution of delays: JSON {delay: flights}, delays ascending.

There is one spelling of each distribution, so that two indexes of a chain are equal byte for byte.
"""

import sqlite3
from collections import Counter
from collections.abc import Mapping

import msgspec

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict[int, int]).decode


def encode_counts(counts: Mapping[int, int]) -> bytes:
    """The stored form of how often each delay (minutes) occurred."""
    return _encode(dict(sorted(counts.items())))


def decode_counts(stored: bytes) -> Counter[int]:
    """How often each delay occurred.

    Raises sqlite3.DatabaseError for bytes that are none: the file is wrong, as SQLite would say.
    """
    try:
        return Counter(_decode(stored))
    except (msgspec.MsgspecError, TypeError, ValueError) as cause:
        error = sqlite3.DatabaseError(f"it has delays {stored!r:.60}: {cause}")
        error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
        raise error from cause
