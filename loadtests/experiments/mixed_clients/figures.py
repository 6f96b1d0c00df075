"""Draws the study's figures 1 and 2 with our numbers, for each ledger and with both places."""

from collections.abc import Sequence

from loadtests.experiments.mixed_clients.comparing import Curve, Point
from loadtests.experiments.mixed_clients.plan import HTTP, LOCAL, NAMES
from loadtests.lab.repeated import Estimate, measured, rejected
from loadtests.lab.report.content import Cell, Figure, Table
from loadtests.lab.report.drawing import Axis, Series, Source, drawn

_OURS: dict[str, Source] = {LOCAL: "second", HTTP: "ours"}
_BOUNDS: dict[str, Source] = {LOCAL: "bound", HTTP: "model"}
_CUSTOMERS = Axis("clients N")


Rejected = Sequence[tuple[str, Point]]  # place, and a point without an accepted run


def throughput_figure(curves: Sequence[Curve], without: Rejected, blocks: int) -> Figure:
    """Figure 1 of the study for one ledger."""
    series = _crosses(without, [point.throughput_per_s for _, point in without])
    for curve in curves:
        series += [
            _series(curve, [point.throughput for point in curve.points]),
            _bound(curve, [curve.most_per_s(n) for n in _steps(curve)]),
        ]
    svg = drawn(_CUSTOMERS, Axis("interactions / s", is_logarithmic=True), series)
    told = (
        "Figure 1 of the study: interactions per second against the number of clients. Lines "
        "without points are the upper bounds min(N/D, 1/D_b); crosses have no accepted run. The "
        "axis is logarithmic; the study drew two linear ones."
    )
    return Figure(f"Throughput, {blocks} blocks", svg, told, _table(curves, without, blocks))


def latency_figure(curves: Sequence[Curve], without: Rejected, blocks: int) -> Figure:
    """Figure 2 of the study for one ledger."""
    series = _crosses(without, [1000 * point.response_s for _, point in without])
    for curve in curves:
        series += [
            _series(curve, [point.response for point in curve.points], factor=1000),
            _bound(curve, [1000 * curve.least_s(n) for n in _steps(curve)]),
        ]
    svg = drawn(_CUSTOMERS, Axis("mean latency / ms", is_logarithmic=True), series)
    told = (
        "Figure 2 of the study: mean time of an interaction against the number of clients. Lines "
        "without points are the lower bounds max(D, N·D_b). A straight line looks bent on a "
        "logarithmic axis: growth is linear where it follows its bound."
    )
    table = Table(
        f"Growth of latency, {blocks} blocks",
        (
            "Clients are",
            "From N =",
            "Points",
            "Slope / ms",
            "Line misses by / %",
            "Exponential misses by / %",
        ),
        [
            (
                NAMES[curve.place],
                growth.first,
                growth.points,
                1000 * growth.slope_s,
                100 * growth.line_error,
                100 * growth.exponential_error,
            )
            for curve in curves
            if (growth := curve.growth) is not None
        ],
        "Fits begin at the first N with nine tenths of the highest throughput, and need four "
        "points. Misses are relative root mean squares.",
    )
    return Figure(f"Latency, {blocks} blocks", svg, told, table)


def _crosses(without: Rejected, ys: Sequence[float]) -> list[Series]:
    return rejected([point.customers for _, point in without], ys)


def _series(curve: Curve, found: Sequence[Estimate], factor: float = 1) -> Series:
    ns = [point.customers for point in curve.points]
    return measured(NAMES[curve.place], _OURS[curve.place], ns, found, factor=factor)


def _steps(curve: Curve) -> list[float]:
    """The N at which a bound is drawn, with its bend where the asymptotes meet."""
    ends = {float(curve.points[0].customers), float(curve.points[-1].customers)}
    low, high = min(ends), max(ends)
    every = {low + (high - low) * step / 40 for step in range(41)}
    bend = curve.crossing
    return sorted(every if bend is None or not low < bend < high else {*every, bend})


def _bound(curve: Curve, ys: Sequence[float]) -> Series:
    return Series(f"bound {NAMES[curve.place]}", _BOUNDS[curve.place], _steps(curve), ys)


def _table(curves: Sequence[Curve], without: Rejected, blocks: int) -> Table:
    rows: list[Sequence[Cell]] = [
        (
            NAMES[curve.place],
            point.customers,
            f"{point.runs} of {point.made}",
            point.throughput_per_s,
            point.throughput.give_or_take(),
            100 * point.throughput_per_s / curve.most_per_s(point.customers),
            1000 * point.response_s,
            point.response.give_or_take(1000),
            1000 * point.service_demand_s,
        )
        for curve in curves
        for point in curve.points
    ]
    rows += [
        (
            NAMES[place],
            point.customers,
            f"0 of {point.made}",
            point.throughput_per_s,
            "–",
            None,
            1000 * point.response_s,
            "–",
            1000 * point.service_demand_s,
        )
        for place, point in without
    ]
    columns = (
        *("Clients are", "N", "Runs counted", "X / 1/s", "95 %", "Share of its bound / %"),
        *("R / ms", "95 %", "Service's processor time / ms"),
    )
    note = (
        "Processor time is that of an interaction, with the miner's; in process the clients are "
        "part of the service. 0 of n: no run was accepted, and all n are shown, but used for no "
        "finding."
    )
    return Table(f"A ledger of {blocks} blocks", columns, rows, note)
