"""Tells the ledger of a node what it must know of its cluster: which ids flights got, who is there.

Flights are accepted under numbers of this node, and get their ids when they are mined. The address
of a receipt, `/receipts/NODE-NUMBER`, leads to the flight before that on the node that
accepted it, and after that on all.
"""

import re
from typing import Any

from backend.cluster.membership import Membership, identity_in, membership_in
from backend.cluster.status import ClusterStatus, StatusReader
from backend.errors import InvalidSetting, NotFound, TryLater
from backend.receipts import Receipts, belongs_to_cluster
from backend.settings import NO_CLUSTER, Settings, variable
from backend.storage.block_store import BlockStore

Json = dict[str, Any]


class ClusterView:
    """The cluster that the ledger in `settings.folder` belongs to. It is safe for threads."""

    def __init__(self, settings: Settings, store: BlockStore, membership: Membership) -> None:
        assert settings.engine_home is not None
        self._names = [member.name for member in membership.members]
        own = identity_in(settings.engine_home, membership).index
        self._own = own if own is not None else -1
        self._receipts = Receipts(settings.folder, store)
        self._status = StatusReader(settings.folder)
        self.mined = self._receipts.own_mined
        self.require_acceptance = self._status.require_acceptance

    def close(self) -> None:
        """Close every file."""
        self._receipts.close()

    def id_of(self, number: int) -> int | None:
        """The id of a flight that this node accepted; None before it is mined."""
        return self._receipts.id_of(self._own, number)

    def address(self, number: int) -> str:
        """The address of the receipt of a flight that this node accepted."""
        return f"/receipts/{self._names[self._own]}-{number}"

    def own_number(self, receipt: str) -> int | None:
        """The number in a receipt of this node; None in one of another. Raises NotFound."""
        index, number = self._parts(receipt)
        return number if index == self._own else None

    def id_by(self, receipt: str) -> int | None:
        """The id of the flight of a receipt; None before it is mined. Raises NotFound."""
        return self._receipts.id_of(*self._parts(receipt))

    def _parts(self, receipt: str) -> tuple[int, int]:
        """The index of the node in a receipt, and the number."""
        name, _, number = receipt.rpartition("-")
        if name not in self._names or not _is_number(number):
            names = ", ".join(self._names)
            raise NotFound(f"{receipt} is no receipt: these are NODE-NUMBER, nodes are {names}")
        return self._names.index(name), int(number)

    def status(self) -> ClusterStatus:
        """How the cluster does. Raises TryLater if the node does not run."""
        found = self._status.status()
        if found is None:
            raise TryLater(self._status.refusal())
        return found

    def told(self) -> Json:
        """What `/tip` says of the cluster."""
        status, newest = self._status.status(), self._receipts.newest()
        return {
            "node": self._names[self._own] if self._own >= 0 else None,
            "members": self._names,
            "proposer": newest.proposer if newest is not None else None,
            "running": status is not None,
            "engine_height": status.engine_height if status else None,
            "peers": status.peers if status else [],
            "votes": status.votes if status else 0,
            "votes_total": status.votes_total if status else 0,
            "lag_blocks": status.lag_blocks if status else None,
            "accepts": not self._status.refusal(),
        }

    def not_ready(self) -> list[str]:
        """The reasons why this node cannot do all its work now; that of a reader is to answer."""
        status = self._status.status()
        if self._own < 0 and status is not None and not status.catching_up:
            return []
        refusal = self._status.refusal()
        return [refusal] if refusal else []


_is_number = re.compile(r"[0-9]{1,15}").fullmatch


def view_of(settings: Settings, store: BlockStore) -> ClusterView | None:
    """The cluster of a ledger; None if it belongs to none.

    Raises InvalidSetting if it belongs to one that the settings do not name.
    """
    if settings.engine_home is not None:
        return ClusterView(settings, store, membership_in(settings.engine_home))
    if belongs_to_cluster(settings.folder):
        reason = (
            f"must be the folder of the consensus engine: the ledger in {settings.folder} belongs "
            "to a cluster"
        )
        raise InvalidSetting(variable("cluster"), NO_CLUSTER, reason)
    return None
