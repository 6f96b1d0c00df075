"""Computes the load average of a run, which is the study's figure 5, as numbers to draw."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from loadtests.models.domain import count, not_negative, positive
from loadtests.models.recorded import Step, customers_at

LOAD_SAMPLE_S = 5.0  # the time after which Linux counts again what runs or waits to run
LOAD_TIME_CONSTANT_S = 60.0  # that of the first of Linux's three load averages


@dataclass(frozen=True, slots=True)
class Sample:
    """A value at a time (s)."""

    time_s: float
    value: float


def load_average(
    steps: Sequence[Step],
    duration_s: float,
    servers: int = 1,
    *,
    sample_s: float = LOAD_SAMPLE_S,
    time_constant_s: float = LOAD_TIME_CONSTANT_S,
) -> list[Sample]:
    """Figure 5: the load average of a machine on which only the customers in service run.

    Every `sample_s` the average moves towards the number in service by the share
    1 − exp(−sample/time constant), as in Linux; it starts at 0. The time constant is fixed, so
    times that were divided are to be multiplied again before.
    """
    count("servers", servers)
    keep = math.exp(-positive("sample_s", sample_s) / positive("time_constant_s", time_constant_s))
    average = 0.0
    samples = []
    for at_s in _times(duration_s, sample_s):
        average = average * keep + min(customers_at(steps, at_s), servers) * (1 - keep)
        samples.append(Sample(at_s, average))
    return samples


def _times(duration_s: float, sample_s: float) -> Iterator[float]:
    not_negative("duration_s", duration_s)
    positive("sample_s", sample_s)
    return (number * sample_s for number in range(math.floor(duration_s / sample_s) + 1))
