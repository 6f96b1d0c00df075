"""Compressed bodies: gzip and zstd, when the client's Accept-Encoding asks (RFC 9110 12.5.3).

The encoding that the client rates highest is used; of equals first zstd, then gzip, then the plain
body. Without the header, or when the client accepts none of these, the body is sent plain. Answers
of less than `LEAST_BYTES` are always plain: they fit into one packet anyway. Only larger ones are
sent with `Vary`: a small one has one form, which suits every client. Exports (`streaming`) are
compressed whatever their length.
"""

import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

import zstandard
from werkzeug.http import parse_accept_header

LEAST_BYTES = 1024
GZIP_LEVEL, ZSTD_LEVEL = 5, 3

_ENCODINGS = ("zstd", "gzip", "identity")  # of those that are rated equal, the first is used
_GZIP_FRAME = zlib.MAX_WBITS + 16


_COMPRESSORS: dict[str, Callable[[], Any]] = {
    "gzip": lambda: zlib.compressobj(GZIP_LEVEL, wbits=_GZIP_FRAME),
    "zstd": lambda: zstandard.ZstdCompressor(level=ZSTD_LEVEL).compressobj(),
}


def encoding_for(environ: dict[str, Any]) -> str:
    """Return the encoding of a large answer to this request: "zstd", "gzip" or "" for none."""
    accepted: str | None = environ.get("HTTP_ACCEPT_ENCODING")
    return _preferred(accepted) if accepted else ""


@lru_cache(maxsize=128)  # a client sends the same header each time
def _preferred(accepted: str) -> str:
    ranks = weights(accepted)
    others = ranks.get("*", 0.0)
    best, highest = "identity", 0.0
    for encoding in _ENCODINGS:
        rank = ranks.get(encoding, others)
        if rank > highest:
            best, highest = encoding, rank
    return "" if best == "identity" else best


@lru_cache(maxsize=128)
def weights(header: str) -> Mapping[str, float]:
    """Return the names in an Accept or Accept-Encoding header, in lower case, with q-values."""
    lowest_first = reversed(parse_accept_header(header))
    return {name.partition(";")[0].lower(): q_value for name, q_value in lowest_first}


def rank_of(ranges: Iterable[str], accepted: Mapping[str, float]) -> float:
    """Return the q-value of what `ranges` describe, the most specific one first; 0 for none."""
    return next((accepted[name] for name in ranges if name in accepted), 0.0)


def compressed(encoding: str, body: bytes) -> bytes:
    """Return `body`, compressed in an encoding."""
    return b"".join(compressed_pieces(encoding, iter((body,))))


def compressed_pieces(encoding: str, pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yield a body that comes in pieces, compressed; it takes the memory of one piece.

    If `pieces` raises an error, the end of the format is missing, so that the body cannot be
    unpacked as if it were whole.
    """
    compressor = _COMPRESSORS[encoding]()
    for piece in pieces:
        if data := compressor.compress(piece):
            yield data
    yield compressor.flush()
