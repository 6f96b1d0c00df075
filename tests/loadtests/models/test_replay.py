"""Replays, against plain simulations in exact fractions, and the laws of each discipline."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate, pairwise
from math import isclose

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadtests.models import replay

Recording = tuple[list[float], list[float]]


@st.composite
def recordings(draw: st.DrawFn) -> Recording:
    """Arrivals in order, some at the same time, and service times, some 0; all in quarters."""
    size = draw(st.integers(0, 25))
    quarters = st.integers(0, 12).map(lambda number: number / 4)
    gaps = draw(st.lists(quarters, min_size=size, max_size=size))
    return list(accumulate(gaps)), draw(st.lists(quarters, min_size=size, max_size=size))


servers = st.integers(1, 4)


def shared_exactly(
    arrivals_s: Sequence[float], services_s: Sequence[float], servers: int
) -> list[Fraction]:
    """Processor sharing from one event to the next, with the work left of each customer."""
    left: dict[int, Fraction] = {}
    departures: dict[int, Fraction] = {}
    now = Fraction(0)

    def serve_until(end: Fraction | None) -> None:
        nonlocal now
        while left:
            rate = min(Fraction(1), Fraction(servers, len(left)))
            least = min(left.values())
            if end is not None and now + least / rate > end:
                break
            now += least / rate
            for customer in [c for c, work in left.items() if work == least]:
                departures[customer] = now
                del left[customer]
            for customer in left:
                left[customer] -= least
        if end is not None:
            for customer in left:
                left[customer] -= (end - now) * min(Fraction(1), Fraction(servers, len(left)))
            now = end

    for customer, arrival_s in enumerate(arrivals_s):
        serve_until(Fraction(arrival_s))
        left[customer] = Fraction(services_s[customer])
    serve_until(None)
    return [departures[c] - Fraction(a) for c, a in enumerate(arrivals_s)]


@given(recordings(), servers)
def test_processor_sharing_is_that_of_exact_fractions(run: Recording, m: int) -> None:
    shared, exact = replay.processor_sharing(*run, m), shared_exactly(*run, m)
    assert all(isclose(a, b, abs_tol=1e-9) for a, b in zip(shared, exact, strict=True))


@given(recordings())
def test_fcfs_serves_in_order_and_never_idles_with_work(run: Recording) -> None:
    arrivals, services = run
    departures = departures_of(arrivals, replay.fcfs(arrivals, services))
    assert departures == sorted(departures)
    for n, (arrival, service) in enumerate(zip(arrivals, services, strict=True)):
        start = departures[n] - service
        assert start == max([arrival, *departures[n - 1 : n]])


@given(recordings())
def test_one_of_several_servers_is_fcfs(run: Recording) -> None:
    assert replay.multi_server(*run, 1) == replay.fcfs(*run)


@given(recordings(), servers)
def test_several_servers_start_in_order_each_when_one_is_free(run: Recording, m: int) -> None:
    arrivals, services = run
    departures = departures_of(arrivals, replay.multi_server(arrivals, services, m))
    starts = [d - s for d, s in zip(departures, services, strict=True)]
    assert starts == sorted(starts)
    for n, (arrival, start) in enumerate(zip(arrivals, starts, strict=True)):
        busy = sorted(departures[:n])[-m:]
        assert start == (max(arrival, busy[0]) if len(busy) == m else arrival)


@given(recordings())
def test_one_server_is_busy_at_the_same_times_in_either_discipline(run: Recording) -> None:
    """Work is conserved: both end each busy period at the same moment."""
    assert busy_ends(run, replay.fcfs(*run)) == pytest.approx(
        busy_ends(run, replay.processor_sharing(*run))
    )


@given(recordings(), servers)
def test_one_more_server_makes_nobody_later(run: Recording, m: int) -> None:
    fewer, more = replay.multi_server(*run, m), replay.multi_server(*run, m + 1)
    assert all(a >= b for a, b in zip(fewer, more, strict=True))


def test_no_customers_have_no_response_times() -> None:
    assert replay.fcfs([], []) == replay.processor_sharing([], []) == []


def departures_of(arrivals: Sequence[float], responses: Sequence[float]) -> list[float]:
    return [a + r for a, r in zip(arrivals, responses, strict=True)]


def busy_ends(run: Recording, responses: Sequence[float]) -> list[float]:
    """When the server gets idle: the last departure before each arrival that finds it so."""
    arrivals = run[0]
    latest = list(accumulate(departures_of(arrivals, responses), max))
    pairs = zip(latest, pairwise(arrivals), strict=False)
    ends = [end for end, (_, after) in pairs if end < after - 1e-9]  # times are in quarters
    return [*ends, *latest[-1:]]
