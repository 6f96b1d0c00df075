"""Checks that the known server behaves on this machine as theory says.

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
from loadtests.generation.schedule import KNOWN_KIND
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
    with measuring(run, plan, [1], lambda _, s, __: [("load", UTILISATION / s)]) as session:
        session.measure(KNOWN, session.rig.known)


def analyse(results: Results) -> Report:
    """Make the report. Its `failure` says why this machine is too noisy, if it is.

    Raises ResultsError if there is no complete run.
    """
    rows, rejections, runs, reasons = rows_by_run(results), reasons_by_run(results), [], []
    lines = results.lines(POINTS, PointLine)
    for line in lines:
        reasons += _broken_rules(rejections.get(line.run, ""))
        schedule, answered = whole_run(results, line.run, rows[line.run])
        if not answered:
            continue
        demand_s = fmean(arrival.demand_s or 0.0 for arrival in schedule)
        excess_s = fmean(row.service_s or 0.0 for row in answered) - demand_s
        if excess_s > MOST_HANDLER_EXCESS * demand_s:
            excess = f"service took {100 * excess_s / demand_s:.1f} % longer than demanded"
            limit = f"limit {100 * MOST_HANDLER_EXCESS:g} %"
            reasons.append(("service overhead", f"{excess}, {limit}"))
        alone = _alone(rows[f"{BEFORE}-rep{line.rep:02}"][WARM_UP:], excess_s)
        responses_s = [row.open_response_s for row in answered]
        runs.append(OneRun(line, rejections.get(line.run) == "", schedule, responses_s, alone))
    if not runs:
        raise ResultsError(f"{results.folder} has no complete run under load")
    point, manifest = Point(that_count(runs), len(lines)), results.manifest()
    verdict, sentences = point.queued.verdict, Sentences("selftest")
    is_shared = manifest.get("shared", False)
    if verdict in {Verdict.DISAGREES, Verdict.NOT_DECIDED} and not reasons:
        without, shared = (" without --shared", "with --shared ") if is_shared else ("", "")
        advice = f"run it again{without}; if the result is the same, do not trust the lab here"
        outcome = "is not decided" if verdict is Verdict.NOT_DECIDED else "disagrees"
        reasons.append((f"the queue {outcome}, and {shared}no rule gives a cause", advice))
    is_cut = manifest["state"] != "complete"
    findings = sentences(
        "findings",
        verdict=verdict,
        share=point.queued.difference.times(1 / point.queued.mean_s),
        reasons=reasons,
        made=len(runs),
        wanted=manifest.get("reps") or 1,
        is_cut=is_cut,
        is_shared=is_shared,
        overhead_s=point.alone.overhead_s,
    )
    tables = [measured_table([point]), verdict_table([point])]
    return Report(
        findings,
        [Section("Measured and modelled", sentences("method"), tables)],
        metrics([point]),
        failure=findings[0] if reasons or is_cut else "",
    )


def _broken_rules(rejection: str) -> list[tuple[str, str]]:
    """Return the likely cause and the words of each rule that rejects a run, if it is whole."""
    reasons = () if rejection.startswith("interrupted ") else filter(None, rejection.split("; "))
    return [(LIKELY.get(reason.split()[0], "rejected"), reason) for reason in reasons]


def _alone(rows: Sequence[Row], excess_s: float) -> Alone:
    """Return the service times by the answers to a single customer.

    excess_s: by how much the server sleeps longer under load than it is to, on average.
    """
    times_s = [row.closed_response_s for row in rows]
    overhead_s = fmean(times_s) - fmean(row.service_s or 0.0 for row in rows)
    left_s = [row.closed_response_s - (row.service_s or 0.0) - overhead_s for row in rows]
    return Alone(times_s, overhead_s=overhead_s + excess_s, left_s=left_s)


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
