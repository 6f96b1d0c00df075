"""Simulates hundreds of closed runs like the measured ones, to tell what they should have given.

A run starts with all customers together, which such a network remembers for long: two customers
need hundreds of rounds to forget it. So a run is compared with simulated runs of the same length,
and not only with the long run of a formula. And its batches are no independent measurements of
anything: with two customers, 95 % intervals from batches of one run covered 58 %. The spread of
simulated runs is known as well as one likes, and is used in their place.

Runs are lanes of arrays: at each step every lane serves the customer whose arrival is next.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist
from typing import Any

import numpy as np

from loadtests.experiments.queueing_network.plan import (
    EXPONENTIAL,
    REGULAR,
    SERVERS,
    WARM_UP,
    Server,
)
from loadtests.experiments.queueing_network.predicting import (
    ASYMPTOTES,
    MVA,
    ONE,
    STATIONS,
    Prediction,
    by_formula,
    counted,
)
from loadtests.lab.published import NETWORK_THINK_S
from loadtests.models.estimates import CONFIDENCE, Interval, confidence_interval
from loadtests.models.samples import quantile, summary
from loadtests.servers import network
from loadtests.servers.network import Station

SIMULATED = {
    "simulated-exponential": EXPONENTIAL,
    "simulated-regular": REGULAR,
}
"""Models that are simulated servers, measured like the real ones."""
MODELS = {
    MVA: "MVA",
    ASYMPTOTES: "asymptotes",
    **{model: f"simulated, {server.label}" for model, server in SIMULATED.items()},
    ONE: "one at a time",
}

LEAST_REPEATED = 4  # with as many runs, Student's interval over them needs no simulation
_AT_ONCE = 256  # steps for which service times are drawn together
_Z = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Spread:
    """The values of simulated runs. low, high: 95 % of single runs lie between these."""

    mean: float
    deviation: float
    low: float
    high: float
    runs: int

    @property
    def half_width(self) -> float:
        """Half the width of the 95 % interval of the mean: for 200 runs, a 14th of a run's."""
        return _Z * self.deviation / sqrt(self.runs)

    def interval(self, measured: Sequence[float]) -> Interval:
        """The 95 % interval of the mean of what was measured in independent runs.

        Up to three runs vary as simulated ones do; from four on their own variation is taken.
        """
        if len(measured) >= LEAST_REPEATED:
            return confidence_interval(measured)
        half_width = _Z * self.deviation / sqrt(len(measured))
        return Interval(summary(measured).mean, half_width, len(measured))


def spread(values: Sequence[float]) -> Spread:
    """The spread of at least two values."""
    found, outside = summary(values), (1 - CONFIDENCE) / 2
    ends = quantile(values, outside), quantile(values, 1 - outside)
    return Spread(found.mean, found.standard_deviation, *ends, found.count)


@dataclass(frozen=True, slots=True)
class Expected:
    """What runs of a server with N customers should give: the means are predictions."""

    throughput_per_s: Spread
    response_s: Spread


Cell = tuple[Server, int]  # a server and its number of customers
Expectations = Mapping[Cell, Expected]


def expectations(results: Mapping[Cell, Sequence[Prediction]]) -> Expectations:
    """What to expect by the results of simulated runs, at least two of each cell."""
    return {
        cell: Expected(
            spread([one.throughput_per_s for one in of]), spread([one.response_s for one in of])
        )
        for cell, of in results.items()
    }


def predicted(model: str, customers: int, of: Expectations) -> Prediction | None:
    """The prediction of one of MODELS; None if its runs were not simulated. Raises KeyError."""
    if model not in SIMULATED:
        return by_formula(model, customers)
    found = of.get((SIMULATED[model], customers))
    return Prediction(found.throughput_per_s.mean, found.response_s.mean) if found else None


def simulated_results(
    populations: Sequence[int], report_s: float, group: int, seed: str, runs: int
) -> Mapping[Cell, list[Prediction]]:
    """The results of `runs` runs of every server with each number of customers.

    report_s, group: the length of a run and the visits joined to one, as in `plan.Plan`. The same
    seed gives the same results. A run in which no round counts has none.
    """
    found: dict[Cell, list[Prediction]] = {}
    for is_single in (False, True):
        of = [
            (server, n)
            for server in SERVERS
            for n in populations
            if (server.threads == 1) == is_single
        ]
        lanes = _Lanes(_way(group, is_single=is_single), of, runs, seed)
        rounds = lanes.run(report_s)
        for at, (server, n) in enumerate(of):
            own = (rounds[at * runs + number] for number in range(runs))
            made = (_result(each, n) for each in own)
            found[server, n] = [one for one in made if one]
    return found


