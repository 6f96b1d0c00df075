"""Draws the study's figures 2 to 5 with our numbers."""

from collections.abc import Mapping, Sequence
from statistics import fmean

from loadtests.experiments.open_workload import tables
from loadtests.experiments.open_workload.comparing import (
    AsTheStudy,
    Steady,
    curve,
    published_points,
)
from loadtests.experiments.open_workload.demands import Closed
from loadtests.experiments.open_workload.plan import SERVERS
from loadtests.experiments.open_workload.reading import OpenRun
from loadtests.experiments.open_workload.tables import REPORT_S
from loadtests.generation.samples import Sample
from loadtests.grouping import grouped
from loadtests.lab.published import UNROUNDED
from loadtests.lab.repeated import measured
from loadtests.lab.repeated import of as estimated
from loadtests.lab.report.content import Figure, Table
from loadtests.lab.report.drawing import Axis, Series, Source, figure
from loadtests.lab.report.words import times
from loadtests.models.curves import Sample as LoadSample
from loadtests.models.curves import load_average
from loadtests.models.queue import ONE
from loadtests.models.recorded import customers_over_time, mean_customers, peak_customers
from loadtests.models.samples import mean_of_known

SOURCES: tuple[Source, ...] = ("ours", "third", "fourth")
TWO: tuple[Source, Source] = ("ours", "study")
FOUR: tuple[Source, ...] = ("ours", "third", "second", "study")
CURVE = [number / 100 for number in range(5, 96)]


