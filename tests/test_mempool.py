"""The mempool: ids, durability, the log and its damage, several processes, and a model of all."""

import errno
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from backend import mempool as module
from backend.chain.flight import Flight
from backend.errors import DamagedMempool, TryLater, WriteFailed
from backend.mempool import FOLDER, Accepted, Mempool, segment_name
from backend.settings import PROJECT, Settings
from tests.flights import flight, flights

WAIT_S = 30
T = 1_700_000_000_000  # acceptance times, UTC milliseconds


class Chain:
    """As much of a chain as a mempool sees: how many transactions the blocks hold."""

    def __init__(self, transactions: int = 0) -> None:
        self.transactions = transactions

    def __call__(self) -> int:
        return self.transactions


@pytest.fixture
def instant_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Syncs return at once: for tests that open many logs and cut no power."""
    monkeypatch.setattr(os, "fdatasync", lambda descriptor: None)
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


class House:
    """A folder with a chain, and as many mempools on it as are asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.chain = Chain()
        self.messages: list[str] = []
        self._opened: list[Mempool] = []

    def mempool(self, chain: Callable[[], int] | None = None, **chosen: float) -> Mempool:
        """One more mempool on the folder, as another process has it."""
        settings = Settings(dir=str(self.folder), **chosen)  # type: ignore[arg-type]
        opened = Mempool(settings, chain or self.chain, self.messages.append)
        self._opened.append(opened)
        return opened

    def close(self) -> None:
        for opened in self._opened:
            opened.close()

    def segment(self, first: int = 0) -> Path:
        return self.folder / FOLDER / segment_name(first)

    def segments(self) -> list[int]:
        """The first ids of the segments on disk."""
        names = [path.name for path in (self.folder / FOLDER).glob("pending-*")]
        return sorted(int(name.removeprefix("pending-").removesuffix(".log")) for name in names)

    def links(self) -> list[Path]:
        """The descriptors of this process that point into the folder, as in /proc."""
        found = []
        for link in Path("/proc/self/fd").iterdir():
            with suppress(OSError):  # the descriptor that lists this very folder
                if str(link.readlink()).startswith(str(self.folder)):
                    found.append(link)
        return found

    def descriptors(self) -> list[str]:
        """What descriptors of this process point at in the folder."""
        return [str(link.readlink()) for link in self.links()]


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    opened = House(tmp_path)
    yield opened
    opened.close()
    assert opened.descriptors() == []


def listed(parts: list[Accepted]) -> list[tuple[int, Flight]]:
    """Id and flight of everything in `parts`."""
    return [(part.first_transaction + i, f) for part in parts for i, f in enumerate(part.flights)]


def everything(mempool: Mempool) -> list[tuple[int, Flight]]:
    return listed(mempool.pending(10**9))


def numbered(many: list[Flight], first: int = 0) -> list[tuple[int, Flight]]:
    return list(enumerate(many, first))


def run_together(count: int, work: Callable[[int], None]) -> None:
    """Run `work` in so many threads that begin at the same moment; all must end."""
    start = threading.Barrier(count)

    def run(number: int) -> None:
        start.wait(WAIT_S)
        work(number)

    threads = [threading.Thread(target=run, args=(n,)) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_S)
        assert not thread.is_alive()


def eventually(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)


# --- ids -------------------------------------------------------------------------------------


def test_ids_go_on_from_the_chain_and_from_each_other(house: House) -> None:
    house.chain.transactions = 7
    mempool = house.mempool()
    assert [mempool.accept(flights(n), T).first_transaction for n in (1, 3, 2)] == [7, 8, 11]
    assert mempool.pending_count() == 6


ACCEPTING = """
import json, sys, threading
from backend.mempool import Mempool
from backend.settings import Settings
from tests.flights import flights

folder, process, threads, times = sys.argv[1], *map(int, sys.argv[2:])
mempool = Mempool(Settings(dir=folder), lambda: 0, print)
receipts = []

def work(thread):
    for turn in range(times):
        serial = ((process * threads + thread) * times + turn) * 10
        accepted = mempool.accept(flights(1 + turn % 3, serial), 0)
        receipts.append([accepted.first_transaction, serial, 1 + turn % 3])

print("ready", flush=True)
sys.stdin.readline()
running = [threading.Thread(target=work, args=(n,)) for n in range(threads)]
[thread.start() for thread in running]
[thread.join() for thread in running]
mempool.close()
print(json.dumps(receipts))
"""


