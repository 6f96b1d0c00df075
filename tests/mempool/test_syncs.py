"""Durability: nobody is told of what is not on the disk, and a disk that fails or is full."""

import errno
import os
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any
from unittest import mock

import apsw
import pytest

from backend.base import files
from backend.base.errors import DamagedMempool, TryLater, WriteFailed
from backend.mempool import FOLDER, Offer, database, store, syncs
from backend.mempool.idempotency_keys import IdempotencyKey
from backend.mempool.watermark import Mark, Watermark
from backend.storage.layout import MARK_NAME
from tests.api.processes import until
from tests.flights import flight, flights
from tests.mempool.house import (
    WAIT_S,
    House,
    T,
    everything,
    numbered,
)
from tests.submitting import accept_in, run_together

# --- durability ------------------------------------------------------------------------------


def test_a_flight_is_written_and_synced_when_accept_returns(
    house: House, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader that finds only what was synced finds it: the log, as it was at the last sync."""
    synced: dict[str, bytes] = {}
    folders: list[str] = []
    real_sync, real_folder_sync = os.fdatasync, os.fsync

    def sync(descriptor: int) -> None:
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        synced[path.name] = path.read_bytes()
        real_sync(descriptor)

    def sync_folder(descriptor: int) -> None:
        folders.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()))
        real_folder_sync(descriptor)

    monkeypatch.setattr(os, "fdatasync", sync)
    monkeypatch.setattr(os, "fsync", sync_folder)
    mempool = house.mempool()
    for number in range(12):
        accepted = accept_in(mempool, flights(2, 2 * number), T)
        copy = House(tmp_path_factory.mktemp("cut"))
        (copy.folder / FOLDER).mkdir()
        copy.path.write_bytes(house.path.read_bytes())
        copy.log.write_bytes(synced[house.log.name])
        contents = everything(copy.mempool())
        assert contents[-2:] == numbered(accepted.flights, accepted.first_transaction)
        copy.close()
    assert str(house.folder / FOLDER) in folders
    assert str(house.folder) in folders  # the name of the mempool's folder itself


def test_a_reader_that_was_stopped_in_its_middle_is_not_waited_for(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "LOG_BYTES", 30_000)
    mempool = house.mempool()
    accept_in(mempool, flights(2), T)
    with closing(database.connected(house.path)) as stopped:
        cursor = stopped.execute("SELECT * FROM record")
        started = time.monotonic()
        for number in range(2, 60):
            accept_in(mempool, [flight(number)], T)
        assert time.monotonic() - started < 5
        assert house.log.stat().st_size > 100_000
        cursor.close()
    for number in range(60, 80):
        accept_in(mempool, [flight(number)], T)
    assert house.log.stat().st_size < 100_000


@pytest.mark.parametrize("durable", [[True], [False, True], [True, False]])
def test_what_is_offered_together_is_synced_if_one_of_it_must_be(
    house: House, monkeypatch: pytest.MonkeyPatch, durable: list[bool]
) -> None:
    mempool = house.mempool()
    accept_in(mempool, [flight(0)], T)  # the file is there
    durable_bytes: list[int] = []
    monkeypatch.setattr(
        os, "fdatasync", lambda descriptor: durable_bytes.append(os.fstat(descriptor).st_size)
    )
    offers = [Offer([flight(1 + n)], durable=is_durable) for n, is_durable in enumerate(durable)]
    mempool.accept_all(offers, T)
    assert durable_bytes == [house.log.stat().st_size]


def test_a_key_that_comes_again_is_durable_when_it_is_answered(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(syncs, "ASYNC_SYNC_S", WAIT_S)
    mempool, key = house.mempool(), IdempotencyKey("k", "00")
    accept_in(mempool, [flight(0)], T)
    synced: list[int] = []
    monkeypatch.setattr(os, "fdatasync", synced.append)
    assert not accept_in(mempool, [flight(1)], T, durable=False, key=key).is_repeat
    assert not synced
    assert accept_in(mempool, [flight(1)], T, key=key).is_repeat
    assert len(synced) == 1


def test_a_thread_that_the_system_refuses_keeps_no_later_flight_from_the_disk(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(syncs, "ASYNC_SYNC_S", 0.01)
    mempool = house.mempool()
    with monkeypatch.context() as patch, pytest.raises(RuntimeError):
        refused = RuntimeError("can't start new thread")
        patch.setattr(threading.Thread, "start", mock.Mock(side_effect=refused))
        accept_in(mempool, [flight(0)], T, durable=False)
    accept_in(mempool, [flight(1)], T, durable=False)
    until(lambda: house.mark() == Mark(2))


def test_threads_that_wait_for_the_disk_share_its_syncs(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads, sync_s = 32, 0.05
    mempool, reader = house.mempool(), house.mempool()
    accept_in(mempool, [flight(0)], T)  # the file is there
    durable, syncs = [0], [0]
    bounds: dict[int, int] = {}  # id -> ids below which all was durable when it was acknowledged

    def slow_sync(descriptor: int) -> None:
        written = reader.pending_ids().stop
        time.sleep(sync_s)
        durable[0] = max(durable[0], written)
        syncs[0] += 1

    def accept(number: int) -> None:
        accepted = accept_in(mempool, [flight(1 + number)], T)
        bounds[accepted.first_transaction] = durable[0]

    monkeypatch.setattr(os, "fdatasync", slow_sync)
    run_together(threads, accept)
    assert sorted(bounds) == list(range(1, threads + 1))
    assert syncs[0] <= threads // 4
    assert all(below > number for number, below in bounds.items())


# --- a disk that fails -----------------------------------------------------------------------


def test_a_failed_write_poisons_and_leaves_nothing(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    mempool = house.mempool()
    accept_in(mempool, flights(2), T)
    real = mempool._store._run

    def full_at_the_end(sql: str, *values: object) -> apsw.Cursor:
        if sql == "COMMIT":
            raise apsw.FullError("database or disk is full")
        return real(sql, *values)

    with monkeypatch.context() as patch:
        patch.setattr(mempool._store, "_run", full_at_the_end)
        with pytest.raises(WriteFailed, match=r"mempool\.sqlite cannot be written: .*full"):
            accept_in(mempool, flights(3, 2), T)
    with pytest.raises(WriteFailed, match="restart"):
        accept_in(mempool, [flight(9)], T)
    assert everything(mempool) == numbered(flights(2))
    again = house.mempool()
    assert accept_in(again, [flight(5)], T).first_transaction == 2
    assert everything(again) == numbered([*flights(2), flight(5)])
    assert house.messages == []


@pytest.mark.parametrize("call", ["fdatasync", "fsync"])  # of flights; of the new file's name
def test_a_failed_sync_poisons_and_is_not_tried_again(
    house: House, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    mempool, failing = house.mempool(), mock.Mock(side_effect=OSError(errno.EIO, "I/O error"))
    (house.folder / FOLDER).mkdir()
    with monkeypatch.context() as patch:
        patch.setattr(os, call, failing)
        with pytest.raises(WriteFailed, match=r"cannot sync .*: I/O error"):
            accept_in(mempool, flights(2), T)
        with pytest.raises(WriteFailed, match="restart"):
            accept_in(mempool, flights(2), T)
    assert failing.call_count == 1
    with pytest.raises(WriteFailed, match="restart"):
        accept_in(mempool, flights(2), T)
    # Whether it is there or not, it was never acknowledged; a new process goes on.
    again = house.mempool()
    first = accept_in(again, [flight(9)], T).first_transaction
    assert everything(again) == numbered([*flights(2)[:first], flight(9)])


@pytest.mark.parametrize("is_read", [False, True], ids=["", "while a reader is stopped"])
@pytest.mark.parametrize("is_miner", [False, True], ids=["accepts", "trims"])
def test_who_writes_first_after_a_start_relies_on_no_sync_of_before(
    house: House, monkeypatch: pytest.MonkeyPatch, is_miner: bool, is_read: bool
) -> None:
    """After a failed sync the kernel takes the lost bytes for written, and each later sync works.

    What it had not written is zeros after a power cut, and SQLite reads nothing behind them. So the
    log's bytes are written once more.
    """
    failing = house.mempool()
    accept_in(failing, [flight(0)], T)
    with monkeypatch.context() as patch, pytest.raises(WriteFailed):
        patch.setattr(os, "fdatasync", mock.Mock(side_effect=OSError(errno.EIO, "I/O error")))
        accept_in(failing, [flight(1)], T)
    lost_bytes = bytearray(house.log.read_bytes())
    started, log_inode = house.mempool(), house.log.stat().st_ino
    pwrite = os.pwrite

    def noting_pwrite(descriptor: int, data: bytes, offset: int) -> int:
        if os.fstat(descriptor).st_ino == log_inode:
            lost_bytes[offset : offset + len(data)] = b""  # they reach the disk with the next sync
        return pwrite(descriptor, data, offset)

    monkeypatch.setattr(os, "pwrite", noting_pwrite)
    with ExitStack() as stack:
        if is_read:
            reader = stack.enter_context(closing(database.connected(house.path)))
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM record").fetchall()
        if is_miner:
            house.chain.transactions = 1
            started.trim(1)
        else:
            accept_in(started, [flight(2)], T)
        cut = house.copied()
    log = cut.log.read_bytes()
    if log.startswith(lost_bytes[:100]):
        cut.log.write_bytes(bytes(len(lost_bytes)) + log[len(lost_bytes) :])
    cut.log.with_name(f"{cut.path.name}-shm").unlink()
    expected = {0: flight(0), 1: flight(1), 2: flight(2)}
    if is_miner:
        expected = {1: flight(1)}
        cut.chain.transactions = 1
    assert dict(everything(cut.mempool())) == expected
    assert cut.lost() == {}


def test_who_opens_the_log_again_relies_on_no_sync_of_before(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel tells of a failed sync once to each descriptor that was open then."""
    alive = house.mempool()
    accept_in(alive, [flight(0)], T)
    alive._store.close()
    with monkeypatch.context() as patch, pytest.raises(WriteFailed):
        patch.setattr(os, "fdatasync", mock.Mock(side_effect=OSError(errno.EIO, "I/O error")))
        accept_in(house.mempool(), [flight(1)], T)
    unsynced, written = house.log.read_bytes(), list[tuple[bytes, int]]()
    real = files.write_at

    def noting_write_at(descriptor: int, data: bytes, offset: int, path: Path) -> None:
        written.append((data, offset))
        real(descriptor, data, offset, path)

    monkeypatch.setattr(files, "write_at", noting_write_at)
    accept_in(alive, [flight(2)], T)
    assert written == [(unsynced, 0)], "the next sync writes them"


class Kernel:
    """Syncs as Linux does: a failure is reported once to each descriptor that was open then."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.fails = False  # whether the next sync finds that the disk refuses
        self._failures = 0
        self._seen: dict[int, int] = {}  # open descriptor -> failures that it knows of
        self._open, self._dup, self._sync = os.open, os.dup, os.fdatasync
        monkeypatch.setattr(os, "open", self.open)
        monkeypatch.setattr(os, "dup", self.dup)
        monkeypatch.setattr(os, "fdatasync", self.fdatasync)

    def open(self, *arguments: Any, **named: Any) -> int:
        descriptor = self._open(*arguments, **named)
        self._seen[descriptor] = self._failures
        return descriptor

    def dup(self, descriptor: int) -> int:
        self._seen[copy := self._dup(descriptor)] = self._seen[descriptor]
        return copy

    def fdatasync(self, descriptor: int) -> None:
        self._failures += self.fails
        self.fails = False
        if self._seen[descriptor] < self._failures:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        self._sync(descriptor)


def test_a_first_write_is_not_acknowledged_if_somebody_elses_sync_lost_it(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the write and its sync, another process's sync fails, and takes these bytes along."""
    kernel = Kernel(monkeypatch)
    late, other = house.mempool(), house.mempool()
    release = late._id_lock._between_processes.release

    def fail_other() -> None:
        release()
        kernel.fails = True
        with pytest.raises(WriteFailed):
            accept_in(other, [flight(1)], T)

    monkeypatch.setattr(late._id_lock._between_processes, "release", fail_other)
    with pytest.raises(WriteFailed):
        accept_in(late, [flight(0)], T)
    assert house.mark() == Mark()


def test_reading_the_store_anew_before_a_sync_hides_no_sync_that_failed(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another thread has found the store damaged after the write; the log is the same."""
    kernel = Kernel(monkeypatch)
    mempool, other = house.mempool(), house.mempool()
    accept_in(mempool, [flight(0)], T)
    real = mempool._in_sound_store

    def in_sound_store(ask: Callable[[], Any]) -> Any:
        result = real(ask)
        kernel.fails = True
        with pytest.raises(WriteFailed):
            accept_in(other, [flight(2)], T)
        mempool.repair()
        return result

    monkeypatch.setattr(mempool, "_in_sound_store", in_sound_store)
    with pytest.raises(WriteFailed):
        accept_in(mempool, [flight(1)], T)


def test_the_log_of_a_file_that_was_replaced_while_it_was_closed_is_not_synced_any_more(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    mempool, other = house.mempool(), house.mempool()
    accept_in(mempool, [flight(0)], T)
    mempool._store.read_anew()
    house.path.unlink()
    other.repair()  # the flight is in the log alone, and is named as lost
    synced: list[int] = []
    monkeypatch.setattr(os, "fdatasync", lambda opened: synced.append(os.fstat(opened).st_ino))
    accept_in(mempool, [flight(1)], T)
    assert house.log.stat().st_ino in synced


def test_whose_first_post_was_refused_relies_on_no_sync_that_failed_since(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = Kernel(monkeypatch)
    refused, other = house.mempool(mempool_transactions=1), house.mempool()
    with pytest.raises(TryLater, match="mempool is full"):
        accept_in(refused, flights(2), T)
    kernel.fails = True
    with pytest.raises(WriteFailed):
        accept_in(other, [flight(0)], T)
    house.chain.transactions = 1
    with pytest.raises(WriteFailed):
        accept_in(refused, [flight(1)], T)


def test_a_key_used_again_on_a_full_disk_relies_on_no_sync_that_failed_before(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, pwrite = IdempotencyKey("k", "hash"), os.pwrite
    log_writes: list[tuple[int, bytes]] = []
    accept_in(house.mempool(), [flight(9)], T)
    with monkeypatch.context() as patch, pytest.raises(WriteFailed):
        patch.setattr(os, "fdatasync", mock.Mock(side_effect=OSError(errno.EIO, "I/O error")))
        accept_in(house.mempool(), [flight(0)], T, key=key)

    def noting_pwrite(descriptor: int, data: bytes, offset: int) -> int:
        if os.fstat(descriptor).st_ino == house.log.stat().st_ino:
            log_writes.append((offset, bytes(data)))
        return pwrite(descriptor, data, offset)

    lost, free = house.log.read_bytes(), os.statvfs(house.folder)
    with monkeypatch.context() as patch:
        patch.setattr(os, "statvfs", lambda path: mock.Mock(f_bavail=0, f_frsize=free.f_frsize))
        patch.setattr(os, "pwrite", noting_pwrite)
        assert accept_in(house.mempool(), [flight(0)], T, key=key).first_transaction == 1
    assert log_writes == [(0, lost)]


def test_a_failed_sync_fails_everybody_who_had_written_before_it(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a failed sync the kernel reports success for the same bytes: nobody may believe it."""
    threads = 6
    mempool = house.mempool()
    accept_in(mempool, [flight(0)], T)
    reader = house.mempool()
    outcomes: list[str] = []
    calls = [0]

    def fail_once_all_have_written(descriptor: int) -> None:
        calls[0] += 1
        if calls[0] == 1:
            until(lambda: reader.pending_count() == 1 + threads)
            raise OSError(errno.EIO, "Input/output error")

    def accept(number: int) -> None:
        try:
            accept_in(mempool, [flight(1 + number)], T)
        except WriteFailed:
            outcomes.append("failed")
        else:
            outcomes.append("acknowledged")

    monkeypatch.setattr(os, "fdatasync", fail_once_all_have_written)
    run_together(threads, accept)
    assert outcomes == ["failed"] * threads


def test_a_nearly_full_disk_pushes_back_and_harms_nothing(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    mempool = house.mempool()
    accept_in(mempool, [flight(0)], T)
    before = house.log.read_bytes()
    free = os.statvfs(house.folder)
    with monkeypatch.context() as patch:
        patch.setattr(os, "statvfs", lambda path: mock.Mock(f_bavail=1000, f_frsize=free.f_frsize))
        with pytest.raises(TryLater, match="too little room") as raised:
            accept_in(mempool, [flight(1)], T)
        assert raised.value.retry_after_s > 0
    assert house.log.read_bytes() == before
    assert accept_in(mempool, [flight(1)], T).first_transaction == 1


def test_a_log_that_is_full_waits_for_room_on_the_disk(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Copying it into the file would fail, and a write that fails stops a process for good."""
    monkeypatch.setattr(store, "LOG_BYTES", 1)
    mempool = house.mempool()
    accept_in(mempool, [flight(0)], T)
    free = os.statvfs(house.folder)
    with monkeypatch.context() as patch:
        patch.setattr(os, "statvfs", lambda path: mock.Mock(f_bavail=0, f_frsize=free.f_frsize))
        patch.setattr(database, "empty_log", mock.Mock(side_effect=apsw.FullError("disk is full")))
        with pytest.raises(TryLater, match="too little room"):
            accept_in(mempool, [flight(1)], T)
    assert accept_in(mempool, [flight(1)], T).first_transaction == 1


def test_a_full_mempool_pushes_back_until_something_is_mined(house: House) -> None:
    mempool = house.mempool(mempool_transactions=5, mine_interval_s=42)
    accept_in(mempool, flights(4), T)
    before = house.log.read_bytes()
    with pytest.raises(TryLater, match="would have 6 pending transactions") as raised:
        accept_in(mempool, flights(2, 4), T)
    assert raised.value.retry_after_s == 42
    assert house.log.read_bytes() == before
    accept_in(mempool, [flight(4)], T)
    house.chain.transactions = 1
    assert accept_in(mempool, [flight(5)], T).first_transaction == 5
    with pytest.raises(TryLater):
        accept_in(mempool, [flight(6)], T)


# --- accepting without waiting -------------------------------------------------------------------


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Collects the times when data was synced in this process."""
    times: list[float] = []
    fdatasync = os.fdatasync

    def counted(descriptor: int) -> None:
        fdatasync(descriptor)
        times.append(time.monotonic())

    monkeypatch.setattr(os, "fdatasync", counted)
    return times


def test_what_does_not_wait_is_synced_soon_by_one_sync(house: House, synced: list[float]) -> None:
    mempool = house.mempool()
    accept_in(mempool, [flight(0)], T)
    before = len(synced)
    for number in range(1, 50):
        assert accept_in(mempool, [flight(number)], T, durable=False).first_transaction == number
    assert len(synced) == before
    deadline = time.monotonic() + 20
    while len(synced) == before:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    time.sleep(2 * syncs.ASYNC_SYNC_S)
    assert len(synced) == before + 1
    assert not [t for t in threading.enumerate() if t.name == "sync soon"]
    assert everything(house.mempool()) == numbered([flight(i) for i in range(50)])


def test_of_several_that_do_not_wait_the_last_is_synced_in_whatever_order_they_come(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    commit = house.mempool()._commit
    monkeypatch.setattr(commit, "sync", synced.append)
    for written in (2, 3, 1):
        commit.sync_soon(written)
    commit.close()
    assert synced == [3]


def test_closing_syncs_what_did_not_wait(house: House, synced: list[float]) -> None:
    mempool = house.mempool()
    accept_in(mempool, [flight(0)], T, durable=False)
    before = len(synced)
    mempool.close()
    assert len(synced) == before + 1


def test_a_sync_that_fails_later_stops_accepting(
    house: House, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    mempool = house.mempool()
    accept_in(mempool, [flight(0)], T)
    monkeypatch.setattr(os, "fdatasync", mock.Mock(side_effect=OSError(errno.EIO, "I/O error")))
    accept_in(mempool, [flight(1)], T, durable=False)
    mempool.close()
    assert "flights were accepted but may not be on the disk" in caplog.text
    with pytest.raises(WriteFailed):
        accept_in(mempool, [flight(2)], T, durable=False)


def test_what_was_written_is_synced_though_the_store_is_being_read_anew(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between write and sync another thread has found the store damaged, and knows nothing yet."""
    mempool = house.mempool()
    accept_in(mempool, [flight(0)], T)
    synced: list[str] = []
    real_release = mempool._id_lock._between_processes.release

    def read_anew() -> None:
        real_release()
        mempool._store.close()
        monkeypatch.setattr(
            os,
            "fdatasync",
            lambda descriptor: synced.append(Path(f"/proc/self/fd/{descriptor}").readlink().name),
        )

    monkeypatch.setattr(mempool._id_lock._between_processes, "release", read_anew)
    accept_in(mempool, [flight(1)], T)
    assert house.log.name in synced
    assert house.mark() == Mark(2, 0)


def test_what_another_thread_has_forgotten_is_read_again_before_an_id_is_given(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    mempool = house.mempool()
    accept_in(mempool, flights(10), T)
    house.chain.transactions = 4

    def forget() -> bool:
        mempool._store.close()
        return False

    monkeypatch.setattr(mempool._store, "log_is_due", forget)
    assert accept_in(mempool, [flight(10)], T).first_transaction == 10
    assert everything(mempool) == numbered(flights(7, 4), 4)


def test_a_note_that_fails_for_a_while_is_no_end_of_syncing(
    house: House, monkeypatch: pytest.MonkeyPatch, synced: list[float]
) -> None:
    mempool = house.mempool()
    accept_in(mempool, [flight(0)], T)

    def refuse(mark: Mark) -> None:
        raise DamagedMempool("acknowledged.dat belongs to another ledger")

    with monkeypatch.context() as patch:
        patch.setattr(mempool._commit._watermark, "note", refuse)
        before = len(synced)
        accept_in(mempool, [flight(1)], T, durable=False)
        until(lambda: len(synced) > before)
    until(lambda: house.mark() == Mark(2, 0))
    before = len(synced)
    accept_in(mempool, [flight(2)], T, durable=False)
    until(lambda: len(synced) > before)


def test_a_log_that_another_process_made_has_its_name_on_the_disk_before_it_is_acknowledged(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed = house.mempool()
    accept_in(killed, [flight(0)], T)
    (house.folder / MARK_NAME).unlink()
    events: list[str] = []
    real = files.sync_folder

    def sync_folder(folder: Path) -> None:
        events.append(str(folder))
        real(folder)

    monkeypatch.setattr(files, "sync_folder", sync_folder)
    monkeypatch.setattr(Watermark, "note", lambda self, mark: events.append("acknowledged"))
    house.mempool().repair()
    assert events == [str(house.folder / FOLDER), "acknowledged"]


def test_a_folder_that_another_process_made_has_its_name_on_the_disk_too(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    (house.folder / FOLDER).mkdir(parents=True)  # and was killed before it could sync that
    synced = mock.Mock(wraps=files.sync_folder)
    monkeypatch.setattr(files, "sync_folder", synced)
    accept_in(house.mempool(), [flight(0)], T)
    synced.assert_any_call(house.folder)
