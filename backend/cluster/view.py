"""Tells the ledger of a node what it must know of its cluster: which ids flights got, who is there.

Flights are accepted under numbers of this node, and get their ids when they are mined. The address
of a receipt, `/receipts/NODE-NUMBER-TAG`, leads to the flight before that on the node that
accepted it, and after that on all.

The tag is of the flight's content. A node that was put back to an older copy may give a number a
second time, and nobody else can know that; but then the receipt shows nothing rather than another
client's flight. Receipts without a tag are older, or of a flight within a batch.
"""

import re
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from backend.base.errors import FlightchainError, InvalidSetting, NotFound, TryLater
from backend.base.settings import NO_CLUSTER, Settings, variable
from backend.chain.canonical import sha256_hex
from backend.chain.flight import Flight
from backend.chain.transaction import transaction, transaction_bytes
from backend.cluster.membership import identity_in, membership_in
from backend.cluster.node_status import ClusterStatus, StatusReader
from backend.questions.answer_types import Answer, Count
from backend.storage.block_store import BlockStore
from backend.storage.receipt_store import Receipts, belongs_to_cluster

TAG_DIGITS = 8


class ClusterState(Answer):
    """The state of a node; only in a cluster."""

    node: Annotated[str | None, Meta(description="this node; null if it only reads")]
    members: list[str]
    proposer: Annotated[str | None, Meta(description="the node that proposed the newest block")]
    running: bool
    engine_height: Annotated[
        Count | None,
        Meta(description="blocks that the consensus engine has decided, with the empty ones"),
    ]
    peers: list[str]
    votes: Annotated[Count, Meta(description="weight of the votes of this node and its peers")]
    votes_total: Count
    lag_blocks: Annotated[
        Count | None, Meta(description="blocks of the engine that a peer has and this node lacks")
    ]
    accepts: Annotated[bool, Meta(description="whether flights can be added here now")]


class ClusterView:
    """The cluster that the ledger in `settings.folder` belongs to. It is safe for threads."""

    def __init__(self, home: Path, settings: Settings, store: BlockStore) -> None:
        """home: the folder of the engine. If its files cannot be used, that is said when asked."""
        self._home = home
        self._names: list[str] = []
        self._own = -1
        self._receipts = Receipts(settings.folder, store)
        self._status = StatusReader(settings.folder)
        self.mined = self._receipts.own_mined
        self._problem = self._read_members()

    def _read_members(self) -> str:
        """Read who belongs to the cluster. Returns why that cannot be done, in words; or ""."""
        try:
            membership = membership_in(self._home)
            own = identity_in(self._home, membership).index
        except FlightchainError as error:
            return str(error)
        self._names = [member.name for member in membership.members]
        self._own = own if own is not None else -1
        return ""

    def require_acceptance(self) -> None:
        """Raise TryLater while nothing is accepted."""
        self._require_members()
        if refusal := self._status.refusal():
            raise TryLater(refusal, retry_after_s=5)

    def _require_members(self) -> None:
        if self._problem:
            self._problem = self._read_members()  # somebody may have put back what was wrong
        if self._problem:
            raise TryLater(self._problem)

    def close(self) -> None:
        self._receipts.close()

    def id_of(self, number: int) -> int | None:
        """Return the id of a flight that this node accepted; None before it is mined."""
        return self._receipts.id_of(self._own, number)

    def address(self, number: int, flight: Flight | None = None) -> str:
        """Return the address of the receipt of a flight of this node; with a tag if given."""
        tag = "" if flight is None else f"-{tag_of(flight)}"
        return f"/receipts/{self._names[self._own]}-{number}{tag}"

    def own_number(self, receipt: str) -> int | None:
        """Return the number in a receipt of this node; None in one of another. Raises NotFound."""
        index, number, _ = self._parts(receipt)
        return number if index == self._own else None

    def id_by(self, receipt: str) -> int | None:
        """Return the id of the flight of a receipt; None before it is mined. Raises NotFound."""
        return self._receipts.id_of(*self._parts(receipt)[:2])

    def require_same(self, receipt: str, flight: Flight) -> None:
        """Raise NotFound if a receipt is of another flight than that which has its number."""
        index, number, tag = self._parts(receipt)
        if tag and tag != tag_of(flight):
            raise NotFound(
                f"{self._names[index]} has given number {number} to another flight than that of "
                f"the receipt {receipt}: it was put back to an older copy, and has lost the flight "
                "or accepted it again under another number; look for the flight, and if it is not "
                "there add it again"
            )

    def _parts(self, receipt: str) -> tuple[int, int, str]:
        """Return the index of the node in a receipt, the number, and the tag; "" without one."""
        self._require_members()
        parts = _RECEIPT.fullmatch(receipt)
        if parts is None or parts["node"] not in self._names:
            names = ", ".join(self._names)
            raise NotFound(
                f"{receipt} is not a receipt; a receipt is NODE-NUMBER-TAG, and nodes are {names}"
            )
        return self._names.index(parts["node"]), int(parts["number"]), parts["tag"] or ""

    def status(self) -> ClusterStatus:
        """Return the status of the cluster. Raises TryLater if the node does not run."""
        status = self._status.status()
        if status is None:
            raise TryLater(self._status.refusal())
        return status

    def state(self) -> ClusterState:
        """Return what `/tip` says of the cluster."""
        status, newest = self._status.status(), self._receipts.newest()
        return ClusterState(
            node=self._names[self._own] if self._own >= 0 else None,
            members=self._names,
            proposer=newest.proposer if newest is not None else None,
            running=status is not None,
            engine_height=status.engine_height if status else None,
            peers=status.peers if status else [],
            votes=status.votes if status else 0,
            votes_total=status.votes_total if status else 0,
            lag_blocks=status.lag_blocks if status else None,
            accepts=not (self._problem or self._status.refusal()),
        )

    def not_ready(self) -> list[str]:
        """Return the reasons why this node cannot do all its work now; a reader's is to answer."""
        try:
            self._require_members()
        except TryLater as error:
            return [str(error)]
        status = self._status.status()
        if self._own < 0 and status is not None and not status.catching_up:
            return []
        refusal = self._status.refusal()
        return [refusal] if refusal else []


_RECEIPT = re.compile(r"(?P<node>\w+)-(?P<number>[0-9]{1,15})(-(?P<tag>[0-9a-f]{8}))?")


def tag_of(flight: Flight) -> str:
    """Return the beginning of a hash of a flight's content."""
    return sha256_hex(transaction_bytes(transaction(flight, 0, 0)))[:TAG_DIGITS]


def view_of(settings: Settings, store: BlockStore) -> ClusterView | None:
    """Return the cluster of a ledger; None if it belongs to none.

    Raises InvalidSetting if it belongs to one that the settings do not name.
    """
    if settings.engine_home is not None:
        return ClusterView(settings.engine_home, settings, store)
    if belongs_to_cluster(settings.folder):
        reason = (
            f"must be the folder of the consensus engine: the ledger in {settings.folder} belongs "
            "to a cluster"
        )
        raise InvalidSetting(variable("cluster"), NO_CLUSTER, reason)
    return None
