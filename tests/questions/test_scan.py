"""A scan: which blocks and columns it reads, that it checks them, and where it stops.

That its answers are right is shown in tests/index/test_answers.py.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from backend.chain.block import Block, block_of, mined
from backend.questions import scan
from backend.questions.counts import Delays, FlightCounts
from backend.questions.values import AverageDelays, FilterTransactions, FlightCounter, Options
from backend.storage import caches
from backend.storage.block_store import BlockStore
from backend.storage.caches import CachedBlocks
from backend.storage.codec import verified_block
from backend.storage.scan_costs import (
    DECODE,
    DECOMPRESS,
    EMULATED,
    FILTER,
    HASH,
    STAGES,
    Costs,
)
from tests.index.tampering import blocks_in, changed_flight, relinked, write_blocks
from tests.index.worlds import make_chain, plain_flight
from tests.storage.chains import block_file, damage_named, flip

TIP = 5
ALL_YEARS = ("1900-01-01", "2199-12-31")
LEGS = FilterTransactions(335, "2008-01-03")
AVERAGE = AverageDelays(19393, *ALL_YEARS)
COUNTER = FlightCounter("Washington, DC", "Tampa, FL", *ALL_YEARS)

Scan = Callable[[CachedBlocks, int], Any]
SCANS: dict[str, Scan] = {
    "legs": lambda blocks, height: scan.legs(blocks, LEGS, height),
    "delays": lambda blocks, height: scan.delays(blocks, AVERAGE, Options(), height),
    "flight_counts": lambda blocks, height: scan.flight_counts(
        blocks, COUNTER, Options("scan"), height
    ),
    "flight_counts by carrier": lambda blocks, height: scan.flight_counts(
        blocks, COUNTER, Options("scan", group_by="carrier"), height
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


def found(answer: Any) -> int:
    """How many flights an answer is made of."""
    if isinstance(answer, list):
        return len(answer)
    if isinstance(answer, FlightCounts):
        return answer.count
    assert isinstance(answer, Delays)
    return answer.totals.flights


@pytest.mark.parametrize("kind", SCANS)
def test_a_scan_counts_the_blocks_up_to_its_height(folder: Path, kind: str) -> None:
    with cached(folder) as blocks:
        counts = [found(SCANS[kind](blocks, height)) for height in range(TIP + 1)]
    assert counts == [0, 2, 4, 6, 8, 10]


@pytest.mark.parametrize("kind", SCANS)
@pytest.mark.parametrize("cache_bytes", [0, 3000, 20_000_000])
def test_every_block_is_checked_in_every_scan_whether_it_was_cached_or_not(
    folder: Path, kind: str, cache_bytes: int
) -> None:
    with cached(folder, cache_bytes) as blocks:
        for _ in range(2):
            with mock.patch.object(caches, "verified_block", wraps=verified_block) as checked:
                assert found(SCANS[kind](blocks, TIP)) == EVERYTHING[kind]
            heights = [call.args[1] for call in checked.call_args_list]
            assert heights == list(range(TIP + 1))


@pytest.mark.parametrize("kind", SCANS)
@pytest.mark.parametrize("height", range(TIP + 1))
def test_a_damaged_block_ends_the_scan_and_is_named(folder: Path, kind: str, height: int) -> None:
    with closing(BlockStore(folder)) as store:
        flip(block_file(folder), store.place(height).end - 1)
    with cached(folder) as blocks:
        if height:
            assert found(SCANS[kind](blocks, height - 1)) == 2 * (height - 1)
        with damage_named(height):
            SCANS[kind](blocks, TIP)


@pytest.mark.parametrize("kind", SCANS)
def test_a_block_that_does_not_name_the_one_below_it_is_named(folder: Path, kind: str) -> None:
    """Block 3 was changed and sealed again; block 4 still names the old one."""
    blocks_on_disk = blocks_in(folder)
    blocks_on_disk[3] = block_of(*changed_flight(blocks_on_disk[3], 0, ARR_DELAY=-60))
    write_blocks(folder, blocks_on_disk)
    with cached(folder) as blocks:
        assert found(SCANS[kind](blocks, 3)) == 6
        with damage_named(4, "below it"):
            SCANS[kind](blocks, TIP)


@pytest.mark.parametrize("kind", SCANS)
def test_a_genesis_that_names_a_block_below_it_is_refused(folder: Path, kind: str) -> None:
    blocks_on_disk = blocks_in(folder)
    genesis = blocks_on_disk[0]
    header = mined(replace(genesis.header, previous_hash="1" * 64))
    blocks_on_disk[0] = block_of(header, genesis.body)
    write_blocks(folder, relinked(blocks_on_disk, 0))
    with cached(folder) as blocks, damage_named(0):
        SCANS[kind](blocks, TIP)


@pytest.mark.parametrize("kind", SCANS)
def test_a_body_that_is_none_is_damage_of_its_block(folder: Path, kind: str) -> None:
    """The header commits to it, so only decoding can tell."""
    blocks_on_disk = blocks_in(folder)
    bad = replace(blocks_on_disk[2].header, transaction_count=3)
    blocks_on_disk[2] = block_of(mined(bad), blocks_on_disk[2].body)
    write_blocks(folder, relinked(blocks_on_disk, 2))
    with cached(folder) as blocks, damage_named(2):
        SCANS[kind](blocks, TIP)


def test_legs_come_in_the_order_of_their_ids(folder: Path) -> None:
    with cached(folder) as blocks:
        legs = scan.legs(blocks, LEGS, TIP)
    assert [leg["TRANSACTION_ID"] for leg in legs] == list(range(10))
    assert [leg["BLOCK_HEIGHT"] for leg in legs] == [1, 1, 2, 2, 3, 3, 4, 4, 5, 5]


@pytest.mark.parametrize("kind", SCANS)
def test_a_scan_while_the_chain_grows_ends_at_its_height(folder: Path, kind: str) -> None:
    real = CachedBlocks.block

    def growing(blocks: CachedBlocks, height: int, costs: Costs | None = None) -> Block:
        make_chain(folder, [[plain_flight()]])
        return real(blocks, height, costs)

    with cached(folder) as blocks, mock.patch.object(CachedBlocks, "block", growing):
        assert found(SCANS[kind](blocks, TIP)) == EVERYTHING[kind]


# --- what it costs -------------------------------------------------------------------------------

ASKED: dict[str, Callable[[CachedBlocks, Costs], Any]] = {
    "legs": lambda blocks, costs: scan.legs(blocks, LEGS, TIP, costs),
    "delays": lambda blocks, costs: scan.delays(blocks, AVERAGE, Options(), TIP, costs),
    "flight_counts": lambda blocks, costs: scan.flight_counts(
        blocks, COUNTER, Options("scan"), TIP, costs
    ),
}


@pytest.mark.parametrize("kind", ASKED)
def test_a_scan_notes_what_each_stage_took_and_where_blocks_came_from(
    folder: Path, kind: str
) -> None:
    with cached(folder) as blocks:
        first, second = Costs(), Costs()
        for costs in (first, second):
            started = time.perf_counter()
            assert found(ASKED[kind](blocks, costs)) == 10
            took_s = time.perf_counter() - started
            assert 0 < sum(costs.stage_s.values()) <= took_s
    assert set(first.stage_s) == set(STAGES)
    assert {name for name, seconds in first.stage_s.items() if seconds == 0} == {EMULATED}
    assert (first.read_blocks, first.refills) == (6, 3)  # in runs of two
    assert (first.last_blocks, first.random_blocks) == (3, 0)  # all are among the newest
    worked = {name for name, seconds in second.stage_s.items() if seconds}
    assert worked == {DECOMPRESS, HASH, DECODE, FILTER}
    assert (second.read_blocks, second.refills, second.last_blocks) == (0, 0, 6)


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
    assert costs.refills > 0
    statistics = {counts.name: counts for counts in blocks.statistics()}
    assert statistics["random"].hits >= costs.random_blocks
