"""Makes what reports of client and server share: tables of points, curves, sentences."""

from collections.abc import Callable, Mapping, Sequence

from loadtests.experiments.client_server_measurements import ALONE, LOAD
from loadtests.experiments.client_server_points import (
    LEAST_NEAR_SATURATION,
    NEAR_SATURATION,
    Point,
)
from loadtests.lab.content import Column, Figure, Metric, Report, Section, Table, times
from loadtests.lab.repeated import lines
from loadtests.lab.report.drawing import Axis, Series, Source, figure
from loadtests.lab.sentences import Sentences
from loadtests.models.sample_statistics import quantile

SENTENCES = Sentences("client_server")
NONE_COUNTS = SENTENCES.paragraph("none_counts")
NO_LOAD = "No run under load counts, so no model is judged."
RESPONSE = Axis("response time (ms)", is_logarithmic=True)


def report(points: Sequence[Point], findings: Sequence[str], figures: Sequence[Section]) -> Report:
    """Make a report of the study, in which these findings and figures come first."""
    alone, loads = ([p for p in points if p.line.role == role] for role in (ALONE, LOAD))
    unstable = SENTENCES("unstable", points=[point for point in loads if point.utilisation >= 1])
    verdicts = [Section("Verdicts", unstable, [verdict_table(loads)])] if loads else []
    failure = "" if loads else NO_LOAD if alone else NONE_COUNTS
    beginning = SENTENCES("beginning", loads=loads) if loads else [failure]
    return Report(
        findings=[*beginning, *findings],
        sections=[
            *figures,
            *verdicts,
            Section("Service times", parts=[alone_table(alone)]),
            Section("What corresponds to what", SENTENCES("correspondence")),
        ],
        metrics=metrics(points),
        failure=failure,
    )


def ms(heading: str, time_s: Callable[[Point], float | None]) -> Column[Point]:
    """Return a column of milliseconds."""
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
            ms("1/λ (ms)", lambda point: 1 / point.rate_per_s),
            ("χ", lambda point: point.utilisation),
            ("Runs", lambda point: len(point.runs)),
            ("R measured (ms)", lambda point: point.response.times(1e3)),
            ms("95 % of R", lambda p: quantile([t for r in p.runs for t in r.responses_s], 0.95)),
            ms("M/M/m (ms)", lambda point: point.steady_s()),
            ms("M/G/m (ms)", lambda point: point.steady_s(point.alone.cv)),
        ],
        SENTENCES.paragraph("measured_note"),
    )


def verdict_table(points: Sequence[Point]) -> Table:
    """Make a table with a row for each point: measured − replayed."""
    return Table.from_items(
        "Verdicts",
        points,
        [
            ("Run", lambda point: point.line.run),
            ("χ", lambda point: point.utilisation),
            ms("Replayed: m servers (ms)", lambda point: point.queued.mean_s),
            ("Measured − replayed", lambda point: point.queued.difference.times(1e3)),
            ("Verdict", lambda point: str(point.queued.verdict)),
        ],
        SENTENCES.paragraph("verdicts_note", near=NEAR_SATURATION, least=LEAST_NEAR_SATURATION),
    )


def alone_table(alone: Sequence[Point]) -> Table:
    """Make a table with a row for each system and request type: service times and their growth."""

    def coefficient(heading: str, at: int) -> Column[Point]:
        return ms(heading, lambda p: line[at] if at < len(line := p.alone.line_s) else None)

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


def points_figure(
    title: str, part: str, points: Sequence[Point], x: Axis, at: Callable[[Point], float]
) -> Figure:
    """Draw response times along `x`, where a point is `at`, with the table of its points.

    part: of the sentences, about the curve.
    """
    caption = SENTENCES.paragraph(part, curves=[points])
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
