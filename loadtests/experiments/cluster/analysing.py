"""Makes the report of a cluster beside a single node."""

from collections.abc import Callable, Iterator, Sequence

from loadtests.experiments.cluster.reading import (
    CLUSTER,
    NODES,
    ONE,
    SERVERS,
    Asked,
    Committed,
    Posted,
    asked,
    committed,
    posted,
)
from loadtests.experiments.itinerary.comparing import Phases, phases_of
from loadtests.experiments.itinerary.figures import phases_table
from loadtests.experiments.itinerary.reading import itinerary_runs
from loadtests.lab.posts import BUSY_CLIENT
from loadtests.lab.repeated import Estimate, Judged, accepted, crosses, measured, rejected_told
from loadtests.lab.report.content import Cell, Figure, Metric, Report, Section, Table, times, told_s
from loadtests.lab.report.drawing import Axis, Series, Source, figure
from loadtests.lab.results import Results, ResultsError
from loadtests.scenarios import QUERY, RESERVE

NAMES = {ONE: "one node", CLUSTER: f"{NODES} nodes"}
_SOURCES: dict[str, Source] = {ONE: "ours", CLUSTER: "second"}
_SHARED = (
    "All nodes and the generator share the processors of this machine. On several machines each "
    "node would have processors of its own, and a network would lie between them: rates of a "
    "cluster would be higher, and waits for other nodes longer."
)


def analyse(results: Results) -> Report:
    """Report posts, transactions, commits and reads. Raises ResultsError if there are no posts."""
    (posts, unfinished), commits = posted(results), committed(results)
    reads, runs = asked(results), itinerary_runs(results)
    if not posts:
        raise ResultsError(f"{results.folder} has no run in which all threads were posting")
    phases = {server: phases_of(runs, server) for server in SERVERS}
    made: list[Judged] = [*posts, *commits, *phases[ONE], *phases[CLUSTER]]
    findings = [
        *rejected_told(made, "loads"),
        *unfinished,
        *_rates_told(accepted(posts)),
        *_consensus_told(accepted(posts)),
        *_transactions_told(phases),
        *_commits_told(accepted(commits)),
        *_reads_told(reads),
        _SHARED,
    ]
    sections = [
        Section("Posts", [_POSTS_SO], [_posts_table(posts)]),
        Section("Transactions of nine requests", [_TRANSACTIONS_SO], [_phases_table(phases)]),
        Section("Commits and the time between blocks", [_COMMITS_SO], [_commits_figure(commits)]),
        Section("Questions to several nodes at once", [_READS_SO], [_reads_table(reads)]),
    ]
    return Report(
        findings,
        sections,
        list(_metrics(accepted(posts), accepted(commits), reads)),
        conclusion=_conclusion(phases, accepted(commits), accepted(posts)),
    )


_POSTS_SO = (
    "The project's bulk_post sends one flight per request to node 0, each thread as soon as its "
    "last flight is answered. “Mined” counts from the first request until all nodes have mined all "
    "flights. In a cluster, modes promise what they do at a single node: with async the node that "
    "was asked has written the flight, with sync it is on that node's disk, and with commit it is "
    "in a block. So threads that commit get one answer each in the time between blocks; when "
    "enough of them wait, others are answered sooner, which does not count as an answer of this "
    "mode. Each flight is validated, stored and indexed four times, once by each node. The "
    "processor time is that of all nodes until everything was mined, with what they use when "
    "idle, which is most of it where there are few flights. The share of consensus is that of "
    "CometBFT's processes; what our own code does for consensus counts as ours. The generator is "
    f"a Python program: where it needs more than {BUSY_CLIENT:g} cores, it is the limit."
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
    "The generator wrk asks one, two or four nodes of the cluster at once, in turns, over 8 "
    "connections in all, the same 900 questions. After a first round that is not counted, each "
    "node has all answers in memory, and asks no other. So with processors of their own the rates "
    "of the nodes would add up."
)


# --- findings --------------------------------------------------------------------------------


