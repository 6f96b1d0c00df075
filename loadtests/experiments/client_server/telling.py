"""Makes the parts that the three reports share: tables of runs, curves, sentences."""

from collections.abc import Sequence
from math import factorial

from loadtests.experiments.client_server.predicting import Point
from loadtests.experiments.client_server.systems import SYSTEMS
from loadtests.generation.schedule import KNOWN_KIND
from loadtests.lab.report.content import Cell, Metric, Section, Table
from loadtests.lab.report.drawing import Series
from loadtests.lab.report.page import shown
from loadtests.models.estimates import TOLERANCE, Verdict
from loadtests.models.multi_server import mmm
from loadtests.models.steady_state import SteadyState, Unstable

STUDY_RATE_PER_S, STUDY_SERVERS = 5.0, 3
# The study does not print μ. At 2/s its formula has been computed by hand, and three servers are
# busy enough to show the error in equation (1).
EXAMPLE_MU_PER_S = 2.0

RATES_NOTE = (
    "R counts from the intended arrival. M/M/m and M/G/m (Allen and Cunneen) give the means of the "
    "long run; – means no steady state. The simulated range has 95 % of the means of runs as short "
    "as ours, in an m-server queue with service times drawn from those measured alone."
)
VERDICTS_NOTE = (
    f"A replay sends the same arrivals through a queue, each with the service time that it would "
    f"have had alone. A model agrees if the whole 95 % interval of measured − replayed lies within "
    f"±{TOLERANCE:.0%} of the replayed mean, and disagrees if all of it lies outside. Rejected "
    "runs get no verdict."
)


def ms(time_s: float | None) -> float | None:
    """Milliseconds."""
    return None if time_s is None else time_s * 1e3


def rejected_told(points: Sequence[Point]) -> list[str]:
    """A sentence about rejected runs, if there are any."""
    count = sum(bool(point.reasons) for point in points)
    if not count:
        return []
    told = (
        f"{count} of {len(points)} runs were rejected by rule, or use service times of a rejected "
        "run. They are shown, but no model is judged by them; the table of runs has the reasons."
    )
    return [told]


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
    """A table with a row for each run: the measurements and the models' predictions."""
    columns = (
        *("System", "Type", "m", "1/λ (ms)", "χ", "R measured (ms)", "low", "high", "95 % of R"),
        *("M/M/m (ms)", "M/G/m (ms)", "Simulated, low", "high"),
    )
    return Table("Measured and predicted", columns, [_measured(p) for p in points], RATES_NOTE)


def _measured(point: Point) -> list[Cell]:
    simulated = point.simulated
    return [
        title_of(point.system),
        point.kind,
        point.servers,
        ms(point.interarrival_s),
        point.utilisation,
        ms(point.measured.estimate),
        ms(point.measured.low),
        ms(point.measured.high),
        ms(point.p95_s),
        ms(_response_s(point.markov)),
        ms(_response_s(point.general)),
        ms(simulated.low_s),
        ms(simulated.high_s),
    ]


def _response_s(state: SteadyState | None) -> float | None:
    return None if state is None else state.response_time_s


def verdict_table(points: Sequence[Point]) -> Table:
    """A table with a row for each run: measured − replayed, for both queues."""
    columns = (
        *(
            "Run",
            "χ",
            "Replayed: m servers (ms)",
            "Measured − replayed",
            "low",
            "high",
            "m servers",
        ),
        *("Replayed: shared cores (ms)", "Measured − replayed", "low", "high", "Shared cores"),
    )
    return Table("Verdicts", columns, [_verdicts(point) for point in points], VERDICTS_NOTE)


def _verdicts(point: Point) -> list[Cell]:
    cells: list[Cell] = [point.run, point.utilisation]
    for found in (point.queued, point.shared):
        if found is None:
            cells += [None] * 5
            continue
        of = found.difference
        cells += [ms(found.mean_s), ms(of.estimate), ms(of.low), ms(of.high), found.told]
    return cells


def alone_table(alone: Sequence[Point]) -> Table:
    """A table with a row for each system and request type: service times and their growth."""
    columns = (
        *("System", "Type", "E[S] (ms)", "low", "high", "cv", "Line at 0 (ms)", "+ ms/1000 rows"),
        *("+ ms/1000 rows skipped", "Explained by the line"),
    )
    note = (
        "From the runs at a utilisation of 0.03. An exponential time has cv = 1. The line is a fit "
        "by least squares; it is left out if no known size varies or if it explains little."
    )
    return Table("Service times, alone", columns, [_alone(point) for point in alone], note)


