"""Ten simulated servers of which the truth is known, measured as `open-workload` measures.

Each is calibrated with one customer before each of ten runs; then requests arrive as a Poisson
process. Service times are those that the server tells.

`python -m tests.loadtests.experiments.planted_servers` tells how often both verdicts are right, in
20 repetitions of each: a minute.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from random import Random
from statistics import fmean

from loadtests.experiments.open_workload_comparison import steady_points
from loadtests.experiments.open_workload_loads import STEADY, STUDY, OpenRun
from loadtests.generation.rows import Row
from loadtests.models import replay
from loadtests.models.estimates import Verdict
from loadtests.models.random_times import Gamma, poisson_times
from loadtests.models.sample_statistics import variance_of

SERVICE_S = 0.02
CALIBRATED, RUNS = 400, 10

Served = Callable[[Sequence[float], Sequence[float], Random], list[float]]
"""Takes arrivals and service times, and returns response times."""


def in_order(at_s: Sequence[float], took_s: Sequence[float], _: Random) -> list[float]:
    """One server, as in the model."""
    return replay.fcfs(at_s, took_s)


def two_in_order(at_s: Sequence[float], took_s: Sequence[float], _: Random) -> list[float]:
    """Two servers, as in the model."""
    return replay.multi_server(at_s, took_s, 2)


def last_come_first_served(
    at_s: Sequence[float], took_s: Sequence[float], _: Random
) -> list[float]:
    """One server, which takes the newest of those who wait."""
    responses_s, waiting = [0.0] * len(at_s), list[tuple[float, int]]()
    free_s, coming = 0.0, 0
    while coming < len(at_s) or waiting:
        if not waiting:
            free_s = max(free_s, at_s[coming])
        while coming < len(at_s) and at_s[coming] <= free_s:
            heappush(waiting, (-at_s[coming], coming))
            coming += 1
        chosen = heappop(waiting)[1]
        free_s += took_s[chosen]
        responses_s[chosen] = free_s - at_s[chosen]
    return responses_s


def shared(at_s: Sequence[float], took_s: Sequence[float], _: Random) -> list[float]:
    """One processor, which all share."""
    return replay.processor_sharing(at_s, took_s)


def open_run(
    name: str,
    calibration: str,
    fraction: float,
    alone_s: Sequence[float],
    at_s: Sequence[float],
    took_s: Sequence[float],
    stays_s: Sequence[float],
    *,
    servers: int = 1,
) -> OpenRun:
    """A run at a share of L. alone_s: service times of the customer who calibrated it.

    at_s, took_s, stays_s: when requests arrived, how long they were served, and how long they
    stayed.
    """
    rows = [
        Row(name, n, "k", at, at, None, at + stay, took, 200, "")
        for n, (at, stay, took) in enumerate(zip(at_s, stays_s, took_s, strict=True))
    ]
    return OpenRun(
        run=name,
        server=STUDY,
        part=STEADY,
        fraction=fraction,
        rate_per_s=fraction * servers / fmean(alone_s),
        duration_s=at_s[-1],
        calibration=calibration,
        service_time_s=fmean(alone_s),
        service_variance_s2=variance_of(alone_s),
        overhead_s=0.0,
        delay_s=0.0,
        servers=servers,
        is_accepted=True,
        rows=rows,
        before=[Row("c", n, "k", 0, 0, None, s, None, 200, "") for n, s in enumerate(alone_s)],
    )


@dataclass(frozen=True)
class Planted:
    """A server, and the verdicts that are right.

    cv: of its service times. slower: how many times as long they are under load. correlated: the
    share of requests that take as long as the one before.
    """

    forecast: Verdict
    order: Verdict
    fraction: float
    arrivals: int
    cv: float = 0.1
    served: Served = in_order
    servers: int = 1
    slower: float = 1.0
    correlated: float = 0.0

    def services_s(self, number: int, random: Random, slower: float = 1.0) -> list[float]:
        """Service times; each is like the one before with the probability `correlated`."""
        law, times_s = Gamma(SERVICE_S, self.cv), list[float]()
        for _ in range(number):
            again = times_s and random.random() < self.correlated
            times_s.append(times_s[-1] if again else slower * law.draw(random))
        return times_s

    def runs(self, random: Random) -> list[OpenRun]:
        """The runs of a load, all of which count."""
        return [self._run(f"{n}", self.services_s(CALIBRATED, random), random) for n in range(RUNS)]

    def _run(self, name: str, alone_s: Sequence[float], random: Random) -> OpenRun:
        rate_per_s = self.fraction * self.servers / fmean(alone_s)
        at_s = poisson_times(rate_per_s, random, count=self.arrivals)
        took_s = self.services_s(len(at_s), random, self.slower)
        stays_s = self.served(at_s, took_s, random)
        measured = name, name, self.fraction, alone_s
        return open_run(*measured, at_s, took_s, stays_s, servers=self.servers)


HOLDS, FAILS = Verdict.AGREES, Verdict.DISAGREES
PLANTED: Mapping[str, Planted] = {
    "regular, half of L": Planted(HOLDS, HOLDS, 0.5, 600, cv=0.03),
    "regular, 0.8 of L": Planted(HOLDS, HOLDS, 0.8, 1200, cv=0.03),
    "irregular": Planted(HOLDS, HOLDS, 0.5, 1500, cv=0.25),
    "two workers": Planted(HOLDS, HOLDS, 0.5, 1200, cv=0.2, served=two_in_order, servers=2),
    "the last first": Planted(HOLDS, FAILS, 0.5, 1200, served=last_come_first_served),
    "30 % slower under load": Planted(FAILS, HOLDS, 0.5, 600, slower=1.3),
    "10 % slower under load": Planted(FAILS, HOLDS, 0.8, 1200, slower=1.1),
    "slow in spells": Planted(FAILS, HOLDS, 0.5, 3000, cv=0.8, correlated=0.8),
    "shares its processor": Planted(FAILS, FAILS, 0.5, 1200, served=shared),
    "one worker less": Planted(FAILS, FAILS, 0.4, 1200, servers=2, cv=0.3),
}


def right(name: str, repetitions: int) -> tuple[int, int]:
    """How often each of the two verdicts on a server is right."""
    planted, forecasts, orders = PLANTED[name], 0, 0
    for repetition in range(repetitions):
        (point,) = steady_points(planted.runs(Random(f"{name} {repetition}")))
        forecasts += point.forecast is planted.forecast
        orders += point.order is planted.order
    return forecasts, orders


if __name__ == "__main__":
    for name in PLANTED:
        print(f"{name}: the forecast {{}}, the order {{}} of 20".format(*right(name, 20)))
