"""Makes the report of a cluster beside a single node."""

from collections.abc import Iterator, Sequence

from loadtests.experiments.cluster.reading import (
    CLUSTER,
    COMMITS,
    NODES,
    ONE,
    POSTS,
    SERVERS,
    Asked,
    Posted,
    asked,
    posted,
)
from loadtests.experiments.itinerary.comparing import Phases, phases_of
from loadtests.experiments.itinerary.figures import phases_table
from loadtests.experiments.itinerary.reading import itinerary_runs
from loadtests.lab.repeated import Estimate, Judged, accepted, measured, rejected, rejected_told
from loadtests.lab.repeated import of as estimated
from loadtests.lab.report.content import Cell, Figure, Metric, Report, Section, Table
from loadtests.lab.report.drawing import Axis, Series, Source, drawn
from loadtests.lab.report.page import shown
from loadtests.lab.results import Results, ResultsError
from loadtests.scenarios import COMMIT, DURABLE, MINED, RESERVE

NAMES = {ONE: "one node", CLUSTER: f"{NODES} nodes"}
_SOURCES: dict[str, Source] = {ONE: "ours", CLUSTER: "second"}
_SHARED = (
    "All nodes and the generator share the processors of this machine, which several machines "
    "would not; and a network between them is missing. So rates of a cluster are lower here, and "
    "waits for other nodes are shorter."
)


