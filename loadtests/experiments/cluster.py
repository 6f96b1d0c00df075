"""Measures and reports what consensus costs, and gives: four nodes that keep one ledger beside one.

A single node and a cluster are measured in turns, with the same ledger and the same load.

Tables beside the raw rows: `posts.csv`, a line for each run of posts; `plan.csv`, a line for each
run of itineraries, as the experiment `itinerary` writes it; `commits.csv`, a line for each commit.
"""

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from operator import attrgetter, sub
from random import Random
from statistics import fmean
from time import monotonic, sleep, time
from typing import Any

from loadtests.experiments.bulk_post import (
    BUSY_CLIENT,
    MINED,
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
from loadtests.generation.rows import Row, closed_index
from loadtests.generation.rules import Facts
from loadtests.generation.run import judge_run, keep
from loadtests.grouping import grouped
from loadtests.lab.content import Figure, Metric, Report, Section, Table, times
from loadtests.lab.experiment import Experiment, Run
from loadtests.lab.ledgers import Material, fresh_service, prepared
from loadtests.lab.repeated import Repeated, accepted_by_run, lines
from loadtests.lab.report.drawing import Axis, Source, figure
from loadtests.lab.results import Line, NothingCounts, Results, TableWriter
from loadtests.lab.sentences import Sentences
from loadtests.machine_samples import Sampler
from loadtests.models.estimates import Interval
from loadtests.models.sample_statistics import mean_of_known
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
        tables: dict[str, TableWriter[Any]] = {
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
    tables: Mapping[str, TableWriter[Any]]

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

    def _commits(self, cluster: Cluster, server: str, interval_s: float, repeat: int) -> None:
        """Post flights in mode commit, each at a random moment while no block is due soon."""
        name = f"{COMMITS}-{interval_s:g}-{server}-{repeat}"
        self.run.say(f"{name}: {self.sizes.commits} commits")
        chance, rows = self.run.random(name), list[Row]()
        sampler = Sampler(None, cluster.service.pid)
        for number, new in enumerate(self.material.new[-self.sizes.commits :]):  # others are legs
            due_s, sent_s = _wait_for_a_moment(cluster, interval_s, chance), time()
            status, done_s = _commit(cluster, sent_form(new)), time()
            times_s = sent_s, sent_s, None, done_s, None
            rows.append(Row(name, closed_index(0, number), "commit", *times_s, status, ""))
            line = CommitLine(name, server, interval_s, status, done_s - sent_s, done_s - due_s)
            self.tables[COMMITS].add(line)
        failed = sum(row.status != MINED for row in rows)
        facts = Facts(len(rows), failed, foreign_cpu=sampler.sample().foreign_cpu)
        folder = self.run.results.folder
        judge_run(folder, keep(folder, name, "commit", rows, ()), facts)


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


# --- what was measured ---------------------------------------------------------------------------

NAMES = {ONE: "one node", CLUSTER: f"{NODES} nodes"}
_SOURCES: dict[str, Source] = {NAMES[ONE]: "ours", NAMES[CLUSTER]: "second"}


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


@dataclass(frozen=True)
class Committed(Repeated[Sequence[CommitLine]]):
    """Holds the mined commits of each run of a server with a time between blocks."""

    @property
    def first(self) -> CommitLine:
        """Return a line of its first run, which has server and time between blocks."""
        return self.runs[0][0]

    def mean(self, value: Callable[[CommitLine], float]) -> Interval:
        return self.over(lambda run: fmean(map(value, run)))

    @cached_property
    def beyond_s(self) -> Interval:
        """Estimate the time (s) from when a block is due until a commit in it is answered."""
        return self.mean(lambda line: line.beyond_s)


def committed(results: Results) -> list[Committed]:
    """Return what was measured of commits, without runs of which nothing was mined."""
    judged = accepted_by_run(results)
    lines = results.lines(COMMITS, CommitLine)
    mined = [line for line in lines if line.status == MINED and judged.get(line.run)]
    runs = grouped(mined, lambda line: line.run).values()
    return Committed.of_each(runs, lambda run: (run[0].server, run[0].interval_s))


# --- report -----------------------------------------------------------------------------------


def analyse(results: Results) -> Report:
    """Report posts, transactions and commits. Raises NothingCounts if there are no posts."""
    (loads, unfinished), commits = posted(results), committed(results)
    runs, sentences = itinerary_runs(results), Sentences("cluster")
    if not loads:
        raise NothingCounts(f"{results.folder} has no run that counts in which all threads posted")
    travelled = {NAMES[server]: made for server in NAMES for made in itineraries_of(runs, server)}
    facts = _facts(loads, commits, [*travelled.values()])
    phases, commit_times = phases_table(travelled), _commits_figure(commits)
    sections = [
        Section("Posts", sentences("posts", busy=BUSY_CLIENT), [_posts_table(loads)]),
        Section("Transactions of nine requests", sentences("transactions"), [phases]),
        Section("Commits and the time between blocks", sentences("commits"), [commit_times]),
    ]
    return Report(
        [*unfinished, *sentences("findings", **facts)],
        sections,
        list(_metrics(loads, commits)),
        conclusion=sentences.paragraph("conclusion", costs=sentences("costs", **facts), **facts),
    )


def _facts(
    loads: Sequence[Load], commits: Sequence[Committed], travelled: Sequence[Itineraries]
) -> dict[str, Any]:
    both = [made for made in travelled if made.transaction.is_finding]
    both = both if len(both) == len(NAMES) else []
    most = max(  # mined by a cluster, so that idling counts least in shares of its time
        (load for load in loads if load.line.server == CLUSTER),
        key=lambda load: load.mined_per_s.estimate,
        default=None,
    )
    known = [commit for commit in commits if commit.beyond_s.is_finding]
    at = {(c.first.server, c.first.interval_s): c.beyond_s.estimate for c in known}
    shortest_s = min((interval_s for server, interval_s in at if server == CLUSTER), default=0.0)
    is_known = (ONE, shortest_s) in at
    return {
        "cluster": CLUSTER,
        "name": NAMES[CLUSTER],
        "loads": loads,
        "commits": grouped(known, lambda commit: NAMES[commit.first.server]),
        "both": both,
        "ratio": both[1].transaction.estimate / both[0].transaction.estimate if both else None,
        "later_s": at[CLUSTER, shortest_s] - at[ONE, shortest_s] if is_known else None,
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


def _commits_figure(commits: Sequence[Committed]) -> Figure:
    table = Table.from_items(
        "Commits",
        commits,
        [
            ("Server", lambda commit: NAMES[commit.first.server]),
            ("Time between blocks / s", lambda commit: commit.first.interval_s),
            ("Mean commit / s", lambda commit: commit.mean(lambda line: line.response_s)),
            ("After it is due / ms", lambda commit: commit.beyond_s.times(1000)),
            ("Runs", lambda commit: len(commit.runs)),
        ],
    )
    by_server = grouped(commits, lambda commit: NAMES[commit.first.server])
    series = lines(by_server, _SOURCES, lambda p: p.first.interval_s, lambda p: p.beyond_s, 1000)
    return figure(
        "The time of a commit",
        "How long after its block is due a commit is answered, at one node and at four.",
        Axis("time between blocks / s"),
        Axis("after the block is due / ms"),
        series,
        table,
    )


def _metrics(loads: Sequence[Load], commits: Sequence[Committed]) -> Iterator[Metric]:
    for load in loads:
        name = f"[{load.line.server},{load.line.mode},{load.line.threads}]"
        yield Metric.of_amount(f"acknowledged{name}", load.kept_per_s, "1/s")
        yield Metric.of_amount(f"mined{name}", load.mined_per_s, "1/s")
    for commit in commits:
        name = f"commit_after_due[{commit.first.server},{commit.first.interval_s:g}]"
        yield Metric.of_amount(name, commit.beyond_s, "s")


EXPERIMENT = Experiment.described("cluster", "002", measure, analyse)
