"""Four nodes with CometBFT as processes: killed, stopped, cut off, damaged, all killed.

Whatever happens, no acknowledged flight is lost or mined twice, all tips are equal afterwards, and
without a quorum writes are refused. The tests follow one another on one cluster.
"""

import random
from collections.abc import Iterator

import pytest

from backend.chain.flight import as_mapping
from backend.cluster.configuration import ENGINE
from backend.cluster.engine import Engine
from backend.cluster.local import LOG_NAME
from tests import go_programs
from tests.cluster.harms import HARMS, NEED_NETWORKS, endure
from tests.cluster.processes import need_engine, post
from tests.cluster.world import World, cluster_in, until
from tests.flights import flight

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    need_engine()
    folder = tmp_path_factory.mktemp("longer-than-the-name-of-a-socket-may-be" * 3)
    with cluster_in(folder) as world:
        yield world


def test_flights_posted_anywhere_are_mined_everywhere(world: World) -> None:
    for host in world.hosts:
        assert world.post(host) == 202
    world.settle()
    tips = [world.cluster.answer(host) for host in world.hosts]
    assert {tip["transactions"] for tip in tips} == {4}
    until(
        lambda: {world.cluster.answer(host)["cluster"]["votes"] for host in world.hosts} == {40},
        "all nodes see all votes",
    )
    for host in world.hosts:
        Engine(world.cluster.folder / host.name / ENGINE).dial_peers()  # CometBFT understands it
        assert "was proposed by node" in (world.cluster.folder / host.name / LOG_NAME).read_text()


def test_with_two_nodes_killed_writes_are_refused_until_they_are_back(world: World) -> None:
    world.post_everywhere(1)
    for host in world.hosts[2:]:
        world.cluster.kill(host)
    for host in world.hosts[:2]:
        until(lambda host=host: world.post(host) == 503, "writes are refused without a quorum")
        status, body = post(host.url + "/transactions", as_mapping(flight(0)))
        assert (status, "no quorum" in body["detail"]) == (503, True)
        assert "20 of 40 votes" in world.cluster.refusal(host)
    world.settle()


# Tested above, or in the soak alone: halves have no quorum either, and are cut off as one is.
ELSEWHERE = {
    *("a full disk", "two killed", "two halves"),
    *("a node put back", "an engine's file damaged"),
}
# Of these others hold a part: two and all are killed, an engine is stopped, a block is altered,
# tests/cluster/test_application.py has a clock that is ahead, and test_put_back.py a lost mempool.
LONG = {
    *("a block damaged", "a clock ahead", "a mempool lost", "an index damaged"),
    *("one consensus failed", "one cut off", "one killed", "one stopped", "strangers"),
}


@pytest.mark.parametrize(
    "harm",
    [
        pytest.param(harm, marks=[pytest.mark.long] if harm in LONG else [])
        for harm in sorted(HARMS.keys() - ELSEWHERE)
    ],
)
def test_harm_is_endured(world: World, harm: str) -> None:
    """`scripts/soak cluster` does this for hours, and the others, too."""
    if harm == "strangers":
        go_programs.go()
    if harm in NEED_NETWORKS and world.networks is None:
        pytest.skip("only root can cut networks, with the programs ip and nsenter")
    endure(world, harm, random.Random(harm))
