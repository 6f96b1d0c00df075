"""The facade: blocks, transactions, the tip, accepting, and averages that were worked out by hand.

That the three questions are answered rightly is shown in tests/index/test_answers.py.
"""

import json
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from backend.base import files
from backend.base.errors import DamagedBlock, NotFound, TryLater
from backend.base.settings import Settings
from backend.chain.canonical import canonical
from backend.chain.fields import FIELD_NAMES, Value
from backend.chain.flight import Flight
from backend.chain.merkle import leaf_hash
from backend.ledger.ledger import Ledger
from backend.mempool import Mempool
from backend.questions.answer_types import AsOf
from backend.questions.values import AverageDelays, FilterTransactions, FlightCounter, Options
from backend.sealing.miner import Sealer
from backend.sealing.miner_status import LOCK_NAME, STATUS_NAME
from tests.cases import each_of
from tests.index.conftest import open_files
from tests.index.worlds import follow, following, make_chain, plain_flight
from tests.storage.chains import block_file, flip

SIZES = [3, 0, 0, 1, 2, 0]
TIP = len(SIZES)
TRANSACTIONS = sum(SIZES)
FLIGHTS = [plain_flight(OP_CARRIER_FL_NUM=n + 1) for n in range(TRANSACTIONS)]
JANUARY = ("2008-01-01", "2008-01-31")
QUESTIONS: dict[str, Callable[[Ledger, Options], Any]] = {
    "filter_transactions": lambda ledger, options: ledger.answers.filter_transactions(
        FilterTransactions(1, "2008-01-03"), options
    ),
    "average_delays": lambda ledger, options: ledger.answers.average_delays(
        AverageDelays(19393, *JANUARY), options
    ),
    "flight_counter": lambda ledger, options: ledger.answers.flight_counter(
        FlightCounter("Washington, DC", "Tampa, FL", *JANUARY), options
    ),
}
SEALED_WITHIN_S = 20


@pytest.fixture(autouse=True)
def no_descriptor_is_left_open() -> Iterator[None]:
    before = open_files()
    yield
    assert set(open_files()) <= set(before)


def settings_of(folder: Path, **chosen: Any) -> Settings:
    made = Settings(dir=str(folder), difficulty_bits=0, min_free_bytes=0)
    return replace(made, **{"clock_wait_s": 0, **chosen})  # these chains are of 1970


@contextmanager
def opened(folder: Path, **chosen: int) -> Iterator[Ledger]:
    with closing(Ledger(settings_of(folder, **chosen), lambda line: None)) as ledger:
        yield ledger


@pytest.fixture
def chain(tmp_path: Path) -> Path:
    """Genesis and six blocks, three of them empty, with their index."""
    left = iter(FLIGHTS)
    make_chain(tmp_path, [[next(left) for _ in range(size)] for size in SIZES])
    follow(tmp_path)
    return tmp_path


@pytest.fixture
def ledger(chain: Path) -> Iterator[Ledger]:
    with opened(chain) as made:
        yield made


@pytest.fixture
def nowhere(tmp_path: Path) -> Iterator[Ledger]:
    """A ledger whose folder does not exist."""
    with opened(tmp_path / "nowhere") as made:
        yield made
    assert not (tmp_path / "nowhere").exists(), "reading made the folder"


def seal(folder: Path) -> int:
    """Seal what is pending, as the miner does; how many blocks that made."""
    made = Sealer(settings_of(folder), lambda line: None)
    with closing(made) as sealer, sealer.writing(wait=True):
        return len(sealer.seal_pending())


# --- nothing there yet -----------------------------------------------------------------------


def test_without_a_chain_there_is_no_tip_no_block_and_no_transaction(nowhere: Ledger) -> None:
    with pytest.raises(TryLater, match="the chain does not exist yet"):
        nowhere.tip()
    assert nowhere.blocks(None, 10).headers == []
    with pytest.raises(NotFound, match="block 0 does not exist"):
        nowhere.block(0, 0, 10)
    for transaction_id in (0, 1, -1, 2**63, 10**30):
        with pytest.raises(NotFound, match=f"transaction {transaction_id}"):
            nowhere.transaction(transaction_id)


