"""Idempotency keys, as durable as the flights that they came with."""

import os
import sqlite3
import threading
from pathlib import Path

import pytest

from backend.errors import DamagedMempool, KeyReused
from backend.keys import FILE_NAME, KEPT_MS, IdempotencyKey, Keys, KeyUse
from backend.mempool import FOLDER, Accepted, Offer
from tests.accepting import accept_in
from tests.flights import flight, flights
from tests.mempool.house import House, T, everything

KEY = IdempotencyKey("k", "00")


def test_a_key_is_known_in_every_process_and_after_a_restart(house: House) -> None:
    first = accept_in(house.mempool(), flights(3), T, key=KEY)
    again = accept_in(house.mempool(), flights(3), T + 5, key=KEY)
    assert (again.first_transaction, again.timestamp) == (first.first_transaction, first.timestamp)
    assert (first.is_repeat, again.is_repeat) == (False, True)
    assert len(everything(house.mempool())) == 3


def test_a_key_outlives_its_record(house: House) -> None:
    writer = house.mempool()
    accept_in(writer, flights(3), T, key=KEY)
    house.chain.transactions = 3
    accept_in(writer, [flight(9)], T)  # a new segment
    house.mempool().trim(3)
    assert house.segments() == [3]
    for mempool in (writer, house.mempool()):
        assert accept_in(mempool, flights(3), T, key=KEY).first_transaction == 0


def test_a_key_is_in_memory_no_longer_than_its_record_is_in_the_log(house: House) -> None:
    """Not only in the process that removes the record: the others would grow for ever."""
    worker, miner = house.mempool(), house.mempool()
    accept_in(worker, flights(3), T, key=KEY)
    house.chain.transactions = 3
    accept_in(worker, [flight(9)], T)  # a new segment
    miner.trim(3)
    (house.folder / FOLDER / FILE_NAME).unlink()  # what is found now is found in memory
    assert not accept_in(worker, flights(3), T, key=KEY).is_repeat


def test_keys_are_forgotten_by_their_newest_use(tmp_path: Path) -> None:
    keys = Keys(tmp_path)
    for text, first in [("again", 0), ("once", 1), ("again", 2), ("last", 3)]:
        keys.add(text, KeyUse("00", first, 1, T))
    expected = {2: ["again", "last"], 3: ["last"], 4: []}
    for below, left in expected.items():
        keys.forget(below)
        known = [t for t in ("again", "once", "last") if keys.find(IdempotencyKey(t, "00"), T)]
        assert known == left


def test_a_key_is_forgotten_after_a_day(house: House) -> None:
    mempool = house.mempool()
    accept_in(mempool, [flight(0)], T, key=KEY)
    assert accept_in(mempool, [flight(0)], T + KEPT_MS, key=KEY).is_repeat
    assert not accept_in(mempool, [flight(0)], T + KEPT_MS + 1, key=KEY).is_repeat


def test_a_key_with_something_else_is_refused_and_nothing_is_accepted(house: House) -> None:
    mempool = house.mempool()
    accept_in(mempool, [flight(0)], T, key=KEY)
    with pytest.raises(KeyReused, match="transaction 0"):
        accept_in(mempool, [flight(1)], T, key=IdempotencyKey("k", "01"))
    assert len(everything(mempool)) == 1


def test_one_of_many_at_once_is_accepted(house: House) -> None:
    mempools = [house.mempool() for _ in range(4)]
    found: list[int] = []

    def accept(which: int) -> None:
        accepted = accept_in(mempools[which % 4], flights(2), T, key=KEY)
        found.append(accepted.first_transaction)

    threads = [threading.Thread(target=accept, args=(i,)) for i in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [0] * 16
    assert len(everything(house.mempool())) == 2


def test_a_record_torn_in_its_key_never_was(house: House) -> None:
    mempool = house.mempool()
    accept_in(mempool, [flight(0)], T)
    size = house.segment().stat().st_size
    accept_in(mempool, flights(2), T, key=KEY)
    mempool.close()
    house.forget_acknowledged()
    os.truncate(house.segment(), size + 40)
    fresh = house.mempool()
    assert not accept_in(fresh, flights(2), T, key=KEY).is_repeat
    assert len(everything(fresh)) == 3


def test_a_damaged_file_of_keys_is_named(house: House) -> None:
    mempool = house.mempool()
    accept_in(mempool, [flight(0)], T)
    (house.folder / FOLDER / FILE_NAME).write_bytes(b"no database" * 100)
    with pytest.raises(DamagedMempool, match=FILE_NAME):
        accept_in(mempool, [flight(1)], T, key=KEY)
    accept_in(mempool, [flight(1)], T)


def test_keys_are_on_the_disk_before_their_record_goes(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    mempool = house.mempool()
    accept_in(mempool, flights(3), T, key=KEY)
    house.chain.transactions = 3
    accept_in(mempool, [flight(9)], T)

    def refuse(*arguments: object) -> None:
        raise sqlite3.OperationalError("disk I/O error")

    with monkeypatch.context() as patch:
        patch.setattr(sqlite3, "connect", refuse)
        with pytest.raises(DamagedMempool, match="disk I/O error"):
            mempool.trim(3)
    assert house.segments() == [0, 3]
    mempool.trim(3)
    assert house.segments() == [3]


def test_keys_that_cannot_be_read_stand_in_the_way_of_their_own_offer_alone(house: House) -> None:
    mempool = house.mempool()
    accept_in(mempool, [flight(0)], T)
    (house.folder / FOLDER / FILE_NAME).write_bytes(b"no database" * 100)
    offers = [Offer([flight(1)]), Offer([flight(2)], KEY), Offer([flight(3)])]
    first, refused, last = mempool.accept_all(offers, T)
    assert isinstance(first, Accepted)
    assert isinstance(last, Accepted)
    assert (first.first_transaction, last.first_transaction) == (1, 2)
    assert isinstance(refused, DamagedMempool)
    assert FILE_NAME in str(refused)
    assert everything(house.mempool()) == everything(mempool)
    assert mempool.pending_count() == 3
