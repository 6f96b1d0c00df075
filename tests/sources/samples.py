"""Rows and files that the tests of the sources share."""

import bz2
import csv
import gzip
import io
import lzma
import zipfile
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

import zstandard

from backend.base.errors import BadRow
from backend.chain.fields import FIELD_NAMES, Value
from backend.sources import open_source
from backend.sources.kinds import KINDS
from backend.sources.source import (
    FlightColumns,
    RawRows,
    Source,
    Understanding,
    Validator,
    validated,
)

_MONTH = next(kind for kind in KINDS if kind.name == "ready-made month, downloaded since 2018")
MONTHLY_TITLES = {name: title for name, title in _MONTH.pairs if name in FIELD_NAMES}

PARSED_FLOWN: tuple[Value, ...] = (
    *(2008, 4, "2008-01-03", 19393, 335),
    *(12264, "IAD", "Washington, DC", "District of Columbia"),
    *(15304, "TPA", "Tampa, FL", "Florida"),
    *("2003", 8, "2211", -14, 0, 116),
)
FLOWN = {name: str(value) for name, value in zip(FIELD_NAMES, PARSED_FLOWN, strict=True)}
DIVERTED = FLOWN | {"ARR_TIME": "", "ARR_DELAY": "", "AIR_TIME": "", "OP_CARRIER_FL_NUM": "337"}
CANCELLED = DIVERTED | {"DEP_TIME": "", "DEP_DELAY": "", "CANCELLED": "1"}
ROWS = [FLOWN, CANCELLED, DIVERTED]


def csv_text(
    rows: Sequence[Mapping[str, str]],
    names: Sequence[str] = FIELD_NAMES,
    titles: Mapping[str, str] | None = None,
) -> str:
    """The rows as CSV with strings quoted as BTS does; titles: field name -> column title."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([(titles or {}).get(name, name) for name in names])
    writer.writerows([row.get(name, "") for name in names] for row in rows)
    return text.getvalue()


def monthly_text(rows: Sequence[dict[str, str]]) -> str:
    """As the ready-made monthly zip: other names and order, more columns, a trailing comma."""
    names = ["Quarter", *FIELD_NAMES[:6], "OriginAirportSeqID", *FIELD_NAMES[6:], "Div5TailNum", ""]
    extra = {"Quarter": "1", "OriginAirportSeqID": "1226402"}
    monthly = [extra | row | _as_decimals(row) for row in rows]
    return csv_text(monthly, names, MONTHLY_TITLES)


def _as_decimals(row: Mapping[str, str]) -> dict[str, str]:
    names = ("DEP_DELAY", "ARR_DELAY", "CANCELLED", "AIR_TIME")
    return {name: f"{row[name]}.00" for name in names if row[name]}


def archive(members: Mapping[str, str | bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A zip archive of these members."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", method) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return packed.getvalue()


def zipped(content: bytes, name: str = "On_Time.csv", method: int = zipfile.ZIP_DEFLATED) -> bytes:
    return archive({"readme.html": "<p>About</p>", name: content}, method)


PACKINGS: dict[str, Callable[[bytes], bytes]] = {
    "plain": lambda content: content,
    "gzip": gzip.compress,
    "xz": lzma.compress,
    "bzip2": bz2.compress,
    "zstd": zstandard.ZstdCompressor(write_checksum=True).compress,
    "zip": zipped,
    "zip of bzip2": partial(zipped, method=zipfile.ZIP_BZIP2),
    "zip of LZMA": partial(zipped, method=zipfile.ZIP_LZMA),
}


def written(folder: Path, content: str | bytes, name: str = "flights.csv") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def flights_of(source: Source) -> list[tuple[Value, ...]]:
    return rows_of(list(validated(source)))


def rows_of(batches: Sequence[FlightColumns]) -> list[tuple[Value, ...]]:
    return [row for columns in batches for row in zip(*columns, strict=True)]


def read(source: Source) -> tuple[list[tuple[Value, ...]], list[BadRow]]:
    """The flights of a source, and its bad rows."""
    validator, good, bad = Validator(), list[FlightColumns](), list[BadRow]()
    with closing(source.rows()) as batches:
        for raw in batches:
            columns, problems = validator.judge(raw)
            good.append(columns)
            bad += problems
    return rows_of(good), bad


def bad_rows(path: Path) -> tuple[int, list[str]]:
    """How many flights in a file are good, and what is wrong with the other rows."""
    good, bad = read(open_source(path))
    return len(good), [str(problem) for problem in bad]


def understood(source: Source) -> Understanding:
    """What the files of a source were taken for."""
    understanding = source.understood()
    assert understanding is not None
    return understanding


class Rows(Source):
    """A source in memory: mappings field name -> raw value, in batches of any size."""

    label = "rows"

    def __init__(self, *batches: Sequence[Mapping[str, object]]) -> None:
        self._batches = batches
        self.closed = False

    def rows(self) -> Generator[RawRows, None, None]:
        first = 1
        try:
            for batch in self._batches:
                columns = [[row.get(name) for row in batch] for name in FIELD_NAMES]
                yield RawRows(columns, range(first, first + len(batch)), "rows, row")
                first += len(batch)
        finally:
            self.closed = True

    def progress(self) -> float:
        return 0.5
