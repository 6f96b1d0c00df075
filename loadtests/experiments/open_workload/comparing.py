"""Compares measurement and models at each share of L in five layers. Times are in E[S].

1. the formula, FCFS (Pollaczek and Khinchine) or PS, for the steady state;
2. the expected result of the study's protocol, simulated: short runs from an empty server;
3. the paired estimate: formula + mean(measured − replayed), where each arrival is compared with the
   same arrival in a simulated queue, so that chance is the same on both sides;
4. the measurement, with its interval;
5. the value that the study printed.

The verdict is about 3: it agrees if its 95 % interval is within ±5 % of the formula, and disagrees
if it is outside. From 0.8 of L on it needs ten runs. Above 0.85 there is no verdict, because runs
are too short for the formula. Simulated runs are their own replay, so their difference is that of
the raw mean from the formula.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from random import Random

from loadtests.experiments.open_workload.plan import (
    AS_THE_STUDY,
    FCFS,
    SETTLED_UP_TO,
    STEADY,
    STUDY_SERVICES,
)
from loadtests.experiments.open_workload.reading import OpenRun
from loadtests.lab.published import OPEN_RUNS, OPEN_WORKLOADS, UNROUNDED
from loadtests.models import single_server
from loadtests.models.distributions import with_mean_and_cv
from loadtests.models.estimates import (
    REPLICATIONS,
    Interval,
    Verdict,
    batch_means,
    confidence_interval,
    verdict,
)
from loadtests.models.protocol import Expectation, Protocol, expectation
from loadtests.models.samples import summary

SIMULATED_RUNS = 10_000
REPLICATIONS_FROM = 0.8  # share of L from which intervals from batches of one run are too narrow


@dataclass(frozen=True, slots=True)
class Steady:
    """The steady state at a share of L.

    runs, rejected: numbers of accepted and rejected runs. arrivals: number that counts. fcfs,
    shared: by the formulas. raw: mean response time. replayed: that of the same arrivals in the
    queue of the model. difference: the paired one. as_served: the difference with the service times
    that the server measured during the run, so that only the discipline is left.
    """

    server: str
    fraction: float
    runs: int
    rejected: int
    arrivals: int
    fcfs: float
    shared: float
    raw: Interval
    replayed: float
    difference: Interval
    as_served: Interval | None
    verdict: Verdict

    @property
    def predicted(self) -> float:
        """The mean response time by the model of this server."""
        return self.fcfs if self.server == FCFS else self.shared

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
    found = [(key, list(group)) for key, group in groups]
    return [
        _steady(server, fraction, group, is_simulated=is_simulated)
        for (server, fraction), group in found
        if any(run.is_accepted for run in group)
    ]


def _steady(server: str, fraction: float, made: Sequence[OpenRun], *, is_simulated: bool) -> Steady:
    runs = [run for run in made if run.is_accepted]
    fcfs, shared = _formulas(fraction, _cv(runs))
    predicted = fcfs if server == FCFS else shared
    raw = _interval([_in_services(run, run.responses_s) for run in runs])
    paired = _interval([_differences(run, run.replayed_s) for run in runs])
    difference = raw.plus(-predicted) if is_simulated else paired
    served = [run.replayed_as_served_s for run in runs]
    as_served = [
        _differences(run, replayed)
        for run, replayed in zip(runs, served, strict=True)
        if replayed is not None
    ]
    return Steady(
        server=server,
        fraction=fraction,
        runs=len(runs),
        rejected=len(made) - len(runs),
        arrivals=sum(len(run.settled(run.responses_s)) for run in runs),
        fcfs=fcfs,
        shared=shared,
        raw=raw,
        replayed=summary([summary(_in_services(run, run.replayed_s)).mean for run in runs]).mean,
        difference=difference,
        as_served=_interval(as_served)
        if len(as_served) == len(runs) and not is_simulated
        else None,
        verdict=_verdict(difference, predicted, fraction, len(runs)),
    )


def _verdict(difference: Interval, predicted: float, fraction: float, runs: int) -> Verdict:
    """The verdict. Too few runs, or runs that do not reach the steady state, decide nothing."""
    is_few = fraction >= REPLICATIONS_FROM and runs < REPLICATIONS
    if is_few or fraction > SETTLED_UP_TO:
        return Verdict.NOT_DECIDED
    return verdict(difference, predicted)


def _formulas(fraction: float, cv: float) -> tuple[float, float]:
    """E[R] in service times by the formulas: in order of arrival, and shared."""
    fcfs = single_server.mg1(fraction, 1.0, single_server.variance_s2(1.0, cv))
    return fcfs.response_time_s, single_server.mg1_ps(fraction, 1.0).response_time_s


def _cv(runs: Sequence[OpenRun]) -> float:
    """The service time's coefficient of variation: the root mean square over calibrations."""
    squares = [run.service_variance_s2 / run.service_time_s**2 for run in runs]
    return float(summary(squares).mean ** 0.5)


