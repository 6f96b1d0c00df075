"""Predicts the study's network by models, in report seconds. Pure.

MVA           exact mean value analysis, for exponential stations
ASYMPTOTES    X ≤ min(N/(D + Z), 1/D_b), R ≥ max(D, N·D_b − Z), without unnecessary waiting
SIMULATED     simulation of the network with regular service times
ONE           one request at a time: the asymptotes of a single station with the whole demand D
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from random import Random

from loadtests.experiments.queueing_network.plan import REGULAR, Server
from loadtests.lab.published import (
    BLOCKS,
    NETWORK,
    NETWORK_CACHE_BLOCKS,
    NETWORK_THINK_S,
)
from loadtests.models import bounds, mva
from loadtests.models.closed_network import Round, Visit, simulated
from loadtests.models.distributions import with_mean_and_cv
from loadtests.models.samples import summary
from loadtests.models.stations import Station, total_demand_s
from loadtests.models.visits import demands_s, visit_ratios
from loadtests.servers import network
from loadtests.servers.stations import Station as RealStation

MVA, ASYMPTOTES, SIMULATED, ONE = "mva", "asymptotes", "simulated", "one-at-a-time"
MODELS = {
    MVA: "MVA",
    ASYMPTOTES: "asymptotes",
    SIMULATED: "simulated, regular times",
    ONE: "one at a time",
}
STATIONS = tuple(station.name.lower() for station in NETWORK)
REFILLS = 27
SIMULATED_ROUNDS = 12  # number of rounds of each customer; the first is left out

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
    times_s = {station.name.lower(): station.service_s for station in NETWORK}
    return demands_s(visit_ratios(of, "terminal"), times_s)


def stations() -> list[Station]:
    """The stations of the study's network."""
    return [Station(name, demand_s) for name, demand_s in demands(routing()).items()]


def solved(most_customers: int) -> tuple[mva.Solution, ...]:
    """The solutions by mean value analysis for 1 to `most_customers` customers."""
    return mva.solve(stations(), most_customers, NETWORK_THINK_S)


def simulated_rounds(
    server: Server, customers: int, rounds: int, group: int, random: Random
) -> list[Round]:
    """Rounds of a simulation of `server`, with the route of `servers.network`."""
    cpu, disk, delay = (RealStation(name) for name in STATIONS)
    way = [
        Visit(step.station.name, with_mean_and_cv(step.mean_s, server.cv))
        for step in network.route(cpu, disk, delay, 1.0, group)
    ]
    is_single = server.threads == 1
    return simulated(way, customers, NETWORK_THINK_S, rounds, random, one_at_a_time=is_single)


@dataclass(frozen=True, slots=True)
class Prediction:
    """Throughput in 1/s and response time in s of N customers."""

    throughput_per_s: float
    response_s: float


def predicted(model: str, customers: int, group: int) -> Prediction:
    """The prediction of a model. group: as in the measured server. Raises KeyError."""
    return _PREDICTING[model](customers, group)


def _mva(customers: int, _group: int) -> Prediction:
    found = solved(customers)[-1]
    return Prediction(found.throughput_per_s, found.response_time_s)


def _asymptotes(customers: int, _group: int) -> Prediction:
    return _bound(stations(), customers)


def _one(customers: int, _group: int) -> Prediction:
    return _bound([Station("all", total_demand_s(stations()))], customers)


def _bound(of: Sequence[Station], customers: int) -> Prediction:
    found = bounds.asymptotic(of, customers, NETWORK_THINK_S)
    return Prediction(found.throughput_high_per_s, found.response_low_s)


@cache
def _simulated(customers: int, group: int) -> Prediction:
    random = Random(f"regular {customers} {group}")  # noqa: S311  the same in every report
    rounds = simulated_rounds(REGULAR, customers, SIMULATED_ROUNDS, group, random)
    found = counted([(one.customer, one.end_s) for one in rounds], warm_up=1)
    cycles_s = [cycle_s for _, cycle_s in found]
    stays_s = [rounds[at].end_s - rounds[at].start_s for at, _ in found]
    return Prediction(customers / summary(cycles_s).mean, summary(stays_s).mean)


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


_PREDICTING: Mapping[str, Callable[[int, int], Prediction]] = {
    MVA: _mva,
    ASYMPTOTES: _asymptotes,
    SIMULATED: _simulated,
    ONE: _one,
}
