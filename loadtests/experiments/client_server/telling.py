"""Makes the parts that the three reports share: tables of runs, curves, sentences."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import factorial

from loadtests.experiments.client_server.measuring import ALONE, LOAD
from loadtests.experiments.client_server.predicting import (
    LEAST_NEAR_SATURATION,
    NEAR_SATURATION,
    Point,
    Replayed,
)
from loadtests.lab.content import Cell, Column, Figure, Metric, Report, Section, Table, shown, times
from loadtests.lab.repeated import Estimate, accepted, crosses, measured
from loadtests.lab.report.drawing import Axis, Series, Source, figure
from loadtests.models.estimates import TOLERANCE, Verdict
from loadtests.models.open_queue import Unstable, mmm
from loadtests.models.sample_statistics import quantile

STUDY_RATE_PER_S, STUDY_SERVERS = 5.0, 3
# The study does not print μ. At 2/s its formula has been computed by hand, and three servers are
# busy enough to show the error in equation (1).
EXAMPLE_MU_PER_S = 2.0

NONE_COUNTS = "No run counts; the table of runs has the reasons."
NO_LOAD = "No load has been measured yet, so no model is judged."
RESPONSE = Axis("response time (ms)", is_logarithmic=True)


def report(
    found: Sequence[Point],
    findings: Iterable[str],
    figures: Sequence[Section],
    tabled: Sequence[Point],
    told: Sequence[str] = (),
) -> Report:
    """A report of the study. tabled, told: the points and sentences beside what models predict."""
    alone, loads = ([p for p in found if p.line.role == role] for role in (ALONE, LOAD))
    judged = [verdicts_told(loads)] if loads else []
    nothing = NO_LOAD if accepted(found) else NONE_COUNTS
    verdicts = [verdict_table(loads)] if loads else []
    services = Section("Service times", parts=[alone_table(alone)])
    if not loads:
        sentences = [exponential_told(point) for point in accepted(alone)]
        services = Section("Is service exponential?", sentences, [alone_table(alone)])
    return Report(
        findings=[*rejected_told(loads or alone), *judged, *findings] or [nothing],
        sections=[
            *figures,
            Section("Measured and predicted", told, [measured_table(tabled), *verdicts]),
            services,
            CORRESPONDENCE,
            study_section(),
        ],
        metrics=metrics(found),
        failure="" if accepted(loads or alone) else NONE_COUNTS,
    )


def rejected_told(points: Sequence[Point]) -> list[str]:
    """A sentence about rejected runs, if there are any."""
    made = sum(point.made for point in points)
    rejected = made - sum(len(point.runs) for point in accepted(points))
    told = (
        f"{rejected} of {made} runs were rejected by rule, or use service times of a rejected run. "
        "They are used for no finding, and drawn as rejected; the table of runs has the reasons."
    )
    return [told] if rejected else []


def verdicts_told(points: Sequence[Point]) -> str:
    """A sentence with the verdicts of the runs."""
    found = accepted(points)
    if not found:
        return "No run counts, so no model is judged."
    queued = _counts(point.queued.verdict for point in found)
    shared = _counts(point.shared.verdict for point in found if point.shared)
    return (
        f"Points that count: {len(found)}. With m servers in order of arrival, {queued}; "
        f"with cores shared by all, {shared}."
    )


def _counts(verdicts: Iterable[Verdict | None]) -> str:
    of = Counter(verdicts)
    return (
        f"{of[Verdict.AGREES]} agree, {of[Verdict.DISAGREES]} disagree, "
        f"{of[Verdict.NOT_DECIDED]} are not decided"
    )


def unstable_told(points: Sequence[Point]) -> list[str]:
    """A sentence for the runs that have no steady state, if there are any."""
    found = [point for point in points if point.utilisation >= 1]
    named = ", ".join(f"{point.line.run} (χ = {point.utilisation:.2f})" for point in found)
    told = (
        f"No steady state: in {named} more work arrives than m servers can do. The measured means "
        "depend on the length of the run; the replay and the simulated range account for that, and "
        "M/M/m has no result."
    )
    return [told] if found else []


def exponential_told(point: Point) -> str:
    """A sentence that says whether service times are exponential, by their cv."""
    cv = point.alone.cv
    fits = "as for an exponential time" if 0.85 <= cv <= 1.15 else "not exponential"
    return f"{point.name}: cv = {cv:.2f}, {fits}."


def told_ms(time_s: float) -> str:
    """A time as text, in milliseconds."""
    return f"{shown(time_s * 1e3)} ms"


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
            ms("Simulated, low", lambda point: point.simulated.low_s),
            ms("high", lambda point: point.simulated.high_s),
        ],
        "R counts from the intended arrival. M/M/m and M/G/m (Allen and Cunneen) give the means of "
        "the long run; – means no steady state. The simulated range has 95 % of the means of runs "
        "as short as ours, in an m-server queue with service times drawn from those measured "
        "alone.",
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
    note = (
        "A replay sends the same arrivals through a queue, each with the service time that it "
        "would have had alone. The interval of several runs is over them, each with its own "
        "calibration (--reps); that of one is from its batches, and has the error of E[S] in it. "
        f"From χ = {NEAR_SATURATION:g} on, fewer than {LEAST_NEAR_SATURATION} runs decide nothing. "
        "A model agrees if the whole 95 % interval of measured − replayed lies within "
        f"±{TOLERANCE:.0%} of the replayed mean, and disagrees if all of it lies outside. Rejected "
        "runs get no verdict."
    )
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
        "From the runs at a utilisation of 0.03. An exponential time has cv = 1. The line is a fit "
        "by least squares; it is left out if no known size varies or if it explains little.",
    )


def points_figure(
    title: str, told: str, points: Sequence[Point], x: Axis, at: Callable[[Point], float]
) -> Figure:
    """A figure of response times along `x`, where a point is `at`, with the table of its points."""
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


_CORRESPONDENCE = """
The study averaged salaries over LIMIT n OFFSET k with an exponential n, selected rows in the same
way, and inserted one row, each query on a new connection. Here MariaDB gets the same queries, about
flights and over the loopback address instead of WiFi, and also by key and by question.

