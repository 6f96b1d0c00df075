"""Makes transactions with phases of raw rows, and reads the runs of a result from its tables."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from loadtests.experiments.itinerary.plan import COUNTED_SHARE
from loadtests.generation.interactions import SEPARATOR, by_interaction, interaction_of, step_of
from loadtests.generation.rows import Row
from loadtests.lab.repeated import accepted_by_run, rows_by_run
from loadtests.lab.results import Line, Results
from loadtests.scenarios import BEGIN, COMMIT, ITINERARY, QUERY, RESERVE, STEPS

PLAN = "plan"
PHASES: Mapping[str, int] = {BEGIN: 1, QUERY: 4, RESERVE: 3, COMMIT: 1}
"""The number of requests of each phase in a transaction."""


@dataclass(frozen=True, slots=True)
class RunLine(Line):
    """A line of the plan. interval_s: T of each client; 0 means without a pause."""

    run: str
    part: str
    commit: str
    clients: int
    fraction: float
    interval_s: float
    iterations: int
    blocks: int


@dataclass(frozen=True, slots=True)
class Transaction:
    """One itinerary of a client. number: its position among those of the client, from 0.

    phases_s: phase -> times of its requests; a commit of several requests counts as one, from
    sending the first to the last answer. is_late: the client was still busy with the transaction
    before when this one was due.
    """

    client: int
    number: int
    sent_s: float
    done_s: float
    phases_s: Mapping[str, Sequence[float]]
    succeeded: bool
    is_late: bool

    @property
    def time_s(self) -> float:
        """T_tx, from sending the first request to the last answer."""
        return self.done_s - self.sent_s

    @property
    def before_commit_s(self) -> float:
        """T_tx without the commit, until the commit's first request was sent."""
        return self.time_s - sum(self.phases_s.get(COMMIT, ()))

    @property
    def unexplained_s(self) -> float:
        """T_tx − (T_start + 4 T_query + 3 T_reserve + T_commit): the time between requests."""
        return self.time_s - sum(sum(times_s) for times_s in self.phases_s.values())

    def counts(self, iterations: int) -> bool:
        """Whether it is among the last four fifths of its client's transactions."""
        return self.number >= iterations - round(COUNTED_SHARE * iterations)


def transactions_of(rows: Iterable[Row]) -> list[Transaction]:
    """The transactions of a run by start time, without those that the run's end cut off."""
    found, done_s = [], dict[int, float]()
    for steps in by_interaction(rows):
        is_whole = step_of(steps[-1]) == STEPS[ITINERARY] - 1
        if not is_whole and steps[-1].succeeded:
            continue
        client, number = interaction_of(steps[0])
        found.append(
            Transaction(
                client=client,
                number=number,
                sent_s=steps[0].sent_s,
                done_s=steps[-1].done_s,
                phases_s=_phases_s(steps),
                succeeded=steps[-1].succeeded,
                is_late=done_s.get(client, float("-inf")) > steps[0].intended_s,
            )
        )
        done_s[client] = steps[-1].done_s
    return found


def _phases_s(steps: Sequence[Row]) -> Mapping[str, Sequence[float]]:
    by_step: dict[int, list[Row]] = defaultdict(list)
    for row in steps:
        by_step[step_of(row)].append(row)
    phases_s: dict[str, list[float]] = defaultdict(list)
    for rows in by_step.values():
        phase = rows[0].kind.partition(SEPARATOR)[2]
        phases_s[phase].append(rows[-1].done_s - rows[0].sent_s)
    return dict(phases_s)


@dataclass(frozen=True, slots=True)
class ItineraryRun:
    """A run: its line of the plan, and its transactions that count and succeeded."""

    line: RunLine
    transactions: Sequence[Transaction]
    is_accepted: bool


def itinerary_runs(results: Results) -> list[ItineraryRun]:
    """All runs with a transaction that counts, in the order in which they were made."""
    rows, accepted = rows_by_run(results), accepted_by_run(results)
    found = [_run(line, rows, accepted) for line in results.lines(PLAN, RunLine)]
    return [run for run in found if run.transactions]


def _run(
    line: RunLine, rows: Mapping[str, list[Row]], accepted: Mapping[str, bool]
) -> ItineraryRun:
    made = transactions_of(rows[line.run])
    counted = [one for one in made if one.succeeded and one.counts(line.iterations)]
    return ItineraryRun(line, counted, accepted.get(line.run, False))
