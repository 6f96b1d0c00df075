"""Repeats figures 2 to 4 of study 001: response time against time between arrivals, m = 3."""

import os
from collections.abc import Iterable, Sequence

from loadtests.experiments.client_server import telling
from loadtests.experiments.client_server.asked import AVERAGE, SELECT, WRITE
from loadtests.experiments.client_server.measuring import (
    ALONE,
    LOAD,
    Group,
    Measuring,
    Plan,
    exponential,
    from_flights,
    measuring,
)
from loadtests.experiments.client_server.predicting import Point, points
from loadtests.experiments.client_server.systems import (
    INDEXED,
    KNOWN,
    KNOWN_SERVICE_TIME_S,
    POSITION,
    SCAN,
    SERVICE,
    SYSTEMS,
    Rig,
)
from loadtests.generation.run import Target
from loadtests.generation.schedule import KNOWN_KIND
from loadtests.grouping import grouped
from loadtests.lab.experiment import Experiment, Mode, Run
from loadtests.lab.repeated import accepted
from loadtests.lab.report.content import Figure, Report, Section
from loadtests.lab.report.drawing import Axis, figure
from loadtests.lab.results import Results

SERVERS = telling.STUDY_SERVERS
QUICK = Plan(calibration=6, alone=16, load=40, alone_s=2)
FULL = Plan(calibration=100, alone=200, load=1000, alone_s=120)
QUICK_SHARES, FULL_SHARES = (0.8,), (0.1, 0.3, 0.5, 0.7, 0.8, 0.9)
MOST_PER_S = 150.0  # the most arrivals that the generator can send without being the bottleneck
FIGURES = {
    AVERAGE: "Figure 2",
    SELECT: "Figure 3",
    WRITE: "Figure 4",
    KNOWN_KIND: "What the model describes",
}
QUICK_KINDS = {INDEXED: (AVERAGE,), SERVICE: (AVERAGE,)}


def measure(run: Run) -> None:
    """Measure each system and type alone, and at shares of the capacity of servers or cores."""
    rig = Rig(run)
    with measuring(run, run.choose(QUICK, FULL)) as measured:
        with rig.known(SERVERS) as known:
            requests = exponential(run, KNOWN_SERVICE_TIME_S)
            for rep in measured.reps:
                with measured.group(
                    KNOWN, KNOWN_KIND, requests, rep, KNOWN_SERVICE_TIME_S
                ) as group:
                    _loads(group, known, SERVERS)
        with rig.database(SERVERS) as database:
            _measure(measured, rig, database, POSITION)
            database.create_indexes()
            _measure(measured, rig, database, INDEXED)
        with rig.service(workers=SERVERS) as service:
            _measure(measured, rig, service, SERVICE)
        if not run.options.quick:
            with rig.service(workers=SERVERS, answer_cache_bytes=0) as service:
                _measure(measured, rig, service, SCAN)


def _measure(measured: Measuring, rig: Rig, target: Target, system: str) -> None:
    kinds = tuple(SYSTEMS[system].drawn)
    if measured.run.options.quick:
        kinds = QUICK_KINDS.get(system, kinds)
    busy = min(SERVERS, len(os.sched_getaffinity(0)))
    for kind in kinds:
        requests = from_flights(measured.run, SYSTEMS[system].drawn[kind], rig.flights)
        for rep in measured.reps:
            with measured.group(system, kind, requests, rep) as group:
                _loads(group, target, busy)


def _loads(group: Group, target: Target, busy: int) -> None:
    group.begin(target)
    group.alone(target, SERVERS)
    for share, rate_per_s in rates(group.service_s, busy, quick=group.measuring.run.options.quick):
        group.load(target, SERVERS, rate_per_s, f"{share:g}")
    group.end(target)


def rates(service_s: float, busy: int, *, quick: bool) -> Iterable[tuple[float, float]]:
    """Shares of the capacity of `busy` servers, each with its rate (1/s).

    If the highest rate is more than the generator can send, all are lowered in proportion.
    """
    shares = QUICK_SHARES if quick else FULL_SHARES
    capacity_per_s = min(busy / service_s, MOST_PER_S / max(shares))
    return [(share, share * capacity_per_s) for share in shares]


