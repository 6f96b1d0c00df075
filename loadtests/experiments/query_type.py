"""Repeats figure 1 of study 001: the response time of each request type without waiting."""

from collections.abc import Iterator

from loadtests.experiments.client_server import systems, telling
from loadtests.experiments.client_server.asked import KINDS
from loadtests.experiments.client_server.measuring import Measuring, Plan, from_flights, measuring
from loadtests.experiments.client_server.predicting import Point, points
from loadtests.experiments.client_server.systems import (
    INDEXED,
    KEY,
    POSITION,
    SERVICE,
    SYSTEMS,
    UNINDEXED,
    Rig,
)
from loadtests.generation.run import Target
from loadtests.lab.experiment import Experiment, Mode, Run
from loadtests.lab.repeated import accepted, measured
from loadtests.lab.report.content import Figure, Report, Section, Table
from loadtests.lab.report.drawing import Axis, Series, Source, figure
from loadtests.lab.results import Results

SERVERS = telling.STUDY_SERVERS
QUICK = Plan(calibration=6, alone=16, load=0, alone_s=2)
FULL = Plan(calibration=100, alone=300, load=0, alone_s=120)


def measure(run: Run) -> None:
    """Measure every system and type at a utilisation of 0.03."""
    rig = Rig(run)
    with measuring(run, run.choose(QUICK, FULL)) as measured:
        with rig.database(SERVERS) as database:
            for system in (POSITION, KEY, UNINDEXED):
                _measure(measured, rig, database, system)
            database.create_indexes()
            _measure(measured, rig, database, INDEXED)
        with rig.service(workers=SERVERS) as service:
            _measure(measured, rig, service, SERVICE)


def _measure(measured: Measuring, rig: Rig, target: Target, system: str) -> None:
    for kind, drawn_by in SYSTEMS[system].drawn.items():
        requests = from_flights(measured.run, drawn_by, rig.flights)
        for rep in measured.reps:
            with measured.group(system, kind, requests, rep) as group:
                group.begin(target)
                group.alone(target, SERVERS)
                group.end(target)


def analyse(results: Results) -> Report:
    """Report the study's figure 1 for each type, and the distributions of service times."""
    found = points(results)
    figures = [_figure(kind, [p for p in found if p.kind == kind]) for kind in KINDS]
    return Report(
        findings=_findings(found),
        sections=[
            Section("Response times by type", parts=[one for one in figures if one]),
            Section("Measured and predicted", parts=[telling.measured_table(found)]),
            Section(
                "Is service exponential?",
                [telling.exponential_told(p) for p in accepted(found)],
                [telling.alone_table(found)],
            ),
            telling.CORRESPONDENCE,
            telling.study_section(),
        ],
        metrics=telling.metrics(found),
    )


def _figure(kind: str, found: list[Point]) -> Figure | None:
    if not found:
        return None
    table = Table.of(
        f"Response time of “{kind}”",
        found,
        [
            ("System", _name),
            ("Measured (ms)", lambda point: telling.ms(point.mean_s)),
            ("low", lambda point: telling.ms(point.response.low)),
            ("high", lambda point: telling.ms(point.response.high)),
            ("M/M/3 (ms)", lambda point: telling.ms(point.markov_s)),
        ],
    )
    marks = [_name(point).replace(", ", ",\n").replace(" (", "\n(") for point in found]

    def bars(name: str, source: Source, *, counts: bool) -> Series:
        kept = [point.response if point.is_accepted is counts else None for point in found]
        return measured(name, source, marks, kept, factor=1e3, shape="bars")

    modelled = [telling.ms(point.markov_s) if point.is_accepted else None for point in found]
    series = [
        bars("measured", "ours", counts=True),
        bars("rejected", "bound", counts=False),
        Series("M/M/3", "model", marks, modelled, shape="bars"),
    ]
    told = telling.NONE_COUNTS
    if counted := accepted(found):
        least = min(counted, key=lambda point: point.mean_s)
        told = (
            f"{telling.title_of(least.system)} is the fastest, with "
            f"{telling.told_ms(least.mean_s)}. m = {SERVERS}; requests hardly ever wait."
        )
    y = Axis("response time (ms)", is_logarithmic=True)
    drawn = [one for one in series if any(one.ys)]
    return figure(f"Figure 1, {kind}", told, Axis(""), y, drawn, table)


def _name(point: Point) -> str:
    return telling.title_of(point.system) + ("" if point.is_accepted else " (rejected)")


def _findings(found: list[Point]) -> list[str]:
    told = [*telling.rejected_told(found)]
    by = {(point.system, point.kind): point for point in accepted(found)}
    for kind in KINDS:
        answers = [
            f"{telling.title_of(system)} {telling.told_ms(by[system, kind].mean_s)}"
            for system in systems.SYSTEMS
            if (system, kind) in by
        ]
        if answers:
            told.append(f"{kind.capitalize()}: {'; '.join(answers)}.")
    told += _passed_over(by.get((POSITION, "average")))
    return told or [telling.NONE_COUNTS]


def _passed_over(point: Point | None) -> Iterator[str]:
    """A sentence about the cost of LIMIT n OFFSET k, and its effect on the distribution."""
    if point is not None and point.alone.line is not None:
        _, rows_s, passed_s = point.alone.line.coefficients_s
        yield (
            f"LIMIT n OFFSET k takes {telling.told_ms(rows_s)} for 1000 rows and "
            f"{telling.told_ms(passed_s)} for 1000 skipped rows, so service time does not grow "
            f"with n alone: its cv is {point.alone.cv:.2f}, though n is exponential to make it 1."
        )


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
    modes=(Mode.REAL,),
    measure=measure,
    analyse=analyse,
)
