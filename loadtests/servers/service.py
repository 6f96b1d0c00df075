"""Chooses settings with which the service itself runs as the study's did.

It runs as `serve --only-http`, without a miner, so that no block is sealed and nothing else uses
the disk.
"""

RUN_BLOCKS = 19
ENDLESS_QUEUE = 100_000  # requests that may wait, as in a queue without end
RUNS_CACHED = 2
OVERHEAD_BYTES = 300  # bytes that a cache needs for each block beside the block itself


def as_in_the_study(
    block_bytes: int, blocks: int, *, emulated_disk: int = 0, run_blocks: int = RUN_BLOCKS
) -> dict[str, object]:
    """Return settings of a service whose scans read nearly every block from files, one at a time.

    block_bytes: size of all `blocks` blocks on disk. emulated_disk: K, 0 for the real disk.
    run_blocks: blocks that a cache miss reads, fewer than the study's 19 for a much shorter chain.

    Each cache has room for twice as many blocks as a miss reads, 38: with less, the service would
    drop blocks that it has read ahead in favour of those just used, and read them again. So 26
    refills read 494 of the study's 522 blocks, if they are of one size: at K = 1 that takes
    41.99 s, and looking at the blocks a little more.
    """
    if min(blocks, run_blocks) < 1:
        raise ValueError(f"blocks {blocks} and run_blocks {run_blocks}: must be 1 or more")
    cache_bytes = 2 * RUNS_CACHED * run_blocks * (block_bytes // blocks + 1 + OVERHEAD_BYTES)
    settings: dict[str, object] = {"workers": 1, "worker_type": "sync", "threads": 1}
    settings |= {"cache_bytes": cache_bytes, "read_run_blocks": run_blocks}
    return settings | ({"lab": "yes", "emulated_disk": emulated_disk} if emulated_disk else {})
