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
from loadtests.bench.figures import Figure, pairwise, ratio_figure, short, with_failures
from loadtests.bench.session import SEED, Bench, load_now
from loadtests.processes import Service, exchanged
from loadtests.questions import KINDS, Questions, in_turns
from loadtests.servers.service import EMPTY_ENDPOINT, WORKER_TYPES

LEAST_OF_EMPTY = 0.9
LEAST_OF_EMPTY_ON_A_LONG_CHAIN = 0.85
LEAST_OF_EMPTY_FOR_BLOCKS = 0.5
LEAST_OF_EMPTY_IF_KNOWN = 0.95
MOST_OF_EMPTY_P99 = 1.5
MOST_TIMES_SLOWER = 1.2
LONG_FACTOR = 4
PAGE = 20
RECENT_BLOCKS = 20


def questions_against_nothing(bench: Bench) -> Iterator[Figure]:
    """Throughput of each question relative to the empty endpoint of the same service.

    It is measured for the service as it is, and for one that keeps no answers.
    """
    month = bench.chains.month()
    service = bench.month_service()
    questions = bench.questions(month, service)
    for kind in KINDS:
        script = _script_of(bench, questions, kind)
        yield from _against_nothing(bench, 1, service, kind, script, LEAST_OF_EMPTY)
    with bench.service(month, answer_cache_bytes=0) as forgetful:
        for kind in KINDS:
            script = _script_of(bench, questions, kind)
            what = f"{kind}, each computed anew"
            yield from _against_nothing(bench, 1, forgetful, what, script, None)


def _script_of(bench: Bench, questions: Questions, kind: str) -> Path:
    return bench.script(kind, [question.path for question in questions[kind]])


def other_answers(bench: Bench) -> Iterator[Figure]:
    """Transactions, pages of blocks and unchanged answers; questions to a longer chain.

    All blocks of the month fit into the caches and are in them; answers about them are not kept.
    """
    service = bench.month_service()
    questions = bench.questions(bench.chains.month(), service)
    asked = {kind: [question.path for question in questions[kind]] for kind in KINDS}
    for what, paths in _of_blocks(bench, service).items():
        script = bench.script("blocks", paths)
        yield from _against_nothing(bench, 8, service, what, script, LEAST_OF_EMPTY_FOR_BLOCKS)
        asked[what] = paths
    height = service.get("/tip")["height"]
    asked["whole blocks"] = [f"/blocks/{at}" for at in range(1, height + 1)]
    for what in (*KINDS, "transactions anywhere", "whole blocks"):
        known = bench.script("known", asked[what], etags(service, asked[what]))
        title, least = f"{what}, unchanged (304)", LEAST_OF_EMPTY_IF_KNOWN
        yield from _against_nothing(bench, 8, service, title, known, least)
    yield from _on_a_long_chain(bench)


def _of_blocks(bench: Bench, service: Service) -> dict[str, list[str]]:
    """Paths of transactions and of blocks' first pages: all over the chain, and at its tip."""
    tip, random = service.get("/tip"), Random(SEED)  # noqa: S311 - a load, no secrets
    first = service.get(f"/blocks/{max(1, tip['height'] + 1 - RECENT_BLOCKS)}?limit=1")
    recent = first["block"]["first_transaction"]
    many = range(bench.plan.questions_per_kind)
    anywhere = [random.randrange(tip["transactions"]) for _ in many]
    newest = [random.randrange(recent, tip["transactions"]) for _ in many]
    heights = [random.randint(1, tip["height"]) for _ in many]
    return {
        "transactions anywhere": [f"/transactions/{number}" for number in anywhere],
        f"transactions of the newest {RECENT_BLOCKS} blocks": [
            f"/transactions/{number}" for number in newest
        ],
        f"first {PAGE} flights of blocks anywhere": [f"/blocks/{h}?limit={PAGE}" for h in heights],
    }


def etags(service: Service, paths: Sequence[str]) -> list[str]:
    """The ETag of each path, as `service` answers it now."""
    with service.connection() as connection:
        return [exchanged(connection, path)[0].headers["ETag"] for path in paths]


