"""Reads files of bytes that are plain or packed with gzip, xz, bzip2, Zstandard or zip.

The first bytes tell how a file is packed, never its name. A folder or zip archive may hold several
tables, each of which is a file of its own here; what BTS, Kaggle and macOS put beside them is
ignored. An unpacker's error becomes InvalidInput, and an archive that grows without measure is
refused before it takes memory or hours.
"""

import bz2
import lzma
import os
import re
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from copy import copy
from errno import EINVAL
from functools import partial
from io import BufferedReader, BytesIO, RawIOBase
from pathlib import Path
from typing import IO, Any, cast

import zstandard

from backend.base.errors import BadRow, InvalidFlight, InvalidInput, shown

BLOCK_BYTES = 1 << 18
MOST_TIMES = 200  # its packed size, that a file may unpack to; flights do to 5 to 60 times
UNPACKED_ROOM = 64 << 20  # which any file may unpack to; a posted one to no more
PIECE = 1 << 10  # packed bytes that are unpacked at once; Zstandard may make 32 MB of them
ZIP = b"PK\x03\x04"
_EMPTY_ZIP = b"PK\x05\x06" + bytes(18)
WORKBOOK = "is a spreadsheet workbook; open it, and save the sheet with the flights as CSV UTF-8"
IN_PARTS = "send it to /upload or by POST /imports"
_WORKBOOKS = {"[Content_Types].xml", "content.xml", "Index/Document.iwa"}
"""In workbooks of Excel, LibreOffice and Numbers."""
_BESIDE_TABLES = re.compile(
    r"(.*/)?(|(__MACOSX|_temporary|_spark_metadata)/.*|_(SUCCESS|[a-z_]*metadata|[a-z]+ed_[0-9]+)|"
    r"(\.[^/.]|~\$)[^/]*(/.*)?|(md5|sha[0-9]+)sums?|(dataset-)?metadata\.(json|xml|txt)|[^/]*(readme|license|manifest|dictionary|description|documentation)[^/]*|"
    r"[^/]*\.(html?|pdf|md|docx?|png|jpe?g|crc|md5|sha[0-9]+|py|r|ipynb|ini|lock)|thumbs\.db|"
    r"unfinished/flights-[0-9]{12}\.parquet|"  # of an export of ours that was interrupted
    r"(schema|load)\.sql)",
    re.IGNORECASE,
)
_LOOKUPS = re.compile(
    r"(.*/)?(airlines|airports|cancellation_codes|carriers|planes|plane-data|weather|l_[a-z_]+)"
    r"\.csv-?",
    re.IGNORECASE,
)
_LOG_OF_ROWS = re.compile(r"(.*/)?(_delta_log|\.hoodie)/.*")  # of Delta Lake and of Hudi
_NAME_PARTS = re.compile(r"([^0-9]*)([0-9]*)")
_UNPACK_ERRORS = (
    EOFError,
    ValueError,  # of a name or a place in a zip archive
    zlib.error,
    lzma.LZMAError,
    zstandard.ZstdError,
    zipfile.BadZipFile,
)


def _frames(unpacker: Callable[[], Any], raw: IO[bytes]) -> Iterator[bytes]:
    """Unpack the frames of a file, which must all be whole. unpacker: returns what unpacks one.

    The readers of lzma and bz2 take what is damaged behind a good frame for the end of the file,
    and that of zstandard what is cut short. Zeros between frames are as tapes and xz leave them.
    """
    frame = unpacker()
    for piece in iter(lambda: raw.read(PIECE), b""):
        packed = piece
        while packed := packed if frame else packed.lstrip(b"\0"):
            frame = frame or unpacker()
            yield from _unpacked_by(frame, packed)
            packed = frame.unused_data
            frame = None if frame.eof else frame
    if frame:
        raise EOFError("it ends too early")


def _unpacked_by(frame: Any, packed: bytes) -> Iterator[bytes]:
    """Yield what becomes of a piece: by bzip2 more than a gigabyte, so never all of it at once."""
    if not isinstance(frame, bz2.BZ2Decompressor | lzma.LZMADecompressor):
        yield frame.decompress(packed)
        return
    yield frame.decompress(packed, BLOCK_BYTES)
    while not (frame.eof or frame.needs_input):
        yield frame.decompress(b"", BLOCK_BYTES)