def test_threads_of_several_processes_share_ids_without_gap_or_double(house: House) -> None:
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", ACCEPTING, str(house.folder), str(number), "4", "12"],
            cwd=PROJECT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(3)
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    receipts: list[list[int]] = []
    with ExitStack() as stack:
        for process in processes:
            stack.enter_context(process)
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        for process in processes:
            receipts += json.loads(process.communicate(timeout=WAIT_S)[0])
            assert process.returncode == 0
    assert len(receipts) == 3 * 4 * 12
    found = everything(house.mempool())
    assert [transaction_id for transaction_id, _ in found] == list(range(3 * 4 * 24))
    for first, serial, count in receipts:
        assert found[first : first + count] == numbered(flights(count, serial), first)


def test_acceptance_time_never_goes_back(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SEGMENT_BYTES", 500)  # a new segment every time or so
    one, other = house.mempool(), house.mempool()
    times = [one.accept([flight(0)], T).timestamp, other.accept([flight(1)], T - 5).timestamp]
    times += [one.accept([flight(2)], T + 1).timestamp, one.accept([flight(3)], T - 9).timestamp]
    times += [house.mempool().accept([flight(4)], 0).timestamp]
    assert times == [T, T, T + 1, T + 1, T + 1]
    assert [part.timestamp for part in house.mempool().pending(9)] == times
    assert len(house.segments()) > 1


# --- durability ------------------------------------------------------------------------------


def test_a_flight_is_written_and_synced_when_accept_returns(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    durable: dict[int, int] = {}  # inode -> bytes that a sync has covered
    folders: list[str] = []
    real_sync, real_folder_sync = os.fdatasync, os.fsync

    def sync(descriptor: int) -> None:
        before = os.fstat(descriptor)
        real_sync(descriptor)
        durable[before.st_ino] = before.st_size

    def sync_folder(descriptor: int) -> None:
        folders.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()))
        real_folder_sync(descriptor)

    monkeypatch.setattr(os, "fdatasync", sync)
    monkeypatch.setattr(os, "fsync", sync_folder)
    monkeypatch.setattr(module, "SEGMENT_BYTES", 1500)
    mempool = house.mempool()
    for number in range(12):
        accepted = mempool.accept(flights(2, 2 * number), T)
        # a reader that knows nothing finds it, and every byte it read has been synced
        with closing(Mempool(Settings(dir=str(house.folder)), house.chain, print)) as reader:
            assert listed(reader.pending(99))[-2:] == numbered(
                accepted.flights, accepted.first_transaction
            )
        for first in house.segments():
            status = house.segment(first).stat()
            assert durable[status.st_ino] == status.st_size
    assert folders.count(str(house.folder / FOLDER)) >= len(house.segments()) > 2
    assert str(house.folder) in folders  # the name of the mempool's folder itself


