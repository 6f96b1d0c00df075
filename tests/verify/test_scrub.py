"""The scrub: what it finds and how it says so, its pace, and that it goes on where it stopped."""

import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from unittest.mock import Mock

import pytest

from backend.base.errors import DamagedBlock, TryLater
from backend.base.settings import Settings
from backend.base.words import COMMAND
from backend.index import damage_mark
from backend.index.index_file import index_path
from backend.index.table_checks import PARTS
from backend.ledger.ledger import Ledger
from backend.mempool import Mempool
from backend.sealing.miner import Miner
from backend.storage.damage_notes import DamageNotes
from backend.storage.layout import ENTRY_BYTES, MARK_NAME
from backend.storage.tokens import FILE_NAME as TOKENS_NAME
from backend.storage.tokens import Tokens
from backend.verify import scrub as scrub_module
from backend.verify.scrub import LOOK_AGAIN_S, SHARE, Scrub, scrubbing
from backend.verify.scrub_state import FILE, ScrubState
from tests.api.processes import until
from tests.api.test_metrics import scraped, value
from tests.api.worlds import client_of, problem, settings_for
from tests.flights import flight
from tests.index.tampering import blocks_in, write_blocks
from tests.index.worlds import execute, follow, following, make_chain, plain_flight
from tests.mempool.spoiling import store_path
from tests.storage.chains import block_file, flip, flip_in_block, table_path
from tests.submitting import accept_in, at_work

TIP = 4
PIECES = TIP + 1 + len(PARTS) + 1
HOUR_S = 3600.0
WALL_MS = 1_700_000_000_000


