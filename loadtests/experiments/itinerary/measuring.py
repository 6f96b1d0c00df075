"""Measures one client without a pause, then several at target rates, each run on a fresh ledger.

Beside the raw rows this writes `plan.csv`, a line for each run.
"""

from dataclasses import replace

from loadtests.experiments.itinerary.plan import AT_RATE, NEW_FLIGHTS, SETTINGS, SINGLE, Part, plan
from loadtests.experiments.itinerary.reading import PLAN, RunLine, transactions_of
from loadtests.generation.run import interaction_run, judge_run
from loadtests.lab.experiment import Run
from loadtests.lab.ledgers import Material, fresh_service, prepared
from loadtests.lab.results import TableWriter
from loadtests.models.samples import summary
from loadtests.processes import ProgramFailed, Service
from loadtests.scenarios import itineraries


def measure(run: Run) -> None:
    """Measure all parts of the plan, one way to commit after the other."""
    planned = plan(run.options)
    material = prepared(run, (planned.blocks,), NEW_FLIGHTS)
    with run.results.table(PLAN, RunLine) as table:
        for part in planned.parts:
            _part(run, table, material, planned.blocks, part)


def _part(run: Run, table: TableWriter, material: Material, blocks: int, part: Part) -> None:
    times_s = []
    for rep in range(part.singles):
        run.say(f"{part.commit}: one client, {rep + 1} of {part.singles}")
        name = f"{part.commit}-single-{rep + 1:02}"
        line = RunLine(name, SINGLE, part.commit, 1, 0.0, 0.0, part.iterations, blocks)
        times_s.append(_one(run, table, material, line))
    alone_s = summary(times_s).mean
    for fraction in part.fractions:
        for clients in part.clients:
            run.say(f"{part.commit}: {clients} clients, {fraction:g} of the rate of one alone")
            name = f"{part.commit}-{fraction:g}-{clients}"
            interval_s = alone_s / fraction
            line = RunLine(
                name, AT_RATE, part.commit, clients, fraction, interval_s, part.iterations, blocks
            )
            _one(run, table, material, line)


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
    record = interaction_run(
        service,
        sequences,
        run=line.run,
        folder=run.results.folder,
        interval_s=line.interval_s,
        seed=run.options.seed,
        say=run.say,
    )
    made = transactions_of(record.rows)
    failed = sum(not one.succeeded for one in made)
    facts = replace(record.facts(), requests=len(made), failed=failed)
    judge_run(run.results.folder, record, facts)
    table.add(line)
    times_s = [one.time_s for one in made if one.succeeded and one.counts(line.iterations)]
    if not times_s:
        raise ProgramFailed(f"{line.run}: no transaction succeeded; see {run.log}")
    return summary(times_s).mean
