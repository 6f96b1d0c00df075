"""What the service needs: import (row 4), disk (row 5), start (row 6), verify (row 12)."""

import os
from collections.abc import Iterator

from loadtests.bench.figures import Figure, short, spread_of
from loadtests.bench.session import LONGEST_FACTOR, SEED, Bench, load_now
from loadtests.chains import Chain, imported
from loadtests.machine import at_most_cores
from loadtests.processes import backend, running
from loadtests.questions import KINDS, Question, drawn, flights_of_block

LEAST_IMPORTED_PER_S = 100_000
IMPORT_CORES = VERIFY_CORES = 2
MOST_BYTES_A_FLIGHT = 20.0
MOST_START_S = 1.0
MOST_VERIFY_S = 15.0


def imports(bench: Bench) -> Iterator[Figure]:
    """Flights per second of an import into an empty folder, with everything indexed."""
    source = bench.chains.month_source
    done = []
    for number in range(1, bench.plan.repeats + 1):
        bench.say(f"importing {source.label}, {number} of {bench.plan.repeats}")
        with at_most_cores(IMPORT_CORES):
            done.append(imported(source, bench.empty_folder(), bench.log))
    walls_s = [chain.import_wall_s for chain in done]
    rates = spread_of(chain.flights / chain.import_wall_s for chain in done)
    yield Figure(
        4,
        f"import of {source.label}, flights per second",
        f"{short(rates.median)}, best {short(rates.highest)}",
        f"at least {LEAST_IMPORTED_PER_S:,}",
        rates.median >= LEAST_IMPORTED_PER_S,
        rates.is_noisy,
        {
            "flights": done[0].flights,
            "wall_s": walls_s,
            "cpu_s": [chain.import_cpu_s for chain in done],
            "cores": min(IMPORT_CORES, len(os.sched_getaffinity(0))),
            **load_now(),
        },
    )


def bytes_on_disk(bench: Bench) -> Iterator[Figure]:
    """Bytes on disk per flight."""
    chain = bench.chains.month()
    per_flight = chain.block_bytes / chain.flights
    yield Figure(
        5,
        "chain on disk, bytes a flight",
        short(per_flight),
        f"at most {MOST_BYTES_A_FLIGHT:g}",
        per_flight <= MOST_BYTES_A_FLIGHT,
        raw={"flights": chain.flights, "block_bytes": chain.block_bytes},
    )
    index = f"{short(chain.index_bytes / chain.flights)} ({chain.index_bytes / 1e6:.1f} MB)"
    yield Figure(5, "index on disk, bytes a flight", index, raw={"index_bytes": chain.index_bytes})


def verifies(bench: Bench) -> Iterator[Figure]:
    """Seconds that `verify` takes to check every block of the month, and its index."""
    chain = bench.chains.month()
    runs = []
    for number in range(1, bench.plan.repeats + 1):
        bench.say(f"verifying {chain.label}, {number} of {bench.plan.repeats}")
        with at_most_cores(VERIFY_CORES):
            runs.append(backend(chain.folder, "verify", log=bench.log)[1])
    walls_s = spread_of(spent.wall_s for spent in runs)
    yield Figure(
        12,
        f"verify of {chain.label} with its index",
        f"{walls_s} s",
        f"at most {MOST_VERIFY_S:g} s",
        walls_s.median <= MOST_VERIFY_S,
        walls_s.is_noisy,
        {
            "flights": chain.flights,
            "wall_s": [spent.wall_s for spent in runs],
            "cpu_s": [spent.cpu_s for spent in runs],
            "cores": min(VERIFY_CORES, len(os.sched_getaffinity(0))),
            **load_now(),
        },
    )


def starts(bench: Bench) -> Iterator[Figure]:
    """Seconds from the start of a service to its first answer to a question, chains in turns."""
    chains = _chains_to_start(bench)
    paths = [_first_question(bench, chain).path for chain in chains]
    rounds = []
    for number in range(1, bench.plan.repeats + 1):
        bench.say(f"starting on {len(chains)} chains in turns, {number} of {bench.plan.repeats}")
        rounds.append([_start_s(bench, *pair) for pair in zip(chains, paths, strict=True)])
    for chain, times_s in zip(chains, zip(*rounds, strict=True), strict=True):
        spread = spread_of(times_s)
        yield Figure(
            6,
            f"start to first answer, {chain.label}",
            f"{spread} s",
            f"under {MOST_START_S:g} s",
            spread.median < MOST_START_S,
            spread.is_noisy,
            {"first_answer_s": times_s, **load_now()},
        )


def _chains_to_start(bench: Bench) -> list[Chain]:
    factors = [*bench.plan.factors]
    if LONGEST_FACTOR not in factors and bench.chains.has_generated(LONGEST_FACTOR):
        factors.append(LONGEST_FACTOR)
    for factor in factors:
        bench.chains.require_room(factor)
    return [bench.chains.month(), *map(bench.chains.generated, factors)]


def _first_question(bench: Bench, chain: Chain) -> Question:
    with bench.service(chain) as service:
        return drawn(flights_of_block(service, 1), 1, SEED)[KINDS[0]][0]


def _start_s(bench: Bench, chain: Chain, path: str) -> float:
    with running(chain.folder, bench.log, asking=path) as service:
        return service.first_answer_s
