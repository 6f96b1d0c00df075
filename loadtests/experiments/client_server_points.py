"""Predicts each run by models, and judges whether the runs of a point agree. It reads only files.

Service times come from the run `alone`, at a utilisation of 0.03, as in the study. What a request
of another run would have taken alone is computed by a straight line over the rows of its statement
and the rows that it skips, by the time that the known server was told to sleep, or, if neither is
known, by the mean; what the run alone left unexplained is drawn from there. With these times the
arrivals of the run are sent through m servers in order of arrival, the study's station, `DRAWS`
times. Each request is compared with its own prediction, which does not assume exponential times as
M/M/m does.

The interval of several runs, each calibrated and measured alone anew, is Student's. That of one is
from batches, and widened by what the replay moves if E[S] lies at the ends of its own interval.
Near saturation batches depend on each other: there one run has no interval and decides nothing.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter, sub
from random import Random
from statistics import fmean

import numpy as np

from loadtests.experiments import client_server_measurements as measuring
from loadtests.experiments.client_server_measurements import (
    ALONE,
    KNOWN_SERVICE_TIME_S,
    POINTS,
    PointLine,
    sizes,
)
from loadtests.generation.rows import Row
from loadtests.generation.run import SCHEDULES
from loadtests.generation.schedule import Arrival, load
from loadtests.lab.repeated import Repeated, recorded_runs
from loadtests.lab.results import Results
from loadtests.models.estimates import (
    Interval,
    Verdict,
    confidence_interval,
    mean_over_runs,
    verdict,
)
from loadtests.models.open_queue import Queue, Unstable
from loadtests.models.sample_statistics import cv_of

DRAWS = 10  # number of replays of a run, each with unexplained parts of its own
NEAR_SATURATION = 0.8  # the utilisation from which only several runs count
LEAST_NEAR_SATURATION = 4  # runs that decide there
LEAST_R2 = 0.5  # a line that explains less is not used
LEAST_DRAWN_S = 1e-6


@dataclass(frozen=True)
class Alone:
    """Holds the service times (s) of a system at so low a rate that customers hardly ever wait.

    line_s: coefficients of the line for the sizes of `client_server_measurements.sizes`, and r2 the
    share of the variance that it explains; none if there is no line. overhead_s: mean time that the
    known server takes beyond the time it is to sleep; None for other measuring. left_s: each time
    less what is computed for its request, 0 on average.
    """

    times_s: Sequence[float]
    line_s: Sequence[float] = ()
    r2: float | None = None
    overhead_s: float | None = None
    left_s: Sequence[float] = ()

    @cached_property
    def mean_s(self) -> float:
        """Return E[S] in s: measured, or for the known server its mean sleep plus the overhead."""
        if self.overhead_s is not None:
            return KNOWN_SERVICE_TIME_S + self.overhead_s
        return fmean(self.times_s)

    @cached_property
    def cv(self) -> float:
        return cv_of(self.times_s)

    @property
    def interval(self) -> Interval:
        """Return the confidence interval of E[S]: for the known server, that of the overhead."""
        values_s = self.times_s if self.overhead_s is None else self.left_s
        return replace(confidence_interval(values_s), estimate=self.mean_s)

    def expected_s(self, arrival: Arrival) -> float:
        """Return the time (s) that this request would have taken alone, on average."""
        if arrival.demand_s is not None and self.overhead_s is not None:
            return arrival.demand_s + self.overhead_s
        if self.line_s:
            return float(np.dot(self.line_s, sizes(arrival.body)))
        return self.mean_s

    def draw_s(self, schedule: Sequence[Arrival], random: Random) -> list[float]:
        """Return a service time (s) for each request, its unexplained part drawn at random."""
        times_s = (self.expected_s(arrival) + random.choice(self.left_s) for arrival in schedule)
        return [max(LEAST_DRAWN_S, time_s) for time_s in times_s]


def fit_alone(times_s: Sequence[float], schedule: Sequence[Arrival]) -> Alone:
    """Return what is known of service times (s) from a run alone, in order of arrival."""
    overhead_s = None
    demands_s = [arrival.demand_s for arrival in schedule if arrival.demand_s is not None]
    if len(demands_s) == len(times_s):
        overhead_s = fmean(times_s) - fmean(demands_s)
    line_s, r2 = line_through(times_s, [sizes(arrival.body) for arrival in schedule])
    alone = Alone(times_s, line_s, r2, overhead_s)
    left_s = np.array(times_s) - [alone.expected_s(arrival) for arrival in schedule]
    return replace(alone, left_s=(left_s - left_s.mean()).tolist())


def line_through(
    times_s: Sequence[float], known_sizes: Sequence[Sequence[float]]
) -> tuple[Sequence[float], float | None]:
    """Return the line by least squares, and its r².

    There is none if sizes do not vary independently, or if it explains less than LEAST_R2.
    """
    matrix, times = np.array(known_sizes), np.array(times_s)
    line, _, rank, _ = np.linalg.lstsq(matrix, times)
    r2 = 1 - np.var(times - matrix @ line) / np.var(times) if np.var(times) else 0.0
    if rank < matrix.shape[1] or r2 < LEAST_R2:
        return (), None
    return line.tolist(), float(r2)


@dataclass(frozen=True)
class OneRun:
    """Holds a run that counts, with an answer to every arrival. alone: its system's service times.

    responses_s: in order of arrival, from the intended arrival on; of a run alone from sending on.
    """

    line: PointLine
    schedule: Sequence[Arrival]
    responses_s: Sequence[float]
    alone: Alone

    def replayed(self, queue: Queue) -> tuple[list[float], float]:
        """Return each request's mean response time (s) in this queue, and an error (s) of the mean.

        The mean of all moves by this error if E[S] lies at the ends of its interval.
        """
        random = Random(self.line.run)  # noqa: S311  no secrets; the same report each time
        arrivals_s = [arrival.intended_s for arrival in self.schedule]
        draws_s = [self.alone.draw_s(self.schedule, random) for _ in range(DRAWS)]
        responses_s = [queue.replayed_s(arrivals_s, services_s) for services_s in draws_s]
        error = min(confidence_interval(self.alone.left_s).half_width / self.alone.mean_s, 0.5)
        low_s, high_s = (
            fmean(queue.replayed_s(arrivals_s, [factor * s for s in draws_s[0]]))
            for factor in (1 - error, 1 + error)
        )
        return np.mean(responses_s, axis=0).tolist(), abs(high_s - low_s) / 2


@dataclass(frozen=True, slots=True)
class Replayed:
    """Tells how the runs of a point went in a queue. mean_s: the mean response time there.

    difference: measured − replayed, in s. verdict: on the model.
    """

    mean_s: float
    difference: Interval
    verdict: Verdict


@dataclass(frozen=True)
class Point(Repeated[OneRun]):
    """Holds the runs of a system at a rate with m servers."""

    @property
    def title(self) -> str:
        return measuring.SYSTEMS[self.line.system].title

    @property
    def name(self) -> str:
        return measuring.named(self.line.system, self.line.kind)

    @property
    def alone(self) -> Alone:
        """Return the service times that its first run was compared with."""
        return self.runs[0].alone

    @property
    def rate_per_s(self) -> float:
        """Return λ, the mean over runs, which have their own by their own calibrations."""
        return fmean(run.line.rate_per_s for run in self.runs)

    @cached_property
    def service(self) -> Interval:
        """Estimate E[S] in s, over runs or from the run alone of a single one."""
        if len(self.runs) == 1:
            return self.alone.interval
        return self.over(lambda run: run.alone.mean_s)

    @property
    def utilisation(self) -> float:
        """Return χ = λ·E[S]/m."""
        return self.rate_per_s * self.service.estimate / self.line.servers

    @property
    def decides(self) -> bool:
        """Tell whether its runs are enough for a verdict: near saturation it takes several."""
        is_near = self.line.role != ALONE and self.utilisation >= NEAR_SATURATION
        return not is_near or len(self.runs) >= LEAST_NEAR_SATURATION

    @cached_property
    def response(self) -> Interval:
        """Estimate the mean response time in s; a single run near saturation has no interval."""
        if len(self.runs) == 1 and not self.decides:
            return Interval(fmean(self.runs[0].responses_s))
        return mean_over_runs([run.responses_s for run in self.runs])

    @property
    def mean_s(self) -> float:
        return self.response.estimate

    def steady_s(self, cv: float = 1) -> float | None:
        """Return E[R] of M/M/m, or of M/G/m with this cv, in s; None without a steady state."""
        queue = Queue(self.line.servers)
        try:
            return queue.steady(self.rate_per_s, self.service.estimate, cv).response_time_s
        except Unstable:
            return None

    @cached_property
    def queued(self) -> Replayed:
        queue = Queue(self.line.servers)
        replays_s, errors_s = zip(*(run.replayed(queue) for run in self.runs), strict=True)
        measured_s = (run.responses_s for run in self.runs)
        difference = mean_over_runs(
            [list(map(sub, *pair)) for pair in zip(measured_s, replays_s, strict=True)]
        )
        if len(self.runs) == 1:
            half_width = math.hypot(difference.half_width, errors_s[0])
            difference = replace(difference, half_width=half_width)
        mean_s = fmean(map(fmean, replays_s))
        decision = verdict(difference, mean_s) if self.decides else Verdict.NOT_DECIDED
        return Replayed(mean_s, difference, decision)


def _whole_run(
    results: Results, run: str, rows: Sequence[Row]
) -> tuple[Sequence[Arrival], Sequence[Row]]:
    """Return the schedule of an open run, and its rows in this order; none if it was cut short."""
    path = results.folder / SCHEDULES / f"{run}.csv"
    schedule = load(path) if path.exists() else []
    answered = sorted(rows, key=lambda row: row.index)
    is_whole = [row.index for row in answered] == [arrival.index for arrival in schedule]
    return schedule, answered if is_whole else []


def points(results: Results) -> list[Point]:
    """Return the points that have a complete run that counts, in order. Raises ResultsError.

    If a run alone was rejected, the runs that take their service times from it count nowhere, too.
    """
    results.rows(POINTS)  # without this table, it is no result of this study
    alone, runs = dict[tuple[str, str, int], Alone](), list[OneRun]()
    for line, rows in recorded_runs(results, POINTS, PointLine):
        schedule, answered = _whole_run(results, line.run, rows)
        if not answered:
            continue
        group = (line.system, line.kind, line.rep)
        measured = "closed_response_s" if line.role == ALONE else "open_response_s"
        responses_s = [*map(attrgetter(measured), answered)]
        if line.role == ALONE:
            alone[group] = fit_alone(responses_s, schedule)
        if group in alone:
            runs.append(OneRun(line, schedule, responses_s, alone[group]))
    point = attrgetter("line.system", "line.kind", "line.role", "line.servers", "line.name")
    return Point.of_each(runs, point)
