"""Measures a single node and a cluster in turns, with the same ledger and the same load.

Tables beside the raw rows: `posts.csv`, a line for each run of posts; `plan.csv`, a line for each
run of itineraries, as the experiment `itinerary` writes it; `commits.csv`, a line for each commit.
"""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import product
from operator import sub
from random import Random
from statistics import fmean
from time import sleep, time

from loadtests.experiments.itinerary import PLAN, RunLine, travel
from loadtests.generation.bulk import MODES, Bulk, bulk_run
from loadtests.generation.rows import Row, closed_index
from loadtests.generation.rules import Facts
from loadtests.generation.run import Generator, RunRecord, judge_run
from loadtests.lab.experiment import Run
from loadtests.lab.ledgers import Material, fresh_service, prepared
from loadtests.lab.posts import MINED, PostsLine
from loadtests.lab.results import Line, TableWriter
from loadtests.machine import moment
from loadtests.processes import ProgramFailed, exchanged
from loadtests.scenarios import sent_form
from loadtests.servers.cluster_server import Cluster, alone, missing, running_cluster

NODES = 4
ONE, CLUSTER = "one-node", f"{NODES}-nodes"
SERVERS = (ONE, CLUSTER)
POSTS, COMMITS = "posts", "commits"
BLOCKS = 10
NEW_FLIGHTS = 3000
BEFORE_DUE = (0.3, 0.5)  # when commits are posted, in times between blocks before the next is due
LOOK_EVERY_S = 0.01
COMMIT_WITHIN_S = 100.0  # the service itself answers after 70 s at the latest


@dataclass(frozen=True, slots=True)
class LoadLine(PostsLine):
    """Describes a run of posts."""

    server: str
    mined_s: float  # from its first request until all nodes had mined it all
    engine_cpu_s: float  # of the consensus engines until then
    rest_cpu_s: float  # of the services
    client_cpu: float  # how busy the program was that posts, in cores


@dataclass(frozen=True, slots=True)
class CommitLine(Line):
    """Describes a commit."""

    run: str
    server: str
    interval_s: float  # between blocks
    status: int
    response_s: float
    beyond_s: float  # from when the block was due on


@dataclass(frozen=True, slots=True)
class Sizes:
    """Says how much is measured."""

    repeats: int
    threads: tuple[int, ...]  # of posts
    posts_s: float
    iterations: int  # of itineraries
    intervals_s: tuple[float, ...]  # between blocks
    commits: int  # at each of these


_TABLES = {POSTS: LoadLine, PLAN: RunLine, COMMITS: CommitLine}
FULL = Sizes(3, (1, 8, 100), 6.0, 400, (0.5, 1.0, 2.0, 4.0), 10)
QUICK = Sizes(1, (8,), 2.0, 80, (0.5,), 8)


def measure(run: Run) -> None:
    """Measure everything, the single node and the cluster in turns.

    Raises ProgramFailed, and before anything is measured if CometBFT is missing.
    """
    if (reason := missing()) is not None:
        raise ProgramFailed(reason)
    sizes = run.choose(QUICK, FULL)
    material = prepared(run, (BLOCKS,), NEW_FLIGHTS)
    with ExitStack() as stack:
        tables = {
            name: stack.enter_context(run.results.table(name, kind))
            for name, kind in _TABLES.items()
        }
        measuring = _Measuring(run, sizes, material, tables)
        for repeat in range(1, (run.options.reps or sizes.repeats) + 1):
            for interval_s, server in product(sizes.intervals_s, SERVERS):
                measuring.on_a_fresh_ledger(server, interval_s, repeat)


