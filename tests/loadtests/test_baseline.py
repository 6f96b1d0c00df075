import json
from collections.abc import Callable, Iterable
from datetime import date, timedelta
from hashlib import sha256
from pathlib import Path
from statistics import fmean
from time import monotonic, perf_counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loadtests.baseline import (
    FLIGHT_FIELDS,
    BlockMismatch,
    Costs,
    Pace,
    StudyLedger,
    block_path,
    write_chain,
)

Flight = dict[str, object]
Folders = Callable[[], Path]

CITIES = ("Chicago, IL", "Springfield, IL", "San José, CA")
DAYS = tuple((date(2008, 1, 1) + timedelta(days=day)).isoformat() for day in range(4))
CARRIERS = (19393, 19790)
NUMBERS = (1, 335)
CACHED = 19
BOTH_ENDS = (DAYS[0], DAYS[-1])

flights = st.fixed_dictionaries(
    {
        "FL_DATE": st.sampled_from(DAYS),
        "OP_CARRIER_AIRLINE_ID": st.sampled_from(CARRIERS),
        "OP_CARRIER_FL_NUM": st.sampled_from(NUMBERS),
        "ORIGIN_CITY_NAME": st.sampled_from(CITIES),
        "DEST_CITY_NAME": st.sampled_from(CITIES),
        "ARR_DELAY": st.none() | st.integers(-60, 600),
    }
)


@st.composite
def chains(draw: st.DrawFn) -> list[list[Flight]]:
    """Flights cut into blocks of a freely chosen size, the last one possibly short."""
    everything: list[Flight] = draw(st.lists(flights, max_size=60))
    per_block = draw(st.integers(1, 8))
    return [everything[start : start + per_block] for start in range(0, len(everything), per_block)]


def a_flight(number: int, **changes: object) -> Flight:
    usual: Flight = {
        "FL_DATE": DAYS[0],
        "OP_CARRIER_AIRLINE_ID": CARRIERS[0],
        "OP_CARRIER_FL_NUM": number,
        "ORIGIN_CITY_NAME": CITIES[0],
        "DEST_CITY_NAME": CITIES[1],
        "ARR_DELAY": number,
    }
    return usual | changes


def ledger_of_blocks(folder: Path, block_count: int, cached_blocks: int = CACHED) -> StudyLedger:
    """One flight per block; flight number, delay, id and height are the same number."""
    write_chain(folder, [[a_flight(height)] for height in range(block_count)])
    return StudyLedger(folder, cached_blocks)


def scan(ledger: StudyLedger) -> int:
    """Blocks read from disk by one full scan, whose answer is checked."""
    before = ledger.costs.disk_reads
    assert ledger.flight_counter(CITIES[0], CITIES[1], *BOTH_ENDS) == len(ledger)
    return ledger.costs.disk_reads - before


@pytest.fixture(scope="session")
def new_folder(tmp_path_factory: pytest.TempPathFactory) -> Folders:
    """A fresh folder per call, for tests that hypothesis runs many times."""
    return lambda: tmp_path_factory.mktemp("chain")


@given(
    blocks=chains(),
    cached_blocks=st.integers(1, 4),
    cities=st.tuples(st.sampled_from(CITIES), st.sampled_from(CITIES)),
    days=st.tuples(st.sampled_from(DAYS), st.sampled_from(DAYS)),
    carrier=st.sampled_from(CARRIERS),
    number=st.sampled_from(NUMBERS),
)
@settings(deadline=None)
def test_answers_equal_a_plain_loop(
    new_folder: Folders,
    blocks: list[list[Flight]],
    cached_blocks: int,
    cities: tuple[str, str],
    days: tuple[str, str],
    carrier: int,
    number: int,
) -> None:
    folder = new_folder()
    assert write_chain(folder, blocks) == len(blocks)
    ledger = StudyLedger(folder, cached_blocks)
    everything = [flight for block in blocks for flight in block]
    inside = [flight for flight in everything if days[0] <= str(flight["FL_DATE"]) <= days[1]]
    between = [(flight["ORIGIN_CITY_NAME"], flight["DEST_CITY_NAME"]) for flight in inside]
    delays = [
        delay
        for flight in inside
        if flight["OP_CARRIER_AIRLINE_ID"] == carrier
        and isinstance(delay := flight["ARR_DELAY"], int)
    ]
    asked = {"OP_CARRIER_FL_NUM": number, "FL_DATE": days[0]}
    ids = [str(n) for n, flight in enumerate(everything) if flight.items() >= asked.items()]

    assert ledger.flight_counter(*cities, *days) == between.count(cities)
    assert ledger.average_delays(carrier, *days) == (fmean(delays) if delays else None)
    answers = ledger.filter_transactions(number, days[0])
    assert [answer["TRANSACTION_ID"] for answer in answers] == ids


