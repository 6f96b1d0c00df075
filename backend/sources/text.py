"""Cuts the text of a file into numbered lines, whatever wrote it, in bounded memory.

Text is UTF-8, or UTF-16 with a byte order mark. A byte that is neither does no harm where nobody
uses it: it becomes a surrogate, which no field of a flight takes. Lines end in LF, CRLF or CR.
"""

from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE, iterdecode
from collections.abc import Iterable, Iterator
from itertools import chain

from backend.sources.packed import BLOCK_BYTES, PackedFile
from backend.sources.source import BATCH_ROWS

MOST_BLOCKS = 2  # of which the lines are parsed together

UTF_16 = (BOM_UTF16_LE, BOM_UTF16_BE)
Lines = tuple[int, list[str]]
"""The number of the first, and at most `BATCH_ROWS` lines without their ends."""


def as_utf8(file: PackedFile, start: bytes, blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield a file as UTF-8 with LF. start: its first block."""
    all_blocks: Iterator[bytes] = chain([start], blocks)
    if start.startswith(UTF_16):
        all_blocks = _from_utf16(file, all_blocks)
        start = next(all_blocks, b"")
        all_blocks = chain([start], all_blocks)
    if b"\r" in start and b"\n" not in start:
        return (block.replace(b"\r", b"\n") for block in all_blocks)
    return all_blocks


def _from_utf16(file: PackedFile, blocks: Iterator[bytes]) -> Iterator[bytes]:
    try:
        for text in iterdecode(blocks, "utf-16"):
            yield text.encode()
    except UnicodeError as error:
        raise file.problem("begins as UTF-16 and is not; save it as UTF-8") from error


def line_batches(blocks: Iterable[list[str]], first: int = 1) -> Iterator[Lines]:
    """Yield lines in lists of `BATCH_ROWS`, or fewer where they are long. first: their number.

    Cells may take twenty times the memory of their text, so long lines are not collected.
    """
    number, held, count = first, list[str](), 0
    for block in blocks:
        held += block
        count += 1  # of the blocks from which these are
        end = len(held) if count == MOST_BLOCKS else len(held) // BATCH_ROWS * BATCH_ROWS
        for start in range(0, end, BATCH_ROWS):
            lines = held[start : min(start + BATCH_ROWS, end)]
            yield number, lines
            number += len(lines)
        if end:
            held = held[end:]
            count = 1 if held else 0
    if held:
        yield number, held


def line_blocks(file: PackedFile, blocks: Iterator[bytes]) -> Iterator[list[str]]:
    """Yield all lines of a file, in lists of one block (`BLOCK_BYTES`) each.

    Raises BadRow for a line that is longer than a block.
    """
    number, rest = 1, b""
    for block in chain([next(blocks, b"").removeprefix(BOM_UTF8)], blocks):
        whole, newline, rest = (rest + block).rpartition(b"\n")
        if newline:
            lines = _decoded(whole).split("\n")
            number += len(lines)
            yield lines
        if len(rest) > BLOCK_BYTES:
            reason = f"is longer than {BLOCK_BYTES:,} bytes; no row of a table of flights is"
            raise file.bad_row(number, "line", rest[:20], reason)
    if rest:
        yield [_decoded(rest)]


def _decoded(block: bytes) -> str:
    return block.decode(errors="surrogateescape").replace("\r\n", "\n").removesuffix("\r")
