"""Measures itineraries as study 004 did: transactions of nine requests, alone and at a rate.

First one client goes without a pause, then several at target rates, each run on a fresh ledger.
`loadtests.scenarios` describes what a client does. Beside the raw rows this writes `plan.csv`, a
line for each run. `cluster` has itineraries made and read here, too.

Response times that follow each other in a run are correlated, so intervals come from means of
batches, or from means of runs if there are several.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from operator import attrgetter
from statistics import fmean

from loadtests.generation.interactions import SEPARATOR, by_interaction, interaction_of, step_of
from loadtests.generation.rows import Row
from loadtests.generation.run import Generator, judge_run
from loadtests.grouping import grouped
from loadtests.lab import published
from loadtests.lab.content import Cell, Figure, Metric, Report, Section, Table
from loadtests.lab.experiment import Experiment, Run
from loadtests.lab.ledgers import Material, fresh_service, prepared
from loadtests.lab.repeated import Estimate, Repeated, accepted, lines, recorded_runs, rejected_told
from loadtests.lab.repeated import of as estimated
from loadtests.lab.report.drawing import Axis, Source, figure
from loadtests.lab.results import Line, Results, ResultsError, TableWriter
from loadtests.lab.sentences import Sentences
from loadtests.models.estimates import mean_over_runs
from loadtests.processes import ProgramFailed, Service
from loadtests.scenarios import (
    BEGIN,
    COMMIT,
    ITINERARY,
    QUERY,
    RESERVE,
    STEPS,
    itineraries,
)

PLAN = "plan"
SINGLE, AT_RATE = "single", "at-rate"
PHASES: Mapping[str, int] = {BEGIN: 1, QUERY: 4, RESERVE: 3, COMMIT: 1}
"""The number of requests of each phase in a transaction."""
COUNTED_SHARE = published.ITINERARY_COUNTED / published.ITINERARY_ITERATIONS
SATURATED_SHARE = 0.05
BATCHES, LEAST_TRANSACTIONS = 10, 2


@dataclass(frozen=True, slots=True)
class RunLine(Line):
    """A line of the plan."""

    run: str
    part: str
    clients: int
    fraction: float
    interval_s: float  # T of each client; 0: without a pause
    iterations: int
    blocks: int


@dataclass(frozen=True, slots=True)
class Transaction:
    """One itinerary of a client. phases_s: phase -> times of its requests."""

    client: int
    number: int  # among those of the client, from 0
    sent_s: float
    done_s: float
    phases_s: Mapping[str, Sequence[float]]
    succeeded: bool
    is_late: bool  # the client was still busy with the one before when it was due

    @property
    def time_s(self) -> float:
        """T_tx, from sending the first request to the last answer."""
        return self.done_s - self.sent_s

    @property
    def unexplained_s(self) -> float:
        """T_tx − (T_start + 4 T_query + 3 T_reserve + T_commit): the time between requests."""
        return self.time_s - sum(sum(times_s) for times_s in self.phases_s.values())

    def counts(self, iterations: int) -> bool:
        """Whether it is among the last four fifths of its client's transactions."""
        return self.number >= iterations - round(COUNTED_SHARE * iterations)


def transactions_of(rows: Iterable[Row]) -> list[Transaction]:
    """The transactions of a run by start time, without those that the run's end cut off."""
    found, done_s = [], dict[int, float]()
    for steps in by_interaction(rows):
        first, last = steps[0], steps[-1]
        if last.succeeded and step_of(last) < STEPS[ITINERARY] - 1:
            continue
        client, number = interaction_of(first)
        is_late = done_s.get(client, float("-inf")) > first.intended_s
        times = first.sent_s, last.done_s
        found.append(Transaction(client, number, *times, _phases_s(steps), last.succeeded, is_late))
        done_s[client] = last.done_s
    return found


def _phases_s(steps: Sequence[Row]) -> Mapping[str, Sequence[float]]:
    phases_s: dict[str, list[float]] = defaultdict(list)
    for row in steps:
        phases_s[row.kind.partition(SEPARATOR)[2]].append(row.done_s - row.sent_s)
    return dict(phases_s)


@dataclass(frozen=True, slots=True)
class ItineraryRun:
    """A run: its line of the plan, and its transactions that count and succeeded."""

    line: RunLine
    transactions: Sequence[Transaction]
    is_accepted: bool

    @property
    def achieved_per_s(self) -> float:
        """The rate from the time when all clients are counted until the first client has finished.

        If there is no such time, the rate is that of the whole time.
        """
        by_client = grouped(self.transactions, lambda one: one.client).values()
        start_s = max(own[0].sent_s for own in by_client)
        end_s = min(own[-1].done_s for own in by_client)
        if end_s <= start_s:
            start_s = min(one.sent_s for one in self.transactions)
            end_s = max(one.done_s for one in self.transactions)
        return sum(start_s < one.done_s <= end_s for one in self.transactions) / (end_s - start_s)


