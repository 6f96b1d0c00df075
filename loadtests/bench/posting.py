"""How fast flights are accepted over HTTP (row 9), each answered when it is on the disk.

Real flights are read from the month's service and posted to new chains: first in batches by one
client; then one by one, by one client and by eight, whose posts share the syncs of the disk. The
latter is done on this disk and, where strace works, on one that takes as long to sync as a Pi's
(see `slow_disk`).
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from http.client import HTTPConnection
from time import perf_counter, sleep

from loadtests import wrk
from loadtests.bench.figures import Figure, rate_ratio_figure, rates, spread_of
from loadtests.bench.session import Bench, load_now
from loadtests.bench.slow_disk import SYNC_MS, obstacle, slowed
from loadtests.processes import ProgramFailed, Service, exchanged, running
from loadtests.questions import flights_of_block
from loadtests.scenarios import sent_form
from loadtests.wrk import Load

BATCH_PATH = "/transactions/batch"
BATCH_BLOCKS = 5
BATCHES = 12
LEAST_BATCHED_PER_S = 20_000
LEAST_TIMES_ONE_CLIENT = 3.0
LEAST_TIMES_ONE_CLIENT_IF_SLOW = 6.0
CLIENTS = 8


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
    disks: dict[str, tuple[float, Sequence[str]]] = {"on this disk": (LEAST_TIMES_ONE_CLIENT, ())}
    slow = slowed(SYNC_MS)
    if (reason := obstacle(slow)) is None:
        name = f"with {SYNC_MS} ms added to each sync by strace"
        disks[name] = LEAST_TIMES_ONE_CLIENT_IF_SLOW, slow
    else:
        bench.say(f"no slower disk is tried: {reason}")
    with ExitStack() as stack:
        services = [
            stack.enter_context(running(bench.empty_folder(), bench.log, prefix=prefix))
            for _, prefix in disks.values()
        ]
        for service in services:
            bench.load(service, script, CLIENTS)  # not counted: it starts every thread
        loads = bench.in_turns(
            f"posting one by one, 1 client and {CLIENTS} in turns, {' and '.join(disks)}",
            *((service, script, clients) for service in services for clients in (1, CLIENTS)),
        )
    for (name, (least, _)), *of_disk in zip(disks.items(), loads[::2], loads[1::2], strict=True):
        yield _against_one(name, least, *of_disk)


def _against_one(disk: str, least: float, alone: list[Load], together: list[Load]) -> Figure:
    raw = {
        "one_per_s": rates(alone),
        "eight_per_s": rates(together),
        "one_p50_ms": [load.p50_ms for load in alone],
        "eight_p50_ms": [load.p50_ms for load in together],
        **load_now(),
    }
    what = f"posts per second of {CLIENTS} clients / of one, {disk}"
    return rate_ratio_figure(9, what, (together, alone), raw, least=least)