def analyse(results: Results) -> Report:
    """Report posts, transactions, commits and reads. Raises ResultsError if there are no posts."""
    posts, commits, reads = posted(results, POSTS), posted(results, COMMITS), asked(results)
    if not posts:
        raise ResultsError(f"{results.folder} has no run in which all threads were posting")
    runs = itinerary_runs(results)
    phases = {server: phases_of(runs, server) for server in SERVERS}
    made: list[Judged] = [*posts, *commits, *phases[ONE], *phases[CLUSTER]]
    findings = [
        *rejected_told(made, "loads"),
        *_pairs_told(accepted(posts)),
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
    return Report(findings, sections, [*_metrics(posts, commits), *_reads_metrics(reads)])


_POSTS_SO = (
    "The project's bulk_post sends one flight per request to node 0, each thread as soon as its "
    "last flight is answered. “Mined” counts from the first request until all nodes have mined all "
    "flights. In a cluster, async and sync promise the same as on a single node: the flight is "
    "written, or on the disk, of the node that was asked; commit waits until the others have "
    "ordered it, and a post that comes when enough others wait is answered sooner, which does not "
    "count as an answer. The processor time is that of all nodes together until everything was "
    "mined, so four nodes validate, store and index each flight four times. The share of consensus "
    "is that of CometBFT's processes; what our own code does for consensus counts as ours."
)
_TRANSACTIONS_SO = (
    "One client makes one itinerary after the other, without a pause and on one connection, at "
    "node 0. A transaction is durable when its last leg is on that node's disk, and mined when the "
    "leg is in a block, for which it asks every 20 ms. In the study a transaction over several "
    "resource managers takes 1.9 times as long as over one."
)
_COMMITS_SO = (
    "One client posts a flight and waits until it is mined, then posts the next at once. So each "
    "post comes right after a block, and waits for all of the time between two blocks. The figure "
    "has what it takes besides: work, and consensus. A client who comes at any moment waits half "
    "of the time between blocks."
)
_READS_SO = (
    "The generator wrk asks one, two or four nodes of the cluster at once, over 8 connections in "
    "all, the three questions in turn. Each node answers from its own disk and asks no other; so "
    "with processors of their own, rates would add up."
)


# --- findings --------------------------------------------------------------------------------


def _pairs_told(posts: Sequence[Posted]) -> Iterator[str]:
    """For each mode, the load of which a cluster mines most, beside the single node."""
    one = {(of.mode, of.threads): of for of in posts if of.server == ONE}
    for mode in dict.fromkeys(of.mode for of in posts):
        clustered = [of for of in posts if of.server == CLUSTER and of.mode == mode]
        if not clustered:
            continue
        best = max(clustered, key=lambda of: of.acknowledged_per_s.value)
        said = (
            f"mode={mode}: {NAMES[CLUSTER]} acknowledge {_rate(best.acknowledged_per_s)} flights a "
            f"second of {best.threads} threads and mine {_rate(best.mined_per_s)}"
        )
        if other := one.get((mode, best.threads)):
            said += (
                f"; one node alone {_rate(other.acknowledged_per_s)} and {_rate(other.mined_per_s)}"
            )
        yield f"{said}."


def _rate(found: Estimate) -> str:
    half = found.half_width
    return f"{found.value:,.0f}" + (f" ± {half:,.0f}" if half is not None else "")


def _consensus_told(posts: Sequence[Posted]) -> Iterator[str]:
    clustered = [of for of in posts if of.server == CLUSTER]
    if clustered:
        shares = [100 * of.consensus_share for of in clustered]
        yield (
            f"The consensus engine takes {_span(shares)} % of the processor time of "
            f"{NAMES[CLUSTER]}; the rest is our own services."
        )


def _span(values: Sequence[float]) -> str:
    """From the least to the greatest, as whole numbers."""
    ends = dict.fromkeys(f"{round(one)}" for one in (min(values), max(values)))
    return " to ".join(ends)


def _transactions_told(phases: dict[str, list[Phases]]) -> Iterator[str]:
    alone = {of.commit: of for of in accepted(phases[ONE])}
    for of in accepted(phases[CLUSTER]):
        if one := alone.get(of.commit):
            ratio = of.transaction.estimate / one.transaction.estimate
            yield (
                f"A transaction of nine requests, {_until(of.commit)}, takes "
                f"{_ms(of)} at a cluster and {_ms(one)} at one node, {ratio:.2g} times as long; "
                f"adding a leg {1000 * of.phases[RESERVE].estimate:.3g} and "
                f"{1000 * one.phases[RESERVE].estimate:.3g} ms, the commit "
                f"{1000 * of.phases[COMMIT].estimate:.3g} and "
                f"{1000 * one.phases[COMMIT].estimate:.3g} ms."
            )


def _until(commit: str) -> str:
    return {DURABLE: "until it is durable", MINED: "until it is mined"}[commit]


def _ms(of: Phases) -> str:
    found = estimated(of.transaction)
    return f"{shown(1000 * found.value)} {found.give_or_take(1000)} ms"


def _commits_told(commits: Sequence[Posted]) -> Iterator[str]:
    for server in SERVERS:
        more = [
            1000 * found.value
            for of in commits
            if of.server == server and (found := of.beyond_s) is not None
        ]
        if more:
            yield (
                f"A commit at {NAMES[server]} takes the time between two blocks, whatever that "
                f"is, and {_span(more)} ms."
            )


def _reads_told(reads: Sequence[Asked]) -> Iterator[str]:
    if len(reads) > 1:
        told = ", ".join(f"{_rate(of.requests_per_s)} of {of.nodes}" for of in reads)
        yield f"Questions a second of nodes that are asked at once: {told}."


# --- sections --------------------------------------------------------------------------------


def _posts_table(posts: Sequence[Posted]) -> Table:
    rows: list[Sequence[Cell]] = [
        (
            NAMES[of.server],
            of.mode,
            of.threads,
            of.acknowledged_per_s.value,
            of.acknowledged_per_s.give_or_take(),
            of.mined_per_s.value,
            of.mined_per_s.give_or_take(),
            None if of.response_s is None else 1000 * of.response_s.value,
            of.cpu_ms(engine=False),
            of.cpu_ms(engine=True) if of.server == CLUSTER else None,
            100 * of.consensus_share if of.server == CLUSTER else None,
            _counted(of),
        )
        for of in posts
    ]
    columns = (
        *("Server", "Mode", "Threads", "Acknowledged / 1/s", "95 %", "Mined / 1/s", "95 %"),
        *("Mean answer / ms", "Services / ms a flight", "Consensus / ms a flight"),
        *("Share of consensus / %", "Runs counted"),
    )
    note = "Processor time is that of all nodes. Intervals are of the mean of runs (Student's t)."
    return Table("Posts", columns, rows, note)


def _counted(of: Posted) -> str:
    return f"{len(of.runs)} of {of.made}" + ("" if of.is_accepted else ", rejected")


def _phases_table(phases: dict[str, list[Phases]]) -> Table:
    return phases_table(
        {
            f"Flightchain, {NAMES[server]}, {_until(of.commit)}": of
            for server in SERVERS
            for of in phases[server]
        }
    )


def _commits_figure(commits: Sequence[Posted]) -> Figure:
    series: list[Series] = []
    for server in SERVERS:
        of_server = [of for of in accepted(commits) if of.server == server]
        xs, beyond = [of.interval_s for of in of_server], [of.beyond_s for of in of_server]
        name, source = NAMES[server], _SOURCES[server]
        series.append(measured(name, source, xs, beyond, factor=1000, is_amount=False))
    without = [
        (of.interval_s, one) for of in commits if not of.is_accepted and (one := of.beyond_s)
    ]
    series += rejected([x for x, _ in without], [1000 * one.value for _, one in without])
    rows: list[Sequence[Cell]] = [
        (
            NAMES[of.server],
            of.interval_s,
            None if of.response_s is None else of.response_s.value,
            None if of.response_s is None else of.response_s.give_or_take(),
            None if of.beyond_s is None else 1000 * of.beyond_s.value,
            _counted(of),
        )
        for of in commits
    ]
    columns = (
        *("Server", "Time between blocks / s", "Mean commit / s", "95 %"),
        *("Beyond that time / ms", "Runs counted"),
    )
    return Figure(
        "The time of a commit",
        drawn(Axis("time between blocks / s"), Axis("commit less that time / ms"), series),
        "How much longer a commit takes than the time between blocks, at one node and at four.",
        Table("Commits", columns, rows),
    )


def _reads_table(reads: Sequence[Asked]) -> Table:
    rows: list[Sequence[Cell]] = [
        (
            of.nodes,
            of.requests_per_s.value,
            of.requests_per_s.give_or_take(),
            of.requests_per_s.value / reads[0].requests_per_s.value,
            of.failed,
            of.rounds,
        )
        for of in reads
    ]
    columns = (
        *("Nodes asked at once", "Answers / 1/s", "95 %", "Times one node", "Failed", "Rounds"),
    )
    note = "The nodes that are not asked run, too."
    return Table("Questions to several nodes at once", columns, rows, note)


# --- metrics ---------------------------------------------------------------------------------


def _metrics(posts: Sequence[Posted], commits: Sequence[Posted]) -> Iterator[Metric]:
    for of in accepted(posts):
        name = f"[{of.server},{of.mode},{of.threads}]"
        yield of.acknowledged_per_s.metric(f"acknowledged{name}", "1/s")
        yield of.mined_per_s.metric(f"mined{name}", "1/s")
    for of in accepted(commits):
        if of.response_s is not None:
            yield of.response_s.metric(f"commit_time[{of.server},{of.interval_s:g}]", "s")


def _reads_metrics(reads: Sequence[Asked]) -> Iterator[Metric]:
    for of in reads:
        yield of.requests_per_s.metric(f"answers[{of.nodes}]", "1/s")
