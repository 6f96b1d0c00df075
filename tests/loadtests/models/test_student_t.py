"""Student's t, against the textbook's table, closed forms and the integral of its density."""

from math import exp, fsum, isclose, lgamma, log1p, pi, sqrt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loadtests.models.student_t import MANY, quantile
from tests.cases import each_of

# Degrees of freedom -> t at 0.90, 0.95, 0.975, 0.99, 0.995, as textbooks print it.
TABLE = {
    1: (3.078, 6.314, 12.706, 31.821, 63.657),
    2: (1.886, 2.920, 4.303, 6.965, 9.925),
    3: (1.638, 2.353, 3.182, 4.541, 5.841),
    4: (1.533, 2.132, 2.776, 3.747, 4.604),
    5: (1.476, 2.015, 2.571, 3.365, 4.032),
    6: (1.440, 1.943, 2.447, 3.143, 3.707),
    7: (1.415, 1.895, 2.365, 2.998, 3.499),
    8: (1.397, 1.860, 2.306, 2.896, 3.355),
    9: (1.383, 1.833, 2.262, 2.821, 3.250),
    10: (1.372, 1.812, 2.228, 2.764, 3.169),
    15: (1.341, 1.753, 2.131, 2.602, 2.947),
    19: (1.328, 1.729, 2.093, 2.539, 2.861),
    20: (1.325, 1.725, 2.086, 2.528, 2.845),
    29: (1.311, 1.699, 2.045, 2.462, 2.756),
    30: (1.310, 1.697, 2.042, 2.457, 2.750),
    60: (1.296, 1.671, 2.000, 2.390, 2.660),
    120: (1.289, 1.658, 1.980, 2.358, 2.617),
}
LEVELS = (0.90, 0.95, 0.975, 0.99, 0.995)
P = st.floats(0.001, 0.999)


@each_of("freedom", TABLE)
def test_the_textbooks_table(freedom: int) -> None:
    assert [round(quantile(p, freedom), 3) for p in LEVELS] == list(TABLE[freedom])


@settings(max_examples=25)
@given(P, st.integers(1, 60))
def test_the_density_up_to_a_quantile_integrates_to_its_probability(p: float, freedom: int) -> None:
    t = quantile(p, freedom)
    steps = 4000
    width = t / steps
    weights = [1.0, *[4.0, 2.0] * (steps // 2 - 1), 4.0, 1.0]  # Simpson's
    area = fsum(w * _density(at * width, freedom) for at, w in enumerate(weights)) * width / 3
    assert isclose(0.5 + area, p, abs_tol=1e-9)


def _density(t: float, v: int) -> float:
    log_scale = lgamma((v + 1) / 2) - lgamma(v / 2)
    log_tail = (v + 1) / 2 * log1p(t * t / v)
    return exp(log_scale - log_tail) / sqrt(v * pi)


@pytest.mark.parametrize("p", [0.5, 0.9, 0.975, 0.9999])
def test_both_ways_meet_where_one_takes_over(p: float) -> None:
    below, above = quantile(p, MANY), quantile(p, MANY + 1)
    drift = quantile(p, MANY + 1) - quantile(p, MANY + 2)
    assert isclose(below - above, drift, rel_tol=0.02, abs_tol=2e-9)


@pytest.mark.parametrize(("p", "freedom"), [(0, 1), (1, 1), (0.5, 0), (float("nan"), 3)])
def test_arguments_outside_the_domain_are_refused(p: float, freedom: int) -> None:
    with pytest.raises(ValueError, match="must"):
        quantile(p, freedom)
