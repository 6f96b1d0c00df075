"""Writes and reads raw rows, one for every request of a run, and chooses those that count.

All results come from them. `requests.csv` is a table (`loadtests.tables`) of them, written as
answers come. Times are seconds from the run's start on CLOCK_MONOTONIC, which all processes of a
machine share.

Of a closed run a window counts, in which all customers are at work. They finish at different times;
then fewer than N are in the system, so throughput over the whole run would be too low.
"""

import csv
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from loadtests.grouping import grouped
from loadtests.tables import Line, TableWriter, lines_of, whole_lines

CUSTOMERS_AT_MOST = 10_000
NO_ANSWER = 0


@dataclass(frozen=True, slots=True)
class Row(Line):
    """Holds a request. status: the HTTP status; 0 if no whole answer had come by `done_s`.

    index: its position in the schedule of an open run, or `closed_index`. intended_s: when it
    should be sent: the scheduled arrival, or the end of the think time. sent_s: just before
    connecting. done_s: when its last byte came. server_start_s, service_s, worker: as the server
    reported them (`loadtests.servers.timing`), None and empty if it did not.
    """

    run: str
    index: int
    kind: str
    intended_s: float
    sent_s: float
    server_start_s: float | None
    done_s: float
    service_s: float | None
    status: int
    worker: str

    @property
    def open_response_s(self) -> float:
        """Return the response time in an open workload: from the intended arrival."""
        return self.done_s - self.intended_s

    @property
    def closed_response_s(self) -> float:
        """Return the response time in a closed workload: from sending."""
        return self.done_s - self.sent_s

    @property
    def lag_s(self) -> float:
        """Return how late, in s, the generator sent the request."""
        return self.sent_s - self.intended_s

    @property
    def succeeded(self) -> bool:
        """Return whether the answer is a good one: its status is from 200 to 399."""
        return 200 <= self.status < 400

    def since(self, start_s: float) -> "Row":
        """Return the row with times from `start_s` on."""
        began_s = self.server_start_s
        return replace(
            self,
            intended_s=self.intended_s - start_s,
            sent_s=self.sent_s - start_s,
            server_start_s=None if began_s is None else began_s - start_s,
            done_s=self.done_s - start_s,
        )


COLUMNS = Row.columns()


def closed_index(customer: int, number: int) -> int:
    """Return the index of the `number`-th request of a customer (both from 0) in a closed run."""
    if not 0 <= customer < CUSTOMERS_AT_MOST:
        raise ValueError(f"customer is {customer}; there are at most {CUSTOMERS_AT_MOST}")
    return number * CUSTOMERS_AT_MOST + customer


def customer_of(row: Row) -> int:
    return row.index % CUSTOMERS_AT_MOST


def number_of(row: Row) -> int:
    """Return the position, from 0, of a request of a closed run among those of its customer."""
    return row.index // CUSTOMERS_AT_MOST


def row_file(path: Path) -> TableWriter[Row]:
    """Open a file to append rows to, with 6 decimals of seconds. Raises OSError, TableError."""
    return TableWriter(path, Row, decimals=6)


def read_rows(path: Path, run: str | None = None, offset: int = 0) -> list[Row]:
    """Return the rows of a file, in the order of writing; a torn last line is left out.

    run: only rows of this run. offset: bytes to skip. Raises ValueError naming the file and row.
    """
    table = csv.reader(whole_lines(path, offset))
    wanted = (
        cells for cells in table if cells != list(COLUMNS) and (run is None or cells[:1] == [run])
    )
    return list(lines_of(Row, path, wanted, COLUMNS))


@dataclass(frozen=True, slots=True)
class Window:
    """Holds the measured part of a closed run. rows: those with a good answer in it."""

    customers: int
    start_s: float
    end_s: float
    rows: tuple[Row, ...]

    @property
    def throughput_per_s(self) -> float:
        """Return X: answers per second."""
        return len(self.rows) / (self.end_s - self.start_s)

    @property
    def mean_response_s(self) -> float:
        """Return R, in s from sending to the last byte. Raises ValueError without rows."""
        if not self.rows:
            raise ValueError("no request was answered within the window")
        return sum(row.closed_response_s for row in self.rows) / len(self.rows)


def closed_window(rows: Iterable[Row], warm_up: int = 0) -> Window:
    """Return the window of a closed run. warm_up: first requests per customer that do not count.

    It starts when the last customer has done its warm-up (without one, when the last has begun),
    and ends at the last answer of the first customer to finish. Raises ValueError if it is empty.
    """
    by_customer, ready_s = grouped(rows, customer_of), []
    if not by_customer:
        raise ValueError("a run without rows has no window")
    for customer, own in by_customer.items():
        ready = [row.done_s for row in own if number_of(row) == warm_up - 1]
        if warm_up and not ready:
            raise ValueError(f"customer {customer} did not do {warm_up} requests to warm up")
        ready_s.append(ready[0] if warm_up else min(row.sent_s for row in own))
    start_s = max(ready_s)
    end_s = min(max(row.done_s for row in own) for own in by_customer.values())
    if end_s <= start_s:
        times = f"at {end_s:.3f} s, before the last was ready at {start_s:.3f} s"
        raise ValueError(f"the first customer finished {times}; let each ask more often")
    chosen = (row for own in by_customer.values() for row in own if start_s < row.done_s <= end_s)
    counted = sorted((row for row in chosen if row.succeeded), key=lambda row: row.done_s)
    return Window(len(by_customer), start_s, end_s, tuple(counted))
