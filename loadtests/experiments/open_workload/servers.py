"""Starts the servers under test, and makes requests to them.

`emulated`: the study's way of storing and answering, and our own scan, each with one worker that
takes one request at a time. Blocks are really read, checked and filtered; with that, the study's
blocks take (46 + 39)/K ms each, and ours as long for each block read from a file.

`real`: the service as shipped. Only answers are not kept, because the same question would then be
answered from memory, and the queue of scans has room for all. Its three plain questions take less
than a millisecond, as long as a load generator is late; so it is asked for rankings of all routes,
which the index adds up in tens of milliseconds, and for scans. Of each kind a worker answers one at
a time, in the order in which they come. The service leaves the generator a core, if it has fewer
workers than there are cores, and gives way to it on all of them. With `--host` the service on
another machine is asked for rankings.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice, repeat
from random import Random

from loadtests.chains import Chain, generated, imported
from loadtests.experiments.open_workload import loads
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

Requests = Callable[[Random], Iterator[Request]]
"""Makes endless requests from a random generator."""


@dataclass(frozen=True, slots=True)
class Measured:
    """A running server, and the requests to it.

    queue: its model. None: it is a service elsewhere, and the number of its workers is not known.
    is_service: its demands are learnt from one customer, and closed runs are made, too.
    """

    target: Target
    requests: Requests
    queue: Queue | None = ONE
    is_service: bool = False

    def choices(self, random: Random) -> Mapping[str, list[Request]]:
        """Requests for calibrations to draw from."""
        found = list(islice(self.requests(random), CALIBRATIONS_DRAWN))
        return {found[0].kind: found}


def _all_days(flights: Sequence[Flight]) -> str:
    days = sorted(str(flight["FL_DATE"]) for flight in flights)
    return f"INITIAL_DATE={days[0]}&FINAL_DATE={days[-1]}"


def rankings(flights: Sequence[Flight], engine: str = "") -> Requests:
    """Requests for pages of the ranking of all routes by delay; each page adds up all of them.

    Pages differ in where they begin and how long they are, so that hardly one is asked for twice.
    engine: the end of the query, if it is not the index that is to answer.
    """
    pairs = {(flight["ORIGIN"], flight["DEST"]) for flight in flights}
    ranking = f"/average_delays?{_all_days(flights)}&group_by=route&sort=average_delay"

    def asked(random: Random) -> Iterator[Request]:
        while True:
            offset, limit = random.randrange(len(pairs)), random.randint(1, LONGEST_PAGE)
            yield Request("ranking", f"{ranking}&offset={offset}&limit={limit}{engine}")

    return asked


scanned_rankings = partial(rankings, engine="&engine=scan")
"""Requests for the same pages, added up by scans."""


def scans(flights: Sequence[Flight]) -> Requests:
    """Requests for a scan of the whole chain, the same each time, as in the study."""
    path = f"/flight_counter?{_all_days(flights)}&ORIGIN={flights[0]['ORIGIN']}&engine=scan"
    return lambda random: repeat(Request("scan", path))


@contextmanager
def _study(run: Run) -> Iterator[Measured]:
    folder = run.scratch / "study"
    if not folder.exists():
        study.write_small_chain(folder, STUDY_BLOCKS)
    with study.running(folder, run.log, emulated_disk=run.options.scale or SCALE) as service:
        yield Measured(service, lambda random: repeat(Request("scan", study.FLIGHT_COUNTER)))


@contextmanager
def emulated(run: Run, scale: float) -> Iterator[Measured]:
    """Our own scan, with the time of the study's disk divided by `scale`. Raises ProgramFailed."""
    if scale != int(scale):
        raise ProgramFailed(f"--scale {scale:g}: must be a whole number for the service")
    chain = _chain(run)
    settings = as_in_the_study(
        chain.block_bytes,
        max(1, chain.flights // 1000),
        emulated_disk=int(scale),
        run_blocks=RUN_BLOCKS,
    )
    with _beside_the_generator(run, chain, settings) as service:
        yield Measured(service, scans(sample(service, SAMPLED_BLOCKS)))


@contextmanager
def shipped(
    run: Run,
    asked: Callable[[list[Flight]], Requests] = rankings,
    *,
    workers: int = 1,
    kept: float = 0.0,
) -> Iterator[Measured]:
    """The service as shipped. Raises ProgramFailed.

    asked: what it is asked for, given some of its flights. kept: the share of requests that were
    asked before, and whose answers are kept.
    """
    settings: dict[str, object] = {"lab": "yes", "workers": workers, "lane_queue": DOORS}
    if not kept:
        settings["answer_cache_bytes"] = 0
    with _beside_the_generator(run, _chain(run), settings) as service:
        requests = asked(sample(service, SAMPLED_BLOCKS))
        again = list(islice(requests(run.random("kept answers")), KEPT_PAGES)) if kept else []
        for request in again:
            service.get(request.path)

        def some_again(random: Random) -> Iterator[Request]:
            for request in requests(random):
                yield random.choice(again) if random.random() < kept else request

        yield Measured(service, some_again, Queue(workers), is_service=True)


@contextmanager
def _beside_the_generator(
    run: Run, chain: Chain, settings: Mapping[str, object]
) -> Iterator[Service]:
    """Run the service with a lower priority, on all cores but one if its workers need no more."""
    workers = int(str(settings["workers"]))
    with ExitStack() as stack:
        with at_most_cores(max(workers, len(os.sched_getaffinity(0)) - 1)):
            started = running(chain.folder, run.log, settings=settings, prefix=POLITELY)
            service = stack.enter_context(started)
        yield service


@contextmanager
def _elsewhere(run: Run) -> Iterator[Measured]:
    site = Site(run.options.host.rstrip("/"))
    try:
        flights = sample(site, SAMPLED_BLOCKS)
    except OSError as problem:
        raise ProgramFailed(f"no service answers at {site.url}: {problem}") from problem
    yield Measured(site, rankings(flights), queue=None, is_service=True)


def _chain(run: Run) -> Chain:
    flights = run.choose(QUICK_FLIGHTS, FLIGHTS)
    return imported(generated(flights), run.scratch / "chain", run.log)


STARTS: Mapping[str, Callable[[Run], AbstractContextManager[Measured]]] = {
    loads.STUDY: _study,
    loads.SCAN: lambda run: emulated(run, run.options.scale or SCALE),
    loads.SERVICE: shipped,
    loads.SERVICE_WORKERS: lambda run: shipped(run, workers=loads.WORKERS),
    loads.SERVICE_SCANS: lambda run: shipped(run, scans),
    loads.ELSEWHERE: _elsewhere,
}
"""Name -> runs the server of this name until the `with` block ends. Raises ProgramFailed."""
