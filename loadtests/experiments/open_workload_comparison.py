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

The gap between the measured mean and the predicted one is split into its causes. The prediction is
the formula of the steady state, with mean and variance of the calibrations. Each cause is a
difference of response times to the same arrivals, from what was measured (the first of `Cause`) to
the prediction (the last), so the entries sum to the gap. Causes multiply: one per cent more service
is six per cent more waiting at 0.85 of L. An entry says what its cause adds to a run from which
those above it have been removed.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from math import inf, sqrt
from random import Random
from statistics import fmean

import numpy as np

from loadtests.experiments import open_workload_loads as loads
from loadtests.experiments.open_workload_loads import SENTENCES, Array, LoadKey, OpenRun, accepted
from loadtests.grouping import grouped
from loadtests.lab.content import Cell, Column, Metric, Table
from loadtests.lab.published import OPEN_RUNS, OPEN_WORKLOADS, UNROUNDED
from loadtests.lab.repeated import Repeated
from loadtests.models import estimates
from loadtests.models.estimates import (
    BATCHES,
    CONFIDENCE,
    LEAST_VALUES,
    REPLICATIONS,
    Interval,
    Verdict,
)
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

    def over_calibrations(
        self, means: Sequence[float], least: int = 2, confidence: float = CONFIDENCE
    ) -> Interval:
        """Return the interval of the mean of these means of the runs.

        A single calibration does not tell how much it is wrong itself: with fewer than `least`, the
        interval is infinitely wide.
        """
        calibrations = [run.calibration for run in self.runs]
        if (count := len(set(calibrations))) < least:
            return Interval(fmean(means), values=count)
        return estimates.clustered_interval(means, calibrations, confidence)

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
        return min(verdicts, key=estimates.WORST_FIRST.index)

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
        """Return the interval of the mean in service times, over calibrations."""
        return self.over_calibrations(self.means(values_s))


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


# --- where the gaps come from --------------------------------------------------------------------


class Cause(StrEnum):
    """Names the causes of a gap, by what is subtracted from the one above."""

    SERVER = "order, connecting, receiving"  # sent as it was, and served as the server reported
    WHOLE = "the server, not split"  # of one that reports no times: served as calibrated
    DISPATCH = "dispatch lag"  # sent when intended
    SERVICE = "service times"  # served as calibrated
    CHANCE = "chance"  # the formula, for which all arrivals count that could have come


WORDS = {Cause(name): words for name, words in SENTENCES.rows("causes")}
_ALIKE = 1e-6  # an entry below this share of the prediction is none


def entries_s(run: OpenRun, predicted_s: float) -> dict[Cause, Array]:
    """Return what each cause adds (s) to each response time beyond the predicted mean."""
    measured_s = np.array(run.responses_s)
    intended_s, sent_s = np.array([(row.intended_s, row.sent_s) for row in run.rows]).T
    served_s = run.served_s
    services_s = served_s or next(run.drawn_s())
    late_s = sent_s - intended_s + run.as_served_s(services_s, sent_s)
    in_time_s = run.as_served_s(services_s, intended_s)
    if served_s is None:
        split = {Cause.WHOLE: measured_s - late_s, Cause.DISPATCH: late_s - in_time_s}
        return split | {Cause.CHANCE: in_time_s - predicted_s}
    return {
        Cause.SERVER: measured_s - late_s,
        Cause.DISPATCH: late_s - in_time_s,
        Cause.SERVICE: in_time_s - run.forecast_s,
        Cause.CHANCE: run.forecast_s - predicted_s,
    }


def gap_table(point: Steady) -> Table:
    """Lead from the predicted to the measured mean at a load, cause by cause.

    The intervals of the causes hold together with CONFIDENCE, however entries depend on each other
    (C. E. Bonferroni, 1936), and that of the gap does alone.
    """
    predicted_s = [run.predicted_s(point.cv) for run in point.runs]
    by_run = [
        {cause: 1000 * run.mean(more_s) for cause, more_s in entries_s(run, s).items()}
        for run, s in zip(point.runs, predicted_s, strict=True)
    ]
    causes = [cause for cause in reversed(Cause) if any(cause in entries for entries in by_run)]
    joint = 1 - (1 - CONFIDENCE) / len(causes)
    by_cause = {
        cause: point.over_calibrations(
            [entries.get(cause, 0.0) for entries in by_run], LEAST_VALUES, joint
        )
        for cause in causes
    }
    gap = point.over_calibrations([sum(own.values()) for own in by_run], LEAST_VALUES)
    return ledger(point, 1000 * fmean(predicted_s), by_cause, gap)


def ledger(
    point: Steady, predicted: float, causes: Mapping[Cause, Interval], gap: Interval
) -> Table:
    """Return the table of a gap. Times are in ms."""
    entries = {
        cause: interval if abs(interval.estimate) >= _ALIKE * predicted else Interval(0.0)
        for cause, interval in causes.items()
    }
    rows: list[Sequence[Cell]] = [
        ("predicted", predicted, None, None),
        *((str(cause), entry.estimate, *entry.ends) for cause, entry in entries.items()),
        ("measured", predicted + gap.estimate, None, None),
    ]
    columns, words = ("Cause", "Adds / ms", "from", "to"), _words(entries, gap, len(point.runs))
    return Table(f"Gap at {point.key.label}", columns, rows, words, digits=4)


def _words(entries: Mapping[Cause, Interval], gap: Interval, runs: int) -> str:
    """Name the causes that are seen, or the largest if there are no intervals."""
    seen = [cause for cause, own in entries.items() if own.half_width < inf and own.is_finding]
    if gap.half_width == inf:
        seen = [max(entries, key=lambda cause: abs(entries[cause].estimate))]
    return SENTENCES.paragraph(
        "gap",
        gap=gap,
        runs=runs,
        seen={WORDS[cause]: entries[cause] for cause in seen},
        least=LEAST_VALUES,
    )
