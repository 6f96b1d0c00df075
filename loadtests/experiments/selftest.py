"""Selftest: checks that the known server behaves on this machine as theory says.

The known server sleeps for as long as it is told, one request at a time: an M/G/1 queue if requests
arrive as a Poisson process. Half a minute of it at ρ = 0.5, calibrated before and after, must agree
within 5 % with the same arrivals replayed through such a queue. If it does not, the machine is too
noisy for the other experiments, or the lab is wrong; the rules tell which is likely.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from random import Random
from statistics import fmean

from loadtests.generation.calibrating import calibrate
from loadtests.generation.calibration import Calibration
from loadtests.generation.rows import read_rows
from loadtests.generation.run import REQUESTS, RUNS, SCHEDULES, judge_run, open_run
from loadtests.generation.schedule import KNOWN_KIND, arrivals, demanded, gamma_demands, load
from loadtests.lab.experiment import Experiment, Mode, Run
from loadtests.lab.report.content import Figure, Metric, Report, Section, Table
from loadtests.lab.report.drawing import Axis, Series, figure
from loadtests.lab.results import Results
from loadtests.models import protocol, replay
from loadtests.models.estimates import TOLERANCE, Interval, Verdict, paired_difference, verdict
from loadtests.models.open_queue import SteadyState, mg1
from loadtests.models.random_times import poisson_times, with_mean_and_cv
from loadtests.servers.gunicorn import FCFS
from loadtests.servers.known import known_server

DEMAND_S = 0.020
DEMAND_CV = 0.25
UTILISATION = 0.5
SIMULATED_RUNS = 1000
MOST_HANDLER_EXCESS = 0.01  # share of the demand that service may take longer
OPEN = "open"

GOOD = (
    "This machine is good for measurements: the known server behaves as theory says, within "
    f"{TOLERANCE * 100:g} %, and no rule rejects the run."
)
CALIBRATION = ("run", "requests", "mean_s", "variance_s2", "overhead_s")
LIKELY = {
    "foreign_cpu": "noisy neighbour",
    "dispatch_lag_p99": "generator late",
    "client_cpu": "generator late",
    "calibration_drift": "calibration drift",
    "failed_requests": "failed requests",
    "missed_arrivals": "generator late",
    "interrupted": "interrupted",
}
SHOWN = {"dispatch_lag_p99": "Dispatch lag p99", "foreign_cpu": "Foreign CPU"}


def measure(run: Run) -> None:
    """Measure for half a minute, or a quarter if quick."""
    measure_for(run, run.choose(quick=10, full=25), run.choose(quick=50, full=100))


def measure_for(run: Run, duration_s: float, requests: int) -> None:
    """Calibrate with `requests` requests, measure for `duration_s`, and calibrate again."""
    folder = run.results.folder
    random = run.random("selftest")
    asked = {KNOWN_KIND: [next(demanded(repeat(DEMAND_S)))]}
    with (
        known_server(FCFS, log=run.log) as server,
        run.results.table("calibration", CALIBRATION) as table,
    ):

        def calibrated(name: str) -> Calibration:
            run.say(
                f"calibration {name}: one client, {requests} requests of {DEMAND_S * 1000:g} ms"
            )
            found = calibrate(
                server, asked, requests=requests, run=name, folder=folder, say=run.say
            )
            table.write(**{column: getattr(found, column) for column in CALIBRATION})
            return found

        before = calibrated("before")
        times_s = poisson_times(UTILISATION / before.mean_s, random, until_s=duration_s)
        demands_s = gamma_demands(DEMAND_S, DEMAND_CV, random)
        schedule = arrivals(times_s, demanded(demands_s))
        run.say(f"open: {len(schedule)} requests in {duration_s:g} s, at ρ = {UTILISATION}")
        record = open_run(server, schedule, run=OPEN, folder=folder, say=run.say)
        after = calibrated("after")
    judge_run(folder, record, record.facts(before, after))


@dataclass(frozen=True, slots=True)
class Observed:
    """The open run and its replay: seconds of the requests that were answered, in order.

    served_s: service times that the server measured. model: by the calibration before.
    """

    arrivals_s: Sequence[float]
    demands_s: Sequence[float]
    responses_s: Sequence[float]
    replayed_s: Sequence[float]
    served_s: Sequence[float]
    model: SteadyState
    service_variance_s2: float

    @property
    def difference_s(self) -> Interval:
        """Measured − replayed, with its 95 % interval."""
        return paired_difference(self.responses_s, self.replayed_s)

    @property
    def verdict(self) -> Verdict:
        """The verdict on M/G/1 with this service time, within TOLERANCE."""
        return verdict(self.difference_s, self.model.response_time_s)

    @property
    def handler_excess(self) -> float:
        """How much longer than demanded the server served, as a share of the demand."""
        return fmean(self.served_s) / fmean(self.demands_s) - 1

    def expected(self) -> protocol.Expectation:
        """The results to expect of so short a run from an empty queue, by simulation."""
        duration_s = max(self.arrivals_s)
        mean_s = self.model.service_time_s
        service = with_mean_and_cv(mean_s, self.service_variance_s2**0.5 / mean_s)
        random = Random("selftest: simulated runs")  # noqa: S311  the same for the same rows
        once = protocol.Protocol(duration_s, runs=1)
        rate_per_s = self.model.arrival_rate_per_s
        return protocol.expectation(
            once, rate_per_s, service, random, simulated_runs=SIMULATED_RUNS
        )


def observed(results: Results) -> Observed:
    """Read the open run. Raises ResultsError, ValueError if there is no complete one."""
    before = _calibrations(results)["before"]
    mean_s = before["mean_s"]
    schedule = load(results.folder / SCHEDULES / f"{OPEN}.csv")
    asked_s = [arrival.demand_s or 0.0 for arrival in schedule]
    intended_s = [arrival.intended_s for arrival in schedule]
    services_s = [demand_s + (mean_s - DEMAND_S) for demand_s in asked_s]
    replayed_s = replay.fcfs(intended_s, services_s)
    answered = (row for row in read_rows(results.folder / REQUESTS, OPEN) if row.succeeded)
    rows = sorted(answered, key=lambda row: row.index)
    variance_s2 = (DEMAND_CV * DEMAND_S) ** 2 + before["variance_s2"]
    return Observed(
        arrivals_s=[row.intended_s for row in rows],
        demands_s=[asked_s[row.index] for row in rows],
        responses_s=[row.open_response_s for row in rows],
        replayed_s=[replayed_s[row.index] for row in rows],
        served_s=[row.service_s or 0.0 for row in rows],
        model=mg1(UTILISATION / mean_s, mean_s, variance_s2),
        service_variance_s2=variance_s2,
    )


def _calibrations(results: Results) -> dict[str, dict[str, float]]:
    """The calibrations `before` and `after`, with every column as a number."""
    return {
        row["run"]: {name: float(row[name]) for name in CALIBRATION[1:] if row[name]}
        for row in results.rows("calibration")
    }


def _judged(results: Results) -> Mapping[str, str]:
    """The open run's line in the table of runs, with the value of each rule."""
    return next(row for row in results.rows(RUNS.removesuffix(".csv")) if row["run"] == OPEN)


