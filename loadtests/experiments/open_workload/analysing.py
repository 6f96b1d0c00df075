"""Makes the report of open workloads: what was found, in sentences, tables and metrics."""

from collections import Counter
from collections.abc import Iterator, Sequence

from loadtests import machine_samples as sampling
from loadtests.experiments.open_workload import comparing, figures, loads
from loadtests.experiments.open_workload.comparing import (
    FORECASTS,
    ORDERS,
    AsTheStudy,
    Steady,
    give_or_take,
    percent,
)
from loadtests.experiments.open_workload.demands import Closed, Demands, closed_points, demands
from loadtests.experiments.open_workload.figures import LOAD, REPORT_S, REPORT_SECONDS, range_s
from loadtests.experiments.open_workload.gaps import gap_section
from loadtests.experiments.open_workload.loads import SERVERS, SETTLED_UP_TO, OpenRun
from loadtests.generation.run import SAMPLES
from loadtests.grouping import grouped
from loadtests.lab.content import Column, Figure, Metric, Report, Section, Table, shown, times
from loadtests.lab.experiment import Mode
from loadtests.lab.repeated import accepted, estimate
from loadtests.lab.repeated import of as estimated
from loadtests.lab.results import Results, ResultsError
from loadtests.models.estimates import REPLICATIONS, TOLERANCE, Verdict
from loadtests.models.sequential import LEAST_VALUES

REJECTED = "Every run was rejected, so nothing was found out."
UNDECIDED = (
    "Nothing is decided: measure longer (resume, or --until-decided), or on a quieter machine."
)
WITHIN = f"within {100 * TOLERANCE:g} %"


def analyse(results: Results) -> Report:
    """Report five layers at each load. Rejected runs are counted, and used for nothing else.

    Raises ResultsError if there is no run with a request.
    """
    manifest, made = results.manifest(), loads.open_runs(results)
    if not made:
        raise ResultsError(f"{results.folder} has no run with a request")
    runs, until_decided = accepted(made), manifest.get("until_decided", False)
    steady = comparing.steady_points(made, is_until_decided=until_decided)
    short, closed = comparing.study_points(runs, manifest["seed"]), closed_points(results)
    first_runs = [of_load[0] for of_load in grouped(runs, lambda run: run.key).values()]
    of_closed = closed_table(closed)
    calibrations = Table.of("Calibrations", first_runs, _OF_CALIBRATIONS, digits=4)
    as_the_study = Table.of("As the study measured", short, _OF_SHORT, REPORT_SECONDS, digits=4)
    sections = [
        _section("Response time against load", [_UNITS], figures.response(steady, short)),
        _section(
            "Predicted from one customer",
            [_DEMANDS],
            Table.of("Demands of one request", demands(results).values(), _OF_DEMANDS, _FRONT),
            of_closed,
            figures.throughput(closed, of_closed) if closed else None,
        ),
        _section(
            "Steady state",
            [_STEADY, *([_UNTIL_DECIDED] if until_decided else [])],
            Table.of("The forecast from one customer", steady, _OF_STEADY, _RULES),
            Table.of("The order of service", steady, _OF_ORDER),
            Table.of("What lies behind", steady, _OF_CAUSES),
        ),
        gap_section(steady),
        _section("As the study did it", [_SHORT], as_the_study),
        _section("Over the time of a run", [], *_over_time(results, runs, manifest["mode"])),
        _section("Calibration", [_CALIBRATION], calibrations),
    ]
    return Report(
        [
            *map(_steady_finding, steady),
            *_closed_findings(closed),
            *map(_study_finding, short),
            *_bias(short),
            *_without(made, steady),
            *(line.told for line in results.lines_if_any(loads.REFUSED, loads.RefusedLine)),
        ],
        [section for section in sections if section.parts],
        [*_metrics(runs, steady, closed)],
        failure=_failure(steady, is_quick=manifest.get("quick", False)) if runs else REJECTED,
        conclusion=_conclusion(steady) if runs else REJECTED,
    )


def closed_table(closed: Sequence[Closed]) -> Table:
    """The closed runs, beside what mean value analysis predicts."""
    return Table.of("Closed runs", closed, _OF_CLOSED, _X_AS_SERVED)


def _section(title: str, told: Sequence[str], *parts: Table | Figure | None) -> Section:
    """A section with those parts that there are; a table without rows is none."""
    there = [part for part in parts if isinstance(part, Figure) or (part and part.rows)]
    return Section(title, told, there)


