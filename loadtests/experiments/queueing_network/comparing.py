"""Compares measured closed systems with the models for each number of customers N.

Times are in report seconds. X = N/mean cycle, where a cycle is from the end of a customer's
interaction to the end of the next one. R is the mean response time. Both are means over the runs of
a server and N, with the 95 % interval of `simulating.Spread`. A model agrees with a server if at
every measured N the whole interval of X lies within the tolerance of its prediction; it disagrees
if at some N the whole interval lies outside.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean

from loadtests.experiments.queueing_network.plan import SERVERS, Server
from loadtests.experiments.queueing_network.predicting import STATIONS
from loadtests.experiments.queueing_network.reading import ClosedRun
from loadtests.experiments.queueing_network.simulating import (
    MODELS,
    Expectations,
    Expected,
    predicted,
)
from loadtests.grouping import grouped
from loadtests.lab.published import NETWORK_THINK_S
from loadtests.lab.repeated import Repeated, accepted, that_count
from loadtests.models import laws
from loadtests.models.estimates import TOLERANCE, Interval, Verdict, verdict
from loadtests.models.samples import summary

LEAST_INTERACTIONS = 8


@dataclass(frozen=True, slots=True)
class AtStation:
    """A station, from the times that the server reported.

    utilisation: U = X·D. customers: Q = X·(D + waiting). visits_per_s: X·V with the study's V.
    """

    utilisation: float
    customers: float
    visits_per_s: float


@dataclass(frozen=True)
class Point(Repeated[ClosedRun]):
    """A server with N customers. expected: of simulated runs like its own."""

    server: Server
    customers: int
    expected: Expected

    @property
    def interactions(self) -> int:
        """The number of interactions that count."""
        return sum(len(run.responses_s) for run in self.runs)

    @cached_property
    def throughput_per_s(self) -> Interval:
        """X."""
        cycles_s = [summary(run.cycles_s).mean for run in self.runs]
        xs = [laws.throughput_per_s(self.customers, cycle_s) for cycle_s in cycles_s]
        return self.expected.throughput_per_s.interval(xs)

    @cached_property
    def response_s(self) -> Interval:
        """R."""
        means_s = [summary(run.responses_s).mean for run in self.runs]
        return self.expected.response_s.interval(means_s)

    @cached_property
    def told(self) -> Mapping[str, float]:
        """The means of the times that the server reported; empty unless it did so in each run."""
        if not all(run.told for run in self.runs):
            return {}
        told = [one for run in self.runs for one in run.told]
        return {name: fmean([one[name] for one in told]) for name in told[0]}

    @cached_property
    def stations(self) -> Mapping[str, AtStation]:
        """The stations by their names; empty if the server did not report its times."""
        x, told = self.throughput_per_s.estimate, self.told
        return {
            name: AtStation(
                laws.utilisation(x, told[name]),
                laws.customers(x, told[name] + told[f"{name}_queue"]),
                laws.station_throughput_per_s(x, station.visits),
            )
            for name, station in STATIONS.items()
            if name in told
        }

    @property
    def little(self) -> float:
        """X·(R + Z)/N, which is 1 if customers do nothing but ask and think for Z."""
        cycle_s = self.response_s.estimate + NETWORK_THINK_S
        return laws.customers(self.throughput_per_s.estimate, cycle_s) / self.customers

    @property
    def outside(self) -> float | None:
        """The mean number of customers who are at no station and do not think.

        They wait at the door, or their requests are on the way. None without stations.
        """
        if not self.stations:
            return None
        thinking = self.throughput_per_s.estimate * NETWORK_THINK_S
        inside = sum(station.customers for station in self.stations.values())
        return max(0.0, self.customers - thinking - inside)


def points(runs: Sequence[ClosedRun], expected: Expectations) -> list[Point]:
    """A point for each server and N with a run that is long enough, accepted or rejected."""
    long_enough = [run for run in runs if len(run.responses_s) >= LEAST_INTERACTIONS]
    cells = grouped(long_enough, lambda run: (run.server, run.customers))
    return [Point(that_count(of), len(of), *cell, expected[cell]) for cell, of in cells.items()]


@dataclass(frozen=True, slots=True)
class Pair:
    """A model compared with a server. farthest: the N with the largest difference of throughput.

    difference, uncertainty: measured − predicted there and its half-width, as shares of the
    prediction. populations: the number of measured N.
    """

    server: Server
    model: str
    populations: int
    farthest: int
    difference: float
    uncertainty: float
    verdict: Verdict


def pairs(found: Sequence[Point], expected: Expectations) -> list[Pair]:
    """The comparisons of all models with all servers that have an accepted point."""
    by_server = grouped(accepted(found), lambda one: one.server)
    return [
        _pair(server, model, by_server[server], expected)
        for server in SERVERS
        for model in MODELS
        if server in by_server
    ]


def _pair(server: Server, model: str, found: Sequence[Point], expected: Expectations) -> Pair:
    predictions = [predicted(model, one.customers, expected) for one in found]
    xs = [one.throughput_per_s for one in predictions if one]
    off = [one.throughput_per_s.estimate / x - 1 for one, x in zip(found, xs, strict=True)]
    verdicts = [
        verdict(one.throughput_per_s.plus(-x), x, TOLERANCE)
        for one, x in zip(found, xs, strict=True)
    ]
    at = max(range(len(found)), key=lambda number: abs(off[number]))
    return Pair(
        server,
        model,
        len(found),
        found[at].customers,
        off[at],
        found[at].throughput_per_s.half_width / xs[at],
        next(each for each in _WORST_FIRST if each in verdicts),
    )


_WORST_FIRST = (Verdict.DISAGREES, Verdict.NOT_DECIDED, Verdict.AGREES)
