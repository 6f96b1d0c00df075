"""What the service takes: time to import (row 4), bytes on disk (row 5), time to start (row 6) and
memory (row 7).
"""

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from loadtests.chains import Chain, imported
from loadtests.figures import Figure, short, spread_of
from loadtests.machine import at_most_cores
from loadtests.processes import Memory, ProgramFailed, Service, running
from loadtests.questions import KINDS, Question, Questions, drawn, flights_of_block
from loadtests.session import LONGEST_FACTOR, SEED, Bench, load_now

LEAST_IMPORTED_PER_S = 100_000
IMPORT_CORES = 2
MOST_BYTES_A_FLIGHT = 20.0
MOST_START_S = 1.0
MOST_WORKER_BYTES = 80_000_000
MOST_SERVICE_BYTES = 256_000_000
SCANS_AT_ONCE = 8


def imports(bench: Bench) -> Iterator[Figure]:
    """Flights a second of an import into an empty folder, with everything indexed."""
    source = bench.chains.month_source
    done = []
    for number in range(1, bench.plan.repeats + 1):
        bench.say(f"importing {source.label}, {number} of {bench.plan.repeats}")
        home = Path(mkdtemp(prefix="import-", dir=bench.scratch))
        with at_most_cores(IMPORT_CORES):
            done.append(imported(source, home, bench.log))
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
    """What a flight takes on disk."""
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


def memory(bench: Bench) -> Iterator[Figure]:
    """Proportional set sizes of a service after the load of row 1 and some scans."""
    service = bench.month_service()
    questions = bench.questions(bench.chains.month(), service)
    bench.say("memory: every question, and scans at the same time")
    if 1 not in bench.plan.rows:
        for kind in KINDS:
            bench.load(service, bench.script(kind, [q.path for q in questions[kind]]))
    _scan_together(service, questions)
    found = service.memory()
    raw = {"pss_mb": [f"{one.role} {one.pss_bytes / 1e6:.1f}" for one in found], **load_now()}
    largest = max((one.pss_bytes for one in found if one.role == "worker"), default=0)
    if not largest:
        raise ProgramFailed(f"no worker found among the processes of the service: {found}")
    yield _memory_figure("largest worker", largest, MOST_WORKER_BYTES, raw)
    yield _memory_figure("all processes", _total_bytes(found), MOST_SERVICE_BYTES, raw)


def _scan_together(service: Service, questions: Questions) -> None:
    """One scan of each kind over several connections at once."""
    paths = [questions[kind][0].scan_path for kind in KINDS] * SCANS_AT_ONCE
    with ThreadPoolExecutor(SCANS_AT_ONCE) as pool:
        for _ in pool.map(service.get, paths):
            pass


def _total_bytes(found: Sequence[Memory]) -> int:
    return sum(one.pss_bytes for one in found)


def _memory_figure(what: str, pss_bytes: int, most_bytes: int, raw: dict[str, Any]) -> Figure:
    return Figure(
        7,
        f"memory, {what} (proportional set size)",
        f"{pss_bytes / 1e6:.1f} MB",
        f"at most {most_bytes // 10**6} MB",
        pss_bytes <= most_bytes,
        raw=raw,
    )
