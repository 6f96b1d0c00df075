"""Compares measurement and models at each share of L. Times are in E[S].

What the five layers of the comparison are, and what “as served” is, tells `loadtests/README.md`. A
verdict is about the paired estimate, formula + mean(measured − replayed): each arrival is compared
with the same arrival in a simulated queue, so chance is the same on both sides. The model agrees if
the 95 % interval of the difference is within ±5 % of the formula, and disagrees if it is outside.

Runs that share a calibration share the error of its E[S], which at 0.85 of L is six times as large
in the formula; so intervals are over calibrations, and fewer than five decide nothing. From 0.8 of
L on it needs ten runs besides. Above 0.85 there is no verdict, because runs are too short for the
formula. A load that is measured until it is decided has a confidence sequence
(`models.sequential`), which may be looked at after every calibration; so it is judged as honestly
as one whose length was fixed before. Simulated runs are their own replay, so their difference is
that of the raw mean from the formula.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil, inf, sqrt
from random import Random
from statistics import fmean

from loadtests.experiments.open_workload import loads
from loadtests.experiments.open_workload.loads import SMALL, LoadKey, OpenRun
from loadtests.grouping import grouped
from loadtests.lab.published import OPEN_RUNS, OPEN_WORKLOADS, UNROUNDED
from loadtests.lab.repeated import Repeated, accepted
from loadtests.lab.results import Results
from loadtests.models import estimates
from loadtests.models.estimates import REPLICATIONS, Interval, Verdict
from loadtests.models.protocol import Expectation, Protocol, expectation
from loadtests.models.random_times import Gamma
from loadtests.models.sample_statistics import Summary, quantile, summary
from loadtests.models.sequential import (
    LEAST_VALUES,
    confidence_sequence,
    sequential_verdict,
    values_needed,
)

SIMULATED_RUNS = 10_000
REPLICATIONS_FROM = 0.8  # share of L from which intervals from batches of one run are too narrow
PUBLISHED = {one.fraction: one.tested_s / UNROUNDED.mean_s for one in OPEN_WORKLOADS}
"""Share of L -> tested mean response time in service times, as the study printed it."""


@dataclass(frozen=True)
class AtLoad(Repeated[OpenRun]):
    """The runs of a server at one share of L that count.

    Formula and replay must be of the same distribution, or its effect would be taken for one of the
    server. So a request is replayed with the time that the server measured, and if the server did
    not tell, with one of the calibration's, drawn at random; never with their mean.
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

    @cached_property
    def slower(self) -> Summary | None:
        """These times over the calibrated means; None if the server did not tell."""
        if not self.served_s:
            return None
        both = zip(self.runs, self.served_s, strict=True)
        return summary([time_s / run.busy_s for run, of_run in both for time_s in of_run])

    @cached_property
    def cv(self) -> float:
        """The coefficient of variation of the service times with which runs are replayed."""
        if self.slower is None:
            return self.calibrated_cv
        return sqrt(self.slower.squares / self.slower.count) / self.slower.mean

    @property
    def calibrated_cv(self) -> float:
        """The coefficient of variation of service times by the calibrations alone."""
        return sqrt(fmean([run.cv**2 for run in self.runs]))

    @cached_property
    def predicted(self) -> float:
        """The mean response time by the formula."""
        return self.predicted_at(self.key.fraction)

    def predicted_at(self, fraction: float) -> float:
        """The mean response time by the formula at another share of L. Raises Unstable."""
        busier = fraction / self.key.fraction
        each_s = [run.predicted_s(self.cv, busier=busier) for run in self.runs]
        return fmean([s / run.service_time_s for s, run in zip(each_s, self.runs, strict=True)])

    @cached_property
    def _replays(self) -> list[tuple[OpenRun, list[float], list[float]]]:
        """Each run with its service times, and its response times in the queue of the model."""
        services_s = self.served_s or [run.drawn_s() for run in self.runs]
        both = zip(self.runs, services_s, strict=True)
        return [(run, of_run, run.replayed_s(of_run)) for run, of_run in both]

    @property
    def replayed(self) -> float:
        """The mean response time of the same arrivals in the queue of the model."""
        return fmean(self.means(replayed_s for *_, replayed_s in self._replays))


