"""The log: its segments, and how fast it is read. What damage does is in `test_damage`."""

import os
import time
import tracemalloc
from pathlib import Path

import pytest

from backend.mempool import FOLDER, log
from backend.mempool.record import packed
from tests.accepting import accept_in
from tests.flights import flight, flights
from tests.mempool.house import House, T, everything, numbered

# --- segments --------------------------------------------------------------------------------


def test_a_full_segment_is_followed_by_another_and_all_are_read(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log, "SEGMENT_BYTES", 2000)
    mempool, follower = house.mempool(), house.mempool()
    for number in range(60):
        accept_in(mempool, [flight(number)], T)
        assert follower.pending_count() == number + 1
    assert len(house.segments()) == 6
    for first in house.segments()[:-1]:
        assert 2000 <= house.segment(first).stat().st_size < 2500
    assert everything(house.mempool()) == everything(follower) == numbered(flights(60))
    assert house.mempool().pending(7)[-1].first_transaction == 6


def test_trimming_removes_segments_below_and_nothing_else(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log, "SEGMENT_BYTES", 2000)
    mempool = house.mempool()
    for number in range(0, 60, 2):
        accept_in(mempool, flights(2, number), T)
    before = house.segments()
    for below in range(61):
        house.chain.transactions = below
        mempool.trim(below)
        assert house.segments() == [
            first
            for first, following in zip(before, [*before[1:], 10**9], strict=True)
            if following > below
        ]
        assert everything(house.mempool()) == numbered(flights(60 - below, below), below)
    mempool.trim(10**6)
    assert house.segments() == before[-1:]


def test_mined_segments_are_left_behind_so_that_the_log_stays_short(house: House) -> None:
    mempool = house.mempool()
    for turn in range(10):
        accept_in(mempool, flights(3), T)
        house.chain.transactions = 3 * turn + 3
        mempool.trim(3 * turn)  # what is below the tip
    assert house.segments() == [27]


def test_mined_segments_are_closed_by_who_looks_at_what_is_pending(house: House) -> None:
    mempool, follower = house.mempool(), house.mempool()
    for turn in range(10):
        accept_in(mempool, flights(3), T)
        assert mempool.pending_count() == follower.pending_count() == 3
        house.chain.transactions = 3 * turn + 3
        mempool.trim(3 * turn + 3)
    assert mempool.pending_count() == follower.pending_count() == 0
    assert len(house.descriptors()) == 2


def test_a_process_that_only_accepts_lets_go_of_removed_segments(house: House) -> None:
    accepter, miner = house.mempool(), house.mempool()
    for turn in range(20):
        accept_in(accepter, flights(3), T)
        house.chain.transactions = 3 * turn + 3
        miner.trim(3 * turn + 3)
        miner.pending_count()
    deleted = [target for target in house.descriptors() if target.endswith("(deleted)")]
    assert len(deleted) <= 2


def test_a_mined_batch_does_not_stay_in_memory(house: House) -> None:
    mempool, count = house.mempool(), 2000
    accept_in(mempool, flights(count), T)
    tracemalloc.start()
    try:
        empty, _ = tracemalloc.get_traced_memory()
        assert mempool.find(count - 1) == (flight(count - 1), T)
        read, _ = tracemalloc.get_traced_memory()
        house.chain.transactions = count
        assert mempool.pending_count() == 0
        mined, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert mined - empty < (read - empty) / 10


def test_after_an_import_a_new_segment_continues_behind_its_transactions(house: House) -> None:
    mempool, follower = house.mempool(), house.mempool()
    accept_in(mempool, flights(2), T)
    assert follower.pending_count() == 2
    house.chain.transactions = 1002
    assert accept_in(mempool, flights(3, 2), T).first_transaction == 1002
    assert house.segments() == [0, 2]  # named after the last id before, so that none is missing
    for asked in (mempool, follower, house.mempool()):
        assert everything(asked) == numbered(flights(3, 2), 1002)
        assert asked.find(1003) == (flight(3), T)
        assert asked.find(1001) is None


def test_a_segment_that_was_begun_and_never_written_does_no_harm(house: House) -> None:
    accept_in(house.mempool(), flights(2), T)
    house.chain.transactions = 50
    house.segment(50).touch()  # its maker died
    house.chain.transactions = 80
    mempool = house.mempool()
    assert mempool.pending_count() == 0
    assert accept_in(mempool, [flight(7)], T).first_transaction == 80
    assert everything(house.mempool()) == [(80, flight(7))]


def test_reading_makes_no_files(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    accept_in(house.mempool(), flights(2), T)
    house.chain.transactions = 2
    trimmer = house.mempool()
    accept_in(trimmer, flights(2), T)
    assert house.segments() == [0, 2]
    real, oldest = os.listdir, house.segment(0)

    def list_then_trim(path: Path) -> list[str]:
        names = real(path)
        oldest.unlink(missing_ok=True)
        return names

    with monkeypatch.context() as patch:
        patch.setattr(os, "listdir", list_then_trim)
        assert house.mempool().pending_count() == 2
    assert house.segments() == [2]


def test_many_pending_flights_are_read_in_a_moment(house: House) -> None:
    (house.folder / FOLDER).mkdir()
    count = 16_000
    records = [packed(number, T, [flight(number)]) for number in range(count)]
    house.segment().write_bytes(b"".join(records))
    start = time.process_time()
    assert house.mempool().pending_count() == count
    assert time.process_time() - start < 1  # whatever else the machine does
