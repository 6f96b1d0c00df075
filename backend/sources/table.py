"""Reads a CSV table: a header and rows, separated by commas, semicolons, tabs or bars.

A row is one line, or a few if cells in quotes have line breaks; it is then numbered by its first
one. A forgotten quote spoils its own line and not the rest of the file. Blank lines are skipped; so
are rows of empty cells, which spreadsheets leave at the end, a line that repeats the header, where
files were put together, and Excel's first line `sep=;`. Empty cells beyond the header do no harm if
the first rows have them, nor do the numbers of rows that R writes without a title.
"""

import csv
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain, compress, islice, pairwise
from operator import itemgetter

from backend.base.errors import BadRow
from backend.base.words import counted
from backend.sources.kinds import are_of_flights, has_meaning, unqualified
from backend.sources.packed import PackedFile
from backend.sources.records import (
    BatchReader,
    Lines,
    RecordBatch,
    Records,
    line_batches,
    text_of,
)

SEPARATORS = ",;\t|"  # the first is the usual one
MOST_COLUMNS = 1000  # the ready-made month of BTS has 110
LOOKED_AT = 20  # lines, for the titles, and then for the numbers of rows
LEAST_NUMBERS = 4  # or days, by which a row is known: a cancelled flight may have no more
MOST_LINES = 20  # of a row
_is_number = re.compile("[0-9]{1,12}").fullmatch
_begins_with_digit = re.compile(r'[-(\s"]*[0-9]').match
_QUOTED = re.compile('"[^"]*"')
_SPLIT_CITY = re.compile("[A-Za-z.], [A-Z]{2}(,|$)")  # Tampa, FL without quotes
_ROW_COUNT = re.compile(r"\(\d+ rows?( affected)?\)|\d+ rows? selected\.")  # below all rows
_EXCEL = re.compile(r'"?sep=([^ ])"?[,;\t|]*', re.IGNORECASE)
_parse = partial(csv.reader, strict=True, skipinitialspace=True)


_Parsed = tuple[Sequence[list[str]], Sequence[int], Sequence[BadRow]]


@dataclass(frozen=True, slots=True)
class _Header:
    """The header of a table.

    line: as it stands. titles: what is in its cells, without empty ones at the end. usual: how many
    cells most of the first rows have, but for those with a city in two cells. is_filled: whether
    rows have something below an empty title at the end. above: the lines above it, and before it an
    empty title, if rows begin with their numbers.
    """

    file: PackedFile
    line: str
    separator: str
    titles: tuple[str, ...]
    usual: int
    is_filled: bool
    above: str

    def idle_lines(self) -> tuple[str, str]:
        """Return lines that say nothing: the header again, and the end of a file in DOS."""
        return self.line, "\x1a"

    def takes(self, row: list[str]) -> bool:
        """Return whether this is a row of the table.

        It may have more cells if most rows have them, and if these are empty or below an empty
        title. One that alone has more is one in which a comma is not quoted, so that its cells
        stand in wrong columns.
        """
        is_usual = len(row) == self.usual and not any(row[place] for place in self.beyond())
        return is_usual or len(row) == len(self.titles)

    def beyond(self) -> range:
        """Return the positions of cells that must be empty in a row of the usual width."""
        return range(len(self.titles), len(self.titles) if self.is_filled else self.usual)

    def first_title(self) -> int:
        """Return the position of the first column that has a title."""
        return next((place for place, title in enumerate(self.titles) if title), 0)

    def has_title(self, cells: Iterable[str]) -> bool:
        """Return whether one of these cells says the same as a title, here or of another kind."""
        titles = {title.lower() for title in self.titles if title}
        words = set(cells)
        is_ours = not titles.isdisjoint(map(str.lower, words))
        return is_ours or any(word[-1:].isalpha() and has_meaning(word) for word in words)

    def again(self, numbers: Sequence[int], rows: Sequence[list[str]]) -> set[int]:
        """Return the numbers of rows that are this header, in other quotes or another case.

        Raises BadRow if a row is a header with other columns, since what follows is misread.
        """
        if not self.has_title(_column(rows, self.first_title())):
            return set()
        titles = [title.lower() for title in self.titles]
        again = set()
        for number, row in zip(numbers, rows, strict=True):
            if [cell.strip().lower() for cell in row][: len(titles)] == titles:
                again.add(number)
            else:
                self.require_row(number, row)
        return again

    def require_row(self, number: int, row: list[str]) -> None:
        """Raise BadRow if a row is a header with other columns."""
        names = {title.lower() for title in self.titles} - {""}
        shared = names.intersection(cell.strip().lower() for cell in row)
        if 2 * len(shared) > len(names) or 2 * sum(map(has_meaning, row)) > len(row):
            reason = "is a header with other columns than the first header; split the file here"
            raise self.file.bad_row(number, "line", self.separator.join(row), reason)


