"""How often each of the lab's 95 % intervals contains the true value, by simulation.

The bounds of these tests leave room for the chance of as many trials as there are here. With more
trials, the shares of intervals that contain it are:

- difference from the forecast of `open-workload` at 0.3, 0.5, 0.8, 0.85 of L, 10 runs, 2 to a
  calibration: 0.97, 0.98, 0.98, 0.96
- paired difference of `request-rate` and `server-threads`: of one run at χ = 0.5, 0.7: 0.94, 0.93;
  of four runs, each with its own calibration, at χ = 0.8, 0.9: 0.98, 0.98
- throughput of a closed run of `queueing-network`, N = 2, 3, 5, exponential: 0.93, 0.93, 0.96
- throughput of a closed run of the service by 20 batches, N = 1 and 4 with one worker, N = 4 with
  two: 0.94, 0.96, 0.95
- mean of 5 or 6 turns, or of their ratios (`service-time`, `itinerary`, `micro`, `bulk-post`, E[S]
  over 5 calibrations of `open-workload`): 0.94 to 0.96
- E[S] by one run of 200 that hardly ever wait (`request-rate`, `server-threads`): 0.95
- mean of 10 replications of an open run at ρ = 0.5, 0.8, 0.85: 0.96, 0.94, 0.91
- mean of one open run by 20 batches, which is not used from 0.8 on: 0.93, 0.88, 0.81
- percentiles at half load, p50 and p99 of 6 open runs: 0.96, 0.92; p50, p95, p99 of one run: 0.96,
  0.90, 0.85
"""

from collections.abc import Iterator, Sequence
from heapq import heappop, heappush, heapreplace
from itertools import islice
from math import sqrt
from random import Random
from statistics import fmean

import pytest

from loadtests.experiments.client_server_measurements import PointLine
from loadtests.experiments.client_server_points import (
    LEAST_NEAR_SATURATION,
    Alone,
    OneRun,
    Point,
)
from loadtests.experiments.open_workload_comparison import steady_points
from loadtests.experiments.open_workload_loads import OpenRun
from loadtests.experiments.pi_closed import throughput_per_s
from loadtests.experiments.queueing_network_models import (
    LEAST_REPEATED,
    simulated_results,
    spread,
)
from loadtests.generation.rows import Row, closed_index
from loadtests.generation.schedule import Arrival
from loadtests.models import replay
from loadtests.models.estimates import (
    Interval,
    batch_means,
    confidence_interval,
    warm_up_of,
)
from loadtests.models.open_queue import ONE, mgm
from loadtests.models.random_times import Gamma, poisson_times
from tests.effort import tries
from tests.loadtests.experiments.planted_servers import open_run

pytestmark = pytest.mark.slow

SERVICE_S = 0.05


def share(covered: Sequence[bool]) -> float:
    return sum(covered) / len(covered)


class TestClosedRuns:
    """Mean throughput of closed runs of the queueing network: `predicting.Spread.interval`."""

    def test_one_run_or_several(self) -> None:
        expected, simulated = (
            simulated_results((2, 5), 1200, 19, seed, runs=320) for seed in ("of", "found")
        )
        for cell in expected:
            known_xs, xs = (
                [result.throughput_per_s for result in results[cell]]
                for results in (expected, simulated)
            )
            known, truth = spread(known_xs[:200]), fmean([*known_xs, *xs])
            for runs in (1, 2, LEAST_REPEATED):
                groups = list(zip(*[iter(xs)] * runs, strict=False))
                assert share([known.interval(group).covers(truth) for group in groups]) > 0.85


def queued(rho: float, law: Gamma, arrivals: int, random: Random) -> list[float]:
    times_s = poisson_times(rho / SERVICE_S, random, count=arrivals)
    return replay.fcfs(times_s, [law.draw(random) for _ in times_s])


