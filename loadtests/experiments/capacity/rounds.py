"""Rounds, in which connections ask a service for a second or two: their rows and their rules.

A row of the table `rounds` has only measurements. The verdicts of the rules are in the table
`runs`; the analysis computes them again from the rows.
"""

from dataclasses import dataclass

from loadtests.generation.rules import RULES as ALL_RULES
from loadtests.generation.rules import Facts, Verdict, judge
from loadtests.lab.results import Line
from loadtests.servers.service import WORKER_TYPES

QUESTIONS, NOTHING = "questions", "nothing"
ENDPOINTS = (QUESTIONS, NOTHING)

RULES = tuple(
    rule for rule in ALL_RULES if rule.name in {"failed_requests", "foreign_cpu", "client_cpu"}
)


@dataclass(frozen=True, slots=True)
class Configuration:
    """A number of workers of one type."""

    worker_type: str
    workers: int

    def __str__(self) -> str:
        return f"{self.workers} {self.worker_type} worker{'s' if self.workers > 1 else ''}"

    @property
    def place(self) -> tuple[int, int]:
        """Its place among all, in the order of types."""
        return WORKER_TYPES.index(self.worker_type), self.workers


@dataclass(frozen=True, slots=True)
class Round(Line):
    """The measurements of one round.

    run: its id. turn: all configurations are measured once in a turn. endpoint: one of ENDPOINTS.
    mean_s, p50_s, p99_s: latency of the requests; None if none was answered. server_cpu_s,
    generator_cpu_s: processor seconds. foreign_cpu: cores that other programs kept busy. cores:
    number of cores that this process may use.
    """

    run: str
    turn: int
    worker_type: str
    workers: int
    endpoint: str
    connections: int
    duration_s: float
    requests: int
    failed: int
    mean_s: float | None
    p50_s: float | None
    p99_s: float | None
    server_cpu_s: float
    generator_cpu_s: float
    foreign_cpu: float
    cores: int

    @property
    def configuration(self) -> Configuration:
        """The workers that were asked."""
        return Configuration(self.worker_type, self.workers)

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
        return (
            None if self.mean_s is None else self.throughput_per_s * self.mean_s / self.connections
        )


def judged(one: Round) -> Verdict:
    """The verdict on a round by those of the lab's rules that a round can break."""
    facts = Facts(
        requests=one.requests,
        failed=one.failed,
        foreign_cpu=one.foreign_cpu,
        client_cpu=one.generator_cores,
    )
    return judge(facts, RULES)
