"""How much is measured: which requests, by which ways of storing and answering, how often. Pure."""

from dataclasses import dataclass

from loadtests.lab.experiment import Mode, Options
from loadtests.lab.published import BLOCKS, SERVICE_TIMES
from loadtests.questions import KINDS as QUESTIONS
from loadtests.servers.service import RUN_BLOCKS

KINDS = tuple(SERVICE_TIMES)  # the study's five, in its order
STUDY, SCAN, INDEX = "study", "scan", "index"
WAYS = {Mode.REAL: (STUDY, SCAN, INDEX), Mode.EMULATED: (STUDY, SCAN)}
SCALE, QUICK_SCALE = 20.0, 200.0


@dataclass(frozen=True, slots=True)
class Plan:
    """blocks: of the chain. run_blocks: read at a miss by our service. rounds: turns through all.

    scans, lookups: requests that count of a run that scans the chain, and of any other; warm_up:
    before them; least_s: seconds that a run lasts at least, to see who else used the processor.
    """

    blocks: int
    run_blocks: int
    rounds: int
    scans: int
    lookups: int
    least_s: float
    warm_up: int = 1

    def requests(self, way: str, kind: str) -> int:
        """That count in a run."""
        return self.scans if way != INDEX and kind in QUESTIONS else self.lookups


FULL = Plan(BLOCKS, RUN_BLOCKS, rounds=6, scans=4, lookups=30, least_s=1.0)
QUICK = Plan(blocks=60, run_blocks=4, rounds=1, scans=4, lookups=20, least_s=0.5)


def plan_of(options: Options) -> Plan:
    """About 20 minutes on a PC, more than an hour on a Pi; a minute if quick."""
    return QUICK if options.quick else FULL
