"""Whatever is posted to the pages, their memory stays small and everybody gets an answer."""

import http.client
import subprocess
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest

from frontend.bodies import ANY_FILE, FIELD_BYTES, FORM_BYTES, PART_BYTES
from frontend.settings import Settings
from tests.api.processes import ROOT, environment, free_port, is_answered, until
from tests.cases import each_of
from tests.frontend.fake_backend import answering
from tests.frontend.test_bodies import FIELD, FILE_HEAD, MULTIPART, URLENCODED
from tests.raw_http import megabytes
from tests.units import Confinement, confined

pytestmark = pytest.mark.slow

PRIVATE = Path("/var/tmp")
MB = 2**20
MOST_MEMORY = 96 * MB  # of the worker; the unit may have 128 MB, with the process that starts it
FILE_BYTES = Settings().max_body_bytes
END = b"\r\n--x--\r\n"


def filled(piece: bytes, size: int = FILE_BYTES) -> bytes:
    """Return `piece` as often as it fits into `size` bytes."""
    return piece * (size // len(piece))


LINE = b"2013,1,x\n"
PART = "/upload.json?IMPORT_ID=0&OFFSET=0"

# What is sent: path, Content-Type, what makes the body, the status. What is refused by its head is
# in `test_bodies`.
Sent = tuple[str, str, Callable[[], bytes], int]
BODIES: dict[str, Sent] = {
    "as many fields as fit": ("/add", URLENCODED, lambda: filled(b"a=&", FORM_BYTES), 422),
    "a long field": ("/add", URLENCODED, lambda: filled(b"a", FORM_BYTES), 422),
    "fields in parts": ("/add", MULTIPART, lambda: filled(FIELD, FORM_BYTES - 99) + END, 413),
    "a file": ("/upload", MULTIPART, lambda: FILE_HEAD + filled(LINE) + END, 303),
    "thousands of parts": ("/upload", MULTIPART, lambda: filled(FIELD) + END, 413),
    "thousands of headers": (
        "/upload",
        MULTIPART,
        lambda: filled(FILE_HEAD[:-2] + filled(b"a:b\r\n", FIELD_BYTES // 2) + b"\r\n1\r\n") + END,
        413,
    ),
    "thousands of files": ("/upload", MULTIPART, lambda: filled(FILE_HEAD + b"1\r\n") + END, 413),
    "a header without end": ("/upload", MULTIPART, lambda: FILE_HEAD[:-2] + filled(b"a"), 413),
    "a field without end": ("/upload", MULTIPART, lambda: FIELD[:-3] + filled(b"a"), 413),
    "no part at all": ("/upload", MULTIPART, lambda: filled(b"a"), 413),
    "a part that is too long": (PART, ANY_FILE, lambda: filled(LINE), 413),
    "the longest part": (PART, ANY_FILE, lambda: filled(LINE)[:PART_BYTES], 200),
}


@dataclass(frozen=True, slots=True)
class Pages:
    """Pages at `port`. process: starts their worker, within the limits of `unit`."""

    port: int
    process: "subprocess.Popen[bytes]"
    unit: Confinement

    def post(self, sent: Sent) -> int:
        """Post a body, and return the status of the answer."""
        path, kind, body, _ = sent
        headers = {"Content-Type": kind, "Sec-Fetch-Site": "same-origin"}
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)) as asking:
            with suppress(BrokenPipeError, ConnectionResetError):  # it may come before all is sent
                asking.request("POST", path, body(), headers)
            return asking.getresponse().status

    def is_alive(self) -> bool:
        return is_answered(f"http://127.0.0.1:{self.port}/health/live")

    @property
    def worker(self) -> int:
        """Process id of the worker, which answers."""
        tasks = f"/proc/{self.process.pid}/task/{self.process.pid}/children"
        (number,) = Path(tasks).read_text().split()
        return int(number)

    def peak_bytes(self) -> float:
        """Return the most memory that the worker has had since the last call, in bytes."""
        peak = megabytes(self.worker, "VmHWM") * MB
        Path(f"/proc/{self.worker}/clear_refs").write_text("5")
        return peak


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
            process.wait(60)


@each_of("name", BODIES)
def test_a_body_takes_little_memory_and_gets_an_answer(pages: Pages, name: str) -> None:
    sent = BODIES[name]
    worker = pages.worker
    pages.peak_bytes()
    with ThreadPoolExecutor(3) as pool:
        answers = list(pool.map(pages.post, [sent] * 3))
    assert answers == [sent[3]] * 3
    assert (pages.worker, pages.unit.kills) == (worker, 0)
    assert pages.peak_bytes() < MOST_MEMORY
    assert pages.is_alive()
