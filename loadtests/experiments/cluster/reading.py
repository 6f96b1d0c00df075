"""Reads what was measured of a single node and of a cluster, and sums it up."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean

from loadtests.generation.rules import Facts, judge
from loadtests.grouping import grouped
from loadtests.lab.posts import MINED, Posted, Posts, PostsLine, posts
from loadtests.lab.repeated import Estimate, Repeated, accepted_by_run, estimate
from loadtests.lab.results import Line, Results

NODES = 4
ONE, CLUSTER = "one-node", f"{NODES}-nodes"
SERVERS = (ONE, CLUSTER)
POSTS, COMMITS, READS = "posts", "commits", "reads"


@dataclass(frozen=True, slots=True)
class LoadLine(PostsLine):
    """A run of posts. mined_s: from its first request until all nodes had mined it all.

    engine_cpu_s, rest_cpu_s: the processor time of the consensus engines and of the services until
    then. client_cpu: how busy the program was that posts, in cores.
    """

    server: str
    mined_s: float
    engine_cpu_s: float
    rest_cpu_s: float
    client_cpu: float


@dataclass(frozen=True, slots=True)
class CommitLine(Line):
    """A commit. interval_s: the time between blocks. beyond_s: from when the block was due on."""

    run: str
    server: str
    interval_s: float
    status: int
    response_s: float
    beyond_s: float


@dataclass(frozen=True, slots=True)
class ReadsLine(Line):
    """A round of questions to `nodes` nodes at once. requests_per_s: of all of them together."""

    repeat: int
    turn: int
    nodes: int
    requests_per_s: float
    failed: int
    foreign_cpu: float

    @property
    def is_accepted(self) -> bool:
        """Whether nothing failed, and no other program took too much of the processors."""
        return not self.failed and judge(Facts(1, 0, foreign_cpu=self.foreign_cpu)).accepted


@dataclass(frozen=True)
class Load(Posted[LoadLine]):
    """All runs of one server with one load of posts."""

    @cached_property
    def mined_per_s(self) -> Estimate:
        """The rate from the first request until all flights were mined by all nodes."""
        return self.over(lambda one: _flights(one) / one.line.mined_s)

    @property
    def client_cpu(self) -> float:
        """How busy the program was that posts, in cores."""
        return fmean([one.line.client_cpu for one in self.runs])

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
    some = filter(_flights, runs)
    loads = Load.of_each(some, lambda one: (one.line.server, one.line.mode, one.line.threads))
    return loads, unfinished


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

    @cached_property
    def beyond_s(self) -> Estimate:
        """From when a block is due until a flight in it is known to be mined."""
        return self.over(lambda run: fmean([one.beyond_s for one in run.lines]))

    @property
    def response_s(self) -> float:
        """The mean time of an answer."""
        return self.over(lambda run: fmean([one.response_s for one in run.lines])).value


def committed(results: Results) -> list[Committed]:
    """What was measured of commits, without runs of which nothing was mined."""
    judged = accepted_by_run(results)
    mined = [one for one in results.lines(COMMITS, CommitLine) if one.status == MINED]
    by_run = grouped(mined, lambda one: one.run)
    runs = [CommitRun(lines, judged.get(run, False)) for run, lines in by_run.items()]
    return Committed.of_each(runs, lambda run: (run.lines[0].server, run.lines[0].interval_s))


@dataclass(frozen=True)
class Asked(Repeated[ReadsLine]):
    """All rounds of questions to so many nodes at once."""

    @property
    def nodes(self) -> int:
        """How many nodes were asked."""
        return self.runs[0].nodes

    @cached_property
    def requests_per_s(self) -> Estimate:
        """The rate over repetitions, each of which is the mean of its rounds."""
        by_repeat = grouped(self.runs, lambda one: one.repeat).values()
        return estimate([fmean([one.requests_per_s for one in of]) for of in by_repeat])


def asked(results: Results) -> list[Asked]:
    """The rounds by the number of nodes."""
    rounds = Asked.of_each(results.lines(READS, ReadsLine), lambda one: one.nodes)
    return sorted(rounds, key=lambda one: one.nodes)
