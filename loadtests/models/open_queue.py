"""Computes the means of open queues with Poisson arrivals by formula, and replays them.

M/G/1 in order of arrival or with processor sharing, M/M/m, and approximately M/G/m. Domain: λ ≥ 0,
E[S] > 0, cv ≥ 0, m ≥ 1 and ρ = λ·E[S]/m < 1; for ρ ≥ 1 the ValueError is Unstable. Customers are
served one by one in order of arrival (FCFS), or all at once, each with an equal share of the
server (PS). Sources: L. Kleinrock, Queueing Systems, vol. 1 (1975), sections 3.2, 3.5 and 5.6,
vol. 2 (1976), section 4.4; A. K. Erlang (1917) for M/M/m, where the code never computes a^m or m!,
so that it works for thousands of servers. M/G/m has no exact formula: A. O. Allen, Probability,
Statistics, and Queueing Theory (1990), section 5.3, takes the waiting time of M/M/m times
(1 + cv²)/2 (Allen and Cunneen, for Poisson arrivals).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from loadtests.models import replay
from loadtests.models.domain import count, not_negative, positive

# λ·E[S] has rounding errors. This close to 1, 1 − ρ would consist of nothing else.
_ROUNDING = 1e-12


class Unstable(ValueError):
    """Says that more work arrives than the servers can do, so the queue grows without end."""

    def __init__(self, arrival_rate_per_s: float, service_time_s: float, servers: int) -> None:
        several = "one server" if servers == 1 else f"{servers} servers"
        super().__init__(
            f"no steady state: the arrival rate λ = {arrival_rate_per_s:.6g}/s and the mean "
            f"service time E[S] = {service_time_s:.6g} s give {several} a utilisation ρ of "
            f"{arrival_rate_per_s * service_time_s / servers:.6g}; it must be below 1, "
            f"that is λ below {servers / service_time_s:.6g}/s"
        )


@dataclass(frozen=True, slots=True)
class SteadyState:
    """Holds the means of an open queue in the long run.

    arrival_rate_per_s: λ. service_time_s: E[S]. servers: m. utilisation: ρ, of each server.
    waiting_time_s: E[W], without service. p_wait: the probability to have to wait (FCFS).
    """

    arrival_rate_per_s: float
    service_time_s: float
    servers: int
    utilisation: float
    waiting_time_s: float
    p_wait: float

    @property
    def response_time_s(self) -> float:
        """Return E[R] = E[W] + E[S], in seconds."""
        return self.waiting_time_s + self.service_time_s

    @property
    def customers(self) -> float:
        """Return E[N] = λ·E[R], the customers that wait or are in service (Little's law)."""
        return self.arrival_rate_per_s * self.response_time_s

    @property
    def customers_waiting(self) -> float:
        """Return E[Nq] = λ·E[W], the customers that wait (Little's law)."""
        return self.arrival_rate_per_s * self.waiting_time_s


def utilisation(arrival_rate_per_s: float, service_time_s: float, servers: int = 1) -> float:
    """Return ρ = λ·E[S]/m. Raises Unstable if it is not below 1 by more than rounding, 1e-12."""
    not_negative("arrival_rate_per_s", arrival_rate_per_s)
    positive("service_time_s", service_time_s)
    count("servers", servers)
    rho = arrival_rate_per_s * service_time_s / servers
    if rho >= 1 - _ROUNDING:
        raise Unstable(arrival_rate_per_s, service_time_s, servers)
    return rho


def maximum_rate_per_s(service_time_s: float) -> float:
    """Return L = 1/E[S], the rate (1/s) that one server cannot exceed."""
    return 1 / positive("service_time_s", service_time_s)


def mgm(
    arrival_rate_per_s: float, service_time_s: float, cv: float = 1.0, servers: int = 1
) -> SteadyState:
    """Solve M/G/m, FCFS: E[W] = C·E[S]/(m(1−ρ))·(1 + cv²)/2, exact if m or cv is 1.

    cv: of the service times. C: Erlang's C, for a = λ·E[S] customers in service. For m = 1 C is ρ,
    and this is λ·E[S²]/(2(1−ρ)) (Pollaczek and Khinchine), which the study prints as
    (ρ + λμσ²)/(2(μ−λ)) with μ = 1/E[S]; the report on MariaDB prints M/M/m with (1−ρ)^{2m!} in
    place of (1−ρ)²·m! by mistake.
    """
    rho = utilisation(arrival_rate_per_s, service_time_s, servers)
    offered = arrival_rate_per_s * service_time_s
    blocked = 1.0  # Erlang's B, the share lost without a queue: B(k) = aB(k−1)/(k + aB(k−1))
    for server in range(1, servers + 1):
        blocked = offered * blocked / (server + offered * blocked)
    p_wait = blocked / (1 - rho * (1 - blocked))
    exponential_s = p_wait * service_time_s / (servers * (1 - rho))
    waiting_time_s = exponential_s * (1 + not_negative("cv", cv) ** 2) / 2
    return SteadyState(arrival_rate_per_s, service_time_s, servers, rho, waiting_time_s, p_wait)


def shared(arrival_rate_per_s: float, service_time_s: float) -> SteadyState:
    """Solve M/G/1 with processor sharing: E[R] = E[S]/(1−ρ), whatever the law of service.

    There is no queue: W is R − S, how much longer a customer stays than it would alone, and Nq the
    customers that this adds. The means are those of M/M/1, where E[R] = 1/(μ−λ) (insensitivity).
    """
    return mgm(arrival_rate_per_s, service_time_s)


@dataclass(frozen=True, slots=True)
class Queue:
    """Serves with `servers` servers, in order of arrival."""

    servers: int = 1

    def __post_init__(self) -> None:
        count("servers", self.servers)

    @property
    def name(self) -> str:
        """Return its name in Kendall's notation."""
        return f"M/G/{self.servers}"

    def steady(self, arrival_rate_per_s: float, service_time_s: float, cv: float) -> SteadyState:
        """Return its means in the long run, with Poisson arrivals. cv: of the service times."""
        return mgm(arrival_rate_per_s, service_time_s, cv, self.servers)

    def replayed_s(self, arrivals_s: Sequence[float], services_s: Sequence[float]) -> list[float]:
        """Return the response times (s) of these arrivals, as `replay` computes them."""
        return replay.multi_server(arrivals_s, services_s, self.servers)


ONE = Queue()  # one server
