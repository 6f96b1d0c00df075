"""Reports on a Raspberry Pi, which one command measures over the network: `scripts/lab pi URL`.

`pi_measurements` sets it up or says what to set, and asks it within the minutes that are given. The
report is one page: a sentence, the study's tables beside its own, figures.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from statistics import fmean

from loadtests.experiments import open_workload
from loadtests.experiments import open_workload_comparison as comparing
from loadtests.experiments import open_workload_figures as figures
from loadtests.experiments import open_workload_loads as loads
from loadtests.experiments import pi_measurements as measuring
from loadtests.experiments.open_workload_comparison import FORECASTS, Steady, percent
from loadtests.experiments.pi_closed import Closed, closed_points
from loadtests.experiments.pi_measurements import INDEX, SCAN, SENTENCES, MachineLine
from loadtests.grouping import grouped
from loadtests.lab.content import Column, Figure, Metric, Report, Section, Table, times
from loadtests.lab.experiment import Experiment
from loadtests.lab.published import SERVICE_TIMES
from loadtests.lab.repeated import measured, most_common_reason
from loadtests.lab.report.drawing import IN_TURN, Axis, Series, figure
from loadtests.lab.results import Results, ResultsError
from loadtests.lab.service_facts import ServiceFacts
from loadtests.models.estimates import LEAST_VALUES, mean_over_runs
from loadtests.models.sample_statistics import cv_of
from loadtests.questions import KINDS

COUNTER = "flight_counter"
MOST_BETWEEN_S = 60.0  # looks at the machine in one session
MOST_CHANGE = 0.2  # of E[S] from the first customer to the next, that may be chance

Alone = Mapping[tuple[str, str], measuring.Alone]
"""Kind and engine -> the run of one customer."""


def analyse(results: Results) -> Report:
    """Report what was measured. Raises ResultsError if no customer asked yet."""
    every = measuring.alone(results)
    if not all((kind, engine) in every for kind in KINDS for engine in (INDEX, SCAN)):
        raise ResultsError(f"{results.folder} lacks the service times of one customer")
    runs = {pair: run for pair, run in every.items() if run.is_accepted}
    manifest, machine = results.manifest(), results.lines_if_any(measuring.MACHINE, MachineLine)
    made = loads.open_runs(results) if results.has(loads.PLAN) else []
    steady = comparing.steady_points(made)
    closed, facts = closed_points(results), results.lines(loads.SERVICE_FACTS, ServiceFacts)[-1]
    refused = results.lines_if_any(loads.REFUSED, loads.RefusedLine)
    keys = [*(run.key for run in made), *(line.key for line in refused)]
    chosen = manifest.get("loads", ())
    is_over = manifest["state"] == "complete"  # else what is missing was not reached yet
    failure = open_workload.describe_failure(results, made, steady, "--minutes, or resume")
    load_words = SENTENCES(
        "load", keys=keys, why=measuring.why_rankings(results, every), least=LEAST_VALUES
    )
    closed_parts = [_throughput(closed)] if closed else []
    sections = [
        Section("One customer", SENTENCES("alone"), [_service_times(runs)]),
        Section("Under load", load_words, _under_load(steady) if steady else []),
        Section("Customers who ask again at once", parts=closed_parts),
        Section("The machine meanwhile", [], _over_time(machine)),
    ]
    rejected = {pair: run for pair, run in every.items() if not run.is_accepted}
    findings = SENTENCES(
        "findings",
        service=SENTENCES.paragraph("service", facts=facts),
        steady=steady,
        left_out=measuring.left_out(keys, chosen, every, facts.workers) if is_over else (),
        changes=_changes(made, every),
        rejected=[f"{kind} by {engine}" for kind, engine in rejected],
        why=most_common_reason(results, [run.line.run for run in rejected.values()]),
        percent=percent,
    )
    others = open_workload.load_findings(results, made, steady)
    return Report(
        [*findings, *_closed_findings(closed), *others],
        [section for section in sections if section.parts],
        [*_metrics(runs, steady, closed)],
        failure=failure,
        conclusion=_conclusion(facts, runs, made, steady, machine, failure),
    )


def _closed_findings(points: Sequence[Closed]) -> list[str]:
    """Say of closed runs of several customers how far they are from simulated workers."""
    several = [point for point in points if point.line.customers > 1]
    return SENTENCES(
        "closed_findings",
        closed=grouped(several, lambda point: loads.SERVERS[point.line.server]),
        forecasts=FORECASTS,
        percent=percent,
    )


def _conclusion(
    facts: ServiceFacts,
    runs: Alone,
    made: Sequence[loads.OpenRun],
    steady: Sequence[Steady],
    machine: Sequence[MachineLine],
    failure: str,
) -> str:
    index_s, scan_s = (_mean_s(runs, COUNTER, engine) for engine in (INDEX, SCAN))
    points = grouped(steady, lambda point: point.forecast)
    by_server = grouped(loads.accepted(made), lambda run: run.server).items()
    subjects = [
        (
            loads.SERVERS[server],
            fmean([run.service_time_s for run in open_runs]),
            fmean([run.rate_per_s / run.fraction for run in open_runs]),
        )
        for server, open_runs in by_server
    ]
    heat = [line.temperature_celsius for line in machine if line.temperature_celsius is not None]
    return SENTENCES.paragraph(
        "conclusion",
        processor=facts.processor,
        index_s=index_s,
        scan_s=scan_s,
        theirs_s=SERVICE_TIMES[COUNTER].mean_s,
        subjects=[subject for subject in subjects if _fits(*subject[1:])],
        unfit=[subject for subject in subjects if not _fits(*subject[1:])],
        forecasts=[
            (words, _describe_loads(points[verdict]))
            for verdict, words in FORECASTS.items()
            if verdict in points
        ],
        heat=max(heat, default=None),
        was_throttled=any(line.throttled for line in machine),
        failure=failure,
    )


def _fits(service_s: float, most_per_s: float) -> bool:
    """Tell whether L may belong to E[S]: one customer alone is answered 1/E[S] times a second."""
    return most_per_s * service_s > 1 - MOST_CHANGE


def _mean_s(runs: Alone, kind: str, engine: str) -> float | None:
    return fmean(runs[kind, engine].times_s) if (kind, engine) in runs else None


def _changes(made: Sequence[loads.OpenRun], runs: Alone) -> Iterator[tuple[str, float, float]]:
    """Yield the servers whose E[S] has changed before they had load, with it (s) at first and then.

    One customer asked alike both times, some minutes apart.
    """
    for server, open_runs in grouped(made, lambda run: run.server).items():
        then_s, first_s = open_runs[0].service_time_s, measuring.first_s(runs, server)
        if abs(then_s / first_s - 1) > MOST_CHANGE:
            yield loads.SERVERS[server], first_s, then_s


def _describe_loads(points: Sequence[Steady]) -> str:
    by_server = grouped([point.key for point in points], lambda key: key.server).items()
    return measuring.listed(
        [
            f"for {loads.SERVERS[server]} at {measuring.of_l(key.fraction for key in keys)}"
            for server, keys in by_server
        ]
    )


def _service_times(runs: Alone) -> Table:
    def cv(kind: str, engine: str) -> float | None:
        times_s = runs[kind, engine].times_s if (kind, engine) in runs else ()
        return cv_of(times_s) if len(times_s) > 1 else None

    return Table.from_items(
        "Service times, study 000 and this machine",
        KINDS,
        [
            ("Question", str),
            ("Study 000 / s", lambda kind: SERVICE_TIMES[kind].mean_s),
            ("its cv", lambda kind: SERVICE_TIMES[kind].variation),
            ("Scan / s", lambda kind: _mean_s(runs, kind, SCAN)),
            ("cv", lambda kind: cv(kind, SCAN)),
            ("Index / ms", lambda kind: times(1000, _mean_s(runs, kind, INDEX))),
            ("cv", lambda kind: cv(kind, INDEX)),
            (
                "The study's over our scan's",
                lambda kind: (
                    SERVICE_TIMES[kind].mean_s / scan_s
                    if (scan_s := _mean_s(runs, kind, SCAN))
                    else None
                ),
            ),
        ],
        "The study's chain had 522 blocks on a hard disk; this one is as long as its ledger.",
    )


def _under_load(steady: Sequence[Steady]) -> list[Table | Figure]:
    table = Table.from_items(
        "Response times under load, study 000 and this machine",
        steady,
        [
            ("Asked for", lambda point: loads.SERVERS[point.key.server]),
            ("Share of L", lambda point: f"{point.key.fraction:.2g}"),
            ("Requests", lambda point: point.arrivals),
            ("Requests / s", lambda point: fmean([run.rate_per_s for run in point.runs])),
            ("E[S] / ms", lambda p: 1000 * fmean([run.service_time_s for run in p.runs])),
            ("The study's / E[S]", lambda point: comparing.PUBLISHED.get(point.key.fraction)),
            ("Ours / E[S]", lambda point: point.raw),
            ("Forecast / E[S]", lambda point: point.predicted),
            ("Difference", lambda point: percent(point.difference, point.predicted)),
            ("The forecast", lambda point: FORECASTS[point.forecast]),
        ],
        loads.SENTENCES.paragraph("rules", **open_workload.LIMITS),
    )
    series = figures.layers(steady, "formula of one worker")
    return [table, figures.against_load(SENTENCES.paragraph("response"), series)]


_CLOSED: Sequence[Column[Closed]] = [
    ("Server", lambda point: loads.SERVERS[point.line.server]),
    ("Customers", lambda point: point.line.customers),
    ("Predicted X / 1/s", lambda point: point.predicted.throughput_per_s),
    ("As served / 1/s", lambda point: point.served_per_s),
    ("Measured X / 1/s", lambda point: point.throughput_per_s),
    ("Predicted R / ms", lambda point: 1000 * point.predicted.response_time_s),
    ("Measured R / ms", lambda point: 1000 * point.window.mean_response_s),
    ("The forecast", lambda point: FORECASTS[point.verdict]),
]


def _throughput(points: Sequence[Closed]) -> Figure:
    """Draw throughput of closed runs against customers, beside what MVA predicts."""
    series = []
    by_server = grouped(points, lambda point: point.line.server)
    for (server, its_points), source in zip(by_server.items(), figures.SOURCES, strict=False):
        xs = [float(point.line.customers) for point in its_points]
        x = [point.throughput_per_s for point in its_points]
        predicted = [point.predicted.throughput_per_s for point in its_points]
        series.append(measured(loads.SERVERS[server], source, xs, x, shape="points"))
        name = "" if series[1:] else "mean value analysis"
        series.append(Series(name, source, xs, predicted, shape="curve"))
    x_axis, y_axis = Axis("customers N"), Axis("throughput X / 1/s", limits=(0, None))
    table = Table.from_items("Closed runs", points, _CLOSED, SENTENCES.paragraph("closed"))
    caption = SENTENCES.paragraph("throughput")
    return figure("Throughput against customers", caption, x_axis, y_axis, series, table)


def _over_time(machine: Sequence[MachineLine]) -> list[Table | Figure]:
    """Show how busy processor and disk were between two looks, and how warm it was.

    The time between two sessions is left out.
    """
    looks = [look for look in pairwise(machine) if look[1].at_s - look[0].at_s < MOST_BETWEEN_S]
    if not looks:
        return []
    minutes = list(accumulate((later.at_s - before.at_s) / 60 for before, later in looks))
    lines = {
        "processor busy / %": [_busy(*look, "cpu_seconds_total", look[1].cores) for look in looks],
        "disk busy / %": [_busy(*look, "disk_busy_seconds_total") for look in looks],
        "temperature / °C": [later.temperature_celsius for _, later in looks],
        "memory in use / %": [_memory_used(later) for _, later in looks],
    }
    known = {name: ys for name, ys in lines.items() if any(y is not None for y in ys)}
    series = [
        Series(name, source, minutes, ys, shape="line")
        for (name, ys), source in zip(known.items(), IN_TURN, strict=False)
    ]
    rows = [
        (name, min(values), fmean(values), max(values))
        for name, ys in known.items()
        if (values := [y for y in ys if y is not None])
    ]
    reports_throttling = any(line.throttled is not None for line in machine)
    slowed = sum(bool(later.throttled) for _, later in looks) if reports_throttling else None
    note = SENTENCES.paragraph("slowed", looks=len(looks), slowed=slowed)
    table = Table("The machine", ("", "least", "mean", "most"), rows, note)
    caption = SENTENCES.paragraph("machine")
    return [figure("The machine meanwhile", caption, Axis("time / min"), Axis(""), series, table)]


def _busy(
    before: MachineLine, later: MachineLine, name: str, cores: float | None = None
) -> float | None:
    """Return how busy (%) it was from one look to the next, by a total of seconds.

    By the clocks of two machines it may be more than all the time, and then it is all.
    """
    first, last = getattr(before, name), getattr(later, name)
    if first is None or last is None or later.at_s <= before.at_s:
        return None
    share = float(last - first) / (later.at_s - before.at_s) / (cores or 1)
    return min(100.0, max(0.0, 100 * share))


def _memory_used(line: MachineLine) -> float | None:
    if line.memory_bytes is None or line.memory_available_bytes is None:
        return None
    return 100 * (1 - line.memory_available_bytes / line.memory_bytes)


def _metrics(runs: Alone, steady: Sequence[Steady], closed: Sequence[Closed]) -> Iterator[Metric]:
    for (kind, engine), run in runs.items():
        mean = mean_over_runs([run.times_s])  # whose parts leave out a remainder
        mean = replace(mean, estimate=fmean(run.times_s))
        yield Metric.of_amount(f"service_time[{kind},{engine}]", mean, "s")
    yield from (point.error for point in steady)
    for closed_point in closed:
        name = f"throughput[{closed_point.line.server},{closed_point.line.customers}]"
        yield Metric.of_amount(name, closed_point.throughput_per_s, "1/s")


EXPERIMENT = Experiment.described(
    "pi",
    "000",
    measuring.measure,
    analyse,
    can_resume=True,
    has_loads=True,
    loads=lambda _: loads.STUDY_FRACTIONS,
)