def _in_services(run: OpenRun, values_s: Sequence[float]) -> list[float]:
    return [value_s / run.service_time_s for value_s in run.settled(values_s)]


def _differences(run: OpenRun, replayed_s: Sequence[float]) -> list[float]:
    together = zip(run.responses_s, replayed_s, strict=True)
    return _in_services(run, [ours_s - theirs_s for ours_s, theirs_s in together])


def _interval(runs: Sequence[Sequence[float]]) -> Interval:
    """The interval of the mean: over replications, or from the batches of a single run."""
    if len(runs) == 1:
        return batch_means(runs[0])
    return confidence_interval([summary(values).mean for values in runs])


def study_points(runs: Sequence[OpenRun], seed: int) -> list[AsTheStudy]:
    """A point for each share of L that was measured as in the study, from the runs that count."""
    of_part = [run for run in runs if run.part == AS_THE_STUDY and run.is_accepted]
    groups = groupby(of_part, key=lambda run: run.fraction)
    return [_as_the_study(fraction, list(group), seed) for fraction, group in groups]


def _as_the_study(fraction: float, runs: Sequence[OpenRun], seed: int) -> AsTheStudy:
    cv = _cv(runs)
    means = [summary(run.responses_s).mean / run.service_time_s for run in runs]
    replayed = [summary(run.replayed_s).mean / run.service_time_s for run in runs]
    published = [one.tested_s for one in OPEN_WORKLOADS if one.fraction == fraction]
    return AsTheStudy(
        fraction=fraction,
        runs=len(runs),
        mean=summary(means).mean,
        replayed=summary(replayed).mean,
        fcfs=_formulas(fraction, cv)[0],
        expected=_expected(fraction, len(runs), cv, seed),
        of_study=_expected(fraction, OPEN_RUNS, UNROUNDED.variation, seed) if published else None,
        published=published[0] / UNROUNDED.mean_s if published else None,
    )


def _expected(fraction: float, runs: int, cv: float, seed: int) -> Expectation:
    law = with_mean_and_cv(1.0, cv)
    random = Random(f"{seed} expected {fraction} {runs}")  # noqa: S311  no secrets
    protocol = Protocol(STUDY_SERVICES, runs)
    return expectation(protocol, fraction, law, random, simulated_runs=SIMULATED_RUNS)


def curve(fractions: Sequence[float], cv: float) -> tuple[list[float], list[float]]:
    """The results of both formulas at these loads, to draw: FCFS and PS."""
    both = [_formulas(fraction, cv) for fraction in fractions]
    return [fcfs for fcfs, _ in both], [shared for _, shared in both]


def published_points() -> list[tuple[float, float]]:
    """Share of L and tested mean response time in service times, as the study printed them."""
    return [(one.fraction, one.tested_s / UNROUNDED.mean_s) for one in OPEN_WORKLOADS]
