"""Reports study 001, client and server: the experiments `request-rate` and `server-threads`.

`request-rate` repeats figures 1 to 4, response time against time between arrivals with three
servers; figure 1, of requests that hardly ever wait, is of the runs alone. `server-threads` repeats
figure 5, response time against the number of servers m, at one rate. `client_server_measurements`
measures the systems, `client_server_points` predicts and judges their runs.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial

from loadtests.experiments import client_server_measurements as measuring
from loadtests.experiments.client_server_measurements import ALONE, LOAD, Plan
from loadtests.experiments.client_server_points import (
    LEAST_NEAR_SATURATION,
    NEAR_SATURATION,
    Point,
    points,
)
from loadtests.generation.schedule import KNOWN_KIND
from loadtests.grouping import grouped
from loadtests.lab import generator_check
from loadtests.lab.content import Column, Figure, Metric, Report, Section, Table, times
from loadtests.lab.experiment import Experiment, Run
from loadtests.lab.repeated import lines, measured
from loadtests.lab.report.drawing import Axis, Series, Source, figure
from loadtests.lab.results import Results
from loadtests.lab.sentences import Sentences
from loadtests.models.sample_statistics import quantile
from loadtests.servers.mariadb import Database

SENTENCES = Sentences("client_server")
NONE_COUNTS = SENTENCES.paragraph("none_counts")
NO_LOAD = "No run under load counts, so no model is judged."
RESPONSE = Axis("response time (ms)", is_logarithmic=True)

# --- request-rate --------------------------------------------------------------------------------

QUICK = Plan(calibration=6, alone=16, load=40, alone_s=2)
FULL = Plan(calibration=100, alone=200, load=1000, alone_s=120)
SERVERS = 3
QUICK_SHARES, FULL_SHARES = (0.8,), (0.1, 0.3, 0.5, 0.7, 0.8, 0.9)
FIGURES = {
    measuring.AVERAGE: "Figure 2",
    measuring.SELECT: "Figure 3",
    measuring.WRITE: "Figure 4",
    KNOWN_KIND: "What the model describes",
}
QUICK_KINDS: tuple[str, ...] = (measuring.AVERAGE,)  # of systems that are asked all three in full


def measure_rates(run: Run) -> None:
    """Measure each system and type alone, and at shares of the capacity of servers or cores."""
    loads = partial(rates, run.choose(QUICK_SHARES, FULL_SHARES), run.results)
    kinds = run.choose(QUICK_KINDS, ())
    with measuring.measuring(run, run.choose(QUICK, FULL), [SERVERS], loads) as session:
        session.measure(measuring.KNOWN, session.known)
        with session.database(SERVERS) as database:
            session.measure(measuring.POSITION, measuring.already(database))
            database.create_indexes()
            session.measure(measuring.INDEXED, measuring.already(database), kinds)
        with session.service(workers=SERVERS) as service:
            session.measure(measuring.SERVICE, measuring.already(service), kinds)
        if not run.options.quick:
            session.measure(measuring.SCAN, partial(session.service, answer_cache_bytes=0))


def rates(
    shares: Sequence[float], results: Results, system: str, service_s: float, servers: int
) -> list[tuple[str, float]]:
    """Return shares of the capacity of the servers, each with its rate (1/s).

    What needs a processor has no more servers than there are cores. If the highest rate is more
    than the generator was proven to send in this session, all are lowered in proportion.
    """
    busy = servers if system == measuring.KNOWN else min(servers, len(os.sched_getaffinity(0)))
    capacity_per_s = min(busy / service_s, _proven_per_s(results) / max(shares))
    return [(f"{share:g}", share * capacity_per_s) for share in shares]


def _proven_per_s(results: Results) -> float:
    return generator_check.limit_per_s(generator_check.last_check(results))


def analyse_rates(results: Results) -> Report:
    every = points(results)
    loads, alone = _of_role(every, LOAD), _of_role(every, ALONE)
    by_type = [point for kind in measuring.KINDS for point in alone if point.line.kind == kind]
    sections, curves = [Section("Without waiting", parts=_by_type(by_type))], []
    for kind, number in FIGURES.items():
        groups = _by_system(every, kind)
        capped = _capped(kind, loads, _proven_per_s(results)) if kind != KNOWN_KIND else []
        figures = [rate_figure(number, system) for system in groups]
        sections.append(Section(f"{number}: {kind}", capped, figures))
        curves += [points for points in groups if len(points) > 1]
    findings = SENTENCES("request_rate", curves=curves)
    findings += SENTENCES("query_type", points=by_type)
    return report(every, findings, sections)


def _by_type(alone: Sequence[Point]) -> list[Figure]:
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
    caption, table = SENTENCES.paragraph("by_type"), measured_table(alone)
    return [figure("Figure 1: each type of request", caption, RESPONSE, Axis(""), drawn, table)]


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
    return SENTENCES("capped", titles=titles, limit_per_s=limit_per_s)


def rate_figure(number: str, system: Sequence[Point]) -> Figure:
    """Draw response times of a system against the time between arrivals."""
    x = Axis("mean time between arrivals (ms)", is_logarithmic=True)
    title = f"{number}: {system[0].name}"
    return _points_figure(title, system, x, lambda p: 1000 / p.rate_per_s)


REQUEST_RATE = Experiment.described(
    "request-rate",
    "001",
    measure_rates,
    analyse_rates,
    has_loads=True,
)

# --- server-threads ------------------------------------------------------------------------------

QUICK_THREADS = Plan(calibration=6, alone=16, load=50, alone_s=2)
FULL_THREADS = Plan(calibration=100, alone=200, load=2000, alone_s=120)
QUICK_SERVERS, FULL_SERVERS = (1, 3, 8), tuple(range(1, 9))
KNOWN_OFFERED = 2.7  # mean number of busy servers: χ from 0.9 at m = 3 to 0.34 at m = 8
CORES_SHARE = 0.65  # share of the cores; the rest is for the generator


def measure_threads(run: Run) -> None:
    """Measure three systems at the same rate for every m."""
    counts = run.choose(QUICK_SERVERS, FULL_SERVERS)
    plan = run.choose(QUICK_THREADS, FULL_THREADS)
    with measuring.measuring(run, plan, counts, _threads_load) as session:
        session.measure(measuring.KNOWN, session.known)
        with session.database(counts[0]) as database:
            resized = partial(_with_workers, database)
            session.measure(measuring.POSITION, resized, [measuring.AVERAGE])
        session.measure(measuring.SCAN, partial(session.service, answer_cache_bytes=0))


def _with_workers(database: Database, workers: int) -> "nullcontext[Database]":
    database.set_workers(workers)
    return nullcontext(database)


def _threads_load(system: str, service_s: float, servers: int) -> list[tuple[str, float]]:
    """Return the rate (1/s) that is the same for every m, by the first calibration."""
    cores = len(os.sched_getaffinity(0))
    offered = KNOWN_OFFERED if system == measuring.KNOWN else CORES_SHARE * cores
    return [(f"m{servers}", offered / service_s)]


def analyse_threads(results: Results) -> Report:
    every = points(results)
    systems = grouped(_of_role(every, LOAD), lambda point: point.line.system).values()
    figures = Section("Figure 5", parts=list(map(_threads_figure, systems)))
    return report(every, SENTENCES("server_threads", curves=list(systems)), [figures])


def _threads_figure(system: Sequence[Point]) -> Figure:
    title = f"Figure 5: {system[0].title}, λ = {system[0].rate_per_s:.3g}/s"
    x = Axis("servers m")
    return _points_figure(title, system, x, lambda p: p.line.servers)


SERVER_THREADS = Experiment.described(
    "server-threads",
    "001",
    measure_threads,
    analyse_threads,
    has_loads=True,
)

EXPERIMENTS = {made.name: made for made in (REQUEST_RATE, SERVER_THREADS)}

# --- both reports --------------------------------------------------------------------------------


def report(points: Sequence[Point], findings: Sequence[str], figures: Sequence[Section]) -> Report:
    """Make a report of the study, in which these findings and figures come first."""
    alone, loads = _of_role(points, ALONE), _of_role(points, LOAD)
    unstable = SENTENCES("unstable", points=[point for point in loads if point.utilisation >= 1])
    verdicts = [Section("Verdicts", unstable, [_verdict_table(loads)])] if loads else []
    failure = "" if loads else NO_LOAD if alone else NONE_COUNTS
    beginning = SENTENCES("beginning", loads=loads) if loads else [failure]
    return Report(
        findings=[*beginning, *findings],
        sections=[
            *figures,
            *verdicts,
            Section("Service times", parts=[_alone_table(alone)]),
            Section("What corresponds to what", SENTENCES("correspondence")),
        ],
        metrics=metrics(points),
        failure=failure,
    )


def _of_role(points: Sequence[Point], role: str) -> list[Point]:
    return [point for point in points if point.line.role == role]


def _ms(heading: str, time_s: Callable[[Point], float | None]) -> Column[Point]:
    return heading, lambda point: times(1e3, time_s(point))


def measured_table(points: Sequence[Point]) -> Table:
    """Make a table with a row for each point: its measurements and the models' predictions."""
    return Table.from_items(
        "Measured and predicted",
        points,
        [
            ("System", lambda point: point.title),
            ("Type", lambda point: point.line.kind),
            ("m", lambda point: point.line.servers),
            _ms("1/λ (ms)", lambda point: 1 / point.rate_per_s),
            ("χ", lambda point: point.utilisation),
            ("Runs", lambda point: len(point.runs)),
            ("R measured (ms)", lambda point: point.response.times(1e3)),
            _ms("95 % of R", lambda p: quantile([t for r in p.runs for t in r.responses_s], 0.95)),
            _ms("M/M/m (ms)", lambda point: point.steady_s()),
            _ms("M/G/m (ms)", lambda point: point.steady_s(point.alone.cv)),
        ],
        SENTENCES.paragraph("measured_note"),
    )


