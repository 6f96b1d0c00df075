"""A model of all of it: processes, a miner, an import, power cuts and damage, in any order."""

import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from unittest import mock

from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from backend.chain.flight import Flight
from backend.chain.void import VOID
from backend.mempool import FOLDER, log, segments
from backend.mempool.record import packed
from backend.mempool.salvage import SEGMENTS_MISSING
from tests.accepting import accept_in
from tests.flights import flights
from tests.mempool.house import House, T, everything, listed

DAMAGE: dict[str, Callable[[bytes, int], bytes | None]] = {
    "flip": lambda data, at: data[:at] + bytes([data[at] ^ 1 << at % 8]) + data[at + 1 :],
    "garbage": lambda data, at: data[:at] + b"\xff\0\xff" + data[at + 3 :],
    "cut": lambda data, at: data[:at],
    "cut out": lambda data, at: data[: at // 2] + data[at:],
    "remove": lambda data, at: None,
}

# --- a model ---------------------------------------------------------------------------------


class Interleaved(RuleBasedStateMachine):
    """Two processes' mempools on one folder, a miner, an import, power cuts and damage.

    The model: every transaction in order of id, as acknowledged or imported.
    """

    def __init__(self) -> None:
        super().__init__()
        self.stack = ExitStack()
        folder = self.stack.enter_context(tempfile.TemporaryDirectory())
        self.stack.enter_context(mock.patch.object(log, "SEGMENT_BYTES", 900))
        # all within a millisecond, so that a segment may be written anew under a name it had before
        self.stack.enter_context(mock.patch.object(segments, "now_ms", lambda: T))
        self.house = House(Path(folder))
        self.ledger: list[Flight | None] = []  # None: imported
        self.blocks = [0]  # first ids of the blocks, and the number of mined transactions
        self.serial = 0
        self.torn = 0
        self.is_tip_lost = False
        self.has_lost_mined = False
        self.most_mined = 0

    @initialize()
    def open(self) -> None:
        self.mempools = [self.house.mempool(), self.house.mempool()]

    @property
    def said(self) -> list[str]:
        """What was put right; that a segment with mined flights is gone, everybody says."""
        return [line for line in self.house.messages if SEGMENTS_MISSING not in line]

    @property
    def mined(self) -> int:
        return self.house.chain.transactions

    def expected(self) -> list[tuple[int, Flight]]:
        return [(i, f) for i, f in enumerate(self.ledger) if i >= self.mined and f is not None]

    def seal(self, count: int) -> None:
        self.is_tip_lost = self.has_lost_mined = False
        self.blocks.append(self.mined + count)
        self.house.chain.transactions += count
        self.most_mined = max(self.most_mined, self.mined)

    @rule(which=st.integers(0, 1), count=st.integers(1, 4), now=st.integers(0, 10))
    def accept(self, which: int, count: int, now: int) -> None:
        batch = flights(count, self.serial)
        accepted = accept_in(self.mempools[which], batch, T + now)
        assert accepted.first_transaction == len(self.ledger)
        assert accepted.flights == batch
        self.ledger += batch
        self.serial += count
        assert len(self.said) == self.torn

    @rule(which=st.integers(0, 1), most=st.integers(1, 6))
    def mine(self, which: int, most: int) -> None:
        found = listed(self.mempools[which].pending(most))
        assert found == self.expected()[:most]
        if found:
            self.seal(len(found))

    @rule(which=st.integers(0, 1), count=st.integers(1, 5))
    def import_some(self, which: int, count: int) -> None:
        with self.mempools[which].exclusive():
            assert everything(self.mempools[which]) == self.expected()
            self.seal(len(self.expected()))
            self.seal(count)
        self.ledger += [None] * count

    @rule(which=st.integers(0, 1))
    def trim(self, which: int) -> None:
        self.mempools[which].trim(self.blocks[-2] if len(self.blocks) > 1 else 0)

    @rule(which=st.integers(0, 1))
    def reopen(self, which: int) -> None:
        self.mempools[which].close()
        self.mempools[which] = self.house.mempool()

    @precondition(lambda self: self.ledger and self.torn == len(self.said))
    @rule(size=st.integers(1, 300))
    def die_while_writing(self, size: int) -> None:
        record = packed(len(self.ledger), T, flights(2, self.serial))
        if not (self.house.folder / FOLDER).exists() or not self.house.segments():
            return
        with self.house.segment(self.house.segments()[-1]).open("ab") as log:
            log.write(record[: min(size, len(record) - 1)])
        self.torn += 1

    @precondition(lambda self: len(self.blocks) > 1)
    @precondition(lambda self: not (self.is_tip_lost or self.has_lost_mined))
    @rule()
    def lose_the_tip(self) -> None:
        """The newest block is torn; what came through the mempool must still be there."""
        lost = self.ledger[self.blocks[-2] :][: self.blocks[-1] - self.blocks[-2]]
        if None in lost or not lost:
            return  # imported: the import is run again
        self.is_tip_lost = True  # what is below the tip is on the disk
        self.blocks.pop()
        self.house.chain.transactions = self.blocks[-1]
        for which in range(2):  # everybody starts again
            self.reopen(which)

    @precondition(lambda self: self.torn == len(self.said) and self.house.segments())
    @precondition(lambda self: self.mined >= self.most_mined)  # else blocks seem to be lost
    @rule(which=st.integers(0, 1), kind=st.sampled_from(sorted(DAMAGE)), place=st.floats(0, 0.999))
    def damage(self, which: int, kind: str, place: float) -> None:
        """Something happens to a segment; what it costs is named, and lies in that segment."""
        firsts = [*self.house.segments(), len(self.ledger)]
        chosen = int(place * (len(firsts) - 1))
        path = self.house.segment(firsts[chosen])
        data, known = path.read_bytes(), set(self.house.lost())
        if not data:
            return
        changed = DAMAGE[kind](data, int(place * 7919 % 1 * len(data)))
        path.unlink()
        if changed is not None:
            path.write_bytes(changed)
        self.mempools[which].put_right()
        for first, count in set(self.house.lost()) - known:
            assert kind != "flip"
            assert max(self.mined, firsts[chosen]) <= first
            assert first + count <= firsts[chosen + 1]
            self.ledger[first : first + count] = [VOID] * count
        self.torn = len(self.said)
        self.has_lost_mined = True  # what is in the newest block may not be in the log any more

    @invariant()
    def acknowledged_exactly_once_and_in_order(self) -> None:
        if not hasattr(self, "mempools"):
            return
        for opened in self.mempools:
            assert everything(opened) == self.expected()
            assert opened.pending_count() == len(self.expected())
        times = [part.timestamp for part in self.mempools[0].pending(10**6)]
        assert times == sorted(times)
        for transaction_id, held in self.expected()[-1:]:
            found = self.mempools[1].find(transaction_id)
            assert found is not None
            assert found[0] == held

    def teardown(self) -> None:
        self.house.close()
        descriptors = self.house.descriptors()
        self.stack.close()
        assert descriptors == []


TestInterleaved = Interleaved.TestCase
TestInterleaved.settings = hypothesis_settings(max_examples=60, stateful_step_count=40)
