"""Idempotency keys, as durable as the flights that they came with."""

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from backend.clock import now_ms
from backend.errors import DamagedMempool, KeyReused
from backend.mempool import FOLDER, Accepted, Offer, check_mempool
from backend.mempool.idempotency_keys import FILE_NAME, KEPT_MS, IdempotencyKey, Keys, KeyUse
from backend.storage import checked_sqlite
from tests.accepting import accept_in
from tests.backup.house import unless_killed_at
from tests.flights import flight, flights
from tests.mempool.house import House, T, everything

KEY = IdempotencyKey("k", "00")


def test_a_key_is_known_in_every_process_and_after_a_restart(house: House) -> None:
    first = accept_in(house.mempool(), flights(3), T, key=KEY)
    again = accept_in(house.mempool(), flights(3), T + 5, key=KEY)
    assert (again.first_transaction, again.timestamp) == (first.first_transaction, first.timestamp)
    assert (first.is_repeat, again.is_repeat) == (False, True)
    assert len(everything(house.mempool())) == 3


def test_a_key_outlives_its_record(house: House) -> None:
    writer = house.mempool()
    accept_in(writer, flights(3), T, key=KEY)
    house.chain.transactions = 3
    accept_in(writer, [flight(9)], T)  # a new segment
    house.mempool().trim(3)
    assert house.segments() == [3]
    for mempool in (writer, house.mempool()):
        assert accept_in(mempool, flights(3), T, key=KEY).first_transaction == 0


def test_a_key_is_in_memory_no_longer_than_its_record_is_in_the_log(house: House) -> None:
    """Not only in the process that removes the record: the others would grow for ever."""
    worker, miner = house.mempool(), house.mempool()
    accept_in(worker, flights(3), T, key=KEY)
    house.chain.transactions = 3
    accept_in(worker, [flight(9)], T)  # a new segment
    miner.trim(3)
    (house.folder / FOLDER / FILE_NAME).write_bytes(b"")  # what is found now is found in memory
    assert not accept_in(worker, flights(3), T, key=KEY).is_repeat


def test_keys_are_forgotten_by_their_newest_use(tmp_path: Path) -> None:
    keys = Keys(tmp_path)
    for text, first in [("again", 0), ("once", 1), ("again", 2), ("last", 3)]:
        keys.add(text, KeyUse("00", first, 1, T))
    expected = {2: ["again", "last"], 3: ["last"], 4: []}
    for below, left in expected.items():
        keys.forget(below)
        known = [t for t in ("again", "once", "last") if keys.find(IdempotencyKey(t, "00"), T)]
        assert known == left


def test_a_key_is_forgotten_after_a_day(house: House) -> None:
    mempool = house.mempool()
    accept_in(mempool, [flight(0)], T, key=KEY)
    assert accept_in(mempool, [flight(0)], T + KEPT_MS, key=KEY).is_repeat
    assert not accept_in(mempool, [flight(0)], T + KEPT_MS + 1, key=KEY).is_repeat


def test_a_key_with_something_else_is_refused_and_nothing_is_accepted(house: House) -> None:
    mempool = house.mempool()
    accept_in(mempool, [flight(0)], T, key=KEY)
    with pytest.raises(KeyReused, match="transaction 0"):
        accept_in(mempool, [flight(1)], T, key=IdempotencyKey("k", "01"))
    assert len(everything(mempool)) == 1


