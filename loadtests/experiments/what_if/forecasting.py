"""Forecasts what runs of a changed service will show, with the range that such runs vary by.

Each learnt request gives its own demands. A forecast simulates the run that will be made, with as
many customers or arrivals, 400 times; each time the learnt requests are drawn anew with replacement
(so what one customer could not tell exactly is in the range, too) and the run's requests from
these, all slowed or sped up as one occasion differs from others. The range has 95 % of the
simulated runs. It holds if the model does: an effect that the model does not know, as workers that
compete for a cache, makes a forecast miss, and shows.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapreplace
from random import Random
from statistics import fmean, median

from loadtests.experiments.open_workload.demands import Demand
from loadtests.experiments.what_if.changes import Change
from loadtests.experiments.what_if.learning import Known, Speed
from loadtests.generation.schedule import poisson_times
from loadtests.lab.results import Line
from loadtests.models.estimates import without_warm_up
from loadtests.models.queue import Queue
from loadtests.models.samples import quantile

SIMULATED_RUNS = 400
CUSTOMERS = 4
FRACTION = 0.5
"""Share of the forecast throughput of CUSTOMERS at which requests of an open run arrive."""
WARM_UP = 50  # arrivals that do not count; at half of L the queue has forgotten after 20

THROUGHPUT, RESPONSE = QUANTITIES = ("throughput", "response")


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is measured after a change: requests of a closed run, arrivals of an open one."""

    rounds: int
    arrivals: int


@dataclass(frozen=True, slots=True)
class Forecast(Line):
    """What a run will show. quantity: THROUGHPUT per s or RESPONSE in s. middle: the median.

    low, high: the value lies between them with a chance of 95 %.
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
    change: Change, busy: Known, half_idle: Known, plan: Plan, random: Random
) -> tuple[Forecast, Forecast]:
    """The throughput of CUSTOMERS, and the mean response time at FRACTION of that forecast.

    busy, half_idle: what is known of the services that are so.
    """
    requests = change.learnt_of(busy.requests)
    throughputs = [
        _throughput_per_s(_drawn(change, requests, busy.speed, plan.rounds, random), change.queue)
        for _ in range(SIMULATED_RUNS)
    ]
    x = _of(change, THROUGHPUT, throughputs)
    requests = change.learnt_of(half_idle.requests)
    responses = [
        _response_s(
            _drawn(change, requests, half_idle.speed, plan.arrivals, random),
            change.queue,
            poisson_times(FRACTION * x.middle, random, count=plan.arrivals),
        )
        for _ in range(SIMULATED_RUNS)
    ]
    return x, _of(change, RESPONSE, responses)


def _drawn(
    change: Change, requests: Sequence[Demand], speed: Speed, count: int, random: Random
) -> list[Demand]:
    """The requests of a run, drawn from as many as were learnt, drawn with replacement."""
    seen, factor = random.choices(requests, k=len(requests)), speed.factor(random)
    return [change.applied(one.slowed(factor), random) for one in random.choices(seen, k=count)]


def _of(change: Change, quantity: str, values: Sequence[float]) -> Forecast:
    low, high = quantile(values, 0.025), quantile(values, 0.975)
    return Forecast(change.name, quantity, low, median(values), high)


def _throughput_per_s(drawn: Sequence[Demand], queue: Queue) -> float:
    """Simulate CUSTOMERS who ask again at once; who comes first is served first."""
    free_s, back_s = [0.0] * queue.servers, [0.0] * CUSTOMERS
    for one in drawn:
        done_s = max(back_s[0], free_s[0]) + one.busy_s
        heapreplace(free_s, done_s)
        heapreplace(back_s, done_s + one.network_s)
    return len(drawn) / max(free_s)


def _response_s(drawn: Sequence[Demand], queue: Queue, times_s: Sequence[float]) -> float:
    """Simulate an open run with arrivals at `times_s`. Returns its mean response time."""
    responses_s = queue.replayed_s(times_s, [one.busy_s for one in drawn])
    return mean_response_s(responses_s) + fmean([one.network_s for one in drawn])


def mean_response_s(responses_s: Sequence[float]) -> float:
    """The mean of an open run, without its first WARM_UP arrivals."""
    return fmean(without_warm_up(responses_s, WARM_UP))
