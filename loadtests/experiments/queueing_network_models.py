"""Predicts the study's network, in report seconds: by formulas, and by simulated runs. Pure.

MVA           exact mean value analysis, for exponential stations
ASYMPTOTES    X ≤ min(N/(D + Z), 1/D_b), R ≥ max(D, N·D_b − Z), without unnecessary waiting
ONE           one request at a time: the asymptotes of a single station with the whole demand D

These are for the long run. A run starts with all customers together, which such a network remembers
for long: two customers need hundreds of rounds to forget it. So a run is also compared with
hundreds of simulated runs of the same length. And its batches are no independent measurements of
anything: with two customers, 95 % intervals from batches of one run covered 58 %. The spread of
simulated runs is known as well as one likes, and is used in their place.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from math import sqrt
from statistics import NormalDist, fmean
from typing import Any

import numpy as np

from loadtests.grouping import grouped
from loadtests.lab.content import shown
from loadtests.lab.published import NETWORK, NETWORK_CACHE_BLOCKS, NETWORK_THINK_S
from loadtests.models import bounds, mva
from loadtests.models.estimates import CONFIDENCE, Interval, confidence_interval
from loadtests.models.laws import Station, service_demand_s, total_demand_s
from loadtests.models.sample_statistics import quantile, variance_of
from loadtests.servers import network, study

REGULAR_CV = 0.2
"""The coefficient of variation of a visit's service time at regular stations. Reading a block of
1000 flights varies less on a quiet machine."""


@dataclass(frozen=True, slots=True)
class Server:
    """Describes a server of the network.

    cv: coefficient of variation of service times. threads: customers inside at a time.
    """

    name: str
    label: str
    cv: float
    threads: int


EXPONENTIAL = Server("exponential", "exponential stations", 1.0, network.THREADS)
REGULAR = Server("regular", "regular stations", REGULAR_CV, network.THREADS)
SINGLE = Server("one-at-a-time", "one request at a time", REGULAR_CV, 1)
SERVERS = (EXPONENTIAL, REGULAR, SINGLE)

MVA, ASYMPTOTES, ONE = "mva", "asymptotes", "one-at-a-time"
SIMULATED = {"simulated-exponential": EXPONENTIAL, "simulated-regular": REGULAR}
"""Models that are simulated servers, measured like the real ones."""
MODELS = {
    MVA: "MVA",
    ASYMPTOTES: "asymptotes",
    **{model: f"simulated, {server.label}" for model, server in SIMULATED.items()},
    ONE: "one at a time",
}


@dataclass(frozen=True, slots=True)
class Prediction:
    """Holds the throughput in 1/s and the response time in s of N customers."""

    throughput_per_s: float
    response_s: float


# --- formulas ------------------------------------------------------------------------------------

STATIONS = {station.name.lower(): station for station in NETWORK}
REFILLS = 27

Routing = dict[str, dict[str, Fraction]]


def routing() -> Routing:
    """Return the routing of figure 6: the CPU is visited for each block, and once more at first."""
    looks = study.BLOCKS + 1
    home, refill = Fraction(1, looks), Fraction(REFILLS, looks)
    back = Fraction(1, NETWORK_CACHE_BLOCKS)
    return {
        "terminal": {"cpu": Fraction(1)},
        "cpu": {"terminal": home, "cpu": 1 - home - refill, "disk": refill},
        "disk": {"delay": Fraction(1)},
        "delay": {"cpu": back, "disk": 1 - back},
    }


def visits() -> dict[str, float]:
    """Return how often a customer visits each station in a round.

    These are the V of the traffic equations V_k = Σ_j V_j·p_jk, with V = 1 for the terminal.
    """
    shares = np.array(
        [[float(row.get(name, 0)) for name in STATIONS] for row in routing().values()]
    )
    from_terminal, between = shares[0], shares[1:]
    solution = np.linalg.solve(np.eye(len(STATIONS)) - between.T, from_terminal)
    return dict(zip(STATIONS, solution.tolist(), strict=True))


def stations() -> list[Station]:
    """Return the stations of the study's network, with their demands D = V·S."""
    return [
        Station(name, service_demand_s(visit_ratio, STATIONS[name].service_s))
        for name, visit_ratio in visits().items()
    ]


def joined(parts: Sequence[Station]) -> Station:
    """Return a single station with all demands, also those of delays."""
    return Station("all", total_demand_s(parts))


