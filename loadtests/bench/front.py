"""How much of its server's speed the front keeps, and what a plain Flask service would do (row 13).

In each round wrk sends all loads once, in turns, on the same cores: to an empty application on the
same server (the limit), to a bare Flask view on gunicorn's `gthread` worker, and to the service as
it is shipped: questions, transactions, pages of blocks, the tip, and posts. A ratio compares two
loads of the same round. On a machine that does much else the ratio of the best loads of all rounds
tells more; it is among the details. So is the processor time that the server's processes spend on a
request. It depends least on what other programs do, because many threads get more of a busy
processor than one loop.

Reads come over 32 connections, because the stock worker may accept 8 in one process while the other
stays idle; posts come from 8 clients. The 99th percentiles are those of the requests that were
sent, without those that wrk adds for requests that it could not send in time.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import median

from loadtests import wrk
from loadtests.bench.figures import (
    Figure,
    failures,
    pairwise,
    rate_ratio_figure,
    rates,
    ratio_figure,
    short,
    spread_of,
    with_failures,
)
from loadtests.bench.posting import CLIENTS, bodies_of_block
from loadtests.bench.session import SEED, Bench, load_now, newest_blocks
from loadtests.bench.throughput import PAGE, etags
from loadtests.processes import ProgramFailed, Service, exchanged, running
from loadtests.questions import Questions, in_turns
from loadtests.servers.gunicorn import FLASK_THREADS, WORKERS, empty_asgi, flask_view
from loadtests.wrk import Load

ROW = 13
CONNECTIONS = 32
KEPT_PER_KIND = 100  # questions: so few that every worker keeps all answers after the first round
POSTED_BLOCK = 1

LIMIT = f"the limit: an empty ASGI application, {WORKERS} asgi workers"
FLASK = f"a bare Flask view, {WORKERS} gthread workers of {FLASK_THREADS} threads"
KEPT, UNCHANGED = "kept questions", "kept questions, unchanged (304)"


@dataclass(frozen=True, slots=True)
class Target:
    """What has to be reached; None where there is no target.

    of_limit, of_flask, of_kept: least requests per second, in multiples of those of the limit, the
    bare Flask view, and kept questions. limit_p99: largest 99th percentile, in multiples of that of
    the limit. per_s: least requests per second.
    """

    of_limit: float | None = None
    of_flask: float | None = None
    of_kept: float | None = None
    limit_p99: float | None = None
    per_s: float | None = None


NO_TARGET = Target()


@dataclass(frozen=True, slots=True)
class Asked:
    """A load that is sent in every round. connections: how many clients send it at a time."""

    what: str
    service: Service
    script: Path
    target: Target = NO_TARGET
    connections: int = CONNECTIONS


def front(bench: Bench) -> Iterator[Figure]:
    """Requests per second and 99th percentile of each load, against the limit and bare Flask."""
    month = bench.chains.month()
    with ExitStack() as stack:
        service = stack.enter_context(bench.service(month))
        forgetful = stack.enter_context(bench.service(month, answer_cache_bytes=0))
        new = stack.enter_context(running(bench.empty_folder(), bench.log))
        limit = stack.enter_context(empty_asgi(bench.log))
        flask = stack.enter_context(flask_view(bench.log))
        asked = [
            _read(bench, LIMIT, limit, _nothing(bench)),
            _read(bench, FLASK, flask, _nothing(bench)),
            *_of_questions(bench, service, forgetful, bench.questions(month, service)),
            *_of_blocks(bench, service),
            _posts(bench, new, bodies_of_block(service, POSTED_BLOCK)),
        ]
        loads = [(one.service, one.script, one.connections) for one in asked]
        bench.say("asking everything once, not counted, so that every worker has been asked")
        for load in loads:
            bench.load(*load)
        found = bench.in_turns("everything in turns", *loads)
    rounds = dict(zip((one.what for one in asked), found, strict=True))
    for one in asked:
        yield from figures_of(one, rounds)


def _nothing(bench: Bench) -> list[str]:
    return ["/"] * bench.plan.questions_per_kind


def _read(
    bench: Bench,
    what: str,
    service: Service,
    paths: Sequence[str],
    target: Target = NO_TARGET,
    known: Sequence[str] = (),
) -> Asked:
    """A load of GETs of `paths` in turn. known: the ETags that the client has of them."""
    path = bench.scratch / f"front-{''.join(filter(str.isalnum, what))}.lua"
    return Asked(what, service, wrk.write_script(path, paths, known, told=True), target)


def _of_questions(
    bench: Bench, service: Service, forgetful: Service, questions: Questions
) -> list[Asked]:
    mixed = in_turns(questions)
    kept = mixed[: KEPT_PER_KIND * len(questions)]
    known = etags(service, kept)
    _require_unchanged(service, kept[0], known[0])
    return [
        _read(bench, KEPT, service, kept, Target(of_limit=0.6, of_flask=3.0, limit_p99=1.5)),
        _read(bench, UNCHANGED, service, kept, Target(of_kept=1.0), known),
        _read(bench, "random questions, no answers kept", forgetful, mixed),
    ]


def _require_unchanged(service: Service, path: str, etag: str) -> None:
    """Raise ProgramFailed unless a client that has `path` already is answered 304."""
    with service.connection() as connection:
        response, _ = exchanged(connection, path, headers={"If-None-Match": etag})
    if response.status != 304:
        raise ProgramFailed(f"GET {path} with its ETag was answered {response.status}, not 304")


def _of_blocks(bench: Bench, service: Service) -> list[Asked]:
    """Loads of transactions and first pages of the newest blocks, which are at hand; the tip."""
    random = Random(SEED)  # noqa: S311 - a load, no secrets
    heights, newest = newest_blocks(service)
    ids = random.choices(newest, k=bench.plan.questions_per_kind)
    transactions = [f"/transactions/{number}" for number in ids]
    pages = [f"/blocks/{height}?limit={PAGE}" for height in heights]
    target = Target(of_limit=0.4)
    return [
        _read(bench, "transactions of blocks at hand", service, transactions, target),
        _read(bench, f"first {PAGE} flights of blocks at hand", service, pages, target),
        _read(bench, "/tip", service, ["/tip"]),
    ]


def _posts(bench: Bench, service: Service, flights: Sequence[bytes]) -> Asked:
    path = bench.scratch / "front-post.lua"
    script = wrk.write_posting_script(path, "/transactions", flights, told=True)
    what = f"posts of {CLIENTS} clients, durable"
    return Asked(what, service, script, Target(per_s=3000), CLIENTS)


def figures_of(one: Asked, rounds: Mapping[str, Sequence[Load]]) -> Iterator[Figure]:
    """The figure of a load, and, unless it is a yardstick itself, each of its ratios."""
    yield _seen(one, rounds[one.what])
    if one.what in {LIMIT, FLASK}:
        return
    target, asked = one.target, rounds[one.what]
    yield _rate_ratio(one.what, "the limit", asked, rounds[LIMIT], target.of_limit)
    yield _rate_ratio(one.what, "the Flask view", asked, rounds[FLASK], target.of_flask)
    if target.of_kept is not None:
        yield _rate_ratio(one.what, KEPT, asked, rounds[KEPT], target.of_kept)
    if target.limit_p99 is not None:
        yield _p99_ratio(one.what, asked, rounds[LIMIT], target.limit_p99)


def _seen(one: Asked, rounds: Sequence[Load]) -> Figure:
    rate, p99s_ms = spread_of(rates(rounds)), _p99s_ms(rounds)
    least, failed, cost_us = one.target.per_s, failures(rounds), 1e6 * _cost_s(rounds)
    measured = f"{rate.median:,.0f} requests/s, p99 {short(median(p99s_ms))} ms"
    return Figure(
        ROW,
        one.what,
        with_failures(f"{measured}, {cost_us:,.0f} us of processor time", failed),
        "" if least is None else f"at least {least:,.0f} requests/s",
        None if least is None else rate.median >= least and not failed,
        rate.is_noisy,
        {
            "requests_per_s": rates(rounds),
            "p99_ms": p99s_ms,
            "processor_us_per_request": cost_us,
            "foreign_cores": [load.usage.foreign_cores for load in rounds if load.usage],
            "requests": sum(load.requests for load in rounds),
            "failed": failed,
            "connections": one.connections,
            **load_now(),
        },
    )


def _rate_ratio(
    what: str, other: str, asked: Sequence[Load], below: Sequence[Load], least: float | None
) -> Figure:
    """Requests per second, relative to those of another load of the same round."""
    raw = {
        "ratio_of_the_best": max(rates(asked)) / max(rates(below)),
        "ratio_per_processor_time": _cost_s(below) / _cost_s(asked),
    }
    title = f"{what} / {other}, requests per second"
    return rate_ratio_figure(ROW, title, (asked, below), raw, least=least)


def _p99_ratio(what: str, asked: Sequence[Load], below: Sequence[Load], most: float) -> Figure:
    """The 99th percentile of latency, relative to that of the limit in the same round."""
    ours_ms, theirs_ms = _p99s_ms(asked), _p99s_ms(below)
    title = f"{what} / the limit, 99th percentile of latency"
    ratios, raw = pairwise(ours_ms, theirs_ms), {"ratio_of_the_best": min(ours_ms) / min(theirs_ms)}
    return ratio_figure(ROW, title, ratios, raw, most=most, failed=failures([*asked, *below]))


def _p99s_ms(rounds: Sequence[Load]) -> list[float]:
    """The 99th percentiles without wrk's additions. Raises ProgramFailed without any answer."""
    found = [load.recorded.percentile_s(99) for load in rounds if load.recorded]
    known = [1000 * p99_s for p99_s in found if p99_s is not None]
    if len(known) < len(rounds):
        raise ProgramFailed("wrk recorded no latencies")
    return known


def _cost_s(rounds: Sequence[Load]) -> float:
    """Processor time of the server per request, over all rounds. Raises ProgramFailed."""
    used_s = sum(load.usage.server_s for load in rounds if load.usage)
    requests = sum(load.requests for load in rounds)
    if not requests or used_s <= 0:
        raise ProgramFailed(f"{requests} requests took {used_s} s of processor time")
    return used_s / requests
