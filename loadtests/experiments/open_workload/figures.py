"""Draws the study's figures 2 to 5 with our numbers, and the throughput of closed runs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from statistics import fmean
from typing import TypeVar

from loadtests.experiments.open_workload.comparing import (
    PUBLISHED,
    AsTheStudy,
    Steady,
    give_or_take,
)
from loadtests.experiments.open_workload.demands import Closed
from loadtests.experiments.open_workload.runs import SERVERS, OpenRun
from loadtests.generation.samples import Sample
from loadtests.grouping import grouped
from loadtests.lab.published import OPEN_WORKLOADS, UNROUNDED
from loadtests.lab.repeated import measured
from loadtests.lab.repeated import of as estimated
from loadtests.lab.report.content import Figure, Table, times
from loadtests.lab.report.drawing import Axis, Series, Shape, Source, figure
from loadtests.models.open_queue import ONE, mg1_ps
from loadtests.models.protocol import Expectation
from loadtests.models.recorded import (
    Step,
    customers_over_time,
    load_average,
    mean_customers,
    peak_customers,
)
from loadtests.models.samples import mean_of_known

REPORT_S = UNROUNDED.mean_s
SOURCES: tuple[Source, ...] = ("ours", "third", "fourth")
FOUR: tuple[Source, ...] = ("ours", "third", "second", "fourth")
ASIDE = 0.008  # share of L by which points at one load are drawn beside each other
CURVE = [number / 100 for number in range(5, 96)]
Item = TypeVar("Item")


def response(points: Sequence[Steady], short: Sequence[AsTheStudy]) -> Figure:
    """Figure 2: response times against load, with all layers. short: by the study's protocol."""
    paired = [estimated(point.paired) for point in points]
    fcfs = [ONE.steady(x, 1.0, UNROUNDED.variation).response_time_s for x in CURVE]
    shared = [mg1_ps(x, 1.0).response_time_s for x in CURVE]
    xs = [one.key.fraction for one in short]
    series = [
        Series("M/G/1, FCFS", "model", CURVE, fcfs),
        Series("M/G/1, PS", "bound", CURVE, shared),
        Series(
            "the study, published", "study", [*PUBLISHED], [*PUBLISHED.values()], shape="points"
        ),
        *_measured(points),
        measured(
            "paired estimate",
            "bound",
            [p.key.fraction + ASIDE for p in points],
            paired,
            shape="points",
        ),
        Series(
            "ours, as the study did", "second", xs, [one.measured for one in short], shape="points"
        ),
        Series(
            "M/G/1, as the study did",
            "model",
            [x - ASIDE for x in xs],
            [one.expected.mean_s for one in short],
            [one.expected.low_s for one in short],
            [one.expected.high_s for one in short],
            shape="points",
        ),
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
        _response_table(points, {one.key.fraction: one for one in short}),
    )


def _measured(points: Sequence[Steady]) -> list[Series]:
    """For each server the measured means, and what its model predicts if it is not M/G/1."""
    series = []
    by_server = grouped(points, lambda point: point.key.server)
    for (server, own), source in zip(by_server.items(), SOURCES, strict=False):
        xs = [point.key.fraction for point in own]
        raw = [estimated(point.raw) for point in own]
        series.append(measured(SERVERS[server], source, xs, raw, shape="points"))
        if own[0].queue != ONE:  # whose line is that of M/G/1
            grid = [max(xs) * step / 40 for step in range(1, 41)]
            ys = [own[-1].predicted_at(fraction) for fraction in grid]
            series.append(Series("", source, grid, ys, shape="curve"))
    return series


def _response_table(points: Sequence[Steady], short: Mapping[float, AsTheStudy]) -> Table:
    def of_short(value: Callable[[AsTheStudy], float]) -> Callable[[Steady], float | None]:
        return lambda p: (
            REPORT_S * value(short[p.key.fraction]) if p.key.fraction in short else None
        )

    return Table.of(
        "Mean response time",
        points,
        [
            ("Share of L", lambda point: f"{point.key.fraction:.2g}"),
            ("Server", lambda point: SERVERS[point.key.server]),
            ("Model / s", lambda point: point.predicted * REPORT_S),
            ("Ours, steady / s", lambda point: point.raw.estimate * REPORT_S),
            ("Paired estimate / s", lambda point: point.paired.estimate * REPORT_S),
            ("Ours, as the study did / s", of_short(lambda one: one.measured)),
            ("M/G/1, as the study did / s", of_short(lambda one: one.expected.mean_s)),
            (
                "95 % range / s",
                lambda p: (
                    range_s(short[p.key.fraction].expected) if p.key.fraction in short else None
                ),
            ),
            ("The study's / s", lambda point: times(REPORT_S, PUBLISHED.get(point.key.fraction))),
        ],
        "Times are in report seconds: R/E[S] × 40.499.",
        digits=4,
    )


def range_s(of: Expectation | None) -> str | None:
    """The range of an expected result in report seconds."""
    return f"{of.low_s * REPORT_S:.1f} to {of.high_s * REPORT_S:.1f}" if of else None


