"""The processes of a running service: gunicorn with its workers, the miner, and who watches them.

`serve` starts the two as processes of their own and looks after them: one that dies or hangs is
started again, a signal stops all in order. With `--frontend` the pages for a browser are a third,
which is known here by the name of its module and the port it listens at, and by nothing else. Under
systemd or in containers the roles are run without it (`serve --only-http`, `mine`,
`python -m frontend`).
"""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from backend import tokens
from backend.errors import FlightchainError, InvalidSetting
from backend.processes.parent_death import die_with_parent
from backend.processes.shared_numbers import run_folder
from backend.sealing.miner_status import miner_status
from backend.service.watching import Watch, overdue_miner, silent_server, stopped
from backend.settings import PROJECT, Settings, variable

GRACE_S = 30
READY_WITHIN_S = 60
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 30.0

Report = Callable[[str], None]

_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Child:
    """A process of ours that is started again when it dies or hangs."""

    def __init__(
        self,
        name: str,
        module: str,
        arguments: list[str],
        report: Report,
        watches: Sequence[Watch] = (),
    ) -> None:
        """watches: what tells that it hangs, besides that it is stopped."""
        self.name = name
        self._command = [sys.executable, "-m", module, *arguments]
        self._report = report
        self._watches = (stopped(), *watches)
        self._process: subprocess.Popen[bytes] | None = None
        self._killed_pid = 0
        self._pause_s = FIRST_PAUSE_S
        self._started = self._not_before = 0.0

    def start(self) -> None:
        """Start it; it gets SIGTERM if this process dies without stopping it."""
        self._process = subprocess.Popen(  # noqa: S603  our own command
            self._command,
            cwd=PROJECT,
            preexec_fn=partial(die_with_parent, signal.SIGTERM),  # noqa: PLW1509  this process has no threads
            start_new_session=True,
        )
        self._started = time.monotonic()

    def look(self) -> None:
        """Start it again if it has died; after a pause that grows while it keeps dying at once.

        One that hangs is killed first; nothing that was acknowledged is lost by that.
        """
        if self._process is not None and self._process.poll() is None:
            self._kill_if_it_hangs(self._process)
        if self._process is not None and self._process.poll() is not None:
            if time.monotonic() - self._started > LONGEST_PAUSE_S:
                self._pause_s = FIRST_PAUSE_S
            self._report(
                f"{self.name} ended with status {self._process.returncode}; "
                f"starting it again in {self._pause_s:g} s"
            )
            self._process = None
            self._not_before = time.monotonic() + self._pause_s
            self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)
        if self._process is None and time.monotonic() >= self._not_before:
            self.start()

    def _kill_if_it_hangs(self, process: "subprocess.Popen[bytes]") -> None:
        """Kill it once; one that waits for a disk dies when that answers, and is not waited for."""
        verdicts = [watch.verdict(process.pid) for watch in self._watches]
        reason = next(filter(None, verdicts), "")
        if reason and self._killed_pid != process.pid:
            self._report(f"{self.name} hangs: {reason}; killing it")
            self._kill(process)

    def _kill(self, process: "subprocess.Popen[bytes]") -> None:
        """Kill it with its workers, which are in the session that `start` made.

        What is stopped hears nothing else, and a stopped worker that is left would keep the port.
        """
        self._killed_pid = process.pid
        os.killpg(process.pid, signal.SIGKILL)

    def ask_to_stop(self) -> None:
        """Send SIGTERM."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()

    def wait(self, until: float) -> None:
        """Wait for its end; kill it when `until` (monotonic seconds) has come."""
        if self._process is None:
            return
        try:
            self._process.wait(max(0.1, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            self._report(f"{self.name} did not stop within {GRACE_S} s and was killed")
            self._kill(self._process)
            self._process.wait()


def supervise(settings: Settings, report: Report, *, frontend: bool) -> None:
    """Run gunicorn and the miner, and the `frontend` if it is wanted, until SIGTERM or SIGINT."""
    with run_folder(settings) as metrics_folder:
        if metrics_folder is not None:
            os.environ[variable("metrics_dir")] = str(metrics_folder)  # for the children
        _supervise(settings, report, frontend=frontend)


def _supervise(settings: Settings, report: Report, *, frontend: bool) -> None:
    stopping: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda received, frame: stopping.append(received))
    url = base_url(settings.host, settings.port)
    # With the other types of worker everybody waits behind long requests, this question, too.
    asking = [silent_server(url)] if settings.worker_type == "asgi" else []
    children = [
        Child("the miner", "backend", ["mine"], report, [overdue_miner(settings.folder)]),
        Child("the web server", "backend", ["serve", "--only-http"], report, asking),
    ]
    if frontend:  # stopped first, so that no page is asked for while its backend goes
        children.append(Child("the frontend", "frontend", [], report))
    for child in children:
        child.start()
    deadline = time.monotonic() + READY_WITHIN_S
    is_announced = False
    while not stopping:
        if not is_announced:
            is_announced = _announce_if_ready(settings, report, deadline, frontend=frontend)
        for child in children:
            child.look()
        time.sleep(0.05 if not is_announced else 0.5)
    report("stopping")
    until = time.monotonic() + GRACE_S
    for child in reversed(children):
        child.ask_to_stop()
        child.wait(until)
    report("stopped; every acknowledged flight is on the disk")


def base_url(host: str, port: int) -> str:
    """Where what listens there can be reached from this machine."""
    host = "127.0.0.1" if host in {"0.0.0.0", "::"} else host  # noqa: S104
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _announce_if_ready(
    settings: Settings, report: Report, deadline: float, *, frontend: bool
) -> bool:
    """Say where everything is once it is ready, or why it is not when the deadline has come.

    A clock that is doubted keeps nobody from asking, and is not waited for.
    """
    url = base_url(settings.host, settings.port)
    pages = base_url(settings.frontend_host, settings.frontend_port)
    detail, can_be_asked = "", True
    try:
        if frontend:
            _get(f"{pages}/health/live")
        _get(f"{url}/health/ready")
    except urllib.error.HTTPError as error:
        detail = json.loads(error.read() or b"{}").get("detail", error.reason)
        can_be_asked = _waits_for_clock(settings)
    except OSError as error:
        detail, can_be_asked = str(error), False
    if not can_be_asked:
        if time.monotonic() > deadline:
            report(f"not ready after {READY_WITHIN_S} s: {detail}")
            return True
        return False
    if frontend:
        report(f"open {pages}")
    report(f"Flightchain answers at {url}")
    report(f"for example: curl '{url}{_example(url)}'")
    if detail:
        report(f"it takes no flights yet: {detail}")
    return True


def _waits_for_clock(settings: Settings) -> bool:
    """Whether all works but that the miner, whose files are right by then, doubts the clock."""
    miner = miner_status(settings.folder)
    return miner is not None and miner.clock_doubted_until_s is not None


def _example(url: str) -> str:
    """A question that has an answer here: about the first flight of the newest block."""
    try:
        newest = _get(f"{url}/tip")["height"]
        flights = _get(f"{url}/blocks/{newest}?limit=1")["block"]["transactions"]
    except OSError:
        flights = []
    if not flights:
        return "/tip"
    number, day = flights[0]["OP_CARRIER_FL_NUM"], flights[0]["FL_DATE"]
    return f"/filter_transactions?OP_CARRIER_FL_NUM={number}&FL_DATE={day}"


def _get(url: str) -> Any:
    """JSON from our own service, whatever proxies the environment names."""
    with _DIRECT.open(url, timeout=5) as response:
        return json.load(response)


def require_lab(settings: Settings) -> None:
    """Raise InvalidSetting for a disk that is emulated where others than the lab might ask."""
    if not settings.emulated_disk:
        return
    name, speedup = variable("emulated_disk"), settings.emulated_disk
    if settings.lab != "yes":
        raise InvalidSetting(
            name,
            speedup,
            "makes the service slow on purpose, for the lab alone; leave it out, or set "
            f"{variable('lab')}=yes if this is the lab",
        )
    if let_in := tokens.reachable(settings):
        reason = f"is for loopback alone, and {let_in} can be reached from elsewhere"
        raise InvalidSetting(name, speedup, reason)


def require_ports(settings: Settings, *, frontend: bool) -> None:
    """Raise FlightchainError if something listens already where we are to listen."""
    _require_port(settings, "host", "port")
    if frontend:
        if settings.frontend_port == settings.port:
            raise FlightchainError(
                f"{variable('frontend_port')} {settings.frontend_port} is also the port of the "
                "service; choose another"
            )
        _require_port(settings, "frontend_host", "frontend_port")


def _require_port(settings: Settings, host_setting: str, port_setting: str) -> None:
    host, port = getattr(settings, host_setting), getattr(settings, port_setting)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise FlightchainError(
                f"cannot listen at {host} port {port}: {error.strerror}; "
                f"choose another {variable(port_setting)} or {variable(host_setting)}"
            ) from None
