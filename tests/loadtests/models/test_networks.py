"""Networks with several classes: published solutions, all states of the product form, and Ciw."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import product
from math import comb, factorial, inf, isclose, prod
from typing import Any

import ciw  # type: ignore[import-untyped]
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loadtests.models.estimates import confidence_interval
from loadtests.models.networks import (
    MOST_DEPENDENT,
    ClassMeans,
    CustomerClass,
    ServiceStation,
    of_servers,
    solve,
)

Network = tuple[list[CustomerClass], list[ServiceStation]]
DELAY = None
SINGLE = (1.0,)


def closed(customers: Sequence[int], thinks_s: Sequence[float] = ()) -> list[CustomerClass]:
    pairs = zip(customers, thinks_s or [0.0] * len(customers), strict=True)
    return [CustomerClass(f"c{at}", n, z) for at, (n, z) in enumerate(pairs)]


def opened(*rates_per_s: float) -> list[CustomerClass]:
    return [CustomerClass(f"o{at}", rate_per_s=rate) for at, rate in enumerate(rates_per_s)]


def stations(demands_s: Sequence[Sequence[float]], rates: Sequence[Any]) -> list[ServiceStation]:
    pairs = zip(demands_s, rates, strict=True)
    return [ServiceStation(f"s{at}", tuple(d), r) for at, (d, r) in enumerate(pairs)]


# --- published -----------------------------------------------------------------------------------

DISK_1, DISK_2 = 0.035 * 0.25 / 0.9, 0.035 * 5
PUBLISHED: dict[str, tuple[Network, Sequence[float] | None, Sequence[Sequence[float]], float]] = {
    # network, throughput of each class, customers of each class at each station, tolerance
    "JMVA's solution of figure 6 of Purdue report CSD-TR 330": (
        (
            closed([40, 4]),
            stations(
                [(5, 10), (0.010 / 0.9, 0.1 * 20), *[(DISK_1, DISK_2)] * 4],
                [DELAY, *[SINGLE] * 5],
            ),
        ),
        (7.891588, 0.277270),
        (
            (39.457941, 0.192262, *[0.087449] * 4),
            (2.772704, 1.008198, *[0.054775] * 4),
        ),
        1e-5,
    ),
    "Lazowska and others, p. 142": (
        (closed([1, 1]), stations([(1, 2), (3, 4)], [SINGLE] * 2)),
        (3 / 19, 2 / 19),
        ((4 / 19, 15 / 19), (5 / 19, 14 / 19)),
        1e-9,
    ),
    "Lazowska and others, p. 148, two open classes besides": (
        (
            [*opened(1, 0.5), *closed([1, 1])],
            stations([(0.25, 0.5, 0.5, 1), (1 / 6, 1, 1, 4 / 3)], [SINGLE] * 2),
        ),
        None,
        ((), (), (4 / 19, 15 / 19), (5 / 19, 14 / 19)),
        1e-4,
    ),
    "Bolch and others, example 8.6, mixed": (
        (
            [*opened(0.5, 0.25), *closed([1, 1])],
            stations([(0.8, 2, 0.3, 0.5), (0.6, 2.4, 0.25, 0.32)], [SINGLE] * 2),
        ),
        (0.5, 0.25, 0.120, 0.081),
        ((8.822, 5.383), (11.028, 10.766), (0.582, 0.418), (0.624, 0.376)),
        1e-3,
    ),
    "Bolch and others, example 8.4, two servers and a delay": (
        (
            closed([3]),
            stations([(0.5,), (0.3,), (0.4,), (1,)], [(1, 2), SINGLE, SINGLE, DELAY]),
        ),
        None,
        ((0.624, 0.473, 0.686, 1.217),),
        1e-3,
    ),
    "Bolch and others, example 9.5, two classes, two servers": (
        (
            closed([2, 1]),
            stations([(0.2, 0.2), (0.24, 0.18), (0.4, 1.4)], [(1, 2), SINGLE, DELAY]),
        ),
        (2.113, 0.524),
        ((0.428, 0.726, 0.845), (0.108, 0.158, 0.734)),
        1e-3,
    ),
    "Schwetman, table 5, think times": (
        (closed([15, 5], [1, 15]), stations([(0.025, 0.5)], [SINGLE])),
        (14.323, 0.314),
        ((0.677,), (0.293,)),
        1e-3,
    ),
    "Schwetman, figure 10, mixed": (
        ([*opened(1), *closed([3])], stations([(0.25, 0.25), (0, 0.10)], [SINGLE] * 2)),
        None,
        ((1.201, 0),),
        1e-3,
    ),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_published_network_has_its_published_means(name: str) -> None:
    (classes, at), throughputs, customers, tolerance = PUBLISHED[name]
    all_means = solve(classes, at)
    if throughputs:
        per_s = [means.throughput_per_s for means in all_means]
        assert per_s == pytest.approx(throughputs, abs=tolerance)
    for means, expected in zip(all_means, customers, strict=False):
        if expected:
            assert [row.customers for row in means.at] == pytest.approx(expected, abs=tolerance)


@pytest.mark.parametrize(("rate_per_s", "servers"), [(2.9, 3), (360.0, 400), (990.0, 1000)])
def test_open_classes_alone_make_m_m_m(rate_per_s: float, servers: int) -> None:
    from loadtests.models.open_queue import mgm

    (means,) = solve(opened(rate_per_s), stations([(1.0,)], [of_servers(servers)]))
    formula = mgm(rate_per_s, 1.0, servers=servers)
    assert means.response_time_s == pytest.approx(formula.response_time_s)


def test_many_servers_are_shared_with_closed_customers_who_hardly_wait() -> None:
    classes = [*opened(320), *closed([20], [1])]
    for means in solve(classes, stations([(1.0, 1.0)], [of_servers(400)])):
        assert 1 < means.response_time_s < 1.001


@pytest.mark.parametrize(
    ("rates", "customers", "think_s", "utilisation"),
    [
        pytest.param((1, 2), 2, 0.0, 1.0, id="both of two servers are always busy"),
        pytest.param((1, 2), 2, 1.0, 0.5, id="nobody waits, half of the time they think"),
        pytest.param((1, 2, 3), 1, 0.0, 1 / 3, id="one of three servers is always busy"),
        pytest.param((1, 2, 1), 2, 0.0, 1.0, id="the highest rate is always reached"),
    ],
)
def test_utilisation_is_the_busy_share_of_all_servers_or_of_the_highest_rate(
    rates: tuple[float, ...], customers: int, think_s: float, utilisation: float
) -> None:
    (means,) = solve(closed([customers], [think_s]), stations([(1.0,)], [rates]))
    assert means.at[0].utilisation == pytest.approx(utilisation)


# --- all states of the product form --------------------------------------------------------------


@st.composite
def drawn(draw: st.DrawFn) -> Network:
    """One or two closed classes, perhaps an open one, and one to three stations of any kind."""
    some = st.lists(st.integers(1, 3), min_size=1, max_size=2)
    classes = closed(draw(some), ())
    classes = [CustomerClass(c.name, c.customers, draw(st.integers(0, 20)) / 10) for c in classes]
    classes += opened(0.3) if draw(st.booleans()) else []
    demand = st.integers(0, 20).map(lambda tenths: tenths / 10)
    rates = st.sampled_from(
        [SINGLE, SINGLE, DELAY, (1, 2), (1, 2, 3), (1, 1.6, 1.4), (2, 2), (3, 0.5)]
    )
    demands_s = [[draw(demand) for _ in classes] for _ in range(draw(st.integers(1, 3)))]
    demands_s[0] = [demand_s + 0.1 for demand_s in demands_s[0]]
    return classes, stations(demands_s, [draw(rates) for _ in demands_s])


def splits(number: int, places: int) -> Iterator[tuple[int, ...]]:
    """All ways to put `number` equal customers into so many places."""
    if places == 1:
        yield (number,)
        return
    for first in range(number + 1):
        for others in splits(number - first, places - 1):
            yield first, *others


def weight(station: ServiceStation, numbers: Sequence[int]) -> float:
    """The unscaled probability of so many customers of each class at a station (BCMP)."""
    alone = prod(d**n / factorial(n) for d, n in zip(station.demands_s, numbers, strict=True))
    if station.rates is None:
        return alone
    rates = [station.rates[min(j, len(station.rates)) - 1] for j in range(1, sum(numbers) + 1)]
    return alone * factorial(sum(numbers)) / prod(rates)


def customers_by_states(network: Network, most_open: int) -> list[list[float]]:
    """Return the mean customers of each class at each station, by adding up all states.

    An open class has as many as `most_open` at a station at most, and takes λ·D of it there.
    """
    classes, at = network
    carried = [
        ServiceStation(
            station.name,
            tuple(
                d * (c.rate_per_s if c.is_open else 1)
                for c, d in zip(classes, station.demands_s, strict=True)
            ),
            station.rates,
        )
        for station in at
    ]
    states = [
        [(0.0, state) for state in product(range(most_open), repeat=len(at))]
        if c.is_open
        else [(c.think_time_s, state) for state in splits(c.customers, len(at) + 1)]
        for c in classes
    ]
    total, sums = 0.0, [[0.0] * len(at) for _ in classes]
    for chosen in product(*states):
        thinking = prod(
            z ** state[len(at)] / factorial(state[len(at)]) if len(state) > len(at) else 1.0
            for z, state in chosen
        )
        p = thinking * prod(weight(s, [w[k] for _, w in chosen]) for k, s in enumerate(carried))
        total += p
        for r, (_, state) in enumerate(chosen):
            for k in range(len(at)):
                sums[r][k] += p * state[k]
    return [[value / total for value in row] for row in sums]


def is_small(network: Network) -> bool:
    """Whether open customers are few, so that states with many of them can be left out."""
    classes, at = network
    loads = [
        sum(c.rate_per_s * d for c, d in zip(classes, station.demands_s, strict=True))
        / (min(station.rates) if station.rates else inf)
        for station in at
    ]
    return max(loads) < 0.2


@settings(max_examples=60, deadline=None)
@given(drawn().filter(is_small))
def test_means_are_those_of_all_states_together(network: Network) -> None:
    solution = solve(*network)
    is_open = any(group.is_open for group in network[0])
    expected = customers_by_states(network, 12 if len(network[1]) < 3 else 7)
    for means, row in zip(solution, expected, strict=True):
        ours = [at.customers for at in means.at]
        assert ours == pytest.approx(row, rel=1e-4 if is_open else 1e-9, abs=2e-4 * is_open + 1e-12)


@given(drawn().filter(is_small))
def test_customers_are_where_they_can_be(network: Network) -> None:
    for group, means in zip(network[0], solve(*network), strict=True):
        if not group.is_open:
            everywhere = means.customers + means.throughput_per_s * group.think_time_s
            assert isclose(everywhere, group.customers, rel_tol=1e-9)


# --- convolution in fractions --------------------------------------------------------------------

Weights = list[Fraction]


def weights(demand_s: float, rates: Any, most: int, load: float = 0.0) -> Weights:
    """Unscaled probabilities of 0, 1 … closed customers at a station, open ones added up."""
    alone = [Fraction(1)]
    for j in range(1, most + 1 + (OPEN if load else 0)):
        alone.append(alone[-1] / (j if rates is None else Fraction(rates[min(j, len(rates)) - 1])))
    d, rho = Fraction(demand_s), Fraction(load)
    opens = range(OPEN + 1 if load else 1)
    return [
        d**n * sum((comb(n + i, i) * rho**i * alone[n + i] for i in opens), Fraction(0))
        for n in range(most + 1)
    ]


OPEN = 60  # open customers beside them; more are too rare to matter


def by_convolution(of_each: Sequence[Weights]) -> Fraction:
    """Throughput of closed customers by J. P. Buzen's constants: G(N-1)/G(N)."""
    g = of_each[0]
    for other in of_each[1:]:
        g = [sum((g[k] * other[n - k] for k in range(n + 1)), Fraction(0)) for n in range(len(g))]
    return g[-2] / g[-1]