def test_one_of_many_at_once_is_accepted(house: House) -> None:
    mempools = [house.mempool() for _ in range(4)]
    found: list[int] = []

    def accept(which: int) -> None:
        accepted = accept_in(mempools[which % 4], flights(2), T, key=KEY)
        found.append(accepted.first_transaction)

    threads = [threading.Thread(target=accept, args=(i,)) for i in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [0] * 16
    assert len(everything(house.mempool())) == 2


def test_a_record_torn_in_its_key_never_was(house: House) -> None:
    mempool = house.mempool()
    accept_in(mempool, [flight(0)], T)
    size = house.segment().stat().st_size
    accept_in(mempool, flights(2), T, key=KEY)
    mempool.close()
    house.forget_acknowledged()
    os.truncate(house.segment(), size + 40)
    fresh = house.mempool()
    assert not accept_in(fresh, flights(2), T, key=KEY).is_repeat
    assert len(everything(fresh)) == 3


def test_a_damaged_file_of_keys_is_named(house: House) -> None:
    mempool = house.mempool()
    accept_in(mempool, [flight(0)], T)
    (house.folder / FOLDER / FILE_NAME).write_bytes(b"no database" * 100)
    with pytest.raises(DamagedMempool, match=FILE_NAME):
        accept_in(mempool, [flight(1)], T, key=KEY)
    accept_in(mempool, [flight(1)], T)


def test_keys_are_on_the_disk_before_their_record_goes(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    mempool = house.mempool()
    accept_in(mempool, flights(3), T, key=KEY)
    house.chain.transactions = 3
    accept_in(mempool, [flight(9)], T)

    def refuse(*arguments: object) -> None:
        raise apsw.IOError("disk I/O error")

    with monkeypatch.context() as patch:
        patch.setattr(checked_sqlite, "connect", refuse)
        with pytest.raises(DamagedMempool, match="disk I/O error"):
            mempool.trim(3)
    assert house.segments() == [0, 3]
    mempool.trim(3)
    assert house.segments() == [3]


def test_keys_that_cannot_be_read_stand_in_the_way_of_their_own_offer_alone(house: House) -> None:
    mempool = house.mempool()
    accept_in(mempool, [flight(0)], T)
    (house.folder / FOLDER / FILE_NAME).write_bytes(b"no database" * 100)
    offers = [Offer([flight(1)]), Offer([flight(2)], KEY), Offer([flight(3)])]
    first, refused, last = mempool.accept_all(offers, T)
    assert isinstance(first, Accepted)
    assert isinstance(last, Accepted)
    assert (first.first_transaction, last.first_transaction) == (1, 2)
    assert isinstance(refused, DamagedMempool)
    assert FILE_NAME in str(refused)
    assert everything(house.mempool()) == everything(mempool)
    assert mempool.pending_count() == 3


# --- the file of keys ------------------------------------------------------------------------


def use_of(number: int) -> KeyUse:
    return KeyUse(f"{number:064x}", number, 1, T)


def key_of(number: int) -> IdempotencyKey:
    return IdempotencyKey(f"key {number}", use_of(number).body_hash)


def keep(folder: Path, numbers: range) -> None:
    """Keep the keys of these ids, as who removes their records does."""
    keys = Keys(folder)
    for number in numbers:
        keys.add(key_of(number).text, use_of(number))
    keys.keep(numbers.start, numbers.stop, T)


def kept_in(folder: Path, numbers: range) -> list[int]:
    """The ids whose keys are found."""
    found = {number: Keys(folder).find(key_of(number), T) for number in numbers}
    assert all(use in {None, use_of(number)} for number, use in found.items())
    return [number for number, use in found.items() if use]


def of_earlier_release(path: Path, numbers: range, *, has_checksums: bool) -> None:
    """Make a file whose pages have no checksums; some releases had one in each row."""
    names = ["key", "body_hash", "first", "count", "timestamp", *["checksum"] * has_checksums]
    rows = [(key_of(n).text, use_of(n).body_hash, n, 1, T, 1)[: len(names)] for n in numbers]
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            f"CREATE TABLE key_use ({', '.join(names)}, PRIMARY KEY (key)) WITHOUT ROWID"
        )
        marks = ", ".join("?" * len(names))
        connection.executemany(f"INSERT INTO key_use VALUES ({marks})", rows)


def leave_half_done(folder: Path, sql: str) -> None:
    """Change the file in a process that dies before it has come to an end."""
    child = os.fork()
    if not child:
        connection = checked_sqlite.connect(
            (folder / FILE_NAME).as_uri(), apsw.SQLITE_OPEN_READWRITE
        )
        connection.execute("PRAGMA cache_size = 1")  # so that pages are written before the end
        connection.execute(f"BEGIN; {sql}")
        connection.cache_flush()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert (folder / f"{FILE_NAME}-journal").stat().st_size > 0


def flips(path: Path) -> Iterator[str]:
    """Flip bits of a file one after another, and back: all of them, of empty space one in eight."""
    data = path.read_bytes()
    descriptor = os.open(path, os.O_WRONLY)
    try:
        for at, byte in enumerate(data):
            is_empty = not byte and at % 4096 > 120  # heads of pages are none
            for bit in [at % 8] if is_empty else range(8):
                os.pwrite(descriptor, bytes([byte ^ 1 << bit]), at)
                yield f"bit {bit} of byte {at}"
            os.pwrite(descriptor, bytes([byte]), at)
    finally:
        os.close(descriptor)


def test_with_any_bit_flipped_a_key_is_found_or_the_file_is_named(tmp_path: Path) -> None:
    keep(tmp_path, range(3))
    keys = Keys(tmp_path)
    for flip in flips(tmp_path / FILE_NAME):
        try:
            assert keys.find(key_of(1), T) == use_of(1), flip
        except DamagedMempool as error:
            assert FILE_NAME in str(error)


def test_the_check_names_every_flipped_bit(tmp_path: Path) -> None:
    keep(tmp_path, range(3))
    assert Keys(tmp_path).check(T) == 3
    for flip in flips(tmp_path / FILE_NAME):
        with pytest.raises(DamagedMempool, match=FILE_NAME):
            print(flip, Keys(tmp_path).check(T))
    assert Keys(tmp_path).check(T) == 3


def test_what_is_left_of_forgotten_keys_is_checked_too(tmp_path: Path) -> None:
    """A bit in a page that is free now, and that SQLite never reads."""
    keep(tmp_path, range(400))
    data = (tmp_path / FILE_NAME).read_bytes()
    Keys(tmp_path).keep(0, 1, T)
    keys = Keys(tmp_path)
    keys.add("new", KeyUse("00", 400, 1, T + 2 * KEPT_MS))
    keys.keep(400, 401, T + 2 * KEPT_MS)  # all others are forgotten
    path = tmp_path / FILE_NAME
    for page in range(len(data) // 4096):
        with path.open("r+b") as stream:
            stream.seek(4096 * page + 3000)
            byte = stream.read(1)[0]
            for value in (byte ^ 1, byte):
                stream.seek(4096 * page + 3000)
                stream.write(bytes([value]))
                stream.flush()
                if value != byte:
                    with pytest.raises(DamagedMempool, match="does not agree with its checksum"):
                        keys.check(T)
    assert keys.check(T) == 1


@pytest.mark.parametrize("size", [1, 30, 100, 4095, 4096, 8191])
def test_a_file_that_is_cut_short_is_named(tmp_path: Path, size: int) -> None:
    keep(tmp_path, range(3))
    os.truncate(tmp_path / FILE_NAME, size)
    for ask in (lambda: Keys(tmp_path).check(T), lambda: Keys(tmp_path).find(key_of(1), T)):
        with pytest.raises(DamagedMempool, match=FILE_NAME):
            ask()


def test_an_empty_file_holds_no_keys(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).touch()
    keys = Keys(tmp_path)
    assert (keys.find(key_of(1), T), keys.check(T), keys.copy()) == (None, 0, b"")
    keep(tmp_path, range(2))
    assert kept_in(tmp_path, range(3)) == [0, 1]


@pytest.mark.parametrize("has_checksums", [False, True])
def test_a_file_of_an_earlier_release_is_read_and_taken_over(
    tmp_path: Path, has_checksums: bool
) -> None:
    path = tmp_path / FILE_NAME
    of_earlier_release(path, range(200), has_checksums=has_checksums)
    before = path.read_bytes()
    assert kept_in(tmp_path, range(201)) == list(range(200))
    assert (Keys(tmp_path).check(T), Keys(tmp_path).copy()) == (200, before)
    assert path.read_bytes() == before
    keep(tmp_path, range(200, 203))
    assert kept_in(tmp_path, range(204)) == list(range(203))
    assert Keys(tmp_path).check(T) == 203
    with path.open("r+b") as stream:
        stream.seek(4096 + 2000)
        byte = stream.read(1)
        stream.seek(4096 + 2000)
        stream.write(bytes([byte[0] ^ 1]))
    with pytest.raises(DamagedMempool, match="does not agree with its checksum"):
        Keys(tmp_path).check(T)


def test_nobody_loses_keys_by_dying_while_a_file_is_taken_over(tmp_path: Path) -> None:
    for nth in range(1, 100):
        (tmp_path / str(nth)).mkdir()
        of_earlier_release(tmp_path / str(nth) / FILE_NAME, range(50), has_checksums=True)
        _, made = unless_killed_at(nth, lambda nth=nth: keep(tmp_path / str(nth), range(50, 53)))  # type: ignore[misc]
        assert kept_in(tmp_path / str(nth), range(50)) == list(range(50))
        keep(tmp_path / str(nth), range(50, 53))
        assert kept_in(tmp_path / str(nth), range(53)) == list(range(53))
        if len(made) < nth - 1:
            break
    assert made == ["remove", "sync_folder", "sync", "remove", "rename", "sync_folder"]


@pytest.mark.parametrize("is_old", [False, True])
def test_what_was_left_half_done_is_taken_back(tmp_path: Path, is_old: bool) -> None:
    if is_old:
        of_earlier_release(tmp_path / FILE_NAME, range(300), has_checksums=False)
    else:
        keep(tmp_path, range(300))
    leave_half_done(tmp_path, "DELETE FROM key_use")
    assert Keys(tmp_path).find(key_of(7), T) == use_of(7)
    leave_half_done(tmp_path, "DELETE FROM key_use")
    keep(tmp_path, range(300, 301))
    assert kept_in(tmp_path, range(302)) == list(range(301))


def test_what_was_left_half_done_of_a_file_that_is_gone_is_left_alone(tmp_path: Path) -> None:
    keep(tmp_path, range(300))
    leave_half_done(tmp_path, "DELETE FROM key_use")
    (tmp_path / FILE_NAME).unlink()
    keep(tmp_path, range(300, 302))
    assert kept_in(tmp_path, range(303)) == [300, 301]
    assert Keys(tmp_path).check(T) == 2


@pytest.mark.parametrize("is_old", [False, True])
def test_a_copy_has_the_keys_of_the_ids_that_are_wanted(tmp_path: Path, is_old: bool) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.mkdir()
    target.mkdir()
    Keys(source).copy_below(2, target)
    assert (Keys(source).copy(), list(target.iterdir())) == (None, [])
    if is_old:
        of_earlier_release(source / FILE_NAME, range(5), has_checksums=True)
    else:
        keep(source, range(5))
    assert Keys(source).copy() == (source / FILE_NAME).read_bytes()
    Keys(source).copy_below(2, target)
    assert kept_in(target, range(5)) == [0, 1]
    assert b"key 4" not in (target / FILE_NAME).read_bytes()
    assert [path.name for path in target.iterdir()] == [FILE_NAME]


# --- a file that is gone -----------------------------------------------------------------------

MISSING = rf"{FILE_NAME} is missing, so the ledger does not know what was sent with a key"


def without_keys(house: House, accepted_at: int) -> Path:
    """Let a key be kept in the file, and the file be gone; where it was."""
    mempool = house.mempool()
    accept_in(mempool, flights(3), accepted_at, key=KEY)
    house.chain.transactions = 3
    accept_in(mempool, [flight(9)], accepted_at)  # a new segment
    mempool.trim(3)
    path = house.folder / FOLDER / FILE_NAME
    path.unlink()
    return path


def test_a_missing_file_stands_in_the_way_of_keys_alone(house: House) -> None:
    now = now_ms()
    path = without_keys(house, now)
    mempool = house.mempool()
    offers = [Offer([flight(1)]), Offer([flight(2)], KEY), Offer([flight(3)])]
    first, refused, last = mempool.accept_all(offers, now + KEPT_MS)
    assert isinstance(first, Accepted)
    assert isinstance(last, Accepted)
    assert isinstance(refused, DamagedMempool)
    assert str(refused) == (
        f"{path} is missing, so the ledger does not know what was sent with a key in the last day; "
        "restore it, or create an empty file with that name to continue without it"
    )
    assert mempool.not_ready() == [str(refused)]
    with pytest.raises(DamagedMempool, match=MISSING):
        check_mempool(house.folder, house.chain)


def test_no_new_file_hides_that_one_is_missing(house: House) -> None:
    now = now_ms()
    path = without_keys(house, now)
    mempool = house.mempool()
    house.chain.transactions = 4
    path.touch()
    accept_in(mempool, [flight(10)], now, key=IdempotencyKey("later", "00"))
    path.unlink()
    house.chain.transactions = 5
    accept_in(mempool, [flight(11)], now)
    with pytest.raises(DamagedMempool, match=MISSING):
        mempool.trim(5)
    assert not path.exists()
    path.touch()
    mempool.trim(5)
    again = accept_in(mempool, [flight(10)], now, key=IdempotencyKey("later", "00"))
    assert (again.first_transaction, again.is_repeat) == (4, True)


@pytest.mark.parametrize("is_empty", [False, True])
def test_one_goes_on_without_the_file_after_a_day_or_with_an_empty_one(
    house: House, is_empty: bool
) -> None:
    now = now_ms()
    path = without_keys(house, now if is_empty else now - KEPT_MS - 1)
    if is_empty:
        path.touch()
    mempool = house.mempool()
    assert mempool.not_ready() == []
    assert not accept_in(mempool, flights(3), now, key=KEY).is_repeat
    assert check_mempool(house.folder, house.chain).keys == 0


def test_a_key_in_the_log_needs_no_file(house: House) -> None:
    now = now_ms()
    path = without_keys(house, now)
    mempool = house.mempool()
    path.touch()
    assert not accept_in(mempool, flights(2), now, key=KEY).is_repeat
    path.unlink()
    assert accept_in(mempool, flights(2), now, key=KEY).is_repeat