def _conclusion(
    phases: dict[str, list[Phases]], commits: Sequence[Committed], posts: Sequence[Posted]
) -> str:
    """What a cluster costs, as far as it is known."""
    told = [
        f"a transaction of nine requests takes {_ratio(one, four):.2g} times as long"
        for one, four in _both(phases)
    ]
    at = {(of.server, of.interval_s): of.beyond_s for of in commits if of.beyond_s.is_finding}
    shortest_s = min((interval_s for server, interval_s in at if server == CLUSTER), default=0.0)
    if (ONE, shortest_s) in at:
        later_s = at[CLUSTER, shortest_s].value - at[ONE, shortest_s].value
        told.append(f"a commit is answered {told_s(later_s)} later")
    if most := _mining_most(posts):
        told.append(
            f"consensus takes {100 * most.consensus_share:.0f} % of the processor time where most "
            "is mined"
        )
    if not told:
        return "These runs are too few, or too unlike, to tell what a cluster costs."
    return f"{NAMES[CLUSTER]} on this machine, beside one node: {'; '.join(told)}."


def _rates_told(posts: Sequence[Posted]) -> Iterator[str]:
    """For each mode, the load of which a cluster acknowledges most, beside the single node."""
    found = [of for of in posts if of.acknowledged_per_s.is_finding and of.mined_per_s.is_finding]
    if len(found) < len(posts):
        yield (
            f"{len(posts) - len(found)} of {len(posts)} rates of posts are in the table alone: "
            "their intervals hold 0, or are of two runs."
        )
    one = {(of.mode, of.threads): of for of in found if of.server == ONE}
    for mode in dict.fromkeys(of.mode for of in found):
        clustered = [of for of in found if of.server == CLUSTER and of.mode == mode]
        if not clustered:
            continue
        best = max(clustered, key=lambda of: of.acknowledged_per_s.value)
        said = (
            f"mode={mode}: {NAMES[CLUSTER]} acknowledge {best.acknowledged_per_s.plus_minus()} "
            f"flights a second of {best.threads} threads and mine {best.mined_per_s.plus_minus()}"
        )
        if other := one.get((mode, best.threads)):
            said += (
                f"; one node alone {other.acknowledged_per_s.plus_minus()} and "
                f"{other.mined_per_s.plus_minus()}"
            )
        yield f"{said}."


def _mining_most(posts: Sequence[Posted]) -> Posted | None:
    """The load of which a cluster mines most, so that idling counts least in shares of its time."""
    clustered = [of for of in posts if of.server == CLUSTER]
    return max(clustered, key=lambda of: of.mined_per_s.value, default=None)


def _consensus_told(posts: Sequence[Posted]) -> Iterator[str]:
    if most := _mining_most(posts):
        yield (
            f"The consensus engines take {100 * most.consensus_share:.0f} % of the processor time "
            f"of {NAMES[CLUSTER]} where these mine most (mode={most.mode}, {most.threads} "
            "threads); the rest is our own services."
        )


def _both(phases: dict[str, list[Phases]]) -> list[tuple[Phases, Phases]]:
    """Transactions of one node and of a cluster, if both are known well enough."""
    pairs = zip(accepted(phases[ONE]), accepted(phases[CLUSTER]), strict=False)
    return [pair for pair in pairs if all(of.transaction.is_finding for of in pair)]


def _ratio(one: Phases, four: Phases) -> float:
    return four.transaction.value / one.transaction.value


def _transactions_told(phases: dict[str, list[Phases]]) -> Iterator[str]:
    for one, four in _both(phases):
        query, leg = (
            f"{1000 * four.phases[of].value:.3g} and {1000 * one.phases[of].value:.3g} ms"
            for of in (QUERY, RESERVE)
        )
        yield (
            f"A transaction of nine requests takes {_ms(four)} at a cluster and {_ms(one)} at one "
            f"node, {_ratio(one, four):.2g} times as long; a query {query}, adding a leg {leg}."
        )


def _ms(of: Phases) -> str:
    return f"{of.transaction.plus_minus(1000)} ms"


def _commits_told(commits: Sequence[Committed]) -> Iterator[str]:
    for server in SERVERS:
        of_server = [of for of in commits if of.server == server and of.beyond_s.is_finding]
        if of_server:
            times = ", ".join(f"{1000 * of.beyond_s.value:.0f}" for of in of_server)
            between = ", ".join(f"{of.interval_s:g}" for of in of_server)
            yield (
                f"At {NAMES[server]} a commit is answered {times} ms after its block is due, with "
                f"{between} s between blocks."
            )


def _reads_told(reads: Sequence[Asked]) -> Iterator[str]:
    known = [
        (of.nodes, of.requests_per_s)
        for of in reads
        if of.requests_per_s is not None and of.requests_per_s.is_finding
    ]
    if len(known) > 1:
        told = ", ".join(f"{rate.plus_minus()} of {nodes}" for nodes, rate in known)
        yield f"Answers a second of nodes that are asked at once: {told}."


