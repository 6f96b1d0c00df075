"""Selftest: checks that the known server behaves on this machine as theory says.

The known server sleeps for as long as it is told, one request at a time: an M/G/1 queue if requests
arrive as a Poisson process. Half a minute of it at ρ = 0.5 must agree within 5 % with the same
arrivals replayed through such a queue. If it does not, the machine is too noisy for the other
experiments, or the lab is wrong; the rules tell which is likely.
"""

from collections.abc import Sequence
from statistics import fmean

from loadtests.experiments.client_server_measurements import POINTS, Plan, PointLine, measuring
from loadtests.experiments.client_server_points import Alone, OneRun, Point, whole_run
from loadtests.experiments.client_server_report import measured_table, metrics, verdict_table
from loadtests.experiments.client_server_systems import KNOWN, KNOWN_SERVICE_TIME_S
from loadtests.generation.calibration import WARM_UP
from loadtests.generation.rows import Row
from loadtests.generation.schedule import KNOWN_KIND, Arrival
from loadtests.lab.content import Report, Section
from loadtests.lab.experiment import Experiment, Run
from loadtests.lab.repeated import reasons_by_run, rows_by_run, that_count
from loadtests.lab.results import Results, ResultsError
from loadtests.lab.sentences import Sentences
from loadtests.models.estimates import Verdict

UTILISATION = 0.5
BEFORE = f"{KNOWN}-{KNOWN_KIND}-before"  # begins the name of its calibration
MOST_HANDLER_EXCESS = 0.01  # share of the demand that service may take longer
QUICK, FULL = Plan(calibration=50, load=120), Plan(calibration=100, load=300)

LIKELY = {
    "foreign_cpu": "noisy neighbour",
    "dispatch_lag_mean": "generator late",
    "dispatch_lag_p99": "generator late",
    "client_cpu": "generator late",
    "calibration_drift": "calibration drift",
    "failed_requests": "failed requests",
    "missed_arrivals": "generator late",
}
"""Rule -> the likely cause if it rejects the run; an interruption is no fault of the machine."""


def measure(run: Run) -> None:
    """Calibrate, measure for half a minute, and calibrate again; quick: half as long, once."""
    plan = run.choose(QUICK, FULL)
    with measuring(run, plan, [1], lambda _, s, __: [("load", UTILISATION / s)]) as measured:
        measured.measure(KNOWN, measured.rig.known)


def analyse(results: Results) -> Report:
    """Make the report. Its `failure` says why this machine is too noisy, if it is.

    Raises ResultsError if there is no complete run.
    """
    rows, why, made, reasons = rows_by_run(results), reasons_by_run(results), [], []
    manifest = results.manifest()
    lines = results.lines(POINTS, PointLine)
    for line in lines:
        reasons += _broken_rules(why.get(line.run, ""))
        schedule, answered = whole_run(results, line.run, rows[line.run])
        if answered:
            excess_s = _excess_s(schedule, answered)
            alone = _alone(rows[f"{BEFORE}-rep{line.rep:02}"][WARM_UP:], excess_s)
            responses_s = [row.open_response_s for row in answered]
            made.append(OneRun(line, why.get(line.run) == "", schedule, responses_s, alone))
            reasons += _overhead(schedule, excess_s)
    if not made:
        raise ResultsError(f"{results.folder} has no complete run under load")
    seen, sentences = Point(that_count(made), len(lines), cores=1), Sentences("selftest")
    if seen.queued.verdict is not Verdict.AGREES and not reasons:
        advice = "run it again; if the result is the same, do not trust the lab on this machine"
        found = "is not decided" if seen.queued.verdict is Verdict.NOT_DECIDED else "disagrees"
        reasons.append((f"the queue {found}, and no rule gives a cause", advice))
    share, wanted = seen.queued.difference.times(1 / seen.queued.mean_s), manifest.get("reps") or 1
    is_cut = manifest["state"] != "complete"
    known = {"seen": seen, "share": share, "reasons": reasons}
    findings = sentences("findings", **known, made=len(made), wanted=wanted, is_cut=is_cut)
    failure = findings[0] if reasons or is_cut else ""
    tables = [measured_table([seen]), verdict_table([seen])]
    return Report(
        [*findings, *sentences("overhead", overhead_s=seen.alone.overhead_s)],
        [Section("Measured and modelled", sentences("method"), tables)],
        metrics([seen]),
        failure=failure,
    )


def _broken_rules(why: str) -> list[tuple[str, str]]:
    """The likely cause and the words of each rule that rejects a run, unless it was interrupted."""
    reasons = () if why.startswith("interrupted ") else filter(None, why.split("; "))
    return [(LIKELY.get(reason.split()[0], "rejected"), reason) for reason in reasons]


def _excess_s(schedule: Sequence[Arrival], rows: Sequence[Row]) -> float:
    """How much longer the server sleeps than it is asked to, on average."""
    demand_s = fmean(arrival.demand_s or 0.0 for arrival in schedule)
    return fmean(row.service_s or 0.0 for row in rows) - demand_s


def _alone(rows: Sequence[Row], excess_s: float) -> Alone:
    """What one customer tells: how much longer an answer takes than the server is to sleep."""
    times_s = [row.closed_response_s for row in rows]
    more_s = [time_s - (row.service_s or 0.0) for time_s, row in zip(times_s, rows, strict=True)]
    left_s = [each_s - fmean(more_s) for each_s in more_s]
    return Alone(times_s, overhead_s=fmean(more_s) + excess_s, left_s=left_s)


def _overhead(schedule: Sequence[Arrival], excess_s: float) -> list[tuple[str, str]]:
    """That the server slept longer than it was asked to, if it did."""
    excess = excess_s / fmean(arrival.demand_s or 0.0 for arrival in schedule)
    if excess <= MOST_HANDLER_EXCESS:
        return []
    told = f"service took {excess * 100:.1f} % longer than demanded"
    return [("service overhead", f"{told}, limit {MOST_HANDLER_EXCESS * 100:g} %")]


EXPERIMENT = Experiment(
    name="selftest",
    study="",
    title="Selftest: is this machine good for measurements?",
    reproduces="our own check: the known server at ρ = 0.5, compared with theory",
    about=(
        "The known server, which sleeps as long as each request says "
        f"({1000 * KNOWN_SERVICE_TIME_S:g} ms on average), gets half a minute of Poisson arrivals "
        "at ρ = 0.5. It must agree within 5 % with the same arrivals replayed through a "
        "first-come-first-served queue."
    ),
    measure=measure,
    analyse=analyse,
)
