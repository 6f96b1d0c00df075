"""Damage: what one bit, garbage, a cut or a missing file does to acknowledged flights.

Whatever happens to the log, each acknowledged flight keeps its id and its contents, or is named as
lost and void, with what is left of it kept aside; no id is given twice.
"""

import os
import struct
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress

import msgspec
import pytest

from backend.chain.flight import Flight
from backend.chain.void import VOID
from backend.errors import DamagedMempool, TryLater
from backend.mempool import FOLDER, Mempool, acknowledged, check_mempool, log
from backend.mempool.acknowledged import Acknowledged, Mark
from backend.mempool.idempotency_keys import IdempotencyKey
from backend.mempool.record import HEAD_BYTES
from backend.mempool.segments import aside_in
from backend.settings import Settings
from backend.storage import files
from backend.words import counted
from tests.accepting import accept_in
from tests.flights import flight, flights
from tests.mempool.house import House, T, everything, numbered

BATCHES = [flights(1), flights(1, 1), flights(2, 2)]
ALL = numbered([each for batch in BATCHES for each in batch])
NEW = flight(99)
KEY = IdempotencyKey("k", "00")
LOST = ("acknowledged flight is lost", "acknowledged flights are lost")


def batches_written(house: House) -> tuple[bytes, list[int]]:
    """A log with three batches; its bytes, and where each record ends."""
    mempool = house.mempool()
    ends = []
    for batch in BATCHES:
        accept_in(mempool, batch, T)
        ends.append(house.segment().stat().st_size)
    mempool.close()
    return house.segment().read_bytes(), ends


def restore(house: House, data: bytes, acknowledged_up_to: int | None = len(ALL)) -> None:
    """The log as it was, and nothing beside it. acknowledged_up_to: None if nobody knows."""
    for path in (house.folder / FOLDER).iterdir():
        path.unlink()
    (house.folder / FOLDER / "pending-0000000000000000.log").write_bytes(data)
    (house.folder / acknowledged.NAME).unlink(missing_ok=True)
    if acknowledged_up_to is None:
        return
    with closing(Acknowledged(house.folder)) as mark:
        mark.note(Mark(acknowledged_up_to))


@contextmanager
def opened(house: House) -> Iterator[tuple[Mempool, list[str]]]:
    """One more process's mempool for a moment, and what it reports."""
    said: list[str] = []
    with closing(Mempool(Settings(dir=str(house.folder)), house.chain, said.append)) as mempool:
        yield mempool, said


def without(*batches: int) -> list[tuple[int, Flight]]:
    """All that was accepted, with void entries for these batches."""
    lost = {i for number in batches for i in _ids(number)}
    return [(i, VOID if i in lost else f) for i, f in ALL]


def _ids(batch: int) -> range:
    first = sum(map(len, BATCHES[:batch]))
    return range(first, first + len(BATCHES[batch]))


def hit(ends: list[int], at: int) -> int:
    """The batch in which byte `at` stands."""
    return sum(end <= at for end in ends)


# --- one bit -----------------------------------------------------------------------------------


def test_a_bit_that_flipped_is_put_right_wherever_it_is(house: House) -> None:
    data, _ = batches_written(house)
    for at in range(len(data)):
        damaged = bytearray(data)
        damaged[at] ^= 1 << at % 8
        restore(house, bytes(damaged))
        with opened(house) as (mempool, said):
            assert accept_in(mempool, [NEW], T).first_transaction == len(ALL)
            assert everything(mempool) == [*ALL, (len(ALL), NEW)]
            assert [line.partition(": ")[2] for line in said] == [
                "a bit had flipped on the disk and was repaired; nothing is lost"
            ]
        assert house.segment().read_bytes()[: len(data)] == data
        assert house.lost() == {}


