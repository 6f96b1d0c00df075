"""Reports on a Raspberry Pi, which one command measures over the network: `scripts/lab pi URL`.

`pi_measurements` sets it up or says what to set, and asks it within the minutes that are given. The
report is one page: a sentence, the study's tables beside its own, figures.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from loadtests.experiments import open_workload_comparison as comparing
from loadtests.experiments import open_workload_figures as figures
from loadtests.experiments import open_workload_loads as loads
from loadtests.experiments import pi_measurements as measuring
from loadtests.experiments.open_workload_comparison import FORECASTS, Steady, give_or_take, percent
from loadtests.experiments.open_workload_demands import closed_points
from loadtests.experiments.pi_measurements import INDEX, SCAN, SENTENCES, MachineLine
from loadtests.grouping import grouped
from loadtests.lab.content import Figure, Metric, Report, Section, Table, times
from loadtests.lab.experiment import Experiment
from loadtests.lab.one_customer import Recorded
from loadtests.lab.published import SERVICE_TIMES
from loadtests.lab.repeated import accepted
from loadtests.lab.report.drawing import Axis, Series, Source, figure
from loadtests.lab.results import Results, ResultsError
from loadtests.lab.service_facts import ServiceFacts
from loadtests.models.estimates import Verdict
from loadtests.models.sample_statistics import mean_of, summary
from loadtests.questions import KINDS

COUNTER = "flight_counter"

Alone = Mapping[tuple[str, str], Recorded]
"""Kind and engine -> the run of one customer."""


def analyse(results: Results) -> Report:
    """Report what was measured. Raises ResultsError if no customer asked yet."""
    loads.require_known(results)
    runs = measuring.alone(results)
    if not all((kind, engine) in runs for kind in KINDS for engine in (INDEX, SCAN)):
        raise ResultsError(f"{results.folder} lacks the service times of one customer")
    manifest, machine = results.manifest(), results.lines_if_any(measuring.MACHINE, MachineLine)
    made = loads.open_runs(results) if results.has(loads.PLAN) else []
    steady = comparing.steady_points(made)
    closed, facts = closed_points(results), results.lines(loads.SERVICE_FACTS, ServiceFacts)[-1]
    refused = results.lines_if_any(loads.REFUSED, loads.RefusedLine)
    keys = [*(run.key for run in made), *(line.key for line in refused)]
    is_over = manifest["state"] == "complete"  # else what is missing was not reached yet
    is_decided = any(point.forecast is not Verdict.NOT_DECIDED for point in steady)
    closed_parts = [figures.throughput(closed)] if closed else []
    sections = [
        Section("One customer", SENTENCES("alone"), [_service_times(runs)]),
        Section("Under load", SENTENCES("load", keys=keys), _under_load(steady) if steady else []),
        Section("Customers who ask again at once", parts=closed_parts),
        Section("The Pi meanwhile", [], _over_time(machine)),
    ]
    findings = SENTENCES(
        "findings",
        facts=facts,
        steady=steady,
        left_out=measuring.left_out(keys, manifest.get("loads", ())) if is_over else (),
        refused=refused,
        forecasts=FORECASTS,
        percent=percent,
    )
    return Report(
        findings,
        [section for section in sections if section.parts],
        [*_metrics(runs, steady)],
        failure="" if manifest["quick"] or is_decided else SENTENCES.paragraph("failure"),
        conclusion=_conclusion(facts, runs, made, steady, machine),
    )


def _conclusion(
    facts: ServiceFacts,
    runs: Alone,
    made: Sequence[loads.OpenRun],
    steady: Sequence[Steady],
    machine: Sequence[MachineLine],
) -> str:
    index_s, scan_s = (mean_of(runs[COUNTER, engine].times_s) for engine in (INDEX, SCAN))
    points = grouped(steady, lambda point: point.forecast)
    by_server = grouped(accepted(made), lambda run: run.server).items()
    heat = [line.temperature_celsius for line in machine if line.temperature_celsius is not None]
    return SENTENCES.paragraph(
        "conclusion",
        processor=facts.processor,
        index_s=index_s,
        scan_s=scan_s,
        theirs_s=SERVICE_TIMES[COUNTER].mean_s,
        subjects=[
            (
                loads.SERVERS[server],
                mean_of([run.service_time_s for run in open_runs]),
                mean_of([run.rate_per_s / run.fraction for run in open_runs]),
            )
            for server, open_runs in by_server
        ],
        forecasts=[
            (words, _describe_loads(points[verdict]))
            for verdict, words in FORECASTS.items()
            if verdict in points
        ],
        heat=max(heat, default=None),
        was_throttled=any(line.throttled for line in machine),
    )


def _describe_loads(points: Sequence[Steady]) -> str:
    """Say at which shares of L of which questions these points are."""
    by_server = grouped([point.key for point in points], lambda key: key.server).items()
    return measuring.listed(
        [
            f"for {loads.SERVERS[server]} at {measuring.of_l(key.fraction for key in keys)}"
            for server, keys in by_server
        ]
    )


def _service_times(runs: Alone) -> Table:
    def cv(kind: str, engine: str) -> float | None:
        times_s = runs[kind, engine].times_s
        return summary(times_s).cv if len(times_s) > 1 else None

    return Table.from_items(
        "Service times, study 000 and this Pi",
        KINDS,
        [
            ("Question", str),
            ("Study 000 / s", lambda kind: SERVICE_TIMES[kind].mean_s),
            ("its cv", lambda kind: SERVICE_TIMES[kind].variation),
            ("Scan / s", lambda kind: mean_of(runs[kind, SCAN].times_s)),
            ("cv", lambda kind: cv(kind, SCAN)),
            ("Index / ms", lambda kind: 1000 * mean_of(runs[kind, INDEX].times_s)),
            ("cv", lambda kind: cv(kind, INDEX)),
            (
                "The study's over our scan's",
                lambda kind: SERVICE_TIMES[kind].mean_s / mean_of(runs[kind, SCAN].times_s),
            ),
        ],
        "The study's chain had 522 blocks on a hard disk; this one is as long as its ledger.",
    )


def _under_load(steady: Sequence[Steady]) -> list[Table | Figure]:
    table = Table.from_items(
        "Response times under load, study 000 and this Pi",
        steady,
        [
            ("Asked for", lambda point: loads.SERVERS[point.key.server]),
            ("Share of L", lambda point: f"{point.key.fraction:.2g}"),
            ("Requests", lambda point: point.arrivals),
            ("Requests / s", lambda point: point.runs[0].rate_per_s),
            ("The study's / E[S]", lambda point: comparing.PUBLISHED.get(point.key.fraction)),
            ("Ours / E[S]", lambda point: give_or_take(point.raw)),
            ("Forecast / E[S]", lambda point: point.predicted),
            ("Difference", lambda point: percent(point.difference, point.predicted)),
            ("The forecast", lambda point: FORECASTS[point.forecast]),
        ],
    )
    series = figures.layers(steady, "formula of one worker")
    return [table, figures.against_load(SENTENCES.paragraph("response"), series)]


def _over_time(machine: Sequence[MachineLine]) -> list[Table | Figure]:
    """Show how busy processor and disk were between two looks, and how warm it was."""
    if len(machine) < 2:
        return []
    looks = list(pairwise(machine))
    minutes = [(later.at_s - machine[0].at_s) / 60 for _, later in looks]
    lines = {
        "processor / %": [
            times(100 / (look[1].cores or 1), _busy(look, "cpu_seconds_total")) for look in looks
        ],
        "disk / %": [times(100, _busy(look, "disk_busy_seconds_total")) for look in looks],
        "temperature / °C": [later.temperature_celsius for _, later in looks],
        "memory in use / %": [_memory_used(later) for _, later in looks],
    }
    known = {name: ys for name, ys in lines.items() if any(y is not None for y in ys)}
    sources: tuple[Source, ...] = ("ours", "third", "study", "second")
    series = [
        Series(name, source, minutes, ys, shape="line")
        for (name, ys), source in zip(known.items(), sources, strict=False)
    ]
    rows = [
        (name, min(values), mean_of(values), max(values))
        for name, ys in known.items()
        if (values := [y for y in ys if y is not None])
    ]
    reports_throttling = any(line.throttled is not None for line in machine)
    slowed = sum(bool(later.throttled) for _, later in looks) if reports_throttling else None
    note = SENTENCES.paragraph("slowed", looks=len(looks), slowed=slowed)
    table = Table("The machine", ("", "least", "mean", "most"), rows, note)
    caption = SENTENCES.paragraph("machine")
    return [figure("The Pi meanwhile", caption, Axis("time / min"), Axis(""), series, table)]


def _busy(look: tuple[MachineLine, MachineLine], name: str) -> float | None:
    """Return the increase of a total from one look to the next, for each second."""
    before, later = look
    first, last = getattr(before, name), getattr(later, name)
    if first is None or last is None or later.at_s <= before.at_s:
        return None
    return max(0.0, float(last - first) / (later.at_s - before.at_s))


def _memory_used(line: MachineLine) -> float | None:
    if line.memory_bytes is None or line.memory_available_bytes is None:
        return None
    return 100 * (1 - line.memory_available_bytes / line.memory_bytes)


def _metrics(runs: Alone, steady: Sequence[Steady]) -> Iterator[Metric]:
    for (kind, engine), run in runs.items():
        yield Metric(f"service_time[{kind},{engine}]", mean_of(run.times_s), "s")
    yield from (point.error for point in steady)


EXPERIMENT = Experiment(
    name="pi",
    study="000",
    title="A Raspberry Pi over the network",
    reproduces="the tables of service times and of open workloads",
    about=(
        "One customer asks the three questions, by the index and by scans. Then requests arrive as "
        "a Poisson process at shares of the highest rate L, and customers ask again at once. What "
        "is asked is asked once, so that no answer is a kept one. The generator is not on the Pi."
    ),
    measure=measuring.measure,
    analyse=analyse,
    can_resume=True,
    loads=lambda _: loads.STUDY_FRACTIONS,
    takes_host=True,
)