def read_table(file: PackedFile, blocks: Iterator[bytes]) -> Records:
    """Return the records of a table. blocks: its text as UTF-8.

    Raises InvalidInput if it is empty or has no header or no row; BadRow for a line too long, and
    for a second header that has other columns. The iterator `batches` may raise the same.
    """
    lines = line_batches(file, blocks)
    header, rest = _header(file, lines)
    batches = _batches(header, chain([rest], lines))
    return Records(header.titles, batches, header=header.above + header.line)


def _header(file: PackedFile, batches: Iterator[Lines]) -> tuple[_Header, Lines]:
    for first, lines in islice(batches, 1):  # a bomb may have a thousand million blank lines
        filled = [at for at, line in enumerate(lines) if line.strip(f'" {SEPARATORS}')]
        excel = _EXCEL.fullmatch(lines[filled[0]]) if filled else None
        separators = excel[1] if excel else SEPARATORS
        if filled := filled[1:] if excel else filled:
            position = _place_of_titles(lines, filled, separators)
            titles, *rest = _with_whole_titles(lines[position:], separators)
            separator, cells = _cells(file, titles, separators)
            if rest and set(rest[0]) <= {"-", " ", "+", separator}:
                rest[0] = ""  # sqlcmd and psql underline titles
            _join(rest, separator, len(_titles(file, cells)))
            above = "".join(f"{line}\n" for line in lines[:position])
            header = _header_above(file, titles, separator, cells, rest, above)
            return header, (first + position + 1, rest)
    if next(batches, None) is not None:
        raise file.problem("has only blank lines above the titles of its columns; delete them")
    raise file.without_rows("is empty")


def _place_of_titles(lines: Sequence[str], filled: Sequence[int], separators: str) -> int:
    """Return the position of the first line with titles of flights; else of the first line.

    filled: the positions of lines that are not blank. What is above titles are names and notes,
    but no rows: these would be lost.
    """
    for at in filled[:LOOKED_AT]:
        cells = re.split(f"[{re.escape(separators)}]", lines[at])
        if are_of_flights(unqualified(cells)) and "\0" not in lines[at]:
            return at
        is_row = sum(map(bool, map(_begins_with_digit, cells))) >= LEAST_NUMBERS
        if is_row or lines[at].count('"') % 2:  # titles may have line breaks
            break
    return filled[0]


def _cells(file: PackedFile, line: str, separators: str) -> tuple[str, list[str]]:
    """Return the separator by which a header has the most cells, and these."""
    best, cells, problem = separators[0], list[str](), ""
    for separator in separators:
        try:
            row = next(_parse([line], delimiter=separator))
        except csv.Error as error:  # names in quotes, with another separator between them
            problem = problem or _reason(error)
            continue
        if len(row) > len(cells):
            best, cells = separator, row
    if not cells:
        remedy = "save it as CSV with commas, and all titles in one line"
        raise file.problem(f"has a first line that {problem}; {remedy}")
    return best, cells


