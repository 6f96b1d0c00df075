"""The `.json` and `.csv` twins of a page: its answer at the page's own address, for programs."""

import csv
import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from flask import Blueprint, Response

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
JSON_ALONE, BOTH = ("json",), ("json", "csv")


@dataclass(frozen=True, slots=True)
class Twin:
    """What a page shows, for programs.

    found: for JSON. columns, rows: of the CSV. as_of: the last block that the rows count, `height`
    and `tip_hash`, for X-Flightchain-As-Of.
    """

    found: Any
    columns: Sequence[str] = ()
    rows: Iterable[Mapping[str, Any]] = ()
    as_of: Mapping[str, Any] | None = None


Make = Callable[..., Twin]


def twins(routes: Blueprint, path: str, formats: Sequence[str] = BOTH) -> Callable[[Make], Make]:
    """Decorate the function that makes the twins of the page at `path`, which it adds to `routes`.

    The function takes what is variable in the path. formats: JSON_ALONE or BOTH.
    """

    def add(make: Make) -> Make:
        for form in formats:
            answer = partial(_answered, make, _json_of if form == "json" else _csv_of)
            routes.add_url_rule(f"{path}.{form}", f"{make.__name__}_{form}", answer)
        return make

    return add


def _answered(make: Make, write: Callable[[Twin], Response], **parts: Any) -> Response:
    return write(make(**parts))


def _json_of(twin: Twin) -> Response:
    return json_twin(twin.found)


def json_twin(found: Any) -> Response:
    """`found` as JSON."""
    return Response(json.dumps(found, ensure_ascii=False), content_type="application/json")


def _csv_of(twin: Twin) -> Response:
    """The rows as CSV with a header (RFC 4180). Spreadsheets take no text in it for a formula."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(twin.columns)
    writer.writerows([_cell(row.get(column)) for column in twin.columns] for row in twin.rows)
    response = Response(text.getvalue(), content_type="text/csv; charset=utf-8")
    if twin.as_of:
        as_of = f"{twin.as_of['height']} {twin.as_of['tip_hash']}"
        response.headers["X-Flightchain-As-Of"] = as_of
    return response


def _cell(value: Any) -> Any:
    if isinstance(value, str) and value.startswith(FORMULA_STARTS):
        return f" {value}"
    return value