@given(blocks=chains(), cached_blocks=st.integers(1, 4), data=st.data())
@settings(deadline=None)
def test_every_block_and_transaction_is_found_in_any_order(
    new_folder: Folders,
    blocks: list[list[Flight]],
    cached_blocks: int,
    data: st.DataObject,
) -> None:
    folder = new_folder()
    write_chain(folder, blocks)
    ledger = StudyLedger(folder, cached_blocks)
    everything = [flight for block in blocks for flight in block]
    for transaction_id in data.draw(st.permutations(range(len(everything)))):
        transaction = ledger.transaction(transaction_id)
        assert transaction["TRANSACTION_ID"] == str(transaction_id)
        wanted = everything[transaction_id]["ARR_DELAY"]
        assert transaction["ARR_DELAY"] == ("" if wanted is None else str(wanted))
    for height in data.draw(st.permutations(range(len(blocks)))):
        assert ledger.block(height).height == height
        assert len(ledger.block(height).transactions) == len(blocks[height])


def test_blocks_without_transactions_are_passed_over(tmp_path: Path) -> None:
    blocks: list[list[Flight]] = [[], [a_flight(0)], [], [], [a_flight(1)], []]
    write_chain(tmp_path, blocks)
    ledger = StudyLedger(tmp_path, 1)
    assert [ledger.transaction(n)["OP_CARRIER_FL_NUM"] for n in (0, 1)] == ["0", "1"]
    assert ledger.flight_counter(CITIES[0], CITIES[1], *BOTH_ENDS) == 2


# --- caches --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("blocks", "reads"),
    [
        *((few, [0, 0]) for few in (0, 1, 18, 19)),
        (20, [1, 0]),
        (38, [19, 0]),  # what fits both caches is read once
        *((many, [many - CACHED] * 3) for many in (57, 58, 80)),
    ],
)
def test_a_scan_reads_what_the_caches_do_not_hold(
    tmp_path: Path, blocks: int, reads: list[int]
) -> None:
    ledger = ledger_of_blocks(tmp_path, blocks)
    assert [scan(ledger) for _ in reads] == reads


def test_a_scan_misses_once_per_refill(tmp_path: Path) -> None:
    ledger = ledger_of_blocks(tmp_path, 80)
    scan(ledger)
    refills = 4  # 61 blocks outside `last`, 19 at a time
    assert ledger.costs.cache_hits == 80 - refills


def test_the_newest_blocks_are_never_read_again(tmp_path: Path) -> None:
    ledger = ledger_of_blocks(tmp_path, 40)
    for height in range(40 - CACHED, 40):
        ledger.block(height)
    assert (ledger.costs.disk_reads, ledger.costs.cache_hits) == (0, CACHED)


@pytest.mark.parametrize(
    ("height", "neighbours"),
    [(50, range(41, 60)), (3, range(19)), (78, range(62, 81)), (80, range(62, 81))],
)
def test_asking_for_a_block_reads_its_neighbourhood(
    tmp_path: Path, height: int, neighbours: Iterable[int]
) -> None:
    ledger = ledger_of_blocks(tmp_path, 100)
    ledger.block(height)
    assert (ledger.costs.disk_reads, ledger.costs.cache_hits) == (CACHED, 0)
    for neighbour in neighbours:
        ledger.block(neighbour)
    assert (ledger.costs.disk_reads, ledger.costs.cache_hits) == (CACHED, CACHED)