def test_a_bit_that_flips_after_it_was_read_does_no_harm(house: House) -> None:
    data, _ = batches_written(house)
    for at in range(0, len(data), 7):
        restore(house, data)
        with opened(house) as (mempool, said), opened(house) as (miner, _):
            assert mempool.pending_count() == miner.pending_count() == len(ALL)
            damaged = bytearray(data)
            damaged[at] ^= 1 << at % 8
            house.segment().write_bytes(damaged)
            assert [mempool.find(i) for i, _ in ALL] == [(f, T) for _, f in ALL]
            assert len(said) == 1
            assert "a bit has flipped" in said[0]
            assert house.segment().read_bytes() == damaged  # it only read
            assert everything(miner) == ALL
            assert house.segment().read_bytes() == data


def test_a_bit_that_flips_after_it_was_read_is_put_right_by_who_accepts(house: House) -> None:
    data, _ = batches_written(house)
    with opened(house) as (worker, said):
        accept_in(worker, [NEW], T)
        whole = house.segment().read_bytes()
        house.segment().write_bytes(data[:100] + bytes([data[100] ^ 2]) + whole[101:])
        assert accept_in(worker, [flight(0)], T).copies == [0]
        assert house.segment().read_bytes().startswith(whole)
        assert "a bit had flipped on the disk and was repaired" in said[0]


# --- more than a bit ---------------------------------------------------------------------------


def garbage(data: bytes, at: int) -> bytes:
    """`data` with up to five bytes changed."""
    return data[:at] + bytes(byte ^ 0x5A for byte in data[at : at + 5]) + data[at + 5 :]


def test_garbage_costs_the_flights_it_hits_and_no_others(house: House) -> None:
    data, ends = batches_written(house)
    for at in range(len(data) - 5):
        damaged = garbage(data, at)
        batches = sorted({hit(ends, at), hit(ends, at + 4)})
        restore(house, damaged)
        with opened(house) as (mempool, said):
            assert accept_in(mempool, [NEW], T).first_transaction == len(ALL)
            assert everything(mempool) == [*without(*batches), (len(ALL), NEW)]
        ids = [i for batch in batches for i in _ids(batch)]
        start, end = [0, *ends][batches[0]], ends[batches[-1]]
        assert house.lost() == {(ids[0], len(ids)): damaged[start:end]}
        assert f"{counted(len(ids), *LOST)}, transactions {ids[0]} to " in said[0]
        with opened(house) as (fresh, said):
            assert everything(fresh) == [*without(*batches), (len(ALL), NEW)]
            assert said == []


def test_garbage_after_it_was_read_is_met_by_who_seals_and_by_who_accepts(house: House) -> None:
    data, ends = batches_written(house)
    for at in range(0, len(data) - 5, 11):
        batches = sorted({hit(ends, at), hit(ends, at + 4)})
        restore(house, data)
        with opened(house) as (miner, _), opened(house) as (worker, _), opened(house) as (other, _):
            for mempool in (miner, worker, other):
                assert mempool.pending_count() == len(ALL)
            house.segment().write_bytes(garbage(data, at))
            lost = next(iter(_ids(batches[0])))
            with pytest.raises(TryLater, match="is being repaired"):
                other.find(lost)
            assert everything(miner) == without(*batches)
            assert other.find(lost) == (VOID, T)
            assert accept_in(worker, [flight(0)], T).first_transaction == len(ALL)
            for mempool in (miner, worker, other):
                assert everything(mempool) == [*without(*batches), (len(ALL), flight(0))]


def test_who_only_accepts_puts_right_what_it_looks_up(house: House) -> None:
    batches_written(house)
    with opened(house) as (worker, _):
        accept_in(worker, [NEW], T)
        house.segment().write_bytes(garbage(house.segment().read_bytes(), 100))
        assert accept_in(worker, [flight(0)], T).copies == [None]  # the first one is lost
        assert everything(worker) == [*without(0), (4, NEW), (5, flight(0))]


