"""One queue in order of arrival, m equal servers, Poisson arrivals: M/M/m, approximately M/G/m.

Domain: λ ≥ 0, E[S] > 0, m ≥ 1 and ρ = λ·E[S]/m < 1. Otherwise ValueError, and for ρ ≥ 1 its
subclass Unstable. Source: A. K. Erlang (1917); L. Kleinrock, Queueing Systems, vol. 1 (1975),
section 3.5. The code never computes a^m or m!, so it works for thousands of servers. M/G/m has no
exact formula: A. O. Allen, Probability, Statistics, and Queueing Theory (1990), section 5.3, takes
the waiting time of M/M/m times (1 + cv²)/2 (Allen and Cunneen, for Poisson arrivals).
"""

import math
from dataclasses import dataclass

from loadtests.models.domain import not_negative
from loadtests.models.steady_state import SteadyState, utilisation


@dataclass(frozen=True, slots=True)
class MultiServer(SteadyState):
    """The steady state of M/M/m.

    p_empty: π0, the probability that the system is empty (0.0 if too small for a float).
    p_wait: C, Erlang's second formula, the probability that an arriving customer has to wait.
    """

    p_empty: float
    p_wait: float


def mmm(arrival_rate_per_s: float, service_time_s: float, servers: int) -> MultiServer:
    """M/M/m: E[W] = C·E[S]/(m(1−ρ)), with Erlang's C and a = λ·E[S] customers in service.

    The report on MariaDB prints this with (1−ρ)^{2m!} in place of (1−ρ)²·m! by mistake.
    """
    rho = utilisation(arrival_rate_per_s, service_time_s, servers)
    offered = arrival_rate_per_s * service_time_s
    blocked = _erlang_b(offered, servers)
    p_wait = blocked / (1 - rho * (1 - blocked))
    return MultiServer(
        arrival_rate_per_s,
        service_time_s,
        servers,
        rho,
        waiting_time_s=p_wait * service_time_s / (servers * (1 - rho)),
        p_empty=_p_empty(offered, servers, rho),
        p_wait=p_wait,
    )


def mgm_allen_cunneen(
    arrival_rate_per_s: float, service_time_s: float, cv: float, servers: int
) -> SteadyState:
    """M/G/m by Allen and Cunneen: E[W] of M/M/m times (1 + cv²)/2; exact for m = 1 and for cv = 1.

    cv: coefficient of variation of the service time. Raises ValueError, Unstable.
    """
    markov = mmm(arrival_rate_per_s, service_time_s, servers)
    waiting_time_s = markov.waiting_time_s * (1 + not_negative("cv", cv) ** 2) / 2
    return SteadyState(
        arrival_rate_per_s, service_time_s, servers, markov.utilisation, waiting_time_s
    )


def _erlang_b(offered: float, servers: int) -> float:
    """The share of customers lost without a queue: B(k) = aB(k−1)/(k + aB(k−1)), B(0) = 1."""
    blocked = 1.0
    for server in range(1, servers + 1):
        blocked = offered * blocked / (server + offered * blocked)
    return blocked


def _p_empty(offered: float, servers: int, rho: float) -> float:
    """1/π0 = Σ_{k<m} a^k/k! + a^m/(m!(1−ρ)), its terms divided by e^a: Poisson probabilities."""
    if offered == 0:
        return 1.0
    fewer = math.fsum(_poisson(offered, k) for k in range(servers))
    return math.exp(-offered) / (fewer + _poisson(offered, servers) / (1 - rho))


def _poisson(mean: float, k: int) -> float:
    return math.exp(k * math.log(mean) - mean - math.lgamma(k + 1))
