"""Measures how fast flights are accepted, each answered when it is on the disk (rows 9 and 16).

Row 9: real flights are read from the month's service and posted to new chains: first in batches by
one client; then one by one, by one client and by eight, whose posts share the syncs of the disk.
The latter is done on this disk and, where strace works, on one that takes as long to sync as a
Pi's.

Row 16: the same with a cluster of four nodes, which share the processors with the generator and
with each other. Single flights are posted to node 0 by eight clients. Then four clients send the
month in batches, each to a node of its own. A rate until all is mined counts from the first post
until every node has mined everything. Finally a node is added, which begins where the cluster
began, and fetches the month.
"""

import shutil
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from itertools import chain, repeat
from pathlib import Path
from resource import getpagesize
from time import perf_counter, sleep

from loadtests.bench.figures import Figure, Target, and_best, at_least, at_most, rate_ratio
from loadtests.bench.session import Bench, say, timed
from loadtests.processes import (
    ANSWER_WITHIN_S,
    ProgramFailed,
    Service,
    Site,
    backend,
    exchanged,
    running,
    wait_for,
)
from loadtests.questions import flights_of_block
from loadtests.scenarios import sent_form
from loadtests.servers.cluster_server import Cluster, missing, running_cluster, urls_of_nodes

BATCH_PATH = "/transactions/batch"
BATCH_BLOCKS = 5
BATCHES = 12
CLIENTS = 8
SYNC_MS = 10


def posts(bench: Bench) -> Iterator[Figure]:
    """Measure posts of batches, then of single flights by one and by eight clients."""
    with bench.service(bench.month()) as service:
        height: int = service.get("/tip")["height"]
        blocks = [bodies_of_block(service, 1 + i % height) for i in range(BATCHES * BATCH_BLOCKS)]
    yield _batches(bench, blocks)
    yield from _one_by_one(bench, blocks[0])


def bodies_of_block(service: Service, height: int) -> list[bytes]:
    """Return the flights of a block, each as JSON in ASCII."""
    return [sent_form(flight).encode() for flight in flights_of_block(service, height)]


def _batch(blocks: Iterable[Sequence[bytes]]) -> bytes:
    """Return the flights of some blocks as JSON lines."""
    return b"\n".join(chain.from_iterable(blocks))


def _batches(bench: Bench, blocks: Sequence[Sequence[bytes]]) -> Figure:
    firsts = range(0, len(blocks), BATCH_BLOCKS)
    batches = [_batch(blocks[first : first + BATCH_BLOCKS]) for first in firsts]
    per_s = []
    for _ in range(bench.plan.repeats):
        say("posting batches to a new chain")
        with running(bench.empty_folder(), bench.log) as service:
            _, took_s = timed(partial(_send, service, batches))
        per_s.append(sum(map(len, blocks)) / took_s)
    what = f"flights per second, in batches of {BATCH_BLOCKS * len(blocks[0]):,}, one client"
    return Figure.judged(9, what, per_s, at_least(20_000), measured=and_best(per_s))


def _send(site: Site, batches: Iterable[bytes], within_s: float = 0) -> None:
    """Post batches, each again for `within_s` while there is no room. Raises ProgramFailed."""
    kind = {"Content-Type": "application/x-ndjson"}
    with site.connection(max(within_s, ANSWER_WITHIN_S)) as connection:
        for batch in batches:
            until_s = perf_counter() + within_s
            while True:
                response, content = exchanged(connection, BATCH_PATH, batch, kind)
                if response.status != 503 or perf_counter() > until_s:
                    break
                sleep(float(response.headers.get("Retry-After", 1)))
            if response.status != 202:
                answer = f"{response.status}: {content[:300]!r}"
                raise ProgramFailed(f"POST {BATCH_PATH} was answered {answer}")