def test_readers_neither_forget_nor_deny_while_nobody_has_put_it_right(house: House) -> None:
    data, _ = batches_written(house)
    for at in range(0, len(data) - 5, 3):
        restore(house, garbage(data, at))
        before = house.segment().read_bytes()
        with opened(house) as (reader, _):
            for look in (reader.pending_count, lambda: reader.find(3)):
                with pytest.raises(TryLater, match="is being repaired"):
                    look()
            assert any("is being repaired" in reason for reason in reader.not_ready())
        assert house.segment().read_bytes() == before
        assert house.lost() == {}


def test_it_is_not_ready_until_somebody_has_looked_at_what_was_lost(house: House) -> None:
    data, _ = batches_written(house)
    restore(house, garbage(data, 0))
    with opened(house) as (mempool, _):
        accept_in(mempool, [NEW], T)
        (reason,) = mempool.not_ready()
        assert "1 acknowledged flight is lost, transactions 0 to 0" in reason
        assert "post them again" in reason
        (house.folder / FOLDER / "lost-0-1.bin").rename(house.folder / "seen.bin")
        assert mempool.not_ready() == []


def test_what_is_kept_is_never_overwritten(house: House) -> None:
    data, _ = batches_written(house)
    (house.folder / FOLDER / "lost-0-1.bin").write_bytes(b"of another time")
    house.segment().write_bytes(garbage(data, 0))
    with opened(house) as (mempool, _):
        mempool.put_right()
        assert len(mempool.not_ready()) == 2
    assert (house.folder / FOLDER / "lost-0-1.bin").read_bytes() == b"of another time"
    kept = (house.folder / FOLDER / "lost-0-1.2.bin").read_bytes()
    assert garbage(data, 0).startswith(kept)


def test_a_key_of_lost_flights_may_be_used_again_in_every_process(house: House) -> None:
    worker, other = house.mempool(), house.mempool()
    accept_in(worker, flights(2), T, key=KEY)
    accept_in(other, [flight(7)], T)
    house.segment().write_bytes(garbage(house.segment().read_bytes(), 70))
    house.mempool().put_right()
    again = accept_in(worker, flights(2), T, key=KEY)
    assert (again.first_transaction, again.is_repeat) == (3, False)
    assert accept_in(other, flights(2), T, key=KEY).is_repeat


# --- cut and removed ---------------------------------------------------------------------------


def test_cut_at_any_byte_acknowledged_flights_are_named_as_lost(house: House) -> None:
    data, ends = batches_written(house)
    for size in range(len(data)):
        restore(house, data[:size])
        whole = hit(ends, size)
        with opened(house) as (reader, _), pytest.raises(TryLater, match="is being repaired"):
            reader.pending_count()
        with opened(house) as (mempool, said):
            assert accept_in(mempool, [NEW], T).first_transaction == len(ALL)
            assert everything(mempool) == [*without(*range(whole, 3)), (len(ALL), NEW)]
            assert len(said) == 1
        first = _ids(whole)[0]
        assert house.lost() == {(first, len(ALL) - first): data[[0, *ends][whole] : size]}


def test_cut_at_any_byte_what_nobody_was_told_of_never_was(house: House) -> None:
    data, ends = batches_written(house)
    for size in range(len(data) + 1):
        restore(house, data[:size], acknowledged_up_to=0)
        whole = hit(ends, size)
        expected = numbered([f for batch in BATCHES[:whole] for f in batch])
        with opened(house) as (reader, _):
            assert everything(reader) == expected
            assert reader.pending_count() == len(expected)
        assert house.segment().stat().st_size == size or whole < 3
        with opened(house) as (mempool, _):
            assert accept_in(mempool, [NEW], T).first_transaction == len(expected)
            assert everything(mempool) == [*expected, (len(expected), NEW)]
        assert house.lost() == {}


