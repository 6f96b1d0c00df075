"""Measures in turns through all ways and requests, so that a slow minute affects all of them.

`real`: the study's storage, our scan and our index have the same flights, and no waits. Our scan
has caches in the study's proportion, so that it reads its blocks from files. Our index has the
default settings of the service, except that answers are not kept, because the same question is
asked again and again.

`emulated`: the study's storage has nearly empty blocks, so that a block takes (46 + 39)/K ms on any
machine. Our scan has real blocks, and its work after reading a block is not divided by K.

Beside the files of `one_customer`, `plan.csv` has a line for each run.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from random import Random

from loadtests.generation.schedule import Request
from loadtests.lab.experiment import Mode, Options, Run
from loadtests.lab.ledgers import ONLY_HTTP, two_chains
from loadtests.lab.one_customer import one_customer
from loadtests.lab.published import BLOCKS, SERVICE_TIMES
from loadtests.lab.results import Line
from loadtests.processes import ProgramFailed, Service, running
from loadtests.questions import KINDS as QUESTIONS
from loadtests.questions import PARAMETERS, Question
from loadtests.servers import study
from loadtests.servers.service import RUN_BLOCKS

KINDS = tuple(SERVICE_TIMES)  # the study's five requests, in its order
STUDY, SCAN, INDEX = "study", "scan", "index"
SCALE, QUICK_SCALE = 20.0, 200.0
WARM_UP = 1  # first requests of a run that do not count
PLAN = "plan"
ANSWER_DIGITS = 9  # a mean's last digits depend on the order of the summation

_DAYS = {"INITIAL_DATE": "2010-01-20", "FINAL_DATE": "2011-01-20"}
_FLIGHT = {name: str(value) for name, value in study.SMALL_CHAIN_FLIGHT.items()}
_OF_SMALL_CHAIN = {
    kind: Question(kind, {name: (_FLIGHT | _DAYS)[name] for name in names})
    for kind, names in PARAMETERS.items()
}


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
    plan, is_real = plan_of(run.options), run.options.mode is Mode.REAL
    scale = 1 if is_real else run.options.scale or 1
    with (
        ways(run, plan) as found,
        run.results.table(PLAN, PlanLine) as table,
        one_customer(run.results) as customer,
    ):
        if is_real:
            require_same_answers(found)
        for turn in range(1, (run.options.reps or plan.rounds) + 1):
            for kind in KINDS:
                run.say(f"turn {turn}: {kind}")
                for way in found:
                    name = f"{way.name}-{kind}-{turn:02}"
                    table.add(PlanLine(name, way.name, kind, turn, plan.blocks, scale, WARM_UP))
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
    """Run all ways of the mode of `run` until the `with` block ends.

    Raises ProgramFailed if K is a fraction, which the service cannot have.
    """
    scale = run.options.scale or 0 if run.options.mode is Mode.EMULATED else 0
    if scale != int(scale):
        raise ProgramFailed(f"--scale {scale:g}: must be a whole number for the service")
    speedup, chains = int(scale), two_chains(run, plan.blocks)
    ours = chains.questions, plan.blocks, chains.flights
    folder, theirs = chains.study, ours
    if speedup:
        folder = run.scratch / "small"
        study.write_small_chain(folder, plan.blocks)
        theirs = _OF_SMALL_CHAIN, plan.blocks, plan.blocks * study.SMALL_BLOCK_FLIGHTS
    with (
        study.running(folder, run.log, emulated_disk=speedup) as stored,
        chains.scanned(run.log, plan.run_blocks, emulated_disk=speedup) as scan,
        ExitStack() as stack,
    ):
        found = [Way(STUDY, stored, *theirs), Way(SCAN, scan, *ours)]
        if not speedup:
            settings = {"workers": 1, "answer_cache_bytes": 0}
            index = running(chains.ours.folder, run.log, ONLY_HTTP, settings=settings)
            found.append(Way(INDEX, stack.enter_context(index), *ours))
        yield found


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
