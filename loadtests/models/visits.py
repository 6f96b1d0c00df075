"""Computes visit ratios of a routing, and service demands.

A routing gives the probabilities with which customers go from each station to others. The traffic
equations V_k = Σ_j V_j·p_jk, with V = 1 for the reference station, give the visits to each station
per visit to the reference. Probabilities and visit ratios are exact. Source: E. D. Lazowska and
others, Quantitative System Performance (1984), chapter 3; the study's report, section "Bottleneck".
"""

from collections.abc import Mapping
from fractions import Fraction

from loadtests.models import linear
from loadtests.models.laws import service_demand_s

Probability = Fraction | int
Routing = Mapping[str, Mapping[str, Probability]]


def visit_ratios(routing: Routing, reference: str) -> dict[str, Fraction]:
    """Visits to each station per visit to `reference`, in the order of `routing`.

    Raises ValueError for a station that is not in the routing, a probability outside 0 to 1,
    probabilities from a station that do not add up to 1, and a station from which no path leads
    back to the reference (customers would collect there for ever).
    """
    _check(routing, reference)
    others = [name for name in routing if name != reference]
    matrix = [[Fraction(a == b) - routing[b].get(a, 0) for b in others] for a in others]
    found = linear.solve(matrix, [Fraction(routing[reference].get(a, 0)) for a in others])
    ratios = dict(zip(others, found, strict=True)) | {reference: Fraction(1)}
    return {name: ratios[name] for name in routing}


def _check(routing: Routing, reference: str) -> None:
    if reference not in routing:
        raise ValueError(f"the reference station {reference!r} is not in the routing")
    for station, row in routing.items():
        _check_row(routing, station, row)
    homing = _homing(routing, reference)
    if lost := [name for name in routing if name not in homing]:
        raise ValueError(f"no path leads from station {lost[0]!r} back to {reference!r}")


def _check_row(routing: Routing, station: str, row: Mapping[str, Probability]) -> None:
    for target, p in row.items():
        if target not in routing:
            raise ValueError(f"station {station!r} leads to {target!r}, which is not a station")
        if not 0 <= p <= 1:
            raise ValueError(f"the probability from {station!r} to {target!r} is {p}")
    total = sum(row.values())
    if total != 1:
        raise ValueError(f"the probabilities from station {station!r} add up to {total}, not to 1")


def _homing(routing: Routing, reference: str) -> set[str]:
    """The stations from which a path leads to `reference`."""
    homing, added = {reference}, True
    while added:
        more = {a for a, row in routing.items() if any(row[b] > 0 and b in homing for b in row)}
        added = not more <= homing
        homing |= more
    return homing


def demands_s(
    visit_ratios: Mapping[str, Probability], service_times_s: Mapping[str, float]
) -> dict[str, float]:
    """D = V·S of each station that has a service time, in seconds.

    Stations without one (such as the reference station of users who think) are left out. Raises
    ValueError for a service time of a station that has no visit ratio.
    """
    if unknown := [name for name in service_times_s if name not in visit_ratios]:
        raise ValueError(f"station {unknown[0]!r} has a service time and no visit ratio")
    return {
        name: service_demand_s(float(visits), service_times_s[name])
        for name, visits in visit_ratios.items()
        if name in service_times_s
    }
