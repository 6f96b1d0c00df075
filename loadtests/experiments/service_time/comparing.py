"""Computes the service time of each request by each way from rows. Times are measured seconds.

The mean is that of the accepted runs, with Student's interval over them, or over batches of a
single run. The variance is that of all their requests. Numbers of blocks read from files are
counted by the servers.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from loadtests.experiments.service_time.measuring import PLAN, PlanLine
from loadtests.experiments.service_time.plan import SCAN, STUDY
from loadtests.grouping import grouped
from loadtests.lab.one_customer import Asked, Recorded, recorded
from loadtests.lab.published import BLOCKS, NETWORK_CACHE_BLOCKS, SCAN_BLOCKS_READ, SERVICE_TIMES
from loadtests.lab.results import Results
from loadtests.models.estimates import (
    Interval,
    Verdict,
    confidence_interval,
    mean_over_runs,
    verdict,
)
from loadtests.models.samples import summary
from loadtests.servers.study import CHECK_MS, READ_MS

BLOCK_S = (READ_MS + CHECK_MS) / 1000  # at K = 1


@dataclass(frozen=True, slots=True)
class Cell:
    """A request by one way. rejected: number of rejected runs.

    requests: number in accepted runs. mean_s, variance_s2: None for fewer than two requests.
    means_s: turn -> the mean of its accepted run. blocks: length of the chain. reads: mean number
    of blocks that a request reads from files, 0 if the server does not count them. scale: K, 1 for
    a real disk.
    """

    way: str
    kind: str
    rejected: int
    requests: int
    blocks: int
    scale: float
    mean_s: Interval | None
    variance_s2: float | None
    means_s: Mapping[int, float]
    reads: float

    @property
    def cv(self) -> float | None:
        """The coefficient of variation."""
        if self.mean_s is None or self.variance_s2 is None:
            return None
        return math.sqrt(self.variance_s2) / self.mean_s.estimate

    @property
    def capacity_per_s(self) -> float | None:
        """L = 1/E[S]."""
        return 1 / self.mean_s.estimate if self.mean_s else None


Cells = dict[tuple[str, str], Cell]  # (way, kind), in the order in which they were measured


def cells(results: Results) -> Cells:
    """The cells of all requests and ways that have a run. Raises ResultsError without a plan."""
    lines = results.lines(PLAN, PlanLine)
    runs = recorded(results, {line.run: line.warm_up for line in lines})
    with_a_run = [line for line in lines if line.run in runs]
    found = grouped(with_a_run, lambda line: (line.way, line.kind))
    return {key: _cell(of, runs) for key, of in sorted(found.items(), key=lambda one: one[0])}


def _cell(lines: Sequence[PlanLine], runs: Mapping[str, Recorded]) -> Cell:
    way, first = lines[0].way, lines[0]
    counted = {line.turn: runs[line.run] for line in lines if runs[line.run].is_accepted}
    asked = [one for run in counted.values() for one in run.asked]
    times_s = [one.row.closed_response_s for one in asked]
    has_some = len(times_s) > 1
    return Cell(
        way=way,
        kind=first.kind,
        rejected=len(lines) - len(counted),
        requests=len(times_s),
        blocks=first.blocks,
        scale=first.scale,
        mean_s=mean_over_runs([run.times_s for run in counted.values()]) if has_some else None,
        variance_s2=summary(times_s).variance if has_some else None,
        means_s={turn: summary(run.times_s).mean for turn, run in counted.items()},
        reads=summary([_reads(way, one) for one in asked]).mean if asked else 0.0,
    )


def _reads(way: str, one: Asked) -> int:
    names = {STUDY: "disk_reads", SCAN: "file"}
    return one.count(names[way]) if way in names else 0


def times_faster(found: Cells, way: str, kind: str) -> Interval | None:
    """How many times as fast a way is as the study's storage, from the turns that both have."""
    study, ours = found.get((STUDY, kind)), found.get((way, kind))
    if study is None or ours is None or study.mean_s is None or ours.mean_s is None:
        return None
    theirs = study.means_s
    ratios = [theirs[turn] / mean_s for turn, mean_s in ours.means_s.items() if turn in theirs]
    return confidence_interval(ratios) if len(ratios) > 1 else None


@dataclass(frozen=True, slots=True)
class Predicted:
    """A service time predicted from the number of blocks read and the time of one."""

    cell: Cell
    block_s: float
    verdict: Verdict

    @property
    def mean_s(self) -> float:
        """E[S] = blocks read × time of a block."""
        return self.cell.reads * self.block_s

    @property
    def difference(self) -> float:
        """Measured − predicted, as a share of the prediction."""
        assert self.cell.mean_s is not None
        return self.cell.mean_s.estimate / self.mean_s - 1


def predicted(cell: Cell | None, block_s: float) -> Predicted | None:
    """The prediction for a cell; None if it has no measurement or read no block."""
    if cell is None or cell.mean_s is None or not cell.reads:
        return None
    mean_s = cell.reads * block_s
    return Predicted(cell, block_s, verdict(cell.mean_s.plus(-mean_s), mean_s))


def refill(found: Cells) -> Predicted | None:
    """get_transaction by the study's storage, predicted from a block's time in flight_counter.

    None without measurements, or if most requests find their block in a cache, as in a chain that
    is too short.
    """
    scan, lookup = found.get((STUDY, "flight_counter")), found.get((STUDY, "get_transaction"))
    if scan is None or scan.mean_s is None or not scan.reads:
        return None
    if lookup is None or lookup.reads < 1:
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


def emulated(found: Cells) -> list[Predicted]:
    """Predictions for cells with an emulated disk, where a block takes BLOCK_S/K."""
    made = [predicted(cell, BLOCK_S / cell.scale) for cell in found.values() if cell.scale != 1]
    return [one for one in made if one is not None]