def throughput(points: Sequence[Closed]) -> Figure:
    """Throughput of closed runs against the number of customers, beside what MVA predicts."""
    series = []
    by_server = grouped(points, lambda point: point.of.server)
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
    return figure("Throughput against customers", told, x_axis, y_axis, series, closed(points))


def closed(points: Sequence[Closed]) -> Table:
    """Closed runs beside mean value analysis."""
    return Table.of(
        "Closed runs",
        points,
        [
            ("Server", lambda point: SERVERS[point.of.server]),
            ("Customers", lambda point: point.customers),
            ("Predicted X / 1/s", lambda point: point.predicted.throughput_per_s),
            ("As served / 1/s", lambda point: point.served_per_s),
            ("Measured X / 1/s", lambda point: give_or_take(point.throughput_per_s)),
            ("Predicted R / ms", lambda point: 1000 * point.predicted.response_time_s),
            ("Measured R / ms", lambda point: 1000 * point.window.mean_response_s),
            ("Verdict", lambda point: str(point.verdict)),
        ],
        "The verdict is about the throughput X as served.",
    )


# --- over the time of a run ----------------------------------------------------------------------

_STUDY = {one.fraction: one for one in OPEN_WORKLOADS}
_REPORT_TIME = Axis("time / report seconds")
_LOAD_AVERAGE = Axis("load average, 1 minute")


@dataclass(frozen=True)
class _InTurn:
    """Runs of a load, one after the other, with all times multiplied by `factor`."""

    runs: Sequence[OpenRun]
    factor: float = 1.0

    @property
    def name(self) -> str:
        return f"{self.runs[0].fraction:g} of L"

    def printed(self, name: str) -> float | None:
        """What the study printed of the load; None if it did not."""
        found: float | None = getattr(_STUDY.get(self.runs[0].fraction), name, None)
        return found

    @cached_property
    def begins_s(self) -> list[float]:
        """When each run begins, and when the last one ends."""
        lasts_s = [max(run.duration_s, *(row.done_s for row in run.rows)) for run in self.runs]
        return [self.factor * at_s for at_s in accumulate(lasts_s, initial=0.0)]

    @cached_property
    def arrivals_s(self) -> list[float]:
        both = zip(self.runs, self.begins_s, strict=False)
        return [at_s + self.factor * row.intended_s for run, at_s in both for row in run.rows]

    @cached_property
    def ends_s(self) -> list[float]:
        both = zip(self.runs, self.begins_s, strict=False)
        return [at_s + self.factor * row.done_s for run, at_s in both for row in run.rows]

    @cached_property
    def responses_s(self) -> list[float]:
        return [self.factor * time_s for run in self.runs for time_s in run.responses_s]

    @cached_property
    def steps(self) -> list[Step]:
        return customers_over_time(self.arrivals_s, self.ends_s)

    def modelled(self, name: str, source: Source, until_s: float, shape: Shape) -> Series:
        """The load average if requests in service were all that runs."""
        return _line(name, source, load_average(self.steps, until_s, self.runs[0].servers), shape)


def _line(name: str, source: Source, found: Sequence[tuple[float, float]], shape: Shape) -> Series:
    return Series(name, source, [x for x, _ in found], [y for _, y in found], shape=shape)


def over_time(runs: Sequence[OpenRun]) -> list[Figure]:
    """Figures 3, 4 and 5: the first run of the study's length at each load, in report seconds.

    Figures 3 and 4 have the lowest load and the highest.
    """
    loads = [
        _InTurn(of_load[:1], REPORT_S / of_load[0].service_time_s)
        for of_load in _by_load(runs).values()
    ]
    server = f"Server: {SERVERS[runs[0].server]}."
    ends = _ends(loads)
    return [_durations(ends, server), _customers(ends, server), _load_computed(loads, server)]


def _by_load(runs: Sequence[OpenRun]) -> dict[float, list[OpenRun]]:
    return grouped(sorted(runs, key=lambda run: run.fraction), lambda run: run.fraction)


def _ends(loads: Sequence[Item]) -> list[Item]:
    """The first and the last, which may be the same."""
    return [*loads[:1], *loads[1:][-1:]]


def _studys(name: str, loads: Sequence[_InTurn], column: str) -> list[Series]:
    """For each of these loads a level line at what the study printed for it, if it did."""
    end_s = max(one.factor * one.runs[0].duration_s for one in loads)
    known = [y for one in loads if (y := one.printed(column)) is not None]
    return [
        Series("" if at else name, "study", [0.0, end_s], [y, y], shape="steps")
        for at, y in enumerate(known)
    ]


