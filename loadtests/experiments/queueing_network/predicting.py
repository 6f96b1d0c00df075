"""Predicts the study's network by models, in report seconds. Pure.

MVA           exact mean value analysis, for exponential stations
ASYMPTOTES    X ≤ min(N/(D + Z), 1/D_b), R ≥ max(D, N·D_b − Z), without unnecessary waiting
ONE           one request at a time: the asymptotes of a single station with the whole demand D

These are formulas, for the long run; `simulating` predicts runs as short as ours.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from loadtests.lab.published import BLOCKS, NETWORK, NETWORK_CACHE_BLOCKS, NETWORK_THINK_S
from loadtests.models import bounds, mva
from loadtests.models.laws import Station, demands_s, total_demand_s, visit_ratios

MVA, ASYMPTOTES, ONE = "mva", "asymptotes", "one-at-a-time"
STATIONS = {station.name.lower(): station for station in NETWORK}
REFILLS = 27

Routing = dict[str, dict[str, Fraction]]


def routing(blocks: int = BLOCKS, refills: int = REFILLS, reads: int | None = None) -> Routing:
    """The routing of figure 6 for these counts of a scan. reads: None means 19 per refill.

    The CPU is visited once for each block, and once more at first.
    """
    reads = refills * NETWORK_CACHE_BLOCKS if reads is None else reads
    visits = blocks + 1
    home, refill, back = Fraction(1, visits), Fraction(refills, visits), Fraction(refills, reads)
    return {
        "terminal": {"cpu": Fraction(1)},
        "cpu": {"terminal": home, "cpu": 1 - home - refill, "disk": refill},
        "disk": {"delay": Fraction(1)},
        "delay": {"cpu": back, "disk": 1 - back},
    }


def visits(of: Routing) -> dict[str, float]:
    """Visits to each station in one interaction, by the traffic equations."""
    return {name: float(ratio) for name, ratio in visit_ratios(of, "terminal").items()}


def demands(of: Routing) -> dict[str, float]:
    """D = V·S of each station, with the study's S."""
    times_s = {name: station.service_s for name, station in STATIONS.items()}
    return demands_s(visit_ratios(of, "terminal"), times_s)


def stations(of: Routing | None = None) -> list[Station]:
    """The stations of a network with this routing, or with the study's."""
    return [Station(name, demand_s) for name, demand_s in demands(of or routing()).items()]


def solved(most_customers: int) -> tuple[mva.Solution, ...]:
    """The solutions by mean value analysis for 1 to `most_customers` customers."""
    return mva.solve(stations(), most_customers, NETWORK_THINK_S)


@dataclass(frozen=True, slots=True)
class Prediction:
    """Throughput in 1/s and response time in s of N customers."""

    throughput_per_s: float
    response_s: float


def by_formula(model: str, customers: int, of: Routing | None = None) -> Prediction:
    """The prediction of MVA, ASYMPTOTES or ONE. Raises KeyError.

    of: the routing, if it is not the study's.
    """
    return FORMULAS[model](stations(of), customers, NETWORK_THINK_S)


def _mva(of: Sequence[Station], customers: int, think_s: float) -> Prediction:
    found = mva.solve(of, customers, think_s)[-1]
    return Prediction(found.throughput_per_s, found.response_time_s)


def _asymptotes(of: Sequence[Station], customers: int, think_s: float) -> Prediction:
    found = bounds.asymptotic(of, customers, think_s)
    return Prediction(found.throughput_high_per_s, found.response_low_s)


def _one_at_a_time(of: Sequence[Station], customers: int, think_s: float) -> Prediction:
    return _asymptotes([joined(of)], customers, think_s)


def joined(of: Sequence[Station]) -> Station:
    """A single station with all demands, also those of delays."""
    return Station("all", total_demand_s(of))


FORMULAS: Mapping[str, Callable[[Sequence[Station], int, float], Prediction]] = {
    MVA: _mva,
    ASYMPTOTES: _asymptotes,
    ONE: _one_at_a_time,
}
"""Model -> the prediction for these stations, N customers and a think time (s)."""


def counted(ends: Sequence[tuple[int, float]], warm_up: int) -> list[tuple[int, float]]:
    """The interactions of a closed run that count: positions in `ends` and cycles in seconds.

    ends: customer and end (s) of each interaction, in order of ends. A cycle is from the end of a
    customer's interaction to the end of the next one, so that X = N/mean cycle. (Counting ends
    between two moments could be wrong by one round of all customers, because customers who began
    together end together.) The first `warm_up` interactions of each customer, at least one, are
    left out, and so are those that ended after the first customer had finished.
    """
    until_s = min(dict(ends).values(), default=0.0)
    before: dict[int, float] = {}
    seen: Counter[int] = Counter()
    found = []
    for at, (customer, end_s) in enumerate(ends):
        if seen[customer] >= max(1, warm_up) and end_s <= until_s:
            found.append((at, end_s - before[customer]))
        seen[customer] += 1
        before[customer] = end_s
    return found
