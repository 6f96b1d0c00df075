"""Starts the project's own programs, and looks at what they use. Linux only.

Every program is ended here, too: a service runs inside a `with` block, in a session of its own,
so that Ctrl-C reaches this process alone and the service is then stopped in order; and it gets
SIGTERM if this process is killed. It runs with the settings given and the defaults for the rest:
FLIGHTCHAIN_ variables of the caller do not reach it.
"""

import ctypes
import errno
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from pathlib import Path
from random import SystemRandom
from resource import RUSAGE_CHILDREN, getrusage
from time import monotonic, perf_counter, sleep
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from loadtests.process_table import family, file_of, listening, parent_of

PROJECT = Path(__file__).resolve().parent.parent
HOST = "127.0.0.1"
_HERE = {HOST, "localhost", "::1"}
READY_WITHIN_S = 120
STOP_WITHIN_S = 45
ANSWER_WITHIN_S = 900  # a scan of a long chain on a small machine
LOOK_EVERY_S = 0.005
NO_FLIGHTCHAIN = "; is it a Flightchain?"


_PREFIX = "FLIGHTCHAIN_"
_PR_SET_PDEATHSIG = 1
_PSS = re.compile(r"^Pss:\s+(\d+) kB$", re.MULTILINE)
_READ = re.compile(r"^rchar: (\d+)$", re.MULTILINE)


class ProgramFailed(Exception):
    """Says that a program of ours ended with an error, or a service answered otherwise."""


_OF_NETWORK = {
    *(errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EHOSTDOWN, errno.ENETDOWN),
    *(errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT),  # no port is free here, or there is no IPv6
}


def is_of_network(problem: OSError) -> bool:
    """Return whether another program is not reached, rather than, say, a disk full."""
    kinds = ConnectionError | TimeoutError | socket.gaierror | ssl.SSLError
    return isinstance(problem, kinds) or problem.errno in _OF_NETWORK


@dataclass(frozen=True, slots=True)
class Spent:
    """Holds the seconds that a finished program took: real, user and sys of the shell's `time`."""

    wall_s: float
    user_s: float
    sys_s: float

    @property
    def cpu_s(self) -> float:
        """Return the processor time in s of the program and of every process it waited for."""
        return self.user_s + self.sys_s


def backend(folder: Path, *arguments: str, log: Path | None = None) -> tuple[str, Spent]:
    """Run `python -m backend` on the chain in `folder` to its end, as `finished` does."""
    return finished(backend_command(arguments), environment(folder, {}), log)


def finished(
    command: Sequence[str], variables: Mapping[str, str], log: Path | None
) -> tuple[str, Spent]:
    """Run a program of ours to its end. Returns its standard output and what it took.

    log: takes its standard error; None passes it to ours. No other child of this process may end
    meanwhile, whose time would count as the program's. Raises ProgramFailed.
    """
    before, start_s = getrusage(RUSAGE_CHILDREN), perf_counter()
    with (log or Path(os.devnull)).open("ab") as stream:
        process = subprocess.Popen(  # noqa: S603  our own command
            list(command),
            cwd=PROJECT,
            env=dict(variables),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=None if log is None else stream,
            text=True,
        )
    try:
        output, _ = process.communicate()
    finally:
        if process.poll() is None:
            stop(process, signal.SIGINT)  # so that it ends its own processes, too
    wall_s, after = perf_counter() - start_s, getrusage(RUSAGE_CHILDREN)
    if process.returncode != 0:
        raise ProgramFailed(failure(command, process.returncode, log))
    user_s, sys_s = after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime
    return output, Spent(wall_s, user_s, sys_s)


def environment(folder: Path, settings: Mapping[str, object]) -> dict[str, str]:
    """Return the environment of this process, with these settings of the service and no others.

    Chains are kept for later runs, so the clock may well be days ahead of them: it is not doubted.
    """
    given = {"dir": folder.resolve(), "clock_wait_s": 0, **settings}
    return plain_environment() | {
        _PREFIX + name.upper(): str(value) for name, value in given.items()
    }


def plain_environment() -> dict[str, str]:
    """Return the environment of this process, without settings of the service."""
    kept = {name: text for name, text in os.environ.items() if not name.startswith(_PREFIX)}
    kept.pop("PYTHONDONTWRITEBYTECODE", None)  # each start would compile everything again
    return kept


def backend_command(arguments: Sequence[str]) -> list[str]:
    """Return the command that runs `python -m backend` with these arguments."""
    return [sys.executable, "-m", "backend", *arguments]


