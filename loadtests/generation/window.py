"""The part of a closed run that counts: all customers are at work. Pure.

Customers finish at different times. When some have finished, fewer than N are in the system, so
throughput over the whole run would be too low. The window therefore ends with the first customer.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from loadtests.generation.rows import Row, customer_of, number_of
from loadtests.grouping import grouped


@dataclass(frozen=True, slots=True)
class Window:
    """The measured part of a closed run. rows: those with a good answer in it."""

    customers: int
    start_s: float
    end_s: float
    rows: tuple[Row, ...]

    @property
    def throughput_per_s(self) -> float:
        """X: answers per second."""
        return len(self.rows) / (self.end_s - self.start_s)

    @property
    def mean_response_s(self) -> float:
        """R: from sending to the last byte. Raises ValueError for a window without rows."""
        if not self.rows:
            raise ValueError("no request was answered within the window")
        return sum(row.closed_response_s for row in self.rows) / len(self.rows)


def closed_window(rows: Iterable[Row], warm_up: int = 0) -> Window:
    """The window of a closed run. warm_up: number of first requests per customer that do not count.

    It starts when the last customer has done its warm-up (without one, when the last has begun),
    and ends at the last answer of the first customer to finish. Raises ValueError if it is empty.
    """
    by_customer = _by_customer(rows)
    ready_s = []
    for customer, own in by_customer.items():
        ready = [row.done_s for row in own if number_of(row) == warm_up - 1]
        if warm_up and not ready:
            raise ValueError(f"customer {customer} did not do {warm_up} requests to warm up")
        ready_s.append(ready[0] if warm_up else min(row.sent_s for row in own))
    start_s = max(ready_s)
    end_s = min(max(row.done_s for row in own) for own in by_customer.values())
    if end_s <= start_s:
        told = f"at {end_s:.3f} s, before the last was ready at {start_s:.3f} s"
        raise ValueError(f"the first customer finished {told}; let each ask more often")
    return _window(by_customer, start_s, end_s)


def busy_window(rows: Iterable[Row], until_s: float) -> Window:
    """The part of a run in which all threads post: from the start of the last one to `until_s`."""
    by_thread = _by_customer(rows)
    start_s = max(min(row.sent_s for row in own) for own in by_thread.values())
    if start_s >= until_s:
        raise ValueError(f"it ended at {until_s:.3f} s, but all threads began at {start_s:.3f} s")
    return _window(by_thread, start_s, until_s)


def _by_customer(rows: Iterable[Row]) -> dict[int, list[Row]]:
    if found := grouped(rows, customer_of):
        return found
    raise ValueError("a run without rows has no window")


def _window(by_customer: dict[int, list[Row]], start_s: float, end_s: float) -> Window:
    chosen = (row for own in by_customer.values() for row in own if start_s < row.done_s <= end_s)
    counted = sorted((row for row in chosen if row.succeeded), key=lambda row: row.done_s)
    return Window(len(by_customer), start_s, end_s, tuple(counted))
