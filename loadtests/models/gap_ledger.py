"""Accounts for the gap between a measured mean response time and the predicted one, cause by cause.

The prediction is the formula of the steady state, with the service time from calibrations made with
one customer. The same arrivals are sent through a queue on paper again and again, and each time one
thing that was recorded is replaced by what the formula assumes, in the order of `Cause`. An entry
is the mean before that less the mean after it, so the entries of a run sum to its gap but for
rounding.

Causes multiply: one per cent more service is six per cent more waiting at 0.85 of the maximum rate,
but one at half of it. So they have an order: what is spoilt by the measurement first, then what
differs in the server, then chance; an entry says what its cause adds to a run from which those
above it have been removed.

The step from the services in random order to services that are drawn anew lets the mean vary as it
does by chance; it belongs to SERVICE_MEAN, whose entry is then 0 on average if nothing is wrong.

How much services vary, and that slow ones come in a row, are one entry, SPREAD: of 14 ledgers of
real servers with intervals one saw the first and none the second.

What the server does beside its services is one entry, AROUND: of 14 ledgers of real servers none
could tell order, connecting and receiving apart, and whether service is in order is a verdict of
its own. If it reports no times, or shares itself among requests, then what differs in its services
is in that entry, too: SERVER.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import accumulate, pairwise
from math import sqrt
from operator import sub
from random import Random
from statistics import pstdev

from loadtests.models import replay
from loadtests.models.estimates import CONFIDENCE, LEAST_VALUES, Interval, clustered_interval
from loadtests.models.random_times import poisson_times
from loadtests.models.replay import Discipline
from loadtests.models.sample_statistics import mean_of

DRAWS = 32  # how often services are put in random order, or drawn
_ALIKE = 1e-9  # times that differ by less than this share have no spread of their own
HISTORY = 1500  # arrivals before the run, from which several servers become as if they always ran


class Cause(StrEnum):
    """Names the causes of a gap, in the order of replacement, and by what they are replaced."""

    SERVER = "the server, not split"
    AROUND = "order, connecting, receiving"  # in order of arrival, with the times of each request
    DISPATCH = "dispatch lag"  # sent when intended
    DRIFT = "calibration drift"  # as fast as in the calibration before, not in the mean of both
    SERVICE_MEAN = "service mean"  # services scaled to the calibrated mean
    SPREAD = "service spread"  # services of the calibrated variance, in random order
    EMPTY = "start from empty"  # services drawn from these, and a queue that has run forever before
    SAMPLING = "sampling"  # the formula, for which all arrivals that could have come count


@dataclass(frozen=True, slots=True)
class Recorded:
    """Holds what was recorded of a run: a value for each request, by the intended arrival.

    services_s: how long it kept the server, with all that comes on top of the server's own time.
    is_reported: they are from times that the server reported, not from those it was asked for.
    skipped: requests at the beginning that do not count.
    """

    intended_s: Sequence[float]
    sent_s: Sequence[float]
    done_s: Sequence[float]
    services_s: Sequence[float]
    skipped: int = 0
    is_reported: bool = False


@dataclass(frozen=True, slots=True)
class Calibrated:
    """Holds what calibrations with one customer say about a request.

    mean_s, variance_s2: of the response time. drift: mean of services_s (see `Recorded`) by the
    calibration after the run over that by the one before it, less 1; None if it is not known.
    delay_s: the part of mean_s that keeps nobody else waiting, by the model.
    """

    mean_s: float
    variance_s2: float
    drift: float | None = None
    delay_s: float = 0.0

    @property
    def busy_s(self) -> float:
        """Return the mean time in s for which a request keeps the server."""
        return self.mean_s - self.delay_s


Account = Mapping[Cause, float]  # entries in s, without causes that cannot be told


@dataclass(frozen=True, slots=True)
class Model:
    """Describes the queue of the prediction. predicted_s: its mean response time by the formula."""

    rate_per_s: float
    predicted_s: float
    discipline: Discipline = replay.fcfs
    servers: int = 1


def account(run: Recorded, calibrated: Calibrated, model: Model, rng: Random) -> Account:
    """Return the entries (s) of a run, which sum to its measured mean less the predicted one."""
    replays = _Replays(run, calibrated, model, rng)
    levels = [*replays.of_server(), *replays.of_services(), (Cause.SAMPLING, model.predicted_s)]
    entries_s = defaultdict[Cause, float](float)
    for (cause, mean_s), (_, following_s) in pairwise(levels):
        entries_s[cause] += mean_s - following_s
    return {cause: entries_s[cause] for cause in Cause if cause in entries_s}


@dataclass(frozen=True, slots=True)
class Ledger:
    """Holds the entries over runs (s), and the interval of the gap that they sum to.

    runs, calibrations: how many. intervals: all hold together with CONFIDENCE, the gap's with
    CONFIDENCE alone; there are none if there are too few calibrations.
    """

    runs: int
    calibrations: int
    entries_s: Account
    gap: Interval | None = None
    intervals: Mapping[Cause, Interval] = field(default_factory=dict)


def ledger(accounts: Sequence[Account], calibrations: Sequence[Hashable]) -> Ledger:
    """Return the means of the entries of runs at one load, each with the same weight.

    calibrations: of each run, what names the calibration before it. Runs that share one are not
    independent, so the unit of replication is the calibration, and of fewer than LEAST_VALUES there
    are no intervals: they would be wider than any gap. The intervals are Student's t, each with the
    confidence 1 − (1 − CONFIDENCE)/entries, so that all of them hold together with at least
    CONFIDENCE (C. E. Bonferroni, 1936), however entries depend on each other.
    """
    runs, units = len(accounts), len(set(calibrations))
    causes = [cause for cause in Cause if any(cause in entries_s for entries_s in accounts)]
    by_cause = {cause: [run_s.get(cause, 0.0) for run_s in accounts] for cause in causes}
    means_s = {cause: mean_of(values_s) for cause, values_s in by_cause.items()}
    if units < LEAST_VALUES:
        return Ledger(runs, units, means_s)
    gap = clustered_interval([sum(run_s.values()) for run_s in accounts], calibrations)
    joint = 1 - (1 - CONFIDENCE) / len(causes)
    intervals = {
        cause: clustered_interval(values_s, calibrations, joint)
        for cause, values_s in by_cause.items()
    }
    return Ledger(runs, units, means_s, gap, intervals)


_Levels = Iterator[tuple[Cause, float]]  # what is replaced next, and the mean response before it


class _Replays:
    """Replays a run. services_s: those that are left of the server, after `of_server`."""

    def __init__(self, run: Recorded, calibrated: Calibrated, model: Model, rng: Random) -> None:
        self._run, self._calibrated, self._model, self._rng = run, calibrated, model, rng
        self._load = model.rate_per_s * calibrated.busy_s / model.servers
        if self._load >= 1:
            raise ValueError(f"a load of {self._load:.3g} has no steady state to compare with")
        # half of the drift, as services are between those of both calibrations
        slower = 1 + (calibrated.drift or 0.0) / 2
        self._services_s = [time_s / slower for time_s in run.services_s]

    def of_server(self) -> _Levels:
        """Yield the means (s) before each of the server's own causes is replaced."""
        run = self._run
        measured_s = mean_of(list(map(sub, run.done_s, run.intended_s))[run.skipped :])
        yield Cause.AROUND if run.is_reported else Cause.SERVER, measured_s
        yield Cause.DISPATCH, self._replayed_s(run.sent_s, run.services_s)
        if self._calibrated.drift is not None:
            yield Cause.DRIFT, self._replayed_s(run.intended_s, run.services_s)

    def of_services(self) -> _Levels:
        """Yield the means (s) before the services, and then the arrivals, are replaced."""
        known, arrivals_s = self._calibrated, self._run.intended_s
        yield Cause.SERVICE_MEAN, self._replayed_s(arrivals_s, self._services_s)
        scale = known.busy_s / mean_of(self._services_s)
        scaled_s = [scale * time_s for time_s in self._services_s]
        yield Cause.SPREAD, self._replayed_s(arrivals_s, scaled_s)
        stretched_s = _stretched(scaled_s, sqrt(known.variance_s2))
        shuffled, drawn, started = [], [], []
        for _ in range(DRAWS):
            order_s = self._rng.sample(stretched_s, len(stretched_s))
            shuffled.append(self._replayed_s(arrivals_s, order_s))
            drawn_s = self._rng.choices(stretched_s, k=len(stretched_s))
            drawn.append(self._replayed_s(arrivals_s, drawn_s))
            started.append(self._replayed_s(arrivals_s, drawn_s, past=self._past(stretched_s)))
        yield Cause.SERVICE_MEAN, mean_of(shuffled)
        yield Cause.EMPTY, mean_of(drawn)
        yield Cause.SAMPLING, mean_of(started)

    def _replayed_s(
        self,
        arrivals_s: Sequence[float],
        services_s: Sequence[float],
        past: Sequence[tuple[float, float]] = (),
    ) -> float:
        """Return the mean response time (s) of a replay, from the intended arrival.

        past: arrival and service time of customers before these.
        """
        order = sorted(range(len(arrivals_s)), key=arrivals_s.__getitem__)
        times_s = [at_s for at_s, _ in past] + [arrivals_s[n] for n in order]
        needs_s = [for_s for _, for_s in past] + [services_s[n] for n in order]
        responses_s = self._model.discipline(times_s, needs_s)[len(past) :]
        totals_s = [self._calibrated.delay_s] * len(order)
        for n, response_s in zip(order, responses_s, strict=True):
            totals_s[n] += arrivals_s[n] - self._run.intended_s[n] + response_s
        return mean_of(totals_s[self._run.skipped :])

    def _past(self, services_s: Sequence[float]) -> list[tuple[float, float]]:
        """Draw the customers of a queue that has run forever when the run begins.

        It begins with its first arrival, and arrivals see what an observer at any time sees
        (R. W. Wolff, 1982). The work before a single server is then that of n residual services
        with probability (1−ρ)ρⁿ, in order of arrival as well as shared (L. Kleinrock, Queueing
        Systems, vol. 1, 1975, section 5.7, and vol. 2, 1976, section 4.4). Several servers are
        given a long past instead.
        """
        begun_s, rng = self._run.intended_s[0], self._rng
        if self._model.servers > 1:
            times_s = poisson_times(self._model.rate_per_s, rng, count=HISTORY)
            return [(begun_s - ago_s, rng.choice(services_s)) for ago_s in reversed(times_s)]
        present = 0
        while rng.random() < self._load:
            present += 1
        met_s = rng.choices(services_s, cum_weights=list(accumulate(services_s)), k=present)
        return [(begun_s, time_s * rng.random()) for time_s in met_s]


def _stretched(times_s: Sequence[float], deviation_s: float) -> list[float]:
    """Return times of the same mean and this standard deviation; times all alike alternate."""
    mean_s, present_s = mean_of(times_s), pstdev(times_s)
    if present_s <= _ALIKE * mean_s:
        return [max(0.0, mean_s + (-1) ** n * deviation_s) for n in range(len(times_s))]
    factor = deviation_s / present_s
    return [max(0.0, mean_s + factor * (time_s - mean_s)) for time_s in times_s]