@each_of("ask", QUESTIONS.values())
def test_without_a_chain_questions_are_for_later(
    nowhere: Ledger, ask: Callable[[Ledger, Options], Any]
) -> None:
    for options in (Options("index"), Options("scan"), Options("index", 0)):
        with pytest.raises(TryLater) as caught:
            ask(nowhere, options)
        assert caught.value.retry_after_s >= 1
    with pytest.raises(TryLater, match="the chain does not exist yet"):
        ask(nowhere, Options("scan", 0))


def test_without_anything_three_reasons_are_given_for_not_being_ready(nowhere: Ledger) -> None:
    chain, miner, index = nowhere.not_ready()
    assert "the chain does not exist yet" in chain
    assert "no miner" in miner
    assert "index" in index


# --- genesis alone ---------------------------------------------------------------------------


def test_a_chain_of_genesis_alone(tmp_path: Path) -> None:
    make_chain(tmp_path, [], genesis_ms=1234)
    follow(tmp_path)
    with opened(tmp_path) as ledger:
        tip = ledger.tip()
        genesis = ledger.block(0, 0, 1000)
        assert (tip["height"], tip["timestamp"], tip["transactions"]) == (0, 1234, 0)
        assert (tip["pending"], tip["next_block_at"]) == (0, None)
        assert tip["hash"] == genesis["hash"]
        assert genesis["transactions"] == []
        assert [block["height"] for block in ledger.blocks(None, 10).headers] == [0]
        with pytest.raises(NotFound):
            ledger.transaction(0)
        for ask in QUESTIONS.values():
            for engine in ("index", "scan"):
                answer = ask(ledger, Options(engine))
                assert answer.as_of == AsOf(0, tip["hash"])
                assert not getattr(answer, "count", 0)
                assert getattr(answer, "average_delay", None) is None


# --- blocks and transactions -----------------------------------------------------------------


def test_every_transaction_is_found_in_its_block(ledger: Ledger) -> None:
    heights = [height + 1 for height, size in enumerate(SIZES) for _ in range(size)]
    for transaction_id, flight in enumerate(FLIGHTS):
        found = ledger.transaction(transaction_id)
        block = ledger.block(heights[transaction_id], 0, 1000)
        assert found["state"] == "mined"
        assert found["block"] == {"height": heights[transaction_id], "hash": block["hash"]}
        assert found["transaction"] in block["transactions"]
        assert found["transaction"]["TRANSACTION_ID"] == transaction_id
        assert tuple(found["transaction"][name] for name in FIELD_NAMES) == flight


@each_of("transaction_id", [-1, TRANSACTIONS, TRANSACTIONS + 1, 2**63, 10**30])
def test_a_transaction_that_was_never_accepted_is_not_found(
    ledger: Ledger, transaction_id: int
) -> None:
    with pytest.raises(NotFound, match=f"transaction {transaction_id}"):
        ledger.transaction(transaction_id)


def test_a_block_holds_its_header_its_hash_and_its_transactions(ledger: Ledger) -> None:
    below = ledger.block(0, 0, 1000)
    for height in range(1, TIP + 1):
        block = ledger.block(height, 0, 1000)
        assert (block["height"], block["previous_hash"]) == (height, below["hash"])
        assert block["transaction_count"] == SIZES[height - 1] == len(block["transactions"])
        header = {n: v for n, v in block.items() if n not in {"hash", "transactions"}}
        assert len(header) == 12
        below = block


@each_of(
    ("offset", "limit", "ids"),
    [
        (0, 1000, [0, 1, 2]),
        (0, 1, [0]),
        (1, 1, [1]),
        (1, 5, [1, 2]),
        (3, 5, []),
        (10**9, 5, []),
        (0, 0, []),
    ],
)
def test_a_block_shows_as_many_transactions_as_are_asked_for(
    ledger: Ledger, offset: int, limit: int, ids: list[int]
) -> None:
    block = ledger.block(1, offset, limit)
    assert [one["TRANSACTION_ID"] for one in block["transactions"]] == ids
    assert block["transaction_count"] == 3