THRASHING: dict[str, tuple[float, ...]] = {
    "never reached": (*map(float, range(1, 5)), *[4.0] * 11, 0.05),
    "nearly stops": (1, 2, 3, 4, 1e-9),
    "twenty at once": (*[1.0] * 20, 0.1),
    "slower and slower": (1, 1.9, 2.7, 3.4, 4, 4.5, 4, 3, 2, 1, 0.5, 0.2),
    "slower at once": (10, 1),
    "slower in between": (3, 0.01, 5),
}


@pytest.mark.parametrize("name", THRASHING)
@pytest.mark.parametrize("customers", [1, 4, 15, 21])
@pytest.mark.parametrize("think_s", [0.0, 5.0])
def test_stations_that_work_slower_with_more_customers_are_exact(
    name: str, customers: int, think_s: float
) -> None:
    rates = THRASHING[name]
    at = stations([(0.1,), (0.05,)], [rates, SINGLE])
    (means,) = solve(closed([customers], [think_s]), at)
    of_each = [weights(0.1, rates, customers), weights(0.05, SINGLE, customers)]
    exact = by_convolution([weights(think_s, None, customers), *of_each])
    assert means.throughput_per_s == pytest.approx(float(exact), rel=1e-12)
    everywhere = means.customers + means.throughput_per_s * think_s
    assert everywhere == pytest.approx(customers, rel=1e-12)


