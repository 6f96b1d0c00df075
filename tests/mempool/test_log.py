"""The log: torn ends, damage, segments, and how fast it is read."""

import os
import time
import tracemalloc
from contextlib import closing
from pathlib import Path

import pytest

from backend.errors import DamagedMempool
from backend.mempool import FOLDER, Mempool, log
from backend.mempool.record import packed
from backend.settings import Settings
from tests.flights import flight, flights
from tests.mempool.house import House, T, everything, numbered

# --- the log: torn ends and damage -----------------------------------------------------------

BATCHES = [flights(1), flights(1, 1), flights(2, 2)]


def batches_written(house: House) -> tuple[bytes, list[int]]:
    """A log with three batches; its bytes, and where each record ends."""
    mempool = house.mempool()
    ends = []
    for batch in BATCHES:
        mempool.accept(batch, T)
        ends.append(house.segment().stat().st_size)
    return house.segment().read_bytes(), ends


@pytest.mark.usefixtures("instant_disk")
def test_cut_at_any_byte_a_batch_is_whole_or_absent(house: House) -> None:
    data, ends = batches_written(house)
    for size in range(len(data) + 1):
        house.segment().write_bytes(data[:size])
        whole = sum(end <= size for end in ends)
        expected = numbered([f for batch in BATCHES[:whole] for f in batch])
        with closing(Mempool(Settings(dir=str(house.folder)), house.chain, print)) as reader:
            assert everything(reader) == expected
            assert reader.pending_count() == len(expected)
        assert house.segment().stat().st_size == size  # readers cut nothing off

        messages: list[str] = []
        with closing(
            Mempool(Settings(dir=str(house.folder)), house.chain, messages.append)
        ) as accepter:
            accepted = accepter.accept([flight(99)], T)
            assert accepted.first_transaction == len(expected)
            assert everything(accepter) == [*expected, (len(expected), flight(99))]
        left_over = size - ([0, *ends][whole])
        assert len(messages) == (left_over > 0)
        assert all(f"incomplete record of {left_over} bytes" in line for line in messages)


@pytest.mark.usefixtures("instant_disk")
def test_a_flipped_byte_before_a_whole_record_is_damage_and_stays_as_it_is(house: House) -> None:
    data, ends = batches_written(house)
    for at in range(ends[1]):
        damaged = bytearray(data)
        damaged[at] ^= 1 << at % 8
        house.segment().write_bytes(damaged)
        with (
            closing(Mempool(Settings(dir=str(house.folder)), house.chain, print)) as accepter,
            pytest.raises(DamagedMempool, match=r"pending-0+\.log, byte \d+: a damaged record"),
        ):
            accepter.accept([flight(99)], T)
        assert house.segment().read_bytes() == bytes(damaged)


def test_a_torn_record_before_a_later_segment_is_damage_for_everybody(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log, "SEGMENT_BYTES", 1)
    mempool = house.mempool()
    for batch in BATCHES:
        mempool.accept(batch, T)
    assert house.segments() == [0, 1, 2]
    house.segment(1).write_bytes(house.segment(1).read_bytes()[:-1])
    with pytest.raises(DamagedMempool, match="later segments"):
        house.mempool().pending_count()
    with pytest.raises(DamagedMempool, match="later segments"):
        house.mempool().accept([flight(9)], T)


def test_a_missing_segment_is_damage_unless_the_chain_has_its_transactions(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log, "SEGMENT_BYTES", 1)
    mempool = house.mempool()
    for batch in BATCHES:
        mempool.accept(batch, T)
    house.segment(1).unlink()
    with pytest.raises(DamagedMempool, match="transactions 1 to 1 are missing"):
        house.mempool().pending_count()
    house.chain.transactions = 2
    assert everything(house.mempool()) == numbered(BATCHES[2], 2)


def test_a_chain_that_lost_blocks_is_named_as_damage(house: House) -> None:
    house.chain.transactions = 10
    mempool = house.mempool()
    mempool.accept(flights(2), T)
    house.chain.transactions = 8
    for asked in (mempool, house.mempool()):
        with pytest.raises(DamagedMempool, match=r"ends at transaction 7, .* is 10"):
            asked.pending(10)
        with pytest.raises(DamagedMempool, match="ends at transaction 7"):
            asked.pending_count()


