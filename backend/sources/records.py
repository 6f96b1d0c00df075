"""Defines records: what a format makes of a file, before anybody knows that they are flights.

A file has titles, and under each title a column of values. A format yields them in batches, so that
memory stays bounded; what the columns mean is decided elsewhere, by the titles.

Text is cut into numbered lines, whatever wrote it. It is UTF-8, or UTF-16 with a byte order mark. A
byte that is neither does no harm where nobody uses it: it becomes a surrogate, which no field of a
flight takes. Lines end in LF, CRLF or CR, and may begin with a byte order mark, where files were
put together.
"""

from codecs import getincrementaldecoder, iterdecode
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import IncrementalNewlineDecoder
from itertools import chain, pairwise

from backend.base.errors import BadRow
from backend.sources.packed import BLOCK_BYTES, PackedFile
from backend.sources.source import BATCH_ROWS, TAKEN_AS_THEY_ARE, Unusable

Lines = tuple[int, list[str]]
"""The number of the first, and at most `BATCH_ROWS` lines without their ends."""


@dataclass(frozen=True, slots=True)
class RecordBatch:
    """Some rows of a file, at most `BATCH_ROWS`.

    columns: the values below the titles at those positions that were asked for, each a str,
        number, None or `Unusable`.
    numbers: the line or row number of each row, ascending.
    faults: lines that are no rows; their numbers are not in `numbers`.
    repeated_headers: how many lines were left out because they repeat the header.
    text: returns the row or fault with a number as it stands in the file.
    """

    columns: Mapping[int, Sequence[object]]
    numbers: Sequence[int]
    faults: Sequence[BadRow] = ()
    repeated_headers: int = 0
    text: Callable[[int], str] = lambda number: ""


BatchReader = Callable[[tuple[int, ...]], RecordBatch]


@dataclass(frozen=True, slots=True)
class Records:
    """What a file holds, whatever its format.

    titles: the names of the columns as they are written, stripped.
    batches: make its rows, given the positions of the titles that are needed; each may be left out.
        The iterator and they raise InvalidInput where the file cannot be read on.
    unit: what the numbers of rows count: "line", "object", "transaction" or "row".
    header: what stands above the rows; "" if nothing does.
    """

    titles: tuple[str, ...]
    batches: Iterator[BatchReader]
    unit: str = "line"
    header: str = ""


def text_of(lines: Sequence[str], first: int) -> Callable[[int], str]:
    """Return what returns the line with a number. first: that of the first."""
    return lambda number: lines[number - first]


def usable(values: Sequence[object]) -> Sequence[object]:
    """Return the values of a column as a `RecordBatch` may hold them."""
    if TAKEN_AS_THEY_ARE.issuperset(map(type, values)):
        return values
    return [v if type(v) in TAKEN_AS_THEY_ARE else Unusable(v) for v in values]


def from_utf16(file: PackedFile, blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield a file as UTF-8. Raises InvalidInput if it is not UTF-16."""
    try:
        for text in iterdecode(blocks, "utf-16"):
            yield text.encode()
    except UnicodeError as error:
        raise file.problem("begins like UTF-16 but is not UTF-16; save it as UTF-8") from error


def line_batches(file: PackedFile, blocks: Iterator[bytes]) -> Iterator[Lines]:
    """Yield all lines of a file.

    Raises BadRow for a line that is longer than a block (`BLOCK_BYTES`).
    """
    utf_8 = getincrementaldecoder("utf-8")("surrogateescape")
    decode = IncrementalNewlineDecoder(utf_8, translate=True).decode
    number, rest = 1, ""
    for block, following in pairwise(chain(blocks, [b""])):
        text = rest + decode(block, not following)
        ending = "" if following or text.endswith("\n") else "\n"
        whole, newline, rest = f"{text}{ending}".rpartition("\n")
        if newline:
            lines = whole.replace("\n\ufeff", "\n").removeprefix("\ufeff").split("\n")
            for position in range(0, len(lines), BATCH_ROWS):
                yield number + position, lines[position : position + BATCH_ROWS]
            number += len(lines)
        if len(rest.encode(errors="surrogateescape")) > BLOCK_BYTES:
            reason = f"is longer than {BLOCK_BYTES:,} bytes, the most for a row; check the file"
            raise file.bad_row(number, "line", rest[:20], reason)
