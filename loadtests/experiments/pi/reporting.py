"""Makes the report on a Raspberry Pi: a sentence, the study's tables beside its own, figures."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

from loadtests.experiments.open_workload import comparing, figures, loads
from loadtests.experiments.open_workload.analysing import closed_table
from loadtests.experiments.open_workload.comparing import (
    FORECASTS,
    ORDERS,
    Steady,
    give_or_take,
    percent,
)
from loadtests.experiments.open_workload.demands import Closed, closed_points
from loadtests.experiments.pi.measuring import (
    INDEX,
    MACHINE,
    SCAN,
    MachineLine,
    alone,
    left_out,
)
from loadtests.lab.content import Figure, Metric, Report, Section, Table, shown, times
from loadtests.lab.one_customer import Recorded
from loadtests.lab.published import OPEN_WORKLOADS, SERVICE_TIMES, UNROUNDED
from loadtests.lab.report.drawing import Axis, Series, Source, figure
from loadtests.lab.results import Results, ResultsError
from loadtests.lab.service_facts import ServiceFacts
from loadtests.models.estimates import Verdict
from loadtests.models.sample_statistics import mean_of, summary
from loadtests.questions import KINDS

PUBLISHED = {one.fraction: one for one in OPEN_WORKLOADS}
COUNTER = "flight_counter"


def analyse(results: Results) -> Report:
    """Report what was measured. Raises ResultsError if no customer asked yet."""
    found = alone(results)
    if not all((kind, engine) in found for kind in KINDS for engine in (INDEX, SCAN)):
        raise ResultsError(f"{results.folder} lacks the service times of one customer")
    manifest, machine = results.manifest(), results.lines_if_any(MACHINE, MachineLine)
    made = loads.open_runs(results) if results.has(loads.PLAN) else []
    until_decided = manifest.get("until_decided", False)
    steady = comparing.steady_points(made, is_until_decided=until_decided)
    closed, facts = closed_points(results), results.lines(loads.SERVICE_FACTS, ServiceFacts)[-1]
    measured_loads = dict.fromkeys(run.key for run in made)
    under_load: list[Table | Figure] = []
    if steady:
        under_load = [_open_table(steady), figures.response(steady, [])]
    sections = [
        Section("One customer", [_ALONE], [_service_times(found)]),
        Section("Under load", [_LOAD], under_load),
        Section("Customers who ask again at once", [], _throughput(closed)),
        Section("The Pi meanwhile", [], _over_time(machine)),
    ]
    findings = [
        facts.told,
        *(_finding(point) for point in steady),
        *left_out(measured_loads),
        *(line.told for line in results.lines_if_any(loads.REFUSED, loads.RefusedLine)),
    ]
    return Report(
        findings,
        [section for section in sections if section.parts],
        [*_metrics(found, steady)],
        failure=_failure(steady, is_quick=manifest["quick"]),
        conclusion=_conclusion(facts, found, steady, machine),
    )


def _conclusion(
    facts: ServiceFacts,
    found: dict[tuple[str, str], Recorded],
    steady: Sequence[Steady],
    machine: Sequence[MachineLine],
) -> str:
    index_s, scan_s = (mean_of(found[COUNTER, engine].times_s) for engine in (INDEX, SCAN))
    counts = Counter(point.forecast for point in steady)
    told = [f"{words} at {counts[one]}" for one, words in FORECASTS.items() if counts[one]]
    load = f"; under load, the forecast from one customer {', '.join(told)} loads" if told else ""
    heat = [line.temperature_celsius for line in machine if line.temperature_celsius is not None]
    was_throttled = any(line.throttled for line in machine)
    warm = f"; it was at most {max(heat):.0f} °C warm" if heat else ""
    warm += " and was slowed down for a while" if was_throttled else ""
    theirs = SERVICE_TIMES[COUNTER].mean_s
    return (
        f"{facts.processor or 'The machine'} counts the flights between two cities in "
        f"{shown(1000 * index_s)} ms by its index and in {shown(scan_s)} s by a scan, where the "
        f"Pi of study 000 took {theirs:.1f} s{load}{warm}."
    )


def _failure(steady: Sequence[Steady], *, is_quick: bool) -> str:
    is_decided = any(point.forecast is not Verdict.NOT_DECIDED for point in steady)
    if is_quick or is_decided:
        return ""
    return "No forecast under load is decided: measure longer (--minutes), or a quieter network."


def _finding(point: Steady) -> str:
    return (
        f"{point.key.told}: the forecast {FORECASTS[point.forecast]} (measured less forecast "
        f"{percent(point.difference, point.predicted)}); requests were served "
        f"{ORDERS[point.order]}."
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
    def theirs(point: Steady) -> float | None:
        published = PUBLISHED.get(point.key.fraction)
        return published.tested_s / UNROUNDED.mean_s if published else None

    return Table.of(
        "Response times under load, study 000 and this Pi",
        steady,
        [
            *figures.LOAD,
            ("Requests", lambda point: point.arrivals),
            ("Requests / s", lambda point: point.runs[0].rate_per_s),
            ("The study's / E[S]", theirs),
            ("Ours / E[S]", lambda point: give_or_take(point.raw)),
            ("Forecast / E[S]", lambda point: point.predicted),
            ("Difference", lambda point: percent(point.difference, point.predicted)),
            ("The forecast", lambda point: FORECASTS[point.forecast]),
        ],
    )


def _throughput(closed: Sequence[Closed]) -> list[Table | Figure]:
    return [figures.throughput(closed, closed_table(closed))] if closed else []


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
    slow = sum(bool(later.throttled) for _, later in looks)
    table = Table(
        "The machine",
        ("", "least", "mean", "most"),
        rows,
        f"Of {len(looks)} looks, it was slowed down by heat or too little voltage at {slow}."
        if any(line.throttled is not None for line in machine)
        else "It does not tell whether it is slowed down.",
    )
    told = "What the machine told of itself in /metrics while it was measured."
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
    for point in steady:
        share = point.difference.times(1 / point.predicted)
        name = f"forecast_error[{point.key.server},{point.key.fraction:g}]"
        yield Metric(name, share.estimate, "", *share.ends)


_ALONE = (
    "One customer asks again as soon as an answer comes, each question once. So nobody waits, and "
    "these are service times, as seen over the network; their mean is E[S], and cv their standard "
    "deviation over their mean."
)
_LOAD = (
    "Requests arrive at random, as from many people (a Poisson process), at shares of L, the most "
    "that is answered in a second. The forecast of the mean response time is made from one "
    "customer before each run; it holds if the 95 % interval of measured less forecast is within "
    "5 %."
)
