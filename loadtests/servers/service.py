"""The service itself, set up as the study's server was: what to start it with.

    settings = as_in_the_study(chain.block_bytes, blocks, emulated_disk=100)
    with running(chain.folder, log, ("serve", "--only-http"), settings=settings) as service:
        service.get(question.scan_path)

`serve --only-http` runs no miner: nothing is sealed meanwhile, and nothing else uses the disk.
"""

RUN_BLOCKS = 19
RUNS_CACHED = 2
CACHE_BLOCKS = RUNS_CACHED * RUN_BLOCKS
OVERHEAD_BYTES = 300  # of a block in a cache, beside its own bytes


def as_in_the_study(
    block_bytes: int,
    blocks: int,
    *,
    emulated_disk: int = 0,
    threads: int = 1,
    run_blocks: int = RUN_BLOCKS,
) -> dict[str, object]:
    """Settings of a service with one worker that reads nearly every block from files in a scan.

    block_bytes: of all `blocks` blocks on disk. threads: requests at a time; with 1 it is FCFS.
    emulated_disk: K, 0 for the real disk. run_blocks: fewer than the study's 19 for a chain that is
    much shorter than its own.

    A miss reads so many blocks. Each cache has room for twice as many, 38: with less, the service
    would drop blocks that it has read ahead in favour of those just left behind, and read them
    again. So of the study's 522 blocks, if they are of one size, 26 refills read 494: at K = 1 that
    takes 41.99 s, and looking at them a little more.
    """
    if min(blocks, threads, run_blocks) < 1:
        raise ValueError(
            f"blocks {blocks}, threads {threads} and run_blocks {run_blocks}: must be 1 or more"
        )
    cache_bytes = 2 * RUNS_CACHED * run_blocks * (block_bytes // blocks + 1 + OVERHEAD_BYTES)
    settings: dict[str, object] = {
        "workers": 1,
        "worker_type": "sync" if threads == 1 else "gthread",
        "threads": threads,
        "cache_bytes": cache_bytes,
        "read_run_blocks": run_blocks,
    }
    return settings | ({"lab": "yes", "emulated_disk": emulated_disk} if emulated_disk else {})
