"""One server, Poisson arrivals: M/M/1, M/G/1 in order of arrival, M/G/1 with processor sharing.

Domain: λ ≥ 0, E[S] > 0, σ² ≥ 0 and ρ = λ·E[S] < 1. Otherwise ValueError, and for ρ ≥ 1 its
subclass Unstable. Customers are served one by one in order of arrival (FCFS), or all at once, each
with an equal share of the server (PS). Source: L. Kleinrock, Queueing Systems, vol. 1 (1975),
sections 3.2 and 5.6; vol. 2 (1976), section 4.4.
"""

from loadtests.models.domain import not_negative, positive
from loadtests.models.steady_state import SteadyState, utilisation


def maximum_rate_per_s(service_time_s: float) -> float:
    """L = 1/E[S], the rate (1/s) that one server cannot exceed. The study's loads are shares of it.

    Raises ValueError unless `service_time_s` is positive.
    """
    return 1 / positive("service_time_s", service_time_s)


def variance_s2(service_time_s: float, cv: float) -> float:
    """σ² = (cv·E[S])², in s², of service times with this coefficient of variation."""
    return (not_negative("cv", cv) * positive("service_time_s", service_time_s)) ** 2


def mg1(
    arrival_rate_per_s: float, service_time_s: float, service_variance_s2: float
) -> SteadyState:
    """M/G/1, FCFS: E[W] = λ·E[S²]/(2(1−ρ)) with E[S²] = σ² + E[S]² (Pollaczek and Khinchine).

    The study prints (ρ + λμσ²)/(2(μ−λ)), which is the same with μ = 1/E[S].
    """
    rho = utilisation(arrival_rate_per_s, service_time_s)
    not_negative("service_variance_s2", service_variance_s2)
    second_moment_s2 = service_variance_s2 + service_time_s**2
    waiting_time_s = arrival_rate_per_s * second_moment_s2 / (2 * (1 - rho))
    return SteadyState(arrival_rate_per_s, service_time_s, 1, rho, waiting_time_s)


def mm1(arrival_rate_per_s: float, service_time_s: float) -> SteadyState:
    """M/M/1, FCFS with exponential service: E[W] = ρ·E[S]/(1−ρ), so E[R] = 1/(μ−λ)."""
    rho = utilisation(arrival_rate_per_s, service_time_s)
    waiting_time_s = rho * service_time_s / (1 - rho)
    return SteadyState(arrival_rate_per_s, service_time_s, 1, rho, waiting_time_s)


def mg1_ps(arrival_rate_per_s: float, service_time_s: float) -> SteadyState:
    """M/G/1 with processor sharing: E[R] = E[S]/(1−ρ), whatever the distribution of service.

    There is no queue: W is R − S, how much longer a customer stays than it would alone, and Nq the
    customers that this adds. The means are those of M/M/1 (insensitivity).
    """
    return mm1(arrival_rate_per_s, service_time_s)