def _durations(loads: Sequence[_InTurn], server: str) -> Figure:
    """Figure 3."""
    series = [
        Series(one.name, source, one.ends_s, one.responses_s, shape="points")
        for one, source in zip(loads, FOUR, strict=False)
    ]
    told = (
        "Figure 3 of the study: response time of each request against the time of its answer, in "
        "one run of 30 report minutes that began empty. Of the study's curves only the longest "
        f"times are known, which the dotted lines show. {server}"
    )
    table = Table.of(
        "One run at each load",
        loads,
        [
            ("Load", lambda one: one.name),
            ("Requests", lambda one: len(one.ends_s)),
            ("Longest / report s", lambda one: max(one.responses_s)),
            ("The study's longest / s", lambda one: one.printed("longest_s")),
        ],
    )
    series += _studys("the study's longest", loads, "longest_s")
    y = Axis("response time / report seconds")
    return figure("Response times over a run", told, _REPORT_TIME, y, series, table)


def _customers(loads: Sequence[_InTurn], server: str) -> Figure:
    """Figure 4."""
    series = [
        Series(
            one.name,
            source,
            [0.0, *(step.time_s for step in one.steps)],
            [0.0, *(float(step.customers) for step in one.steps)],
            shape="steps",
        )
        for one, source in zip(loads, FOUR, strict=False)
    ]
    told = (
        "Figure 4 of the study: requests in the system during the same runs. Of the study's curves "
        f"only peaks, which the dotted lines show, and means over time are known. {server}"
    )
    table = Table.of(
        "Customers in the system",
        loads,
        [
            ("Load", lambda one: one.name),
            ("At most", lambda one: peak_customers(one.steps)),
            ("Mean over time", lambda one: mean_customers(one.steps, 0.0, one.begins_s[-1])),
            ("The study's most", lambda one: one.printed("most_customers")),
            ("The study's mean", lambda one: one.printed("mean_customers")),
        ],
    )
    series += _studys("the study's peak", loads, "most_customers")
    y = Axis("requests in the system")
    return figure("Customers over a run", told, _REPORT_TIME, y, series, table)


def _load_computed(loads: Sequence[_InTurn], server: str) -> Figure:
    """Figure 5 as the load average would have been on the study's Pi."""
    lines = [
        (one, one.modelled(one.name, source, one.factor * one.runs[0].duration_s, "steps"))
        for one, source in zip(loads, FOUR, strict=False)
    ]
    told = (
        "Figure 5 of the study: the load average over a run, computed. Linux averages the number "
        "of processes at work over a minute, which no division of times shortens, and it does not "
        "count a wait that is put in for a disk. So the requests in service (one at a time) of a "
        "run at each load, with times as the study's, are averaged as Linux does; a run lasts 30 "
        f"of these minutes. The study drew 0.3 and 0.85. {server}"
    )
    columns = ("Load", "Mean over the run", "Highest", "In the long run", "The study's mean")
    rows = []
    for one, line in lines:
        values = [y for y in line.ys if y is not None]
        fraction, printed = one.runs[0].fraction, one.printed("load_average")
        rows.append((one.name, fmean(values), max(values), fraction, printed))
    table, series = Table("Load average", columns, rows), [line for _, line in lines]
    return figure("Load average over a run", told, _REPORT_TIME, _LOAD_AVERAGE, series, table)


def load(runs: Sequence[OpenRun], samples: Mapping[str, Sequence[Sample]]) -> Figure | None:
    """Figure 5 as this machine told it, with all runs of a load one after the other.

    Samples of runs against a server on another machine tell nothing of that machine, and are left
    out. None if there are no others.
    """
    told_here = [
        run for run in runs if any(one.server_cpu is not None for one in samples.get(run.run, ()))
    ]
    if not told_here:
        return None
    server = told_here[0].server
    by_load = _by_load([run for run in told_here if run.server == server])
    loads = [_InTurn(of_load) for of_load in by_load.values()]
    series = []
    for one, source in zip(_ends(loads), FOUR, strict=False):
        found = [
            (begin_s + sample.at_s, sample.load_average_1m)
            for run, begin_s, end_s in zip(one.runs, one.begins_s, one.begins_s[1:], strict=False)
            for sample in samples[run.run]
            if begin_s + sample.at_s <= end_s
        ]
        series += [
            _line(one.name, source, found, "steps"),
            one.modelled(f"model, {one.name}", source, one.begins_s[-1], "curve"),
        ]
    told = (
        "Figure 5 of the study: the load average of this machine, generator included, over the "
        "runs of a load, one after the other without the calibrations between them. It is the "
        "average of a minute, so it also tells what was before. The model counts the requests in "
        f"service alone. Server: {SERVERS[server]}."
    )

    def of(one: _InTurn) -> list[Sample]:
        return [sample for run in one.runs for sample in samples[run.run]]

    title = "Load over the runs of a load"
    table = Table.of(
        title,
        loads,
        [
            ("Load", lambda one: one.name),
            ("Runs", lambda one: len(one.runs)),
            ("Seconds", lambda one: one.begins_s[-1]),
            ("Mean load average", lambda one: fmean(of_.load_average_1m for of_ in of(one))),
            ("Server / cores", lambda one: mean_of_known(of_.server_cpu for of_ in of(one))),
            ("The study's mean", lambda one: one.printed("load_average")),
        ],
    )
    return figure(title, told, Axis("time / s"), _LOAD_AVERAGE, series, table)
