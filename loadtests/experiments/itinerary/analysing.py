"""Makes the report: the study's table 1 with ours added, its figure 1 with our numbers."""

from collections.abc import Iterator, Mapping, Sequence

from loadtests.experiments.itinerary.measuring import MINE_INTERVAL_S
from loadtests.experiments.itinerary.transactions import (
    AT_RATE,
    SINGLE,
    Itineraries,
    itineraries_of,
    itinerary_runs,
)
from loadtests.grouping import grouped
from loadtests.lab.content import Cell, Figure, Metric, Report, Section, Table
from loadtests.lab.published import ITINERARY, ITINERARY_SATURATED_PER_S
from loadtests.lab.repeated import accepted, lines, rejected_told
from loadtests.lab.report.drawing import Axis, Source, figure
from loadtests.lab.results import Results, ResultsError
from loadtests.scenarios import COMMIT, DURABLE, MINED, QUERY, RESERVE, TRAVEL_AGENCY

COMMITS = {
    DURABLE: "commit when durable",
    MINED: f"commit when mined, a block every {MINE_INTERVAL_S:g} s",
}
_SOURCES: tuple[Source, ...] = ("ours", "second", "third", "model", "fourth")


def analyse(results: Results) -> Report:
    """Report phases, their sum, and rates. Raises ResultsError if there is no complete run."""
    runs = itinerary_runs(results)
    alone, at_rate = itineraries_of(runs, SINGLE), itineraries_of(runs, AT_RATE)
    if not alone:
        raise ResultsError(f"{results.folder} has no run of one client with a transaction")
    sound, sound_rates = accepted(alone), accepted(at_rate)
    by_commit = grouped(at_rate, lambda of: of.line.commit)
    sections = [
        Section(
            "Phases of a transaction",
            [_ALONE_SO, _COMMITS_SO],
            [phases_table({COMMITS[of.line.commit]: of for of in alone})],
        ),
        Section(
            "Transactions at a rate",
            [_rates_so(sound)],
            [_rate_figure(commit, of) for commit, of in by_commit.items()],
        ),
        Section(
            "What a client does",
            [_CLIENTS_SO],
            [Table("Counterparts", ("The travel agency's", "Ours", "Why"), TRAVEL_AGENCY)],
        ),
    ]
    findings = [
        *rejected_told([*alone, *at_rate], "rows and points"),
        *(said for of in sound for said in _phases_told(of)),
        *_rates_told(sound_rates),
        _ONE_STORE,
    ]
    return Report(findings, sections, [*_metrics(sound, sound_rates)])


_ONE_STORE = (
    "There is one store. The experiment cluster has the same transactions with the study's several "
    "stores: four nodes."
)
_ALONE_SO = (
    "One client does itineraries without a pause, on one connection; the last four fifths count. "
    "The difference in the last column is taken for each transaction, so it is the client's work "
    "between its requests."
)
_COMMITS_SO = (
    f"“{COMMITS[DURABLE].capitalize()}” is the service as shipped: each leg is on the disk when it "
    "is answered, and the commit asks for the last one once. "
    f"“{COMMITS[MINED].capitalize()}” asks every 20 ms until it is in a block."
)
_CLIENTS_SO = (
    "The study's clients took items by (8i + client) mod cities, so that no two needed the same "
    "lock. Here each client has its own legs; nothing is locked between requests, so there cannot "
    "be a deadlock."
)


def _rates_so(alone: Sequence[Itineraries]) -> str:
    reach = "; ".join(
        f"{COMMITS[of.line.commit]}: {1 / of.transaction.value:.3g}/s" for of in alone
    )
    reach = f" ({reach})" if reach else ""
    return (
        "The next transaction of a client is due T(1 + u) after the last was due, with u uniform "
        "within ±1 %, and starts at once if that is past. A client that waits for every answer "
        f"cannot do more than 1/T_tx{reach}, whatever its target: the study's highest targets, "
        "up to 1000/s per client, were beyond that, too."
    )


# --- findings --------------------------------------------------------------------------------


def _phases_told(of: Itineraries) -> Iterator[str]:
    """What makes up the transactions of one client, beside the study's."""
    commit, whole_s, theirs = COMMITS[of.line.commit].capitalize(), of.transaction.value, ITINERARY
    between = ", ".join(
        f"{100 * (one.transaction_ms - one.requests_ms) / one.transaction_ms:.2f} %"
        for one in theirs.values()
    )
    yield (
        f"{commit}: a transaction of one client takes {of.transaction.plus_minus(1000)} ms; its "
        f"nine requests take {1000 * of.sum_s:.3g} ms, and the work of the client between them "
        f"{of.unexplained.plus_minus(1000)} ms ({100 * of.unexplained.value / whole_s:.2f} %). In "
        f"the study's table the latter is {between}."
    )
    query_s, reserve_s, commit_s = (of.phases[one].value for one in (QUERY, RESERVE, COMMIT))
    single = theirs["Single RM"]
    yield (
        f"{commit}: adding a leg takes {reserve_s / query_s:.2g} times as long as a query "
        f"({1000 * reserve_s:.3g} and {1000 * query_s:.3g} ms), because it is on the disk when it "
        f"is answered. In the study it takes {single.reserve_ms / single.query_ms:.2g} times as "
        "long."
    )
    if of.line.commit == MINED:
        yield (
            f"A commit that waits until it is mined is {100 * commit_s / whole_s:.0f} % of a "
            "transaction: it waits for the miner, which makes a block every "
            f"{1000 * MINE_INTERVAL_S:.0f} ms here and every minute by default. So T_commit "
            f"({of.phases[COMMIT].plus_minus(1000)} ms) depends on that setting, not on work; the "
            f"requests before it take {1000 * (whole_s - commit_s):.3g} ms."
        )


