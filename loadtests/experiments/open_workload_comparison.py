"""Compares measurement and models at each share of L, by two verdicts. Times are in E[S].

The forecast is the mean response time of the model, from what was known before a run: mean and
variance of one customer's service times, and the arrivals. So that chance counts little, each
arrival is compared with the same arrival in a simulated queue, in which it takes a time drawn from
the calibration; that difference is what the run is off the forecast. The forecast holds if the 95 %
interval of the difference is within ±5 % of the formula, and does not if it is outside.

The order tells whether a server serves in the order of arrival: whether it takes as long as a queue
in which each request takes the time that the server measured for it, and whether hardly a request
is overtaken by a later one. Nothing is said there about how long requests take: a server that is
slow, or slow again and again, may well serve in order.

Runs that share a calibration share the error of its E[S], which at 0.85 of L is six times as large
in the formula; so intervals are over calibrations, and fewer than five decide nothing. From 0.8 of
L on it needs ten runs besides. How many are made is fixed before.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import sqrt
from random import Random
from statistics import fmean

from loadtests.experiments import open_workload_loads as loads
from loadtests.experiments.open_workload_loads import LoadKey, OpenRun, accepted
from loadtests.grouping import grouped
from loadtests.lab.content import Column, Metric
from loadtests.lab.published import OPEN_RUNS, OPEN_WORKLOADS, UNROUNDED
from loadtests.lab.repeated import Repeated
from loadtests.models import estimates
from loadtests.models.estimates import BATCHES, LEAST_VALUES, REPLICATIONS, Interval, Verdict
from loadtests.models.protocol import Expectation, expectation
from loadtests.models.random_times import Gamma

FORECASTS: Mapping[Verdict, str] = {
    Verdict.AGREES: "holds",
    Verdict.DISAGREES: "does not hold",
    Verdict.NOT_DECIDED: "is not decided",
}
ORDERS: Mapping[Verdict | None, str] = {
    Verdict.AGREES: "in order of arrival",
    Verdict.DISAGREES: "not in order of arrival",
    Verdict.NOT_DECIDED: "perhaps in order of arrival, which is not decided",
    None: "in an order that the server does not report",
}
WAITED, HURRIED = (
    f"without overtaking, but {how} than as many workers with the reported times would"
    for how in ("later", "sooner")
)
SIMULATED_RUNS = 10_000
REPLICATIONS_FROM = 0.8  # share of L from which intervals from batches of one run are too narrow
PUBLISHED = {row.fraction: row.tested_s / UNROUNDED.mean_s for row in OPEN_WORKLOADS}
"""Share of L -> tested mean response time in service times, as the study printed it."""


@dataclass(frozen=True)
class AtLoad(Repeated[OpenRun]):
    """Holds the runs of a server at one share of L that count. Times are in E[S]."""

    @property
    def key(self) -> LoadKey:
        return self.runs[0].key

    def means(self, values_s: Iterable[Sequence[float]]) -> list[float]:
        """Return the mean of each run's values (s) in service times, of what counts."""
        pairs = zip(self.runs, values_s, strict=True)
        return [run.mean(values) / run.service_time_s for run, values in pairs]

    @cached_property
    def served_s(self) -> list[list[float]]:
        """Return the measured service times (s) by run; none if a server did not tell all."""
        served_s = [run.served_s for run in self.runs if run.served_s is not None]
        return served_s if len(served_s) == len(self.runs) else []

    @property
    def cv(self) -> float:
        """Return the coefficient of variation of service times, by the calibrations."""
        return sqrt(fmean([run.cv**2 for run in self.runs]))

    @cached_property
    def predicted(self) -> float:
        """Return the forecast: the mean response time by the formula."""
        return self.predicted_at(self.key.fraction)

    def predicted_at(self, fraction: float) -> float:
        """Return the mean response time by the formula at a share of L. Raises Unstable."""
        cv, busier = self.cv, fraction / self.key.fraction
        return fmean(run.predicted_s(cv, busier=busier) / run.service_time_s for run in self.runs)