def _on_a_long_chain(bench: Bench) -> Iterator[Figure]:
    bench.close()
    chain = bench.chains.generated(LONG_FACTOR)
    with bench.service(chain) as service:
        questions = bench.questions(chain, service)
        for kind in KINDS:
            what = f"{kind} of {chain.flights:,} flights"
            script = _script_of(bench, questions, kind)
            least = LEAST_OF_EMPTY_ON_A_LONG_CHAIN
            yield from _against_nothing(bench, 8, service, what, script, least)


def _against_nothing(
    bench: Bench, row: int, service: Service, what: str, script: Path, least: float | None
) -> Iterator[Figure]:
    """Throughput relative to the empty endpoint; if there is a `least`, the p99, too."""
    bench.say(f"{what}, in turns with {EMPTY_ENDPOINT}")
    nothing = bench.script("nothing", [EMPTY_ENDPOINT] * bench.plan.questions_per_kind)
    bench.load(service, script)  # not counted: after it every worker has been asked
    empty, asked = _loads_in_turns(bench, (service, nothing), (service, script))
    yield ratio_figure(
        row,
        f"{what} / empty endpoint, requests per second",
        pairwise(_rates(asked), _rates(empty)),
        {**_summary("empty", empty), **_summary("question", asked), **load_now()},
        least=least,
        failed=_failed([*empty, *asked]),
    )
    if row == 1 and least is not None:
        p99s = [[load.p99_ms for load in loads] for loads in (asked, empty)]
        raw = {"question_p99_ms": p99s[0], "empty_p99_ms": p99s[1]}
        title = f"{what} / empty endpoint, 99th percentile of latency"
        yield ratio_figure(row, title, pairwise(*p99s), raw, most=MOST_OF_EMPTY_P99)


def _loads_in_turns(bench: Bench, *asked: tuple[Service, Path]) -> list[list[wrk.Load]]:
    """The rounds of each load; a round sends each of them once."""
    rounds = [[bench.load(*one) for one in asked] for _ in range(bench.plan.rounds)]
    return [list(of_one) for of_one in zip(*rounds, strict=True)]


def _failed(loads: Sequence[wrk.Load]) -> int:
    return sum(load.failed for load in loads)


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
        rate, p99_ms = median(_rates(loads)), median(load.p99_ms for load in loads)
        yield Figure(
            10,
            f"{count} {kind} worker{'s' if count > 1 else ''}, {name}",
            with_failures(f"{rate:,.0f} requests/s, p99 {short(p99_ms)} ms", _failed(loads)),
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


def _rates(loads: Sequence[wrk.Load]) -> list[float]:
    return [load.requests_per_s for load in loads]


def _summary(name: str, loads: Sequence[wrk.Load]) -> dict[str, Any]:
    """What wrk saw over all rounds; percentiles are medians of the rounds' percentiles."""
    return {
        f"{name}_requests_per_s": _rates(loads),
        f"{name}_p50_ms": median(load.p50_ms for load in loads),
        f"{name}_p99_ms": median(load.p99_ms for load in loads),
        f"{name}_requests": sum(load.requests for load in loads),
        f"{name}_failed": _failed(loads),
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
            asked_few, asked_many = bench.questions(chain, few), bench.questions(longer, many)
            for kind in KINDS:
                bench.say(f"{kind} in turns on {chain.flights:,} and {longer.flights:,} flights")
                yield _slower(bench, factor, kind, (few, asked_few), (many, asked_many))


def _slower(
    bench: Bench,
    factor: int,
    kind: str,
    few: tuple[Service, Questions],
    many: tuple[Service, Questions],
) -> Figure:
    scripts = [
        bench.script(f"{kind}-{name}", [question.path for question in questions[kind]])
        for name, (_, questions) in (("few", few), ("many", many))
    ]
    on_few, on_many = _loads_in_turns(bench, (few[0], scripts[0]), (many[0], scripts[1]))
    return ratio_figure(
        2,
        f"{kind}, times slower with {factor} times the blocks",
        pairwise(_rates(on_few), _rates(on_many)),
        {**_summary("short", on_few), **_summary("long", on_many), **load_now()},
        most=MOST_TIMES_SLOWER,
        failed=_failed([*on_few, *on_many]),
    )