def _alone(point: Point) -> list[Cell]:
    alone = point.alone
    line = () if alone.line is None else alone.line.coefficients_s
    grown = [ms(line[at]) if at < len(line) else None for at in range(3)]
    return [
        title_of(point.system),
        point.kind,
        ms(alone.mean_s),
        ms(alone.interval.low),
        ms(alone.interval.high),
        alone.cv,
        *grown,
        None if alone.line is None else alone.line.r2,
    ]


def curves(points: Sequence[Point], xs: Sequence[float]) -> list[Series]:
    """Curves of measurements, models and replays (ms), with a gap where a model has no result."""
    shared = [point.shared for point in points]
    found = [
        *measured_series(points, xs),
        Series(
            "M/M/m, the study's model", "model", xs, [ms(_response_s(p.markov)) for p in points]
        ),
        Series("M/G/m, measured cv", "second", xs, [ms(_response_s(p.general)) for p in points]),
        Series("replay, m servers", "third", xs, [ms(p.queued.mean_s) for p in points]),
    ]
    if any(shared):
        means = [ms(one.mean_s) if one else None for one in shared]
        found.append(Series("replay, shared cores", "fourth", xs, means))
    return found


def measured_series(points: Sequence[Point], xs: Sequence[float]) -> list[Series]:
    """The mean response times (ms) of runs that count, with intervals; rejected ones as crosses."""
    kept = [None if point.reasons else point for point in points]
    found = []
    if any(kept):
        found.append(
            Series(
                "measured",
                "ours",
                xs,
                [ms(one.measured.estimate) if one else None for one in kept],
                [ms(lowest_s(one)) if one else None for one in kept],
                [ms(one.measured.high) if one else None for one in kept],
            )
        )
    rejected = [(x, p.measured.estimate) for x, p in zip(xs, points, strict=True) if p.reasons]
    if rejected:
        crosses = [x for x, _ in rejected], [ms(time_s) for _, time_s in rejected]
        found.append(Series("measured, rejected", "bound", *crosses, shape="points"))
    return found


def lowest_s(point: Point) -> float:
    """The lower end of the mean's interval to draw, at least the lowest value, as for any mean."""
    return max(point.measured.low, min(point.responses_s))


def verdicts_told(points: Sequence[Point]) -> str:
    """A sentence with the verdicts of the runs."""
    counted = [point for point in points if not point.reasons]
    if not counted:
        return "No run counts, so no model is judged."
    queued = [point.queued.verdict for point in counted]
    shared = [point.shared.verdict for point in counted if point.shared]
    return (
        f"Runs that count: {len(counted)}. With m servers in order of arrival, {_counts(queued)}; "
        f"with cores shared by all, {_counts(shared)}."
    )


def _counts(verdicts: Sequence[Verdict | None]) -> str:
    return ", ".join(f"{verdicts.count(each)} {_WORDS[each]}" for each in Verdict)


_WORDS = {
    Verdict.AGREES: "agree",
    Verdict.DISAGREES: "disagree",
    Verdict.NOT_DECIDED: "are not decided",
}


def unstable_told(points: Sequence[Point]) -> list[str]:
    """A sentence for the runs that have no steady state, if there are any."""
    found = [point for point in points if point.utilisation >= 1]
    if not found:
        return []
    named = ", ".join(f"{p.run} (χ = {p.utilisation:.2f})" for p in found)
    told = (
        f"No steady state: in {named} more work arrives than m servers can do. The measured means "
        "depend on the length of the run; the replay and the simulated range account for that, and "
        "M/M/m has no result."
    )
    return [told]


def exponential_told(point: Point) -> str:
    """A sentence that says whether service times are exponential, by their cv."""
    alone = point.alone
    fits = "as for an exponential time" if 0.85 <= alone.cv <= 1.15 else "not exponential"
    return f"{name_of(point)}: cv = {alone.cv:.2f}, {fits}."


def response_metrics(points: Sequence[Point]) -> list[Metric]:
    """The mean response time of every run that counts."""
    return [
        Metric(
            f"response_time_mean[{point.run}]",
            point.measured.estimate,
            "s",
            point.measured.low,
            point.measured.high,
        )
        for point in points
        if not point.reasons
    ]


def service_metrics(alone: Sequence[Point]) -> list[Metric]:
    """E[S] of every request type whose run counts."""
    return [
        Metric(
            f"service_time_mean[{point.system},{point.kind}]",
            point.alone.mean_s,
            "s",
            point.alone.interval.low,
            point.alone.interval.high,
        )
        for point in alone
        if not point.reasons
    ]


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
