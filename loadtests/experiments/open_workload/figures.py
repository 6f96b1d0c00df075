"""Draws the study's figure 2 with our numbers, and the throughput of closed runs."""

from collections.abc import Callable, Sequence

from loadtests.experiments.open_workload import tables
from loadtests.experiments.open_workload.comparing import (
    AsTheStudy,
    Steady,
    curve,
    published_points,
)
from loadtests.experiments.open_workload.demands import Closed
from loadtests.experiments.open_workload.plan import SERVERS
from loadtests.experiments.open_workload.tables import REPORT_S
from loadtests.grouping import grouped
from loadtests.lab.published import UNROUNDED
from loadtests.lab.repeated import measured
from loadtests.lab.repeated import of as estimated
from loadtests.lab.report.content import Figure, Table, times
from loadtests.lab.report.drawing import Axis, Series, Source, figure
from loadtests.models.open_queue import ONE

SOURCES: tuple[Source, ...] = ("ours", "third", "fourth")
ASIDE = 0.008  # share of L by which points at one load are drawn beside each other
CURVE = [number / 100 for number in range(5, 96)]


def response(points: Sequence[Steady], of_study: Sequence[AsTheStudy]) -> Figure:
    """Figure 2: response times against load, with all layers."""
    fcfs, shared = curve(CURVE, UNROUNDED.variation)
    series = [
        Series("M/G/1, FCFS", "model", CURVE, fcfs),
        Series("M/G/1, PS", "bound", CURVE, shared),
        _points("the study, published", "study", published_points()),
        *_measured(points),
        _paired(points),
        _points("ours, as the study did", "second", [(one.fraction, one.mean) for one in of_study]),
        _expected(of_study),
    ]
    told = (
        "Figure 2 of the study: mean response time against load. Lines are formulas for the steady "
        "state, dashes in the colour of a server its own; vertical strokes are 95 % intervals over "
        "calibrations. Paired estimates, to the right of what was measured, are the formula and "
        "the mean difference of each request from its replay. To the left of the short runs is "
        "what an M/G/1 queue gives in as many of them, with the range that 95 % of such "
        "experiments are in."
    )
    return figure(
        "Response time against load",
        told,
        Axis("arrival rate as a share of L"),
        Axis("mean response time / E[S]", limits=(0, 12)),
        [one for one in series if len(one.xs)],
        _response_table(points, of_study),
    )


def _points(name: str, source: Source, pairs: Sequence[tuple[float, float]]) -> Series:
    return Series(name, source, [x for x, _ in pairs], [y for _, y in pairs], shape="points")


def _measured(points: Sequence[Steady]) -> list[Series]:
    """For each server the measured means, and what its model predicts if it is not M/G/1."""
    series = []
    by_server = grouped(points, lambda point: point.server)
    for (server, own), source in zip(by_server.items(), SOURCES, strict=False):
        xs = [point.fraction for point in own]
        raw = [estimated(point.raw) for point in own]
        series.append(measured(SERVERS[server], source, xs, raw, shape="points"))
        if own[0].queue != ONE:  # whose line is that of M/G/1
            grid = [max(xs) * step / 40 for step in range(1, 41)]
            ys = [own[-1].predicted_at(fraction) for fraction in grid]
            series.append(Series("", source, grid, ys, shape="curve"))
    return series


def _paired(points: Sequence[Steady]) -> Series:
    found = [estimated(point.paired) for point in points]
    xs = [point.fraction + ASIDE for point in points]
    return measured("paired estimate", "bound", xs, found, shape="points")


def _expected(of_study: Sequence[AsTheStudy]) -> Series:
    return Series(
        "M/G/1, as the study did",
        "model",
        [one.fraction - ASIDE for one in of_study],
        [one.expected.mean_s for one in of_study],
        [one.expected.low_s for one in of_study],
        [one.expected.high_s for one in of_study],
        shape="points",
    )


def _response_table(points: Sequence[Steady], of_study: Sequence[AsTheStudy]) -> Table:
    published, short = dict(published_points()), {one.fraction: one for one in of_study}

    def of_short(value: Callable[[AsTheStudy], float]) -> Callable[[Steady], float | None]:
        return lambda p: REPORT_S * value(short[p.fraction]) if p.fraction in short else None

    def range_s(point: Steady) -> str | None:
        return tables.range_s(short[point.fraction].expected) if point.fraction in short else None

    return Table.of(
        "Mean response time",
        points,
        [
            ("Share of L", lambda point: f"{point.fraction:.2g}"),
            ("Server", lambda point: SERVERS[point.server]),
            ("Model / s", lambda point: point.predicted * REPORT_S),
            ("Ours, steady / s", lambda point: point.raw.estimate * REPORT_S),
            ("Paired estimate / s", lambda point: point.paired.estimate * REPORT_S),
            ("Ours, as the study did / s", of_short(lambda one: one.mean)),
            ("M/G/1, as the study did / s", of_short(lambda one: one.expected.mean_s)),
            ("95 % range / s", range_s),
            ("The study's / s", lambda point: times(REPORT_S, published.get(point.fraction))),
        ],
        "Times are in report seconds: R/E[S] × 40.499.",
        digits=4,
    )


def throughput(points: Sequence[Closed]) -> Figure:
    """Throughput of closed runs against the number of customers, beside what MVA predicts."""
    series = []
    by_server = grouped(points, lambda point: point.server)
    for (server, own), source in zip(by_server.items(), SOURCES, strict=False):
        xs = [float(point.customers) for point in own]
        x = [estimated(point.throughput_per_s) for point in own]
        predicted = [point.predicted.throughput_per_s for point in own]
        series.append(measured(SERVERS[server], source, xs, x, shape="points"))
        series.append(Series("", source, xs, predicted, shape="curve"))
    told = (
        "Closed runs of customers who ask again at once: measured throughput, and as dashes what "
        "mean value analysis predicts from the demands of one customer."
    )
    x_axis, y_axis = Axis("customers N"), Axis("throughput X / 1/s")
    title = "Throughput against customers"
    return figure(title, told, x_axis, y_axis, series, tables.closed(points))
