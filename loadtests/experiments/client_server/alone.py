"""The service times of a system at so low a rate that customers hardly ever wait."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from random import Random
from statistics import fmean

from loadtests.experiments.client_server.asked import sizes
from loadtests.experiments.client_server.systems import KNOWN_SERVICE_TIME_S
from loadtests.generation.rows import Row
from loadtests.generation.schedule import Arrival
from loadtests.models.estimates import Interval, confidence_interval
from loadtests.models.linear import least_squares
from loadtests.models.random_times import Empirical, ServiceTimes, with_mean_and_cv
from loadtests.models.samples import summary

LEAST_R2 = 0.5  # a line that explains less is not used
LEAST_COMPUTED_S = 1e-6


@dataclass(frozen=True, slots=True)
class Line:
    """A linear function for service times. coefficients_s: for the sizes of `asked.sizes`.

    r2: the share of the variance that it explains.
    """

    coefficients_s: tuple[float, ...]
    r2: float

    def at(self, of: Sequence[float]) -> float:
        """The time in seconds for these sizes."""
        time_s = sum(b * x for b, x in zip(self.coefficients_s, of, strict=True))
        return max(LEAST_COMPUTED_S, time_s)


@dataclass(frozen=True)
class Alone:
    """The service times (s) of a system at so low a rate that customers hardly ever wait.

    overhead_s: mean time that the known server takes beyond the time it is told to sleep; None for
    other systems. left_s: each time less what is computed for its request, 0 on average.
    """

    times_s: tuple[float, ...]
    line: Line | None
    overhead_s: float | None
    left_s: tuple[float, ...]

    @cached_property
    def mean_s(self) -> float:
        """E[S]: measured, or for the known server the chosen mean plus the measured overhead."""
        if self.overhead_s is not None:
            return KNOWN_SERVICE_TIME_S + self.overhead_s
        return summary(self.times_s).mean

    @cached_property
    def cv(self) -> float:
        """The coefficient of variation."""
        if self.overhead_s is not None:
            return KNOWN_SERVICE_TIME_S / self.mean_s
        return summary(self.times_s).cv

    @property
    def distribution(self) -> ServiceTimes:
        """The distribution for simulations: by the known mean and cv, or the measured times."""
        if self.overhead_s is not None:
            return with_mean_and_cv(self.mean_s, self.cv)
        return Empirical(self.times_s)

    @cached_property
    def interval(self) -> Interval:
        """The confidence interval of E[S]: for the known server, that of the overhead."""
        own = self.times_s if self.overhead_s is None else self.left_s
        return replace(confidence_interval(own), estimate=self.mean_s)

    @property
    def error(self) -> float:
        """By how much all computed times may be wrong together, as a share: its 95 % interval."""
        return confidence_interval(self.left_s).half_width / self.mean_s

    def of(self, arrival: Arrival) -> float:
        """The time in seconds that this request would have taken alone, on average."""
        if arrival.demand_s is not None and self.overhead_s is not None:
            return max(LEAST_COMPUTED_S, arrival.demand_s + self.overhead_s)
        if self.line is not None:
            return self.line.at(sizes(arrival.body))
        return self.mean_s

    def drawn(self, schedule: Sequence[Arrival], random: Random) -> list[float]:
        """A service time for each request, with the unexplained part drawn from the run alone."""
        return [
            max(LEAST_COMPUTED_S, self.of(each) + random.choice(self.left_s)) for each in schedule
        ]


def alone(rows: Sequence[Row], schedule: Sequence[Arrival]) -> Alone:
    """The service times of a run alone, by its rows in order of arrival."""
    times_s = tuple(row.closed_response_s for row in rows)
    overhead_s = None
    demands_s = [arrival.demand_s for arrival in schedule if arrival.demand_s is not None]
    if len(demands_s) == len(times_s):
        overhead_s = summary(times_s).mean - summary(demands_s).mean
    line = line_through(times_s, [sizes(one.body) for one in schedule])
    computed = Alone(times_s, line, overhead_s, ())
    left_s = [time_s - computed.of(one) for time_s, one in zip(times_s, schedule, strict=True)]
    mean_s = fmean(left_s)
    return replace(computed, left_s=tuple(each_s - mean_s for each_s in left_s))


def line_through(times_s: Sequence[float], asked: Sequence[Sequence[float]]) -> Line | None:
    """The line by least squares; None if sizes do not vary or it explains less than LEAST_R2."""
    if len(asked[0]) == 1:
        return None
    try:
        found = tuple(least_squares(asked, times_s))
    except ValueError:
        return None
    mean_s = summary(times_s).mean
    total = math.fsum((time_s - mean_s) ** 2 for time_s in times_s)
    missed = math.fsum(
        (time_s - sum(b * x for b, x in zip(found, of, strict=True))) ** 2
        for time_s, of in zip(times_s, asked, strict=True)
    )
    r2 = 1 - missed / total if total else 0.0
    return Line(found, r2) if r2 >= LEAST_R2 else None
