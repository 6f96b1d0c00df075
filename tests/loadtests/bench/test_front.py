"""The row of the front: what its figures say, and when they say that a target is reached."""

import pytest

from loadtests.bench.figures import Figure
from loadtests.bench.throughput import CACHED, FLASK, LIMIT, POSTS, UNCHANGED, figures_of
from loadtests.wrk import Load


def a_load(per_s: float, p99_ms: float = 1.0, failed: int = 0, cost_us: float = 100.0) -> Load:
    server_s = round(per_s) * cost_us / 1e6
    return Load(round(per_s), per_s, p99_ms, failed, server_s)


def figures(
    what: str, load: Load, limit: Load, flask: Load, cached: Load | None = None
) -> dict[str, Figure]:
    """What is said of `what` after one round, by the words that tell the figures apart."""
    loads = {LIMIT: [limit], FLASK: [flask], CACHED: [cached or load], what: [load]}
    return {figure.what.removeprefix(what): figure for figure in figures_of(what, loads)}


def reached(by_title: dict[str, Figure]) -> dict[str, bool | None]:
    return {what: figure.reached for what, figure in by_title.items()}


SHARE = " / the limit, requests per second"
TIMES = " / the Flask view, requests per second"
P99 = " / the limit, 99th percentile of latency"


def test_a_thing_is_held_against_the_limit_and_the_flask_view_of_its_own_round() -> None:
    limit, flask = a_load(10_000, p99_ms=1.0), a_load(2000)
    by_title = figures(CACHED, a_load(6500, p99_ms=1.4), limit, flask)
    assert by_title[""].measured == "6,500 requests/s, p99 1.4 ms, 100 us of processor time"
    ratios = [by_title[what].measured for what in (SHARE, TIMES, P99)]
    assert ratios == ["0.65", "3.25", "1.4"]
    assert reached(by_title) == {"": None, SHARE: True, TIMES: True, P99: True}


@pytest.mark.parametrize(
    ("load", "missed"),
    [
        (a_load(5900, p99_ms=1.4), {SHARE, TIMES}),
        (a_load(9000, p99_ms=1.6), {P99}),
        (a_load(9000, p99_ms=1.4, failed=1), {SHARE, TIMES, P99}),
    ],
)
def test_what_is_slower_than_its_target_or_failed_has_missed_it(
    load: Load, missed: set[str]
) -> None:
    by_title = figures(CACHED, load, limit=a_load(10_000), flask=a_load(2000))
    assert {what for what, is_reached in reached(by_title).items() if is_reached is False} == missed
    assert all("FAILED" in by_title[what].measured for what in missed if load.failed)


def test_what_a_request_costs_is_told_of_all_rounds() -> None:
    rounds = [a_load(500, cost_us=60), a_load(500, cost_us=100)]
    figure = next(figures_of(LIMIT, {LIMIT: rounds}))
    assert figure.measured.endswith(" 80 us of processor time")


def test_what_has_no_target_is_measured_all_the_same() -> None:
    by_title = figures("/tip", a_load(100), limit=a_load(1000), flask=a_load(200))
    assert reached(by_title) == {"": None, SHARE: None, TIMES: None}
    assert by_title[SHARE].measured == "0.1"


def test_unchanged_answers_are_held_against_cached_ones() -> None:
    cached = a_load(700)
    of_cached = f" / {CACHED}, requests per second"
    for per_s, is_reached in ((710, True), (690, False)):
        by_title = figures(UNCHANGED, a_load(per_s), a_load(1000), a_load(200), cached)
        assert by_title[of_cached].reached is is_reached


def test_posts_have_to_reach_so_many_a_second() -> None:
    for per_s, is_reached in ((4000, True), (3999, False)):
        by_title = figures(POSTS, a_load(per_s), a_load(1), a_load(1))
        assert by_title[""].reached is is_reached
        assert by_title[""].target == "at least 4,000 requests/s"


def test_the_yardsticks_are_not_held_against_themselves() -> None:
    for what in (LIMIT, FLASK):
        assert len(figures(what, a_load(9), a_load(9), a_load(9))) == 1