def test_a_log_that_shrinks_under_those_who_have_read_it_is_noticed(house: House) -> None:
    data, ends = batches_written(house)
    for size in (0, 5, ends[0], ends[1] - 1, ends[1], len(data) - 1):
        restore(house, data)
        with opened(house) as (worker, _), opened(house) as (reader, _):
            assert worker.pending_count() == reader.pending_count() == len(ALL)
            os.truncate(house.segment(), size)
            with pytest.raises(TryLater):
                reader.pending_count()
            assert accept_in(worker, [NEW], T).first_transaction == len(ALL)
            expected = [*without(*range(hit(ends, size), 3)), (len(ALL), NEW)]
            assert everything(worker) == everything(reader) == expected


SETS_OF_SEGMENTS = [[0], [1], [2], [0, 1], [1, 2], [0, 2], [0, 1, 2]]


@pytest.mark.parametrize("are_open", [False, True])
@pytest.mark.parametrize("removed", SETS_OF_SEGMENTS)
def test_a_removed_segment_is_noticed_and_its_flights_are_named(
    house: House, monkeypatch: pytest.MonkeyPatch, removed: list[int], are_open: bool
) -> None:
    monkeypatch.setattr(log, "SEGMENT_BYTES", 1)
    batches_written(house)
    assert house.segments() == [0, 1, 2]
    worker, reader = house.mempool(), house.mempool()
    if are_open:
        assert everything(worker) == everything(reader) == ALL
    for first in removed:
        house.segment(first).unlink()
    with pytest.raises(TryLater, match="is being repaired"):
        reader.pending_count()
    assert accept_in(worker, [NEW], T).first_transaction == len(ALL)
    for mempool in (worker, reader, house.mempool()):
        assert everything(mempool) == [*without(*removed), (len(ALL), NEW)]
    assert sum(flights for _, flights in house.lost()) == sum(len(BATCHES[b]) for b in removed)


@pytest.mark.parametrize("which", [0, 1, 2])
def test_a_segment_that_another_file_has_replaced_is_read_again_by_everybody(
    house: House, monkeypatch: pytest.MonkeyPatch, which: int
) -> None:
    monkeypatch.setattr(log, "SEGMENT_BYTES", 1)
    batches_written(house)
    worker, reader = house.mempool(), house.mempool()
    assert everything(worker) == everything(reader) == ALL
    other = house.folder / "other"
    other.write_bytes(garbage(house.segment(which).read_bytes(), 70))
    other.rename(house.segment(which))
    with pytest.raises(TryLater, match="is being repaired"):
        reader.find(next(iter(_ids(which))))
    assert everything(worker) == everything(reader) == without(which)


def test_a_removed_folder_is_noticed(house: House) -> None:
    batches_written(house)
    (house.folder / FOLDER).rename(house.folder / "taken")
    reader, worker = house.mempool(), house.mempool()
    with pytest.raises(TryLater, match="transactions 0 to 3 were acknowledged and are missing"):
        reader.pending_count()
    assert accept_in(worker, [NEW], T).first_transaction == len(ALL)
    assert everything(reader) == [*without(0, 1, 2), (len(ALL), NEW)]


@pytest.mark.parametrize("damage", ["garbage", "cut", "flip"])
@pytest.mark.parametrize("which", [0, 1, 2])
def test_damage_in_any_of_several_segments_costs_what_it_hits(
    house: House, monkeypatch: pytest.MonkeyPatch, which: int, damage: str
) -> None:
    monkeypatch.setattr(log, "SEGMENT_BYTES", 1)
    batches_written(house)
    readers = [house.mempool(), house.mempool()]
    assert everything(readers[0]) == ALL
    data = house.segment(which).read_bytes()
    flipped = data[:90] + bytes([data[90] ^ 8]) + data[91:]
    changed = {"garbage": garbage(data, 70), "cut": data[:-1], "flip": flipped}[damage]
    house.segment(which).write_bytes(changed)
    expected = ALL if damage == "flip" else without(which)
    assert everything(readers[0]) == everything(house.mempool()) == expected
    assert accept_in(readers[1], [NEW], T).first_transaction == len(ALL)


