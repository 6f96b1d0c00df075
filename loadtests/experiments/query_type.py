"""Repeats figure 1 of study 001: the response time of each request type without waiting."""

from collections.abc import Sequence

from loadtests.experiments import client_server_report as report
from loadtests.experiments.client_server_measurements import Plan, already, measuring
from loadtests.experiments.client_server_points import Point, points
from loadtests.experiments.client_server_report import SERVERS, interval_ms, ms, told_ms
from loadtests.experiments.client_server_systems import (
    AVERAGE,
    INDEXED,
    KEY,
    KINDS,
    POSITION,
    SERVICE,
    UNINDEXED,
)
from loadtests.lab.content import Figure, Report, Section, Table, times
from loadtests.lab.experiment import Experiment, Run
from loadtests.lab.repeated import accepted, measured
from loadtests.lab.report.drawing import Axis, Series, figure
from loadtests.lab.results import Results

QUICK = Plan(calibration=6, load=0, alone=16, alone_s=2)
FULL = Plan(calibration=100, load=0, alone=300, alone_s=120)


def measure(run: Run) -> None:
    """Measure every system and type at a utilisation of 0.03."""
    plan = run.choose(QUICK, FULL)
    with measuring(run, plan, [SERVERS], loads=lambda *_: ()) as measured:
        with measured.rig.database(SERVERS) as database:
            for system in (POSITION, KEY, UNINDEXED):
                measured.measure(system, already(database))
            database.create_indexes()
            measured.measure(INDEXED, already(database))
        with measured.rig.service(SERVERS) as service:
            measured.measure(SERVICE, already(service))


def analyse(results: Results) -> Report:
    """Report the study's figure 1 for each type, and the distributions of service times."""
    found = points(results)
    by_kind = {kind: [p for p in found if p.line.kind == kind] for kind in KINDS}
    figures = [_figure(kind, of) for kind, of in by_kind.items() if of]
    sections = [Section("Response times by type", parts=figures)]
    counted = accepted(found)
    by_position = [
        point
        for point in counted
        if (point.line.system, point.line.kind) == (POSITION, AVERAGE) and point.alone.line_s
    ]
    findings = report.SENTENCES("query_type", kinds=KINDS, points=counted, by_position=by_position)
    return report.report(found, findings, sections, tabled=found)


def _figure(kind: str, found: Sequence[Point]) -> Figure:
    def name(point: Point) -> str:
        return point.title + ("" if point.is_accepted else " (rejected)")

    table = Table.of(
        f"Response time of “{kind}”",
        found,
        [
            ("System", name),
            *interval_ms("Measured (ms)", lambda point: point.response),
            ms("M/M/3 (ms)", lambda point: point.steady_s()),
        ],
    )
    marks = [name(point).replace(", ", ",\n").replace(" (", "\n(") for point in found]
    counts, rejected = (
        [point.response if point.is_accepted is wanted else None for point in found]
        for wanted in (True, False)
    )
    modelled = [times(1e3, p.steady_s()) if p.is_accepted else None for p in found]
    series = [
        measured("measured", "ours", marks, counts, factor=1e3, shape="bars"),
        measured("rejected", "bound", marks, rejected, factor=1e3, shape="bars"),
        Series("M/M/3", "model", marks, modelled, shape="bars"),
    ]
    told = report.NONE_COUNTS
    if counted := accepted(found):
        least = min(counted, key=lambda point: point.mean_s)
        told = (
            f"{least.title} is the fastest, with {told_ms(least.mean_s)}. m = {SERVERS}; requests "
            "hardly ever wait."
        )
    drawn = [one for one in series if any(one.ys)]
    return figure(f"Figure 1, {kind}", told, Axis(""), report.RESPONSE, drawn, table)


EXPERIMENT = Experiment(
    name="query-type",
    study="001",
    title="Response time by request type",
    reproduces="figure 1",
    about=(
        "An average, a selection and a write are requested so rarely that they never wait, from a "
        "MariaDB as in the study, from one with the indexes of a good administrator, and from our "
        "service. All have the same flights."
    ),
    measure=measure,
    analyse=analyse,
)
