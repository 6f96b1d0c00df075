"""Compares the study's numbers with those of a calculation, as rows for people."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from frontend.filters import NOTHING
from frontend.lab import closed_network_form, open_queue_form
from frontend.lab.quantities import change, rate, significant, time

SHOWN_CUSTOMERS = (1, 2, 5, 10, 50)  # and the largest number
NO_STEADY_STATE = "grows without end"


@dataclass(frozen=True, slots=True)
class Row:
    """A row: what is compared, its two values, and how they differ, in words."""

    name: str
    before: str
    after: str
    change: str


def of_queue(found: open_queue_form.Answer) -> list[Row]:
    """Rows about the open queue in order of arrival, at the same arrival rate."""
    before = found.before
    if before is None:
        return []
    one, other = before.queue, found.queue
    rows = [
        _row("Mean service time", one.service_time_s, other.service_time_s, time),
        _row("Highest throughput, L", one.capacity_per_s, other.capacity_per_s, rate),
        _row("Utilisation ρ", one.utilisation, other.utilisation, significant),
    ]
    slow, fast = _response(before), _response(found)
    said = NOTHING if slow is None or fast is None else change(slow, fast)
    return [*rows, Row("Mean response time", _time_or_none(slow), _time_or_none(fast), said)]


def _response(found: open_queue_form.Answer) -> float | None:
    return found.states[0][1].response_time_s if found.states else None


def _time_or_none(seconds: float | None) -> str:
    return NO_STEADY_STATE if seconds is None else time(seconds)


def of_network(found: closed_network_form.Answer) -> list[Row]:
    """Rows about the closed network, at some numbers of customers."""
    before = found.before
    if before is None:
        return []
    names = (before.bottleneck.name, found.bottleneck.name)
    said = "the same" if names[0] == names[1] else "different"
    return [
        _row("Service time per request, D", before.demand_s, found.demand_s, time),
        Row("Bottleneck", *names, said),
        _row("Highest throughput", before.most_throughput_per_s, found.most_throughput_per_s, rate),
        _row("N_opt", before.optimal_population, found.optimal_population, significant),
        *_at_customers(before, found),
    ]


def _at_customers(
    before: closed_network_form.Answer, found: closed_network_form.Answer
) -> Iterator[Row]:
    most = found.network.customers
    for n in [*(n for n in SHOWN_CUSTOMERS if n < most), most]:
        one, other = before.solutions[n - 1], found.solutions[n - 1]
        yield _row(f"X, N = {n}", one.throughput_per_s, other.throughput_per_s, rate)
        yield _row(f"R, N = {n}", one.response_time_s, other.response_time_s, time)


def _row(name: str, before: float, after: float, shown: Callable[[float], str]) -> Row:
    return Row(name, shown(before), shown(after), change(before, after))
