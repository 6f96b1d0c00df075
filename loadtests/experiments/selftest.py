"""Selftest: checks that the known server behaves on this machine as theory says.

The known server sleeps for as long as it is told, one request at a time: an M/G/1 queue if requests
arrive as a Poisson process. Half a minute of it at ρ = 0.5, calibrated before and after, must agree
within 5 % with the same arrivals replayed through such a queue. If it does not, the machine is too
noisy for the other experiments, or the lab is wrong; the rules tell which is likely.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from statistics import fmean

from loadtests.generation.calibration import Calibration
from loadtests.generation.rows import Row, read_rows
from loadtests.generation.run import REQUESTS, RUNS, SCHEDULES, Generator, judge_run
from loadtests.generation.schedule import KNOWN_KIND, arrivals, demanded, gamma_demands, load
from loadtests.grouping import grouped
from loadtests.lab import generator_check
from loadtests.lab.content import Figure, Metric, Report, Section, Table
from loadtests.lab.experiment import Experiment, Mode, Run
from loadtests.lab.report.drawing import Axis, Series, figure
from loadtests.lab.results import Results
from loadtests.lab.sentences import Sentences
from loadtests.models.estimates import Interval, Verdict, paired_difference, verdict
from loadtests.models.open_queue import ONE, SteadyState
from loadtests.models.random_times import poisson_times
from loadtests.servers.gunicorn import FCFS
from loadtests.servers.known import known_server

DEMAND_S = 0.020
DEMAND_CV = 0.25
UTILISATION = 0.5
MOST_HANDLER_EXCESS = 0.01  # share of the demand that service may take longer
OPEN = "open"
QUICK, FULL = (10, 50), (25, 100)  # seconds of the open run, requests of a calibration

CALIBRATION = ("run", "requests", "mean_s", "variance_s2", "overhead_s")
LIKELY = {
    "foreign_cpu": "noisy neighbour",
    "dispatch_lag_mean": "generator late",
    "dispatch_lag_p99": "generator late",
    "client_cpu": "generator late",
    "calibration_drift": "calibration drift",
    "failed_requests": "failed requests",
    "missed_arrivals": "generator late",
    "interrupted": "interrupted",
}
SHOWN = {"dispatch_lag_p99": "Dispatch lag p99", "foreign_cpu": "Foreign CPU"}


def measure(run: Run) -> None:
    """Calibrate, measure for half a minute or a quarter, and calibrate again."""
    duration_s, requests = run.choose(QUICK, FULL)
    folder, say, random = run.results.folder, run.say, run.random("selftest")
    generator_check.check(run)
    generator = Generator(folder, say=say)
    asked = {KNOWN_KIND: [next(demanded(repeat(DEMAND_S)))]}
    with (
        known_server(FCFS, log=run.log) as server,
        run.results.table("calibration", CALIBRATION) as table,
    ):

        def calibrated(name: str) -> Calibration:
            say(f"calibration {name}: one client, {requests} requests of {DEMAND_S * 1000:g} ms")
            found = generator.calibrate(server, asked, name, requests=requests)
            table.write(**{column: getattr(found, column) for column in CALIBRATION})
            return found

        before = calibrated("before")
        times_s = poisson_times(UTILISATION / before.mean_s, random, until_s=duration_s)
        schedule = arrivals(times_s, demanded(gamma_demands(DEMAND_S, DEMAND_CV, random)))
        say(f"open: {len(schedule)} requests in {duration_s:g} s, at ρ = {UTILISATION}")
        record = generator.open(server, schedule, OPEN)
        after = calibrated("after")
    judge_run(folder, record, record.facts(before, after))


@dataclass(frozen=True, slots=True)
class Observed:
    """The open run and its replay: the requests that were answered, in order of arrival.

    model, cv: by the calibration before. calibrated_s: E[S] before and after. judged: the run's
    line in the table of runs, with the value of each rule.
    """

    rows: Sequence[Row]
    demands_s: Sequence[float]
    replayed_s: Sequence[float]
    model: SteadyState
    cv: float
    calibrated_s: Sequence[float]
    judged: Mapping[str, str]

    @property
    def responses_s(self) -> list[float]:
        """The measured response times, from the intended arrival on."""
        return [row.open_response_s for row in self.rows]

    @property
    def response_s(self) -> float:
        """The mean of these."""
        return fmean(self.responses_s)

    @property
    def difference_s(self) -> Interval:
        """Measured − replayed, with its 95 % interval."""
        return paired_difference(self.responses_s, self.replayed_s)

    @property
    def verdict(self) -> Verdict:
        """The verdict on M/G/1 with this service time, within TOLERANCE."""
        return verdict(self.difference_s, self.model.response_time_s)


def observed(results: Results) -> Observed:
    """Read the open run. Raises ResultsError, ValueError if there is no complete one."""
    calibrations = {row["run"]: row for row in results.rows("calibration")}
    mean_s, variance_s2 = (float(calibrations["before"][of]) for of in ("mean_s", "variance_s2"))
    cv = ((DEMAND_CV * DEMAND_S) ** 2 + variance_s2) ** 0.5 / mean_s
    schedule = load(results.folder / SCHEDULES / f"{OPEN}.csv")
    demands_s = [arrival.demand_s or 0.0 for arrival in schedule]
    replayed_s = ONE.replayed_s(
        [arrival.intended_s for arrival in schedule],
        [demand_s + (mean_s - DEMAND_S) for demand_s in demands_s],
    )
    answered = (row for row in read_rows(results.folder / REQUESTS, OPEN) if row.succeeded)
    rows = sorted(answered, key=lambda row: row.index)
    return Observed(
        rows,
        [demands_s[row.index] for row in rows],
        [replayed_s[row.index] for row in rows],
        ONE.steady(UTILISATION / mean_s, mean_s, cv),
        cv,
        [float(row["mean_s"]) for row in calibrations.values()],
        next(row for row in results.rows(RUNS.removesuffix(".csv")) if row["run"] == OPEN),
    )


def _reasons(seen: Observed) -> list[tuple[str, str]]:
    """Why this machine is too noisy, if it is: pairs of likely cause and observation."""
    found = [
        (LIKELY.get(reason.split()[0], "rejected"), reason)
        for reason in seen.judged["reasons"].split("; ")
        if reason
    ]
    excess = fmean(row.service_s or 0.0 for row in seen.rows) / fmean(seen.demands_s) - 1
    if excess > MOST_HANDLER_EXCESS:
        told = f"service took {excess * 100:.1f} % longer than demanded"
        found.append(("service overhead", f"{told}, limit {MOST_HANDLER_EXCESS * 100:g} %"))
    if seen.verdict is not Verdict.AGREES and not found:
        advice = "run it again; if the result is the same, do not trust the lab on this machine"
        found.append((f"the queue {seen.verdict}, and no rule gives a cause", advice))
    return found


def analyse(results: Results) -> Report:
    """Make the report. Its `failure` says why this machine is too noisy, if it is."""
    seen = observed(results)
    reasons = _reasons(seen)
    causes = ", ".join(dict.fromkeys(cause for cause, _ in reasons))
    failure = f"This machine is too noisy now: {causes}." if reasons else ""
    sentences, difference = Sentences("selftest"), seen.difference_s
    shares = difference.times(1 / seen.model.response_time_s)
    return Report(
        findings=sentences(
            "findings",
            seen=seen,
            failure=failure,
            reasons=reasons,
            demand_s=DEMAND_S,
            rules=list(_shown_rules(seen.judged)),
            off=[
                f"{round(100 * share, 1) + 0.0:+.1f} %"  # + 0.0 turns -0.0 into 0.0
                for share in (shares.estimate, shares.low, shares.high)
            ],
        ),
        sections=[Section("Measured and modelled", sentences("method"), [_figure(seen)])],
        metrics=[
            Metric("response_time_mean", seen.response_s, "s"),
            Metric("service_time_mean", seen.model.service_time_s, "s"),
            Metric("paired_difference", difference.estimate, "s", *difference.ends),
        ],
        failure=failure,
    )


def _shown_rules(judged: Mapping[str, str]) -> Iterator[tuple[str, float, str]]:
    """Title, value and unit of some rules of the run."""
    for column, value in judged.items():  # of a rule: `name (unit)`
        name, _, unit = column.rstrip(")").partition(" (")
        if name in SHOWN and value:
            yield SHOWN[name], float(value), unit


def _figure(seen: Observed) -> Figure:
    """Means of each second, because single requests would be a cloud of points."""
    pairs = zip(seen.rows, seen.replayed_s, strict=True)
    by_second = grouped(pairs, lambda pair: int(pair[0].intended_s))
    rows = [
        (
            second,
            fmean(1000 * row.open_response_s for row, _ in of),
            fmean(1000 * replayed_s for _, replayed_s in of),
        )
        for second, of in by_second.items()
    ]
    seconds, measured_ms, replayed_ms = map(list, zip(*rows, strict=True))
    return figure(
        "Known server: response time, second by second",
        "Where the lines differ, something other than the queue took time.",
        Axis("Arrival, s after the start"),
        Axis("Mean response time of a second, ms"),
        [
            Series("known server, measured", "ours", seconds, measured_ms),
            Series("replayed through a queue", "model", seconds, replayed_ms),
        ],
        Table("Means", ("Second", "Measured, ms", "Replayed, ms"), rows),
    )


EXPERIMENT = Experiment(
    name="selftest",
    study="",
    title="Selftest: is this machine good for measurements?",
    reproduces="our own check: the known server at ρ = 0.5, compared with theory",
    about=(
        "The known server, which sleeps as long as each request says, gets half a minute of "
        "Poisson arrivals at ρ = 0.5. It must agree within 5 % with the same arrivals replayed "
        "through a first-come-first-served queue."
    ),
    modes=(Mode.REAL,),
    measure=measure,
    analyse=analyse,
)