# --- what is mined -----------------------------------------------------------------------------


@pytest.mark.parametrize("is_read", [False, True])
def test_damage_where_all_is_mined_costs_a_message(house: House, is_read: bool) -> None:
    data, ends = batches_written(house)
    house.chain.transactions = len(ALL)
    for at in range(0, len(data) - 5, 5):
        restore(house, data)
        with opened(house) as (worker, said):
            if is_read:
                assert worker.pending_count() == 0
            house.segment().write_bytes(garbage(data, at))
            assert accept_in(worker, [NEW], T).first_transaction == len(ALL)
            assert everything(worker) == [(len(ALL), NEW)]
            assert is_read or "blocks hold what" in said[0]
        assert house.lost() == {}
        if not is_read:
            first = _ids(hit(ends, at))[0]
            (kept,) = aside_in(house.folder / FOLDER)
            assert kept.name == f"damaged-{first}.bin"
            assert garbage(data, at)[at : at + 5] in kept.read_bytes()


def test_what_the_newest_block_holds_is_kept_aside_and_told_by_verify(house: House) -> None:
    """That block may be torn, though nobody has noticed yet."""
    data, ends = batches_written(house)
    house.chain.transactions = len(ALL)
    damaged = garbage(garbage(data, 80), ends[1] + 80)
    restore(house, damaged)
    with opened(house) as (worker, said):
        accept_in(worker, [NEW], T)
        assert worker.not_ready() == []
    kept = aside_in(house.folder / FOLDER)
    assert [path.name for path in kept] == ["damaged-0.bin", "damaged-2.bin"]
    assert [path.read_bytes() for path in kept] == [damaged[: ends[0]], damaged[ends[1] :]]
    assert all(any(str(path) in line for line in said) for path in kept)
    told = check_mempool(house.folder, house.chain).lost
    assert [str(path) in line for path, line in zip(kept, told, strict=True)] == [True, True]


def test_damage_across_the_tip_costs_only_what_is_not_mined(house: House) -> None:
    data, _ = batches_written(house)
    house.chain.transactions = 3
    restore(house, data[:4])
    with opened(house) as (worker, _):
        assert accept_in(worker, [NEW], T).first_transaction == len(ALL)
        assert everything(worker) == [(3, VOID), (4, NEW)]
    assert house.lost() == {(3, 1): data[:4]}


def test_a_missing_segment_does_no_harm_if_the_chain_has_its_transactions(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log, "SEGMENT_BYTES", 1)
    batches_written(house)
    house.segment(1).unlink()
    house.chain.transactions = 2
    assert everything(house.mempool()) == ALL[2:]
    assert house.lost() == {}


def test_a_chain_that_lost_blocks_is_named_and_nothing_is_made_void(house: House) -> None:
    house.chain.transactions = 10
    mempool = house.mempool()
    accept_in(mempool, flights(2), T)
    house.chain.transactions = 8
    for asked in (mempool, house.mempool()):
        for ask in (asked.pending_count, asked.oldest_pending_at, asked.put_right):
            with pytest.raises(DamagedMempool, match=r"ends at transaction 7, .* held 10 .* copy"):
                ask()
        with pytest.raises(DamagedMempool, match="lost blocks"):
            asked.pending(10)
        with pytest.raises(DamagedMempool, match="lost blocks"):
            accept_in(asked, [NEW], T)
        assert any("lost blocks" in reason for reason in asked.not_ready())
    house.chain.transactions = 10  # the copy has them
    assert everything(mempool) == everything(house.mempool()) == numbered(flights(2), 10)


def test_a_chain_that_lost_blocks_is_named_though_the_mempool_is_gone(house: House) -> None:
    house.chain.transactions = 10
    accept_in(house.mempool(), flights(2), T)
    (house.folder / FOLDER).rename(house.folder / "taken")
    house.chain.transactions = 8
    with pytest.raises(DamagedMempool, match="lost blocks"):
        accept_in(house.mempool(), [NEW], T)


