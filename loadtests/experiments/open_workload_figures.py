"""Draws the study's figures 2 to 5 with our numbers, closed runs, and where gaps come from.

A gap is between measured and predicted response time at a load; the prediction is that of the
formula, with mean and variance of the calibrations alone.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from random import Random
from statistics import fmean

from loadtests.experiments.open_workload_comparison import PUBLISHED, AsTheStudy, AtLoad, Steady
from loadtests.experiments.open_workload_demands import Closed
from loadtests.experiments.open_workload_loads import SERVERS, OpenRun
from loadtests.grouping import grouped
from loadtests.lab.content import Cell, Column, Figure, Section, Table, times
from loadtests.lab.gaps import waterfall
from loadtests.lab.published import OPEN_WORKLOADS, UNROUNDED
from loadtests.lab.repeated import measured
from loadtests.lab.repeated import of as estimated
from loadtests.lab.report.drawing import NO_TABLE, Axis, Series, Shape, Source, figure
from loadtests.lab.sentences import Sentences
from loadtests.models import recorded
from loadtests.models.gap_ledger import Calibrated, Model, Recorded, account, ledger
from loadtests.models.open_queue import ONE, mg1_ps
from loadtests.models.protocol import Expectation

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
    shared = [mg1_ps(x, 1.0).response_time_s for x in CURVE]
    paired = [estimated(point.paired) for point in points]
    beside = [point.key.fraction + ASIDE for point in points]
    xs, expected = [one.key.fraction for one in short], [one.expected for one in short]
    formula, *seen = layers(points, "M/G/1, FCFS")
    series = [
        formula,
        Series("M/G/1, PS", "bound", CURVE, shared),
        *seen,
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
    table = _response_table(points, {one.key.fraction: one for one in short})
    return against_load(SENTENCES.one("response"), series, table)


def against_load(words: str, series: Sequence[Series], table: Table = NO_TABLE) -> Figure:
    """A figure of response times against load, of those series that have points."""
    x = Axis("arrival rate as a share of L")
    y = Axis("mean response time / E[S]", limits=(0, 12))
    there = [one for one in series if len(one.xs)]
    return figure("Response time against load", words, x, y, there, table)


def layers(points: Sequence[Steady], name: str) -> list[Series]:
    """The formula of one worker under this name, what the study printed, and what was measured.

    Of a server that is not M/G/1 there is what its model predicts, too.
    """
    fcfs = [ONE.steady(x, 1.0, UNROUNDED.variation).response_time_s for x in CURVE]
    theirs = [*PUBLISHED], [*PUBLISHED.values()]
    series = [
        Series(name, "model", CURVE, fcfs),
        Series("the study, published", "study", *theirs, shape="points"),
    ]
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
        name = "" if series[1:] else "mean value analysis"
        series.append(Series(name, source, xs, predicted, shape="curve"))
    x_axis, y_axis = Axis("customers N"), Axis("throughput X / 1/s", limits=(0, None))
    told = SENTENCES.one("throughput")
    return figure("Throughput against customers", told, x_axis, y_axis, series, table)


# --- over the time of a run ----------------------------------------------------------------------

_STUDY = {one.fraction: one for one in OPEN_WORKLOADS}
_FOUR: tuple[Source, ...] = ("ours", "third", "second", "fourth")
Line = list[tuple[float, float]]  # times and values


@dataclass(frozen=True)
class _Course:
    """The first run of the study's length at a load, in report seconds."""

    run: OpenRun

    @property
    def name(self) -> str:
        return f"{self.run.fraction:g} of L"

    def printed(self, name: str) -> float | None:
        """What the study printed of the load; None if it did not."""
        found: float | None = getattr(_STUDY.get(self.run.fraction), name, None)
        return found

    @property
    def duration_s(self) -> float:
        """Its length, without what is answered later."""
        return REPORT_S / self.run.service_time_s * self.run.duration_s

    @cached_property
    def stays_s(self) -> Line:
        """When each request arrives, and when it has its answer."""
        factor = REPORT_S / self.run.service_time_s
        return [(factor * row.intended_s, factor * row.done_s) for row in self.run.rows]

    @property
    def responses_s(self) -> Line:
        """When each request has its answer, and how long it took."""
        return [(end_s, end_s - at_s) for at_s, end_s in self.stays_s]

    @cached_property
    def steps(self) -> list[recorded.Step]:
        """The requests in the system."""
        arrivals_s, ends_s = zip(*self.stays_s, strict=True)
        return recorded.customers_over_time(arrivals_s, ends_s)

    @property
    def mean_customers(self) -> float:
        """Their mean over the time until the last answer."""
        until_s = max(self.duration_s, *(end_s for _, end_s in self.stays_s))
        return recorded.mean_customers(self.steps, 0.0, until_s)

    @cached_property
    def load_average(self) -> Line:
        """The load average if requests in service were all that runs."""
        return recorded.load_average(self.steps, self.duration_s, self.run.servers)