def test_a_refill_keeps_what_it_has(tmp_path: Path) -> None:
    ledger = ledger_of_blocks(tmp_path, 100)
    ledger.block(50)  # reads 41 to 59
    ledger.block(60)  # holds 51 to 69 and has 51 to 59
    assert ledger.costs.disk_reads == CACHED + 10


# --- files ---------------------------------------------------------------------------------------


def test_files_hold_strings_only_and_empty_for_null(tmp_path: Path) -> None:
    write_chain(tmp_path, [[a_flight(7, ARR_DELAY=None, timestamp=1200000000000)]])
    content = json.loads((tmp_path / "0.json").read_text(encoding="utf-8"))
    assert set(content) == {"height", "previous_hash", "timestamp", "hash", "transactions"}
    (transaction,) = content["transactions"]
    assert set(transaction) == {*FLIGHT_FIELDS, "TRANSACTION_ID", "timestamp"}
    assert transaction["OP_CARRIER_FL_NUM"] == "7"
    assert transaction["timestamp"] == "1200000000000"
    assert transaction["ARR_DELAY"] == transaction["AIR_TIME"] == ""
    assert all(isinstance(value, str) for value in transaction.values())


def test_files_are_linked_by_the_hash_of_their_content(tmp_path: Path) -> None:
    ledger_of_blocks(tmp_path, 3)
    previous_hash = "0"
    for height in range(3):
        content = json.loads(block_path(tmp_path, height).read_text(encoding="utf-8"))
        recorded = content.pop("hash")
        assert content["previous_hash"] == previous_hash
        previous_hash = sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
        assert recorded == previous_hash


@pytest.mark.parametrize("is_open", [False, True])
def test_no_block_is_used_whose_hash_is_another(tmp_path: Path, is_open: bool) -> None:
    ledger = ledger_of_blocks(tmp_path, 30)
    file = block_path(tmp_path, 9)
    file.write_text(file.read_text().replace('"ARR_DELAY": "9"', '"ARR_DELAY": "0"'))
    with pytest.raises(BlockMismatch, match="block 9 hashes to"):
        scan(ledger) if is_open else StudyLedger(tmp_path)


# --- an emulated disk ----------------------------------------------------------------------------


def test_a_block_that_is_read_takes_its_time_and_one_in_a_cache_none(tmp_path: Path) -> None:
    write_chain(tmp_path, [[a_flight(height)] for height in range(12)])
    ledger = StudyLedger(tmp_path, cached_blocks=3, block_s=0.002)
    start_s = perf_counter()
    assert scan(ledger) == 9
    assert perf_counter() - start_s >= 0.99 * 9 * 0.002
    ledger.costs = Costs()
    ledger.block(11)
    assert ledger.costs.disk_reads == 0


# --- its pace: lower bounds, and what is taken off; never how late a machine wakes a thread -------

LONG_AGO_S = 3600.0


def test_pieces_take_their_time_in_all() -> None:
    pace = Pace(0.001)
    start_s = monotonic()
    pace.begin()
    for _ in range(30):
        pace.piece_done()
    assert monotonic() - start_s >= 0.030
    pace.end()


def test_what_was_too_long_is_taken_off_later_but_not_more_than_it_should_have_been() -> None:
    pace = Pace(0.02)
    pace.begin()
    pace.piece_done()
    pace._deadline_s -= LONG_AGO_S  # as if the real work had taken that long
    pace.end()
    start_s = monotonic()
    for _ in range(2):  # the first owes one piece, and so costs nothing; the second does not
        pace.begin()
        pace.piece_done()
        pace.end()
    assert 0.018 <= monotonic() - start_s < LONG_AGO_S