class Clock:
    """Time that passes only while somebody pauses."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.slept: list[float] = []
        self.is_over: Callable[[], bool] = lambda: False

    def timer(self) -> float:
        return self.now_s

    def wall_ms(self) -> int:
        return WALL_MS + round(1000 * self.now_s)

    def pause(self, seconds: float) -> bool:
        assert seconds >= 0
        self.slept.append(seconds)
        self.now_s += max(seconds, 1e-6)  # no sleep takes no time
        return self.is_over()


class Bench:
    """A scrub of the chain in `folder` that takes an hour of a clock of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.clock = folder, Clock()
        self.said: list[str] = []
        self.scrub = self.begun()

    def begun(self, hours: float = 1) -> Scrub:
        """Returns another scrub of the folder, as after a restart."""
        settings = Settings(dir=str(self.folder), scrub_hours=hours)
        clock = self.clock
        return Scrub(settings, self.said.append, clock.pause, clock.wall_ms, clock.timer)

    def steps(self, count: int) -> None:
        for _ in range(count):
            self.clock.pause(self.scrub.step())

    def until(self, condition: Callable[[ScrubState], bool]) -> None:
        for _ in range(1000):
            if condition(self.scrub.state):
                return
            self.steps(1)
        raise AssertionError(self.scrub.state)

    def passes(self) -> None:
        """Go on to the end of a pass that begins now."""
        self.until(lambda state: state.done == state.pieces)
        before = self.scrub.state.completed_at
        self.until(lambda state: state.completed_at != before)

    def damaged(self) -> list[int]:
        return list(DamageNotes(self.folder).known())

    def look_again(self) -> None:
        self.clock.now_s += LOOK_AGAIN_S
        self.steps(1)


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Genesis and four blocks in one file, with their index. Not to be changed."""
    folder = tmp_path_factory.mktemp("good")
    make_chain(folder, [[plain_flight(OP_CARRIER_FL_NUM=n + 1) for n in range(3)]] * TIP)
    follow(folder)
    return folder


@pytest.fixture
def bench(good: Path, tmp_path: Path) -> Iterator[Bench]:
    fresh = Bench(Path(shutil.copytree(good, tmp_path / "chain", symlinks=True)))
    yield fresh
    fresh.clock.is_over = lambda: True
    fresh.scrub.run()  # which closes what is open


# --- nothing is wrong ----------------------------------------------------------------------------


def test_a_pass_of_a_good_chain_looks_at_everything_and_says_nothing(bench: Bench) -> None:
    progress = []
    for _ in range(1000):
        bench.steps(1)
        progress.append(bench.scrub.state.progress)
        if progress[-1] == 1:
            break
    assert sorted(set(progress)) == [(done + 1) / PIECES for done in range(PIECES)]
    state = bench.scrub.state
    assert (state.height, state.problem, bench.damaged(), bench.said) == (TIP, "", [], [])
    assert state.completed_at is not None
    assert WALL_MS < state.completed_at < bench.clock.wall_ms()
    assert FILE.read(bench.folder) == state


def test_a_pass_is_spread_over_its_hours_and_the_next_follows(bench: Bench) -> None:
    ended_ms = []
    for _ in range(3):
        bench.passes()
        ended_ms.append(bench.scrub.state.completed_at or 0)
    assert max(bench.clock.slept) <= LOOK_AGAIN_S
    assert [b - a for a, b in pairwise(ended_ms)] == pytest.approx([1000 * HOUR_S] * 2, rel=0.01)


def test_blocks_sealed_meanwhile_belong_to_the_next_pass(bench: Bench) -> None:
    bench.steps(3)
    make_chain(bench.folder, [[plain_flight()]])
    follow(bench.folder)
    bench.until(lambda state: state.done == PIECES)
    assert (bench.scrub.state.height, bench.said) == (TIP, [])
    bench.passes()
    assert (bench.scrub.state.height, bench.said) == (TIP + 1, [])


def test_an_index_that_is_not_there_or_behind_is_no_problem(bench: Bench) -> None:
    make_chain(bench.folder, [[plain_flight()]])
    bench.passes()
    shutil.rmtree(index_path(bench.folder).parent)
    bench.passes()
    assert bench.said == []


def test_a_chain_that_becomes_shorter_is_no_problem(bench: Bench) -> None:
    bench.steps(3)
    shutil.rmtree(index_path(bench.folder).parent)
    write_blocks(bench.folder, blocks_in(bench.folder)[:2])
    bench.passes()
    bench.passes()
    assert (bench.scrub.state.height, bench.said) == (1, [])


def test_without_a_chain_it_waits_for_one(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.steps(3)
    assert (bench.scrub.state, bench.said) == (ScrubState(), [])
    make_chain(tmp_path, [[plain_flight()]])
    bench.passes()
    assert (bench.scrub.state.height, bench.said) == (1, [])


# --- damage --------------------------------------------------------------------------------------


def test_damaged_tokens_and_pending_flights_are_named_until_they_are_well(bench: Bench) -> None:
    tokens, mempool = bench.folder / "tokens.json", bench.folder / "mempool"
    tokens.write_text("no list")
    bench.passes()
    what = bench.scrub.state.problem
    assert str(tokens) in what
    assert bench.said == [f"the scrub found that {what}"]
    tokens.unlink()
    bench.look_again()
    assert bench.scrub.state.problem == ""
    assert bench.said[1:] == [f"a problem that the scrub found is solved: {what}"]
    mempool.mkdir()
    with closing(Mempool(Settings(dir=str(bench.folder)), lambda: 3 * TIP, print)) as pending:
        accept_in(pending, [flight(1)], WALL_MS)
    flip(store_path(bench.folder), 5000)
    bench.passes()
    path = store_path(bench.folder)
    assert f"{path} is damaged: a page does not agree" in bench.scrub.state.problem


def test_damaged_blocks_are_named_once_and_the_others_are_read_on(bench: Bench) -> None:
    for height in (1, 3):
        flip_in_block(bench.folder, height)
    bench.passes()
    bench.passes()
    assert bench.damaged() == [1, 3]
    expected = [f"block {height} is damaged: its checksum is wrong" for height in (1, 3)]
    assert bench.said == [f"the scrub found that {what}" for what in expected]
    flip_in_block(bench.folder, 3)
    bench.look_again()
    assert bench.damaged() == [1]
    assert bench.said[2:] == ["block 3, which was damaged, can be read again"]


def test_a_damaged_entry_of_the_table_of_heights_is_named(bench: Bench) -> None:
    flip(table_path(bench.folder), 2 * ENTRY_BYTES + 5)
    bench.passes()
    assert bench.damaged() == [2]
    assert "the entry of block 2" in bench.said[0]


def test_a_block_that_a_reader_met_is_looked_at_within_half_a_minute(bench: Bench) -> None:
    notes = DamageNotes(bench.folder)
    for height in (2, 3, TIP + 1):  # the last was lost since
        notes.met(DamagedBlock(height, "a reader said so"))
    flip_in_block(bench.folder, 3)
    bench.look_again()
    assert DamageNotes(bench.folder).known() == {3: "its checksum is wrong"}


# --- the index -----------------------------------------------------------------------------------

WRONG_INDEXES = {  # tests/index/test_table_checks.py tries every table
    "a flight": "UPDATE flight SET carrier = carrier + 1 WHERE id = 4",
    "a total": "UPDATE carrier_total SET arrived = arrived + 1 WHERE span = 2",
    "another chain": "UPDATE position SET genesis_hash = tip_hash",
}


@pytest.mark.parametrize("wrong", WRONG_INDEXES)
def test_a_wrong_index_is_named_once_and_marked(bench: Bench, wrong: str) -> None:
    execute(bench.folder, WRONG_INDEXES[wrong])
    bench.passes()
    bench.passes()
    marked = damage_mark.damage_of(index_path(bench.folder).resolve())
    assert marked is not None
    assert bench.said == [
        f"the scrub found that the index is wrong: {marked}; the miner rebuilds it"
    ]
    with following(bench.folder) as (follower, _):
        follower.rebuild()
    bench.passes()
    assert damage_mark.damage_of(index_path(bench.folder).resolve()) is None
    assert len(bench.said) == 1


@pytest.fixture
def forgotten(monkeypatch: pytest.MonkeyPatch) -> dict[str, set[int]]:
    """Collects the bytes of each file that the kernel is told to forget."""
    ranges: dict[str, set[int]] = {}

    def note(descriptor: int, offset: int, length: int, advice: int) -> None:
        assert advice == os.POSIX_FADV_DONTNEED
        name = str(Path(f"/proc/self/fd/{descriptor}").readlink())
        end = offset + length if length else os.fstat(descriptor).st_size
        ranges.setdefault(name, set()).update(range(offset, end))

    monkeypatch.setattr(os, "posix_fadvise", note)
    return ranges


def test_everything_is_taken_from_the_disk_again(
    bench: Bench, forgotten: dict[str, set[int]]
) -> None:
    folder = bench.folder
    Tokens(folder).add("somebody")
    with closing(Mempool(Settings(dir=str(folder)), lambda: 3 * TIP, print)) as pending:
        accept_in(pending, [flight(1)], WALL_MS)
    bench.passes()
    read = [block_file(folder), index_path(folder).resolve(), store_path(folder)]
    for path in (*read, folder / TOKENS_NAME, folder / MARK_NAME):
        assert forgotten[str(path)] >= set(range(path.stat().st_size))
    assert bench.said == []


# --- pace ----------------------------------------------------------------------------------------


def test_work_is_followed_by_a_pause_that_leaves_a_small_share_of_a_core(bench: Bench) -> None:
    """With hours too few for what there is to do: it takes longer then."""
    bench.scrub = bench.begun(hours=0.000_001)
    bench.steps(3)
    assert FILE.read(bench.folder) is None  # a card is not written to after each piece
    started = time.thread_time()
    worked_s = 0.0

    def timer() -> float:
        return bench.clock.now_s + time.thread_time() - started

    bench.scrub._timer = timer
    before_s = time.thread_time()
    bench.passes()
    worked_s = time.thread_time() - before_s
    assert sum(bench.clock.slept) >= 0.8 * worked_s * (1 / SHARE - 1)


def test_a_long_statement_of_the_index_pauses_in_its_middle(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("backend.index.table_checks.STEPS_BETWEEN_PAUSES", 10)
    monkeypatch.setattr(scrub_module, "LEAST_WORK_S", 0.0)
    bench.until(lambda state: state.done == TIP + 1)
    for _ in PARTS:
        bench.clock.now_s = bench.scrub._due
        pauses = len(bench.clock.slept)
        bench.steps(1)
        assert len(bench.clock.slept) > pauses + 1
    assert bench.said == []


def test_a_part_of_the_index_that_cannot_be_read_now_is_checked_later(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.until(lambda state: state.done == TIP + 1)
    with monkeypatch.context() as patch:
        patch.setattr(scrub_module, "wrong_part", Mock(side_effect=TryLater("it is replaced")))
        bench.clock.now_s = bench.scrub._due
        bench.steps(3)
        assert bench.scrub.state.done == TIP + 1
    bench.passes()
    assert bench.said == []


def test_told_to_end_in_the_middle_of_a_piece_it_notes_nothing(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    execute(bench.folder, WRONG_INDEXES["a total"])
    bench.until(lambda state: state.done == TIP + 1)
    monkeypatch.setattr("backend.index.table_checks.STEPS_BETWEEN_PAUSES", 10)
    monkeypatch.setattr(scrub_module, "LEAST_WORK_S", 0.0)
    bench.clock.is_over = lambda: True
    bench.scrub.run()
    assert (bench.said, bench.scrub.state.done) == ([], TIP + 1)
    assert damage_mark.damage_of(index_path(bench.folder).resolve()) is None


# --- what nobody expected -------------------------------------------------------------------------


def test_a_check_that_fails_strangely_is_said_once_and_others_are_read_on(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, met = Scrub._read_block, set()

    def strange(self: Scrub, height: int) -> None:
        met.add(height)
        if height == 2:
            raise ValueError("never seen")
        real(self, height)

    monkeypatch.setattr(Scrub, "_read_block", strange)
    bench.clock.is_over = lambda: bench.scrub.state.completed_at is not None
    bench.scrub.run()
    assert met == set(range(TIP + 1))
    assert bench.said == ["the scrub fails at piece 2: ValueError('never seen')"]


# --- between runs --------------------------------------------------------------------------------


def test_it_goes_on_where_it_stopped(bench: Bench) -> None:
    flip_in_block(bench.folder, 1)
    bench.until(lambda state: state.done == 4)
    assert FILE.read(bench.folder) == bench.scrub.state  # should it be killed
    bench.clock.is_over = lambda: True
    bench.scrub.run()
    stopped = bench.scrub.state
    assert stopped.done in {4, 5}
    bench.clock.is_over = lambda: False
    bench.scrub = bench.begun()
    assert bench.scrub.state == stopped
    bench.until(lambda state: state.done == stopped.done + 1)
    bench.passes()
    assert len(bench.said) == 1


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[]",
        b'{"height":"x"}',
        b'{"height":4,"pieces":3,"done":2}',
        b"\xff\0",
        b'{"problem":"\xff"}',
        b'{"a":' * 5000,
    ],
)
def test_a_state_file_that_is_torn_or_of_another_version_begins_a_pass(
    bench: Bench, data: bytes
) -> None:
    (bench.folder / FILE.name).write_bytes(data)
    bench.scrub = bench.begun()
    bench.steps(1)
    assert (bench.scrub.state.done, bench.scrub.state.pieces) == (1, PIECES)


def test_a_state_that_cannot_be_written_is_said_and_the_scrub_goes_on(bench: Bench) -> None:
    temporary = bench.folder / f"{FILE.name}.{os.getpid()}.tmp"
    temporary.mkdir()
    bench.passes()
    assert bench.scrub.state.done == PIECES
    expected = f"cannot write {bench.folder / FILE.name}: Is a directory; the scrub continues"
    assert set(bench.said) == {expected}
    temporary.rmdir()


def test_off_it_does_nothing_and_forgets_what_was_found(bench: Bench) -> None:
    flip_in_block(bench.folder, 1)
    bench.passes()
    assert (bench.folder / FILE.name).exists()
    off = Settings(dir=str(bench.folder), scrub_hours=0)
    with scrubbing(off, bench.said.append):
        assert not (bench.folder / FILE.name).exists()
        assert bench.damaged() == []


# --- who asks ------------------------------------------------------------------------------------


def test_what_was_found_keeps_a_ledger_from_being_ready(bench: Bench) -> None:
    settings = Settings(dir=str(bench.folder), clock_wait_s=0)
    with closing(Ledger(settings, bench.said.append)) as ledger:
        healthy = ledger.not_ready()
        for height in range(TIP):
            flip_in_block(bench.folder, height)
        bench.passes()
        reasons = [reason for reason in ledger.not_ready() if reason not in healthy]
        assert reasons == [
            *(
                f"block {height} is damaged: its checksum is wrong; run `{COMMAND} verify`"
                for height in range(3)
            ),
            f"1 more block is damaged; run `{COMMAND} verify`",
        ]
        assert ledger.scrub_problems() == TIP
        for height in range(TIP):
            flip_in_block(bench.folder, height)
        (bench.folder / "tokens.json").write_text("no list")
        bench.passes()
        assert f"the scrub found that {bench.scrub.state.problem}" in ledger.not_ready()
        assert ledger.scrub_problems() == 1
        (bench.folder / "tokens.json").unlink()
        bench.look_again()
        assert ledger.not_ready() == healthy


@pytest.mark.slow
def test_a_miner_scrubs_finds_damage_and_takes_it_back(tmp_path: Path) -> None:
    settings = settings_for(tmp_path / "chain", scrub_hours=0.0003, clock_wait_s=0)
    make_chain(settings.folder, [[plain_flight()], [plain_flight()]])
    said: list[str] = []
    with at_work(Miner(settings, said.append)), client_of(settings) as client:

        def is_ready() -> bool:
            return client.get("/health/ready").status_code == 200

        completed = "flightchain_scrub_last_complete_timestamp_seconds"
        until(lambda: is_ready() and (completed, frozenset()) in scraped(client))
        samples = scraped(client)
        assert 0 <= value(samples, "scrub_progress") <= 1
        assert value(samples, "scrub_problems") == 0
        assert abs(value(samples, "scrub_last_complete_timestamp_seconds") - time.time()) < 60
        flip_in_block(settings.folder, 1)
        until(lambda: not is_ready())
        assert "block 1 is damaged" in problem(client.get("/health/ready"), 503)["detail"]
        assert value(scraped(client), "scrub_problems") == 1
        assert client.get("/blocks/2").status_code == 200
        flip_in_block(settings.folder, 1)
        until(is_ready)
    assert len([line for line in said if "the scrub found that block 1 is damaged" in line]) == 1
    assert FILE.read(settings.folder) is not None
