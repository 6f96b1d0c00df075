"""Finds the status of the cluster by asking this node's engine for its peers and heights.

The engine lives on when its consensus has failed, for instance because the disk was full when a
vote was to be noted: it says CONSENSUS FAILURE once, and takes part in nothing any more. So an
engine that stands still although there is something to decide is taken for one that has failed.

Others are believed to go on only where voters with more than a third of the votes say so: if as
many as the cluster can bear are liars, one of these is not. A peer's key is proved by the engine.
If starting the engine again does not help, it is waited for longer and longer.

An engine without a quorum is asked to dial its peers, which it does too rarely by itself.
"""

import math
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime

import msgspec

from backend.base.clock import now_ms
from backend.base.errors import FlightchainError, TryLater
from backend.chain.json_objects import Json
from backend.cluster.application import Application
from backend.cluster.engine import Engine
from backend.cluster.membership import SET_CLOCK, Identity, Membership
from backend.cluster.node_status import ClusterStatus

MOST_LAG_BLOCKS = 2  # of the engine; with more the newest header is old, whatever the clock says
STUCK_S = 10.0  # a transaction that is on its way so long means that no block is decided
DIAL_EVERY_S = 30.0  # while there is no quorum
STANDS_STILL_S = 20.0  # with a quorum a step, or a block that is fetched, takes seconds

READS_ONLY = "this node is not a member that may add flights; use another node"
LONGEST_STILL_S = 1280.0  # for an engine that was started again and again
CATCHES_UP = "this node is catching up with the cluster"


