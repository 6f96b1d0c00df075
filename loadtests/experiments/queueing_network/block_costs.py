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
from loadtests.experiments.queueing_network.measuring import (
    BLOCK_READS,
    COUNTS,
    OURS,
    SCANS,
    STUDY,
    ScansLine,
)
from loadtests.experiments.queueing_network.predicting import (
    REFILLS,
    REGULAR_CV,
    Routing,
    routing,
    stations,
)
from loadtests.lab.content import Cell, Metric, Section, Table, capital, shown, told_s
from loadtests.lab.one_customer import Asked, Recorded, recorded
from loadtests.lab.published import (
    BLOCKS,
    NETWORK_THINK_S,
    PROFILE_MS,
    SCAN_BLOCKS_READ,
    SERVICE_TIMES,
)
from loadtests.lab.repeated import accepted
from loadtests.lab.results import Results
from loadtests.models import bounds
from loadtests.models.laws import Station, visit_ratios
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
        hits = mean(lambda one: one.count("last") + one.count("random"))
    else:
        reads, hits = (mean(methodcaller("count", of)) for of in ("disk_reads", "cache_hits"))
        refills = line.blocks - hits
    stages = _STAGES[line.storage]
    stages_s = {stage: mean(methodcaller("duration_s", stage)) for stage in stages}
    stages_s[REST] = max(0.0, mean_of(run.times_s) - sum(stages_s.values()))
    return Storage(line.storage, run.is_accepted, line.blocks, reads, refills, hits, stages_s)


def block_reads(results: Results) -> Summary | None:
    """Seconds of reading and checking one block in the study's way; None if none was timed."""
    reads_s = [float(row["read_s"]) for row in results.rows_if_any(BLOCK_READS)]
    return summary(reads_s) if len(reads_s) > 1 else None


# --- the report ----------------------------------------------------------------------------------

_REAL_TOLD = (
    "This part is real, without emulated waits. Both storages read real blocks on this machine for "
    "one customer, and their own timers tell where the time went. Files that were just written are "
    "read from memory, so a disk would add its own time to “files”."
)
_DEMANDS_TOLD = (
    "Visits follow from the caches' own counts: a refill for each miss, and a DISK visit for each "
    "block read. Demands are computed with the study's 0.8, 46 and 39 ms, so that only the counts "
    "differ. The study's network assumes ten reads too many, as it says: the last refill finds ten "
    "of its blocks in the cache."
)
_BOUGHT_TOLD = (
    "A scan is modelled as two stations, files and the processor. With one request at a time, "
    "throughput is at most 1/D; if one request may read while another computes, it is at most "
    "1/D_b. N_opt is for the study's 5 s of thinking. The study's row splits its measured 40.5 s "
    "into the files of its profile and the rest."
)


def _of_full_blocks(split: Split) -> list[Storage]:
    return [one for one in split.values() if one.name != COUNTS]


def findings(split: Split) -> Iterator[str]:
    """A sentence about each storage whose run counts, and about the study's."""
    if not split:
        return
    for demand in (demands_on_the_pi(), *(one.demands for one in accepted(_of_full_blocks(split)))):
        bought = demand.with_twice_the_processor().total_s
        most = "files" if demand.file_s > demand.cpu_s else "the processor"
        yield (
            f"{capital(demand.label)}: a scan of {demand.blocks} blocks takes "
            f"{told_s(demand.total_s)}, of which files are "
            f"{shown(100 * demand.file_s / demand.total_s, 2)} %. It would "
            f"take {told_s(demand.without_files().total_s)} if files took no time, and "
            f"{told_s(bought)} if the processor were twice as fast. Split into files and "
            f"processor like this, most of the time goes to {most}."
        )


def metrics(split: Split) -> Iterator[Metric]:
    """The demands of storages whose run counts."""
    for one in accepted(_of_full_blocks(split)):
        yield Metric(f"demand_files[{one.name}]", one.demands.file_s, "s")
        yield Metric(f"demand[{one.name}]", one.demands.total_s, "s")


def sections(split: Split, reads: Summary | None) -> Iterator[Section]:
    """Stages, visits and demands of each storage; nothing if none was measured."""
    if not split:
        return
    told = [_REAL_TOLD]
    if not all(one.is_accepted for one in split.values()):
        told.append(
            f"The rules reject the runs marked “{_REJECTED}”: their times prove nothing and are "
            "used for no finding; their counts are exact."
        )
    if reads is not None:
        told.append(
            f"Reading and checking one block in the study's way took {1000 * reads.mean:.3g} ms, "
            f"with a coefficient of variation of {reads.cv:.2g} over {reads.count} blocks. That of "
            f"an exponential time is 1, that of the regular stations above {REGULAR_CV:g}."
        )
    yield Section("What a block's time consists of", told, [_stages_table(split)])
    yield Section("Visits and demands", [_DEMANDS_TOLD], [_visits_table(split)])
    yield Section("What faster hardware would bring", [_BOUGHT_TOLD], [_bought_table(split)])


def _stages_table(split: Split) -> Table:
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
    note = (
        "Files, and all stages of the study's storage, are per block read; all else is per block "
        "of the chain."
    )
    return Table("Stages", columns, rows, note)


def _visits_table(split: Split) -> Table:
    rows = [_visits_row("the study, published", BLOCKS, REFILLS, None, routing())]
    rows += [
        _visits_row(one.label, one.blocks, round(one.refills), one.hits, one.routing)
        for one in split.values()
        if one.reads >= 1 and one.refills >= 1
    ]
    columns = (
        *("Storage", "Blocks", "Refills", "Blocks read", "Found in caches"),
        *("V CPU", "V DISK", "D CPU / s", "D DISK / s", "D DELAY / s", "N_opt"),
    )
    return Table("Visits by the caches' counts", columns, rows, digits=4)


def _visits_row(
    label: str, blocks: int, refills: int, hits: float | None, of: Routing
) -> Sequence[Cell]:
    network, visits = stations(of), visit_ratios(of, "terminal")
    cpu, disk = round(visits["cpu"]), round(visits["disk"])
    demands_s = [station.demand_s for station in network]
    optimal = bounds.optimal_population(network, NETWORK_THINK_S)
    return (label, blocks, refills, disk, hits, cpu, disk, *demands_s, optimal)


def _bought_table(split: Split) -> Table:
    return Table.of(
        "Demands, now and with faster hardware",
        [
            one
            for now in (demands_on_the_pi(), *(one.demands for one in _of_full_blocks(split)))
            for one in (now, now.without_files(), now.with_twice_the_processor())
        ],
        [
            ("Storage", lambda one: one.label),
            ("Blocks", lambda one: one.blocks),
            ("D files / s", lambda one: one.file_s),
            ("D processor / s", lambda one: one.cpu_s),
            ("D / s", lambda one: one.total_s),
            ("Bottleneck", lambda one: "files" if one.file_s > one.cpu_s else "processor"),
            ("X ≤, one at a time / 1/s", lambda one: 1 / one.total_s),
            ("X ≤, several / 1/s", lambda one: one.several_per_s),
            ("N_opt", lambda one: bounds.optimal_population(one.stations, NETWORK_THINK_S)),
        ],
    )
