"""Measures and reports what consensus costs, and gives: four nodes that keep one ledger beside one.

A single node and a cluster are measured in turns, with the same ledger and the same load.

Tables beside the raw rows: `posts.csv`, a line for each run of posts; `plan.csv`, a line for each
run of itineraries, as the experiment `itinerary` writes it.
"""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from operator import attrgetter, sub
from statistics import fmean
from time import monotonic
from typing import Any

from loadtests.experiments.bulk_post import (
    BUSY_CLIENT,
    Posted,
    Posts,
    PostsLine,
    posts,
)
from loadtests.experiments.itinerary import (
    PLAN,
    Itineraries,
    RunLine,
    itineraries_of,
    itinerary_runs,
    phases_table,
    travel,
)
from loadtests.generation.bulk import MODES, Bulk, bulk_run
from loadtests.lab.content import Metric, Report, Section, Table, times
from loadtests.lab.experiment import Experiment, Run
from loadtests.lab.ledgers import Material, fresh_service, prepared
from loadtests.lab.results import NothingCounts, Results, TableWriter
from loadtests.lab.sentences import Sentences
from loadtests.models.estimates import Interval
from loadtests.models.sample_statistics import mean_of_known
from loadtests.processes import ProgramFailed
from loadtests.servers.cluster_server import Cluster, alone, missing, running_cluster

NODES = 4
ONE, CLUSTER = "one-node", f"{NODES}-nodes"
SERVERS = (ONE, CLUSTER)
POSTS = "posts"
BLOCKS = 10
NEW_FLIGHTS = 3000
INTERVAL_S = 0.5  # between blocks


@dataclass(frozen=True, slots=True)
class LoadLine(PostsLine):
    """Describes a run of posts."""

    server: str
    mined_s: float  # from its first request until all nodes had mined it all
    engine_cpu_s: float  # of the consensus engines until then
    rest_cpu_s: float  # of the services
    client_cpu: float  # how busy the program was that posts, in cores


@dataclass(frozen=True, slots=True)
class Sizes:
    """Says how much is measured."""

    repeats: int
    threads: tuple[int, ...]  # of posts
    posts_s: float
    iterations: int  # of itineraries


_TABLES = {POSTS: LoadLine, PLAN: RunLine}
FULL = Sizes(3, (1, 8, 100), 6.0, 400)
QUICK = Sizes(1, (8,), 2.0, 80)


def measure(run: Run) -> None:
    """Measure everything, the single node and the cluster in turns.

    Raises ProgramFailed, and before anything is measured if CometBFT is missing.
    """
    if (reason := missing()) is not None:
        raise ProgramFailed(reason)
    sizes = run.choose(QUICK, FULL)
    material = prepared(run, (BLOCKS,), NEW_FLIGHTS)
    with ExitStack() as stack:
        tables: dict[str, TableWriter[Any]] = {
            name: stack.enter_context(run.results.table(name, kind))
            for name, kind in _TABLES.items()
        }
        measuring = _Measuring(run, sizes, material, tables)
        for repeat in range(1, (run.options.reps or sizes.repeats) + 1):
            for server in SERVERS:
                measuring.on_a_fresh_ledger(server, repeat)


@dataclass(frozen=True, slots=True)
class _Measuring:
    """Measures servers, each on a ledger of its own."""

    run: Run
    sizes: Sizes
    material: Material
    tables: Mapping[str, TableWriter[Any]]

    def on_a_fresh_ledger(self, server: str, repeat: int) -> None:
        """Measure itineraries, and posts in each mode."""
        with self._running(server, f"{server}-{repeat}") as cluster:
            size = self.sizes.iterations, BLOCKS
            line = RunLine(f"itinerary-{server}-{repeat}", server, 1, 0.0, 0.0, *size)
            travel(self.run, self.tables[PLAN], self.material, line, cluster.service)
            cluster.wait_until_mined()
            for mode, threads in product(MODES, self.sizes.threads):
                self._posts(cluster, server, Bulk(mode, threads), repeat)

    @contextmanager
    def _running(self, server: str, name: str) -> Iterator[Cluster]:
        """Start a server that begins with the same ledger, of which it has a copy."""
        run, chain = self.run, self.material.chains[BLOCKS]
        assert chain is not None
        if server == ONE:
            with fresh_service(run, chain, name, {"mine_interval_s": INTERVAL_S}) as service:
                yield alone(service)
        else:
            folder = run.scratch / name
            with running_cluster(
                folder, run.log, chain.folder, nodes=NODES, interval_s=INTERVAL_S
            ) as cluster:
                yield cluster
            shutil.rmtree(folder)

    def _posts(self, cluster: Cluster, server: str, bulk: Bulk, repeat: int) -> None:
        name = f"{bulk.mode}-{bulk.threads}-{server}-{repeat}"
        before, mined_s = cluster.cpu_s(), list[float]()

        def wait() -> None:
            cluster.wait_until_mined()
            mined_s.append(monotonic())

        generator = self.run.generator()
        record = bulk_run(
            generator, cluster.service, bulk, name, duration_s=self.sizes.posts_s, then=wait
        )
        load = name, bulk.mode, bulk.threads, server
        took_s = mined_s[0] - record.begun_s
        engine_s, rest_s = map(sub, cluster.cpu_s(), before)
        client_cpu = fmean(sample.client_cpu for sample in record.samples)
        self.tables[POSTS].add(LoadLine(*load, took_s, engine_s, rest_s, client_cpu))


