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
L on it needs ten runs besides. A load that is measured until it is decided has a confidence
sequence (`models.sequential`), which may be looked at after every calibration; so it is judged as
honestly as one whose length was fixed before.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil, inf, sqrt
from random import Random
from statistics import fmean

from loadtests.experiments import open_workload_loads as loads
from loadtests.experiments.open_workload_loads import LoadKey, OpenRun
from loadtests.grouping import grouped
from loadtests.lab.content import Metric
from loadtests.lab.published import OPEN_RUNS, OPEN_WORKLOADS, UNROUNDED
from loadtests.lab.repeated import Repeated, accepted, reasons_by_run
from loadtests.lab.results import Results
from loadtests.models import estimates
from loadtests.models.estimates import REPLICATIONS, Interval, Verdict
from loadtests.models.protocol import Expectation, Protocol, expectation
from loadtests.models.random_times import Gamma
from loadtests.models.sequential import (
    LEAST_VALUES,
    confidence_sequence,
    sequential_verdict,
    values_needed,
)

FORECASTS: Mapping[Verdict, str] = {
    Verdict.AGREES: "holds",
    Verdict.DISAGREES: "does not hold",
    Verdict.NOT_DECIDED: "is not decided",
}
ORDERS: Mapping[Verdict | None, str] = {
    Verdict.AGREES: "in order of arrival",
    Verdict.DISAGREES: "not in order of arrival",
    Verdict.NOT_DECIDED: "in an order that is not decided",
    None: "in an order that the server does not tell",
}
WAITED, HURRIED = (
    f"without overtaking, but {how} than by as many workers with the times that it told"
    for how in ("later", "sooner")
)
SIMULATED_RUNS = 10_000
REPLICATIONS_FROM = 0.8  # share of L from which intervals from batches of one run are too narrow
PUBLISHED = {one.fraction: one.tested_s / UNROUNDED.mean_s for one in OPEN_WORKLOADS}
"""Share of L -> tested mean response time in service times, as the study printed it."""


@dataclass(frozen=True)
class AtLoad(Repeated[OpenRun]):
    """The runs of a server at one share of L that count.

    With its replay, each request takes the time that the server measured, and if the server did not
    tell, one of the calibration's, drawn at random; never their mean.
    """

    @property
    def key(self) -> LoadKey:
        """The load."""
        return self.runs[0].key

    def means(self, values_s: Iterable[Sequence[float]]) -> list[float]:
        """The mean of each run in service times, without its warm-up."""
        both = zip(self.runs, values_s, strict=True)
        return [fmean(of_run[run.warm_up :]) / run.service_time_s for run, of_run in both]

    @property
    def arrivals(self) -> int:
        """How many count."""
        return sum(len(run.rows) - run.warm_up for run in self.runs)

    @property
    def mean(self) -> float:
        """The mean response time as measured."""
        return fmean(self.means(run.responses_s for run in self.runs))

    @cached_property
    def served_s(self) -> list[list[float]]:
        """The service times that the server measured, of each run; empty if it did not tell all."""
        found = [of_run for run in self.runs if (of_run := run.served_s) is not None]
        return found if len(found) == len(self.runs) else []

    @property
    def cv(self) -> float:
        """The coefficient of variation of service times by the calibrations."""
        return sqrt(fmean([run.cv**2 for run in self.runs]))

    @cached_property
    def predicted(self) -> float:
        """The forecast: the mean response time by the formula."""
        return self.predicted_at(self.key.fraction)

    def predicted_at(self, fraction: float) -> float:
        """The mean response time by the formula at another share of L. Raises Unstable."""
        busier = fraction / self.key.fraction
        each_s = [run.predicted_s(self.cv, busier=busier) for run in self.runs]
        return fmean([s / run.service_time_s for s, run in zip(each_s, self.runs, strict=True)])

    @cached_property
    def replayed(self) -> float:
        """The mean response time of the same arrivals and service times in the queue of the model.

        Times that the server did not tell are drawn from the calibration.
        """
        services_s = self.served_s or [next(run.drawn_s()) for run in self.runs]
        both = zip(self.runs, services_s, strict=True)
        return fmean(self.means(run.replayed_s(of_run) for run, of_run in both))