def over_time(runs: Sequence[OpenRun]) -> list[Figure]:
    """Figures 3, 4 and 5. Figures 3 and 4 have the lowest load and the highest.

    Figure 5 is computed: as the load average would have been on the study's Pi.
    """
    by_load = grouped(sorted(runs, key=lambda run: run.fraction), lambda run: run.fraction)
    loads = [_Course(of[0]) for of in by_load.values()]
    ends = loads[:1] + loads[1:][-1:]
    return [
        _over_time(
            "Response times over a run",
            "durations",
            "response time / report seconds",
            ends,
            ("points", lambda one: one.responses_s),
            [
                ("Requests", lambda one: len(one.stays_s)),
                ("Longest / report s", lambda one: max(s for _, s in one.responses_s)),
                ("The study's longest / s", lambda one: one.printed("longest_s")),
            ],
            ("the study's longest", "longest_s"),
        ),
        _over_time(
            "Customers over a run",
            "customers",
            "requests in the system",
            ends,
            (
                "steps",
                lambda one: [(0.0, 0.0), *((s.time_s, float(s.customers)) for s in one.steps)],
            ),
            [
                ("At most", lambda one: recorded.peak_customers(one.steps)),
                ("Mean over time", lambda one: one.mean_customers),
                ("The study's most", lambda one: one.printed("most_customers")),
                ("The study's mean", lambda one: one.printed("mean_customers")),
            ],
            ("the study's peak", "most_customers"),
        ),
        _over_time(
            "Load average over a run",
            "load_computed",
            "load average, 1 minute",
            loads,
            ("steps", lambda one: one.load_average),
            [
                ("Mean over the run", lambda one: fmean(y for _, y in one.load_average)),
                ("Highest", lambda one: max(y for _, y in one.load_average)),
                ("In the long run", lambda one: one.run.fraction),
                ("The study's mean", lambda one: one.printed("load_average")),
            ],
        ),
    ]


def _over_time(
    title: str,
    part: str,
    y: str,
    loads: Sequence[_Course],
    drawn: tuple[Shape, Callable[[_Course], Line]],
    columns: Sequence[Column[_Course]],
    printed: tuple[str, str] = ("", ""),
) -> Figure:
    """A figure with a line for each load, and a row in its table.

    part: of the sentences. drawn: the shape of lines, and what they have of each load. printed: the
    name of level lines at what the study printed, and the column that has it.
    """
    (shape, of), (name, column) = drawn, printed
    series = []
    for load, source in zip(loads, _FOUR, strict=False):
        xs, ys = ([pair[at] for pair in of(load)] for at in (0, 1))
        series.append(Series(load.name, source, xs, ys, shape=shape))
    end_s = max(load.duration_s for load in loads)
    for level in [level for load in loads if (level := load.printed(column)) is not None]:
        series.append(Series(name, "study", [0.0, end_s], [level, level], shape="steps"))
        name = ""
    table = Table.of(title, loads, [("Load", lambda load: load.name), *columns])
    words = SENTENCES.one(part, server=SERVERS[loads[0].run.server])
    return figure(title, words, Axis("time / report seconds"), Axis(y), series, table)


# --- gaps ----------------------------------------------------------------------------------------


def gap_section(points: Sequence[Steady], told: Sequence[str]) -> Section:
    """A waterfall for each load of the steady state."""
    return Section("Where the gaps come from", told, [_gap_figure(point) for point in points])


def _gap_figure(point: Steady) -> Figure:
    accounts, predicted_s = [], []
    for run in point.runs:
        known = _calibrated(run, point.cv)
        predicted_s.append(run.predicted_s(point.cv))
        model = Model(run.rate_per_s, predicted_s[-1], run.queue.replayed_s, run.servers)
        random = Random(run.run)  # noqa: S311  no secrets
        accounts.append(account(_recorded(run, known), known, model, random))
    found = ledger(accounts, [run.unit for run in point.runs])
    return waterfall(f"Gap at {point.key.told}", found, fmean(predicted_s))


def _recorded(run: OpenRun, known: Calibrated) -> Recorded:
    """The run, with the server's own times if it told them, else with those of the calibration."""
    own_s = run.served_s
    return Recorded(
        [row.intended_s for row in run.rows],
        [row.sent_s for row in run.rows],
        [row.done_s for row in run.rows],
        own_s or [(1 + (known.drift or 0.0) / 2) * time_s for time_s in next(run.drawn_s())],
        run.warm_up,
        is_told=own_s is not None,
    )


def _calibrated(run: OpenRun, cv: float) -> Calibrated:
    before_s, after_s = (
        [row.service_s for row in rows if row.service_s is not None]
        for rows in (run.before, run.after)
    )
    drift = None
    if before_s:
        drift = (fmean(after_s) - fmean(before_s)) / run.busy_s if after_s else 0.0
    return Calibrated(run.service_time_s, (cv * run.busy_s) ** 2, drift, run.delay_s)
