"""Servers of known service time, and Locust as it is run by hand."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from loadtests.generation.schedule import Choices, Request, save_requests
from loadtests.processes import PROJECT, Service
from loadtests.servers.gunicorn import FCFS, Gunicorn
from loadtests.servers.known import known_server
from tests.api import processes

QUICK_S = 0.005
QUICK: Choices = {"known": [Request("known", f"/?service_s={QUICK_S}", QUICK_S)]}
WITHIN_S = 180  # a busy machine takes a minute to import Locust
until = partial(processes.until, within_s=WITHIN_S)


@pytest.fixture(scope="module")
def fcfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """One worker, one request at a time."""
    with known_server(FCFS, tmp_path_factory.mktemp("server") / "log") as server:
        yield server


@pytest.fixture(scope="module")
def threads(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Sixteen at a time."""
    how = Gunicorn("gthread", threads=16)
    with known_server(how, tmp_path_factory.mktemp("server") / "log") as server:
        yield server


@pytest.fixture
def quick(tmp_path: Path) -> Path:
    """A file of one quick request."""
    file = tmp_path / "paths.csv"
    save_requests(file, QUICK)
    return file


class Hand:
    """Starts Locust as by hand; what it says is in `output`."""

    def __init__(self, folder: Path, ended: ExitStack) -> None:
        self._folder, self._ended, self._count = folder, ended, 0

    def start(self, workload: str, *arguments: object) -> "subprocess.Popen[bytes]":
        """`locust -f loadtests/WORKLOAD_workload.py ARGUMENTS` from the project's folder.

        workload: several with commas, and paths of other files.
        """
        self._count += 1
        files = [f"loadtests/{n}_workload.py" if "/" not in n else n for n in workload.split(",")]
        command = [sys.executable, "-m", "locust", "-f", ",".join(files)]
        environment = {k: v for k, v in os.environ.items() if not k.startswith("LOCUST_")}
        with (self._folder / f"locust-{self._count}.log").open("wb") as log:
            process = subprocess.Popen(
                [*command, *map(str, arguments)],
                cwd=PROJECT,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self._ended.callback(_end, process)
        return process

    def run(self, workload: str, *arguments: object) -> int:
        """Until it ends; its exit status."""
        return self.start(workload, "--headless", *arguments).wait(WITHIN_S)

    @property
    def output(self) -> str:
        """What all of them have printed."""
        logs = sorted(self._folder.glob("locust-*.log"))
        return "\n".join(log.read_text(encoding="utf-8") for log in logs)


def _end(process: "subprocess.Popen[bytes]") -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGKILL)
    process.wait()


@pytest.fixture
def hand(tmp_path: Path) -> Iterator[Hand]:
    with ExitStack() as ended:
        yield Hand(tmp_path, ended)