@dataclass(frozen=True)
class Steady(AtLoad):
    """The steady state at a share of L. is_until_decided: it was measured until it is decided."""

    is_until_decided: bool = False

    @property
    def is_told(self) -> bool:
        """Whether a server told how long requests took."""
        return bool(self.served_s) and not self.runs[0].is_simulated

    @property
    def is_as_served(self) -> bool:
        """Whether the verdict is about `as_served`, not `difference`."""
        return self.is_told and loads.is_as_served(self.key.server, self.runs[0].overhead_s)

    @cached_property
    def raw(self) -> Interval:
        """The mean response time as measured."""
        return self._interval([run.responses_s for run in self.runs])

    @cached_property
    def _differences_s(self) -> list[list[float]]:
        """The response time of each request less that of its replay, and what the formula gains.

        It gains by how much it changes if all requests take as long as this one took; to first
        order, so that times that vary around the calibrated mean change nothing on average. So a
        server that is slower than at the calibration is not hidden by the replay of its own times.
        """
        found = []
        for run, services_s, replayed_s in self._replays:
            ends_s = [run.predicted_s(self.cv, slower=1 + step) for step in (-SMALL, SMALL)]
            slope_s = (ends_s[1] - ends_s[0]) / (2 * SMALL) if self.served_s else 0.0
            each = zip(run.responses_s, replayed_s, services_s, strict=True)
            found.append(
                [ours - theirs + slope_s * (took / run.busy_s - 1) for ours, theirs, took in each]
            )
        return found

    @cached_property
    def difference(self) -> Interval:
        """The paired difference, measured less replayed."""
        if self.runs[0].is_simulated:
            return self.raw.plus(-self.predicted)
        return self._interval(self._differences_s, is_judged=not self.is_as_served)

    @property
    def paired(self) -> Interval:
        """The paired estimate of the mean response time."""
        return self.difference.plus(self.predicted)

    @cached_property
    def _more_than_served_s(self) -> list[list[float]]:
        both = zip(self.runs, self.served_s, strict=True)
        return [run.more_than_served_s(of_run) for run, of_run in both]

    @cached_property
    def as_served(self) -> Interval | None:
        """Measured less replayed from sending on, with the service times that the server measured.

        So only the order of service is left. None if the server did not tell.
        """
        if not self.is_told:
            return None
        return self._interval(self._more_than_served_s, is_judged=self.is_as_served)

    @property
    def served(self) -> float:
        """The mean of the replay with which `as_served` compares."""
        sent_s = [[row.closed_response_s for row in run.rows] for run in self.runs]
        return fmean(self.means(sent_s)) - (self.as_served.estimate if self.as_served else 0.0)

    @property
    def judged(self) -> tuple[Interval, float]:
        """The difference that the verdict is about, and the mean of which it is a share."""
        if self.as_served and self.is_as_served:
            return self.as_served, self.served
        return self.difference, self.predicted

    @property
    def judged_name(self) -> str:
        """What that difference is called."""
        return "difference as served" if self.is_as_served else "paired difference"

    @property
    def by_calibration(self) -> list[float]:
        """That difference, of the runs of each calibration."""
        values_s = self._more_than_served_s if self.is_as_served else self._differences_s
        both = zip(self.runs, self.means(values_s), strict=True)
        by_unit = grouped(both, lambda pair: pair[0].unit).values()
        return [fmean([mean for _, mean in of_unit]) for of_unit in by_unit]

    @property
    def verdict(self) -> Verdict:
        """The verdict. Too few values, or runs that do not reach the steady state, decide nothing.

        A confidence sequence needs no ten runs.
        """
        difference, mean = self.judged
        if self.is_until_decided and self.key.is_settled:
            return sequential_verdict(self.by_calibration, mean)
        least = REPLICATIONS if self.key.fraction >= REPLICATIONS_FROM else 0
        if difference.values < LEAST_VALUES or len(self.runs) < least or not self.key.is_settled:
            return Verdict.NOT_DECIDED
        return estimates.verdict(difference, mean)

    @property
    def lag_s(self) -> float:
        """The 99th percentile of how late requests were sent, in seconds."""
        return quantile([row.lag_s for run in self.runs for row in run.rows], 0.99)

    @property
    def lag(self) -> float:
        """The 99th percentile of how late requests were sent, in service times."""
        return self.lag_s / fmean([run.service_time_s for run in self.runs])

    def _interval(
        self, values_s: Sequence[Sequence[float]], *, is_judged: bool = False
    ) -> Interval:
        """The interval of the mean in service times, over calibrations.

        A single calibration does not tell how much it is wrong itself, so the interval is
        infinitely wide. It is that of batches if E[S] is not measured but given to a single run.
        """
        if is_judged and self.is_until_decided and self.key.is_settled:
            return confidence_sequence(self.by_calibration)
        means, units = self.means(values_s), [run.unit for run in self.runs]
        if len(set(units)) > 1:
            return estimates.clustered_interval(means, units)
        if self.runs[0].calibration:
            return Interval(fmean(means), inf, 1)
        (run,), (of_run,) = self.runs, values_s
        return estimates.batch_means([s / run.service_time_s for s in of_run[run.warm_up :]])


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
        return False, "no run counts yet"
    (point,), (found, mean) = points, points[0].judged
    known = f"{point.judged_name} {percent(found, mean)}, calibrations: {found.values}"
    if point.verdict is not Verdict.NOT_DECIDED:
        return True, f"{known}: the model {point.verdict}"
    more = values_needed(point.by_calibration, mean)
    if more is None:
        return False, f"{known}: it cannot be said yet when this is decided"
    minutes = max(1, ceil(more * each_s / 60))
    unit = "minute" if minutes == 1 else "minutes"
    return False, f"{known}: decided in about {minutes} {unit}; {more} more needed"


def percent(difference: Interval, of: float) -> str:
    """A difference with its interval, if it has one, in per cent of `of`."""
    size = "" if difference.ends == (None, None) else f" ± {100 * difference.half_width / of:.1f}"
    return f"{100 * difference.estimate / of:+.1f}{size} %"


def give_or_take(found: Interval) -> str:
    """A mean and half the width of its interval, if it has one."""
    size = "" if found.ends == (None, None) else f" ± {found.half_width:.2g}"
    return f"{found.estimate:.3g}{size}"
