"""A backup of a running service: posts, mining and an import go on, and nothing is missed."""

import json
import shutil
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
from tests.api.processes import ROOT, Service, environment, serving, until
from tests.flights import csv_of, flight, flights, transactions_in
from tests.test_cli import answer, call, refusal
from tests.verify.backup.house import House, everything_in

pytestmark = pytest.mark.slow

CLIENTS = 2
IMPORTED = 2000
PAUSE_S = 0.01  # between two posts of a client
POSTED_FROM = 10**8


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
            while not self._stopping.wait(PAUSE_S):
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


def start(folder: Path, *arguments: object) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "backend", *map(str, arguments)]
    quiet = subprocess.DEVNULL
    return subprocess.Popen(command, cwd=ROOT, env=environment(folder), stdout=quiet, stderr=quiet)


def printed(folder: Path, *arguments: object) -> Any:
    """What a command that succeeds prints."""
    return answer(call(folder, *map(str, arguments)))


def test_every_flight_acknowledged_before_is_in_it(tmp_path: Path) -> None:
    folder, backup = tmp_path / "chain", tmp_path / "backup"
    file = tmp_path / "flights.csv"
    file.write_text(csv_of(flights(IMPORTED)))
    with serving(folder, FLIGHTCHAIN_BLOCK_FILE_BYTES=30_000) as service:
        with posting(service) as clients, start(folder, "import", file) as importing:
            until(lambda: len(acknowledged_by(clients)) > 20)
            for number in range(3):
                before = acknowledged_by(clients)
                made = printed(folder, "backup", backup)
                copy = tmp_path / f"restored-{number}"
                assert printed(copy, "restore", backup)["tip_hash"] == made["tip_hash"]
                held = everything_in(Settings(dir=str(copy)))
                assert len(held) == made["transactions"] + made["pending"]
                assert {i: held[i] for i in before} == {i: flight(s) for i, s in before.items()}
            assert importing.wait(60) == 0
        last = printed(folder, "backup", backup)
        assert last["transactions"] + last["pending"] >= IMPORTED + len(acknowledged_by(clients))
        assert verify(backup).height == last["height"]


def test_a_process_that_is_killed_leaves_a_good_backup_and_ledger_or_none(house: House) -> None:
    """The next run of the same command does what this one did not."""
    whole, first = everything_in(house.settings), house.root / "first"
    begun = time.monotonic()
    assert start(house.folder, "backup", first).wait() == 0
    took_s = time.monotonic() - begun
    shutil.rmtree(house.backup)
    for folder, command in ((house.folder, "backup"), (house.restored, "restore")):
        with start(folder, command, house.backup) as running:
            with suppress(subprocess.TimeoutExpired):
                running.wait(0.7 * took_s)
            running.kill()
        if command == "backup" or not (house.restored / "blocks").exists():
            printed(folder, command, house.backup)
    assert verify(house.restored).transactions == transactions_in(house.folder)
    assert everything_in(house.elsewhere(house.restored)) == whole


def test_words_and_json_are_kept_apart(house: House, tmp_path: Path) -> None:
    folder, backup, new = house.folder, str(tmp_path / "other"), tmp_path / "new"
    done = call(folder, "backup", backup)
    assert json.loads(done.stdout)["pending"] == 7
    assert "holds blocks 0 to 5 with 405 transactions, and 7 pending flights" in done.stderr
    done = call(new, "restore", backup)
    assert json.loads(done.stdout)["pending"] == 7
    assert "holds blocks 0 to 5" in done.stderr
    refusal(call(new, "restore", backup))


def test_a_backup_onto_a_disk_that_is_full_says_so(house: House, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=8k", "none", disk], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"a small disk needs root: {mounted.stderr.decode().strip()}")
    try:
        said = refusal(call(house.folder, "backup", str(disk)))
        assert said.startswith(f"error: the disk of {disk} has ")
        assert "the backup is not complete; run it again" in said
    finally:
        subprocess.run(["umount", disk], check=True)
