"""Starts the measured servers: the study's storage, our scan and our index, with equal chains.

`real`: all three have the same flights, and no waits. Our scan has caches in the study's
proportion, so that it reads its blocks from files. Our index has the default settings of the
service, except that answers are not kept, because the same question is asked again and again.

`emulated`: the study's storage has nearly empty blocks, so that a block takes (46 + 39)/K ms on any
machine. Our scan has real blocks, and its work after reading a block is not divided by K.
"""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from random import Random

from loadtests.experiments.service_time.plan import INDEX, SCAN, STUDY, Plan
from loadtests.generation.schedule import Request
from loadtests.lab.experiment import Mode, Run
from loadtests.lab.ledgers import ONLY_HTTP, TwoChains, two_chains
from loadtests.processes import ProgramFailed, Service, running
from loadtests.questions import PARAMETERS, Question
from loadtests.servers import study

_AT = {
    STUDY: ("/get_block?height={}", "/get_transaction?id={}"),
    SCAN: ("/blocks/{}", "/transactions/{}"),
    INDEX: ("/blocks/{}", "/transactions/{}"),
}
_DAYS = {"INITIAL_DATE": "2010-01-20", "FINAL_DATE": "2011-01-20"}
_FLIGHT = {name: str(value) for name, value in study.SMALL_CHAIN_FLIGHT.items()}
_OF_SMALL_CHAIN = {
    kind: Question(kind, {name: (_FLIGHT | _DAYS)[name] for name in names})
    for kind, names in PARAMETERS.items()
}


@dataclass(frozen=True, slots=True)
class Way:
    """A running server, and the questions to ask it.

    blocks, flights: number in its chain. first: its lowest block with flights.
    """

    name: str
    service: Service
    questions: Mapping[str, Question]
    blocks: int
    flights: int
    first: int = 0

    def path(self, kind: str) -> str:
        """The path of the question of this kind. Raises KeyError if there is none."""
        asked = self.questions[kind]
        return asked.scan_path if self.name == SCAN else asked.path

    def requests(self, kind: str, random: Random) -> Iterator[Request]:
        """Endless requests: the same question, or blocks or transactions at random."""
        while True:
            yield Request(kind, self._drawn(kind, random))

    def _drawn(self, kind: str, random: Random) -> str:
        if kind in self.questions:
            return self.path(kind)
        block, transaction = _AT[self.name]
        if kind == "get_block":
            return block.format(self.first + random.randrange(self.blocks))
        return transaction.format(random.randrange(self.flights))


def ways(run: Run, plan: Plan) -> AbstractContextManager[list[Way]]:
    """Run all ways of the mode of `run` until the `with` block ends."""
    speedup = _speedup(run)
    chains = two_chains(run, plan.blocks)
    return _emulated(run, plan, chains, speedup) if speedup else _real(run, plan, chains)


@contextmanager
def _real(run: Run, plan: Plan, chains: TwoChains) -> Iterator[list[Way]]:
    of_chain = chains.questions, plan.blocks, chains.flights
    settings = {"workers": 1, "answer_cache_bytes": 0}
    with (
        study.running(chains.study, run.log) as theirs,
        chains.scanned(run.log, plan.run_blocks) as scan,
        running(chains.ours.folder, run.log, ONLY_HTTP, settings=settings) as index,
    ):
        yield [
            Way(STUDY, theirs, *of_chain),
            Way(SCAN, scan, *of_chain, first=1),
            Way(INDEX, index, *of_chain, first=1),
        ]


@contextmanager
def _emulated(run: Run, plan: Plan, chains: TwoChains, speedup: int) -> Iterator[list[Way]]:
    folder = run.scratch / "small"
    study.write_small_chain(folder, plan.blocks)
    flights = plan.blocks * study.SMALL_BLOCK_FLIGHTS
    with (
        study.running(folder, run.log, emulated_disk=speedup) as theirs,
        chains.scanned(run.log, plan.run_blocks, emulated_disk=speedup) as scan,
    ):
        yield [
            Way(STUDY, theirs, _OF_SMALL_CHAIN, plan.blocks, flights),
            Way(SCAN, scan, chains.questions, plan.blocks, chains.flights, first=1),
        ]


def _speedup(run: Run) -> int:
    """K for the service, 0 if nothing is emulated. Raises ProgramFailed if K is a fraction."""
    scale = run.options.scale or 0 if run.options.mode is Mode.EMULATED else 0
    if scale != int(scale):
        raise ProgramFailed(f"--scale {scale:g}: must be a whole number for the service")
    return int(scale)