def test_a_record_that_changes_after_it_was_found_is_never_handed_out(house: House) -> None:
    mempool = house.mempool()
    mempool.accept(flights(2), T)
    data = bytearray(house.segment().read_bytes())
    at = data.index(b"Washington")
    data[at] ^= 1
    house.segment().write_bytes(data)
    with pytest.raises(DamagedMempool):
        mempool.pending(10)


# --- segments --------------------------------------------------------------------------------


@pytest.mark.usefixtures("instant_disk")
def test_a_full_segment_is_followed_by_another_and_all_are_read(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log, "SEGMENT_BYTES", 2000)
    mempool, follower = house.mempool(), house.mempool()
    for number in range(60):
        mempool.accept([flight(number)], T)
        assert follower.pending_count() == number + 1
    assert len(house.segments()) == 5
    for first in house.segments()[:-1]:
        assert 2000 <= house.segment(first).stat().st_size < 2500
    assert everything(house.mempool()) == everything(follower) == numbered(flights(60))
    assert house.mempool().pending(7)[-1].first_transaction == 6


@pytest.mark.usefixtures("instant_disk")
def test_trimming_removes_segments_below_and_nothing_else(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log, "SEGMENT_BYTES", 2000)
    mempool = house.mempool()
    for number in range(0, 60, 2):
        mempool.accept(flights(2, number), T)
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


@pytest.mark.usefixtures("instant_disk")
def test_mined_segments_are_left_behind_so_that_the_log_stays_short(house: House) -> None:
    mempool = house.mempool()
    for turn in range(10):
        mempool.accept(flights(3), T)
        house.chain.transactions = 3 * turn + 3
        mempool.trim(3 * turn)  # what is below the tip
    assert house.segments() == [27]


@pytest.mark.usefixtures("instant_disk")
def test_mined_segments_are_closed_by_who_looks_at_what_is_pending(house: House) -> None:
    mempool, follower = house.mempool(), house.mempool()
    for turn in range(10):
        mempool.accept(flights(3), T)
        assert mempool.pending_count() == follower.pending_count() == 3
        house.chain.transactions = 3 * turn + 3
        mempool.trim(3 * turn + 3)
    assert mempool.pending_count() == follower.pending_count() == 0
    assert len(house.descriptors()) == 2


@pytest.mark.usefixtures("instant_disk")
def test_a_process_that_only_accepts_lets_go_of_removed_segments(house: House) -> None:
    accepter, miner = house.mempool(), house.mempool()
    for turn in range(20):
        accepter.accept(flights(3), T)
        house.chain.transactions = 3 * turn + 3
        miner.trim(3 * turn + 3)
        miner.pending_count()
    deleted = [target for target in house.descriptors() if target.endswith("(deleted)")]
    assert len(deleted) <= 2


@pytest.mark.usefixtures("instant_disk")
def test_a_mined_batch_does_not_stay_in_memory(house: House) -> None:
    mempool, count = house.mempool(), 2000
    mempool.accept(flights(count), T)
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


def test_after_an_import_a_new_segment_begins_behind_its_transactions(house: House) -> None:
    mempool, follower = house.mempool(), house.mempool()
    mempool.accept(flights(2), T)
    assert follower.pending_count() == 2
    house.chain.transactions = 1002
    assert mempool.accept(flights(3, 2), T).first_transaction == 1002
    assert house.segments() == [0, 1002]
    for asked in (mempool, follower, house.mempool()):
        assert everything(asked) == numbered(flights(3, 2), 1002)
        assert asked.find(1003) == (flight(3), T)
        assert asked.find(1001) is None


def test_a_segment_that_was_begun_and_never_written_does_no_harm(house: House) -> None:
    house.mempool().accept(flights(2), T)
    house.chain.transactions = 50
    house.segment(50).touch()  # its maker died
    house.chain.transactions = 80
    mempool = house.mempool()
    assert mempool.pending_count() == 0
    assert mempool.accept([flight(7)], T).first_transaction == 80
    assert everything(house.mempool()) == [(80, flight(7))]


def test_reading_makes_no_files(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    house.mempool().accept(flights(2), T)
    house.chain.transactions = 2
    trimmer = house.mempool()
    trimmer.accept(flights(2), T)
    assert house.segments() == [0, 2]
    real = os.listdir

    def list_then_trim(path: Path) -> list[str]:
        names = real(path)
        house.segment(0).unlink(missing_ok=True)
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
    start = time.monotonic()
    assert house.mempool().pending_count() == count
    assert time.monotonic() - start < 1