Our service has no numbered rows. Its average is /average_delays of a carrier over a random interval
of days of exponential length, its selection the export of the same flights as CSV, its write
POST /transactions. Selection and write do the same work as in SQL, and a write is as durable. The
average does not: it is answered from an index of days, so its time does not grow with the interval
and is not exponential; and repeated answers are kept in memory until the next block. Where cv is
not 1 the station is M/G/m: the report shows M/M/m as the study's model, M/G/m by Allen and Cunneen
with the measured cv, and a replay with the measured times.

The study set innodb_thread_concurrency, which MariaDB 10.5 ignores and 10.6 no longer has. Here m
is the number of groups of its thread pool, each with one working thread. New connections go to the
groups in turn, so there are m queues and not one; a log-in and a query are two visits to a queue,
where one may overtake another; and work that needs a processor has no more servers than there are
cores, whatever m is. For our service m is the number of worker processes. A server that sleeps
exponential times is measured for comparison: its m servers really are m servers.
"""
CORRESPONDENCE = Section(
    "What corresponds to what",
    [" ".join(paragraph.split()) for paragraph in _CORRESPONDENCE.split("\n\n")],
)

_STUDY = """
The study prints no numbers with its figures. Of their parameters only λ = 5/s (figure 5), m = 3
(the others) and χ ≈ 0.03 (figure 1) are known; the service rates are not. So its curves cannot be
drawn here. The table has results of its formula for an example of a service rate, corrected and
with the exponent as it is printed, (1 − χ)^{2m!}.
"""


def study_section() -> Section:
    """A section with results of the study's formula, corrected and as printed."""
    rate, mu = STUDY_RATE_PER_S, EXAMPLE_MU_PER_S
    table = Table(
        f"Equation (1) at λ = {rate:g}/s and μ = {mu:g}/s",
        ("m", "χ", "E[R], corrected (s)", "E[R], as printed (s)"),
        [[servers, rate / servers / mu, *_by_formula(servers)] for servers in range(1, 9)],
        "–: no steady state, or too large for a floating-point number.",
        digits=6,
    )
    return Section("The study's numbers", [" ".join(_STUDY.split())], [table])


def _by_formula(servers: int) -> tuple[float | None, float | None]:
    """E[R] by equation (1), right and with the exponent 2m! as printed; None if there is none."""
    try:
        found = mmm(STUDY_RATE_PER_S, 1 / EXAMPLE_MU_PER_S, servers)
    except Unstable:
        return None, None
    offered, chi = STUDY_RATE_PER_S / EXAMPLE_MU_PER_S, found.utilisation
    try:
        waiting = chi * offered**servers / (1 - chi) ** (2 * factorial(servers)) * found.p_empty
    except (OverflowError, ZeroDivisionError):
        return found.response_time_s, None
    return found.response_time_s, (offered + waiting) / STUDY_RATE_PER_S
