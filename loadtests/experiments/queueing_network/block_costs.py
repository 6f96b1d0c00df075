"""Tells what a block's time consists of, and what faster hardware would bring: report parts."""

from collections.abc import Iterator, Sequence

from loadtests.experiments.queueing_network.measuring import COUNTS, OURS, STUDY
from loadtests.experiments.queueing_network.plan import REGULAR_CV
from loadtests.experiments.queueing_network.predicting import REFILLS, demands, routing, visits
from loadtests.experiments.queueing_network.splitting import (
    Demands,
    Storage,
    demands_of,
    demands_on_the_pi,
)
from loadtests.lab.published import BLOCKS, NETWORK_THINK_S, PROFILE_MS
from loadtests.lab.report.content import Cell, Metric, Section, Table, capital, told_s
from loadtests.lab.report.page import shown
from loadtests.models import bounds
from loadtests.models.laws import Station
from loadtests.models.samples import Summary

LABELS = {
    STUDY: "the study's storage, here",
    OURS: "our scan",
    COUNTS: "the study's storage, 522 small blocks",
}


def findings(split: dict[str, Storage]) -> Iterator[str]:
    """A sentence about each storage whose run counts, and about the study's."""
    if not split:
        return
    for demand in _demands({name: one for name, one in split.items() if one.is_accepted}):
        share = demand.file_s / demand.total_s
        bought = demand.with_twice_the_processor().total_s
        yield (
            f"{capital(demand.label)}: a scan of {demand.blocks} blocks takes "
            f"{told_s(demand.total_s)}, of which files are {shown(100 * share, 2)} %. It would "
            f"take {told_s(demand.without_files().total_s)} if files took no time, and "
            f"{told_s(bought)} if the processor were twice as fast. Split into files and "
            f"processor like this, most of the time goes to {_the(demand.bottleneck)}."
        )


def _the(station: str) -> str:
    return "the processor" if station == "processor" else station


_REAL_TOLD = (
    "This part is real, without emulated waits. Both storages read real blocks on this machine for "
    "one customer, and their own timers tell where the time went. Files that were just written are "
    "read from memory, so a disk would add its own time to “files”."
)


_REJECTED = "rejected run"


def sections(split: dict[str, Storage], reads: Summary | None) -> Iterator[Section]:
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


def _label(storage: Storage) -> str:
    return LABELS[storage.name] + ("" if storage.is_accepted else f" ({_REJECTED})")


def _stages_table(split: dict[str, Storage]) -> Table:
    rows: list[Sequence[Cell]] = [
        ("the study's profile, on its Pi", stage, ms, None, None)
        for stage, ms in PROFILE_MS.items()
    ]
    for name, one in split.items():
        if name == COUNTS:
            continue
        rows += [
            (
                _label(one),
                stage.replace("_", " "),
                1000 * one.of_a_block_s(stage),
                1000 * spent_s,
                f"{100 * spent_s / one.total_s:.1f} %",
            )
            for stage, spent_s in one.stages_s.items()
        ]
    columns = ("Storage", "Stage", "ms per block", "ms per scan", "Share")
    note = (
        "Files, and all stages of the study's storage, are per block read; all else is per block "
        "of the chain."
    )
    return Table("Stages", columns, rows, note)


def _visits_table(split: dict[str, Storage]) -> Table:
    rows = [_visits_row("the study, published", BLOCKS, REFILLS, None, None)]
    rows += [
        _visits_row(_label(one), one.blocks, round(one.refills), round(one.reads), one.hits)
        for one in split.values()
        if one.reads >= 1 and one.refills >= 1
    ]
    columns = (
        *("Storage", "Blocks", "Refills", "Blocks read", "Found in caches"),
        *("V CPU", "V DISK", "D CPU / s", "D DISK / s", "D DELAY / s", "N_opt"),
    )
    return Table("Visits by the caches' counts", columns, rows, digits=4)


def _visits_row(
    label: str, blocks: int, refills: int, reads: int | None, hits: float | None
) -> Sequence[Cell]:
    of = routing(blocks, refills, reads)
    ratios, demanded = visits(of), demands(of)
    network = [Station(name, demand_s) for name, demand_s in demanded.items()]
    return (
        *(label, blocks, refills, round(ratios["disk"]), hits),
        *(round(ratios["cpu"]), round(ratios["disk"])),
        *demanded.values(),
        bounds.optimal_population(network, NETWORK_THINK_S),
    )


def _demands(split: dict[str, Storage]) -> list[Demands]:
    measured = [
        demands_of(split[name], _label(split[name])) for name in (STUDY, OURS) if name in split
    ]
    return [demands_on_the_pi(), *measured]


def _bought_table(split: dict[str, Storage]) -> Table:
    return Table.of(
        "Demands, now and with faster hardware",
        [
            one
            for now in _demands(split)
            for one in (now, now.without_files(), now.with_twice_the_processor())
        ],
        [
            ("Storage", lambda one: one.label),
            ("Blocks", lambda one: one.blocks),
            ("D files / s", lambda one: one.file_s),
            ("D processor / s", lambda one: one.cpu_s),
            ("D / s", lambda one: one.total_s),
            ("Bottleneck", lambda one: one.bottleneck),
            ("X ≤, one at a time / 1/s", lambda one: one.one_at_a_time_per_s),
            ("X ≤, several / 1/s", lambda one: one.several_per_s),
            ("N_opt", lambda one: one.optimal_population),
        ],
    )


def metrics(split: dict[str, Storage]) -> Iterator[Metric]:
    """The demands of storages whose run counts."""
    for name in (STUDY, OURS):
        if name in split and split[name].is_accepted:
            yield Metric(f"demand_files[{name}]", split[name].file_s, "s")
            yield Metric(f"demand[{name}]", split[name].total_s, "s")
