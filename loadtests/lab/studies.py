"""Makes the tables of docs/explanation/studies.md, and reads from it what a study prints wrong.

One table explains why study 000 measured 102 s at 0.85 of L, where M/G/1 says 155 s: its protocol
is simulated, with runs of 30 minutes that begin empty. The others repeat protocols many times in
worlds. A world is a simulated server, in which each claim is known to be true or false, and a
repetition of the protocol leads to the claim or does not.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import sqrt
from random import Random
from statistics import fmean

import numpy as np

from loadtests.lab.content import Section, Table
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
from loadtests.models.estimates import wilson
from loadtests.models.protocol import expectation, simulate_run
from loadtests.models.random_times import Gamma, poisson_times
from loadtests.models.replay import Discipline
from loadtests.processes import PROJECT

PAGE = PROJECT / "docs" / "explanation" / "studies.md"
REPETITIONS = 1000
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
_RATES = [row.fraction / UNROUNDED.mean_s for row in OPEN_WORKLOADS]


def _short_runs(discipline: Discipline, rng: Random) -> Means:
    means_s = []
    for rate in _RATES:
        runs = [simulate_run(OPEN_RUN_S, rate, _LAW, rng, discipline) for _ in range(OPEN_RUNS)]
        means_s.append(fmean(run.mean_s for run in runs if run is not None))
    return means_s


def of_study_000() -> list[World]:
    """Return servers asked at four rates in 15 short runs each, which begin empty."""
    fcfs = [
        open_queue.mgm(rate, UNROUNDED.mean_s, UNROUNDED.variation).response_time_s
        for rate in _RATES
    ]
    shared = [open_queue.shared(rate, UNROUNDED.mean_s).response_time_s for rate in _RATES]
    expected = [
        expectation(
            OPEN_RUN_S,
            OPEN_RUNS,
            rate,
            _LAW,
            Random(f"range {rate}"),  # noqa: S311  no secrets
            simulated_runs=RANGE_RUNS,
            confidence=0.95 ** (1 / len(_RATES)),  # so wide that all four hold with 95 %
        )
        for rate in _RATES
    ]

    def like_mg1(means: Means) -> bool:
        by_load = zip(means, fcfs, shared, strict=True)
        return all(abs(mean - fcfs_s) < abs(mean - ps_s) for mean, fcfs_s, ps_s in by_load)

    def in_range(means: Means) -> bool:
        return all(load.covers(mean) for load, mean in zip(expected, means, strict=True))

    printed = [row.tested_s for row in OPEN_WORKLOADS]
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
    """Return three servers with exponential times, at five utilisations, which begin empty."""

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
    """Return mean response times from an empty server over those of the formula."""
    ratios = []
    for chi in UTILISATIONS_001:
        rate = chi * SERVERS_001
        services_s = [rng.expovariate(1.0) for _ in range(count)]
        arrivals_s = poisson_times(rate, rng, count=count)
        responses_s = replay.multi_server(arrivals_s, services_s, SERVERS_001)
        ratios.append(
            fmean(responses_s) / open_queue.mgm(rate, 1.0, 1.0, SERVERS_001).response_time_s
        )
    return ratios


def of_study_003() -> list[World]:
    """Return a server of customers without think time, four runs at each number of them."""
    cores = MIXED.cores
    at_cores = f"throughput is highest at {cores - 1} to {cores + 1} clients"
    near = f"throughput with {cores} clients is within 1 % of the highest"
    growth = f"beyond {cores} clients, latency follows an exponential better than a line"
    claims: list[Claim] = [
        (at_cores, False, lambda m: abs(CLIENTS_003[m.index(max(m))] - cores) <= 1),
        (near, True, lambda m: m[CLIENTS_003.index(cores)] >= 0.99 * max(m)),
        (growth, False, _is_exponential),
    ]
    return [(f"has {cores} cores and exponential times", _closed, claims)]


def _closed(rng: Random) -> Means:
    """Return the throughput at each number of clients, the mean of the runs.

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
    return bool(np.sum((by_curve - latencies) ** 2) < np.sum((by_line - latencies) ** 2))


def of_study_004() -> list[World]:
    """Return servers whose times vary, with the means of 80 transactions on one and more stores."""
    single, several = ITINERARY["Single RM"], ITINERARY["Multiple RM"]
    printed = [
        *(single.query_ms, single.reserve_ms, single.commit_ms),
        *(several.query_ms, several.reserve_ms, several.commit_ms),
    ]
    read_ms = (4 * single.query_ms + 3 * single.reserve_ms) / 7
    slower = several.transaction_ms / single.transaction_ms
    fast = [read_ms, read_ms, single.commit_ms]
    alike = [*fast, *(slower * mean_ms for mean_ms in fast)]

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
    """Return means of queries, reservations and commits: with one store, then with several.

    The mean of n gamma distributed times is gamma distributed, with cv/√n.
    """
    return [
        Gamma(mean, cv / sqrt(count)).draw(rng)
        for mean, count in zip(means_ms, COUNTED_004 * 2, strict=True)
    ]


