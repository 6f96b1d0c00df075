"""The service time as a client sees it, measured by `calibrating` with one customer.

This is how the first study measured E[S]. It includes the work outside the handler (connecting,
HTTP), which queues like the rest: rates and models must be computed from this mean, not from the
time that was injected.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from loadtests.models.estimates import confidence_interval


@dataclass(frozen=True, slots=True)
class Calibration:
    """Response times of one customer.

    overhead_s: mean time beyond what the server reported; None if it did not report every time.
    times_s: each response time, in the order of the requests.
    """

    run: str
    requests: int
    mean_s: float
    variance_s2: float
    overhead_s: float | None
    times_s: Sequence[float] = ()


def chance_s(before: Calibration, after: Calibration) -> float:
    """How much two means may differ by chance: half of a 95 % interval of their difference.

    Both asked the same requests in the same order, so each is compared with itself, and what
    differs between requests does not count. 0 if the times are not known.
    """
    pairs = zip(before.times_s, after.times_s, strict=True)
    differences_s = [later - earlier for earlier, later in pairs]
    return confidence_interval(differences_s).half_width if differences_s else 0.0