# --- sections --------------------------------------------------------------------------------


def _posts_table(posts: Sequence[Posted]) -> Table:
    def of_cluster(value: Callable[[Posted], float]) -> Callable[[Posted], float | None]:
        return lambda of: value(of) if of.server == CLUSTER else None

    return Table.of(
        "Posts",
        posts,
        [
            ("Server", lambda of: NAMES[of.server]),
            ("Mode", lambda of: of.mode),
            ("Threads", lambda of: of.threads),
            ("Acknowledged / 1/s", lambda of: of.acknowledged_per_s.value),
            ("95 %", lambda of: of.acknowledged_per_s.give_or_take()),
            ("Mined / 1/s", lambda of: of.mined_per_s.value),
            ("95 %", lambda of: of.mined_per_s.give_or_take()),
            ("Mean answer / ms", lambda of: times(1000, of.response_s)),
            ("Generator / cores", lambda of: of.client_cpu),
            ("Services / ms a flight", lambda of: of.cpu_ms(engine=False)),
            ("Consensus / ms a flight", of_cluster(lambda of: of.cpu_ms(engine=True))),
            ("Share of consensus / %", of_cluster(lambda of: 100 * of.consensus_share)),
            ("Runs counted", lambda of: of.counted),
        ],
        "Processor time is that of all nodes. Intervals are of the mean of runs (Student's t).",
    )


def _phases_table(phases: dict[str, list[Phases]]) -> Table:
    return phases_table(
        {f"Flightchain, {NAMES[server]}": of for server in SERVERS for of in phases[server]}
    )


def _commits_figure(commits: Sequence[Committed]) -> Figure:
    series: list[Series] = []
    for server in SERVERS:
        of_server = [of for of in accepted(commits) if of.server == server]
        xs, beyond = [of.interval_s for of in of_server], [of.beyond_s for of in of_server]
        series.append(measured(NAMES[server], _SOURCES[server], xs, beyond, factor=1000))
    series += crosses(commits, lambda of: of.interval_s, lambda of: 1000 * of.beyond_s.value)
    table = Table.of(
        "Commits",
        commits,
        [
            ("Server", lambda of: NAMES[of.server]),
            ("Time between blocks / s", lambda of: of.interval_s),
            ("Mean commit / s", lambda of: of.response_s),
            ("After it is due / ms", lambda of: 1000 * of.beyond_s.value),
            ("95 %", lambda of: of.beyond_s.give_or_take(1000)),
            ("Runs counted", lambda of: of.counted),
        ],
    )
    told = "How long after its block is due a commit is answered, at one node and at four."
    x, y = Axis("time between blocks / s"), Axis("after the block is due / ms")
    return figure("The time of a commit", told, x, y, series, table)


def _reads_table(reads: Sequence[Asked]) -> Table:
    first = reads[0].requests_per_s if reads else None

    def of_rate(cell: Callable[[Estimate], Cell]) -> Callable[[Asked], Cell]:
        return lambda of: cell(of.requests_per_s) if of.requests_per_s else None

    return Table.of(
        "Questions to several nodes at once",
        reads,
        [
            ("Nodes asked at once", lambda of: of.nodes),
            ("Answers / 1/s", of_rate(lambda rate: rate.value)),
            ("95 %", of_rate(lambda rate: rate.give_or_take())),
            ("Times one node", of_rate(lambda rate: rate.value / first.value if first else None)),
            ("Rounds counted", lambda of: f"{of.rounds} of {of.made}"),
        ],
        "The nodes that are not asked run, too. Intervals are of the mean of repetitions, each on "
        "a cluster of its own. Rounds do not count if a request failed or other programs took more "
        "than 10 % of a core.",
    )


# --- metrics ---------------------------------------------------------------------------------


def _metrics(
    posts: Sequence[Posted], commits: Sequence[Committed], reads: Sequence[Asked]
) -> Iterator[Metric]:
    for post in posts:
        name = f"[{post.server},{post.mode},{post.threads}]"
        yield post.acknowledged_per_s.metric(f"acknowledged{name}", "1/s")
        yield post.mined_per_s.metric(f"mined{name}", "1/s")
    for commit in commits:
        name = f"commit_after_due[{commit.server},{commit.interval_s:g}]"
        yield commit.beyond_s.metric(name, "s")
    for read in reads:
        if read.requests_per_s is not None:
            yield read.requests_per_s.metric(f"answers[{read.nodes}]", "1/s")