def _one_by_one(bench: Bench, flights: Sequence[bytes]) -> Iterator[Figure]:
    script = bench.posting_script(flights)
    disks = {"on this disk": (at_least(3), list[str]())}
    slow = slowed(SYNC_MS)
    if (reason := obstacle(slow)) is None:
        name = f"with {SYNC_MS} ms added to each sync by strace"
        disks[name] = at_least(6), slow
    else:
        say(f"no slower disk is tried: {reason}")
    with ExitStack() as stack:
        services = [
            stack.enter_context(running(bench.empty_folder(), bench.log, prefix=prefix))
            for _, prefix in disks.values()
        ]
        for service in services:
            bench.load(service, script, CLIENTS)  # not counted: it starts every thread
        loads = bench.in_turns(
            f"posting one by one, 1 client and {CLIENTS} in turns, {' and '.join(disks)}",
            *((service, script, clients) for service in services for clients in (1, CLIENTS)),
        )
    pairs = zip(disks.items(), loads[::2], loads[1::2], strict=True)
    for (name, (least, _)), alone, together in pairs:
        what = f"posts per second of {CLIENTS} clients / of one, {name}"
        yield rate_ratio(9, what, together, alone, least)


def slowed(sync_ms: int, strace: str = "strace") -> list[str]:
    """Return a prefix for a command that makes its syncs so much longer; it keeps the process id.

    On a disk that syncs in a fraction of a millisecond, the processor decides how fast flights are
    accepted. The disk of a Pi takes 5 to 20 ms, and then sharing syncs decides. strace halts a
    process only at its syncs (--seccomp-bpf), so that everything else runs at full speed. The
    delays of several processes pass at the same time; a real disk may make them queue.
    """
    syncs = "fdatasync,fsync"
    return [
        *(strace, "--daemonize", "--follow-forks", "--seccomp-bpf", "--quiet=all"),
        *(f"--trace={syncs}", f"--inject={syncs}:delay_exit={1000 * sync_ms}"),
        *("--output=/dev/null", "--"),
    ]


def obstacle(prefix: Sequence[str]) -> str | None:
    """Return why commands cannot be run with `prefix` here; None if they can."""
    if shutil.which(prefix[0]) is None:
        return f"{prefix[0]} is missing; on Debian: sudo apt install strace"
    tried = subprocess.run(  # noqa: S603  our own command
        [*prefix, "true"], capture_output=True, text=True, check=False
    )
    return None if tried.returncode == 0 else f"{prefix[0]} does not work: {tried.stderr.strip()}"


# --- a cluster -----------------------------------------------------------------------------------

CLUSTER = 16  # the row
NODES = 4
INTERVAL_S = 1.0
CAUGHT_UP_WITHIN_S = 1800.0
LOOK_EVERY_S = 0.2


def clusters(bench: Bench) -> Iterator[Figure]:
    """Measure a cluster: posts, batches, a new node, memory; nothing where there is no CometBFT."""
    if (reason := missing()) is not None:
        say(f"no cluster is measured: {reason}")
        return
    say("writing the month as batches")
    with bench.service(bench.month()) as service:
        singles = bodies_of_block(service, 1)
        batches = list(_written(bench, service))
    base, folder = bench.empty_folder(), bench.empty_folder() / "cluster"
    backend(base, "import", "--generate", "1", log=bench.log)
    with running_cluster(folder, bench.log, base, nodes=NODES, interval_s=INTERVAL_S) as cluster:
        sleep(INTERVAL_S)
        sizes = [Path(f"/proc/{pid}/statm").read_text("utf-8") for pid in cluster.engines()]
        engines_mb = [int(text.split()[1]) * getpagesize() / 1e6 for text in sizes]
        largest_mb = max(engines_mb)
        what = (
            "memory of an idle node besides the service: its consensus engine (resident set size)"
        )
        shown = f"{largest_mb:.1f} MB"
        yield Figure.judged(CLUSTER, what, largest_mb, at_most(130), measured=shown, unit=" MB")
        yield from _posted_to(bench, cluster, singles)
        yield from _batched_to(cluster, batches)
        yield _new_node(bench, cluster, folder)


