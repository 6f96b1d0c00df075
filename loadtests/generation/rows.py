"""Raw rows: one for every request of a run. Results are computed from these alone.

`requests.csv` (RFC 4180, a header line) has the columns of `Row`. Times are seconds from the run's
start on CLOCK_MONOTONIC, which all processes of a machine share. Rows are written as answers come,
a line at a time, so they survive whatever ends a run. A line that was cut off by a crash is not a
row, and the next run in the same file removes it.

index: position in the schedule of an open run. In a closed run customer c (from 0) numbers its
n-th request n · CUSTOMERS_AT_MOST + c, see `closed_index`.
"""

import csv
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

CUSTOMERS_AT_MOST = 10_000
NO_ANSWER = 0


@dataclass(frozen=True, slots=True)
class Row:
    """One request. status: the HTTP status; 0 if no whole answer had come by `done_s`.

    intended_s: when it should be sent: the scheduled arrival, or the end of the think time. sent_s:
    just before connecting. done_s: when its last byte came. server_start_s, service_s, worker: as
    the server reported them (`loadtests.servers.timing`), None and empty if it did not.
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
        """The response time in an open workload: from the intended arrival."""
        return self.done_s - self.intended_s

    @property
    def closed_response_s(self) -> float:
        """The response time in a closed workload: from sending."""
        return self.done_s - self.sent_s

    @property
    def lag_s(self) -> float:
        """How late the generator sent the request."""
        return self.sent_s - self.intended_s

    @property
    def succeeded(self) -> bool:
        """Whether the answer is a good one: its status is from 200 to 399."""
        return 200 <= self.status < 400

    def values(self) -> list[str]:
        """The fields as text, as in the file; seconds with 6 decimals."""
        return [_text(getattr(self, name)) for name in COLUMNS]


COLUMNS = tuple(Row.__slots__)
_HEADER = ",".join(COLUMNS) + "\r\n"


def closed_index(customer: int, number: int) -> int:
    """The index of the `number`-th request (from 0) of `customer` (from 0) in a closed run."""
    if not 0 <= customer < CUSTOMERS_AT_MOST:
        raise ValueError(f"customer is {customer}; there are at most {CUSTOMERS_AT_MOST}")
    return number * CUSTOMERS_AT_MOST + customer


def customer_of(row: Row) -> int:
    """The customer that sent a request of a closed run."""
    return row.index % CUSTOMERS_AT_MOST


def number_of(row: Row) -> int:
    """The position of a request among those of its customer in a closed run, from 0."""
    return row.index // CUSTOMERS_AT_MOST


def _text(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.6f}" if isinstance(value, float) else str(value)


class RowFile:
    """Appends rows to a file. Rows have been handed to the system when `write` returns."""

    def __init__(self, path: Path) -> None:
        """Raises OSError, and ValueError if the file is not one of raw rows."""
        _cut_torn_tail(path)
        self._file: TextIO = path.open("a", encoding="utf-8", newline="", buffering=1)
        self._writer = csv.writer(self._file)
        if self._file.tell() == 0:
            self._file.write(_HEADER)

    def write(self, rows: Iterable[Row]) -> None:
        """Append `rows`."""
        for row in rows:
            self._writer.writerow(row.values())

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _cut_torn_tail(path: Path) -> None:
    """Remove an incomplete last line. Raises ValueError if the file is not one of raw rows."""
    content = path.read_bytes() if path.exists() else b""
    header = _HEADER.encode()
    if not content.startswith(header) and not header.startswith(content):
        raise ValueError(f"{path} does not begin with the header line of raw rows")
    whole = content.rfind(b"\n") + 1
    if whole < len(content):
        os.truncate(path, whole)


def read_rows(path: Path, run: str | None = None, offset: int = 0) -> list[Row]:
    """The rows of a file, in the order in which they were written; a torn last line is left out.

    run: only rows of this run. offset: bytes to skip. Raises ValueError naming the file and row.
    """
    with path.open("rb") as file:
        file.seek(offset)
        content = file.read()
    lines = content[: content.rfind(b"\n") + 1].decode("utf-8").splitlines()
    found = []
    for values in csv.reader(lines):
        if values == list(COLUMNS):
            continue
        if run is None or values[0] == run:
            found.append(_row(path, values))
    return found


def _row(path: Path, values: list[str]) -> Row:
    try:
        run, index, kind, intended, sent, start, done, service, status, worker = values
        return Row(
            run,
            int(index),
            kind,
            float(intended),
            float(sent),
            float(start) if start else None,
            float(done),
            float(service) if service else None,
            int(status),
            worker,
        )
    except ValueError as problem:
        raise ValueError(f"{path}: {values} is not a raw row: {problem}") from problem


def in_flight(rows: Iterable[Row], at_s: float) -> int:
    """How many requests were sent and not yet answered at `at_s`."""
    return sum(row.sent_s <= at_s < row.done_s for row in rows)
