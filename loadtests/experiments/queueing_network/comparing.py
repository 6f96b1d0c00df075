"""Compares measured closed systems with the models for each number of customers N.

Times are in report seconds. X = N/mean cycle, where a cycle is from the end of a customer's
interaction to the end of the next one. R is the mean response time. Both are means over the runs of
a server and N, with the 95 % interval of `simulating.Spread`. A model agrees with a server if at
every measured N the whole interval of X lies within the tolerance of its prediction; it disagrees
if at some N the whole interval lies outside.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from loadtests.experiments.queueing_network.plan import SERVERS
from loadtests.experiments.queueing_network.predicting import STATIONS
from loadtests.experiments.queueing_network.reading import ClosedRun, Told
from loadtests.experiments.queueing_network.simulating import (
    MODELS,
    Cell,
    Expectations,
    Expected,
    predicted,
)
from loadtests.grouping import grouped
from loadtests.lab.published import NETWORK, NETWORK_THINK_S
from loadtests.lab.repeated import that_count
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


@dataclass(frozen=True, slots=True)
class Point:
    """A server with N customers: its accepted runs, or the rejected ones if none was accepted.

    expected: of simulated runs like these. stations: empty if the server did not report its times.
    """

    server: str
    customers: int
    is_accepted: bool
    runs: int
    interactions: int
    throughput_per_s: Interval
    response_s: Interval
    expected: Expected
    stations: Mapping[str, AtStation]

    @property
    def cell(self) -> Cell:
        """The server and N."""
        return self.server, self.customers

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


def cells(runs: Sequence[ClosedRun]) -> Mapping[Cell, list[ClosedRun]]:
    """The runs that are long enough of each server and N: those that count, or else all."""
    long_enough = [run for run in runs if len(run.responses_s) >= LEAST_INTERACTIONS]
    found = grouped(long_enough, lambda run: (run.server, run.customers))
    return {cell: that_count(of) for cell, of in found.items()}


def points(runs: Sequence[ClosedRun], expected: Expectations) -> list[Point]:
    """A point for each server and N with a run that is long enough, accepted or rejected."""
    return [_point(of, expected[cell]) for cell, of in cells(runs).items()]


def _point(runs: Sequence[ClosedRun], expected: Expected) -> Point:
    first = runs[0]
    xs = [laws.throughput_per_s(one.customers, summary(one.cycles_s).mean) for one in runs]
    throughput = expected.throughput_per_s.interval(xs)
    told = [one for run in runs for one in run.told] if all(run.told for run in runs) else []
    return Point(
        first.server,
        first.customers,
        first.is_accepted,
        len(runs),
        sum(len(run.responses_s) for run in runs),
        throughput,
        expected.response_s.interval([summary(run.responses_s).mean for run in runs]),
        expected,
        _at_stations(told, throughput.estimate) if told else {},
    )


def _at_stations(told: Sequence[Told], x: float) -> dict[str, AtStation]:
    visits = {station.name.lower(): station.visits for station in NETWORK}
    found = {}
    for name in STATIONS:
        demand_s = summary([one[name] for one in told]).mean
        waiting_s = summary([one[f"{name}_queue"] for one in told]).mean
        found[name] = AtStation(
            laws.utilisation(x, demand_s),
            laws.customers(x, demand_s + waiting_s),
            laws.station_throughput_per_s(x, visits[name]),
        )
    return found


@dataclass(frozen=True, slots=True)
class Pair:
    """A model compared with a server. farthest: the N with the largest difference of throughput.

    difference, uncertainty: measured − predicted there and its half-width, as shares of the
    prediction. populations: the number of measured N.
    """

    server: str
    model: str
    populations: int
    farthest: int
    difference: float
    uncertainty: float
    verdict: Verdict


def pairs(found: Sequence[Point], expected: Expectations) -> list[Pair]:
    """The comparisons of all models with all servers that have an accepted point."""
    by_server = {
        server.name: [one for one in found if one.server == server.name and one.is_accepted]
        for server in SERVERS
    }
    return [
        _pair(server, model, of_server, expected)
        for server, of_server in by_server.items()
        for model in MODELS
        if of_server
    ]


def _pair(server: str, model: str, found: Sequence[Point], expected: Expectations) -> Pair:
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
        _together(verdicts),
    )


def _together(verdicts: Sequence[Verdict]) -> Verdict:
    if Verdict.DISAGREES in verdicts:
        return Verdict.DISAGREES
    if Verdict.NOT_DECIDED in verdicts:
        return Verdict.NOT_DECIDED
    return Verdict.AGREES
