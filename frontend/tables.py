"""The `.json` and `.csv` twin of a page."""

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from flask import Response

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def json_twin(found: Any) -> Response:
    """`found` as JSON."""
    return Response(json.dumps(found, ensure_ascii=False), content_type="application/json")


def csv_twin(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> Response:
    """`rows` as CSV with a header (RFC 4180). Spreadsheets take no text in it for a formula."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(columns)
    writer.writerows([_cell(row.get(column)) for column in columns] for row in rows)
    return Response(text.getvalue(), content_type="text/csv; charset=utf-8")


def _cell(value: Any) -> Any:
    if isinstance(value, str) and value.startswith(FORMULA_STARTS):
        return f" {value}"
    return value
