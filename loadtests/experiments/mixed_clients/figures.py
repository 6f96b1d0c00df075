"""Draws the study's figures 1 and 2 with our numbers, for each ledger and with both places."""

from collections.abc import Callable, Sequence

from loadtests.experiments.mixed_clients.comparing import Curve, Point
from loadtests.experiments.mixed_clients.plan import HTTP, LOCAL, NAMES
from loadtests.lab.repeated import Estimate, crosses, measured
from loadtests.lab.report.content import Figure, Table
from loadtests.lab.report.drawing import Axis, Series, Source, figure
from loadtests.lab.report.page import NONE

_OURS: dict[str, Source] = {LOCAL: "second", HTTP: "ours"}
_BOUNDS: dict[str, Source] = {LOCAL: "bound", HTTP: "model"}
_CUSTOMERS = Axis("clients N")


def throughput_figure(curves: Sequence[Curve], made: Sequence[Point], blocks: int) -> Figure:
    """Figure 1 of the study for one ledger. made: its points, accepted or rejected."""
    series = _series(curves, made, lambda point: point.throughput, Curve.most_per_s)
    told = (
        "Figure 1 of the study: interactions per second against the number of clients. Lines "
        "without points are the upper bounds min(N/D, 1/D_b); crosses have no accepted run. The "
        "axis is logarithmic; the study drew two linear ones."
    )
    y, table = Axis("interactions / s", is_logarithmic=True), _table(curves, made, blocks)
    return figure(f"Throughput, {blocks} blocks", told, _CUSTOMERS, y, series, table)


def latency_figure(curves: Sequence[Curve], made: Sequence[Point], blocks: int) -> Figure:
    """Figure 2 of the study for one ledger. made: its points, accepted or rejected."""
    series = _series(curves, made, lambda point: point.response, Curve.least_s, factor=1000)
    told = (
        "Figure 2 of the study: mean time of an interaction against the number of clients. Lines "
        "without points are the lower bounds max(D, N·D_b). A straight line looks bent on a "
        "logarithmic axis: growth is linear where it follows its bound."
    )
    table = Table.of(
        f"Growth of latency, {blocks} blocks",
        [(curve.place, curve.growth) for curve in curves if curve.growth is not None],
        [
            ("Clients are", lambda of: NAMES[of[0]]),
            ("From N =", lambda of: of[1].first),
            ("Points", lambda of: of[1].points),
            ("Slope / ms", lambda of: 1000 * of[1].slope_s),
            ("Line misses by / %", lambda of: 100 * of[1].line_error),
            ("Exponential misses by / %", lambda of: 100 * of[1].exponential_error),
        ],
        "Fits begin at the first N with nine tenths of the highest throughput, and need four "
        "points. Misses are relative root mean squares.",
    )
    y = Axis("mean latency / ms", is_logarithmic=True)
    return figure(f"Latency, {blocks} blocks", told, _CUSTOMERS, y, series, table)


def _series(
    curves: Sequence[Curve],
    made: Sequence[Point],
    of: Callable[[Point], Estimate],
    bound: Callable[[Curve, float], float],
    factor: float = 1,
) -> list[Series]:
    """What was measured, with its bounds, and crosses for points without an accepted run."""
    series = crosses(made, lambda point: point.customers, lambda point: factor * of(point).value)
    for curve in curves:
        name, steps = NAMES[curve.place], _steps(curve)
        ns, found = [one.customers for one in curve.points], [of(one) for one in curve.points]
        bounds = [factor * bound(curve, n) for n in steps]
        series += [
            measured(name, _OURS[curve.place], ns, found, factor=factor),
            Series(f"bound {name}", _BOUNDS[curve.place], steps, bounds),
        ]
    return series


def _steps(curve: Curve) -> list[float]:
    """The N at which a bound is drawn, with its bend where the asymptotes meet."""
    ends = {float(curve.points[0].customers), float(curve.points[-1].customers)}
    low, high = min(ends), max(ends)
    every = {low + (high - low) * step / 40 for step in range(41)}
    bend = curve.crossing
    return sorted(every if bend is None or not low < bend < high else {*every, bend})


def _table(curves: Sequence[Curve], made: Sequence[Point], blocks: int) -> Table:
    """A row for each point of a curve, then those without an accepted run."""
    of_place = {curve.place: curve for curve in curves}
    counted = [point for curve in curves for point in curve.points]
    without = [point for point in made if not point.is_accepted]

    def share(point: Point) -> float | None:
        if not point.is_accepted:
            return None
        return 100 * point.throughput.value / of_place[point.place].most_per_s(point.customers)

    return Table.of(
        f"A ledger of {blocks} blocks",
        [*counted, *without],
        [
            ("Clients are", lambda point: NAMES[point.place]),
            ("N", lambda point: point.customers),
            ("Runs counted", lambda p: f"{len(p.runs) if p.is_accepted else 0} of {p.made}"),
            ("X / 1/s", lambda point: point.throughput.value),
            ("95 %", lambda p: p.throughput.give_or_take() if p.is_accepted else NONE),
            ("Share of its bound / %", share),
            ("R / ms", lambda point: 1000 * point.response.value),
            ("95 %", lambda p: p.response.give_or_take(1000) if p.is_accepted else NONE),
            ("Service's processor time / ms", lambda point: 1000 * point.service_demand_s),
        ],
        "Processor time is that of an interaction, with the miner's; in process the clients are "
        "part of the service. 0 of n: no run was accepted, and all n are shown, but used for no "
        "finding.",
    )
