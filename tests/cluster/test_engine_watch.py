"""What a node makes of what its engine says: its status, and whether the engine stands still."""

import io
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from backend.base.errors import FlightchainError, TryLater
from backend.cluster.engine import VARIABLE, Engine, program
from backend.cluster.engine_watch import (
    CATCHES_UP,
    DIAL_EVERY_S,
    LONGEST_STILL_S,
    STANDS_STILL_S,
    EngineStandsStill,
    Watcher,
)
from backend.cluster.node_status import ClusterStatus
from tests.cluster.engine import Node, make

pytestmark = pytest.mark.slow


Look = Callable[[float, float], ClusterStatus]


class FakeEngine(Engine):
    """An engine whose consensus is at `at`, height, round and step, and its peers at heights."""

    def __init__(self, peer_ids: list[str]) -> None:
        super().__init__(Path())
        self.peer_ids = peer_ids
        self.at = ("5", 0, 1)
        self.heights = dict.fromkeys(peer_ids, 1)
        self.answers = True
        self.dialled = 0

    def dial_peers(self) -> None:
        self.dialled += 1

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Answer as CometBFT does."""
        if not self.answers:
            raise TryLater("the consensus engine does not answer")
        height, round_, step = self.at
        peers = [
            {
                "node_address": f"{peer_id}@127.0.0.1:1",
                "peer_state": {"round_state": {"height": str(at)}},
            }
            for peer_id, at in self.heights.items()
        ]
        answers: dict[str, dict[str, Any]] = {
            "status": {"sync_info": {"catching_up": False}},
            "net_info": {"peers": [{"node_info": {"id": peer_id}} for peer_id in self.peer_ids]},
            "dump_consensus_state": {
                "round_state": {"height": height, "round": round_, "step": step},
                "peers": peers,
            },
        }
        return answers[method]


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    make(tmp_path)
    node = Node(tmp_path, 0)
    yield node
    node.close()


@pytest.fixture
def engine(node: Node) -> FakeEngine:
    return FakeEngine([member.peer_id for member in node.membership.members[1:]])


@pytest.fixture
def look(node: Node, engine: FakeEngine) -> Look:
    """Look at the engine. Takes how long flights have waited and the time, both in seconds."""
    watcher = Watcher(engine, node.membership, node.identity, lambda: 0)
    return partial(watcher.look, node.application)


# As CometBFT says it, of a block that others have decided or propose.
TOO_NEW = (
    b"block time 2026-11-30 15:45:40.497274442 +0000 UTC is too far in the future "
    b"(wall clock 2026-11-30 14:46:15.242814817 +0000 UTC m=+3.276345174 + tolerance 2m0s)\n"
)
LATER_S = STANDS_STILL_S + 1


def test_an_engine_that_stands_still_while_others_go_on_must_be_started_again(
    engine: FakeEngine, look: Look
) -> None:
    engine.heights = dict.fromkeys(engine.peer_ids, 3)
    assert look(0, 0).lag_blocks == 2
    look(0, STANDS_STILL_S)
    with pytest.raises(FlightchainError, match="stood still at height 5 for 21 s"):
        look(0, LATER_S)


@pytest.mark.parametrize(("height", "refusal"), [(3, ""), (4, CATCHES_UP)])
def test_a_node_that_lacks_more_than_two_blocks_accepts_nothing(
    engine: FakeEngine, look: Look, height: int, refusal: str
) -> None:
    engine.heights = dict.fromkeys(engine.peer_ids, height)
    assert look(0, 0).refusal == refusal


def test_so_must_one_that_stands_still_while_flights_wait(look: Look) -> None:
    look(1, 0)
    with pytest.raises(FlightchainError, match="flights wait"):
        look(22, LATER_S)


def test_an_engine_may_stand_still_while_nothing_is_to_be_decided(look: Look) -> None:
    look(0, 0)
    look(0, 1000)
    look(1, 1001)  # its time began when it was last idle
    assert look(1, 1000 + STANDS_STILL_S).refusal == ""


def test_a_height_that_strangers_or_a_single_voter_claim_is_not_believed(
    engine: FakeEngine, look: Look
) -> None:
    engine.heights.update({"ab" * 20: 1_000_000, "cd" * 20: 1_000_000, engine.peer_ids[0]: 900_000})
    for now_s in (0, LATER_S, 10 * LATER_S):
        status = look(0, now_s)
        assert (status.lag_blocks, status.refusal) == (0, "")
    engine.heights[engine.peer_ids[1]] = 3
    assert look(0, 10 * LATER_S + 1).lag_blocks == 2


def test_an_engine_that_stands_still_again_is_waited_for_longer_until_it_moves(
    node: Node, engine: FakeEngine, look: Look
) -> None:
    engine.heights = dict.fromkeys(engine.peer_ids, 3)

    def restarts(since_s: int, until_s: int) -> list[int]:
        times_s = []
        for now_s in range(since_s, until_s):
            try:
                look(0, now_s)
            except EngineStandsStill:
                times_s.append(now_s)
        return times_s

    long_s = 5 * 3600
    first = restarts(0, long_s)
    pauses_s = [later - earlier for earlier, later in pairwise(first)]
    assert pauses_s == sorted(pauses_s)
    assert first[0] <= LATER_S
    assert len(first) < long_s / LONGEST_STILL_S + 10
    node.application.engine_height = 1
    moved = restarts(long_s, long_s + 100)
    assert moved[0] - long_s <= LATER_S + 1


def test_a_clock_is_not_blamed_for_a_cluster_that_decides_nothing(
    node: Node, engine: FakeEngine
) -> None:
    now_ms = 1_700_000_000_000
    leeway_s = node.membership.leeway_ms / 1000
    watcher = Watcher(engine, node.membership, node.identity, lambda: now_ms)
    look = partial(watcher.look, node.application)
    node.application.header_ms, node.application.decided_s = now_ms, 100.0
    assert look(0, 101).refusal == ""
    now_ms += round(1000 * leeway_s)
    assert "decided no block for 181 s" in look(0, 281).refusal
    node.application.decided_s = 280.0
    assert look(0, 281).refusal == ""
    now_ms += 5000
    refusal = look(0, 281).refusal
    assert "the clock of this node is 184 s ahead" in refusal
    assert "if the whole cluster had stopped, wait an interval" in refusal
    assert look(1, 281).refusal == refusal
    node.application.decided_s += LATER_S
    # flights that were accepted by such a clock wait for their time, not for a block
    assert look(LATER_S, 281 + LATER_S).refusal == refusal


def test_a_node_whose_engine_refuses_a_block_because_its_clock_is_behind_says_so(
    node: Node, engine: FakeEngine
) -> None:
    behind = datetime(2026, 11, 30, 15, 45, 39, tzinfo=UTC)
    for clock, decided_s, wanted in (
        (behind, 0.0, "which has the time 2026-11-30 15:45:40 UTC"),
        (behind + timedelta(seconds=1), 0.0, ""),
        (behind, time.monotonic() + 3600, ""),
    ):
        clock_ms = partial(round, 1000 * clock.timestamp())
        watcher = Watcher(engine, node.membership, node.identity, clock_ms)
        engine._pass_on(io.BytesIO(b"E[14:46] Error in validation  height=27 err=" + TOO_NEW))
        node.application.decided_s = decided_s
        refusal = watcher.look(node.application, 0, time.monotonic()).refusal
        assert (wanted in refusal, bool(refusal)) == (True, bool(wanted)), refusal


def test_the_status_says_whether_its_node_only_reads_even_if_the_engine_does_not_answer(
    node: Node, engine: FakeEngine, look: Look
) -> None:
    reader = Watcher(engine, node.membership, replace(node.identity, index=None), lambda: 0)
    for engine.answers in (True, False):
        assert reader.look(node.application, 0, 0).reads_only
        assert not look(0, 0).reads_only


def test_nothing_is_expected_without_a_quorum_nor_of_one_that_moves_or_only_begins(
    engine: FakeEngine, look: Look
) -> None:
    look(1, 0)
    engine.at = ("5", 1, 1)  # another round
    look(1, LATER_S)
    engine.answers = False  # it was ended
    look(1, 2 * LATER_S)
    engine.answers = True
    look(1, 3 * LATER_S)
    del engine.peer_ids[1:]
    assert "no quorum" in look(1, 4 * LATER_S).refusal


def test_an_engine_without_a_quorum_is_asked_to_dial_its_peers_until_it_has_one(
    engine: FakeEngine, look: Look
) -> None:
    every_s = DIAL_EVERY_S + 1
    look(0, 10 * every_s)
    lost, engine.peer_ids[1:] = engine.peer_ids[1:], []
    for now in range(11, 41):
        look(0, now * every_s)
        look(0, now * every_s + 1)
    assert engine.dialled == 30
    engine.peer_ids += lost
    look(0, 100 * every_s)
    assert engine.dialled == 30


@pytest.mark.parametrize(
    ("output", "status", "words"),
    [
        (b"starts\nERROR: no data\npanic: it ends\ngoroutine 1\n", 1, "1: ERROR: no data; if"),
        (b"ERROR: 1 error(s) decoding:\n\n* 'x': bad\nmore\n", 1, "decoding: * 'x': bad; if"),
        (b"a peer is away\n", -9, "was ended by signal 9"),
        (b"fatal error: runtime: out of memory\n\n\tmalloc.go:1 +0x1f\n", 2, "out of memory; if"),
        (b"panic: invalid block: " + TOO_NEW, 2, "+ tolerance 2m0s); set the clock"),
    ],
)
def test_an_engine_that_ended_is_quoted_with_its_first_complaint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, output: bytes, status: int, words: str
) -> None:
    engine = Engine(tmp_path)
    with pytest.raises(TryLater, match="is starting"):
        engine.ask("status")
    with io.TextIOWrapper(Path("/dev/full").open("wb", 0)) as full:
        monkeypatch.setattr(sys, "stderr", full)
        engine._pass_on(io.BytesIO(output))
        monkeypatch.undo()
    assert engine.end() == ""
    monkeypatch.setattr(engine, "status", lambda: status)
    assert words in engine.end()
    assert ("rebuild" in engine.end()) == (status > 0 and "set the clock" not in words)


def test_an_engine_that_was_built_for_another_processor_is_to_be_built_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = tmp_path / "cometbft"
    engine.write_bytes(b"\x7fELF")
    engine.chmod(0o755)
    monkeypatch.setenv(VARIABLE, str(engine))
    with pytest.raises(FlightchainError, match=r"does not run: .*cometbft: .*build it with: go"):
        program()
