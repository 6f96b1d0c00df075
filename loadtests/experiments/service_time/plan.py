"""Defines how much is measured: requests, ways of storing and answering, numbers. Pure."""

from dataclasses import dataclass

from loadtests.lab.experiment import Options
from loadtests.lab.published import BLOCKS, SERVICE_TIMES
from loadtests.questions import KINDS as QUESTIONS
from loadtests.servers.service import RUN_BLOCKS

KINDS = tuple(SERVICE_TIMES)  # the study's five requests, in its order
STUDY, SCAN, INDEX = "study", "scan", "index"
SCALE, QUICK_SCALE = 20.0, 200.0
WARM_UP = 1  # first requests of a run that do not count


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

    def requests(self, way: str, kind: str) -> int:
        """The number of requests that count in a run."""
        return self.scans if way != INDEX and kind in QUESTIONS else self.lookups


FULL = Plan(BLOCKS, RUN_BLOCKS, rounds=6, scans=4, lookups=30, least_s=1.0)
QUICK = Plan(blocks=60, run_blocks=4, rounds=1, scans=4, lookups=20, least_s=0.5)


def plan_of(options: Options) -> Plan:
    """The plan for these options: 20 minutes on a PC, over an hour on a Pi, or a quick minute."""
    return QUICK if options.quick else FULL