def _rates_told(points: Sequence[Itineraries]) -> Iterator[str]:
    """Where clients are saturated, and how their time grows with their number from there on."""
    for commit, of in grouped(points, lambda point: point.line.commit).items():
        told = COMMITS[commit].capitalize()
        saturated = [point for point in of if point.is_saturated]
        if not saturated:
            yield f"{told}: no point is saturated."
            continue
        first = min(saturated, key=lambda point: point.target_per_s)
        reached = max(of, key=lambda point: point.achieved_per_s)
        yield (
            f"{told}: {len(saturated)} of {len(of)} points are saturated, the first at a target of "
            f"{first.target_per_s:.3g}/s, with N = {first.line.clients}. Beyond that, clients "
            "start transactions without a pause, whatever the target: at most "
            f"{reached.achieved_per_s:.3g}/s were reached, with N = {reached.line.clients}. The "
            f"study saw saturation above {ITINERARY_SATURATED_PER_S:,.0f}/s, by its figure."
        )
        highest = max(point.line.fraction for point in of)
        back_to_back = sorted(
            (point for point in saturated if point.line.fraction == highest),
            key=lambda point: point.line.clients,
        )
        if len(back_to_back) > 1:
            few, many = back_to_back[0], back_to_back[-1]
            ratio = many.transaction.value / few.transaction.value
            yield (
                f"{told}, saturated: a transaction takes {ratio:.2g} times as long with "
                f"{many.line.clients} clients as with {few.line.clients}, which are "
                f"{many.line.clients / few.line.clients:g} times as many. In the study the time is "
                "roughly linear in the number of clients."
            )


def _metrics(alone: Sequence[Itineraries], points: Sequence[Itineraries]) -> Iterator[Metric]:
    for of in alone:
        for name, found in (*of.phases.items(), ("transaction", of.transaction)):
            yield found.metric(f"{name}_time[{of.line.commit}]", "s")
    for of in points:
        of_line = f"{of.line.commit},{of.line.clients},{of.line.fraction:g}"
        yield of.transaction.metric(f"transaction_time[{of_line}]", "s")


# --- the study's table and figure ------------------------------------------------------------


def phases_table(ours: Mapping[str, Itineraries]) -> Table:
    """Table 1 of the study, with our rows below, which have these names."""
    columns = (
        *("/ ms", "Start", "Query", "Reserve", "Commit", "Transaction", "95 %"),
        *("Start + 4 query + 3 reserve + commit", "Transaction less that / %"),
    )
    rows: list[Sequence[Cell]] = []
    for name, of in ITINERARY.items():
        whole, total = of.transaction_ms, of.requests_ms
        phases = (of.begin_ms, of.query_ms, of.reserve_ms, of.commit_ms)
        between = 100 * (whole - total) / whole
        rows.append((f"Study 004, {name}", *phases, whole, "–", total, between))
    for name, one in ours.items():
        rows.append(
            (
                f"Flightchain, {name}" + ("" if one.is_accepted else " (no run accepted)"),
                *(1000 * found.value for found in one.phases.values()),
                1000 * one.transaction.value,
                one.transaction.give_or_take(1000),
                1000 * one.sum_s,
                100 * one.unexplained.value / one.transaction.value,
            )
        )
    note = "The study's times are from its own machine and service."
    return Table("Phases of a transaction, one client", columns, rows, note)


def _rate_figure(commit: str, of: Sequence[Itineraries]) -> Figure:
    """Figure 1 of the study for one way to commit: time against target rate, by clients."""
    by_clients = grouped(
        sorted(of, key=lambda point: (point.line.clients, point.target_per_s)),
        lambda point: f"{point.line.clients} client{'s' if point.line.clients > 1 else ''}",
    )
    table = Table.of(
        f"Transactions at a rate, {COMMITS[commit]}",
        of,
        [
            ("Clients", lambda point: point.line.clients),
            ("Share of the rate of one alone", lambda point: point.line.fraction),
            ("Target / 1/s", lambda point: point.target_per_s),
            ("Achieved / 1/s", lambda point: point.achieved_per_s),
            ("Started late / %", lambda point: 100 * point.late_share),
            ("Saturated", lambda point: "yes" if point.is_saturated else "no"),
            ("T_tx / ms", lambda point: 1000 * point.transaction.value),
            ("95 %", lambda point: point.transaction.give_or_take(1000)),
            (
                "T_tx before commit / ms",
                lambda point: 1000 * point.mean(lambda one: one.before_commit_s).value,
            ),
            ("Accepted", lambda point: "yes" if point.is_accepted else "no"),
        ],
        "Intervals are from batches of one run. A client cannot reach a rate above that of one "
        "alone.",
    )
    sources = dict(zip(by_clients, _SOURCES, strict=False))
    return figure(
        f"Time against rate, {COMMITS[commit]}",
        f"Figure 1 of the study, {COMMITS[commit]}: mean time of a transaction against the rate at "
        "which all clients together should start them. The table says which points are saturated: "
        "more than 5 % of their transactions started late, because the one before was not done. A "
        "cross is a rejected run.",
        Axis("target rate of all clients / transactions per second", is_logarithmic=True),
        Axis("mean transaction time / ms"),
        lines(by_clients, sources, lambda p: p.target_per_s, lambda p: p.transaction, 1000),
        table,
    )
