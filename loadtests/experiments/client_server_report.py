"""Makes the parts that the three reports share: tables of runs, curves, sentences."""

from collections.abc import Callable, Mapping, Sequence

from loadtests.experiments.client_server_measurements import ALONE, LOAD
from loadtests.experiments.client_server_points import (
    LEAST_NEAR_SATURATION,
    NEAR_SATURATION,
    Point,
    Replayed,
)
from loadtests.lab.content import Cell, Column, Figure, Metric, Report, Section, Table, times
from loadtests.lab.repeated import Estimate, accepted, crosses, measured
from loadtests.lab.report.drawing import Axis, Series, Source, figure
from loadtests.lab.sentences import Sentences
from loadtests.models.sample_statistics import quantile

SERVERS = 3

SENTENCES = Sentences("client_server")
NONE_COUNTS = SENTENCES.one("none_counts")
NO_LOAD = "No load has been measured yet, so no model is judged."
RESPONSE = Axis("response time (ms)", is_logarithmic=True)


def report(
    found: Sequence[Point],
    findings: Sequence[str],
    figures: Sequence[Section],
    told: Sequence[str] = (),
) -> Report:
    """A report of the study. told: sentences beside what models predict."""
    alone, loads = ([p for p in found if p.line.role == role] for role in (ALONE, LOAD))
    nothing = NO_LOAD if accepted(found) else NONE_COUNTS
    verdicts = [verdict_table(loads)] if loads else []
    beginning = SENTENCES("beginning", made=loads or alone, loads=loads)
    return Report(
        findings=[*beginning, *findings] or [nothing],
        sections=[
            *figures,
            Section("Measured and predicted", told, [measured_table(found), *verdicts]),
            Section("Service times", parts=[alone_table(alone)]),
            Section("What corresponds to what", SENTENCES("correspondence")),
        ],
        metrics=metrics(found),
        failure="" if accepted(loads or alone) else NONE_COUNTS,
    )


def unstable_told(points: Sequence[Point]) -> list[str]:
    """A sentence for the runs that have no steady state, if there are any."""
    return SENTENCES("unstable", points=[point for point in points if point.utilisation >= 1])


def ms(heading: str, time_s: Callable[[Point], float | None]) -> Column[Point]:
    """A column of milliseconds."""
    return heading, lambda point: times(1e3, time_s(point))


def interval_ms(heading: str, of: Callable[[Point], Estimate]) -> list[Column[Point]]:
    """Three columns of milliseconds: a mean, and the ends of its interval."""
    return [
        ms(heading, lambda point: of(point).value),
        ms("low", lambda point: of(point).low),
        ms("high", lambda point: of(point).high),
    ]


def measured_table(points: Sequence[Point]) -> Table:
    """A table with a row for each point: the measurements and the models' predictions."""
    return Table.of(
        "Measured and predicted",
        points,
        [
            ("System", lambda point: point.title),
            ("Type", lambda point: point.line.kind),
            ("m", lambda point: point.line.servers),
            ms("1/λ (ms)", lambda point: 1 / point.rate_per_s),
            ("χ", lambda point: point.utilisation),
            ("Runs", lambda p: f"{len(p.runs)} of {p.made}" if p.is_accepted else "rejected"),
            *interval_ms("R measured (ms)", lambda point: point.response),
            ms("95 % of R", lambda p: quantile([t for of in p.runs for t in of.responses_s], 0.95)),
            ms("M/M/m (ms)", lambda point: point.steady_s()),
            ms("M/G/m (ms)", lambda point: point.steady_s(point.alone.cv)),
        ],
        SENTENCES.one("measured_note"),
    )


def verdict_table(points: Sequence[Point]) -> Table:
    """A table with a row for each point: measured − replayed, for both queues."""
    columns = ["Run", "χ"]
    for title, name in (("m servers", "m servers"), ("Shared cores", "shared cores")):
        columns += [f"Replayed: {name} (ms)", "Measured − replayed", "low", "high", title]
    rows = [
        [point.line.run, point.utilisation, *_judged(point.queued), *_judged(point.shared)]
        for point in points
    ]
    note = SENTENCES.one("verdicts_note", near=NEAR_SATURATION, least=LEAST_NEAR_SATURATION)
    return Table("Verdicts", columns, rows, note)


def _judged(found: Replayed | None) -> list[Cell]:
    if found is None:
        return [None] * 5
    of = found.difference
    times_s = found.mean_s, of.estimate, of.low, of.high
    return [*(1e3 * time_s for time_s in times_s), found.verdict or "rejected"]


def alone_table(alone: Sequence[Point]) -> Table:
    """A table with a row for each system and request type: service times and their growth."""

    def grown(heading: str, at: int) -> Column[Point]:
        return ms(heading, lambda p: line[at] if at < len(line := p.alone.line_s) else None)

    return Table.of(
        "Service times, alone",
        alone,
        [
            ("System", lambda point: point.title),
            ("Type", lambda point: point.line.kind),
            *interval_ms("E[S] (ms)", lambda point: point.service),
            ("cv", lambda point: point.alone.cv),
            grown("Line at 0 (ms)", 0),
            grown("+ ms/1000 rows", 1),
            grown("+ ms/1000 rows skipped", 2),
            ("Explained by the line", lambda point: point.alone.r2),
        ],
        SENTENCES.one("alone_note"),
    )


def points_figure(
    title: str, part: str, points: Sequence[Point], x: Axis, at: Callable[[Point], float]
) -> Figure:
    """A figure of response times along `x`, where a point is `at`, with the table of its points.

    part: of the sentences, about the curve of those that count.
    """
    counted = accepted(points)
    told = SENTENCES.one(part, curves=[counted]) if counted else NONE_COUNTS
    return figure(title, told, x, RESPONSE, curves(points, at), measured_table(points))


def curves(points: Sequence[Point], at: Callable[[Point], float]) -> list[Series]:
    """Measurements, with rejected ones as crosses, models and replays (ms).

    There is a gap where a model has no result. Models use the service times of a run, so there are
    none where every run was rejected.
    """
    models: Mapping[str, tuple[Source, Callable[[Point], float | None]]] = {
        "M/M/m, the study's model": ("model", lambda p: p.steady_s()),
        "M/G/m, measured cv": ("second", lambda p: p.steady_s(p.alone.cv)),
        "replay, m servers": ("third", lambda p: p.queued.mean_s),
        "replay, shared cores": ("fourth", lambda p: p.shared.mean_s if p.shared else None),
    }
    xs = [at(point) for point in points]
    kept = [point.response if point.is_accepted else None for point in points]
    found = [measured("measured", "ours", xs, kept, factor=1e3)] if any(kept) else []
    found += crosses(points, at, lambda point: 1e3 * point.mean_s)
    for name, (source, of) in models.items():
        ys = [times(1e3, of(point)) if point.is_accepted else None for point in points]
        if any(ys):
            found.append(Series(name, source, xs, ys))
    return found


def metrics(points: Sequence[Point]) -> list[Metric]:
    """Results of every point that counts: E[S], R, and the paired difference of m servers."""
    found = []
    for point in accepted(points):
        line, response, service = point.line, point.response, point.service
        if line.role == ALONE:
            name = f"service_time_mean[{line.system},{line.kind}]"
            found.append(Metric(name, service.value, "s", service.low, service.high))
        found.append(response.metric(f"response_time_mean[{line.run}]", "s"))
        if line.role != ALONE:
            of = point.queued.difference
            ends = (of.low, of.high) if point.decides else (None, None)
            found.append(Metric(f"paired_difference[{line.run}]", of.estimate, "s", *ends))
    return found
