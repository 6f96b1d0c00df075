"""Closed networks for tests, drawn by hypothesis, and their exact solution by the product form."""

from collections.abc import Sequence
from fractions import Fraction
from math import factorial

from hypothesis import strategies as st

from loadtests.models.laws import DELAY, Station

demands = st.integers(1, 400).map(lambda hundredths: hundredths / 100)
servers = st.sampled_from([1, 1, 2, 3, 5, DELAY])


@st.composite
def networks(draw: st.DrawFn, *, only_single: bool = False) -> tuple[list[Station], float]:
    """Stations, one with a queue at least, and a think time."""
    size = draw(st.integers(1, 4))
    kinds = st.sampled_from([1, 1, DELAY]) if only_single else servers
    stations = [Station(f"s{at}", draw(demands), draw(kinds)) for at in range(size)]
    stations.append(Station("queue", draw(demands), 1 if only_single else draw(st.integers(1, 3))))
    return stations, draw(st.integers(0, 500)) / 100


def _weights(station: Station, most: int) -> list[Fraction]:
    """D^k over the product of min(j, m) for j up to k: the unscaled probability of k there."""
    demand, weights = Fraction(station.demand_s), [Fraction(1)]
    for k in range(1, most + 1):
        busy = k if station.servers is None else min(k, station.servers)
        weights.append(weights[-1] * demand / busy)
    return weights


def _together(first: Sequence[Fraction], second: Sequence[Fraction]) -> list[Fraction]:
    return [
        sum((first[k] * second[n - k] for k in range(n + 1)), Fraction(0))
        for n in range(len(first))
    ]


def product_form(
    stations: Sequence[Station], think_time_s: float, customers: int
) -> tuple[float, dict[str, float]]:
    """Throughput, and the mean number of customers at each station, in exact fractions.

    J. P. Buzen's normalising constants G: X(N) = G(N-1)/G(N).
    """
    think = [Fraction(think_time_s) ** k / factorial(k) for k in range(customers + 1)]

    def constants(present: Sequence[Station]) -> list[Fraction]:
        total = think
        for station in present:
            total = _together(total, _weights(station, customers))
        return total

    g = constants(stations)
    numbers = {}
    for station in stations:
        without = constants([other for other in stations if other is not station])
        weights = _weights(station, customers)
        mean = sum(k * weights[k] * without[customers - k] for k in range(customers + 1))
        numbers[station.name] = float(mean / g[customers])
    return float(g[customers - 1] / g[customers]), numbers