def _over_time(results: Results, runs: Sequence[OpenRun], mode: str) -> Iterator[Figure]:
    if brief := [run for run in runs if run.part == loads.AS_THE_STUDY]:
        yield from figures.over_time(brief)
    path = results.folder / SAMPLES
    if mode == Mode.REAL and path.exists():
        yield from figures.load(runs, sampling.read(path))


# --- findings ------------------------------------------------------------------------------------


def _conclusion(steady: Sequence[Steady]) -> str:
    """At how many loads the forecast from one customer holds, and whether service is in order."""
    points = [point for point in steady if point.key.is_settled]
    if not points:
        return "There is no steady state that could be compared with a forecast."
    loads_told = "1 load" if len(points) == 1 else f"{len(points)} loads"
    forecasts = Counter(point.forecast for point in points)
    counts = [
        f"{words} at {forecasts[verdict]}"
        for verdict, words in FORECASTS.items()
        if verdict is Verdict.AGREES or forecasts[verdict]
    ]
    orders = Counter(point.order for point in points)
    served = [
        f"{words} at {orders[verdict]}" for verdict, words in ORDERS.items() if orders[verdict]
    ]
    return (
        f"Of {loads_told} that can be decided, the forecast of the mean response time from one "
        f"customer, {WITHIN}, {', '.join(counts)}. Requests were served {', '.join(served)}."
    )


def _failure(steady: Sequence[Steady], *, is_quick: bool) -> str:
    """Why the runs are a failure: none decides a forecast, as one of a quick run need not."""
    forecasts = {point.forecast for point in steady if point.key.is_settled}
    return UNDECIDED if forecasts == {Verdict.NOT_DECIDED} and not is_quick else ""


def _steady_finding(point: Steady) -> str:
    model = point.runs[0].queue.name
    few = "" if point.key.is_settled else ", because any runs are too short here"
    served = ""
    if point.as_served and point.overtaken:
        served = (
            f" ({percent(point.as_served, point.served)} from a replay of the times that it told; "
            f"overtaken: {percent(point.overtaken, 1.0)[1:]} of the requests)"
        )
    return (
        f"{point.key.told}: the forecast from one customer by {model} {FORECASTS[point.forecast]}"
        f"{few} (runs: {len(point.runs)}; forecast {point.predicted:.3g} E[S], measured "
        f"{give_or_take(point.raw)}, difference with the same arrivals "
        f"{percent(point.difference, point.predicted)}). Requests were served "
        f"{ORDERS[point.order]}{served}."
    )


def _closed_findings(points: Sequence[Closed]) -> Iterator[str]:
    """For each server a sentence on how its throughput compares with mean value analysis."""
    several = [point for point in points if point.customers > 1]
    for server, of_server in grouped(several, lambda point: point.of.server).items():
        differences = [
            f"{percent(one.difference, one.served_per_s)} for N = {one.customers} ({one.verdict})"
            for one in of_server
        ]
        yield (
            f"Customers who ask again at once, {SERVERS[server]}: throughput against mean value "
            f"analysis, with the time that their requests took: {'; '.join(differences)}."
        )


def _study_finding(point: AsTheStudy) -> str:
    mean, expected, theirs = point.mean, point.expected, point.of_study
    ours = (
        f"{point.key.fraction:g} of L, measured as the study did (runs from empty: "
        f"{len(point.runs)}): {mean:.3g} E[S], {'within' if expected.covers(mean) else 'outside'} "
        f"the range {expected.low_s:.3g} to {expected.high_s:.3g} of an M/G/1 queue measured in "
        f"the same way; replay of the same arrivals {point.replayed:.3g}."
    )
    if point.published is None or theirs is None:
        return ours
    where = "within" if theirs.covers(point.published) else "outside"
    return (
        f"{ours} The study's own {point.published:.3g} is {where} {theirs.low_s:.3g} to "
        f"{theirs.high_s:.3g}."
    )


def _bias(short: Sequence[AsTheStudy]) -> Iterator[str]:
    """A sentence about the bias of short runs at the highest load, if it is 5 % or more."""
    for point in sorted(short, key=lambda one: one.key.fraction)[-1:]:
        hidden = 1 - point.expected.mean_s / point.predicted
        if hidden >= TOLERANCE:
            yield (
                f"At {point.key.fraction:g} of L, even an M/G/1 queue has a mean "
                f"{100 * hidden:.0f} % below its steady state in runs of 44 service times that "
                "begin empty: a mean below M/G/1 in such runs does not show that a server is "
                "faster."
            )


