"""Keeps and scans blocks as the study did: the baseline that our scan is measured against.

A block is a JSON file `HEIGHT.json`: an object with `height`, `previous_hash`, `timestamp`, `hash`
and `transactions`, which are objects of a flight's 19 fields, TRANSACTION_ID and `timestamp`. All
values are strings, empty for null. `hash` is the SHA-256 of the same object without `hash`, written
by `json.dumps` with sorted keys; `previous_hash` is that of the block below ("0" in block 0).

What it promises:
- Every read from disk costs what it cost the study: read the file, decode it, build an object per
  transaction, encode the block again with sorted keys, hash that, and compare with the hash on
  record. No block is used before it passed.
- Two caches of equal size. `last` holds the newest blocks; `random` holds the neighbourhood of the
  block last asked for, and in a scan the blocks that come next. Together they hold every block at
  most once. A refill keeps what `random` already holds and never reads what `last` holds.
- So a scan over n blocks reads max(0, n - cached_blocks) of them from disk, less what `random`
  holds of its beginning: nothing right after construction, and nothing after an earlier scan of at
  least three times `cached_blocks` blocks.
- Construction reads every block once, as the study did at start, and leaves the newest in `last`.
- Answers equal a plain loop over all flights, for chains of any length, empty ones included.
- With an emulated disk a refill takes at least a given time for each block that it reads: the real
  work and a wait. Construction never waits.

Three things are left out on purpose, because no question ever waited for them: the proof of work,
the faults of the original (short chains, ids that reading advanced), and its second reading of the
newest blocks at start. A ledger serves one request at a time. Chains are made by `write_chain` in a
new folder, so nothing but the hashes is checked.
"""

import json
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import chain
from pathlib import Path
from time import monotonic, sleep, time
from typing import Any

FLIGHT_FIELDS = (
    *("YEAR", "DAY_OF_WEEK", "FL_DATE", "OP_CARRIER_AIRLINE_ID", "OP_CARRIER_FL_NUM"),
    *("ORIGIN_AIRPORT_ID", "ORIGIN", "ORIGIN_CITY_NAME", "ORIGIN_STATE_NM"),
    *("DEST_AIRPORT_ID", "DEST", "DEST_CITY_NAME", "DEST_STATE_NM"),
    *("DEP_TIME", "DEP_DELAY", "ARR_TIME", "ARR_DELAY", "CANCELLED", "AIR_TIME"),
)
CACHED_BLOCKS = 19  # what fitted into each 10 MB cache of the study
NO_PREVIOUS = "0"


class BlockMismatch(Exception):
    """Says that a block does not have the hash on record."""


class Transaction:
    """Holds a flight record. Its attributes are the keys of its JSON object, all strings."""

    FL_DATE: str
    OP_CARRIER_AIRLINE_ID: str
    OP_CARRIER_FL_NUM: str
    ORIGIN_CITY_NAME: str
    DEST_CITY_NAME: str
    ARR_DELAY: str

    def __init__(self, record: Mapping[str, str]) -> None:
        self.__dict__.update(record)


@dataclass
class Block:
    """Holds the hashed content of a block: everything in its file but the hash."""

    height: int
    previous_hash: str
    timestamp: str
    transactions: list[Transaction]

    def encoded(self) -> str:
        """Return the text whose SHA-256 is the block's hash."""
        return json.dumps(self, default=vars, sort_keys=True)


@dataclass
class Costs:
    """Counts what reading has cost so far.

    disk_reads: blocks read from disk. cache_hits: blocks asked for that were in a cache; the
    others made `random` refill.
    """

    disk_reads: int = 0
    cache_hits: int = 0


def write_chain(folder: Path, blocks: Iterable[Sequence[Mapping[str, object]]]) -> int:
    """Write `blocks`, each a sequence of flights, as heights 0, 1, … Returns how many there are.

    A flight maps field names to values; None and absent become "". TRANSACTION_ID is the flight's
    position in the chain, whatever the mapping says; `timestamp` is the mapping's or now.
    """
    folder.mkdir(parents=True, exist_ok=True)
    previous_hash, first_id, height = NO_PREVIOUS, 0, -1
    for height, flights in enumerate(blocks):
        now = str(time())
        transactions = [
            _transaction(flight, first_id + place, now) for place, flight in enumerate(flights)
        ]
        block = Block(height, previous_hash, now, transactions)
        previous_hash = sha256(block.encoded().encode()).hexdigest()
        text = json.dumps(vars(block) | {"hash": previous_hash}, default=vars, sort_keys=True)
        block_path(folder, height).write_text(text, encoding="utf-8")
        first_id += len(flights)
    return height + 1


def block_path(folder: Path, height: int) -> Path:
    """Return the file of block `height` in the chain's `folder`."""
    return folder / f"{height}.json"


def _transaction(flight: Mapping[str, object], transaction_id: int, now: str) -> Transaction:
    record = {name: flight.get(name) for name in FLIGHT_FIELDS}
    record |= {"TRANSACTION_ID": transaction_id, "timestamp": flight.get("timestamp", now)}
    return Transaction(
        {name: "" if value is None else str(value) for name, value in record.items()}
    )


