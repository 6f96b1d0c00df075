"""Measures in turns through all ways and requests, so that a slow minute affects all of them.

Beside the files of `one_customer`, `plan.csv` has a line for each run: way and kind of request, the
length of the chain, K, and the number of first requests that do not count.
"""

from collections.abc import Sequence

from loadtests.experiments.service_time.plan import KINDS, Plan, plan_of
from loadtests.experiments.service_time.servers import Way, ways
from loadtests.lab.experiment import Mode, Run
from loadtests.lab.one_customer import Customer, one_customer
from loadtests.lab.results import TableWriter
from loadtests.processes import ProgramFailed
from loadtests.questions import KINDS as QUESTIONS

PLAN = "plan"
ANSWER_DIGITS = 9  # a mean's last digits depend on the order of the summation
COLUMNS = ("run", "way", "kind", "turn", "blocks", "scale", "warm_up")


def measure(run: Run) -> None:
    """Measure by the quick or the full plan. The option --reps sets the number of turns."""
    measure_by(run, plan_of(run.options))


def measure_by(run: Run, plan: Plan) -> None:
    """Measure by `plan`. Raises ProgramFailed if the ways give different answers."""
    with (
        ways(run, plan) as found,
        run.results.table(PLAN, COLUMNS) as table,
        one_customer(run.results) as customer,
    ):
        if run.options.mode is Mode.REAL:
            require_same_answers(found)
        for turn in range(1, (run.options.reps or plan.rounds) + 1):
            for kind in KINDS:
                run.say(f"turn {turn}: {kind}")
                for way in found:
                    _measure(run, plan, table, customer, way, kind, turn)


def _measure(
    run: Run,
    plan: Plan,
    table: TableWriter,
    customer: Customer,
    way: Way,
    kind: str,
    turn: int,
) -> None:
    name = f"{way.name}-{kind}-{turn:02}"
    is_emulated = run.options.mode is Mode.EMULATED
    table.write(
        run=name,
        way=way.name,
        kind=kind,
        turn=turn,
        blocks=plan.blocks,
        scale=run.options.scale if is_emulated else 1,
        warm_up=plan.warm_up,
    )
    customer.asks(
        way.service,
        name,
        way.requests(kind, run.random(f"{kind} {turn}")),  # the same requests for all ways
        warm_up=plan.warm_up,
        least=plan.requests(way.name, kind),
        least_s=plan.least_s,
    )


def require_same_answers(found: Sequence[Way]) -> None:
    """Raise ProgramFailed if two ways answer a question differently."""
    for kind in QUESTIONS:
        answers = {way.name: _answer(way, kind) for way in found}
        if len(set(answers.values())) > 1:
            raise ProgramFailed(f"{kind} is answered differently: {answers}")


def _answer(way: Way, kind: str) -> float | None:
    """A way's answer to its question, as a number that must be the same for all ways."""
    said = way.service.get(way.path(kind))
    if kind in said:  # the study's server answers a number, or the flights themselves
        found = len(said[kind]) if isinstance(said[kind], list) else said[kind]
    else:
        found = said["average_delay" if kind == "average_delays" else "count"]
    return None if found is None else round(float(found), ANSWER_DIGITS)
