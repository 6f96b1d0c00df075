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


def csv_twin(
    columns: Sequence[str],
    rows: Iterable[Mapping[str, Any]],
    as_of: Mapping[str, Any] | None = None,
) -> Response:
    """`rows` as CSV with a header (RFC 4180). Spreadsheets take no text in it for a formula.

    as_of: the last block that the rows count, `height` and `tip_hash`, for X-Flightchain-As-Of.
    """
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(columns)
    writer.writerows([_cell(row.get(column)) for column in columns] for row in rows)
    response = Response(text.getvalue(), content_type="text/csv; charset=utf-8")
    if as_of:
        response.headers["X-Flightchain-As-Of"] = f"{as_of['height']} {as_of['tip_hash']}"
    return response


def _cell(value: Any) -> Any:
    if isinstance(value, str) and value.startswith(FORMULA_STARTS):
        return f" {value}"
    return value
