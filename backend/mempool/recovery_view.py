"""Answers what recovery of the block files asks the mempool before the blocks are known.

Nothing is rebuilt here: what is missing must not become void while a block, or a backup, holds it.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from backend.base.errors import DamagedMempool
from backend.chain.block import Block
from backend.chain.flight import Flight
from backend.chain.transaction import TIMESTAMP
from backend.mempool.mempool import Mempool
from backend.mempool.records import Record
from backend.storage.codec import decoded
from backend.storage.layout import Place


class PendingInRecovery:
    """The `Pending` of `storage.recovery` for a chain that has a mempool."""

    def __init__(self, mempool: Mempool) -> None:
        self._mempool = mempool
        self._records: list[Record] | None = None  # read when they are asked for

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold a lock that keeps every process from giving ids. Raises TryLater."""
        with self._mempool.locked():
            self._records = None
            yield

    def holds(self, first: int, following: int) -> bool:
        """Return whether the mempool holds ids `first` to `following` (exclusive).

        Raises WriteFailed.
        """
        return len(self._held(first, following)) == following - first

    def contradiction(self, place: Place, block: Callable[[], Block]) -> str | None:
        """Name the first id at which the mempool and the block at `place` hold different flights.

        block: reads the block; it is called only if needed. None if they agree, and where the
        mempool is damaged, because then the block is all that is left. Raises WriteFailed.
        """
        held = self._held(place.first_transaction, place.next_transaction)
        rows = enumerate(_rows_of(block()), place.first_transaction) if held else ()
        differing = (number for number, row in rows if held.get(number, row) != row)
        for number in differing:
            return f"the mempool holds another flight as transaction {number}"
        return None

    def _held(self, first: int, following: int) -> dict[int, tuple[int, Flight]]:
        """Return acceptance time and flight of each of these ids that can be read."""
        if self._records is None:
            self._records = []
            with suppress(DamagedMempool):  # of another ledger
                self._records = self._mempool.readable()
        return {
            number: (record.timestamp, flight)
            for record in self._records
            if first < record.next and record.first < following
            for number, flight in enumerate(record.decoded(), record.first)
            if first <= number < following
        }


def _rows_of(block: Block) -> Iterator[tuple[object, Flight]]:
    """Yield acceptance time and flight of each transaction. Raises DamagedBlock."""
    columns = decoded(block)
    return zip(columns[TIMESTAMP].expanded(), columns.rows(), strict=True)
