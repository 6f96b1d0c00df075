"""A node that was put back to an older copy says so, and shows nobody another client's flight."""

import shutil
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest
from msgspec.structs import replace

from backend.base.errors import NotFound
from backend.cluster import node as node_module
from backend.cluster import put_back
from backend.cluster.block_appender import Built
from backend.cluster.engine_watch import CATCHES_UP, Watcher
from backend.cluster.node_status import ClusterStatus
from backend.cluster.put_back import NOTE_NAME, OwnFlights
from backend.cluster.view import tag_of
from backend.ledger.ledger import Ledger
from backend.mempool import FOLDER, Mempool
from backend.mempool.lost_files import lost_in
from backend.mempool.watermark import Mark, Watermark
from tests.cluster.engine import T0, Engine, Node, quiet
from tests.flights import flight, flights
from tests.submitting import accept_in


@dataclass
class World:
    """The first node of two, with its mempool, and a cluster that knows its flights 0 to 2."""

    engine: Engine
    node: Node
    mempool: Mempool
    own: OwnFlights
    reported: list[str]

    @property
    def folder(self) -> Path:
        return self.node.settings.folder

    def mine(self, count: int = 3) -> None:
        """Decide a block of flights that this node has sent once."""
        self.engine.decide([self.node.sent(0, count)])

    def pending(self) -> list[object]:
        return [flight for part in self.mempool.pending(100) for flight in part.flights]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with Engine(tmp_path, 2) as engine:
        node, reported = engine.nodes[0], list[str]()
        mempool = Mempool(node.settings, node.end.receipts.own_mined, quiet)
        own = OwnFlights(node.settings.folder, 0, mempool, reported.append)
        node.application._appending = own.compare
        yield World(engine, node, mempool, own, reported)
        mempool.close()


def test_a_node_whose_flights_are_mined_as_it_knows_them_notes_nothing(world: World) -> None:
    accept_in(world.mempool, flights(5), T0)
    world.mine()
    assert (put_back.refusal(world.folder), world.reported) == ("", [])
    assert world.pending() == flights(2, 3)


def test_a_node_that_has_accepted_more_than_it_remembers_refuses_until_somebody_has_read_why(
    world: World,
) -> None:
    accept_in(world.mempool, flights(1), T0)
    world.mine()
    refusal = put_back.refusal(world.folder)
    assert "put back to an older copy" in refusal
    assert "its own files hold its flights below number 1, but blocks hold later ones" in refusal
    assert f"remove {world.folder / NOTE_NAME}" in refusal
    world.engine.decide([world.node.sent(3, 1)])
    assert world.reported == [refusal] == [put_back.refusal(world.folder)]  # as at first
    (world.folder / NOTE_NAME).unlink()
    (world.folder / NOTE_NAME).mkdir()  # so that it cannot be read
    assert "the note cannot be read" in put_back.refusal(world.folder)
    (world.folder / NOTE_NAME).rmdir()
    assert put_back.refusal(world.folder) == ""
    accept_in(world.mempool, flights(1, 50), T0)
    assert world.mempool.pending_ids() == range(4, 5)


def test_flights_whose_numbers_were_given_before_are_accepted_again_once(world: World) -> None:
    ours = flights(2, 7000)
    accept_in(world.mempool, [*ours, flight(2)], T0)
    compare = world.own.compare

    def twice(built: Built) -> None:
        compare(built)
        compare(built)  # as after a crash before the block is written

    world.node.application._appending = twice
    world.mine()
    assert world.pending() == ours
    assert world.mempool.pending_ids() == range(3, 5)
    assert "numbers 0 to 1 were accepted again from number 3 on" in world.reported[0]


def test_a_node_without_its_mempool_knows_how_far_it_had_acknowledged(world: World) -> None:
    accept_in(world.mempool, flights(2), T0)
    world.mempool.close()
    shutil.rmtree(world.folder / FOLDER)
    world.mine()
    assert "hold its flights below number 2, but blocks" in put_back.refusal(world.folder)


def test_a_mark_of_another_ledger_says_nothing_of_this_node(world: World) -> None:
    with closing(Watermark(world.folder, lambda: "11" * 32)) as mark:
        mark.note(Mark(2))
    world.mine()
    assert put_back.refusal(world.folder) == ""


@pytest.mark.parametrize("is_rebuilt", [False, True])
def test_a_lost_mempool_is_rebuilt_after_the_blocks_that_hold_its_flights(
    world: World, is_rebuilt: bool
) -> None:
    """If it was rebuilt before them, its void entries are not accepted again in their places."""
    accept_in(world.mempool, flights(5), T0)
    world.mempool.close()
    shutil.rmtree(world.folder / FOLDER)
    if is_rebuilt:
        world.mempool.repair()
    world.mine()
    assert world.reported == []
    world.mempool.trim(0)
    assert world.mempool.pending_ids() == range(3, 5)
    assert [lost[:2] for lost in lost_in(world.folder / FOLDER)] == [
        (0, 5) if is_rebuilt else (3, 2)
    ]


def test_a_node_trims_and_rebuilds_its_mempool_when_it_has_all_blocks(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.node.close()
    node = node_module.Node(world.node.settings, quiet)
    ready = ClusterStatus("node0", 1, [], 1, 1, False, 0, "", 0.0)
    left = [replace(ready, refusal=CATCHES_UP), replace(ready, lag_blocks=1), ready]
    trimmed_with: list[ClusterStatus | None] = []

    def trim(_: int) -> None:
        trimmed_with.append(node._status)
        node.stop()

    monkeypatch.setattr("backend.cluster.node_status.EVERY_S", 0.0)
    monkeypatch.setattr(node._engine, "status", lambda: None)
    monkeypatch.setattr(node._mempool, "trim", trim)
    monkeypatch.setattr(Watcher, "look", lambda *given: left.pop(0))
    node._rounds(Watcher(node._engine, node._membership, node._identity), world.node.application)
    assert trimmed_with == [ready]


def test_a_receipt_never_shows_another_flight_than_that_which_it_was_given_for(
    world: World,
) -> None:
    world.mine()
    with closing(Ledger(world.node.settings, quiet)) as ledger:
        for receipt in (f"node0-1-{tag_of(flight(1))}", "node0-1"):  # as older nodes gave it
            assert ledger.accepted_as(receipt)["transaction"]["TRANSACTION_ID"] == 1
        lost = f"node0-1-{tag_of(flight(7000))}"
        with pytest.raises(NotFound, match="has given number 1 to another flight"):
            ledger.accepted_as(lost)
        accept_in(world.mempool, [flight(3)], T0)
        assert ledger.accepted_as(f"node0-3-{tag_of(flight(3))}")["state"] == "pending"
        with pytest.raises(NotFound, match="has given number 3 to another flight"):
            ledger.accepted_as(f"node0-3-{tag_of(flight(7000))}")
        for nonsense in ("node0-", "node9-1", "node0-1-", "node0-1-xyz", "node0-1-9f86d08", "-1"):
            with pytest.raises(NotFound, match="is not a receipt"):
                ledger.accepted_as(nonsense)
