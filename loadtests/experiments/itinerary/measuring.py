"""Measures one client without a pause, then several at target rates, each run on a fresh ledger.

Beside the raw rows this writes `plan.csv`, a line for each run.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from statistics import fmean

from loadtests.experiments.itinerary.transactions import (
    AT_RATE,
    PLAN,
    SINGLE,
    RunLine,
    transactions_of,
)
from loadtests.generation.run import Generator, judge_run
from loadtests.lab.experiment import Run
from loadtests.lab.ledgers import Material, fresh_service, prepared
from loadtests.lab.published import ITINERARY_CLIENTS, ITINERARY_ITERATIONS
from loadtests.lab.results import TableWriter
from loadtests.processes import ProgramFailed, Service
from loadtests.scenarios import DURABLE, MINED, itineraries

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
    ITINERARY_ITERATIONS,
    {
        DURABLE: (ITINERARY_CLIENTS, (0.1, 0.25, 0.5, 1.0, 2.0, 10.0)),
        MINED: (ITINERARY_CLIENTS, (0.5, 1.0, 4.0)),
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


def travelled(
    run: Run, table: TableWriter, material: Material, line: RunLine, service: Service
) -> float:
    """Let the clients of a run make their itineraries, and keep and judge what was measured.

    Returns the mean time in seconds of the transactions that count. Raises ProgramFailed if there
    is none.
    """
    sequences = itineraries(
        material.questions,
        material.new,
        customers=line.clients,
        count=line.iterations,
        commit=line.commit,
    )
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