def itinerary_runs(results: Results) -> list[ItineraryRun]:
    """All runs with at least two transactions that count, in the order in which they were made."""
    found = []
    for line, rows, is_accepted in recorded_runs(results, PLAN, RunLine):
        made = transactions_of(rows)
        counted = [one for one in made if one.succeeded and one.counts(line.iterations)]
        if len(counted) >= LEAST_TRANSACTIONS:
            found.append(ItineraryRun(line, counted, is_accepted))
    return found


@dataclass(frozen=True)
class Itineraries(Repeated[ItineraryRun]):
    """All runs of so many clients, at a rate or without a pause. Rates are of all clients."""

    @property
    def line(self) -> RunLine:
        """The line of one of the runs."""
        return self.runs[0].line

    def mean(self, value: Callable[[Transaction], float]) -> Estimate:
        """The mean of a value of transactions: over runs, or from batches of one."""
        values = [[value(one) for one in run.transactions] for run in self.runs]
        return estimated(mean_over_runs(values, BATCHES))

    @cached_property
    def phases(self) -> dict[str, Estimate]:
        """Phase -> the mean time of a request in seconds."""

        def mean_of(phase: str) -> Estimate:
            return self.mean(lambda one: fmean(one.phases_s[phase]))

        return {phase: mean_of(phase) for phase in PHASES}

    @property
    def sum_s(self) -> float:
        """T_start + 4 T_query + 3 T_reserve + T_commit."""
        return sum(count * self.phases[phase].value for phase, count in PHASES.items())

    @cached_property
    def transaction(self) -> Estimate:
        """T_tx in seconds."""
        return self.mean(lambda one: one.time_s)

    @cached_property
    def unexplained(self) -> Estimate:
        """T_tx − Σ of the nine requests, paired, in seconds."""
        return self.mean(lambda one: one.unexplained_s)

    @property
    def target_per_s(self) -> float:
        """The rate at which all clients together should start transactions."""
        return self.line.clients / self.line.interval_s

    @cached_property
    def achieved_per_s(self) -> float:
        """The rate at which transactions were completed while all clients were counted."""
        return fmean(run.achieved_per_s for run in self.runs)

    @property
    def late_share(self) -> float:
        """The share of the transactions that were due while the client was busy."""
        return fmean(one.is_late for run in self.runs for one in run.transactions)

    @property
    def is_saturated(self) -> bool:
        """Whether more than 5 % of the transactions started late."""
        return self.late_share > SATURATED_SHARE


def itineraries_of(runs: Iterable[ItineraryRun], part: str) -> list[Itineraries]:
    """What was measured in a part of the plan, in its order."""
    of_part = (run for run in runs if run.line.part == part)
    return Itineraries.of_each(of_part, attrgetter("line.clients", "line.fraction"))


def phases_table(ours: Mapping[str, Itineraries]) -> Table:
    """Table 1 of the study, with our rows below, which have these names."""
    columns = (
        *("/ ms", "Start", "Query", "Reserve", "Commit", "Transaction", "95 %"),
        *("Start + 4 query + 3 reserve + commit", "Transaction less that / %"),
    )
    rows: list[Sequence[Cell]] = []
    for name, of in published.ITINERARY.items():
        phases = (of.begin_ms, of.query_ms, of.reserve_ms, of.commit_ms)
        between = 100 * of.between
        rows.append(
            (f"Study 004, {name}", *phases, of.transaction_ms, "–", of.requests_ms, between)
        )
    for name, one in ours.items():
        rows.append(
            (
                f"Flightchain, {name}" + ("" if one.is_accepted else " (no run accepted)"),
                *(1000 * found.value for found in one.phases.values()),
                1000 * one.transaction.value,
                one.transaction.give_or_take(1000),
                1000 * one.sum_s,
                100 * one.unexplained.value / one.transaction.value,
            )
        )
    note = "The study's times are from its own machine and service."
    return Table("Phases of a transaction, one client", columns, rows, note)


def travelled(
    run: Run, table: TableWriter, material: Material, line: RunLine, service: Service
) -> float:
    """Let the clients of a run make their itineraries, and keep and judge what was measured.

    Returns the mean time in seconds of the transactions that count. Raises ProgramFailed if there
    is none.
    """
    sequences = itineraries(material.questions, material.new, line.clients, line.iterations)
    generator = Generator(run.results.folder, run.options.seed, run.say)
    record = generator.interactions(service, sequences, line.run, interval_s=line.interval_s)
    made = transactions_of(record.rows)
    failed = sum(not one.succeeded for one in made)
    facts = replace(record.facts(), requests=len(made), failed=failed)
    judge_run(run.results.folder, record, facts)
    table.add(line)
    times_s = [one.time_s for one in made if one.succeeded and one.counts(line.iterations)]
    if not times_s:
        raise ProgramFailed(f"{line.run}: no transaction succeeded; see {run.log}")
    return fmean(times_s)


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
            run.say(f"clients: {clients}, {fraction:g} of the rate of one alone")
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
            [
                Table(
                    "Counterparts", ("The travel agency's", "Ours", "Why"), sentences.rows("agency")
                )
            ],
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
    measure=measure,
    analyse=analyse,
)
