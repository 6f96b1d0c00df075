"""Repeats figures 1 to 4 of study 001: response time against time between arrivals, m = 3.

Figure 1, of requests that hardly ever wait, is of the runs alone.
"""

import os
from collections.abc import Sequence
from functools import partial

from loadtests.experiments import client_server_report as report
from loadtests.experiments import client_server_systems as systems
from loadtests.experiments.client_server_measurements import ALONE, LOAD, Plan, already, measuring
from loadtests.experiments.client_server_points import Point, points
from loadtests.generation.schedule import KNOWN_KIND
from loadtests.grouping import grouped
from loadtests.lab import generator_check
from loadtests.lab.content import Figure, Report, Section, times
from loadtests.lab.experiment import Experiment, Run
from loadtests.lab.repeated import measured
from loadtests.lab.report.drawing import Axis, Series, figure
from loadtests.lab.results import Results

QUICK = Plan(calibration=6, alone=16, load=40, alone_s=2)
FULL = Plan(calibration=100, alone=200, load=1000, alone_s=120)
SERVERS = 3
QUICK_SHARES, FULL_SHARES = (0.8,), (0.1, 0.3, 0.5, 0.7, 0.8, 0.9)
FIGURES = {
    systems.AVERAGE: "Figure 2",
    systems.SELECT: "Figure 3",
    systems.WRITE: "Figure 4",
    KNOWN_KIND: "What the model describes",
}
QUICK_KINDS: tuple[str, ...] = (systems.AVERAGE,)  # of systems that are asked all three in full


def measure(run: Run) -> None:
    """Measure each system and type alone, and at shares of the capacity of servers or cores."""
    plan = run.choose(QUICK, FULL)
    loads = partial(rates, run.choose(QUICK_SHARES, FULL_SHARES), run.results)
    kinds = run.choose(QUICK_KINDS, ())
    with measuring(run, plan, [SERVERS], loads) as session:
        rig = session.rig
        session.measure(systems.KNOWN, rig.known)
        with rig.database(SERVERS) as database:
            session.measure(systems.POSITION, already(database))
            database.create_indexes()
            session.measure(systems.INDEXED, already(database), kinds)
        with rig.service(workers=SERVERS) as service:
            session.measure(systems.SERVICE, already(service), kinds)
        if not run.options.quick:
            session.measure(systems.SCAN, partial(rig.service, answer_cache_bytes=0))


def rates(
    shares: Sequence[float], results: Results, system: str, service_s: float, servers: int
) -> list[tuple[str, float]]:
    """Return shares of the capacity of the servers, each with its rate (1/s).

    What needs a processor has no more servers than there are cores. If the highest rate is more
    than the generator was proven to send in this session, all are lowered in proportion.
    """
    busy = servers if system == systems.KNOWN else min(servers, len(os.sched_getaffinity(0)))
    capacity_per_s = min(busy / service_s, _proven_per_s(results) / max(shares))
    return [(f"{share:g}", share * capacity_per_s) for share in shares]


def _proven_per_s(results: Results) -> float:
    return generator_check.limit_per_s(generator_check.last_check(results))


def analyse(results: Results) -> Report:
    """Report the study's figures 1 to 4 for each system."""
    every = points(results)
    loads = [point for point in every if point.line.role == LOAD]
    alone = [
        p for kind in systems.KINDS for p in every if (p.line.role, p.line.kind) == (ALONE, kind)
    ]
    sections, curves = [Section("Without waiting", parts=_by_type(alone))], []
    for kind, number in FIGURES.items():
        groups = _by_system(every, kind)
        capped = _capped(kind, loads, _proven_per_s(results)) if kind != KNOWN_KIND else []
        figures = [_figure(number, system) for system in groups]
        sections.append(Section(f"{number}: {kind}", capped, figures))
        curves += [points for points in groups if len(points) > 1]
    findings = report.SENTENCES("request_rate", curves=curves)
    findings += report.SENTENCES("query_type", kinds=systems.KINDS, points=alone)
    return report.report(every, findings, sections)


def _by_type(alone: Sequence[Point]) -> list[Figure]:
    """Return figure 1, if there is a run alone."""
    if not alone:
        return []
    names = [point.name for point in alone]
    responses = [point.response for point in alone]
    modelled = [times(1e3, point.steady_s()) for point in alone]
    series = [
        measured("measured", "ours", names, responses, factor=1e3, shape="rows"),
        Series("M/M/3", "model", names, modelled, shape="rows"),
    ]
    drawn = [bars for bars in series if any(bars.ys)]
    caption = report.SENTENCES.paragraph("by_type")
    title, table = "Figure 1: each type of request", report.measured_table(alone)
    return [figure(title, caption, report.RESPONSE, Axis(""), drawn, table)]


def _by_system(points: Sequence[Point], kind: str) -> list[list[Point]]:
    """Return the points of a type, a list for each system, by the time between arrivals."""
    of_kind = [point for point in points if point.line.kind == kind]
    by_system = grouped(of_kind, lambda point: point.line.system)
    return [sorted(system, key=lambda point: -point.rate_per_s) for system in by_system.values()]


def _capped(kind: str, loads: Sequence[Point], limit_per_s: float) -> list[str]:
    """Return a sentence about the systems that the generator cannot keep busy, if there are any."""
    titles = [
        points[0].title
        for points in _by_system(loads, kind)
        if all(point.utilisation <= 0.5 for point in points)
    ]
    return report.SENTENCES("capped", titles=titles, limit_per_s=limit_per_s)


def _figure(number: str, system: Sequence[Point]) -> Figure:
    title = f"{number}: {system[0].name}"
    x = Axis("mean time between arrivals (ms)", is_logarithmic=True)
    return report.points_figure(title, "request_rate", system, x, lambda p: 1000 / p.rate_per_s)


EXPERIMENT = Experiment(
    name="request-rate",
    study="001",
    title="Response time against the request rate",
    reproduces="figures 1 to 4",
    about=(
        "Requests arrive as a Poisson process at rates from nearly 0 to the capacity of three "
        "servers. They go to a MariaDB, as in the study and with indexes, to our service, and to a "
        "server that sleeps exponential times, as the study's model assumes."
    ),
    measure=measure,
    analyse=analyse,
)