def _written(bench: Bench, service: Service) -> Iterator[Path]:
    """Write the month as files, each a batch of JSON lines, and yield their paths."""
    height: int = service.get("/tip")["height"]
    folder = bench.empty_folder()
    for first in range(1, height + 1, BATCH_BLOCKS):
        heights = range(first, min(first + BATCH_BLOCKS, height + 1))
        path = folder / f"{first}.jsonl"
        path.write_bytes(_batch(bodies_of_block(service, at) for at in heights))
        yield path


def _posted_to(bench: Bench, cluster: Cluster, flights: Sequence[bytes]) -> Iterator[Figure]:
    script = bench.posting_script(flights)
    durable, mined = [], []
    for _ in range(bench.plan.rounds):
        say(f"posting to a cluster one by one, {CLIENTS} clients")
        start_s = perf_counter()
        load = bench.load(cluster.service, script, CLIENTS)
        if load.failed:
            raise ProgramFailed(f"{load.failed} of {load.requests} posts to a cluster failed")
        cluster.wait_until_mined()
        durable.append(load.requests_per_s)
        mined.append(load.requests / (perf_counter() - start_s))
    what = f"posts per second of {CLIENTS} clients to a cluster of {NODES}"
    yield from _rates(what, durable, mined, at_least(500))


def _batched_to(cluster: Cluster, batches: Sequence[Path]) -> Iterator[Figure]:
    say(f"posting the month in batches, {NODES} clients, each to a node of its own")
    held: int = cluster.service.get("/tip")["transactions"]
    start_s = perf_counter()
    with ThreadPoolExecutor(NODES) as pool:
        shares = [map(Path.read_bytes, batches[node::NODES]) for node in range(NODES)]
        list(pool.map(_send, map(Site, cluster.urls), shares, repeat(CAUGHT_UP_WITHIN_S)))
    durable_s = perf_counter() - start_s
    cluster.wait_until_mined(CAUGHT_UP_WITHIN_S)
    mined_s = perf_counter() - start_s
    flights = cluster.service.get("/tip")["transactions"] - held
    what = f"flights per second in batches of {1000 * BATCH_BLOCKS:,} to a cluster of {NODES}"
    durable, mined = [flights / durable_s], [flights / mined_s]
    yield from _rates(what, durable, mined, at_least(5_000))


def _rates(
    what: str, durable: Sequence[float], mined: Sequence[float], least: Target
) -> Iterator[Figure]:
    for how, per_s, target in (
        ("durable", durable, least),
        ("until all are mined by all", mined, None),
    ):
        yield Figure.judged(CLUSTER, f"{what}, {how}", per_s, target)


def _new_node(bench: Bench, cluster: Cluster, folder: Path) -> Figure:
    say("adding a node, which fetches everything")
    wanted = cluster.service.get("/tip")
    start_s = perf_counter()
    backend(bench.scratch, "cluster", "add", "--folder", str(folder), log=bench.log)
    site = Site(urls_of_nodes(folder)[-1])
    wait_for(
        lambda: _hash(site) == wanted["hash"],
        CAUGHT_UP_WITHIN_S,
        f"the new node did not catch up within {CAUGHT_UP_WITHIN_S:g} s",
        LOOK_EVERY_S,
    )
    took_s = perf_counter() - start_s
    what = f"a new node starts and fetches {wanted['transactions']:,} flights"
    shown = f"{took_s:.0f} s"
    return Figure.judged(CLUSTER, what, took_s, at_most(300), unit=" s", measured=shown)


def _hash(site: Site) -> str:
    """Return the hash of a node's newest block; "" if the node does not answer."""
    try:
        return str(site.get("/tip")["hash"])
    except (OSError, ProgramFailed):
        return ""
