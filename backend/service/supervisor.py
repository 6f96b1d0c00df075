"""Supervises the processes of a running service: gunicorn with its workers, and the miner.

If there are witnesses to ask, one more process does that (see
`backend.trust.witness.cosign_requests`).

`serve` starts each as a process of its own: one that dies or hangs is started again, and a signal
stops all in order. With `--frontend` the pages for a browser are a third process, of which this
module knows only the name of the module and the port. Under systemd or in containers the processes
run without a supervisor (`serve --only-http`, `mine`, `cosign`, `python -m frontend`).
"""

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence

from backend.base.errors import FlightchainError, InvalidSetting
from backend.base.processes.parent_death import dying_with_parent
from backend.base.processes.shared_numbers import run_folder
from backend.base.settings import NO_WITNESS, PROJECT, Settings, absolute_folders, variable
from backend.base.words import Report
from backend.service.hang_detection import Watch, overdue_miner, stopped
from backend.serving.ports import why_not_free
from backend.storage import tokens

GRACE_S = 30
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 30.0


class Child:
    """A child process that is started again when it dies or hangs."""

    def __init__(
        self,
        name: str,
        module: str,
        arguments: list[str],
        report: Report,
        watches: Sequence[Watch] = (),
    ) -> None:
        """watches: tell that it hangs; one for a stopped process is always added."""
        self.name = name
        self._command = [sys.executable, "-m", module, *arguments]
        self._report = report
        self._watches = (stopped(), *watches)
        self._process: subprocess.Popen[bytes] | None = None
        self._killed_pid = 0
        self._pause_s = FIRST_PAUSE_S
        self._started = self._not_before = 0.0

    def start(self) -> None:
        """Start the process; it gets SIGTERM if this process dies without stopping it."""
        self._process = subprocess.Popen(  # noqa: S603  our own command
            self._command,
            cwd=PROJECT,
            preexec_fn=dying_with_parent(signal.SIGTERM),  # noqa: PLW1509  it only calls prctl
            start_new_session=True,
        )
        self._started = time.monotonic()

    def look(self) -> None:
        """Start the process again if it has died, after a pause that grows while it dies at once.

        A process that hangs is killed first; no acknowledged flight is lost by that. The watches
        look at one that has died, too: they raise FlightchainError if the disk is gone.
        """
        if self._process is not None:
            self._kill_if_it_hangs(self._process)
            if (status := self._process.poll()) is not None:
                if time.monotonic() - self._started > LONGEST_PAUSE_S:
                    self._pause_s = FIRST_PAUSE_S
                self._report(
                    f"{self.name} ended with status {status}; starting it again in "
                    f"{self._pause_s:g} s"
                )
                self._process = None
                self._not_before = time.monotonic() + self._pause_s
                self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)
        if self._process is None and time.monotonic() >= self._not_before:
            self.start()

    def _kill_if_it_hangs(self, process: "subprocess.Popen[bytes]") -> None:
        """Kill the process once, without waiting: if it waits for a disk, it dies only then."""
        verdicts = [watch.verdict(process.pid) for watch in self._watches]
        reason = next(filter(None, verdicts), "")
        if reason and self._killed_pid != process.pid:
            self._report(f"{self.name} hangs: {reason}; killing it")
            self._kill(process)

    def _kill(self, process: "subprocess.Popen[bytes]") -> None:
        """Kill the process with its workers, which are in the session that `start` made.

        A stopped process handles no other signal, and a stopped worker would keep the port.
        """
        self._killed_pid = process.pid
        os.killpg(process.pid, signal.SIGKILL)

    def ask_to_stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()

    def wait(self, until: float) -> None:
        """Wait until the process ends; kill it at `until` (monotonic seconds)."""
        if self._process is None:
            return
        try:
            self._process.wait(max(0.1, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            self._report(f"{self.name} did not stop within {GRACE_S} s and was killed")
            self._kill(self._process)
            self._process.wait()


def supervise(settings: Settings, report: Report, *, frontend: bool) -> None:
    """Run gunicorn and the miner until SIGTERM or SIGINT. frontend: whether to run that, too."""
    os.environ.update(absolute_folders(settings))  # for the children, which run elsewhere
    with run_folder(settings) as metrics_folder:
        if metrics_folder is not None:
            os.environ[variable("metrics_dir")] = str(metrics_folder.absolute())
        _supervise(settings, report, frontend=frontend)


def _supervise(settings: Settings, report: Report, *, frontend: bool) -> None:
    signalled, tell = os.pipe()  # a signal ends the pause between two looks; sleep() would go on
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda received, frame: os.write(tell, b"."))
    children = [
        Child("the miner", "backend", ["mine"], report, [overdue_miner(settings.folder)]),
        Child("the web server", "backend", ["serve", "--only-http"], report),
    ]
    if settings.witnesses != NO_WITNESS:
        children.append(Child("the asking of witnesses", "backend", ["cosign"], report))
    if frontend:  # it is last, and so stopped first: no page is served without its backend
        children.append(Child("the frontend", "frontend", [], report))
    try:
        _keep_running(children, signalled, settings, report, frontend=frontend)
        report("stopping")
    finally:
        until = time.monotonic() + GRACE_S
        for child in reversed(children):
            child.ask_to_stop()
            child.wait(until)
    report("stopped; every acknowledged flight is on the disk")


def _keep_running(
    children: Sequence[Child], signalled: int, settings: Settings, report: Report, *, frontend: bool
) -> None:
    """Start the children, and start them again as needed, until `signalled` can be read."""
    for child in children:
        child.start()
    from backend.service.announcement import Announcement  # while the children start

    announcement = Announcement(settings, report, frontend=frontend)
    pause_s = 0.0
    while not select.select([signalled], [], [], pause_s)[0]:
        if not announcement.is_made:
            announcement.look()
        for child in children:
            child.look()
        pause_s = 0.5 if announcement.is_begun else 0.05


def require_witnesses(settings: Settings) -> None:
    """Raise InvalidSetting unless the setting for witnesses can be understood."""
    if settings.witnesses != NO_WITNESS:
        from backend.trust.witness.cosign_requests import witnesses_in

        witnesses_in(settings.witnesses)


def require_lab(settings: Settings) -> None:
    """Raise InvalidSetting if a disk is emulated and others than the lab could use the service."""
    if not settings.emulated_disk:
        return
    name, speedup = variable("emulated_disk"), settings.emulated_disk
    if settings.lab != "yes":
        raise InvalidSetting(
            name,
            speedup,
            "makes the service slow on purpose, which only the lab needs; leave it out, or set "
            f"{variable('lab')}=yes if this is the lab",
        )
    if let_in := tokens.reachable(settings):
        reason = f"is only for loopback, but others can reach {let_in}"
        raise InvalidSetting(name, speedup, reason)


def require_ports(settings: Settings, *, frontend: bool) -> None:
    """Raise FlightchainError if a port that the service needs is already in use."""
    if frontend and settings.frontend_port == settings.port:
        raise FlightchainError(
            f"{variable('frontend_port')} {settings.frontend_port} is the port of the service, "
            "too; choose another"
        )
    for before in ("", "frontend_") if frontend else ("",):
        host, port = f"{before}host", f"{before}port"
        remedy = f"choose another {variable(port)} or {variable(host)}"
        require_port(getattr(settings, host), getattr(settings, port), remedy)


def require_port(host: str, port: int, remedy: str) -> None:
    """Raise FlightchainError unless a port is free. remedy: what to do then."""
    if problem := why_not_free(host, port):
        raise FlightchainError(f"{problem}; {remedy}")
