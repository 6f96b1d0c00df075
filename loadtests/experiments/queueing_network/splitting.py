"""Splits the time of a scan of real blocks, without waits, into parts, and predicts shorter ones.

Stages are those that the servers report (Server-Timing). Reading files is the work of the disk,
unless it is done from memory; all else is the work of the processor. As a network of these two, a
scan has the demands D_file and D_cpu, in measured seconds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from loadtests.baseline import STAGES as STUDY_STAGES
from loadtests.experiments.queueing_network.measuring import (
    BLOCK_READS,
    COUNTS,
    OURS,
    SCANS,
    STUDY,
    ScansLine,
)
from loadtests.experiments.queueing_network.predicting import Routing, routing
from loadtests.lab.one_customer import Asked, Recorded, recorded
from loadtests.lab.published import (
    BLOCKS,
    NETWORK_THINK_S,
    PROFILE_MS,
    SCAN_BLOCKS_READ,
    SERVICE_TIMES,
)
from loadtests.lab.results import Results
from loadtests.models import bounds
from loadtests.models.laws import Station
from loadtests.models.samples import Summary, summary

REST = "the rest"
_FILE = {STUDY: "file_read", COUNTS: "file_read", OURS: "file"}
_STAGES: Mapping[str, Sequence[str]] = {
    STUDY: STUDY_STAGES,
    COUNTS: STUDY_STAGES,
    OURS: ("file", "decompress", "hash", "decode", "filter"),
}


@dataclass(frozen=True, slots=True)
class Storage:
    """Mean scan by one storage. blocks: length of the chain. is_accepted: whether its run counts.

    reads, hits: blocks read from files and found in caches. refills: number of reads of several
    blocks. stages_s: stage -> seconds, with REST for time outside all stages.
    """

    name: str
    is_accepted: bool
    blocks: int
    reads: float
    refills: float
    hits: float
    stages_s: Mapping[str, float]

    @property
    def total_s(self) -> float:
        """The time of a scan."""
        return sum(self.stages_s.values())

    @property
    def file_s(self) -> float:
        """The time of reading files in a scan."""
        return self.stages_s[_FILE[self.name]]

    def of_a_block_s(self, stage: str) -> float:
        """The time of a stage per block: per block read, or per block of the chain."""
        is_of_reads = (self.name == STUDY and stage != REST) or stage == _FILE[self.name]
        over = self.reads if is_of_reads else self.blocks
        return self.stages_s[stage] / over if over else 0.0


def storages(results: Results) -> dict[str, Storage]:
    """The storages that scanned, by name; empty if none did."""
    lines = results.lines_if_any(SCANS, ScansLine)
    runs = recorded(results, {line.run: line.warm_up for line in lines})
    return {
        line.storage: _storage(line.storage, line.blocks, runs[line.run])
        for line in lines
        if line.run in runs
    }


def _storage(name: str, blocks: int, run: Recorded) -> Storage:
    counts = [_counts(name, one, blocks) for one in run.asked]
    reads, refills, hits = (summary(each).mean for each in zip(*counts, strict=True))
    stages_s = {
        stage: summary([one.duration_s(stage) for one in run.asked]).mean for stage in _STAGES[name]
    }
    rest_s = summary(run.times_s).mean - sum(stages_s.values())
    return Storage(
        name,
        run.is_accepted,
        blocks,
        reads,
        refills,
        hits,
        stages_s | {REST: max(0.0, rest_s)},
    )


def _counts(name: str, one: Asked, blocks: int) -> tuple[int, int, int]:
    """Numbers of blocks read, refills, and blocks found in caches."""
    if name == OURS:
        return one.count("file"), one.count("file", 1), one.count("last") + one.count("random")
    hits = one.count("cache_hits")
    return one.count("disk_reads"), blocks - hits, hits


def counted_routing(of: Mapping[str, Storage]) -> Routing | None:
    """The routing of as many blocks as the study had, by what its caches counted; None if unknown.

    Counts do not depend on how quiet the machine was.
    """
    one = of.get(COUNTS)
    return None if one is None else routing(one.blocks, round(one.refills), round(one.reads))


def block_reads(results: Results) -> Summary | None:
    """Seconds of reading and checking one block in the study's way; None if none was timed."""
    reads_s = [float(row["read_s"]) for row in results.rows_if_any(BLOCK_READS)]
    return summary(reads_s) if len(reads_s) > 1 else None


# --- demands -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Demands:
    """Demands of one scan on files and on the processor. blocks: length of the chain."""

    label: str
    blocks: int
    file_s: float
    cpu_s: float

    @property
    def total_s(self) -> float:
        """D, the response time of a single customer."""
        return self.file_s + self.cpu_s

    @property
    def bottleneck(self) -> str:
        """The station with the larger demand."""
        return "files" if self.file_s > self.cpu_s else "processor"

    @property
    def one_at_a_time_per_s(self) -> float:
        """The highest throughput of a server that answers one request at a time: 1/D."""
        return 1 / self.total_s

    @property
    def several_per_s(self) -> float:
        """The highest throughput if one request reads while another computes on one core: 1/D_b."""
        return bounds.maximum_throughput_per_s(self.stations)

    @property
    def optimal_population(self) -> float:
        """N_opt for the study's think time."""
        return bounds.optimal_population(self.stations, NETWORK_THINK_S)

    @property
    def stations(self) -> list[Station]:
        """The demands as stations of a network."""
        return [Station("file", self.file_s), Station("cpu", self.cpu_s)]

    def without_files(self) -> "Demands":
        """The demands if files were read in no time, which is more than any SSD can do."""
        return Demands(f"{self.label}: files in no time", self.blocks, 0.0, self.cpu_s)

    def with_twice_the_processor(self) -> "Demands":
        """The demands if the processor were twice as fast."""
        label = f"{self.label}: processor twice as fast"
        return Demands(label, self.blocks, self.file_s, self.cpu_s / 2)


def demands_of(storage: Storage, label: str) -> Demands:
    """The demands of a measured storage."""
    return Demands(label, storage.blocks, storage.file_s, storage.total_s - storage.file_s)


def demands_on_the_pi() -> Demands:
    """The demands of the study's scan: the files of its profile, and the rest of its time."""
    file_s = SCAN_BLOCKS_READ * PROFILE_MS["file"] / 1000
    total_s = SERVICE_TIMES["flight_counter"].mean_s
    return Demands("the study, on its Pi", BLOCKS, file_s, total_s - file_s)