@dataclass(frozen=True, slots=True)
class _Measuring:
    """Measures servers, each on a ledger of its own."""

    run: Run
    sizes: Sizes
    material: Material
    tables: Mapping[str, TableWriter]

    def on_a_fresh_ledger(self, server: str, interval_s: float, repeat: int) -> None:
        """Measure commits, and with the shortest time between blocks everything else besides."""
        with self._running(server, interval_s, f"{server}-{interval_s:g}-{repeat}") as cluster:
            self._commits(cluster, server, interval_s, repeat)
            if interval_s > min(self.sizes.intervals_s):
                return
            size = self.sizes.iterations, BLOCKS
            line = RunLine(f"itinerary-{server}-{repeat}", server, 1, 0.0, 0.0, *size)
            travel(self.run, self.tables[PLAN], self.material, line, cluster.service)
            cluster.wait_until_mined()
            for mode, threads in product(MODES, self.sizes.threads):
                self._posts(cluster, server, Bulk(mode, threads), repeat)

    @contextmanager
    def _running(self, server: str, interval_s: float, name: str) -> Iterator[Cluster]:
        """Start a server that begins with the same ledger, of which it has a copy."""
        run, chain = self.run, self.material.chains[BLOCKS]
        assert chain is not None
        if server == ONE:
            with fresh_service(run, chain, name, {"mine_interval_s": interval_s}) as service:
                yield alone(service)
        else:
            folder = run.scratch / name
            with running_cluster(
                folder, run.log, chain.folder, nodes=NODES, interval_s=interval_s
            ) as cluster:
                yield cluster
            shutil.rmtree(folder)

    def _posts(self, cluster: Cluster, server: str, bulk: Bulk, repeat: int) -> None:
        name = f"{bulk.mode}-{bulk.threads}-{server}-{repeat}"
        before, mined_unix_s = cluster.cpu_s(), []

        def wait() -> None:
            cluster.wait_until_mined()
            mined_unix_s.append(time())

        generator = Generator(self.run.results.folder, self.run.options.seed, self.run.say)
        record, until_s = bulk_run(
            generator, cluster.service, bulk, name, duration_s=self.sizes.posts_s, then=wait
        )
        load = name, bulk.mode, bulk.threads, until_s, server
        mined_s = mined_unix_s[0] - record.begun_unix_s
        engine_s, rest_s = map(sub, cluster.cpu_s(), before)
        client_cpu = fmean(sample.client_cpu for sample in record.samples)
        self.tables[POSTS].add(LoadLine(*load, mined_s, engine_s, rest_s, client_cpu))

    def _commits(self, cluster: Cluster, server: str, interval_s: float, repeat: int) -> None:
        """Post flights in mode commit, each at a random moment while no block is due soon."""
        name = f"{COMMITS}-{interval_s:g}-{server}-{repeat}"
        self.run.say(f"{name}: {self.sizes.commits} commits")
        chance, rows = self.run.random(name), list[Row]()
        begun_unix_s, before = time(), moment(cluster.service.pid)
        for number, new in enumerate(self.material.new[-self.sizes.commits :]):  # others are legs
            due_s, sent_s = _wait_for_a_moment(cluster, interval_s, chance), time()
            status, done_s = _commit(cluster, sent_form(new)), time()
            begun_s = sent_s - begun_unix_s
            times_s = begun_s, begun_s, None, done_s - begun_unix_s, None
            rows.append(Row(name, closed_index(0, number), "commit", *times_s, status, ""))
            line = CommitLine(name, server, interval_s, status, done_s - sent_s, done_s - due_s)
            self.tables[COMMITS].add(line)
        used = before.until(moment(cluster.service.pid))
        failed = sum(row.status != MINED for row in rows)
        facts = Facts(len(rows), failed, foreign_cpu=used.foreign_cores)
        record = RunRecord(name, "commit", tuple(rows), (), None, begun_unix_s)
        judge_run(self.run.results.folder, record, facts)


def _wait_for_a_moment(cluster: Cluster, interval_s: float, chance: Random) -> float:
    """Wait for a random moment between two blocks. Returns the Unix time when the next is due."""
    while True:
        due_s: float = (cluster.service.get("/tip")["next_block_at"] or 0) / 1000
        if (left_s := due_s - time()) > BEFORE_DUE[1] * interval_s:
            break
        sleep(LOOK_EVERY_S)
    sleep(left_s - chance.uniform(*BEFORE_DUE) * interval_s)
    return due_s


def _commit(cluster: Cluster, flight: str) -> int:
    """Post a flight, and wait until it is mined. Returns the status of the answer."""
    with cluster.service.connection(COMMIT_WITHIN_S) as connection:
        kind = {"Content-Type": "application/json"}
        response, _ = exchanged(connection, "/transactions?mode=commit", flight, kind)
    return response.status
