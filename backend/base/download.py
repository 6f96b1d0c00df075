"""Downloads files over HTTP, so that a broken connection costs nothing but the rest of a file.

What has come stands in NAME.part, and the next attempt asks for the bytes that are missing, be it
in this process or in a later one. A file has its own name only when it is whole.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TypeVar

import urllib3
from urllib3.exceptions import HTTPError, InvalidHeader, ProtocolError

from backend.base.errors import FlightchainError, NotFound, shown
from backend.base.files import (
    cut,
    is_at,
    lock_within,
    open_for_writing,
    remove,
    rename,
    require_room,
    sync,
    write_at,
)
from backend.base.words import Report

PIECE_BYTES = 2**16
SILENCE_S = 30.0  # after which a server is asked again
LEAST_BYTES_A_S, SLOW_S = 1000, 120.0  # a server that sends less for so long is asked again, too
LOCKED_WITHIN_S = 0.5
RETRIES = urllib3.Retry(
    8,
    backoff_factor=1,
    backoff_max=60,
    retry_after_max=600,
    status_forcelist=(429, 500, 502, 503, 504),
)
_ONLY_REDIRECTS = urllib3.Retry(
    3, connect=0, read=0, other=0, raise_on_redirect=False, respect_retry_after_header=False
)
_PARTIAL, _BEYOND_THE_END, _GONE = 206, 416, frozenset({404, 410})
_EXPECTED = {200, _PARTIAL, _BEYOND_THE_END, *_GONE}

Progress = Callable[[int, int], None]  # bytes that are there, bytes in all; 0: not known
Result = TypeVar("Result")


class DownloadFailed(FlightchainError):
    """A file cannot be downloaded."""


class NotThere(NotFound):
    """The server has no such file."""


class _Busy(HTTPError):
    """The server asks to come again later."""

    def __init__(self, response: urllib3.BaseHTTPResponse) -> None:
        super().__init__(f"the server answers {response.status}")
        self.response = response


class _TooSlow(HTTPError):
    """The server sends so little that the file would hardly ever be whole."""


class Downloader:
    """Downloads files. Used by one thread."""

    def __init__(
        self, least_free: int, magic: bytes, report: Report, retries: urllib3.Retry = RETRIES
    ) -> None:
        """Connect to nobody yet.

        least_free: bytes of the disk that must stay free. magic: the first bytes of every file, by
        which the page of a network that wants a login is known. report: takes what went wrong
        before it is tried again. retries: how often and after what pauses a server is asked again
        that answers nothing, or not to the end, or that it is busy.
        """
        self._least_free = least_free
        self._magic = magic
        self._report = report
        self._retries = retries
        self._pool = urllib3.PoolManager(timeout=SILENCE_S, retries=_ONLY_REDIRECTS)

    def close(self) -> None:
        self._pool.clear()

    def has(self, url: str) -> bool:
        """Return whether the server has a file. Raises DownloadFailed."""

        def ask() -> bool:  # for a byte of it: some servers refuse HEAD
            with closing(self._answer(url, {"Range": "bytes=0-0"})) as response:
                return response.status not in _GONE

        return self._patiently(url, ask, lambda: 0)

    def download(self, url: str, path: Path, progress: Progress) -> None:
        """Download a file to `path`, with what is in its part already, unless it is there.

        Raises NotThere, DownloadFailed, WriterBusy if another process downloads it, and WriteFailed
        if the disk is too small.
        """
        name = path.with_name(f"{path.name}.part")
        with _locked(name) as descriptor:
            if path.exists():  # another process has just finished it
                return
            part = _Part(descriptor, name, progress)
            self._patiently(url, lambda: self._read(url, part), part.size)
            sync(descriptor, name)
            rename(name, path)

    def _read(self, url: str, part: "_Part") -> None:
        """Ask for what is missing of a file, and read it to its end."""
        held = part.size()
        headers = {"Range": f"bytes={held}-"} if held else {}
        if held and part.tag:
            headers["If-Range"] = part.tag  # if there is another file now, all of it is sent
        with closing(self._answer(url, headers)) as response:
            if response.status in _GONE:
                raise NotThere(f"{url} does not exist")
            place = response.headers.get("Content-Range", "")
            is_encoded = response.headers.get("Content-Encoding", "identity") != "identity"
            if response.status == 200:
                self._keep(url, response, part, 0)
            elif place.startswith(f"bytes {held}-") and not is_encoded:  # else of other bytes
                self._keep(url, response, part, held)
                if place.rpartition("/")[2] not in {"*", str(part.size())}:
                    raise HTTPError("the server sent only a part")
            elif place != f"bytes */{held}":  # else nothing was missing
                part.cut(0)
                raise HTTPError("the server has another file now")

    def _keep(
        self, url: str, response: urllib3.BaseHTTPResponse, part: "_Part", start: int
    ) -> None:
        """Write the bytes of an answer from `start` on."""
        rest = response.length_remaining or 0
        first = response.read(len(self._magic))
        if start == 0 and len(first) < len(self._magic):
            raise HTTPError("the answer ended at its beginning")
        if start == 0 and first != self._magic:
            kind = shown(response.headers.get("Content-Type", "something"))
            raise DownloadFailed(
                f"{url} is answered with {kind} that begins with {shown(first)}, instead of the "
                "file; if your network requires a login, log in with a browser, and try again"
            )
        require_room(part.path.parent, self._least_free + max(0, rest - part.size() + start))
        tag = response.headers.get("ETag", "")
        part.tag = "" if tag.startswith("W/") else tag  # a weak one fits no If-Range
        part.cut(start)
        part.append(first, start + rest)
        since_s, size = time.monotonic(), part.size()
        while piece := response.read1(PIECE_BYTES):  # what has come, however little
            require_room(part.path.parent, self._least_free)  # the length may be unknown
            part.append(piece, start + rest)
            if (passed_s := time.monotonic() - since_s) >= SLOW_S:
                if part.size() - size < LEAST_BYTES_A_S * passed_s:
                    raise _TooSlow(f"the server sends less than {LEAST_BYTES_A_S:,} bytes a second")
                since_s, size = time.monotonic(), part.size()

    def _answer(self, url: str, headers: dict[str, str]) -> urllib3.BaseHTTPResponse:
        """Send a request. Raises HTTPError, or DownloadFailed if it is no use to ask again."""
        try:
            response = self._pool.request("GET", url, headers=headers, preload_content=False)
        except ValueError as error:  # an address, perhaps of a redirect, is none
            raise DownloadFailed(f"{url} cannot be read: {error}") from error
        if response.status not in _EXPECTED:
            response.close()
            if self._retries.is_retry("GET", response.status):
                raise _Busy(response)
            again = " again and again" if response.get_redirect_location() else ""
            reason = f"the server answers {response.status}{again}"
            remedy = "try again later, or download it by hand"
            raise DownloadFailed(f"{url} cannot be read: {reason}; {remedy}")
        return response

    def _patiently(
        self, url: str, attempt: Callable[[], Result], size: Callable[[], int]
    ) -> Result:
        """Try again after growing pauses. Attempts that brought something in time do not count."""
        retries, held = self._retries, size()
        while True:
            try:
                return attempt()
            except (HTTPError, ValueError) as error:  # the latter of a length below zero
                if size() > held:
                    held = size()
                    retries = retries if isinstance(error, _TooSlow) else self._retries
                response = error.response if isinstance(error, _Busy) else None
                reason = f"{url} cannot be read: {_reason(error)}"
                try:
                    retries = retries.increment("GET", url, response, error)
                except HTTPError:
                    remedy = "check this machine's network and date, or try again later"
                    if size():
                        remedy = "the part that came is kept: run the command again to continue"
                    raise DownloadFailed(f"{reason}; {remedy}") from error
                pause_s = _pause_s(retries, response)
                when = f" in {pause_s:.0f} s" if pause_s else ""
                self._report(f"{reason}; trying again{when}")
                time.sleep(pause_s)


def _reason(error: Exception) -> str:
    """Say what went wrong, once: urllib3 repeats the cause of a broken connection."""
    is_repeated = isinstance(error, ProtocolError)
    return str(error.args[0] if is_repeated else getattr(error, "reason", error)).rstrip(".")


def _pause_s(retries: urllib3.Retry, response: urllib3.BaseHTTPResponse | None) -> float:
    """Return the pause that a busy server names, or else one that grows."""
    with suppress(InvalidHeader, ValueError):  # it names none that can be read
        if response and (named_s := retries.get_retry_after(response)):
            return named_s
    return retries.get_backoff_time()


@contextmanager
def _locked(path: Path) -> Iterator[int]:
    """Open a part under a lock; if it is empty in the end, it is removed. Raises WriterBusy.

    Whoever had the lock before may have finished or removed the file that was opened: it is theirs.
    """
    while True:
        descriptor = open_for_writing(path)
        try:
            lock_within(descriptor, LOCKED_WITHIN_S, path)
            if is_at(descriptor, path):
                try:
                    yield descriptor
                finally:
                    if os.fstat(descriptor).st_size == 0:
                        remove(path)
                return
        finally:
            os.close(descriptor)


class _Part:
    """What has come of a file. tag: the ETag of the file that these bytes belong to, if known."""

    def __init__(self, descriptor: int, path: Path, progress: Progress) -> None:
        self._descriptor = descriptor
        self.path = path
        self._progress = progress
        self.tag = ""

    def size(self) -> int:
        return os.fstat(self._descriptor).st_size

    def cut(self, size: int) -> None:
        """Leave the first bytes only. Raises WriteFailed."""
        if self.size() != size:
            cut(self._descriptor, size, self.path)

    def append(self, piece: bytes, whole: int) -> None:
        """Add bytes. whole: how long the file will be. Raises WriteFailed."""
        write_at(self._descriptor, piece, self.size(), self.path)
        self._progress(self.size(), whole)
