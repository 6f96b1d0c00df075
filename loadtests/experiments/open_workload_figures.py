"""Draws the study's figures 2 to 5 with our numbers, and the throughput of closed runs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from statistics import fmean

from loadtests.experiments.open_workload_comparison import PUBLISHED, AsTheStudy, AtLoad, Steady
from loadtests.experiments.open_workload_demands import Closed
from loadtests.experiments.open_workload_loads import SERVERS, OpenRun
from loadtests.grouping import grouped
from loadtests.lab.content import Cell, Column, Figure, Table, times
from loadtests.lab.published import OPEN_WORKLOADS, UNROUNDED
from loadtests.lab.repeated import measured
from loadtests.lab.repeated import of as estimated
from loadtests.lab.report.drawing import Axis, Series, Shape, Source, figure
from loadtests.lab.sentences import Sentences
from loadtests.machine_samples import Sample
from loadtests.models import recorded
from loadtests.models.open_queue import ONE, mg1_ps
from loadtests.models.protocol import Expectation
from loadtests.models.sample_statistics import mean_of_known

SENTENCES = Sentences("open_workload")
REPORT_S = UNROUNDED.mean_s
SOURCES: tuple[Source, ...] = ("ours", "third", "fourth")
ASIDE = 0.008  # share of L by which points at one load are drawn beside each other
CURVE = [number / 100 for number in range(5, 96)]
REPORT_SECONDS = "Times are in report seconds: R/E[S] × 40.499."
LOAD: Sequence[Column[AtLoad]] = [
    ("Share of L", lambda point: f"{point.key.fraction:.2g}"),
    ("Server", lambda point: SERVERS[point.key.server]),
]


def response(points: Sequence[Steady], short: Sequence[AsTheStudy]) -> Figure:
    """Figure 2: response times against load, with all layers. short: by the study's protocol."""
    fcfs = [ONE.steady(x, 1.0, UNROUNDED.variation).response_time_s for x in CURVE]
    shared = [mg1_ps(x, 1.0).response_time_s for x in CURVE]
    paired = [estimated(point.paired) for point in points]
    beside = [point.key.fraction + ASIDE for point in points]
    xs, expected = [one.key.fraction for one in short], [one.expected for one in short]
    series = [
        Series("M/G/1, FCFS", "model", CURVE, fcfs),
        Series("M/G/1, PS", "bound", CURVE, shared),
        Series(
            "the study, published", "study", [*PUBLISHED], [*PUBLISHED.values()], shape="points"
        ),
        *_measured(points),
        measured("paired estimate", "bound", beside, paired, shape="points"),
        Series("ours, as the study did", "second", xs, [one.mean for one in short], shape="points"),
        Series(
            "M/G/1, as the study did",
            "model",
            [x - ASIDE for x in xs],
            [one.mean_s for one in expected],
            [one.low_s for one in expected],
            [one.high_s for one in expected],
            shape="points",
        ),
    ]
    return figure(
        "Response time against load",
        SENTENCES.one("response"),
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
        if own[0].runs[0].queue != ONE:  # whose line is that of M/G/1
            grid = [max(xs) * step / 40 for step in range(1, 41)]
            series.append(
                Series("", source, grid, [*map(own[-1].predicted_at, grid)], shape="curve")
            )
    return series


def _response_table(points: Sequence[Steady], short: Mapping[float, AsTheStudy]) -> Table:
    def of_short(cell: Callable[[AsTheStudy], Cell]) -> Callable[[Steady], Cell]:
        return lambda p: cell(short[p.key.fraction]) if p.key.fraction in short else None

    return Table.of(
        "Mean response time",
        points,
        [
            *LOAD,
            ("Model / s", lambda point: point.predicted * REPORT_S),
            ("Ours, steady / s", lambda point: point.raw.estimate * REPORT_S),
            ("Paired estimate / s", lambda point: point.paired.estimate * REPORT_S),
            ("Ours, as the study did / s", of_short(lambda one: one.mean * REPORT_S)),
            ("M/G/1, as the study did / s", of_short(lambda one: one.expected.mean_s * REPORT_S)),
            ("95 % range / s", of_short(lambda one: range_s(one.expected))),
            ("The study's / s", lambda point: times(REPORT_S, PUBLISHED.get(point.key.fraction))),
        ],
        REPORT_SECONDS,
        digits=4,
    )


def range_s(of: Expectation | None) -> str | None:
    """The range of an expected result in report seconds."""
    return f"{of.low_s * REPORT_S:.1f} to {of.high_s * REPORT_S:.1f}" if of else None


def throughput(points: Sequence[Closed], table: Table) -> Figure:
    """Throughput of closed runs against the number of customers, beside what MVA predicts."""
    series = []
    by_server = grouped(points, lambda point: point.of.server)
    for (server, own), source in zip(by_server.items(), SOURCES, strict=False):
        xs = [float(point.customers) for point in own]
        x = [estimated(point.throughput_per_s) for point in own]
        predicted = [point.predicted.throughput_per_s for point in own]
        series.append(measured(SERVERS[server], source, xs, x, shape="points"))
        series.append(Series("", source, xs, predicted, shape="curve"))
    x_axis, y_axis = Axis("customers N"), Axis("throughput X / 1/s")
    told = SENTENCES.one("throughput")
    return figure("Throughput against customers", told, x_axis, y_axis, series, table)


# --- over the time of a run ----------------------------------------------------------------------

_STUDY = {one.fraction: one for one in OPEN_WORKLOADS}
_FOUR: tuple[Source, ...] = ("ours", "third", "second", "fourth")
_LOAD_AVERAGE = "load average, 1 minute"
Line = list[tuple[float, float]]  # times and values


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
    def stays_s(self) -> Line:
        """When each request arrives, and when it has its answer."""
        return [
            (begin_s + self.factor * row.intended_s, begin_s + self.factor * row.done_s)
            for run, begin_s in zip(self.runs, self.begins_s, strict=False)
            for row in run.rows
        ]

    @cached_property
    def steps(self) -> list[recorded.Step]:
        """The requests in the system."""
        arrivals_s, ends_s = zip(*self.stays_s, strict=True)
        return recorded.customers_over_time(arrivals_s, ends_s)

    def modelled(self, until_s: float) -> Line:
        """The load average if requests in service were all that runs."""
        return recorded.load_average(self.steps, until_s, self.runs[0].servers)


def _by_load(runs: Sequence[OpenRun]) -> list[list[OpenRun]]:
    in_order = sorted(runs, key=lambda run: run.fraction)
    return [*grouped(in_order, lambda run: run.fraction).values()]


def _over_time(
    title: str,
    part: str,
    y: str,
    loads: Sequence[_InTurn],
    lines: Sequence[tuple[str, Shape, Callable[[_InTurn], Line]]],
    columns: Sequence[Column[_InTurn]],
    *,
    printed: tuple[str, str] = ("", ""),
    drawn: Sequence[_InTurn] = (),
    caption: str = "",
    x: str = "time / report seconds",
) -> Figure:
    """A figure with a row for each load in its table, under `caption` or the title.

    part: of the sentences. lines: of each load of `drawn` or all, each with what is before its
    name. printed: the name of level lines at what the study printed, and the column that has it.
    """
    series = []
    for one, source in zip(drawn or loads, _FOUR, strict=False):
        for name, shape, of in lines:
            xs, ys = [at_s for at_s, _ in of(one)], [value for _, value in of(one)]
            series.append(Series(f"{name}{one.name}", source, xs, ys, shape=shape))
    name, column = printed
    end_s = max(one.factor * one.runs[0].duration_s for one in loads)
    for level in [level for one in loads if (level := one.printed(column)) is not None]:
        series.append(Series(name, "study", [0.0, end_s], [level, level], shape="steps"))
        name = ""
    table = Table.of(caption or title, loads, [("Load", lambda one: one.name), *columns])
    words = SENTENCES.one(part, server=SERVERS[loads[0].runs[0].server])
    return figure(title, words, Axis(x), Axis(y), series, table)


def over_time(runs: Sequence[OpenRun]) -> list[Figure]:
    """Figures 3, 4 and 5: the first run of the study's length at each load, in report seconds.

    Figures 3 and 4 have the lowest load and the highest. Figure 5 is computed: as the load average
    would have been on the study's Pi.
    """
    loads = [_InTurn(of[:1], REPORT_S / of[0].service_time_s) for of in _by_load(runs)]
    ends = loads[:1] + loads[1:][-1:]
    return [_durations(ends), _customers(ends), _load_computed(loads)]


def _durations(loads: Sequence[_InTurn]) -> Figure:
    def responses_s(one: _InTurn) -> Line:
        return [(end_s, end_s - at_s) for at_s, end_s in one.stays_s]

    return _over_time(
        "Response times over a run",
        "durations",
        "response time / report seconds",
        loads,
        [("", "points", responses_s)],
        [
            ("Requests", lambda one: len(one.stays_s)),
            ("Longest / report s", lambda one: max(time_s for _, time_s in responses_s(one))),
            ("The study's longest / s", lambda one: one.printed("longest_s")),
        ],
        printed=("the study's longest", "longest_s"),
        caption="One run at each load",
    )


def _customers(loads: Sequence[_InTurn]) -> Figure:
    def steps(one: _InTurn) -> Line:
        return [(0.0, 0.0), *((step.time_s, float(step.customers)) for step in one.steps)]

    def mean(one: _InTurn) -> float:
        return recorded.mean_customers(one.steps, 0.0, one.begins_s[-1])

    return _over_time(
        "Customers over a run",
        "customers",
        "requests in the system",
        loads,
        [("", "steps", steps)],
        [
            ("At most", lambda one: recorded.peak_customers(one.steps)),
            ("Mean over time", mean),
            ("The study's most", lambda one: one.printed("most_customers")),
            ("The study's mean", lambda one: one.printed("mean_customers")),
        ],
        printed=("the study's peak", "most_customers"),
        caption="Customers in the system",
    )


def _load_computed(loads: Sequence[_InTurn]) -> Figure:
    def averages(one: _InTurn) -> Line:
        return one.modelled(one.factor * one.runs[0].duration_s)

    return _over_time(
        "Load average over a run",
        "load_computed",
        _LOAD_AVERAGE,
        loads,
        [("", "steps", averages)],
        [
            ("Mean over the run", lambda one: fmean(y for _, y in averages(one))),
            ("Highest", lambda one: max(y for _, y in averages(one))),
            ("In the long run", lambda one: one.runs[0].fraction),
            ("The study's mean", lambda one: one.printed("load_average")),
        ],
        caption="Load average",
    )


def load(runs: Sequence[OpenRun], samples: Mapping[str, Sequence[Sample]]) -> list[Figure]:
    """Figure 5 as this machine told it, with all runs of a load one after the other.

    Samples of runs against a server on another machine tell nothing of that machine, and are left
    out. There is no figure if there are no others.
    """
    here = [run for run in runs if any(s.server_cpu is not None for s in samples.get(run.run, ()))]
    if not here:
        return []
    loads = [_InTurn(of) for of in _by_load([run for run in here if run.server == here[0].server])]

    def of(one: _InTurn) -> list[Sample]:
        return [sample for run in one.runs for sample in samples[run.run]]

    def told(one: _InTurn) -> Line:
        return [
            (begin_s + sample.at_s, sample.load_average_1m)
            for run, begin_s, end_s in zip(one.runs, one.begins_s, one.begins_s[1:], strict=False)
            for sample in samples[run.run]
            if begin_s + sample.at_s <= end_s
        ]

    found = _over_time(
        "Load over the runs of a load",
        "load",
        _LOAD_AVERAGE,
        loads,
        [("", "steps", told), ("model, ", "curve", lambda one: one.modelled(one.begins_s[-1]))],
        [
            ("Runs", lambda one: len(one.runs)),
            ("Seconds", lambda one: one.begins_s[-1]),
            ("Mean load average", lambda one: fmean(s.load_average_1m for s in of(one))),
            ("Server / cores", lambda one: mean_of_known(s.server_cpu for s in of(one))),
            ("The study's mean", lambda one: one.printed("load_average")),
        ],
        drawn=loads[:1] + loads[1:][-1:],
        x="time / s",
    )
    return [found]
