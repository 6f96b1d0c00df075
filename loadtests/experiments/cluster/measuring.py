"""Measures a single node and a cluster in turns, with the same ledger and the same load.

Tables beside the raw rows: `posts.csv`, a line for each run of posts; `plan.csv`, a line for each
run of itineraries, as the experiment `itinerary` writes it; `reads.csv`, a line for each round of
questions.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from time import monotonic

from loadtests.chains import Chain
from loadtests.experiments.cluster.reading import (
    CLUSTER,
    COMMITS,
    NODES,
    ONE,
    POSTS,
    READS,
    SERVERS,
    PostsLine,
    ReadsLine,
)
from loadtests.experiments.itinerary.measuring import travelled
from loadtests.experiments.itinerary.reading import PLAN, RunLine
from loadtests.generation.bulk import MODES, Bulk, bulk_run
from loadtests.generation.rules import judge
from loadtests.generation.run import append_verdict
from loadtests.lab.experiment import Run
from loadtests.lab.ledgers import Material, fresh_service, prepared
from loadtests.lab.results import TableWriter
from loadtests.questions import KINDS
from loadtests.scenarios import DURABLE, MINED
from loadtests.servers.cluster import Cluster, alone, running_cluster
from loadtests.wrk import CONNECTIONS, load, write_script

BLOCKS = 10
INTERVAL_S = 0.5
NEW_FLIGHTS = 3000
QUESTIONS = 300
ASKED_AT_ONCE = (1, 2, 4)  # nodes


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is measured. threads: of posts. rounds: of questions.

    durable, mined: iterations of itineraries with these ways to commit; the first take
    milliseconds, the others wait for blocks. intervals_s: between blocks. commits: intervals in a
    run of commits.
    """

    repeats: int
    threads: tuple[int, ...]
    posts_s: float
    durable: int
    mined: int
    intervals_s: tuple[float, ...]
    commits: int
    rounds: int
    round_s: int


FULL = Sizes(3, (1, 8, 100), 6.0, 400, 40, (0.5, 1.0, 2.0, 4.0), 10, 3, 4)
QUICK = Sizes(1, (8,), 2.0, 80, 8, (0.5,), 8, 1, 1)


def measure(run: Run) -> None:
    """Measure everything, the single node and the cluster in turns. Raises ProgramFailed."""
    sizes = QUICK if run.options.quick else FULL
    if run.options.reps:
        sizes = replace(sizes, repeats=run.options.reps)
    material, results = prepared(run, (BLOCKS,), NEW_FLIGHTS), run.results
    chain = material.chains[BLOCKS]
    assert chain is not None
    with (
        results.table(POSTS, PostsLine.__slots__) as posts,
        results.table(PLAN, RunLine.__slots__) as plan,
        results.table(READS, ReadsLine.__slots__) as reads,
    ):
        measuring = _Measuring(run, sizes, material, chain, posts, plan, reads)
        for repeat in range(1, sizes.repeats + 1):
            for server in SERVERS:
                measuring.load(server, repeat)
            for interval_s in sizes.intervals_s:
                for server in SERVERS:
                    measuring.commits(server, interval_s, repeat)


@dataclass(frozen=True, slots=True)
class _Measuring:
    run: Run
    sizes: Sizes
    material: Material
    chain: Chain
    posts: TableWriter
    plan: TableWriter
    reads: TableWriter

    def load(self, server: str, repeat: int) -> None:
        """Ask questions, make itineraries and post, on one fresh ledger."""
        with self._running(server, INTERVAL_S, f"{server}-{repeat}") as cluster:
            if server == CLUSTER:
                self._questions(cluster, repeat)
            for commit in (DURABLE, MINED):
                self._itineraries(cluster, server, commit, repeat)
                cluster.wait_until_mined()
            for mode in MODES:
                for threads in self.sizes.threads:
                    line = PostsLine(
                        f"{mode}-{threads}-{server}-{repeat}",
                        POSTS,
                        server,
                        mode,
                        threads,
                        INTERVAL_S,
                    )
                    self._posts(cluster, line, self.sizes.posts_s)

    def commits(self, server: str, interval_s: float, repeat: int) -> None:
        """Let one client post flights, each as soon as the one before is mined."""
        name = f"{COMMITS}-{interval_s:g}-{server}-{repeat}"
        with self._running(server, interval_s, name) as cluster:
            line = PostsLine(name, COMMITS, server, "commit", 1, interval_s)
            self._posts(cluster, line, self.sizes.commits * interval_s)

    @contextmanager
    def _running(self, server: str, interval_s: float, name: str) -> Iterator[Cluster]:
        """A server that begins with the same ledger, of which it has a copy."""
        run = self.run
        if server == ONE:
            settings = {"mine_interval_s": interval_s}
            with fresh_service(run, self.chain, name, settings) as service:
                yield alone(service)
        else:
            folder, chain = run.scratch / name, self.chain.folder
            with running_cluster(
                folder, run.log, chain, nodes=NODES, interval_s=interval_s
            ) as cluster:
                yield cluster

    def _posts(self, cluster: Cluster, line: PostsLine, duration_s: float) -> None:
        before = cluster.cpu_s()
        record, until_s = bulk_run(
            cluster.service,
            Bulk(line.mode, line.threads),
            run=line.run,
            folder=self.run.results.folder,
            seed=self.run.options.seed,
            duration_s=duration_s,
            say=self.run.say,
        )
        ended_s = monotonic()
        cluster.wait_until_mined()
        last_s = max(row.done_s for row in record.rows)
        engine_s, rest_s = (now - then for now, then in zip(cluster.cpu_s(), before, strict=True))
        done = replace(
            line,
            until_s=until_s,
            mined_s=last_s + monotonic() - ended_s,
            engine_cpu_s=engine_s,
            rest_cpu_s=rest_s,
        )
        self.posts.write(**done.cells())
        # How busy the program is that posts is reported, and no reason to reject.
        verdict = judge(replace(record.facts(), client_cpu=None))
        append_verdict(self.run.results.folder, record, verdict)

    def _itineraries(self, cluster: Cluster, server: str, commit: str, repeat: int) -> None:
        count = self.sizes.durable if commit == DURABLE else self.sizes.mined
        line = RunLine(f"{commit}-{server}-{repeat}", server, commit, 1, 0.0, 0.0, count, BLOCKS)
        travelled(self.run, self.plan, self.material, line, cluster.service)

    def _questions(self, cluster: Cluster, repeat: int) -> None:
        """Ask one, two and four nodes at once, with as many connections in all."""
        asked = self.material.questions
        paths = [question.path for kind in KINDS for question in asked[kind][:QUESTIONS]]
        script = write_script(self.run.scratch / "questions.lua", paths)
        for turn in range(1, self.sizes.rounds + 1):
            for nodes in ASKED_AT_ONCE:
                self.run.say(f"{nodes} nodes are asked at once, {turn} of {self.sizes.rounds}")
                with ThreadPoolExecutor(nodes) as pool:
                    making = [
                        pool.submit(load, url, script, self.sizes.round_s, CONNECTIONS // nodes)
                        for url in cluster.urls[:nodes]
                    ]
                    loads = [one.result() for one in making]
                line = ReadsLine(
                    repeat,
                    turn,
                    nodes,
                    sum(one.requests_per_s for one in loads),
                    sum(one.failed for one in loads),
                )
                self.reads.write(**line.cells())