@dataclass(frozen=True)
class Steady(AtLoad):
    """Compares the steady state at a share of L with its forecast, and judges its order."""

    @property
    def arrivals(self) -> int:
        return sum(len(run.rows) - run.warm_up for run in self.runs)

    @cached_property
    def raw(self) -> Interval:
        return self._interval(run.responses_s for run in self.runs)

    @cached_property
    def difference(self) -> Interval:
        """Return the measured mean less the forecast, paired by the arrivals."""
        return self._interval((run.responses_s - run.forecast_s).tolist() for run in self.runs)

    @property
    def paired(self) -> Interval:
        """Return the measured mean, without the chance of its arrivals."""
        return self.difference.plus(self.predicted)

    @property
    def error(self) -> Metric:
        """Return the difference as a share of the forecast."""
        share = self.difference.times(1 / self.predicted)
        name = f"forecast_error[{self.key.server},{self.key.fraction:g}]"
        return Metric(name, share.estimate, "", *share.ends)

    @property
    def forecast(self) -> Verdict:
        """Tell whether the forecast from one customer holds; too few values decide nothing."""
        return self._verdict(self.difference, self.predicted)

    @property
    def forecast_label(self) -> str:
        """Say whether the forecast holds, and what it lacks to be decided."""
        lacking = self._lacking(self.difference)
        return FORECASTS[self.forecast] + (f", as it has {lacking}" if lacking else "")

    @cached_property
    def as_served(self) -> Interval | None:
        """Return measured less replayed from sending on, with the server's own service times.

        So only the order of service is left. None if the server did not tell.
        """
        if not self.served_s:
            return None
        pairs = zip(self.runs, self.served_s, strict=True)
        return self._interval(run.more_than_served_s(served_s) for run, served_s in pairs)

    @cached_property
    def served(self) -> float:
        """Return the mean of the replay with which `as_served` compares."""
        sent_s = [[row.closed_response_s for row in run.rows] for run in self.runs]
        return fmean(self.means(sent_s)) - (self.as_served.estimate if self.as_served else 0.0)

    @cached_property
    def overtaken(self) -> Interval | None:
        """Return the share of requests that a later one overtook; None without service times."""
        if not self.served_s:
            return None
        return self._interval(
            [run.service_time_s * is_overtaken for is_overtaken in run.overtaken(served_s)]
            for run, served_s in zip(self.runs, self.served_s, strict=True)
        )

    @property
    def order(self) -> Verdict | None:
        """Tell whether service is in order of arrival; None without service times."""
        if self.as_served is None or self.overtaken is None:
            return None
        verdicts = self._verdict(self.as_served, self.served), self._verdict(self.overtaken, 1.0)
        worst_first = (Verdict.DISAGREES, Verdict.NOT_DECIDED, Verdict.AGREES)
        return min(verdicts, key=worst_first.index)

    @property
    def order_label(self) -> str:
        """Say how requests were served; it may be neither in order nor by overtaking."""
        if (
            self.order is Verdict.DISAGREES
            and self.as_served
            and self.overtaken
            and self._verdict(self.overtaken, 1.0) is Verdict.AGREES
        ):
            return WAITED if self.as_served.estimate > 0 else HURRIED
        return ORDERS[self.order]

    def _lacking(self, difference: Interval) -> str:
        """Say how much less there is than a verdict needs; "" if there is enough."""
        least = REPLICATIONS if self.key.fraction >= REPLICATIONS_FROM else 0
        if difference.values < LEAST_VALUES:
            return f"{difference.values} of the {LEAST_VALUES} calibrations that a verdict needs"
        if len(self.runs) < least:
            return f"{len(self.runs)} of the {least} runs that a verdict needs"
        return ""

    def _verdict(self, difference: Interval, mean: float) -> Verdict:
        if self._lacking(difference):
            return Verdict.NOT_DECIDED
        return estimates.verdict(difference, mean)

    def _interval(self, values_s: Iterable[Sequence[float]]) -> Interval:
        """Return the interval of the mean in service times, over calibrations.

        A single calibration does not tell how much it is wrong itself, so the interval is
        infinitely wide.
        """
        means, calibrations = self.means(values_s), [run.calibration for run in self.runs]
        if len(set(calibrations)) > 1:
            return estimates.clustered_interval(means, calibrations)
        return Interval(fmean(means))


def steady_points(runs: Sequence[OpenRun]) -> list[Steady]:
    """Return a point for each server and share of L with a long enough run, in the plan's order.

    It has none if no run counts or the queue has no steady state.
    """
    long_enough = [
        run
        for run in accepted(runs)
        if run.part == loads.STEADY and len(run.rows) >= run.warm_up + BATCHES
    ]
    points = Steady.of_each(long_enough, lambda run: run.key)
    return [point for point in points if all(run.is_stable for run in point.runs)]


@dataclass(frozen=True)
class AsTheStudy(AtLoad):
    """Compares short runs from empty, as in the study, at one share of L."""

    seed: int  # of simulations

    @property
    def mean(self) -> float:
        return fmean(self.means(run.responses_s for run in self.runs))

    @cached_property
    def replayed(self) -> float:
        """Return the mean response time of the same arrivals in the queue of the model.

        There each takes the time that the server measured; if it did not tell, one of the
        calibration's, drawn at random, never their mean.
        """
        services_s = self.served_s or [next(run.drawn_s()) for run in self.runs]
        pairs = zip(self.runs, services_s, strict=True)
        return fmean(self.means(run.replayed_s(times_s) for run, times_s in pairs))

    @property
    def published(self) -> float | None:
        """Return the mean that the study printed; None if it did not measure there."""
        return PUBLISHED.get(self.key.fraction)

    @cached_property
    def expected(self) -> Expectation:
        return self._expected(len(self.runs), self.cv)

    @cached_property
    def of_study(self) -> Expectation | None:
        """Return the results that were to be expected of the study's own 15 runs."""
        return None if self.published is None else self._expected(OPEN_RUNS, UNROUNDED.variation)

    def _expected(self, runs: int, cv: float) -> Expectation:
        fraction, law = self.key.fraction, Gamma(1.0, cv)
        random = Random(f"{self.seed} expected {fraction} {runs}")  # noqa: S311  no secrets
        how = loads.STUDY_SERVICES, runs, fraction, law, random
        return expectation(*how, simulated_runs=SIMULATED_RUNS)


def study_points(runs: Sequence[OpenRun], seed: int) -> list[AsTheStudy]:
    """Return a point for each share of L with runs as in the study that count."""
    brief = [run for run in accepted(runs) if run.part == loads.AS_THE_STUDY]
    by_load = grouped(brief, lambda run: run.key).values()
    return [AsTheStudy(alike, seed) for alike in by_load]


def percent(difference: Interval, whole: float) -> str:
    """Format a difference with its interval, if it has one, in per cent of `whole`."""
    half = 100 * difference.half_width / whole
    size = "" if difference.ends == (None, None) else f" ± {half:.1f}"
    return f"{100 * difference.estimate / whole:+.1f}{size} %"


JUDGED: Sequence[Column[Steady]] = [
    ("Runs", lambda point: len(point.runs)),
    ("Arrivals", lambda point: point.arrivals),
    ("Forecast", lambda point: point.predicted),
    ("Measured", lambda point: point.raw),
    ("Difference", lambda point: percent(point.difference, point.predicted)),
    ("The forecast", lambda point: FORECASTS[point.forecast]),
]
