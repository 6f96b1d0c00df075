"""Measures throughput as ratios of two loads that wrk sends in turns on the same cores.

Row 2 compares short with long chains, and row 13 (the front) says how much of its server's speed
the service keeps, and what a plain Flask service would do. There all loads are sent once in each
round: to an empty application on the same server (the limit), to a bare Flask view on gunicorn's
`gthread` worker, and to the service as it is shipped: questions, transactions, pages of blocks, the
tip, and posts. The processor time of the server for a request depends least on what other programs
do, because many threads get more of a busy processor than one loop.

Reads of row 13 come over 32 connections, because the stock worker may accept 8 in one process while
the other stays idle; posts come from 8 clients. Percentiles are those that wrk prints, with the
requests that it adds for those that it could not send in time: both sides of a ratio have them.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from random import Random
from statistics import median

from loadtests.bench.figures import (
    Bound,
    Figure,
    at_least,
    at_most,
    failures,
    rate_ratio,
    rates,
    ratio,
)
from loadtests.bench.posting import CLIENTS, bodies_of_block
from loadtests.bench.session import PAGE, SEED, Bench, Sent, newest_blocks, say
from loadtests.number_format import format_number
from loadtests.processes import ProgramFailed, Service, exchanged, running
from loadtests.questions import KINDS, in_turns, paths
from loadtests.servers.gunicorn import FLASK_THREADS, WORKERS, empty_asgi, flask_view
from loadtests.wrk import Load


def etags(service: Service, paths: Sequence[str]) -> list[str]:
    with service.connection() as connection:
        return [exchanged(connection, path)[0].headers["ETag"] for path in paths]


def short_against_long(bench: Bench) -> Iterator[Figure]:
    """Compare the throughput of a short chain with long ones, without cached answers."""
    bench.require_room()
    chain = bench.generated(1)
    for factor in bench.plan.factors:
        longer = bench.generated(factor)
        with (
            bench.service(chain, answer_cache_bytes=0) as few,
            bench.service(longer, answer_cache_bytes=0) as many,
        ):
            few_paths = paths(bench.questions(chain, few))
            many_paths = paths(bench.questions(longer, many))
            for kind in KINDS:
                on_few, on_many = bench.in_turns(
                    f"{kind} in turns on {chain.flights:,} and {longer.flights:,} flights",
                    (few, bench.script(few_paths[kind])),
                    (many, bench.script(many_paths[kind])),
                )
                what = f"{kind}, times slower with {factor} times the blocks"
                yield rate_ratio(2, what, on_few, on_many, at_most(1.2))


# --- the front -----------------------------------------------------------------------------------

CONNECTIONS = 32
CACHED_PER_KIND = 100  # questions: so few that every worker caches all answers in the first round
POSTED_BLOCK = 1

LIMIT = f"the limit: an empty ASGI application, {WORKERS} workers of uvicorn"
FLASK = f"a bare Flask view, {WORKERS} gthread workers of {FLASK_THREADS} threads"
YARDSTICKS = {LIMIT: "the limit", FLASK: "the Flask view"}
CACHED, UNCHANGED = "cached questions", "cached questions, unchanged (304)"
TRANSACTIONS = "transactions of cached blocks"
PAGES = f"first {PAGE} flights of cached blocks"
POSTS = f"posts of {CLIENTS} clients, durable"

# What has to be reached by a load: requests per second, as multiples of those of another load;
LEAST: Mapping[str, Mapping[str, Bound]] = {
    CACHED: {LIMIT: at_least(0.6), FLASK: at_least(3)},
    UNCHANGED: {CACHED: at_least(1)},
    TRANSACTIONS: {LIMIT: at_least(0.4)},
    PAGES: {LIMIT: at_least(0.4)},
}
MOST_P99 = {CACHED: at_most(1.5)}  # 99th percentile, as a multiple of that of the limit;
LEAST_PER_S = {POSTS: at_least(4000)}  # requests per second


def front(bench: Bench) -> Iterator[Figure]:
    """Measure requests per second and p99 of each load, against the limit and bare Flask."""
    with ExitStack() as stack:
        loads = _sent(bench, stack)
        say("asking everything once, not counted, so that every worker has been asked")
        for load in loads.values():
            bench.load(*load)
        rounds = bench.in_turns("everything in turns", *loads.values())
    by_load = dict(zip(loads, rounds, strict=True))
    for what in loads:
        yield from figures_of(what, by_load)


def _sent(bench: Bench, stack: ExitStack) -> dict[str, Sent]:
    """Return what is sent by each load, and to which service, which `stack` ends."""
    month, open_until_end = bench.month(), stack.enter_context
    service = open_until_end(bench.service(month))
    forgetful = open_until_end(bench.service(month, answer_cache_bytes=0))
    mixed = in_turns(bench.questions(month, service))
    cached = mixed[: CACHED_PER_KIND * len(KINDS)]
    known = etags(service, cached)
    with service.connection() as connection:  # who has an answer already is answered 304
        exchanged(connection, cached[0], headers={"If-None-Match": known[0]}, status=304)
    heights, newest = newest_blocks(service)
    count = bench.plan.questions_per_kind
    ids = Random(SEED).choices(newest, k=count)  # noqa: S311 - a load, no secrets

    def read(server: Service, paths: Sequence[str], known: Sequence[str] = ()) -> Sent:
        return server, bench.script(paths, known), CONNECTIONS

    posts = bench.posting_script(bodies_of_block(service, POSTED_BLOCK))
    return {
        LIMIT: read(open_until_end(empty_asgi(bench.log)), ["/"] * count),
        FLASK: read(open_until_end(flask_view(bench.log)), ["/"] * count),
        CACHED: read(service, cached),
        UNCHANGED: read(service, cached, known),
        "random questions, none cached": read(forgetful, mixed),
        TRANSACTIONS: read(service, [f"/transactions/{number}" for number in ids]),
        PAGES: read(service, [f"/blocks/{height}?limit={PAGE}" for height in heights]),
        "/tip": read(service, ["/tip"]),
        POSTS: (open_until_end(running(bench.empty_folder(), bench.log)), posts, CLIENTS),
    }


def figures_of(what: str, by_load: Mapping[str, Sequence[Load]]) -> Iterator[Figure]:
    """Yield the figure of a load, and, unless it is a yardstick itself, each of its ratios."""
    rounds, least, failed = by_load[what], LEAST.get(what, {}), failures(by_load[what])
    p99s_ms, cost_us, per_s = _p99s_ms(rounds), 1e6 * _cost_s(rounds), rates(rounds)
    shown = (
        f"{median(per_s):,.0f} requests/s, p99 {format_number(median(p99s_ms))} ms, "
        f"{cost_us:,.0f} us of processor time"
    )
    target, unit = LEAST_PER_S.get(what), " requests/s"
    yield Figure.judged(13, what, per_s, target, unit=unit, measured=shown, failed=failed)
    if what in YARDSTICKS:
        return
    for other, name in {**YARDSTICKS, CACHED: CACHED}.items():
        if other in YARDSTICKS or other in least:
            title = f"{what} / {name}, requests per second"
            yield rate_ratio(13, title, rounds, by_load[other], least.get(other))
    if what in MOST_P99:
        limits = by_load[LIMIT]
        limits_ms, failed = _p99s_ms(limits), failures([*rounds, *limits])
        title = f"{what} / the limit, 99th percentile of latency"
        yield ratio(13, title, p99s_ms, limits_ms, MOST_P99[what], failed)


def _p99s_ms(rounds: Sequence[Load]) -> list[float]:
    """Return the 99th percentile of each round in ms, as wrk prints it."""
    return [load.p99_ms for load in rounds]


def _cost_s(rounds: Sequence[Load]) -> float:
    """Return the server's processor time in s per request of all rounds. Raises ProgramFailed."""
    used_s = sum(load.server_s for load in rounds)
    requests = sum(load.requests for load in rounds)
    if not requests or used_s <= 0:
        raise ProgramFailed(f"{requests} requests took {used_s} s of processor time")
    return used_s / requests
