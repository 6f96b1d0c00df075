"""What a scan's time consists of, on real blocks and without waits, and what would shorten it.

Stages are the servers' own (Server-Timing). Reading files is the disk's part, as far as it is not
answered from memory; everything else is the processor's. As a network of these two, a scan has the
demands D_file and D_cpu, seconds as measured.
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
)
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
from loadtests.models.samples import Summary, summary
from loadtests.models.stations import Station

REST = "the rest"
_FILE = {STUDY: "file_read", COUNTS: "file_read", OURS: "file"}
_STAGES: Mapping[str, Sequence[str]] = {
    STUDY: STUDY_STAGES,
    COUNTS: STUDY_STAGES,
    OURS: ("file", "decompress", "hash", "decode", "filter"),
}


@dataclass(frozen=True, slots=True)
class Storage:
    """Scans by one storage. blocks: of the chain. reads, refills, hits: blocks read from files, in
    how many runs, and found in caches, by a scan. stages_s: seconds of a scan, with REST, which is
    whatever no stage counts. is_accepted: whether its run counts.
    """

    name: str
    is_accepted: bool
    scans: int
    blocks: int
    reads: float
    refills: float
    hits: float
    stages_s: Mapping[str, float]

    @property
    def total_s(self) -> float:
        """A scan."""
        return sum(self.stages_s.values())

    @property
    def file_s(self) -> float:
        """Of it, reading files."""
        return self.stages_s[_FILE[self.name]]

    def of_a_block_s(self, stage: str) -> float:
        """That stage of one block: of one read, or of one looked at."""
        is_of_reads = (self.name == STUDY and stage != REST) or stage == _FILE[self.name]
        over = self.reads if is_of_reads else self.blocks
        return self.stages_s[stage] / over if over else 0.0


def storages(results: Results) -> dict[str, Storage]:
    """Those that scanned, by their names; none where no blocks were measured."""
    lines = results.rows(SCANS) if results.has(SCANS) else []
    runs = recorded(results, {line["run"]: int(line["warm_up"]) for line in lines})
    return {
        line["storage"]: _storage(line["storage"], int(line["blocks"]), runs[line["run"]])
        for line in lines
        if line["run"] in runs
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
        len(run.asked),
        blocks,
        reads,
        refills,
        hits,
        stages_s | {REST: max(0.0, rest_s)},
    )


def _counts(name: str, one: Asked, blocks: int) -> tuple[int, int, int]:
    """Blocks read, refills, blocks found in caches."""
    if name == OURS:
        return one.count("file"), one.count("file", 1), one.count("last") + one.count("random")
    hits = one.count("cache_hits")
    return one.count("disk_reads"), blocks - hits, hits


def block_reads(results: Results) -> Summary | None:
    """Seconds of reading and checking one block the study's way; None if none was timed."""
    lines = results.rows(BLOCK_READS) if results.has(BLOCK_READS) else []
    return summary([float(line["read_s"]) for line in lines]) if len(lines) > 1 else None


# --- demands -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Demands:
    """Of one scan, in seconds: reading files, and the processor. blocks: of the chain."""

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
        """The larger of the two."""
        return "files" if self.file_s > self.cpu_s else "processor"

    @property
    def one_at_a_time_per_s(self) -> float:
        """Most throughput of a server that answers one request at a time: 1/D."""
        return 1 / self.total_s

    @property
    def several_per_s(self) -> float:
        """Most throughput if one may read while another computes, on one core: 1/D_b."""
        return bounds.maximum_throughput_per_s(self.stations)

    @property
    def optimal_population(self) -> float:
        """N_opt with the study's think time."""
        return bounds.optimal_population(self.stations, NETWORK_THINK_S)

    @property
    def stations(self) -> list[Station]:
        """As a network."""
        return [Station("file", self.file_s), Station("cpu", self.cpu_s)]

    def without_files(self) -> "Demands":
        """If files were read in no time: more than any SSD can do."""
        return Demands(f"{self.label}: files in no time", self.blocks, 0.0, self.cpu_s)

    def with_twice_the_processor(self) -> "Demands":
        """If the processor were twice as fast."""
        label = f"{self.label}: processor twice as fast"
        return Demands(label, self.blocks, self.file_s, self.cpu_s / 2)


def demands_of(storage: Storage, label: str) -> Demands:
    """Of a storage that was measured."""
    return Demands(label, storage.blocks, storage.file_s, storage.total_s - storage.file_s)


def demands_on_the_pi() -> Demands:
    """Of the study's scan: its measured service time, less the files of its profile."""
    file_s = SCAN_BLOCKS_READ * PROFILE_MS["file"] / 1000
    total_s = SERVICE_TIMES["flight_counter"].mean_s
    return Demands("the study, on its Pi", BLOCKS, file_s, total_s - file_s)