# --- the page ------------------------------------------------------------------------------------

STUDIES: Mapping[str, Callable[[], Sequence[World]]] = {
    "000": of_study_000,
    "001": of_study_001,
    "003": of_study_003,
    "004": of_study_004,
}
Tried = tuple[str, str, bool, float]  # world, claim, is it true there, share of repetitions


def tried(study: str, repetitions: int) -> list[Tried]:
    """Return how often every claim was reached in every world of a study."""
    outcomes = []
    for world, repeat, claims in STUDIES[study]():
        rng = Random(f"1 {study} {world}")  # noqa: S311  no secrets
        results = [repeat(rng) for _ in range(repetitions)]
        outcomes += [
            (world, words, is_true, sum(map(holds, results)) / repetitions)
            for words, is_true, holds in claims
        ]
    return outcomes


def verdict(share: float, *, is_true: bool) -> str:
    """Return what the share of repetitions that led to a claim says about the protocol."""
    if is_true:
        return "true" if share >= 0.9 else "true, but often missed"
    return "false" if share <= 0.1 else "false, but often reached"


def explained(simulated_runs: int) -> list[tuple[float, ...]]:
    """Return what study 000 should have measured at each of its loads.

    The share of L and the requests of a run; in s the mean by M/G/1, what the empty start and the
    equal weight of runs make of it, what is expected, the 95 % range of 15 runs, what is printed.
    """
    rows: list[tuple[float, ...]] = []
    for printed in OPEN_WORKLOADS:
        rate_per_s = printed.fraction / UNROUNDED.mean_s
        rng = Random(f"1 explained {printed.fraction}")  # noqa: S311  no secrets
        how = OPEN_RUN_S, OPEN_RUNS, rate_per_s, _LAW, rng
        runs = expectation(*how, simulated_runs=simulated_runs)
        formula = open_queue.mgm(rate_per_s, UNROUNDED.mean_s, UNROUNDED.variation)
        formula_s = formula.response_time_s
        causes_s = runs.pooled_s - formula_s, runs.mean_s - runs.pooled_s
        times_s = formula_s, *causes_s, runs.mean_s, runs.low_s, runs.high_s, printed.tested_s
        rows.append((printed.fraction, runs.arrivals, *times_s))
    return rows


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


_EXPLAINED = (
    *("Share of L", "Requests a run", "M/G/1 / s", "Start from empty / s", "Equal weights / s"),
    *("Expected / s", "95 % range / s", "Printed / s"),
)


def _explained_table(simulated_runs: int) -> str:
    rows = []
    for fraction, arrivals, *times_s in explained(simulated_runs):
        formula, empty, weights, expected, low, high, printed = (f"{s:.1f}" for s in times_s)
        ends = expected, f"{low} to {high}", printed
        rows.append([f"{fraction:g}", f"{arrivals:.0f}", formula, empty, weights, *ends])
    return _table(_EXPLAINED, rows)


def _repeated_table(study: str, repetitions: int) -> str:
    rows = []
    for world, words, is_true, share in tried(study, repetitions):
        low, high = (100 * end for end in wilson(share * repetitions, repetitions))
        size = f"{100 * share:.1f} ({low:.1f} to {high:.1f})"
        rows.append([world, words, size, verdict(share, is_true=is_true)])
    return _table(("If the server", "the claim", "is reached / %", "and is"), rows)


def regenerated(page: str) -> str:
    """Return the page with its tables rebuilt, each time the same."""
    tables = {"explained": _explained_table(20 * REPETITIONS)}
    tables |= {f"repeated {name}": _repeated_table(name, REPETITIONS) for name in STUDIES}
    for name, table in tables.items():
        block = rf"<!-- {name} -->\n.*?<!-- end -->"
        page = re.sub(block, f"<!-- {name} -->\n{table}\n<!-- end -->", page, flags=re.DOTALL)
    return page


def errata_section(study: str) -> Section:
    parts = re.split(r"^#{2,3} (.*)\n", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    (text,) = (
        part
        for title, part in zip(parts[1::2], parts[2::2], strict=True)
        if title.startswith(f"Study {study}: ") and "| Where |" in part
    )
    lines = (line for line in text.splitlines() if line.startswith("|"))
    columns, _, *rows = (line.strip("| ").split(" | ") for line in lines)
    table = Table(f"Errata of study {study}", columns, rows, is_folded=True)
    return Section("Errata", parts=[table])
