"""The `.json` and `.csv` twins of a page: its answer at the page's own address, for programs."""

import csv
import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flask import Blueprint, Response

FORMULA_STARTS = tuple("=+-@＝＋－＠\t\r")  # the last two only in results of the lab
JSON_ALONE, BOTH = ("json",), ("json", "csv")


@dataclass(frozen=True, slots=True)
class Twin:
    """Holds what a page shows, for programs.

    answer: for JSON. columns, rows: of the CSV. as_of: the last block that the rows count, `height`
    and `tip_hash`, for X-Flightchain-As-Of.
    """

    answer: Any
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

            def respond(is_csv: bool = form == "csv", **parts: Any) -> Response:
                twin = make(**parts)
                return _csv_twin(twin) if is_csv else json_twin(twin.answer)

            routes.add_url_rule(f"{path}.{form}", f"{make.__name__}_{form}", respond)
        return make

    return add


def json_twin(answer: Any) -> Response:
    return Response(json.dumps(answer, ensure_ascii=False), content_type="application/json")


def in_csv(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> str:
    """Return rows as CSV with a header (RFC 4180).

    Spreadsheets take no text in it for a formula.
    """
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(columns)
    writer.writerows([_cell(row.get(column)) for column in columns] for row in rows)
    return text.getvalue()


def _csv_twin(twin: Twin) -> Response:
    content = in_csv(twin.columns, twin.rows)
    response = Response(content, content_type="text/csv; charset=utf-8")
    if twin.as_of:
        as_of = f"{twin.as_of['height']} {twin.as_of['tip_hash']}"
        response.headers["X-Flightchain-As-Of"] = as_of
    return response


def _cell(value: Any) -> Any:
    is_formula = isinstance(value, str) and value.startswith(FORMULA_STARTS)
    return f" {value}" if is_formula else value
