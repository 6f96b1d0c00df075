"""Describes the stations of closed networks, and their demands.

Sources: P. J. Denning and J. P. Buzen, The operational analysis of queueing network models, ACM
Computing Surveys 10 (1978); E. D. Lazowska and others, Quantitative System Performance (1984),
chapter 3; the study's report, "Bottleneck".
"""

from collections.abc import Sequence
from dataclasses import dataclass

from loadtests.models.domain import count, not_negative


def service_demand_s(visit_ratio: float, service_time_s: float) -> float:
    """Return D = V·S, the service in s that a customer needs at a station in all its visits."""
    not_negative("visit_ratio", visit_ratio)
    return visit_ratio * not_negative("service_time_s", service_time_s)


DELAY = None  # the number of servers of a station where customers never wait


@dataclass(frozen=True, slots=True)
class Station:
    """Describes a station by the service that a customer needs there in one round.

    demand_s: D = V·S in seconds, 0 or more. servers: m equal servers of one queue (each visit is
    served by one of them, so S is the time of one), or DELAY for a station without a queue.
    """

    name: str
    demand_s: float
    servers: int | None = 1

    def __post_init__(self) -> None:
        not_negative(f"demand_s of station {self.name!r}", self.demand_s)
        if self.servers is not DELAY:
            count(f"servers of station {self.name!r}", self.servers)

    @property
    def is_delay(self) -> bool:
        """Return whether customers never wait here."""
        return self.servers is DELAY

    @property
    def is_multi(self) -> bool:
        return self.servers is not None and self.servers > 1

    @property
    def least_gap_s(self) -> float:
        """Return D/m, the time in s between customers when all servers are busy; 0 for a delay."""
        return 0.0 if self.servers is None else self.demand_s / self.servers


def total_demand_s(stations: Sequence[Station]) -> float:
    """Return the service in s that a customer needs at all stations in one round."""
    return sum(station.demand_s for station in stations)


def bottleneck(stations: Sequence[Station]) -> Station:
    """Return the station that limits the throughput: the first with the largest D/m > 0."""
    limiting = max(stations, key=lambda station: station.least_gap_s, default=None)
    if limiting is None or limiting.least_gap_s == 0:
        raise ValueError("no station has a queue and a demand, so nothing limits the throughput")
    return limiting