def test_a_torn_tip_is_mined_again_from_the_log_by_who_had_forgotten_it(house: House) -> None:
    batches_written(house)
    mempool = house.mempool()
    house.chain.transactions = 4
    assert mempool.pending_count() == 0
    house.chain.transactions = 2
    assert mempool.pending_count() == 2
    assert everything(mempool) == ALL[2:]


def test_what_a_torn_tip_held_is_found_by_who_had_forgotten_it(house: House) -> None:
    batches_written(house)
    mempool = house.mempool()
    house.chain.transactions = 4
    assert mempool.pending_count() == 0
    assert mempool.find(2) is None
    house.chain.transactions = 2
    assert [mempool.find(number) for number, _ in ALL[2:]] == [(f, T) for _, f in ALL[2:]]


# --- dying meanwhile ---------------------------------------------------------------------------


@pytest.mark.parametrize("call", ["write_new", "remove", "write_at", "sync", "cut"])
def test_whoever_dies_while_putting_it_right_leaves_it_to_the_next(
    house: House, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    class Dead(BaseException):
        pass

    def dying(real: Callable[..., None], nth: int) -> Callable[..., None]:
        left = [nth]

        def die(*arguments: object, **more: object) -> None:
            left[0] -= 1
            if left[0] < 0:
                raise Dead
            real(*arguments, **more)

        return die

    data, ends = batches_written(house)
    flipped = bytes([data[0] ^ 1]) + data[1:]
    for damaged in (garbage(data, 100), garbage(data, ends[1]), flipped, data + b"torn"):
        restore(house, damaged)
        with opened(house) as (mempool, _):
            mempool.put_right()
            expected, lost = everything(mempool), house.lost()
        for nth in range(6):
            restore(house, damaged)
            with opened(house) as (mempool, _), monkeypatch.context() as patch:
                patch.setattr(files, call, dying(getattr(files, call), nth))
                with suppress(Dead):
                    mempool.put_right()
            with opened(house) as (mempool, _):
                assert accept_in(mempool, [NEW], T).first_transaction == len(ALL)
                assert everything(mempool) == [*expected, (len(ALL), NEW)]
            assert house.lost() == lost


def test_what_was_put_right_does_not_come_back_when_its_maker_died(house: House) -> None:
    data, _ = batches_written(house)
    house.segment().write_bytes(garbage(data, 100))
    with opened(house) as (mempool, _):
        mempool.put_right()
        (house.folder / FOLDER / "pending-0000000000000000.log").write_bytes(garbage(data, 100))
        house.chain.transactions = len(ALL)
        accept_in(mempool, [NEW], T)
        mempool.trim(len(ALL))
    assert [path.name for path in (house.folder / FOLDER).glob("pending*")] == [
        "pending-0000000000000004.log"
    ]


# --- how far is acknowledged -------------------------------------------------------------------


@pytest.mark.parametrize("how", ["missing", "damaged", "short", "long"])
def test_a_lost_mark_alone_is_made_anew_and_said(house: House, how: str) -> None:
    batches_written(house)
    path = house.folder / acknowledged.NAME
    data = path.read_bytes()
    path.unlink()
    if how != "missing":
        harmed = {"damaged": b"x" + data[1:], "short": data[:-1], "long": data + b"x"}
        path.write_bytes(harmed[how])
    with opened(house) as (mempool, said):
        assert everything(mempool) == ALL
        with mempool.exclusive():
            pass
        with closing(Acknowledged(house.folder)) as mark:
            assert mark.read() == Mark(len(ALL))
        assert len(said) == 1
        assert "acknowledged.dat was missing or damaged" in said[0]


def test_without_a_mark_a_record_at_the_end_may_have_been_acknowledged(house: House) -> None:
    data, ends = batches_written(house)
    for at in range(ends[1], len(data)):
        restore(house, data[:at] + b"\x5a" * (len(data) - at), acknowledged_up_to=None)
        with opened(house) as (mempool, said):
            given = accept_in(mempool, [NEW], T).first_transaction
            if at - ends[1] >= HEAD_BYTES - 16:  # the head says which ids there were
                assert given == len(ALL)
                assert everything(mempool) == [*without(2), (len(ALL), NEW)]
                assert len(house.lost()[2, 2]) == len(data) - ends[1]
                assert "2 acknowledged flights are lost, transactions 2 to 3" in said[0]
            else:
                (kept,) = aside_in(house.folder / FOLDER)
                assert kept.name == "perhaps-acknowledged-2.bin"
                assert len(kept.read_bytes()) == len(data) - ends[1]
                assert str(kept) in said[0]
                assert given == 2
                assert house.lost() == {}
            assert "nobody knows whether the data there was acknowledged" in said[0]


@pytest.mark.parametrize("is_old", [False, True])
def test_without_a_mark_a_torn_record_costs_its_ids(house: House, is_old: bool) -> None:
    """As it is when an earlier release, which wrote no mark, is followed by this one."""
    if is_old:
        (house.folder / FOLDER).mkdir()
        data = old_record(0, BATCHES[0]) + old_record(1, BATCHES[1]) + old_record(2, BATCHES[2])
    else:
        data, _ = batches_written(house)
    restore(house, data[:-4], acknowledged_up_to=None)
    with pytest.raises(DamagedMempool, match="bytes are not a record"):
        check_mempool(house.folder, house.chain)
    with opened(house) as (mempool, _):
        assert accept_in(mempool, [NEW], T).first_transaction == len(ALL)
        assert everything(mempool) == [*without(2), (len(ALL), NEW)]
    assert data.endswith(house.lost()[2, 2] + data[-4:])


def test_without_a_mark_several_damaged_records_cost_all_their_ids(house: House) -> None:
    data, ends = batches_written(house)
    damaged = garbage(garbage(data, ends[0] + 80), ends[1] + 80)
    restore(house, damaged, acknowledged_up_to=None)
    with opened(house) as (mempool, _):
        assert accept_in(mempool, [NEW], T).first_transaction == len(ALL)
        assert everything(mempool) == [*without(1, 2), (len(ALL), NEW)]
    assert house.lost() == {(1, 3): damaged[ends[0] :]}


def test_without_a_mark_a_head_that_cannot_be_is_not_believed(house: House) -> None:
    data, ends = batches_written(house)
    count_at = ends[1] + HEAD_BYTES - 20
    absurd = data[:count_at] + b"\xff\xff\xff\x7f" + data[count_at + 4 :]
    restore(house, absurd, acknowledged_up_to=None)
    with opened(house) as (mempool, _):
        assert accept_in(mempool, [NEW], T).first_transaction == 2
        assert everything(mempool) == [*ALL[:2], (2, NEW)]
    (kept,) = aside_in(house.folder / FOLDER)
    assert (kept.name, kept.read_bytes()) == ("perhaps-acknowledged-2.bin", absurd[ends[1] :])


def test_without_a_mark_what_blocks_hold_is_not_lost(house: House) -> None:
    data, ends = batches_written(house)
    house.chain.transactions = len(ALL)
    restore(house, data[:-4], acknowledged_up_to=None)
    with opened(house) as (mempool, said):
        assert accept_in(mempool, [NEW], T).first_transaction == len(ALL)
        assert everything(mempool) == [(len(ALL), NEW)]
        assert "blocks hold what it held" in said[0]
    (kept,) = aside_in(house.folder / FOLDER)
    assert (kept.name, kept.read_bytes()) == ("damaged-2.bin", data[ends[1] : -4])


def test_the_mark_follows_the_sync_and_never_goes_back(house: House) -> None:
    mark = Acknowledged(house.folder)
    one, other = house.mempool(), house.mempool()
    accept_in(one, flights(2), T)
    assert mark.read() == Mark(2, newest_below=1)
    accept_in(other, flights(3), T, durable=False)
    assert mark.read() == Mark(2, newest_below=1)
    other.close()  # syncs
    assert mark.read() == Mark(5, newest_below=1)
    mark.note(Mark(3, 1))
    assert mark.read() == Mark(5, 1, newest_below=1)
    mark.close()


def test_a_new_chain_has_nothing_to_say(house: House) -> None:
    accept_in(house.mempool(), [NEW], T)
    assert house.messages == []


# --- records of earlier releases ---------------------------------------------------------------


def old_record(first: int, batch: list[Flight]) -> bytes:
    payload = msgspec.json.encode(batch)
    content = struct.pack("<QIQ", first, len(batch), T) + payload
    return struct.pack("<4sII", b"FCM1", len(payload), zlib.crc32(content)) + content


def test_what_an_earlier_release_left_pending_is_there(house: House) -> None:
    (house.folder / FOLDER).mkdir()
    data = old_record(0, BATCHES[0]) + old_record(1, BATCHES[1])
    house.segment().write_bytes(data)
    with opened(house) as (mempool, said):
        assert everything(mempool) == ALL[:2]
        assert accept_in(mempool, BATCHES[2], T).first_transaction == 2
        assert everything(mempool) == ALL
        assert said == ["acknowledged.dat is new in this release, and has been made from the log"]
    damaged = garbage(house.segment().read_bytes(), 50)
    house.segment().write_bytes(damaged)
    with opened(house) as (mempool, said):
        assert everything(mempool) == without(0)
    assert house.lost() == {(0, 1): damaged[: len(old_record(0, BATCHES[0]))]}


@pytest.mark.parametrize("how", ["damaged", "missing behind a record of this release"])
def test_a_mark_that_was_there_after_an_upgrade_is_missed(house: House, how: str) -> None:
    (house.folder / FOLDER).mkdir()
    house.segment().write_bytes(old_record(0, BATCHES[0]))
    if how == "damaged":
        (house.folder / acknowledged.NAME).write_bytes(b"?")
    else:
        accept_in(house.mempool(), BATCHES[1], T)
        (house.folder / acknowledged.NAME).unlink()
    with opened(house) as (mempool, said):
        with mempool.exclusive():
            pass
        assert len(said) == 1
        assert "if the log's end was lost before, nobody can tell" in said[0]


def test_a_bit_that_flipped_in_a_record_of_an_earlier_release_is_put_right(house: House) -> None:
    (house.folder / FOLDER).mkdir()
    data = old_record(0, BATCHES[0]) + old_record(1, BATCHES[1]) + old_record(2, BATCHES[2])
    for at in range(len(data)):
        restore(house, data[:at] + bytes([data[at] ^ 1 << at % 8]) + data[at + 1 :], None)
        with opened(house) as (mempool, said):
            assert accept_in(mempool, [NEW], T).first_transaction == len(ALL)
            assert everything(mempool) == [*ALL, (len(ALL), NEW)]
            assert "there is no hash that would prove them" in said[0]
        assert house.segment().read_bytes()[: len(data)] == data


def test_what_only_looks_like_one_flipped_bit_is_not_put_right(house: House) -> None:
    """The checksum agrees after a flip, but then there is no such flight, or not that many."""
    (house.folder / FOLDER).mkdir()
    for batch, count in ((BATCHES[2], 3), ([(*flight(1)[:-1], "x")], 1), ([flight(1)[:-1]], 1)):
        payload = msgspec.json.encode(batch)
        content = struct.pack("<QIQ", 0, count, T) + payload
        wrong_crc = zlib.crc32(content) ^ 1
        data = struct.pack("<4sII", b"FCM1", len(payload), wrong_crc) + content
        restore(house, data, None)
        with opened(house) as (mempool, _):
            accept_in(mempool, [NEW], T)
        assert house.lost() == {(0, count): data}
