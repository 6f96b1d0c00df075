"""Records go when the block after theirs is sealed; the newest one always stays."""

import pytest

from backend.mempool import store
from backend.mempool.records import FLIGHTS_A_RECORD
from tests.flights import flight, flights
from tests.mempool.house import House, T, everything, listed, numbered
from tests.mempool.spoiling import PAGE_BYTES, overwrite
from tests.submitting import accept_in


def test_trimming_removes_records_below_and_nothing_else(house: House) -> None:
    mempool, reader = house.mempool(), house.mempool()
    for first, count in ((0, 2), (2, 3), (5, 1), (6, 2)):
        accept_in(mempool, flights(count, first), T)
    house.chain.transactions = 6
    for below, left in ((0, [0, 2, 5, 6]), (1, [0, 2, 5, 6]), (4, [2, 5, 6]), (6, [6])):
        mempool.trim(below)
        assert house.records() == left
        assert everything(reader) == numbered(flights(2, 6), 6)
    house.chain.transactions = 8
    mempool.trim(8)
    assert house.records() == [6]
    assert accept_in(reader, [flight(8)], T).first_transaction == 8


@pytest.mark.parametrize("at_once", [1, 3, 100])
def test_many_records_go_a_few_at_a_time(
    house: House, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr(store, "REMOVED_AT_ONCE", at_once)
    mempool = house.mempool()
    for number in range(20):
        accept_in(mempool, [flight(number)], T)
    house.chain.transactions = 18
    mempool.trim(17)
    assert house.records() == [17, 18, 19]
    assert everything(mempool) == numbered(flights(2, 18), 18)


def test_damage_that_is_met_while_records_are_removed_is_repaired(house: House) -> None:
    mempool = house.mempool()
    for number in range(100):
        accept_in(mempool, [flight(number)], T)
    pages = len(house.settle()) // PAGE_BYTES
    for page in range(2, pages + 1):
        copy = house.copied()
        copy.chain.transactions = 80
        mempool = copy.mempool()
        assert mempool.pending_count() == 20
        assert mempool._store._connection is not None
        mempool._store._connection.execute("PRAGMA shrink_memory").fetchall()
        overwrite(copy.path, page * PAGE_BYTES - 100, b"garbage")
        mempool.trim(60)
        assert mempool.pending_count() == 20
        copy.close()


def test_who_has_not_looked_for_long_does_not_miss_what_was_removed(house: House) -> None:
    idle, mempool = house.mempool(), house.mempool()
    accept_in(mempool, flights(2), T)
    assert idle.pending_count() == 2
    for number in range(2, 6):
        accept_in(mempool, [flight(number)], T)
    house.chain.transactions = 5
    mempool.trim(5)
    assert house.records() == [5]
    assert idle.pending_count() == 1
    assert everything(idle) == [(5, flight(5))]
    assert accept_in(idle, [flight(6)], T).first_transaction == 6
    assert idle.not_ready() == house.messages == []


def test_a_long_batch_is_sealed_and_removed_part_by_part(house: House) -> None:
    mempool, count = house.mempool(), 2 * FLIGHTS_A_RECORD + 1
    accept_in(mempool, flights(count), T)
    assert house.records() == [0, FLIGHTS_A_RECORD, 2 * FLIGHTS_A_RECORD]
    assert listed(mempool.pending(FLIGHTS_A_RECORD + 5)) == numbered(flights(FLIGHTS_A_RECORD + 5))
    house.chain.transactions = FLIGHTS_A_RECORD + 5
    assert everything(house.mempool()) == numbered(flights(count))[FLIGHTS_A_RECORD + 5 :]
    for number in (count - 1, FLIGHTS_A_RECORD + 5, 2 * FLIGHTS_A_RECORD - 1, FLIGHTS_A_RECORD + 6):
        assert mempool.find(number) == (flight(number), T)
    assert mempool.find(count) is None
    mempool.trim(FLIGHTS_A_RECORD + 5)
    assert house.records() == [FLIGHTS_A_RECORD, 2 * FLIGHTS_A_RECORD]
