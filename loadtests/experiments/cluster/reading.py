"""Reads what was measured of a single node and of a cluster, and sums it up."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from loadtests.generation.rules import Facts, judge
from loadtests.grouping import grouped
from loadtests.lab.posts import MINED, Posts, posts
from loadtests.lab.repeated import (
    Estimate,
    Repeated,
    accepted,
    accepted_by_run,
    estimate,
    that_count,
)
from loadtests.lab.results import Line, Results
from loadtests.models.samples import mean_of_known

NODES = 4
ONE, CLUSTER = "one-node", f"{NODES}-nodes"
SERVERS = (ONE, CLUSTER)
POSTS, COMMITS, READS = "posts", "commits", "reads"


@dataclass(frozen=True, slots=True)
class PostsLine(Line):
    """A run of posts. until_s: when it was told to end. mined_s: when all nodes had mined it all.

    Both are in seconds since its first request. engine_cpu_s, rest_cpu_s: the processor time of the
    consensus engines and of the services until then. client_cpu: of the program that posts, cores.
    """

    run: str
    server: str
    mode: str
    threads: int
    until_s: float
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


# --- posts -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Posted(Repeated[Posts[PostsLine]]):
    """All runs of one server with one load."""

    server: str
    mode: str
    threads: int

    @property
    def acknowledged_per_s(self) -> Estimate:
        """The rate of answers that promise what their mode says."""
        return self.over(lambda one: one.kept_per_s)

    @property
    def mined_per_s(self) -> Estimate:
        """The rate from the first request until all flights were mined by all nodes."""
        return self.over(lambda one: _flights(one) / one.line.mined_s)

    @property
    def response_s(self) -> float | None:
        """The mean time of an answer that promises what its mode says."""
        return mean_of_known(row.closed_response_s for one in self.runs for row in one.kept)

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


def _flights(one: Posts[PostsLine]) -> int:
    """How many flights the node has acknowledged."""
    return sum(row.succeeded for row in one.rows)


def posted(results: Results) -> tuple[list[Posted], list[str]]:
    """What was measured of posts, and a sentence about each run that has no figures."""
    runs, unfinished = posts(results, results.lines(POSTS, PostsLine))
    unfinished += [
        f"Run {one.line.run} has no figures: all posts failed." for one in runs if not _flights(one)
    ]
    cells = grouped(
        filter(_flights, runs), lambda one: (one.line.server, one.line.mode, one.line.threads)
    )
    return [Posted(that_count(of), len(of), *key) for key, of in cells.items()], unfinished


# --- commits ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CommitRun:
    """A run of commits. beyond_s, response_s: means of the flights that were mined."""

    beyond_s: float
    response_s: float
    is_accepted: bool


@dataclass(frozen=True)
class Committed(Repeated[CommitRun]):
    """All runs of one server with one time between blocks."""

    server: str
    interval_s: float

    @property
    def beyond_s(self) -> Estimate:
        """From when a block is due until a flight in it is known to be mined."""
        return self.over(lambda one: one.beyond_s)

    @property
    def response_s(self) -> float:
        """The mean time of an answer."""
        return fmean([one.response_s for one in self.runs])


def committed(results: Results) -> list[Committed]:
    """What was measured of commits, without runs of which nothing was mined."""
    judged = accepted_by_run(results)
    mined = [one for one in results.lines(COMMITS, CommitLine) if one.status == MINED]
    found: dict[tuple[str, float], list[CommitRun]] = {}
    for name, of in grouped(mined, lambda one: one.run).items():
        means = fmean([one.beyond_s for one in of]), fmean([one.response_s for one in of])
        run = CommitRun(*means, judged.get(name, False))
        found.setdefault((of[0].server, of[0].interval_s), []).append(run)
    return [Committed(that_count(runs), len(runs), *key) for key, runs in found.items()]


# --- questions -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Asked:
    """All rounds of questions to so many nodes at once.

    requests_per_s: over repetitions, of the mean of each one's accepted rounds; None without any.
    """

    nodes: int
    requests_per_s: Estimate | None
    rounds: int
    made: int


def asked(results: Results) -> list[Asked]:
    """The rounds by the number of nodes."""
    found = grouped(results.lines(READS, ReadsLine), lambda one: one.nodes)
    return [_asked(nodes, made) for nodes, made in sorted(found.items())]


def _asked(nodes: int, made: Sequence[ReadsLine]) -> Asked:
    good = accepted(made)
    by_repeat = grouped(good, lambda one: one.repeat).values()
    rates = [fmean([one.requests_per_s for one in of]) for of in by_repeat]
    return Asked(nodes, estimate(rates) if rates else None, len(good), len(made))
