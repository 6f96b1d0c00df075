"""What a node makes of what its engine says: its status, and whether the engine stands still."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from backend.cluster.engine import Engine
from backend.cluster.watching import STANDS_STILL_S, Watcher
from backend.errors import FlightchainError, TryLater
from tests.cluster.engine import Node, make


class FakeEngine(Engine):
    """An engine whose consensus is at `at`, height, round and step, and its peers at a height."""

    def __init__(self, peer_ids: list[str]) -> None:
        self.peer_ids = peer_ids
        self.at = ("5", 0, 1)
        self.peers_at = 1
        self.answers = True

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Answer as CometBFT does."""
        if not self.answers:
            raise TryLater("the consensus engine does not answer")
        height, round_, step = self.at
        peer = {"peer_state": {"round_state": {"height": str(self.peers_at)}}}
        found: dict[str, dict[str, Any]] = {
            "status": {"sync_info": {"catching_up": False}},
            "net_info": {"peers": [{"node_info": {"id": one}} for one in self.peer_ids]},
            "dump_consensus_state": {
                "round_state": {"height": height, "round": round_, "step": step},
                "peers": [peer] * len(self.peer_ids),
            },
        }
        return found[method]


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    make(tmp_path)
    node = Node(tmp_path, 0)
    yield node
    node.close()


@pytest.fixture
def engine(node: Node) -> FakeEngine:
    return FakeEngine([one.peer_id for one in node.membership.members[1:]])


@pytest.fixture
def watcher(node: Node, engine: FakeEngine) -> Watcher:
    return Watcher(engine, node.membership, node.identity, lambda: 0)


LATER_S = STANDS_STILL_S + 1


def test_an_engine_that_stands_still_while_others_go_on_must_be_started_again(
    node: Node, engine: FakeEngine, watcher: Watcher
) -> None:
    engine.peers_at = 3
    assert watcher.look(node.application, 0, 0).lag_blocks == 2
    watcher.look(node.application, 0, STANDS_STILL_S)
    with pytest.raises(FlightchainError, match="stood still at height 5 for 21 s"):
        watcher.look(node.application, 0, LATER_S)


def test_so_must_one_that_stands_still_while_flights_wait(
    node: Node, engine: FakeEngine, watcher: Watcher
) -> None:
    watcher.look(node.application, 1, 0)
    with pytest.raises(FlightchainError, match="flights wait"):
        watcher.look(node.application, 22, LATER_S)


def test_an_engine_may_stand_still_while_nothing_is_to_be_decided(
    node: Node, engine: FakeEngine, watcher: Watcher
) -> None:
    watcher.look(node.application, 0, 0)
    watcher.look(node.application, 0, 1000)
    watcher.look(node.application, 1, 1001)  # its time began when it was last idle
    assert watcher.look(node.application, 1, 1000 + STANDS_STILL_S).refusal == ""


def test_nothing_is_expected_without_a_quorum_nor_of_one_that_moves_or_only_begins(
    node: Node, engine: FakeEngine, watcher: Watcher
) -> None:
    watcher.look(node.application, 1, 0)
    engine.at = ("5", 1, 1)  # another round
    watcher.look(node.application, 1, LATER_S)
    engine.answers = False  # it was ended
    watcher.look(node.application, 1, 2 * LATER_S)
    engine.answers = True
    watcher.look(node.application, 1, 3 * LATER_S)
    del engine.peer_ids[1:]
    assert "no quorum" in watcher.look(node.application, 1, 4 * LATER_S).refusal
