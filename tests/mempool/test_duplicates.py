"""Finding equal pending flights."""

import threading
import time

from backend.mempool import FOLDER, Accepted, Mempool, Offer
from backend.mempool.database import write_file
from backend.mempool.records import records_of
from tests.flights import flight, flights
from tests.mempool.house import House, T
from tests.submitting import accept_in


def copies_of(mempool: Mempool, *numbers: int) -> list[int | None]:
    """Accept flights in one offer; returns the oldest equal record of each."""
    return ids_in(accept_in(mempool, [flight(number) for number in numbers], T))


def ids_in(accepted: Accepted) -> list[int | None]:
    """Returns the id of the oldest record of each flight; None where there was none."""
    return [records[0].transaction_id if records else None for records in accepted.records]


def test_equal_pending_flights_are_found_until_they_are_mined(house: House) -> None:
    writer, reader = house.mempool(), house.mempool()
    assert copies_of(writer, 0, 1, 1) == [None, None, None]
    assert copies_of(reader, 1, 7, 0) == [1, None, 0]
    assert copies_of(writer, 7, 8) == [4, None]
    house.chain.transactions = 3  # the index finds those in blocks, and later ones are pending
    assert copies_of(reader, 0, 1, 7, 8) == [5, 3, 4, 7]
    house.chain.transactions = 12
    assert copies_of(writer, 7, 8) == [None, None]


def test_equal_flights_are_found_among_those_that_are_offered_together(house: House) -> None:
    offers = [Offer([flight(0)]), Offer([flight(1), flight(0)]), Offer([flight(0)])]
    outcomes = house.mempool().accept_all(offers, T)
    copies = [ids_in(outcome) for outcome in outcomes if isinstance(outcome, Accepted)]
    assert copies == [[None], [None, 0], [0]]


def test_many_pending_flights_are_read_in_a_moment_and_others_cost_no_more_for_them(
    house: House,
) -> None:
    (house.folder / FOLDER).mkdir()
    count, times = 16_000, 200
    write_file(house.path, "", (r for n in range(count) for r in records_of(n, T, [flight(n)])), {})
    start = time.process_time()
    mempool = house.mempool()
    assert mempool.pending_count() == count
    assert time.process_time() - start < 1  # whatever else the machine does
    assert copies_of(mempool, count - 1) == [count - 1]
    start = time.process_time()
    for number in range(times):
        copies_of(mempool, count + number)
        mempool.pending_count()
    assert time.process_time() - start < 0.5


def test_a_batch_that_is_posted_twice_is_compared_in_a_moment(house: House) -> None:
    """Each flight is looked up in the batch, which is not read again for each."""
    mempool, count = house.mempool(), 20_000
    batch = Offer(flights(count))
    mempool.accept_all([batch], T)
    start = time.process_time()
    (again,) = mempool.accept_all([batch], T)
    assert time.process_time() - start < 1
    assert isinstance(again, Accepted)
    assert ids_in(again) == list(range(count))


def test_who_compares_many_flights_lets_others_use_the_mempool_meanwhile(house: House) -> None:
    """Anybody may ask for that: a dry run needs no token."""
    mempool, many = house.mempool(), flights(20_000)
    mempool.accept_all([Offer(many)], T)
    records: list[object] = []
    comparing = threading.Thread(target=lambda: records.extend(mempool.records_of(many)))
    start = time.perf_counter()
    comparing.start()
    waits_s = []
    while comparing.is_alive():
        asked = time.perf_counter()
        mempool.pending_count()
        waits_s.append(time.perf_counter() - asked)
    # In one piece it would be nearly all of the time; other programs may take some of it.
    assert max(waits_s) < (time.perf_counter() - start) * 2 / 3
    assert len(records) == 20_000
