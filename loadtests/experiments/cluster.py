"""Compares four nodes that keep one ledger with a single one: what consensus costs, and gives.

`cluster_measurements` measures; here is the report.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from statistics import fmean
from typing import Any

from loadtests.experiments.cluster_measurements import (
    CLUSTER,
    COMMITS,
    NODES,
    ONE,
    POSTS,
    CommitLine,
    LoadLine,
    measure,
)
from loadtests.experiments.itinerary import (
    Itineraries,
    itineraries_of,
    itinerary_runs,
    phases_table,
)
from loadtests.grouping import grouped
from loadtests.lab.content import Figure, Metric, Report, Section, Table, times
from loadtests.lab.experiment import Experiment
from loadtests.lab.posts import BUSY_CLIENT, MINED, Posted, Posts, posts
from loadtests.lab.repeated import (
    Estimate,
    Repeated,
    accepted,
    accepted_by_run,
    lines,
    rejected_told,
)
from loadtests.lab.report.drawing import Axis, Source, figure
from loadtests.lab.results import Results, ResultsError
from loadtests.lab.sentences import Sentences
from loadtests.models.sample_statistics import mean_of_known

NAMES = {ONE: "one node", CLUSTER: f"{NODES} nodes"}
_SOURCES: dict[str, Source] = {NAMES[ONE]: "ours", NAMES[CLUSTER]: "second"}


@dataclass(frozen=True)
class Load(Posted[LoadLine]):
    """All runs of one server with one load of posts."""

    @cached_property
    def mined_per_s(self) -> Estimate:
        """The rate from the first request until all flights were mined by all nodes."""
        return self.over(lambda one: _flights(one) / one.line.mined_s)

    def cpu_ms(self, *, engine: bool) -> float:
        """Milliseconds of processor time a flight, of the engines or of the services."""
        used_s = sum(one.line.engine_cpu_s if engine else one.line.rest_cpu_s for one in self.runs)
        return 1000 * used_s / sum(map(_flights, self.runs))

    @property
    def consensus_share(self) -> float:
        """The engines' part of the processor time."""
        engine_ms, rest_ms = self.cpu_ms(engine=True), self.cpu_ms(engine=False)
        return engine_ms / (engine_ms + rest_ms)


def _flights(one: Posts[LoadLine]) -> int:
    """How many flights the node has acknowledged."""
    return sum(row.succeeded for row in one.rows)


def posted(results: Results) -> tuple[list[Load], list[str]]:
    """What was measured of posts, and a sentence about each run that has no figures."""
    runs, unfinished = posts(results, POSTS, LoadLine)
    unfinished += [
        f"Run {one.line.run} has no figures: all posts failed." for one in runs if not _flights(one)
    ]
    key = attrgetter("line.server", "line.mode", "line.threads")
    return Load.of_each(filter(_flights, runs), key), unfinished


@dataclass(frozen=True, slots=True)
class CommitRun:
    """A run of commits: those that were mined."""

    lines: Sequence[CommitLine]
    is_accepted: bool


@dataclass(frozen=True)
class Committed(Repeated[CommitRun]):
    """All runs of one server with one time between blocks."""

    @property
    def line(self) -> CommitLine:
        """A line of one of the runs, which has server and time between blocks."""
        return self.runs[0].lines[0]

    def mean(self, value: Callable[[CommitLine], float]) -> Estimate:
        """The mean of a value of commits over runs."""
        return self.over(lambda run: fmean(map(value, run.lines)))

    @cached_property
    def beyond_s(self) -> Estimate:
        """From when a block is due until a flight in it is known to be mined."""
        return self.mean(lambda one: one.beyond_s)


def committed(results: Results) -> list[Committed]:
    """What was measured of commits, without runs of which nothing was mined."""
    judged = accepted_by_run(results)
    mined = [one for one in results.lines(COMMITS, CommitLine) if one.status == MINED]
    by_run = grouped(mined, lambda one: one.run)
    runs = [CommitRun(own, judged.get(run, False)) for run, own in by_run.items()]
    return Committed.of_each(runs, lambda run: (run.lines[0].server, run.lines[0].interval_s))


# --- report -----------------------------------------------------------------------------------


def analyse(results: Results) -> Report:
    """Report posts, transactions and commits. Raises ResultsError if there are no posts."""
    (loads, unfinished), commits = posted(results), committed(results)
    runs, sentences = itinerary_runs(results), Sentences("cluster")
    if not loads:
        raise ResultsError(f"{results.folder} has no run in which all threads were posting")
    travelled = {NAMES[of]: made for of in NAMES for made in itineraries_of(runs, of)}
    sound, sound_commits = accepted(loads), accepted(commits)
    seen = _seen(sound, sound_commits, accepted([*travelled.values()]))
    findings = [
        *rejected_told([*loads, *commits, *travelled.values()], "measurements"),
        *unfinished,
        *sentences("findings", **seen),
    ]
    sections = [
        Section("Posts", sentences("posts", busy=f"{BUSY_CLIENT:g}"), [_posts_table(loads)]),
        Section(
            "Transactions of nine requests", sentences("transactions"), [phases_table(travelled)]
        ),
        Section(
            "Commits and the time between blocks", sentences("commits"), [_commits_figure(commits)]
        ),
    ]
    metrics = list(_metrics(sound, sound_commits))
    costs = sentences("costs", **seen)
    return Report(
        findings,
        sections,
        metrics,
        conclusion=sentences.one("conclusion", costs=costs, names=seen["names"]),
    )


