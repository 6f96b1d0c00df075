"""Compressed bodies: gzip and zstd, when the client's Accept-Encoding asks (RFC 9110 12.5.3).

What the client rates highest is taken, of equals zstd, then gzip, then the plain body; without the
header, or when nothing of ours is acceptable, the body goes out as it is. Bodies of less than
`LEAST_BYTES` are always plain: they fit one packet anyway. `Vary` is sent with larger bodies alone:
a small one has one form, which every client may be given.
"""

import zlib
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, Protocol

import zstandard

LEAST_BYTES = 1024
GZIP_LEVEL, ZSTD_LEVEL = 5, 3

_ENCODINGS = ("zstd", "gzip", "identity")  # of equal rank the first
_GZIP_FRAME = zlib.MAX_WBITS + 16


class _Compressor(Protocol):
    def compress(self, data: bytes) -> bytes: ...

    def flush(self) -> bytes: ...


_COMPRESSORS: dict[str, Callable[[], _Compressor]] = {
    "gzip": lambda: zlib.compressobj(GZIP_LEVEL, wbits=_GZIP_FRAME),
    "zstd": lambda: zstandard.ZstdCompressor(level=ZSTD_LEVEL).compressobj(),
}


def encoding_for(environ: dict[str, Any]) -> str:
    """The encoding of a large answer to this request: "zstd", "gzip" or "" for none."""
    accepted: str | None = environ.get("HTTP_ACCEPT_ENCODING")
    return _preferred(accepted) if accepted else ""


@lru_cache(maxsize=128)  # a client sends the same each time
def _preferred(accepted: str) -> str:
    ranks = weights(accepted)
    others = ranks.get("*", 0.0)
    best, highest = "identity", 0.0
    for encoding in _ENCODINGS:
        rank = ranks.get(encoding, others)
        if rank > highest:
            best, highest = encoding, rank
    return "" if best == "identity" else best


def weights(header: str) -> dict[str, float]:
    """What an Accept or Accept-Encoding header names, in small letters, with its q-value."""
    found: dict[str, float] = {}
    for part in header.split(","):
        name, *parameters = (piece.strip().lower() for piece in part.split(";"))
        weight = next((p[2:] for p in parameters if p.startswith("q=")), "1")
        try:
            found[name] = min(1.0, max(0.0, float(weight)))
        except ValueError:
            found[name] = 0.0
    return found


def compressed(encoding: str, body: bytes) -> bytes:
    """`body` in an encoding."""
    compressor = _COMPRESSORS[encoding]()
    return compressor.compress(body) + compressor.flush()


def compressed_pieces(encoding: str, pieces: Iterator[bytes]) -> Iterator[bytes]:
    """A body that comes in pieces, in an encoding; memory is that of a piece.

    An error in `pieces` ends it without the end of the format, so that it cannot be unpacked whole.
    """
    compressor = _COMPRESSORS[encoding]()
    for piece in pieces:
        if data := compressor.compress(piece):
            yield data
    yield compressor.flush()
