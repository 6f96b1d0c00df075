"""The emulated disk: how long reads take at least, and who waits."""

import time
from pathlib import Path

import pytest

from backend.base.errors import NotFound
from backend.storage.block_store import BlockStore
from backend.storage.caches import CachedBlocks
from backend.storage.emulated import CHECK_S, READ_S, EmulatedDisk
from backend.storage.scan_costs import EMULATED, FILE, Costs
from tests.storage.chains import make_chain
from tests.submitting import run_together

BLOCK_S = READ_S + CHECK_S


def test_a_block_takes_what_the_study_measured() -> None:
    assert pytest.approx(0.085) == BLOCK_S


def test_what_a_wait_was_too_long_is_taken_off_the_next() -> None:
    disk = EmulatedDisk(100)
    for _ in range(2):
        started = time.perf_counter()
        for _ in range(20):
            disk.wait(1, time.perf_counter())
        took_s = time.perf_counter() - started
        assert took_s >= 19 * BLOCK_S / 100  # the first round begins without a debt


def test_the_debt_of_one_thread_is_not_that_of_another() -> None:
    disk = EmulatedDisk(100)
    disk.wait(19, time.perf_counter() - 3600)
    started = time.perf_counter()
    run_together(1, lambda _: disk.wait(19, started))
    assert time.perf_counter() - started >= 19 * BLOCK_S / 100


def test_the_real_reading_is_part_of_the_time() -> None:
    disk = EmulatedDisk(10)
    began = time.perf_counter() - 3600
    before = time.perf_counter()
    disk.wait(19, began)  # long over: nothing to wait for
    disk.wait(19, time.perf_counter())  # its debt is as long as itself
    disk.wait(19, time.perf_counter())  # and no longer
    took_s = time.perf_counter() - before
    assert took_s >= 0.9 * 19 * BLOCK_S / 10


def test_only_what_is_read_from_files_takes_time(tmp_path: Path) -> None:
    make_chain(tmp_path, [1] * 30)
    store = BlockStore(tmp_path)
    waited: list[int] = []

    class Noting(EmulatedDisk):
        def wait(self, blocks: int, start_s: float) -> None:
            waited.append(blocks)
            super().wait(blocks, start_s)

    cached = CachedBlocks(store, 10**6, 19, disk=Noting(10_000))
    costs = Costs()
    for height in range(31):
        cached.block(height, costs)
    assert waited == [19, 12]
    assert costs.stage_s[FILE] + costs.stage_s[EMULATED] >= 0.99 * 31 * BLOCK_S / 10_000
    for height in range(31):
        cached.block(height, costs)
        cached.cached_block(height)
        cached.where(height)
    with pytest.raises(NotFound):
        cached.block(31)
    assert waited == [19, 12]
    store.close()