def test_several_servers_that_are_always_busy_keep_their_digits() -> None:
    """By the textbook's recursion, with p(0) by subtraction, this throughput is negative."""
    at = stations([(4.0,), (0.45,)], [of_servers(8), SINGLE])
    (means,) = solve(closed([80], [1.0]), at)
    of_each = [weights(4.0, of_servers(8), 80), weights(0.45, SINGLE, 80)]
    exact = by_convolution([weights(1.0, None, 80), *of_each])
    assert means.throughput_per_s == pytest.approx(float(exact), rel=1e-12)


def test_as_many_multi_server_stations_as_may_be_are_solved() -> None:
    kinds = [(1.0 + n, of_servers(2 + n)) for n in range(MOST_DEPENDENT)]
    at = stations([(demand_s,) for demand_s, _ in kinds], [rates for _, rates in kinds])
    (means,) = solve(closed([8], [2.0]), at)
    exact = by_convolution([weights(2.0, None, 8), *(weights(*kind, 8) for kind in kinds)])
    assert means.throughput_per_s == pytest.approx(float(exact), rel=1e-12)


@pytest.mark.parametrize("rates", [(1, 2, 3, 4, 0.5), (*[1.0] * 8, 0.4), (5, 0.5)])
@pytest.mark.parametrize("customers", [1, 3, 12])
def test_open_classes_beside_slower_and_slower_work_are_exact(
    rates: tuple[float, ...], customers: int
) -> None:
    """λ of open customers, and with it their number, by how the throughput of closed ones falls."""
    load = 0.05
    classes = [*closed([customers], [1.0]), *opened(load)]
    both = solve(classes, stations([(0.1, 1.0)], [rates]))
    think = weights(1.0, None, customers)
    station = weights(0.1, rates, customers, load)
    assert both[0].throughput_per_s == pytest.approx(float(by_convolution([think, station])))
    more = [station[n] * think[customers - n] for n in range(customers + 1)]
    step = Fraction(load) / 10**6
    moved = weights(0.1, rates, customers, load + float(step))
    moved_g = sum((moved[n] * think[customers - n] for n in range(customers + 1)), Fraction(0))
    mean = load * float((moved_g / sum(more) - 1) / step)  # E[i] = ρ·dG/dρ/G
    assert both[1].customers == pytest.approx(mean, rel=1e-4)


