"""Repeats figures 2 to 4 of study 001: response time against time between arrivals, m = 3."""

import os
from collections.abc import Sequence
from functools import partial

from loadtests.experiments.client_server import telling
from loadtests.experiments.client_server.measuring import LOAD, Plan, already, measuring
from loadtests.experiments.client_server.predicting import Point, points
from loadtests.experiments.client_server.systems import (
    AVERAGE,
    INDEXED,
    KNOWN,
    POSITION,
    SCAN,
    SELECT,
    SERVICE,
    WRITE,
)
from loadtests.experiments.client_server.telling import told_ms
from loadtests.generation.schedule import KNOWN_KIND
from loadtests.grouping import grouped
from loadtests.lab.content import Figure, Report, Section
from loadtests.lab.experiment import Experiment, Mode, Run
from loadtests.lab.repeated import accepted
from loadtests.lab.report.drawing import Axis
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
    plan, loads = run.choose(QUICK, FULL), partial(rates, run.choose(QUICK_SHARES, FULL_SHARES))
    kinds = run.choose(QUICK_KINDS, {})
    with measuring(run, plan, [SERVERS], loads) as measured:
        rig = measured.rig
        measured.measure(KNOWN, rig.known)
        with rig.database(SERVERS) as database:
            measured.measure(POSITION, already(database))
            database.create_indexes()
            measured.measure(INDEXED, already(database), kinds.get(INDEXED, ()))
        with rig.service(workers=SERVERS) as service:
            measured.measure(SERVICE, already(service), kinds.get(SERVICE, ()))
        if not run.options.quick:
            measured.measure(SCAN, partial(rig.service, answer_cache_bytes=0))


def rates(
    shares: Sequence[float], system: str, service_s: float, servers: int
) -> list[tuple[str, float]]:
    """Shares of the capacity of the servers, each with its rate (1/s).

    What needs a processor has no more servers than there are cores. If the highest rate is more
    than the generator can send, all are lowered in proportion.
    """
    busy = servers if system == KNOWN else min(servers, len(os.sched_getaffinity(0)))
    capacity_per_s = min(busy / service_s, MOST_PER_S / max(shares))
    return [(f"{share:g}", share * capacity_per_s) for share in shares]


def analyse(results: Results) -> Report:
    """Report the study's figures 2 to 4 for each system."""
    found = points(results)
    loads = [point for point in found if point.line.role == LOAD]
    by_kind = {kind: _by_system(found, kind) for kind in FIGURES}
    counted = [accepted(of) for systems in by_kind.values() for of in systems]
    sections = [
        Section(
            f"{number}: {kind}",
            [_capped(kind, loads)] if kind != KNOWN_KIND else [],
            [_figure(number, of) for of in by_kind[kind]],
        )
        for kind, number in FIGURES.items()
    ]
    findings = [_finding(of[0], of[-1]) for of in counted if len(of) > 1]
    return telling.report(found, findings, sections, found, telling.unstable_told(loads))


def _by_system(found: Sequence[Point], kind: str) -> list[list[Point]]:
    """The points of a type, one list for each system, by the time between arrivals."""
    of_kind = [point for point in found if point.line.kind == kind]
    by_system = grouped(of_kind, lambda point: point.line.system)
    return [sorted(of, key=lambda point: -point.rate_per_s) for of in by_system.values()]


def _capped(kind: str, loads: Sequence[Point]) -> str:
    of_kind = [point for point in loads if point.line.kind == kind]
    busy = {point.line.system for point in of_kind if point.utilisation > 0.5}
    idle = {point.line.system: point.title for point in of_kind if point.line.system not in busy}
    if not idle:
        return ""
    return (
        f"{' and '.join(idle[system] for system in sorted(idle))}: requests are so short that one "
        f"generator, which can send {MOST_PER_S:g} per second, does not make them wait; the rates "
        "end there, without a queue."
    )


def _figure(number: str, of: Sequence[Point]) -> Figure:
    told = telling.NONE_COUNTS
    if counted := accepted(of):
        busiest, last = counted[0], counted[-1]
        told = (
            f"With m = {SERVERS}, the response time is {told_ms(busiest.mean_s)} at "
            f"{_gap_ms(busiest):.3g} ms between arrivals (χ = {busiest.utilisation:.2f})"
        )
        more = f" and {told_ms(last.mean_s)} at {_gap_ms(last):.3g} ms"
        told += f"{more if last is not busiest else ''}."
    x = Axis("mean time between arrivals (ms)", is_logarithmic=True)
    return telling.points_figure(f"{number}: {of[0].name}", told, of, x, _gap_ms)


def _gap_ms(point: Point) -> float:
    return 1 / point.rate_per_s * 1e3


def _finding(busiest: Point, alone: Point) -> str:
    """A sentence with the response times at the lowest and highest rates, and the predictions."""
    markov_s = busiest.steady_s()
    said = [
        f"M/M/3 {told_ms(markov_s)}" if markov_s else "M/M/3 has no steady state",
        f"the replay {told_ms(busiest.queued.mean_s)}",
    ]
    if busiest.shared:
        said.append(f"with shared cores {told_ms(busiest.shared.mean_s)}")
    return (
        f"{busiest.name}: {told_ms(alone.mean_s)} alone, {told_ms(busiest.mean_s)} at "
        f"λ = {busiest.rate_per_s:.3g}/s (χ = {busiest.utilisation:.2f}); {', '.join(said)}."
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