class Pace:
    """Lets each piece of work take `piece_s` seconds in all: the real work, then a wait.

    A thread that sleeps is woken late, by 0.05 to 0.1 ms: too much if a wait is 0.5 ms and a
    request has a thousand of them. So the pieces between `begin` and `end` share one deadline,
    which is counted on from the last one. Time by which they were too long in the end is taken off
    the next ones, but not more than they all should have taken. For one thread.
    """

    def __init__(self, piece_s: float) -> None:
        self.piece_s = piece_s
        self._should_s = self._deadline_s = self._debt_s = 0.0

    def begin(self) -> None:
        """Note that the first of some pieces begins now."""
        self._should_s = 0.0
        self._deadline_s = monotonic() - self._debt_s

    def piece_done(self) -> None:
        """Wait until the time of a piece is over, because its real work is done."""
        self._should_s += self.piece_s
        self._deadline_s += self.piece_s
        if (left_s := self._deadline_s - monotonic()) > 0:
            sleep(left_s)

    def end(self) -> None:
        """Note that the last piece is done."""
        self._debt_s = min(max(0.0, monotonic() - self._deadline_s), self._should_s)


class StudyLedger:
    """Answers as the study did from a chain: every question about flights is a full scan.

    Dates are ISO and inclusive. Attribute: `costs` since construction, or since the caller last set
    it to `Costs()`. Construction and every question raise BlockMismatch.
    """

    def __init__(
        self, folder: Path, cached_blocks: int = CACHED_BLOCKS, block_s: float = 0.0
    ) -> None:
        """Open the chain. block_s: the least time to read and check a block, to emulate a disk."""
        self._folder = folder
        self._cached_blocks = cached_blocks
        self._pace = Pace(block_s)
        self._length = sum(path.suffix == ".json" for path in folder.iterdir())
        self._first_ids = [0]  # those of all blocks, and at the end that of the next block
        self._last: dict[int, Block] = {}
        self._random: dict[int, Block] = {}
        self.costs = Costs()
        self._learn_chain()
        self.costs = Costs()

    def __len__(self) -> int:
        return self._length

    def flight_counter(
        self, origin_city: str, dest_city: str, initial_date: str, final_date: str
    ) -> int:
        """Return how many flights went from city to city on ISO dates from initial to final."""
        return sum(
            1
            for flight in self._flights()
            if origin_city == flight.ORIGIN_CITY_NAME
            and dest_city == flight.DEST_CITY_NAME
            and initial_date <= flight.FL_DATE <= final_date
        )

    def average_delays(
        self, carrier_id: int | str, initial_date: str, final_date: str
    ) -> float | None:
        """Return the mean ARR_DELAY (min) of a carrier's flights that arrived; None without any."""
        carrier = str(carrier_id)
        delays_min = [
            float(flight.ARR_DELAY)
            for flight in self._flights()
            if carrier == flight.OP_CARRIER_AIRLINE_ID
            and initial_date <= flight.FL_DATE <= final_date
            and flight.ARR_DELAY
        ]
        return sum(delays_min) / len(delays_min) if delays_min else None

    def filter_transactions(self, fl_num: int | str, fl_date: str) -> list[dict[str, str]]:
        """Return the transactions of flight `fl_num` on the ISO date `fl_date`, oldest first."""
        number = str(fl_num)
        return [
            dict(vars(flight))
            for flight in self._flights()
            if number == flight.OP_CARRIER_FL_NUM and fl_date == flight.FL_DATE
        ]

    def block(self, height: int) -> Block:
        """Return block `height`, cached or read with its neighbours."""
        return self._cached(height, height - self._cached_blocks // 2)

    def transaction(self, transaction_id: int) -> dict[str, str]:
        """Return the transaction of that id, whose block is searched for."""
        # The rightmost of equal first ids: a block without transactions shares that of the next.
        height = bisect_right(self._first_ids, transaction_id) - 1
        place = transaction_id - self._first_ids[height]
        return dict(vars(self.block(height).transactions[place]))

    def _flights(self) -> Iterator[Transaction]:
        """Return all flights, oldest first; a scan that leaves the caches moves `random` ahead."""
        blocks = (self._cached(height, height) for height in range(self._length))
        return chain.from_iterable(block.transactions for block in blocks)

    def _cached(self, height: int, refill_from: int) -> Block:
        """Return block `height` from a cache, which may be refilled from `refill_from` on."""
        block = self._last.get(height) or self._random.get(height)
        if block is not None:
            self.costs.cache_hits += 1
            return block
        self._refill_random(refill_from)
        return self._random[height]

    def _refill_random(self, start: int) -> None:
        """Let `random` hold the blocks from `start` on, shifted to end where `last` begins."""
        first_in_last = max(0, self._length - self._cached_blocks)
        start = max(0, min(start, first_in_last - self._cached_blocks))
        stop = min(start + self._cached_blocks, first_in_last)
        self._pace.begin()
        self._random = {
            height: self._random.get(height) or self._read_at_pace(height)
            for height in range(start, stop)
        }
        self._pace.end()

    def _learn_chain(self) -> None:
        """Read every block once: its hash, its first id; keep the newest in `last`."""
        for height in range(self._length):
            block = self._read(height)
            self._first_ids.append(self._first_ids[-1] + len(block.transactions))
            self._last[height] = block
            self._last.pop(height - self._cached_blocks, None)

    def _read_at_pace(self, height: int) -> Block:
        block = self._read(height)
        self._pace.piece_done()
        return block

    def _read(self, height: int) -> Block:
        """Return block `height` from disk, whose hash is compared with the one in its file."""
        text = block_path(self._folder, height).read_text(encoding="utf-8")
        content: dict[str, Any] = json.loads(text)
        recorded_hash = content.pop("hash")
        content["transactions"] = [Transaction(record) for record in content["transactions"]]
        block = Block(**content)
        block_hash = sha256(block.encoded().encode()).hexdigest()
        self.costs.disk_reads += 1
        if block_hash != recorded_hash:
            raise BlockMismatch(f"block {height} hashes to {block_hash}, not {recorded_hash}")
        return block