@each_of("height", [-1, TIP + 1, 10**15])
def test_a_block_that_is_not_there_is_not_found(ledger: Ledger, height: int) -> None:
    with pytest.raises(NotFound, match=f"block {height} does not exist; the newest is block {TIP}"):
        ledger.block(height, 0, 10)


@each_of(
    ("before", "limit", "heights"),
    [
        (None, 3, [6, 5, 4]),
        (None, 100, [6, 5, 4, 3, 2, 1, 0]),
        (None, 0, []),
        (7, 1, [6]),
        (6, 2, [5, 4]),
        (1, 5, [0]),
        (0, 5, []),
        (-3, 5, []),
        (10**15, 2, [6, 5]),
    ],
)
def test_headers_come_newest_first_by_pages(
    ledger: Ledger, before: int | None, limit: int, heights: list[int]
) -> None:
    page = ledger.blocks(before, limit).headers
    assert [header["height"] for header in page] == heights
    for header in page:
        whole = ledger.block(header["height"], 0, 0)
        assert header == {name: value for name, value in whole.items() if name != "transactions"}


def test_a_damaged_block_is_never_shown(chain: Path) -> None:
    flip(block_file(chain), block_file(chain).stat().st_size - 1)  # the tip's body
    with opened(chain) as ledger:
        asks: list[Callable[[], object]] = [
            lambda: ledger.block(TIP, 0, 10),
            ledger.tip,
            lambda: QUESTIONS["average_delays"](ledger, Options("scan")),
        ]
        for ask in asks:
            with pytest.raises(DamagedBlock, match=f"block {TIP}"):
                ask()
        assert QUESTIONS["average_delays"](ledger, Options("index")).flights == TRANSACTIONS
        listed = ledger.blocks(None, 2)
        assert [header["height"] for header in listed.headers] == [TIP - 1]
        assert [each["height"] for each in listed.damaged] == [TIP]


# --- the tip and being ready -----------------------------------------------------------------


def test_the_tip_says_where_the_ledger_stands(ledger: Ledger) -> None:
    newest = ledger.block(TIP, 0, 0)
    assert ledger.tip() == {
        "height": TIP,
        "hash": newest["hash"],
        "timestamp": newest["timestamp"],
        "transactions": TRANSACTIONS,
        "pending": 0,
        "next_block_at": None,
    }


