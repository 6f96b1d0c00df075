"""How much is measured: which servers, with how many customers, for how long. Pure."""

from dataclasses import dataclass

from loadtests.lab.experiment import Options
from loadtests.lab.published import BLOCKS
from loadtests.servers.network import FILLED_BLOCKS, THREADS
from loadtests.servers.service import RUN_BLOCKS

SCALE, QUICK_SCALE = 100.0, 400.0
REGULAR_CV = 0.2
"""Of a visit's service time. Reading a block of 1000 flights varies less than that on a quiet
machine; the report says how much it did here."""


@dataclass(frozen=True, slots=True)
class Server:
    """The network with service times of this coefficient of variation; threads: at a time in it."""

    name: str
    label: str
    cv: float
    threads: int


EXPONENTIAL = Server("exponential", "exponential stations", 1.0, THREADS)
REGULAR = Server("regular", "regular stations", REGULAR_CV, THREADS)
SINGLE = Server("one-at-a-time", "one request at a time", REGULAR_CV, 1)
SERVERS = (EXPONENTIAL, REGULAR, SINGLE)


@dataclass(frozen=True, slots=True)
class Plan:
    """populations: N. report_s: length of a run in seconds of the report, K times as long as it
    takes. group: visits made one (`servers.network`). warm_up: requests of each customer that do
    not count.

    blocks: of the chains whose real blocks are read; run_blocks: at a miss by our service; scans:
    of each that count. most_attempts: at a closed run, until one is not rejected.
    """

    populations: tuple[int, ...]
    report_s: float
    group: int
    blocks: int
    run_blocks: int
    scans: int
    warm_up: int = 1
    most_attempts: int = 1


FULL = Plan(tuple(range(1, 11)), 4000, 1, BLOCKS, RUN_BLOCKS, scans=5, most_attempts=2)
QUICK = Plan((1, 2, 5), 1200, FILLED_BLOCKS, blocks=60, run_blocks=4, scans=3)


def plan_of(options: Options) -> Plan:
    """About half an hour; under two minutes if quick."""
    return QUICK if options.quick else FULL
