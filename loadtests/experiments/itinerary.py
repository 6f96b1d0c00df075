"""Measures itineraries as study 004 did: transactions of nine requests, alone and at a rate.

First one client goes without a pause, then several at target rates, each run on a fresh ledger.
`loadtests.scenarios` describes what a client does. Beside the raw rows this writes `plan.csv`, a
line for each run. `cluster` has itineraries made and read here, too.

Response times that follow each other in a run are correlated, so intervals come from means of
batches, or from means of runs if there are several.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from operator import attrgetter
from statistics import fmean

from loadtests.generation.interactions import SEPARATOR, by_interaction, interaction_of, step_of
from loadtests.generation.rows import Row
from loadtests.generation.run import judge_run
from loadtests.grouping import grouped
from loadtests.lab import published
from loadtests.lab.content import Cell, Figure, Metric, Report, Section, Table
from loadtests.lab.experiment import Experiment, Run
from loadtests.lab.ledgers import Material, fresh_service, prepared
from loadtests.lab.repeated import Repeated, lines, recorded_runs
from loadtests.lab.report.drawing import IN_TURN, Axis, figure
from loadtests.lab.results import Line, NothingCounts, Results, TableWriter
from loadtests.lab.sentences import Sentences
from loadtests.models.estimates import Interval, mean_over_runs
from loadtests.processes import ProgramFailed, Service
from loadtests.scenarios import BEGIN, COMMIT, ITINERARY, QUERY, RESERVE, STEPS, itineraries

PLAN = "plan"
SINGLE, AT_RATE = "single", "at-rate"
PHASES: Mapping[str, int] = {BEGIN: 1, QUERY: 4, RESERVE: 3, COMMIT: 1}
"""The number of requests of each phase in a transaction."""
COUNTED_SHARE = published.ITINERARY_COUNTED / published.ITINERARY_ITERATIONS
SATURATED_SHARE = 0.05
BATCHES, LEAST_TRANSACTIONS = 10, 2


@dataclass(frozen=True, slots=True)
class RunLine(Line):
    """Describes a run in `plan.csv`."""

    run: str
    part: str
    clients: int
    fraction: float
    interval_s: float  # T of each client; 0: without a pause
    iterations: int
    blocks: int


@dataclass(frozen=True, slots=True)
class Transaction:
    """Holds an itinerary of a client. phases_s: phase -> times of its requests."""

    client: int
    number: int  # among those of the client, from 0
    sent_s: float
    done_s: float
    phases_s: Mapping[str, Sequence[float]]
    succeeded: bool
    is_late: bool  # the client was still busy with the one before when it was due

    @property
    def time_s(self) -> float:
        """Return T_tx, from sending the first request to the last answer."""
        return self.done_s - self.sent_s

    @property
    def unexplained_s(self) -> float:
        """Return T_tx − (T_start + 4 T_query + 3 T_reserve + T_commit): the time in between."""
        return self.time_s - sum(sum(times_s) for times_s in self.phases_s.values())


def transactions_of(rows: Iterable[Row]) -> list[Transaction]:
    """Return the transactions of a run by start time, without those that the run's end cut off."""
    transactions, done_s = [], dict[int, float]()
    for steps in by_interaction(rows):
        first, last = steps[0], steps[-1]
        if last.succeeded and step_of(last) < STEPS[ITINERARY] - 1:
            continue
        client, number = interaction_of(first)
        phases = grouped(steps, lambda row: row.kind.partition(SEPARATOR)[2])
        transactions.append(
            Transaction(
                client,
                number,
                first.sent_s,
                last.done_s,
                {name: [row.closed_response_s for row in own] for name, own in phases.items()},
                last.succeeded,
                is_late=done_s.get(client, float("-inf")) > first.intended_s,
            )
        )
        done_s[client] = last.done_s
    return transactions


def select_counted(transactions: Iterable[Transaction], iterations: int) -> list[Transaction]:
    """Return those that succeeded of the last four fifths of each client's transactions."""
    first = iterations - round(COUNTED_SHARE * iterations)
    return [item for item in transactions if item.succeeded and item.number >= first]


@dataclass(frozen=True, slots=True)
class ItineraryRun:
    """Holds a run: its line of the plan, and its transactions that count."""

    line: RunLine
    transactions: Sequence[Transaction]

    @property
    def achieved_per_s(self) -> float:
        """Return the rate from when all clients are counted until the first one has finished.

        If there is no such time, the rate is that of the whole time.
        """
        clients = grouped(self.transactions, lambda transaction: transaction.client).values()
        start_s = max(own[0].sent_s for own in clients)
        end_s = min(own[-1].done_s for own in clients)
        if end_s <= start_s:
            start_s = min(own[0].sent_s for own in clients)
            end_s = max(own[-1].done_s for own in clients)
        done = sum(start_s < transaction.done_s <= end_s for transaction in self.transactions)
        return done / (end_s - start_s)


