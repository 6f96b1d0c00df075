"""Reads Parquet and Arrow files (Feather, too) through pyarrow, if it is installed.

pyarrow is larger than everything else together, and nobody who serves flights needs it, so it is a
requirement of its own. It reads a file from any place, and gets a temporary copy, unpacked.
"""

import csv
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from io import StringIO
from math import isnan
from tempfile import TemporaryFile
from typing import IO, Any

from backend.base.words import pip_install
from backend.serving.body_files import folder_on_disk
from backend.sources.packed import PackedFile
from backend.sources.records import BatchReader, RecordBatch, Records, usable
from backend.sources.source import BATCH_ROWS, Unusable

PARQUET, _ARROW, _ARROW_STREAM = b"PAR1", b"ARROW1", b"\xff\xff\xff\xff"
COLUMNAR = (PARQUET, _ARROW, _ARROW_STREAM)
INSTALL_PYARROW = pip_install("backend/sources/parquet/requirements.txt")
_WITHOUT_PYARROW = f"file, which needs pyarrow; run {INSTALL_PYARROW}, or convert the file to CSV"
WITH_DUCKDB = ": duckdb -c \"COPY (FROM 'FILE') TO 'flights.csv'\""


@contextmanager
def read_columnar(file: PackedFile, start: bytes, blocks: Iterator[bytes]) -> Iterator[Records]:
    """Open the records in a file. Raises InvalidInput; `batches`, too. start: how it begins."""
    is_parquet = start.startswith(PARQUET)
    try:
        arrow: Any = import_module("pyarrow.parquet" if is_parquet else "pyarrow.ipc")
    except ModuleNotFoundError as error:
        what = (
            f"a Parquet {_WITHOUT_PYARROW}{WITH_DUCKDB}"
            if is_parquet
            else f"an Arrow {_WITHOUT_PYARROW}"
        )
        raise file.problem(f"is {what}") from error
    with TemporaryFile(dir=folder_on_disk()) as copy:
        copy.writelines(blocks)
        with _translated(file):
            if is_parquet:
                table = arrow.ParquetFile(copy)
                names, batches = table.schema_arrow.names, table.iter_batches(BATCH_ROWS)
            else:
                copy.seek(0)
                names, batches = _arrow_batches(arrow, start, copy)
        titles = tuple(map(str.strip, names))
        yield Records(titles, _batches(file, batches), unit="row", header=_csv_line(titles))


def _arrow_batches(arrow: Any, start: bytes, copy: IO[bytes]) -> tuple[list[str], Iterable[Any]]:
    if start.startswith(_ARROW_STREAM):
        stream = arrow.open_stream(copy)
        return stream.schema.names, stream
    whole = arrow.open_file(copy)
    return whole.schema.names, map(whole.get_batch, range(whole.num_record_batches))


def _batches(file: PackedFile, batches: Iterable[Any]) -> Iterator[BatchReader]:
    number = 1
    with _translated(file):
        for batch in batches:
            batch.validate(full=True)  # a damaged one could crash what reads its values
            for start in range(0, batch.num_rows, BATCH_ROWS):
                part = batch.slice(start, BATCH_ROWS)
                yield partial(_batch, file, part, number)
                number += part.num_rows
    if number == 1:
        raise file.without_rows("has columns but no rows")


def _batch(file: PackedFile, part: Any, first: int, places: tuple[int, ...]) -> RecordBatch:
    columns = {place: _column(file, part, place) for place in places}
    numbers = range(first, first + part.num_rows)
    return RecordBatch(columns, numbers, text=partial(_text, file, part, first))


def _text(file: PackedFile, batch: Any, first: int, number: int) -> str:
    """Return a row of a batch as CSV. first: the number of its first row."""
    row = batch.slice(number - first, 1)
    columns = (_column(file, row, position) for position in range(row.num_columns))
    return _csv_line([v.value if isinstance(v, Unusable) else v for (v,) in columns])


def _csv_line(values: Iterable[object]) -> str:
    line = StringIO()
    csv.writer(line, lineterminator="").writerow(values)
    return line.getvalue()


def _column(file: PackedFile, batch: Any, position: int) -> Sequence[object]:
    arrow = import_module("pyarrow")
    column, kind = batch.column(position), batch.schema.types[position]
    with _translated(file):
        if arrow.types.is_timestamp(kind):
            column = column.cast(arrow.timestamp("s", kind.tz), safe=False)  # without nanoseconds
        if arrow.types.is_duration(kind):  # its number counts seconds or less, and no minutes
            clocks = column.cast(arrow.duration("s"), safe=False).to_pylist()
            return [None if clock is None else str(clock) for clock in clocks]
        if arrow.types.is_dictionary(kind):
            words = column.dictionary.cast(arrow.string())
            column = arrow.DictionaryArray.from_arrays(column.indices, words)
        elif arrow.types.is_decimal(kind):  # as text, 8.00 might be a time of 8:00
            column = column.cast(arrow.float64())
        elif arrow.types.is_temporal(kind):
            column = column.cast(arrow.string())
        values = column.to_pylist()
    if arrow.types.is_floating(kind):  # NaN is what pandas writes where nothing is known
        return [None if value is None or isnan(value) else value for value in values]
    return usable([v.decode(errors="surrogateescape") if type(v) is bytes else v for v in values])


@contextmanager
def _translated(file: PackedFile) -> Iterator[None]:
    try:
        yield
    except (import_module("pyarrow").ArrowException, OSError, ValueError, OverflowError) as error:
        raise file.damaged(error) from error
