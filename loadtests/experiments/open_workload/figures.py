"""Draws the study's figures 2 to 5 with our numbers."""

from collections.abc import Mapping, Sequence

from loadtests.experiments.open_workload.comparing import (
    AsTheStudy,
    Steady,
    curve,
    published_points,
)
from loadtests.experiments.open_workload.plan import FCFS, SHARED
from loadtests.experiments.open_workload.reading import OpenRun
from loadtests.generation.samples import Sample
from loadtests.lab.published import OPEN_WORKLOADS, UNROUNDED
from loadtests.lab.report.content import Figure, Table
from loadtests.lab.report.drawing import Axis, Series, Source, drawn
from loadtests.models.curves import load_average
from loadtests.models.recorded import customers_over_time, mean_customers, peak_customers

REPORT_S = UNROUNDED.mean_s
TWO: tuple[Source, Source] = ("ours", "study")
CURVE = [number / 100 for number in range(5, 96)]
LOAD = Axis("arrival rate as a share of L")


def response_figure(points: Sequence[Steady], of_study: Sequence[AsTheStudy]) -> Figure:
    """Figure 2: response times against load, with all layers."""
    fcfs, shared = curve(CURVE, UNROUNDED.variation)
    published = published_points()
    ours = [point for point in points if point.server == FCFS]
    threads = [point for point in points if point.server == SHARED]
    series = [
        Series("M/G/1, FCFS", "model", CURVE, fcfs),
        Series("M/G/1, PS", "bound", CURVE, shared),
        Series("the study, published", "study", *_columns(published), shape="points"),
        _measured("ours, one worker", "ours", ours),
        _measured("ours, threads", "third", threads),
        Series(
            "ours, as the study did",
            "second",
            [point.fraction for point in of_study],
            [point.mean for point in of_study],
            shape="points",
        ),
    ]
    svg = drawn(
        LOAD,
        Axis("mean response time / E[S]", limits=(0, 12)),
        [one for one in series if len(one.xs)],
    )
    told = (
        "Figure 2 of the study: mean response time against load. Lines are formulas for the steady "
        "state; vertical strokes are 95 % intervals over replications."
    )
    return Figure("Response time against load", svg, told, _response_table(points, of_study))


def _columns(pairs: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [x for x, _ in pairs], [y for _, y in pairs]


def _measured(name: str, source: Source, points: Sequence[Steady]) -> Series:
    return Series(
        name,
        source,
        [point.fraction for point in points],
        [point.raw.estimate for point in points],
        [point.raw.low for point in points],
        [point.raw.high for point in points],
        shape="points",
    )


def _response_table(points: Sequence[Steady], of_study: Sequence[AsTheStudy]) -> Table:
    published = {one.fraction: one for one in OPEN_WORKLOADS}
    steady = {point.fraction: point for point in points if point.server == FCFS}
    short = {point.fraction: point for point in of_study}
    fractions = sorted({*steady, *short, *published})
    rows = []
    for fraction in fractions:
        theirs = published.get(fraction)
        fcfs, shared = curve([fraction], UNROUNDED.variation)
        ours, brief = steady.get(fraction), short.get(fraction)
        rows.append(
            (
                f"{fraction:g}",
                theirs.tested_s if theirs else None,
                fcfs[0] * REPORT_S,
                shared[0] * REPORT_S,
                ours.raw.estimate * REPORT_S if ours else None,
                brief.mean * REPORT_S if brief else None,
            )
        )
    columns = (
        *("Share of L", "The study's / s", "M/G/1 / s", "M/G/1-PS / s"),
        *("Ours, steady / s", "Ours, as the study did / s"),
    )
    note = "Times are in report seconds: R/E[S] × 40.499. Ours is one worker, in order of arrival."
    return Table("Mean response time", columns, rows, note, digits=4)


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
    svg = drawn(Axis("time / report seconds"), Axis("response time / report seconds"), series)
    rows = [
        (name, len(run.rows), max(_report_time(run, value) for value in run.responses_s))
        for name, run in both.items()
    ]
    table = Table("One run at each load", ("Load", "Requests", "Longest / report s"), rows)
    return Figure("Response times over a run", svg, told, table)


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
    svg = drawn(Axis("time / report seconds"), Axis("requests in the system"), series)
    table = Table("Customers in the system", ("Load", "At most", "Mean over time"), rows)
    return Figure("Customers over a run", svg, told, table)


def load_figure(
    runs: Sequence[OpenRun], samples: Mapping[str, Sequence[Sample]], *, is_real: bool
) -> Figure | None:
    """Figure 5: the load average in real time, or the requests in service if waits are injected.

    None if no run on one worker was sampled.
    """
    sampled = [run for run in runs if run.server == FCFS and samples.get(run.name)]
    if not sampled:
        return None
    longest = {run.fraction: run for run in sorted(sampled, key=lambda run: run.duration_s)}
    low, high = longest[min(longest)], longest[max(longest)]
    series = []
    for run, source in zip((low, high), TWO, strict=True):
        of_run = samples[run.name]
        ys = [
            sample.load_average_1m if is_real else float(min(sample.in_flight, 1))
            for sample in of_run
        ]
        xs = [sample.at_s for sample in of_run]
        series.append(Series(f"{run.fraction:g} of L", source, xs, ys, shape="steps"))
    if is_real:
        series.append(_modelled_load(high))
    what = "load average, 1 minute" if is_real else "requests in service"
    told = (
        "Figure 5 of the study: the load average of the machine over a run."
        if is_real
        else "Requests in service, in place of figure 5. A load average cannot be shown here: its "
        "time constant is a fixed minute, and the kernel does not count waits as load."
    )
    rows = [
        (f"{run.fraction:g} of L", len(samples[run.name]), _cpu(samples[run.name]))
        for run in (low, high)
    ]
    table = Table("Processor time over the run", ("Load", "Samples", "Server (cores)"), rows)
    svg = drawn(Axis("time / s"), Axis(what), series)
    return Figure("Load over a run", svg, told, table)


def _modelled_load(run: OpenRun) -> Series:
    steps = customers_over_time(run.arrivals_s, [row.done_s for row in run.rows])
    modelled = load_average(steps, run.duration_s)
    xs, ys = [one.time_s for one in modelled], [one.value for one in modelled]
    return Series(f"model, {run.fraction:g} of L", "model", xs, ys)


def _cpu(samples: Sequence[Sample]) -> float | None:
    known = [sample.server_cpu for sample in samples if sample.server_cpu is not None]
    return sum(known) / len(known) if known else None
