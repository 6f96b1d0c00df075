"""Reports open workloads: Poisson arrivals at shares of the maximum rate L, as in study 000.

`open_workload_loads` defines how much is measured and reads what was, `…_measurements` starts the
servers and measures them, `…_comparison` compares with the models and splits the difference into
causes, and `…_figures` draws. `pi` measures a service on another machine in the same way.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

from loadtests.experiments import open_workload_comparison as comparing
from loadtests.experiments import open_workload_figures as figures
from loadtests.experiments import open_workload_loads as loads
from loadtests.experiments.open_workload_comparison import (
    FORECASTS,
    AsTheStudy,
    Steady,
    percent,
)
from loadtests.experiments.open_workload_figures import LOAD, REPORT_S
from loadtests.experiments.open_workload_loads import (
    SENTENCES,
    SERVERS,
    LoadKey,
    OpenRun,
    fractions,
)
from loadtests.experiments.open_workload_measurements import SCALE, measure
from loadtests.grouping import grouped
from loadtests.lab.content import Column, Figure, Metric, Report, Section, Table, times
from loadtests.lab.experiment import Experiment
from loadtests.lab.repeated import judged_runs, most_common_reason
from loadtests.lab.results import Results, ResultsError
from loadtests.models.estimates import (
    LEAST_VALUES,
    REPLICATIONS,
    TOLERANCE,
    Verdict,
    confidence_interval,
)

DRIFT = "calibration_drift (%)"
LIMITS = {
    "warm_up": loads.WARM_UP,
    "brief_warm_up": loads.BRIEF_WARM_UP,
    "brief_up_to": loads.BRIEF_UP_TO,
    "replications_from": comparing.REPLICATIONS_FROM,
    "replications": REPLICATIONS,
    "least": LEAST_VALUES,
}


def analyse(results: Results) -> Report:
    """Report five layers at each load. Rejected runs are counted, and used for nothing else.

    Raises ResultsError if there is no run with a request.
    """
    made = loads.open_runs(results)
    if not made:
        raise ResultsError(f"{results.folder} has no run with a request")
    runs, steady = loads.accepted(made), comparing.steady_points(made)
    brief = [run for run in runs if run.part == loads.AS_THE_STUDY]
    short = comparing.study_points(runs, results.manifest()["seed"])
    rules, gap_words = SENTENCES.paragraph("rules", **LIMITS), SENTENCES("gaps", **LIMITS)
    sections = [
        _section("Response time against load", "units", figures.response(steady, short)),
        _section(
            "Steady state",
            "steady",
            Table.from_items("The forecast from one customer", steady, _OF_STEADY, rules),
            Table.from_items("The order of service", steady, _OF_ORDER),
        ),
        Section("Where the gaps come from", gap_words, [*map(comparing.gap_table, steady)]),
        _section(
            "As the study did it",
            "short",
            Table.from_items(
                "As the study measured", short, _OF_SHORT, figures.REPORT_SECONDS, digits=4
            ),
        ),
        Section("Over the time of a run", parts=figures.over_time(brief) if brief else []),
        _of_calibrations(runs),
    ]
    findings = SENTENCES("findings", steady=steady, short=short, percent=percent)
    failure = describe_failure(results, made, steady, "resume, or --reps")
    return Report(
        [*findings, *load_findings(results, made, steady)],
        [section for section in sections if section.parts],
        [*_metrics(runs, steady)],
        failure=failure,
        conclusion=_conclusion(steady) if runs else failure,
    )


def _section(title: str, words: str, *parts: Table | Figure) -> Section:
    """Return a section with these parts, without tables that have no rows."""
    kept = [part for part in parts if isinstance(part, Figure) or part.rows]
    return Section(title, SENTENCES(words), kept)


def _of_calibrations(runs: Sequence[OpenRun]) -> Section:
    first_runs = [alike[0] for alike in grouped(runs, lambda run: run.key).values()]
    table = Table.from_items("Calibrations", first_runs, _OF_CALIBRATIONS, digits=4)
    return _section("Calibration", "calibration", table)


# --- findings ------------------------------------------------------------------------------------


def load_findings(results: Results, made: Sequence[OpenRun], steady: Sequence[Steady]) -> list[str]:
    """Describe what changed meanwhile, and loads without a result, with the reason."""
    drifts = {line["run"]: float(line.get(DRIFT) or 0) / 100 for line in judged_runs(results)}
    return SENTENCES(
        "loads",
        changes=[
            (SERVERS[server], drift)
            for server, runs in grouped(made, lambda run: run.server).items()
            if (drift := max(drifts.get(run.run, 0.0) for run in runs)) > TOLERANCE
        ],
        refused=[
            SENTENCES.paragraph("refused", line=line)
            for line in results.lines_if_any(loads.REFUSED, loads.RefusedLine)
        ],
        unstable=_unstable(loads.accepted(made), steady),
        rejected=[
            (key, most_common_reason(results, [run.run for run in made if run.key == key]))
            for key in _rejected(made, loads.accepted(made))
        ],
    )


def describe_failure(
    results: Results, made: Sequence[OpenRun], steady: Sequence[Steady], how: str
) -> str:
    """Say why no forecast is decided, as one of a quick run need not be; "" if one is.

    how: to measure longer.
    """
    is_decided = any(point.forecast is not Verdict.NOT_DECIDED for point in steady)
    runs = loads.accepted(made)
    if is_decided or (runs and results.manifest().get("quick")):
        return ""
    return SENTENCES.paragraph(
        "failure",
        made=made,
        runs=runs,
        why=most_common_reason(results, [run.run for run in made]),
        unstable=[] if steady else _unstable(runs, steady),
        how=how,
    )


def _conclusion(steady: Sequence[Steady]) -> str:
    """Say at how many loads the forecast holds, and whether service is in order."""
    counts = Counter(point.forecast for point in steady)
    return SENTENCES.paragraph(
        "conclusion",
        points=steady,
        forecasts=[(words, counts[v]) for v, words in FORECASTS.items() if counts[v]],
        orders=Counter(point.order_label for point in steady).items(),
    )


def _unstable(runs: Sequence[OpenRun], steady: Sequence[Steady]) -> list[tuple[LoadKey, str]]:
    """Return the loads that have no steady state by their model, and that."""
    over = {run.key: run.queue.name for run in runs if not run.is_stable}
    return sorted((key, over[key]) for key in over.keys() - {point.key for point in steady})


def _rejected(made: Sequence[OpenRun], counted: Sequence[OpenRun]) -> list[LoadKey]:
    keys = {run.key for run in made} - {run.key for run in counted}
    return sorted(keys, key=lambda key: (key.part, SERVERS[key.server], key.fraction))


def _metrics(runs: Sequence[OpenRun], steady: Sequence[Steady]) -> Iterator[Metric]:
    for server, its_runs in grouped(runs, lambda run: run.server).items():
        calibrated = {run.calibration: run.service_time_s for run in its_runs}
        mean_s = confidence_interval([*calibrated.values()])
        yield Metric.of_amount(f"service_time[{server}]", mean_s, "s")
    for point in steady:
        name = f"response_time[{point.key.server},{point.key.fraction:g}]"
        yield Metric.of_amount(name, point.raw)
    yield from (point.error for point in steady)


# --- sections ------------------------------------------------------------------------------------

_OF_STEADY: Sequence[Column[Steady]] = [
    *LOAD,
    ("Model", lambda point: point.runs[0].queue.name),
    *comparing.JUDGED,
]
_OF_ORDER: Sequence[Column[Steady]] = [
    *LOAD,
    ("Measured from sending on", lambda p: p.served + (p.as_served.estimate if p.as_served else 0)),
    ("Replay as served", lambda p: p.served if p.as_served else None),
    ("Difference", lambda p: percent(p.as_served, p.served) if p.as_served else None),
    ("Overtaken", lambda p: percent(p.overtaken, 1.0)[1:] if p.overtaken else None),
    ("Served", lambda point: point.order_label),
]
_OF_SHORT: Sequence[Column[AsTheStudy]] = [
    ("Share of L", lambda point: f"{point.key.fraction:g}"),
    ("Runs", lambda point: len(point.runs)),
    ("M/G/1, steady", lambda point: point.predicted * REPORT_S),
    ("Expected", lambda point: point.expected.mean_s * REPORT_S),
    ("95 % range of ours", lambda point: figures.range_s(point.expected)),
    ("Ours", lambda point: point.mean * REPORT_S),
    ("Same arrivals, replayed", lambda point: point.replayed * REPORT_S),
    ("95 % range of 15 runs", lambda point: figures.range_s(point.of_study)),
    ("The study's", lambda point: times(REPORT_S, point.published)),
]
_OF_CALIBRATIONS: Sequence[Column[OpenRun]] = [
    ("Server", lambda run: SERVERS[run.server]),
    ("Runs", lambda run: run.part.replace("-", " ")),
    ("Share of L", lambda run: f"{run.fraction:.2g}"),
    ("E[S] / ms", lambda run: 1000 * run.service_time_s),
    ("cv", lambda run: run.cv),
    ("E[S] outside the handler / ms", lambda run: times(1000, run.overhead_s)),
    ("Rate / 1/s", lambda run: run.rate_per_s),
    ("ρ by the model", lambda run: run.utilisation),
]


EXPERIMENT = Experiment.described(
    "open-workload",
    "000",
    measure,
    analyse,
    scales=(SCALE, SCALE),
    can_resume=True,
    has_loads=True,
    loads=fractions,
)
