"""Analyses the mean values of a closed network with one class of customers, exactly.

It is the solver of `networks` for one class, and says for which service that is exact. With less
variable service in order of arrival, networks do better.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from loadtests.models import bounds, networks
from loadtests.models.domain import count, not_negative
from loadtests.models.laws import Station, bottleneck, total_demand_s
from loadtests.models.networks import AtStation, ServiceStation

BALANCED = (
    *("throughput_low_per_s", "throughput_high_per_s"),
    *("response_low_s", "response_high_s"),
)


@dataclass(frozen=True, slots=True)
class Solution:
    """Holds the means of a closed network with `customers` customers.

    throughput_per_s: X, rounds per second. response_time_s: R, the time at all stations in one
    round, without think time.
    """

    customers: int
    throughput_per_s: float
    response_time_s: float
    stations: tuple[AtStation, ...]

    def at(self, name: str) -> AtStation:
        """Return the station called `name`. Raises KeyError if there is none."""
        return {station.name: station for station in self.stations}[name]


def solve(
    stations: Sequence[Station], most_customers: int, think_time_s: float = 0.0
) -> tuple[Solution, ...]:
    """Return the solutions for 1 to `most_customers` customers who think for Z = `think_time_s`."""
    count("most_customers", most_customers)
    not_negative("think_time_s", think_time_s)
    names = [station.name for station in stations]
    if twice := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"two stations are called {twice[0]!r}")
    served = [
        ServiceStation(
            station.name,
            (station.demand_s,),
            None if station.servers is None else networks.of_servers(station.servers),
        )
        for station in stations
    ]
    _, *states = networks.closed_states(served, [think_time_s], [most_customers])
    return tuple(_solution(stations, state) for state in states)


def _solution(stations: Sequence[Station], state: networks.State) -> Solution:
    (n,), (x,) = state.customers, state.throughputs_per_s
    stays_s = [stay_s for (stay_s,) in state.residences_s]
    at = tuple(
        AtStation(station.name, stay_s, x * stay_s, x * station.demand_s / (station.servers or 1))
        for station, stay_s in zip(stations, stays_s, strict=True)
    )
    return Solution(n, x, sum(stays_s), at)


@dataclass(frozen=True, slots=True)
class Curve:
    """Holds the solutions of a closed network with 1, 2 … N customers, and its bounds.

    balanced: empty if a station has several servers.
    """

    stations: tuple[Station, ...]
    think_time_s: float
    solutions: tuple[Solution, ...]
    asymptotic: tuple[bounds.Bounds, ...]
    balanced: tuple[bounds.Bounds, ...]

    @property
    def last(self) -> Solution:
        return self.solutions[-1]

    @property
    def bottleneck(self) -> Station:
        return bottleneck(self.stations)

    @property
    def demand_s(self) -> float:
        return total_demand_s(self.stations)

    @property
    def most_throughput_per_s(self) -> float:
        """Return the throughput that no number of customers can exceed."""
        return bounds.maximum_throughput_per_s(self.stations)

    @property
    def optimal_population(self) -> float:
        """Return N_opt: more customers than that must queue."""
        return bounds.optimal_population(self.stations, self.think_time_s)

    @property
    def queues(self) -> list[str]:
        """Return the names of the stations with a queue; a delay has no U."""
        return [station.name for station in self.stations if not station.is_delay]

    def rows(self) -> list[dict[str, float]]:
        """Return a row for each N: X, R, bounds, and U of each station with a queue."""
        return [self._row(at) for at in range(len(self.solutions))]

    def _row(self, at: int) -> dict[str, float]:
        solution, asymptotic = self.solutions[at], self.asymptotic[at]
        row: dict[str, float] = {
            "customers": solution.customers,
            "throughput_per_s": solution.throughput_per_s,
            "response_time_s": solution.response_time_s,
            "asymptotic_throughput_per_s": asymptotic.throughput_high_per_s,
            "asymptotic_response_time_s": asymptotic.response_low_s,
        }
        if self.balanced:
            row |= {f"balanced_{name}": getattr(self.balanced[at], name) for name in BALANCED}
        return row | {f"utilisation {name}": solution.at(name).utilisation for name in self.queues}


def curve(stations: Sequence[Station], most_customers: int, think_time_s: float = 0.0) -> Curve:
    """Return the curve up to `most_customers` customers. Raises ValueError if nothing limits X."""
    populations = range(1, most_customers + 1)
    is_single = not any(station.is_multi for station in stations)
    return Curve(
        tuple(stations),
        think_time_s,
        solve(stations, most_customers, think_time_s),
        tuple(bounds.asymptotic(stations, n, think_time_s) for n in populations),
        tuple(bounds.balanced_job(stations, n, think_time_s) for n in populations if is_single),
    )
