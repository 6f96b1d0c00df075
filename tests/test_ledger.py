"""The facade: blocks, transactions, the tip, and accepting.

That the three questions are answered rightly is shown in tests/index/test_answers.py.
"""

import json
import signal
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from backend.base import files
from backend.base.errors import NotFound, TryLater
from backend.base.settings import Settings
from backend.chain.flight import Flight
from backend.ledger.ledger import Ledger
from backend.mempool import Mempool
from backend.questions.values import AverageDelays, FilterTransactions, FlightCounter, Options
from backend.sealing.miner_status import LOCK_NAME, STATUS_NAME
from tests import descriptors
from tests.index.worlds import follow, following, make_chain, plain_flight
from tests.submitting import add, sealing

SIZES = [3, 0, 0, 1, 2, 0]
TIP = len(SIZES)
TRANSACTIONS = sum(SIZES)
FLIGHTS = [plain_flight(OP_CARRIER_FL_NUM=n + 1) for n in range(TRANSACTIONS)]
JANUARY = ("2008-01-01", "2008-01-31")
AVERAGE = AverageDelays(19393, *JANUARY)
COUNTER = FlightCounter("Washington, DC", "Tampa, FL", *JANUARY)
QUESTIONS = (FilterTransactions(1, "2008-01-03"), AVERAGE, COUNTER)
SEALED_WITHIN_S = 20


no_descriptor_is_left_open = descriptors.no_descriptor_is_left_open


def settings_of(folder: Path, **chosen: Any) -> Settings:
    settings = Settings(dir=str(folder), difficulty_bits=0, min_free_bytes=0)
    return replace(settings, **{"clock_wait_s": 0, **chosen})  # these chains are of 1970


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
    with opened(chain) as ledger:
        yield ledger


def seal(folder: Path) -> int:
    """Seal what is pending, as the miner does; how many blocks that made."""
    with sealing(settings_of(folder)) as sealer:
        return len(sealer.seal_pending())


# --- the tip and being ready -----------------------------------------------------------------


def test_the_tip_counts_a_transaction_once_while_its_block_is_sealed(
    chain: Path, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(ledger.submitter, plain_flight(), wait_s=0)
    counted = ledger._mempool.pending_count

    def sealed_before_counting() -> int:
        seal(chain)
        return counted()

    monkeypatch.setattr(ledger._mempool, "pending_count", sealed_before_counting)
    tip = ledger.tip()
    assert (tip.transactions, tip.pending) == (TRANSACTIONS + 1, 0)


@contextmanager
def mining(folder: Path, next_block_at: int | None) -> Iterator[None]:
    """Pretends that a miner runs. next_block_at: None while it has not said yet."""
    lock, status = files.FileLock(folder / LOCK_NAME), folder / STATUS_NAME
    if next_block_at is not None:
        fields = {"next_block_at": next_block_at, "pid": 1, "due_s": time.monotonic() + 60}
        status.write_text(json.dumps(fields), encoding="utf-8")
    with lock:
        yield
    status.unlink(missing_ok=True)


def test_while_the_index_is_behind_it_is_not_ready(chain: Path, ledger: Ledger) -> None:
    make_chain(chain, [[plain_flight()]])
    with mining(chain, 1):
        assert ledger.not_ready() == ["the index is 1 block behind the chain"]
        follow(chain)
        assert ledger.not_ready() == []


def test_on_a_disk_that_is_nearly_full_it_is_not_ready(chain: Path) -> None:
    """Every post is refused then, though the miner waits for its next round as ever."""
    with mining(chain, 1), opened(chain, min_free_bytes=2**60) as ledger:
        (reason,) = ledger.not_ready()
    assert f"the disk of {chain} has too little room" in reason
    assert "neither accepted nor sealed" in reason
    full = settings_of(chain, min_free_bytes=2**60)
    with sealing(full) as sealer, pytest.raises(TryLater, match="too little room"):
        sealer.seal_pending(empty=True)


def test_an_index_behind_the_tip_answers_for_the_block_at_which_it_stands(
    chain: Path, ledger: Ledger
) -> None:
    make_chain(chain, [[plain_flight(OP_CARRIER_FL_NUM=1)]])
    for question in QUESTIONS:
        ask = partial(ledger.answers.answer, question)
        assert ask(Options("index")).as_of.height == TIP
        assert ask(Options("scan")).as_of.height == TIP + 1
        assert ask(Options("index", TIP)).as_of.height == TIP
        with pytest.raises(TryLater, match=f"the index has reached only block {TIP}") as caught:
            ask(Options("index", TIP + 1))
        assert caught.value.retry_after_s >= 1
        for engine, above in product(("index", "scan"), (2, 10**15)):
            with pytest.raises(NotFound, match="does not exist"):
                ask(Options(engine, TIP + above))


# --- accepting -------------------------------------------------------------------------------


def test_a_signal_in_the_thread_that_waits_lets_it_go(ledger: Ledger) -> None:
    of_others = signal.signal(
        signal.SIGALRM, lambda received, frame: ledger.submitter.stop_waiting()
    )
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        started = time.monotonic()
        assert add(ledger.submitter, FLIGHTS[0], wait_s=SEALED_WITHIN_S)["state"] == "pending"
        assert time.monotonic() - started < SEALED_WITHIN_S / 2
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, of_others)


def test_a_transaction_that_is_mined_between_two_looks_is_found(
    chain: Path, ledger: Ledger
) -> None:
    """Another thread asks for the tip, and so forgets what is mined, between the two."""
    transaction_id = add(ledger.submitter, FLIGHTS[0], wait_s=0)["TRANSACTION_ID"]
    find = Mempool.find

    def find_late(mempool: Mempool, wanted: int) -> tuple[Flight, int] | None:
        if not sealed:
            sealed.append(seal(chain))
            ledger.tip()
        return find(mempool, wanted)

    sealed: list[int] = []
    with mock.patch.object(Mempool, "find", find_late):
        answer = ledger.transaction(transaction_id)
    assert answer["transaction"]["TRANSACTION_ID"] == transaction_id
    assert answer["state"] == "mined"  # the newest record stays in the mempool


# --- many at once ----------------------------------------------------------------------------


def test_answers_go_on_while_the_index_is_made_anew(chain: Path, ledger: Ledger) -> None:
    counts = []
    with following(chain) as (follower, _):
        follower.rebuild(
            lambda done, to_do: counts.append(ledger.answers.answer(COUNTER, Options()).count)
        )
    assert counts == [TRANSACTIONS] * 2  # before any block is taken in, and after all
    assert ledger.answers.answer(COUNTER, Options()).count == TRANSACTIONS
