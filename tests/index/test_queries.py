"""Reading the index: plans, snapshots beside a writer, threads, and what is said without one."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import replace
from datetime import date, timedelta
from functools import partial
from itertools import count, cycle
from pathlib import Path
from typing import Any

import apsw
import pytest

from backend.base.errors import TryLater
from backend.base.settings import PROJECT
from backend.chain.fields import Value
from backend.chain.identity import Stored, leg_of
from backend.index import index_file
from backend.index.checkpoint_note import note_settled
from backend.index.follower import IndexFollower
from backend.index.index_file import index_path, open_to_read
from backend.index.queries import IndexReader
from backend.index.suggestions import FIELDS, suggested
from backend.questions.groups import Shown
from backend.questions.values import AverageDelays, FilterTransactions, FlightCounter, Options
from backend.storage import checked_sqlite
from backend.storage.block_store import BlockStore
from tests.descriptors import open_files
from tests.index.test_follower import FILE_SPOILED
from tests.index.worlds import (
    SMALL,
    count_of,
    execute,
    follow,
    in_use,
    index_up_to,
    make_chain,
    on_each_statement,
    plain_flight,
    settle,
    totals_of,
)

ONE_LEG = FilterTransactions(335, "2008-01-03")
ALL_YEARS = ("1900-01-01", "2199-12-31")
AVERAGE = AverageDelays(19393, *ALL_YEARS)
COUNTER = FlightCounter("Washington, DC", "Tampa, FL", *ALL_YEARS)
ODD = ("1900-01-02", "2199-12-30")  # days, months and years at both ends
A_MONTH = ("2001-03-01", "2001-03-31")
A_FORTNIGHT = ("2001-03-05", "2001-03-18")
WORST = Shown("average_delay", order="descending", limit=10)
WAIT_S = 30
PLAIN, BY_CARRIER, BY_DESTINATION, BY_HOUR = (
    Options(group_by=by) for by in (None, "carrier", "destination", "hour")
)
EVERY_DELAY = Options(group_by="day", distribution=True)

Ask = Callable[[IndexReader], Any]
Leg = list[tuple[Any, ...]]


def counting(
    question: AverageDelays | FlightCounter, options: Options = PLAIN, below: int | None = None
) -> Ask:
    """What asks for the counts behind an answer."""
    return lambda reader: reader.counts(question, options, below)


ANYWHERE = FlightCounter(None, None, *ALL_YEARS)
ASKS: dict[str, Ask] = {
    "position": lambda reader: reader.position(),
    "days": lambda reader: reader.days(),
    "legs": lambda reader: reader.legs(ONE_LEG),
    "delay_totals": counting(AVERAGE),
    "route_count": counting(COUNTER),
    "legs as of": lambda reader: reader.legs(ONE_LEG, 2),
    "delay_totals as of": counting(AVERAGE, below=2),
    "route_count as of": counting(COUNTER, below=2),
    "delays": counting(AVERAGE, EVERY_DELAY),
    "delays as of": counting(AVERAGE, EVERY_DELAY, 2),
    "flights by day": counting(COUNTER, Options(group_by="day")),
    "flights by carrier": counting(COUNTER, BY_CARRIER),
    "flights by destination": counting(ANYWHERE, BY_DESTINATION),
    "destinations of an airport": counting(replace(ANYWHERE, ORIGIN="IAD"), BY_DESTINATION),
    "hours of days": counting(AverageDelays(None, "2008-01-02", "2008-01-05"), BY_HOUR),
    "airports": counting(
        AverageDelays(None, *ALL_YEARS), Options(group_by="origin", shown=Shown(limit=1))
    ),
    "flights by carrier as of": counting(COUNTER, BY_CARRIER, 2),
}
ON_ROUTE = AverageDelays(None, *A_MONTH, ORIGIN="IAD", DEST="TPA")
FROM_HERE = FlightCounter("Washington, DC", "Tampa, FL", *ODD)
DISTRIBUTION = Options(distribution=True)
AT_THE_TIP: dict[str, Ask] = {
    "legs": lambda reader: reader.legs(ONE_LEG),
    "delay_totals": counting(AverageDelays(19393, *ODD)),
    "route_count": counting(FROM_HERE),
    "distribution": counting(AverageDelays(19393, *ODD), DISTRIBUTION),
    "flights by carrier": counting(FROM_HERE, BY_CARRIER),
    "route by hour": counting(ON_ROUTE, BY_HOUR),
    "carrier by weekday": counting(AverageDelays(20366, *A_MONTH), Options(group_by="weekday")),
    "hours of some days": counting(AverageDelays(20366, *A_FORTNIGHT), BY_HOUR),
    "first airports": counting(
        AverageDelays(None, *A_MONTH), Options(group_by="destination", shown=WORST)
    ),
    "first routes of months and years": counting(
        AverageDelays(20366, "2000-01-01", "2001-10-31"), Options(group_by="route", shown=WORST)
    ),
    "route with its distribution": counting(ON_ROUTE, DISTRIBUTION),
}


# --- what an answer costs --------------------------------------------------------------------


@pytest.mark.parametrize("question", AT_THE_TIP)
def test_an_answer_at_the_tip_takes_as_many_steps_on_a_chain_ten_times_as_long(
    years: dict[int, Path], monkeypatch: pytest.MonkeyPatch, question: str
) -> None:
    """Steps of SQLite's virtual machine."""
    short, long = (steps_of(years[n], monkeypatch, AT_THE_TIP[question]) for n in (2, 20))
    assert 0 < long <= 1.2 * short + 20


