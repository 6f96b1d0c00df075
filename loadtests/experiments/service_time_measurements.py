"""Measures in turns through all ways and requests, so that a slow minute affects all of them.

The study's storage, our scan and our index have the same flights. Our scan has caches in the
study's proportion, so that it reads its blocks from files. Our index has the default settings of
the service, except that answers are not kept, because the same question is asked again and again.

Beside the files of `one_customer`, `plan.csv` has a line for each run.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random

from loadtests.generation.schedule import Request
from loadtests.lab.experiment import Options, Run
from loadtests.lab.ledgers import ONLY_HTTP, two_chains
from loadtests.lab.one_customer import one_customer
from loadtests.lab.published import BLOCKS, SERVICE_TIMES
from loadtests.lab.results import Line
from loadtests.processes import ProgramFailed, Service, running
from loadtests.questions import KINDS as QUESTIONS
from loadtests.questions import Question
from loadtests.servers import study
from loadtests.servers.service import RUN_BLOCKS

KINDS = tuple(SERVICE_TIMES)  # the study's five requests, in its order
STUDY, SCAN, INDEX = "study", "scan", "index"
WARM_UP = 1  # first requests of a run that do not count
PLAN = "plan"
ANSWER_DIGITS = 9  # a mean's last digits depend on the order of the summation


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is measured. blocks: length of the chain. rounds: number of turns through all.

    run_blocks: blocks that our service reads at a miss. scans, lookups: number of requests that
    count in a run that scans the chain and in any other run. least_s: least duration of a run, to
    measure the processor time of other programs.
    """

    blocks: int
    run_blocks: int
    rounds: int
    scans: int
    lookups: int
    least_s: float


FULL = Plan(BLOCKS, RUN_BLOCKS, rounds=6, scans=4, lookups=30, least_s=1.0)
QUICK = Plan(blocks=60, run_blocks=4, rounds=1, scans=4, lookups=20, least_s=0.5)


def plan_of(options: Options) -> Plan:
    """The plan for these options: 20 minutes on a PC, over an hour on a Pi, or a quick minute."""
    return QUICK if options.quick else FULL


@dataclass(frozen=True, slots=True)
class PlanLine(Line):
    """A run: a way and kind of request. blocks: length of the chain.

    warm_up: number of first requests that do not count.
    """

    run: str
    way: str
    kind: str
    turn: int
    blocks: int
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
        require_same_answers(found)
        for turn in range(1, (run.options.reps or plan.rounds) + 1):
            for kind in KINDS:
                run.say(f"turn {turn}: {kind}")
                for way in found:
                    name = f"{way.name}-{kind}-{turn:02}"
                    table.add(PlanLine(name, way.name, kind, turn, plan.blocks, WARM_UP))
                    is_scan = way.name != INDEX and kind in QUESTIONS
                    customer.asks(
                        way.service,
                        name,
                        way.requests(kind, run.random(f"{kind} {turn}")),  # the same for all ways
                        warm_up=WARM_UP,
                        least=plan.scans if is_scan else plan.lookups,
                        least_s=plan.least_s,
                    )


# --- what is measured ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Way:
    """A running server, and the questions to ask it. blocks, flights: number in its chain."""

    name: str
    service: Service
    questions: Mapping[str, Question]
    blocks: int
    flights: int

    def path(self, kind: str) -> str:
        """The path of the question of this kind. Raises KeyError if there is none."""
        asked = self.questions[kind]
        return asked.scan_path if self.name == SCAN else asked.path

    def requests(self, kind: str, random: Random) -> Iterator[Request]:
        """Endless requests: the same question, or blocks or transactions at random."""
        block, first, transaction = _STUDYS if self.name == STUDY else _OURS
        while True:
            if kind in self.questions:
                path = self.path(kind)
            elif kind == "get_block":
                path = f"{block}{first + random.randrange(self.blocks)}"
            else:
                path = f"{transaction}{random.randrange(self.flights)}"
            yield Request(kind, path)


_STUDYS = "/get_block?height=", 0, "/get_transaction?id="
_OURS = "/blocks/", 1, "/transactions/"
"""What a path of a block begins with, the lowest block with flights, and the same of a flight."""


@contextmanager
def ways(run: Run, plan: Plan) -> Iterator[list[Way]]:
    """Run all ways until the `with` block ends."""
    chains, settings = two_chains(run, plan.blocks), {"workers": 1, "answer_cache_bytes": 0}
    ours = chains.questions, plan.blocks, chains.flights
    with (
        study.running(chains.study, run.log) as stored,
        chains.scanned(run.log, plan.run_blocks) as scan,
        running(chains.ours.folder, run.log, ONLY_HTTP, settings=settings) as index,
    ):
        yield [Way(STUDY, stored, *ours), Way(SCAN, scan, *ours), Way(INDEX, index, *ours)]


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
