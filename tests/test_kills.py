"""kill -9 of any process during import, posting and mining, fifty times over.

A real service, clients that post and remember what was acknowledged, imports that run meanwhile,
and somebody who kills: supervisor, miner, web server, its workers, import, the import's reader. In
the end the chain must verify, hold every acknowledged flight exactly once under its id and with its
content hash, nothing that nobody sent, and every imported row exactly once.

The supervisor restarts what it looks after; this module starts only the supervisor and the import
again, as a person or an init system would.
KILLS and KILLS_SEED in the environment choose how many kills, and which.
"""

import http.client
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from backend.audit import verify
from backend.chain.canonical import canonical
from backend.chain.flight import Flight, as_mapping
from backend.chain.merkle import leaf_hash
from backend.settings import PROJECT
from tests.flights import csv_of, flight, flights, on_disk, transactions_in

KILLS = int(os.environ.get("KILLS", "50"))
WAIT_S = 30
CLIENTS = 4
BETWEEN_POSTS_S = 0.01
PATIENCE_S = 0.6  # with a child that is not started again yet
BACK_WITHIN_S = 15.0
IMPORTED = 2000  # flights an import brings, a block at a time
POSTED_FROM = 10**8  # serials of posted flights; those of imports are below

SUPERVISOR, MINER, WEB, WORKER, IMPORT, READER = (
    "supervisor",
    "miner",
    "web server",
    "worker",
    "import",
    "reader of the import",
)
VICTIMS = [SUPERVISOR, MINER, MINER, WEB, WORKER, WORKER, IMPORT, IMPORT, READER]

IMPORT_COMMAND = """
from backend import importer
from backend.cli import main

importer.BLOCKS_AT_ONCE = 1
main()
"""


# --- processes -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Found:
    """A process of the service in the folder. role: as in `VICTIMS`."""

    pid: int
    parent: int
    arguments: list[str]

    @property
    def kind(self) -> str:
        """`mine`, `serve`, `http`, `import`, or the empty string."""
        if "--only-http" in self.arguments:
            return "http"
        return next((word for word in ("mine", "serve", "import") if word in self.arguments), "")


def processes_of(folder: Path) -> list[Found]:
    """Every living process that was given `folder`, and so was started here."""
    mark = f"FLIGHTCHAIN_DIR={folder}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        with suppress(OSError):  # it is gone
            if mark not in (entry / "environ").read_bytes().split(b"\0"):
                continue
            arguments = (entry / "cmdline").read_text().split("\0")
            after_name = (entry / "stat").read_text().rpartition(")")[2].split()
            if after_name[0] not in {"Z", "X"}:
                found.append(Found(int(entry.name), int(after_name[1]), arguments))
    return found


def roles_of(folder: Path) -> dict[str, list[int]]:
    """Role -> process ids."""
    found = processes_of(folder)
    kind_of = {process.pid: process.kind for process in found}
    plain = {"serve": SUPERVISOR, "mine": MINER, "http": WEB, "import": IMPORT}
    of_parent = {"http": WORKER, "import": READER}
    roles: dict[str, list[int]] = {}
    for process in found:
        names = of_parent if kind_of.get(process.parent) == process.kind else plain
        if process.kind in names:
            roles.setdefault(names[process.kind], []).append(process.pid)
    return roles