_Rounds = list[tuple[int, float, float]]  # customer, start and end (s) of each, by their ends


def _result(rounds: _Rounds, customers: int) -> Prediction | None:
    cycles = counted([(customer, end_s) for customer, _, end_s in rounds], WARM_UP)
    if not cycles:
        return None
    stays_s = [rounds[at][2] - rounds[at][1] for at, _ in cycles]
    cycle_s = summary([cycle_s for _, cycle_s in cycles]).mean
    return Prediction(customers / cycle_s, summary(stays_s).mean)


@dataclass(frozen=True, slots=True)
class _Way:
    """The stations that a round visits, by number, and the mean of each service.

    cv_factor: by which the cv of a service is less than that of a visit, if it joins all visits.
    """

    stations: Array
    means_s: Array
    cv_factor: float


def _way(group: int, *, is_single: bool) -> _Way:
    cpu, disk, delay = (Station(name) for name in STATIONS)
    steps = network.route(cpu, disk, delay, 1.0, group)
    stations = np.array([list(STATIONS).index(step.station.name) for step in steps])
    means_s = np.array([step.mean_s for step in steps])
    if not is_single:
        return _Way(stations, means_s, 1.0)
    # one request at a time is one station, with the mean and variance of the whole round
    total_s = means_s.sum()
    return _Way(np.zeros(1, int), np.array([total_s]), sqrt((means_s**2).sum()) / total_s)


class _Lanes:
    """The runs of all cells. Rows are lanes; columns are customers, who are absent beyond N."""

    def __init__(self, way: _Way, cells: Sequence[Cell], runs: int, seed: str) -> None:
        self._way = way
        self._random = np.random.default_rng(list(seed.encode()))
        self._lane = np.arange(len(cells) * runs)
        customers = np.repeat([n for _, n in cells], runs)
        cvs = np.repeat([server.cv * way.cv_factor for server, _ in cells], runs)
        self._shape = cvs**-2.0
        most = int(customers.max())
        is_absent = np.arange(most)[None, :] >= customers[:, None]
        self._next_s = np.where(is_absent, np.inf, 0.0)
        self._start_s = np.zeros_like(self._next_s)
        self._at = np.zeros(self._next_s.shape, int)
        self._free_s = np.zeros((len(customers), len(STATIONS)))

    def run(self, until_s: float) -> Mapping[int, _Rounds]:
        """Let every customer go round until `until_s`, after which none begins.

        Returns the rounds of each lane, in the order of their ends.
        """
        pieces: list[Array] = []
        while len(self._lane):
            size = (_AT_ONCE, len(self._lane))
            for service in self._random.standard_gamma(self._shape, size) / self._shape:
                pieces += self._step(service, until_s)
            self._leave_out_finished()
        rounds = np.concatenate(pieces)
        found: dict[int, _Rounds] = defaultdict(list)
        for lane, customer, start_s, end_s in rounds[np.argsort(rounds[:, 3])].tolist():
            found[int(lane)].append((int(customer), start_s, end_s))
        return found

    def _step(self, service: Array, until_s: float) -> list[Array]:
        """Serve the next customer of each lane. Returns the rounds that end with it, if any."""
        lanes = np.arange(len(self._lane))
        customer = self._next_s.argmin(axis=1)
        now_s, at = self._next_s[lanes, customer], self._at[lanes, customer]
        station = self._way.stations[at]
        end_s = np.maximum(now_s, self._free_s[lanes, station]) + service * self._way.means_s[at]
        self._free_s[lanes, station] = end_s
        at += 1
        ended = np.flatnonzero((at == len(self._way.means_s)) & np.isfinite(end_s))
        at[at == len(self._way.means_s)] = 0
        self._at[lanes, customer] = at
        self._next_s[lanes, customer] = end_s
        return [self._ended(ended, customer[ended], end_s[ended], until_s)] if len(ended) else []

    def _ended(self, rows: Array, customer: Array, end_s: Array, until_s: float) -> Array:
        start_s = self._start_s[rows, customer]
        again_s = end_s + NETWORK_THINK_S
        self._start_s[rows, customer] = again_s
        self._next_s[rows, customer] = np.where(again_s < until_s, again_s, np.inf)
        return np.stack([self._lane[rows], customer, start_s, end_s], axis=1)

    def _leave_out_finished(self) -> None:
        going = np.isfinite(self._next_s).any(axis=1)
        if going.all():
            return
        for name in ("_lane", "_shape", "_next_s", "_start_s", "_at", "_free_s"):
            setattr(self, name, getattr(self, name)[going])
