"""Starts the servers under test, and makes requests to them.

`emulated`: the study's way of storing and answering, and our own scan, each with one worker that
takes one request at a time. Blocks are really read, checked and filtered; with that, the study's
blocks take (46 + 39)/K ms each, and ours as long for each block read from a file.

`real`: the service with its own worker and lanes, as shipped. Only answers are not kept, because
the same question would then be answered from memory, and the queue of scans has room for all. Its
three plain questions take less than a millisecond, as long as a load generator is late; so it is
asked for rankings of all routes, which the index adds up in tens of milliseconds, and for scans.
Of each kind a worker answers one at a time, in the order in which they come. The service leaves
the generator a core, if it has fewer workers than there are cores, and gives way to it on all of
them.

With `--host` the service on another machine is asked for rankings.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from itertools import islice, repeat
from pathlib import Path
from random import Random
from typing import Final

from loadtests.chains import Chain, generated, imported
from loadtests.experiments.open_workload.plan import (
    SCAN,
    SERVICE,
    SERVICE_SCANS,
    SERVICE_WORKERS,
    STUDY,
    WORKERS,
)
from loadtests.generation.run import Target
from loadtests.generation.schedule import Request
from loadtests.lab.experiment import Run
from loadtests.machine import at_most_cores
from loadtests.models.open_queue import ONE, Queue
from loadtests.processes import ProgramFailed, Service, Site, running
from loadtests.questions import Flight, sample
from loadtests.servers import study
from loadtests.servers.service import as_in_the_study

SCALE = 500.0
FLIGHTS, QUICK_FLIGHTS = 60_000, 40_000  # with fewer, a scan is too quick to be measured
STUDY_BLOCKS = study.BLOCKS
RUN_BLOCKS = 2  # read at once; the study's 19 of 522 would be most of so short a chain
CALIBRATIONS_DRAWN = 1000  # number of requests from which a calibration draws
SAMPLED_BLOCKS = 20
LONGEST_PAGE = 20  # of a ranking
KEPT_PAGES = 20  # asked again and again
POLITELY = ("nice",)  # a service that computes all the time would make the generator late
DOORS = 100_000  # requests that may wait, as in a queue without end

_RANKING: Final = "ranking"
_SCAN: Final = "scan"


@dataclass(frozen=True, slots=True)
class Measured:
    """A running server. requests: makes endless requests to it from a random generator.

    queue: its model. None: it is a service elsewhere, and the number of its workers is not known.
    is_service: its demands are learnt from one customer, and closed runs are made, too.
    """

    target: Target
    requests: Callable[[Random], Iterator[Request]]
    queue: Queue | None = ONE
    is_service: bool = False

    def choices(self, random: Random) -> Mapping[str, list[Request]]:
        """Requests for calibrations to draw from."""
        asked = self.requests(random)
        found = [next(asked) for _ in range(CALIBRATIONS_DRAWN)]
        return {found[0].kind: found}


def measured(run: Run, server: str) -> AbstractContextManager[Measured]:
    """Run the server of this name until the `with` block ends. Raises ProgramFailed."""
    return _STARTS[server](run)


@contextmanager
def _study(run: Run) -> Iterator[Measured]:
    folder = run.scratch / "study"
    if not folder.exists():
        study.write_small_chain(folder, STUDY_BLOCKS)
    with study.running(folder, run.log, emulated_disk=run.options.scale or SCALE) as service:
        yield Measured(service, lambda random: repeat(Request(_SCAN, study.FLIGHT_COUNTER)))


@contextmanager
def scans(run: Run, scale: float) -> Iterator[Measured]:
    """Our own scan, with the time of the study's disk divided by `scale`. Raises ProgramFailed."""
    if scale != int(scale):
        raise ProgramFailed(f"--scale {scale:g}: must be a whole number for the service")
    chain = _chain(run)
    blocks = max(1, chain.flights // 1000)
    settings = as_in_the_study(
        chain.block_bytes, blocks, emulated_disk=int(scale), run_blocks=RUN_BLOCKS
    )
    with _beside_the_generator(run, chain.folder, settings) as service:
        yield Measured(service, _scans(sample(service, SAMPLED_BLOCKS)))


@contextmanager
def rankings(run: Run, workers: int, kept: float = 0.0) -> Iterator[Measured]:
    """The service as shipped, which is asked for rankings. Raises ProgramFailed.

    kept: the share of requests that were asked before, and whose answers are kept.
    """
    with _shipped(run, workers, is_keeping=kept > 0) as service:
        asked = _rankings(sample(service, SAMPLED_BLOCKS))
        again = list(islice(asked(run.random("kept answers")), KEPT_PAGES)) if kept else []
        for request in again:
            service.get(request.path)
        yield Measured(
            service,
            lambda random: _some_of(asked(random), again, kept, random),
            Queue(workers),
            is_service=True,
        )


@contextmanager
def scanned_rankings(run: Run) -> Iterator[Measured]:
    """The service as shipped, which is asked for rankings and adds them up by scans."""
    with _shipped(run, 1) as service:
        asked = _rankings(sample(service, SAMPLED_BLOCKS), "&engine=scan")
        yield Measured(service, asked, ONE, is_service=True)


def _some_of(
    asked: Iterator[Request], again: Sequence[Request], share: float, random: Random
) -> Iterator[Request]:
    """The requests `asked`, each replaced by one of `again` with probability `share`."""
    for request in asked:
        yield random.choice(again) if random.random() < share else request


@contextmanager
def _service_scans(run: Run) -> Iterator[Measured]:
    with _shipped(run, 1) as service:
        yield Measured(service, _scans(sample(service, SAMPLED_BLOCKS)), ONE, is_service=True)


@contextmanager
def _shipped(run: Run, workers: int, *, is_keeping: bool = False) -> Iterator[Service]:
    settings: dict[str, object] = {"lab": "yes", "workers": workers, "lane_queue": DOORS}
    if not is_keeping:
        settings["answer_cache_bytes"] = 0
    with _beside_the_generator(run, _chain(run).folder, settings) as service:
        yield service


@contextmanager
def _beside_the_generator(
    run: Run, folder: Path, settings: Mapping[str, object]
) -> Iterator[Service]:
    """Run the service with a lower priority, on all cores but one if its workers need no more."""
    workers = int(str(settings["workers"]))
    with ExitStack() as stack:
        with at_most_cores(max(workers, len(os.sched_getaffinity(0)) - 1)):
            started = running(folder, run.log, settings=settings, prefix=POLITELY)
            service = stack.enter_context(started)
        yield service


@contextmanager
def _elsewhere(run: Run) -> Iterator[Measured]:
    site = Site(run.options.host.rstrip("/"))
    try:
        flights = sample(site, SAMPLED_BLOCKS)
    except OSError as problem:
        raise ProgramFailed(f"no service answers at {site.url}: {problem}") from problem
    yield Measured(site, _rankings(flights), queue=None, is_service=True)


def _chain(run: Run) -> Chain:
    flights = run.choose(QUICK_FLIGHTS, FLIGHTS)
    return imported(generated(flights), run.scratch / "chain", run.log)


def _all_days(flights: list[Flight]) -> str:
    days = sorted(str(flight["FL_DATE"]) for flight in flights)
    return f"INITIAL_DATE={days[0]}&FINAL_DATE={days[-1]}"


def _rankings(flights: list[Flight], engine: str = "") -> Callable[[Random], Iterator[Request]]:
    """Requests for pages of the ranking of all routes by delay; each page adds up all of them.

    Pages differ in where they begin and how long they are, so that hardly one is asked for twice.
    engine: the end of the query, if it is not the index that is to answer.
    """
    pairs = {(flight["ORIGIN"], flight["DEST"]) for flight in flights}
    ranking = f"/average_delays?{_all_days(flights)}&group_by=route&sort=average_delay"

    def asked(random: Random) -> Iterator[Request]:
        while True:
            offset, limit = random.randrange(len(pairs)), random.randint(1, LONGEST_PAGE)
            yield Request(_RANKING, f"{ranking}&offset={offset}&limit={limit}{engine}")

    return asked


def _scans(flights: list[Flight]) -> Callable[[Random], Iterator[Request]]:
    """Requests for a scan of the whole chain, the same each time, as in the study."""
    path = f"/flight_counter?{_all_days(flights)}&ORIGIN={flights[0]['ORIGIN']}&engine=scan"
    return lambda random: repeat(Request(_SCAN, path))


_Start = Callable[[Run], AbstractContextManager[Measured]]
_STARTS: Mapping[str, _Start] = {
    STUDY: _study,
    SCAN: lambda run: scans(run, run.options.scale or SCALE),
    SERVICE: lambda run: rankings(run, 1),
    SERVICE_WORKERS: lambda run: rankings(run, WORKERS),
    SERVICE_SCANS: _service_scans,
    "elsewhere": _elsewhere,
}