def _header_above(
    file: PackedFile, line: str, separator: str, cells: list[str], lines: list[str], above: str
) -> _Header:
    """Return the header of some lines. cells: its own."""
    rows = list[list[str]]()
    is_loose = f"{separator} " in line  # then it says nothing that a blank follows in rows
    for first in islice(filter(None, lines), LOOKED_AT):
        with suppress(csv.Error):
            if is_loose or not _SPLIT_CITY.search(_QUOTED.sub("", first)):
                rows.append(next(_parse([first], delimiter=separator)))
    rows = [row for row in rows if any(map(str.strip, row))]
    if _have_row_names(rows, cells):
        cells, above = ["", *cells], f'{above}""{separator}'
    titles = _titles(file, cells)
    widths = Counter(map(len, rows or [cells]))
    widest = max(widths, key=lambda width: (widths[width], width == len(cells)))
    usual = max(len(titles), widest)
    is_filled = usual == len(cells) and all(row[-1] for row in rows)
    return _Header(file, line, separator, titles, usual, is_filled, above)


def _have_row_names(rows: list[list[str]], titles: list[str]) -> bool:
    """Return whether rows begin with their numbers, to which R gives no title.

    They ascend, unless rows were sorted or drawn.
    """
    wide = [row for row in rows if len(row) == len(titles) + 1]
    names = [int(row[0]) for row in wide if _is_number(row[0])]
    full = sum(bool(row[-1]) for row in rows)  # others may have a cell more at the end
    is_counted = has_meaning(titles[0]) and len(names) == LOOKED_AT == names[-1] - names[0] + 1
    is_sure = full > 0 or is_counted if names == sorted(names) else 2 * full > len(rows)
    return len(rows) == len(names) == len(set(names)) and is_sure


def _titles(file: PackedFile, cells: Sequence[str]) -> tuple[str, ...]:
    """Return the titles in the cells of a header, without empty ones at the end."""
    if file.lacks_line_breaks() and any(map(has_meaning, cells)):
        raise file.problem("has no line breaks; curl drops them with -d, so use --data-binary")
    titles = [cell.strip() for cell in cells]
    while len(titles) > 1 and not titles[-1]:
        titles.pop()
    if len(titles) > MOST_COLUMNS:
        reason = f"has {len(titles):,} columns, but at most {MOST_COLUMNS:,} are read"
        raise file.problem(f"{reason}; keep only those of flights")
    return tuple(titles)


def _with_whole_titles(lines: list[str], separators: str) -> list[str]:
    """Return these lines with the titles in the first one, even if they have line breaks."""
    for end in [at for at, line in enumerate(lines) if line.count('"') % 2][1:2]:
        for separator in separators if lines[0].count('"') % 2 else "":
            titles = lines[: end + 1]
            if _join(titles, separator, 2):
                return [*titles, *lines[end + 1 :]]
    return lines


def _join(lines: list[str], separator: str, titles: int) -> bool:
    """Put rows with line breaks into their first lines, and empty lines in place of the others.

    Such a row begins and ends in lines with an odd number of quotes. It has as many cells as there
    are titles, and no line between has. Returns whether there are any.
    """
    before = [*lines]
    for start, end in pairwise([at for at, line in enumerate(lines) if line.count('"') % 2]):
        parts = lines[start : end + 1]
        row = "\n".join(parts if len(parts) <= MOST_LINES else [])
        width = _width(row, separator) if lines[start] else 0  # then it ends the row before
        if width >= titles and all(_width(line, separator) < titles for line in parts[1:-1]):
            lines[start : end + 1] = [row, *[""] * (end - start)]
    return lines != before


def _width(text: str, separator: str) -> int:
    """Return how many cells are in a row; 0 if this is none."""
    with suppress(csv.Error):
        return len(next(_parse([text], delimiter=separator)))
    return 0


def _batches(header: _Header, batches: Iterator[Lines]) -> Iterator[BatchReader]:
    is_empty = not header.file.is_posted
    for (first, lines), (_, following) in pairwise(chain(batches, [(0, list[str]())])):
        around = [*lines[-MOST_LINES:], *following[:MOST_LINES]]
        if _join(around, header.separator, len(header.titles)):  # a row goes on in the next lines
            cut = min(len(lines), MOST_LINES)
            lines[-MOST_LINES:], following[:MOST_LINES] = around[:cut], around[cut:]
        if not any(lines):
            continue  # a bomb may have a thousand million blank lines
        filled = (line for line in lines if line.strip(f'" {SEPARATORS}'))
        is_empty = is_empty and set(filled) <= set(header.idle_lines())
        yield partial(_batch, header, first, lines)
    if is_empty:
        raise header.file.without_rows("has a header but no rows")


