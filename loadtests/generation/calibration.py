"""The service time as a client sees it, measured by `calibrating` with one customer.

This is how the first study measured E[S]. It includes the work outside the handler (connecting,
HTTP), which queues like the rest: rates and models must be computed from this mean, not from the
time that was injected.
"""

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Calibration:
    """Response times of one customer.

    overhead_s: mean time beyond what the server reported; None if it did not report every time.
    """

    run: str
    requests: int
    mean_s: float
    variance_s2: float
    overhead_s: float | None

    @property
    def cv(self) -> float:
        """The coefficient of variation: standard deviation over mean."""
        return float(self.variance_s2**0.5 / self.mean_s)

    @property
    def capacity_per_s(self) -> float:
        """The rate at which one such server saturates: 1/E[S]."""
        return 1 / self.mean_s

    def as_json(self) -> dict[str, Any]:
        """The calibration as plain data, for the result folder."""
        return asdict(self) | {"cv": self.cv}
