"""The protocols of the studies as simulations, and what each could conclude from its results.

A world is a server that behaves exactly as a model says, measured as the study measured. A claim is
true or false in a world, and a repetition of the protocol may lead to it or not.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from math import sqrt
from random import Random
from statistics import fmean

from loadtests.lab.published import (
    ITINERARY,
    ITINERARY_COUNTED,
    MIXED,
    OPEN_RUN_S,
    OPEN_RUNS,
    OPEN_WORKLOADS,
    UNROUNDED,
)
from loadtests.models import open_queue, replay
from loadtests.models.linear import line_and_exponential
from loadtests.models.protocol import Protocol, expectation, simulate_run
from loadtests.models.random_times import gamma_time_s, poisson_times, with_mean_and_cv
from loadtests.models.replay import Discipline

RANGE_RUNS = 4000  # simulated for the range to which a claim about study 000 compares
SERVERS_001, QUERIES_001 = 3, (100, 1000)
CLIENTS_003 = (*range(1, 13), 18, 24, 36, 48, 60)
CVS_004 = (1.0, 3.0)
NEAR = 0.1

Means = Sequence[float]


@dataclass(frozen=True, slots=True)
class Claim:
    """What a study could conclude. holds: whether one repetition leads to it. true: if it is so."""

    words: str
    holds: Callable[[Means], bool]
    true: bool


@dataclass(frozen=True, slots=True)
class World:
    """A server and a protocol. repeat: the results of one repetition. claims: tried on them."""

    name: str
    repeat: Callable[[Random], Means]
    claims: Sequence[Claim]


# --- study 000: one server, open, short runs from empty --------------------------------------

_LAW = with_mean_and_cv(UNROUNDED.mean_s, UNROUNDED.variation)
_RATES = [one.fraction / UNROUNDED.mean_s for one in OPEN_WORKLOADS]


def _short_runs(discipline: Discipline, rng: Random) -> Means:
    return [_mean_of_runs(rate_per_s, discipline, rng) for rate_per_s in _RATES]


def _mean_of_runs(rate_per_s: float, discipline: Discipline, rng: Random) -> float:
    runs = [simulate_run(OPEN_RUN_S, rate_per_s, _LAW, rng, discipline) for _ in range(OPEN_RUNS)]
    return fmean([run.mean_s for run in runs if run is not None])


def of_study_000() -> list[World]:
    """One server, asked at four rates in 15 short runs each, which begin with an empty server."""
    fcfs = [
        open_queue.mg1(rate, UNROUNDED.mean_s, UNROUNDED.variance_s2).response_time_s
        for rate in _RATES
    ]
    shared = [open_queue.mg1_ps(rate, UNROUNDED.mean_s).response_time_s for rate in _RATES]
    printed = OPEN_WORKLOADS[-1].tested_s

    def like_mg1(means: Means) -> bool:
        both = zip(means, fcfs, shared, strict=True)
        return all(abs(mean - one) < abs(mean - other) for mean, one, other in both)

    in_order = [
        Claim("at 0.85 its mean is below M/G/1", lambda m: m[3] < fcfs[3], true=False),
        Claim(
            "at 0.8 and at 0.85 its mean is below M/G/1",
            lambda m: m[2] < fcfs[2] and m[3] < fcfs[3],
            true=False,
        ),
        Claim(
            "at 0.85 its mean is as far below M/G/1 as the study's",
            lambda m: m[3] <= printed,
            true=False,
        ),
        Claim("each mean is nearer to M/G/1 than to M/G/1-PS", like_mg1, true=True),
        Claim(
            "each mean is in the range that simulation gives such runs",
            lambda m: all(
                low <= mean <= high for mean, (low, high) in zip(m, _ranges(), strict=True)
            ),
            true=True,
        ),
    ]
    sharing = [
        Claim("at 0.85 its mean is below M/G/1-PS", lambda m: m[3] < shared[3], true=False),
        Claim("at 0.85 its mean is below even M/G/1", lambda m: m[3] < fcfs[3], true=False),
        Claim("each mean is nearer to M/G/1 than to M/G/1-PS", like_mg1, true=False),
    ]
    return [
        World("serves one at a time (M/G/1)", partial(_short_runs, replay.fcfs), in_order),
        World(
            "serves all at once (M/G/1-PS)", partial(_short_runs, replay.processor_sharing), sharing
        ),
    ]


@cache
def _ranges() -> list[tuple[float, float]]:
    """The range of the protocol at each load, so wide that all four hold with 95 %."""
    found = []
    for rate in _RATES:
        rng = Random(f"range {rate}")  # noqa: S311  no secrets
        expected = expectation(
            Protocol(OPEN_RUN_S, OPEN_RUNS),
            rate,
            _LAW,
            rng,
            simulated_runs=RANGE_RUNS,
            confidence=0.95 ** (1 / len(_RATES)),
        )
        found.append((expected.low_s, expected.high_s))
    return found


# --- study 001: three servers, exponential times --------------------------------------------

_UTILISATIONS = (0.3, 0.6, 0.8, 0.9, 0.95)


def of_study_001() -> list[World]:
    """Three servers with exponential times, at five utilisations, from an empty server."""
    return [
        World(
            f"is an M/M/{SERVERS_001} queue, asked {queries} queries a point",
            partial(_queries, queries),
            [
                *(
                    Claim(
                        f"at χ = {chi:g} the mean is within 10 % of M/M/3", _is_near(n), true=True
                    )
                    for n, chi in enumerate(_UTILISATIONS)
                ),
                Claim(
                    "it fits at 0.3 and 0.6, and is off by more than 10 % at 0.9 or 0.95",
                    lambda m: (
                        all(abs(m[n] - 1) <= NEAR for n in (0, 1))
                        and any(abs(m[n] - 1) > NEAR for n in (3, 4))
                    ),
                    true=False,
                ),
            ],
        )
        for queries in QUERIES_001
    ]


def _is_near(number: int) -> Callable[[Means], bool]:
    return lambda means: abs(means[number] - 1) <= NEAR


def _queries(count: int, rng: Random) -> Means:
    """Mean response times from an empty server over those of the formula."""
    return [_relative(chi, count, rng) for chi in _UTILISATIONS]


def _relative(chi: float, count: int, rng: Random) -> float:
    rate = chi * SERVERS_001
    services_s = [rng.expovariate(1.0) for _ in range(count)]
    found = replay.multi_server(poisson_times(rate, rng, count=count), services_s, SERVERS_001)
    return fmean(found) / open_queue.mmm(rate, 1.0, SERVERS_001).response_time_s


# --- study 003: customers without think time, six cores -------------------------------------


def of_study_003() -> list[World]:
    """Customers without think time, four runs at each number of them."""
    cores = MIXED.cores
    highest = [
        Claim(
            f"throughput is highest at {cores - 1} to {cores + 1} clients",
            lambda m: abs(CLIENTS_003[m.index(max(m))] - cores) <= 1,
            true=False,
        ),
        Claim(
            f"with {cores} clients it is within 1 % of the highest",
            lambda m: m[CLIENTS_003.index(cores)] >= 0.99 * max(m),
            true=True,
        ),
        Claim(
            "beyond, latency follows an exponential better than a line", _is_exponential, true=False
        ),
    ]
    return [World(f"has {cores} cores and exponential times", _closed, highest)]


def _closed(rng: Random) -> Means:
    """Throughput at each number of clients, mean of the runs.

    With n clients min(n, cores) are served at once; the times between completions are exponential.
    """
    return [
        fmean([_throughput(clients, rng) for _ in range(MIXED.runs)]) for clients in CLIENTS_003
    ]


def _throughput(clients: int, rng: Random) -> float:
    requests = clients * MIXED.measured
    return requests / rng.gammavariate(requests, 1 / min(clients, MIXED.cores))


def _is_exponential(throughputs: Means) -> bool:
    beyond = [clients for clients in CLIENTS_003 if clients > MIXED.cores]
    latencies = [n / x for n, x in zip(beyond, throughputs[-len(beyond) :], strict=True)]
    by_line, by_curve = line_and_exponential(beyond, latencies)
    return _misses(by_curve, latencies) < _misses(by_line, latencies)


def _misses(told: Means, seen: Means) -> float:
    return sum((one - other) ** 2 for one, other in zip(told, seen, strict=True))


# --- study 004: one client, nine requests in a transaction ------------------------------------

_STORES = ITINERARY["Single RM"], ITINERARY["Multiple RM"]
_COUNTED = tuple(count * ITINERARY_COUNTED for count in (4, 3, 1))  # queries, reservations, commits
_LONGER = _STORES[0].reserve_ms / _STORES[0].query_ms
_DEARER = (_STORES[1].commit_ms / _STORES[0].commit_ms) / (
    _STORES[1].query_ms / _STORES[0].query_ms
)


def of_study_004() -> list[World]:
    """Means over 80 transactions with one store and with several, of servers whose times vary."""
    printed = [(of.query_ms, of.reserve_ms, of.commit_ms) for of in _STORES]
    read_ms = (4 * printed[0][0] + 3 * printed[0][1]) / 7
    slower = _STORES[1].transaction_ms / _STORES[0].transaction_ms
    alike = [(read_ms, read_ms, printed[0][2])]
    alike.append((slower * read_ms, slower * read_ms, slower * printed[0][2]))
    return [
        world
        for cv in CVS_004
        for world in (
            World(
                f"takes as long as printed, times vary (cv {cv:g})",
                partial(_transactions, printed, cv),
                [
                    Claim("a reservation takes longer than a query", _is_longer(1.0), true=True),
                    Claim("stores slow commits more than queries", _is_dearer(1.0), true=True),
                ],
            ),
            World(
                f"reserves as fast as it queries, stores slow all alike, times vary (cv {cv:g})",
                partial(_transactions, alike, cv),
                [
                    Claim("a reservation takes longer than a query", _is_longer(1.0), true=False),
                    Claim(
                        f"a reservation takes {_LONGER:.2f} times as long as a query, as printed",
                        _is_longer(_LONGER),
                        true=False,
                    ),
                    Claim(
                        f"stores slow commits {_DEARER:.1f} times as much as queries, as printed",
                        _is_dearer(_DEARER),
                        true=False,
                    ),
                ],
            ),
        )
    ]


def _transactions(means_ms: Sequence[Means], cv: float, rng: Random) -> Means:
    """Means of queries, reservations and commits: first with one store, then with several.

    The mean of n gamma distributed times is gamma distributed, with cv/√n.
    """
    return [
        gamma_time_s(mean, cv / sqrt(count), rng)
        for of_stores in means_ms
        for mean, count in zip(of_stores, _COUNTED, strict=True)
    ]


def _is_longer(least: float) -> Callable[[Means], bool]:
    return lambda m: m[1] / m[0] > least


def _is_dearer(least: float) -> Callable[[Means], bool]:
    return lambda m: (m[5] / m[2]) / (m[3] / m[0]) > least
