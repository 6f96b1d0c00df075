"""Repeats a study's protocol many times in simulation, and counts how often its conclusion holds.

A conclusion of one experiment is worth little if the same protocol, on a server of which the truth
is known, would often have led to another, or would have led to it whatever is true. So each claim
is tried in worlds: servers that behave exactly as a model says, measured as the study measured. A
claim is true or false in a world, and a repetition of the protocol may lead to it or not.

Study 002 prints neither how its times spread nor how often it measured, so its protocol cannot be
repeated.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import sqrt
from random import Random
from statistics import fmean
from textwrap import fill

import numpy as np

from loadtests.grouping import grouped
from loadtests.lab.content import Section, Table, capital, times
from loadtests.lab.published import (
    ITINERARY,
    ITINERARY_COUNTED,
    ITINERARY_ITERATIONS,
    MIXED,
    OPEN_RUN_S,
    OPEN_RUNS,
    OPEN_WORKLOADS,
    UNROUNDED,
)
from loadtests.lab.repeated import Estimate, measured
from loadtests.lab.report.drawing import Axis, Source, figure
from loadtests.lab.report.page import plain_page
from loadtests.models import open_queue, replay
from loadtests.models.estimates import wilson
from loadtests.models.protocol import Protocol, expectation, simulate_run
from loadtests.models.random_times import Gamma, gamma_time_s, poisson_times
from loadtests.models.replay import Discipline

REPETITIONS = 1000
LINE = 30  # characters of a claim beside its bar
RANGE_RUNS = 4000  # simulated for the range to which a claim about study 000 compares
SERVERS_001, QUERIES_001, UTILISATIONS_001 = 3, (100, 1000), (0.3, 0.6, 0.8, 0.9, 0.95)
CLIENTS_003 = (*range(1, 13), 18, 24, 36, 48, 60)
CVS_004 = (1.0, 3.0)
COUNTED_004 = [count * ITINERARY_COUNTED for count in (4, 3, 1)]  # queries, reservations, commits

Means = Sequence[float]
# what a study could say, whether it is so, and whether the means of a repetition lead to it
Claim = tuple[str, bool, Callable[[Means], bool]]
# a server and a protocol: its name, how one repetition goes, and the claims that are tried on it
World = tuple[str, Callable[[Random], Means], Sequence[Claim]]

_LAW = Gamma(UNROUNDED.mean_s, UNROUNDED.variation)
_RATES = [one.fraction / UNROUNDED.mean_s for one in OPEN_WORKLOADS]


def _short_runs(discipline: Discipline, rng: Random) -> Means:
    means_s = []
    for rate in _RATES:
        runs = [simulate_run(OPEN_RUN_S, rate, _LAW, rng, discipline) for _ in range(OPEN_RUNS)]
        means_s.append(fmean(run.mean_s for run in runs if run is not None))
    return means_s


def of_study_000() -> list[World]:
    """One server, asked at four rates in 15 short runs each, which begin with an empty server."""
    fcfs = [
        open_queue.mg1(rate, UNROUNDED.mean_s, UNROUNDED.variance_s2).response_time_s
        for rate in _RATES
    ]
    shared = [open_queue.mg1_ps(rate, UNROUNDED.mean_s).response_time_s for rate in _RATES]
    expected = [
        expectation(
            Protocol(OPEN_RUN_S, OPEN_RUNS),
            rate,
            _LAW,
            Random(f"range {rate}"),  # noqa: S311  no secrets
            simulated_runs=RANGE_RUNS,
            confidence=0.95 ** (1 / len(_RATES)),  # so wide that all four hold with 95 %
        )
        for rate in _RATES
    ]

    def like_mg1(means: Means) -> bool:
        both = zip(means, fcfs, shared, strict=True)
        return all(abs(mean - one) < abs(mean - other) for mean, one, other in both)

    def in_range(means: Means) -> bool:
        return all(of.covers(mean) for of, mean in zip(expected, means, strict=True))

    printed = [one.tested_s for one in OPEN_WORKLOADS]
    in_order = [
        ("at 0.85 its mean is below M/G/1", False, _below(fcfs, 3)),
        ("at 0.8 and at 0.85 its mean is below M/G/1", False, _below(fcfs, 2, 3)),
        ("at 0.85 its mean is as far below M/G/1 as the study's", False, _below(printed, 3)),
        ("each mean is nearer to M/G/1 than to M/G/1-PS", True, like_mg1),
        ("each mean is in the range that simulation gives such runs", True, in_range),
    ]
    sharing = [
        ("at 0.85 its mean is below M/G/1-PS", False, _below(shared, 3)),
        ("at 0.85 its mean is below even M/G/1", False, _below(fcfs, 3)),
        ("each mean is nearer to M/G/1 than to M/G/1-PS", False, like_mg1),
    ]
    return [
        ("serves one at a time (M/G/1)", partial(_short_runs, replay.fcfs), in_order),
        ("serves all at once (M/G/1-PS)", partial(_short_runs, replay.processor_sharing), sharing),
    ]


def _below(limits: Means, *loads: int) -> Callable[[Means], bool]:
    return lambda means: all(means[load] < limits[load] for load in loads)


def of_study_001() -> list[World]:
    """Three servers with exponential times, at five utilisations, from an empty server."""

    def near(numbers: Sequence[int], means: Means) -> bool:
        return all(abs(means[number] - 1) <= 0.1 for number in numbers)

    claims: list[Claim] = [
        (f"at χ = {chi:g} the mean is within 10 % of M/M/3", True, partial(near, [n]))
        for n, chi in enumerate(UTILISATIONS_001)
    ]
    off = "it fits at 0.3 and 0.6, and is off by more than 10 % at 0.9 or 0.95"
    claims.append((off, False, lambda m: near([0, 1], m) and not near([3, 4], m)))
    name = f"is an M/M/{SERVERS_001} queue, asked {{}} queries a point"
    return [(name.format(n), partial(_queries, n), claims) for n in QUERIES_001]


def _queries(count: int, rng: Random) -> Means:
    """Mean response times from an empty server over those of the formula."""
    ratios = []
    for chi in UTILISATIONS_001:
        rate = chi * SERVERS_001
        services_s = [rng.expovariate(1.0) for _ in range(count)]
        found = replay.multi_server(poisson_times(rate, rng, count=count), services_s, SERVERS_001)
        ratios.append(fmean(found) / open_queue.mmm(rate, 1.0, SERVERS_001).response_time_s)
    return ratios


def of_study_003() -> list[World]:
    """Customers without think time, four runs at each number of them."""
    cores = MIXED.cores
    at_cores = f"throughput is highest at {cores - 1} to {cores + 1} clients"
    near = f"with {cores} clients it is within 1 % of the highest"
    claims: list[Claim] = [
        (at_cores, False, lambda m: abs(CLIENTS_003[m.index(max(m))] - cores) <= 1),
        (near, True, lambda m: m[CLIENTS_003.index(cores)] >= 0.99 * max(m)),
        ("beyond, latency follows an exponential better than a line", False, _is_exponential),
    ]
    return [(f"has {cores} cores and exponential times", _closed, claims)]


def _closed(rng: Random) -> Means:
    """Throughput at each number of clients, mean of the runs.

    With n clients min(n, cores) are served at once; the times between completions are exponential.
    """
    means_per_s = []
    for clients in CLIENTS_003:
        requests, between_s = clients * MIXED.measured, 1 / min(clients, MIXED.cores)
        took_s = [rng.gammavariate(requests, between_s) for _ in range(MIXED.runs)]
        means_per_s.append(fmean(requests / run_s for run_s in took_s))
    return means_per_s


def _is_exponential(throughputs: Means) -> bool:
    beyond = np.array([clients for clients in CLIENTS_003 if clients > MIXED.cores])
    latencies = beyond / np.array(throughputs[-len(beyond) :])
    by_line = np.polyval(np.polyfit(beyond, latencies, 1), beyond)
    by_curve = np.exp(np.polyval(np.polyfit(beyond, np.log(latencies), 1), beyond))
    misses = [np.sum((told - latencies) ** 2) for told in (by_curve, by_line)]
    return bool(misses[0] < misses[1])


def of_study_004() -> list[World]:
    """Means over 80 transactions with one store and with several, of servers whose times vary."""
    one, several = ITINERARY["Single RM"], ITINERARY["Multiple RM"]
    printed = [mean for of in (one, several) for mean in (of.query_ms, of.reserve_ms, of.commit_ms)]
    read_ms = (4 * one.query_ms + 3 * one.reserve_ms) / 7
    slower = several.transaction_ms / one.transaction_ms
    alike = [
        slowed * mean for slowed in (1.0, slower) for mean in (read_ms, read_ms, one.commit_ms)
    ]

    def longer(means: Means) -> float:
        return means[1] / means[0]

    def dearer(means: Means) -> float:
        return (means[5] / means[2]) / (means[3] / means[0])

    is_longer, is_dearer = longer(printed), dearer(printed)
    so: list[Claim] = [
        ("a reservation takes longer than a query", True, lambda m: longer(m) > 1),
        ("stores slow commits more than queries", True, lambda m: dearer(m) > 1),
    ]
    times_longer = f"a reservation takes {is_longer:.2f} times as long as a query, as printed"
    times_dearer = f"stores slow commits {is_dearer:.1f} times as much as queries, as printed"
    not_so: list[Claim] = [
        ("a reservation takes longer than a query", False, lambda m: longer(m) > 1),
        (times_longer, False, lambda m: longer(m) > is_longer),
        (times_dearer, False, lambda m: dearer(m) > is_dearer),
    ]
    return [
        (f"{what}, times vary (cv {cv:g})", partial(_transactions, means_ms, cv), claims)
        for cv in CVS_004
        for what, means_ms, claims in (
            ("takes as long as printed", printed, so),
            ("reserves as fast as it queries, stores slow all alike", alike, not_so),
        )
    ]


def _transactions(means_ms: Means, cv: float, rng: Random) -> Means:
    """Means of queries, reservations and commits: first with one store, then with several.

    The mean of n gamma distributed times is gamma distributed, with cv/√n.
    """
    return [
        gamma_time_s(mean, cv / sqrt(count), rng)
        for mean, count in zip(means_ms, COUNTED_004 * 2, strict=True)
    ]


# --- how often claims hold --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Study:
    """A study. concluded: what it says. protocol: how it measured, with what had to be assumed."""

    concluded: str
    protocol: str
    worlds: Callable[[], Sequence[World]]


STUDIES: Mapping[str, Study] = {
    "000": Study(
        "“At high load, the mean response time of our application stands out with respect to the "
        "one obtained by considering the M/G/1 queue.”",
        "Fifteen runs of 30 minutes at 0.3, 0.5, 0.8 and 0.85 of L, each from an empty server; "
        "service times as the study measured them. It drew the conclusion from one such mean a "
        "load.",
        of_study_000,
    ),
    "001": Study(
        "“The theoretical predictions line up almost perfectly with the data for larger "
        "inter-arrival times. Once the utilization gets nearer to one, the results deteriorate.”",
        "One run a point against an empty server with three threads. The number of queries is not "
        "printed; 100 and 1000 are tried.",
        of_study_001,
    ),
    "003": Study(
        "“The maximum throughput was reached when the number of clients was close/equal to the "
        "number of cores.” “The latency increased exponentially with the number of clients.”",
        "Four runs of 500 requests a client, without think time. The numbers of clients are not "
        f"all printed; tried: {', '.join(map(str, CLIENTS_003))}. Where all cores are busy, "
        "throughput stays as it is, and latency is clients over throughput.",
        of_study_003,
    ),
    "004": Study(
        "“In commit requests, the cost difference is relatively large, since in the multiple RM "
        "test, Middleware needs to communicate with 2 more RMs.” A reservation took 0.12 ms longer "
        "than a query, which the study puts down to what it writes.",
        f"One client, and means over the last {ITINERARY_COUNTED} of {ITINERARY_ITERATIONS} "
        "transactions of 4 queries, 3 reservations and a commit. How much times vary is not "
        "printed (there were “some spikes”); tried: cv "
        f"{' and '.join(f'{cv:g}' for cv in CVS_004)}.",
        of_study_004,
    ),
}


@dataclass(frozen=True, slots=True)
class Tried:
    """A claim in a world. share: of the repetitions that led to it, with a 95 % interval."""

    world: str
    words: str
    is_true: bool
    share: Estimate

    @property
    def sentence(self) -> str:
        """The claim with its share."""
        share = f"{100 * self.share.value:.1f} % of the repetitions"
        return f"{capital(self.words)}: so said {share}. It is {self.told}."

    @property
    def told(self) -> str:
        """What the share says about the protocol."""
        if self.is_true:
            return "true" if self.share.value >= 0.9 else "true, and the protocol often misses it"
        return "false" if self.share.value <= 0.1 else "false, and the protocol often says it"


_BARS: Mapping[bool, tuple[str, Source]] = {
    True: ("true here", "ours"),
    False: ("false here", "study"),
}


def tried(study: str, repetitions: int = REPETITIONS, seed: int = 1) -> list[Tried]:
    """Every claim in every world of a study."""
    found = []
    for world, repeat, claims in STUDIES[study].worlds():
        rng = Random(f"{seed} {study} {world}")  # noqa: S311  no secrets
        results = [repeat(rng) for _ in range(repetitions)]
        for words, is_true, holds in claims:
            held = sum(map(holds, results))
            share = Estimate(held / repetitions, *wilson(held, repetitions))
            found.append(Tried(world, words, is_true, share))
    return found


def page(study: str, repetitions: int = REPETITIONS, seed: int = 1) -> str:
    """The page about a study, which is the same for the same seed."""
    of, found = STUDIES[study], tried(study, repetitions, seed)
    repeated = (
        f"The protocol was repeated {repetitions:,} times on simulated servers of which the truth "
        "is known. A claim that is false there should come up seldom, and one that is true often."
    )
    sections = [_section(*each) for each in grouped(found, lambda one: one.world).items()]
    return plain_page(
        f"Study {study}: could it have concluded so?",
        [of.concluded, of.protocol, repeated],
        sections,
    )


def _section(world: str, found: Sequence[Tried]) -> Section:
    title = f"If the server {world}"
    rows = [
        (
            one.words,
            *(times(100, share) for share in (one.share.value, one.share.low, one.share.high)),
            one.told,
        )
        for one in found
    ]
    columns = ("Claim", "Came up / %", "from", "to", "In this world it is")
    table = Table(title, columns, rows)
    claims = [fill(one.words, LINE) for one in found]
    series = []
    for is_true, (name, source) in _BARS.items():
        shares = [one.share if one.is_true is is_true else None for one in found]
        if any(shares):
            series.append(measured(name, source, claims, shares, factor=100, shape="rows"))
    told = f"Repetitions of the protocol that lead to each claim, if the server {world}."
    said = [one.sentence for one in found]
    x = Axis("repetitions / %", limits=(0, 100))
    return Section(title, said, [figure("Claims", told, x, Axis(""), series, table)])
