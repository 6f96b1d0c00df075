"""Finding equal pending flights."""

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
