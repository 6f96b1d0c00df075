"""The folder that commit ffce160 wrote, `last_release/`, is read once and is one file then.

It holds three mined flights of which the key "trimmed" is kept, two mined ones that were removed,
four pending ones with the key "in the log", and five single ones, in three segments.
"""

import re
import shutil
import zlib
from pathlib import Path

import pytest

from backend.base import files
from backend.base.errors import DamagedMempool, TryLater
from backend.chain.flight import Flight
from backend.mempool import FOLDER, check_mempool
from backend.mempool.database import FILE_NAME
from backend.mempool.idempotency_keys import IdempotencyKey
from backend.storage.layout import BACKUP_NAME, MARK_NAME
from tests.dying import killed_at
from tests.flights import flight, flights
from tests.mempool.house import House, T, everything, numbered
from tests.submitting import accept_in

MADE = Path(__file__).parent / "last_release"
MINED, ALL = 5, 14
PENDING = numbered(flights(ALL - MINED, MINED), MINED)


@pytest.fixture
def old(house: House) -> House:
    shutil.copytree(MADE, house.folder, dirs_exist_ok=True)
    house.chain.transactions = MINED
    return house


def segments(house: House) -> list[Path]:
    return sorted((house.folder / FOLDER).glob("pending-*.log"))


def test_flights_keep_their_ids_and_keys_are_known(old: House) -> None:
    assert len(segments(old)) == 3
    mempool = old.mempool()
    with pytest.raises(TryLater, match="of the last release, and is not converted yet"):
        mempool.pending_count()
    assert accept_in(mempool, [flight(ALL)], T + 60).first_transaction == ALL
    assert everything(mempool) == [*PENDING, (ALL, flight(ALL))]
    assert [part.timestamp for part in mempool.pending(5)] == [T + 2, T + 9]
    for text, first, count in (("trimmed", 0, 3), ("in the log", MINED, 4)):
        key = IdempotencyKey(text, "ab" * 32)
        again = accept_in(mempool, flights(count, first), T + 70, key=key)
        assert (again.first_transaction, again.is_repeat) == (first, True)
    (message,) = old.messages
    assert "the mempool of the last release was converted into one file" in message
    names = {path.name for path in (old.folder / FOLDER).iterdir()}
    assert {name.removesuffix("-wal").removesuffix("-shm") for name in names} == {FILE_NAME}


def test_a_ledger_whose_flights_were_all_imported_misses_no_mempool(house: House) -> None:
    """The last release counted imported flights as acknowledged, and made no file for them."""
    house.chain.transactions = MINED
    numbers = MINED.to_bytes(8, "little") * 2 + bytes(24)
    mark = numbers + zlib.crc32(numbers).to_bytes(4, "little")
    (house.folder / MARK_NAME).write_bytes(mark)
    assert check_mempool(house.folder, house.chain).lost == []
    assert house.mempool().pending_count() == 0
    assert accept_in(house.mempool(), [flight(MINED)], T).first_transaction == MINED
    assert (house.messages, house.lost()) == ([], {})


@pytest.mark.parametrize("call", ["remove", "rename", "sync_folder"])
def test_whoever_dies_on_the_way_leaves_the_rest_to_the_next(old: House, call: str) -> None:
    for nth in range(1, 13):
        with killed_at(nth, files, [call]):
            old.mempool().repair()
    mempool = old.mempool()
    assert accept_in(mempool, [flight(ALL)], T + 60).first_transaction == ALL
    assert everything(mempool) == [*PENDING, (ALL, flight(ALL))]
    assert old.lost() == {}
    names = {path.name for path in (old.folder / FOLDER).iterdir()}
    assert {name.removesuffix("-wal").removesuffix("-shm") for name in names} == {FILE_NAME}


def test_verify_reads_it_as_it_is_and_says_what_will_become_of_it(old: House) -> None:
    before = {path: path.read_bytes() for path in old.folder.rglob("*.*")}
    report = check_mempool(old.folder, old.chain)
    assert (report.pending, report.keys) == (ALL - MINED, 2)
    assert report.lost[0].endswith("the next process that accepts or mines flights converts it")
    assert {path: path.read_bytes() for path in old.folder.rglob("*.*")} == before
    (old.folder / MARK_NAME).rename(old.folder / BACKUP_NAME)
    words = "a backup is not changed; after `.*restore`, the next process .* converts it$"
    assert re.search(words, check_mempool(old.folder, old.chain, has_mark=False).lost[0])
    with pytest.raises(TryLater, match=words):
        old.mempool().pending_count()


@pytest.mark.parametrize("at", [30, 100])
def test_what_follows_damage_in_a_segment_is_named_as_lost(old: House, at: int) -> None:
    newest = segments(old)[-1]
    data = newest.read_bytes()
    assert len(data) > at
    newest.write_bytes(data[:at] + b"garbage" + data[at + 7 :])
    assert accept_in(old.mempool(), [flight(ALL)], T + 60).first_transaction == ALL
    ((first, count),) = old.lost()
    assert first + count == ALL
    assert everything(old.mempool())[: first - MINED] == PENDING[: first - MINED]
    assert list((old.folder / FOLDER).glob("damaged-*.bin"))


def test_a_missing_segment_is_named(old: House) -> None:
    segments(old)[-1].unlink()
    accept_in(old.mempool(), [flight(ALL)], T + 60)
    assert old.lost()
    assert "lost" in " ".join(old.messages)


def test_keys_that_cannot_be_read_are_said_to_be_forgotten(old: House) -> None:
    (old.folder / FOLDER / "keys.sqlite").write_bytes(b"no database" * 100)
    mempool = old.mempool()
    accept_in(mempool, [flight(ALL)], T + 60)
    assert everything(mempool)[:-1] == PENDING
    assert "keys of the last day may be used again" in old.messages[0]


def test_files_that_the_last_release_wrote_later_are_named_refused_and_kept(old: House) -> None:
    """Somebody has gone back to the last release, and forward again."""
    accept_in(old.mempool(), [flight(ALL)], T + 60)
    ours = old.settle()
    shutil.copytree(MADE, old.folder, dirs_exist_ok=True)
    for whole in (ours, b""):
        old.path.write_bytes(whole)
        before = files_of_both(old)
        assert len(before) == 5
        mempool = old.mempool()
        words = (
            r"has 4 files of the last release beside mempool\.sqlite \(keys.*, pending.*Nothing.*"
            r"same ids to different flights\. Move mempool\.sqlite and its -wal away.*"
            r"`sqlite3 .* FROM record'` lists"
        )
        for ask in (mempool.pending_count, mempool.repair, mempool.snapshot):
            with pytest.raises(DamagedMempool, match=words):
                ask()
        with pytest.raises(DamagedMempool, match=words):
            accept_in(mempool, [flight(ALL)], T + 70)
        with pytest.raises(DamagedMempool, match=words):
            check_mempool(old.folder, old.chain)
        assert any("keys.sqlite" in reason for reason in mempool.not_ready())
        mempool.close()
        assert files_of_both(old) == before
    old.path.unlink()
    assert everything_after_repair(old)[: len(PENDING)] == PENDING


def files_of_both(house: House) -> dict[Path, bytes]:
    folder = house.folder / FOLDER
    names = [*segments(house), folder / "keys.sqlite", house.path]
    return {path: path.read_bytes() for path in names}


def everything_after_repair(house: House) -> list[tuple[int, Flight]]:
    mempool = house.mempool()
    mempool.repair()
    return everything(mempool)
