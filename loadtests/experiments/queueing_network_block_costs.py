"""Tells what the time of a block consists of, and what faster hardware would bring.

It splits the time of a scan of real blocks, without waits, into the stages that the servers report
(Server-Timing). Reading files is the work of the disk, unless it is done from memory; all else is
the work of the processor. As a network of these two, a scan has the demands D_file and D_cpu, in
measured seconds.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import methodcaller

from loadtests.baseline import STAGES as STUDY_STAGES
from loadtests.experiments.queueing_network_measurements import (
    BLOCK_READS,
    COUNTS,
    OURS,
    SCANS,
    STUDY,
    ScansLine,
)
from loadtests.experiments.queueing_network_models import (
    REGULAR_CV,
    Routing,
    routing,
)
from loadtests.lab.content import Cell, Metric, Section, Table
from loadtests.lab.one_customer import Asked, Recorded, recorded
from loadtests.lab.published import (
    BLOCKS,
    PROFILE_MS,
    SCAN_BLOCKS_READ,
    SERVICE_TIMES,
)
from loadtests.lab.repeated import accepted
from loadtests.lab.results import Results
from loadtests.lab.sentences import Sentences
from loadtests.models import bounds
from loadtests.models.laws import Station
from loadtests.models.sample_statistics import Summary, mean_of, summary

REST = "the rest"
LABELS = {
    STUDY: "the study's storage, here",
    OURS: "our scan",
    COUNTS: "the study's storage, 522 small blocks",
}
_STAGES: Mapping[str, Sequence[str]] = {
    STUDY: STUDY_STAGES,
    COUNTS: STUDY_STAGES,
    OURS: ("file", "decompress", "hash", "decode", "filter"),
}
"""Storage -> its stages; the first is reading files."""
_REJECTED = "rejected run"


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
    def stations(self) -> list[Station]:
        """The demands as stations of a network."""
        return [Station("file", self.file_s), Station("cpu", self.cpu_s)]

    @property
    def several_per_s(self) -> float:
        """The highest throughput if one request reads while another computes on one core: 1/D_b."""
        return bounds.maximum_throughput_per_s(self.stations)

    def without_files(self) -> "Demands":
        """The demands if files were read in no time, which is more than any SSD can do."""
        return Demands(f"{self.label}: files in no time", self.blocks, 0.0, self.cpu_s)

    def with_twice_the_processor(self) -> "Demands":
        """The demands if the processor were twice as fast."""
        label = f"{self.label}: processor twice as fast"
        return Demands(label, self.blocks, self.file_s, self.cpu_s / 2)


def demands_on_the_pi() -> Demands:
    """The demands of the study's scan: the files of its profile, and the rest of its time."""
    file_s = SCAN_BLOCKS_READ * PROFILE_MS["file"] / 1000
    total_s = SERVICE_TIMES["flight_counter"].mean_s
    return Demands("the study, on its Pi", BLOCKS, file_s, total_s - file_s)


@dataclass(frozen=True, slots=True)
class Storage:
    """Mean scan by one storage. blocks: length of the chain. is_accepted: whether its run counts.

    reads: blocks read from files. refills: number of reads of several blocks. stages_s: stage ->
    seconds, with REST for time outside all stages.
    """

    name: str
    is_accepted: bool
    blocks: int
    reads: float
    refills: float
    stages_s: Mapping[str, float]

    @property
    def label(self) -> str:
        """The storage in words."""
        return LABELS[self.name] + ("" if self.is_accepted else f" ({_REJECTED})")

    @property
    def routing(self) -> Routing:
        """How a scan goes through the study's network, by what the caches counted."""
        return routing(self.blocks, round(self.refills), round(self.reads))

    @property
    def demands(self) -> Demands:
        """The demands of its scan."""
        file_s = self.stages_s[_STAGES[self.name][0]]
        return Demands(self.label, self.blocks, file_s, sum(self.stages_s.values()) - file_s)

    def of_a_block_s(self, stage: str) -> float:
        """The time of a stage per block: per block read, or per block of the chain."""
        is_of_reads = (self.name == STUDY and stage != REST) or stage == _STAGES[self.name][0]
        over = self.reads if is_of_reads else self.blocks
        return self.stages_s[stage] / over if over else 0.0


Split = Mapping[str, Storage]  # by name


# --- reading -------------------------------------------------------------------------------------


def storages(results: Results) -> Split:
    """The storages that scanned; empty if none did."""
    lines = results.lines_if_any(SCANS, ScansLine)
    runs = recorded(results, {line.run: line.warm_up for line in lines})
    return {line.storage: _storage(line, runs[line.run]) for line in lines if line.run in runs}


def _storage(line: ScansLine, run: Recorded) -> Storage:
    def mean(value: Callable[[Asked], float]) -> float:
        return mean_of([value(one) for one in run.asked])

    if line.storage == OURS:
        reads, refills = mean(lambda one: one.count("file")), mean(lambda one: one.count("file", 1))
    else:
        reads = mean(lambda one: one.count("disk_reads"))
        refills = line.blocks - mean(lambda one: one.count("cache_hits"))
    stages = _STAGES[line.storage]
    stages_s = {stage: mean(methodcaller("duration_s", stage)) for stage in stages}
    stages_s[REST] = max(0.0, mean_of(run.times_s) - sum(stages_s.values()))
    return Storage(line.storage, run.is_accepted, line.blocks, reads, refills, stages_s)


def block_reads(results: Results) -> Summary | None:
    """Seconds of reading and checking one block in the study's way; None if none was timed."""
    reads_s = [float(row["read_s"]) for row in results.rows_if_any(BLOCK_READS)]
    return summary(reads_s) if len(reads_s) > 1 else None


# --- the report ----------------------------------------------------------------------------------


def _of_full_blocks(split: Split) -> list[Storage]:
    """The storages whose blocks have as many flights as the study's."""
    return [one for one in split.values() if one.name != COUNTS]


def compared_demands(split: Split) -> list[Demands]:
    """The demands on the study's Pi and of storages whose run counts; none if none was measured."""
    ours = [one.demands for one in accepted(_of_full_blocks(split))]
    return [demands_on_the_pi(), *ours] if split else []


def metrics(split: Split) -> Iterator[Metric]:
    """The demands of storages whose run counts."""
    for one in accepted(_of_full_blocks(split)):
        yield Metric(f"demand_files[{one.name}]", one.demands.file_s, "s")
        yield Metric(f"demand[{one.name}]", one.demands.total_s, "s")


def sections(split: Split, reads: Summary | None, sentences: Sentences) -> Iterator[Section]:
    """The stages of a block's time by each storage; nothing if none was measured."""
    if split:
        is_rejected = not all(one.is_accepted for one in split.values())
        told = sentences("block_times", is_rejected=is_rejected, reads=reads, regular_cv=REGULAR_CV)
        table = _stages_table(split, sentences.one("stages_note"))
        yield Section("What a block's time consists of", told, [table])


def _stages_table(split: Split, note: str) -> Table:
    rows: list[Sequence[Cell]] = [
        ("the study's profile, on its Pi", stage, ms, None, None)
        for stage, ms in PROFILE_MS.items()
    ]
    rows += [
        (
            one.label,
            stage.replace("_", " "),
            1000 * one.of_a_block_s(stage),
            1000 * spent_s,
            f"{100 * spent_s / one.demands.total_s:.1f} %",
        )
        for one in _of_full_blocks(split)
        for stage, spent_s in one.stages_s.items()
    ]
    columns = ("Storage", "Stage", "ms per block", "ms per scan", "Share")
    return Table("Stages", columns, rows, note)
