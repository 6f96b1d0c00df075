"""Throughput of answers: against an endpoint that does nothing (rows 1 and 8), on short against
long chains (row 2), and with each type of workers (row 10). Each ratio compares two loads that are
sent in turns.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

from loadtests import wrk
from loadtests.bench.figures import (
    Figure,
    failures,
    pairwise,
    rate_ratio_figure,
    rates,
    ratio_figure,
    short,
    with_failures,
)
from loadtests.bench.session import RECENT_BLOCKS, SEED, Bench, load_now, newest_blocks
from loadtests.processes import Service, exchanged
from loadtests.questions import KINDS, in_turns, paths
from loadtests.servers.service import EMPTY_ENDPOINT, WORKER_TYPES

LEAST_OF_EMPTY = 0.9
LEAST_OF_EMPTY_ON_A_LONG_CHAIN = 0.85
LEAST_OF_EMPTY_FOR_BLOCKS = 0.5
LEAST_OF_EMPTY_IF_KNOWN = 0.95
MOST_OF_EMPTY_P99 = 1.5
MOST_TIMES_SLOWER = 1.2
LONG_FACTOR = 4
PAGE = 20


def questions_against_nothing(bench: Bench) -> Iterator[Figure]:
    """Throughput of each question relative to the empty endpoint of the same service.

    It is measured for the service as it is, and for one that keeps no answers.
    """
    month = bench.chains.month()
    service = bench.month_service()
    asked = paths(bench.questions(month, service))
    for kind in KINDS:
        script = bench.script(kind, asked[kind])
        yield from _against_nothing(bench, 1, service, kind, script, LEAST_OF_EMPTY)
    with bench.service(month, answer_cache_bytes=0) as forgetful:
        for kind in KINDS:
            script = bench.script(kind, asked[kind])
            what = f"{kind}, each computed anew"
            yield from _against_nothing(bench, 1, forgetful, what, script, None)


def other_answers(bench: Bench) -> Iterator[Figure]:
    """Transactions, pages of blocks and unchanged answers; questions to a longer chain.

    All blocks of the month fit into the caches and are in them; answers about them are not kept.
    """
    service = bench.month_service()
    asked = paths(bench.questions(bench.chains.month(), service))
    for what, of_blocks in _of_blocks(bench, service).items():
        script = bench.script("blocks", of_blocks)
        yield from _against_nothing(bench, 8, service, what, script, LEAST_OF_EMPTY_FOR_BLOCKS)
        asked[what] = of_blocks
    height = service.get("/tip")["height"]
    asked["whole blocks"] = [f"/blocks/{at}" for at in range(1, height + 1)]
    for what in (*KINDS, "transactions anywhere", "whole blocks"):
        known = bench.script("known", asked[what], etags(service, asked[what]))
        title, least = f"{what}, unchanged (304)", LEAST_OF_EMPTY_IF_KNOWN
        yield from _against_nothing(bench, 8, service, title, known, least)
    yield from _on_a_long_chain(bench)


def _of_blocks(bench: Bench, service: Service) -> dict[str, list[str]]:
    """Paths of transactions and of blocks' first pages: all over the chain, and at its tip."""
    random = Random(SEED)  # noqa: S311 - a load, no secrets
    heights, newest = newest_blocks(service)

    def some(of: range) -> list[int]:
        return random.choices(of, k=bench.plan.questions_per_kind)

    return {
        "transactions anywhere": [f"/transactions/{n}" for n in some(range(newest.stop))],
        f"transactions of the newest {RECENT_BLOCKS} blocks": [
            f"/transactions/{n}" for n in some(newest)
        ],
        f"first {PAGE} flights of blocks anywhere": [
            f"/blocks/{height}?limit={PAGE}" for height in some(range(1, heights.stop))
        ],
    }


def etags(service: Service, paths: Sequence[str]) -> list[str]:
    """The ETag of each path, as `service` answers it now."""
    with service.connection() as connection:
        return [exchanged(connection, path)[0].headers["ETag"] for path in paths]


def _on_a_long_chain(bench: Bench) -> Iterator[Figure]:
    bench.close()
    chain = bench.chains.generated(LONG_FACTOR)
    with bench.service(chain) as service:
        for kind, asked in paths(bench.questions(chain, service)).items():
            what = f"{kind} of {chain.flights:,} flights"
            script = bench.script(kind, asked)
            least = LEAST_OF_EMPTY_ON_A_LONG_CHAIN
            yield from _against_nothing(bench, 8, service, what, script, least)


