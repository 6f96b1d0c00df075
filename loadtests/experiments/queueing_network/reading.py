"""Reads closed runs from the tables of a result, in report seconds: K times the measured ones."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from loadtests.experiments.queueing_network.measuring import (
    PLAN,
    SIMULATED,
    TOLD,
    TOLD_TIMES,
    PlanLine,
)
from loadtests.experiments.queueing_network.plan import SERVERS, Server
from loadtests.experiments.queueing_network.predicting import Prediction, counted
from loadtests.experiments.queueing_network.simulating import (
    Cell,
    Expectations,
    expectations,
    simulated_results,
)
from loadtests.generation.rows import Row, customer_of
from loadtests.lab.repeated import accepted_by_run, rows_by_run
from loadtests.lab.results import Results

Told = Mapping[str, float]  # `cpu`, `cpu_queue` …, `late` -> report seconds

_NAMED = {server.name: server for server in SERVERS}


@dataclass(frozen=True, slots=True)
class ClosedRun:
    """A run, with the interactions that count in the order of their ends.

    cycles_s: from the end of a customer's interaction to the end of the next one. told: times that
    the server reported; empty unless it reported all interactions.
    """

    server: Server
    customers: int
    scale: float
    group: int
    is_accepted: bool
    cycles_s: Sequence[float]
    responses_s: Sequence[float]
    told: Sequence[Told]


def closed_runs(results: Results) -> list[ClosedRun]:
    """All runs with rows, in the order of the plan. Raises ResultsError without a plan."""
    rows, told, accepted = rows_by_run(results), _told(results), accepted_by_run(results)
    return [
        _closed_run(
            line,
            sorted(rows[line.run], key=lambda row: row.done_s),
            told[line.run],
            is_accepted=not accepted or accepted.get(line.run, False),
        )
        for line in results.lines(PLAN, PlanLine)
        if rows[line.run]
    ]


LEAST_SIMULATED = 50  # runs of each server, if the measurement ended before it simulated any


def expected(results: Results) -> Expectations:
    """What the runs should give, from simulated runs like them. Raises ResultsError without a plan.

    They are simulated here if the measurement was interrupted before that.
    """
    found: dict[Cell, list[Prediction]] = defaultdict(list)
    if results.has(SIMULATED):
        for row in results.rows(SIMULATED):
            one = Prediction(float(row["throughput_per_s"]), float(row["response_s"]))
            found[_NAMED[row["server"]], int(row["customers"])].append(one)
        return expectations(found)
    lines = results.lines(PLAN, PlanLine)
    populations = sorted({line.customers for line in lines})
    made_so = lines[0].report_s, lines[0].group
    seed = f"{results.manifest()['seed']} simulated"
    return expectations(simulated_results(populations, *made_so, seed, LEAST_SIMULATED))


def _told(results: Results) -> Mapping[str, list[Told]]:
    found: dict[str, list[Told]] = defaultdict(list)
    for row in results.rows_if_any(TOLD):
        found[row["run"]].append({name: float(row[f"{name}_s"]) for name in TOLD_TIMES})
    return found


def _closed_run(
    line: PlanLine, rows: Sequence[Row], told: Sequence[Told], *, is_accepted: bool
) -> ClosedRun:
    """The closed run. rows, told: both in the order of the interactions' ends."""
    scale = line.scale
    found = counted([(customer_of(row), row.done_s) for row in rows], line.warm_up)
    is_whole = len(told) == len(rows)
    return ClosedRun(
        server=_NAMED[line.server],
        customers=line.customers,
        scale=scale,
        group=line.group,
        is_accepted=is_accepted,
        cycles_s=[scale * cycle_s for _, cycle_s in found],
        responses_s=[scale * rows[at].closed_response_s for at, _ in found],
        told=[
            {name: scale * value_s for name, value_s in told[at].items()}
            for at, _ in found
            if is_whole
        ],
    )
