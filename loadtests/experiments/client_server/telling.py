"""Makes the parts that the three reports share: tables of runs, curves, sentences."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import factorial

from loadtests.experiments.client_server.measuring import ALONE
from loadtests.experiments.client_server.predicting import (
    LEAST_NEAR_SATURATION,
    NEAR_SATURATION,
    Point,
    Replayed,
)
from loadtests.experiments.client_server.systems import SYSTEMS
from loadtests.generation.schedule import KNOWN_KIND
from loadtests.lab.repeated import accepted, measured, rejected
from loadtests.lab.report.content import Cell, Column, Metric, Section, Table, times
from loadtests.lab.report.drawing import Series, Source
from loadtests.lab.report.page import shown
from loadtests.models.estimates import TOLERANCE, Verdict
from loadtests.models.open_queue import Unstable, mmm

STUDY_RATE_PER_S, STUDY_SERVERS = 5.0, 3
# The study does not print μ. At 2/s its formula has been computed by hand, and three servers are
# busy enough to show the error in equation (1).
EXAMPLE_MU_PER_S = 2.0

RATES_NOTE = (
    "R counts from the intended arrival. M/M/m and M/G/m (Allen and Cunneen) give the means of the "
    "long run; – means no steady state. The simulated range has 95 % of the means of runs as short "
    "as ours, in an m-server queue with service times drawn from those measured alone."
)
NONE_COUNTS = "No run counts; the table of runs has the reasons."
VERDICTS_NOTE = (
    f"A replay sends the same arrivals through a queue, each with the service time that it would "
    f"have had alone. The interval of several runs is over them, each with its own calibration "
    f"(--reps); that of one is from its batches, and has the error of E[S] in it. From "
    f"χ = {NEAR_SATURATION:g} on, fewer than {LEAST_NEAR_SATURATION} runs decide nothing. A model "
    f"agrees if the whole 95 % interval of measured − replayed lies within "
    f"±{TOLERANCE:.0%} of the replayed mean, and disagrees if all of it lies outside. Rejected "
    "runs get no verdict."
)


def ms(time_s: float | None) -> float | None:
    """Milliseconds."""
    return times(1e3, time_s)


def rejected_told(points: Sequence[Point]) -> Iterator[str]:
    """A sentence about rejected runs, if there are any."""
    made = sum(point.made for point in points)
    if rejected := made - sum(len(point.runs) for point in accepted(points)):
        yield (
            f"{rejected} of {made} runs were rejected by rule, or use service times of a rejected "
            "run. They are used for no finding, and drawn as rejected; the table of runs has the "
            "reasons."
        )


def told_ms(time_s: float) -> str:
    """A time as text, in milliseconds."""
    return f"{shown(time_s * 1e3)} ms"


def title_of(system: str) -> str:
    """The title of a system in reports."""
    return SYSTEMS[system].title


def name_of(point: Point) -> str:
    """The name of a point in reports: system and request type."""
    title = title_of(point.system)
    return title if point.kind == KNOWN_KIND else f"{title}, {point.kind}"


def measured_table(points: Sequence[Point]) -> Table:
    """A table with a row for each point: the measurements and the models' predictions."""
    return Table.of(
        "Measured and predicted",
        points,
        [
            ("System", lambda point: title_of(point.system)),
            ("Type", lambda point: point.kind),
            ("m", lambda point: point.servers),
            ("1/λ (ms)", lambda point: ms(point.interarrival_s)),
            ("χ", lambda point: point.utilisation),
            ("Runs", lambda p: "rejected" if p.reasons else f"{len(p.runs)} of {p.made}"),
            ("R measured (ms)", lambda point: ms(point.mean_s)),
            ("low", lambda point: ms(point.response.low)),
            ("high", lambda point: ms(point.response.high)),
            ("95 % of R", lambda point: ms(point.p95_s)),
            ("M/M/m (ms)", lambda point: ms(point.markov_s)),
            ("M/G/m (ms)", lambda point: ms(point.general_s)),
            ("Simulated, low", lambda point: ms(point.simulated.low_s)),
            ("high", lambda point: ms(point.simulated.high_s)),
        ],
        RATES_NOTE,
    )


def verdict_table(points: Sequence[Point]) -> Table:
    """A table with a row for each point: measured − replayed, for both queues."""
    return Table.of(
        "Verdicts",
        points,
        [
            ("Run", lambda point: point.run),
            ("χ", lambda point: point.utilisation),
            *_verdicts("m servers", "m servers", lambda point: point.queued),
            *_verdicts("Shared cores", "shared cores", lambda point: point.shared),
        ],
        VERDICTS_NOTE,
    )


def _verdicts(
    title: str, name: str, queue: Callable[[Point], Replayed | None]
) -> list[Column[Point]]:
    """The columns of a queue; empty for a point that is not replayed through it."""

    def of(cell: Callable[[Replayed], Cell]) -> Callable[[Point], Cell]:
        return lambda point: cell(found) if (found := queue(point)) else None

    return [
        (f"Replayed: {name} (ms)", of(lambda found: ms(found.mean_s))),
        ("Measured − replayed", of(lambda found: ms(found.difference.estimate))),
        ("low", of(lambda found: ms(found.difference.low))),
        ("high", of(lambda found: ms(found.difference.high))),
        (title, of(lambda found: found.told)),
    ]


