"""Writes canonical bytes, the one JSON text of a value, and hashes them.

The text is JSON as in RFC 8785 (JCS), restricted to objects of integers, strings and null. For such
values `json.dumps` with sorted (ASCII) keys, no spaces and UTF-8 is exactly JCS, so a verifier
needs nothing but a standard library.
"""

import hashlib
import json
from collections.abc import Mapping
from json.encoder import encode_basestring

from backend.chain.fields import Value

MAX_SAFE_INTEGER = 2**53 - 1  # RFC 8785 section 3.2.2.3: beyond it JSON numbers are not exact


_KINDS = (int, str, type(None))


def canonical(value: Mapping[str, Value]) -> bytes:
    """Return the canonical bytes of a flat object.

    Raises ValueError for a value that JSON cannot hold exactly.
    """
    for name, item in value.items():
        if isinstance(item, bool) or not isinstance(item, _KINDS):
            raise ValueError(f"{name} must be an integer, a string or null, not {item!r}")
        if isinstance(item, int) and abs(item) > MAX_SAFE_INTEGER:
            raise ValueError(f"{name} is beyond ±(2^53 - 1): {item}")
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()


def literal(value: Value) -> bytes:
    """Write one value as it stands in canonical JSON."""
    if value is None:
        return b"null"
    return b"%d" % value if isinstance(value, int) else encode_basestring(value).encode()


def sha256_hex(data: bytes) -> str:
    """Return the SHA-256 as 64 lower-case hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()