def response(points: Sequence[Steady], of_study: Sequence[AsTheStudy]) -> Figure:
    """Figure 2: response times against load, with all layers."""
    fcfs, shared = curve(CURVE, UNROUNDED.variation)
    series = [
        Series("M/G/1, FCFS", "model", CURVE, fcfs),
        Series("M/G/1, PS", "bound", CURVE, shared),
        _points("the study, published", "study", published_points()),
        *_measured(points),
        _points("ours, as the study did", "second", [(one.fraction, one.mean) for one in of_study]),
    ]
    told = (
        "Figure 2 of the study: mean response time against load. Lines are formulas for the steady "
        "state, dashes in the colour of a server its own; vertical strokes are 95 % intervals over "
        "calibrations."
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


def _response_table(points: Sequence[Steady], of_study: Sequence[AsTheStudy]) -> Table:
    published, mean = dict(published_points()), {one.fraction: one.mean for one in of_study}
    return Table.of(
        "Mean response time",
        points,
        [
            ("Share of L", lambda point: f"{point.fraction:.2g}"),
            ("Server", lambda point: SERVERS[point.server]),
            ("Model / s", lambda point: point.predicted * REPORT_S),
            ("Ours, steady / s", lambda point: point.raw.estimate * REPORT_S),
            ("Ours, as the study did / s", lambda p: times(REPORT_S, mean.get(p.fraction))),
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


def over_time(runs: Sequence[OpenRun]) -> list[Figure]:
    """Figures 3 and 4: one run of the study's length at the lowest and one at the highest load."""
    low = min(runs, key=lambda run: run.fraction)
    high = max(runs, key=lambda run: run.fraction)
    both: Mapping[str, OpenRun] = {f"{run.fraction:g} of L": run for run in (low, high)}
    return [_durations(both), _customers(both)]


def _report_time(run: OpenRun, time_s: float) -> float:
    return time_s / run.service_time_s * REPORT_S


def _durations(both: Mapping[str, OpenRun]) -> Figure:
    series = [
        Series(
            name,
            source,
            [_report_time(run, row.done_s) for row in run.rows],
            [_report_time(run, row.open_response_s) for row in run.rows],
            shape="points",
        )
        for (name, run), source in zip(both.items(), TWO, strict=False)
    ]
    told = (
        "Figure 3 of the study: response time of each request against the time of its answer, in "
        "one run of 30 report minutes that began empty. The study's longest were 73.75 s at 0.3 "
        "and 223.94 s at 0.85."
    )
    x, y = Axis("time / report seconds"), Axis("response time / report seconds")
    rows = [
        (name, len(run.rows), max(_report_time(run, value) for value in run.responses_s))
        for name, run in both.items()
    ]
    table = Table("One run at each load", ("Load", "Requests", "Longest / report s"), rows)
    return figure("Response times over a run", told, x, y, series, table)


def _customers(both: Mapping[str, OpenRun]) -> Figure:
    series, rows = [], []
    for (name, run), source in zip(both.items(), TWO, strict=False):
        steps = customers_over_time(run.arrivals_s, [row.done_s for row in run.rows])
        xs = [_report_time(run, step.time_s) for step in steps]
        ys: list[float | None] = [float(step.customers) for step in steps]
        series.append(Series(name, source, [0.0, *xs], [0.0, *ys], shape="steps"))
        until_s = max(run.duration_s, steps[-1].time_s)
        rows.append((name, peak_customers(steps), mean_customers(steps, 0.0, until_s)))
    told = (
        "Figure 4 of the study: requests in the system during the same runs. The study had at most "
        "2 at 0.3 and 6 at 0.85, and means over time of 0.29 and 1.92."
    )
    x, y = Axis("time / report seconds"), Axis("requests in the system")
    table = Table("Customers in the system", ("Load", "At most", "Mean over time"), rows)
    return figure("Customers over a run", told, x, y, series, table)


def load_computed(runs: Sequence[OpenRun]) -> Figure:
    """Figure 5 for runs of the study's length, as their load average would have been on its Pi."""
    of_load = {run.fraction: run for run in reversed(runs)}  # the first run at each load
    series, rows = [], []
    for fraction, source in zip(sorted(of_load), FOUR, strict=False):
        name, averages = f"{fraction:g} of L", _computed(of_load[fraction])
        ys = [one.value for one in averages]
        series.append(Series(name, source, [one.time_s for one in averages], ys))
        rows.append((name, fmean(ys), max(ys), fraction))
    told = (
        "Figure 5 of the study: the load average over a run, computed. Linux averages the number "
        "of processes at work over a minute, which no division of times shortens, and it does not "
        "count a wait that is put in for a disk. So the requests in service (one at a time) of a "
        "run at each load, with times as the study's, are averaged as Linux does; a run lasts 30 "
        "of these minutes. The study drew 0.3 and 0.85."
    )
    x, y = Axis("time / report seconds"), Axis("load average, 1 minute")
    columns = ("Load", "Mean over the run", "Highest", "In the long run")
    table = Table("Load average", columns, rows)
    return figure("Load average over a run", told, x, y, series, table)


def _computed(run: OpenRun) -> Sequence[LoadSample]:
    """The load average of a run, in report seconds."""
    arrivals_s = [_report_time(run, time_s) for time_s in run.arrivals_s]
    departures_s = [_report_time(run, row.done_s) for row in run.rows]
    steps = customers_over_time(arrivals_s, departures_s)
    return load_average(steps, _report_time(run, run.duration_s))


def load(runs: Sequence[OpenRun], samples: Mapping[str, Sequence[Sample]]) -> Figure | None:
    """Figure 5 as this machine told it, for runs in real time. None if no run was sampled."""
    sampled = [run for run in runs if samples.get(run.run)]
    sampled = [run for run in sampled if run.server == sampled[0].server]
    if not sampled:
        return None
    longest = {run.fraction: run for run in sorted(sampled, key=lambda run: run.duration_s)}
    low, high = longest[min(longest)], longest[max(longest)]
    series = []
    for run, source in zip((low, high), TWO, strict=True):
        ys = [sample.load_average_1m for sample in samples[run.run]]
        xs = [sample.at_s for sample in samples[run.run]]
        series.append(Series(f"{run.fraction:g} of L", source, xs, ys, shape="steps"))
    series.append(_modelled_load(high))
    told = (
        f"Figure 5 of the study: the load average of the machine over a run, {SERVERS[low.server]}."
        " It is the average of a minute, so it also tells what was before."
    )
    rows = [
        (
            f"{run.fraction:g} of L",
            len(samples[run.run]),
            mean_of_known(sample.server_cpu for sample in samples[run.run]),
        )
        for run in (low, high)
    ]
    table = Table("Processor time over the run", ("Load", "Samples", "Server (cores)"), rows)
    x, y = Axis("time / s"), Axis("load average, 1 minute")
    return figure("Load over a run", told, x, y, series, table)


def _modelled_load(run: OpenRun) -> Series:
    steps = customers_over_time(run.arrivals_s, [row.done_s for row in run.rows])
    modelled = load_average(steps, run.duration_s)
    xs, ys = [one.time_s for one in modelled], [one.value for one in modelled]
    return Series(f"model, {run.fraction:g} of L", "model", xs, ys)