@dataclass(frozen=True)
class Steady(AtLoad):
    """The steady state at a share of L. is_until_decided: it was measured until it is decided."""

    is_until_decided: bool = False

    @property
    def is_told(self) -> bool:
        """Whether a server told how long requests took."""
        return bool(self.served_s)

    @cached_property
    def raw(self) -> Interval:
        """The mean response time as measured."""
        return self._interval([run.responses_s for run in self.runs])

    @cached_property
    def _differences_s(self) -> list[list[float]]:
        return [run.more_than_forecast_s() for run in self.runs]

    @cached_property
    def difference(self) -> Interval:
        """The measured mean less the forecast, paired by the arrivals."""
        if self.is_until_decided:
            return confidence_sequence(self.by_calibration)
        return self._interval(self._differences_s)

    @property
    def paired(self) -> Interval:
        """The measured mean, without the chance of its arrivals."""
        return self.difference.plus(self.predicted)

    @property
    def error(self) -> Metric:
        """The difference as a share of the forecast."""
        share = self.difference.times(1 / self.predicted)
        name = f"forecast_error[{self.key.server},{self.key.fraction:g}]"
        return Metric(name, share.estimate, "", *share.ends)

    @property
    def by_calibration(self) -> list[float]:
        """The difference from the forecast, of the runs of each calibration."""
        both = zip(self.runs, self.means(self._differences_s), strict=True)
        by_unit = grouped(both, lambda pair: pair[0].unit).values()
        return [fmean([mean for _, mean in of_unit]) for of_unit in by_unit]

    @property
    def forecast(self) -> Verdict:
        """Whether the forecast from one customer holds.

        Too few values decide nothing. A confidence sequence needs no ten runs.
        """
        if self.is_until_decided:
            return sequential_verdict(self.by_calibration, self.predicted)
        return self._verdict(self.difference, self.predicted)

    @cached_property
    def as_served(self) -> Interval | None:
        """Measured less replayed from sending on, with the service times that the server measured.

        So only the order of service is left. None if the server did not tell.
        """
        if not self.is_told:
            return None
        both = zip(self.runs, self.served_s, strict=True)
        return self._interval([run.more_than_served_s(of_run) for run, of_run in both])

    @cached_property
    def served(self) -> float:
        """The mean of the replay with which `as_served` compares."""
        sent_s = [[row.closed_response_s for row in run.rows] for run in self.runs]
        return fmean(self.means(sent_s)) - (self.as_served.estimate if self.as_served else 0.0)

    @cached_property
    def overtaken(self) -> Interval | None:
        """The share of requests that a later one overtook; None if the server told no times."""
        if not self.is_told:
            return None
        of_runs = [
            [run.service_time_s * is_so for is_so in run.overtaken(of_run)]
            for run, of_run in zip(self.runs, self.served_s, strict=True)
        ]
        return self._interval(of_runs)

    @property
    def order(self) -> Verdict | None:
        """Whether service is in order of arrival; None if the server told no times."""
        if self.as_served is None or self.overtaken is None:
            return None
        found = {self._verdict(self.as_served, self.served), self._verdict(self.overtaken, 1.0)}
        by_severity = (Verdict.DISAGREES, Verdict.NOT_DECIDED, Verdict.AGREES)
        return next(verdict for verdict in by_severity if verdict in found)

    @property
    def order_told(self) -> str:
        """How requests were served, in words; it may be neither in order nor by overtaking."""
        if self.as_served is None or self.overtaken is None or self.order is not Verdict.DISAGREES:
            return ORDERS[self.order]
        if self._verdict(self.overtaken, 1.0) is not Verdict.AGREES:
            return ORDERS[self.order]
        return WAITED if self.as_served.estimate > 0 else HURRIED

    def _verdict(self, difference: Interval, mean: float) -> Verdict:
        least = REPLICATIONS if self.key.fraction >= REPLICATIONS_FROM else 0
        if difference.values < LEAST_VALUES or len(self.runs) < least:
            return Verdict.NOT_DECIDED
        return estimates.verdict(difference, mean)

    def _interval(self, values_s: Sequence[Sequence[float]]) -> Interval:
        """The interval of the mean in service times, over calibrations.

        A single calibration does not tell how much it is wrong itself, so the interval is
        infinitely wide.
        """
        means, units = self.means(values_s), [run.unit for run in self.runs]
        if len(set(units)) > 1:
            return estimates.clustered_interval(means, units)
        return Interval(fmean(means), inf, 1)