def analyse(results: Results) -> Report:
    """Report the study's figures 2 to 4 for each system."""
    found = points(results)
    alone = [point for point in found if point.role == ALONE]
    loads = [point for point in found if point.role == LOAD]
    sections = [
        Section(
            f"{number}: {kind}",
            [_capped(kind, loads)] if kind != KNOWN_KIND else [],
            [_figure(number, of) for of in _by_system(found, kind)],
        )
        for kind, number in FIGURES.items()
    ]
    return Report(
        findings=_findings(found, loads),
        sections=[
            *sections,
            Section(
                "Measured and predicted",
                [*telling.unstable_told(loads)],
                [telling.measured_table(found), telling.verdict_table(loads)],
            ),
            Section("Service times", parts=[telling.alone_table(alone)]),
            telling.CORRESPONDENCE,
            telling.study_section(),
        ],
        metrics=telling.metrics(found),
    )


def _by_system(found: Sequence[Point], kind: str) -> list[list[Point]]:
    """The points of a type, one list for each system, by the time between arrivals."""
    by_system = grouped((p for p in found if p.kind == kind), lambda p: p.system)
    return [sorted(of, key=lambda p: p.interarrival_s) for of in by_system.values()]


def _capped(kind: str, loads: Sequence[Point]) -> str:
    of_kind = [point for point in loads if point.kind == kind]
    idle = {p.system for p in of_kind} - {p.system for p in of_kind if p.utilisation > 0.5}
    if not idle:
        return ""
    names = " and ".join(telling.title_of(name) for name in sorted(idle))
    return (
        f"{names}: requests are so short that one generator, which can send {MOST_PER_S:g} per "
        "second, does not make them wait; the rates end there, without a queue."
    )


def _figure(number: str, of: Sequence[Point]) -> Figure:
    xs = [point.interarrival_s * 1e3 for point in of]
    told = telling.NONE_COUNTS
    if counted := accepted(of):
        busiest, last = counted[0], counted[-1]
        told = (
            f"With m = {SERVERS}, the response time is {telling.told_ms(busiest.mean_s)} at "
            f"{1e3 * busiest.interarrival_s:.3g} ms between arrivals "
            f"(χ = {busiest.utilisation:.2f}) and {telling.told_ms(last.mean_s)} at "
            f"{1e3 * last.interarrival_s:.3g} ms."
        )
    x = Axis("mean time between arrivals (ms)", is_logarithmic=True)
    y = Axis("response time (ms)", is_logarithmic=True)
    title = f"{number}: {telling.name_of(of[0])}"
    return figure(title, told, x, y, telling.curves(of, xs), telling.measured_table(of))


def _findings(found: Sequence[Point], loads: Sequence[Point]) -> list[str]:
    groups = [
        of
        for kind in FIGURES
        for every in _by_system(found, kind)
        if len(of := accepted(every)) > 1
    ]
    return [
        *telling.rejected_told(loads),
        telling.verdicts_told(loads),
        *(_finding(of[0], of[-1]) for of in groups),
    ]


def _finding(busiest: Point, alone: Point) -> str:
    """A sentence with the response times at the lowest and highest rates, and the predictions."""
    said = [
        f"M/M/3 {telling.told_ms(busiest.markov_s)}"
        if busiest.markov_s
        else "M/M/3 has no steady state",
        f"the replay {telling.told_ms(busiest.queued.mean_s)}",
    ]
    if busiest.shared:
        said.append(f"with shared cores {telling.told_ms(busiest.shared.mean_s)}")
    return (
        f"{telling.name_of(busiest)}: "
        f"{telling.told_ms(alone.mean_s)} alone, "
        f"{telling.told_ms(busiest.mean_s)} at λ = {busiest.rate_per_s:.3g}/s "
        f"(χ = {busiest.utilisation:.2f}); {', '.join(said)}."
    )


EXPERIMENT = Experiment(
    name="request-rate",
    study="001",
    title="Response time against the request rate",
    reproduces="figures 2 to 4",
    about=(
        "Requests arrive as a Poisson process at rates from nearly 0 to the capacity of three "
        "servers, at a MariaDB as in the study and with indexes, at our service, and at a server "
        "that sleeps exponential times, as the study's model describes."
    ),
    modes=(Mode.REAL,),
    measure=measure,
    analyse=analyse,
)
