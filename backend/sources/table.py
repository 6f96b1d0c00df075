"""Reads a CSV file as a header and batches of rows, each with its line number.

Cells are separated by commas; or by semicolons or tabs, as spreadsheets write them in many
countries, if the header has more of these.

A row is one line. Cells with line breaks do not occur in flight records, and as they are not
allowed, a forgotten quote spoils its own line and not the rest of the file. Text is UTF-8, with or
without a byte order mark; lines end in LF or CRLF; blank lines are skipped. Memory is bounded
whatever the file holds.
"""

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, compress

from backend.base.errors import BadRow
from backend.sources.packed import PackedFile, Read, SentFile
from backend.sources.records import Columns, NeedsNoReason, RecordBatch, Records
from backend.sources.source import BATCH_ROWS, Fault

BLOCK_BYTES = 1 << 18
MOST_BLOCKS = 2  # of which the lines are parsed together
SEPARATORS = ",;\t"  # the first is the usual one
File = PackedFile | SentFile
_UNUSUAL = re.compile('["\r]')  # in a line that only a parser can take apart
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class _Lines:
    """At most `BATCH_ROWS` unparsed lines, without line ends, and their numbers.

    separator: what stands between two cells.
    """

    lines: Sequence[str]
    numbers: Sequence[int]
    separator: str

    def rows(self, width: int, hopeless: int = 0) -> RecordBatch:
        """Parse the lines as rows of `width` cells; a line that is no such row becomes a fault."""
        try:
            rows = list(csv.reader(self.lines, strict=True, delimiter=self.separator))
        except csv.Error:
            return self._one_by_one(width, hopeless)
        # Fewer rows than lines: a quote was left open and swallowed a line break.
        if len(rows) != len(self.lines) or set(map(len, rows)) != {width}:
            return self._one_by_one(width, hopeless)
        return _batch(rows, width, self.numbers, (), hopeless)

    def without_short(self, width: int) -> "tuple[_Lines, int]":
        """The lines that may have `width` cells, and how many others there are but blank ones."""
        long = [line.count(self.separator) >= width - 1 for line in self.lines]
        kept = _Lines(
            list(compress(self.lines, long)), list(compress(self.numbers, long)), self.separator
        )
        return kept, len(self.lines) - self.lines.count("") - len(kept.lines)

    def _one_by_one(self, width: int, hopeless: int) -> RecordBatch:
        rows, good, faults = [], [], []
        for number, line in zip(self.numbers, self.lines, strict=True):
            cells_without_quotes = line.count(self.separator) + 1
            if cells_without_quotes != width and not _UNUSUAL.search(line):
                if line:
                    faults.append(_wrong_width(number, line, cells_without_quotes, width))
                continue
            try:
                cells = next(csv.reader([line], strict=True, delimiter=self.separator))
            except csv.Error as error:
                faults.append(Fault(number, "line", line, _reason(error)))
                continue
            if len(cells) == width:
                rows.append(cells)
                good.append(number)
            elif cells:
                faults.append(_wrong_width(number, line, len(cells), width))
        return _batch(rows, width, good, faults, hopeless)


def _batch(
    rows: Sequence[list[str]],
    width: int,
    numbers: Sequence[int],
    faults: Sequence[Fault],
    hopeless: int,
) -> RecordBatch:
    columns = Columns(lambda position: [row[position] for row in rows], width)
    return RecordBatch(columns, numbers, faults, hopeless)


def _wrong_width(number: int, line: str, cells: int, width: int) -> Fault:
    return Fault(number, "line", line, f"has {cells} cells, but the header has {width}")


def _reason(error: csv.Error) -> str:
    # After a dash the parser gives advice to programmers, which is left out.
    return f"is not CSV ({str(error).partition(' - ')[0]})"