# --- Ciw -----------------------------------------------------------------------------------------


def simulated(means: Sequence[ClassMeans], seed: int) -> list[float]:
    """Throughputs of two closed classes of 3 and 2 at a delay and two servers, and an open class.

    Customers of closed classes are put in at once and never let out.
    """
    forever = [[0.0, 1.0], [1.0, 0.0]]
    once = [[ciw.dists.Sequential([1e-9, inf]), None] for _ in range(2)]
    batches = [[ciw.dists.Deterministic(n), ciw.dists.Deterministic(1)] for n in (3, 2)]
    exponential = ciw.dists.Exponential
    network = ciw.create_network(
        arrival_distributions={"a": once[0], "b": once[1], "c": [None, exponential(0.4)]},
        batching_distributions={
            "a": batches[0],
            "b": batches[1],
            "c": [ciw.dists.Deterministic(1)] * 2,
        },
        service_distributions={
            "a": [exponential(1.0), exponential(1.0)],
            "b": [exponential(0.25), exponential(1.0)],
            "c": [exponential(1.0), exponential(1.0)],
        },
        number_of_servers=[inf, 2],
        routing={"a": forever, "b": forever, "c": [[0.0, 0.0], [0.0, 0.0]]},
    )
    ciw.seed(seed)
    simulation = ciw.Simulation(network)
    simulation.simulate_until_max_time(650.0)
    records = [r for r in simulation.get_all_records() if r.node == 2 and r.exit_date >= 50]
    return [sum(r.customer_class == name for r in records) / 600 for name in "abc"]