def itinerary_runs(results: Results) -> list[ItineraryRun]:
    """Return the runs with two transactions or more that count, in the order of their making."""
    runs = [
        ItineraryRun(line, select_counted(transactions_of(rows), line.iterations))
        for line, rows in recorded_runs(results, PLAN, RunLine)
    ]
    return [run for run in runs if len(run.transactions) >= LEAST_TRANSACTIONS]


@dataclass(frozen=True)
class Itineraries(Repeated[ItineraryRun]):
    """Holds all runs of so many clients, at a rate or without a pause. Rates are of all clients."""

    def mean(self, value: Callable[[Transaction], float]) -> Interval:
        """Estimate the mean of a value of transactions: over runs, or from batches of one."""
        return mean_over_runs([list(map(value, run.transactions)) for run in self.runs], BATCHES)

    @cached_property
    def phases(self) -> dict[str, Interval]:

        def mean_of(phase: str) -> Interval:
            return self.mean(lambda transaction: fmean(transaction.phases_s[phase]))

        return {phase: mean_of(phase) for phase in PHASES}

    @property
    def sum_s(self) -> float:
        """Return T_start + 4 T_query + 3 T_reserve + T_commit, in s."""
        return sum(count * self.phases[phase].estimate for phase, count in PHASES.items())

    @cached_property
    def transaction(self) -> Interval:
        return self.mean(lambda transaction: transaction.time_s)

    @cached_property
    def unexplained(self) -> Interval:
        """Estimate the mean of T_tx less its nine requests, in s."""
        return self.mean(lambda transaction: transaction.unexplained_s)

    @property
    def target_per_s(self) -> float:
        """Return the rate at which all clients together should start transactions."""
        return self.line.clients / self.line.interval_s

    @cached_property
    def achieved_per_s(self) -> float:
        """Return the rate at which transactions were completed while all clients were counted."""
        return fmean(run.achieved_per_s for run in self.runs)

    @property
    def late_share(self) -> float:
        """Return the share of the transactions that were due while the client was busy."""
        return fmean(item.is_late for run in self.runs for item in run.transactions)

    @property
    def is_saturated(self) -> bool:
        return self.late_share > SATURATED_SHARE


def itineraries_of(runs: Iterable[ItineraryRun], part: str) -> list[Itineraries]:
    of_part = (run for run in runs if run.line.part == part)
    return Itineraries.of_each(of_part, attrgetter("line.clients", "line.fraction"))


def phases_table(ours: Mapping[str, Itineraries]) -> Table:
    """Make table 1 of the study, with our rows below, which have these names."""
    columns = (
        *("/ ms", "Start", "Query", "Reserve", "Commit", "Transaction"),
        *("Start + 4 query + 3 reserve + commit", "Transaction less that / %"),
    )
    rows: list[Sequence[Cell]] = [
        (f"Study 004, {name}", *times_ms, times_ms.requests_ms, 100 * times_ms.between)
        for name, times_ms in published.ITINERARY.items()
    ]
    for name, made in ours.items():
        rows.append(
            (
                f"Flightchain, {name}",
                *(1000 * phase.estimate for phase in made.phases.values()),
                made.transaction.times(1000),
                1000 * made.sum_s,
                100 * made.unexplained.estimate / made.transaction.estimate,
            )
        )
    note = "The study's times are from its own machine and service."
    return Table("Phases of a transaction, one client", columns, rows, note)


def travel(
    run: Run, table: TableWriter[RunLine], material: Material, line: RunLine, service: Service
) -> float:
    """Let the clients of a run make their itineraries, and keep and judge what was measured.

    Returns the mean time in seconds of the transactions that count. Raises ProgramFailed if there
    is none.
    """
    sequences = itineraries(material.questions, material.new, line.clients, line.iterations)
    record = run.generator().interactions(service, sequences, line.run, interval_s=line.interval_s)
    made = transactions_of(record.rows)
    failed = sum(not transaction.succeeded for transaction in made)
    facts = replace(record.facts(), requests=len(made), failed=failed)
    judge_run(run.results.folder, record, facts)
    table.add(line)
    counted = select_counted(made, line.iterations)
    if not counted:
        raise ProgramFailed(f"{line.run}: no transaction succeeded; see {run.log}")
    return fmean(transaction.time_s for transaction in counted)


