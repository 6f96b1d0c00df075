"""Computes the phases of a transaction and the points of the figure.

Response times that follow each other in a run are correlated, so intervals come from means of
batches, or from means of runs if there are several.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from loadtests.experiments.itinerary.plan import AT_RATE, SINGLE
from loadtests.experiments.itinerary.reading import PHASES, ItineraryRun, Transaction
from loadtests.lab.repeated import accepted, that_count
from loadtests.models.estimates import Interval, batch_means, confidence_interval
from loadtests.models.samples import summary

SATURATED_SHARE = 0.05
BATCHES = 10
ONE_RUN_BATCHES_LEAST = 2

Value = Callable[[Transaction], float]


@dataclass(frozen=True, slots=True)
class Phases:
    """Means in seconds of one client with one way to commit. runs: accepted ones of `made`.

    phases: phase -> mean of a request. unexplained: T_tx − Σ of the nine requests, paired.
    """

    commit: str
    runs: int
    made: int
    is_accepted: bool
    phases: dict[str, Interval]
    transaction: Interval
    unexplained: Interval

    @property
    def sum_s(self) -> float:
        """T_start + 4 T_query + 3 T_reserve + T_commit."""
        return sum(count * self.phases[phase].estimate for phase, count in PHASES.items())


def phases_of(runs: Sequence[ItineraryRun], part: str = SINGLE) -> list[Phases]:
    """The phases for each way to commit that one client was measured with, in the plan's order."""
    singles = [run for run in runs if run.line.part == part]
    commits = dict.fromkeys(run.line.commit for run in singles)
    return [_phases([run for run in singles if run.line.commit == one]) for one in commits]


def _phases(made: Sequence[ItineraryRun]) -> Phases:
    runs = that_count(made)

    def of_phase(phase: str) -> Interval:
        return over(runs, lambda one: summary(one.phases_s[phase]).mean)

    return Phases(
        commit=made[0].line.commit,
        runs=len(accepted(made)),
        made=len(made),
        is_accepted=runs[0].is_accepted,
        phases={phase: of_phase(phase) for phase in PHASES},
        transaction=over(runs, lambda one: one.time_s),
        unexplained=over(runs, lambda one: one.unexplained_s),
    )


def over(runs: Sequence[ItineraryRun], value: Value) -> Interval:
    """The interval of the mean of a value of transactions: over runs, or from batches of one."""
    if len(runs) > 1:
        return confidence_interval(
            [summary([value(one) for one in run.transactions]).mean for run in runs]
        )
    values = [value(one) for one in runs[0].transactions]
    return batch_means(values, min(BATCHES, len(values)))


@dataclass(frozen=True, slots=True)
class Point:
    """Several clients at a target rate. Rates are those of all clients together, in 1/s.

    late_share: share of the transactions that were due while the client was busy. achieved_per_s:
    completed while all clients were counted.
    """

    commit: str
    clients: int
    fraction: float
    target_per_s: float
    achieved_per_s: float
    late_share: float
    transaction: Interval
    before_commit: Interval
    is_accepted: bool

    @property
    def is_saturated(self) -> bool:
        """Whether more than 5 % of the transactions started late."""
        return self.late_share > SATURATED_SHARE


def points_of(runs: Sequence[ItineraryRun]) -> list[Point]:
    """A point for each run at a rate with enough transactions, in the plan's order."""
    return [
        _point(run)
        for run in runs
        if run.line.part == AT_RATE and len(run.transactions) >= ONE_RUN_BATCHES_LEAST
    ]


def _point(run: ItineraryRun) -> Point:
    late = sum(one.is_late for one in run.transactions)
    return Point(
        commit=run.line.commit,
        clients=run.line.clients,
        fraction=run.line.fraction,
        target_per_s=run.line.clients / run.line.interval_s,
        achieved_per_s=_achieved_per_s(run.transactions),
        late_share=late / len(run.transactions),
        transaction=over([run], lambda one: one.time_s),
        before_commit=over([run], lambda one: one.before_commit_s),
        is_accepted=run.is_accepted,
    )


def _achieved_per_s(transactions: Sequence[Transaction]) -> float:
    """The rate from the time when all clients are counted until the first client has finished.

    If there is no such time, the rate is that of the whole time.
    """
    by_client: dict[int, list[Transaction]] = {}
    for one in transactions:
        by_client.setdefault(one.client, []).append(one)
    start_s = max(own[0].sent_s for own in by_client.values())
    end_s = min(own[-1].done_s for own in by_client.values())
    if end_s <= start_s:
        start_s = min(one.sent_s for one in transactions)
        end_s = max(one.done_s for one in transactions)
    done = sum(start_s < one.done_s <= end_s for one in transactions)
    return done / (end_s - start_s)
