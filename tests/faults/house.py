"""A service that keeps being harmed, with an import beside it, and its processes by their roles.

The supervisor restarts what it looks after; this module starts only the supervisor and the import
again, as a person or an init system would.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from backend.chain.flight import Flight
from tests.api.processes import (
    environment,
    free_port,
    is_answered,
    parent_of,
    processes_of,
    started,
    until,
)
from tests.faults.report import Outcome
from tests.flights import csv_of, flights, transactions_in
from tests.units.supervised import Supervised

WAIT_S = 30
PATIENCE_S = 0.6  # with a child that is not started again yet
IMPORTED = 2000  # flights an import brings, a block at a time
LOG_END = 6000  # characters of a log that are shown

SUPERVISOR, MINER, WEB, WORKER, IMPORT, READER = (
    "supervisor",
    "miner",
    "web server",
    "worker",
    "import",
    "reader of the import",
)
SETTINGS = {
    "FLIGHTCHAIN_MINE_INTERVAL_S": "0.3",
    "FLIGHTCHAIN_WORKERS": "2",
    "FLIGHTCHAIN_THREADS": "4",
    "FLIGHTCHAIN_CACHE_BYTES": "1000000",
}
IMPORT_COMMAND = """
from backend.sealing import importer
from backend.cli.commands import main

importer.BLOCKS_AT_ONCE = 1
main()
"""


def _kind(arguments: list[str]) -> str:
    """`mine`, `serve`, `http`, `import`, or the empty string."""
    if "--only-http" in arguments:
        return "http"
    return next((word for word in ("mine", "serve", "import") if word in arguments), "")


def roles_of(folder: Path) -> dict[str, list[int]]:
    """Role -> ids of the processes of the service in `folder`."""
    kinds = {pid: _kind(arguments) for pid, arguments in processes_of(folder).items()}
    plain = {"serve": SUPERVISOR, "mine": MINER, "http": WEB, "import": IMPORT}
    of_parent = {"http": WORKER, "import": READER}
    roles: dict[str, list[int]] = {}
    for pid, kind in kinds.items():
        names = of_parent if kinds.get(parent_of(pid) or 0) == kind else plain
        if kind in names:
            roles.setdefault(names[kind], []).append(pid)
    return roles


def kill(pids: list[int], number: int = signal.SIGKILL) -> None:
    """Send a signal to processes that may be gone already."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


