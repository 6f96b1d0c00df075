"""The stations of a closed network, for `bounds` and `mva`."""

from collections.abc import Sequence
from dataclasses import dataclass

from loadtests.models.domain import count, not_negative

DELAY = None
"""The number of servers of a station where customers never wait."""


@dataclass(frozen=True, slots=True)
class Station:
    """A station, described by the service that a customer needs there in one round.

    demand_s: D = V·S in seconds, 0 or more. servers: 1 for a queue with one server, m for one queue
    with m equal servers (each visit is served by one of them, so S is the time of one server),
    DELAY for a station without a queue. Raises ValueError for other values.
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
        """Whether customers never wait here."""
        return self.servers is DELAY

    @property
    def least_gap_s(self) -> float:
        """D/m, the time in seconds between customers when all servers are busy; 0 for a delay."""
        return 0.0 if self.servers is None else self.demand_s / self.servers


def total_demand_s(stations: Sequence[Station]) -> float:
    """The service in seconds that a customer needs at all stations in one round."""
    return sum(station.demand_s for station in stations)


def bottleneck(stations: Sequence[Station]) -> Station:
    """The station that limits the throughput: the first one with the largest D/m.

    Raises ValueError if no station has both a queue and a demand, because then none limits it.
    """
    limiting = max(stations, key=lambda station: station.least_gap_s, default=None)
    if limiting is None or limiting.least_gap_s == 0:
        raise ValueError("no station has a queue and a demand, so nothing limits the throughput")
    return limiting