def _without(made: Sequence[OpenRun], steady: Sequence[Steady]) -> Iterator[str]:
    """A sentence for each load that has no steady state by its model, or no run that counts."""
    counted = accepted(made)
    over = {run.key: run.queue.name for run in counted if not run.is_stable}
    for key in sorted(over.keys() - {point.key for point in steady}):
        yield (
            f"{key.told}: {over[key]} has no steady state at this rate, because the server does "
            "more at once than the model says."
        )
    rejected = {run.key for run in made} - {run.key for run in counted}
    for key in sorted(rejected, key=lambda one: (one.part, SERVERS[one.server], one.fraction)):
        yield (
            f"{key.told}, {key.part.replace('-', ' ')}: every run was rejected; the table of runs "
            "has the reasons."
        )


def _metrics(
    runs: Sequence[OpenRun], steady: Sequence[Steady], closed: Sequence[Closed]
) -> Iterator[Metric]:
    """E[S] of each server over its calibrations, response times, what is judged, throughputs."""
    for server, of_server in grouped(runs, lambda run: run.server).items():
        calibrated = {run.calibration: run.service_time_s for run in of_server}
        yield estimate([*calibrated.values()]).metric(f"service_time[{server}]", "s")
    shares = []
    for point in steady:
        name = f"[{point.key.server},{point.key.fraction:g}]"
        yield estimated(point.raw).metric(f"response_time{name}", "")
        share = point.difference.times(1 / point.predicted)
        shares.append(Metric(f"forecast_error{name}", share.estimate, "", *share.ends))
    yield from shares
    for one in closed:
        name = f"throughput[{one.of.server},{one.customers}]"
        yield estimated(one.throughput_per_s).metric(name, "1/s")


# --- sections ------------------------------------------------------------------------------------

_UNITS = "Times are in service times E[S], so that runs at any scale can be compared."
_STEADY = (
    "The forecast is that of the model, with mean and variance of one customer's service times and "
    "the arrivals, which are known before a run. Each run has its own arrivals, and its beginning "
    "is left out. So that chance counts little, every request is compared with the same arrival in "
    "a simulated queue in which it takes a time of the calibration. Whether service is in order of "
    "arrival is another question: there a request takes the time that the server told, from "
    "sending on, and the worker's turnaround to the next; what is left is due to the order. A "
    "request is overtaken if one that was sent later was served sooner."
)
_UNTIL_DECIDED = (
    f"Each load up to {SETTLED_UP_TO:g} of L was measured until it was decided. So the interval of "
    "its difference is a confidence sequence over calibrations (Lai 1976; Wang and Ramdas "
    "2025), which holds however often one looks and whenever one stops; after fewer than "
    f"{LEAST_VALUES} calibrations nothing is decided, and after as many ten runs are not needed."
)
_RULES = (
    f"Times are in service times. Left out of each run are its first {loads.WARM_UP} arrivals "
    f"({loads.BRIEF_WARM_UP} up to {loads.BRIEF_UP_TO:g} of L), or a tenth if that is more. The "
    f"tolerance of {100 * TOLERANCE:g} % was fixed before the run. Runs that share a calibration "
    "share its error, so intervals are over calibrations; one calibration has none, and fewer than "
    f"{LEAST_VALUES} decide nothing. From {comparing.REPLICATIONS_FROM:g} of L on, neither do "
    f"fewer than {REPLICATIONS} runs. Above {SETTLED_UP_TO:g} no runs decide: they are too short "
    "for the steady state of the formula, as their replay shows."
)
_SHORT = (
    "The study sent 30 minutes of requests to an idle server, 15 times. That is 44 service "
    "times: 13 to 38 requests. The queue does not reach its steady state in that time, so the fair "
    "prediction is that of a simulated M/G/1 queue measured in the same way. A replay of the same "
    "arrivals through such a queue shows the effect of chance."
)
_CALIBRATION = (
    "E[S] is the mean response time of one customer who asks again as soon as an answer comes. The "
    "rate of each load comes from the calibration just before it; the table has that of the first "
    "run which counts. The study's cv was 0.029."
)
_DEMANDS = (
    "With one customer nobody waits, and a request takes as long as its demands together. They "
    "were learnt before any other run, from Server-Timing and the processor time of the service. "
    "Mean value analysis predicts from them how many requests a second N customers get answered "
    "who ask again at once; “as served” it takes the mean time in the handler and the turnaround "
    "from that run itself, and all else from one customer, and that is judged. The formulas below "
    "predict open runs. Mean value analysis takes exponential times and so predicts a little less "
    "than there is. A generator on the same machine competes with the workers for its cores."
)
_X_AS_SERVED = "The verdict is about the throughput X as served."
_FRONT = (
    "“Beside the handler” is processor time of the worker for accepting and HTTP; it is not known "
    "of a service on another machine. The worker is busy for all but what is on the way."
)