@contextmanager
def opened_table(file: File, needs_no_reason: NeedsNoReason = lambda: False) -> Iterator[Records]:
    """Open the CSV table in `file`.

    Raises InvalidInput if the file cannot be read, is empty or has no header; BadRow where it is
    not UTF-8 or a line is too long. The iterator `batches` may raise the same.
    """
    with file.opened() as read:
        blocks = line_blocks(file, read)
        first = next(blocks, None)
        if first is None:
            raise file.problem("is empty")
        try:
            separator, names = _header(first[0])
        except csv.Error as error:
            raise file.problem(f"has a first line that {_reason(error)}") from error
        titles = tuple(name.strip() for name in names)
        lines = _numbered(line_batches(chain([first[1:]], blocks)), separator)
        yield Records(titles, _batches(lines, len(titles), needs_no_reason), separator == ";")


def _batches(
    batches: Iterable[_Lines], width: int, needs_no_reason: NeedsNoReason
) -> Iterator[RecordBatch]:
    for lines in batches:
        if needs_no_reason():
            long_lines, hopeless = lines.without_short(width)
            yield long_lines.rows(width, hopeless)
        else:
            yield lines.rows(width)


def _header(line: str) -> tuple[str, list[str]]:
    """Return the separator of a table, by which its header has the most cells, and these cells.

    Raises csv.Error.
    """
    best: tuple[str, list[str]] = (SEPARATORS[0], [])
    for separator in SEPARATORS:
        try:
            cells = next(csv.reader([line], strict=True, delimiter=separator))
        except csv.Error:  # names in quotes, with another separator between them
            continue
        best = max(best, (separator, cells), key=lambda header: len(header[1]))
    return best if best[1] else (SEPARATORS[0], next(csv.reader([line], strict=True)))


def line_batches(blocks: Iterable[list[str]]) -> Iterator[list[str]]:
    """Yield the lines of `blocks` in lists of `BATCH_ROWS`, or fewer where lines are long.

    Cells may take twenty times the memory of their text, so long lines are not collected.
    """
    held: list[str] = []
    count = 0  # of the blocks from which these are
    for block in blocks:
        held += block
        count += 1
        end = len(held) if count == MOST_BLOCKS else len(held) // BATCH_ROWS * BATCH_ROWS
        for start in range(0, end, BATCH_ROWS):
            yield held[start : min(start + BATCH_ROWS, end)]
        if end:
            held = held[end:]
            count = 1 if held else 0
    if held:
        yield held


def line_blocks(file: File, read: Read) -> Iterator[list[str]]:
    """All lines of a file, without their line ends, in lists of one block (`BLOCK_BYTES`) each."""
    number, rest = 1, b""
    block = read(BLOCK_BYTES)
    block = block.removeprefix(BYTE_ORDER_MARK)
    while block:
        whole, newline, rest = (rest + block).rpartition(b"\n")
        if len(rest) > BLOCK_BYTES:
            number += whole.count(b"\n") + len(newline)
            raise _bad_line(file, number, rest[:20], f"is longer than {BLOCK_BYTES} bytes")
        if newline:
            lines = _decoded(file, number, whole).split("\n")
            number += len(lines)
            yield lines
        block = read(BLOCK_BYTES)
    if rest:
        yield [_decoded(file, number, rest)]


def _decoded(file: File, number: int, block: bytes) -> str:
    try:
        return block.decode().replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = number + block.count(b"\n", 0, error.start)
        excerpt = block[max(0, error.start - 8) : error.start + 4]
        raise _bad_line(file, line, excerpt, "is not UTF-8; save the file as UTF-8") from error


def _bad_line(file: File, line: int, excerpt: bytes, reason: str) -> BadRow:
    return BadRow(f"{file.label}, line {line}", "line", excerpt, reason)


def _numbered(batches: Iterable[list[str]], separator: str) -> Iterator[_Lines]:
    number = 2
    for lines in batches:
        yield _Lines(lines, range(number, number + len(lines)), separator)
        number += len(lines)
