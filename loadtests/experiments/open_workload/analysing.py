"""Makes the report of the open workload from its tables."""

from collections.abc import Sequence

from loadtests.experiments.open_workload.comparing import (
    REPLICATIONS_FROM,
    AsTheStudy,
    Steady,
    steady_points,
    study_points,
)
from loadtests.experiments.open_workload.figures import (
    REPORT_S,
    load_figure,
    over_time,
    response_figure,
)
from loadtests.experiments.open_workload.plan import (
    AS_THE_STUDY,
    BRIEF_UP_TO,
    BRIEF_WARM_UP,
    FCFS,
    SETTLED_UP_TO,
    WARM_UP,
)
from loadtests.experiments.open_workload.reading import OpenRun, open_runs
from loadtests.generation import samples as sampling
from loadtests.generation.run import SAMPLES
from loadtests.lab.experiment import Mode
from loadtests.lab.report.content import Metric, Report, Section, Table
from loadtests.lab.results import Results, ResultsError
from loadtests.models.estimates import BATCHES, REPLICATIONS, Interval, Verdict

SERVERS = {FCFS: "one worker, in order of arrival", "shared": "threads, processor shared"}
MODELS = {FCFS: "M/G/1", "shared": "M/G/1-PS"}


def analyse(results: Results) -> Report:
    """Report five layers at each load. Raises ResultsError if there is no complete run."""
    manifest = results.manifest()
    runs = open_runs(results)
    if not runs:
        raise ResultsError(f"{results.folder} has no run with a request")
    is_simulated = manifest["mode"] == Mode.MODEL
    steady = steady_points(runs, is_simulated=is_simulated)
    short = study_points(runs, manifest["seed"])
    sections = [
        Section(
            "Response time against load",
            ["Times are in service times E[S], so that runs at any scale can be compared."],
            [response_figure(steady, short)],
        ),
        *([_steady_section(steady)] if steady else []),
        *([_study_section(short)] if short else []),
        _over_time_section(results, runs, is_real=manifest["mode"] == Mode.REAL),
        _calibration_section(runs),
    ]
    findings = [*map(_steady_finding, steady), *map(_study_finding, short), *_bias(short)]
    return Report(
        [*findings, *_without_a_run(runs)],
        sections,
        [*map(_metric, steady)],
        conclusion=_conclusion(steady),
    )


def _conclusion(steady: Sequence[Steady]) -> str:
    """At how many loads the model of the queue predicts the response time."""
    if not steady:
        return "Only runs as the study made them count, which begin empty and are short."
    verdicts = [point.verdict for point in steady]
    told = f"At {verdicts.count(Verdict.AGREES)} of {len(steady)} loads the queueing "
    told += "model predicts the mean response time within 5 %"
    if wrong := verdicts.count(Verdict.DISAGREES):
        told += f", at {wrong} it does not"
    if open_ := verdicts.count(Verdict.NOT_DECIDED):
        told += f", and {open_} the runs do not decide" if wrong else f"; {open_} are not decided"
    return f"{told}."


def _percent(difference: Interval, of: float) -> str:
    return f"{100 * difference.estimate / of:+.1f} ± {100 * difference.half_width / of:.1f} %"


def _steady_finding(point: Steady) -> str:
    model = MODELS[point.server]
    words = {
        Verdict.AGREES: f"{model} agrees within 5 %",
        Verdict.DISAGREES: f"{model} disagrees by more than 5 %",
        Verdict.NOT_DECIDED: f"whether {model} agrees within 5 % is not decided by these runs",
    }
    return (
        f"{point.fraction:g} of L, {SERVERS[point.server]}: {words[point.verdict]} (runs: "
        f"{point.runs}; paired difference {_percent(point.difference, point.predicted)}; predicted "
        f"{point.predicted:.3g} E[S], measured {point.raw.estimate:.3g} ± "
        f"{point.raw.half_width:.2g}, replay of the same arrivals {point.replayed:.3g})."
    )


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
    if hidden < 0.05:
        return []
    return [
        (
            f"At {point.fraction:g} of L, even an M/G/1 queue has a mean {100 * hidden:.0f} % "
            "below its steady state in runs of 44 service times that begin empty: a mean below "
            "M/G/1 in such runs does not show that a server is faster."
        )
    ]


def _without_a_run(runs: Sequence[OpenRun]) -> list[str]:
    """A sentence for each load of which every run was rejected."""
    made = {(run.part, SERVERS[run.server], run.fraction) for run in runs}
    counted = {(run.part, SERVERS[run.server], run.fraction) for run in runs if run.is_accepted}
    return [
        f"{fraction:g} of L, {server}, {part.replace('-', ' ')}: every run was rejected; the table "
        "of runs has the reasons."
        for part, server, fraction in sorted(made - counted)
    ]


