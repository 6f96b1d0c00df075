"""Simulates what results a short experiment should have, if the queue is as modelled.

A short run that starts empty does not reach the steady state: its mean lies below that of the
formula, and varies much from run to run. So a measured mean is compared with simulated runs, too.

In a run, customers arrive from 0 to `duration_s` as a Poisson process at a system that is empty at
0. All of them count, even if they are served after `duration_s` (the study's load generator waited
for its users, too). The result of an experiment is the mean of the mean response times of its runs,
each run with the same weight. A run without customers has no mean and is left out.
"""

from dataclasses import dataclass
from random import Random
from statistics import fmean
from typing import NamedTuple

from loadtests.models import replay
from loadtests.models.random_times import Gamma, poisson_times
from loadtests.models.replay import Discipline
from loadtests.models.sample_statistics import variance_of


class Run(NamedTuple):
    """Holds the results of a run: arrivals, and their mean response time."""

    arrivals: int
    mean_s: float


@dataclass(frozen=True, slots=True)
class Expectation:
    """Holds the results to expect of experiments.

    arrivals: mean number per run. pooled_s: mean over all requests. mean_s: mean of the run means;
    standard_error_s: its standard error. low_s, high_s: an experiment's result lies between these
    with the confidence of `expectation`.
    """

    arrivals: float
    pooled_s: float
    mean_s: float
    standard_error_s: float
    low_s: float
    high_s: float

    def covers(self, measured_s: float) -> bool:
        """Return whether an experiment's result lies in the expected range."""
        return self.low_s <= measured_s <= self.high_s


def expectation(
    duration_s: float,
    runs: int,
    arrival_rate_per_s: float,
    service: Gamma,
    rng: Random,
    *,
    simulated_runs: int = 20_000,
    confidence: float = 0.95,
) -> Expectation:
    """Simulate experiments of `runs` runs from an empty system, in order of arrival.

    Rates of ρ ≥ 1 are allowed, because runs end. The range comes from `simulated_runs` experiments,
    each of runs drawn from the simulated ones.
    """
    simulated = [
        simulate_run(duration_s, arrival_rate_per_s, service, rng, replay.fcfs)
        for _ in range(simulated_runs)
    ]
    made = [run for run in simulated if run is not None]
    if len(made) < 2:
        only = f"only {len(made)} of {simulated_runs} runs had a customer"
        raise ValueError(f"runs of {duration_s} s have too few arrivals: {only}")
    numbers, means_s = zip(*made, strict=True)
    results_s = sorted(sum(rng.choices(means_s, k=runs)) / runs for _ in range(simulated_runs))
    outside = round((1 - confidence) / 2 * simulated_runs)
    return Expectation(
        arrivals=sum(numbers) / simulated_runs,
        pooled_s=sum(arrivals * mean_s for arrivals, mean_s in made) / sum(numbers),
        mean_s=fmean(means_s),
        standard_error_s=(variance_of(means_s) / len(made)) ** 0.5,
        low_s=results_s[outside],
        high_s=results_s[-1 - outside],
    )


def simulate_run(
    duration_s: float,
    arrival_rate_per_s: float,
    service: Gamma,
    rng: Random,
    discipline: Discipline,
) -> Run | None:
    """Simulate a run; None if no customer came."""
    arrivals_s = poisson_times(arrival_rate_per_s, rng, until_s=duration_s)
    if not arrivals_s:
        return None
    responses_s = discipline(arrivals_s, [service.draw(rng) for _ in arrivals_s])
    return Run(len(arrivals_s), sum(responses_s) / len(responses_s))
