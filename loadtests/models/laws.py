"""The operational laws. They hold for any measurement, whatever the distributions.

They require only that as many customers leave as arrive during the measurement. Source:
P. J. Denning and J. P. Buzen, The operational analysis of queueing network models, ACM Computing
Surveys 10 (1978); E. D. Lazowska and others, Quantitative System Performance (1984), chapter 3.
Every argument must be 0 or more, every divisor positive: otherwise ValueError.
"""

from loadtests.models.domain import not_negative, positive


def utilisation(throughput_per_s: float, service_time_s: float) -> float:
    """Utilisation law: U = X·S."""
    return not_negative("throughput_per_s", throughput_per_s) * not_negative(
        "service_time_s", service_time_s
    )


def customers(throughput_per_s: float, response_time_s: float) -> float:
    """Little's law: N = X·R."""
    return not_negative("throughput_per_s", throughput_per_s) * not_negative(
        "response_time_s", response_time_s
    )


def throughput_per_s(customers: float, response_time_s: float) -> float:
    """Little's law, turned: X = N/R, in 1/s."""
    return not_negative("customers", customers) / positive("response_time_s", response_time_s)


def station_throughput_per_s(throughput_per_s: float, visit_ratio: float) -> float:
    """Forced flow law: a station that each customer visits V times has X·V visits per second."""
    return not_negative("throughput_per_s", throughput_per_s) * not_negative(
        "visit_ratio", visit_ratio
    )


def service_demand_s(visit_ratio: float, service_time_s: float) -> float:
    """D = V·S, the service in seconds that a customer needs at a station in all its visits."""
    return not_negative("visit_ratio", visit_ratio) * not_negative("service_time_s", service_time_s)