def _seen(
    loads: Sequence[Load],
    commits: Sequence[Committed],
    travelled: Sequence[Itineraries],
) -> dict[str, Any]:
    """What the sentences are about. All is of accepted runs."""
    both = [of for of in travelled if of.transaction.is_finding]
    both = both if len(both) == len(NAMES) else []
    most = max(  # mined by a cluster, so that idling counts least in shares of its time
        (of for of in loads if of.line.server == CLUSTER),
        key=lambda of: of.mined_per_s.value,
        default=None,
    )
    known = [of for of in commits if of.beyond_s.is_finding]
    at = {(of.line.server, of.line.interval_s): of.beyond_s.value for of in known}
    shortest_s = min((interval_s for server, interval_s in at if server == CLUSTER), default=0.0)
    is_known = (ONE, shortest_s) in at
    return {
        "names": {"cluster": NAMES[CLUSTER]},
        "cluster": CLUSTER,
        "loads": loads,
        "commits": grouped(known, lambda of: NAMES[of.line.server]),
        "both": both,
        "ratio": both[1].transaction.value / both[0].transaction.value if both else None,
        "later_s": at[CLUSTER, shortest_s] - at[ONE, shortest_s] if is_known else None,
        "most": most,
    }


def _posts_table(loads: Sequence[Load]) -> Table:
    return Table.of(
        "Posts",
        loads,
        [
            ("Server", lambda of: NAMES[of.line.server]),
            ("Mode", lambda of: of.line.mode),
            ("Threads", lambda of: of.line.threads),
            ("Acknowledged / 1/s", lambda of: of.kept_per_s.value),
            ("95 %", lambda of: of.kept_per_s.give_or_take()),
            ("Mined / 1/s", lambda of: of.mined_per_s.value),
            ("95 %", lambda of: of.mined_per_s.give_or_take()),
            ("Mean answer / ms", lambda of: times(1000, mean_of_known(of.latencies_s))),
            ("Generator / cores", lambda of: fmean(one.line.client_cpu for one in of.runs)),
            ("Services / ms a flight", lambda of: of.cpu_ms(engine=False)),
            ("Consensus / ms a flight", lambda of: of.cpu_ms(engine=True) or None),
            ("Share of consensus / %", lambda of: 100 * of.consensus_share or None),
            ("Runs counted", lambda of: of.counted),
        ],
        "Intervals are of the mean of runs (Student's t).",
    )


def _commits_figure(commits: Sequence[Committed]) -> Figure:
    table = Table.of(
        "Commits",
        commits,
        [
            ("Server", lambda of: NAMES[of.line.server]),
            ("Time between blocks / s", lambda of: of.line.interval_s),
            ("Mean commit / s", lambda of: of.mean(lambda one: one.response_s).value),
            ("After it is due / ms", lambda of: 1000 * of.beyond_s.value),
            ("95 %", lambda of: of.beyond_s.give_or_take(1000)),
            ("Runs counted", lambda of: of.counted),
        ],
    )
    by_server = grouped(commits, lambda of: NAMES[of.line.server])
    series = lines(by_server, _SOURCES, lambda p: p.line.interval_s, lambda p: p.beyond_s, 1000)
    return figure(
        "The time of a commit",
        "How long after its block is due a commit is answered, at one node and at four; a cross is "
        "a rejected run.",
        Axis("time between blocks / s"),
        Axis("after the block is due / ms"),
        series,
        table,
    )


def _metrics(loads: Sequence[Load], commits: Sequence[Committed]) -> Iterator[Metric]:
    for load in loads:
        name = f"[{load.line.server},{load.line.mode},{load.line.threads}]"
        yield load.kept_per_s.metric(f"acknowledged{name}", "1/s")
        yield load.mined_per_s.metric(f"mined{name}", "1/s")
    for commit in commits:
        name = f"commit_after_due[{commit.line.server},{commit.line.interval_s:g}]"
        yield commit.beyond_s.metric(name, "s")


EXPERIMENT = Experiment(
    name="cluster",
    study="002",
    title="A cluster: posts, transactions and commits",
    reproduces="its load through consensus; study 004, table 1 with several stores",
    about=(
        "The same load goes to a single node and to the first of four nodes, whose flights "
        "CometBFT orders: posts in the three modes of an answer, with the processor time of each "
        "program; itineraries of nine requests; commits at several times between blocks. All nodes "
        "are on this machine. It needs CometBFT, as scripts/cluster does."
    ),
    measure=measure,
    analyse=analyse,
)
