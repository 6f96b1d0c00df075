"""Sends recorded arrivals and service times once more through a queue that starts empty.

Chance is the same for a real server and a modelled queue with the same arrivals and service times,
so their results differ by the server alone. Every function takes arrival times (s, in order; equal
ones are served in the order given) and service times (s), one for each arrival, and returns the
response times (s) in the same order. The arrivals of closed customers follow from their think
times.
"""

from collections.abc import Callable, Sequence
from heapq import heappop, heappush, heapreplace
from itertools import chain
from math import inf

Discipline = Callable[[Sequence[float], Sequence[float]], list[float]]  # such as `fcfs`


def fcfs(arrivals_s: Sequence[float], services_s: Sequence[float]) -> list[float]:
    """Serve by one server, first come, first served (D. V. Lindley's recursion, 1952)."""
    responses_s, free_s = [], -inf
    for arrival_s, service_s in zip(arrivals_s, services_s, strict=True):
        begun_s = arrival_s if arrival_s > free_s else free_s  # noqa: FURB136  max() is slow
        free_s = begun_s + service_s
        responses_s.append(free_s - arrival_s)
    return responses_s


def multi_server(
    arrivals_s: Sequence[float], services_s: Sequence[float], servers: int
) -> list[float]:
    """Serve by several servers from one queue, first come, first served.

    The first free server takes the next customer; a heap has the times at which servers become
    free. Source: J. Kiefer and J. Wolfowitz (1955).
    """
    responses_s, free_s = [], [-inf] * servers
    for arrival_s, service_s in zip(arrivals_s, services_s, strict=True):
        departure_s = max(arrival_s, free_s[0]) + service_s
        heapreplace(free_s, departure_s)
        responses_s.append(departure_s - arrival_s)
    return responses_s


def closed(
    begun_s: Sequence[float],
    thinks_s: Sequence[Sequence[float]],
    services_s: Sequence[float],
    servers: int,
) -> list[float]:
    """Serve customers who ask again after think times, by several servers in order of arrival.

    begun_s, thinks_s: of each customer, the time of the first arrival, and the think time after
    each answer but the last. services_s: in the order of arrival, as the response times.
    """
    ready_s = sorted((time_s, customer) for customer, time_s in enumerate(begun_s))
    of_customers, responses_s, free_s = [*map(iter, thinks_s)], [], [-inf] * servers
    for service_s in services_s:
        arrival_s, customer = ready_s[0]
        departure_s = max(arrival_s, free_s[0]) + service_s
        heapreplace(free_s, departure_s)
        heapreplace(ready_s, (departure_s + next(of_customers[customer], inf), customer))
        responses_s.append(departure_s - arrival_s)
    return responses_s


def processor_sharing(
    arrivals_s: Sequence[float], services_s: Sequence[float], servers: int = 1
) -> list[float]:
    """Serve all customers at once, who share `servers` processors equally.

    With n customers each is served at the rate min(1, m/n). Virtual time is the service that a
    customer present since the start would have received: it grows at that rate, and a customer
    leaves when it has grown by the customer's own service time. So departures are kept in a heap of
    virtual times.
    """
    responses_s = [0.0] * len(arrivals_s)
    leave: list[tuple[float, int]] = []  # virtual time of departure, customer
    now_s = virtual_s = 0.0
    customers = zip(arrivals_s, services_s, strict=True)
    for customer, (arrival_s, service_s) in enumerate(chain(customers, [(inf, 0.0)])):
        while leave:
            rate = min(1.0, servers / len(leave))
            leaves_s = now_s + max(0.0, leave[0][0] - virtual_s) / rate
            if leaves_s > arrival_s:
                break
            now_s, (virtual_s, departed) = leaves_s, heappop(leave)
            responses_s[departed] = now_s - arrivals_s[departed]
        virtual_s = virtual_s + (arrival_s - now_s) * rate if leave else 0.0
        now_s = arrival_s
        heappush(leave, (virtual_s + service_s, customer))
    return responses_s
