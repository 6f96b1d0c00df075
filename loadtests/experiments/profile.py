"""Profiles a worker of the service while many threads post flights.

py-spy samples a live worker twice, one after the other, under the same load: the thread that holds
Python's lock, which is what Python works on, and once more for a flame graph that a person can
open. Sampling takes time, so nothing is timed here; `bulk-post` does that.

`recordings.csv` has a row for each recording, with the name of its file of stacks; the rows of the
load are as in `loadtests.generation`.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import sleep

from loadtests.experiments.bulk_post import MINE_INTERVAL_S
from loadtests.generation.bulk import LOG, Bulk, kept, posting
from loadtests.grouping import grouped
from loadtests.lab import published, stacks
from loadtests.lab.content import Cell, Figure, Metric, Report, Section, Table
from loadtests.lab.experiment import Experiment, Run
from loadtests.lab.repeated import measured
from loadtests.lab.report.drawing import IN_TURN, Axis, figure
from loadtests.lab.results import Line, Results, ResultsError
from loadtests.lab.sentences import Sentences
from loadtests.machine_samples import cpu_s
from loadtests.models.estimates import Interval, wilson
from loadtests.processes import ProgramFailed, Service, running

CASES = (Bulk("async", 100), Bulk("async", 1000), Bulk("sync", 100), Bulk("commit", 100))
QUICK_CASES = (Bulk("async", 20), Bulk("sync", 20), Bulk("commit", 20))
LOOK_S, QUICK_LOOK_S = 20.0, 2.0
RATE_HZ = 50
SETTLE_S, QUICK_SETTLE_S = 3.0, 1.0
LOCK, GRAPH = "lock", "graph"
LOOKS: Mapping[str, Sequence[str]] = {  # the options of py-spy
    LOCK: ("--format=raw", "--gil"),
    GRAPH: ("--format=flamegraph",),
}
FEW_SAMPLES = 500
RECORDINGS = "recordings"


@dataclass(frozen=True, slots=True)
class RecordingLine(Line):
    """Describes a recording. file: its stacks, or a flame graph. looks: attempts to sample."""

    run: str
    mode: str
    threads: int
    look: str
    file: str
    rate_hz: int
    looks: int
    samples: int
    errors: int


# --- measuring -----------------------------------------------------------------------------------


def measure(run: Run) -> None:
    """Load a service on a new chain for each case, and sample its busiest worker twice."""
    settings = {"mine_interval_s": MINE_INTERVAL_S}
    with run.results.table(RECORDINGS, RecordingLine) as recordings:
        for bulk in run.choose(QUICK_CASES, CASES):
            name = f"{bulk.mode}-{bulk.threads}"
            with (
                running(run.scratch / name, run.log, settings=settings) as service,
                posting(service, bulk, run.options.seed, run.results.folder / LOG) as load,
            ):
                worker = _busiest_worker(service, run.choose(QUICK_SETTLE_S, SETTLE_S))
                for look in LOOKS:
                    load.require_alive()
                    run.say(f"{name}: sampling, {look}")
                    recordings.add(_record(run, worker, bulk, name, look))
                load.end()
                kept(load, bulk, name, run.results.folder)


def _record(run: Run, worker: int, bulk: Bulk, name: str, look: str) -> RecordingLine:
    file = f"{name}-{look}.{'svg' if look == GRAPH else 'txt'}"
    path, duration_s = run.results.folder / file, run.choose(QUICK_LOOK_S, LOOK_S)
    counts = stacks.record(worker, path, *LOOKS[look], rate_hz=RATE_HZ, duration_s=duration_s)
    looks = RATE_HZ * round(duration_s)
    return RecordingLine(name, bulk.mode, bulk.threads, look, file, RATE_HZ, looks, *counts)


def _busiest_worker(service: Service, settle_s: float) -> int:
    """Return the id of the worker that uses the processor most for a time (s)."""
    before_s = _workers_s(service)
    sleep(settle_s)
    spent_s = {pid: used_s - before_s.get(pid, 0) for pid, used_s in _workers_s(service).items()}
    if not spent_s:
        raise ProgramFailed("the service has no worker to sample")
    return max(spent_s, key=spent_s.__getitem__)


def _workers_s(service: Service) -> Mapping[int, float]:
    """Return the processor seconds of each worker until now, by its id."""
    return cpu_s(member.pid for member in service.memory() if member.role == "worker")


# --- analysing -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Profile:
    """Holds the shares of activities in a case."""

    case: str  # its mode and threads, in words
    work: Mapping[str, float]  # of the samples in which a thread held Python's lock
    work_samples: int
    held: float  # of the attempts to sample, those that found the lock held
    graph: str | None  # file of the flame graph

    @property
    def largest(self) -> list[tuple[str, float]]:
        return [(name, share) for name, share in self.work.items() if name != stacks.OTHER][:3]

    def share(self, *activities: str) -> "Share":
        """Estimate the share of these activities together in the time in which Python works.

        Its interval is as if samples were independent.
        """
        value = sum(self.work.get(name, 0.0) for name in activities)
        low, high = wilson(self.work_samples * value, self.work_samples)
        return Share(value, high - value, self.work_samples, low, high)


@dataclass(frozen=True, slots=True)
class Share(Interval):
    """Estimates a share, by an interval that is not symmetric."""

    low: float = 0.0
    high: float = 1.0


def analyse(results: Results) -> Report:
    """Make the report from the files of stacks. Raises ResultsError if no case has all it needs."""
    sentences, profiles = Sentences("profile"), list(_profiles(results))
    if not profiles:
        raise ResultsError(f"{results.folder} has no case with stacks of Python's lock")
    sections = [
        Section(
            "What Python works on",
            sentences("work", other=stacks.OTHER, rate_hz=RATE_HZ),
            [_work_figure(profiles)],
        ),
        Section("Comparison with the study", sentences("study"), [_study_table(profiles)]),
        Section(
            "Flame graphs",
            ["Open one in a browser: a click enlarges a frame. They load no other files."],
            links=[(profile.graph, profile.case) for profile in profiles if profile.graph],
        ),
    ]
    findings = sentences(
        "findings",
        profiles=profiles,
        nearest=_NEAREST,
        published=published.ACTIVITIES,
        unknown=max(profile.share(stacks.OTHER).estimate for profile in profiles),
        few=FEW_SAMPLES,
    )
    return Report(findings, sections, list(_metrics(profiles)))


def _profiles(results: Results) -> Iterator[Profile]:
    for lines in grouped(results.lines(RECORDINGS, RecordingLine), lambda line: line.run).values():
        by_look = {line.look: line for line in lines}
        line = by_look.get(LOCK)
        held = _stacks(results.file(line.file)) if line else None
        if not line or not held:
            continue
        yield Profile(
            f"{line.mode}, {line.threads} threads",
            stacks.shares(held, stacks.WORK),
            held.total(),
            held.total() / line.looks,
            by_look[GRAPH].file if GRAPH in by_look else None,
        )


def _stacks(path: Path) -> Counter[stacks.Frames]:
    try:
        return stacks.stacks(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        raise ResultsError(f"{path} cannot be read: {problem}") from problem


def _work_figure(profiles: Sequence[Profile]) -> Figure:
    """Draw the share of each activity in each case, those of large shares first."""
    total = {a: sum(p.share(a).estimate for p in profiles) for p in profiles for a in p.work}
    names = sorted(total, key=lambda name: (name == stacks.OTHER, -total[name], name))
    series = [
        measured(p.case, source, names, list(map(p.share, names)), factor=100, shape="rows")
        for p, source in zip(profiles, IN_TURN, strict=False)
    ]
    rows: list[Sequence[Cell]] = [
        (name, *(100 * p.share(name).estimate for p in profiles)) for name in names
    ]
    rows += [
        ("samples", *(f"{profile.work_samples:,}" for profile in profiles)),
        ("samples with the lock held (%)", *(100 * profile.held for profile in profiles)),
    ]
    columns = ("Activity", *(f"{profile.case} (%)" for profile in profiles))
    table = Table("Shares of the time in which Python works", columns, rows)
    caption = (
        f"Shares by mode and threads; the largest is {names[0]}. Lines are 95 % intervals, as if "
        "samples were independent, which they are not quite."
    )
    return figure("What Python works on", caption, Axis("share / %"), Axis(""), series, table)


_NEAREST: Mapping[str, tuple[str, Sequence[str]]] = {
    "Crypto-conditions validation": ("canonical bytes and hash", [stacks.HASHING]),
    "MongoDB queries": ("mempool and duplicates", stacks.MEMPOOL),
    "Schema validation": ("validation", [stacks.VALIDATION]),
    "An extra deep copy": ("none", []),
    "Mining": ("none, as another process does it", []),
}
"""An action of the study -> the nearest of ours."""


def _study_table(profiles: Sequence[Profile]) -> Table:
    rows: list[list[Cell]] = []
    for action, percent in published.ACTIVITIES.items():
        nearest, activities = _NEAREST[action]
        ours = [100 * p.share(*activities).estimate if activities else None for p in profiles]
        rows.append([action, percent, nearest, *ours])
    cases = (f"{profile.case} (%)" for profile in profiles)
    columns = ("The study's action", "Study (%)", "Nearest of ours", *cases)
    note = "The study sampled BigchainDB 2.0.0a6 on Python 3.6 with Pyflame; ours is with py-spy."
    return Table("Shares of study 002 and of this service", columns, rows, note)


def _metrics(profiles: Sequence[Profile]) -> Iterator[Metric]:
    for profile in profiles:
        for name in (stacks.VALIDATION, stacks.HASHING, *stacks.MEMPOOL, stacks.OTHER):
            yield Metric.of_amount(f"share[{profile.case}, {name}]", profile.share(name))


EXPERIMENT = Experiment.described("profile", "002", measure, analyse)