_OF_STEADY: Sequence[Column[Steady]] = [
    *LOAD,
    ("Model", lambda point: point.runs[0].queue.name),
    ("Runs counted", lambda point: point.counted),
    ("Arrivals", lambda point: point.arrivals),
    ("Forecast", lambda point: point.predicted),
    ("Measured", lambda point: give_or_take(point.raw)),
    ("Difference", lambda point: percent(point.difference, point.predicted)),
    ("The forecast", lambda point: FORECASTS[point.forecast]),
]
_OF_ORDER: Sequence[Column[Steady]] = [
    *LOAD,
    ("Measured from sending on", lambda p: p.served + (p.as_served.estimate if p.as_served else 0)),
    ("Replay as served", lambda p: p.served if p.as_served else None),
    ("Difference", lambda p: percent(p.as_served, p.served) if p.as_served else None),
    ("Overtaken", lambda p: percent(p.overtaken, 1.0)[1:] if p.overtaken else None),
    ("Served", lambda point: ORDERS[point.order]),
]
_OF_CAUSES: Sequence[Column[Steady]] = [
    *LOAD,
    (
        "Slower than calibrated",
        lambda p: f"{100 * (p.slower.mean - 1):+.1f} %" if p.slower and p.is_told else None,
    ),
    ("Replayed with these times / E[S]", lambda point: point.replayed),
    ("Sent late, mean / E[S]", lambda point: f"{shown(100 * point.lag, 2)} %"),
]
_OF_SHORT: Sequence[Column[AsTheStudy]] = [
    ("Share of L", lambda point: f"{point.key.fraction:g}"),
    ("Runs", lambda point: len(point.runs)),
    ("M/G/1, steady", lambda point: point.predicted * REPORT_S),
    ("Expected", lambda point: point.expected.mean_s * REPORT_S),
    ("95 % range of ours", lambda point: range_s(point.expected)),
    ("Ours", lambda point: point.mean * REPORT_S),
    ("Same arrivals, replayed", lambda point: point.replayed * REPORT_S),
    ("95 % range of 15 runs", lambda point: range_s(point.of_study)),
    ("The study's", lambda point: times(REPORT_S, point.published)),
]
_OF_DEMANDS: Sequence[Column[Demands]] = [
    ("Server", lambda one: SERVERS[one.server]),
    ("Requests", lambda one: one.requests),
    ("Index or scan / ms", lambda one: 1000 * one.engine_s),
    ("Files / ms", lambda one: 1000 * one.files_s),
    ("Rest of the handler / ms", lambda one: 1000 * one.rest_s),
    ("Beside the handler / ms", lambda one: 1000 * one.front_s),
    ("On the way / ms", lambda one: 1000 * one.network_s),
    ("Worker busy / ms", lambda one: 1000 * one.busy_s),
    ("Most / 1/s", lambda one: one.queue.servers / one.busy_s),
]
_OF_CLOSED: Sequence[Column[Closed]] = [
    ("Server", lambda point: SERVERS[point.of.server]),
    ("Customers", lambda point: point.customers),
    ("Predicted X / 1/s", lambda point: point.predicted.throughput_per_s),
    ("As served / 1/s", lambda point: point.served_per_s),
    ("Measured X / 1/s", lambda point: give_or_take(point.throughput_per_s)),
    ("Predicted R / ms", lambda point: 1000 * point.predicted.response_time_s),
    ("Measured R / ms", lambda point: 1000 * point.window.mean_response_s),
    ("Verdict", lambda point: str(point.verdict)),
]
_OF_CALIBRATIONS: Sequence[Column[OpenRun]] = [
    ("Server", lambda run: SERVERS[run.server]),
    ("Runs", lambda run: run.part.replace("-", " ")),
    ("Share of L", lambda run: f"{run.fraction:.2g}"),
    ("E[S] / ms", lambda run: 1000 * run.service_time_s),
    ("cv", lambda run: run.cv),
    ("E[S] outside the handler / ms", lambda run: times(1000, run.overhead_s)),
    ("E[S] on the way / ms", lambda run: 1000 * run.delay_s),
    ("Rate / 1/s", lambda run: run.rate_per_s),
    ("ρ by the model", lambda run: run.utilisation),
]
