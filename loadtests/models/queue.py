"""An open queue in front of m equal servers: its mean by formula, and its replay, from one object.

Customers are served in order of arrival, or share the servers. A formula and a replay belong
together if they are of the same queue: then the mean of many replays is the formula's.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from loadtests.models import replay
from loadtests.models.domain import count
from loadtests.models.multi_server import mgm_allen_cunneen, mmm
from loadtests.models.single_server import mg1, variance_s2
from loadtests.models.steady_state import SteadyState


@dataclass(frozen=True, slots=True)
class Queue:
    """`servers` servers. is_shared: all customers share them, none waits; else order of arrival."""

    servers: int = 1
    is_shared: bool = False

    def __post_init__(self) -> None:
        count("servers", self.servers)

    @property
    def name(self) -> str:
        """Its name in Kendall's notation."""
        return f"M/G/{self.servers}{'-PS' if self.is_shared else ''}"

    def steady(self, arrival_rate_per_s: float, service_time_s: float, cv: float) -> SteadyState:
        """Its means in the long run, with Poisson arrivals. cv: that of the service times.

        Exact, but for several servers in order of arrival (Allen and Cunneen). With sharing, the
        means are those of exponential times (insensitivity). Raises ValueError, Unstable.
        """
        if self.is_shared:
            return mmm(arrival_rate_per_s, service_time_s, self.servers)
        if self.servers == 1:
            return mg1(arrival_rate_per_s, service_time_s, variance_s2(service_time_s, cv))
        return mgm_allen_cunneen(arrival_rate_per_s, service_time_s, cv, self.servers)

    def replayed_s(self, arrivals_s: Sequence[float], services_s: Sequence[float]) -> list[float]:
        """The response times of these arrivals, see `replay`. Raises ValueError."""
        if self.is_shared:
            return replay.processor_sharing(arrivals_s, services_s, self.servers)
        return replay.multi_server(arrivals_s, services_s, self.servers)


ONE = Queue()
"""One server, in order of arrival."""
