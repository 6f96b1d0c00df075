"""Service times and arrivals: their means and shapes, and the same numbers from the same seed."""

from math import exp, isclose, sqrt
from random import Random
from statistics import fmean

import pytest

from loadtests.models.random_times import Gamma, poisson_times
from loadtests.models.sample_statistics import cv_of, variance_of

DRAWS = 20_000

# Distribution, and the probability to exceed its mean, which tells shapes of equal cv apart.
SHAPES: list[tuple[Gamma, float]] = [
    (Gamma(3.0, 0), 0.0),
    (Gamma(3.0, 1), exp(-1)),
    (Gamma(3.0, 0.5), exp(-4) * (1 + 4 + 8 + 64 / 6)),  # Erlang's, of four stages
    (Gamma(3.0, sqrt(2)), 0.31731),
]


@pytest.mark.parametrize(("service", "above"), SHAPES, ids=lambda value: str(value)[:30])
def test_draws_have_the_mean_cv_and_shape(service: Gamma, above: float) -> None:
    rng = Random(7)
    drawn = [service.draw(rng) for _ in range(DRAWS)]
    deviation = service.cv * service.mean_s
    assert isclose(fmean(drawn), service.mean_s, abs_tol=4 * deviation / sqrt(DRAWS) + 1e-12)
    assert isclose(cv_of(drawn), service.cv, rel_tol=0.05, abs_tol=1e-12)
    share = sum(time_s > service.mean_s for time_s in drawn) / DRAWS
    assert isclose(share, above, abs_tol=4 * sqrt(above * (1 - above) / DRAWS) + 1e-12)
    assert min(drawn) >= 0


def test_the_same_seed_gives_the_same_times() -> None:
    def drawn(seed: int) -> list[float]:
        rng = Random(seed)
        return [Gamma(3.0, 0.3).draw(rng) for _ in range(5)]

    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)


def test_poisson_arrivals_have_gaps_without_memory() -> None:
    times_s = poisson_times(4.0, Random(5), count=DRAWS)
    gaps_s = [b - a for a, b in zip([0.0, *times_s], times_s, strict=False)]
    assert isclose(fmean(gaps_s), 0.25, rel_tol=4 / sqrt(DRAWS))
    assert isclose(cv_of(gaps_s), 1, rel_tol=0.05)


def test_the_number_of_poisson_arrivals_has_its_mean_for_variance() -> None:
    rng = Random(6)
    runs = [poisson_times(0.5, rng, until_s=20.0) for _ in range(4000)]
    numbers = [len(times_s) for times_s in runs]
    assert isclose(fmean(numbers), 10, abs_tol=4 * sqrt(10 / 4000))
    assert isclose(variance_of(numbers), 10, rel_tol=0.1)
    assert all(0 <= time_s < 20 for times_s in runs for time_s in times_s)
