"""What processes share: ids, what is pending, and who may give ids when."""

import threading
import time

import pytest

from backend.base import files
from backend.base.errors import TryLater
from backend.mempool import Accepted, id_lock
from backend.mempool.mempool import LOCK_NAME
from backend.mempool.recovery_view import PendingInRecovery
from tests.flights import flight, flights
from tests.mempool.house import WAIT_S, House, T, everything, numbered
from tests.submitting import accept_in, run_together

# --- ids -------------------------------------------------------------------------------------


def test_ids_go_on_from_the_chain_and_from_each_other(house: House) -> None:
    house.chain.transactions = 7
    mempool = house.mempool()
    assert mempool.not_ready() == []
    assert [accept_in(mempool, flights(n), T).first_transaction for n in (1, 3, 2)] == [7, 8, 11]
    assert mempool.pending_count() == 6


def test_threads_with_mempools_of_their_own_share_ids_without_gap_or_double(house: House) -> None:
    """Their locks are of the files that they have opened, so those of processes are no other."""
    mempools = [house.mempool() for _ in range(2)]
    receipts: list[tuple[int, int, int]] = []

    def accept(thread: int) -> None:
        for turn in range(12):
            serial, count = (12 * thread + turn) * 10, 1 + turn % 3
            accepted = accept_in(mempools[thread % 2], flights(count, serial), T)
            receipts.append((accepted.first_transaction, serial, count))

    run_together(8, accept)
    contents = everything(house.mempool())
    assert [transaction_id for transaction_id, _ in contents] == list(range(8 * 24))
    for first, serial, count in receipts:
        assert contents[first : first + count] == numbered(flights(count, serial), first)


def test_acceptance_time_never_goes_back(house: House) -> None:
    mempool, other = house.mempool(), house.mempool()
    given = [(mempool, T), (other, T - 5), (mempool, T + 1), (mempool, T - 9), (house.mempool(), 0)]
    times = [accept_in(each, [flight(n)], now).timestamp for n, (each, now) in enumerate(given)]
    assert times == [T, T, T + 1, T + 1, T + 1]
    assert [part.timestamp for part in house.mempool().pending(9)] == times


# --- several readers and writers -------------------------------------------------------------


def test_a_follower_sees_what_others_accept_and_what_is_mined(house: House) -> None:
    accepter, follower = house.mempool(), house.mempool()
    assert follower.pending_count() == 0
    assert follower.pending(5) == []
    assert follower.find(0) is None
    accept_in(accepter, flights(3), T)
    accept_in(accepter, flights(2, 3), T + 1)
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
    mempool, other = house.mempool(), house.mempool()
    order: list[str] = []

    def accept() -> None:
        accept_in(other, [flight(0)], T)
        order.append("accepted")

    thread = threading.Thread(target=accept)
    with mempool.exclusive():
        thread.start()
        time.sleep(0.1)
        house.chain.transactions = 1000  # an import seals
        order.append("sealed")
    thread.join(WAIT_S)
    assert order == ["sealed", "accepted"]
    assert everything(mempool) == [(1000, flight(0))]


def test_sealing_while_somebody_counts_is_no_damage(house: House) -> None:
    """Two threads count, and a block is sealed between one's looks at the chain and at the log."""
    threads: list[threading.Thread] = []

    def count_meanwhile() -> int:
        mined = house.chain.transactions
        if not mined:
            house.chain.transactions = 3  # a block is sealed
            thread = threading.Thread(target=mempool.pending_count)
            thread.start()
            thread.join(0.3)  # it may have to wait for us: that is one way to be right
            threads.append(thread)
        return mined

    mempool = house.mempool(count_meanwhile)
    accepter = house.mempool()
    for number in range(5):
        accept_in(accepter, [flight(number)], T)
    try:
        assert mempool.pending_count() in {2, 5}
    finally:
        threads[0].join(WAIT_S)
    assert mempool.pending_count() == 2


# --- nobody waits for ever -------------------------------------------------------------------


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(id_lock, "LOCK_PATIENCE_S", 0.2)


@pytest.mark.usefixtures("impatient")
def test_who_cannot_have_the_lock_is_told_to_come_again_and_by_whom(house: House) -> None:
    mempool = house.mempool()
    with (
        files.FileLock(house.folder / LOCK_NAME),
        pytest.raises(TryLater, match=rf"{LOCK_NAME} is locked by .* \(PID \d+\); nothing is"),
    ):
        accept_in(mempool, [flight(0)], T)
    assert accept_in(mempool, [flight(0)], T).first_transaction == 0


@pytest.mark.usefixtures("impatient")
def test_threads_of_one_process_do_not_wait_for_each_other_without_end(house: House) -> None:
    mempool = house.mempool()
    refused: list[str] = []

    def accept() -> None:
        try:
            accept_in(mempool, [flight(0)], T)
        except TryLater as error:
            refused.append(str(error))

    with mempool.exclusive():
        thread = threading.Thread(target=accept)
        thread.start()
        thread.join(WAIT_S)
    assert len(refused) == 1
    assert "locked by another request of this process" in refused[0]
    assert accept_in(mempool, [flight(0)], T).first_transaction == 0


def test_each_recovery_of_the_blocks_is_told_what_the_mempool_holds_then(house: House) -> None:
    mempool = house.mempool()
    pending = PendingInRecovery(mempool)
    for count in range(3):
        with pending.locked():
            assert pending.holds(0, count)
            assert not pending.holds(0, count + 1)
        accept_in(mempool, [flight(count)], T)