def test_the_tip_counts_a_transaction_once_while_its_block_is_sealed(
    chain: Path, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger.submitter.add(plain_flight(), wait_s=0)
    counted = ledger._mempool.pending_count

    def sealed_before_counting() -> int:
        seal(chain)
        return counted()

    monkeypatch.setattr(ledger._mempool, "pending_count", sealed_before_counting)
    tip = ledger.tip()
    assert (tip["transactions"], tip["pending"]) == (TRANSACTIONS + 1, 0)


@contextmanager
def mining(folder: Path, next_block_at: int | None) -> Iterator[None]:
    """As if a miner ran. next_block_at: None while it has not said yet."""
    lock, status = files.FileLock(folder / LOCK_NAME), folder / STATUS_NAME
    if next_block_at is not None:
        said = {"next_block_at": next_block_at, "pid": 1, "due_s": time.monotonic() + 60}
        status.write_text(json.dumps(said), encoding="utf-8")
    with lock:
        yield
    status.unlink(missing_ok=True)


def test_with_a_miner_and_an_index_at_the_tip_it_is_ready(chain: Path, ledger: Ledger) -> None:
    with mining(chain, 4321):
        assert ledger.tip()["next_block_at"] == 4321
        assert ledger.not_ready() == []
    assert ledger.not_ready() == ["no miner is running, so new flights stay pending"]


def test_while_the_index_is_behind_it_is_not_ready(chain: Path, ledger: Ledger) -> None:
    make_chain(chain, [[plain_flight()]])
    with mining(chain, 1):
        assert ledger.not_ready() == ["blocks that the index lacks: 1"]
        follow(chain)
        assert ledger.not_ready() == []


def test_an_index_behind_the_tip_answers_for_the_block_at_which_it_stands(
    chain: Path, ledger: Ledger
) -> None:
    make_chain(chain, [[plain_flight(OP_CARRIER_FL_NUM=1)]])
    for ask in QUESTIONS.values():
        assert ask(ledger, Options("index")).as_of.height == TIP
        assert ask(ledger, Options("scan")).as_of.height == TIP + 1
        assert ask(ledger, Options("index", TIP)).as_of.height == TIP
        with pytest.raises(TryLater, match=f"the index has reached only block {TIP}") as caught:
            ask(ledger, Options("index", TIP + 1))
        assert caught.value.retry_after_s >= 1
        with pytest.raises(NotFound):
            ask(ledger, Options("index", TIP + 2))


# --- accepting -------------------------------------------------------------------------------


def test_a_flight_is_pending_and_then_mined_as_the_same_transaction(
    chain: Path, ledger: Ledger
) -> None:
    flight = plain_flight(ORIGIN_CITY_NAME="東京")
    accepted = ledger.submitter.add(flight, wait_s=0)
    assert (accepted["TRANSACTION_ID"], accepted["state"]) == (TRANSACTIONS, "pending")
    pending = ledger.transaction(TRANSACTIONS)
    assert (pending["state"], pending["block"]) == ("pending", None)
    assert pending["transaction"]["timestamp"] == accepted["timestamp"]
    assert tuple(pending["transaction"][name] for name in FIELD_NAMES) == flight
    assert ledger.tip()["pending"] == 1
    assert QUESTIONS["average_delays"](ledger, Options()).flights == TRANSACTIONS

    assert seal(chain) == 1

    mined = ledger.transaction(TRANSACTIONS)
    assert mined["state"] == "mined"
    assert mined["transaction"] == pending["transaction"]
    block = ledger.block(TIP + 1, 0, 10)
    assert mined["block"] == {"height": TIP + 1, "hash": block["hash"]}
    assert accepted["content_hash"] == leaf_hash(canonical(mined["transaction"])).hex()
    assert accepted["content_hash"] == block["transactions_root"]  # the only one in its block
    tip = ledger.tip()
    assert (tip["pending"], tip["transactions"]) == (0, TRANSACTIONS + 1)
    assert QUESTIONS["average_delays"](ledger, Options()).flights == TRANSACTIONS + 1


def test_ids_are_positions_in_the_ledger_without_gaps(chain: Path, ledger: Ledger) -> None:
    ids = [ledger.submitter.add(flight, wait_s=0)["TRANSACTION_ID"] for flight in FLIGHTS[:3]]
    seal(chain)
    with opened(chain) as another:
        ids.append(another.submitter.add(FLIGHTS[3], wait_s=0)["TRANSACTION_ID"])
    ids.append(ledger.submitter.add(FLIGHTS[4], wait_s=0)["TRANSACTION_ID"])
    assert ids == list(range(TRANSACTIONS, TRANSACTIONS + 5))
    assert [ledger.transaction(i)["state"] for i in ids] == ["mined"] * 3 + ["pending"] * 2


def test_a_first_flight_is_accepted_before_there_is_a_chain(tmp_path: Path) -> None:
    folder = tmp_path / "new"
    with opened(folder) as ledger:
        assert ledger.submitter.add(FLIGHTS[0], wait_s=0)["TRANSACTION_ID"] == 0
        assert ledger.transaction(0)["state"] == "pending"
        assert seal(folder) == 1
        assert ledger.transaction(0)["block"]["height"] == 1


def test_whoever_waits_hears_that_it_is_mined_and_can_ask_for_it_at_once(
    chain: Path, ledger: Ledger
) -> None:
    def seal_when_pending() -> None:
        deadline = time.monotonic() + SEALED_WITHIN_S
        with opened(chain) as watching:
            while not watching.tip()["pending"] and time.monotonic() < deadline:
                time.sleep(0.01)
        seal(chain)

    miner = threading.Thread(target=seal_when_pending)
    miner.start()
    accepted = ledger.submitter.add(plain_flight(OP_CARRIER_FL_NUM=777), wait_s=SEALED_WITHIN_S)
    assert accepted["state"] == "mined"
    question = FilterTransactions(777, "2008-01-03")
    (leg,) = ledger.answers.filter_transactions(question, Options()).flights
    assert leg["TRANSACTION_ID"] == accepted["TRANSACTION_ID"]
    miner.join(SEALED_WITHIN_S)


def test_whoever_has_waited_in_vain_hears_that_it_is_pending(ledger: Ledger) -> None:
    started = time.monotonic()
    assert ledger.submitter.add(FLIGHTS[0], wait_s=0.2)["state"] == "pending"
    assert 0.2 <= time.monotonic() - started < 5


def test_a_signal_in_the_thread_that_waits_lets_it_go(ledger: Ledger) -> None:
    of_others = signal.signal(
        signal.SIGALRM, lambda received, frame: ledger.submitter.stop_waiting()
    )
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        started = time.monotonic()
        assert ledger.submitter.add(FLIGHTS[0], wait_s=SEALED_WITHIN_S)["state"] == "pending"
        assert time.monotonic() - started < SEALED_WITHIN_S / 2
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, of_others)