def by_formula(model: str, customers: int) -> Prediction:
    """Return what MVA, ASYMPTOTES or ONE predict of the study's network with N customers."""
    if model == MVA:
        solution = mva.solve(stations(), customers, NETWORK_THINK_S)[-1]
        return Prediction(solution.throughput_per_s, solution.response_time_s)
    parts = [joined(stations())] if model == ONE else stations()
    limits = bounds.asymptotic(parts, customers, NETWORK_THINK_S)
    return Prediction(limits.throughput_high_per_s, limits.response_low_s)


# --- what is expected of runs --------------------------------------------------------------------

WARM_UP = 1  # first requests of each customer that do not count
LEAST_REPEATED = 4  # with as many runs, Student's interval over them needs no simulation
_Z = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)

Cell = tuple[Server, int]  # a server and its number of customers


def counted(ends: Sequence[tuple[int, float]], warm_up: int) -> list[tuple[int, float]]:
    """Return the interactions of a closed run that count: positions in `ends`, and cycles (s).

    ends: customer and end (s) of each interaction, in order of ends. A cycle is from the end of a
    customer's interaction to the end of the next one, so that X = N/mean cycle. (Counting ends
    between two moments could be wrong by one round of all customers, because customers who began
    together end together.) The first `warm_up` interactions of each customer, at least one, are
    left out, and so are those that ended after the first customer had finished.
    """
    until_s = min(dict(ends).values(), default=0.0)
    before: dict[int, float] = {}
    numbers: Counter[int] = Counter()
    cycles = []
    for at, (customer, end_s) in enumerate(ends):
        if numbers[customer] >= max(1, warm_up) and end_s <= until_s:
            cycles.append((at, end_s - before[customer]))
        numbers[customer] += 1
        before[customer] = end_s
    return cycles


@dataclass(frozen=True, slots=True)
class Spread:
    """Sums up the values of simulated runs. low, high: 95 % of single runs lie between."""

    mean: float
    deviation: float
    low: float
    high: float
    runs: int

    def __str__(self) -> str:
        return f"{shown(self.low)} to {shown(self.high)}"

    @property
    def half_width(self) -> float:
        """Return half the 95 % interval of the mean: for 200 runs, a 14th of a run's."""
        return _Z * self.deviation / sqrt(self.runs)

    def interval(self, measured: Sequence[float]) -> Interval:
        """Return the 95 % interval of the mean of what was measured in independent runs.

        Up to three runs vary as simulated ones do; from four on their own variation is taken.
        """
        if len(measured) >= LEAST_REPEATED:
            return confidence_interval(measured)
        half_width = _Z * self.deviation / sqrt(len(measured))
        return Interval(fmean(measured), half_width, len(measured))


def spread(values: Sequence[float]) -> Spread:
    """Return the spread of at least two values."""
    outside = (1 - CONFIDENCE) / 2
    ends = quantile(values, outside), quantile(values, 1 - outside)
    return Spread(fmean(values), sqrt(variance_of(values)), *ends, len(values))


@dataclass(frozen=True, slots=True)
class Expected:
    """Says what runs of a server with N customers should give: the means are predictions."""

    throughput_per_s: Spread
    response_s: Spread


Expectations = Mapping[Cell, Expected]


def expectations(results: Mapping[Cell, Sequence[Prediction]]) -> Expectations:
    """Return what to expect by the results of simulated runs, at least two of each cell."""
    return {
        cell: Expected(
            spread([run.throughput_per_s for run in runs]),
            spread([run.response_s for run in runs]),
        )
        for cell, runs in results.items()
    }


def predicted(model: str, customers: int, expected: Expectations) -> Prediction | None:
    """Return the prediction of one of MODELS; None if its runs were not simulated."""
    if model not in SIMULATED:
        return by_formula(model, customers)
    runs = expected.get((SIMULATED[model], customers))
    return Prediction(runs.throughput_per_s.mean, runs.response_s.mean) if runs else None


# --- simulated runs ------------------------------------------------------------------------------

_AT_ONCE = 256  # steps for which service times are drawn together

Array = np.ndarray[Any, Any]


