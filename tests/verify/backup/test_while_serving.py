"""A backup of a running service: posts, mining and an import go on, and nothing is missed."""

import json
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import requests

from backend.base.settings import Settings
from backend.chain.flight import as_mapping
from backend.verify.audit import verify
from tests.api.processes import ROOT, Service, backend, environment, serving, until
from tests.flights import csv_of, flight, flights, transactions_in
from tests.verify.backup.house import everything_in

CLIENTS = 3
IMPORTED = 6000
POSTED_FROM = 10**8
QUESTIONS = [
    "/filter_transactions?OP_CARRIER_FL_NUM={OP_CARRIER_FL_NUM}&FL_DATE={FL_DATE}",
    (
        "/average_delays?OP_CARRIER_AIRLINE_ID={OP_CARRIER_AIRLINE_ID}"
        "&INITIAL_DATE=1990-01-01&FINAL_DATE=2030-01-01&group_by=day"
    ),
    (
        "/flight_counter?ORIGIN_CITY_NAME={ORIGIN_CITY_NAME}&DEST_CITY_NAME={DEST_CITY_NAME}"
        "&INITIAL_DATE=1990-01-01&FINAL_DATE=2030-01-01&group_by=carrier"
    ),
]


class Posting(threading.Thread):
    """Posts flights of its own, and remembers the id of each that was acknowledged."""

    def __init__(self, service: Service, number: int, stopping: threading.Event) -> None:
        super().__init__()
        self.acknowledged: dict[int, int] = {}  # id -> serial
        self._url, self._stopping = f"{service.url}/transactions", stopping
        self._serial = POSTED_FROM + number * 10**6

    def run(self) -> None:
        with requests.Session() as session:
            session.trust_env = False
            while not self._stopping.is_set():
                self._serial += 1
                body = as_mapping(flight(self._serial))
                response = session.post(self._url, json=body, timeout=30)
                if response.status_code == 202:
                    self.acknowledged[response.json()["TRANSACTION_ID"]] = self._serial


@contextmanager
def posting(service: Service) -> Iterator[list[Posting]]:
    stopping = threading.Event()
    clients = [Posting(service, number, stopping) for number in range(CLIENTS)]
    for client in clients:
        client.start()
    try:
        yield clients
    finally:
        stopping.set()
        for client in clients:
            client.join(30)


def acknowledged_by(clients: list[Posting]) -> dict[int, int]:
    return {i: serial for client in clients for i, serial in client.acknowledged.copy().items()}


def start(folder: Path, *arguments: object) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "backend", *map(str, arguments)],
        cwd=ROOT,
        env=environment(folder),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def made(folder: Path, backup: Path) -> Any:
    """Make a backup by the command line; what it printed."""
    done = backend(folder, "backup", str(backup))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def restored(backup: Path, folder: Path) -> Any:
    done = backend(folder, "restore", str(backup))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_every_flight_acknowledged_before_is_in_it(tmp_path: Path) -> None:
    folder, backup = tmp_path / "chain", tmp_path / "backup"
    file = tmp_path / "flights.csv"
    file.write_text(csv_of(flights(IMPORTED)))
    with serving(folder, FLIGHTCHAIN_BLOCK_FILE_BYTES=30_000) as service:
        with posting(service) as clients:
            importing = start(folder, "import", file)
            until(lambda: len(acknowledged_by(clients)) > 20)
            for number in range(3):
                before = acknowledged_by(clients)
                printed = made(folder, backup)
                copy = tmp_path / f"restored-{number}"
                assert restored(backup, copy)["tip_hash"] == printed["tip_hash"]
                found = everything_in(Settings(dir=str(copy)))
                assert len(found) == printed["transactions"] + printed["pending"]
                assert {i: found[i] for i in before} == {i: flight(s) for i, s in before.items()}
            importing.communicate(timeout=60)
            assert importing.returncode == 0
        last = made(folder, backup)
        assert last["transactions"] + last["pending"] >= IMPORTED + len(acknowledged_by(clients))
        assert verify(backup).height == last["height"]
        height = printed["height"]
        answers = ask(service, height)
    with serving(copy) as service:
        assert ask(service, height) == answers


def ask(service: Service, height: int) -> list[Any]:
    """The three questions as of a height, by index and by scan."""
    values = {name: str(value) for name, value in as_mapping(flight(7)).items()}
    paths = [path.format(**values) + f"&as_of={height}" for path in QUESTIONS]
    return [service.json(f"{path}&engine={by}") for path in paths for by in ("index", "scan")]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger with a few blocks and pending flights, as a service left it. Not to be changed."""
    folder = tmp_path_factory.mktemp("served") / "chain"
    done = backend(folder, "import", "--generate", "3000", FLIGHTCHAIN_BLOCK_FILE_BYTES=20_000)
    assert done.returncode == 0
    with serving(folder, FLIGHTCHAIN_MINE_INTERVAL_S=3600) as service:
        for serial in range(5):
            service.post(as_mapping(flight(serial)))
    return folder


@pytest.mark.parametrize("command", ["backup", "restore"])
def test_a_process_that_is_killed_leaves_a_good_backup_and_ledger_or_none(
    served: Path, tmp_path: Path, command: str
) -> None:
    """At several moments of a run; the next run of the same command does what this one did not."""
    backup, folder = tmp_path / "backup", tmp_path / "restored"
    whole = everything_in(Settings(dir=str(served)))
    if command == "restore":
        made(served, backup)
    took_s = 0.0
    for tenths in (None, 4, 6, 8):
        shutil.rmtree(folder, ignore_errors=True)
        if command == "backup":
            shutil.rmtree(backup, ignore_errors=True)
        begun = time.monotonic()
        running = start(served if command == "backup" else folder, command, backup)
        with running, suppress(subprocess.TimeoutExpired):
            try:
                running.wait(None if tenths is None else took_s * tenths / 10)
            finally:
                running.send_signal(signal.SIGKILL)
        took_s = took_s or time.monotonic() - begun
        if command == "backup":
            made(served, backup)
        if command == "backup" or not (folder / "blocks").exists():
            restored(backup, folder)
        assert verify(folder).transactions == transactions_in(served)
        assert everything_in(Settings(dir=str(folder))) == whole


def test_words_and_json_are_kept_apart(served: Path, tmp_path: Path) -> None:
    done = backend(served, "backup", str(tmp_path / "backup"))
    assert json.loads(done.stdout)["pending"] == 5
    assert "holds blocks 0 to 3 with 3,000 transactions, and 5 pending flights" in done.stderr
    done = backend(tmp_path / "new", "restore", str(tmp_path / "backup"))
    assert json.loads(done.stdout)["pending"] == 5
    assert "holds blocks 0 to 3" in done.stderr
    done = backend(tmp_path / "new", "restore", str(tmp_path / "backup"))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: ")
    assert "Traceback" not in done.stderr


def test_a_backup_onto_a_disk_that_is_full_says_so(served: Path, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=30k", "none", disk], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"a small disk needs root: {mounted.stderr.decode().strip()}")
    try:
        done = backend(served, "backup", str(disk))
        assert done.returncode == 1
        assert done.stderr.count("\n") == 1
        assert f"error: the disk of {disk} has " in done.stderr
        assert "the backup is not complete; run it again" in done.stderr
    finally:
        subprocess.run(["umount", disk], check=True)
