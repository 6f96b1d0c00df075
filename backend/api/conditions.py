"""Conditional requests: strong ETags, 304, and how long an answer may be kept (RFC 9110, RFC 9111).

A tag is made from what fixes an answer's bytes, a block's hash and the query string, so that it is
known before anything is computed. Each encoding of a body has a tag of its own: `"TAG"`,
`"TAG-gzip"`, `"TAG-zstd"`. A request is answered 304 if it names the tag of the plain body, or of
the encoding that it would get: the client's copy is right then. `If-None-Match: *` matches any
answer, so it is looked at only when it is known that there is one.

Cache-Control is one of four:

- NO_STORE: errors, pending transactions, answers to POST.
- REVALIDATE: answers for the tip. A cache asks each time, and a 304 costs less than an answer.
- SETTLED: answers for a height or an id: blocks, mined transactions, answers `as_of` a height. A
  chain never changes these, but another chain may take its place at the same address (a test,
  a new start, another folder), and no such address names the chain. So they are not `immutable`,
  or a browser would mix two chains; ten minutes spare nearly all requests of a visit, and after
  that an ETag saves the body.
- IMMUTABLE: full tiles of the log, as C2SP tlog-tiles asks. Auditors read them, browsers do not,
  and an auditor that keeps one notices if another log takes this log's place.
"""

import re
import zlib
from hashlib import blake2b

from flask import Response

from backend.api.encodings import encoding_for
from backend.api.responses import nothing
from backend.serving.environs import Environ

NO_STORE = "no-store"
REVALIDATE = "no-cache"
SETTLED = "public, max-age=600"
IMMUTABLE = "public, max-age=31536000, immutable"

VARY = ("Vary", "Accept-Encoding")

FORM = 1  # is raised when the same question gets an answer that is written in another way

_HASH_DIGITS = 32  # of 64: 128 bits are more than enough to tell blocks apart
_TAGS = re.compile(r'"[^"]*"')


def tag_of(block_hash: str, route: str, query: str) -> str:
    """Return the tag of the answer of `route` to `query` (as in the URL) at a block."""
    checksum = zlib.crc32(query.encode("latin-1"), zlib.crc32(route.encode()))
    return f"{block_hash[:_HASH_DIGITS]}-{checksum:08x}{FORM}"


def tag_of_content(body: bytes) -> str:
    """Return the tag of an answer that is fixed by nothing but its own bytes."""
    return blake2b(body, digest_size=16).hexdigest()


def quoted(tag: str, encoding: str = "") -> str:
    """Return the value of the header ETag for a tag and an encoding ("" for none)."""
    return f'"{tag}-{encoding}"' if encoding else f'"{tag}"'


def unchanged(
    environ: Environ, tag: str, cache_control: str, *, is_there: bool = False
) -> Response | None:
    """Return 304 if the client has the answer with this tag; else None.

    is_there: whether it is known that there is an answer; then a client may have any.
    """
    encoding = known_encoding(environ, tag, is_there=is_there)
    if encoding is None:
        return None
    etag = ("ETag", quoted(tag, encoding))
    return nothing(304, etag, ("Cache-Control", cache_control), VARY)


def known_encoding(environ: Environ, tag: str, *, is_there: bool = False) -> str | None:
    """Return the encoding in which the client has the answer with this tag; None if it lacks it."""
    given: str | None = environ.get("HTTP_IF_NONE_MATCH")
    if given is None:
        return None
    if given == quoted(tag) or (is_there and given.strip() == "*"):
        return ""
    known = _TAGS.findall(given)
    for encoding in ("", encoding_for(environ)):
        if quoted(tag, encoding) in known:
            return encoding
    return None