def test_a_simulator_has_the_same_throughputs() -> None:
    classes = [*closed([3, 2], [1.0, 4.0]), *opened(0.4)]
    expected_means = solve(classes, stations([(1.0, 1.0, 1.0)], [of_servers(2)]))
    runs = [simulated(expected_means, seed) for seed in range(8)]
    for means, values in zip(expected_means, zip(*runs, strict=True), strict=True):
        interval = confidence_interval(values, 0.999)
        assert interval.covers(means.throughput_per_s), means.name
        assert interval.half_width < 0.12 * interval.estimate


@pytest.mark.parametrize(
    ("classes", "at", "message"),
    [
        (opened(2.0), stations([(0.5,)], [SINGLE]), "open classes bring 1 s of work a second"),
        (closed([2]), stations([(0.0,)], [SINGLE]), "a round takes no time"),
        (closed([400, 400, 400]), stations([(1, 1, 1)], [SINGLE]), "too many populations"),
        (closed([10**7]), stations([(1.0,)], [SINGLE]), "too many populations"),
        (closed([2]), stations([(1.0,)] * 7, [(1, 2)] * 7), "at most 6 can be solved"),
    ],
)
def test_a_network_outside_the_domain_is_refused(
    classes: list[CustomerClass], at: list[ServiceStation], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        solve(classes, at)


def test_stations_that_no_closed_customer_visits_may_be_many() -> None:
    """Their states need not be known, so each is M/M/2 by itself."""
    alone = solve(opened(0.5), stations([(1.0,)], [(1, 2)]))[0]
    both = [(0.0, 1.0)] * 12 + [(1.0, 0.0)]
    _, crowd = solve([*closed([3]), *opened(0.5)], stations(both, [(1, 2)] * 12 + [SINGLE]))
    many = solve(opened(0.5), stations([(1.0,)] * 12, [(1, 2)] * 12))[0]
    assert isclose(many.response_time_s, 12 * alone.response_time_s)
    assert isclose(crowd.response_time_s, 12 * alone.response_time_s)


def test_open_classes_that_take_long_beside_many_customers_are_refused() -> None:
    classes = [*closed([4000]), *opened(0.9998)]
    with pytest.raises(ValueError, match="take too long to solve; take fewer of these"):
        solve(classes, stations([(1.0, 3999.0)], [of_servers(4000)]))


def test_the_most_overloaded_station_is_named() -> None:
    network = stations([(0.1,), (0.5,), (5.0,), (9.0,)], [SINGLE, SINGLE, (1, 2), DELAY])
    with pytest.raises(ValueError, match="bring 15 s of work a second to station 's2', which can"):
        solve(opened(3.0), network)


def test_a_class_is_open_or_closed() -> None:
    with pytest.raises(ValueError, match="needs either customers"):
        CustomerClass("x", 1, 0.0, 2.0)
    with pytest.raises(ValueError, match="needs either customers"):
        CustomerClass("x")
