"""Reads who belongs to a cluster from the engine's genesis file, and whom a node talks to.

All nodes share the genesis. Its `app_state` names the members in order, each with the public key of
its `node_key.json`, and the block of the existing chain with which every node begins:

    {"height": 337, "hash": "00…", "transactions": 336776, "interval_s": 60.0, "empty": false,
     "members": [{"name": "node0", "key": "64 hexadecimal digits", "url": "http://…"}, …]}

A member is a voter if `validators` has its name. The genesis of a cluster never changes.
"""

import base64
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from backend.base import files
from backend.base.errors import FlightchainError
from backend.base.words import Report
from backend.chain.json_objects import Json, object_of
from backend.storage.block_store import BlockStore

MOST_MEMBERS = 256  # an index is a byte in the table of receipts
LEEWAY_MS = 120_000
SET_CLOCK = "set the clock, which `timedatectl` shows; if it is right, set those of the other nodes"
PUT_BACK = "put back a copy from the folder that `scripts/cluster configure` or `up` made"
GENESIS_LOST = (
    "it names the members of the cluster, and without it this node does nothing; put back a copy "
    "of another node's file, which is the same"
)
NODE_KEY_LOST = f"it is what the others know this node by; {PUT_BACK}"
READERS_NAME = "readers"
MOST_NAMED = 20  # strangers that are reported, so that they cannot fill the log


@dataclass(frozen=True, slots=True)
class Member:
    """A member. key: its public key. voter: its address as a voter; "" if it has no vote.

    power: the weight of its vote.
    """

    name: str
    key: bytes
    voter: str
    power: int

    @property
    def peer_id(self) -> str:
        """Its name among peers of the engine."""
        return address_of(self.key)


@dataclass(frozen=True, slots=True)
class Membership:
    """A cluster: its name, its members, and the block (height, hash, transactions) it began with.

    made_at: when it was made; its engine waits for that time, however far away a wrong clock is.
    interval_s: time between blocks, in seconds. empty: whether blocks without flights are made.
    """

    cluster: str
    made_at: datetime
    members: tuple[Member, ...]
    height: int
    hash: str
    transactions: int
    interval_s: float
    empty: bool

    @property
    def keys(self) -> list[Ed25519PublicKey]:
        return [Ed25519PublicKey.from_public_bytes(member.key) for member in self.members]

    @property
    def power(self) -> int:
        return sum(member.power for member in self.members)

    @property
    def leeway_ms(self) -> int:
        """How long after a header's time a flight may have been accepted, in milliseconds.

        That time is as old as the block before, which may be an interval.
        """
        return round(1000 * self.interval_s) + LEEWAY_MS

    def latest_ms(self, header_ms: int) -> int:
        """Return until when a flight of a block with this header time may have been accepted."""
        return header_ms + self.leeway_ms

    def earliest_ms(self, below_ms: int) -> int:
        """Return since when a flight may have been accepted that a block is proposed with.

        below_ms: the time of the block below that one, UTC milliseconds.
        """
        return max(0, below_ms - self.leeway_ms)

    def proposer(self, address: bytes) -> str:
        """Return the name of the voter with this address; "" if there is none."""
        names = (member.name for member in self.members if member.voter == address.hex())
        return next(names, "")


@dataclass(frozen=True, slots=True)
class Identity:
    """Which member this node is. index: None if it is none, and only reads. key: its secret key."""

    index: int | None
    key: Ed25519PrivateKey


def address_of(key: bytes) -> str:
    """Return the address of an Ed25519 key in the engine, hexadecimal."""
    return sha256(key).hexdigest()[:40]


