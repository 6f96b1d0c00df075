"""Repeats figure 5 of study 001: response time against the number of servers m, at one rate."""

import os
from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial

from loadtests.experiments import client_server_report as report
from loadtests.experiments.client_server_measurements import LOAD, Plan, measuring
from loadtests.experiments.client_server_points import Point, points
from loadtests.experiments.client_server_systems import AVERAGE, KNOWN, POSITION, SCAN
from loadtests.grouping import grouped
from loadtests.lab.content import Figure, Report, Section
from loadtests.lab.experiment import Experiment, Run
from loadtests.lab.report.drawing import Axis
from loadtests.lab.results import Results
from loadtests.servers.mariadb import Database

QUICK = Plan(calibration=6, alone=16, load=50, alone_s=2)
FULL = Plan(calibration=100, alone=200, load=2000, alone_s=120)
QUICK_SERVERS, FULL_SERVERS = (1, 3, 8), tuple(range(1, 9))
KNOWN_OFFERED = 2.7  # mean number of busy servers: χ from 0.9 at m = 3 to 0.34 at m = 8
CORES_SHARE = 0.65  # share of the cores; the rest is for the generator


def measure(run: Run) -> None:
    """Measure three systems at the same rate for every m."""
    counts = run.choose(QUICK_SERVERS, FULL_SERVERS)
    with measuring(run, run.choose(QUICK, FULL), counts, _load) as session:
        rig = session.rig
        session.measure(KNOWN, rig.known)
        with rig.database(counts[0]) as database:
            session.measure(POSITION, partial(_with_workers, database), [AVERAGE])
        session.measure(SCAN, partial(rig.service, answer_cache_bytes=0))


def _with_workers(database: Database, workers: int) -> "nullcontext[Database]":
    database.set_workers(workers)
    return nullcontext(database)


def _load(system: str, service_s: float, servers: int) -> list[tuple[str, float]]:
    """Return the rate (1/s) that is the same for every m, by the first calibration."""
    cores = len(os.sched_getaffinity(0))
    offered = KNOWN_OFFERED if system == KNOWN else CORES_SHARE * cores
    return [(f"m{servers}", offered / service_s)]


def analyse(results: Results) -> Report:
    """Report the study's figure 5 for each system."""
    every = points(results)
    loads = [point for point in every if point.line.role == LOAD]
    systems = grouped(loads, lambda point: point.line.system).values()
    figures = Section("Figure 5", parts=list(map(_figure, systems)))
    findings = report.SENTENCES("server_threads", curves=list(systems))
    return report.report(every, findings, [figures])


def _figure(system: Sequence[Point]) -> Figure:
    title = f"Figure 5: {system[0].title}, λ = {system[0].rate_per_s:.3g}/s"
    x = Axis("servers m")
    return report.points_figure(title, "server_threads", system, x, lambda p: p.line.servers)


EXPERIMENT = Experiment(
    name="server-threads",
    study="001",
    title="Response time against the number of servers",
    reproduces="figure 5",
    about=(
        "Averages arrive at one rate while the number of servers m grows from 1 to 8: processes "
        "that sleep exponential times, the thread pool of a MariaDB, the workers of our service."
    ),
    measure=measure,
    analyse=analyse,
)
