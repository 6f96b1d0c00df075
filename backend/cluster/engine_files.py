"""Checks the files of the engine before it starts, because it names no remedy, or makes new ones.

Without its key the engine would make one that has no vote, without its configuration listen as it
likes, and with an empty file of its newest vote end with a line that nobody reads. So each file is
read first, and what is wrong with it is said with the consequence and the remedy. The databases in
`data/` are the engine's own: what it says when it cannot open them is passed on (`engine`).
"""

import json
import tomllib
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from backend.base import files
from backend.base.errors import FlightchainError
from backend.base.settings import Settings
from backend.chain.json_objects import Json
from backend.cluster.log_key import common_key_in
from backend.cluster.membership import (
    PUT_BACK,
    SET_CLOCK,
    Identity,
    Membership,
    address_of,
    identity_in,
    json_in,
    membership_in,
    require_base,
    secret_key_in,
)
from backend.storage.block_store import BlockStore
from backend.storage.genesis import genesis_in
from backend.storage.receipt_store import FILE_NAME, Receipts
from backend.trust.log import checkpoints

KEY_NAME, STATE_NAME = "priv_validator_key.json", "priv_validator_state.json"
NEVER_AGAIN = 1_000_000  # a round that no height reaches
SIGNED = 3  # the last step of a round
REBUILD = (
    "rebuild the node from the others: `scripts/cluster rebuild NODE --engine`, or, on a machine "
    "of its own, as docs/how-to/cluster.md says"
)

CONFIG_ERRORS = (OSError, ValueError, KeyError, TypeError)


def check_engine(settings: Settings) -> str:
    """Check the files of the engine for `verify`. Returns a message; "" without an engine.

    Raises FlightchainError naming the first one that is not as it must be.
    """
    home = settings.engine_home
    if home is None:
        return ""
    membership = membership_in(home)
    identity = identity_in(home, membership)
    with (
        closing(BlockStore(settings.folder)) as store,
        closing(Receipts(settings.folder, store)) as receipts,
    ):
        require_base(store, membership)
        common_key_in(home, checkpoints.origin_of(genesis_in(settings.folder)))
        if receipts.is_there():
            receipts.require_own(identity.index)
        newest = receipts.newest()
        if newest is None and store.height() > membership.height:
            raise FlightchainError(
                f"{settings.folder / FILE_NAME} is missing or has no receipts, so the node does "
                "not start; rebuild the node's chain as docs/how-to/cluster.md says"
            )
    require_sound(home, membership, identity, 0 if newest is None else newest.engine_height)
    return f"the files of the engine in {home} are right"


def require_sound(
    home: Path, membership: Membership, identity: Identity, engine_height: int
) -> None:
    """Raise FlightchainError if the engine in `home` would not take part as it should.

    engine_height: the height of the engine's block at which the chain stands.
    """
    if (now := datetime.now(UTC)) < membership.made_at:
        raise FlightchainError(
            f"the clock of this node says {now:%F %R} UTC, but the cluster was made at "
            f"{membership.made_at:%F %R}; {SET_CLOCK}"
        )
    _require_peers(home, membership, identity)
    if identity.index is None or not (member := membership.members[identity.index]).voter:
        return
    _require_key(home / "config" / KEY_NAME, member.voter)
    others = membership.power - member.power
    _require_state(home / "data" / STATE_NAME, engine_height, 3 * others > 2 * membership.power)


def _require_peers(home: Path, membership: Membership, identity: Identity) -> None:
    """Raise FlightchainError if a configuration cannot be read, or names no other member."""
    peers = peers_in(home)
    others = [m.peer_id for i, m in enumerate(membership.members) if i != identity.index]
    if others and not any(peer in peers for peer in others):
        raise FlightchainError(
            f"{_config(home)} names no other member of this cluster as a peer, so this node would "
            f"be alone and is not started; {PUT_BACK}"
        )


def peers_in(home: Path) -> str:
    """Return the peers that the engine in `home` dials, with commas. Raises FlightchainError."""
    path = _config(home)
    try:
        return str(tomllib.loads(path.read_text("utf-8"))["p2p"]["persistent_peers"])
    except CONFIG_ERRORS as error:
        raise config_unusable(path, error) from error


def _config(home: Path) -> Path:
    return home / "config" / "config.toml"


def config_unusable(path: Path, error: Exception) -> FlightchainError:
    """Make the error for a configuration that cannot be read or lacks something."""
    remedy = files.access_remedy(path) if isinstance(error, PermissionError) else PUT_BACK
    return FlightchainError(
        f"{path} cannot be used: {getattr(error, 'strerror', None) or error!r}; without it "
        f"the engine would choose its ports and peers, so it is not started; {remedy}"
    )


def _require_key(path: Path, voter: str) -> None:
    """Raise FlightchainError unless the file holds the key with which this node votes."""
    lost = f"without it this node has no vote, so its engine is not started; {PUT_BACK}"
    address = address_of(secret_key_in(path, lost).public_key().public_bytes_raw())
    if address != voter:
        raise FlightchainError(
            f"{path} is the key of the voter {address}, but this node is {voter}; {lost}"
        )


def _require_state(path: Path, engine_height: int, others_suffice: bool) -> None:
    """Raise FlightchainError unless the file says which vote of this node is the newest.

    others_suffice: whether the other voters decide blocks without this one.
    """
    passed = _state(engine_height + 1, NEVER_AGAIN) if others_suffice else _state(engine_height, 0)
    lost = (
        "it names the newest vote of this node, without which its engine could vote twice at one "
        "height, so that is not started; put back a copy, or if there is none write this into it: "
        f"{json.dumps(passed)}"
    )
    state = json_in(path, lost)
    if not (
        str(state.get("height", "")).isdecimal()
        and isinstance(state.get("round"), int)
        and isinstance(state.get("step"), int)
    ):
        raise FlightchainError(f"{path} names no vote; {lost}")


def _state(height: int, round_: int) -> Json:
    """Return what stands for a node that has voted up to a height and round."""
    return {"height": str(height), "round": round_, "step": SIGNED if height else 0}
