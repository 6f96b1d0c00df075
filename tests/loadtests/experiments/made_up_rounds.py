"""Rounds of a machine that obeys the universal scalability law, with noise as asked for."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from loadtests.experiments.capacity.measuring import NOTHING, QUESTIONS, Round
from loadtests.lab.results import Results
from loadtests.lab.scalability import ScalabilityLaw

LAWS = {
    "asgi": ScalabilityLaw(4000, 0.4, 0.0005),
    "gthread": ScalabilityLaw(2500, 0.5, 0.002),
    "sync": ScalabilityLaw(1500, 0.6, 0.004),
}
CONNECTIONS = (1, 2, 4, 8, 16, 32, 64)
ROUND = Round(
    run="one",
    turn=1,
    worker_type="asgi",
    workers=2,
    endpoint=QUESTIONS,
    connections=8,
    duration_s=1.0,
    requests=1000,
    failed=0,
    mean_s=0.008,
    p50_s=0.007,
    p99_s=0.020,
    server_cpu_s=0.8,
    generator_cpu_s=0.2,
    foreign_cpu=0.01,
    cores=2,
)


def rounds(
    turns: int = 3, noise: float = 0.02, worker_counts: Sequence[int] = (2,), busy: float = 0.01
) -> list[Round]:
    """All cells, `turns` times. noise: relative standard deviation. busy: foreign CPU of each."""
    random = Random(7)
    return [
        _round(random, turn, kind, workers, endpoint, n, noise, busy)
        for turn in range(1, turns + 1)
        for kind in LAWS
        for workers in worker_counts
        for n in CONNECTIONS
        for endpoint in (QUESTIONS, NOTHING)
    ]


def _round(
    random: Random,
    turn: int,
    kind: str,
    workers: int,
    endpoint: str,
    n: int,
    noise: float,
    busy: float,
) -> Round:
    share = 0.9 if endpoint == QUESTIONS else 1.0
    mean_per_s = LAWS[kind].throughput_per_s(n) * workers * share
    throughput_per_s = mean_per_s * random.gauss(1, noise)
    return replace(
        ROUND,
        run=f"{kind}-{workers}-{endpoint}-{n}-turn{turn}",
        turn=turn,
        worker_type=kind,
        workers=workers,
        endpoint=endpoint,
        connections=n,
        requests=round(throughput_per_s),
        mean_s=n / throughput_per_s,
        p50_s=0.9 * n / throughput_per_s,
        p99_s=3 * n / throughput_per_s,
        foreign_cpu=busy,
    )


def written(results: Results, made: Sequence[Round]) -> None:
    """The table of rounds in a folder of results."""
    with results.table("rounds", Round) as table:
        for one in made:
            table.add(one)
