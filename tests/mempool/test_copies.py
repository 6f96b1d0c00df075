"""Finding equal pending flights."""

import time

from backend.mempool import FOLDER
from backend.mempool.record import packed
from tests.flights import flight
from tests.mempool.house import House, T


def test_equal_pending_flights_are_found_until_they_are_mined(house: House) -> None:
    writer, reader = house.mempool(), house.mempool()
    writer.accept([flight(0), flight(1), flight(1)], T)
    asked = [flight(1), flight(7), flight(0)]
    for mempool in (reader, writer):
        assert mempool.copies_of(asked) == [1, None, 0]
    writer.accept([flight(7)], T)
    assert reader.copies_of(asked) == [1, 3, 0]
    house.chain.transactions = 3
    assert reader.copies_of(asked) == [None, 3, None]


def test_what_a_flight_costs_does_not_depend_on_how_many_are_pending(house: House) -> None:
    (house.folder / FOLDER).mkdir()
    count, times = 16_000, 200
    records = [packed(number, T, [flight(number)]) for number in range(count)]
    house.segment().write_bytes(b"".join(records))
    mempool = house.mempool()
    assert mempool.copies_of([flight(count - 1)]) == [count - 1]
    start = time.process_time()
    for _ in range(times):
        mempool.copies_of([flight(count)])
        mempool.pending_count()
    assert time.process_time() - start < 0.5
