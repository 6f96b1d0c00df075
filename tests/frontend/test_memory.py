"""Whatever is posted to the pages, their memory stays small and everybody gets an answer."""

import http.client
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest

from frontend.bodies import ANY_FILE, FIELD_BYTES, FORM_BYTES, PART_BYTES
from frontend.settings import Settings
from tests.api.processes import ROOT, environment, free_port, until
from tests.cases import each_of
from tests.frontend.fake_backend import answering
from tests.units import Confinement, confined

pytestmark = pytest.mark.slow

PRIVATE = Path("/var/tmp")
MB = 2**20
MOST_MEMORY = 96 * MB  # of the worker; the unit may have 128 MB, with the process that starts it
FILE_BYTES = Settings().max_body_bytes
URLENCODED, GZIPPED = "application/x-www-form-urlencoded", "text/csv; gzip"
MULTIPART = "multipart/form-data; boundary=x"
FILE_HEAD = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.csv"\r\n'
FIELD = b'--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n'
FILE = FILE_HEAD + b"\r\n1\r\n"
END = b"\r\n--x--\r\n"


def filled(piece: bytes, size: int = FILE_BYTES) -> bytes:
    """Return `piece` as often as it fits into `size` bytes."""
    return piece * (size // len(piece))


def file_of(content: bytes) -> bytes:
    """Return the body of a form with one file."""
    return FILE_HEAD + b"\r\n" + content + END


LINES = filled(b"2013,1,x\n")
HEADERS = FILE_HEAD + filled(b"a:b\r\n", FIELD_BYTES // 2) + b"\r\n1\r\n"

PART = "/upload.json?IMPORT_ID=0&OFFSET=0"

# What is sent: path, Content-Type, what makes the body, the statuses that are good.
Sent = tuple[str, str, Callable[[], bytes], set[int]]
TOO_LONG = {413}
BODIES: dict[str, Sent] = {
    "20 MB of fields": ("/add", URLENCODED, partial(filled, b"a1=1&", 20 * MB), TOO_LONG),
    "as many fields as fit": ("/add", URLENCODED, partial(filled, b"a=&", FORM_BYTES), {422}),
    "a long field": ("/add", URLENCODED, partial(filled, b"a", FORM_BYTES), {422}),
    "fields in parts": ("/add", MULTIPART, lambda: filled(FIELD, FORM_BYTES) + END, TOO_LONG),
    "30 MB": ("/upload", MULTIPART, lambda: file_of(filled(b"a\n", 30 * MB)), TOO_LONG),
    "a file of any length": ("/upload", MULTIPART, lambda: file_of(LINES), {303}),
    "fields instead of a file": ("/upload", URLENCODED, partial(filled, b"a1=1&"), TOO_LONG),
    "thousands of parts": ("/upload", MULTIPART, lambda: filled(FIELD) + END, TOO_LONG),
    "thousands of headers": ("/upload", MULTIPART, lambda: filled(HEADERS) + END, TOO_LONG),
    "thousands of files": ("/upload", MULTIPART, lambda: filled(FILE) + END, TOO_LONG),
    "a header without end": ("/upload", MULTIPART, lambda: FILE_HEAD + filled(b"a"), TOO_LONG),
    "a field without end": ("/upload", MULTIPART, lambda: FIELD[:-3] + filled(b"a"), TOO_LONG),
    "no part at all": ("/upload", MULTIPART, partial(filled, b"a"), {413, 422}),
    "a file that is no text": ("/upload", MULTIPART, lambda: file_of(filled(b"a\xff")), {303}),
    "letters of four bytes": ("/upload", MULTIPART, lambda: file_of(filled("🛫".encode())), {303}),
    "a form as a part": ("/upload.json", URLENCODED, partial(filled, b"a1=1&"), TOO_LONG),
    "a part of any length": (PART, ANY_FILE, lambda: LINES, TOO_LONG),
    "the longest part": (PART, ANY_FILE, lambda: LINES[:PART_BYTES], {200}),
    "a part that is packed": (PART, GZIPPED, lambda: LINES, {415}),
    "something that no page takes": ("/nothing", "text/csv", lambda: LINES, TOO_LONG),
}


@dataclass(frozen=True, slots=True)
class Pages:
    """Pages at `port`. process: starts their worker, within the limits of `unit`."""

    port: int
    process: "subprocess.Popen[bytes]"
    unit: Confinement

    def post(self, sent: Sent) -> tuple[int, str]:
        """Post a body, and return the status and the text of the answer."""
        path, kind, body, _ = sent
        headers = {"Content-Type": kind, "Sec-Fetch-Site": "same-origin"}
        if kind == GZIPPED:
            headers["Content-Encoding"] = "gzip"
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)) as asking:
            with suppress(BrokenPipeError, ConnectionResetError):  # it may come before all is sent
                asking.request("POST", path, body(), headers)
            answer = asking.getresponse()
            return answer.status, answer.read().decode()

    def is_alive(self) -> bool:
        """Return whether the pages answer."""
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)) as asking:
            try:
                asking.request("GET", "/health/live")
            except ConnectionRefusedError:
                return False
            return asking.getresponse().status == 200

    @property
    def worker(self) -> int:
        """Process id of the worker, which answers."""
        tasks = f"/proc/{self.process.pid}/task/{self.process.pid}/children"
        (number,) = Path(tasks).read_text().split()
        return int(number)

    def peak_bytes(self) -> int:
        """Return the most memory that the worker has had since the last call, in bytes."""
        folder = Path(f"/proc/{self.worker}")
        (kilobytes,) = re.findall(r"VmHWM:\s+(\d+) kB", (folder / "status").read_text())
        (folder / "clear_refs").write_text("5")
        return int(kilobytes) * 1024


def taken_by_nobody(path: str, _: Mapping[str, str]) -> Any:
    """Answer as a backend that takes every file and does nothing with it."""
    if path.startswith("/imports"):
        return {"IMPORT_ID": "0", "state": "refused"}
    return HTTPStatus.UNPROCESSABLE_ENTITY


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pages]:
    """Pages as their unit starts them, over a backend that looks at nothing."""
    folder, port = tmp_path_factory.mktemp("memory"), free_port()
    with answering(taken_by_nobody) as url, confined("frontend", folder, PRIVATE) as unit:
        more = {"FLIGHTCHAIN_FRONTEND_PORT": port, "FLIGHTCHAIN_BACKEND_URL": url}
        process = subprocess.Popen(
            unit.python("-m", "frontend"), cwd=ROOT, env=environment(folder, TMPDIR=folder, **more)
        )
        try:
            pages = Pages(port, process, unit)
            until(pages.is_alive)
            yield pages
        finally:
            process.terminate()
            process.wait(20)


@each_of("name", BODIES)
def test_a_body_takes_little_memory_and_gets_an_answer(pages: Pages, name: str) -> None:
    sent = BODIES[name]
    worker = pages.worker
    pages.peak_bytes()
    with ThreadPoolExecutor(3) as pool:
        answers = list(pool.map(pages.post, [sent] * 3))
    assert {status for status, _ in answers} <= sent[3]
    assert (pages.worker, pages.unit.kills) == (worker, 0)
    assert pages.peak_bytes() < MOST_MEMORY
    assert pages.is_alive()