def test_threads_that_wait_for_the_disk_share_its_syncs(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads, sync_s = 32, 0.05
    mempool = house.mempool()
    mempool.accept([flight(0)], T)  # the segment is there
    path = house.segment()
    durable, syncs = [0], [0]
    seen: dict[int, int] = {}  # id -> bytes that were durable when it was acknowledged

    def slow_sync(descriptor: int) -> None:
        size = os.fstat(descriptor).st_size
        time.sleep(sync_s)
        durable[0] = max(durable[0], size)
        syncs[0] += 1

    def accept(number: int) -> None:
        accepted = mempool.accept([flight(1 + number)], T)
        seen[accepted.first_transaction] = durable[0]

    monkeypatch.setattr(os, "fdatasync", slow_sync)
    run_together(threads, accept)
    assert sorted(seen) == list(range(1, threads + 1))
    assert syncs[0] <= threads // 4
    data = path.read_bytes()
    ends = [data.find(b"FCM1", at + 1) for at in range(len(data)) if data.startswith(b"FCM1", at)]
    ends[-1] = len(data)
    assert all(seen[number] >= ends[number] for number in seen)


def test_a_segment_is_on_the_disk_before_another_is_begun(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who wrote to it need not sync it again: whoever begins the next one has done so."""
    durable: set[int] = set()  # inodes; every record gets a file of its own here
    seen: dict[int, set[int]] = {}

    def slow_sync(descriptor: int) -> None:
        status = os.fstat(descriptor)
        time.sleep(0.005)
        if status.st_size:
            durable.add(status.st_ino)

    def accept(number: int) -> None:
        for turn in range(3):
            accepted = mempool.accept([flight(3 * number + turn)], T)
            seen[accepted.first_transaction] = set(durable)

    mempool = house.mempool()
    monkeypatch.setattr(module, "SEGMENT_BYTES", 1)
    monkeypatch.setattr(os, "fdatasync", slow_sync)
    run_together(8, accept)
    assert house.segments() == sorted(seen) == list(range(24))
    assert all(house.segment(number).stat().st_ino in seen[number] for number in seen)


# --- a disk that fails -----------------------------------------------------------------------


def test_a_failed_write_poisons_and_leaves_nothing(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    mempool = house.mempool()
    mempool.accept(flights(2), T)
    real = os.pwrite

    def half_then_full(descriptor: int, data: bytes, offset: int) -> int:
        if len(data) < 100:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(descriptor, data[: len(data) - 60], offset)

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", half_then_full)
        with pytest.raises(WriteFailed, match=r"pending-0+\.log: No space left"):
            mempool.accept(flights(3, 2), T)
    with pytest.raises(WriteFailed, match="restart"):
        mempool.accept([flight(9)], T)
    assert everything(mempool) == numbered(flights(2))
    again = house.mempool()
    assert again.accept([flight(5)], T).first_transaction == 2
    assert everything(again) == numbered([*flights(2), flight(5)])
    assert len(house.messages) == 1


def test_a_failed_sync_poisons_and_is_not_tried_again(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = [0]

    def fail(descriptor: int) -> None:
        calls[0] += 1
        raise OSError(errno.EIO, "Input/output error")

    mempool = house.mempool()
    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", fail)
        with pytest.raises(WriteFailed, match=r"cannot sync .*: Input/output error"):
            mempool.accept(flights(2), T)
        with pytest.raises(WriteFailed, match="restart"):
            mempool.accept(flights(2), T)
    assert calls == [1]
    with pytest.raises(WriteFailed, match="restart"):
        mempool.accept(flights(2), T)
    # Whether it is there or not, it was never acknowledged; a new process goes on.
    again = house.mempool()
    first = again.accept([flight(9)], T).first_transaction
    assert everything(again) == numbered([*flights(2)[:first], flight(9)])


def test_a_new_segment_whose_name_cannot_be_synced_poisons_and_is_closed(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(descriptor: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    mempool = house.mempool()
    (house.folder / FOLDER).mkdir()
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        with pytest.raises(WriteFailed, match=r"cannot sync .*: Input/output error"):
            mempool.accept(flights(2), T)
    with pytest.raises(WriteFailed, match="restart"):
        mempool.accept(flights(2), T)
    mempool.close()
    left_open = [int(link.name) for link in house.links()]
    for descriptor in left_open:
        os.close(descriptor)
    assert left_open == []


def test_the_name_of_a_segment_is_synced_though_its_maker_died_before_that(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    (house.folder / FOLDER).mkdir()
    house.segment().touch()
    folders: list[str] = []
    monkeypatch.setattr(
        os, "fsync", lambda fd: folders.append(str(Path(f"/proc/self/fd/{fd}").readlink()))
    )
    house.mempool().accept(flights(2), T)
    assert str(house.folder / FOLDER) in folders


def test_a_failed_sync_fails_everybody_who_had_written_before_it(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a failed sync the kernel reports success for the same bytes: nobody may believe it."""
    threads = 6
    mempool = house.mempool()
    mempool.accept([flight(0)], T)
    one = house.segment().stat().st_size
    outcomes: list[str] = []
    calls = [0]

    def fail_once_all_have_written(descriptor: int) -> None:
        calls[0] += 1
        if calls[0] == 1:
            eventually(lambda: os.fstat(descriptor).st_size >= (1 + threads) * one)
            raise OSError(errno.EIO, "Input/output error")

    def accept(number: int) -> None:
        try:
            mempool.accept([flight(1 + number)], T)
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
    mempool.accept([flight(0)], T)
    before = house.segment().read_bytes()
    free = os.statvfs(house.folder)
    with monkeypatch.context() as patch:
        patch.setattr(os, "statvfs", lambda path: mock.Mock(f_bavail=1000, f_frsize=free.f_frsize))
        with pytest.raises(TryLater, match="nearly full") as raised:
            mempool.accept([flight(1)], T)
        assert raised.value.retry_after_s > 0
    assert house.segment().read_bytes() == before
    assert mempool.accept([flight(1)], T).first_transaction == 1


def test_a_full_mempool_pushes_back_until_something_is_mined(house: House) -> None:
    mempool = house.mempool(mempool_transactions=5, mine_interval_s=42)
    mempool.accept(flights(4), T)
    before = house.segment().read_bytes()
    with pytest.raises(TryLater, match="6 pending transactions, at most 5") as raised:
        mempool.accept(flights(2, 4), T)
    assert raised.value.retry_after_s == 42
    assert house.segment().read_bytes() == before
    mempool.accept([flight(4)], T)
    house.chain.transactions = 1
    assert mempool.accept([flight(5)], T).first_transaction == 5
    with pytest.raises(TryLater):
        mempool.accept([flight(6)], T)


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
    monkeypatch.setattr(module, "SEGMENT_BYTES", 1)
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
    monkeypatch.setattr(module, "SEGMENT_BYTES", 1)
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
    monkeypatch.setattr(module, "SEGMENT_BYTES", 2000)
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
    monkeypatch.setattr(module, "SEGMENT_BYTES", 2000)
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
    records = [module._packed(number, T, [flight(number)]) for number in range(count)]
    house.segment().write_bytes(b"".join(records))
    start = time.monotonic()
    assert house.mempool().pending_count() == count
    assert time.monotonic() - start < 1


def test_what_a_flight_costs_does_not_depend_on_how_many_are_pending(house: House) -> None:
    (house.folder / FOLDER).mkdir()
    count, times = 16_000, 200
    records = [module._packed(number, T, [flight(number)]) for number in range(count)]
    house.segment().write_bytes(b"".join(records))
    mempool = house.mempool()
    assert mempool.copies_of([flight(count - 1)]) == [count - 1]
    start = time.monotonic()
    for _ in range(times):
        mempool.copies_of([flight(count)])
        mempool.pending_count()
    assert time.monotonic() - start < 0.5


# --- several readers and writers -------------------------------------------------------------


def test_a_follower_sees_what_others_accept_and_what_is_mined(house: House) -> None:
    accepter, follower = house.mempool(), house.mempool()
    assert follower.pending_count() == 0
    assert follower.pending(5) == []
    assert follower.find(0) is None
    accepter.accept(flights(3), T)
    accepter.accept(flights(2, 3), T + 1)
    assert follower.pending_count() == 5
    assert [follower.find(number) for number in range(6)] == [
        *((flight(number), T) for number in range(3)),
        *((flight(number), T + 1) for number in (3, 4)),
        None,
    ]
    assert follower.pending(4) == [
        Accepted(0, T, flights(3)),
        Accepted(3, T + 1, [flight(3)]),
    ]
    house.chain.transactions = 2
    assert follower.pending(2) == [Accepted(2, T, [flight(2)]), Accepted(3, T + 1, [flight(3)])]
    assert follower.pending_count() == 3


def test_nobody_gives_ids_while_somebody_is_exclusive(house: House) -> None:
    one, other = house.mempool(), house.mempool()
    order: list[str] = []

    def accept() -> None:
        other.accept([flight(0)], T)
        order.append("accepted")

    thread = threading.Thread(target=accept)
    with one.exclusive():
        thread.start()
        time.sleep(0.1)
        house.chain.transactions = 1000  # an import seals
        order.append("sealed")
    thread.join(WAIT_S)
    assert order == ["sealed", "accepted"]
    assert everything(one) == [(1000, flight(0))]


def test_sealing_while_somebody_counts_is_no_damage(house: House) -> None:
    """Two threads count, and a block is sealed between one's looks at the chain and at the log."""
    threads: list[threading.Thread] = []

    def count_meanwhile() -> int:
        seen = house.chain.transactions
        if not seen:
            house.chain.transactions = 3  # a block is sealed
            thread = threading.Thread(target=mempool.pending_count)
            thread.start()
            thread.join(0.3)  # it may have to wait for us: that is one way to be right
            threads.append(thread)
        return seen

    mempool = house.mempool(count_meanwhile)
    accepter = house.mempool()
    for number in range(5):
        accepter.accept([flight(number)], T)
    try:
        assert mempool.pending_count() in {2, 5}
    finally:
        threads[0].join(WAIT_S)
    assert mempool.pending_count() == 2


# --- a model ---------------------------------------------------------------------------------


class Interleaved(RuleBasedStateMachine):
    """Two processes' mempools on one folder, a miner, an import and power cuts, in any order.

    The model: every transaction in order of id, as acknowledged or imported.
    """

    def __init__(self) -> None:
        super().__init__()
        self.stack = ExitStack()
        folder = self.stack.enter_context(tempfile.TemporaryDirectory())
        for call in ("fdatasync", "fsync"):
            self.stack.enter_context(mock.patch.object(os, call, lambda descriptor: None))
        self.stack.enter_context(mock.patch.object(module, "SEGMENT_BYTES", 900))
        self.house = House(Path(folder))
        self.ledger: list[Flight | None] = []  # None: imported
        self.blocks = [0]  # first ids of the blocks, and the number of mined transactions
        self.serial = 0
        self.torn = 0
        self.is_tip_lost = False

    @initialize()
    def open(self) -> None:
        self.mempools = [self.house.mempool(), self.house.mempool()]

    @property
    def mined(self) -> int:
        return self.house.chain.transactions

    def expected(self) -> list[tuple[int, Flight]]:
        return [(i, f) for i, f in enumerate(self.ledger) if i >= self.mined and f is not None]

    def seal(self, count: int) -> None:
        self.is_tip_lost = False
        self.blocks.append(self.mined + count)
        self.house.chain.transactions += count

    @rule(which=st.integers(0, 1), count=st.integers(1, 4), now=st.integers(0, 10))
    def accept(self, which: int, count: int, now: int) -> None:
        batch = flights(count, self.serial)
        accepted = self.mempools[which].accept(batch, T + now)
        assert accepted.first_transaction == len(self.ledger)
        assert accepted.flights == batch
        self.ledger += batch
        self.serial += count
        assert len(self.house.messages) == self.torn

    @rule(which=st.integers(0, 1), most=st.integers(1, 6))
    def mine(self, which: int, most: int) -> None:
        found = listed(self.mempools[which].pending(most))
        assert found == self.expected()[:most]
        if found:
            self.seal(len(found))

    @rule(which=st.integers(0, 1), count=st.integers(1, 5))
    def import_some(self, which: int, count: int) -> None:
        with self.mempools[which].exclusive():
            assert everything(self.mempools[which]) == self.expected()
            self.seal(len(self.expected()))
            self.seal(count)
        self.ledger += [None] * count

    @rule(which=st.integers(0, 1))
    def trim(self, which: int) -> None:
        self.mempools[which].trim(self.blocks[-2] if len(self.blocks) > 1 else 0)

    @rule(which=st.integers(0, 1))
    def reopen(self, which: int) -> None:
        self.mempools[which].close()
        self.mempools[which] = self.house.mempool()

    @precondition(lambda self: self.ledger and self.torn == len(self.house.messages))
    @rule(size=st.integers(1, 300))
    def die_while_writing(self, size: int) -> None:
        record = module._packed(len(self.ledger), T, flights(2, self.serial))
        if not (self.house.folder / FOLDER).exists() or not self.house.segments():
            return
        with self.house.segment(self.house.segments()[-1]).open("ab") as log:
            log.write(record[: min(size, len(record) - 1)])
        self.torn += 1

    @precondition(lambda self: len(self.blocks) > 1 and not self.is_tip_lost)
    @rule()
    def lose_the_tip(self) -> None:
        """The newest block is torn; what came through the mempool must still be there."""
        lost = self.ledger[self.blocks[-2] :][: self.blocks[-1] - self.blocks[-2]]
        if None in lost or not lost:
            return  # imported: the import is run again
        self.is_tip_lost = True  # what is below the tip is on the disk
        self.blocks.pop()
        self.house.chain.transactions = self.blocks[-1]
        for which in range(2):  # everybody starts again
            self.reopen(which)

    @invariant()
    def acknowledged_exactly_once_and_in_order(self) -> None:
        if not hasattr(self, "mempools"):
            return
        for opened in self.mempools:
            assert everything(opened) == self.expected()
            assert opened.pending_count() == len(self.expected())
        times = [part.timestamp for part in self.mempools[0].pending(10**6)]
        assert times == sorted(times)
        for transaction_id, held in self.expected()[-1:]:
            found = self.mempools[1].find(transaction_id)
            assert found is not None
            assert found[0] == held

    def teardown(self) -> None:
        self.house.close()
        descriptors = self.house.descriptors()
        self.stack.close()
        assert descriptors == []


TestInterleaved = Interleaved.TestCase
TestInterleaved.settings = hypothesis_settings(max_examples=60, stateful_step_count=40)
