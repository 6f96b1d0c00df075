"""Compares the study's numbers with those of a calculation, as rows for people."""

from collections.abc import Callable
from typing import NamedTuple

from frontend.filters import NOTHING
from frontend.lab import closed_network_form, open_queue_form
from frontend.lab.quantities import change, rate, significant, time

SHOWN_CUSTOMERS = (1, 2, 5, 10, 50)  # and the largest number
NO_STEADY_STATE = "grows without end"


class Row(NamedTuple):
    """A row: what is compared, its two values, and how they differ, in words."""

    name: str
    before: str
    after: str
    change: str


def compare_queues(answer: open_queue_form.Answer) -> list[Row]:
    """Return rows about the open queue in order of arrival, at the same arrival rate."""
    if answer.before is None:
        return []
    before, after = answer.before.queue, answer.queue
    times = [
        states[0][1].response_time_s if states else None
        for states in (answer.before.states, answer.states)
    ]
    slow, fast = times
    difference = NOTHING if slow is None or fast is None else change(slow, fast)
    return [
        _row("Mean service time", before.service_time_s, after.service_time_s, time),
        _row("Highest throughput, L", before.capacity_per_s, after.capacity_per_s, rate),
        _row("Utilisation ρ", before.utilisation, after.utilisation, significant),
        Row("Mean response time", _time_or_none(slow), _time_or_none(fast), difference),
    ]


def compare_networks(answer: closed_network_form.Answer) -> list[Row]:
    """Return rows about the closed network, at some numbers of customers."""
    if answer.before is None:
        return []
    before, after = answer.before.curve, answer.curve
    names = (before.bottleneck.name, after.bottleneck.name)
    capacities = (before.most_throughput_per_s, after.most_throughput_per_s)
    rows = [
        _row("Service time per request, D", before.demand_s, after.demand_s, time),
        Row("Bottleneck", *names, "the same" if names[0] == names[1] else "different"),
        _row("Highest throughput", *capacities, rate),
        _row("N_opt", before.optimal_population, after.optimal_population, significant),
    ]
    most = answer.network.customers
    for n in [*(n for n in SHOWN_CUSTOMERS if n < most), most]:
        old, new = before.solutions[n - 1], after.solutions[n - 1]
        rows.append(_row(f"X, N = {n}", old.throughput_per_s, new.throughput_per_s, rate))
        rows.append(_row(f"R, N = {n}", old.response_time_s, new.response_time_s, time))
    return rows


def _time_or_none(seconds: float | None) -> str:
    return NO_STEADY_STATE if seconds is None else time(seconds)


def _row(name: str, before: float, after: float, shown: Callable[[float], str]) -> Row:
    return Row(name, shown(before), shown(after), change(before, after))
