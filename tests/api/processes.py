"""`python -m backend` as processes: started, watched through /proc, and never left behind."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any, AnyStr, Self

import requests

from loadtests import process_table, processes
from tests.api.worlds import GOOD, Json

free_port, parent_of = processes.free_port, process_table.parent_of
ROOT = Path(__file__).parents[2]
WITHIN_S = 60.0  # a machine may do much else
STOPS_WITHIN_S = 20.0  # a worker that does not stop by itself is killed after 25 s
SHORTEST_PAUSE_S, LONGEST_PAUSE_S = 0.02, 0.1  # between two looks at what is waited for


def environment(folder: Path, **more: object) -> dict[str, str]:
    """This process's environment without the settings of others, and with ours."""
    given = {name: text for name, text in os.environ.items() if not name.startswith("FLIGHTCHAIN_")}
    given = {name: text for name, text in given.items() if not name.lower().endswith("_proxy")}
    ours = {"FLIGHTCHAIN_DIR": str(folder), **{name: str(value) for name, value in more.items()}}
    return given | ours


def ran(
    *command: str | Path,
    cwd: Path = ROOT,
    env: Mapping[str, str] | None = None,
    text: str | None = None,
    timeout_s: float = 120,
) -> "subprocess.CompletedProcess[str]":
    """Run a program to its end, and take what it says. text: what it reads."""
    return subprocess.run(
        command,
        cwd=cwd,
        env=env,
        input=text,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )


def backend(
    folder: Path, *arguments: str, timeout_s: float = 60, **more: object
) -> "subprocess.CompletedProcess[str]":
    """Run a command to its end."""
    command = (sys.executable, "-m", "backend", *arguments)
    return ran(*command, env=environment(folder, **more), timeout_s=timeout_s)


def started(command: Sequence[str], log: Path, env: Mapping[str, str]) -> "subprocess.Popen[bytes]":
    """Start a program; what it says is added to `log`."""
    with log.open("ab") as output:
        return subprocess.Popen(command, cwd=ROOT, env=env, stdout=output, stderr=output)


def is_answered(url: str, timeout_s: float = 30) -> bool:
    """Returns whether a request over a connection of its own is answered with 200."""
    try:
        closing = {"Connection": "close"}
        return requests.get(url, timeout=timeout_s, headers=closing).status_code == 200
    except requests.RequestException:
        return False


@contextmanager
def ending(
    process: "subprocess.Popen[AnyStr]", number: int = signal.SIGKILL
) -> Iterator["subprocess.Popen[AnyStr]"]:
    """Let a process run meanwhile; in the end it gets a signal, and is waited for."""
    with process:
        try:
            yield process
        finally:
            process.send_signal(number)


def begun(
    folder: Path, *arguments: str, **more: object
) -> AbstractContextManager["subprocess.Popen[str]"]:
    """A command that runs meanwhile, whose output can be read; in the end it is killed."""
    process = subprocess.Popen(
        [sys.executable, "-m", "backend", *arguments],
        cwd=ROOT,
        env=environment(folder, **more),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    return ending(process)


def until(condition: Callable[[], bool], within_s: float = WITHIN_S) -> float:
    """Poll until `condition` holds; how long it took, seconds.

    The pauses grow with the wait: to ask takes processor time from the processes that are asked.
    """
    started = time.monotonic()
    while not condition():
        waited_s = time.monotonic() - started
        assert waited_s < within_s, "it did not happen in time"
        time.sleep(min(max(SHORTEST_PAUSE_S, waited_s / 10), LONGEST_PAUSE_S))
    return time.monotonic() - started


def processes_of(folder: Path) -> dict[int, list[str]]:
    """Returns the arguments of each live process whose FLIGHTCHAIN_DIR is `folder`, by its id."""
    wanted = f"FLIGHTCHAIN_DIR={folder}".encode()
    arguments_of = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):  # it has just ended, or belongs to somebody else
                if wanted in (entry / "environ").read_bytes().split(b"\0"):
                    arguments = (entry / "cmdline").read_bytes().decode().split("\0")
                    if any(arguments):  # not a zombie
                        arguments_of[int(entry.name)] = arguments[:-1]
    return arguments_of


