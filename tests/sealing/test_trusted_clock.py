"""A clock that leapt ahead is doubted for a while, and burns no year."""

import json
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from backend.base import clock
from backend.base.errors import TryLater
from backend.chain.columns import columns_of
from backend.ledger.ledger import Ledger
from backend.sealing.importer import Watcher
from backend.sealing.miner import Miner
from backend.sealing.sealer import unsealed
from backend.sealing.trusted_clock import FILE, LEAP_MS, Doubt, TrustedClock
from backend.sources.flight_file import FlightFile
from backend.storage.block_store import BlockStore
from tests.api.processes import until
from tests.api.worlds import seal, settings_for
from tests.flights import csv_of, flight, flights, import_flights
from tests.submitting import accept_in, add, at_work, sealing

pytestmark = pytest.mark.slow

HOUR_MS, DAY_MS = 3_600_000, 86_400_000
TODAY_MS = 1_800_000_000_000  # when these chains are made
WAIT_S = 120.0


class Clocks:
    """The time of day and the time that passes, both as a test says."""

    def __init__(self) -> None:
        self.now_ms, self.passed_s = TODAY_MS, 5000.0

    def wait(self, seconds: float) -> None:
        self.passed_s += seconds
        self.now_ms += round(1000 * seconds)


class Fixture:
    """A chain whose newest block is of TODAY_MS, and clocks of processes that work on it."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.clocks, self.lines = folder, Clocks(), [""]
        monkeypatch.setattr(clock, "now_ms", lambda: self.clocks.now_ms)
        self.store = BlockStore(folder)

    def clock(self, wait_s: float = WAIT_S, **more: Any) -> TrustedClock:
        settings = settings_for(self.folder, clock_wait_s=wait_s)
        clocks = self.clocks
        return TrustedClock(
            settings,
            self.store,
            self.lines.append,
            now_ms=lambda: clocks.now_ms,
            monotonic=lambda: clocks.passed_s,
            **more,
        )

    def noted(self) -> int | None:
        path = self.folder / FILE.name
        return json.loads(path.read_text())["believed_ms"] if path.exists() else None


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fixture]:
    fixture = Fixture(tmp_path / "chain", monkeypatch)
    with closing(fixture.store):
        yield fixture


@pytest.fixture
def chain(empty: Fixture) -> Fixture:
    seal_at(empty.folder, TODAY_MS)
    (empty.folder / FILE.name).unlink()
    return empty


def seal_at(folder: Path, now_ms: int, first: int = 0) -> None:
    """Seal a block of one flight, whose time is `now_ms`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clock, "now_ms", lambda: now_ms)
        settings = settings_for(folder, clock_wait_s=0)
        with sealing(settings) as sealer:
            sealer.seal([unsealed(columns_of([flight(first)], [now_ms]))])


# --- what is doubted -----------------------------------------------------------------------------


@pytest.mark.parametrize("ahead_ms", [-9000 * DAY_MS, -1, 0, 1, HOUR_MS, LEAP_MS])
def test_a_clock_up_to_a_day_ahead_is_believed(chain: Fixture, ahead_ms: int) -> None:
    """A clock that starts in 1970 tells the newest time on record; else keys age at once."""
    chain.clocks.now_ms += ahead_ms
    ours = chain.clock()
    assert ours.doubt() is None
    assert ours.now_ms() == TODAY_MS + max(0, ahead_ms)
    chain.clocks.now_ms = TODAY_MS + HOUR_MS
    assert ours.now_ms() == TODAY_MS + HOUR_MS


@pytest.mark.parametrize("ahead_ms", [LEAP_MS + 1, 9 * 365 * DAY_MS, 10**15])
def test_a_clock_more_than_a_day_ahead_is_doubted_for_the_wait(
    chain: Fixture, ahead_ms: int
) -> None:
    chain.clocks.now_ms += ahead_ms
    ours = chain.clock()
    assert ours.doubt() == Doubt(TODAY_MS + ahead_ms, TODAY_MS, WAIT_S)
    chain.clocks.passed_s += 80
    with pytest.raises(TryLater) as refused:
        ours.now_ms()
    assert refused.value.retry_after_s == 40
    chain.clocks.passed_s += 39.9
    assert ours.doubt() is not None
    chain.clocks.passed_s += 0.2
    assert ours.now_ms() == TODAY_MS + ahead_ms