def steady_points(runs: Sequence[OpenRun], *, is_until_decided: bool = False) -> list[Steady]:
    """A point for each server and share of L with a long enough run, in the plan's order.

    It has none if no run counts or the queue has no steady state.
    """
    of_part = [run for run in runs if run.part == loads.STEADY and run.is_long_enough]
    return [
        Steady(counted, len(made), is_until_decided)
        for made in grouped(of_part, lambda run: run.key).values()
        if (counted := accepted(made)) and all(run.is_stable for run in counted)
    ]


@dataclass(frozen=True)
class AsTheStudy(AtLoad):
    """The study's protocol at a share of L. seed: of simulations."""

    seed: int

    @property
    def published(self) -> float | None:
        """What the study printed; None if it did not measure there."""
        return PUBLISHED.get(self.key.fraction)

    @cached_property
    def expected(self) -> Expectation:
        """What as many runs as ours are expected to show."""
        return self._expected(len(self.runs), self.cv)

    @cached_property
    def of_study(self) -> Expectation | None:
        """What the study's own 15 runs were expected to show."""
        return None if self.published is None else self._expected(OPEN_RUNS, UNROUNDED.variation)

    def _expected(self, runs: int, cv: float) -> Expectation:
        fraction, law = self.key.fraction, Gamma(1.0, cv)
        random = Random(f"{self.seed} expected {fraction} {runs}")  # noqa: S311  no secrets
        protocol = Protocol(loads.STUDY_SERVICES, runs)
        return expectation(protocol, fraction, law, random, simulated_runs=SIMULATED_RUNS)


def study_points(runs: Sequence[OpenRun], seed: int) -> list[AsTheStudy]:
    """A point for each share of L that was measured as in the study, from the runs that count."""
    of_part = [run for run in accepted(runs) if run.part == loads.AS_THE_STUDY]
    by_load = grouped(of_part, lambda run: run.key).values()
    return [AsTheStudy(of_load, len(of_load), seed) for of_load in by_load]


# --- while it is measured ------------------------------------------------------------------------


def progress(results: Results, key: LoadKey, each_s: float) -> tuple[bool, str]:
    """Whether a load is decided until now, and a line on what is known and what is missing.

    each_s: how long a calibration and its runs take.
    """
    runs = [run for run in loads.open_runs(results) if run.key == key]
    points = steady_points(runs, is_until_decided=True)
    if not points:
        reasons = reasons_by_run(results)
        last = next((reasons[run.run] for run in reversed(runs) if run.run in reasons), "")
        return False, ": ".join(filter(None, ["no run counts yet", last.split(";")[0]]))
    (point,) = points
    known = f"measured less forecast {percent(point.difference, point.predicted)}, "
    known += f"calibrations: {point.difference.values}"
    if point.forecast is not Verdict.NOT_DECIDED:
        return True, f"{known}: the forecast {FORECASTS[point.forecast]}"
    more = values_needed(point.by_calibration, point.predicted)
    if more is None:
        return False, f"{known}: it cannot be said yet when this is decided"
    minutes = max(1, ceil(more * each_s / 60))
    return False, f"{known}; {more} more would decide it, in about {minutes} min"


def percent(difference: Interval, of: float) -> str:
    """A difference with its interval, if it has one, in per cent of `of`."""
    size = "" if difference.ends == (None, None) else f" ± {100 * difference.half_width / of:.1f}"
    return f"{100 * difference.estimate / of:+.1f}{size} %"


def give_or_take(found: Interval) -> str:
    """A mean and half the width of its interval, if it has one."""
    size = "" if found.ends == (None, None) else f" ± {found.half_width:.2g}"
    return f"{found.estimate:.3g}{size}"
