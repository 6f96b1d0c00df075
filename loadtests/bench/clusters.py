"""What a cluster of four nodes does on this machine (row 16): posts, batches, a new node, memory.

The nodes share the processors with the generator and with each other. Single flights are posted to
node 0 by eight clients, each answered when it is on that node's disk. Then four clients send the
month in batches, each to a node of its own. A rate until all is mined counts from the first post
until every node has mined everything. Finally a node is added, which begins where the cluster
began, and fetches the month.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from time import perf_counter, sleep
from urllib.parse import urlsplit

from loadtests import wrk
from loadtests.bench.figures import Figure, short, spread_of
from loadtests.bench.posting import BATCH_BLOCKS, CLIENTS, bodies_of_block, post_batch
from loadtests.bench.session import Bench, load_now
from loadtests.processes import HOST, ProgramFailed, Service, Site, backend, resident_bytes
from loadtests.servers.cluster import Cluster, missing, running_cluster, urls_of_nodes

ROW = 16
NODES = 4
INTERVAL_S = 1.0
LEAST_POSTS_PER_S = 500
LEAST_BATCHED_PER_S = 5_000
MOST_CATCHING_UP_S = 300.0
MOST_ENGINE_BYTES = 130_000_000
CAUGHT_UP_WITHIN_S = 1800.0
LOOK_EVERY_S = 0.2


def clusters(bench: Bench) -> Iterator[Figure]:
    """Measure a cluster; nothing where there is no CometBFT."""
    if (reason := missing()) is not None:
        bench.say(f"no cluster is measured: {reason}")
        return
    service = bench.month_service()
    bench.say("writing the month as batches")
    singles = bodies_of_block(service, 1)
    batches = list(_batches(bench, service))
    bench.close()
    base, folder = bench.empty_folder(), bench.empty_folder() / "cluster"
    backend(base, "import", "--generate", "1", log=bench.log)
    with running_cluster(folder, bench.log, base, nodes=NODES, interval_s=INTERVAL_S) as cluster:
        yield _idle(cluster)
        yield from _posts(bench, cluster, singles)
        yield from _in_batches(bench, cluster, batches)
        yield _new_node(bench, cluster, folder)


def _batches(bench: Bench, service: Service) -> Iterator[Path]:
    """The month as files, each a batch of JSON lines."""
    height: int = service.get("/tip")["height"]
    folder = bench.empty_folder()
    for number, first in enumerate(range(1, height + 1, BATCH_BLOCKS)):
        blocks = range(first, min(first + BATCH_BLOCKS, height + 1))
        path = folder / f"{number}.jsonl"
        path.write_bytes(
            b"\n".join(flight for at in blocks for flight in bodies_of_block(service, at))
        )
        yield path


def _idle(cluster: Cluster) -> Figure:
    sleep(INTERVAL_S)
    found = [resident_bytes(pid) for pid in cluster.engines()]
    largest = max(found)
    return Figure(
        ROW,
        "memory of an idle node besides the service: its consensus engine (resident set size)",
        f"{largest / 1e6:.1f} MB",
        f"at most {MOST_ENGINE_BYTES // 10**6} MB",
        largest <= MOST_ENGINE_BYTES,
        raw={"engines_mb": [one / 1e6 for one in found], **load_now()},
    )


def _posts(bench: Bench, cluster: Cluster, flights: Sequence[bytes]) -> Iterator[Figure]:
    script = wrk.write_posting_script(bench.scratch / "cluster.lua", "/transactions", flights)
    acknowledged, mined = [], []
    for _ in range(bench.plan.rounds):
        bench.say(f"posting to a cluster one by one, {CLIENTS} clients")
        start_s = perf_counter()
        load = bench.load(cluster.service, script, CLIENTS)
        if load.failed:
            raise ProgramFailed(f"{load.failed} of {load.requests} posts to a cluster failed")
        cluster.wait_until_mined()
        acknowledged.append(load.requests_per_s)
        mined.append(load.requests / (perf_counter() - start_s))
    what = f"posts per second of {CLIENTS} clients to a cluster of {NODES}"
    yield _rate(f"{what}, durable", acknowledged, LEAST_POSTS_PER_S)
    yield _rate(f"{what}, until all are mined by all", mined, None)


def _in_batches(bench: Bench, cluster: Cluster, batches: Sequence[Path]) -> Iterator[Figure]:
    bench.say(f"posting the month in batches, {NODES} clients, each to a node of its own")
    held: int = cluster.service.get("/tip")["transactions"]
    start_s = perf_counter()
    with ThreadPoolExecutor(NODES) as pool:
        sending = [pool.submit(_send, url, batches[i::NODES]) for i, url in enumerate(cluster.urls)]
        for one in sending:
            one.result()
    acknowledged_s = perf_counter() - start_s
    cluster.wait_until_mined(CAUGHT_UP_WITHIN_S)
    mined_s = perf_counter() - start_s
    flights = cluster.service.get("/tip")["transactions"] - held
    what = f"flights per second in batches of {1000 * BATCH_BLOCKS:,} to a cluster of {NODES}"
    yield _rate(f"{what}, durable", [flights / acknowledged_s], LEAST_BATCHED_PER_S)
    yield _rate(f"{what}, until all are mined by all", [flights / mined_s], None)


def _send(url: str, batches: Sequence[Path]) -> None:
    made = HTTPConnection(HOST, urlsplit(url).port, timeout=CAUGHT_UP_WITHIN_S)
    with closing(made) as connection:
        for path in batches:
            post_batch(connection, path.read_bytes(), CAUGHT_UP_WITHIN_S)


def _rate(what: str, rates: Sequence[float], least: int | None) -> Figure:
    spread = spread_of(rates)
    return Figure(
        ROW,
        what,
        str(spread) if len(rates) > 1 else short(spread.median),
        "" if least is None else f"at least {least:,}",
        None if least is None else spread.median >= least,
        spread.is_noisy,
        raw={"per_s": list(rates), **load_now()},
    )


def _new_node(bench: Bench, cluster: Cluster, folder: Path) -> Figure:
    bench.say("adding a node, which fetches everything")
    wanted = cluster.service.get("/tip")
    start_s = perf_counter()
    backend(bench.scratch, "cluster", "add", "--folder", str(folder), log=bench.log)
    site = Site(urls_of_nodes(folder)[-1])
    while _hash(site) != wanted["hash"]:
        if perf_counter() - start_s > CAUGHT_UP_WITHIN_S:
            raise ProgramFailed(f"the new node did not catch up within {CAUGHT_UP_WITHIN_S:g} s")
        sleep(LOOK_EVERY_S)
    took_s = perf_counter() - start_s
    return Figure(
        ROW,
        f"a new node starts and fetches {wanted['transactions']:,} flights",
        f"{took_s:.0f} s",
        f"at most {MOST_CATCHING_UP_S:.0f} s",
        took_s <= MOST_CATCHING_UP_S,
        raw={"took_s": took_s, "blocks": wanted["height"], **load_now()},
    )


def _hash(site: Site) -> str:
    """The hash of a node's newest block; "" if the node does not answer."""
    try:
        return str(site.get("/tip")["hash"])
    except (OSError, ProgramFailed):
        return ""
