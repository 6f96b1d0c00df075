"""Reads what was measured of a single node and of a cluster, and sums it up."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from statistics import fmean
from typing import Any, TypeVar, cast

from loadtests.generation.bulk import busy_window
from loadtests.generation.rows import Row
from loadtests.lab.raw import accepted_by_run, rows_by_run
from loadtests.lab.repeated import Estimate, estimate, that_count
from loadtests.lab.results import Results

NODES = 4
ONE, CLUSTER = "one-node", f"{NODES}-nodes"
SERVERS = (ONE, CLUSTER)
POSTS, COMMITS, READS = "posts", "commits", "reads"  # the first two are parts of `posts.csv`
MINED = 201  # the status of an answer about a flight that is in a block

Line = TypeVar("Line", bound="PostsLine | ReadsLine")


@dataclass(frozen=True, slots=True)
class PostsLine:
    """A run of posts. until_s: when it was told to end. mined_s: when all its flights were mined.

    Both are in seconds since its first request. interval_s: the time between blocks. engine_cpu_s,
    rest_cpu_s: the processor time of the consensus engines and of the services until mined_s.
    """

    run: str
    part: str
    server: str
    mode: str
    threads: int
    interval_s: float
    until_s: float = 0.0
    mined_s: float = 0.0
    engine_cpu_s: float = 0.0
    rest_cpu_s: float = 0.0

    def cells(self) -> dict[str, Any]:
        """The line as a row of the table: column -> value."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class ReadsLine:
    """A round of questions to `nodes` nodes at once. requests_per_s: of all of them together."""

    repeat: int
    turn: int
    nodes: int
    requests_per_s: float
    failed: int

    def cells(self) -> dict[str, Any]:
        """The line as a row of the table: column -> value."""
        return asdict(self)


def lines(kind: type[Line], rows: Sequence[Mapping[str, str]]) -> list[Line]:
    """The lines of a table. Raises ValueError, KeyError for other columns."""
    return [
        kind(
            **{
                one.name: cast("Callable[[str], Any]", one.type)(row[one.name])
                for one in fields(kind)
            }
        )
        for row in rows
    ]


@dataclass(frozen=True, slots=True)
class PostsRun:
    """A run of posts with its rows. accepted_s: the seconds in which all threads posted.

    kept: the answers in these seconds that promise what their mode says.
    """

    line: PostsLine
    rows: Sequence[Row]
    kept: Sequence[Row]
    accepted_s: float
    is_accepted: bool

    @property
    def flights(self) -> int:
        """How many flights the node has acknowledged."""
        return sum(row.succeeded for row in self.rows)

    @property
    def acknowledged_per_s(self) -> float:
        """The rate of answers that promise what their mode says."""
        return len(self.kept) / self.accepted_s

    @property
    def mined_per_s(self) -> float:
        """The rate from the first request until all flights were mined."""
        return self.flights / self.line.mined_s

    @property
    def response_s(self) -> float | None:
        """The mean time of an answer that promises what its mode says, without the first.

        The first commit comes at any moment between two blocks, the others right after a block.
        """
        later = self.kept[1:]
        return fmean([row.closed_response_s for row in later]) if later else None


@dataclass(frozen=True, slots=True)
class Posted:
    """All runs of one server with one load. runs: the accepted ones, or all if none was."""

    server: str
    mode: str
    threads: int
    interval_s: float
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
    def response_s(self) -> Estimate | None:
        """The mean time of an answer."""
        known = [s for one in self.runs if (s := one.response_s) is not None]
        return estimate(known) if known else None

    @property
    def beyond_s(self) -> Estimate | None:
        """The mean time of an answer less the time between blocks."""
        known = [s - self.interval_s for one in self.runs if (s := one.response_s) is not None]
        return estimate(known) if known else None

    def cpu_ms(self, *, engine: bool) -> float:
        """Milliseconds of processor time of a flight, of the engines or of the services."""
        used_s = sum(one.line.engine_cpu_s if engine else one.line.rest_cpu_s for one in self.runs)
        return 1000 * used_s / sum(one.flights for one in self.runs)

    @property
    def consensus_share(self) -> float:
        """The engines' part of the processor time."""
        engine_ms, rest_ms = self.cpu_ms(engine=True), self.cpu_ms(engine=False)
        return engine_ms / (engine_ms + rest_ms)


def posted(results: Results, part: str) -> list[Posted]:
    """What was measured of a part, POSTS or COMMITS, in the order of the first runs."""
    rows, accepted = rows_by_run(results), accepted_by_run(results)
    found: dict[tuple[str, str, int, float], list[PostsRun]] = {}
    for line in lines(PostsLine, results.rows(POSTS)):
        if line.part == part and (run := _run(line, rows[line.run], accepted.get(line.run, False))):
            key = (line.server, line.mode, line.threads, line.interval_s)
            found.setdefault(key, []).append(run)
    return [Posted(*key, that_count(runs), len(runs)) for key, runs in found.items()]


def _run(line: PostsLine, rows: Sequence[Row], is_accepted: bool) -> PostsRun | None:
    """The run; None if its threads never posted at once, or nothing was acknowledged."""
    try:
        window = busy_window(rows, line.until_s)
    except ValueError:
        return None
    kept = [row for row in window.rows if row.status == MINED or line.mode != "commit"]
    run = PostsRun(line, rows, kept, window.end_s - window.start_s, is_accepted)
    return run if run.flights else None


@dataclass(frozen=True, slots=True)
class Asked:
    """All rounds of questions to so many nodes at once."""

    nodes: int
    requests_per_s: Estimate
    rounds: int
    failed: int


def asked(results: Results) -> list[Asked]:
    """The rounds by the number of nodes."""
    found: dict[int, list[ReadsLine]] = {}
    for line in lines(ReadsLine, results.rows(READS)):
        found.setdefault(line.nodes, []).append(line)
    return [
        Asked(
            nodes,
            estimate([one.requests_per_s for one in of]),
            len(of),
            sum(one.failed for one in of),
        )
        for nodes, of in sorted(found.items())
    ]