def _batch(header: _Header, first: int, lines: list[str], places: tuple[int, ...]) -> RecordBatch:
    """Return the rows in some lines. places: of the columns that are needed."""
    numbers: Sequence[int] = range(first, first + len(lines))
    text, all_lines = text_of(lines, first), lines
    repeated, idle = 0, header.idle_lines()
    if any(map(lines.__contains__, idle)):
        repeated = lines.count(header.line)
        is_row = [line not in idle for line in lines]
        lines, numbers = list(compress(lines, is_row)), list(compress(numbers, is_row))
    if columns := _usual_columns(header, lines, places):
        return RecordBatch(columns, numbers, [], repeated, text)
    if _join(all_lines, header.separator, len(header.titles)):
        return _batch(header, first, all_lines, places)
    rows, numbers, faults = _parsed(header, lines, numbers)
    if again := header.again(numbers, rows):
        repeated += len(again)
        is_row = [number not in again for number in numbers]
        rows, numbers = list(compress(rows, is_row)), list(compress(numbers, is_row))
    columns = {place: _column(rows, place) for place in places}
    return RecordBatch(columns, numbers, faults, repeated, text)


def _usual_columns(
    header: _Header, lines: list[str], places: tuple[int, ...]
) -> Mapping[int, Sequence[str]]:
    """Return the columns at `places`; nothing if a line may be anything but a usual row.

    Each row is dropped when these cells are picked out of it, which is faster than to keep all: a
    month of BTS has 110 of them.
    """
    if header.usual > MOST_COLUMNS:
        return {}
    positions = (*places, header.first_title(), *header.beyond())
    pick = itemgetter(*positions)
    rows, widths = [], set[int]()
    with suppress(csv.Error, IndexError):
        for row in _parse(lines, delimiter=header.separator):
            widths.add(len(row))
            rows.append(pick(row))
    if len(rows) != len(lines) or widths != {header.usual}:
        return {}
    columns = dict(zip(positions, zip(*rows, strict=True), strict=True))
    first = columns[header.first_title()]
    is_usual = all(map(str.strip, first)) and not header.has_title(first)
    return columns if is_usual and not any(any(columns[at]) for at in header.beyond()) else {}


def _column(rows: Sequence[list[str]], position: int) -> list[str]:
    return [row[position] for row in rows]


def _parsed(header: _Header, lines: list[str], numbers: Sequence[int]) -> _Parsed:
    """Return rows, their numbers, and the lines that are no rows of the header's width."""
    faults: list[BadRow] = []
    rows, good, width = [], [], len(header.titles)
    for number, line in zip(numbers, lines, strict=True):
        try:
            row = next(_parse([line], delimiter=header.separator))
        except csv.Error as error:
            reason = f"{_reason(error)}; close its quotes, and write each row in one line"
            faults.append(header.file.bad_row(number, "line", line, reason))
            continue
        if not any(map(str.strip, row)):
            continue
        if header.takes(row):
            rows.append(row)
            good.append(number)
        elif not _ROW_COUNT.fullmatch(line):
            header.require_row(number, row)
            remedy = "delete the line if it is not a flight, add what is missing, or download again"
            if len(row) > width:
                remedy = f"put a cell that contains {header.separator!r} in double quotes"
            elif any(_width(line, sign) == width for sign in SEPARATORS if line.count(sign)):
                remedy = f"separate its cells by {header.separator!r}, as the titles are"
            reason = f"has {counted(len(row), 'cell')}, but the header has {width}; {remedy}"
            faults.append(header.file.bad_row(number, "line", line, reason))
    return rows, good, faults


def _reason(error: csv.Error) -> str:
    # After a dash the parser gives advice to programmers, which is left out.
    return f"is not CSV ({str(error).partition(' - ')[0]})"
