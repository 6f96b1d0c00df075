"""What `verify` says of the mempool: each damage is named, and nothing is written."""

import os
from contextlib import closing
from pathlib import Path

import pytest

from backend.base.clock import now_ms
from backend.base.errors import DamagedMempool
from backend.mempool import Checked, check_mempool
from backend.mempool.checks import MARK_MISSING
from backend.mempool.database import FILE_NAME
from backend.mempool.idempotency_keys import IdempotencyKey
from backend.mempool.rebuild import KEYS_FORGOTTEN
from backend.mempool.watermark import Mark
from tests.effort import tries
from tests.flights import flight, flights
from tests.mempool.house import House, T
from tests.mempool.spoiling import PAGE_BYTES, spoil, spoil_key
from tests.submitting import accept_in


def contents(folder: Path) -> dict[str, bytes]:
    """Every file that is not empty, but for what SQLite shares between processes."""
    paths = (path for path in folder.rglob("*") if path.is_file() and path.stat().st_size)
    return {str(path): path.read_bytes() for path in paths if not path.name.endswith("-shm")}


def check(house: House) -> Checked:
    """What a check finds, which changes nothing."""
    before = contents(house.folder)
    try:
        return check_mempool(house.folder, house.chain)
    finally:
        assert contents(house.folder) == before


def written(house: House) -> None:
    """Three batches."""
    with closing(house.mempool()) as mempool:
        for first, count in ((0, 1), (1, 1), (2, 2)):
            accept_in(mempool, flights(count, first), T)


def test_a_sound_mempool_is_counted(house: House) -> None:
    assert check(house) == Checked(0, 0, [])
    written(house)
    assert check(house) == Checked(4, 0, [], 4)
    house.chain.transactions = 3
    assert check(house) == Checked(1, 0, [], 4)


def test_every_flipped_byte_is_named(house: House) -> None:
    written(house)
    data = house.path.read_bytes()
    for at in range(0, len(data), tries(149, exploring=1)):
        house.path.write_bytes(data[:at] + bytes([data[at] ^ 1 << at % 8]) + data[at + 1 :])
        with pytest.raises(DamagedMempool, match=FILE_NAME):
            check(house)
    house.path.write_bytes(data)
    check(house)


@pytest.mark.parametrize("size", [0, 1, 100, PAGE_BYTES - 1, PAGE_BYTES, 2 * PAGE_BYTES + 7])
def test_a_file_that_is_cut_short_is_named(house: House, size: int) -> None:
    written(house)
    os.truncate(house.path, size)
    with pytest.raises(DamagedMempool, match=rf"{FILE_NAME} is damaged: .* repairs it"):
        check(house)


@pytest.mark.parametrize("mined", [0, 4], ids=["pending", "mined"])
def test_a_file_that_is_gone_is_named(house: House, mined: int) -> None:
    written(house)
    house.path.unlink()
    house.chain.transactions = mined
    with pytest.raises(DamagedMempool, match="transactions 0 to 3 were acknowledged and are "):
        check(house)


def test_lost_flights_and_void_entries_are_told(house: House) -> None:
    written(house)
    spoil(house.folder, 1)
    with pytest.raises(DamagedMempool, match="transaction 1 does not agree with its checksum"):
        check(house)
    house.mempool().repair()
    report = check(house)
    assert report.pending == 4
    assert any("1 acknowledged flight is lost, transactions 1 to 1" in line for line in report.lost)
    assert any("damaged-1.sqlite; look at it" in line for line in report.lost)


def test_a_key_that_is_not_as_it_was_written_is_named_and_only_that_one_is_forgotten(
    house: House,
) -> None:
    mempool = house.mempool()
    for number in range(3):
        accept_in(mempool, [flight(number)], now_ms(), key=IdempotencyKey(f"k{number}", "00"))
    house.chain.transactions = 3
    accept_in(mempool, [flight(3)], now_ms())
    mempool.trim(3)
    assert check(house).keys == 3
    spoil_key(house.folder, "k1")
    with pytest.raises(
        DamagedMempool, match=r"the idempotency key k1 does not agree with its checksum"
    ):
        check(house)
    for number in (1, 0, 2):
        key = IdempotencyKey(f"k{number}", "00")
        again = accept_in(mempool, [flight(number)], now_ms(), key=key)
        assert again.first_transaction == (4 if number == 1 else number)
    assert "may be used again" in house.messages[0]
    assert check(house).keys == 3


def test_an_older_copy_is_named_though_blocks_hold_what_it_lacks(house: House) -> None:
    """The keys that came with its flights are gone, and whoever sends them again must know."""
    accept_in(house.mempool(), [flight(0)], T)
    older = house.settle()
    accept_in(house.mempool(), flights(2, 1), T)
    house.settle()
    house.chain.transactions = 3
    assert check(house).lost == []
    house.path.write_bytes(older)
    with pytest.raises(DamagedMempool, match="transactions 1 to 2 were acknowledged and are "):
        check(house)
    accept_in(house.mempool(), [flight(3)], T)
    assert KEYS_FORGOTTEN in house.messages[0]
    assert house.lost() == {}
    assert [line for line in check(house).lost if "damaged-1.sqlite" not in line] == []


def test_after_an_import_nothing_is_missing(house: House) -> None:
    accept_in(house.mempool(), [flight(0)], T)
    house.chain.transactions = 1000
    mempool = house.mempool()
    for number in range(1, 3):
        accept_in(mempool, [flight(number)], T)
        house.chain.transactions = 1000 + number
    assert check(house).lost == []
    assert house.messages == []


def test_a_damaged_mark_is_no_damage_of_the_store(house: House) -> None:
    accept_in(house.mempool(), [flight(0)], T)
    assert house.mark() == Mark(1, 0)
    path = house.folder / "acknowledged.dat"
    path.write_bytes(b"x")
    for _ in range(2):
        report = check(house)
        assert (report.pending, len(report.lost)) == (1, 1)
        assert report.lost[0].startswith(f"{path}: {MARK_MISSING}")
        path.unlink(missing_ok=True)
