"""Measures itineraries as study 004 did: transactions of nine requests, alone and at a rate.

First one client goes without a pause, then several at target rates, each run on a fresh ledger.
`loadtests.scenarios` describes what a client does. Beside the raw rows this writes `plan.csv`, a
line for each run.
"""

from collections.abc import Iterator, Sequence
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
from loadtests.scenarios import TRAVEL_AGENCY

NEW_FLIGHTS = 3000


@dataclass(frozen=True, slots=True)
class Plan:
    """What is measured on a ledger of `blocks` blocks.

    fractions: target rates of each number of clients as shares of 1/T, where T is the time of a
    transaction of one client alone; above 1 they cannot be reached.
    """

    blocks: int
    singles: int  # runs of one client without a pause
    iterations: int
    clients: Sequence[int]
    fractions: Sequence[float]


QUICK = Plan(10, 1, 25, (1, 4), (0.5, 10.0))
FULL = Plan(  # takes about 6 minutes on two cores
    100,
    5,
    published.ITINERARY_ITERATIONS,
    published.ITINERARY_CLIENTS,
    (0.1, 0.25, 0.5, 1.0, 2.0, 10.0),
)


def measure(run: Run) -> None:
    """Measure by the quick or the full plan."""
    plan = run.choose(QUICK, FULL)
    singles, size = run.options.reps or plan.singles, (plan.iterations, plan.blocks)
    material = prepared(run, (plan.blocks,), NEW_FLIGHTS)
    with run.results.table(PLAN, RunLine) as table:
        times_s = []
        for rep in range(1, singles + 1):
            run.say(f"one client, {rep} of {singles}")
            line = RunLine(f"single-{rep:02}", SINGLE, 1, 0.0, 0.0, *size)
            times_s.append(_one(run, table, material, line))
        for fraction, clients in product(plan.fractions, plan.clients):
            run.say(f"{clients} clients, {fraction:g} of the rate of one alone")
            of_run = f"{fraction:g}-{clients}", AT_RATE, clients, fraction
            _one(run, table, material, RunLine(*of_run, fmean(times_s) / fraction, *size))


def _one(run: Run, table: TableWriter, material: Material, line: RunLine) -> float:
    """Make a run on a fresh ledger. Returns and raises as `travelled`."""
    with fresh_service(run, material.chains[line.blocks], line.run) as service:
        return travelled(run, table, material, line, service)


# --- the report ----------------------------------------------------------------------------------

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
            "Phases of a transaction", sentences("alone"), [phases_table({"one client": alone[0]})]
        ),
        Section(
            "Transactions at a rate",
            sentences("rates", alone=sound),
            [_rate_figure(at_rate, sentences.one("rate"))] if at_rate else [],
        ),
        Section(
            "What a client does",
            sentences("clients"),
            [Table("Counterparts", ("The travel agency's", "Ours", "Why"), TRAVEL_AGENCY)],
        ),
    ]
    findings = sentences(
        "findings",
        alone=sound,
        points=sound_rates,
        study=published.ITINERARY,
        saturated_per_s=published.ITINERARY_SATURATED_PER_S,
    )
    findings = [*rejected_told([*alone, *at_rate], "rows and points"), *findings]
    return Report(findings, sections, [*_metrics(sound, sound_rates)])


def _rate_figure(of: Sequence[Itineraries], told: str) -> Figure:
    """Figure 1 of the study: time against target rate, by clients."""
    by_clients = grouped(
        sorted(of, key=lambda point: (point.line.clients, point.target_per_s)),
        lambda point: f"{point.line.clients} client{'s' if point.line.clients > 1 else ''}",
    )
    table = Table.of(
        "Transactions at a rate",
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
            ("Accepted", lambda point: "yes" if point.is_accepted else "no"),
        ],
        "Intervals are from batches of one run. A client cannot reach a rate above that of one "
        "alone.",
    )
    sources = dict(zip(by_clients, _SOURCES, strict=False))
    return figure(
        "Time against rate",
        told,
        Axis("target rate of all clients / transactions per second", is_logarithmic=True),
        Axis("mean transaction time / ms"),
        lines(by_clients, sources, lambda p: p.target_per_s, lambda p: p.transaction, 1000),
        table,
    )


def _metrics(alone: Sequence[Itineraries], points: Sequence[Itineraries]) -> Iterator[Metric]:
    for of in alone:
        for name, found in (*of.phases.items(), ("transaction", of.transaction)):
            yield found.metric(f"{name}_time", "s")
    for of in points:
        at = f"{of.line.clients},{of.line.fraction:g}"
        yield of.transaction.metric(f"transaction_time[{at}]", "s")


EXPERIMENT = Experiment(
    name="itinerary",
    study="004",
    title="Itineraries: transactions of nine requests",
    reproduces="table 1 and figure 1",
    about=(
        "A client begins, makes four queries, adds three legs, each on the disk before it is "
        "answered, and commits: it asks for the last leg. First one client alone shows how long "
        "each phase takes. Then 1 to 8 clients start itineraries at target rates, the next one due "
        "every T(1 ± 1 %), and at once if it is late. The last four fifths of the iterations "
        "count."
    ),
    modes=(Mode.REAL,),
    measure=measure,
    analyse=analyse,
)
