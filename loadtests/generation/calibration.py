"""Computes a server's service time from one customer, and its turnaround from busy workers.

The service time is as a client sees it, measured with one customer, which is how the first study
measured E[S]. It includes the work outside the handler (connecting, HTTP), which queues like the
rest: rates and models must be computed from this mean, not from the time that was injected.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import hypot
from statistics import fmean, variance

from loadtests.generation.rows import Row
from loadtests.grouping import grouped
from loadtests.models.estimates import confidence_interval

WARM_UP = 10  # requests of a calibration that do not count
# Only a request that waits for its worker shows a turnaround. Where few waited, they did so because
# something stalled, and their turnarounds are not the usual ones.
LEAST_TURNS = 5  # a number of turnarounds
LEAST_SHARE = 0.1  # turnarounds per request


@dataclass(frozen=True, slots=True)
class Calibration:
    """Holds the response times of one customer.

    overhead_s: mean time beyond what the server reported; None if it did not report every time.
    times_s: in the order of the requests. each_once: no other calibration had the same requests.
    """

    run: str
    requests: int
    mean_s: float
    variance_s2: float
    overhead_s: float | None
    times_s: Sequence[float] = ()
    each_once: bool = False


def calibration_of(run: str, rows: Sequence[Row]) -> Calibration:
    """Return the calibration by the rows of one customer that count, at least 2."""
    times_s = [row.closed_response_s for row in rows]
    services_s = [row.service_s for row in rows if row.service_s is not None]
    overhead_s = fmean(times_s) - fmean(services_s) if len(services_s) == len(rows) else None
    return Calibration(run, len(rows), fmean(times_s), variance(times_s), overhead_s, times_s)


def chance_s(before: Calibration, after: Calibration) -> float:
    """Return how far two means (s) may differ by chance: half a 95 % interval of the difference.

    If both asked the same requests in the same order, each is compared with itself. 0 if the times
    are not known.
    """
    if not (before.times_s and after.times_s):
        return 0.0
    if before.each_once or after.each_once:
        return hypot(*(confidence_interval(c.times_s).half_width for c in (before, after)))
    pairs = zip(before.times_s, after.times_s, strict=True)
    return confidence_interval([later - earlier for earlier, later in pairs]).half_width


def turnaround_s(rows: Sequence[Row], overhead_s: float) -> float | None:
    """Return the mean time from the end of a request to the start of the worker's next that waited.

    overhead_s: the time around a service for which nobody waits, as a client sees it; a request
    waits if it was sent so long before the end of the other. Returns None if too few are known, as
    of a server that does not tell its starts.
    """
    turns_s = []
    for own_rows in grouped(rows, lambda row: row.worker).values():
        services = sorted(
            (row.server_start_s, row.service_s, row.sent_s)
            for row in own_rows
            if row.server_start_s is not None and row.service_s is not None
        )
        for (start_s, service_s, _), (next_s, _, sent_s) in pairwise(services):
            end_s = start_s + service_s
            if sent_s + overhead_s <= end_s <= next_s:
                turns_s.append(next_s - end_s)
    return fmean(turns_s) if len(turns_s) >= max(LEAST_TURNS, LEAST_SHARE * len(rows)) else None