def test_a_clock_that_is_back_is_believed_and_doubted_anew_later(chain: Fixture) -> None:
    ours = chain.clock()
    chain.clocks.now_ms += 30 * DAY_MS
    assert ours.doubt() is not None
    chain.clocks.wait(100)
    chain.clocks.now_ms -= 30 * DAY_MS
    assert ours.doubt() is None
    chain.clocks.now_ms += 30 * DAY_MS
    doubt = ours.doubt()
    assert doubt is not None
    assert doubt.left_s == WAIT_S


def test_a_leap_while_it_runs_is_doubted_even_if_the_newest_block_is_old(chain: Fixture) -> None:
    """What is compared is the time that was believed last, and not the newest block alone."""
    ours = chain.clock(seals=True)
    for _ in range(40 * 4):
        assert ours.doubt() is None
        chain.clocks.wait(6 * 3600)
    chain.clocks.now_ms += 2 * DAY_MS
    doubt = ours.doubt()
    assert doubt is not None
    assert chain.clocks.now_ms - doubt.newest_ms < 2 * DAY_MS + 7 * HOUR_MS


def test_a_wrong_time_that_was_believed_is_forgotten_when_the_clock_is_back(
    chain: Fixture,
) -> None:
    ours, worker = chain.clock(seals=True), chain.clock()
    chain.clocks.now_ms += 3650 * DAY_MS
    assert ours.doubt() is not None
    chain.clocks.passed_s += WAIT_S
    assert ours.doubt() is worker.doubt() is None
    chain.clocks.now_ms -= 3650 * DAY_MS
    assert ours.doubt() is None
    assert ours.now_ms() == worker.now_ms() == TODAY_MS
    chain.clocks.now_ms += 3650 * DAY_MS
    assert ours.doubt() is not None


def test_a_clock_that_starts_in_the_past_does_not_make_its_correction_a_leap(
    chain: Fixture,
) -> None:
    chain.clocks.wait(40 * 24 * 3600)
    idle = chain.clock(wait_s=0, seals=True)
    assert idle.doubt() is None
    before, now_ms = chain.noted(), chain.clocks.now_ms
    ours = chain.clock(seals=True)  # after a start without a battery
    chain.clocks.now_ms = 0
    assert ours.doubt() is None
    assert chain.noted() == before
    chain.clocks.now_ms = now_ms + 60_000
    assert ours.doubt() is None
    assert chain.clock().doubt() is None


@pytest.mark.parametrize("has_genesis", [False, True])
def test_a_chain_without_flights_has_nothing_to_compare_with(
    empty: Fixture, has_genesis: bool
) -> None:
    if has_genesis:
        seal(settings_for(empty.folder), [])
    empty.clocks.now_ms += 9000 * DAY_MS
    assert empty.clock(seals=True).doubt() is None
    assert empty.lines == [""]  # nor to be noted, before there is a folder


def test_no_wait_is_no_doubt(chain: Fixture) -> None:
    chain.clocks.now_ms += 9000 * DAY_MS
    assert chain.clock(wait_s=0).doubt() is None


def test_the_time_is_noted_once_an_hour_and_only_by_who_seals(chain: Fixture) -> None:
    ours, other = chain.clock(seals=True), chain.clock()
    noted = []
    for _ in range(240):
        assert ours.doubt() is None
        noted.append(chain.noted())
        chain.clocks.wait(60)
    assert len(set(noted)) == 4
    (chain.folder / FILE.name).unlink()
    assert other.doubt() is None
    assert chain.noted() is None


@pytest.mark.parametrize("data", [b"", b'{"believed_ms":"x"}', b'{"a":' * 5000])
def test_a_spoiled_note_is_written_anew(chain: Fixture, data: bytes) -> None:
    (chain.folder / FILE.name).write_bytes(data)
    assert chain.clock(seals=True).doubt() is None
    assert chain.noted() == TODAY_MS


def test_a_newest_block_that_cannot_be_read_leaves_the_note_to_compare_with(chain: Fixture) -> None:
    (file,) = (chain.folder / "blocks").glob("blocks-*.dat")
    file.write_bytes(b"x" * file.stat().st_size)
    chain.clocks.now_ms += 30 * DAY_MS
    assert chain.clock(seals=True).doubt() is None
    assert chain.clock().doubt() is None
    chain.clocks.now_ms += 30 * DAY_MS
    assert chain.clock().doubt() is not None


def test_where_nothing_can_be_noted_the_clock_is_believed_all_the_same(chain: Fixture) -> None:
    (chain.folder / FILE.name).mkdir()
    assert chain.clock(seals=True).doubt() is None
    assert "cannot write" in chain.lines[-1]


