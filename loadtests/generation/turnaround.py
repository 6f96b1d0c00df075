"""Measures for how long a busy worker is kept between two requests: the turnaround.

A worker that has ended one request hands it over and takes up the next that waits. In a queueing
model this belongs to the service time, because it keeps those who wait; but no server tells it.
What else is around a service (connecting, HTTP, the way) may be the work of another thread, and
keeps nobody: where it takes processor time from a request in service, that is in the time told of
it.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import fmean

from loadtests.generation.rows import Row
from loadtests.grouping import grouped

LEAST_TURNS = 5


def turnaround_s(rows: Sequence[Row], overhead_s: float) -> float | None:
    """The mean time from the end of a request to the start of the worker's next, if that waited.

    overhead_s: the time around a service for which nobody waits, as a client sees it; a request
    waits if it was sent so long before the end of the other. Returns None if fewer than LEAST_TURNS
    are known, as of a server that does not tell its starts.
    """
    turns_s = list(_turns_s(rows, overhead_s))
    return fmean(turns_s) if len(turns_s) >= LEAST_TURNS else None


def _turns_s(rows: Sequence[Row], overhead_s: float) -> Iterator[float]:
    for of_worker in grouped(rows, lambda row: row.worker).values():
        told = [
            (row.server_start_s, row.service_s, row.sent_s)
            for row in of_worker
            if row.server_start_s is not None and row.service_s is not None
        ]
        for (start_s, service_s, _), (next_s, _, sent_s) in pairwise(sorted(told)):
            end_s = start_s + service_s
            if sent_s + overhead_s <= end_s <= next_s:
                yield next_s - end_s
