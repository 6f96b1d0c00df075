"""Measures in turns through all ways and requests, so that a slow minute affects all of them.

Beside the files of `one_customer`, `plan.csv` has a line for each run.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from loadtests.experiments.service_time.plan import KINDS, WARM_UP, Plan, plan_of
from loadtests.experiments.service_time.servers import Way, ways
from loadtests.lab.experiment import Mode, Run
from loadtests.lab.one_customer import one_customer
from loadtests.lab.results import Line
from loadtests.processes import ProgramFailed
from loadtests.questions import KINDS as QUESTIONS

PLAN = "plan"
ANSWER_DIGITS = 9  # a mean's last digits depend on the order of the summation


@dataclass(frozen=True, slots=True)
class PlanLine(Line):
    """A run: a way and kind of request. blocks: length of the chain. scale: K, 1 for a real disk.

    warm_up: number of first requests that do not count.
    """

    run: str
    way: str
    kind: str
    turn: int
    blocks: int
    scale: float
    warm_up: int


def measure(run: Run) -> None:
    """Measure by the quick or the full plan. The option --reps sets the number of turns.

    Raises ProgramFailed if the ways give different answers.
    """
    plan = plan_of(run.options)
    with (
        ways(run, plan) as found,
        run.results.table(PLAN, PlanLine) as table,
        one_customer(run.results) as customer,
    ):
        if run.options.mode is Mode.REAL:
            require_same_answers(found)
        for turn in range(1, (run.options.reps or plan.rounds) + 1):
            for kind in KINDS:
                run.say(f"turn {turn}: {kind}")
                for way in found:
                    line = _line(run, plan, way, kind, turn)
                    table.add(line)
                    customer.asks(
                        way.service,
                        line.run,
                        way.requests(kind, run.random(f"{kind} {turn}")),  # the same for all ways
                        warm_up=WARM_UP,
                        least=plan.requests(way.name, kind),
                        least_s=plan.least_s,
                    )


def _line(run: Run, plan: Plan, way: Way, kind: str, turn: int) -> PlanLine:
    scale = run.options.scale if run.options.mode is Mode.EMULATED else None
    name = f"{way.name}-{kind}-{turn:02}"
    return PlanLine(name, way.name, kind, turn, plan.blocks, scale or 1, WARM_UP)


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
