"""Tells the format of a file by its first bytes, and opens the records in it.

A format that is not read is refused by its name, with what to do, and never as a table that makes
no sense. The parsers are `table`, `json_records` and `columnar`.
"""

import re
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain

from backend.sources.columnar import COLUMNAR, WITH_DUCKDB, read_columnar
from backend.sources.json_records import read_json
from backend.sources.kinds import NO_TEXT
from backend.sources.packed import PACKED, WORKBOOK, PackedFile
from backend.sources.records import Records, from_utf16
from backend.sources.table import read_table

_NOT_POSTED = (
    "is a Parquet or Arrow file, which is not read over the network; run python -m backend import "
    f"FILE on the ledger's machine, or make a CSV file of it{WITH_DUCKDB}"
)
_REFUSED: tuple[tuple[bytes, str], ...] = (
    (
        rb"\s*<(!doctype html|html|head|body)",
        "is a web page (HTML) and no table; the download failed",
    ),
    (rb"\s*<", "is HTML or XML and no table; look for the data as CSV"),
    (rb"version https://git-lfs", "is a pointer of Git LFS and not the file; run git lfs pull"),
    (
        rb"\s*(\+[-=]{2}|\xe2[\x94\x95]|\|[^\n]*\n\s*\|[ :]*--)",
        "is a table drawn for people; write it with commas (sqlite3 -header -csv, mysql --batch)",
    ),
    (
        rb"--( (mysql|mariadb) |\r?\n-- )|(pragma|begin|create|insert|copy|set|drop)\b[^,\n]*[;(]",
        "is a dump in SQL; load it into its database, and export the table as CSV",
    ),
    (rb"%PDF-", "is a PDF document and no table; look for the data as CSV"),
    (rb"\xd0\xcf\x11\xe0", WORKBOOK),
    (rb".{257}ustar", "is a tar archive; unpack it (tar xf) and import the files in it"),
    (
        rb"7z\xbc\xaf\x27\x1c|Rar!\x1a|\x1f\x9d|\x04\x22\x4d\x18|PK",
        "is an archive that is not read here; unpack it and import the files in it",
    ),
    (
        rb"SQLite format 3\0",
        'is an SQLite database; export its table: sqlite3 -header -csv FILE "SELECT * FROM TABLE"',
    ),
    (
        rb".{8}DUCK",
        "is a DuckDB database; export its table: duckdb FILE \"COPY TABLE TO 'flights.csv'\"",
    ),
    (
        rb"RD[AX][23]\n|X\n\0\0\0[\2\3]",
        "is data of R; load it there, and write it with write.csv(…, row.names = FALSE)",
    ),
    (
        rb"\x89HDF|Obj\x01|ORC|FEA1|\x80[\2-\5]|\xff\xfe\0\0|(?!\xff\xfe|\xfe\xff)[^\n]{,4000}\0",
        NO_TEXT,
    ),
)


_PATTERNS = [(re.compile(text, re.DOTALL | re.IGNORECASE), reason) for text, reason in _REFUSED]


@contextmanager
def opened_records(file: PackedFile) -> Iterator[Records]:
    """Open the records in `file`, whatever its format.

    Raises InvalidInput if it cannot be read, or has a format that is not read; the iterator
    `batches` may do so, too.
    """
    with file.opened() as blocks:
        start = next(blocks, b"")
        all_blocks = chain([start], blocks)
        if start.startswith(COLUMNAR):
            if file.is_posted:  # pyarrow trusts what it reads
                raise file.problem(_NOT_POSTED)
            with read_columnar(file, start, all_blocks) as records:
                yield records
            return
        _refuse(file, start.removeprefix(BOM_UTF8))
        if start.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
            as_utf8 = from_utf16(file, all_blocks)
            start = next(as_utf8, b"")
            all_blocks = chain([start], as_utf8)
        text = start.removeprefix(BOM_UTF8).lstrip()
        if file.is_strict or text.startswith((b"{", b"[")):
            yield read_json(file, text, all_blocks)
        else:
            yield read_table(file, all_blocks)


def _refuse(file: PackedFile, start: bytes) -> None:
    if start.startswith(PACKED):
        raise file.problem("is packed twice; unpack it once")
    for pattern, reason in _PATTERNS:
        if pattern.match(start):
            raise file.problem(reason)
