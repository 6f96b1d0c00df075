"""The changes of the service that are forecast: what each does to a request, and how it is made.

Three services are learnt from, each with one worker that keeps no answers: one that is asked for
rankings, which its index adds up; one that adds up the same rankings by scans; and one that is
asked for the study's scans, with emulated storage.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from itertools import cycle
from random import Random

from loadtests.experiments.open_workload.servers import (
    SCALE,
    Measured,
    rankings,
    scanned_rankings,
    scans,
)
from loadtests.lab.experiment import Run

RANKINGS, SCANNED, SCANS = "rankings", "scanned-rankings", "scans"
FASTER = 8.0


@dataclass(frozen=True, slots=True)
class Demand:
    """What one request demands, in seconds.

    processor_s: time in the handler without that of files. files_s: of files. turn_s: until its
    worker begins the next that waits. kept_s: processor time of the worker beside the handler,
    which is all that a kept answer takes. network_s: all else, as a client sees it, which keeps no
    worker busy. generator_s: processor time of the load generator.
    """

    processor_s: float
    files_s: float
    turn_s: float
    kept_s: float
    network_s: float
    generator_s: float


@dataclass(frozen=True, slots=True)
class Change:
    """A change. of: the service that it changes, or leaves as it is. told: it in words.

    workers: how many there are. kept: the share of requests whose answer is kept, so that only the
    front works. files: reading takes this share of its time. engine: the service of which it was
    learnt how long a handler takes that asks the other engine, "" if it stays the same.
    """

    name: str
    of: str
    told: str
    workers: int = 1
    kept: float = 0.0
    files: float = 1.0
    engine: str = ""

    def leaves_a_core(self, cores: int) -> bool:
        """Whether a load generator on a machine of so many cores keeps no worker waiting."""
        return self.workers < cores

    def learnt_of(self, demands: Mapping[str, Sequence[Demand]]) -> Sequence[Demand]:
        """The demands that the change applies to. demands: of the requests of each service."""
        own = demands[self.of]
        if not self.engine:
            return own
        both = zip(own, cycle(demands[self.engine]), strict=False)
        return [
            replace(one, processor_s=other.processor_s, files_s=other.files_s)
            for one, other in both
        ]

    def applied(self, demand: Demand, random: Random) -> Demand:
        """The demands of a request after the change."""
        if random.random() < self.kept:
            on_its_way_s = max(0.0, demand.network_s + demand.turn_s - demand.kept_s)
            return replace(
                demand,
                processor_s=0.0,
                files_s=0.0,
                turn_s=demand.kept_s,
                network_s=on_its_way_s,
            )
        return replace(demand, files_s=self.files * demand.files_s) if self.files != 1 else demand

    def made(self, run: Run) -> AbstractContextManager[Measured]:
        """Run the service after the change until the `with` block ends. Raises ProgramFailed."""
        if self.of == SCANS:
            return scans(run, SCALE / self.files)
        if self.of == SCANNED and not self.engine:
            return scanned_rankings(run)
        return rankings(run, self.workers, self.kept)


LEARNT: Sequence[Change] = (
    Change(RANKINGS, RANKINGS, "Rankings, one worker that keeps no answers"),
    Change(SCANNED, SCANNED, "Rankings by scans, one worker"),
    Change(SCANS, SCANS, f"Scans, the study's disk {SCALE:g} times as fast"),
)
"""The services as they are, which are learnt from. What they do under load is forecast, too."""

CHANGES: Sequence[Change] = (
    *LEARNT,
    Change("two-workers", RANKINGS, "Rankings, two workers instead of one", workers=2),
    Change("kept-answers", RANKINGS, "Answers are kept: half of the rankings are known", kept=0.5),
    Change("index", SCANNED, "Rankings by the index instead of scans", engine=RANKINGS),
    Change("faster-storage", SCANS, f"Scans, a disk {FASTER:g} times faster", files=1 / FASTER),
)
