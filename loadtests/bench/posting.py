"""How fast flights are accepted over HTTP (row 9), each answered when it is on the disk.

Real flights are read from the month's service and posted to new chains: first in batches by one
client; then one by one, by one client and by eight, whose posts share the syncs of the disk. The
latter is done on this disk and, where strace works, on one that takes as long to sync as a Pi's
(see `slow_disk`).
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from time import perf_counter, sleep

from loadtests import wrk
from loadtests.bench.figures import Figure, pairwise, ratio_figure, spread_of
from loadtests.bench.session import Bench, load_now
from loadtests.bench.slow_disk import SYNC_MS, obstacle, slowed
from loadtests.processes import ProgramFailed, Service, exchanged, running
from loadtests.questions import flights_of_block
from loadtests.scenarios import sent_form

BATCH_PATH = "/transactions/batch"
BATCH_BLOCKS = 5
BATCHES = 12
LEAST_BATCHED_PER_S = 20_000
LEAST_TIMES_ONE_CLIENT = 3.0
LEAST_TIMES_ONE_CLIENT_IF_SLOW = 6.0
CLIENTS = 8


@dataclass(frozen=True, slots=True)
class _Disk:
    """A disk to post to. prefix: as in `running`. least_times: target of 8 clients over one."""

    name: str
    least_times: float
    prefix: tuple[str, ...] = ()


def posts(bench: Bench) -> Iterator[Figure]:
    """Posts batches, then single flights by one and by eight clients."""
    service = bench.month_service()
    height: int = service.get("/tip")["height"]
    blocks = [bodies_of_block(service, 1 + i % height) for i in range(BATCHES * BATCH_BLOCKS)]
    bench.close()
    yield _batches(bench, blocks)
    yield from _one_by_one(bench, blocks[0])


def bodies_of_block(service: Service, height: int) -> list[bytes]:
    """The flights of a block, each as JSON in ASCII."""
    return [sent_form(flight).encode() for flight in flights_of_block(service, height)]


def _batches(bench: Bench, blocks: Sequence[Sequence[bytes]]) -> Figure:
    rates: list[float] = []
    for _ in range(bench.plan.repeats):
        bench.say("posting batches to a new chain")
        with running(bench.empty_folder(), bench.log) as service:
            rates.append(_batch_rate(service, blocks))
    spread = spread_of(rates)
    return Figure(
        9,
        f"flights per second, in batches of {BATCH_BLOCKS * len(blocks[0]):,}, one client",
        f"{spread.median:,.0f}, best {spread.highest:,.0f}",
        f"at least {LEAST_BATCHED_PER_S:,}",
        spread.median >= LEAST_BATCHED_PER_S,
        spread.is_noisy,
        {"flights_per_s": rates, **load_now()},
    )


def _batch_rate(service: Service, blocks: Sequence[Sequence[bytes]]) -> float:
    batches = [
        b"\n".join(flight for block in blocks[at : at + BATCH_BLOCKS] for flight in block)
        for at in range(0, len(blocks), BATCH_BLOCKS)
    ]
    flights = sum(map(len, blocks))
    with service.connection() as connection:
        start_s = perf_counter()
        for batch in batches:
            post_batch(connection, batch)
        return flights / (perf_counter() - start_s)


def post_batch(connection: HTTPConnection, batch: bytes, within_s: float = 0) -> None:
    """Post flights as JSON lines. Raises ProgramFailed unless they are accepted.

    within_s: for so long it is posted again if the service has no room for it yet.
    """
    until_s = perf_counter() + within_s
    while True:
        kind = {"Content-Type": "application/x-ndjson"}
        response, body = exchanged(connection, BATCH_PATH, batch, kind)
        if response.status != 503 or perf_counter() > until_s:
            break
        sleep(float(response.headers.get("Retry-After", 1)))
    if response.status != 202:
        raise ProgramFailed(f"POST {BATCH_PATH} was answered {response.status}: {body[:300]!r}")


def _one_by_one(bench: Bench, flights: Sequence[bytes]) -> Iterator[Figure]:
    script = wrk.write_posting_script(bench.scratch / "post.lua", "/transactions", flights)
    disks = [_Disk("on this disk", LEAST_TIMES_ONE_CLIENT)]
    slow = slowed(SYNC_MS)
    if (reason := obstacle(slow)) is None:
        name = f"with {SYNC_MS} ms added to each sync by strace"
        disks.append(_Disk(name, LEAST_TIMES_ONE_CLIENT_IF_SLOW, tuple(slow)))
    else:
        bench.say(f"no slower disk is tried: {reason}")
    with ExitStack() as stack:
        services = {
            disk: stack.enter_context(running(bench.empty_folder(), bench.log, prefix=disk.prefix))
            for disk in disks
        }
        loads = _in_turns(bench, services, script)
    for disk, (alone, together) in loads.items():
        yield _against_one(disk, alone, together)


def _in_turns(
    bench: Bench, services: Mapping[_Disk, Service], script: Path
) -> Mapping[_Disk, tuple[list[wrk.Load], list[wrk.Load]]]:
    """The rounds of one client and those of many together, by disk."""
    loads: dict[_Disk, tuple[list[wrk.Load], list[wrk.Load]]] = {d: ([], []) for d in services}
    for service in services.values():
        bench.load(service, script, CLIENTS)  # not counted: it starts every thread
    for _ in range(bench.plan.rounds):
        for disk, service in services.items():
            bench.say(f"posting one by one, 1 client and {CLIENTS} in turns, {disk.name}")
            loads[disk][0].append(bench.load(service, script, 1))
            loads[disk][1].append(bench.load(service, script, CLIENTS))
    return loads


def _against_one(disk: _Disk, alone: list[wrk.Load], together: list[wrk.Load]) -> Figure:
    one_per_s, eight_per_s = ([load.requests_per_s for load in of] for of in (alone, together))
    raw = {
        "one_per_s": one_per_s,
        "eight_per_s": eight_per_s,
        "one_p50_ms": [load.p50_ms for load in alone],
        "eight_p50_ms": [load.p50_ms for load in together],
        **load_now(),
    }
    return ratio_figure(
        9,
        f"posts per second of {CLIENTS} clients / of one, {disk.name}",
        pairwise(eight_per_s, one_per_s),
        raw,
        least=disk.least_times,
        failed=sum(load.failed for load in alone + together),
    )