def _steady_section(steady: Sequence[Steady]) -> Section:
    rows = [
        (
            f"{point.fraction:g}",
            SERVERS[point.server].partition(",")[0],
            f"{point.runs} of {point.runs + point.rejected}",
            point.arrivals,
            point.predicted,
            f"{point.raw.estimate:.3g} ± {point.raw.half_width:.2g}",
            point.replayed,
            point.paired.estimate,
            _percent(point.difference, point.predicted),
            _percent(point.as_served, point.predicted) if point.as_served else "–",
            str(point.verdict),
        )
        for point in steady
    ]
    columns = (
        *("Share of L", "Server", "Runs counted", "Arrivals", "Model", "Measured", "Replayed"),
        *("Paired estimate", "Paired difference", "As served", "Verdict"),
    )
    told = [
        (
            f"Each run is a replication with its own arrivals. The first {WARM_UP} of them "
            f"({BRIEF_WARM_UP} up to {BRIEF_UP_TO:g} of L, where the queue soon becomes steady), "
            "or a tenth if that is more, are left out. The paired difference compares every "
            "request with the same arrival in a simulated queue with the calibrated service time; "
            "“as served” with one that has the service times measured by the server, so that only "
            "the order of service and the work outside the handler differ."
        )
    ]
    note = (
        "Times are in service times. The tolerance of 5 % was fixed before the run. The interval "
        f"of a single run is that of {BATCHES} batches. From {REPLICATIONS_FROM:g} of L on, fewer "
        f"than {REPLICATIONS} runs decide nothing. Above {SETTLED_UP_TO:g} no runs decide: they "
        "are too short to reach the steady state of the formula, as their replay shows."
    )
    return Section("Steady state", told, [Table("Steady state", columns, rows, note)])


def _study_section(short: Sequence[AsTheStudy]) -> Section:
    rows = [
        (
            f"{point.fraction:g}",
            point.runs,
            point.fcfs * REPORT_S,
            point.expected.mean_s * REPORT_S,
            _range(point.expected.low_s, point.expected.high_s),
            point.mean * REPORT_S,
            point.replayed * REPORT_S,
            _range(point.of_study.low_s, point.of_study.high_s) if point.of_study else "–",
            point.published * REPORT_S if point.published else None,
        )
        for point in short
    ]
    columns = (
        *("Share of L", "Runs", "M/G/1, steady", "Expected", "95 % range of ours"),
        *("Ours", "Same arrivals, replayed", "95 % range of 15 runs", "The study's"),
    )
    told = [
        (
            "The study sent 30 minutes of requests to an idle server, 15 times. That is 44 service "
            "times: 13 to 38 requests. The queue does not reach its steady state in that time, so "
            "the fair prediction is that of a simulated M/G/1 queue measured in the same way. A "
            "replay of the same arrivals through such a queue shows the effect of chance."
        )
    ]
    note = "Times are in report seconds: R/E[S] × 40.499."
    table = Table("As the study measured", columns, rows, note, digits=4)
    return Section("As the study did it", told, [table])


def _range(low: float, high: float) -> str:
    return f"{low * REPORT_S:.1f} to {high * REPORT_S:.1f}"


def _over_time_section(results: Results, runs: Sequence[OpenRun], *, is_real: bool) -> Section:
    brief = [run for run in runs if run.part == AS_THE_STUDY]
    path = results.folder / SAMPLES
    samples = sampling.read(path) if path.exists() else {}
    load = load_figure(runs, samples, is_real=is_real)
    parts = [*(over_time(brief) if brief else []), *([load] if load else [])]
    return Section("Over the time of a run", parts=parts)


def _calibration_section(runs: Sequence[OpenRun]) -> Section:
    seen: dict[tuple[str, float, str], OpenRun] = {}
    for run in runs:
        key = run.server, run.fraction, run.part
        if key not in seen or (run.is_accepted and not seen[key].is_accepted):
            seen[key] = run
    rows = [
        (
            SERVERS[run.server],
            run.part.replace("-", " "),
            f"{run.fraction:g}",
            1000 * run.service_time_s,
            run.service_variance_s2**0.5 / run.service_time_s,
            1000 * run.overhead_s,
            run.rate_per_s,
        )
        for run in seen.values()
    ]
    columns = (
        *("Server", "Runs", "Share of L", "E[S] / ms", "cv", "E[S] outside the handler / ms"),
        "Rate / 1/s",
    )
    told = [
        (
            "E[S] is the mean response time of one customer who asks again as soon as an answer "
            "comes. The rate of each load comes from the calibration just before it; the table has "
            "that of the first run which counts. The study's cv was 0.029."
        )
    ]
    return Section("Calibration", told, [Table("Calibrations", columns, rows, digits=4)])


def _metric(point: Steady) -> Metric:
    interval = point.raw
    name = f"response_time[{point.server},{point.fraction:g}]"
    return Metric.of_amount(name, interval.estimate, "E[S]", interval.low, interval.high)