def _in_blocks(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the same bytes in blocks of `BLOCK_BYTES`, of which the last may be shorter."""
    block = bytearray()
    for piece in pieces:
        for start in range(0, len(piece), BLOCK_BYTES):
            block += piece[start : start + BLOCK_BYTES]
            if len(block) >= BLOCK_BYTES:
                yield bytes(block[:BLOCK_BYTES])
                del block[:BLOCK_BYTES]
    if block:
        yield bytes(block)


def _lzma_of_zip(packed: IO[bytes]) -> Callable[[], Any]:
    """Return what makes the unpacker of an LZMA member, behind the version in its header."""
    settings = packed.read(9)[4:]

    def unpacker() -> Any:
        frame = lzma.LZMADecompressor(lzma.FORMAT_ALONE)
        frame.decompress(settings + b"\xff" * 8)  # of any length
        return frame

    return unpacker


_Unpackers = Callable[[IO[bytes]], Callable[[], Any]]
"""Return what makes the unpackers of a file's frames. Those of Zstandard share their tables."""

_UNPACKERS: dict[bytes, _Unpackers] = {
    b"\x1f\x8b": lambda _: partial(zlib.decompressobj, zlib.MAX_WBITS | 16),  # as gzip begins
    b"\xfd7zXZ\0": lambda _: lzma.LZMADecompressor,
    b"BZh": lambda _: bz2.BZ2Decompressor,
    b"\x28\xb5\x2f\xfd": lambda _: zstandard.ZstdDecompressor().decompressobj,
    b"\x50\x2a\x4d\x18": lambda _: zstandard.ZstdDecompressor().decompressobj,  # of pzstd
}
_UNPACKERS_IN_ZIP: dict[int, _Unpackers] = {
    zipfile.ZIP_BZIP2: lambda _: bz2.BZ2Decompressor,
    zipfile.ZIP_LZMA: _lzma_of_zip,
}
"""For what zipfile unpacks all at once, which may be gigabytes."""


def _member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Iterator[bytes]:
    """Unpack a member of a zip archive piece by piece, and compare it with its checksum."""
    stored: Any = copy(member)
    stored.compress_type, stored.file_size = zipfile.ZIP_STORED, member.compress_size
    stored.CRC = None  # which is that of the unpacked bytes
    packed = archive.open(stored)
    pieces = _frames(_UNPACKERS_IN_ZIP[member.compress_type](packed), packed)
    left, checksum = member.file_size, 0
    while left and (piece := next(pieces, None)) is not None:
        piece = piece[:left]
        left -= len(piece)
        checksum = zlib.crc32(piece, checksum)
        yield piece
    if checksum != member.CRC:
        raise zipfile.BadZipFile("Bad CRC-32")


def _read(file: IO[bytes]) -> Iterator[bytes]:
    return iter(lambda: file.read(BLOCK_BYTES), b"")


class NoRowsError(InvalidInput):
    """A file has no rows."""


class PackedFile:
    """Reads the file at a path, or a member of the zip archive there.

    label: its name in messages. part: its name in the folder or archive that was given, or "".
    or_leave_out: the end of messages about a part, else "". is_posted: whether it is the body of a
    request. is_strict: whether it is JSON, an object a line, under the rules of a single flight
    that is posted. pause: called before each batch of rows is read; what it raises ends the work.
    """

    is_posted = False
    is_strict = False
    pause: Callable[[], None] = staticmethod(lambda: None)

    def __init__(
        self,
        path: Path,
        member: zipfile.ZipInfo | None = None,
        whole: str = "",
        part: str = "",
    ) -> None:
        """whole: the name of the folder or archive, or what to call the file."""
        self.part = part
        self.or_leave_out = ", or remove it if it holds no flights" if part else ""
        self.label = f"{whole}/{part}" if part else whole or path.name or str(path)
        self._path = path
        self._member = member
        self._progress = 0.0
        self._state: object = None

    def problem(self, reason: str) -> InvalidInput:
        """Return the error to raise when the file as a whole is not acceptable."""
        return InvalidInput("file", self.label, reason)

    def without_rows(self, what: str) -> InvalidInput:
        """Return the error to raise when nothing is in the file. what: what is wrong with it."""
        return NoRowsError("file", self.label, f"{what}; download it again")

    def bad_row(
        self, number: int, field: str, value: object, reason: str, unit: str = "line"
    ) -> BadRow:
        """Return the error about a row. unit: what its number counts."""
        return BadRow(f"{self.label}, {unit} {number}", field, value, reason, number)

    def columns_of_path(self) -> list[str]:
        """Return the names of columns whose values are those of folders, as in year=2008."""
        member = self._member.filename if self._member else ""
        return re.findall(r"([^/=]+)=[^/]*/", f"{self._path}/{member}")

    def damaged(self, error: Exception) -> InvalidInput:
        """Return the error to raise when an unpacker or a package refuses the file with `error`."""
        what = " ".join(str(error).split())[:80]
        return self.problem(f"is damaged or incomplete ({what}); download it again")

    def lacks_line_breaks(self) -> bool:
        """Return whether the lines of a text were joined on its way here."""
        return False

    def progress(self) -> float:
        """Return the share of the file read by the latest `opened`, 0 to 1."""
        return self._progress

    def packed_bytes(self) -> int:
        with self._translated():
            return self._path.stat().st_size

    def members(self) -> dict[str, zipfile.ZipInfo | None]:
        """Return the tables in this zip archive by their names; {"": None} if it is none."""
        with self._translated(), self._raw() as raw:
            return self._members(raw)

    @contextmanager
    def opened(self) -> Iterator[Iterator[bytes]]:
        """Yield the unpacked bytes from the beginning, in blocks of `BLOCK_BYTES` at most.

        Raises InvalidInput, as do the blocks, if the file does not exist, is not readable, is
        damaged, cut short or protected by a password, grows without measure, or changes.
        """
        self._progress = 0.0
        with self._translated():
            raw = self._raw()
        with raw:
            with self._translated():
                self._require_unchanged(raw)
                blocks, packed_bytes, unpacked_bytes = self._unpacked(raw)
            yield self._blocks(raw, blocks, packed_bytes, unpacked_bytes)

    def _raw(self) -> BufferedReader:
        if not self._path.is_file():
            reason = "is not a file" if self._path.exists() else "does not exist"
            reason = "is a link that leads to no file" if self._path.is_symlink() else reason
            raise self.problem(f"{reason}; check the path{self.or_leave_out}")
        return self._path.open("rb")

    def _members(self, raw: BufferedReader) -> dict[str, zipfile.ZipInfo | None]:
        if not raw.peek(4).startswith(ZIP):
            return {"": None}
        archive = zipfile.ZipFile(raw)
        members, names = archive.infolist(), archive.namelist()
        begins_with_another = min((member.header_offset for member in members), default=0) > 0
        if begins_with_another or len(set(names)) < len(names):
            raise self.problem(
                "was joined from two zips or has a name twice, so unpacking it would lose files; "
                "make a new archive of the originals"
            )
        if not _WORKBOOKS.isdisjoint(names):
            raise self.problem(WORKBOOK)
        if not (tables := tables_among(names)):
            raise self.problem(
                f"holds no table of flights, but {shown(names)}; choose another file"
            )
        return {name: archive.getinfo(name) for name in tables}

    def _unpacked(self, raw: BufferedReader) -> tuple[Iterator[bytes], int, int]:
        """Return the unpacked bytes in blocks, and how many are packed and unpacked, or 0."""
        member, *others = [self._member] if self._member else self._members(raw).values()
        if others:
            raise self.problem(f"holds {1 + len(others)} tables; {IN_PARTS}, or each alone")
        if member:
            archive = zipfile.ZipFile(BytesIO(_EMPTY_ZIP))  # names of thousands are not read again
            archive.fp = raw
            if member.compress_type in _UNPACKERS_IN_ZIP:
                blocks = _in_blocks(_member(archive, member))
            else:
                blocks = _read(archive.open(member))
            return blocks, member.compress_size, member.file_size
        size = raw.seek(0, os.SEEK_END)
        raw.seek(0)
        start = raw.peek(6)
        unpack = next((u for magic, u in _UNPACKERS.items() if start.startswith(magic)), None)
        return _in_blocks(_frames(unpack(raw), raw)) if unpack else _read(raw), size, 0

    def _blocks(
        self, raw: IO[bytes], blocks: Iterator[bytes], packed_bytes: int, whole: int
    ) -> Iterator[bytes]:
        most = UNPACKED_ROOM + packed_bytes * (1 if self.is_posted else MOST_TIMES)
        position = 0
        while True:
            with self._translated():
                try:
                    block = next(blocks, b"")
                finally:
                    self._require_unchanged(raw)
            if not block:
                break
            position += len(block)
            self._progress = min(1.0, position / whole if whole else raw.tell() / packed_bytes)
            if position > most:
                raise self.problem(
                    f"unpacks to more than {most:,} bytes, the most for its size; if it holds "
                    "flights, unpack it and split it"
                )
            yield block
        self._progress = 1.0

    def _require_unchanged(self, raw: IO[bytes]) -> None:
        state = None if self.is_posted else os.fstat(raw.fileno())
        now = state and (state.st_size, state.st_mtime_ns, state.st_ctime_ns)
        self._state = self._state or now
        if now != self._state:
            raise self.problem("changed while it was read; import it again when it is complete")

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except _UNPACK_ERRORS as error:
            if "too much memory" in str(error):  # Zstandard looks back further than 128 MB
                reason = "needs too much memory to unpack; unpack it first (zstd -d --long=31)"
                raise self.problem(reason) from error
            raise self.damaged(error) from error
        except RuntimeError as error:  # zipfile lacks a password or a method, and shows an object
            what = str(error).rpartition("> ")[2]
            raise self.problem(f"cannot be unpacked ({what}); unpack it first") from error
        except OSError as error:
            if error.errno in (None, EINVAL):  # of bz2, and of a zip with wrong places
                raise self.damaged(error) from error
            raise self.problem(f"cannot be read ({error.strerror or error})") from error


class SentFile(PackedFile):
    """Reads the body of a request as if it were a file."""

    is_posted = True

    def __init__(
        self, content: bytes, *, is_strict: bool = False, pause: Callable[[], None] = lambda: None
    ) -> None:
        super().__init__(Path("body"))
        self.is_strict = is_strict
        self.pause = pause
        self._content = content

    def problem(self, reason: str) -> InvalidInput:
        """Return the error to raise when the body as a whole is not acceptable."""
        return InvalidFlight(self.label, self._content[:80].decode(errors="replace"), reason)

    def without_rows(self, what: str) -> InvalidInput:
        return self.problem(f"{what}; download it again")

    def lacks_line_breaks(self) -> bool:
        content = self._content
        return not (b"\n" in content or b"\r" in content) and content.isascii()

    def _raw(self) -> BufferedReader:
        return BufferedReader(cast("RawIOBase", BytesIO(self._content)))


def files_of(path: Path, label: str = "") -> list[PackedFile]:
    """Return the tables at `path` as files: it, those in the zip archive, or all below the folder.

    label: its name in messages; the last part of the path by default.

    They are in the order of their names. Raises InvalidInput if there are none, or if a file cannot
    be read.
    """
    whole, files = label or path.name or str(path), []
    for name in tables_among(_names_below(path)) if path.is_dir() else [""]:
        members = PackedFile(path / name, None, whole, name).members()
        for member, about in members.items():
            parts = (name, member if name or len(members) > 1 else "")
            files.append(PackedFile(path / name, about, whole, "/".join(filter(None, parts))))
    if not files:
        raise InvalidInput("folder", path.name, "holds no table of flights; check the path")
    return files


def _names_below(folder: Path) -> Iterator[str]:
    """Yield the names of all files below a folder. Raises InvalidInput if one cannot be read."""

    def refuse(error: OSError) -> None:
        name = Path(error.filename).relative_to(folder)
        raise InvalidInput("folder", str(name), f"cannot be read ({error.strerror})") from error

    for at, folders, names in os.walk(folder, onerror=refuse):
        linked = [name for name in folders if Path(at, name).is_symlink()]  # to be refused
        yield from (str(Path(at, name).relative_to(folder)) for name in names + linked)


def tables_among(names: Iterable[str]) -> list[str]:
    """Return the names that may be those of tables, in numeric order: block9 before block10.

    Raises InvalidInput for a table of a data lake, whose log says which rows of its files count.
    """
    names = list(names)
    if log := next(filter(_LOG_OF_ROWS.fullmatch, names), None):
        reason = "belongs to a Delta Lake or Hudi table, which has deleted rows; export it as CSV"
        raise InvalidInput("file", log, reason)
    tables = [name for name in names if not _BESIDE_TABLES.fullmatch(name)]
    flights = [name for name in tables if not _LOOKUPS.fullmatch(name)]
    return sorted(flights or tables, key=_numeric_order)


def _numeric_order(name: str) -> list[tuple[str, int, str]]:
    parts = [(text, digits.lstrip("0")) for text, digits in _NAME_PARTS.findall(name)]
    return [(text, len(digits), digits) for text, digits in parts]