# --- what was measured ---------------------------------------------------------------------------

NAMES = {ONE: "one node", CLUSTER: f"{NODES} nodes"}


@dataclass(frozen=True)
class Load(Posted[LoadLine]):
    """Holds all runs of a server with a load of posts."""

    @cached_property
    def mined_per_s(self) -> Interval:
        """Estimate the rate (1/s) from the first request until all nodes had mined all flights."""
        return self.over(lambda run: _flights(run) / run.line.mined_s)

    def cpu_ms(self, *, engine: bool) -> float:
        """Return the processor time (ms) of the engines or of the services for a flight."""
        used_s = sum(run.line.engine_cpu_s if engine else run.line.rest_cpu_s for run in self.runs)
        return 1000 * used_s / sum(map(_flights, self.runs))

    @property
    def consensus_share(self) -> float:
        engine_ms, rest_ms = self.cpu_ms(engine=True), self.cpu_ms(engine=False)
        return engine_ms / (engine_ms + rest_ms)


def _flights(run: Posts[LoadLine]) -> int:
    """Return how many flights the node has acknowledged."""
    return sum(row.succeeded for row in run.rows)


def posted(results: Results) -> tuple[list[Load], list[str]]:
    """Return what was measured of posts, and a sentence about each run that has no figures."""
    runs, unfinished = posts(results, POSTS, LoadLine)
    unfinished += [
        f"Run {run.line.run} has no figures: all posts failed." for run in runs if not _flights(run)
    ]
    key = attrgetter("line.server", "line.mode", "line.threads")
    return Load.of_each(filter(_flights, runs), key), unfinished


# --- report -----------------------------------------------------------------------------------


def analyse(results: Results) -> Report:
    """Report posts and transactions. Raises NothingCounts if there are no posts."""
    loads, unfinished = posted(results)
    runs, sentences = itinerary_runs(results), Sentences("cluster")
    if not loads:
        raise NothingCounts(f"{results.folder} has no run that counts in which all threads posted")
    travelled = {NAMES[server]: made for server in NAMES for made in itineraries_of(runs, server)}
    facts, phases = _facts(loads, [*travelled.values()]), phases_table(travelled)
    sections = [
        Section("Posts", sentences("posts", busy=BUSY_CLIENT), [_posts_table(loads)]),
        Section("Transactions of nine requests", sentences("transactions"), [phases]),
    ]
    return Report(
        [*unfinished, *sentences("findings", **facts)],
        sections,
        list(_metrics(loads)),
        conclusion=sentences.paragraph("conclusion", costs=sentences("costs", **facts), **facts),
    )


def _facts(loads: Sequence[Load], travelled: Sequence[Itineraries]) -> dict[str, Any]:
    both = [made for made in travelled if made.transaction.is_finding]
    both = both if len(both) == len(NAMES) else []
    most = max(  # mined by a cluster, so that idling counts least in shares of its time
        (load for load in loads if load.line.server == CLUSTER),
        key=lambda load: load.mined_per_s.estimate,
        default=None,
    )
    return {
        "cluster": CLUSTER,
        "name": NAMES[CLUSTER],
        "loads": loads,
        "both": both,
        "ratio": both[1].transaction.estimate / both[0].transaction.estimate if both else None,
        "most": most,
    }


def _posts_table(loads: Sequence[Load]) -> Table:
    return Table.from_items(
        "Posts",
        loads,
        [
            ("Server", lambda load: NAMES[load.line.server]),
            ("Mode", lambda load: load.line.mode),
            ("Threads", lambda load: load.line.threads),
            ("Acknowledged / 1/s", lambda load: load.kept_per_s),
            ("Mined / 1/s", lambda load: load.mined_per_s),
            ("Mean answer / ms", lambda load: times(1000, mean_of_known(load.latencies_s))),
            ("Generator / cores", lambda load: fmean(run.line.client_cpu for run in load.runs)),
            ("Services / ms a flight", lambda load: load.cpu_ms(engine=False)),
            ("Consensus / ms a flight", lambda load: load.cpu_ms(engine=True) or None),
            ("Share of consensus / %", lambda load: 100 * load.consensus_share or None),
            ("Runs", lambda load: len(load.runs)),
        ],
        "Intervals are of the mean of runs (Student's t).",
    )


def _metrics(loads: Sequence[Load]) -> Iterator[Metric]:
    for load in loads:
        name = f"[{load.line.server},{load.line.mode},{load.line.threads}]"
        yield Metric.of_amount(f"acknowledged{name}", load.kept_per_s, "1/s")
        yield Metric.of_amount(f"mined{name}", load.mined_per_s, "1/s")


EXPERIMENT = Experiment.described("cluster", "002", measure, analyse)
