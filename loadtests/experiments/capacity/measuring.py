"""Measures in turns of rounds, in which connections ask a service for a second or two.

Each turn goes through all configurations, a type of workers and their number, in a new random
order. A configuration is started anew in each turn, so that the kernel distributes connections anew
over workers, too. In a configuration, the questions and the empty endpoint follow each other at
each number of connections, so that their ratio compares neighbours. Rejected rounds get more turns,
as long as there is time.

A row of the table `rounds` has only measurements. The verdicts of the rules are in the table
`runs`; the analysis computes them again from the rows.
"""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from itertools import product, starmap
from os import sched_getaffinity
from pathlib import Path
from random import Random
from time import monotonic
from typing import NamedTuple

from loadtests import wrk
from loadtests.chains import Chain, generated, imported
from loadtests.generation.rules import RULES as ALL_RULES
from loadtests.generation.rules import Facts, Verdict, judge
from loadtests.grouping import grouped
from loadtests.lab.experiment import Run
from loadtests.lab.results import Line, TableWriter
from loadtests.processes import Service, running
from loadtests.questions import in_turns, tried_out
from loadtests.servers.service import EMPTY_ENDPOINT, WORKER_TYPES

QUESTIONS, NOTHING = "questions", "nothing"
ENDPOINTS = (QUESTIONS, NOTHING)
SETTLE_S = ROUND_S = 1
RULES = [one for one in ALL_RULES if one.name in {"failed_requests", "foreign_cpu", "client_cpu"}]


class Configuration(NamedTuple):
    """A number of workers of one type."""

    worker_type: str
    workers: int

    def __str__(self) -> str:
        return f"{self.workers} {self.worker_type} worker{'s' if self.workers > 1 else ''}"


@dataclass(frozen=True, slots=True)
class Round(Line):
    """The measurements of one round."""

    run: str
    turn: int  # in which all configurations are measured once
    worker_type: str
    workers: int
    endpoint: str  # one of ENDPOINTS
    connections: int
    duration_s: float
    requests: int
    failed: int
    mean_s: float | None  # latency of the requests; None if none was answered
    p50_s: float | None
    p99_s: float | None
    server_cpu_s: float
    generator_cpu_s: float
    foreign_cpu: float  # cores that other programs kept busy
    cores: int  # that this process may use

    @property
    def throughput_per_s(self) -> float:
        """X: answers per second."""
        return self.requests / self.duration_s

    @property
    def server_cores(self) -> float:
        """The number of cores that the service kept busy (utilisation law)."""
        return self.server_cpu_s / self.duration_s

    @property
    def generator_cores(self) -> float:
        """The number of cores that the generator kept busy."""
        return self.generator_cpu_s / self.duration_s

    @property
    def demand_s(self) -> float:
        """D: processor seconds of the server for one request (service demand law)."""
        return self.server_cpu_s / self.requests

    @property
    def share_under_way(self) -> float | None:
        """X·R/N, by Little's law the mean share of connections with a request under way."""
        if self.mean_s is None:
            return None
        return self.throughput_per_s * self.mean_s / self.connections

    @property
    def verdict(self) -> Verdict:
        """The verdict by those of the lab's rules that a round can break."""
        facts = Facts(
            requests=self.requests,
            failed=self.failed,
            foreign_cpu=self.foreign_cpu,
            client_cpu=self.generator_cores,
        )
        return judge(facts, RULES)


class Cell(NamedTuple):
    """What is measured once in a turn, in the terms of `Round`."""

    worker_type: str
    workers: int
    endpoint: str
    connections: int


@dataclass(frozen=True, slots=True)
class Plan:
    """What is measured."""

    flights: int
    questions_per_kind: int
    worker_types: tuple[str, ...]
    worker_counts: tuple[int, ...]
    connections: tuple[int, ...]
    turns: int  # rounds of each cell
    more_turns: int  # at most, for rejected rounds
    until_s: float  # no turn but the first begins later after the start


