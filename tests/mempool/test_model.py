"""A model of all of it: processes, a miner, an import, power cuts and damage, in any order."""

import random
import tempfile
from contextlib import ExitStack
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from backend.base.clock import now_ms
from backend.chain.flight import Flight
from backend.chain.placeholder import VOID
from backend.mempool import Mempool
from backend.mempool.idempotency_keys import IdempotencyKey
from tests.effort import examples
from tests.flights import flights
from tests.harming import HARMS, harm
from tests.mempool.house import House, everything, listed
from tests.mempool.spoiling import spoil
from tests.submitting import accept_in

pytestmark = pytest.mark.slow

NOW_MS = now_ms()  # keys of long ago are forgotten

# --- a model ---------------------------------------------------------------------------------


class Interleaved(RuleBasedStateMachine):
    """Two processes' mempools on one folder, a miner, an import, power cuts and damage.

    The model: every transaction in order of id, as acknowledged or imported.
    """

    def __init__(self) -> None:
        super().__init__()
        self.stack = ExitStack()
        folder = self.stack.enter_context(tempfile.TemporaryDirectory())
        self.stack.enter_context(mock.patch("backend.mempool.store.LOG_BYTES", 40_000))
        self.house = House(Path(folder))
        self.ledger: list[Flight | None] = []  # None: imported
        self.blocks = [0]  # first ids of the blocks, and the number of mined transactions
        self.serial = 0
        self.sent: dict[int, tuple[int, int]] = {}  # serial, which is the key -> count, first id
        self.is_tip_lost = False
        self.has_lost_mined = False
        self.most_mined = 0

    @initialize()
    def open(self) -> None:
        self.mempools = [self.house.mempool(), self.house.mempool()]

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
        self.send(self.mempools[which], count, self.serial, NOW_MS + now)
        self.serial += count

    def send(self, mempool: Mempool, count: int, serial: int, at_ms: int) -> None:
        """Send flights with a key, the same for the same ones; they are accepted once."""
        batch = flights(count, serial)
        accepted = accept_in(mempool, batch, at_ms, key=IdempotencyKey(f"{serial}", "00"))
        if accepted.is_repeat:
            assert accepted.first_transaction == self.sent[serial][1]
            return
        forgot = [line for line in self.house.messages if "may be used again" in line]
        assert forgot or serial not in self.sent
        assert accepted.first_transaction == len(self.ledger)
        assert accepted.flights == batch
        self.sent[serial] = count, len(self.ledger)
        self.ledger += batch

    @precondition(lambda self: self.sent)
    @rule(which=st.integers(0, 1), chance=st.randoms())
    def send_again(self, which: int, chance: random.Random) -> None:
        serial, (count, _) = chance.choice(sorted(self.sent.items()))
        self.send(self.mempools[which], count, serial, NOW_MS)

    @rule(which=st.integers(0, 1), most=st.integers(1, 6))
    def mine(self, which: int, most: int) -> None:
        batch = listed(self.mempools[which].pending(most))
        assert batch == self.expected()[:most]
        if batch:
            self.seal(len(batch))

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

    @precondition(lambda self: self.mined >= self.most_mined)  # else blocks seem to be lost
    @rule(
        which=st.integers(0, 1),
        how=st.sampled_from(sorted(HARMS)),
        chance=st.randoms(),
        is_log=st.booleans(),
        is_live=st.booleans(),
    )
    def damage(
        self, which: int, how: str, chance: random.Random, is_log: bool, is_live: bool
    ) -> None:
        """Something happens to a file, perhaps while both have it open; its cost is named."""
        path = self.house.log if is_log else self.house.path
        known = set(self.house.lost())
        if path.exists():
            harm(path, how, chance)
        if not is_live:
            self.reopen(which)
        self.repair(which, known)

    @precondition(lambda self: self.mined >= self.most_mined)
    @rule(which=st.integers(0, 1), place=st.floats(0, 0.999))
    def damage_a_record(self, which: int, place: float) -> None:
        firsts = [first for first in self.house.records() if first >= self.mined]
        if firsts:
            spoil(self.house.folder, firsts[int(place * len(firsts))])
            self.repair(which)
            assert self.house.lost()

    def repair(self, which: int, known: set[tuple[int, int]] | None = None) -> None:
        known = set(self.house.lost()) if known is None else known
        self.mempools[which].repair()
        for first, count in set(self.house.lost()) - known:
            assert self.mined <= first
            self.ledger[first : first + count] = [VOID] * count
        self.has_lost_mined = True  # what is in the newest block may not be here any more

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
            entry = self.mempools[1].find(transaction_id)
            assert entry is not None
            assert entry[0] == held

    def teardown(self) -> None:
        self.house.close()
        descriptors = self.house.descriptors()
        self.stack.close()
        assert descriptors == []


TestInterleaved = Interleaved.TestCase
TestInterleaved.settings = hypothesis_settings(max_examples=examples(14), stateful_step_count=40)
