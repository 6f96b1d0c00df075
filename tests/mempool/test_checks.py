"""What `verify` says of the mempool: each damage is named, and nothing is written."""

import os
from contextlib import closing
from pathlib import Path

import pytest

from backend.errors import DamagedMempool
from backend.mempool import FOLDER, Checked, check_mempool, log
from backend.mempool.acknowledged import Acknowledged, Mark
from backend.mempool.checks import MARK_MISSING
from backend.mempool.idempotency_keys import KEPT_MS, IdempotencyKey
from backend.mempool.salvage import SEGMENTS_MISSING
from tests.accepting import accept_in
from tests.flights import flight, flights
from tests.mempool.house import House, T

KEY = IdempotencyKey("k", "00")


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def check(house: House) -> Checked:
    """What a check finds, which changes nothing."""
    before = contents(house.folder)
    try:
        return check_mempool(house.folder, house.chain)
    finally:
        assert contents(house.folder) == before


def written(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three batches in segments of their own."""
    monkeypatch.setattr(log, "SEGMENT_BYTES", 1)
    with closing(house.mempool()) as mempool:
        for first, count in ((0, 1), (1, 1), (2, 2)):
            accept_in(mempool, flights(count, first), T)


def test_a_sound_mempool_is_counted(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    assert check(house) == Checked(0, 0, 0, [])
    written(house, monkeypatch)
    assert check(house) == Checked(4, 0, 0, [])
    house.chain.transactions = 3
    assert check(house) == Checked(1, 0, 0, [])


def test_every_flipped_bit_and_every_cut_is_named(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(house, monkeypatch)
    for first in house.segments():
        path = house.segment(first)
        data = path.read_bytes()
        for at in range(len(data)):
            path.write_bytes(data[:at] + bytes([data[at] ^ 1 << at % 8]) + data[at + 1 :])
            with pytest.raises(DamagedMempool, match=rf"{path}, byte 0: a bit of the record has"):
                check(house)
            path.write_bytes(data[:at])
            with pytest.raises(DamagedMempool, match="repairs it"):
                check(house)
        path.write_bytes(data)
    check(house)


@pytest.mark.parametrize("removed", [0, 1, 2])
def test_a_removed_segment_is_named_unless_it_is_mined(
    house: House, monkeypatch: pytest.MonkeyPatch, removed: int
) -> None:
    written(house, monkeypatch)
    house.segment(removed).unlink()
    with pytest.raises(DamagedMempool, match=f"acknowledged transactions {removed} to "):
        check(house)
    house.chain.transactions = 4
    assert check(house).pending == 0


def test_what_is_just_being_written_is_no_damage(house: House) -> None:
    accept_in(house.mempool(), [flight(0)], T)
    with house.segment().open("ab") as stream:
        stream.write(b"FCM2 and so on")
    assert check(house).pending == 1


def test_lost_flights_and_void_entries_are_told(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(house, monkeypatch)
    os.truncate(house.segment(2), 10)
    with closing(house.mempool()) as mempool:
        mempool.put_right()
    found = check(house)
    assert (found.pending, found.void) == (4, 2)
    assert "2 acknowledged flights are lost, transactions 2 to 3" in found.lost[0]
    house.chain.transactions = 3
    assert check(house).void == 1


def test_a_chain_that_lost_blocks_is_named(house: House) -> None:
    house.chain.transactions = 10
    accept_in(house.mempool(), [flight(0)], T)
    house.chain.transactions = 8
    with pytest.raises(DamagedMempool, match="the chain has lost blocks"):
        check(house)


def test_keys_are_read_one_by_one(house: House) -> None:
    mempool = house.mempool()
    accept_in(mempool, [flight(0)], T, key=KEY)
    house.chain.transactions = 1
    accept_in(mempool, [flight(1)], T)
    mempool.trim(1)
    assert check(house).keys == 1
    path = house.folder / FOLDER / "keys.sqlite"
    data = path.read_bytes()
    at = data.index(b"00", data.rindex(b"k"))
    path.write_bytes(data[:at] + b"01" + data[at + 2 :])
    with pytest.raises(DamagedMempool, match=r"keys\.sqlite .* checksum"):
        check(house)


@pytest.mark.parametrize("which", [0, 1, -1])
def test_a_segment_that_is_missing_is_named_though_blocks_hold_its_flights(
    house: House, which: int
) -> None:
    """The keys that came with its flights are gone, and whoever sends them again must know."""
    for number in range(3):
        accept_in(house.mempool(), [flight(number)], T)
        house.chain.transactions = number + 1
    assert check(house).lost == []
    house.segment(house.segments()[which]).unlink()
    assert check(house).lost == [f"{house.folder / FOLDER}: {SEGMENTS_MISSING}"]
    later = house.mempool()
    for number in range(3, 5):
        accept_in(later, [flight(number)], T)
    assert house.messages == [f"{house.folder / FOLDER}: {SEGMENTS_MISSING}"]
    later.trim(4)
    assert check(house).lost == []


def test_after_an_import_no_segment_is_missing(house: House) -> None:
    accept_in(house.mempool(), [flight(0)], T)
    house.chain.transactions = 1000
    mempool = house.mempool()
    for number in range(1, 3):
        accept_in(mempool, [flight(number)], T)
        house.chain.transactions = 1000 + number
    assert check(house).lost == []
    assert house.messages == []


def test_a_damaged_mark_is_no_damage_of_the_log(house: House) -> None:
    accept_in(house.mempool(), [flight(0)], T)
    with closing(Acknowledged(house.folder)) as mark:
        assert mark.read() == Mark(1, newest_below=1)
    path = house.folder / "acknowledged.dat"
    path.write_bytes(b"x")
    for _ in range(2):
        found = check(house)
        assert (found.pending, len(found.lost)) == (1, 1)
        assert found.lost[0].startswith(f"{path}: {MARK_MISSING}")
        path.unlink(missing_ok=True)


def test_a_clock_that_is_not_set_forgets_no_keys(house: House) -> None:
    mempool = house.mempool()
    accept_in(mempool, [flight(0)], T, key=KEY)
    assert accept_in(house.mempool(), [flight(0)], 1000, key=KEY).is_repeat


def test_a_key_of_a_clock_that_had_leapt_is_over(house: House) -> None:
    mempool = house.mempool()
    leap = 10 * 365 * KEPT_MS
    accept_in(mempool, [flight(0)], T + leap, key=KEY)
    assert accept_in(mempool, [flight(0)], T + leap, key=KEY).is_repeat
    assert not accept_in(mempool, [flight(0)], T, key=KEY).is_repeat
