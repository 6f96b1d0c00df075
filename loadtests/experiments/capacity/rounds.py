"""Rounds, in which connections ask a service for a second or two: their rows and their rules.

A row of the table `rounds` has only measurements. The verdicts of the rules are in the table
`runs`; the analysis computes them again from the rows.
"""

from collections.abc import Mapping
from dataclasses import astuple, dataclass, fields
from typing import Any

from loadtests.generation.rules import RULES as ALL_RULES
from loadtests.generation.rules import Facts, Verdict, judge

QUESTIONS, NOTHING = "questions", "nothing"
ENDPOINTS = (QUESTIONS, NOTHING)
WORKER_TYPES = ("asgi", "gthread", "sync")  # the service's default first

RULES = tuple(
    rule for rule in ALL_RULES if rule.name in {"failed_requests", "foreign_cpu", "client_cpu"}
)


@dataclass(frozen=True, slots=True)
class Round:
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
    def customers_seen(self) -> float | None:
        """X·R, by Little's law the mean number of customers in the system."""
        return None if self.mean_s is None else self.throughput_per_s * self.mean_s

    def cells(self) -> dict[str, object]:
        """The round as a row of the table: column -> value."""
        return dict(zip(COLUMNS, astuple(self), strict=True))


COLUMNS = tuple(field.name for field in fields(Round))
_TEXTS = ("run", "worker_type", "endpoint")
_COUNTS = ("turn", "workers", "connections", "requests", "failed", "cores")


def from_row(row: Mapping[str, str]) -> Round:
    """The round of a row. Raises KeyError or ValueError if the row is not one of a round."""
    return Round(**{name: _value(name, row[name]) for name in COLUMNS})


def _value(name: str, text: str) -> Any:
    if name in _TEXTS:
        return text
    if name in _COUNTS:
        return int(text)
    return float(text) if text else None


def judged(one: Round) -> Verdict:
    """The verdict on a round by those of the lab's rules that a round can break."""
    facts = Facts(
        requests=one.requests,
        failed=one.failed,
        foreign_cpu=one.foreign_cpu,
        client_cpu=one.generator_cores,
    )
    return judge(facts, RULES)