def _verdict_table(points: Sequence[Point]) -> Table:
    return Table.from_items(
        "Verdicts",
        points,
        [
            ("Run", lambda point: point.line.run),
            ("χ", lambda point: point.utilisation),
            _ms("Replayed: m servers (ms)", lambda point: point.queued.mean_s),
            ("Measured − replayed", lambda point: point.queued.difference.times(1e3)),
            ("Verdict", lambda point: str(point.queued.verdict)),
        ],
        SENTENCES.paragraph("verdicts_note", near=NEAR_SATURATION, least=LEAST_NEAR_SATURATION),
    )


def _alone_table(alone: Sequence[Point]) -> Table:
    """Make a table with a row for each system and request type: service times and their growth."""

    def coefficient(heading: str, at: int) -> Column[Point]:
        return _ms(heading, lambda p: line[at] if at < len(line := p.alone.line_s) else None)

    return Table.from_items(
        "Service times, alone",
        alone,
        [
            ("System", lambda point: point.title),
            ("Type", lambda point: point.line.kind),
            ("E[S] (ms)", lambda point: point.service.times(1e3)),
            ("cv", lambda point: point.alone.cv),
            coefficient("Line at 0 (ms)", 0),
            coefficient("+ ms/1000 rows", 1),
            coefficient("+ ms/1000 rows skipped", 2),
            ("Explained by the line", lambda point: point.alone.r2),
        ],
        SENTENCES.paragraph("alone_note"),
    )


