"""The outbox sends what is durable, when it is due, and again until it is mined."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from backend.base.errors import TryLater, WriteFailed
from backend.base.settings import Settings
from backend.cluster.membership import LEEWAY_MS
from backend.cluster.outbox import (
    AGAIN_S,
    IN_FLIGHT,
    Outbox,
    in_transactions,
    with_believable_time,
)
from backend.cluster.signed_transactions import MOST_FLIGHTS
from backend.mempool import Accepted, Mempool
from tests.flights import flights
from tests.mempool.test_syncs import Kernel
from tests.submitting import accept_in

T0 = 1_700_000_000_000


class World:
    """An outbox with clocks that stand still, and a cluster that mines what it is told to."""

    def __init__(self, folder: Path) -> None:
        self.mined = 0
        self.now_s = 1000.0
        self.sent: list[tuple[int, int]] = []
        self.is_reachable = True
        self.mempool = Mempool(Settings(dir=str(folder)), lambda: self.mined, lambda line: None)
        self.outbox = self.new_outbox()

    def new_outbox(self) -> Outbox:
        return Outbox(
            self.mempool,
            lambda: self.mined,
            self.send,
            60.0,
            wall_s=lambda: self.now_s,
            monotonic_s=lambda: self.now_s,
        )

    def send(self, parts: Sequence[Accepted]) -> None:
        if not self.is_reachable:
            raise TryLater("unreachable")
        self.sent.append((parts[0].first_transaction, sum(len(part.flights) for part in parts)))

    def accept(self, count: int) -> None:
        accept_in(self.mempool, flights(count), T0)

    def after(self, seconds: float) -> list[tuple[int, int]]:
        """What was sent in a step `seconds` later: first number and count of each transaction."""
        self.now_s += seconds
        self.sent.clear()
        self.outbox.step()
        return list(self.sent)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path)
    yield world
    world.mempool.close()


def test_flights_are_sent_when_the_interval_ends_by_the_clock(world: World) -> None:
    world.accept(2)
    world.accept(1)
    assert world.outbox.due_s == 1020.0
    assert world.after(19) == []
    assert world.after(1) == [(0, 3)]
    assert world.after(1) == []


def test_enough_for_a_block_is_sent_at_once(world: World) -> None:
    world.accept(999)
    assert world.after(0) == []
    world.accept(2)
    assert world.after(0) == [(250 * i, 250) for i in range(4)]
    world.mined = 1000
    assert world.after(30) == [(1000, 1)]


def test_what_is_not_mined_is_sent_again(world: World) -> None:
    world.accept(300)
    assert world.after(30) == [(0, 250), (250, 50)]
    assert world.after(AGAIN_S - 1) == []
    assert world.after(2) == [(0, 250), (250, 50)]
    world.mined = 250
    assert world.after(1) == []
    assert world.after(AGAIN_S + 1) == [(250, 50)]
    assert world.outbox.waits_s() == pytest.approx(AGAIN_S + 1)
    world.mined = 300
    assert world.after(AGAIN_S + 1) == []
    assert world.outbox.waits_s() == 0


def test_what_could_not_be_sent_is_sent_later(world: World) -> None:
    world.accept(3)
    world.is_reachable = False
    with pytest.raises(TryLater):
        world.after(30)
    world.is_reachable = True
    assert world.after(1) == [(0, 3)]


def test_a_new_process_sends_what_the_old_one_had_not_mined(world: World) -> None:
    world.accept(5)
    world.after(30)
    world.mined = 2
    world.outbox = world.new_outbox()
    assert world.after(60) == [(2, 3)]


def test_what_another_process_may_have_lost_when_its_sync_failed_is_not_sent(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker accepts flights, and the process of the node only reads and sends them."""
    kernel = Kernel(monkeypatch)
    with closing(Mempool(Settings(dir=str(tmp_path)), lambda: 0, lambda line: None)) as worker:
        accept_in(worker, flights(1), T0)
        assert world.after(60) == [(0, 1)]
        kernel.fails = True
        with pytest.raises(WriteFailed):
            accept_in(worker, flights(1, 1), T0)
        with pytest.raises(WriteFailed):
            world.after(60)
        assert world.sent == []


def test_no_more_is_sent_than_may_be_on_the_way(world: World) -> None:
    world.accept(IN_FLIGHT + 2000)
    assert sum(count for _, count in world.after(0)) == IN_FLIGHT
    world.mined = 1000
    assert sum(count for _, count in world.after(0)) == 1000


def test_a_flight_whose_time_the_ledger_has_passed_or_that_is_far_ahead_gets_another() -> None:
    part = Accepted(3, T0, flights(2))
    assert with_believable_time(part, T0, T0 - 5000, 5000) is part
    assert with_believable_time(part, 0, T0 - 5001, 5000).timestamp == T0 - 5001
    late = with_believable_time(part, T0 + 1000, T0, 5000)
    assert T0 + 1000 < late.timestamp < T0 + 1000 + LEEWAY_MS
    assert (late.first_transaction, late.flights) == (3, part.flights)


def test_transactions_hold_consecutive_flights_up_to_their_limit() -> None:
    accepted = [Accepted(0, T0, flights(100)), Accepted(100, T0 + 1, flights(400))]
    sent = list(in_transactions(accepted))
    assert [sum(len(part.flights) for part in parts) for parts in sent] == [MOST_FLIGHTS, 250]
    assert [[(p.first_transaction, p.timestamp) for p in parts] for parts in sent] == [
        [(0, T0), (100, T0 + 1)],
        [(250, T0 + 1)],
    ]