class EngineStandsStill(FlightchainError):
    """The engine takes part in nothing any more, and must be started again."""


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
        self._seen: tuple[object, ...] = ()  # where the engine was last
        self._since_s = 0.0  # since when it has been there and should have moved, monotonic
        self._patience_s = STANDS_STILL_S
        self._height_then = -1  # the own height when the engine stood still last
        self._dialled_s = 0.0  # when it was asked to dial last, or had a quorum, monotonic

    def look(self, application: Application, waits_s: float, now_s: float) -> ClusterStatus:
        """Return the status of the cluster.

        waits_s: how long flights have been sent and none was mined. Raises EngineStandsStill if the
        engine must be started again.
        """
        members, own = self._membership.members, self._own
        name = "" if own is None else members[own].name
        height, total = application.engine_height, self._membership.power
        try:
            catching_up = bool(self._engine.ask("status")["sync_info"]["catching_up"])
            ids = {member["node_info"]["id"] for member in self._engine.ask("net_info")["peers"]}
            consensus = self._engine.ask("dump_consensus_state")
        except TryLater as error:
            self._seen = ()
            refusal = str(error)
            return ClusterStatus(name, height, [], 0, total, True, 0, refusal, now_s, own is None)
        peers = [member for member in members if member.peer_id in ids]
        votes = sum(member.power for member in peers) + (0 if own is None else members[own].power)
        lag = max(0, self._reached(consensus["peers"]) - 1 - height)  # who is at H decides H
        names = [member.name for member in peers]
        status = ClusterStatus(
            name, height, names, votes, total, catching_up, lag, "", now_s, own is None
        )
        self._seek_quorum(status, now_s)
        step = consensus["round_state"]
        since_s = now_s - application.decided_s
        if ahead := self._clock_ahead(application.header_ms, since_s):
            waits_s = 0.0  # flights that it accepted meanwhile wait for their time, not for a block
        is_due = status.has_quorum and (lag > 0 or waits_s > 0)
        self._require_motion(
            (height, step["height"], step["round"], step["step"]), now_s, is_due=is_due
        )
        refusal = (
            self._clock_behind(application.decided_s)
            or self._refusal(status, application.header_ms, since_s, waits_s)
            or ahead
        )
        return msgspec.structs.replace(status, refusal=refusal)

    def _reached(self, peers: list[Json]) -> int:
        """Return the height that voters with more than a third of the votes have reached."""
        power = {member.peer_id: member.power for member in self._membership.members}
        votes = 0
        for height, peer_id in sorted(map(_height_and_id, peers), reverse=True):
            votes += power.get(peer_id, 0)
            if 3 * votes > self._membership.power:
                return height
        return 0

    def _seek_quorum(self, status: ClusterStatus, now_s: float) -> None:
        """Have the engine dial its peers again and again while there is no quorum."""
        if status.has_quorum:
            self._dialled_s = now_s
        elif now_s - self._dialled_s > DIAL_EVERY_S:
            self._dialled_s = now_s
            with suppress(TryLater):
                self._engine.dial_peers()

    def forget(self) -> None:
        """Forget where the engine was, because it had to wait for this node."""
        self._seen = ()

    def _require_motion(
        self, position: tuple[int, object, object, object], now_s: float, *, is_due: bool
    ) -> None:
        """Raise EngineStandsStill if the engine has stood where it is for too long.

        position: the height of this node, and height, round and step of consensus. is_due: whether
        there is something to decide or to fetch.
        """
        if position[0] != self._height_then:
            self._patience_s = STANDS_STILL_S
        if not is_due or position != self._seen:
            self._seen, self._since_s = position, now_s
        elif (stood_s := now_s - self._since_s) > self._patience_s:
            self._patience_s = min(2 * self._patience_s, LONGEST_STILL_S)
            self._height_then = position[0]
            self.forget()
            raise EngineStandsStill(
                f"the consensus engine has stood still at height {position[1]} for {stood_s:.0f} s "
                "although others go on or flights wait; it must be started again"
            )

    def _refusal(
        self, status: ClusterStatus, header_ms: int, since_s: float, waits_s: float
    ) -> str:
        """Return why nothing is accepted; "" if it is.

        header_ms: the time in the newest header. since_s: how long ago that was decided.
        """
        if not status.has_quorum:
            return (
                f"no quorum: this node sees {status.votes} of {status.votes_total} votes, and more "
                "than two thirds are needed; nothing is accepted until they are back"
            )
        if status.catching_up or status.lag_blocks > MOST_LAG_BLOCKS:
            return CATCHES_UP
        if self._own is None:
            return READS_ONLY
        stuck_s = self._membership.leeway_ms / 1000 if header_ms else math.inf
        if waits_s > STUCK_S or since_s > stuck_s:
            return (
                f"the cluster has decided no block for {max(waits_s, since_s):.0f} s; nothing is "
                "accepted until it does"
            )
        return ""

    def _clock_behind(self, decided_s: float) -> str:
        """Return what is wrong if the clock is behind a block that was refused since `decided_s`.

        decided_s: when a block was decided last, monotonic. "" if it is not.
        """
        time, clock_s = self._engine.too_new, self._clock_ms() // 1000
        if self._engine.too_new_s <= decided_s or clock_s >= _seconds(time):
            return ""
        return (
            f"the clock of this node is too far behind to accept a block of the others, which has "
            f"the time {time} UTC, and nothing is accepted: {SET_CLOCK}"
        )

    def _clock_ahead(self, header_ms: int, since_s: float) -> str:
        """Return how far the clock is ahead of the cluster's time; "" if not too far.

        header_ms, since_s: as in `_refusal`.
        """
        then_ms = self._clock_ms() - round(1000 * since_s)  # a header has no later time
        if not header_ms or then_ms <= self._membership.latest_ms(header_ms):
            return ""
        return (
            f"the clock of this node is {(then_ms - header_ms) // 1000} s ahead of the cluster's "
            "time, and nothing is accepted: if the whole cluster had stopped, wait an interval; if "
            "not, set the clock"
        )


def _seconds(time: str) -> float:
    return datetime.fromisoformat(f"{time}Z").timestamp()


def _height_and_id(peer: Json) -> tuple[int, str]:
    """Return the height at which a peer stands, as the engine's consensus knows it, and its id."""
    try:
        height = int(peer["peer_state"]["round_state"]["height"])
        return height, str(peer["node_address"]).partition("@")[0]
    except (KeyError, TypeError, ValueError):
        return 0, ""
