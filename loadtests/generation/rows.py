"""Raw rows: one for every request of a run, the only record that results are computed from.

`requests.csv` (RFC 4180, a header line) has the columns of `Row`. Times are seconds from the run's
start on CLOCK_MONOTONIC, which all processes of a machine share. Rows are written as answers come,
a line at a time, so that whatever ends a run keeps what was measured; a line that was cut off by a
crash is no row, and the next run in the same file removes it.

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
    """One request. status: that of HTTP; 0 when no whole answer came until `done_s`.

    intended_s: when it was to be sent: the scheduled arrival, or the end of the think time. sent_s:
    before connecting. done_s: its last byte was there. server_start_s, service_s, worker: what the
    server told of itself (`loadtests.servers.timing`), None and empty if it told nothing.
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
        """How late the generator sent it."""
        return self.sent_s - self.intended_s

    @property
    def succeeded(self) -> bool:
        """Whether it was answered as it should be."""
        return 200 <= self.status < 400

    def values(self) -> list[str]:
        """The fields as in the file; seconds with microseconds."""
        return [_text(getattr(self, name)) for name in COLUMNS]


COLUMNS = tuple(Row.__slots__)
_HEADER = ",".join(COLUMNS) + "\r\n"


def closed_index(customer: int, number: int) -> int:
    """The index of the `number`-th request (from 0) of `customer` (from 0) in a closed run."""
    if not 0 <= customer < CUSTOMERS_AT_MOST:
        raise ValueError(f"customer is {customer}; there are at most {CUSTOMERS_AT_MOST}")
    return number * CUSTOMERS_AT_MOST + customer


def customer_of(row: Row) -> int:
    """Whose request it was, in a closed run."""
    return row.index % CUSTOMERS_AT_MOST


def number_of(row: Row) -> int:
    """The how-manieth of its customer it was, from 0, in a closed run."""
    return row.index // CUSTOMERS_AT_MOST


def _text(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.6f}" if isinstance(value, float) else str(value)


class RowFile:
    """Appends rows to a file; each is on its way to the disk when `write` returns."""

    def __init__(self, path: Path) -> None:
        """Raises OSError, and ValueError if the file is something else than raw rows."""
        _cut_torn_tail(path)
        self._file: TextIO = path.open("a", encoding="utf-8", newline="", buffering=1)
        self._writer = csv.writer(self._file)
        if self._file.tell() == 0:
            self._file.write(_HEADER)

    def write(self, rows: Iterable[Row]) -> None:
        """Append them."""
        for row in rows:
            self._writer.writerow(row.values())

    def close(self) -> None:
        """Nothing is written afterwards."""
        self._file.close()


def _cut_torn_tail(path: Path) -> None:
    """Remove a last line without its end. Raises ValueError for a file that is not ours."""
    content = path.read_bytes() if path.exists() else b""
    header = _HEADER.encode()
    if not content.startswith(header) and not header.startswith(content):
        raise ValueError(f"{path} does not begin with the header line of raw rows")
    whole = content.rfind(b"\n") + 1
    if whole < len(content):
        os.truncate(path, whole)


def read_rows(path: Path, run: str | None = None, offset: int = 0) -> list[Row]:
    """The rows of a file, in the order in which they were written; a torn last line is left out.

    run: of this run alone. offset: bytes to pass over. Raises ValueError naming the file and row.
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
