"""Compares where an index stands with the chain that it was derived from."""

from backend.base.errors import NotFound
from backend.base.words import counted
from backend.index.database import Position
from backend.storage.block_store import BlockStore


def difference_from(store: BlockStore, position: Position | None) -> str | None:
    """How an index that stands at `position` differs from the chain in `store`; None if it agrees.

    An index may be behind the chain, but not ahead of it, nor on another branch. Raises Damage if
    the chain cannot be read there.
    """
    if position is None:
        return "it holds no block"
    try:
        genesis, there = store.place(0), store.place(position.height)
    except NotFound:
        return f"it stands at block {position.height}, and the chain ends at {store.height()}"
    if genesis.hash.hex() != position.genesis_hash:
        return f"it is of another chain: its block 0 is {position.genesis_hash}"
    if there.hash.hex() != position.tip_hash:
        return f"it is on another branch: its block {position.height} is {position.tip_hash}"
    if there.next_transaction != position.transactions:
        return f"it holds {counted(position.transactions, 'flight')} at block {position.height}"
    return None
