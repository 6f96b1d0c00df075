"""Draws the study's figure 1 with our numbers, and its table 1 with ours added."""

from collections.abc import Mapping, Sequence

from loadtests.experiments.itinerary.comparing import Phases, Point
from loadtests.experiments.itinerary.plan import MINE_INTERVAL_S
from loadtests.experiments.itinerary.reading import PHASES
from loadtests.lab.published import ITINERARY, ItineraryTimes
from loadtests.lab.repeated import accepted, crosses, measured
from loadtests.lab.report.content import Cell, Figure, Table
from loadtests.lab.report.drawing import Axis, Series, Source, figure
from loadtests.scenarios import DURABLE, MINED

COMMITS = {
    DURABLE: "commit when durable",
    MINED: f"commit when mined, a block every {MINE_INTERVAL_S:g} s",
}
_SOURCES: tuple[Source, ...] = ("ours", "second", "third", "model", "fourth")


def rate_figure(points: Sequence[Point], commit: str) -> Figure:
    """Figure 1 of the study for one way to commit: time against target rate, by clients."""
    of = [point for point in points if point.commit == commit]
    sound = accepted(of)
    numbers = sorted({point.clients for point in of})
    series = [
        _series(clients, source, [point for point in sound if point.clients == clients])
        for clients, source in zip(numbers, _SOURCES, strict=False)
    ]
    series = [
        *(one for one in series if len(one.xs)),
        *crosses(of, lambda p: p.target_per_s, lambda p: 1000 * p.transaction.value),
    ]
    told = (
        f"Figure 1 of the study, {COMMITS[commit]}: mean time of a transaction against the rate at "
        "which all clients together should start them. The table says which points are saturated: "
        "more than 5 % of their transactions started late, because the one before was not done. A "
        "cross is a rejected run."
    )
    x = Axis("target rate of all clients / transactions per second", is_logarithmic=True)
    y, table = Axis("mean transaction time / ms"), _rate_table(of, commit)
    return figure(f"Time against rate, {COMMITS[commit]}", told, x, y, series, table)


def _series(clients: int, source: Source, points: Sequence[Point]) -> Series:
    ordered = sorted(points, key=lambda point: point.target_per_s)
    return measured(
        f"{clients} client{'s' if clients > 1 else ''}",
        source,
        [point.target_per_s for point in ordered],
        [point.transaction for point in ordered],
        factor=1000,
    )


def _rate_table(points: Sequence[Point], commit: str) -> Table:
    return Table.of(
        f"Transactions at a rate, {COMMITS[commit]}",
        points,
        [
            ("Clients", lambda point: point.clients),
            ("Share of the rate of one alone", lambda point: point.fraction),
            ("Target / 1/s", lambda point: point.target_per_s),
            ("Achieved / 1/s", lambda point: point.achieved_per_s),
            ("Started late / %", lambda point: 100 * point.late_share),
            ("Saturated", lambda point: "yes" if point.is_saturated else "no"),
            ("T_tx / ms", lambda point: 1000 * point.transaction.value),
            ("95 %", lambda point: point.transaction.give_or_take(1000)),
            ("T_tx before commit / ms", lambda point: 1000 * point.before_commit.value),
            ("Accepted", lambda point: "yes" if point.is_accepted else "no"),
        ],
        "Intervals are from batches of one run. A client cannot reach a rate above that of one "
        "alone.",
    )


def phases_table(ours: Mapping[str, Phases]) -> Table:
    """Table 1 of the study, with our rows below, which have these names."""
    columns = (
        *("/ ms", "Start", "Query", "Reserve", "Commit", "Transaction", "95 %"),
        *("Start + 4 query + 3 reserve + commit", "Transaction less that / %"),
    )
    cells: list[Sequence[Cell]] = [
        *(_published(name, times) for name, times in ITINERARY.items()),
        *(_measured(name, of) for name, of in ours.items()),
    ]
    note = "The study's times are from its own machine and service."
    return Table("Phases of a transaction, one client", columns, cells, note)


def _published(name: str, times: ItineraryTimes) -> Sequence[Cell]:
    phases = (times.begin_ms, times.query_ms, times.reserve_ms, times.commit_ms)
    whole, total = times.transaction_ms, times.requests_ms
    return (f"Study 004, {name}", *phases, whole, "–", total, 100 * (whole - total) / whole)


def _measured(name: str, of: Phases) -> Sequence[Cell]:
    whole_s = of.transaction.value
    return (
        name + ("" if of.is_accepted else " (no run accepted)"),
        *(1000 * of.phases[phase].value for phase in PHASES),
        1000 * whole_s,
        of.transaction.give_or_take(1000),
        1000 * of.sum_s,
        100 * of.unexplained.value / whole_s,
    )
