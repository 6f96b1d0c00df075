"""What recovery of the block files asks of the mempool before anybody knows what blocks hold."""

from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from pathlib import Path

from backend.chain.block import Block
from backend.chain.columns import decode_body
from backend.chain.fields import FIELD_NAMES
from backend.chain.transaction import TIMESTAMP
from backend.errors import DamagedMempool, TryLater
from backend.mempool.mempool import FOLDER, Mempool
from backend.mempool.record import Accepted
from backend.mempool.segments import segments_in
from backend.storage.layout import Place


class PendingInRecovery:
    """The `Pending` of `storage.recovery` for the chain in `folder`, which has a mempool."""

    def __init__(self, folder: Path, mempool: Mempool) -> None:
        self._folder = folder / FOLDER
        self._mempool = mempool

    def locked(self) -> AbstractContextManager[None]:
        """While this is held nobody is given ids. Raises TryLater."""
        return self._mempool.locked()

    def holds(self, first: int, following: int) -> bool:
        """Whether all ids from `first` to `following` (exclusive) are there. Raises WriteFailed."""
        self._put_right(following)
        with self._mempool.as_if(first) as mempool:
            try:
                return all(mempool.find(each) is not None for each in range(first, following))
            except (TryLater, DamagedMempool):
                return False

    def contradiction(self, place: Place, block: Callable[[], Block]) -> str | None:
        """What the log holds, and the block at `place` does not, under one id; in words.

        block: reads it, if that is needed. Where the log is damaged it contradicts nobody: the
        block is what is left then. Raises WriteFailed.
        """
        segments = segments_in(self._folder)
        if not segments or place.next_transaction <= segments[0].first:
            return None
        with suppress(TryLater, DamagedMempool):
            try:
                pending = self._pending_in(place)
            except TryLater:
                self._put_right(place.next_transaction)
                pending = self._pending_in(place)
            if pending:
                return _first_difference(place.first_transaction, pending, block())
        return None

    def _pending_in(self, place: Place) -> list[Accepted]:
        """What the log holds of the ids of a block. Raises TryLater if it needs to be put right."""
        with self._mempool.as_if(place.first_transaction) as mempool:
            count = min(mempool.pending_count(), place.transaction_count)
            return mempool.pending(count)

    def _put_right(self, following: int) -> None:
        """Put the log right as if there was a block with the ids below `following`.

        So none of them becomes void while that block, or a backup, may have it.
        """
        with self._mempool.as_if(following) as mempool, suppress(DamagedMempool):
            mempool.put_right()  # what is wrong with the chain is met by whoever looks next


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