FULL = Plan(200_000, 300, WORKER_TYPES, (1, 2, 3, 4), (1, 2, 4, 8, 16, 32, 64), 3, 1, 13 * 60)
QUICK = Plan(20_000, 50, WORKER_TYPES, (2,), (1, 4, 16, 64), 1, 0, 90)


def measure(run: Run) -> None:
    """Measure by the quick or the full plan. The option --reps sets the number of turns."""
    plan, began_s = run.choose(QUICK, FULL), monotonic()
    turns = run.options.reps or plan.turns
    run.say(f"importing {plan.flights:,} generated flights")
    chain = imported(generated(plan.flights), run.scratch / "chain", run.log)
    random = run.random("capacity: order of rounds")
    columns = ("run", "accepted", "reasons", *(rule.name for rule in RULES))
    cells = product(plan.worker_types, plan.worker_counts, ENDPOINTS, plan.connections)
    with (
        run.results.table("rounds", Round) as rounds,
        run.results.table("runs", columns) as verdicts,
    ):
        accepted = dict.fromkeys(starmap(Cell, cells), 0)
        bench = _Bench(run, chain, plan.questions_per_kind, rounds, verdicts, accepted)
        for turn in range(1, turns + plan.more_turns + 1):
            wanted = [cell for cell, count in accepted.items() if count < turns]
            if not wanted or (turn > 1 and monotonic() > began_s + plan.until_s):
                break
            bench.turn(turn, wanted, random)


@dataclass(slots=True)
class _Bench:
    """Makes the rounds of a run. accepted: how many of each cell were."""

    run: Run
    chain: Chain
    questions_per_kind: int
    rounds: TableWriter
    verdicts: TableWriter
    accepted: dict[Cell, int]
    scripts: dict[str, Path] = field(default_factory=dict)

    def turn(self, number: int, wanted: Iterable[Cell], random: Random) -> None:
        """Make a round of each cell in `wanted`."""
        for mine in _shuffled(wanted, lambda cell: (cell.worker_type, cell.workers), random):
            kind, workers, *_ = mine[0]
            self.run.say(f"turn {number}: {workers} {kind} workers, {len(mine)} rounds")
            settings = {"worker_type": kind, "workers": workers}
            with running(self.chain.folder, self.run.log, settings=settings) as service:
                self._settle(service)
                for neighbours in _shuffled(mine, lambda cell: cell.connections, random):
                    for cell in random.sample(neighbours, len(neighbours)):
                        self._round(service, number, cell)

    def _settle(self, service: Service) -> None:
        """Load every worker briefly, so that none answers its first question in a round."""
        if not self.scripts:
            mixed = in_turns(tried_out(service, self.questions_per_kind, self.run.options.seed))
            for endpoint, of in ((QUESTIONS, mixed), (NOTHING, [EMPTY_ENDPOINT] * len(mixed))):
                path = self.run.scratch / f"{endpoint}.lua"
                self.scripts[endpoint] = wrk.write_script(path, of)
        for script in self.scripts.values():
            wrk.load(service.url, script, SETTLE_S)

    def _round(self, service: Service, turn: int, cell: Cell) -> None:
        script, connections = self.scripts[cell.endpoint], cell.connections
        load = wrk.load(service.url, script, ROUND_S, connections, service.pid)
        seen, usage = load.recorded, load.usage
        assert usage is not None  # of a service with a pid
        if seen is None:
            raise wrk.WrkFailed("wrk's histogram is not what the known version (4.1) prints")
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
        verdict = one.verdict
        self.accepted[cell] += verdict.accepted
        self.rounds.add(one)
        told = {"accepted": verdict.accepted, "reasons": verdict.reasons, **verdict.values}
        self.verdicts.write(run=one.run, **told)


def _shuffled(
    cells: Iterable[Cell], key: Callable[[Cell], Hashable], random: Random
) -> list[list[Cell]]:
    """The groups of cells that have the same key, in random order."""
    groups = list(grouped(cells, key).values())
    random.shuffle(groups)
    return groups