def _against_nothing(
    bench: Bench, row: int, service: Service, what: str, script: Path, least: float | None
) -> Iterator[Figure]:
    """Throughput relative to the empty endpoint; if there is a `least`, the p99, too."""
    nothing = bench.script("nothing", [EMPTY_ENDPOINT] * bench.plan.questions_per_kind)
    bench.load(service, script)  # not counted: after it every worker has been asked
    turns = f"{what}, in turns with {EMPTY_ENDPOINT}"
    empty, asked = bench.in_turns(turns, (service, nothing), (service, script))
    raw = {**_summary("empty", empty), **_summary("question", asked), **load_now()}
    title = f"{what} / empty endpoint, requests per second"
    yield rate_ratio_figure(row, title, (asked, empty), raw, least=least)
    if row == 1 and least is not None:
        p99s = [[load.p99_ms for load in loads] for loads in (asked, empty)]
        raw = {"question_p99_ms": p99s[0], "empty_p99_ms": p99s[1]}
        title = f"{what} / empty endpoint, 99th percentile of latency"
        yield ratio_figure(row, title, pairwise(*p99s), raw, most=MOST_OF_EMPTY_P99)


def worker_types(bench: Bench) -> Iterator[Figure]:
    """Throughput with each type and number of workers, all in turns; no ratio, no target."""
    month = bench.chains.month()
    kinds = [(kind, count) for kind in WORKER_TYPES for count in bench.plan.worker_counts]
    found: dict[tuple[str, int, str], list[wrk.Load]] = {}
    for number in range(1, bench.plan.repeats + 1):
        for kind, count in kinds:
            bench.say(f"{count} {kind} workers, {number} of {bench.plan.repeats}")
            with bench.service(month, worker_type=kind, workers=count) as service:
                for name, script in _scripts(bench, service).items():
                    bench.load(service, script)
                    load = bench.load(service, script)
                    found.setdefault((kind, count, name), []).append(load)
    for (kind, count, name), loads in found.items():
        rate, p99_ms = median(rates(loads)), median(load.p99_ms for load in loads)
        yield Figure(
            10,
            f"{count} {kind} worker{'s' if count > 1 else ''}, {name}",
            with_failures(f"{rate:,.0f} requests/s, p99 {short(p99_ms)} ms", failures(loads)),
            raw={**_summary(kind, loads), **load_now()},
        )


def _scripts(bench: Bench, service: Service) -> dict[str, Path]:
    questions = bench.questions(bench.chains.month(), service)
    anywhere = _of_blocks(bench, service)["transactions anywhere"]
    return {
        "empty endpoint": bench.script("nothing", [EMPTY_ENDPOINT]),
        "the three questions": bench.script("questions", in_turns(questions)),
        "transactions anywhere": bench.script("transactions", anywhere),
    }


def _summary(name: str, loads: Sequence[wrk.Load]) -> dict[str, Any]:
    """What wrk saw over all rounds; percentiles are medians of the rounds' percentiles."""
    return {
        f"{name}_requests_per_s": rates(loads),
        f"{name}_p50_ms": median(load.p50_ms for load in loads),
        f"{name}_p99_ms": median(load.p99_ms for load in loads),
        f"{name}_requests": sum(load.requests for load in loads),
        f"{name}_failed": failures(loads),
    }


def short_against_long(bench: Bench) -> Iterator[Figure]:
    """Throughput on a generated chain relative to that on longer ones, while both services run.

    Neither service keeps answers, because a kept answer costs the same on any chain.
    """
    plan = bench.plan
    chain = bench.chains.generated(1)
    for factor in plan.factors:
        bench.chains.require_room(factor)
        longer = bench.chains.generated(factor)
        services = [bench.service(each, answer_cache_bytes=0) for each in (chain, longer)]
        with services[0] as few, services[1] as many:
            asked_few = paths(bench.questions(chain, few))
            asked_many = paths(bench.questions(longer, many))
            for kind in KINDS:
                on_few, on_many = bench.in_turns(
                    f"{kind} in turns on {chain.flights:,} and {longer.flights:,} flights",
                    (few, bench.script(f"{kind}-few", asked_few[kind])),
                    (many, bench.script(f"{kind}-many", asked_many[kind])),
                )
                raw = {**_summary("short", on_few), **_summary("long", on_many), **load_now()}
                what = f"{kind}, times slower with {factor} times the blocks"
                yield rate_ratio_figure(2, what, (on_few, on_many), raw, most=MOST_TIMES_SLOWER)