def failure(command: Sequence[str], status: int | None, log: Path | None) -> str:
    """Return a message that a program of ours ended with `status`, and its last output."""
    output = log.read_text(encoding="utf-8", errors="replace").strip()[-500:] if log else ""
    shown = " ".join([Path(command[0]).name, *command[1:]])
    return f"`{shown}` ended with status {status}: {output}"


class Memory(NamedTuple):
    """Holds the proportional set size of a process of a service. role: its task there."""

    role: str
    pid: int
    pss_bytes: int


@dataclass(frozen=True, slots=True)
class Site:
    """Asks a service that runs somewhere, known by its URL. pid: if it is known to run here."""

    url: str
    pid: int | None = None

    @classmethod
    def at(cls, url: str) -> "Site":
        """Return the service at a URL, by http if it has no scheme. Raises ProgramFailed.

        Its process is looked for if it is at a loopback address.
        """
        try:
            parts = urlsplit(url if "://" in url else f"http://{url}")
            name = (parts.hostname or "").encode("idna")
            is_address = parts.scheme in {"http", "https"} and name and parts.port != 0
        except ValueError:  # of a port, a bracket that is missing, or a name with two dots
            is_address = False
        if not is_address or " " in url:
            raise ProgramFailed(f"{url!r} is not an address; it must be like http://pi.local:8000")
        site = cls(parts._replace(query="", fragment="").geturl().rstrip("/"))
        return replace(site, pid=listening(parts.port or 0)) if site.is_here else site

    @property
    def is_here(self) -> bool:
        """Tell whether it is at a loopback address."""
        return urlsplit(self.url).hostname in _HERE

    def get(self, path: str, within_s: float = ANSWER_WITHIN_S) -> Any:
        """Return the JSON answer to GET `path`. Raises ProgramFailed, OSError."""
        return _json_of(self._body(path, within_s), f"{self.url}{path}")

    def text(self, path: str, within_s: float) -> str:
        """Return the answer to GET `path` as text. Raises as `get`."""
        return self._body(path, within_s).decode("utf-8", errors="replace")

    def _body(self, path: str, within_s: float) -> bytes:
        whole_path = urlsplit(self.url).path.rstrip("/") + path
        try:
            with self.connection(within_s) as connection:
                return exchanged(connection, whole_path, status=200)[1]
        except HTTPException as problem:
            message = f"{self.url}{path} did not answer in HTTP: {problem!r}"
            raise ProgramFailed(message) from problem

    def answers(self, path: str) -> bool:
        """Return whether GET `path` is answered with JSON and status 200."""
        try:
            self.get(path)
        except (OSError, ProgramFailed):
            return False
        return True

    @contextmanager
    def connection(self, within_s: float = ANSWER_WITHIN_S) -> Iterator[HTTPConnection]:
        """Open a connection for the questions of a `with` block, which is kept alive between them.

        within_s: how long to wait for more of an answer.
        """
        parts = urlsplit(self.url)
        kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        with closing(kind(parts.hostname or "", parts.port, timeout=within_s)) as made:
            yield made


@dataclass(frozen=True, slots=True)
class Service(Site):
    """Asks a service that runs here. first_answer_s: from its start to its first good answer."""

    pid: int
    first_answer_s: float = 0.0

    def memory(self) -> list[Memory]:
        """Return the memory of each of its processes. Raises ProgramFailed if it is hidden."""
        memories = []
        for pid in family(self.pid):
            pss = _PSS.search(file_of(pid, "smaps_rollup"))
            if pss is None:
                raise ProgramFailed(f"/proc/{pid}/smaps_rollup names no Pss; this kernel lacks it")
            memories.append(Memory(self._role(pid), pid, int(pss[1]) * 1024))
        return memories

    def bytes_read(self) -> int:
        """Return how many bytes its processes have read from files and sockets so far."""
        reads = (_READ.search(file_of(pid, "io")) for pid in family(self.pid))
        return sum(int(read[1]) for read in reads if read)

    def _role(self, pid: int) -> str:
        if pid == self.pid:
            return "supervisor"
        if "mine" in file_of(pid, "cmdline").split("\0"):
            return "miner"
        return "web server" if parent_of(pid) == self.pid else "worker"


def running(
    folder: Path,
    log: Path,
    arguments: Sequence[str] = ("serve",),
    asking: str = "/tip",
    settings: Mapping[str, object] | None = None,
    prefix: Sequence[str] = (),
) -> AbstractContextManager[Service]:
    """Run a service on the chain in `folder`, at a free port, that has answered `asking`.

    prefix: comes before its command, and must become the service, in the same process. Raises
    ProgramFailed if the service does not come up.
    """
    port = free_port()
    variables = environment(folder, {"port": port, **(settings or {})})
    return serving([*prefix, *backend_command(arguments)], port, log, asking, variables)


