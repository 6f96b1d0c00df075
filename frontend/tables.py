"""The `.json` and `.csv` twin of a page, and bodies as clients want them."""

import csv
import gzip
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from flask import Request, Response

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
LEAST_COMPRESSED_BYTES = 1024
COMPRESSED = {"text/html", "text/csv", "application/json"}


def json_twin(found: Any) -> Response:
    """`found` as JSON."""
    return Response(json.dumps(found, ensure_ascii=False), content_type="application/json")


def csv_twin(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> Response:
    """`rows` as CSV with a header (RFC 4180). No text is taken for a formula by a spreadsheet."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(columns)
    writer.writerows([_cell(row.get(column)) for column in columns] for row in rows)
    return Response(text.getvalue(), content_type="text/csv; charset=utf-8")


def _cell(value: Any) -> Any:
    if isinstance(value, str) and value.startswith(FORMULA_STARTS):
        return f" {value}"
    return value


def compressed(response: Response, request: Request) -> Response:
    """`response`, compressed if it is a text of some length and the client takes gzip."""
    if response.mimetype not in COMPRESSED or response.is_streamed:
        return response
    response.vary.add("Accept-Encoding")
    body = response.get_data()
    if request.accept_encodings.quality("gzip") and len(body) >= LEAST_COMPRESSED_BYTES:
        response.set_data(gzip.compress(body, 6, mtime=0))
        response.headers["Content-Encoding"] = "gzip"
    return response
