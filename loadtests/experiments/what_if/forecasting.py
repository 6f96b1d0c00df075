"""Forecasts what runs of a changed service will show, with the range that such runs vary by.

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

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heapreplace
from random import Random
from statistics import fmean, median

from loadtests.experiments.what_if.changes import Change, Demand
from loadtests.experiments.what_if.learning import Known
from loadtests.lab.results import Line
from loadtests.models.estimates import TOLERANCE, without_warm_up
from loadtests.models.replay import ShortestQueue, shortest_queue
from loadtests.models.samples import quantile

SIMULATED_RUNS = 400
CUSTOMERS = 4
FRACTION = 0.5
"""Share of the forecast throughput of CUSTOMERS at which requests of an open run arrive."""
WARM_UP = 50  # arrivals that do not count; at half of L the queue has forgotten after 20

THROUGHPUT, RESPONSE = QUANTITIES = ("throughput", "response")

Times = tuple[float, float]
"""For how long (s) a request keeps a worker busy, and for how long it is on its way."""
Stream = Callable[[float], Sequence[float]]
"""The times (s) of the arrivals of an open run, given their rate per second."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is measured after a change: requests of a closed run, arrivals of an open one."""

    rounds: int
    arrivals: int


@dataclass(frozen=True, slots=True)
class Forecast(Line):
    """What a run will show. quantity: THROUGHPUT per s or RESPONSE in s. middle: the median.

    low, high: the value lies between them with a chance of 95 %, if the model is right within 5 %.
    """

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
    plan: Plan,
    cores: int,
    stream: Stream,
    random: Random,
) -> tuple[Forecast, Forecast]:
    """The throughput of CUSTOMERS, and the mean response time at FRACTION of that forecast.

    pressed, half_idle: what is known of services that are so. cores: of the machine, for all
    workers and the load generator. stream: the arrivals that the open run will have.
    """

    def drawn(known: Known, count: int) -> Iterator[list[Times]]:
        """The requests of each simulated run."""
        requests, is_beside = change.learnt_of(known.requests), not change.leaves_a_core(cores)
        for _ in range(SIMULATED_RUNS):
            slower = known.speed.factor(random)
            yield list(_drawn(change, requests, count, slower, random, is_beside=is_beside))

    workers = change.workers
    throughputs = [_throughput_per_s(one, workers) for one in drawn(pressed, plan.rounds)]
    x = _of(change, THROUGHPUT, throughputs)
    times_s = stream(FRACTION * x.middle)
    responses = [_response_s(one, workers, times_s) for one in drawn(half_idle, plan.arrivals)]
    return x, _of(change, RESPONSE, responses)


def _drawn(
    change: Change,
    requests: Sequence[Demand],
    count: int,
    slower: float,
    random: Random,
    *,
    is_beside: bool,
) -> Iterator[Times]:
    """The requests of a run, drawn from as many as were learnt, drawn with replacement.

    slower: how many times as long the processor takes. is_beside: the load generator takes its time
    from the workers.
    """
    for one in random.choices(random.choices(requests, k=len(requests)), k=count):
        changed = change.applied(one, random)
        worker_s = slower * (changed.processor_s + changed.turn_s) + changed.files_s
        taken_s = changed.generator_s if is_beside else 0.0
        yield worker_s + taken_s, slower * changed.network_s


def _of(change: Change, quantity: str, values: Sequence[float]) -> Forecast:
    low, high = (1 - TOLERANCE) * quantile(values, 0.025), (1 + TOLERANCE) * quantile(values, 0.975)
    return Forecast(change.name, quantity, low, median(values), high)


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