def alone_table(alone: Sequence[Point]) -> Table:
    """A table with a row for each system and request type: service times and their growth."""

    def grown(title: str, at: int) -> Column[Point]:
        return title, lambda p: ms(line[at]) if at < len(line := _coefficients_s(p)) else None

    return Table.of(
        "Service times, alone",
        alone,
        [
            ("System", lambda point: title_of(point.system)),
            ("Type", lambda point: point.kind),
            ("E[S] (ms)", lambda point: ms(point.service.estimate)),
            ("low", lambda point: ms(point.service.low)),
            ("high", lambda point: ms(point.service.high)),
            ("cv", lambda point: point.alone.cv),
            grown("Line at 0 (ms)", 0),
            grown("+ ms/1000 rows", 1),
            grown("+ ms/1000 rows skipped", 2),
            ("Explained by the line", lambda p: p.alone.line.r2 if p.alone.line else None),
        ],
        "From the runs at a utilisation of 0.03. An exponential time has cv = 1. The line is a fit "
        "by least squares; it is left out if no known size varies or if it explains little.",
    )


def _coefficients_s(point: Point) -> Sequence[float]:
    return point.alone.line.coefficients_s if point.alone.line else ()


def curves(points: Sequence[Point], xs: Sequence[float]) -> list[Series]:
    """Curves of measurements, models and replays (ms), with a gap where a model has no result.

    Models use the service times of a run, so there are none where every run was rejected.
    """
    models: Mapping[str, tuple[Source, Callable[[Point], float | None]]] = {
        "M/M/m, the study's model": ("model", lambda p: p.markov_s),
        "M/G/m, measured cv": ("second", lambda p: p.general_s),
        "replay, m servers": ("third", lambda p: p.queued.mean_s),
        "replay, shared cores": ("fourth", lambda p: p.shared.mean_s if p.shared else None),
    }
    found = measured_series(points, xs)
    for name, (source, of) in models.items():
        ys = [None if p.reasons else ms(of(p)) for p in points]
        if any(ys):
            found.append(Series(name, source, xs, ys))
    return found


def measured_series(points: Sequence[Point], xs: Sequence[float]) -> list[Series]:
    """The mean response times (ms) of runs that count, with intervals; rejected ones as crosses."""
    kept = [point.response if point.is_accepted else None for point in points]
    out = [(x, point) for x, point in zip(xs, points, strict=True) if point.reasons]
    return [
        *([measured("measured", "ours", xs, kept, factor=1e3)] if any(kept) else []),
        *rejected([x for x, _ in out], [1e3 * point.mean_s for _, point in out]),
    ]


def verdicts_told(points: Sequence[Point]) -> str:
    """A sentence with the verdicts of the runs."""
    found = accepted(points)
    if not found:
        return "No run counts, so no model is judged."
    queued = [point.queued.verdict for point in found]
    shared = [point.shared.verdict for point in found if point.shared]
    return (
        f"Points that count: {len(found)}. With m servers in order of arrival, {_counts(queued)}; "
        f"with cores shared by all, {_counts(shared)}."
    )


def _counts(verdicts: Sequence[Verdict | None]) -> str:
    return ", ".join(f"{verdicts.count(each)} {_WORDS[each]}" for each in Verdict)


_WORDS = {
    Verdict.AGREES: "agree",
    Verdict.DISAGREES: "disagree",
    Verdict.NOT_DECIDED: "are not decided",
}


def unstable_told(points: Sequence[Point]) -> Iterator[str]:
    """A sentence for the runs that have no steady state, if there are any."""
    found = [point for point in points if point.utilisation >= 1]
    if found:
        named = ", ".join(f"{p.run} (χ = {p.utilisation:.2f})" for p in found)
        yield (
            f"No steady state: in {named} more work arrives than m servers can do. The measured "
            "means depend on the length of the run; the replay and the simulated range account for "
            "that, and M/M/m has no result."
        )


def exponential_told(point: Point) -> str:
    """A sentence that says whether service times are exponential, by their cv."""
    alone = point.alone
    fits = "as for an exponential time" if 0.85 <= alone.cv <= 1.15 else "not exponential"
    return f"{name_of(point)}: cv = {alone.cv:.2f}, {fits}."


def metrics(points: Sequence[Point]) -> list[Metric]:
    """Results of every point that counts: E[S], R, and the paired difference of m servers."""
    found = []
    for point in accepted(points):
        if point.role == ALONE:
            of = point.service
            name = f"service_time_mean[{point.system},{point.kind}]"
            found.append(Metric(name, of.estimate, "s", of.low, of.high))
        found.append(point.response.metric(f"response_time_mean[{point.run}]", "s"))
        if point.role != ALONE:
            difference = point.queued.difference
            ends = (difference.low, difference.high) if point.queued.decides else (None, None)
            name = f"paired_difference[{point.run}]"
            found.append(Metric(name, difference.estimate, "s", *ends))
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
    try:
        found = mmm(STUDY_RATE_PER_S, 1 / EXAMPLE_MU_PER_S, servers)
    except Unstable:
        return None, None
    return found.response_time_s, printed_response_s(found.p_empty, servers)


def printed_response_s(p_empty: float, servers: int) -> float | None:
    """Equation (1) with the exponent 2m!, as printed; None if it is too large for a float."""
    offered = STUDY_RATE_PER_S / EXAMPLE_MU_PER_S
    chi = offered / servers
    try:
        waiting = chi * offered**servers / (1 - chi) ** (2 * factorial(servers)) * p_empty
    except (OverflowError, ZeroDivisionError):
        return None
    return (offered + waiting) / STUDY_RATE_PER_S
