"""Computes intervals that hold at every number of values, so one may look and stop at any time.

An interval covers the mean in 95 of 100 experiments if one looks once. Who looks after each value
and stops when the answer pleases is wrong far more often. A confidence sequence covers the mean at
all numbers of values together with the given probability.

For values x₁ … xₙ with the normal distribution and unknown variance, and a mean μ,

    Mₙ(μ) = √(1/(1 + ng)) · (1 − Sₙ²/((n + 1/g)·Vₙ))^(−n/2),   Sₙ = Σ(xᵢ − μ),   Vₙ = Σ(xᵢ − μ)²

is a martingale of mean 1 if μ is the mean (in the scale-invariant filtration), so that it ever
reaches 1/α with probability α at most (J. Ville, 1939); the sequence has all μ with Mₙ(μ) < 1/α.
It mixes likelihood ratios over effects μ/σ with the normal distribution of variance g. Sources:
T. L. Lai, On confidence sequences, Annals of Statistics 4 (1976); H. Wang and A. Ramdas,
Anytime-valid t-tests and confidence sequences for Gaussian means with unknown variance, Sequential
Analysis 44 (2025). Empirical-Bernstein sequences (I. Waudby-Smith and A. Ramdas, 2024) need no
normal distribution but bounded values, which response times are not. The means of runs are about
normal; what skewness costs was simulated, see the README.
"""

import math
from collections.abc import Sequence

from loadtests.models.estimates import CONFIDENCE, Interval, Verdict, verdict
from loadtests.models.sample_statistics import Summary, summary

EFFECTS = 3.0
"""g. The sequence is narrowest where values differ from a mean by about √g of their deviation: with
3 it is never more than 5 % wider than the best g would make it from 6 to 20 values."""

LEAST_VALUES = 5  # fewer decide nothing: nobody knows then whether values are about normal
MOST_VALUES = 1000


def confidence_sequence(values: Sequence[float]) -> Interval:
    """Return the element of the sequence after these values; infinitely wide after few."""
    return _expected(summary(values), len(values))


def _expected(sample: Summary, values: int) -> Interval:
    """Return the element after so many values like this sample: it ends where Mₙ is 1/α."""
    spread = 1 + values * EFFECTS
    power = (math.sqrt(spread) / (1 - CONFIDENCE)) ** (2 / values)
    if sample.count < 2 or power >= spread:
        return Interval(sample.mean, math.inf, values)
    error = sample.standard_deviation / math.sqrt(values)
    widening = math.sqrt((values - 1) * (power - 1) * spread / (spread - power))
    return Interval(sample.mean, error * widening, values)


def sequential_verdict(values: Sequence[float], predicted: float) -> Verdict:
    """Return the verdict on a model after these differences, measured − predicted.

    It may be asked for after every value, and the experiment stopped as soon as it decides: the
    probability that it ever decides wrongly is 5 % at most.
    """
    if len(values) < LEAST_VALUES:
        return Verdict.NOT_DECIDED
    return verdict(confidence_sequence(values), predicted)


def values_needed(values: Sequence[float], predicted: float) -> int | None:
    """Return how many more values decide, if mean and deviation stay as they are.

    None if there are fewer than two values, or more than `MOST_VALUES` would be needed.
    """
    if len(values) < 2:
        return None
    sample = summary(values)
    for number in range(max(len(values), LEAST_VALUES), MOST_VALUES + 1):
        expected = _expected(sample, number)
        if verdict(expected, predicted) is not Verdict.NOT_DECIDED:
            return number - len(values)
        if expected.half_width < 1e-9 * predicted:  # the mean is at the edge, for ever
            return None
    return None
