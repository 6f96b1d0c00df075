"""Throughput of the three questions: against an endpoint that does nothing (row 1), and on short
against long chains (row 2). Both are ratios of rounds of load measured in turns.
"""

from collections.abc import Iterator, Sequence
from statistics import median
from typing import Any

from loadtests import wrk
from loadtests.figures import Figure, pairwise, spread_of
from loadtests.processes import Service
from loadtests.questions import KINDS, Questions
from loadtests.session import Bench, load_now

EMPTY_ENDPOINT = "/health/live"
LEAST_OF_EMPTY = 0.9
MOST_TIMES_SLOWER = 1.2


def questions_against_nothing(bench: Bench) -> Iterator[Figure]:
    """Throughput of each question relative to the empty endpoint of the same service.

    As the service is, and, to be told apart, when it keeps no answers and computes each anew.
    """
    month = bench.chains.month()
    questions = bench.questions(month, bench.month_service())
    for kind in KINDS:
        yield _against_nothing(bench, bench.month_service(), questions, kind)
    with bench.service(month, answer_cache_bytes=0) as forgetful:
        for kind in KINDS:
            yield _against_nothing(bench, forgetful, questions, kind, anew=True)


def _against_nothing(
    bench: Bench, service: Service, questions: Questions, kind: str, *, anew: bool = False
) -> Figure:
    what = f"{kind}, each computed anew" if anew else kind
    bench.say(f"{what}, in turns with {EMPTY_ENDPOINT}")
    nothing = bench.script("nothing", [EMPTY_ENDPOINT] * bench.plan.questions_per_kind)
    script = bench.script(kind, [question.path for question in questions[kind]])
    bench.load(service, script)  # every worker has been asked
    rounds = [
        (bench.load(service, nothing), bench.load(service, script))
        for _ in range(bench.plan.rounds)
    ]
    empty, asked = map(list, zip(*rounds, strict=True))
    ratios = pairwise([load.requests_per_s for load in asked], _rates(empty))
    spread, failed = spread_of(ratios), sum(load.failed for load in empty + asked)
    return Figure(
        1,
        f"{what} / empty endpoint, requests per second",
        _with_failures(str(spread), failed),
        "" if anew else f"at least {LEAST_OF_EMPTY}",
        None if anew else spread.median >= LEAST_OF_EMPTY and not failed,
        spread.is_noisy,
        {
            "ratios": ratios,
            **_summary("empty", empty),
            **_summary("question", asked),
            **load_now(),
        },
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
