"""Throughput of answers: against an endpoint that does nothing (rows 1 and 8), on short against
long chains (row 2), and with each type of workers (row 10). Ratios are of rounds of load in turns.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

from loadtests import wrk
from loadtests.figures import Figure, pairwise, short, spread_of
from loadtests.processes import Service
from loadtests.questions import KINDS, Questions
from loadtests.session import SEED, Bench, load_now

EMPTY_ENDPOINT = "/health/live"
LEAST_OF_EMPTY = 0.9
LEAST_OF_EMPTY_ON_A_LONG_CHAIN = 0.85
LEAST_OF_EMPTY_FOR_BLOCKS = 0.5
LEAST_OF_EMPTY_IF_KNOWN = 0.95
MOST_OF_EMPTY_P99 = 1.5
MOST_TIMES_SLOWER = 1.2
LONG_FACTOR = 4
PAGE = 20
WORKER_TYPES = ("loop", "gthread", "sync")


def questions_against_nothing(bench: Bench) -> Iterator[Figure]:
    """Throughput of each question relative to the empty endpoint of the same service.

    As the service is, and, to be told apart, when it keeps no answers and computes each anew.
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
    """Transactions, pages of blocks and unchanged answers; questions to a longer chain."""
    month = bench.chains.month()
    service = bench.month_service()
    tip = service.get("/tip")
    random = Random(SEED)  # noqa: S311 - a load, no secrets
    count = bench.plan.questions_per_kind
    ids = [random.randrange(tip["transactions"]) for _ in range(count)]
    heights = [random.randint(1, tip["height"]) for _ in range(count)]
    transactions = bench.script("transactions", [f"/transactions/{i}" for i in ids])
    pages = bench.script("pages", [f"/blocks/{h}?limit={PAGE}" for h in heights])
    least = LEAST_OF_EMPTY_FOR_BLOCKS
    yield from _against_nothing(bench, 8, service, "transactions/ID", transactions, least)
    what = f"first {PAGE} flights of a block"
    yield from _against_nothing(bench, 8, service, what, pages, least)
    questions = bench.questions(month, service)
    paths = [question.path for kind in KINDS for question in questions[kind]]
    known = bench.script("known", paths, _etags(service, paths))
    least = LEAST_OF_EMPTY_IF_KNOWN
    yield from _against_nothing(bench, 8, service, "unchanged answers (304)", known, least)
    yield from _on_a_long_chain(bench)


def _etags(service: Service, paths: Sequence[str]) -> list[str]:
    found: list[str] = []
    with service.connection() as connection:
        for path in paths:
            connection.request("GET", path)
            response = connection.getresponse()
            response.read()
            found.append(response.headers["ETag"])
    return found


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
    """Throughput relative to the empty endpoint, and, if a `least` is asked for, the p99, too."""
    bench.say(f"{what}, in turns with {EMPTY_ENDPOINT}")
    nothing = bench.script("nothing", [EMPTY_ENDPOINT] * bench.plan.questions_per_kind)
    bench.load(service, script)  # every worker has been asked
    rounds = [
        (bench.load(service, nothing), bench.load(service, script))
        for _ in range(bench.plan.rounds)
    ]
    empty, asked = map(list, zip(*rounds, strict=True))
    ratios = pairwise(_rates(asked), _rates(empty))
    spread, failed = spread_of(ratios), sum(load.failed for load in empty + asked)
    yield Figure(
        row,
        f"{what} / empty endpoint, requests per second",
        _with_failures(str(spread), failed),
        "" if least is None else f"at least {least}",
        None if least is None else spread.median >= least and not failed,
        spread.is_noisy,
        {
            "ratios": ratios,
            **_summary("empty", empty),
            **_summary("question", asked),
            **load_now(),
        },
    )
    if row == 1 and least is not None:
        p99s = [[load.p99_ms for load in loads] for loads in (asked, empty)]
        slowest = spread_of(pairwise(*p99s))
        yield Figure(
            row,
            f"{what} / empty endpoint, 99th percentile of latency",
            str(slowest),
            f"at most {MOST_OF_EMPTY_P99}",
            slowest.median <= MOST_OF_EMPTY_P99,
            slowest.is_noisy,
            {"question_p99_ms": p99s[0], "empty_p99_ms": p99s[1]},
        )


def worker_types(bench: Bench) -> Iterator[Figure]:
    """The empty endpoint and the questions with each type of worker; no ratio, no target."""
    month = bench.chains.month()
    for kind in WORKER_TYPES:
        with bench.service(month, worker_type=kind) as service:
            bench.say(f"workers of type {kind}")
            questions = bench.questions(month, service)
            scripts = {"empty endpoint": bench.script("nothing", [EMPTY_ENDPOINT])}
            scripts |= {name: _script_of(bench, questions, name) for name in KINDS}
            for name, script in scripts.items():
                bench.load(service, script)
                loads = [bench.load(service, script) for _ in range(bench.plan.repeats)]
                rate = median(_rates(loads))
                p99_ms = median(load.p99_ms for load in loads)
                yield Figure(
                    10,
                    f"{kind} workers, {name}",
                    f"{rate:,.0f} requests/s, p99 {short(p99_ms)} ms",
                    raw=_summary(kind, loads),
                )


def _rates(loads: Sequence[wrk.Load]) -> list[float]:
    return [load.requests_per_s for load in loads]


def _summary(name: str, loads: Sequence[wrk.Load]) -> dict[str, Any]:
    """What wrk saw over all rounds; percentiles are medians of the rounds' percentiles."""
    return {
        f"{name}_requests_per_s": _rates(loads),
        f"{name}_p50_ms": median(load.p50_ms for load in loads),
        f"{name}_p99_ms": median(load.p99_ms for load in loads),
        f"{name}_requests": sum(load.requests for load in loads),
        f"{name}_failed": sum(load.failed for load in loads),
    }


def _with_failures(text: str, failed: int) -> str:
    return f"{text}, {failed} FAILED" if failed else text


def short_against_long(bench: Bench) -> Iterator[Figure]:
    """Throughput on a generated chain relative to that on longer ones, both services running.

    Neither keeps answers, which would cost the same on any chain.
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
    rounds = [
        (bench.load(few[0], scripts[0]), bench.load(many[0], scripts[1]))
        for _ in range(bench.plan.rounds)
    ]
    on_few, on_many = map(list, zip(*rounds, strict=True))
    ratios = pairwise(_rates(on_few), _rates(on_many))
    spread, failed = spread_of(ratios), sum(load.failed for load in on_few + on_many)
    return Figure(
        2,
        f"{kind}, times slower with {factor} times the blocks",
        _with_failures(str(spread), failed),
        f"at most {MOST_TIMES_SLOWER}",
        spread.median <= MOST_TIMES_SLOWER and not failed,
        spread.is_noisy,
        {"ratios": ratios, **_summary("short", on_few), **_summary("long", on_many), **load_now()},
    )
