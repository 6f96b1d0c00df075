"""The miner: when it seals, that there is one, how it stops, and what it does after a torn tip."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path

import pytest

from backend.base import files
from backend.base.clock import now_ms
from backend.base.errors import DamagedBlock
from backend.base.progress import Progress, no_progress
from backend.base.settings import Settings
from backend.chain.block import Block
from backend.chain.columns import columns_of
from backend.chain.fields import FIELD_NAMES
from backend.chain.flight import Flight
from backend.chain.placeholder import VOID
from backend.chain.state import Content, content_of
from backend.index.damage_mark import NAME as MARK_NAME
from backend.index.damage_mark import mark
from backend.index.follower import IndexFollower
from backend.index.index_file import index_path
from backend.index.queries import IndexReader
from backend.mempool import FOLDER, Mempool
from backend.mempool.idempotency_keys import IdempotencyKey
from backend.sealing.miner import Miner
from backend.sealing.miner_status import (
    LOCK_NAME,
    SEALING_S,
    STATUS_NAME,
    Announcer,
    MinerStatus,
    miner_status,
    next_block_at,
)
from backend.sealing.sealer import Sealer
from backend.sources.flight_file import FlightFile
from backend.storage import layout
from backend.storage.block_store import BlockStore
from backend.storage.block_writer import BlockWriter
from backend.storage.damage_notes import DamageNotes
from backend.verify.audit import verify
from backend.verify.scrub_state import FILE as SCRUB
from tests.api.processes import backend, until
from tests.descriptors import descriptors_of
from tests.flights import csv_of, flight, flights, import_flights, on_disk, transactions_in
from tests.mempool.spoiling import spoil as spoil_records
from tests.mempool.spoiling import spoil_keys, store_path
from tests.storage.chains import flip
from tests.submitting import accept_in, sealing

pytestmark = pytest.mark.slow

WAIT_S = 30
NEVER_S = 86400.0


def settings_for(folder: Path, interval_s: float = 0.2, **chosen: float) -> Settings:
    chosen = {"difficulty_bits": 4, "mine_interval_s": interval_s, **chosen}
    return Settings(dir=str(folder), **chosen)  # type: ignore[arg-type]


class Running:
    """A miner in a thread of this process."""

    def __init__(self, settings: Settings) -> None:
        self.messages: list[str] = []
        self.miner = Miner(settings, self.messages.append)
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run)
        self._has_begun = threading.Event()
        self._next_round = self.miner._status.next_round
        setattr(self.miner._status, "next_round", self._noted)  # noqa: B010  mypy wants it so

    def _noted(self, wait_s: float) -> None:
        self._next_round(wait_s)
        self._has_begun.set()

    def _run(self) -> None:
        try:
            self.miner.run()
        except BaseException as error:  # noqa: BLE001  raised again in stop()
            self.error = error

    def start(self) -> None:
        self._thread.start()

    def wait_until_begun(self) -> None:
        """Return when the files are right and the first round is announced."""
        until(lambda: self._has_begun.is_set() or not self._thread.is_alive())

    def is_running(self) -> bool:
        return self._thread.is_alive()

    def join(self, within_s: float = WAIT_S) -> None:
        self._thread.join(within_s)

    def stop(self) -> None:
        self.miner.stop()
        self.join()
        assert not self.is_running()
        if self.error is not None:
            raise self.error


@contextmanager
def mining(settings: Settings) -> Iterator[Running]:
    running = Running(settings)
    running.start()
    running.wait_until_begun()
    try:
        yield running
    finally:
        running.stop()


@contextmanager
def accepting(settings: Settings) -> Iterator[Callable[[list[Flight]], int]]:
    """A function that accepts a batch and returns its first id."""
    chain = Sealer(settings, print)
    with closing(chain), closing(Mempool(settings, chain.transactions, print)) as mempool:
        yield lambda batch: accept_in(mempool, batch, now_ms()).first_transaction


def accept(settings: Settings, batch: list[Flight]) -> int:
    with accepting(settings) as add:
        return add(batch)


def height_of(folder: Path) -> int:
    with closing(BlockStore(folder)) as store:
        return store.height()


# --- when ------------------------------------------------------------------------------------


def test_what_is_pending_is_sealed_when_the_interval_is_over(tmp_path: Path) -> None:
    settings = settings_for(tmp_path, 0.3)
    accept(settings, flights(2))
    accept(settings, flights(1, 2))
    start = time.monotonic()
    with mining(settings) as running:
        until(lambda: transactions_in(tmp_path) == 3)
        assert time.monotonic() - start >= 0.3
    assert on_disk(tmp_path).flights == flights(3)
    assert on_disk(tmp_path).sizes == [3]
    assert running.messages == ["sealed block 1 with 3 transactions"]
    assert verify(tmp_path).index == "the index agrees with every block"


def test_what_is_posted_while_a_block_is_sealed_waits_for_the_next_round(tmp_path: Path) -> None:
    numbers = iter(range(1, 4))

    def post(_transactions: int, _seconds: float) -> None:
        for number in islice(numbers, 1):
            accept_in(sealer.mempool, [flight(number)], now_ms())

    sealer = Sealer(settings_for(tmp_path), print, post)
    with closing(sealer), sealer.writing(wait=False):
        accept_in(sealer.mempool, [flight(0)], now_ms())
        for _ in range(4):
            (block,) = sealer.seal_pending()
            assert block.header.transaction_count == 1


def test_a_full_block_is_sealed_at_once(tmp_path: Path) -> None:
    settings = settings_for(tmp_path, NEVER_S)
    with mining(settings):
        accept(settings, flights(999))
        time.sleep(0.3)  # more than a look at the mempool
        assert transactions_in(tmp_path) == 0
        accept(settings, flights(1, 999))
        until(lambda: transactions_in(tmp_path) == 1000)
        accept(settings, flights(1300, 1000))
        until(lambda: transactions_in(tmp_path) == 2000)
    assert on_disk(tmp_path).sizes == [1000, 1000]  # the rest waits for its time


def test_batches_fill_blocks_across_their_bounds(tmp_path: Path) -> None:
    settings = settings_for(tmp_path)
    for start in (0, 700, 1400):
        accept(settings, flights(700, start))
    with mining(settings):
        until(lambda: transactions_in(tmp_path) == 2100)
    contents = on_disk(tmp_path)
    assert contents.sizes == [1000, 1000, 100]
    assert contents.flights == flights(2100)
    assert contents.timestamps == sorted(contents.timestamps)
    assert len(set(contents.timestamps)) <= 3  # each batch has one


def test_nothing_pending_makes_no_block(tmp_path: Path) -> None:
    settings = settings_for(tmp_path, 0.1)
    with mining(settings):
        first = next_block_at(tmp_path)
        until(lambda: (next_block_at(tmp_path) or 0) > (first or 0) + 350)  # rounds go on
        assert height_of(tmp_path) == 0


def test_empty_blocks_are_made_if_asked_for(tmp_path: Path) -> None:
    settings = settings_for(tmp_path, 0.1, mine_empty=1)
    with mining(settings):
        until(lambda: height_of(tmp_path) >= 3)
        accept(settings, flights(1))
        until(lambda: transactions_in(tmp_path) == 1)
    sizes = on_disk(tmp_path).sizes
    assert sizes[:2] == [0, 0]
    assert sum(sizes) == 1
    assert verify(tmp_path).height == len(sizes)


class Clock:
    """Stands where a test has put it, as the modules `time` and `clock` would tell.

    looks: how often it was asked.
    """

    def __init__(self) -> None:
        self.now_s = 0.0
        self.looks = 0

    def monotonic(self) -> float:
        self.looks += 1
        return self.now_s

    def now_ms(self) -> int:
        return round(1000 * self.now_s)


def test_next_block_at_is_told_while_a_miner_runs_and_keeps_the_pace_though_sealing_takes_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    real = Sealer.seal_pending

    def slow(self: Sealer, **how: bool) -> list[Block]:
        clock.now_s += 7
        return real(self, **how)

    monkeypatch.setattr(Sealer, "seal_pending", slow)
    monkeypatch.setattr("backend.sealing.miner.time", clock)
    monkeypatch.setattr("backend.sealing.miner_status.time", clock)
    monkeypatch.setattr("backend.sealing.miner_status.now_ms", clock.now_ms)
    assert next_block_at(tmp_path) is None
    settings = settings_for(tmp_path, 60)
    with mining(settings):
        accept(settings, flights(1))
        clock.now_s, clock.looks = 59.9, 0
        until(lambda: clock.looks > 10)
        assert (next_block_at(tmp_path), transactions_in(tmp_path)) == (60_000, 0)
        clock.now_s = 60.0
        until(lambda: transactions_in(tmp_path) == 1)
        until(lambda: next_block_at(tmp_path) == 120_000)
    assert next_block_at(tmp_path) is None


def promised_s(folder: Path) -> float:
    """Returns how long the miner may keep silent, by its last status."""
    status = miner_status(folder)
    assert status is not None
    return status.due_s - time.monotonic()


def test_an_index_that_is_behind_may_take_long_though_nothing_is_pending(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    promised: list[float] = []
    real = BlockStore.frames

    def slow(self: BlockStore, first: int, count: int) -> list[tuple[layout.Place, bytes]]:
        if threading.current_thread().name != "scrub":  # which reads blocks whenever it likes
            promised.append(promised_s(tmp_path))
        return real(self, first, count)

    settings = settings_for(tmp_path, 0.1)
    with mining(settings), closing(Sealer(settings, print)) as other:
        with other.writing(wait=True, follow=False):
            monkeypatch.setattr(BlockStore, "frames", slow)
            other._writer.append(other._writer.state.build(now_ms(), unsealed_of(flights(1))))
            other._writer.commit()
        until(lambda: len(promised) > 0)
        until(lambda: promised_s(tmp_path) < 1)  # when that is done
    assert min(promised) > SEALING_S


def unsealed_of(some: list[Flight]) -> Content:
    return content_of(columns_of(some, [now_ms()] * len(some)))


def test_a_round_with_nothing_to_do_says_nothing_but_when_the_next_one_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is a write to the disk each time, and a stopped miner is to be named soon."""
    promised: list[float] = []
    real = Announcer._write

    def noted(self: Announcer, status: MinerStatus) -> None:
        promised.append(status.due_s - time.monotonic())
        real(self, status)

    with mining(settings_for(tmp_path, 0.2)):
        until((tmp_path / STATUS_NAME).exists)
        monkeypatch.setattr(Announcer, "_write", noted)
        assert until(lambda: len(promised) >= 5) > 0.7
    assert max(promised) < 0.3


