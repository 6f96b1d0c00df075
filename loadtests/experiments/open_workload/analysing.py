"""Makes the report of open workloads from its tables."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from loadtests.experiments.open_workload import figures, over_time, tables
from loadtests.experiments.open_workload.comparing import (
    AsTheStudy,
    Steady,
    steady_points,
    study_points,
)
from loadtests.experiments.open_workload.deciding import judged
from loadtests.experiments.open_workload.demands import Closed, closed_points, demands
from loadtests.experiments.open_workload.gaps import gap_section
from loadtests.experiments.open_workload.plan import AS_THE_STUDY, SERVERS, SETTLED_UP_TO
from loadtests.experiments.open_workload.reading import OpenRun, open_runs
from loadtests.experiments.open_workload.tables import give_or_take, percent
from loadtests.generation import samples as sampling
from loadtests.generation.run import SAMPLES
from loadtests.lab.experiment import Mode
from loadtests.lab.repeated import estimate
from loadtests.lab.repeated import of as estimated
from loadtests.lab.report.content import Figure, Metric, Report, Section, Table
from loadtests.lab.report.page import shown
from loadtests.lab.results import Results, ResultsError
from loadtests.models.estimates import TOLERANCE, Verdict
from loadtests.models.sequential import LEAST_VALUES

REJECTED = "Every run was rejected, so nothing was found out."
WITHIN = f"within {100 * TOLERANCE:g} %"


def analyse(results: Results) -> Report:
    """Report five layers at each load. Rejected runs are counted, and used for nothing else.

    Raises ResultsError if there is no run with a request.
    """
    manifest, made = results.manifest(), open_runs(results)
    if not made:
        raise ResultsError(f"{results.folder} has no run with a request")
    runs = [run for run in made if run.is_accepted]
    steady = steady_points(made, is_simulated=manifest["mode"] == Mode.MODEL)
    until_decided = manifest.get("until_decided", False)
    if until_decided:
        steady = [judged(results, point) for point in steady]
    short = study_points(runs, manifest["seed"])
    closed = [point for point in closed_points(results) if point.is_accepted]
    sections = [
        Section(
            "Response time against load",
            ["Times are in service times E[S], so that runs at any scale can be compared."],
            [figures.response(steady, short)],
        ),
        _prediction(results, closed),
        _section(
            "Steady state",
            [_STEADY, *([_UNTIL_DECIDED] if until_decided else []), *_limit(steady)],
            tables.steady(steady),
            tables.causes(steady),
        ),
        gap_section(results, runs),
        _section("As the study did it", [_SHORT], tables.short(short)),
        _over_time(results, runs, is_real=manifest["mode"] == Mode.REAL),
        _section("Calibration", [_CALIBRATION], tables.calibrations(runs)),
    ]
    return Report(
        [
            *map(_steady_finding, steady),
            *_closed_findings(closed),
            *map(_study_finding, short),
            *_bias(short),
            *_without_steady_state(runs, steady),
            *_without_a_run(made),
        ],
        [section for section in sections if section.parts],
        [
            *_service_times(runs),
            *map(_metric, steady),
            *map(_paired_metric, steady),
            *map(_closed_metric, closed),
        ],
        failure="" if runs else REJECTED,
        conclusion=_conclusion(steady) if runs else REJECTED,
    )


def _section(title: str, told: Sequence[str], *found: Table) -> Section:
    """A section with the tables that have rows, which may be none."""
    return Section(title, told, [table for table in found if table.rows])


# --- findings ----------------------------------------------------------------------------------


def _conclusion(steady: Sequence[Steady]) -> str:
    """At how many loads the model of the queue predicts the response time."""
    verdicts = [point.verdict for point in steady if point.can_be_decided]
    if not verdicts:
        return "There is no steady state that could be compared with a formula."
    loads = "1 load" if len(verdicts) == 1 else f"{len(verdicts)} loads"
    given = ", given how long requests took," if any(one.is_as_served for one in steady) else ""
    told = f"Of {loads} that can be decided, the queueing model{given} predicts the mean response "
    told += f"time {WITHIN} at {verdicts.count(Verdict.AGREES)}"
    if wrong := verdicts.count(Verdict.DISAGREES):
        told += f"; at {wrong} it does not"
    if open_ := verdicts.count(Verdict.NOT_DECIDED):
        told += f"; at {open_} these runs do not decide"
    return f"{told}."


def _steady_finding(point: Steady) -> str:
    model = point.queue.name
    by = "by these runs" if point.can_be_decided else "here, where any runs are too short"
    words = {
        Verdict.AGREES: f"{model} agrees {WITHIN}",
        Verdict.DISAGREES: f"{model} disagrees by more than {100 * TOLERANCE:g} %",
        Verdict.NOT_DECIDED: f"whether {model} agrees {WITHIN} is not decided {by}",
    }
    replay = point.served if point.is_as_served else point.replayed
    told = (
        f"{point.fraction:.2g} of L, {SERVERS[point.server]}: {words[point.verdict]} (runs: "
        f"{point.runs}; {point.judged_name} {percent(*point.judged)}; predicted "
        f"{point.predicted:.3g} E[S], measured {give_or_take(point.raw)}, replay of the same "
        f"arrivals {replay:.3g})."
    )
    if not point.is_as_served or point.slower is None:
        return told
    more = 100 * (point.slower - 1)
    return (
        f"{told} Requests took {abs(more):.1f} % {'longer' if more > 0 else 'less'} than one "
        "customer's before; with that in it, the paired difference is "
        f"{percent(point.difference, point.predicted)}."
    )


def _closed_findings(points: Sequence[Closed]) -> list[str]:
    """For each server a sentence on how its throughput compares with mean value analysis."""
    return [
        f"Customers who ask again at once, {SERVERS[server]}: throughput against mean value "
        f"analysis, with the time that their requests took: {'; '.join(map(_closed_told, group))}."
        for server, group in groupby(
            (point for point in points if point.customers > 1), key=lambda point: point.server
        )
    ]


def _closed_told(point: Closed) -> str:
    difference = percent(point.difference, point.served_per_s)
    return f"{difference} for N = {point.customers} ({point.verdict})"


def _study_finding(point: AsTheStudy) -> str:
    low, high = point.expected.low_s, point.expected.high_s
    where = "within" if point.expected.covers(point.mean) else "outside"
    ours = (
        f"{point.fraction:g} of L, measured as the study did (runs from empty: {point.runs}): "
        f"{point.mean:.3g} E[S], {where} the range {low:.3g} to {high:.3g} of an M/G/1 queue "
        f"measured in the same way; replay of the same arrivals {point.replayed:.3g}"
    )
    if point.published is None or point.of_study is None:
        return ours + "."
    theirs = "within" if point.of_study.covers(point.published) else "outside"
    low, high = point.of_study.low_s, point.of_study.high_s
    return f"{ours}. The study's own {point.published:.3g} is {theirs} {low:.3g} to {high:.3g}."


def _bias(short: Sequence[AsTheStudy]) -> list[str]:
    """A sentence about the bias of short runs at the highest load, if it is 5 % or more."""
    if not short:
        return []
    point = max(short, key=lambda one: one.fraction)
    hidden = 1 - point.expected.mean_s / point.fcfs
    if hidden < TOLERANCE:
        return []
    return [
        (
            f"At {point.fraction:g} of L, even an M/G/1 queue has a mean {100 * hidden:.0f} % "
            "below its steady state in runs of 44 service times that begin empty: a mean below "
            "M/G/1 in such runs does not show that a server is faster."
        )
    ]


def _without_steady_state(runs: Sequence[OpenRun], steady: Sequence[Steady]) -> list[str]:
    """A sentence for each load at which the model, but not the server, is overloaded."""
    there = {(point.server, point.fraction) for point in steady}
    over = {
        (SERVERS[run.server], run.fraction, run.queue.name)
        for run in runs
        if run.utilisation >= 1 and (run.server, run.fraction) not in there
    }
    return [
        f"{fraction:.2g} of L, {server}: {name} has no steady state at this rate, because the "
        "server does more at once than the model says."
        for server, fraction, name in sorted(over)
    ]


def _without_a_run(runs: Sequence[OpenRun]) -> list[str]:
    """A sentence for each load of which every run was rejected."""
    made = {(run.part, SERVERS[run.server], run.fraction) for run in runs}
    counted = {(run.part, SERVERS[run.server], run.fraction) for run in runs if run.is_accepted}
    return [
        f"{fraction:.2g} of L, {server}, {part.replace('-', ' ')}: every run was rejected; the "
        "table of runs has the reasons."
        for part, server, fraction in sorted(made - counted)
    ]


def _metric(point: Steady) -> Metric:
    return estimated(point.raw).metric(f"response_time[{point.server},{point.fraction:g}]", "")


def _closed_metric(point: Closed) -> Metric:
    x = estimated(point.throughput_per_s)
    return x.metric(f"throughput[{point.server},{point.customers}]", "1/s")


def _paired_metric(point: Steady) -> Metric:
    """The difference that the verdict is about, as a share."""
    difference, mean = point.judged
    what = "as_served" if point.is_as_served else "paired_difference"
    name = f"{what}[{point.server},{point.fraction:g}]"
    share = difference.times(1 / mean)
    return Metric(name, share.estimate, "", *share.ends)


def _service_times(runs: Sequence[OpenRun]) -> list[Metric]:
    """E[S] of each server, with its interval over calibrations if there are several."""
    found = []
    for server in dict.fromkeys(run.server for run in runs):
        calibrated = {run.calibration: run.service_time_s for run in runs if run.server == server}
        found.append(estimate([*calibrated.values()]).metric(f"service_time[{server}]", "s"))
    return found


# --- sections ----------------------------------------------------------------------------------

_STEADY = (
    "Each run has its own arrivals, and its beginning is left out. The paired difference compares "
    "every request with the same arrival in a simulated queue, where it takes as long as the "
    "server measured, or a time of the calibration if the server cannot tell; and what the formula "
    "gains if requests take longer than at the calibration is added. “As served” is without that, "
    "from sending on, in per cent of the replay; there a request keeps its worker for the time "
    "that the server measured and until the worker is seen to begin the next that waits (the "
    "turnaround), and what else is around a service keeps nobody waiting. So only the order of "
    "service differs. The service tells how long each request took, so it is judged as served, "
    "and neither a machine that changes its speed nor a generator that sends late spoils its runs."
)
_UNTIL_DECIDED = (
    f"Each load up to {SETTLED_UP_TO:g} of L was measured until it was decided. So the interval of "
    "its paired difference is a confidence sequence over calibrations (Lai 1976; Wang and Ramdas "
    "2025), which holds however often one looks and whenever one stops; after fewer than "
    f"{LEAST_VALUES} calibrations nothing is decided, and after as many ten runs are not needed."
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


def _limit(steady: Sequence[Steady]) -> Iterator[str]:
    """What cannot be measured: times as short as requests are sent late, if any were sent."""
    worst = max(steady, key=lambda point: point.lag, default=None)
    if worst and worst.lag:
        told = (
            f"Of 100 requests, 99 were sent within {shown(100 * worst.lag, 2)} % of E[S] "
            f"({shown(1000 * worst.lag_s, 2)} ms, {SERVERS[worst.server]}, {worst.fraction:.2g} of "
            "L, the worst)"
        )
        if worst.is_as_served:
            yield f"{told}. This counts as waiting at the server, but not in the time as served."
        else:
            yield (
                "The limit of measurement is how late requests are sent: this counts as waiting "
                f"at the server. {told}, and above 5 % a run is rejected; so questions that take "
                "less than 20 times that cannot be measured by this generator."
            )


def _prediction(results: Results, closed: Sequence[Closed]) -> Section:
    known = [*demands(results).values()]
    parts = [tables.demands(known), tables.closed(closed)]
    drawn = [figures.throughput(closed)] if closed else []
    return Section(
        "Predicted from one customer", [_DEMANDS], [*(part for part in parts if part.rows), *drawn]
    )


def _over_time(results: Results, runs: Sequence[OpenRun], *, is_real: bool) -> Section:
    parts: list[Figure] = []
    if brief := [run for run in runs if run.part == AS_THE_STUDY]:
        parts += [*over_time.over_time(brief), over_time.load_computed(brief)]
    path = results.folder / SAMPLES
    samples = sampling.read(path) if is_real and path.exists() else {}
    if load := over_time.load(runs, samples):
        parts.append(load)
    return Section("Over the time of a run", parts=parts)
