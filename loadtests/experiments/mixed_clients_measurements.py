"""Measures every number of customers on every ledger, in process and over HTTP, in turns.

In process, customers are threads of `python -m loadtests.in_process.customers`, beside a miner.
Beside the raw rows this writes `plan.csv`, with a line for each run once it is over.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic

from loadtests.chains import Chain, copied
from loadtests.generation.interactions import Sequences, save, whole
from loadtests.generation.rows import read_rows
from loadtests.generation.run import RunRecord, judge_run, keep
from loadtests.lab.experiment import Run
from loadtests.lab.ledgers import fresh_service, prepared
from loadtests.lab.published import MIXED
from loadtests.lab.results import Line
from loadtests.machine_samples import Sampler, cpu_s, used_s
from loadtests.processes import ProgramFailed, environment, failure, family, started, stop
from loadtests.scenarios import STEPS, mixed_interactions

LOCAL, HTTP = "in-process", "http"
NAMES = {LOCAL: "in process", HTTP: "over HTTP"}
CUSTOMERS = "loadtests.in_process.customers"
PLAN = "plan"


@dataclass(frozen=True, slots=True)
class Plan:
    """Says what is measured, at each place."""

    customers: Sequence[int]
    blocks: Sequence[int]  # lengths of the ledgers
    runs: int
    counts: Mapping[str, tuple[int, int]]  # place -> interactions of each: to warm up, measured
    new_flights: int  # size of the pool of flights to be added


# a few interactions over HTTP, and enough in process that a run is not over at once
QUICK = Plan((1, 4, 16), (0, 100), 1, {LOCAL: (20, 180), HTTP: (5, 25)}, 3000)
# as many as the study had; about 45 minutes on two cores, a quarter of that with --reps 1
FULL = Plan(
    (1, 2, 4, 8, 16, 30, 60),
    MIXED.books,
    MIXED.runs,
    dict.fromkeys((LOCAL, HTTP), (MIXED.warm_up, MIXED.measured)),
    30_000,
)


@dataclass(frozen=True, slots=True)
class PlanLine(Line):
    """Describes a run in `plan.csv`."""

    run: str
    place: str
    blocks: int
    customers: int
    warm_up: int  # interactions of each customer that do not count
    measured: int  # those that do
    interactions: int  # of all together
    cpu_s: float  # of the service, or of the ledger's process, with the miner's


def measure(run: Run) -> None:
    """Measure places in turns, so that a slow hour of the machine meets all of them."""
    plan = run.choose(QUICK, FULL)
    runs = run.options.reps or plan.runs
    material = prepared(run, plan.blocks, plan.new_flights)
    sequences = mixed_interactions(
        material.questions,
        material.new,
        customers=max(plan.customers),
        count=max(map(sum, plan.counts.values())),
        seed=run.options.seed,
    )
    with run.results.table(PLAN, PlanLine) as table:
        for rep, blocks, customers in product(range(1, runs + 1), plan.blocks, plan.customers):
            run.say(f"blocks: {blocks}, customers: {customers}, {rep} of {runs}")
            for place, measured in ((LOCAL, _inside), (HTTP, _over_http)):
                own = [sequence[: sum(plan.counts[place])] for sequence in sequences[:customers]]
                name = f"{place}-{blocks}-{customers}-{rep:02}"
                record, spent_s = measured(run, material.chains[blocks], own, name)
                counts = *plan.counts[place], _judge(run, record, place)
                table.add(PlanLine(name, place, blocks, customers, *counts, spent_s))


def _judge(run: Run, record: RunRecord, place: str) -> int:
    """Judge a run by its interactions. Returns how many there were."""
    interactions = whole(record.rows, STEPS)
    failed = sum(not row.succeeded for row in interactions)
    facts = replace(record.facts(), requests=len(interactions), failed=failed)
    if place == LOCAL:  # the customers are part of the measured process
        facts = replace(facts, client_cpu=None)
    judge_run(run.results.folder, record, facts)
    return len(interactions)


def _over_http(run: Run, chain: Chain | None, own: Sequences, name: str) -> tuple[RunRecord, float]:
    """Make a run over HTTP. Returns also the processor time (s) of the service during it."""
    with fresh_service(run, chain, name) as service:
        before = cpu_s(family(service.pid))
        record = run.generator.interactions(service, own, name)
        return record, used_s(cpu_s(family(service.pid)), before)


def _inside(run: Run, chain: Chain | None, own: Sequences, name: str) -> tuple[RunRecord, float]:
    """Make a run in the ledger's process. Raises ProgramFailed.

    Returns also the processor time (s) of that process and of the miner during it.
    """
    with ExitStack() as stack:
        folder = stack.enter_context(copied(chain, run.scratch / "fresh" / name))
        scratch = Path(stack.enter_context(TemporaryDirectory(dir=run.scratch)))
        given, rows, facts = (scratch / file for file in ("given.jsonl", "rows.csv", "facts.json"))
        save(given, own)
        variables = environment(folder, {})
        miner = started([sys.executable, "-m", "backend", "mine"], run.log, variables)
        stack.callback(stop, miner)
        before = cpu_s(family(miner.pid))
        command = [sys.executable, "-m", CUSTOMERS, name, *map(str, (given, rows, facts))]
        program = started(command, run.log, variables)
        stack.callback(stop, program)
        samples = list(Sampler(program.pid, miner.pid).while_running(program, monotonic()))
        if program.returncode != 0:
            raise ProgramFailed(failure(command, program.returncode, run.log))
        mining_s = used_s(cpu_s(family(miner.pid)), before)
        record, _ = keep(run.results.folder, name, LOCAL, read_rows(rows), samples)
        own_s: float = json.loads(facts.read_bytes())["cpu_s"]
        return record, own_s + mining_s