def asked_again_and_again(customers: int, workers: int, random: Random) -> list[Row]:
    """A closed run of 20 s of a perfect service, where each request is 2 ms on its way."""
    law, way_s, until_s = Gamma(SERVICE_S, 0.2), 0.001, 20.0
    free_s, number = [0.0] * workers, [0] * customers
    coming, rows = [(way_s, customer) for customer in range(customers)], list[Row]()
    while coming:
        at_s, customer = heappop(coming)
        end_s = max(at_s, free_s[0]) + law.draw(random)
        heapreplace(free_s, end_s)
        index, sent_s = closed_index(customer, number[customer]), at_s - way_s
        rows.append(Row("r", index, "k", sent_s, sent_s, None, end_s + way_s, None, 200, ""))
        number[customer] += 1
        if end_s + way_s < until_s:
            heappush(coming, (end_s + 2 * way_s, customer))
    return sorted(rows, key=lambda row: row.done_s)


class TestClosedRunsOfTheService:
    @pytest.mark.parametrize(("customers", "workers"), [(1, 1), (4, 1), (4, 2)])
    def test_throughput_by_batches(self, customers: int, workers: int) -> None:
        random = Random(8)
        runs = (asked_again_and_again(customers, workers, random) for _ in range(60))
        intervals = [x for run in runs if (x := throughput_per_s(run)) is not None]
        truth = fmean(x.estimate for x in intervals)
        assert len(intervals) == 60
        assert share([x.covers(truth) for x in intervals]) >= 0.85


class TestOpenRuns:
    """Mean response time of M/G/1, cv 0.25, at a utilisation."""

    TRIALS = tries(20, exploring=40)
    SERVICE = Gamma(SERVICE_S, 0.25)

    def truth_s(self, rho: float) -> float:
        return mgm(rho / SERVICE_S, SERVICE_S, 0.25).response_time_s

    def test_batches_of_one_run_at_half_load(self) -> None:
        random = Random(1)
        runs = (queued(0.5, self.SERVICE, 2000, random) for _ in range(self.TRIALS))
        truth_s = self.truth_s(0.5)
        assert share([batch_means(run).covers(truth_s) for run in runs]) >= 0.8

    def test_ten_replications_near_saturation(self) -> None:
        random = Random(2)
        truth_s = self.truth_s(0.8)
        covered = []
        for _ in range(self.TRIALS):
            runs = [queued(0.8, self.SERVICE, 2000, random) for _ in range(10)]
            means = [fmean(run[warm_up_of(len(run)) :]) for run in runs]
            covered.append(confidence_interval(means).covers(truth_s))
        assert share(covered) >= 0.8


class Calibrated:
    """Runs of a perfect server at a share of L, of which several share a calibration.

    The server changes its speed a little from one calibration to the next, and a run between two
    has that of their mean.
    """

    REQUESTS, RUNS = 200, 10

    def __init__(self, fraction: float, arrivals: int) -> None:
        self.fraction, self.arrivals = fraction, arrivals
        self.law, self.random = Gamma(SERVICE_S, 0.03), Random(f"{fraction}")

    def differences(self, runs_each: int) -> Iterator[Interval]:
        """What is judged of one load after the other, `runs_each` runs to a calibration."""
        while True:
            (point,) = steady_points(self.load(runs_each))
            yield point.difference

    def load(self, runs_each: int) -> list[OpenRun]:
        speed, runs = self.speed(), list[OpenRun]()
        while len(runs) < self.RUNS:
            alone_s = [speed * self.law.draw(self.random) for _ in range(self.REQUESTS)]
            after = self.speed()
            runs += [
                self.run(f"{len(runs)}", alone_s, (speed + after) / 2) for _ in range(runs_each)
            ]
            speed = after
        return runs

    def speed(self) -> float:
        return self.random.gauss(1, 0.003)

    def run(self, calibration: str, alone_s: Sequence[float], speed: float) -> OpenRun:
        rate_per_s, name = self.fraction / fmean(alone_s), str(self.random.random())
        at_s = poisson_times(rate_per_s, self.random, count=self.arrivals)
        took_s = [speed * self.law.draw(self.random) for _ in at_s]
        measured = name, calibration, self.fraction, alone_s
        return open_run(*measured, at_s, took_s, ONE.replayed_s(at_s, took_s))


class TestSharedCalibrations:
    """Differences from the forecast of `open_workload`: over calibrations, which runs share."""

    @pytest.mark.parametrize(
        ("measured", "runs_each", "loads"),
        [
            (Calibrated(0.5, 170), 5, tries(20, exploring=40)),
            (Calibrated(0.85, 600), 2, tries(10, exploring=20)),
        ],
        ids=["half, two calibrations", "near saturation"],
    )
    def test_difference_from_the_forecast(
        self, measured: Calibrated, runs_each: int, loads: int
    ) -> None:
        differences = islice(measured.differences(runs_each), loads)
        assert share([difference.covers(0) for difference in differences]) >= 0.86


