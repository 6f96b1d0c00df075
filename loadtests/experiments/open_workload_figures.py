"""Draws the study's figures 2 to 5 with our numbers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from math import exp
from statistics import fmean

import numpy as np

from loadtests.experiments.open_workload_comparison import (
    PUBLISHED,
    AsTheStudy,
    AtLoad,
    Steady,
)
from loadtests.experiments.open_workload_loads import SENTENCES, SERVERS, Array, OpenRun
from loadtests.grouping import grouped
from loadtests.lab.content import Cell, Column, Figure, Table, times
from loadtests.lab.published import OPEN_WORKLOADS, UNROUNDED
from loadtests.lab.repeated import measured
from loadtests.lab.report.drawing import IN_TURN, NO_TABLE, Axis, Series, Shape, Source, figure
from loadtests.models.open_queue import ONE, shared
from loadtests.models.protocol import Expectation

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
    """Draw figure 2, response times against load with all layers.

    short: runs as in the study.
    """
    paired = [point.paired for point in points]
    beside = [point.key.fraction + ASIDE for point in points]
    xs, expected = [brief.key.fraction for brief in short], [brief.expected for brief in short]
    formula, *measurements = layers(points, "M/G/1, FCFS")
    series = [
        formula,
        Series("M/G/1, PS", "bound", CURVE, [shared(x, 1.0).response_time_s for x in CURVE]),
        *measurements,
        measured("paired estimate", "bound", beside, paired, shape="points"),
        Series(
            "ours, as the study did", "second", xs, [brief.mean for brief in short], shape="points"
        ),
        Series(
            "M/G/1, as the study did",
            "model",
            [x - ASIDE for x in xs],
            [results.mean_s for results in expected],
            [results.low_s for results in expected],
            [results.high_s for results in expected],
            shape="points",
        ),
    ]
    by_load = {(brief.key.server, brief.key.fraction): brief for brief in short}
    return against_load(SENTENCES.paragraph("response"), series, _response_table(points, by_load))


def against_load(caption: str, series: Sequence[Series], table: Table = NO_TABLE) -> Figure:
    """Draw response times against load, of those series that have points."""
    x = Axis("arrival rate as a share of L")
    y = Axis("mean response time / E[S]", limits=(0, 12))
    drawable = [layer for layer in series if len(layer.xs)]
    return figure("Response time against load", caption, x, y, drawable, table)


def layers(points: Sequence[Steady], name: str) -> list[Series]:
    """Return the formula of one worker under this name, the study's results, and measured ones.

    Of a server that is not M/G/1 there is what its model predicts, too.
    """
    fcfs = [ONE.steady(x, 1.0, UNROUNDED.variation).response_time_s for x in CURVE]
    published = [*PUBLISHED], [*PUBLISHED.values()]
    series = [
        Series(name, "model", CURVE, fcfs),
        Series("the study, published", "study", *published, shape="points"),
    ]
    by_server = grouped(points, lambda point: point.key.server)
    for (server, its_points), source in zip(by_server.items(), SOURCES, strict=False):
        xs = [point.key.fraction for point in its_points]
        raw = [point.raw for point in its_points]
        series.append(measured(SERVERS[server], source, xs, raw, shape="points"))
        if its_points[0].runs[0].queue != ONE:  # whose line is that of M/G/1
            grid = [max(xs) * step / 40 for step in range(1, 41)]
            ys = [*map(its_points[-1].predicted_at, grid)]
            series.append(Series("", source, grid, ys, shape="curve"))
    return series


def _response_table(
    points: Sequence[Steady], short: Mapping[tuple[str, float], AsTheStudy]
) -> Table:
    def of_short(cell: Callable[[AsTheStudy], Cell]) -> Callable[[Steady], Cell]:
        return lambda p: cell(short[k]) if (k := (p.key.server, p.key.fraction)) in short else None

    return Table.from_items(
        "Mean response time",
        points,
        [
            *LOAD,
            ("Model / s", lambda p: p.predicted * REPORT_S),
            ("Ours, steady / s", lambda p: p.raw.estimate * REPORT_S),
            ("Paired estimate / s", lambda p: p.paired.estimate * REPORT_S),
            ("Ours, as the study did / s", of_short(lambda brief: brief.mean * REPORT_S)),
            (
                "M/G/1, as the study did / s",
                of_short(lambda brief: brief.expected.mean_s * REPORT_S),
            ),
            ("95 % range / s", of_short(lambda brief: range_s(brief.expected))),
            ("The study's / s", lambda p: times(REPORT_S, PUBLISHED.get(p.key.fraction))),
        ],
        REPORT_SECONDS,
        digits=4,
    )


def range_s(expected: Expectation | None) -> str | None:
    if expected is None:
        return None
    return f"{expected.low_s * REPORT_S:.1f} to {expected.high_s * REPORT_S:.1f}"


# --- over the time of a run ----------------------------------------------------------------------

_STUDY = {row.fraction: row for row in OPEN_WORKLOADS}
Line = list[tuple[float, float]]  # times and values
LOAD_SAMPLE_S = 5.0  # the time after which Linux counts again what runs or waits to run
LOAD_TIME_CONSTANT_S = 60.0  # that of the first of its three load averages


@dataclass(frozen=True)
class Course:
    """Holds the first run of the study's length at a load, in report seconds."""

    run: OpenRun

    @property
    def name(self) -> str:
        return f"{self.run.fraction:g} of L"

    def printed(self, name: str) -> float | None:
        """Return a value that the study printed of the load; None if it did not."""
        value: float | None = getattr(_STUDY.get(self.run.fraction), name, None)
        return value

    @property
    def duration_s(self) -> float:
        """Return the length of the run, without what is answered later."""
        return REPORT_S / self.run.service_time_s * self.run.duration_s

    @cached_property
    def stays_s(self) -> tuple[Array, Array]:
        """Return when requests arrive, in order, and when each has its answer."""
        factor = REPORT_S / self.run.service_time_s
        times_s = [(row.intended_s, row.done_s) for row in self.run.rows]
        arrivals_s, ends_s = factor * np.array(times_s).T
        return arrivals_s, ends_s

    @property
    def responses_s(self) -> Line:
        """Return when each request has its answer, and its response time."""
        arrivals_s, ends_s = self.stays_s
        return _line(ends_s, ends_s - arrivals_s)

    def customers(self, at_s: Array) -> Array:
        """Return the number of requests in the system, without those that leave just then."""
        arrivals_s, ends_s = self.stays_s
        came = np.searchsorted(arrivals_s, at_s, "right")
        number: Array = came - np.searchsorted(np.sort(ends_s), at_s, "right")
        return number

    @property
    def steps(self) -> Line:
        """Return the number of requests in the system whenever it changes, from the start on."""
        at_s = np.unique(np.concatenate([[0.0], *self.stays_s]))
        return _line(at_s, self.customers(at_s))

    @property
    def mean_customers(self) -> float:
        """Return the mean number of requests in the system until the last answer."""
        arrivals_s, ends_s = self.stays_s
        return float(np.sum(ends_s - arrivals_s) / max(self.duration_s, ends_s.max()))

    @cached_property
    def load_average(self) -> Line:
        """Return the load average if requests in service were all that runs.

        Every LOAD_SAMPLE_S the average moves towards the number in service by the share
        1 − exp(−sample/time constant), as in Linux; it starts at 0.
        """
        at_s = LOAD_SAMPLE_S * np.arange(self.duration_s // LOAD_SAMPLE_S + 1)
        in_service = np.minimum(self.customers(at_s), self.run.servers)
        keep = exp(-LOAD_SAMPLE_S / LOAD_TIME_CONSTANT_S)
        moved = accumulate(in_service, lambda load, n: load * keep + n * (1 - keep), initial=0.0)
        return _line(at_s, list(moved)[1:])


def _line(xs: Sequence[float] | Array, ys: Sequence[float] | Array) -> Line:
    return [(float(x), float(y)) for x, y in zip(xs, ys, strict=True)]


def over_time(runs: Sequence[OpenRun]) -> list[Figure]:
    """Draw figures 3 and 4, of the lowest load and the highest, and figure 5.

    Figure 5 is computed: as the load average would have been on the study's Pi.
    """
    by_load = grouped(sorted(runs, key=lambda run: run.fraction), lambda run: run.fraction)
    courses = [Course(alike[0]) for alike in by_load.values()]
    ends = courses[:1] + courses[1:][-1:]
    return [
        _over_time(
            "Response times over a run",
            "durations",
            "response time / report seconds",
            ends,
            ("points", lambda course: course.responses_s),
            [
                ("Requests", lambda course: len(course.run.rows)),
                ("Longest / report s", lambda course: max(s for _, s in course.responses_s)),
                ("The study's longest / s", lambda course: course.printed("longest_s")),
            ],
            ("the study's longest", "longest_s"),
        ),
        _over_time(
            "Customers over a run",
            "customers",
            "requests in the system",
            ends,
            ("steps", lambda course: course.steps),
            [
                ("At most", lambda course: int(max(n for _, n in course.steps))),
                ("Mean over time", lambda course: course.mean_customers),
                ("The study's most", lambda course: course.printed("most_customers")),
                ("The study's mean", lambda course: course.printed("mean_customers")),
            ],
            ("the study's peak", "most_customers"),
        ),
        _over_time(
            "Load average over a run",
            "load_computed",
            "load average, 1 minute",
            courses,
            ("steps", lambda course: course.load_average),
            [
                ("Mean over the run", lambda course: fmean(y for _, y in course.load_average)),
                ("Highest", lambda course: max(y for _, y in course.load_average)),
                ("In the long run", lambda course: course.run.fraction),
                ("The study's mean", lambda course: course.printed("load_average")),
            ],
        ),
    ]


def _over_time(
    title: str,
    part: str,
    y: str,
    courses: Sequence[Course],
    drawn: tuple[Shape, Callable[[Course], Line]],
    columns: Sequence[Column[Course]],
    printed: tuple[str, str] = ("", ""),
) -> Figure:
    """Draw a line for each load, with a row in the figure's table.

    part: of the sentences. drawn: the shape of lines, and their points. printed: the name of level
    lines at what the study printed, and the column that has it.
    """
    (shape, points_of), (name, column) = drawn, printed
    series = []
    for course, source in zip(courses, IN_TURN, strict=False):
        xs, ys = zip(*points_of(course), strict=True)
        series.append(Series(course.name, source, xs, ys, shape=shape))
    end_s = max(course.duration_s for course in courses)
    for level in [level for course in courses if (level := course.printed(column)) is not None]:
        series.append(Series(name, "study", [0.0, end_s], [level, level], shape="steps"))
        name = ""
    table = Table.from_items(title, courses, [("Load", lambda course: course.name), *columns])
    caption = SENTENCES.paragraph(part, server=SERVERS[courses[0].run.server])
    return figure(title, caption, Axis("time / report seconds"), Axis(y), series, table)