def simulated_results(
    populations: Sequence[int], report_s: float, group: int, seed: str, runs: int
) -> dict[Cell, list[Prediction]]:
    """Simulate `runs` runs of every server with each number of customers.

    report_s, group: the length of a run and the visits joined to one, as in the experiment's plan.
    The same seed gives the same results. A run in which no round counts has none.
    """
    cells = [(server, n) for server in SERVERS for n in populations]
    results: dict[Cell, list[Prediction]] = {}
    for alike in grouped(cells, lambda cell: cell[0].threads).values():
        lanes = iter(_Lanes(alike, group, runs, seed).run(report_s))
        for server, n in alike:
            made = (_result(rounds, n) for rounds in islice(lanes, runs))
            results[server, n] = [result for result in made if result]
    return results


def _result(rounds: Array, customers: int) -> Prediction | None:
    _, customer, start_s, end_s = rounds.T.tolist()
    cycles = counted(list(zip(customer, end_s, strict=True)), WARM_UP)
    if not cycles:
        return None
    stays_s = [end_s[at] - start_s[at] for at, _ in cycles]
    cycle_s = fmean([cycle_s for _, cycle_s in cycles])
    return Prediction(customers / cycle_s, fmean(stays_s))


class _Lanes:
    """Simulates the runs of cells of one number of threads, a visit in every lane at a time.

    Rows of arrays are lanes; columns are customers, who are absent beyond N.
    """

    def __init__(self, cells: Sequence[Cell], group: int, runs: int, seed: str) -> None:
        cpu, disk, delay = (network.Station(name) for name in STATIONS)
        steps = network.route(cpu, disk, delay, 1.0, group)
        self._stations = np.array([list(STATIONS).index(step.station.name) for step in steps])
        self._means_s = np.array([step.mean_s for step in steps])
        cvs = np.repeat([server.cv for server, _ in cells], runs)
        if cells[0][0].threads == 1:  # one service, with the mean and variance of the whole round
            total_s = self._means_s.sum()
            cvs *= sqrt((self._means_s**2).sum()) / total_s
            self._stations, self._means_s = np.array([0]), np.array([total_s])
        self._shape = cvs**-2.0
        self._random = np.random.default_rng(list(seed.encode()))
        self._lane = np.arange(len(cells) * runs)
        customers = np.repeat([n for _, n in cells], runs)
        is_absent = np.arange(customers.max())[None, :] >= customers[:, None]
        self._next_s = np.where(is_absent, np.inf, 0.0)
        self._start_s = np.zeros_like(self._next_s)
        self._at = np.zeros(self._next_s.shape, int)
        self._free_s = np.zeros((len(customers), len(STATIONS)))

    def run(self, until_s: float) -> list[Array]:
        """Let every customer go round until `until_s`, after which none begins.

        Returns the rounds of each lane in the order of their ends: lane, customer, start and end.
        """
        pieces: list[Array] = []
        count = len(self._lane)
        while len(self._lane):
            services = self._random.standard_gamma(self._shape, (_AT_ONCE, len(self._lane)))
            pieces += [self._step(service, until_s) for service in services / self._shape]
            going = np.isfinite(self._next_s).any(axis=1)
            for name in ("_lane", "_shape", "_next_s", "_start_s", "_at", "_free_s"):
                setattr(self, name, getattr(self, name)[going])
        rounds = np.concatenate(pieces)
        rounds = rounds[np.lexsort((rounds[:, 3], rounds[:, 0]))]
        return np.split(rounds, np.searchsorted(rounds[:, 0], np.arange(1, count)))

    def _step(self, service: Array, until_s: float) -> Array:
        """Serve the next customer of each lane. Returns the rounds that end with it.

        Who has finished arrives at ∞ and waits until then.
        """
        lanes = np.arange(len(self._lane))
        customer = self._next_s.argmin(axis=1)
        at = self._at[lanes, customer]
        station = self._stations[at]
        begin_s = np.maximum(self._next_s[lanes, customer], self._free_s[lanes, station])
        end_s = begin_s + service * self._means_s[at]
        self._free_s[lanes, station] = self._next_s[lanes, customer] = end_s
        self._at[lanes, customer] = (at + 1) % len(self._means_s)
        is_last = (at + 1 == len(self._means_s)) & np.isfinite(end_s)
        return self._ended(lanes[is_last], customer[is_last], end_s[is_last], until_s)

    def _ended(self, lanes: Array, customer: Array, end_s: Array, until_s: float) -> Array:
        start_s, again_s = self._start_s[lanes, customer], end_s + NETWORK_THINK_S
        self._start_s[lanes, customer] = again_s
        self._next_s[lanes, customer] = np.where(again_s < until_s, again_s, np.inf)
        return np.column_stack([self._lane[lanes], customer, start_s, end_s])
