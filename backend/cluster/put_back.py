"""Notices that a node was put back to an older copy of its folder, and gave numbers twice.

The cluster remembers how many flights of each node are in blocks. If a block holds flights under
numbers that this node's own files do not know, it has accepted more than it remembers: it runs
with an older copy, or with an empty folder. What it acknowledged after the copy and is in no block
is lost, and nobody can tell which flights that were. So it accepts nothing, and says so, until a
person has read it and removes the note.

If it had given such a number to another flight meanwhile, that one would be taken for mined. It is
accepted again under a new number before the block is appended.
"""

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from backend.base import files
from backend.base.clock import now_ms
from backend.base.errors import DamagedMempool, FlightchainError
from backend.base.words import Report, counted
from backend.chain.flight import Flight
from backend.chain.placeholder import VOID
from backend.cluster.block_appender import Built
from backend.cluster.view import tag_of
from backend.mempool import Accepted, Mempool, Offer, Unrepaired
from backend.mempool.idempotency_keys import IdempotencyKey

NOTE_NAME = "put-back"


def refusal(folder: Path) -> str:
    """Return why the node of the chain in `folder` accepts nothing; "" if it was not put back."""
    path = folder / NOTE_NAME
    try:
        note = path.read_text("utf-8", errors="replace").strip()
    except FileNotFoundError:
        return ""
    except OSError as error:
        note = f"the note cannot be read ({error.strerror})"
    return f"this node was put back to an older copy: {note}; remove {path} to accept flights again"


class OwnFlights:
    """Compares the flights of this node in new blocks with those that its mempool knows."""

    def __init__(self, folder: Path, index: int | None, mempool: Mempool, report: Report) -> None:
        """index: of this node among the members; None if it is none."""
        self._folder = folder
        self._index = index
        self._mempool = mempool
        self._report = report

    def compare(self, built: Built) -> None:
        """Compare the flights of a block that is about to be appended."""
        for run in built.entry.runs:
            if run.node == self._index:
                self._compare(run.first, built.flights_of(run.node))

    def _compare(self, first: int, mined: Sequence[Flight]) -> None:
        following = first + len(mined)
        try:
            known: int | None = self._mempool.pending_ids().stop
            parts = self._mempool.pending(len(mined), first)
        except (DamagedMempool, Unrepaired):  # it lacks blocks to come, or what this one holds
            known, parts = self._mempool.acknowledged_end(), []
        if known is not None and known < following:
            self._note(
                f"its own files hold its flights below number {known}, but blocks hold later ones; "
                "flights that it acknowledged after the copy and that are in no "
                "block are lost, and their receipts say so"
            )
        displaced = _displaced(parts, dict(enumerate(mined, first)))
        if displaced:
            self._accept_again(displaced)

    def _note(self, text: str) -> None:
        path = self._folder / NOTE_NAME
        if not path.exists():
            files.write_new(path, f"{text}\n".encode())
            self._report(refusal(self._folder))

    def _accept_again(self, displaced: dict[int, Flight]) -> None:
        """Give new numbers to flights whose numbers were given before; once, whatever crashes."""
        numbers, flights = list(displaced), list(displaced.values())
        name = f"{numbers[0]}-{numbers[-1]}"
        content = sha256("".join(map(tag_of, flights)).encode()).hexdigest()
        key = IdempotencyKey(f"accepted again {name}", content)
        (outcome,) = self._mempool.accept_all([Offer(flights, key)], now_ms())
        text = f"{counted(len(flights), 'flight')} with the numbers {numbers[0]} to {numbers[-1]}"
        if isinstance(outcome, FlightchainError | OSError):
            self._note(f"{text} are lost, because these were given before: {outcome}")
            return
        self._note(
            f"{text} were accepted again from number {outcome.first_transaction} on, because these "
            "were given before and are in blocks with other flights; flights that it acknowledged "
            "before and that are in no block are lost, and their receipts say so"
        )


def _displaced(parts: Sequence[Accepted], mined: dict[int, Flight]) -> dict[int, Flight]:
    """Return the accepted flights under whose numbers others are mined, by these numbers.

    A void entry stands for a lost flight, which is the one that is mined, if any is.
    """
    return {
        number: flight
        for part in parts
        for number, flight in enumerate(part.flights, part.first_transaction)
        if number in mined and flight not in (mined[number], VOID)
    }
