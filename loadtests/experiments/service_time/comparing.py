"""Computes the service time of each request by each way from rows. Times are measured seconds.

The mean is that of the accepted runs, with Student's interval over them, or over batches of a
single run. The variance is that of all their requests. Numbers of blocks read from files are
counted by the servers.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from loadtests.experiments.service_time.measuring import PLAN, SCAN, STUDY, PlanLine
from loadtests.grouping import grouped
from loadtests.lab.one_customer import Recorded, recorded
from loadtests.lab.published import BLOCKS, NETWORK_CACHE_BLOCKS, SCAN_BLOCKS_READ, SERVICE_TIMES
from loadtests.lab.results import Results
from loadtests.models.estimates import (
    Interval,
    Verdict,
    confidence_interval,
    mean_over_runs,
    verdict,
)
from loadtests.models.samples import mean_of, summary
from loadtests.servers.study import CHECK_MS, READ_MS

BLOCK_S = (READ_MS + CHECK_MS) / 1000  # at K = 1
_COUNTED_AS = {STUDY: "disk_reads", SCAN: "file"}  # blocks read; our index does not count them


@dataclass(frozen=True)
class Cell:
    """A request by one way. turns: turn -> its accepted run. rejected: number of other runs.

    blocks: length of the chain. scale: K, 1 for a real disk.
    """

    way: str
    kind: str
    blocks: int
    scale: float
    turns: Mapping[int, Recorded]
    rejected: int

    @cached_property
    def times_s(self) -> list[float]:
        """The service times of all requests that count."""
        return [time_s for run in self.turns.values() for time_s in run.times_s]

    @property
    def is_known(self) -> bool:
        """Whether there are enough requests, two, for a mean and a variance."""
        return len(self.times_s) > 1

    @cached_property
    def mean_s(self) -> Interval:
        """E[S]."""
        return mean_over_runs([run.times_s for run in self.turns.values()])

    @property
    def variance_s2(self) -> float:
        """The variance of all requests."""
        return summary(self.times_s).variance

    @property
    def cv(self) -> float:
        """The coefficient of variation."""
        return math.sqrt(self.variance_s2) / self.mean_s.estimate

    @cached_property
    def reads(self) -> float:
        """The mean number of blocks that a request reads from files; 0 if it is not counted."""
        name = _COUNTED_AS.get(self.way, "")
        counts = [one.count(name) for run in self.turns.values() for one in run.asked]
        return mean_of(counts) if counts else 0.0


Cells = dict[tuple[str, str], Cell]  # (way, kind), in alphabetical order


def cells(results: Results) -> Cells:
    """The cells of all requests and ways that have a run. Raises ResultsError without a plan."""
    lines = results.lines(PLAN, PlanLine)
    runs = recorded(results, {line.run: line.warm_up for line in lines})
    made = grouped([line for line in lines if line.run in runs], lambda line: (line.way, line.kind))
    found = {}
    for key in sorted(made):
        of = made[key]
        turns = {line.turn: runs[line.run] for line in of if runs[line.run].is_accepted}
        found[key] = Cell(*key, of[0].blocks, of[0].scale, turns, len(of) - len(turns))
    return found


def times_faster(found: Cells, way: str, kind: str) -> Interval | None:
    """How many times as fast a way is as the study's storage, from the turns that both have."""
    study, ours = found.get((STUDY, kind)), found.get((way, kind))
    if study is None or ours is None:
        return None
    ratios = [
        mean_of(study.turns[turn].times_s) / mean_of(run.times_s)
        for turn, run in ours.turns.items()
        if turn in study.turns
    ]
    return confidence_interval(ratios) if len(ratios) > 1 else None


@dataclass(frozen=True, slots=True)
class Predicted:
    """A service time predicted from the number of blocks read and the time of one.

    share: measured over predicted.
    """

    cell: Cell
    mean_s: float
    share: Interval

    @property
    def verdict(self) -> Verdict:
        """Whether the measurement lies within the tolerance of the prediction."""
        return verdict(self.share.plus(-1), 1)


def predicted(cell: Cell, block_s: float) -> Predicted:
    """E[S] = blocks read × time of a block, of a known cell that has read some."""
    mean_s = cell.reads * block_s
    return Predicted(cell, mean_s, cell.mean_s.times(1 / mean_s))


def emulated(found: Cells) -> Mapping[tuple[str, str], Predicted]:
    """Predictions for cells with an emulated disk, where a block takes BLOCK_S/K."""
    return {
        key: predicted(cell, BLOCK_S / cell.scale)
        for key, cell in found.items()
        if cell.is_known and cell.reads and cell.scale != 1
    }


def refill(found: Cells) -> Predicted | None:
    """get_transaction by the study's storage, predicted from a block's time in flight_counter.

    None without measurements, or if most requests find their block in a cache, as in a chain that
    is too short.
    """
    scan, lookup = found.get((STUDY, "flight_counter")), found.get((STUDY, "get_transaction"))
    if not (scan and scan.is_known and scan.reads):
        return None
    if not (lookup and lookup.is_known and lookup.reads >= 1):
        return None
    return predicted(lookup, scan.mean_s.estimate / scan.reads)


def refill_on_the_pi() -> tuple[float, float]:
    """Predicted and published get_transaction of the study (s), from its flight_counter.

    A block of its chain is in one of two caches with a probability of 38/522; a miss reads 19.
    """
    block_s = SERVICE_TIMES["flight_counter"].mean_s / SCAN_BLOCKS_READ
    misses = 1 - 2 * NETWORK_CACHE_BLOCKS / BLOCKS
    read_s = misses * NETWORK_CACHE_BLOCKS * block_s
    return read_s, SERVICE_TIMES["get_transaction"].mean_s
