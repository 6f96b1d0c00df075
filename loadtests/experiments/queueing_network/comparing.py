"""Compares measured closed systems with the models for each number of customers N.

Times are in report seconds. X = N/mean cycle, where a cycle is from the end of a customer's
interaction to the end of the next one. R is the mean response time. Both have the 95 % interval of
batch means. A model agrees with a server if at every measured N the whole interval of X lies within
the tolerance of its prediction; it disagrees if at some N the whole interval lies outside.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from loadtests.experiments.queueing_network.plan import SERVERS
from loadtests.experiments.queueing_network.predicting import MODELS, STATIONS, predicted
from loadtests.experiments.queueing_network.reading import ClosedRun
from loadtests.lab.published import NETWORK, NETWORK_THINK_S
from loadtests.models import laws
from loadtests.models.estimates import (
    BATCHES,
    TOLERANCE,
    Interval,
    Verdict,
    batch_means,
    verdict,
)
from loadtests.models.samples import summary

LEAST_INTERACTIONS = 8
BATCH_LEAST = 4  # least number of interactions in a batch


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
    """A server with N customers. stations: empty if the server did not report its times."""

    server: str
    customers: int
    group: int
    interactions: int
    throughput_per_s: Interval
    response_s: Interval
    stations: Mapping[str, AtStation]

    @property
    def little(self) -> float:
        """X·(R + Z)/N, which is 1 by Little's law."""
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


def points(runs: Sequence[ClosedRun]) -> list[Point]:
    """A point for each accepted run that is long enough."""
    return [
        _point(run)
        for run in runs
        if run.is_accepted and len(run.responses_s) >= LEAST_INTERACTIONS
    ]


def _point(run: ClosedRun) -> Point:
    cycle_s = _interval(run.cycles_s)
    x = laws.throughput_per_s(run.customers, cycle_s.estimate)
    throughput = Interval(x, x * cycle_s.relative_half_width, cycle_s.confidence, cycle_s.values)
    return Point(
        run.server,
        run.customers,
        run.group,
        len(run.responses_s),
        throughput,
        _interval(run.responses_s),
        _at_stations(run, x) if run.told else {},
    )


def _interval(values: Sequence[float]) -> Interval:
    return batch_means(values, max(2, min(BATCHES, len(values) // BATCH_LEAST)))


def _at_stations(run: ClosedRun, x: float) -> dict[str, AtStation]:
    visits = {station.name.lower(): station.visits for station in NETWORK}
    found = {}
    for name in STATIONS:
        demand_s = summary([one[name] for one in run.told]).mean
        waiting_s = summary([one[f"{name}_queue"] for one in run.told]).mean
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


def pairs(found: Sequence[Point]) -> list[Pair]:
    """The comparisons of all models with all servers that have a point."""
    by_server = {
        server.name: [point for point in found if point.server == server.name] for server in SERVERS
    }
    return [
        _pair(server, model, of_server)
        for server, of_server in by_server.items()
        for model in MODELS
        if of_server
    ]


def _pair(server: str, model: str, found: Sequence[Point]) -> Pair:
    expected = [predicted(model, one.customers, one.group).throughput_per_s for one in found]
    off = [one.throughput_per_s.estimate / x - 1 for one, x in zip(found, expected, strict=True)]
    verdicts = [
        verdict(one.throughput_per_s.plus(-x), x, TOLERANCE)
        for one, x in zip(found, expected, strict=True)
    ]
    at = max(range(len(found)), key=lambda number: abs(off[number]))
    return Pair(
        server,
        model,
        len(found),
        found[at].customers,
        off[at],
        found[at].throughput_per_s.half_width / expected[at],
        _together(verdicts),
    )


def _together(verdicts: Sequence[Verdict]) -> Verdict:
    if Verdict.DISAGREES in verdicts:
        return Verdict.DISAGREES
    if Verdict.NOT_DECIDED in verdicts:
        return Verdict.NOT_DECIDED
    return Verdict.AGREES
