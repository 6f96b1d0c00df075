"""A backup of a running service: posts, mining and an import go on, and nothing is missed."""

import json
from pathlib import Path
from typing import Any

import pytest

from backend.base.settings import Settings
from backend.verify.audit import verify
from tests.api.processes import begun, serving, until
from tests.faults.clients import Memory, memories, posting
from tests.flights import csv_of, flight, flights
from tests.test_cli import answer, call, refusal
from tests.verify.backup.house import House, everything_in

pytestmark = pytest.mark.slow

CLIENTS = 2
IMPORTED = 2000


def acknowledged_by(clients: list[Memory]) -> dict[int, int]:
    """Returns the serial of each id, as far as clients were told."""
    receipts = [receipt for client in clients for receipt in client.acknowledged.copy()]
    return {receipt.transaction_id: receipt.serial for receipt in receipts}


def printed(folder: Path, *arguments: object) -> Any:
    """Returns what a command that succeeds prints."""
    return answer(call(folder, *map(str, arguments)))


def test_every_flight_acknowledged_before_is_in_it(tmp_path: Path) -> None:
    folder, backup = tmp_path / "chain", tmp_path / "backup"
    file = tmp_path / "flights.csv"
    file.write_text(csv_of(flights(IMPORTED)))
    with serving(folder, FLIGHTCHAIN_BLOCK_FILE_BYTES=30_000) as service:
        clients = memories(CLIENTS)
        with posting(service.port, clients), begun(folder, "import", str(file)) as importing:
            until(lambda: len(acknowledged_by(clients)) > 20)
            for number in range(3):
                before = acknowledged_by(clients)
                report = printed(folder, "backup", backup)
                copy = tmp_path / f"restored-{number}"
                assert printed(copy, "restore", backup)["tip_hash"] == report["tip_hash"]
                held = everything_in(Settings(dir=str(copy)))
                assert len(held) == report["transactions"] + report["pending"]
                assert {i: held[i] for i in before} == {i: flight(s) for i, s in before.items()}
            assert importing.wait(60) == 0
        last = printed(folder, "backup", backup)
        assert last["transactions"] + last["pending"] >= IMPORTED + len(acknowledged_by(clients))
        assert verify(backup).height == last["height"]


def test_words_and_json_are_kept_apart(house: House, tmp_path: Path) -> None:
    folder, backup, new = house.folder, str(tmp_path / "other"), tmp_path / "new"
    done = call(folder, "backup", backup)
    assert json.loads(done.stdout)["pending"] == 7
    assert "holds blocks 0 to 5 with 405 transactions, and 7 pending flights" in done.stderr
    done = call(new, "restore", backup)
    assert json.loads(done.stdout)["pending"] == 7
    assert "holds blocks 0 to 5" in done.stderr
    assert "put back your copies of log.key and log.vkey before" in done.stderr
    refusal(call(new, "restore", backup))
