"""A scan: which blocks and columns it reads, that it checks them, and where it stops.

That its answers are right is shown in tests/index/test_answers.py.
"""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from backend.chain.block import Block, block_of, mined
from backend.questions import scan
from backend.questions.values import AverageDelays, FilterTransactions, FlightCounter, Options
from backend.storage import caches
from backend.storage.block_store import BlockStore
from backend.storage.caches import CachedBlocks
from backend.storage.codec import verified_block
from backend.storage.scan_costs import (
    Costs,
)
from tests.index.tampering import blocks_in, relinked, with_change, write_blocks
from tests.index.worlds import make_chain, plain_flight
from tests.storage.chains import damage_named, flip_in_block

TIP = 5
ALL_YEARS = ("1900-01-01", "2199-12-31")
LEGS = FilterTransactions(335, "2008-01-03")
AVERAGE = AverageDelays(19393, *ALL_YEARS)
COUNTER = FlightCounter("Washington, DC", "Tampa, FL", *ALL_YEARS)

Scan = Callable[[CachedBlocks, int], Any]
SCANS: dict[str, Scan] = {
    "legs": lambda blocks, height: scan.legs(blocks, LEGS, height),
    "delays": lambda blocks, height: scan.counts(blocks, AVERAGE, Options(), height),
    "flights": lambda blocks, height: scan.counts(blocks, COUNTER, Options(), height),
    "flights by carrier": lambda blocks, height: scan.counts(
        blocks, COUNTER, Options(group_by="carrier"), height
    ),
}
EVERYTHING = dict.fromkeys(SCANS, 10)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Genesis and five blocks of two flights each."""
    make_chain(tmp_path, [[plain_flight(ARR_DELAY=height), plain_flight()] for height in range(5)])
    return tmp_path


@contextmanager
def cached(folder: Path, cache_bytes: int = 20_000_000) -> Iterator[CachedBlocks]:
    with closing(BlockStore(folder)) as store:
        yield CachedBlocks(store, cache_bytes, read_run_blocks=2)


def flight_count(answer: Any) -> int:
    """Returns how many flights an answer is made of."""
    return len(answer) if isinstance(answer, list) else int(answer.totals.flights)


@pytest.mark.parametrize("kind", SCANS)
@pytest.mark.parametrize("cache_bytes", [0, 3000, 20_000_000])
def test_every_block_is_checked_in_every_scan_whether_it_was_cached_or_not(
    folder: Path, kind: str, cache_bytes: int
) -> None:
    with cached(folder, cache_bytes) as blocks:
        for _ in range(2):
            with mock.patch.object(caches, "verified_block", wraps=verified_block) as checked:
                assert flight_count(SCANS[kind](blocks, TIP)) == EVERYTHING[kind]
            heights = [call.args[1] for call in checked.call_args_list]
            assert heights == list(range(TIP + 1))


def sealed_again(folder: Path, height: int) -> None:
    """Change the block below and seal it again; this block still names the old one."""
    write_blocks(folder, with_change(folder, height - 1, 0, "ARR_DELAY", -60))


def with_header(**changed: Any) -> Callable[[Path, int], None]:
    """Give a block another header, which the block above it names."""

    def change(folder: Path, height: int) -> None:
        blocks = blocks_in(folder)
        header = mined(replace(blocks[height].header, **changed))
        blocks[height] = block_of(header, blocks[height].body)
        write_blocks(folder, relinked(blocks, height))

    return change


@pytest.mark.parametrize("kind", SCANS)
@pytest.mark.parametrize(
    ("harm", "height", "words"),
    [
        *((flip_in_block, height, None) for height in (0, 3, TIP)),
        (sealed_again, 4, "below it"),
        (with_header(previous_hash="1" * 64), 0, None),
        (with_header(transaction_count=3), 2, None),  # only decoding can tell
    ],
)
def test_a_block_that_is_wrong_ends_the_scan_and_is_named(
    folder: Path, kind: str, harm: Callable[[Path, int], None], height: int, words: str | None
) -> None:
    harm(folder, height)
    with cached(folder) as blocks:
        if height:
            assert flight_count(SCANS[kind](blocks, height - 1)) == 2 * (height - 1)
        with damage_named(height, words):
            SCANS[kind](blocks, TIP)


@pytest.mark.parametrize("kind", SCANS)
def test_a_scan_while_the_chain_grows_ends_at_its_height(folder: Path, kind: str) -> None:
    real = CachedBlocks.block

    def growing(blocks: CachedBlocks, height: int, costs: Costs | None = None) -> Block:
        make_chain(folder, [[plain_flight()]])
        return real(blocks, height, costs)

    with cached(folder) as blocks, mock.patch.object(CachedBlocks, "block", growing):
        assert flight_count(SCANS[kind](blocks, TIP)) == EVERYTHING[kind]


def test_blocks_are_counted_by_the_cache_that_had_them(folder: Path) -> None:
    with closing(BlockStore(folder)) as store:
        sizes = [caches.FRAME_OVERHEAD_BYTES + place.length for place in store.places(0, 6)]
        budget = 2 * max(sum(sizes[4:]), sum(sizes[:3]))
        blocks = CachedBlocks(store, budget, read_run_blocks=3)
        for _ in range(2):
            costs = Costs()
            scan.legs(blocks, LEGS, TIP, costs)
            assert costs.refills + costs.last_blocks + costs.random_blocks == TIP + 1
    assert costs.last_blocks > 0
    assert costs.random_blocks > 0
    assert blocks.counts()["random"].hits >= costs.random_blocks
