"""Compares measurement and models at each share of L in five layers. Times are in E[S].

1. the formula of the queue, for the steady state;
2. the expected result of the study's protocol, simulated: short runs from an empty server;
3. the paired estimate: formula + mean(measured − replayed), where each arrival is compared with the
   same arrival in a simulated queue, so that chance is the same on both sides;
4. the measurement, with its interval;
5. the value that the study printed.

The verdict is about 3: it agrees if its 95 % interval is within ±5 % of the formula, and disagrees
if it is outside. The service is judged by mean(measured − replayed) alone, from sending on and as a
share of the replay: see `plan.is_as_served`. Runs that share a calibration share the error of its
E[S], which at 0.85 of L is six times as large in the formula; so intervals are over calibrations,
and fewer than five decide nothing. From 0.8 of L on it needs ten runs besides. Above 0.85 there is
no verdict, because runs are too short for the formula. Simulated runs are their own replay, so
their difference is that of the raw mean from the formula.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from math import inf
from random import Random
from statistics import fmean

from loadtests.experiments.open_workload.plan import (
    AS_THE_STUDY,
    SETTLED_UP_TO,
    STEADY,
    STUDY_SERVICES,
)
from loadtests.experiments.open_workload.reading import OpenRun, Services, services
from loadtests.lab.published import OPEN_RUNS, OPEN_WORKLOADS, UNROUNDED
from loadtests.models.estimates import (
    REPLICATIONS,
    Interval,
    Verdict,
    batch_means,
    clustered_interval,
    verdict,
)
from loadtests.models.open_queue import ONE, Queue, Unstable
from loadtests.models.protocol import Expectation, Protocol, expectation
from loadtests.models.random_times import with_mean_and_cv
from loadtests.models.samples import quantile
from loadtests.models.sequential import LEAST_VALUES

SIMULATED_RUNS = 10_000
SMALL = 1e-4  # relative step of a derivative
REPLICATIONS_FROM = 0.8  # share of L from which intervals from batches of one run are too narrow


@dataclass(frozen=True, slots=True)
class Steady:
    """The steady state at a share of L.

    queue: the model. busy: the share of E[S] in it. utilisation: its ρ. cv: of the service times.
    runs, rejected: numbers of accepted and rejected runs. arrivals: number that counts. predicted:
    the mean response time by the formula. raw: as measured. replayed: that of the same arrivals in
    the queue. difference: the paired one, over all runs. served: replayed from sending on, with the
    service times that the server measured during the run; as_served: measured less that, so that
    only the order of service is left, None if the server did not tell. slower: the mean of those
    times over the calibrated one. lag, lag_s: the 99th percentile of how late requests were sent,
    in E[S] and in seconds. is_as_served: the verdict is about `as_served`, not `difference`;
    differences: that of each run.
    """

    server: str
    queue: Queue
    busy: float
    utilisation: float
    cv: float
    fraction: float
    runs: int
    rejected: int
    arrivals: int
    predicted: float
    raw: Interval
    replayed: float
    difference: Interval
    served: float
    as_served: Interval | None
    slower: float | None
    lag: float
    lag_s: float
    is_as_served: bool
    differences: Sequence[float]
    verdict: Verdict

    def predicted_at(self, fraction: float) -> float:
        """The mean response time by the formula at another share of L. Raises Unstable."""
        rate = fraction / self.fraction * self.utilisation * self.queue.servers / self.busy
        found = self.queue.steady(rate, self.busy, self.cv)
        return found.response_time_s + 1 - self.busy

    @property
    def can_be_decided(self) -> bool:
        """Whether runs as long as ours reach the steady state of the formula."""
        return self.fraction <= SETTLED_UP_TO

    @property
    def judged(self) -> tuple[Interval, float]:
        """The difference that the verdict is about, and the mean of which it is a share."""
        if self.is_as_served and self.as_served is not None:
            return self.as_served, self.served
        return self.difference, self.predicted

    @property
    def judged_name(self) -> str:
        """What that difference is called."""
        return "difference as served" if self.is_as_served else "paired difference"

    @property
    def paired(self) -> Interval:
        """The paired estimate of the mean response time."""
        return self.difference.plus(self.predicted)


@dataclass(frozen=True, slots=True)
class AsTheStudy:
    """The study's protocol at a share of L. expected: for `runs` runs; of_study: for its own 15.

    replayed: the mean response time of the same arrivals in the queue of the model.
    """

    fraction: float
    runs: int
    mean: float
    replayed: float
    fcfs: float
    expected: Expectation
    of_study: Expectation | None
    published: float | None


def steady_points(runs: Sequence[OpenRun], *, is_simulated: bool) -> list[Steady]:
    """A point for each server and share of L with a long enough run, in the plan's order."""
    of_part = [run for run in runs if run.part == STEADY and run.is_long_enough]
    groups = groupby(of_part, key=lambda run: (run.server, run.fraction))
    found = [_steady(list(group), is_simulated=is_simulated) for _, group in groups]
    return [point for point in found if point is not None]


