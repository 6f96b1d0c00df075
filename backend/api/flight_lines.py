"""Writes flights as lines of CSV and NDJSON, which can be imported again.

The last line of NDJSON is no flight: `{"complete":true,"count":N,"as_of":{…}}`, unless a client
asks to leave it out. An answer of which more rows follow, beyond its limit, says `false` there, and
the `total`. Such a row would not be CSV (RFC 4180), so only HTTP tells whether a CSV file
is whole: see `exporting`.

Spreadsheets run a cell that begins with = + - @ as a formula. Only the names of cities and states
are free text; in CSV one that begins so gets a space in front, which the import removes: no value
of the ledger begins with a space.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import msgspec

from backend.api.operation import Media
from backend.chain.block import Header
from backend.chain.columns import Columns
from backend.chain.fields import FIELD_NAMES, Value
from backend.chain.parse_cache import ParseCache
from backend.questions.answer_types import AsOf
from backend.questions.parameters import Choice

AS_OF_HEADER = "X-Flightchain-As-Of"
STORED = ("timestamp", *FIELD_NAMES)
EXPORTED = ("TRANSACTION_ID", *STORED, "BLOCK_HEIGHT")
LEG_NAMES = (*EXPORTED, "status")

_FORMULAS = tuple("=+-@＝＋－＠")
_WRITTEN_ENTRIES = 4096  # per column; the same cities, times and delays come in every block


@dataclass(frozen=True, slots=True)
class LineFormat:
    """A way to write flights.

    start, end: text around a line, whose cells stand between commas. cell: writes a value, given
    its name.
    """

    name: str
    mimetype: str
    start: str
    end: str
    cell: Callable[[str, Value], str]
    header: Callable[[Sequence[str]], bytes]
    footer: Callable[[int, AsOf, int], bytes]

    def row(self, values: Mapping[str, Value]) -> bytes:
        """Return the line of one flight: field name -> value."""
        cells = ",".join(self.cell(name, value) for name, value in values.items())
        return f"{self.start}{cells}{self.end}".encode()


def _csv_cell(_name: str, value: Value) -> str:
    if not isinstance(value, str):
        return "" if value is None else str(value)
    if value.startswith(_FORMULAS):
        value = f" {value}"
    if "," in value or '"' in value:  # no text of a flight has line breaks
        return '"' + value.replace('"', '""') + '"'
    return value


def _json_cell(name: str, value: Value) -> str:
    return f'"{name}":{msgspec.json.encode(value).decode()}'


def _completion(count: int, as_of: AsOf, total: int) -> bytes:
    more = {"total": total} if total else {}
    end = {"complete": not more, "count": count, **more, "as_of": as_of}
    return msgspec.json.encode(end) + b"\n"


CSV = LineFormat(
    name="csv",
    mimetype="text/csv; charset=utf-8; header=present",
    start="",
    end="\r\n",
    cell=_csv_cell,
    header=lambda names: ",".join(names).encode() + b"\r\n",
    footer=lambda count, as_of, total: b"",
)
NDJSON = LineFormat(
    name="ndjson",
    mimetype="application/x-ndjson",
    start="{",
    end="}\n",
    cell=_json_cell,
    header=lambda names: b"",
    footer=_completion,
)
FORMATS = {form.name: form for form in (NDJSON, CSV)}
TRAILER = Choice(
    "trailer",
    "Whether NDJSON ends with a line that says that the answer is complete.",
    "false",
    default="true",
    choices=("true", "false"),
)
IN_LINES: dict[str, Media] = {
    form.mimetype.partition(";")[0]: Media({"type": "string"}) for form in FORMATS.values()
}
"""The bodies of an answer in these formats: one flight per line."""


class BlockLines:
    """Writes the rows of one block after another, and remembers how values are written."""

    def __init__(self, form: LineFormat) -> None:
        self._form = form
        self._written = {
            n: ParseCache(partial(_cell_after, form, n), _WRITTEN_ENTRIES) for n in STORED
        }

    def lines(self, header: Header, columns: Columns, rows: Sequence[int]) -> bytes:
        """Return the lines of some rows of a block."""
        form, first = self._form, header.first_transaction
        cells: list[Iterable[str]] = [
            [form.start + form.cell("TRANSACTION_ID", first + row) for row in rows]
        ]
        for name, written in self._written.items():
            column = columns[name]
            texts = list(map(written.__getitem__, column.values))
            cells.append(map(texts.__getitem__, map(column.codes.__getitem__, rows)))
        cells.append([_cell_after(form, "BLOCK_HEIGHT", header.height) + form.end] * len(rows))
        return "".join(map("".join, zip(*cells, strict=True))).encode()


def _cell_after(form: LineFormat, name: str, value: Value) -> str:
    return f",{form.cell(name, value)}"


def counted_up_to(as_of: AsOf) -> str:
    """Return the value of AS_OF_HEADER: height and hash of the block up to which a file counts."""
    return f"{as_of.height} {as_of.tip_hash}"


def table(
    form: LineFormat,
    names: Sequence[str],
    rows: Sequence[Mapping[str, Value]],
    as_of: AsOf,
    total: int = 0,
) -> bytes:
    """Return a file of rows whose columns are `names`.

    total: how many rows there are with those that follow these; 0 if none do.
    """
    lines = b"".join(map(form.row, rows))
    return form.header(names) + lines + form.footer(len(rows), as_of, total)
