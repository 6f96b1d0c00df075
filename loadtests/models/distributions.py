"""Distributions of service times, drawn with the `random.Random` of the caller.

Each has a mean in seconds, a coefficient of variation cv (standard deviation over mean) and a
`draw`. Mean and cv do not determine the shape: `with_mean_and_cv` takes a gamma distribution, which
is exact at cv = 0 (always the same time) and cv = 1 (exponential).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Protocol

from loadtests.models.domain import count, not_negative, positive
from loadtests.models.samples import summary


class ServiceTimes(Protocol):
    """A distribution of service times."""

    @property
    def mean_s(self) -> float:
        """E[S] in seconds."""

    @property
    def cv(self) -> float:
        """The standard deviation divided by the mean."""

    def draw(self, rng: Random) -> float:
        """One service time in seconds."""


def with_mean_and_cv(mean_s: float, cv: float) -> ServiceTimes:
    """Deterministic at cv = 0, exponential at cv = 1, otherwise gamma.

    Raises ValueError unless the mean is positive and cv at least 0.
    """
    if not_negative("cv", cv) == 0:
        return Deterministic(mean_s)
    return Exponential(mean_s) if cv == 1 else Gamma(mean_s, cv)


@dataclass(frozen=True, slots=True)
class Deterministic:
    """Always the same time."""

    mean_s: float

    def __post_init__(self) -> None:
        positive("mean_s", self.mean_s)

    @property
    def cv(self) -> float:
        """0."""
        return 0.0

    def draw(self, rng: Random) -> float:  # noqa: ARG002 - other distributions need it
        """The mean."""
        return self.mean_s


@dataclass(frozen=True, slots=True)
class Exponential:
    """Exponentially distributed, without memory: cv = 1."""

    mean_s: float

    def __post_init__(self) -> None:
        positive("mean_s", self.mean_s)

    @property
    def cv(self) -> float:
        """1."""
        return 1.0

    def draw(self, rng: Random) -> float:
        """One service time in seconds."""
        return rng.expovariate(1 / self.mean_s)


@dataclass(frozen=True, slots=True)
class Gamma:
    """Gamma distributed: shape 1/cv², scale E[S]·cv². cv must be positive."""

    mean_s: float
    cv: float

    def __post_init__(self) -> None:
        positive("mean_s", self.mean_s)
        positive("cv", self.cv)

    def draw(self, rng: Random) -> float:
        """One service time in seconds."""
        return rng.gammavariate(self.cv**-2, self.mean_s * self.cv**2)


@dataclass(frozen=True, slots=True)
class Erlang:
    """The sum of `stages` exponential times with equal means: cv = 1/√stages."""

    mean_s: float
    stages: int

    def __post_init__(self) -> None:
        positive("mean_s", self.mean_s)
        count("stages", self.stages)

    @property
    def cv(self) -> float:
        """1/√stages."""
        return 1 / math.sqrt(self.stages)

    def draw(self, rng: Random) -> float:
        """One service time in seconds."""
        return rng.gammavariate(self.stages, self.mean_s / self.stages)


@dataclass(frozen=True, slots=True)
class Lognormal:
    """The exponential of a normal variable with variance ln(1 + cv²). cv must be positive."""

    mean_s: float
    cv: float

    def __post_init__(self) -> None:
        positive("mean_s", self.mean_s)
        positive("cv", self.cv)

    def draw(self, rng: Random) -> float:
        """One service time in seconds."""
        variance = math.log1p(self.cv**2)
        return rng.lognormvariate(math.log(self.mean_s) - variance / 2, math.sqrt(variance))


@dataclass(frozen=True, slots=True)
class Empirical:
    """Recorded times (s), each as likely as any other, drawn with replacement.

    Mean and cv are those of the recorded times as a whole population (divisor n). Raises ValueError
    for no times, a time below 0, or nothing but zeros.
    """

    times_s: tuple[float, ...]
    mean_s: float
    cv: float

    def __init__(self, times_s: Sequence[float]) -> None:
        for time_s in times_s:
            not_negative("times_s", time_s)
        found = summary(times_s)
        positive("the mean of times_s", found.mean)
        object.__setattr__(self, "times_s", tuple(times_s))
        object.__setattr__(self, "mean_s", found.mean)
        object.__setattr__(self, "cv", math.sqrt(found.squares / found.count) / found.mean)

    def draw(self, rng: Random) -> float:
        """One of the recorded times, in seconds."""
        return rng.choice(self.times_s)