@pytest.mark.parametrize("ms", [0, TODAY_MS, 10**17, -(10**17)])
def test_a_doubt_says_what_it_knows_and_what_to_do_whatever_the_clock_says(ms: int) -> None:
    message = str(Doubt(ms, TODAY_MS, 96.2))
    assert "2027-01-15 08:00 UTC" in message
    assert "for 97 s" in message
    assert "FLIGHTCHAIN_CLOCK_WAIT_S=0" in message
    assert " 1 day after " in str(Doubt(TODAY_MS + DAY_MS, TODAY_MS, 1.0))


# --- who writes ----------------------------------------------------------------------------------


def test_nothing_is_accepted_while_the_clock_is_doubted(chain: Fixture) -> None:
    seal_at(chain.folder, TODAY_MS, 1)
    settings = settings_for(chain.folder)
    with closing(Ledger(settings, print)) as ledger:
        chain.clocks.now_ms += 3650 * DAY_MS
        with pytest.raises(TryLater, match="the clock says 2037"):
            add(ledger.submitter, flight(2))
        with pytest.raises(TryLater, match="the clock says 2037"):
            ledger.submitter.add_batch([flight(3)])
        assert any("the clock says 2037" in reason for reason in ledger.not_ready())
        chain.clocks.now_ms -= 3650 * DAY_MS
        assert add(ledger.submitter, flight(2))["timestamp"] == TODAY_MS
        assert not any("clock" in reason for reason in ledger.not_ready())


def test_no_block_gets_the_time_of_a_clock_that_leapt(chain: Fixture) -> None:
    settings = settings_for(chain.folder)
    with sealing(settings) as sealer:
        accept_in(sealer.mempool, [flight(2)], TODAY_MS)
        chain.clocks.now_ms += 3650 * DAY_MS
        with pytest.raises(TryLater, match="the clock says 2037"):
            sealer.seal_pending()
        chain.clocks.now_ms = TODAY_MS + 1
        (block,) = sealer.seal_pending()
    assert block.header.timestamp == TODAY_MS + 1


def test_the_miner_waits_says_so_and_goes_on_when_the_clock_is_back(chain: Fixture) -> None:
    chain.clocks.now_ms += 3650 * DAY_MS
    lines: list[str] = []
    settings = settings_for(chain.folder, mine_interval_s=0.1, mine_empty=1)
    with at_work(Miner(settings, lines.append)):
        until(lambda: any("the clock says 2037" in line for line in lines))
        time.sleep(0.5)
        assert chain.store.height() == 1
        chain.clocks.now_ms -= 3650 * DAY_MS
        until(lambda: chain.store.height() > 2)
        assert "the clock is trusted again; sealing continues" in lines
        assert len([line for line in lines if "the clock says" in line]) == 1
        assert chain.store.block(2).header.timestamp == TODAY_MS


def test_a_leap_between_the_look_at_the_clock_and_the_seal_costs_seconds(
    chain: Fixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock is back long before the doubt would end."""
    settings = settings_for(chain.folder, mine_interval_s=0.1, mine_empty=1, clock_wait_s=3600)
    miner = Miner(settings, chain.lines.append)
    believed = miner._sealer.clock.now_ms

    def leaps_once() -> int:
        monkeypatch.setattr(miner._sealer.clock, "now_ms", believed)
        raise TryLater("the clock says 2037", 3600)

    monkeypatch.setattr(miner._sealer.clock, "now_ms", leaps_once)
    with at_work(miner):
        until(lambda: chain.store.height() > 2)
    assert "cannot seal blocks now, so flights stay pending: the clock says 2037" in chain.lines
    assert "blocks can be sealed again" in chain.lines


def test_an_import_waits_and_says_so(chain: Fixture, tmp_path: Path) -> None:
    file = tmp_path / "flights.csv"
    file.write_text(csv_of(flights(20, 100)))
    chain.clocks.now_ms += 3650 * DAY_MS

    def report(line: str) -> None:
        chain.lines.append(line)
        chain.clocks.now_ms = TODAY_MS

    assert (
        import_flights(
            settings_for(chain.folder), FlightFile(file), Watcher(report=report)
        ).imported
        == 20
    )
    assert "the clock says 2037" in chain.lines[1]
    assert chain.store.block(2).header.timestamp == TODAY_MS


def test_an_import_during_which_the_clock_leapt_burns_nothing(
    chain: Fixture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "flights.csv"
    file.write_text(csv_of(flights(20, 100)))
    monkeypatch.setattr("backend.sealing.block_builder.now_ms", lambda: TODAY_MS + 3650 * DAY_MS)
    with pytest.raises(TryLater, match="run the import again"):
        import_flights(settings_for(chain.folder), FlightFile(file))
    assert chain.store.height() == 1