def test_a_full_mempool_pushes_back(chain: Path) -> None:
    with opened(chain, mempool_transactions=2) as ledger:
        for flight in FLIGHTS[:2]:
            ledger.submitter.add(flight, wait_s=0)
        with pytest.raises(TryLater, match="mempool is full") as caught:
            ledger.submitter.add(FLIGHTS[2], wait_s=0)
        assert caught.value.retry_after_s >= 1
        assert ledger.tip()["pending"] == 2
        seal(chain)
        assert ledger.submitter.add(FLIGHTS[2], wait_s=0)["TRANSACTION_ID"] == TRANSACTIONS + 2


def test_a_transaction_that_is_mined_between_two_looks_is_found(
    chain: Path, ledger: Ledger
) -> None:
    """Another thread asks for the tip, and so forgets what is mined, between the two."""
    transaction_id = ledger.submitter.add(FLIGHTS[0], wait_s=0)["TRANSACTION_ID"]
    find = Mempool.find

    def find_late(mempool: Mempool, wanted: int) -> tuple[Flight, int] | None:
        if not sealed:
            sealed.append(seal(chain))
            ledger.tip()
        return find(mempool, wanted)

    sealed: list[int] = []
    with mock.patch.object(Mempool, "find", find_late):
        found = ledger.transaction(transaction_id)
    assert found["transaction"]["TRANSACTION_ID"] == transaction_id


# --- averages --------------------------------------------------------------------------------

DIVERTED: dict[str, Value] = {"ARR_TIME": None, "ARR_DELAY": None, "AIR_TIME": None}
CANCELLED: dict[str, Value] = {**DIVERTED, "CANCELLED": 1, "DEP_TIME": None, "DEP_DELAY": None}
NOTHING: dict[str, float | int | None] = {
    "average_delay": None,
    "flights": 0,
    "arrived": 0,
    "cancelled": 0,
    "no_arrival": 0,
    "on_time_share_of_arrived": None,
    "on_time_share_of_scheduled": None,
    "average_departure_delay": None,
}

BY_HAND: dict[str, tuple[list[dict[str, Value]], dict[str, float | int | None]]] = {
    "nobody": ([{"OP_CARRIER_AIRLINE_ID": 1}], {}),
    "only a cancelled flight": (
        [CANCELLED],
        {"flights": 1, "cancelled": 1, "on_time_share_of_scheduled": 0.0},
    ),
    "cancelled after it had left the gate": (
        [{**CANCELLED, "DEP_DELAY": 30}],
        {
            "flights": 1,
            "cancelled": 1,
            "on_time_share_of_scheduled": 0.0,
            "average_departure_delay": 30.0,
        },
    ),
    "only a diverted flight": (
        [{**DIVERTED, "DEP_DELAY": -4}],
        {
            "flights": 1,
            "no_arrival": 1,
            "on_time_share_of_scheduled": 0.0,
            "average_departure_delay": -4.0,
        },
    ),
    "delays that cancel out": (
        [{"ARR_DELAY": -20, "DEP_DELAY": 1}, {"ARR_DELAY": 20, "DEP_DELAY": -1}],
        {
            "flights": 2,
            "arrived": 2,
            "average_delay": 0.0,
            "average_departure_delay": 0.0,
            "on_time_share_of_arrived": 0.5,
            "on_time_share_of_scheduled": 0.5,
        },
    ),
    "a bit of everything": (
        [
            {"ARR_DELAY": 14, "DEP_DELAY": 0},
            {"ARR_DELAY": 15, "DEP_DELAY": 10},
            {"ARR_DELAY": -5, "DEP_DELAY": None},
            {"ARR_DELAY": 100, "DEP_DELAY": 90, "FL_DATE": "2008-01-31"},
            {**DIVERTED, "DEP_DELAY": 50},
            CANCELLED,
            CANCELLED,
            {"ARR_DELAY": 9999, "FL_DATE": "2008-02-01"},
            {"ARR_DELAY": 9999, "FL_DATE": "2007-12-31"},
            {"ARR_DELAY": 9999, "OP_CARRIER_AIRLINE_ID": 1},
        ],
        {
            "flights": 7,
            "arrived": 4,
            "cancelled": 2,
            "no_arrival": 1,
            "average_delay": 31.0,  # (14 + 15 - 5 + 100) / 4
            "average_departure_delay": 37.5,  # (0 + 10 + 90 + 50) / 4
            "on_time_share_of_arrived": 0.5,
            "on_time_share_of_scheduled": 2 / 7,
        },
    ),
}