def test_rounds_that_a_long_one_kept_off_are_not_made_up_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun_s: list[float] = []

    def round_(_: Miner, *, only_full: bool) -> None:
        assert not only_full
        begun_s.append(time.monotonic())
        time.sleep(0.5 if len(begun_s) == 1 else 0)

    monkeypatch.setattr(Miner, "_round", round_)
    with mining(settings_for(tmp_path, 0.1)):
        until(lambda: len(begun_s) > 3)
    assert begun_s[3] - begun_s[1] >= 0.1


def test_a_round_that_is_overdue_after_a_wait_for_the_clock_is_due_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []
    real = Announcer.next_round

    def noted(self: Announcer, wait_s: float) -> None:
        waits.append(wait_s)
        real(self, wait_s)

    def waited(self: Sealer, *_: object) -> bool:
        time.sleep(0.3)
        return True

    monkeypatch.setattr(Announcer, "next_round", noted)
    monkeypatch.setattr(Sealer, "wait_for_clock", waited)
    with mining(settings_for(tmp_path, 0.1)):
        until(lambda: len(waits) > 6)
    assert min(waits) >= 0


# --- one, and its end ------------------------------------------------------------------------


def test_stop_finishes_the_block_in_hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = settings_for(tmp_path)
    sealing, stopped = threading.Event(), threading.Event()
    real = BlockWriter.append

    def slow(self: BlockWriter, block: Block, compressed_body: bytes | None = None) -> None:
        if block.header.height:
            sealing.set()
            assert stopped.wait(WAIT_S)
        real(self, block, compressed_body)

    monkeypatch.setattr(BlockWriter, "append", slow)
    with mining(settings) as running:
        accept(settings, flights(3))
        assert sealing.wait(WAIT_S)
        running.miner.stop()
        stopped.set()
        running.join()
        assert not running.is_running()
    assert on_disk(tmp_path).flights == flights(3)
    assert IndexReader(tmp_path).position().transactions == 3
    assert not files.is_locked(tmp_path / LOCK_NAME)
    assert not (tmp_path / STATUS_NAME).exists()