@pytest.fixture(scope="module")
def years(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """Chains of one flight a day from Reno to Tampa, for two and for twenty years, and one more."""
    first = date(2000, 1, 1)
    days = [(first + timedelta(days=i)).isoformat() for i in range(7300)]
    other: dict[str, Value] = {
        "OP_CARRIER_AIRLINE_ID": 20366,
        "OP_CARRIER_FL_NUM": 7,
        "ORIGIN_CITY_NAME": "Reno, NV",
    }
    rows = [plain_flight()] + [plain_flight(FL_DATE=day, **other) for day in days]
    folders = {}
    for number in (2, 20):
        folders[number] = folder = tmp_path_factory.mktemp("years")
        some = rows[: 365 * number + 1]
        make_chain(folder, [some[i : i + 1000] for i in range(0, len(some), 1000)])
        follow(folder)
    return folders


def steps_of(folder: Path, monkeypatch: pytest.MonkeyPatch, ask: Ask) -> int:
    """Count the steps of SQLite's virtual machine for a question, once the file is open."""
    reader, steps = IndexReader(folder), 0
    real, opened = checked_sqlite.connect, []

    def connect(*given: Any) -> apsw.Connection:
        connection = real(*given)
        opened.append(connection)
        return connection

    def step() -> bool:
        nonlocal steps
        steps += 1
        return False  # go on

    with monkeypatch.context() as patch:
        patch.setattr(checked_sqlite, "connect", connect)
        ask(reader)
    for connection in opened:
        connection.set_progress_handler(step, 1)
    ask(reader)
    return steps


@pytest.mark.parametrize("field", FIELDS)
def test_completions_walk_through_no_table_that_grows_with_every_flight_or_day(
    years: dict[int, Path], monkeypatch: pytest.MonkeyPatch, field: str
) -> None:
    def ask(reader: IndexReader) -> Any:
        return reader.snapshot(lambda rows: suggested(rows, field, "", 10))

    short, long = (steps_of(years[n], monkeypatch, ask) for n in (2, 20))
    assert 0 < long <= 1.5 * short + 300  # a row a year and carrier


def test_readers_cannot_write(indexed: Path) -> None:
    with closing(open_to_read(index_path(indexed))) as connection:
        for sql in (
            "DELETE FROM flight",
            "CREATE TABLE more (one)",
            "UPDATE position SET only = 1",
        ):
            with pytest.raises(apsw.ReadOnlyError):
                connection.execute(sql)


# --- without an index ------------------------------------------------------------------------


@pytest.mark.parametrize(("spoil", "ask"), list(zip(cycle(FILE_SPOILED), ASKS, strict=False)))
def test_without_a_usable_index_one_is_asked_to_try_later(
    indexed: Path, spoil: str, ask: str
) -> None:
    FILE_SPOILED[spoil](indexed)
    with pytest.raises(TryLater, match="index") as caught:
        ASKS[ask](IndexReader(indexed))
    assert caught.value.retry_after_s >= 1


@pytest.mark.parametrize("spoilt", ["x'81'", "x'90'", "x'8101c0'"])
def test_a_distribution_that_is_none_is_never_an_answer(indexed: Path, spoilt: str) -> None:
    execute(indexed, f"UPDATE carrier_delays SET counts = {spoilt}")
    with pytest.raises(TryLater, match="reindex"):
        IndexReader(indexed).counts(AVERAGE, EVERY_DELAY)


def test_a_reader_answers_as_soon_as_there_is_an_index(tmp_path: Path) -> None:
    reader = IndexReader(tmp_path)
    with pytest.raises(TryLater):
        reader.position()
    make_chain(tmp_path, SMALL)
    with pytest.raises(TryLater):
        count_of(reader, COUNTER)
    follow(tmp_path)
    assert count_of(reader, COUNTER)[0] == 5
    assert reader.position().height == 4


# --- beside a writer -------------------------------------------------------------------------

GROWN = 40  # blocks
A_BLOCK = 3  # flights


@pytest.fixture(scope="module")
def growing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A chain of equal blocks: the height tells every count."""
    folder = tmp_path_factory.mktemp("growing")
    make_chain(folder, [[plain_flight()] * A_BLOCK] * GROWN)
    return folder


APPLY = """
import sys, time
from contextlib import closing
from pathlib import Path
from backend.index.index_file import index_path
from backend.index.writer import IndexWriter, sealed_block
from backend.storage.block_store import BlockStore

folder, chain = Path(sys.argv[1]), Path(sys.argv[2])
with closing(BlockStore(chain)) as store, closing(IndexWriter(index_path(folder))) as writer:
    for height in range(1, store.height() + 1):
        block = sealed_block(store.block(height))
        writer._connection.exec_trace = lambda *_: time.sleep(0.001) or True
        writer.apply([block])
"""


def consistent(reader: IndexReader, hashes: list[str]) -> int:
    """Ask everything once; every answer must be that of the height it names. The last height."""
    legs, at_legs = reader.legs(ONE_LEG)
    totals, at_totals = totals_of(reader, AVERAGE)
    count, at_count = count_of(reader, COUNTER)
    delays, at_delays = reader.counts(AVERAGE, EVERY_DELAY)
    counts, at_counts = reader.counts(COUNTER, BY_CARRIER)
    position = reader.position()
    assert len(legs) == A_BLOCK * at_legs.height
    assert [leg["TRANSACTION_ID"] for leg in legs] == list(range(A_BLOCK * at_legs.height))
    assert totals.flights == totals.arrived == A_BLOCK * at_totals.height
    assert totals.sum_arr_delay == 5 * A_BLOCK * at_totals.height
    assert count == A_BLOCK * at_count.height
    flown = A_BLOCK * at_delays.height
    assert delays.totals.flights == flown
    assert {key: of_day.flights for key, of_day in delays.groups.items()} == (
        {("2008-01-03",): flown} if flown else {}
    )
    assert delays.delays == ({5: flown} if flown else {})
    by_carrier = sum(totals.flights for totals in counts.groups.values())
    assert by_carrier == counts.totals.flights == A_BLOCK * at_counts.height
    assert position.transactions == A_BLOCK * position.height
    asked = (at_legs, at_totals, at_count, at_delays, at_counts, position)
    heights = [at.height for at in asked]
    assert heights == sorted(heights)
    for at in asked:
        assert at.tip_hash == hashes[at.height]
    return position.height


@pytest.mark.slow
def test_every_answer_is_of_the_height_it_names_while_another_process_writes(
    tmp_path: Path, growing: Path
) -> None:
    index_up_to(tmp_path, growing, 0)
    with closing(BlockStore(growing)) as store:
        hashes = [place.hash.hex() for place in store.places(0, GROWN + 1)]
    reader, read_heights = IndexReader(tmp_path), set()
    writer = subprocess.Popen(
        [sys.executable, "-c", APPLY, str(tmp_path), str(growing)], cwd=PROJECT
    )

    def watch() -> set[int]:
        heights = set()
        while GROWN not in heights and time.monotonic() < deadline:
            heights.add(consistent(reader, hashes))
        return heights

    deadline = time.monotonic() + WAIT_S
    with ThreadPoolExecutor(4) as pool:
        for watcher in [pool.submit(watch) for _ in range(4)]:
            read_heights |= watcher.result()
    assert writer.wait(WAIT_S) == 0
    assert GROWN in read_heights
    assert len(read_heights) > 5  # they did look while it grew


def test_a_reader_in_the_middle_of_an_answer_does_not_hold_up_the_end_of_the_writer(
    indexed: Path,
) -> None:
    with (
        closing(open_to_read(index_path(indexed))) as slow,
        closing(BlockStore(indexed)) as store,
    ):
        follower = IndexFollower(indexed, store)
        follower.follow()
        slow.execute("BEGIN")
        slow.execute("SELECT height FROM position").fetchone()
        make_chain(indexed, [[plain_flight()]])
        follower.follow()
        started = time.monotonic()
        follower.close()
        took_s = time.monotonic() - started
    assert took_s < 1


def test_an_exchange_of_the_index_at_any_moment_mixes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Numbers of airports mean something else in the other index, and so do their codes."""
    monkeypatch.setattr("backend.index.connections._LOOK_AGAIN_S", 0.0)
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    make_chain(ours, [[plain_flight()]])
    follow(ours)
    shutil.copytree(ours, theirs, symlinks=True)
    execute(
        theirs,
        "UPDATE place SET place = 10 + place, code = 'X' || code",
        "UPDATE place SET place = 13 - place",
        "UPDATE route SET origin = 3 - origin, dest = 3 - dest",
    )
    old, new = (legs_of(IndexReader(folder)) for folder in (ours, theirs))
    assert [leg[1:] for leg in (*old, *new)] == [("IAD", "TPA"), ("XIAD", "XTPA")]
    outcomes = []
    for moment in count(1):
        folder = tmp_path / f"moment {moment}"
        shutil.copytree(ours, folder, symlinks=True)
        settle(folder)
        shutil.copy(in_use(theirs), copied := index_file.new_file(folder))
        note_settled(copied, 0)
        answers: list[Leg] = []
        with closing(IndexReader(folder)) as reader:
            with monkeypatch.context() as patch:
                exchange_at(patch, folder, moment, partial(index_file.use, copied))
                for _ in range(3):
                    with suppress(TryLater):
                        answers.append(legs_of(reader))
            if in_use(folder) != copied:
                break  # there are not as many moments
            assert legs_of(reader) == new
        assert answers == sorted(answers, key=[old, new].index)
        outcomes.append(answers)
    assert answers == [old] * 3
    assert [old] * 3 in outcomes
    assert [new] * 3 in outcomes
    assert len(outcomes) > 15


def legs_of(reader: IndexReader) -> Leg:
    legs, as_of = reader.legs(ONE_LEG)
    return [(as_of.tip_hash, leg["ORIGIN"], leg["DEST"]) for leg in legs]


def exchange_at(
    patch: pytest.MonkeyPatch, folder: Path, moment: int, exchange: Callable[[], None]
) -> None:
    """Exchange the index just before something is done with its files for the time `moment`."""
    met = 0

    def meet(*_: object) -> None:
        nonlocal met
        met += 1
        if met == moment:
            exchange()

    def meeting(module: Any, name: str) -> None:
        real = getattr(module, name)

        def call(path: Any, *arguments: Any, **options: Any) -> Any:
            if not isinstance(path, int) and folder.name in str(path):
                meet()
            return real(path, *arguments, **options)

        patch.setattr(module, name, call)

    real_connect = checked_sqlite.connect

    def connect(*given: Any) -> apsw.Connection:
        meet()
        connection = real_connect(*given)
        on_each_statement(connection, meet)
        return connection

    patch.setattr(checked_sqlite, "connect", connect)
    for name in ("stat", "lstat", "readlink"):
        meeting(os, name)


# --- threads and descriptors -----------------------------------------------------------------


def test_a_reader_keeps_nothing_open_of_an_index_that_was_made_anew(
    indexed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("backend.index.connections._LOOK_AGAIN_S", 0.1)
    reader = IndexReader(indexed)
    old_file = in_use(indexed)
    count_of(reader, COUNTER)
    with closing(BlockStore(indexed)) as store, closing(IndexFollower(indexed, store)) as follower:
        follower.rebuild()
    deadline = time.monotonic() + 3
    while time.monotonic() < deadline and any("(deleted)" in name for name in open_files()):
        count_of(reader, COUNTER)
        time.sleep(0.05)
    assert not any("(deleted)" in name for name in open_files())
    assert in_use(indexed) != old_file
    assert str(in_use(indexed)) in open_files()


# --- the same flights ----------------------------------------------------------------------------

TIMES: dict[str, Value] = {
    "DEP_TIME": "0000",
    "ARR_TIME": "2400",
    "DEP_DELAY": 0,
    "ARR_DELAY": -3,
    "AIR_TIME": 71,
}
CANCELLED: dict[str, Value] = {**dict.fromkeys(TIMES), "CANCELLED": 1}
DIFFERENT: list[dict[str, Value]] = [
    {},
    {"FL_DATE": "2008-01-04"},
    {"OP_CARRIER_AIRLINE_ID": 19790},
    {"OP_CARRIER_FL_NUM": 336},
    {"ORIGIN_AIRPORT_ID": None},
    {"ORIGIN": "DCA"},
    {"ORIGIN_CITY_NAME": "Chantilly, VA"},
    {"ORIGIN_STATE_NM": "Maryland"},
    {"DEST_AIRPORT_ID": 15305},
    {"DEST": "PIE"},
    {"DEST_CITY_NAME": "Clearwater, FL"},
    {"DEST_STATE_NM": "Georgia"},
    {"DEP_TIME": "0001"},
    {"DEP_DELAY": -1},
    {"ARR_TIME": "2359"},
    {"ARR_DELAY": 99},
    {"AIR_TIME": 60},
    TIMES,
    CANCELLED,
]


def test_the_oldest_of_equal_records_of_a_leg_are_found_and_no_others(tmp_path: Path) -> None:
    different = [plain_flight(**changed) for changed in DIFFERENT]
    assert len(set(different)) == len(DIFFERENT)
    make_chain(tmp_path, [different[:3], [*different[3:], *different]])
    follow(tmp_path)
    together = list(enumerate(different))
    with closing(IndexReader(tmp_path)) as reader:
        for below in (None, 5, 0):
            expected: dict[object, list[Stored]] = {}
            for number, flight in together[:below]:
                stored = Stored(number, 1 if number < 3 else 2, flight)
                expected.setdefault(leg_of(flight), []).append(stored)
            for flight in different:
                leg = leg_of(flight)
                records = reader.records_of([flight], below)
                assert records == ({leg: expected[leg]} if leg in expected else {})
            assert reader.records_of(different, below) == expected


def test_a_flight_is_found_among_very_many_of_its_number(tmp_path: Path) -> None:
    other, same = plain_flight(ORIGIN="DCA"), plain_flight(ARR_DELAY=3)
    make_chain(tmp_path, [[*[plain_flight()] * 300, *[other] * 300, same, plain_flight()]])
    follow(tmp_path)
    with closing(IndexReader(tmp_path)) as reader:
        assert reader.records_of([same]) == {
            leg_of(same): [Stored(0, 1, plain_flight()), Stored(600, 1, same)]
        }
        assert reader.records_of([other]) == {leg_of(other): [Stored(300, 1, other)]}
