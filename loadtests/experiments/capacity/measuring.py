"""Measures in turns of rounds. Each turn goes through all configurations in a new random order.

A configuration is a type of workers and their number. It is started anew in each turn, so that the
kernel distributes connections anew over workers, too. In a configuration, the questions and the
empty endpoint follow each other at each number of connections, so that their ratio compares
neighbours. Rejected rounds get more turns, as long as there is time.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import product, starmap
from os import sched_getaffinity
from pathlib import Path
from random import Random
from time import monotonic
from typing import NamedTuple

from loadtests import wrk
from loadtests.chains import Chain, generated, imported
from loadtests.experiments.capacity.rounds import (
    ENDPOINTS,
    NOTHING,
    QUESTIONS,
    RULES,
    Round,
    judged,
)
from loadtests.grouping import grouped
from loadtests.lab.experiment import Run
from loadtests.lab.results import TableWriter
from loadtests.processes import Service, running
from loadtests.questions import in_turns, tried_out
from loadtests.servers.service import EMPTY_ENDPOINT, WORKER_TYPES

SETTLE_S = 1

VERDICTS = ("run", "accepted", "reasons", *(rule.name for rule in RULES))


class Cell(NamedTuple):
    """What is measured once in a turn, in the terms of `Round`."""

    worker_type: str
    workers: int
    endpoint: str
    connections: int


@dataclass(frozen=True, slots=True)
class Plan:
    """What is measured. turns: rounds of each cell. more_turns: at most, for rejected rounds.

    until_s: no turn but the first begins more than this many seconds after the start.
    """

    flights: int
    questions_per_kind: int
    worker_types: tuple[str, ...]
    worker_counts: tuple[int, ...]
    connections: tuple[int, ...]
    round_s: int
    turns: int
    more_turns: int
    until_s: float


FULL = Plan(
    flights=200_000,
    questions_per_kind=300,
    worker_types=WORKER_TYPES,
    worker_counts=(1, 2, 3, 4),
    connections=(1, 2, 4, 8, 16, 32, 64),
    round_s=1,
    turns=3,
    more_turns=1,
    until_s=13 * 60,
)
QUICK = Plan(
    flights=20_000,
    questions_per_kind=50,
    worker_types=FULL.worker_types,
    worker_counts=(2,),
    connections=(1, 4, 16, 64),
    round_s=1,
    turns=1,
    more_turns=0,
    until_s=90,
)


def measure(run: Run) -> None:
    """Measure by the quick or the full plan. The option --reps sets the number of turns."""
    plan = run.choose(QUICK, FULL)
    measure_by(plan, run, run.options.reps or plan.turns)


def measure_by(plan: Plan, run: Run, turns: int) -> None:
    """Measure by `plan`, and write the tables `rounds` and `runs`."""
    began_s = monotonic()
    run.say(f"importing {plan.flights:,} generated flights")
    chain = imported(generated(plan.flights), run.scratch / "chain", run.log)
    random = run.random("capacity: order of rounds")
    with (
        run.results.table("rounds", Round) as rounds,
        run.results.table("runs", VERDICTS) as verdicts,
    ):
        bench = _Bench(plan, run, chain, rounds, verdicts)
        for turn in range(1, turns + plan.more_turns + 1):
            wanted = bench.lacking(turns)
            if not wanted or (turn > 1 and monotonic() > began_s + plan.until_s):
                break
            bench.turn(turn, wanted, random)


class _Bench:
    """Makes the rounds of a run, and counts the accepted ones of each cell."""

    def __init__(
        self, plan: Plan, run: Run, chain: Chain, rounds: TableWriter, verdicts: TableWriter
    ) -> None:
        self._plan, self._run, self._chain = plan, run, chain
        self._rounds, self._verdicts = rounds, verdicts
        self._scripts: dict[str, Path] = {}
        cells = product(plan.worker_types, plan.worker_counts, ENDPOINTS, plan.connections)
        self._accepted = dict.fromkeys(starmap(Cell, cells), 0)

    def lacking(self, turns: int) -> list[Cell]:
        """The cells with fewer than `turns` accepted rounds."""
        return [cell for cell, accepted in self._accepted.items() if accepted < turns]

    def turn(self, number: int, wanted: Sequence[Cell], random: Random) -> None:
        """Make a round of each cell in `wanted`."""
        for mine in _shuffled(wanted, lambda cell: (cell.worker_type, cell.workers), random):
            kind, workers, *_ = mine[0]
            self._run.say(f"turn {number}: {workers} {kind} workers, {len(mine)} rounds")
            settings = {"worker_type": kind, "workers": workers}
            with running(self._chain.folder, self._run.log, settings=settings) as service:
                self._settle(service)
                for neighbours in _shuffled(mine, lambda cell: cell.connections, random):
                    for cell in random.sample(neighbours, len(neighbours)):
                        self._round(service, number, cell)

    def _settle(self, service: Service) -> None:
        """Load every worker briefly, so that none answers its first question in a round."""
        if not self._scripts:
            self._scripts = self._written(service)
        for endpoint in ENDPOINTS:
            wrk.load(service.url, self._scripts[endpoint], SETTLE_S)

    def _written(self, service: Service) -> dict[str, Path]:
        count, seed = self._plan.questions_per_kind, self._run.options.seed
        mixed = in_turns(tried_out(service, count, seed))
        paths = {QUESTIONS: mixed, NOTHING: [EMPTY_ENDPOINT] * len(mixed)}
        return {
            endpoint: wrk.write_script(self._run.scratch / f"{endpoint}.lua", of)
            for endpoint, of in paths.items()
        }

    def _round(self, service: Service, turn: int, cell: Cell) -> None:
        script, duration_s = self._scripts[cell.endpoint], self._plan.round_s
        load = wrk.load(service.url, script, duration_s, cell.connections, service.pid)
        seen, usage = load.recorded, load.usage
        assert seen is not None  # wrk 4.1 tells
        assert usage is not None
        one = Round(
            run=f"{'-'.join(map(str, cell))}-turn{turn}",
            turn=turn,
            **cell._asdict(),
            duration_s=seen.duration_s,
            requests=load.requests,
            failed=load.failed,
            mean_s=seen.mean_s,
            p50_s=seen.percentile_s(50),
            p99_s=seen.percentile_s(99),
            server_cpu_s=usage.server_s,
            generator_cpu_s=usage.own_s,
            foreign_cpu=usage.foreign_cores,
            cores=len(sched_getaffinity(0)),
        )
        verdict = judged(one)
        self._accepted[cell] += verdict.accepted
        self._rounds.add(one)
        told = {"accepted": verdict.accepted, "reasons": verdict.reasons}
        self._verdicts.write(run=one.run, **told, **verdict.values)


def _shuffled(
    cells: Iterable[Cell], key: Callable[[Cell], Hashable], random: Random
) -> list[list[Cell]]:
    """The groups of cells that have the same key, in random order."""
    groups = list(grouped(cells, key).values())
    random.shuffle(groups)
    return groups