def _steady(made: Sequence[OpenRun], *, is_simulated: bool) -> Steady | None:
    """The point of these runs; None if none counts or the queue has no steady state."""
    runs = [run for run in made if run.is_accepted]
    if not runs:
        return None
    used, first = services(runs), runs[0]
    try:
        predicted = fmean([_formula(run, used.cv) for run in runs])
        changes_s = _changes_s(runs, used)
    except Unstable:
        return None
    replayed_s = [run.replayed_s(of) for run, of in zip(runs, used.of_runs, strict=True)]
    told_s = [of for run in runs if (of := run.more_than_served_s()) is not None]
    differences_s = [
        [
            ours_s - theirs_s + change_s
            for ours_s, theirs_s, change_s in zip(run.responses_s, of, changes, strict=True)
        ]
        for run, of, changes in zip(runs, replayed_s, changes_s, strict=True)
    ]
    raw = _interval(runs, [run.responses_s for run in runs])
    difference = raw.plus(-predicted) if is_simulated else _interval(runs, differences_s)
    lag_s = quantile([lag_s for run in runs for lag_s in run.lags_s], 0.99)
    is_told = len(told_s) == len(runs) and not is_simulated
    is_as_served = is_told and first.is_as_served
    as_served = _interval(runs, told_s) if is_told else None
    served = fmean(_means(runs, [[row.closed_response_s for row in run.rows] for run in runs]))
    point = Steady(
        server=first.server,
        queue=first.queue,
        busy=fmean([run.busy_s / run.service_time_s for run in runs]),
        utilisation=fmean([run.utilisation for run in runs]),
        cv=used.cv,
        fraction=first.fraction,
        runs=len(runs),
        rejected=len(made) - len(runs),
        arrivals=sum(len(run.settled(run.responses_s)) for run in runs),
        predicted=predicted,
        raw=raw,
        replayed=fmean(_means(runs, replayed_s)),
        difference=difference,
        served=served - as_served.estimate if as_served else 0.0,
        as_served=as_served,
        slower=used.slower if is_told else None,
        lag=lag_s / fmean([run.service_time_s for run in runs]),
        lag_s=lag_s,
        is_as_served=is_as_served,
        differences=_means(runs, told_s if is_as_served else differences_s),
        verdict=Verdict.NOT_DECIDED,
    )
    return replace(point, verdict=_verdict(point))


def _changes_s(runs: Sequence[OpenRun], used: Services) -> list[list[float]]:
    """For each request by how much the formula changes if all take as long as this one took.

    To first order, so that times that vary around the calibrated mean change nothing on average. A
    server that is slower than at the calibration is so not hidden by the replay of its own times.
    """
    if not used.is_served:
        return [[0.0] * len(run.rows) for run in runs]
    found = []
    for run, of in zip(runs, used.of_runs, strict=True):
        more = _formula(run, used.cv, 1 + SMALL) - _formula(run, used.cv, 1 - SMALL)
        slope_s = more / (2 * SMALL) * run.service_time_s
        found.append([slope_s * (time_s / run.busy_s - 1) for time_s in of])
    return found


