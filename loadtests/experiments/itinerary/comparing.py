"""Computes the phases of a transaction and the points of the figure.

Response times that follow each other in a run are correlated, so intervals come from means of
batches, or from means of runs if there are several.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

from loadtests.experiments.itinerary.plan import AT_RATE, SINGLE
from loadtests.experiments.itinerary.reading import PHASES, ItineraryRun, Transaction
from loadtests.grouping import grouped
from loadtests.lab.repeated import Estimate, Repeated, that_count
from loadtests.lab.repeated import of as estimated
from loadtests.models.estimates import mean_over_runs
from loadtests.models.samples import summary

SATURATED_SHARE = 0.05
BATCHES = 10
ONE_RUN_BATCHES_LEAST = 2

Value = Callable[[Transaction], float]


@dataclass(frozen=True)
class Phases(Repeated[ItineraryRun]):
    """Means in seconds of one client with one way to commit."""

    commit: str

    @cached_property
    def phases(self) -> dict[str, Estimate]:
        """Phase -> the mean of a request."""
        return {phase: over(self.runs, partial(_of_phase, phase)) for phase in PHASES}

    @cached_property
    def transaction(self) -> Estimate:
        """T_tx."""
        return over(self.runs, lambda one: one.time_s)

    @cached_property
    def unexplained(self) -> Estimate:
        """T_tx − Σ of the nine requests, paired."""
        return over(self.runs, lambda one: one.unexplained_s)

    @property
    def sum_s(self) -> float:
        """T_start + 4 T_query + 3 T_reserve + T_commit."""
        return sum(count * self.phases[phase].value for phase, count in PHASES.items())


def _of_phase(phase: str, one: Transaction) -> float:
    return summary(one.phases_s[phase]).mean


def phases_of(runs: Sequence[ItineraryRun], part: str = SINGLE) -> list[Phases]:
    """The phases for each way to commit that one client was measured with, in the plan's order."""
    by_commit = grouped((run for run in runs if run.line.part == part), lambda run: run.line.commit)
    return [Phases(that_count(made), len(made), commit) for commit, made in by_commit.items()]


def over(runs: Sequence[ItineraryRun], value: Value) -> Estimate:
    """The mean of a value of transactions: over runs, or from batches of one."""
    values = [[value(one) for one in run.transactions] for run in runs]
    return estimated(mean_over_runs(values, BATCHES))


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
    transaction: Estimate
    before_commit: Estimate
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
    by_client = grouped(transactions, lambda one: one.client).values()
    start_s = max(own[0].sent_s for own in by_client)
    end_s = min(own[-1].done_s for own in by_client)
    if end_s <= start_s:
        start_s = min(one.sent_s for one in transactions)
        end_s = max(one.done_s for one in transactions)
    done = sum(start_s < one.done_s <= end_s for one in transactions)
    return done / (end_s - start_s)
