"""Compresses pages and their twins for clients that take gzip.

Styles and scripts never change and are compressed once, by `static_files`.
"""

import gzip

from flask import Request, Response

LEAST_COMPRESSED_BYTES = 1024
COMPRESSED = {"text/html", "text/csv", "application/json"}


def compressed(response: Response, request: Request) -> Response:
    """`response`, compressed if it is a long enough text and the client takes gzip."""
    if response.mimetype not in COMPRESSED or response.is_streamed:
        return response
    response.vary.add("Accept-Encoding")
    body = response.get_data()
    if request.accept_encodings.quality("gzip") and len(body) >= LEAST_COMPRESSED_BYTES:
        response.set_data(gzip.compress(body, 6, mtime=0))
        response.headers["Content-Encoding"] = "gzip"
    return response
