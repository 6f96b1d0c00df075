"""Reads a file of bytes that is plain or packed with gzip, xz or zip.

The first bytes tell how it is packed, never its name. A zip archive must hold exactly one .csv
file; other files in it (BTS adds a readme.html) are ignored. Errors of the unpackers become
InvalidInput here, so no other module needs to know them.
"""

import gzip
import lzma
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import IO

from backend.base.errors import InvalidFlight, InvalidInput, shown

Read = Callable[[int], bytes]
"""read(n) returns the next bytes, at most n; none at the end."""

_Unpacked = IO[bytes] | gzip.GzipFile
_UNPACK_ERRORS = (EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, gzip.BadGzipFile)
_UNSUPPORTED_ERRORS = (RuntimeError, NotImplementedError)  # zipfile lacks a password or a method


class SentFile:
    """The body of a request, with the interface of a file that is not packed."""

    def __init__(self, content: bytes) -> None:
        self.label = "body"
        self._content = content

    def problem(self, reason: str) -> InvalidInput:
        """Return the error to raise when the body as a whole is not acceptable."""
        return InvalidFlight(self.label, self._content[:80].decode(errors="replace"), reason)

    def progress(self) -> float:
        """Always 1, because all of the body is there."""
        return 1.0

    @contextmanager
    def opened(self) -> Iterator[Read]:
        """Yield a function that reads the bytes from the beginning."""
        yield BytesIO(self._content).read


class PackedFile:
    """Reads the file at `path`. label: its name, for messages."""

    def __init__(self, path: Path) -> None:
        self.label = path.name or str(path)
        self._path = path
        self._raw: IO[bytes] | None = None
        self._progress = 0.0

    def problem(self, reason: str) -> InvalidInput:
        """Return the error to raise when the file as a whole is not acceptable."""
        return InvalidInput("file", self.label, reason)

    def progress(self) -> float:
        """Return the share of the packed bytes read by the latest `opened`, 0 to 1."""
        if self._raw is not None:
            size = self._path.stat().st_size
            self._progress = min(1.0, self._raw.tell() / size) if size else 1.0
        return self._progress

    @contextmanager
    def opened(self) -> Iterator[Read]:
        """Yield a function that reads the unpacked bytes from the beginning.

        This or that function raises InvalidInput if the file does not exist, is not readable, is
        damaged, cut short or protected by a password, or holds no .csv file or several.
        """
        self._progress = 0.0
        with self._translated():
            if not self._path.is_file():
                raise self.problem(
                    "is not a file" if self._path.exists() else "does not exist; check the path"
                )
            raw = self._path.open("rb")
        with raw:
            with self._translated():
                unpacked = self._unpacked(raw)
            with unpacked:
                self._raw = raw
                try:
                    yield self._reader(unpacked)
                finally:
                    self.progress()
                    self._raw = None

    def _unpacked(self, raw: IO[bytes]) -> _Unpacked:
        magic = raw.read(6)
        raw.seek(0)
        if magic.startswith(b"\x1f\x8b"):
            return gzip.open(raw)
        if magic == b"\xfd7zXZ\0":
            return lzma.open(raw)
        if magic.startswith(b"PK"):
            archive = zipfile.ZipFile(raw)
            return archive.open(self._csv_member(archive))
        return raw

    def _csv_member(self, archive: zipfile.ZipFile) -> str:
        names = archive.namelist()
        # macOS adds a file of metadata for every file, in this folder.
        members = [n for n in names if n.lower().endswith(".csv") and not n.startswith("__MACOSX/")]
        if len(members) != 1:
            what = f"holds {len(members)} .csv files" if members else "holds no .csv file"
            raise self.problem(f"{what}; one is needed, and it contains {shown(names)}")
        return members[0]

    def _reader(self, unpacked: _Unpacked) -> Read:
        def read(size: int) -> bytes:
            with self._translated():
                block = unpacked.read(size)
            if not block:
                self._raw, self._progress = None, 1.0
            return block

        return read

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except _UNPACK_ERRORS as error:
            reason = f"is damaged or incomplete ({error}); download it again"
            raise self.problem(reason) from error
        except _UNSUPPORTED_ERRORS as error:
            raise self.problem(f"cannot be unpacked ({error}); unpack it first") from error
        except OSError as error:
            raise self.problem(f"cannot be read ({error.strerror or error})") from error
