"""The results of a model of an open queue, and the exception `Unstable` if there are none."""

from dataclasses import dataclass

from loadtests.models.domain import count, not_negative, positive

# λ·E[S] has rounding errors. This close to 1, 1 − ρ would consist of nothing else.
_ROUNDING = 1e-12


class Unstable(ValueError):
    """More work arrives than the servers can do, so the queue grows without end."""

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
    """The means of an open queue in the long run.

    arrival_rate_per_s: λ. service_time_s: E[S]. servers: m. utilisation: ρ, of each server.
    waiting_time_s: E[W], without service. response_time_s: E[R] = E[W] + E[S].
    customers: E[N] = λ·E[R]. customers_waiting: E[Nq] = λ·E[W]. Both by Little's law.
    """

    arrival_rate_per_s: float
    service_time_s: float
    servers: int
    utilisation: float
    waiting_time_s: float

    @property
    def response_time_s(self) -> float:
        """E[R] in seconds."""
        return self.waiting_time_s + self.service_time_s

    @property
    def customers(self) -> float:
        """E[N], the customers that wait or are in service."""
        return self.arrival_rate_per_s * self.response_time_s

    @property
    def customers_waiting(self) -> float:
        """E[Nq], the customers that wait."""
        return self.arrival_rate_per_s * self.waiting_time_s


def utilisation(arrival_rate_per_s: float, service_time_s: float, servers: int = 1) -> float:
    """ρ = λ·E[S]/m of a stable queue.

    Raises ValueError for a rate below 0, a service time that is not positive or less than one
    server, and Unstable for ρ ≥ 1 (also if ρ falls short of 1 by no more than rounding, 1e-12).
    """
    not_negative("arrival_rate_per_s", arrival_rate_per_s)
    positive("service_time_s", service_time_s)
    count("servers", servers)
    rho = arrival_rate_per_s * service_time_s / servers
    if rho >= 1 - _ROUNDING:
        raise Unstable(arrival_rate_per_s, service_time_s, servers)
    return rho
