"""Equal servers with a queue each: a customer joins the one with the fewest, and stays there.

This is how workers of the service share connections: a worker with more of them, and of long
requests in hand, than another leaves the next to it. A customer can wait although another server
has become idle meanwhile, so the mean is between that of one common queue (`replay.multi_server`)
and that of separate arrivals at each server. Source: F. A. Haight, Two queues in parallel,
Biometrika 45 (1958).
"""

from collections import deque
from collections.abc import Sequence

from loadtests.models.domain import count, not_negative, recorded_times


class ShortestQueue:
    """The queues of `servers` servers, of which each serves first who came first.

    Raises ValueError for less than one server.
    """

    def __init__(self, servers: int) -> None:
        count("servers", servers)
        self._departures_s = [deque[float]() for _ in range(servers)]

    def departure_s(self, arrival_s: float, service_s: float) -> float:
        """When a customer leaves who arrives now, not before any other who has arrived."""
        joined = self._departures_s[0]
        for queue in self._departures_s:
            while queue and queue[0] <= arrival_s:
                queue.popleft()
            if len(queue) < len(joined):
                joined = queue
        begun_s = joined[-1] if joined else arrival_s
        joined.append(begun_s + service_s)
        return joined[-1]


def shortest_queue(
    arrivals_s: Sequence[float], services_s: Sequence[float], servers: int
) -> list[float]:
    """The response times (s) of these arrivals (s, in order) with these service times (s).

    Raises ValueError as the functions of `replay` do.
    """
    recorded_times(arrivals_s, services_s)
    not_negative("the least of services_s", min(services_s, default=0.0))
    queues = ShortestQueue(servers)
    both = zip(arrivals_s, services_s, strict=True)
    return [queues.departure_s(arrival_s, service_s) - arrival_s for arrival_s, service_s in both]
