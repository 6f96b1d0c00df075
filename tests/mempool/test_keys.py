"""Idempotency keys, as durable as the flights that they came with."""

import pytest

from backend.base.clock import now_ms
from backend.base.errors import KeyReused
from backend.mempool import Accepted, Offer
from backend.mempool.idempotency_keys import KEPT_MS, IdempotencyKey
from tests.flights import flight, flights
from tests.mempool.house import House, T, everything
from tests.mempool.spoiling import spoil_keys
from tests.submitting import accept_in, run_together

KEY = IdempotencyKey("k", "00")


def test_a_key_is_known_in_every_process_and_after_a_restart(house: House) -> None:
    first = accept_in(house.mempool(), flights(3), T, key=KEY)
    again = accept_in(house.mempool(), flights(3), T + 5, key=KEY)
    assert (again.first_transaction, again.timestamp) == (first.first_transaction, first.timestamp)
    assert (first.is_repeat, again.is_repeat) == (False, True)
    assert len(everything(house.mempool())) == 3


def removed(house: House, accepted_at: int) -> None:
    """Let a key outlive its record, which is removed."""
    writer = house.mempool()
    accept_in(writer, flights(3), accepted_at, key=KEY)
    house.chain.transactions = 3
    accept_in(writer, [flight(9)], accepted_at)
    house.mempool().trim(3)
    assert house.records() == [3]


def test_a_key_that_is_used_again_after_a_day_means_its_newest_flights(house: House) -> None:
    now = now_ms()
    mempool = house.mempool()
    accept_in(mempool, [flight(0)], now - KEPT_MS - 5, key=KEY)
    assert accept_in(mempool, [flight(0)], now, key=KEY).first_transaction == 1
    house.chain.transactions = 2
    accept_in(mempool, [flight(1)], now)
    mempool.trim(2)
    for asked in (mempool, house.mempool()):
        again = accept_in(asked, [flight(0)], now, key=KEY)
        assert (again.first_transaction, again.is_repeat) == (1, True)


def test_keys_older_than_a_day_are_removed(house: House) -> None:
    removed(house, now_ms() - KEPT_MS - 1)
    assert house.mempool().snapshot()[1] == {}
    removed_now = house.mempool()
    assert not accept_in(removed_now, flights(3), now_ms(), key=KEY).is_repeat


def test_a_key_is_forgotten_after_a_day(house: House) -> None:
    mempool = house.mempool()
    accept_in(mempool, [flight(0)], T, key=KEY)
    assert accept_in(mempool, [flight(0)], T + KEPT_MS, key=KEY).is_repeat
    assert not accept_in(mempool, [flight(0)], T + KEPT_MS + 1, key=KEY).is_repeat


def test_a_key_with_something_else_is_refused_and_nothing_is_accepted(house: House) -> None:
    mempool = house.mempool()
    accept_in(mempool, [flight(0)], T, key=KEY)
    with pytest.raises(KeyReused, match="transaction 0"):
        accept_in(mempool, [flight(1)], T, key=IdempotencyKey("k", "01"))
    assert len(everything(mempool)) == 1


def test_one_of_many_at_once_is_accepted(house: House) -> None:
    mempools = [house.mempool() for _ in range(4)]
    firsts: list[int] = []

    def accept(which: int) -> None:
        accepted = accept_in(mempools[which % 4], flights(2), T, key=KEY)
        firsts.append(accepted.first_transaction)

    run_together(16, accept)
    assert firsts == [0] * 16
    assert len(everything(house.mempool())) == 2


@pytest.mark.parametrize("with_others", [False, True])
def test_keys_that_cannot_be_read_are_forgotten_and_that_is_said(
    house: House, with_others: bool
) -> None:
    """Their flights are in blocks, so nothing else is lost."""
    removed(house, now_ms())
    house.settle()
    spoil_keys(house.folder)
    mempool = house.mempool()
    others = [Offer([flight(1)]), Offer([flight(2)])] if with_others else []
    outcomes = mempool.accept_all([Offer(flights(3), KEY), *others], now_ms())
    firsts = [outcome.first_transaction for outcome in outcomes if isinstance(outcome, Accepted)]
    assert firsts == [4, 7, 8][: 1 + len(others)]
    (message,) = house.messages
    assert "checksum" in message
    assert "may be used again" in message
    assert everything(mempool)[0] == (3, flight(9))


def test_a_clock_that_is_not_set_forgets_no_keys(house: House) -> None:
    mempool = house.mempool()
    accept_in(mempool, [flight(0)], T, key=KEY)
    assert accept_in(house.mempool(), [flight(0)], 1000, key=KEY).is_repeat


def test_keys_are_known_after_a_leap_of_the_clock_that_was_put_back(house: House) -> None:
    """The key that came during the leap, and those that come after it."""
    mempool, other = house.mempool(), IdempotencyKey("other", "00")
    accept_in(mempool, [flight(0)], T + 10 * 365 * KEPT_MS, key=KEY)
    assert accept_in(mempool, [flight(0)], T, key=KEY).is_repeat
    first = accept_in(mempool, [flight(1)], T, key=other)
    house.chain.transactions = 2
    mempool.trim(2)
    again = accept_in(house.mempool(), [flight(1)], T + 5, key=other)
    assert (again.first_transaction, again.is_repeat) == (first.first_transaction, True)
