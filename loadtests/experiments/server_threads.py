"""Repeats figure 5 of study 001: response time against the number of servers m, at one rate."""

import os
from collections.abc import Sequence

from loadtests.experiments.client_server import telling
from loadtests.experiments.client_server.asked import AVERAGE
from loadtests.experiments.client_server.measuring import (
    ALONE,
    LOAD,
    Group,
    Plan,
    exponential,
    from_flights,
    measuring,
)
from loadtests.experiments.client_server.predicting import Point, points
from loadtests.experiments.client_server.systems import (
    KNOWN,
    KNOWN_SERVICE_TIME_S,
    POSITION,
    SCAN,
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

QUICK = Plan(calibration=6, alone=16, load=50, alone_s=2)
FULL = Plan(calibration=100, alone=200, load=2000, alone_s=120)
QUICK_SERVERS, FULL_SERVERS = (1, 3, 8), tuple(range(1, 9))
KNOWN_OFFERED = 2.7  # mean number of busy servers: χ from 0.9 at m = 3 to 0.34 at m = 8
CORES_SHARE = 0.65  # share of the cores; the rest is for the generator


def measure(run: Run) -> None:
    """Measure three systems at the same rate for every m."""
    rig = Rig(run)
    counts = run.choose(QUICK_SERVERS, FULL_SERVERS)
    offered = CORES_SHARE * len(os.sched_getaffinity(0))
    asked_s = KNOWN_SERVICE_TIME_S
    with measuring(run, run.choose(QUICK, FULL)) as measured:
        requests = exponential(run, asked_s)
        for rep in measured.reps:
            with measured.group(KNOWN, KNOWN_KIND, requests, rep, asked_s) as group:
                for servers in counts:
                    with rig.known(servers) as known:
                        _step(group, known, servers, counts, KNOWN_OFFERED)
        requests = from_flights(run, SYSTEMS[POSITION].drawn[AVERAGE], rig.flights)
        with rig.database(counts[0]) as database:
            for rep in measured.reps:
                with measured.group(POSITION, AVERAGE, requests, rep) as group:
                    for servers in counts:
                        database.set_workers(servers)
                        _step(group, database, servers, counts, offered)
        requests = from_flights(run, SYSTEMS[SCAN].drawn[AVERAGE], rig.flights)
        for rep in measured.reps:
            with measured.group(SCAN, AVERAGE, requests, rep) as group:
                for servers in counts:
                    with rig.service(workers=servers, answer_cache_bytes=0) as service:
                        _step(group, service, servers, counts, offered)


def _step(
    group: Group, target: Target, servers: int, counts: Sequence[int], offered: float
) -> None:
    """Measure one m. The first one begins the group, the last one ends it."""
    if servers == counts[0]:
        group.begin(target)
        group.alone(target, servers)
    group.load(target, servers, offered / group.service_s, f"m{servers}")
    if servers == counts[-1]:
        group.end(target)


def analyse(results: Results) -> Report:
    """Report the study's figure 5 for each system."""
    found = points(results)
    alone = [point for point in found if point.role == ALONE]
    loads = [point for point in found if point.role == LOAD]
    groups = list(grouped(loads, lambda point: point.system).values())
    counted = [of for one in groups if (of := accepted(one))]
    return Report(
        findings=[
            *telling.rejected_told(loads),
            telling.verdicts_told(loads),
            *(_finding(of) for of in counted),
        ],
        sections=[
            Section(
                "Figure 5",
                [*telling.unstable_told(loads)],
                [_figure(of) for of in groups],
            ),
            Section(
                "Measured and predicted",
                parts=[telling.measured_table(loads), telling.verdict_table(loads)],
            ),
            Section("Service times", parts=[telling.alone_table(alone)]),
            telling.CORRESPONDENCE,
            telling.study_section(),
        ],
        metrics=telling.metrics(found),
    )


def _figure(of: Sequence[Point]) -> Figure:
    title = f"Figure 5: {telling.title_of(of[0].system)}, λ = {of[0].rate_per_s:.3g}/s"
    counted = accepted(of)
    told = _finding(counted) if counted else telling.NONE_COUNTS
    x, y = Axis("servers m"), Axis("response time (ms)", is_logarithmic=True)
    series = telling.curves(of, [point.servers for point in of])
    return figure(title, told, x, y, series, telling.measured_table(of))


def _finding(of: Sequence[Point]) -> str:
    first, last = of[0], of[-1]
    stable = next((point for point in of if point.utilisation < 1), None)
    told = (
        f"{telling.title_of(first.system)}: {telling.told_ms(first.mean_s)} with "
        f"m = {first.servers} (χ = {first.utilisation:.2f}), "
        f"{telling.told_ms(last.mean_s)} with m = {last.servers} "
        f"(χ = {last.utilisation:.2f})"
    )
    if stable is None or stable.markov_s is None:
        return f"{told}; no m has a steady state."
    return (
        f"{told}. At m = {stable.servers}, the lowest tried with a steady state, M/M/m predicts "
        f"{telling.told_ms(stable.markov_s)}, and "
        f"{telling.told_ms(stable.mean_s)} were measured."
    )


EXPERIMENT = Experiment(
    name="server-threads",
    study="001",
    title="Response time against the number of servers",
    reproduces="figure 5",
    about=(
        "Averages arrive at one rate while the number of servers m grows from 1 to 8: processes "
        "that sleep exponential times, the thread pool of a MariaDB, the workers of our service."
    ),
    modes=(Mode.REAL,),
    measure=measure,
    analyse=analyse,
)
