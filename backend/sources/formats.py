"""Tells the format of a file by its first bytes, and opens the records in it.

A format that is not read is refused by its name, as the table in `formats.toml` says, and never as
a table that makes no sense. The parsers are `table`, `json_records` and `columnar`.
"""

import re
import tomllib
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path

from backend.sources.columnar import COLUMNAR, WITH_DUCKDB, read_columnar
from backend.sources.json_records import read_json
from backend.sources.kinds import NO_TEXT
from backend.sources.packed import IN_PARTS, WORKBOOK, PackedFile
from backend.sources.records import Records, from_utf16
from backend.sources.table import read_table

_NOT_A_BATCH = f"is a Parquet or Arrow file; {IN_PARTS}, or convert it to CSV{WITH_DUCKDB}"
_ROWS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))["refused"]
_FLAGS = re.DOTALL | re.IGNORECASE
_NO_TEXT = r"FEA1|[^\n]{,4000}\0"
_STARTS = [*((row["start"], row["reason"]) for row in _ROWS), (r"\xd0\xcf\x11\xe0", WORKBOOK)]
_REFUSED = [
    (re.compile(start.encode(), _FLAGS), why) for start, why in (*_STARTS, (_NO_TEXT, NO_TEXT))
]
_is_json = re.compile(rb"\{|\[(?!\s*\w+])").match  # [YEAR],[MONTH] is a header of SQL Server


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
                raise file.problem(_NOT_A_BATCH)
            with read_columnar(file, start, all_blocks) as records:
                yield records
            return
        if start.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
            as_utf8 = from_utf16(file, all_blocks)
            start = next(as_utf8, b"")
            all_blocks = chain([start], as_utf8)
        bare = start.removeprefix(BOM_UTF8)
        if reason := next((why for pattern, why in _REFUSED if pattern.match(bare)), ""):
            raise file.problem(f"{reason}{file.or_leave_out}")
        if file.is_strict or _is_json(bare.lstrip()):
            yield read_json(file, bare.lstrip(), all_blocks)
        else:
            yield read_table(file, all_blocks)