class PerfectServers:
    """Three servers and one queue: each run is calibrated by a run alone, as in `client_server`.

    Service times are exponential, and nobody tells them.
    """

    SERVERS, ALONE, ARRIVALS = 3, 200, 1000

    def __init__(self, chi: float, seed: int) -> None:
        self.chi, self.random = chi, Random(seed)

    def runs(self) -> Iterator[OneRun]:
        while True:
            yield self.run()

    def run(self) -> OneRun:
        random, rate_per_s, alone = self.random, self.chi * self.SERVERS / SERVICE_S, self.alone()
        arrivals_s = poisson_times(rate_per_s, random, count=self.ARRIVALS)
        services_s = [random.expovariate(1 / SERVICE_S) for _ in arrivals_s]
        responses_s = replay.multi_server(arrivals_s, services_s, self.SERVERS)
        schedule = [Arrival(i, at_s, "k", "/") for i, at_s in enumerate(arrivals_s)]
        load = "service", "k", "load", self.SERVERS, "load", 1
        line = PointLine(str(random.random()), *load, rate_per_s, SERVICE_S, self.ARRIVALS)
        return OneRun(line, schedule, responses_s, alone)

    def alone(self) -> Alone:
        times_s = tuple(self.random.expovariate(1 / SERVICE_S) for _ in range(self.ALONE))
        mean_s = fmean(times_s)
        return Alone(times_s, left_s=[each_s - mean_s for each_s in times_s])

    def covered(self, trials: int, runs: int) -> float:
        """How often the paired difference has 0 in its interval."""
        every = self.runs()
        points = (Point(list(islice(every, runs))) for _ in range(trials))
        return share([point.queued.difference.covers(0) for point in points])


class TestPairedDifference:
    @pytest.mark.parametrize("chi", [0.5, 0.7])
    def test_one_run(self, chi: float) -> None:
        assert PerfectServers(chi, 3).covered(tries(20, exploring=40), runs=1) >= 0.82

    def test_several_runs_near_saturation(self) -> None:
        trials = tries(12, exploring=20)
        assert PerfectServers(0.9, 4).covered(trials, LEAST_NEAR_SATURATION) >= 0.75


class TestAlone:
    """E[S] of `request-rate` and `server-threads`, by a run in which customers hardly ever wait."""

    def test_mean_of_one_run(self) -> None:
        servers, covered = PerfectServers(0.5, 9), []
        for _ in range(300):
            alone = servers.alone()
            assert alone.interval.estimate == alone.mean_s
            covered.append(alone.interval.covers(SERVICE_S))
        assert share(covered) >= 0.9


class TestTurns:
    """What is measured in turns, each a little slower or quicker than the others as a whole."""

    TRIALS = 400

    def means_s(self, random: Random, turns: int, requests: int, cv: float) -> list[float]:
        """Means of turns: that of so many gamma distributed times is one, too, with cv/√n."""
        law = Gamma(SERVICE_S, cv / sqrt(requests))
        return [random.gauss(1, 0.02) * law.draw(random) for _ in range(turns)]

    @pytest.mark.parametrize(
        ("turns", "requests", "cv"),
        [(6, 4, 0.1), (6, 30, 0.5), (5, 80, 0.5), (5, 1, 0.1), (5, 200, 0.1)],
        ids=["scans", "lookups", "itineraries", "processes", "calibrations"],
    )
    def test_a_mean_and_a_ratio(self, turns: int, requests: int, cv: float) -> None:
        random, means, ratios = Random(f"{turns}-{requests}"), [], []
        for _ in range(self.TRIALS):
            first, second = (self.means_s(random, turns, requests, cv) for _ in range(2))
            means.append(confidence_interval(first).covers(SERVICE_S))
            ratio = confidence_interval([a / b for a, b in zip(first, second, strict=True)])
            ratios.append(ratio.low <= 1 <= ratio.high)
        assert share(means) >= 0.92
        assert share(ratios) >= 0.92
