"""Writes and reads distributions of delays as the index stores them.

They are maps of MessagePack {delay: flights}. Delays ascend, and there is one spelling of each
distribution, so that two indexes of a chain are equal byte for byte.
"""

from collections import Counter
from collections.abc import Mapping

import msgspec

from backend.storage.checked_sqlite import Wrong

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(dict[int, int]).decode


def encode_counts(counts: Mapping[int, int]) -> bytes:
    """Return the stored form of how often each delay (minutes) occurred."""
    return _encode(dict(sorted(counts.items())))


def decode_counts(stored: bytes) -> Counter[int]:
    """Return how often each delay occurred.

    Raises Wrong for bytes that are no distribution.
    """
    try:
        return Counter(_decode(stored))
    except (msgspec.MsgspecError, TypeError, ValueError) as cause:
        raise Wrong(f"it has delays {stored!r:.60}: {cause}") from cause
