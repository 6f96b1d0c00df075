"""Starts the servers under test: the study's way of storing and answering, and our own scan.

Each has one worker that takes one request at a time. Blocks are really read, checked and filtered;
with that, the study's blocks take (46 + 39)/K ms each, and ours as long for each block read from a
file. The service leaves the generator a core, if there are two, and gives way to it on all of them.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice, repeat
from random import Random

from loadtests.chains import generated, imported
from loadtests.experiments import open_workload_loads as loads
from loadtests.generation.calibration import Calibration
from loadtests.generation.run import Target
from loadtests.generation.schedule import Request
from loadtests.grouping import grouped
from loadtests.lab.experiment import Run
from loadtests.machine import at_most_cores
from loadtests.models.open_queue import ONE, Queue
from loadtests.processes import ProgramFailed, running
from loadtests.questions import FEW_BLOCKS, Flight, sample
from loadtests.servers import study
from loadtests.servers.service import as_in_the_study

SCALE = 500.0
FLIGHTS, QUICK_FLIGHTS = 60_000, 40_000  # with fewer, a scan is too quick to be measured
RUN_BLOCKS = 2  # read at once; the study's 19 of 522 would be most of so short a chain
POLITELY = ("nice",)  # a service that computes all the time would make the generator late

Requests = Callable[[Random], Iterator[Request]]
"""Makes endless requests from a random generator."""


@dataclass(frozen=True, slots=True)
class Measured:
    """Holds a running server, and makes the requests to it.

    queue: its model. saturated: returns by a calibration how many requests it serves at once when
    all its workers are busy; None: one.
    """

    target: Target
    requests: Requests
    queue: Queue = ONE
    saturated: Callable[[Calibration], float] | None = None

    def choices(self, random: Random, count: int) -> Mapping[str, list[Request]]:
        """Return the next `count` requests by kind, for closed runs."""
        return grouped(islice(self.requests(random), count), lambda request: request.kind)


def all_days(flights: Sequence[Flight]) -> str:
    """Return the interval of the days of flights, as parameters."""
    days = sorted(str(flight["FL_DATE"]) for flight in flights)
    return f"INITIAL_DATE={days[0]}&FINAL_DATE={days[-1]}"


def scans(flights: Sequence[Flight], _: Random) -> Iterator[Request]:
    """Yield requests for a scan of the whole chain, the same each time, as in the study."""
    path = f"/flight_counter?{all_days(flights)}&ORIGIN={flights[0]['ORIGIN']}&engine=scan"
    return repeat(Request("scan", path))


@contextmanager
def _study(run: Run) -> Iterator[Measured]:
    folder = run.scratch / "study"
    if not folder.exists():
        study.write_small_chain(folder, study.BLOCKS)
    with study.running(folder, run.log, emulated_disk=run.options.scale or SCALE) as service:
        yield Measured(service, lambda random: repeat(Request("scan", study.FLIGHT_COUNTER)))


@contextmanager
def _scan(run: Run) -> Iterator[Measured]:
    """Run our own scan, with the time of the study's disk divided by K. Raises ProgramFailed."""
    scale = run.options.scale or SCALE
    if scale != int(scale):
        raise ProgramFailed(f"--scale {scale:g}: must be a whole number for the service")
    flights = run.choose(QUICK_FLIGHTS, FLIGHTS)
    ledger = imported(generated(flights), run.scratch / "chain", run.log)
    settings = as_in_the_study(
        ledger.block_bytes,
        max(1, ledger.flights // 1000),
        emulated_disk=int(scale),
        run_blocks=RUN_BLOCKS,
    )
    with ExitStack() as stack:
        with at_most_cores(max(1, len(os.sched_getaffinity(0)) - 1)):
            started = running(ledger.folder, run.log, settings=settings, prefix=POLITELY)
            service = stack.enter_context(started)
        yield Measured(service, partial(scans, sample(service, FEW_BLOCKS)))


Starts = Mapping[str, Callable[[Run], AbstractContextManager[Measured]]]
"""Name -> runs the server of this name until the `with` block ends. Raises ProgramFailed."""
STARTS: Starts = {loads.STUDY: _study, loads.SCAN: _scan}
