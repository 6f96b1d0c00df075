"""Measures every number of customers on every ledger, in process and over HTTP, in turns.

Beside the raw rows this writes `plan.csv`, with a line for each run once it is over.
"""

from dataclasses import dataclass, replace

from loadtests.chains import copied
from loadtests.experiments.mixed_clients.inside import inside_run
from loadtests.experiments.mixed_clients.plan import HTTP, LOCAL, PLACES, Count, plan
from loadtests.generation.interactions import Sequences, whole
from loadtests.generation.run import RunRecord, interaction_run, judge_run
from loadtests.generation.samples import cpu_s
from loadtests.lab.experiment import Run
from loadtests.lab.ledgers import Material, fresh_service, prepared
from loadtests.lab.results import Line
from loadtests.processes import family
from loadtests.scenarios import STEPS, mixed_interactions

PLAN = "plan"


@dataclass(frozen=True, slots=True)
class PlanLine(Line):
    """A run. warm_up, measured: interactions of each customer. interactions: of all together.

    cpu_s: processor time of the service, or of the ledger's process, with the miner's.
    """

    run: str
    place: str
    blocks: int
    customers: int
    warm_up: int
    measured: int
    interactions: int
    cpu_s: float


def measure(run: Run) -> None:
    """Make all runs, with places in turns, so that a slow hour of the machine meets every place."""
    planned = plan(run.options)
    material = prepared(run, planned.blocks, planned.new_flights)
    sequences = mixed_interactions(
        material.questions,
        material.new,
        customers=max(planned.customers),
        count=max(count.interactions for count in planned.counts.values()),
        seed=run.options.seed,
    )
    with run.results.table(PLAN, PlanLine) as table:
        for rep in range(planned.runs):
            for blocks in planned.blocks:
                for customers in planned.customers:
                    run.say(f"{blocks} blocks, {customers} customers, {rep + 1} of {planned.runs}")
                    for place in PLACES:
                        count = planned.counts[place]
                        own = [one[: count.interactions] for one in sequences[:customers]]
                        table.add(_one(run, material, place, blocks, own, count, rep))


def _one(
    run: Run, material: Material, place: str, blocks: int, own: Sequences, count: Count, rep: int
) -> PlanLine:
    """Make a run and judge it. Returns its line of the plan."""
    name = f"{place}-{blocks}-{len(own)}-{rep + 1:02}"
    record, used_s = _MEASURED[place](run, material, blocks, own, name)
    interactions = whole(record.rows, STEPS)
    facts = replace(
        record.facts(),
        requests=len(interactions),
        failed=sum(not row.succeeded for row in interactions),
    )
    if place == LOCAL:  # the customers are part of the measured process
        facts = replace(facts, client_cpu=None)
    judge_run(run.results.folder, record, facts)
    counts = count.warm_up, count.measured, len(interactions)
    return PlanLine(name, place, blocks, len(own), *counts, used_s)


def _inside(
    run: Run, material: Material, blocks: int, own: Sequences, name: str
) -> tuple[RunRecord, float]:
    with copied(material.chains[blocks], run.scratch / "fresh" / name) as folder:
        made = inside_run(folder, own, run=name, results=run.results.folder, log=run.log)
    return made.record, made.cpu_s


def _over_http(
    run: Run, material: Material, blocks: int, own: Sequences, name: str
) -> tuple[RunRecord, float]:
    with fresh_service(run, material.chains[blocks], name) as service:
        before_s = sum(cpu_s(family(service.pid)).values())
        record = interaction_run(
            service,
            own,
            run=name,
            folder=run.results.folder,
            seed=run.options.seed,
            say=lambda text: None,
        )
        return record, sum(cpu_s(family(service.pid)).values()) - before_s


_MEASURED = {LOCAL: _inside, HTTP: _over_http}