@dataclass
class House:
    """The service in `folder`, and the import beside it. What they say goes to `logs`."""

    folder: Path
    logs: Path
    settings: Mapping[str, str] = field(default_factory=dict)
    port: int = field(default_factory=free_port)
    supervisor: subprocess.Popen[bytes] | None = None
    importing: subprocess.Popen[bytes] | None = None
    imports: int = 0  # how many sources have been begun
    supervised: Supervised | None = None  # from the first start until all is killed

    def __enter__(self) -> "House":
        return self

    def __exit__(self, *error: object) -> None:
        self.kill_all()

    def start(self, arguments: list[str], log: str) -> subprocess.Popen[bytes]:
        """Start Python with these arguments on the chain."""
        return self._start([sys.executable, *arguments], log, {})

    def _start(
        self, command: list[str], log: str, more: Mapping[str, str]
    ) -> subprocess.Popen[bytes]:
        given = {**SETTINGS, "FLIGHTCHAIN_PORT": str(self.port), **self.settings, **more}
        return started(command, self.logs / log, environment(self.folder, **given))

    def serve(self) -> None:
        """Start the supervisor; again, while what an earlier one left still holds the port."""
        patience = time.monotonic() + PATIENCE_S
        deadline = time.monotonic() + WAIT_S
        if self.supervised is None:
            self.supervised = Supervised(self.folder)
        while True:
            assert time.monotonic() < deadline, f"the service does not start\n{self.log()}"
            if time.monotonic() > patience:  # it may wait long for its workers
                kill(roles_of(self.folder).get(WEB, []))
            self.supervisor = self._start(
                self.supervised.command(), "service.log", self.supervised.settings()
            )
            while self.supervisor.poll() is None:
                if set(roles_of(self.folder)) >= {SUPERVISOR, MINER, WEB, WORKER}:
                    return
                time.sleep(0.02)

    def keep_serving(self) -> None:
        """Start the service again if it has ended."""
        if self.supervisor is None or self.supervisor.poll() is not None:
            self.serve()

    def restart(self, outcome: Outcome) -> None:
        """Start the service when nothing of it is left, and take down how long that takes."""
        started = time.monotonic()
        self.serve()
        until(self.is_ready, WAIT_S)
        outcome.restart_s = max(outcome.restart_s, time.monotonic() - started)

    def is_ready(self) -> bool:
        """Returns whether the service says that it is ready."""
        return is_answered(f"http://127.0.0.1:{self.port}/health/ready", WAIT_S)

    def is_mining_beyond(self, transactions: int) -> bool:
        """Returns whether more than these are mined; until then the service is kept going."""
        self.keep_serving()
        return transactions_in(self.folder) > transactions

    # --- importing --------------------------------------------------------------------------------

    def rows(self, number: int) -> list[Flight]:
        """The flights of source `number`."""
        return flights(IMPORTED, number * IMPORTED)

    def imported(self) -> list[Flight]:
        """The flights of all sources that were begun."""
        return [row for number in range(1, self.imports + 1) for row in self.rows(number)]

    def run_import(self) -> None:
        """Begin to import the next source, or go on with the one that was interrupted."""
        if self.importing is None or self.importing.returncode == 0:
            self.imports += 1
            path = self.logs / f"flights-{self.imports}.csv"
            path.write_text(csv_of(self.rows(self.imports)))
        path = self.logs / f"flights-{self.imports}.csv"
        self.importing = self.start(["-c", IMPORT_COMMAND, "import", str(path)], "import.log")

    def keep_importing(self) -> None:
        """Start an import again, or the next one, if none is running."""
        if self.importing is None or self.importing.poll() is not None:
            self.run_import()

    def finish_importing(self) -> None:
        """Run the latest import until it says that it is done."""
        for _ in range(3):
            if self.importing is None or self.importing.wait(WAIT_S) == 0:
                return
            self.run_import()
        raise AssertionError(f"the import does not end well\n{self.log()}")

    # --- ending -----------------------------------------------------------------------------------

    def stop(self) -> int:
        """Stop the service as a person does; its exit status."""
        assert self.supervisor is not None
        self.supervisor.send_signal(signal.SIGTERM)
        status = self.supervisor.wait(WAIT_S)
        until(lambda: not processes_of(self.folder), WAIT_S)
        return status

    def seal_the_rest(self) -> bool:
        """Mine what is pending while nobody serves; whether that went well."""
        return self.start(["-m", "backend", "mine", "--once"], "service.log").wait(WAIT_S) == 0

    def kill_all(self) -> None:
        """Leave no process behind. Raises AssertionError if a limit of memory was reached."""
        while alive := processes_of(self.folder):
            kill(list(alive), signal.SIGKILL)
            for child in (self.supervisor, self.importing):
                if child is not None:
                    child.poll()
            time.sleep(0.02)
        for child in (self.supervisor, self.importing):
            if child is not None:
                child.wait(WAIT_S)
        supervised, self.supervised = self.supervised, None
        if supervised is not None:
            supervised.close()

    def log(self) -> str:
        """The ends of what the processes said."""
        paths = [self.logs / name for name in ("service.log", "import.log")]
        return "\n".join(path.read_text()[-LOG_END:] for path in paths if path.exists())


def house_in(folder: Path, **settings: str) -> House:
    """A house whose chain and logs are in `folder`."""
    logs = folder / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    return House(folder / "chain", logs, settings)
