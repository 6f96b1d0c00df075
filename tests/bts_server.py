"""A server with the layout of BTS, whose months are real zips of made-up rows, and its faults."""

import gzip
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from threading import Event
from time import sleep

from backend.ledger.bts_months import Month
from tests.http_servers import Handler, served_by
from tests.sources.samples import FLOWN, monthly_text, zipped

Fault = Callable[["_Handler", bytes], None]  # answers a request for the rest of a file


def month_zip(month: Month, count: int = 3) -> bytes:
    """The file of a month with `count` flights on its first day."""
    return zipped(month_text(month, count).encode(), f"On_Time_{month.year}_{month.month}.csv")


def month_text(month: Month, count: int = 3) -> str:
    """The table in it."""
    day = month.first_day
    about_day = {
        "YEAR": str(day.year),
        "DAY_OF_WEEK": str(day.isoweekday()),
        "FL_DATE": day.isoformat(),
    }
    rows = [FLOWN | about_day | {"OP_CARRIER_FL_NUM": str(1 + n)} for n in range(count)]
    return monthly_text(rows)


@dataclass
class Bts:
    """A running server. faults: answer the next requests. asked: names and ranges of all."""

    url: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    faults: deque[Fault] = field(default_factory=deque)
    asked: list[tuple[str, str]] = field(default_factory=list)

    def publish(self, month: Month, count: int = 3) -> bytes:
        """Publish a month, and return its file."""
        self.files[month.file_name] = content = month_zip(month, count)
        return content


class _Handler(Handler):
    bts: Bts
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        name = self.path.rpartition("/")[2]
        place = self.headers.get("Range", "")
        self.bts.asked.append((name, place))
        content = self.bts.files.get(name)
        if self.bts.faults:
            self.bts.faults.popleft()(self, content or b"")
        elif content is None:
            self.send(404, b"<html>Not Found</html>", "text/html")
        else:
            self.send_rest(content)

    def send(self, status: int, body: bytes, kind: str = "application/zip", **more: str) -> None:
        """Send a whole answer."""
        headers = {"Content_Type": kind, "Content_Length": str(len(body))}
        self.send_response(status)
        for header, value in (headers | more).items():
            self.send_header(header.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def send_rest(
        self, content: bytes, sent: int | None = None, encoding: str = "", weak: str = ""
    ) -> None:
        """Send the part of a file that was asked for. sent: after how many bytes to break off.

        weak: W/ for an ETag that fits no If-Range.
        """
        tag = f'{weak}"{hash(content)}"'
        start = int(self.headers.get("Range", "bytes=0-")[6:].partition("-")[0])
        if self.headers.get("If-Range", tag) != tag or (weak and "If-Range" in self.headers):
            start = 0
        if start >= len(content):
            self.send(416, b"", Content_Range=f"bytes */{len(content)}")
            return
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(content) - start))
        self.send_header("ETag", tag)
        if encoding:
            self.send_header("Content-Encoding", encoding)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        self.end_headers()
        self.wfile.write(content[start:] if sent is None else content[start : start + sent])
        self.close_connection = sent is not None


def broken_off(after: int) -> Fault:
    """Send so many bytes of what was asked for, and close the connection."""
    return lambda handler, content: handler.send_rest(content, after)


def with_a_weak_tag(after: int) -> Fault:
    """Do so with an ETag that does not say that all bytes are the same."""
    return lambda handler, content: handler.send_rest(content, after, weak="W/")


def cut_in_the_head(handler: _Handler, _: bytes) -> None:
    """Close the connection before the headers have ended."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Le")
    handler.close_connection = True


def stalled(goes_on: Event) -> Fault:
    """Send 200 bytes of what was asked for, and then nothing until that is set."""

    def stall(handler: _Handler, content: bytes) -> None:
        handler.send_rest(content, 200)
        handler.wfile.flush()
        goes_on.wait(60)

    return stall


def dripping(handler: _Handler, content: bytes) -> None:
    """Send what was asked for, a few bytes a second, until the client gives up."""
    handler.send_rest(content, 10)
    start = 10 + int(handler.headers.get("Range", "bytes=0-")[6:-1])
    with suppress(OSError):
        for place in range(start, len(content)):
            sleep(0.05)
            handler.wfile.write(content[place : place + 1])


def busy(handler: _Handler, _: bytes) -> None:
    """Ask to come again at once."""
    handler.send(503, b"", Retry_After="0")


def login_page(handler: _Handler, _: bytes) -> None:
    """Answer as the captive portal of a hotel does."""
    handler.send(200, b"<html>Welcome to the Grand Hotel</html>", "text/html")


def encoded(after: int | None = None) -> Fault:
    """Send the file packed, though nobody asked for that, and break off after so many bytes."""

    def send(handler: _Handler, content: bytes) -> None:
        handler.send_rest(gzip.compress(content, 0, mtime=0), after, "gzip")

    return send


def in_parts(handler: _Handler, content: bytes) -> None:
    """Send no more than 200 bytes of what was asked for, as a cache may do."""
    start = int(handler.headers.get("Range", "bytes=0-")[6:-1])
    body = content[start : start + 200]
    place = f"bytes {start}-{start + len(body) - 1}/{len(content)}"
    handler.send(206, body, Content_Range=place)


def of_unknown_length(handler: _Handler, content: bytes) -> None:
    """Send the file with a length that is no number."""
    handler.send(200, content, Content_Length="abc")
    handler.close_connection = True


def in_a_chunk_of_negative_length(handler: _Handler, _: bytes) -> None:
    """Send a piece whose length is below zero, which Python's own reader does not refuse."""
    handler.send_response(200)
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    handler.wfile.write(b"-5\r\nabcde\r\n")
    handler.close_connection = True


def redirecting(handler: _Handler, _: bytes) -> None:
    """Send the client to where it is."""
    handler.send(302, b"", Location=handler.path)


def ignoring_the_range(handler: _Handler, content: bytes) -> None:
    """Send all of the file, whatever was asked for."""
    handler.send(200, content)


def truncated(handler: _Handler, content: bytes) -> None:
    """Send a file that was cut before it was published."""
    handler.send(200, content[: len(content) // 2])


@contextmanager
def bts_server() -> Iterator[Bts]:
    """Run a server that has no month yet."""
    bts = Bts()
    with served_by(type("Handling", (_Handler,), {"bts": bts})) as url:
        bts.url = f"{url}/PREZIP/"
        yield bts
