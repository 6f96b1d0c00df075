"""Computes the curves of the study's figures 2 to 5, as numbers to draw.

figure 2  mean response time against the load, of each model          response_against_load
figure 3  response times over the time of a run                       durations_over_time
figure 4  customers in the system over the time of a run              customers_sampled
figure 5  the system's load average over the time of a run            load_average
"""

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from loadtests.models import single_server
from loadtests.models.domain import count, not_negative, positive, recorded_times
from loadtests.models.recorded import Step, customers_at
from loadtests.models.samples import summary

STUDY_SAMPLE_S = 10.0  # the time between samples of the study's load generator
LOAD_SAMPLE_S = 5.0  # the time after which Linux counts again what runs or waits to run
LOAD_TIME_CONSTANT_S = 60.0  # that of the first of Linux's three load averages


@dataclass(frozen=True, slots=True)
class LoadPoint:
    """Mean response times (s) at a fraction of the maximum rate L, for FCFS and shared service."""

    fraction: float
    arrival_rate_per_s: float
    fcfs_s: float
    processor_sharing_s: float


@dataclass(frozen=True, slots=True)
class Durations:
    """The response times (s) of the customers who left in the sample that begins at `time_s`."""

    time_s: float
    customers: int
    mean_s: float
    longest_s: float


@dataclass(frozen=True, slots=True)
class Sample:
    """A value at a time (s)."""

    time_s: float
    value: float


def response_against_load(
    service_time_s: float, service_variance_s2: float, fractions: Sequence[float]
) -> list[LoadPoint]:
    """Figure 2: M/G/1 and M/G/1-PS at fractions of L = 1/E[S]. Raises Unstable for one ≥ 1."""
    maximum = single_server.maximum_rate_per_s(service_time_s)
    return [
        LoadPoint(
            fraction,
            rate := fraction * maximum,
            single_server.mg1(rate, service_time_s, service_variance_s2).response_time_s,
            single_server.mg1_ps(rate, service_time_s).response_time_s,
        )
        for fraction in fractions
    ]


def durations_over_time(
    arrivals_s: Sequence[float], responses_s: Sequence[float], sample_s: float = STUDY_SAMPLE_S
) -> list[Durations]:
    """Figure 3: samples of `sample_s` seconds from 0 on; those in which nobody left are missing."""
    recorded_times(arrivals_s, responses_s, "responses_s")
    positive("sample_s", sample_s)
    samples: dict[int, list[float]] = defaultdict(list)
    for arrival_s, response_s in zip(arrivals_s, responses_s, strict=True):
        samples[math.floor((arrival_s + response_s) / sample_s)].append(response_s)
    found = [(number, summary(stays_s)) for number, stays_s in sorted(samples.items())]
    return [Durations(at * sample_s, of.count, of.mean, of.highest) for at, of in found]


def customers_sampled(
    steps: Sequence[Step], duration_s: float, sample_s: float = STUDY_SAMPLE_S
) -> list[Sample]:
    """Figure 4: the customers in the system at 0, `sample_s`, 2·`sample_s` … up to `duration_s`."""
    return [Sample(at_s, customers_at(steps, at_s)) for at_s in _times(duration_s, sample_s)]


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
    1 − exp(−sample/time constant), as in Linux; it starts at 0. The time constant is fixed, so this
    figure needs real time: it must not be drawn for a run whose times were divided.
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
