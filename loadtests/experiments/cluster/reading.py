"""Reads what was measured of a single node and of a cluster, and sums it up."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from loadtests.generation.bulk import busy_window
from loadtests.generation.rows import Row
from loadtests.generation.rules import Facts, judge
from loadtests.lab.raw import accepted_by_run, rows_by_run
from loadtests.lab.repeated import Estimate, accepted, estimate, that_count
from loadtests.lab.results import Line, Results, lines

NODES = 4
ONE, CLUSTER = "one-node", f"{NODES}-nodes"
SERVERS = (ONE, CLUSTER)
POSTS, COMMITS, READS = "posts", "commits", "reads"
MINED = 201  # the status of an answer about a flight that is in a block


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


@dataclass(frozen=True, slots=True)
class PostsRun:
    """A run of posts with its rows. window_s: for how long all threads posted.

    kept: the answers in that time that promise what their mode says.
    """

    line: PostsLine
    rows: Sequence[Row]
    kept: Sequence[Row]
    window_s: float
    is_accepted: bool

    @property
    def flights(self) -> int:
        """How many flights the node has acknowledged."""
        return sum(row.succeeded for row in self.rows)

    @property
    def acknowledged_per_s(self) -> float:
        """The rate of answers that promise what their mode says."""
        return len(self.kept) / self.window_s

    @property
    def mined_per_s(self) -> float:
        """The rate from the first request until all flights were mined by all nodes."""
        return self.flights / self.line.mined_s


@dataclass(frozen=True, slots=True)
class Posted:
    """All runs of one server with one load. runs: the accepted ones, or all if none was."""

    server: str
    mode: str
    threads: int
    runs: Sequence[PostsRun]
    made: int

    @property
    def is_accepted(self) -> bool:
        """Whether the runs were accepted."""
        return self.runs[0].is_accepted

    @property
    def acknowledged_per_s(self) -> Estimate:
        """The rate of answers that promise what their mode says."""
        return estimate([one.acknowledged_per_s for one in self.runs])

    @property
    def mined_per_s(self) -> Estimate:
        """The rate at which flights are mined."""
        return estimate([one.mined_per_s for one in self.runs])

    @property
    def response_s(self) -> float | None:
        """The mean time of an answer that promises what its mode says."""
        known = [row.closed_response_s for one in self.runs for row in one.kept]
        return fmean(known) if known else None

    @property
    def client_cpu(self) -> float:
        """How busy the program was that posts, in cores."""
        return fmean([one.line.client_cpu for one in self.runs])

    def cpu_ms(self, *, engine: bool) -> float:
        """Milliseconds of processor time a flight, of the engines or of the services."""
        used_s = sum(one.line.engine_cpu_s if engine else one.line.rest_cpu_s for one in self.runs)
        return 1000 * used_s / sum(one.flights for one in self.runs)

    @property
    def consensus_share(self) -> float:
        """The engines' part of the processor time."""
        engine_ms, rest_ms = self.cpu_ms(engine=True), self.cpu_ms(engine=False)
        return engine_ms / (engine_ms + rest_ms)


def posted(results: Results) -> tuple[list[Posted], list[str]]:
    """What was measured of posts, and a sentence about each run that has no figures."""
    rows, judged = rows_by_run(results), accepted_by_run(results)
    found: dict[tuple[str, str, int], list[PostsRun]] = {}
    unfinished = []
    for line in lines(PostsLine, results.rows(POSTS)):
        try:
            run = _run(line, rows[line.run], judged.get(line.run, False))
        except ValueError as problem:
            unfinished.append(f"Run {line.run} has no figures: {problem}.")
        else:
            found.setdefault((line.server, line.mode, line.threads), []).append(run)
    return [Posted(*key, that_count(runs), len(runs)) for key, runs in found.items()], unfinished


def _run(line: PostsLine, rows: Sequence[Row], is_accepted: bool) -> PostsRun:
    """The run. Raises ValueError if its threads never posted at once, or all posts failed."""
    window = busy_window(rows, line.until_s)
    kept = [row for row in window.rows if row.status == MINED or line.mode != "commit"]
    run = PostsRun(line, rows, kept, window.end_s - window.start_s, is_accepted)
    if not run.flights:
        raise ValueError("all posts failed")
    return run


# --- commits ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CommitRun:
    """A run of commits. beyond_s, response_s: means of the flights that were mined."""

    beyond_s: float
    response_s: float
    is_accepted: bool


@dataclass(frozen=True, slots=True)
class Committed:
    """All runs of one server with one time between blocks. runs: as in `Posted`."""

    server: str
    interval_s: float
    runs: Sequence[CommitRun]
    made: int

    @property
    def is_accepted(self) -> bool:
        """Whether the runs were accepted."""
        return self.runs[0].is_accepted

    @property
    def beyond_s(self) -> Estimate:
        """From when a block is due until a flight in it is known to be mined."""
        return estimate([one.beyond_s for one in self.runs])

    @property
    def response_s(self) -> float:
        """The mean time of an answer."""
        return fmean([one.response_s for one in self.runs])


def committed(results: Results) -> list[Committed]:
    """What was measured of commits, without runs of which nothing was mined."""
    judged, by_run = accepted_by_run(results), dict[str, list[CommitLine]]()
    for line in lines(CommitLine, results.rows(COMMITS)):
        by_run.setdefault(line.run, []).append(line)
    found: dict[tuple[str, float], list[CommitRun]] = {}
    for name, made in by_run.items():
        if mined := [one for one in made if one.status == MINED]:
            run = CommitRun(
                fmean([one.beyond_s for one in mined]),
                fmean([one.response_s for one in mined]),
                judged.get(name, False),
            )
            found.setdefault((made[0].server, made[0].interval_s), []).append(run)
    return [Committed(*key, that_count(runs), len(runs)) for key, runs in found.items()]


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
    found: dict[int, list[ReadsLine]] = {}
    for line in lines(ReadsLine, results.rows(READS)):
        found.setdefault(line.nodes, []).append(line)
    return [_asked(nodes, made) for nodes, made in sorted(found.items())]


def _asked(nodes: int, made: Sequence[ReadsLine]) -> Asked:
    good = accepted(made)
    by_repeat: dict[int, list[float]] = {}
    for one in good:
        by_repeat.setdefault(one.repeat, []).append(one.requests_per_s)
    rates = [fmean(of) for of in by_repeat.values()]
    return Asked(nodes, estimate(rates) if rates else None, len(good), len(made))