def _reasons(results: Results, seen: Observed) -> list[tuple[str, str]]:
    """Why this machine is too noisy, if it is: pairs of likely cause and observation."""
    line = _judged(results)
    found = [
        (LIKELY.get(reason.split()[0], "rejected"), reason)
        for reason in line["reasons"].split("; ")
        if reason
    ]
    if seen.handler_excess > MOST_HANDLER_EXCESS:
        told = f"service took {seen.handler_excess * 100:.1f} % longer than demanded"
        found.append(("service overhead", f"{told}, limit {MOST_HANDLER_EXCESS * 100:g} %"))
    if seen.verdict is not Verdict.AGREES and not found:
        advice = "run it again; if the result is the same, do not trust the lab on this machine"
        found.append((f"the queue {seen.verdict}, and no rule gives a cause", advice))
    return found


def analyse(results: Results) -> Report:
    """Make the report. Its `failure` says why this machine is too noisy, if it is."""
    seen = observed(results)
    reasons = _reasons(results, seen)
    causes = ", ".join(dict.fromkeys(cause for cause, _ in reasons))
    failure = f"This machine is too noisy now: {causes}." if reasons else ""
    return Report(
        findings=[
            failure or GOOD,
            *(f"{cause.capitalize()}: {what}." for cause, what in reasons),
            *_told(results, seen),
        ],
        sections=[Section("Measured and modelled", [_METHOD], [_figure(seen)])],
        metrics=_metrics(seen),
        failure=failure,
    )


_METHOD = (
    "The known server sleeps as long as each request says, so this checks the lab's instruments "
    "and nothing of ours. The same arrivals and demands were sent to it and through a queue that "
    "serves one at a time in order of arrival. Chance is the same for both, so only server and "
    "generator make a difference. The mean of so short a run tells little by itself: the simulated "
    "range shows how far from the formula it may be although all is well."
)


def _told(results: Results, seen: Observed) -> list[str]:
    expected, difference = seen.expected(), seen.difference_s
    model_s, overhead_s = seen.model.response_time_s, seen.model.service_time_s - DEMAND_S
    before_after = " and ".join(_ms(one["mean_s"]) for one in _calibrations(results).values())
    off, low, high = (
        f"{round(100 * value_s / model_s, 1) + 0.0:+.1f} %"  # + 0.0 turns -0.0 into 0.0
        for value_s in (difference.estimate, difference.low, difference.high)
    )
    return [
        f"E[S] before and after: {before_after}.",
        f"E[S] beyond the demand: {_ms(overhead_s)} (HTTP, connecting, client).",
        *_looked_at(_judged(results)),
        f"Mean response time, measured: {_ms(fmean(seen.responses_s))}.",
        f"Range of simulated runs (95 %): {_ms(expected.low_s)} to {_ms(expected.high_s)}.",
        f"M/G/1, long run: {_ms(model_s)}.",
        f"Measured − replayed: {off} of E[R] (95 %: {low} to {high}).",
        f"Verdict on M/G/1, tolerance {TOLERANCE * 100:g} %: {seen.verdict}.",
    ]


def _looked_at(line: Mapping[str, str]) -> Iterator[str]:
    """The values of the rules for generator and machine, whose columns are `name (unit)`."""
    for column, value in line.items():
        name, _, unit = column.rstrip(")").partition(" (")
        if name in SHOWN and value:
            yield f"{SHOWN[name]}: {float(value):.3g} {unit}."


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.2f} ms"


def _figure(seen: Observed) -> Figure:
    """Means of each second, because single requests would be a cloud of points."""
    by_second: dict[int, list[tuple[float, float]]] = {}
    for at_s, *both_s in zip(seen.arrivals_s, seen.responses_s, seen.replayed_s, strict=True):
        by_second.setdefault(int(at_s), []).append((1000 * both_s[0], 1000 * both_s[1]))
    rows = [(at, *map(fmean, zip(*by_second[at], strict=True))) for at in sorted(by_second)]
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


def _metrics(seen: Observed) -> list[Metric]:
    difference = seen.difference_s
    return [
        Metric("response_time_mean", fmean(seen.responses_s), "s"),
        Metric("service_time_mean", seen.model.service_time_s, "s"),
        Metric("paired_difference", difference.estimate, "s", difference.low, difference.high),
    ]


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