@contextmanager
def serving(
    command: Sequence[str], port: int, log: Path, asking: str, variables: Mapping[str, str]
) -> Iterator[Service]:
    """Run a server that has answered `asking` at `port`. Raises ProgramFailed."""
    start_s = perf_counter()
    process = started(command, log, variables)
    service = Service(f"http://{HOST}:{port}", process.pid)
    try:
        wait_until(lambda: service.answers(asking), process, command, log)
        yield replace(service, first_answer_s=perf_counter() - start_s)
    finally:
        stop(process)


def started(
    command: Sequence[str], log: Path, variables: Mapping[str, str]
) -> "subprocess.Popen[bytes]":
    """Start a process of ours in a session of its own; it gets SIGTERM if this process dies.

    Call this from the main thread, and end the process with `stop`.
    """
    with log.open("ab") as stream:
        return subprocess.Popen(  # noqa: S603  our own command
            list(command),
            cwd=PROJECT,
            env=dict(variables),
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=stream,
            start_new_session=True,
            preexec_fn=partial(_die_with_parent, ctypes.CDLL(None).prctl),  # noqa: PLW1509  it waits for no lock
        )


def _die_with_parent(prctl: Callable[..., object]) -> None:
    prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    # A shell lets programs in the background ignore Ctrl-C, by which we end some of ours.
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def wait_for(
    is_so: Callable[[], bool], within_s: float, problem: str, every_s: float = LOOK_EVERY_S
) -> None:
    """Return when `is_so()`. Raises ProgramFailed with `problem` if that takes too long."""
    deadline_s = monotonic() + within_s
    while not is_so():
        if monotonic() > deadline_s:
            raise ProgramFailed(problem)
        sleep(every_s)


def wait_until(
    is_ready: Callable[[], bool],
    process: "subprocess.Popen[bytes]",
    command: Sequence[str],
    log: Path,
    within_s: float = READY_WITHIN_S,
) -> None:
    """Return when a program is ready. Raises ProgramFailed if it ends, or is not ready in time."""

    def is_ready_or_failed() -> bool:
        if is_ready():
            return True
        if process.poll() is not None:
            raise ProgramFailed(failure(command, process.returncode, log))
        return False

    name = " ".join([Path(command[0]).name, *command[1:3]])
    problem = f"`{name} …` was not ready within {within_s:g} s; see {log}"
    wait_for(is_ready_or_failed, within_s, problem)


def stop(process: "subprocess.Popen[Any]", number: signal.Signals = signal.SIGTERM) -> None:
    """End `process` in order, and by force if it has not ended within STOP_WITHIN_S."""
    process.send_signal(number)
    try:
        process.wait(STOP_WITHIN_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def answer(connection: HTTPConnection, path: str) -> Any:
    """Return the JSON answer to GET `path`. Raises ProgramFailed for another status, or no JSON."""
    body = exchanged(connection, path, status=200)[1]
    return _json_of(body, f"{connection.host}:{connection.port}{path}")


def _json_of(body: bytes, address: str) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as problem:
        start = body[:60].decode("utf-8", errors="replace")
        message = f"{address} did not answer with JSON, but {start!r}{NO_FLIGHTCHAIN}"
        raise ProgramFailed(message) from problem


def exchanged(
    connection: HTTPConnection,
    path: str,
    body: str | bytes | None = None,
    headers: Mapping[str, str] | None = None,
    status: int | None = None,
) -> tuple[HTTPResponse, bytes]:
    """Return the answer to GET `path`, or POST of `body`. Raises ProgramFailed unless `status`."""
    method = "GET" if body is None else "POST"
    connection.request(method, path, body, dict(headers or {}))
    response = connection.getresponse()
    content = response.read()
    if status not in {None, response.status}:
        where = response.headers.get("Location", "")
        shown = (
            f"a redirection to {where}"
            if where
            else repr(content[:300].decode("utf-8", errors="replace"))
        )
        raise ProgramFailed(f"{method} {path} was answered {response.status}: {shown}")
    return response, content


def free_port() -> int:
    """Return a free port of the loopback address, below those that Linux gives to connections.

    Of these, any connection of another process may take it before a server listens there.
    """
    while True:
        port = SystemRandom().randrange(20_000, 32_768)
        with socket.socket() as probe, suppress(OSError):
            probe.bind((HOST, port))
            return port