def _verdict(point: Steady) -> Verdict:
    """The verdict. Too few values, or runs that do not reach the steady state, decide nothing."""
    difference, mean = point.judged
    least_runs = REPLICATIONS if point.fraction >= REPLICATIONS_FROM else 0
    if difference.values < LEAST_VALUES or point.runs < least_runs or not point.can_be_decided:
        return Verdict.NOT_DECIDED
    return verdict(difference, mean)


def _formula(run: OpenRun, cv: float, slower: float = 1.0) -> float:
    """E[R] of the run's queue in the long run, if service takes `slower` times as long.

    Raises Unstable.
    """
    found = run.queue.steady(run.rate_per_s, slower * run.busy_s, cv)
    return (found.response_time_s + run.delay_s) / run.service_time_s


def _means(runs: Sequence[OpenRun], values_s: Sequence[Sequence[float]]) -> list[float]:
    """The mean of each run in service times, without its warm-up."""
    both = zip(runs, values_s, strict=True)
    return [fmean(run.settled(of_run)) / run.service_time_s for run, of_run in both]


def _interval(runs: Sequence[OpenRun], values_s: Sequence[Sequence[float]]) -> Interval:
    """The interval of the mean in service times, over calibrations.

    A single calibration does not tell how much it is wrong itself, so the interval is infinitely
    wide. It is that of batches if E[S] is not measured but given to a single run.
    """
    means, units = _means(runs, values_s), [run.unit for run in runs]
    if len(set(units)) > 1:
        return clustered_interval(means, units)
    if runs[0].calibration:
        return Interval(fmean(means), inf, 1)
    (run,), (of_run,) = runs, values_s
    return batch_means([value_s / run.service_time_s for value_s in run.settled(of_run)])


def study_points(runs: Sequence[OpenRun], seed: int) -> list[AsTheStudy]:
    """A point for each share of L that was measured as in the study, from the runs that count."""
    of_part = [run for run in runs if run.part == AS_THE_STUDY and run.is_accepted]
    groups = groupby(of_part, key=lambda run: run.fraction)
    return [_as_the_study(fraction, list(group), seed) for fraction, group in groups]


def _as_the_study(fraction: float, runs: Sequence[OpenRun], seed: int) -> AsTheStudy:
    used = services(runs)
    means = [fmean(run.responses_s) / run.service_time_s for run in runs]
    replayed = [
        fmean(run.replayed_s(of)) / run.service_time_s
        for run, of in zip(runs, used.of_runs, strict=True)
    ]
    published = [one.tested_s for one in OPEN_WORKLOADS if one.fraction == fraction]
    return AsTheStudy(
        fraction=fraction,
        runs=len(runs),
        mean=fmean(means),
        replayed=fmean(replayed),
        fcfs=_formula(runs[0], used.cv),
        expected=_expected(fraction, len(runs), used.cv, seed),
        of_study=_expected(fraction, OPEN_RUNS, UNROUNDED.variation, seed) if published else None,
        published=published[0] / UNROUNDED.mean_s if published else None,
    )


def _expected(fraction: float, runs: int, cv: float, seed: int) -> Expectation:
    law = with_mean_and_cv(1.0, cv)
    random = Random(f"{seed} expected {fraction} {runs}")  # noqa: S311  no secrets
    protocol = Protocol(STUDY_SERVICES, runs)
    return expectation(protocol, fraction, law, random, simulated_runs=SIMULATED_RUNS)


def curve(fractions: Sequence[float], cv: float) -> tuple[list[float], list[float]]:
    """Mean response times at these loads, to draw: in order of arrival, and shared."""
    both = [ONE, Queue(is_shared=True)]
    fcfs, shared = (
        [queue.steady(one, 1.0, cv).response_time_s for one in fractions] for queue in both
    )
    return fcfs, shared


def published_points() -> list[tuple[float, float]]:
    """Share of L and tested mean response time in service times, as the study printed them."""
    return [(one.fraction, one.tested_s / UNROUNDED.mean_s) for one in OPEN_WORKLOADS]
