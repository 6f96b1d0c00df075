"""The processes of a running service: gunicorn with its workers, the miner, and who watches them.

`serve` starts the two as processes of their own and looks after them: one that dies or hangs is
started again, a signal stops all in order. With `--frontend` the pages for a browser are a third,
which is known here by the name of its module and the port it listens at, and by nothing else. Under
systemd or in containers the roles are run without it (`serve --only-http`, `mine`,
`python -m frontend`).
"""

import json
import logging
import math
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
from pathlib import Path
from typing import Any

from backend import tokens
from backend.errors import FlightchainError, InvalidSetting
from backend.processes.parent_death import die_with_parent
from backend.processes.shared_numbers import run_folder
from backend.sealing.miner_status import miner_status
from backend.service.watching import Watch, overdue_miner, silent_server, stopped
from backend.settings import PROJECT, Settings, variable
from backend.visitors import hide_secrets

GRACE_S, WORKER_GRACE_S = 30, 5
READY_WITHIN_S = 60
SILENT_S, LONGEST_REQUEST_S = 18, 120
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


def run_http(settings: Settings) -> None:
    """Run gunicorn in this process until it is told to stop."""
    from gunicorn.app.base import BaseApplication

    from backend.api import Service
    from backend.service.front import Front

    class Application(BaseApplication):
        def load_config(self) -> None:
            for name, value in _gunicorn_options(settings, metrics_folder).items():
                self.cfg.set(name, value)

        def load(self) -> Any:
            service = Service(settings, restart=lambda: os.kill(os.getpid(), signal.SIGTERM))
            return Front(service) if settings.worker_type == "asgi" else service.application

    logging.getLogger("gunicorn.error").addFilter(hide_secrets)
    with run_folder(settings) as metrics_folder:
        Application().run()


def _gunicorn_options(settings: Settings, metrics_folder: Path | None) -> dict[str, Any]:
    from backend.service.asgi_worker import FrontWorker

    return {
        "bind": f"[{settings.host}]:{settings.port}"
        if ":" in settings.host
        else f"{settings.host}:{settings.port}",
        "workers": settings.workers,
        "worker_class": FrontWorker if settings.worker_type == "asgi" else settings.worker_type,
        # with more than one, gunicorn would make a gthread worker of it
        "threads": 1 if settings.worker_type == "sync" else settings.threads,
        "keepalive": 30,
        "timeout": _silent_s(settings),
        "graceful_timeout": WORKER_GRACE_S,
        "child_exit": lambda arbiter, worker: FrontWorker.forget(worker),
        "post_fork": lambda arbiter, worker: die_with_parent(signal.SIGKILL),  # no handler to hang
        "post_worker_init": lambda worker: _begin(worker, metrics_folder),
        "preload_app": True,  # workers share the memory of the code
        "control_socket_disable": True,
        "loglevel": "warning",
        "limit_request_fields": 50,
        "limit_request_field_size": 4096,
        "http_parser": "python",
        "asgi_lifespan": "off",
        "asgi_disconnect_grace_period": 0,  # who is gone gets no answer
    }


def _silent_s(settings: Settings) -> int:
    """How long a worker may be silent before it counts as hanging and is replaced, seconds.

    The loop of a worker speaks each second, whatever its threads do. A `sync` worker has no loop,
    and is silent as long as it answers one request.
    """
    if settings.worker_type == "sync":
        return max(LONGEST_REQUEST_S, math.ceil(settings.commit_wait_s) + SILENT_S)
    return SILENT_S


def _begin(worker: Any, metrics_folder: Path | None) -> None:
    """In a new worker, before it answers."""
    service = _service_of(worker)
    if metrics_folder is not None:
        service.metrics.share(metrics_folder)
    if not hasattr(worker, "asgi"):  # which lets them go by itself
        _let_waiters_go_at_the_end(service)


def _service_of(worker: Any) -> Any:
    from backend.api import SERVICE

    asgi = getattr(worker, "asgi", None)
    return worker.wsgi.extensions[SERVICE] if asgi is None else asgi.service


def _let_waiters_go_at_the_end(service: Any) -> None:
    """In a new worker: those who wait for a block are answered when it is told to stop."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT):
        of_gunicorn = signal.getsignal(number)

        def handle(received: int, frame: Any, then: Any = of_gunicorn) -> None:
            service.ledger.stop_waiting()
            if callable(then):
                then(received, frame)

        signal.signal(number, handle)


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
