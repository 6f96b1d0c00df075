"""Defines how much is measured: servers, numbers of customers, lengths of runs. Pure."""

from dataclasses import dataclass, replace

from loadtests.lab.experiment import Options
from loadtests.lab.published import BLOCKS
from loadtests.servers.network import FILLED_BLOCKS, THREADS
from loadtests.servers.service import RUN_BLOCKS

SCALE, QUICK_SCALE = 100.0, 400.0
REGULAR_CV = 0.2
"""The coefficient of variation of a visit's service time at regular stations. Reading a block of
1000 flights varies less on a quiet machine; the report shows how much it varied here."""


@dataclass(frozen=True, slots=True)
class Server:
    """A server of the network. cv: that of service times. threads: customers inside at a time."""

    name: str
    label: str
    cv: float
    threads: int


EXPONENTIAL = Server("exponential", "exponential stations", 1.0, THREADS)
REGULAR = Server("regular", "regular stations", REGULAR_CV, THREADS)
SINGLE = Server("one-at-a-time", "one request at a time", REGULAR_CV, 1)
SERVERS = (EXPONENTIAL, REGULAR, SINGLE)

WARM_UP = 1
"""First requests of each customer that do not count."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is measured. populations: values of N. report_s: length of a run in report seconds.

    group: visits joined to one (`servers.network`). most_attempts: the most attempts at a closed
    run until one is accepted.

    blocks: length of the chains whose real blocks are read. run_blocks: blocks that our service
    reads at a miss. scans: of each storage that count. simulated_runs: of each server and N.
    """

    populations: tuple[int, ...]
    report_s: float
    group: int
    blocks: int
    run_blocks: int
    scans: int
    most_attempts: int = 1
    simulated_runs: int = 200


FULL = Plan(tuple(range(1, 11)), 4000, 1, BLOCKS, RUN_BLOCKS, scans=5, most_attempts=2)
QUICK = Plan((1, 2, 5), 1200, FILLED_BLOCKS, blocks=60, run_blocks=4, scans=3)


def plan_of(options: Options) -> Plan:
    """The plan for these options: about half an hour, or less than two minutes if quick."""
    plan = QUICK if options.quick else FULL
    chosen = tuple(n for n in plan.populations if n in options.loads)
    return replace(plan, populations=chosen) if options.loads else plan
