"""The changes of the service that are forecast: what each does to a request, and how it is made.

Two services are learnt from, each with one worker that keeps no answers: one that is asked for
rankings, which its index adds up, and one that is asked for scans, with emulated storage.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from random import Random

from loadtests.experiments.open_workload.demands import Demand
from loadtests.experiments.open_workload.servers import SCALE, Measured, rankings, scans
from loadtests.lab.experiment import Run
from loadtests.models.queue import ONE, Queue

RANKINGS, SCANS = "rankings", "scans"
FASTER = 8.0


@dataclass(frozen=True, slots=True)
class Change:
    """A change. of: the service that it changes, or leaves as it is. told: it in words.

    workers: how many there are. kept: the share of requests whose answer is kept, so that only the
    front works. files: reading takes this share of its time.
    """

    name: str
    of: str
    told: str
    workers: int = 1
    kept: float = 0.0
    files: float = 1.0

    @property
    def queue(self) -> Queue:
        """The model of the service after the change. Threads of a worker share its interpreter."""
        return Queue(self.workers, is_shared=True) if self.of == RANKINGS else ONE

    def applied(self, demand: Demand, random: Random) -> Demand:
        """The demands of a request after the change."""
        if random.random() < self.kept:
            return replace(demand, engine_s=0.0, files_s=0.0, rest_s=0.0)
        return replace(demand, files_s=self.files * demand.files_s)

    def made(self, run: Run) -> AbstractContextManager[Measured]:
        """Run the service after the change until the `with` block ends. Raises ProgramFailed."""
        if self.of == SCANS:
            return scans(run, SCALE / self.files)
        return rankings(run, self.workers, self.kept)


LEARNT: Sequence[Change] = (
    Change(RANKINGS, RANKINGS, "Rankings, one worker that keeps no answers"),
    Change(SCANS, SCANS, f"Scans, the study's disk {SCALE:g} times as fast"),
)
"""The services as they are, which are learnt from. What they do under load is forecast, too."""

CHANGES: Sequence[Change] = (
    *LEARNT,
    Change("two-workers", RANKINGS, "Rankings, two workers instead of one", workers=2),
    Change("kept-answers", RANKINGS, "Rankings, half of them asked before and kept", kept=0.5),
    Change("faster-storage", SCANS, f"Scans, a disk {FASTER:g} times faster", files=1 / FASTER),
)