def kill(pids: list[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def eventually(condition: Callable[[], bool], what: str, within_s: float = WAIT_S) -> None:
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, f"{what}: not within {within_s} s"
        time.sleep(0.01)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@dataclass
class Service:
    """The service in `folder`, and the import beside it. What they say goes to `logs`."""

    folder: Path
    logs: Path
    port: int = field(default_factory=free_port)
    supervisor: subprocess.Popen[bytes] | None = None
    importing: subprocess.Popen[bytes] | None = None
    imports: int = 0  # how many sources have been begun

    def _start(self, arguments: list[str], log: str) -> subprocess.Popen[bytes]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith("FLIGHTCHAIN_")}
        environment = {
            **kept,
            "FLIGHTCHAIN_DIR": str(self.folder),
            "FLIGHTCHAIN_PORT": str(self.port),
            "FLIGHTCHAIN_MINE_INTERVAL_S": "0.3",
            "FLIGHTCHAIN_WORKERS": "2",
            "FLIGHTCHAIN_THREADS": "4",
            "FLIGHTCHAIN_CACHE_BYTES": "1000000",
        }
        with (self.logs / log).open("ab") as output:
            return subprocess.Popen(
                [sys.executable, *arguments],
                cwd=PROJECT,
                env=environment,
                stdout=output,
                stderr=output,
            )

    def serve(self) -> None:
        """Start the supervisor; again, while what an earlier one left still holds the port."""
        patience = time.monotonic() + PATIENCE_S
        deadline = time.monotonic() + WAIT_S
        while True:
            assert time.monotonic() < deadline, "the service does not start"
            if time.monotonic() > patience:  # it may wait long for its workers
                kill(roles_of(self.folder).get(WEB, []))
            self.supervisor = self._start(["-m", "backend", "serve"], "service.log")
            while self.supervisor.poll() is None:
                if set(roles_of(self.folder)) >= {SUPERVISOR, MINER, WEB, WORKER}:
                    return
                time.sleep(0.02)

    def keep_serving(self) -> None:
        if self.supervisor is None or self.supervisor.poll() is not None:
            self.serve()

    def is_mining_beyond(self, transactions: int) -> bool:
        """Whether more than these are mined; until then the service is kept going."""
        self.keep_serving()
        return transactions_in(self.folder) > transactions

    def rows(self, number: int) -> list[Flight]:
        """The flights of source `number`."""
        return flights(IMPORTED, number * IMPORTED)

    def run_import(self) -> None:
        """Begin to import the next source, or go on with the one that was interrupted."""
        if self.importing is None or self.importing.returncode == 0:
            self.imports += 1
            path = self.logs / f"flights-{self.imports}.csv"
            path.write_text(csv_of(self.rows(self.imports)))
        path = self.logs / f"flights-{self.imports}.csv"
        self.importing = self._start(["-c", IMPORT_COMMAND, "import", str(path)], "import.log")

    def keep_importing(self) -> None:
        if self.importing is None or self.importing.poll() is not None:
            self.run_import()

    def finish_importing(self) -> None:
        """Run the latest import until it says that it is done."""
        for _ in range(3):
            if self.importing is None or self.importing.wait(WAIT_S) == 0:
                return
            self.run_import()
        raise AssertionError("the import does not end well")

    def stop(self) -> int:
        """Stop the service as a person does; its exit status."""
        assert self.supervisor is not None
        self.supervisor.send_signal(signal.SIGTERM)
        status = self.supervisor.wait(WAIT_S)
        eventually(lambda: not processes_of(self.folder), "all processes end")
        return status

    def seal_the_rest(self) -> None:
        assert self._start(["-m", "backend", "mine", "--once"], "service.log").wait(WAIT_S) == 0

    def kill_all(self) -> None:
        """Leave nothing behind."""
        while found := processes_of(self.folder):
            kill([process.pid for process in found])
            for child in (self.supervisor, self.importing):
                if child is not None:
                    child.poll()
            time.sleep(0.02)
        for child in (self.supervisor, self.importing):
            if child is not None:
                child.wait(WAIT_S)

    def log(self) -> str:
        """The ends of what the processes said."""
        paths = [self.logs / name for name in ("service.log", "import.log")]
        return "\n".join(path.read_text()[-6000:] for path in paths if path.exists())


# --- clients ---------------------------------------------------------------------------------


class Client:
    """Posts flights of its own, one after the other, each once, and keeps the receipts."""

    def __init__(
        self, service: Service, number: int, stopping: threading.Event, pause_s: float
    ) -> None:
        self.submitted = 0
        self.acknowledged: list[tuple[int, str, int]] = []  # id, content hash, serial
        self.unexpected: list[str] = []
        self._service, self._stopping, self._pause_s = service, stopping, pause_s
        self.first = POSTED_FROM + number * 10**6
        self._connection: http.client.HTTPConnection | None = None
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def join(self) -> None:
        self._thread.join(WAIT_S)
        assert not self._thread.is_alive()

    def _run(self) -> None:
        while not self._stopping.wait(self._pause_s):
            serial = self.first + self.submitted
            self.submitted += 1
            try:
                self._post(serial)
            except (OSError, http.client.HTTPException):  # killed: acknowledged it was not
                self._disconnect()
                self._stopping.wait(0.05)
        self._disconnect()

    def _post(self, serial: int) -> None:
        if self._connection is None:
            self._connection = http.client.HTTPConnection("127.0.0.1", self._service.port, 10)
        body = json.dumps(as_mapping(flight(serial)))
        headers = {"Content-Type": "application/json"}
        self._connection.request("POST", "/transactions", body, headers)
        response = self._connection.getresponse()
        text = response.read().decode()
        if response.status in {201, 202}:
            receipt = json.loads(text)
            self.acknowledged.append((receipt["TRANSACTION_ID"], receipt["content_hash"], serial))
        else:
            self.unexpected.append(f"{response.status} {text}")

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


# --- the test --------------------------------------------------------------------------------


@contextmanager
def clients_of(service: Service, pause_s: float) -> Iterator[list[Client]]:
    """Clients that post every `pause_s` seconds and the time an answer takes."""
    stopping = threading.Event()
    clients = [Client(service, number, stopping, pause_s) for number in range(CLIENTS)]
    try:
        yield clients
    finally:
        stopping.set()
        for client in clients:
            client.join()


def victims(chance: random.Random) -> Iterator[str]:
    """Roles without end, each in its share, in random order."""
    while True:
        yield from chance.sample(VICTIMS, len(VICTIMS))


def keep_busy(service: Service, role: str) -> list[int]:
    """Start again what must be started from outside; the processes of `role`."""
    service.keep_serving()
    if role in {IMPORT, READER}:
        service.keep_importing()
    return roles_of(service.folder).get(role, [])


def kill_one(service: Service, role: str, chance: random.Random) -> str:
    """Wait until there is one of `role` and it has had some time, and kill it; what was killed.

    The supervisor pauses longer and longer before it starts a child that keeps dying; rather than
    wait for it this kills the supervisor.
    """
    patience = time.monotonic() + PATIENCE_S
    while not keep_busy(service, role):
        if role in {MINER, WEB, WORKER} and time.monotonic() > patience:
            role = SUPERVISOR
        time.sleep(0.02)
    while True:
        # An import needs a while before it seals; the others are always at work.
        time.sleep(chance.uniform(0, 0.7 if role == IMPORT else 0.2))
        if found := keep_busy(service, role):
            kill([chance.choice(found)])
            return role


def check_clients(folder: Path, service: Service, clients: list[Client]) -> None:
    found = on_disk(folder)
    position = {f: number for number, f in enumerate(found.flights)}
    assert len(position) == len(found.flights), "a flight was mined twice"
    for client in clients:
        for transaction_id, content_hash, serial in client.acknowledged:
            assert transaction_id < len(found.flights), f"{transaction_id} was acknowledged"
            assert position.get(flight(serial)) == transaction_id
            transaction = {
                "TRANSACTION_ID": transaction_id,
                "timestamp": found.timestamps[transaction_id],
                **as_mapping(flight(serial)),
            }
            assert leaf_hash(canonical(transaction)).hex() == content_hash
    imported = [row for number in range(1, service.imports + 1) for row in service.rows(number)]
    own = set(imported)
    assert [f for f in found.flights if f in own] == imported
    submitted = {flight(client.first + n) for client in clients for n in range(client.submitted)}
    assert set(found.flights) - own <= submitted


def test_nothing_is_lost_or_doubled_whatever_is_killed(tmp_path: Path) -> None:
    seed = int(os.environ.get("KILLS_SEED", random.randrange(10**6)))
    print(f"KILLS_SEED={seed}")
    chance = random.Random(seed)
    folder, logs = tmp_path / "chain", tmp_path / "logs"
    logs.mkdir()
    service = Service(folder, logs)
    killed: Counter[str] = Counter()
    try:
        service.serve()
        with clients_of(service, BETWEEN_POSTS_S) as clients:
            for role in victims(chance):
                killed[kill_one(service, role, chance)] += 1
                if killed.total() == KILLS:
                    break
            service.finish_importing()
            mined = transactions_in(folder)
            eventually(lambda: service.is_mining_beyond(mined), "the service is back", 2 * WAIT_S)
        assert service.stop() == 0
        service.seal_the_rest()
        found = verify(folder)
        assert found.index == "the index agrees with every block"
        check_clients(folder, service, clients)
    except BaseException:
        print(service.log())
        raise
    finally:
        service.kill_all()
    assert [message for client in clients for message in client.unexpected] == []
    assert sum(len(client.acknowledged) for client in clients) > 10 * KILLS
    assert set(killed) == set(VICTIMS) or len(VICTIMS) > KILLS


def test_a_killed_web_server_is_back_soon_though_clients_keep_asking(tmp_path: Path) -> None:
    service = Service(tmp_path / "chain", tmp_path)
    try:
        service.serve()
        with clients_of(service, 0.001) as clients:
            eventually(lambda: all(client.acknowledged for client in clients), "all are served")
            before = roles_of(service.folder)
            kill(before[WEB])
            eventually(
                lambda: (
                    set(roles_of(service.folder).get(WORKER, [])) - set(before[WORKER]) != set()
                ),
                "new workers",
                BACK_WITHIN_S,
            )
    finally:
        service.kill_all()
