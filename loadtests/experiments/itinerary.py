"""Measures itineraries as study 004 did: transactions of nine requests, alone and at a rate.

First one client goes without a pause, then several at target rates, each run on a fresh ledger.
`loadtests.scenarios` describes what a client does. Beside the raw rows this writes `plan.csv`, a
line for each run.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from statistics import fmean

from loadtests.experiments.itinerary_transactions import (
    AT_RATE,
    PLAN,
    SINGLE,
    Itineraries,
    RunLine,
    itineraries_of,
    itinerary_runs,
    phases_table,
    travelled,
)
from loadtests.grouping import grouped
from loadtests.lab import published
from loadtests.lab.content import Figure, Metric, Report, Section, Table
from loadtests.lab.experiment import Experiment, Mode, Run
from loadtests.lab.ledgers import Material, fresh_service, prepared
from loadtests.lab.repeated import accepted, lines, rejected_told
from loadtests.lab.report.drawing import Axis, Source, figure
from loadtests.lab.results import Results, ResultsError, TableWriter
from loadtests.lab.sentences import Sentences
from loadtests.scenarios import DURABLE, MINED, TRAVEL_AGENCY

MINE_INTERVAL_S = 0.1
SETTINGS: Mapping[str, Mapping[str, object]] = {
    DURABLE: {},
    MINED: {"mine_interval_s": MINE_INTERVAL_S},
}
"""Settings of the service for each way to commit."""
NEW_FLIGHTS = 3000


@dataclass(frozen=True, slots=True)
class Plan:
    """What is measured on a ledger of `blocks` blocks.

    rates: way to commit -> numbers of clients, and target rates of each as shares of 1/T, where T
    is the time of a transaction of one client alone; above 1 they cannot be reached.
    """

    blocks: int
    singles: int  # runs of one client without a pause
    iterations: int
    rates: Mapping[str, tuple[Sequence[int], Sequence[float]]]


QUICK = Plan(10, 1, 25, {DURABLE: ((1, 4), (0.5, 10.0)), MINED: ((4,), (1.0,))})
FULL = Plan(  # takes about 12 minutes on two cores
    100,
    5,
    published.ITINERARY_ITERATIONS,
    {
        DURABLE: (published.ITINERARY_CLIENTS, (0.1, 0.25, 0.5, 1.0, 2.0, 10.0)),
        MINED: (published.ITINERARY_CLIENTS, (0.5, 1.0, 4.0)),
    },
)


def measure(run: Run) -> None:
    """Measure by the quick or the full plan, one way to commit after the other."""
    plan = run.choose(QUICK, FULL)
    singles, size = run.options.reps or plan.singles, (plan.iterations, plan.blocks)
    material = prepared(run, (plan.blocks,), NEW_FLIGHTS)
    with run.results.table(PLAN, RunLine) as table:
        for commit, (numbers, fractions) in plan.rates.items():
            times_s = []
            for rep in range(1, singles + 1):
                run.say(f"{commit}: one client, {rep} of {singles}")
                line = RunLine(f"{commit}-single-{rep:02}", SINGLE, commit, 1, 0.0, 0.0, *size)
                times_s.append(_one(run, table, material, line))
            for fraction, clients in product(fractions, numbers):
                run.say(f"{commit}: {clients} clients, {fraction:g} of the rate of one alone")
                name, interval_s = f"{commit}-{fraction:g}-{clients}", fmean(times_s) / fraction
                of_run = name, AT_RATE, commit, clients, fraction, interval_s
                _one(run, table, material, RunLine(*of_run, *size))


def _one(run: Run, table: TableWriter, material: Material, line: RunLine) -> float:
    """Make a run on a fresh ledger. Returns and raises as `travelled`."""
    with fresh_service(run, material.chains[line.blocks], line.run, SETTINGS[line.commit]) as one:
        return travelled(run, table, material, line, one)


# --- the report ----------------------------------------------------------------------------------

COMMITS = {
    DURABLE: "commit when durable",
    MINED: f"commit when mined, a block every {MINE_INTERVAL_S:g} s",
}
_SOURCES: tuple[Source, ...] = ("ours", "second", "third", "model", "fourth")


def analyse(results: Results) -> Report:
    """Report phases, their sum, and rates. Raises ResultsError if there is no complete run."""
    runs = itinerary_runs(results)
    alone, at_rate = itineraries_of(runs, SINGLE), itineraries_of(runs, AT_RATE)
    if not alone:
        raise ResultsError(f"{results.folder} has no run of one client with a transaction")
    sentences, sound, sound_rates = Sentences("itinerary"), accepted(alone), accepted(at_rate)
    sections = [
        Section(
            "Phases of a transaction",
            sentences("alone", commits=COMMITS),
            [phases_table({COMMITS[of.line.commit]: of for of in alone})],
        ),
        Section(
            "Transactions at a rate",
            sentences("rates", alone=sound, commits=COMMITS),
            [
                _rate_figure(commit, of, sentences.one("rate", commit=COMMITS[commit]))
                for commit, of in grouped(at_rate, lambda of: of.line.commit).items()
            ],
        ),
        Section(
            "What a client does",
            sentences("clients"),
            [Table("Counterparts", ("The travel agency's", "Ours", "Why"), TRAVEL_AGENCY)],
        ),
    ]
    findings = sentences(
        "findings",
        commits=COMMITS,
        alone=sound,
        at_rate=grouped(sound_rates, lambda of: of.line.commit),
        study=published.ITINERARY,
        saturated_per_s=published.ITINERARY_SATURATED_PER_S,
        interval_s=MINE_INTERVAL_S,
    )
    findings = [*rejected_told([*alone, *at_rate], "rows and points"), *findings]
    return Report(findings, sections, [*_metrics(sound, sound_rates)])


def _rate_figure(commit: str, of: Sequence[Itineraries], told: str) -> Figure:
    """Figure 1 of the study for one way to commit: time against target rate, by clients."""
    by_clients = grouped(
        sorted(of, key=lambda point: (point.line.clients, point.target_per_s)),
        lambda point: f"{point.line.clients} client{'s' if point.line.clients > 1 else ''}",
    )
    table = Table.of(
        f"Transactions at a rate, {COMMITS[commit]}",
        of,
        [
            ("Clients", lambda point: point.line.clients),
            ("Share of the rate of one alone", lambda point: point.line.fraction),
            ("Target / 1/s", lambda point: point.target_per_s),
            ("Achieved / 1/s", lambda point: point.achieved_per_s),
            ("Started late / %", lambda point: 100 * point.late_share),
            ("Saturated", lambda point: "yes" if point.is_saturated else "no"),
            ("T_tx / ms", lambda point: 1000 * point.transaction.value),
            ("95 %", lambda point: point.transaction.give_or_take(1000)),
            (
                "T_tx before commit / ms",
                lambda point: 1000 * point.mean(lambda one: one.before_commit_s).value,
            ),
            ("Accepted", lambda point: "yes" if point.is_accepted else "no"),
        ],
        "Intervals are from batches of one run. A client cannot reach a rate above that of one "
        "alone.",
    )
    sources = dict(zip(by_clients, _SOURCES, strict=False))
    return figure(
        f"Time against rate, {COMMITS[commit]}",
        told,
        Axis("target rate of all clients / transactions per second", is_logarithmic=True),
        Axis("mean transaction time / ms"),
        lines(by_clients, sources, lambda p: p.target_per_s, lambda p: p.transaction, 1000),
        table,
    )


def _metrics(alone: Sequence[Itineraries], points: Sequence[Itineraries]) -> Iterator[Metric]:
    for of in alone:
        for name, found in (*of.phases.items(), ("transaction", of.transaction)):
            yield found.metric(f"{name}_time[{of.line.commit}]", "s")
    for of in points:
        of_line = f"{of.line.commit},{of.line.clients},{of.line.fraction:g}"
        yield of.transaction.metric(f"transaction_time[{of_line}]", "s")


EXPERIMENT = Experiment(
    name="itinerary",
    study="004",
    title="Itineraries: transactions of nine requests",
    reproduces="table 1 and figure 1",
    about=(
        "A client begins, makes four queries, adds three legs, each on the disk before it is "
        "answered, and commits. First one client alone shows how long each phase takes. Then 1 to "
        "8 clients start itineraries at target rates, the next one due every T(1 ± 1 %), and at "
        "once if it is late. All is measured twice: with a commit that asks once whether the last "
        "leg is there, and with one that waits until it is in a block, for which blocks are made "
        "every 0.1 s. The last four fifths of the iterations count."
    ),
    modes=(Mode.REAL,),
    measure=measure,
    analyse=analyse,
)
