"""Makes the report of a cluster beside a single node."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from statistics import fmean

from loadtests.experiments.cluster.measuring import (
    CLUSTER,
    COMMITS,
    NODES,
    ONE,
    POSTS,
    READS,
    CommitLine,
    LoadLine,
    ReadsLine,
)
from loadtests.experiments.itinerary.analysing import phases_table
from loadtests.experiments.itinerary.transactions import (
    Itineraries,
    itineraries_of,
    itinerary_runs,
)
from loadtests.grouping import grouped
from loadtests.lab.content import Figure, Metric, Report, Section, Table, times, told_s
from loadtests.lab.posts import BUSY_CLIENT, MINED, Posted, Posts, posts
from loadtests.lab.repeated import (
    Estimate,
    Repeated,
    accepted,
    accepted_by_run,
    estimate,
    lines,
    rejected_told,
)
from loadtests.lab.report.drawing import Axis, Source, figure
from loadtests.lab.results import Results, ResultsError
from loadtests.models.sample_statistics import mean_of_known
from loadtests.scenarios import QUERY, RESERVE

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


@dataclass(frozen=True)
class Asked(Repeated[ReadsLine]):
    """All rounds of questions to so many nodes at once."""

    @cached_property
    def requests_per_s(self) -> Estimate:
        """The rate over repetitions, each of which is the mean of its rounds."""
        by_repeat = grouped(self.runs, lambda one: one.repeat).values()
        return estimate([fmean([one.requests_per_s for one in of]) for of in by_repeat])


def asked(results: Results) -> list[Asked]:
    """The rounds by the number of nodes."""
    rounds = sorted(results.lines(READS, ReadsLine), key=attrgetter("nodes"))
    return Asked.of_each(rounds, attrgetter("nodes"))


# --- report -----------------------------------------------------------------------------------


def analyse(results: Results) -> Report:
    """Report posts, transactions, commits and reads. Raises ResultsError if there are no posts."""
    (loads, unfinished), commits = posted(results), committed(results)
    reads, runs = asked(results), itinerary_runs(results)
    if not loads:
        raise ResultsError(f"{results.folder} has no run in which all threads were posting")
    travelled = {NAMES[of]: made for of in NAMES for made in itineraries_of(runs, of)}
    sound, sound_commits, sound_reads = accepted(loads), accepted(commits), accepted(reads)
    both = [of for of in accepted([*travelled.values()]) if of.transaction.is_finding]
    both = both if len(both) == len(NAMES) else []
    most = max(  # mined by a cluster, so that idling counts least in shares of its time
        (of for of in sound if of.line.server == CLUSTER),
        key=lambda of: of.mined_per_s.value,
        default=None,
    )
    findings = [
        *rejected_told([*loads, *commits, *reads, *travelled.values()], "measurements"),
        *unfinished,
        *_rates_told(sound),
        *_consensus_told(most),
        *_transactions_told(both),
        *_commits_told(sound_commits),
        *_reads_told(sound_reads),
        _SHARED,
    ]
    sections = [
        Section("Posts", [_POSTS_SO], [_posts_table(loads)]),
        Section("Transactions of nine requests", [_TRANSACTIONS_SO], [phases_table(travelled)]),
        Section("Commits and the time between blocks", [_COMMITS_SO], [_commits_figure(commits)]),
        Section("Questions to several nodes at once", [_READS_SO], [_reads_table(reads)]),
    ]
    metrics = list(_metrics(sound, sound_commits, sound_reads))
    return Report(findings, sections, metrics, conclusion=_conclusion(both, sound_commits, most))


_SHARED = (
    "All nodes and the generator share the processors of this machine. On several machines each "
    "node would have processors of its own, and a network would lie between them: rates of a "
    "cluster would be higher, and waits for other nodes longer."
)
_POSTS_SO = (
    "The project's bulk_post sends one flight per request to node 0, each thread as soon as its "
    "last flight is answered. “Mined” counts from the first request until all nodes have mined all "
    "flights. Modes promise what they do at a single node: with async the node that was asked has "
    "written the flight, with sync it is on that node's disk, with commit it is in a block. So "
    "threads that commit get one answer each in the time between blocks; when enough of them wait, "
    "others are answered sooner, which does not count. Each flight is validated, stored and "
    "indexed once by each node. The processor time is that of all nodes until everything was "
    "mined, with what they use when idle, which is most of it where there are few flights. The "
    "share of consensus is that of CometBFT's processes; what our own code does for consensus "
    f"counts as ours. Where the generator, a Python program, needs more than {BUSY_CLIENT:g} "
    "cores, it is the limit."
)
_TRANSACTIONS_SO = (
    "One client makes one itinerary after the other, without a pause and on one connection, at "
    "node 0. A leg is durable when it is on that node's disk, and the commit asks for the last one "
    "once. In the study one transaction spans several resource managers, each with data of its "
    "own, and takes 1.9 times as long as with one. Here all nodes keep the same ledger, and what a "
    "transaction pays for them is what they take of the processors, until its legs are mined."
)
_COMMITS_SO = (
    "One client posts a flight in mode commit at a random moment between two blocks. The figure "
    "has the time from when the next block is due until the answer says that the flight is mined: "
    "making the block, consensus, the index, and up to 20 ms until the waiting request looks "
    "again. A client who comes at any moment waits half of the time between blocks besides."
)
_READS_SO = (
    "The generator wrk asks one, two or four nodes of the cluster at once, in turns, the same 900 "
    "questions over 8 connections in all. After a first round that is not counted, each node has "
    "all answers in memory, and asks no other. So with processors of their own the rates of the "
    "nodes would add up."
)


# --- findings --------------------------------------------------------------------------------


def _conclusion(
    both: Sequence[Itineraries], commits: Sequence[Committed], most: Load | None
) -> str:
    """What a cluster costs, as far as it is known."""
    told = []
    if both:
        told.append(f"a transaction of nine requests takes {_ratio(both):.2g} times as long")
    sound = (of for of in commits if of.beyond_s.is_finding)
    at = {(of.line.server, of.line.interval_s): of.beyond_s for of in sound}
    shortest_s = min((interval_s for server, interval_s in at if server == CLUSTER), default=0.0)
    if (ONE, shortest_s) in at:
        later_s = at[CLUSTER, shortest_s].value - at[ONE, shortest_s].value
        told.append(f"a commit is answered {told_s(later_s)} later")
    if most:
        told.append(
            f"consensus takes {100 * most.consensus_share:.0f} % of the processor time where most "
            "is mined"
        )
    if not told:
        return "These runs are too few, or too unlike, to tell what a cluster costs."
    return f"{NAMES[CLUSTER]} on this machine, beside one node: {'; '.join(told)}."


def _rates_told(loads: Sequence[Load]) -> Iterator[str]:
    """For each mode, the load of which a cluster acknowledges most, beside the single node."""
    found = [of for of in loads if of.kept_per_s.is_finding and of.mined_per_s.is_finding]
    if len(found) < len(loads):
        yield (
            f"{len(loads) - len(found)} of {len(loads)} rates of posts are in the table alone: "
            "their intervals hold 0, or are of two runs."
        )
    one = {(of.line.mode, of.line.threads): of for of in found if of.line.server == ONE}
    clustered = (of for of in found if of.line.server == CLUSTER)
    for mode, of_mode in grouped(clustered, lambda of: of.line.mode).items():
        best = max(of_mode, key=lambda of: of.kept_per_s.value)
        said = (
            f"mode={mode}: {NAMES[CLUSTER]} acknowledge {best.kept_per_s.plus_minus()} flights a "
            f"second of {best.line.threads} threads and mine {best.mined_per_s.plus_minus()}"
        )
        if other := one.get((mode, best.line.threads)):
            said += (
                f"; one node alone {other.kept_per_s.plus_minus()} and "
                f"{other.mined_per_s.plus_minus()}"
            )
        yield f"{said}."


def _consensus_told(most: Load | None) -> Iterator[str]:
    if most:
        yield (
            f"The consensus engines take {100 * most.consensus_share:.0f} % of the processor time "
            f"of {NAMES[CLUSTER]} where these mine most (mode={most.line.mode}, "
            f"{most.line.threads} threads); the rest is our own services."
        )


def _ratio(both: Sequence[Itineraries]) -> float:
    one, four = (of.transaction.value for of in both)
    return four / one


def _transactions_told(both: Sequence[Itineraries]) -> Iterator[str]:
    if both:
        one, four = (f"{of.transaction.plus_minus(1000)} ms" for of in both)
        query, leg = (
            " and ".join(f"{1000 * of.phases[phase].value:.3g}" for of in reversed(both))
            for phase in (QUERY, RESERVE)
        )
        yield (
            f"A transaction of nine requests takes {four} at a cluster and {one} at one node, "
            f"{_ratio(both):.2g} times as long; a query {query} ms, adding a leg {leg} ms."
        )


def _commits_told(commits: Sequence[Committed]) -> Iterator[str]:
    for server, name in NAMES.items():
        of_server = [of for of in commits if of.line.server == server and of.beyond_s.is_finding]
        if of_server:
            later = ", ".join(f"{1000 * of.beyond_s.value:.0f}" for of in of_server)
            between = ", ".join(f"{of.line.interval_s:g}" for of in of_server)
            yield (
                f"At {name} a commit is answered {later} ms after its block is due, with {between} "
                "s between blocks."
            )


def _reads_told(reads: Sequence[Asked]) -> Iterator[str]:
    known = [of for of in reads if of.requests_per_s.is_finding]
    if len(known) > 1:
        told = ", ".join(f"{of.requests_per_s.plus_minus()} of {of.runs[0].nodes}" for of in known)
        yield f"Answers a second of nodes that are asked at once: {told}."


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


def _reads_table(reads: Sequence[Asked]) -> Table:
    one_per_s = next((of.requests_per_s.value for of in reads[:1] if of.is_accepted), None)
    return Table.of(
        "Questions to several nodes at once",
        reads,
        [
            ("Nodes asked at once", lambda of: of.runs[0].nodes),
            ("Answers / 1/s", lambda of: of.requests_per_s.value),
            ("95 %", lambda of: of.requests_per_s.give_or_take()),
            (
                "Times one node",
                lambda of: of.requests_per_s.value / one_per_s if one_per_s else None,
            ),
            ("Rounds counted", lambda of: of.counted),
        ],
        "The nodes that are not asked run, too. Intervals are of the mean of repetitions, each on "
        "a cluster of its own. Rounds do not count if a request failed or other programs took more "
        "than 10 % of a core.",
    )


def _metrics(
    loads: Sequence[Load], commits: Sequence[Committed], reads: Sequence[Asked]
) -> Iterator[Metric]:
    for load in loads:
        name = f"[{load.line.server},{load.line.mode},{load.line.threads}]"
        yield load.kept_per_s.metric(f"acknowledged{name}", "1/s")
        yield load.mined_per_s.metric(f"mined{name}", "1/s")
    for commit in commits:
        name = f"commit_after_due[{commit.line.server},{commit.line.interval_s:g}]"
        yield commit.beyond_s.metric(name, "s")
    for read in reads:
        yield read.requests_per_s.metric(f"answers[{read.runs[0].nodes}]", "1/s")
