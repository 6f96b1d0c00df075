"""The operational laws, visits and demands by a routing, and the stations of closed networks.

The laws hold for any measurement, whatever the distributions, if as many customers leave as arrive
meanwhile; every argument must be 0 or more, every divisor positive. A routing gives the
probabilities with which customers go from each station to others. The traffic equations
V_k = Σ_j V_j·p_jk, with V = 1 for the reference station, give the visits to each station per visit
to the reference; probabilities and visit ratios are exact. Sources: P. J. Denning and J. P. Buzen,
The operational analysis of queueing network models, ACM Computing Surveys 10 (1978); E. D. Lazowska
and others, Quantitative System Performance (1984), chapter 3; the study's report, "Bottleneck".
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from loadtests.models.domain import count, not_negative, positive


def utilisation(throughput_per_s: float, service_time_s: float) -> float:
    """Utilisation law: U = X·S."""
    return _product(throughput_per_s=throughput_per_s, service_time_s=service_time_s)


def customers(throughput_per_s: float, response_time_s: float) -> float:
    """Little's law: N = X·R."""
    return _product(throughput_per_s=throughput_per_s, response_time_s=response_time_s)


def throughput_per_s(customers: float, response_time_s: float) -> float:
    """Little's law, turned: X = N/R, in 1/s."""
    return not_negative("customers", customers) / positive("response_time_s", response_time_s)


def station_throughput_per_s(throughput_per_s: float, visit_ratio: float) -> float:
    """Forced flow law: a station that each customer visits V times has X·V visits per second."""
    return _product(throughput_per_s=throughput_per_s, visit_ratio=visit_ratio)


def service_demand_s(visit_ratio: float, service_time_s: float) -> float:
    """D = V·S, the service in seconds that a customer needs at a station in all its visits."""
    return _product(visit_ratio=visit_ratio, service_time_s=service_time_s)


def _product(**factors: float) -> float:
    return math.prod(not_negative(name, value) for name, value in factors.items())


Probability = Fraction | int
Routing = Mapping[str, Mapping[str, Probability]]


def visit_ratios(routing: Routing, reference: str) -> dict[str, Fraction]:
    """Visits to each station per visit to `reference`, in the order of `routing`.

    From each station a path must lead back to the reference: customers would collect there.
    """
    if reference not in routing:
        raise ValueError(f"the reference station {reference!r} is not in the routing")
    for station, row in routing.items():
        for target, p in row.items():
            if target not in routing:
                raise ValueError(f"station {station!r} leads to {target!r}, which is not a station")
            if not 0 <= p <= 1:
                raise ValueError(f"the probability from {station!r} to {target!r} is {p}")
        if (total := sum(row.values())) != 1:
            raise ValueError(f"probabilities from station {station!r} add up to {total}, not to 1")
    homing = {reference}  # the stations from which a path leads to it; the longest visits all
    for _ in routing:
        homing |= {a for a, row in routing.items() if any(row.get(b, 0) > 0 for b in homing)}
    if lost := [name for name in routing if name not in homing]:
        raise ValueError(f"no path leads from station {lost[0]!r} back to {reference!r}")
    others = [name for name in routing if name != reference]
    matrix = [[Fraction(a == b) - routing[b].get(a, 0) for b in others] for a in others]
    found = _solved(matrix, [Fraction(routing[reference].get(a, 0)) for a in others])
    ratios = dict(zip(others, found, strict=True)) | {reference: Fraction(1)}
    return {name: ratios[name] for name in routing}


def _solved(matrix: list[list[Fraction]], right: list[Fraction]) -> list[Fraction]:
    """The single x of `matrix`·x = `right`, by Gauss-Jordan elimination.

    There is one, because a path leads from each station back to the reference.
    """
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    for column in range(len(rows)):
        pivot = next(at for at in range(column, len(rows)) if rows[at][column])
        rows[column], rows[pivot] = rows[pivot], rows[column]
        own = [value / rows[column][column] for value in rows[column]]
        for at, row in enumerate(rows):
            rows[at] = [a - row[column] * b for a, b in zip(row, own, strict=True)]
        rows[column] = own
    return [row[-1] for row in rows]


def demands_s(
    visit_ratios: Mapping[str, Probability], service_times_s: Mapping[str, float]
) -> dict[str, float]:
    """D = V·S of each station that has a service time, in seconds.

    Stations without one (such as the reference station of users who think) are left out.
    """
    if unknown := [name for name in service_times_s if name not in visit_ratios]:
        raise ValueError(f"station {unknown[0]!r} has a service time and no visit ratio")
    return {
        name: service_demand_s(float(visits), service_times_s[name])
        for name, visits in visit_ratios.items()
        if name in service_times_s
    }


DELAY = None  # the number of servers of a station where customers never wait


@dataclass(frozen=True, slots=True)
class Station:
    """A station, described by the service that a customer needs there in one round.

    demand_s: D = V·S in seconds, 0 or more. servers: m equal servers of one queue (each visit is
    served by one of them, so S is the time of one), or DELAY for a station without a queue.
    """

    name: str
    demand_s: float
    servers: int | None = 1

    def __post_init__(self) -> None:
        not_negative(f"demand_s of station {self.name!r}", self.demand_s)
        if self.servers is not DELAY:
            count(f"servers of station {self.name!r}", self.servers)

    @property
    def is_delay(self) -> bool:
        """Whether customers never wait here."""
        return self.servers is DELAY

    @property
    def is_multi(self) -> bool:
        """Whether there are several servers."""
        return self.servers is not None and self.servers > 1

    @property
    def least_gap_s(self) -> float:
        """D/m, the time in seconds between customers when all servers are busy; 0 for a delay."""
        return 0.0 if self.servers is None else self.demand_s / self.servers


def total_demand_s(stations: Sequence[Station]) -> float:
    """The service in seconds that a customer needs at all stations in one round."""
    return sum(station.demand_s for station in stations)


def bottleneck(stations: Sequence[Station]) -> Station:
    """The station that limits the throughput: the first one with the largest D/m > 0."""
    limiting = max(stations, key=lambda station: station.least_gap_s, default=None)
    if limiting is None or limiting.least_gap_s == 0:
        raise ValueError("no station has a queue and a demand, so nothing limits the throughput")
    return limiting
