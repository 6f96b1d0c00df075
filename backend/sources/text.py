"""Cuts the text of a file into numbered lines, whatever wrote it, in bounded memory.

Text is UTF-8, or UTF-16 with a byte order mark. A byte that is neither does no harm where nobody
uses it: it becomes a surrogate, which no field of a flight takes. Lines end in LF, CRLF or CR.
"""

from codecs import BOM_UTF8, iterdecode
from collections.abc import Iterator
from itertools import chain

from backend.sources.packed import BLOCK_BYTES, PackedFile
from backend.sources.source import BATCH_ROWS

Lines = tuple[int, list[str]]
"""The number of the first, and at most `BATCH_ROWS` lines without their ends."""


def from_utf16(file: PackedFile, blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield a file as UTF-8. Raises InvalidInput if it is not UTF-16."""
    try:
        for text in iterdecode(blocks, "utf-16"):
            yield text.encode()
    except UnicodeError as error:
        raise file.problem("begins as UTF-16 and is not; save it as UTF-8") from error


def line_batches(file: PackedFile, blocks: Iterator[bytes]) -> Iterator[Lines]:
    """Yield all lines of a file.

    Raises BadRow for a line that is longer than a block (`BLOCK_BYTES`).
    """
    start = next(blocks, b"").removeprefix(BOM_UTF8)
    all_blocks = chain([start], blocks)
    if b"\r" in start and b"\n" not in start:
        all_blocks = chain(block.replace(b"\r", b"\n") for block in all_blocks)
    number, rest = 1, b""
    for block in all_blocks:
        whole, newline, rest = (rest + block).rpartition(b"\n")
        if newline:
            lines = _decoded(whole).split("\n")
            for position in range(0, len(lines), BATCH_ROWS):
                yield number + position, lines[position : position + BATCH_ROWS]
            number += len(lines)
        if len(rest) > BLOCK_BYTES:
            reason = f"is longer than {BLOCK_BYTES:,} bytes; no row of a table of flights is"
            raise file.bad_row(number, "line", rest[:20], reason)
    if rest:
        yield number, [_decoded(rest)]


def _decoded(block: bytes) -> str:
    return block.decode(errors="surrogateescape").replace("\r\n", "\n").removesuffix("\r")
