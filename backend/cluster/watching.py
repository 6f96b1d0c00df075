"""Looks how the cluster does, by asking this node's engine for its peers and heights."""

from collections.abc import Callable
from typing import Any

from backend.clock import now_ms
from backend.cluster.application import Application
from backend.cluster.engine import Engine
from backend.cluster.membership import Identity, Membership
from backend.cluster.status import ClusterStatus
from backend.errors import TryLater

STUCK_S = 10.0  # a transaction that is on its way so long means that no block is decided

READS_ONLY = "this node is no member that may add flights; post to another node"
CATCHES_UP = "this node is catching up with the cluster"


class Watcher:
    """Makes the status of a node."""

    def __init__(
        self,
        engine: Engine,
        membership: Membership,
        identity: Identity,
        clock_ms: Callable[[], int] = now_ms,
    ) -> None:
        """clock_ms: reads this node's clock."""
        self._engine = engine
        self._membership = membership
        self._own = identity.index
        self._clock_ms = clock_ms

    def look(self, application: Application, waits_s: float, now_s: float) -> ClusterStatus:
        """How the cluster does. waits_s: how long flights have been sent and none was mined."""
        members, own = self._membership.members, self._own
        name = "" if own is None else members[own].name
        height, total = application.engine_height, self._membership.power
        try:
            catching_up = bool(self._engine.ask("status")["sync_info"]["catching_up"])
            ids = {one["node_info"]["id"] for one in self._engine.ask("net_info")["peers"]}
            furthest = max(
                map(_height_of, self._engine.ask("dump_consensus_state")["peers"]), default=0
            )
        except TryLater as error:
            return ClusterStatus(name, height, [], 0, total, True, 0, str(error), now_s)
        peers = [one for one in members if one.peer_id in ids]
        votes = sum(one.power for one in peers) + (0 if own is None else members[own].power)
        lag = max(0, furthest - 1 - height)  # a peer that stands at H is deciding H
        names = [one.name for one in peers]
        status = ClusterStatus(name, height, names, votes, total, catching_up, lag, "", now_s)
        refusal = self._refusal(status, application.header_ms, waits_s)
        return ClusterStatus(name, height, names, votes, total, catching_up, lag, refusal, now_s)

    def _refusal(self, status: ClusterStatus, header_ms: int, waits_s: float) -> str:
        """Why nothing is accepted; "" if it is."""
        if not status.has_quorum:
            return (
                f"no quorum: this node sees {status.votes} of {status.votes_total} votes, and more "
                "than two thirds are needed; nothing is accepted until they are back"
            )
        if status.catching_up:
            return CATCHES_UP
        if self._own is None:
            return READS_ONLY
        if waits_s > STUCK_S:
            return (
                f"the cluster has decided no block for {waits_s:.0f} s; nothing is accepted until "
                "it does"
            )
        ahead_ms = self._clock_ms() - self._membership.latest_ms(header_ms)
        if header_ms and ahead_ms > 0:
            return (
                f"the clock of this node is {ahead_ms // 1000} s ahead of what the cluster "
                "believes; nothing is accepted until it is set"
            )
        return ""


def _height_of(peer: dict[str, Any]) -> int:
    """The height at which a peer stands, as the engine's consensus knows it."""
    try:
        return int(peer["peer_state"]["round_state"]["height"])
    except (KeyError, TypeError, ValueError):
        return 0