def _points_figure(
    title: str, points: Sequence[Point], x: Axis, at: Callable[[Point], float]
) -> Figure:
    """Draw response times along `x`, where a point is `at`, with the table of its points."""
    caption = SENTENCES.paragraph("curve")
    return figure(title, caption, x, RESPONSE, curves(points, at), measured_table(points))


def curves(points: Sequence[Point], at: Callable[[Point], float]) -> list[Series]:
    """Return what was measured, models and replays (ms); with a gap where one has no result."""
    models: Mapping[str, tuple[Source, Callable[[Point], float | None]]] = {
        "M/M/m, the study's model": ("model", lambda p: p.steady_s()),
        "M/G/m, measured cv": ("second", lambda p: p.steady_s(p.alone.cv)),
        "replay, m servers": ("third", lambda p: p.queued.mean_s),
    }
    series = lines({"measured": points}, {"measured": "ours"}, at, lambda p: p.response, 1e3)
    for name, (source, time_s) in models.items():
        ys = [times(1e3, time_s(point)) for point in points]
        if any(ys):
            series.append(Series(name, source, list(map(at, points)), ys))
    return series


def metrics(points: Sequence[Point]) -> list[Metric]:
    """Return the results of points: E[S], R, and the paired difference of m servers."""
    results = []
    for point in points:
        line = point.line
        response = Metric.of_amount(f"response_time_mean[{line.run}]", point.response, "s")
        if line.role == ALONE:
            name = f"service_time_mean[{line.system},{line.kind}]"
            results += [Metric.of_amount(name, point.service, "s"), response]
        else:
            difference = point.queued.difference
            ends = (difference.low, difference.high) if point.decides else (None, None)
            name = f"paired_difference[{line.run}]"
            results += [response, Metric(name, difference.estimate, "s", *ends)]
    return results