def _catches(pid: int, number: int) -> bool:
    """Returns whether a process has a handler for signal `number`; True if it has ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return True
    (mask,) = [line.split()[1] for line in status.splitlines() if line.startswith("SigCgt:")]
    return bool(int(mask, 16) >> (number - 1) & 1)


class Reached:
    """A service that answers at `url`, over the ledger in `folder`."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder = folder
        self.url = url
        self.port = int(url.rpartition(":")[2])
        self.session = requests.Session()
        self.session.trust_env = False

    def get(self, path: str, timeout_s: float = WITHIN_S) -> requests.Response:
        """Ask over a connection of its own, so that any worker may answer."""
        closing = {"Connection": "close"}
        return self.session.get(self.url + path, timeout=timeout_s, headers=closing)

    def json(self, path: str) -> Json:
        response = self.get(path)
        assert response.status_code == 200, response.text
        answer: Json = response.json()
        return answer

    def sealed(self) -> int:
        """Wait until no flight is pending, and return how many transactions there are.

        Before, their sum is no number: the two are not read at the same moment.
        """
        until(lambda: self.json("/tip")["pending"] == 0)
        return int(self.json("/tip")["transactions"])

    def post(
        self, flight: Mapping[str, object] = GOOD, mode: str = "sync", timeout_s: float = 30
    ) -> requests.Response:
        path = f"{self.url}/transactions?mode={mode}"
        closing = {"Connection": "close"}
        return self.session.post(path, json=flight, timeout=timeout_s, headers=closing)

    def answers(self, path: str = "/health/ready") -> bool:
        try:
            return self.get(path, timeout_s=5).status_code == 200
        except requests.RequestException:
            return False


class Service(Reached):
    """A service on a port of its own, as processes."""

    def __init__(
        self, folder: Path, *arguments: str, command: tuple[str, ...] = (), **more: Any
    ) -> None:
        """arguments: of `serve`. command: what to run instead. more: settings by variable."""
        self.worker_count = 2
        more = {
            "FLIGHTCHAIN_PORT": free_port(),
            "FLIGHTCHAIN_WORKERS": self.worker_count,
            "FLIGHTCHAIN_MINE_INTERVAL_S": 0.3,
            **more,
        }
        super().__init__(folder, f"http://127.0.0.1:{more['FLIGHTCHAIN_PORT']}")
        self.log = folder.with_name(folder.name + ".log")
        serve = (sys.executable, "-m", "backend", "serve", *arguments)
        self.process = started(command or serve, self.log, environment(folder, **more))

    def wait_until_ready(self) -> Self:
        until(lambda: self.process.poll() is not None or self.answers())
        assert self.process.poll() is None, self.said()
        until(lambda: len(self.booted()) == self.worker_count)
        return self

    # --- watching

    def said(self) -> str:
        return self.log.read_text(encoding="utf-8")

    def processes(self) -> dict[int, list[str]]:
        return processes_of(self.folder)

    def role(self, *arguments: str) -> list[int]:
        """Processes with these last arguments, oldest first."""
        return sorted(
            pid
            for pid, given in self.processes().items()
            if tuple(given[-len(arguments) :]) == arguments
        )

    def child(self, *arguments: str) -> int:
        """The process of ours with these last arguments; 0 while there is none."""
        ours = [pid for pid in self.role(*arguments) if parent_of(pid) == self.process.pid]
        return ours[0] if ours else 0

    def miner(self) -> int:
        return self.child("mine")

    def web_master(self) -> int:
        return self.child("--only-http")

    def workers(self) -> list[int]:
        parents = {pid: parent_of(pid) for pid in self.role("--only-http")}
        masters = {pid for pid, parent in parents.items() if parent == self.process.pid}
        return [pid for pid, parent in parents.items() if parent in masters]

    def booted(self) -> list[int]:
        """Workers that hear signals: unlike the web server they were forked from, not SIGHUP."""
        return [pid for pid in self.workers() if not _catches(pid, signal.SIGHUP)]

    # --- ending

    def stop(self, number: int = signal.SIGTERM, within_s: float = WITHIN_S) -> int:
        """Ask it to stop; its exit status."""
        self.process.send_signal(number)
        return self.process.wait(within_s)

    def end(self) -> None:
        """Make sure that nothing of it is left, however it went."""
        self.session.close()
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for pid in self.processes():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        until(lambda: not self.processes())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.end()


@contextmanager
def living(folder: Path, *arguments: str, **more: Any) -> Iterator[Service]:
    """A service that answers, whether it is ready or not."""
    with Service(folder, *arguments, **more) as service:
        until(lambda: service.answers("/health/live"))
        yield service


@contextmanager
def serving(folder: Path, *arguments: str, **more: Any) -> Iterator[Service]:
    """A service that is ready."""
    with Service(folder, *arguments, **more) as service:
        yield service.wait_until_ready()


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    """A process stands still meanwhile."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)
