"""A service whose mempool is damaged while it runs; tests/mempool damages it at rest.

Every acknowledged flight is mined under its id, or its id is named as lost and its entry is void;
posts go on all the while, and `verify` names what is wrong as long as it is.
"""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from backend.chain.flight import flight_of
from backend.chain.placeholder import VOID
from backend.mempool import FOLDER
from backend.mempool.lost_files import lost_in
from tests.api.processes import Service, serving, until
from tests.api.worlds import GOOD
from tests.flights import on_disk
from tests.mempool.spoiling import PAGE_BYTES, spoil, store_path
from tests.test_cli import call

pytestmark = pytest.mark.slow

NEVER_S = 86400
POSTS = 8  # before each damage


def end_of_log(folder: Path, change: Callable[[bytes], bytes]) -> None:
    """Change the end of SQLite's write-ahead log, or of the file if there is no log."""
    log = store_path(folder).with_name("mempool.sqlite-wal")
    path = log if log.exists() and log.stat().st_size else store_path(folder)
    data = path.read_bytes()
    path.write_bytes(change(data))


DAMAGE: dict[str, Callable[[Path], None]] = {
    "a record": lambda folder: spoil(folder, POSTS - 2),
    "the newest page": lambda folder: end_of_log(
        folder, lambda data: data[:-200] + b"garbage" + data[-193:]
    ),
    "the end": lambda folder: end_of_log(folder, lambda data: data[: len(data) - PAGE_BYTES]),
    "the file": lambda folder: store_path(folder).unlink(),
}


def without_what_is_beside(folder: Path) -> None:
    """Remove the write-ahead log and what processes share.

    It costs nothing if a process that has them open is the first to notice. Who opens the file anew
    before, as the miner may, finds it without its log, and names what is lost.
    """
    for name in ("mempool.sqlite-wal", "mempool.sqlite-shm"):
        store_path(folder).with_name(name).unlink()


def posted(service: Service, number: int) -> int:
    """The id of a flight that is posted, and sent again as long as the answer is 503."""
    answers: list[int] = []

    def is_accepted() -> bool:
        response = service.post({**GOOD, "OP_CARRIER_FL_NUM": number})
        assert response.status_code in {202, 503}, response.text
        if response.status_code == 202:
            answers.append(response.json()["TRANSACTION_ID"])
        return bool(answers)

    until(is_accepted)
    return answers[0]


def lost_ids(folder: Path) -> set[int]:
    files = lost_in(folder / FOLDER)
    return {file.first + number for file in files for number in range(file.flights)}


def test_acknowledged_flights_are_mined_or_named_as_lost(folder: Path) -> None:
    acknowledged: dict[int, int] = {}
    with serving(folder, FLIGHTCHAIN_MINE_INTERVAL_S=NEVER_S) as service:

        def post_some() -> None:
            for _ in range(POSTS):
                number = len(acknowledged) + 1
                acknowledged[posted(service, number)] = number

        for change in DAMAGE.values():
            post_some()
            change(folder)
        post_some()
        lost = lost_ids(folder)
        without_what_is_beside(folder)
        post_some()
        assert lost_ids(folder) >= lost
        ready = service.get("/health/ready").json()
        assert any("acknowledged flights are lost" in reason for reason in ready["reasons"])
        assert "Traceback" not in service.said()
        assert service.stop() == 0
    assert call(folder, "mine", "--once").returncode == 0
    assert sorted(acknowledged) == list(range(len(acknowledged)))
    mined, lost = on_disk(folder).flights, lost_ids(folder)
    assert 0 < len(lost) < len(acknowledged)
    for transaction_id, number in acknowledged.items():
        expected = flight_of({**GOOD, "OP_CARRIER_FL_NUM": number})
        assert mined[transaction_id] == (VOID if transaction_id in lost else expected)
    verified = call(folder, "verify")
    assert verified.returncode == 1
    assert json.loads(verified.stdout)["verified"] is False
    assert "acknowledged flights are lost" in verified.stderr