def test_stop_is_heard_while_an_import_holds_the_writer_lock(tmp_path: Path) -> None:
    settings = settings_for(tmp_path)
    running = Running(settings)
    with files.FileLock(tmp_path / "writer.lock"):
        running.start()
        running.miner.stop()
        running.join()
        still_there = running.is_running()
    running.stop()
    assert not still_there


def test_nothing_stays_open_when_the_miner_has_stopped(tmp_path: Path) -> None:
    settings = settings_for(tmp_path, 0.1)
    with mining(settings):
        accept(settings, flights(3))
        until(lambda: transactions_in(tmp_path) == 3)
    assert [name for name in descriptors_of().values() if name.startswith(str(tmp_path))] == []


# --- after a power cut -----------------------------------------------------------------------


def tip_frame(folder: Path) -> tuple[Path, int, int]:
    """Returns the file of the newest block, and where its frame starts and ends."""
    with closing(BlockStore(folder)) as store:
        tip = store.tip()
    assert tip is not None
    path = folder / layout.BLOCKS_FOLDER / layout.block_file_name(tip[1].file)
    return path, tip[1].offset, tip[1].end


def cut_in_the_middle(path: Path, start: int, end: int) -> None:
    os.truncate(path, (start + end) // 2)


def cut_before(path: Path, start: int, end: int) -> None:
    os.truncate(path, start)


def flip_in_the_middle(path: Path, start: int, end: int) -> None:
    flip(path, (start + end) // 2)


def zero(path: Path, start: int, end: int) -> None:
    data = path.read_bytes()
    path.write_bytes(data[:start] + bytes(end - start))


def mine_three_blocks(settings: Settings) -> None:
    """Mine twelve flights that came through the mempool, in three blocks."""
    with mining(settings):
        for start, count in ((0, 5), (5, 4), (9, 3)):
            accept(settings, flights(count, start))
            until(lambda wanted=start + count: transactions_in(settings.folder) == wanted)  # type: ignore[misc]


@pytest.mark.parametrize("spoil", [cut_in_the_middle, cut_before])
def test_what_a_torn_tip_held_is_mined_again(
    tmp_path: Path, spoil: Callable[[Path, int, int], None]
) -> None:
    settings = settings_for(tmp_path, 0.1)
    mine_three_blocks(settings)
    before = on_disk(tmp_path)
    assert before.sizes == [5, 4, 3]
    assert first_ids(settings) == [9]  # those below the tip are gone

    spoil(*tip_frame(tmp_path))
    with mining(settings) as running:
        until(lambda: transactions_in(tmp_path) == 12)
        assert accept(settings, flights(1, 12)) == 12
        until(lambda: transactions_in(tmp_path) == 13)
    after = on_disk(tmp_path)
    assert after.flights == flights(13)
    assert after.timestamps[:12] == before.timestamps
    assert any("block 3" in line for line in running.messages)
    assert verify(tmp_path).index == "the index agrees with every block"


def first_ids(settings: Settings) -> list[int]:
    """Returns the first ids of the records that the mempool holds."""
    with closing(Sealer(settings, print)) as sealer:
        return [record.first for record in sealer.mempool.snapshot()[0]]


def mine_and_accept(settings: Settings) -> None:
    """Mine five flights, and accept four that stay pending behind them."""
    with sealing(settings) as sealer:
        for number in range(9):
            accept_in(sealer.mempool, [flight(number)], now_ms())
            if number == 4:
                sealer.seal_pending()
                sealer.trim()


@pytest.mark.parametrize("lost", [[5], [5, 6, 7, 8], [8]])
def test_a_torn_tip_is_mined_again_though_the_mempool_is_damaged_behind_it(
    tmp_path: Path, lost: list[int]
) -> None:
    settings = settings_for(tmp_path, 0.1)
    mine_and_accept(settings)
    spoil_records(tmp_path, *lost)
    cut_in_the_middle(*tip_frame(tmp_path))
    with mining(settings):
        until(lambda: transactions_in(tmp_path) == 9)
    assert on_disk(tmp_path).flights == [
        VOID if number in lost else flight(number) for number in range(9)
    ]
    names = {path.name for path in (tmp_path / FOLDER).glob("*.bin")}
    assert names == {f"lost-{lost[0]}-{len(lost)}.bin"}


@pytest.mark.parametrize("accepts_first", [True, False])
def test_a_torn_tip_that_is_damaged_in_the_mempool_too_stops_the_miner_and_nothing_is_dropped(
    tmp_path: Path, accepts_first: bool
) -> None:
    settings = settings_for(tmp_path)
    mine_and_accept(settings)
    spoil_records(tmp_path, 1)
    damaged = store_path(tmp_path).read_bytes()
    cut_in_the_middle(*tip_frame(tmp_path))
    if accepts_first:
        assert accept(settings, flights(1, 12)) == 9
    with pytest.raises(DamagedBlock, match=r"block 1 .* no longer holds its transactions"):
        Miner(settings, print).run()
    assert damaged in {path.read_bytes() for path in (tmp_path / FOLDER).glob("*.sqlite")}
    assert list((tmp_path / FOLDER).glob("lost-*")) == []


@pytest.mark.parametrize("spoil", [flip_in_the_middle, zero])
def test_a_damaged_tip_stops_the_miner_though_the_mempool_holds_what_it_held(
    tmp_path: Path, spoil: Callable[[Path, int, int], None]
) -> None:
    """It was whole when it was named, so what spoiled it may have spoiled more."""
    settings = settings_for(tmp_path)
    mine_three_blocks(settings)
    spoil(*tip_frame(tmp_path))
    with pytest.raises(DamagedBlock, match=r"block 3 is damaged: .*; restore the chain from"):
        Miner(settings, print).run()
    assert DamageNotes(tmp_path).known().keys() == {3}  # which `ready` names
    assert accept(settings, flights(1, 12)) == 12  # ids follow the table


def test_a_torn_tip_that_was_imported_stops_the_miner(tmp_path: Path) -> None:
    folder, file = tmp_path / "chain", tmp_path / "flights.csv"
    settings = settings_for(folder)
    file.write_text(csv_of(flights(2500)))
    import_flights(settings, FlightFile(file))
    cut_in_the_middle(*tip_frame(folder))
    with pytest.raises(DamagedBlock, match=r"block 3 .* no longer holds its transactions"):
        Miner(settings, print).run()


# --- taking turns with an import -------------------------------------------------------------


def test_the_miner_goes_on_after_an_import_that_brought_new_cities(tmp_path: Path) -> None:
    folder, file = tmp_path / "chain", tmp_path / "flights.csv"
    settings = settings_for(folder, 0.1)
    elsewhere = list(flight(0))
    elsewhere[FIELD_NAMES.index("DEST_CITY_NAME")] = "Bogotá, Colombia"
    new, again = tuple(elsewhere), (*elsewhere[:-1], 99)
    file.write_text(csv_of([new]))
    with mining(settings):
        accept(settings, [flight(1)])
        until(lambda: transactions_in(folder) == 1)
        done = backend(folder, "import", str(file))  # forks, which a process with a miner may not
        assert done.returncode == 0, done.stderr
        accept(settings, [again])
        until(lambda: transactions_in(folder) == 3)
    assert on_disk(folder).flights == [flight(1), new, again]
    assert verify(folder).index == "the index agrees with every block"


def test_an_index_that_is_marked_as_damaged_is_made_anew_at_once(tmp_path: Path) -> None:
    with mining(settings_for(tmp_path, NEVER_S)) as running:
        until(index_path(tmp_path).exists)
        first = index_path(tmp_path).resolve(strict=True)
        mark(first, "a page of it was wrong")
        until(lambda: index_path(tmp_path).resolve() != first)
        until(lambda: not first.exists())
        until(lambda: "the index was rebuilt: a page of it was wrong" in running.messages)


def test_what_keeps_damaging_the_index_gets_a_tenth_of_the_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, mended_at = 1000.0, list[float]()

    @contextmanager
    def two_seconds(*_: object, **__: object) -> Iterator[None]:
        nonlocal now
        mended_at.append(now)
        now += 2
        yield

    monkeypatch.setattr(time, "monotonic", lambda: now)
    monkeypatch.setattr(Sealer, "writing", two_seconds)
    monkeypatch.setattr(IndexFollower, "is_marked", lambda self: True)
    miner = Miner(settings_for(tmp_path), print)
    for _ in range(60):
        miner._rebuild_if_marked()
        now += 1
    assert mended_at == [1000, 1020, 1040, 1060]


# --- small files that cannot be read ---------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "scrub_hours"), [(SCRUB.name, 0), (SCRUB.name, 24), (STATUS_NAME, 0)]
)
def test_a_small_file_that_cannot_be_read_or_removed_is_said_and_mining_goes_on(
    tmp_path: Path, name: str, scrub_hours: float
) -> None:
    (tmp_path / name).mkdir()
    settings = settings_for(tmp_path, scrub_hours=scrub_hours)
    with mining(settings) as running:
        accept(settings, flights(1))
        until(lambda: transactions_in(tmp_path) == 1)
        assert (miner_status(tmp_path) is None) == (name == STATUS_NAME)
    assert any(name in line for line in running.messages)


def test_a_mark_that_cannot_be_read_keeps_from_mining_only_while_it_lasts(tmp_path: Path) -> None:
    settings = settings_for(tmp_path)
    with mining(settings) as running:
        mark_of_index = index_path(tmp_path).with_name(MARK_NAME)
        mark_of_index.mkdir()
        until(lambda: any("cannot be read" in line for line in running.messages))
        time.sleep(2)  # more than one look at it, by rounds and between them
        assert running.is_running()
        mark_of_index.rmdir()
        accept(settings, flights(1))
        until(lambda: transactions_in(tmp_path) == 1)
    assert len([line for line in running.messages if "cannot be read" in line]) == 1


# --- a mempool that is damaged ---------------------------------------------------------------


def test_a_miner_puts_the_mempool_right_before_the_index_and_before_anything_is_due(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    are_named: list[bool] = []
    follow = IndexFollower.follow

    def noted(self: IndexFollower, progress: Progress = no_progress) -> None:
        are_named.append((tmp_path / FOLDER / "lost-1-1.bin").exists())
        follow(self, progress)

    settings = settings_for(tmp_path, NEVER_S)
    with accepting(settings) as add:
        for number in range(3):
            add([flight(number)])
    spoil_records(tmp_path, 1)
    monkeypatch.setattr(IndexFollower, "follow", noted)
    with mining(settings) as running:
        until((tmp_path / FOLDER / "lost-1-1.bin").exists)
        until(lambda: len(running.messages) == 2)
    assert "the record of transaction 1 does not agree with its checksum" in running.messages[0]
    assert "transactions 1 to 1" in running.messages[1]
    assert are_named == [True]
    with mining(settings_for(tmp_path)):
        until(lambda: transactions_in(tmp_path) == 3)
    assert on_disk(tmp_path).flights == [flight(0), VOID, flight(2)]


def test_a_miner_goes_on_though_keys_cannot_be_read_and_says_so_once(tmp_path: Path) -> None:
    settings = settings_for(tmp_path, NEVER_S)
    with accepting(settings) as add:
        with closing(Mempool(settings, lambda: 0, print)) as mempool:
            accept_in(mempool, [flight(0)], now_ms(), key=IdempotencyKey("k", "00"))
        add([flight(1)])
        with sealing(settings) as sealer:
            sealer.seal_pending()
            add([flight(2)])
            sealer.seal_pending()
            sealer.trim()
    spoil_keys(tmp_path)
    with mining(settings_for(tmp_path)) as running, accepting(settings) as add:
        add([flight(3)])
        until(lambda: transactions_in(tmp_path) == 4)
        until(lambda: any("checksum" in line for line in running.messages))
    (message,) = [line for line in running.messages if "checksum" in line]
    assert "idempotency keys that came with it may be used again" in message
    assert on_disk(tmp_path).flights == flights(4)


def test_a_miner_waits_and_says_once_that_the_chain_has_lost_blocks(tmp_path: Path) -> None:
    settings = settings_for(tmp_path)
    with sealing(settings):
        pass  # genesis
    with closing(Mempool(settings, lambda: 10, print)) as mempool:
        accept_in(mempool, [flight(0)], now_ms())
    with mining(settings) as running:
        until(lambda: len(running.messages) > 0)
        time.sleep(1.5)
        assert running.is_running()
    (message,) = running.messages
    assert "the chain has lost blocks, and nothing is accepted or mined" in message