NEW_FLIGHTS = 3000


@dataclass(frozen=True, slots=True)
class Plan:
    """Says what is measured on a ledger of `blocks` blocks.

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
    plan = run.choose(QUICK, FULL)
    singles, size = run.options.reps or plan.singles, (plan.iterations, plan.blocks)
    material = prepared(run, (plan.blocks,), NEW_FLIGHTS)
    with run.results.table(PLAN, RunLine) as table:
        times_s = []
        for rep in range(1, singles + 1):
            run.say(f"one client, {rep} of {singles}")
            line = RunLine(f"single-{rep:02}", SINGLE, 1, 0.0, 0.0, *size)
            times_s.append(_travel_afresh(run, table, material, line))
        for fraction, clients in product(plan.fractions, plan.clients):
            run.say(f"clients: {clients}, {fraction:g} of the rate of one alone")
            name, interval_s = f"{fraction:g}-{clients}", fmean(times_s) / fraction
            line = RunLine(name, AT_RATE, clients, fraction, interval_s, *size)
            _travel_afresh(run, table, material, line)


def _travel_afresh(
    run: Run, table: TableWriter[RunLine], material: Material, line: RunLine
) -> float:
    """Make a run on a fresh ledger. Returns and raises as `travel`."""
    with fresh_service(run, material.chains[line.blocks], line.run) as service:
        return travel(run, table, material, line, service)


# --- the report ----------------------------------------------------------------------------------


def analyse(results: Results) -> Report:
    """Report phases, their sum, and rates. Raises NothingCounts if there is no complete run."""
    runs, sentences = itinerary_runs(results), Sentences("itinerary")
    alone, at_rate = itineraries_of(runs, SINGLE), itineraries_of(runs, AT_RATE)
    if not alone:
        raise NothingCounts(f"{results.folder} has no run of one client that counts")
    columns, rows = ("The travel agency's", "Ours", "Why"), sentences.rows("agency")
    sections = [
        Section(
            "Phases of a transaction", sentences("alone"), [phases_table({"one client": alone[0]})]
        ),
        Section(
            "Transactions at a rate",
            sentences("rates", alone=alone),
            [_rate_figure(at_rate, sentences.paragraph("rate"))] if at_rate else [],
        ),
        Section("What a client does", sentences("clients"), [Table("Counterparts", columns, rows)]),
    ]
    findings = sentences(
        "findings",
        alone=alone,
        points=at_rate,
        study=published.ITINERARY,
        saturated_per_s=published.ITINERARY_SATURATED_PER_S,
    )
    return Report(findings, sections, [*_metrics(alone, at_rate)])


def _rate_figure(points: Sequence[Itineraries], caption: str) -> Figure:
    """Draw figure 1 of the study: time against target rate, by clients."""
    by_clients = grouped(
        sorted(points, key=lambda point: (point.line.clients, point.target_per_s)),
        lambda point: f"{point.line.clients} client{'s' if point.line.clients > 1 else ''}",
    )
    table = Table.from_items(
        "Transactions at a rate",
        points,
        [
            ("Clients", lambda point: point.line.clients),
            ("Share of the rate of one alone", lambda point: point.line.fraction),
            ("Target / 1/s", lambda point: point.target_per_s),
            ("Achieved / 1/s", lambda point: point.achieved_per_s),
            ("Started late / %", lambda point: 100 * point.late_share),
            ("Saturated", lambda point: "yes" if point.is_saturated else "no"),
            ("T_tx / ms", lambda point: point.transaction.times(1000)),
        ],
        "Intervals are from batches of one run. A client cannot reach a rate above that of one "
        "alone.",
    )
    sources = dict(zip(by_clients, IN_TURN, strict=False))
    return figure(
        "Time against rate",
        caption,
        Axis("target rate of all clients / transactions per second", is_logarithmic=True),
        Axis("mean transaction time / ms"),
        lines(by_clients, sources, lambda p: p.target_per_s, lambda p: p.transaction, 1000),
        table,
    )


def _metrics(alone: Sequence[Itineraries], points: Sequence[Itineraries]) -> Iterator[Metric]:
    for point in alone:
        for name, time in (*point.phases.items(), ("transaction", point.transaction)):
            yield Metric.of_amount(f"{name}_time", time, "s")
    for point in points:
        at = f"{point.line.clients},{point.line.fraction:g}"
        yield Metric.of_amount(f"transaction_time[{at}]", point.transaction, "s")


EXPERIMENT = Experiment.described("itinerary", "004", measure, analyse)
