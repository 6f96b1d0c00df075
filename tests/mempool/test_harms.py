"""Random harm to the mempool's files, at rest and while a process has them open.

Every acknowledged flight is found under its id, or named as lost; ids are never given again; a key
is known, or it is said that keys may be used again.
"""

import random
import shutil
from pathlib import Path

import pytest

from backend.base.clock import now_ms
from backend.chain.flight import Flight
from backend.chain.placeholder import VOID
from backend.mempool import FOLDER, check_mempool
from backend.mempool.database import FILE_NAME
from backend.mempool.idempotency_keys import IdempotencyKey
from tests.effort import tries
from tests.flights import flight, flights
from tests.harming import HARMS, harm
from tests.mempool.house import House, everything
from tests.submitting import accept_in

pytestmark = pytest.mark.slow

NOW_MS = now_ms()
PENDING, MINED = 60, 20
KEYS = {f"key {number}": number for number in range(0, MINED + PENDING, 7)}


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A mempool as a kill leaves it: mined and pending flights, keys, a write-ahead log."""
    house = House(tmp_path_factory.mktemp("made") / "chain")
    house.folder.mkdir()
    mempool = house.mempool()
    for number in range(MINED + PENDING):
        text = next((text for text, used in KEYS.items() if used == number), None)
        key = IdempotencyKey(text, "00") if text else None
        accept_in(mempool, [flight(number)], NOW_MS, key=key)
        if number == MINED:
            house.chain.transactions = MINED
            mempool.trim(MINED // 2)
        if number == MINED + PENDING // 2:
            mempool._store.empty_log()
    copy = house.folder.with_name("template")
    shutil.copytree(house.folder, copy)
    house.close()
    return copy


def require_all(house: House) -> None:
    """Hold what is pending now against what was acknowledged."""
    mempool = house.mempool()
    accepted = accept_in(mempool, [flight(999)], NOW_MS)
    assert accepted.first_transaction == MINED + PENDING
    pending = dict(everything(mempool))
    assert list(pending) == list(range(MINED, MINED + PENDING + 1))
    lost = {i for first, count in house.lost() for i in range(first, first + count)}
    for number, held in pending.items():
        expected: Flight = flight(number if number < MINED + PENDING else 999)
        assert held == (VOID if number in lost else expected), number
    assert lost <= set(range(MINED, MINED + PENDING))
    for text, number in KEYS.items():
        again = accept_in(mempool, flights(1, number), NOW_MS, key=IdempotencyKey(text, "00"))
        if not again.is_repeat:
            assert any("may be used again" in line for line in house.messages), text
    mempool.close()
    checked = check_mempool(house.folder, house.chain)
    assert checked.void == len(lost)


@pytest.mark.parametrize("is_live", [False, True], ids=["at rest", "while it runs"])
@pytest.mark.parametrize("name", [FILE_NAME, f"{FILE_NAME}-wal"])
@pytest.mark.parametrize("how", HARMS)
def test_every_flight_is_there_or_named_as_lost(
    template: Path, tmp_path: Path, how: str, name: str, is_live: bool
) -> None:
    for seed in range(tries(2, exploring=20)):
        house = House(tmp_path / str(seed))
        shutil.copytree(template, house.folder)
        house.chain.transactions = MINED
        if is_live:
            assert len(everything(house.mempool())) == PENDING
        harm(house.folder / FOLDER / name, how, random.Random(seed))
        require_all(house)
        house.close()
