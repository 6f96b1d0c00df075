"""Answers what recovery of the block files asks the mempool before the blocks are known."""

from collections.abc import Callable
from contextlib import AbstractContextManager, suppress

from backend.base.errors import DamagedMempool, TryLater
from backend.chain.block import Block
from backend.chain.columns import decode_body
from backend.chain.fields import FIELD_NAMES
from backend.chain.transaction import TIMESTAMP
from backend.mempool.mempool import Mempool
from backend.mempool.records import Accepted
from backend.storage.layout import Place


class PendingInRecovery:
    """The `Pending` of `storage.recovery` for a chain that has a mempool."""

    def __init__(self, mempool: Mempool) -> None:
        self._mempool = mempool

    def locked(self) -> AbstractContextManager[None]:
        """A lock: while it is held, no process gives ids. Raises TryLater."""
        return self._mempool.locked()

    def holds(self, first: int, following: int) -> bool:
        """Whether the mempool holds ids `first` to `following` (exclusive). Raises WriteFailed."""
        self._put_right(following)
        with self._mempool.as_if(first) as mempool:
            try:
                return all(mempool.find(each) is not None for each in range(first, following))
            except (TryLater, DamagedMempool):
                return False

    def contradiction(self, place: Place, block: Callable[[], Block]) -> str | None:
        """Name the first id at which the mempool and the block at `place` hold different flights.

        block: reads the block; it is called only if needed. None if they agree, and where the
        mempool is damaged, because then the block is all that is left. Raises WriteFailed.
        """
        with suppress(TryLater, DamagedMempool):
            if place.next_transaction <= self._mempool.oldest_id():
                return None
            try:
                pending = self._pending_in(place)
            except TryLater:
                self._put_right(place.next_transaction)
                pending = self._pending_in(place)
            if pending:
                return _first_difference(place.first_transaction, pending, block())
        return None

    def _pending_in(self, place: Place) -> list[Accepted]:
        """What the mempool holds of a block's ids. Raises TryLater if it must be rebuilt."""
        with self._mempool.as_if(place.first_transaction) as mempool:
            count = min(mempool.pending_count(), place.transaction_count)
            return mempool.pending(count)

    def _put_right(self, following: int) -> None:
        """Rebuild a damaged mempool as if blocks held the ids below `following`.

        So no flight becomes void while that block, or a backup, may still hold it.
        """
        with self._mempool.as_if(following) as mempool, suppress(DamagedMempool):
            mempool.put_right()  # damage of the chain is met and reported when it is read next


def _first_difference(first: int, pending: list[Accepted], block: Block) -> str | None:
    columns = decode_body(block.body, block.header.transaction_count)
    times, *values = (columns[name].expanded() for name in (TIMESTAMP, *FIELD_NAMES))
    in_block = zip(times, zip(*values, strict=True), strict=True)
    in_log = ((part.timestamp, flight) for part in pending for flight in part.flights)
    pairs = enumerate(zip(in_log, in_block, strict=False), first)
    return next(
        (f"the mempool holds another flight as transaction {i}" for i, (a, b) in pairs if a != b),
        None,
    )
