"""Forecasts what runs of a changed service will show, with the range that such runs vary by.

Three services are learnt from, each with one worker that keeps no answers: one that is asked for
rankings, which its index adds up; one that adds up the same rankings by scans; and one that is
asked for the study's scans, with emulated storage.

Each learnt request gives its own demands. A forecast simulates the run that will be made, with as
many customers or with the very arrivals that will be sent, 400 times. Each time the learnt requests
are drawn anew with replacement (so what they could not tell exactly is in the range, too) and the
run's requests from these, all slowed or sped up as one occasion differs from others. Workers share
connections as they do in the service, and if they leave no core to the load generator, each request
costs them what it costs the generator.

The range has 95 % of the simulated runs, and at both ends as much more as a model may be wrong and
still be said to agree (`TOLERANCE`). It holds if the model does: an effect that the model does not
know, as workers that compete for a cache, makes a forecast miss, and shows.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from heapq import heapreplace
from itertools import chain, cycle
from random import Random
from statistics import fmean, median

from loadtests.experiments.open_workload import servers
from loadtests.lab.experiment import Run
from loadtests.lab.results import Line
from loadtests.models.estimates import TOLERANCE, without_warm_up
from loadtests.models.replay import ShortestQueue, shortest_queue
from loadtests.models.sample_statistics import quantile, summary

RANKINGS, SCANNED, SCANS = "rankings", "scanned-rankings", "scans"
FASTER = 8.0

SIMULATED_RUNS = 400
CUSTOMERS = 4
FRACTION = 0.5
"""Share of the forecast throughput of CUSTOMERS at which requests of an open run arrive."""
WARM_UP = 50  # arrivals that do not count; at half of L the queue has forgotten after 20

THROUGHPUT, RESPONSE = QUANTITIES = ("throughput", "response")


@dataclass(frozen=True, slots=True)
class Demand:
    """What one request demands, in seconds.

    processor_s: time in the handler without that of files. files_s: of files. turn_s: until its
    worker begins the next that waits. kept_s: processor time of the worker beside the handler,
    which is all that a kept answer takes. network_s: all else, as a client sees it, which keeps no
    worker busy. generator_s: processor time of the load generator.
    """

    processor_s: float
    files_s: float
    turn_s: float
    kept_s: float
    network_s: float
    generator_s: float


Occasion = Sequence[Demand]
"""The demands of each request on an occasion."""


@dataclass(frozen=True, slots=True)
class Change:
    """A change. of: the service that it changes, or leaves as it is. told: it in words.

    workers: how many there are. kept: the share of requests whose answer is kept, so that only the
    front works. files: reading takes this share of its time. engine: the service of which it was
    learnt how long a handler takes that asks the other engine, "" if it stays the same.
    """

    name: str
    of: str
    told: str
    workers: int = 1
    kept: float = 0.0
    files: float = 1.0
    engine: str = ""

    def learnt_of(self, demands: Mapping[str, Sequence[Demand]]) -> Sequence[Demand]:
        """The demands that the change applies to. demands: of the requests of each service."""
        own = demands[self.of]
        if not self.engine:
            return own
        both = zip(own, cycle(demands[self.engine]), strict=False)
        return [
            replace(one, processor_s=other.processor_s, files_s=other.files_s)
            for one, other in both
        ]

    def applied(self, demand: Demand, random: Random) -> Demand:
        """The demands of a request after the change."""
        if random.random() >= self.kept:
            is_same = self.files == 1
            return demand if is_same else replace(demand, files_s=self.files * demand.files_s)
        return replace(
            demand,
            processor_s=0.0,
            files_s=0.0,
            turn_s=demand.kept_s,
            network_s=max(0.0, demand.network_s + demand.turn_s - demand.kept_s),
        )

    def made(self, run: Run) -> AbstractContextManager[servers.Measured]:
        """Run the service after the change until the `with` block ends. Raises ProgramFailed."""
        if self.of == SCANS:
            return servers.emulated(run, servers.SCALE / self.files)
        if self.of == SCANNED and not self.engine:
            return servers.shipped(run, servers.scanned_rankings)
        return servers.shipped(run, workers=self.workers, kept=self.kept)


LEARNT: Sequence[Change] = (
    Change(RANKINGS, RANKINGS, "Rankings, one worker that keeps no answers"),
    Change(SCANNED, SCANNED, "Rankings by scans, one worker"),
    Change(SCANS, SCANS, f"Scans, the study's disk {servers.SCALE:g} times as fast"),
)
"""The services as they are, which are learnt from. What they do under load is forecast, too."""

CHANGES: Sequence[Change] = (
    *LEARNT,
    Change("two-workers", RANKINGS, "Rankings, two workers instead of one", workers=2),
    Change("kept-answers", RANKINGS, "Answers are kept: half of the rankings are known", kept=0.5),
    Change("index", SCANNED, "Rankings by the index instead of scans", engine=RANKINGS),
    Change("faster-storage", SCANS, f"Scans, a disk {FASTER:g} times faster", files=1 / FASTER),
)


@dataclass(frozen=True, slots=True)
class Known:
    """What several occasions tell of services, pressed or half idle. requests: of all, by service.

    deviation: how much the time that the same work takes varies from one occasion to the next, as
    the standard deviation of its logarithm, and its degrees of freedom; it is the same for all
    services. occasions: how many are known of each service.
    """

    requests: Mapping[str, Sequence[Demand]]
    deviation: float
    degrees_of_freedom: int
    occasions: int

    def factor(self, random: Random) -> float:
        """The time on an occasion yet to come, in times of the mean of the known ones.

        Its logarithm has Student's t distribution, as that of the next of several normal values.
        """
        chi_squared = random.gammavariate(self.degrees_of_freedom / 2, 2)
        t = random.gauss(0, 1) / math.sqrt(chi_squared / self.degrees_of_freedom)
        return math.exp(t * self.deviation * math.sqrt(1 + 1 / self.occasions))


def known(occasions: Mapping[str, Sequence[Occasion]]) -> Known:
    """What is known from several occasions, by service. Raises ValueError if none has two."""
    degrees_of_freedom = sum(len(of) - 1 for of in occasions.values())
    if degrees_of_freedom < 1:
        raise ValueError("a speed needs two occasions of a service at least")
    logarithms = [[math.log(mean_processor_s(one)) for one in of] for of in occasions.values()]
    deviation = math.sqrt(sum(summary(of).squares for of in logarithms) / degrees_of_freedom)
    requests = {service: [*chain.from_iterable(of)] for service, of in occasions.items()}
    return Known(requests, deviation, degrees_of_freedom, min(map(len, logarithms)))


def mean_processor_s(occasion: Occasion) -> float:
    """The mean time in the handler without that of files."""
    return fmean([one.processor_s for one in occasion])


# --- forecasts -----------------------------------------------------------------------------------

Times = tuple[float, float]  # for how long a request keeps a worker busy, and is on its way
Stream = Callable[[float], Sequence[float]]  # rate per second -> times of an open run's arrivals


@dataclass(frozen=True, slots=True)
class Forecast(Line):
    """What a run will show. quantity: THROUGHPUT per s or RESPONSE in s. middle: the median.

    made: when, in ISO 8601. low, high: the value lies between them with a chance of 95 %, if the
    model is right within 5 %.
    """

    made: str
    change: str
    quantity: str
    low: float
    middle: float
    high: float

    def covers(self, value: float) -> bool:
        """Whether it came so."""
        return self.low <= value <= self.high


def forecasts(
    change: Change,
    pressed: Known,
    half_idle: Known,
    rounds: int,
    cores: int,
    stream: Stream,
    random: Random,
    made: str = "",
) -> tuple[Forecast, Forecast]:
    """The throughput of CUSTOMERS, and the mean response time at FRACTION of that forecast.

    pressed, half_idle: what is known of services that are so. rounds: requests of the closed run.
    cores: of the machine, for all workers and the load generator. stream: the arrivals that the
    open run will have.
    """

    def drawn(known: Known, count: int) -> Iterator[list[Times]]:
        """The requests of each simulated run.

        As many as were learnt are drawn with replacement, and from these those of the run.
        """
        requests = change.learnt_of(known.requests)
        for _ in range(SIMULATED_RUNS):
            slower = known.factor(random)
            resampled = random.choices(requests, k=len(requests))
            asked = random.choices(resampled, k=count)
            yield [times(change.applied(one, random), slower) for one in asked]

    def times(demand: Demand, slower: float) -> Times:
        """A request if the processor takes `slower` times as long."""
        worker_s = slower * (demand.processor_s + demand.turn_s) + demand.files_s
        taken_s = 0.0 if change.workers < cores else demand.generator_s
        return worker_s + taken_s, slower * demand.network_s

    def of(quantity: str, values: Sequence[float]) -> Forecast:
        low, high = (quantile(values, share) for share in (0.025, 0.975))
        room = (1 - TOLERANCE) * low, median(values), (1 + TOLERANCE) * high
        return Forecast(made, change.name, quantity, *room)

    workers = change.workers
    x = of(THROUGHPUT, [_throughput_per_s(one, workers) for one in drawn(pressed, rounds)])
    times_s = stream(FRACTION * x.middle)
    responses_s = [_response_s(one, workers, times_s) for one in drawn(half_idle, len(times_s))]
    return x, of(RESPONSE, responses_s)


def _throughput_per_s(drawn: Sequence[Times], workers: int) -> float:
    """Simulate CUSTOMERS who ask again at once. Returns their answers per second."""
    queues, back_s = ShortestQueue(workers), [0.0] * CUSTOMERS
    last_s = 0.0
    for busy_s, network_s in drawn:
        done_s = queues.departure_s(back_s[0], busy_s)
        heapreplace(back_s, done_s + network_s)
        last_s = max(last_s, done_s)
    return len(drawn) / last_s


def _response_s(drawn: Sequence[Times], workers: int, times_s: Sequence[float]) -> float:
    """Simulate an open run with arrivals at `times_s`. Returns its mean response time."""
    responses_s = shortest_queue(times_s, [busy_s for busy_s, _ in drawn], workers)
    return mean_response_s(responses_s) + fmean([network_s for _, network_s in drawn])


def mean_response_s(responses_s: Sequence[float]) -> float:
    """The mean of an open run, without its first WARM_UP arrivals."""
    return fmean(without_warm_up(responses_s, WARM_UP))