@pytest.mark.parametrize("engine", ["index", "scan"])
@pytest.mark.parametrize("case", BY_HAND)
def test_averages_are_as_worked_out_by_hand(tmp_path: Path, case: str, engine: str) -> None:
    changes, expected = BY_HAND[case]
    make_chain(tmp_path, [[plain_flight(**changed)] for changed in changes])
    follow(tmp_path)
    with opened(tmp_path) as ledger:
        answer = ledger.answers.average_delays(AverageDelays(19393, *JANUARY), Options(engine))
    assert {name: getattr(answer, name) for name in NOTHING} == {**NOTHING, **expected}


# --- many at once ----------------------------------------------------------------------------


def test_many_threads_ask_and_post_while_blocks_are_sealed(chain: Path, ledger: Ledger) -> None:
    """Counts never go back, every id is given once, and all is there at the end."""
    stop = threading.Event()

    def post(thread: int) -> list[int]:
        some = [plain_flight(OP_CARRIER_FL_NUM=1000 * thread + n) for n in range(1, 9)]
        return [ledger.submitter.add(flight, wait_s=0)["TRANSACTION_ID"] for flight in some]

    def ask() -> int:
        counts = [0]
        while not stop.is_set():
            for engine in ("index", "scan"):
                answer = QUESTIONS["flight_counter"](ledger, Options(engine))
                as_of = answer.as_of.height
                below = sum(
                    b["transaction_count"] for b in ledger.blocks(as_of + 1, as_of + 1).headers
                )
                assert answer.count == below
            counts.append(QUESTIONS["flight_counter"](ledger, Options()).count)
        assert counts == sorted(counts)
        return counts[-1]

    with ExitStack() as stack:
        pool = stack.enter_context(ThreadPoolExecutor(6))
        stack.callback(stop.set)
        askers = [pool.submit(ask) for _ in range(2)]
        posters = [pool.submit(post, thread) for thread in range(1, 5)]
        while not all(poster.done() for poster in posters):
            seal(chain)
        seal(chain)
        stop.set()
        ids = sorted(i for poster in posters for i in poster.result())
        assert all(asker.result() <= TRANSACTIONS + 32 for asker in askers)
    assert ids == list(range(TRANSACTIONS, TRANSACTIONS + 32))
    assert QUESTIONS["flight_counter"](ledger, Options()).count == TRANSACTIONS + 32
    assert {ledger.transaction(i)["state"] for i in ids} == {"mined"}


def test_answers_go_on_while_the_index_is_made_anew(chain: Path, ledger: Ledger) -> None:
    seen = []
    with following(chain) as (follower, _):
        follower.rebuild(
            lambda done, to_do: seen.append(QUESTIONS["flight_counter"](ledger, Options()).count)
        )
    assert seen == [TRANSACTIONS] * 2  # before any block is taken in, and after all
    assert QUESTIONS["flight_counter"](ledger, Options()).count == TRANSACTIONS
