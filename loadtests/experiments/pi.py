"""Reports on a Raspberry Pi, which one command measures over the network: `scripts/lab pi URL`.

`pi_measurements` sets it up or says what to set, and asks it within the minutes that are given. The
report is one page: a sentence, the study's tables beside its own, figures.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from loadtests.experiments import open_workload_comparison as comparing
from loadtests.experiments import open_workload_figures as figures
from loadtests.experiments import open_workload_loads as loads
from loadtests.experiments.open_workload import closed_table
from loadtests.experiments.open_workload_comparison import (
    FORECASTS,
    Steady,
    give_or_take,
    percent,
)
from loadtests.experiments.open_workload_demands import closed_points
from loadtests.experiments.pi_measurements import (
    INDEX,
    MACHINE,
    SCAN,
    MachineLine,
    alone,
    left_out,
    listed,
    measure,
    of_l,
)
from loadtests.grouping import grouped
from loadtests.lab.content import Figure, Metric, Report, Section, Table, times
from loadtests.lab.experiment import Experiment
from loadtests.lab.one_customer import Recorded
from loadtests.lab.published import SERVICE_TIMES
from loadtests.lab.repeated import accepted
from loadtests.lab.report.drawing import Axis, Series, Source, figure
from loadtests.lab.results import Results, ResultsError
from loadtests.lab.sentences import Sentences
from loadtests.lab.service_facts import ServiceFacts
from loadtests.models.estimates import Verdict
from loadtests.models.sample_statistics import mean_of, summary
from loadtests.questions import KINDS

COUNTER = "flight_counter"
SENTENCES = Sentences("pi")


def analyse(results: Results) -> Report:
    """Report what was measured. Raises ResultsError if no customer asked yet."""
    loads.require_known(results)
    found = alone(results)
    if not all((kind, engine) in found for kind in KINDS for engine in (INDEX, SCAN)):
        raise ResultsError(f"{results.folder} lacks the service times of one customer")
    manifest, machine = results.manifest(), results.lines_if_any(MACHINE, MachineLine)
    made = loads.open_runs(results) if results.has(loads.PLAN) else []
    steady = comparing.steady_points(made)
    closed, facts = closed_points(results), results.lines(loads.SERVICE_FACTS, ServiceFacts)[-1]
    refused = results.lines_if_any(loads.REFUSED, loads.RefusedLine)
    looked_at = [*(run.key for run in made), *(line.key for line in refused)]
    is_over = manifest["state"] == "complete"  # else what is missing was not reached yet
    is_decided = any(point.forecast is not Verdict.NOT_DECIDED for point in steady)
    under_load: list[Table | Figure] = []
    if steady:
        series = figures.layers(steady, "formula of one worker")
        words = SENTENCES.one("response")
        under_load = [_open_table(steady), figures.against_load(words, series)]
    sections = [
        Section("One customer", SENTENCES("alone"), [_service_times(found)]),
        Section("Under load", SENTENCES("load", keys=looked_at), under_load),
        Section(
            "Customers who ask again at once",
            parts=[figures.throughput(closed, closed_table(closed))] if closed else [],
        ),
        Section("The Pi meanwhile", [], _over_time(machine)),
    ]
    findings = SENTENCES(
        "findings",
        facts=facts,
        steady=steady,
        left_out=left_out(looked_at, manifest.get("loads", ())) if is_over else (),
        refused=refused,
        forecasts=FORECASTS,
        percent=percent,
    )
    return Report(
        findings,
        [section for section in sections if section.parts],
        [*_metrics(found, steady)],
        failure="" if manifest["quick"] or is_decided else SENTENCES.one("failure"),
        conclusion=_conclusion(facts, found, made, steady, machine),
    )


def _conclusion(
    facts: ServiceFacts,
    found: dict[tuple[str, str], Recorded],
    made: Sequence[loads.OpenRun],
    steady: Sequence[Steady],
    machine: Sequence[MachineLine],
) -> str:
    index_s, scan_s = (mean_of(found[COUNTER, engine].times_s) for engine in (INDEX, SCAN))
    shares = grouped(steady, lambda point: point.forecast)
    by_server = grouped(accepted(made), lambda run: run.server).items()
    heat = [line.temperature_celsius for line in machine if line.temperature_celsius is not None]
    return SENTENCES.one(
        "conclusion",
        processor=facts.processor,
        index_s=index_s,
        scan_s=scan_s,
        theirs_s=SERVICE_TIMES[COUNTER].mean_s,
        asked=[
            (
                loads.SERVERS[server],
                mean_of([run.service_time_s for run in runs]),
                mean_of([run.rate_per_s / run.fraction for run in runs]),
            )
            for server, runs in by_server
        ],
        forecasts=[
            (words, _where(shares[verdict]))
            for verdict, words in FORECASTS.items()
            if verdict in shares
        ],
        heat=max(heat, default=None),
        was_throttled=any(line.throttled for line in machine),
    )


def _where(points: Sequence[Steady]) -> str:
    """At which shares of L of which questions these points are, in words."""
    by_server = grouped([point.key for point in points], lambda key: key.server).items()
    return listed(
        [
            f"for {loads.SERVERS[server]} at {of_l(key.fraction for key in keys)}"
            for server, keys in by_server
        ]
    )


def _service_times(found: dict[tuple[str, str], Recorded]) -> Table:
    rows = []
    for kind in KINDS:
        index, scan = (found[kind, engine].times_s for engine in (INDEX, SCAN))
        theirs = SERVICE_TIMES[kind]
        rows.append(
            (
                kind,
                theirs.mean_s,
                theirs.variation,
                mean_of(scan),
                summary(scan).cv if len(scan) > 1 else None,
                1000 * mean_of(index),
                summary(index).cv if len(index) > 1 else None,
                theirs.mean_s / mean_of(scan),
            )
        )
    return Table(
        "Service times, study 000 and this Pi",
        (
            "Question",
            "Study 000 / s",
            "its cv",
            "Scan / s",
            "cv",
            "Index / ms",
            "cv",
            "The study's over our scan's",
        ),
        rows,
        "The study's chain had 522 blocks on a hard disk; this one is as long as its ledger.",
    )


def _open_table(steady: Sequence[Steady]) -> Table:
    return Table.of(
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


def _over_time(machine: Sequence[MachineLine]) -> list[Table | Figure]:
    """How busy processor and disk were between two looks, and how warm it was."""
    if len(machine) < 2:
        return []
    looks = list(pairwise(machine))
    minutes = [(later.at_s - machine[0].at_s) / 60 for _, later in looks]
    busy = [_share(looks_at, "cpu_seconds_total") for looks_at in looks]
    disk = [_share(looks_at, "disk_busy_seconds_total") for looks_at in looks]
    processor = [
        None if share is None else 100 * share / (later.cores or 1)
        for share, (_, later) in zip(busy, looks, strict=True)
    ]
    lines = {
        "processor / %": processor,
        "disk / %": [times(100, share) for share in disk],
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
    is_told = any(line.throttled is not None for line in machine)
    slowed = sum(bool(later.throttled) for _, later in looks) if is_told else None
    note = SENTENCES.one("slowed", looks=len(looks), slowed=slowed)
    table = Table("The machine", ("", "least", "mean", "most"), rows, note)
    told = SENTENCES.one("machine")
    return [figure("The Pi meanwhile", told, Axis("time / min"), Axis(""), series, table)]


def _share(looks: tuple[MachineLine, MachineLine], name: str) -> float | None:
    """The increase of a total between two looks, for each second."""
    before, later = looks
    values = getattr(before, name), getattr(later, name)
    if None in values or later.at_s <= before.at_s:
        return None
    share: float = (values[1] - values[0]) / (later.at_s - before.at_s)
    return max(0.0, share)


def _memory_used(line: MachineLine) -> float | None:
    if line.memory_bytes is None or line.memory_available_bytes is None:
        return None
    return 100 * (1 - line.memory_available_bytes / line.memory_bytes)


def _metrics(found: dict[tuple[str, str], Recorded], steady: Sequence[Steady]) -> Iterator[Metric]:
    for (kind, engine), run in found.items():
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
    measure=measure,
    analyse=analyse,
    can_resume=True,
    loads=lambda _: loads.STUDY_FRACTIONS,
    takes_host=True,
)