def membership_in(home: Path) -> Membership:
    """Return the cluster of the engine whose folder is `home`. Raises FlightchainError."""
    path = home / "config" / "genesis.json"
    genesis = json_in(path, GENESIS_LOST)
    try:
        state = genesis["app_state"]
        voters = {member["name"]: member for member in genesis["validators"]}
        members = tuple(_member(member, voters.get(member["name"])) for member in state["members"])
        if not 0 < len(members) <= MOST_MEMBERS:
            raise ValueError(f"it has {len(members)} members")
        return Membership(
            str(genesis["chain_id"]),
            datetime.fromisoformat(genesis["genesis_time"]),
            members,
            int(state["height"]),
            str(state["hash"]),
            int(state["transactions"]),
            float(state["interval_s"]),
            bool(state["empty"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise FlightchainError(
            f"{path} is not the genesis of a cluster ({error!r}); {GENESIS_LOST}"
        ) from error


def require_base(store: BlockStore, membership: Membership) -> None:
    """Raise FlightchainError unless a chain goes through the block the cluster began with."""
    height, wanted = membership.height, membership.hash
    reached = store.height()
    there = store.place(height).hash.hex() if reached >= height else f"above {reached}"
    if there != wanted:
        raise FlightchainError(
            f"the cluster began with block {height} {wanted}, but in this folder that block is "
            f"{there}; start with a copy of the chain of another node, or put back this node's own "
            "engine/config/genesis.json if that file is another cluster's"
        )


def _member(state: Json, voter: Json | None) -> Member:
    public = base64.b64decode(voter["pub_key"]["value"]) if voter else b""
    return Member(
        str(state["name"]),
        bytes.fromhex(state["key"]),
        address_of(public) if voter else "",
        int(voter["power"]) if voter else 0,
    )


def identity_in(home: Path, membership: Membership) -> Identity:
    """Return which member the engine in `home` is. Raises FlightchainError."""
    key = node_key_in(home)
    public = key.public_key().public_bytes_raw()
    keys = [member.key for member in membership.members]
    return Identity(keys.index(public) if public in keys else None, key)


def node_key_in(home: Path) -> Ed25519PrivateKey:
    """Return the secret key of the engine's node in `home`. Raises FlightchainError."""
    return secret_key_in(home / "config" / "node_key.json", NODE_KEY_LOST)


def secret_key_in(path: Path, lost: str) -> Ed25519PrivateKey:
    """Return the secret key in a file of the engine. lost: as in `json_in`."""
    try:
        secret = base64.b64decode(json_in(path, lost)["priv_key"]["value"])
        return Ed25519PrivateKey.from_private_bytes(secret[:32])
    except (KeyError, TypeError, ValueError) as error:
        raise FlightchainError(f"{path} holds no key ({error!r}); {lost}") from error


def json_in(path: Path, lost: str) -> Json:
    """Return the object in a file of the engine. Raises FlightchainError if there is none.

    lost: the consequence and the remedy then.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise FlightchainError(files.reason_of(error, path, lost)) from error
    if (content := object_of(data)) is None:
        raise FlightchainError(f"{path} is {'damaged' if data else 'empty'}; {lost}")
    return content


class Admission:
    """The peers that the engine with the folder `home` talks to: members, and readers named to it.

    The engine asks for each peer (`filter_peers` in its configuration) after that has proved its
    key. A stranger could else claim a height that nobody has reached, keep a node that starts from
    catching up, or take the places of others. A reader has no vote and so is not in the genesis;
    its id stands in `config/readers` of every node, ids separated by white space, which is read
    each time.
    """

    def __init__(self, home: Path, membership: Membership, report: Report) -> None:
        """report: takes a line for a stranger."""
        self._path = home / "config" / READERS_NAME
        self._members = {member.peer_id for member in membership.members}
        self._report = report
        self._strangers: set[str] = set()

    def refusal(self, peer_id: str) -> str:
        """Return why a peer is not talked to; "" if it is. peer_id: hexadecimal."""
        if peer_id in self._members or peer_id in self._readers():
            return ""
        reason = (
            f"the peer {peer_id} is not a member of this cluster, and not named in {self._path}"
        )
        if peer_id not in self._strangers and len(self._strangers) < MOST_NAMED:
            self._strangers.add(peer_id)
            self._report(f"{reason}; it is refused: if it is a reader of yours, add its id there")
        return reason

    def _readers(self) -> list[str]:
        try:
            return self._path.read_text("ascii", errors="replace").split()
        except OSError:  # most clusters have none
            return []
