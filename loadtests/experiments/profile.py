"""Profiles a worker of the service while many threads post flights: shares and flame graphs.

py-spy samples a live worker three times, one after the other, under the same load: the thread that
holds Python's lock (what Python works on), all threads (what requests wait for), and once more for
a flame graph that a person can open. Sampling takes time, so nothing is timed here; `bulk-post`
does that.

Tables: `recordings.csv` has a row for each recording, with the name of its file of stacks;
`roles.csv` has the processor time of the service's processes meanwhile; the rows of the load are as
in `loadtests.generation`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import monotonic, sleep

from loadtests.generation.bulk import LOG, Bulk, Load, kept, posting
from loadtests.generation.samples import cpu_s
from loadtests.grouping import grouped
from loadtests.lab import published, stacks
from loadtests.lab.experiment import Experiment, Mode, Run
from loadtests.lab.report.content import Cell, Figure, Link, Metric, Report, Section, Table
from loadtests.lab.report.drawing import Axis, Series, Source, figure
from loadtests.lab.results import Line, Results, ResultsError, TableWriter
from loadtests.lab.stacks import Recording, record
from loadtests.models.estimates import wilson
from loadtests.processes import ProgramFailed, Service, running

CASES = (Bulk("async", 100), Bulk("async", 1000), Bulk("sync", 100), Bulk("commit", 100))
QUICK_CASES = (Bulk("async", 20), Bulk("sync", 20), Bulk("commit", 20))
LOOK_S, QUICK_LOOK_S = 20.0, 2.0
RATE_HZ = 50
SETTLE_S, QUICK_SETTLE_S = 3.0, 1.0
MINE_INTERVAL_S = 0.5
LOCK, ALL, GRAPH = "lock", "all", "graph"
LOOKS = {
    LOCK: ("raw", "lock", "txt"),
    ALL: ("raw", "all", "txt"),
    GRAPH: ("flamegraph", "running", "svg"),
}
AT_WORK = "at work, or waiting for Python's lock"
FEW_SAMPLES = 500
RECORDINGS, ROLES = "recordings", "roles"


@dataclass(frozen=True, slots=True)
class RecordingLine(Line):
    """A recording of a case. file: its stacks, or a flame graph. looks: attempts to sample."""

    run: str
    mode: str
    threads: int
    look: str
    file: str
    rate_hz: int
    looks: int
    samples: int
    errors: int


_SOURCES: tuple[Source, ...] = ("ours", "second", "third", "model")
# --- measuring -----------------------------------------------------------------------------------


def measure(run: Run) -> None:
    """Load a service on a new chain for each case, and sample its busiest worker three times."""
    cases = run.choose(QUICK_CASES, CASES)
    with (
        run.results.table(RECORDINGS, RecordingLine) as recordings,
        run.results.table(ROLES, ("run", "role", "cpu_s", "wall_s")) as roles,
    ):
        for bulk in cases:
            name = f"{bulk.mode}-{bulk.threads}"
            settings = {"mine_interval_s": MINE_INTERVAL_S}
            with (
                running(run.scratch / name, run.log, settings=settings) as service,
                posting(service, bulk, run.options.seed, run.results.folder / LOG) as load,
            ):
                _look(run, service, load, bulk, recordings, roles)
                load.end()
                kept(load, bulk, name, run.results.folder)


def _look(
    run: Run,
    service: Service,
    load: Load,
    bulk: Bulk,
    recordings: TableWriter,
    roles: TableWriter,
) -> None:
    name = f"{bulk.mode}-{bulk.threads}"
    before = _used_s(service)
    sleep(run.choose(QUICK_SETTLE_S, SETTLE_S))
    worker = _busiest_worker(service, before)
    before, start_s = _used_s(service), monotonic()
    for look in LOOKS:
        load.require_alive()
        run.say(f"{name}: sampling, {look}")
        file, found = _recorded(run, worker, name, look)
        sizes = RATE_HZ, found.looks, found.samples, found.errors
        recordings.add(RecordingLine(name, bulk.mode, bulk.threads, look, file, *sizes))
    wall_s = monotonic() - start_s
    for (role, pid), used_s in _used_s(service).items():
        spent_s = used_s - before.get((role, pid), 0.0)
        is_sampled = " (sampled)" * (pid == worker)
        roles.write(run=name, role=f"{role}{is_sampled}", cpu_s=spent_s, wall_s=wall_s)


def _recorded(run: Run, worker: int, name: str, look: str) -> tuple[str, Recording]:
    form, threads, suffix = LOOKS[look]
    file = f"{name}-{look}.{suffix}"
    duration_s = run.choose(QUICK_LOOK_S, LOOK_S)
    path = run.results.folder / file
    return file, record(
        worker, path, form=form, rate_hz=RATE_HZ, duration_s=duration_s, threads=threads
    )


def _used_s(service: Service) -> dict[tuple[str, int], float]:
    """Processor seconds of each process of the service so far, by its role and id."""
    members = service.memory()
    used_s = cpu_s(member.pid for member in members)
    return {(one.role, one.pid): used_s[one.pid] for one in members if one.pid in used_s}


def _busiest_worker(service: Service, before: Mapping[tuple[str, int], float]) -> int:
    used_s = {
        pid: seconds - before.get((role, pid), 0.0)
        for (role, pid), seconds in _used_s(service).items()
        if role == "worker"
    }
    if not used_s:
        raise ProgramFailed("the service has no worker to sample")
    return max(used_s, key=lambda pid: used_s[pid])


# --- analysing -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Profile:
    """The shares of activities in one case.

    work: shares of the samples in which a thread held Python's lock; waits: shares of those of all
    threads. held: share of the attempts to sample that found the lock held.
    """

    run: str
    mode: str
    threads: int
    work: Mapping[str, float]
    work_samples: int
    waits: Mapping[str, float]
    held: float
    graph: str | None

    @property
    def label(self) -> str:
        """The name of the case in tables."""
        return f"{self.mode}, {self.threads}"

    def share(self, *activities: str) -> float:
        """The share of these activities together in the time in which Python works."""
        return sum(self.work.get(name, 0.0) for name in activities)

    def interval(self, *activities: str) -> tuple[float, float]:
        """The 95 % interval of `share`, as if samples were independent."""
        return wilson(self.work_samples * self.share(*activities), self.work_samples)


def analyse(results: Results) -> Report:
    """Make the report from the files of stacks. Raises ResultsError if no case has all it needs."""
    profiles = _profiles(results)
    if not profiles:
        raise ResultsError(f"{results.folder} has no case with stacks of both recordings")
    sections = [
        Section("What Python works on", _WORK_TOLD.split("\n\n"), [_work_figure(profiles)]),
        Section("Comparison with the study", _STUDY_TOLD.split("\n\n"), [_study_table(profiles)]),
        Section("What requests wait for", [_WAITS_TOLD], [_waits_table(profiles)]),
        Section("The processes", [_ROLES_TOLD], [_roles_table(results)]),
        Section(
            "Flame graphs",
            ["Open one in a browser: a click enlarges a frame. They load no other files."],
            links=[
                Link(profile.graph, f"mode={profile.mode}, {profile.threads} threads")
                for profile in profiles
                if profile.graph
            ],
        ),
    ]
    return Report(_findings(profiles), sections, _metrics(profiles))


_WORK_TOLD = f"""\
Shares of the samples in which a thread held Python's lock. A sample counts as the activity of its
innermost frame that matches a pattern (loadtests/lab/stacks.py), so the work of C code and
libraries belongs to the function of ours that called them. Samples that match no pattern are
“{stacks.OTHER}”.

As in the study, shares are lower bounds. They come from {RATE_HZ} samples per second of one worker.
Threads pass the lock on only at certain places of the code, and a thread that has the lock but no
processor is seen there, so on a busy machine such places get too large a share. Shares do not tell
speed; bulk-post measures that."""

_STUDY_TOLD = """\
The study's shares are those of BigchainDB's process (mode=async, 100 threads), summed from its
flame graph. The activities are not the same: flights have no signatures, so the validation of
crypto-conditions is compared with the work that protects our content, the canonical bytes and their
hash, and MongoDB is compared with the mempool. Ours are shares of the time in which Python worked.

Blocks are made by another process, which is not sampled; its processor time is shown below."""

_WAITS_TOLD = """\
Shares of all threads of the worker, including waiting ones. A waiting thread is known by its
innermost frame. All others work or want to: from outside, a thread that waits for Python's lock
looks like one at work."""
_ROLES_TOLD = "Processor time of each process of the service during the recordings."


def _profiles(results: Results) -> list[Profile]:
    found = []
    for name, made in grouped(results.lines(RECORDINGS, RecordingLine), lambda r: r.run).items():
        of = {line.look: line for line in made}
        if LOCK not in of or ALL not in of:
            continue
        held, threads = (_stacks(results, of[look]) for look in (LOCK, ALL))
        samples = sum(stack.count for stack in held)
        if not samples:
            continue
        waits = {
            AT_WORK if activity == stacks.OTHER else activity: share
            for activity, share in stacks.shares(threads, stacks.WAITS).items()
        }
        found.append(
            Profile(
                name,
                of[LOCK].mode,
                of[LOCK].threads,
                stacks.shares(held, stacks.WORK),
                samples,
                waits,
                samples / of[LOCK].looks,
                of[GRAPH].file if GRAPH in of else None,
            )
        )
    return found


def _stacks(results: Results, line: RecordingLine) -> list[stacks.Stack]:
    path = results.folder / line.file
    try:
        return stacks.stacks(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        raise ResultsError(f"{path} cannot be read: {problem}") from problem


def _work_figure(profiles: Sequence[Profile]) -> Figure:
    names = _by_size([profile.work for profile in profiles])
    series = [
        Series(
            profile.label,
            source,
            names,
            [100 * profile.share(name) for name in names],
            [100 * profile.interval(name)[0] for name in names],
            [100 * profile.interval(name)[1] for name in names],
            shape="rows",
        )
        for profile, source in zip(profiles, _SOURCES, strict=False)
    ]
    rows: list[list[Cell]] = [
        [name, *(100 * profile.share(name) for profile in profiles)] for name in names
    ]
    rows.append(["samples", *(f"{profile.work_samples:,}" for profile in profiles)])
    rows.append(["samples with the lock held (%)", *(100 * p.held for p in profiles)])
    columns = ("Activity", *(f"{profile.label} (%)" for profile in profiles))
    table = Table("Shares of the time in which Python works", columns, rows)
    told = (
        f"Shares by mode and threads; the largest is {names[0]}. Lines are 95 % intervals, as if "
        "samples were independent, which they are not quite."
    )
    return figure("What Python works on", told, Axis("share / %"), Axis(""), series, table)


def _by_size(of: Sequence[Mapping[str, float]]) -> list[str]:
    names = {name for shares in of for name in shares}
    total = {name: sum(shares.get(name, 0.0) for shares in of) for name in names}
    return sorted(names, key=lambda name: (name == stacks.OTHER, -total[name], name))


_NEAREST: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "Crypto-conditions validation": ("canonical bytes and hash", (stacks.HASHING,)),
    "MongoDB queries": ("mempool, and looking for duplicates", stacks.MEMPOOL),
    "Schema validation": ("validation of the flight", (stacks.VALIDATION,)),
    "An extra deep copy": ("none", ()),
    "Mining": ("none, as another process does it", ()),
}


def _study_table(profiles: Sequence[Profile]) -> Table:
    rows: list[list[Cell]] = []
    for action, percent in published.ACTIVITIES.items():
        told, activities = _NEAREST[action]
        ours = [100 * profile.share(*activities) if activities else None for profile in profiles]
        rows.append([action, percent, told, *ours])
    columns = (
        "The study's action",
        "Study (%)",
        "Nearest of ours",
        *(f"{p.label} (%)" for p in profiles),
    )
    note = "The study sampled BigchainDB 2.0.0a6 on Python 3.6 with Pyflame; ours is with py-spy."
    return Table("Shares of study 002 and of this service", columns, rows, note)


def _waits_table(profiles: Sequence[Profile]) -> Table:
    names = _by_size([profile.waits for profile in profiles])
    rows: list[list[Cell]] = [
        [name, *(100 * profile.waits.get(name, 0.0) for profile in profiles)] for name in names
    ]
    columns = ("Threads", *(f"{profile.label} (%)" for profile in profiles))
    return Table("Shares of the time of all threads of the worker", columns, rows)


def _roles_table(results: Results) -> Table:
    rows: list[list[Cell]] = [
        [row["run"], row["role"], float(row["cpu_s"]) / float(row["wall_s"])]
        for row in results.rows(ROLES)
    ]
    return Table("Processor time (cores)", ("Case", "Process", "Cores"), rows)


def _findings(profiles: Sequence[Profile]) -> list[str]:
    findings = []
    for profile in profiles:
        largest = [
            f"{name} ({100 * share:.0f} %)"
            for name, share in profile.work.items()
            if name != stacks.OTHER
        ][:3]
        findings.append(
            f"mode={profile.mode}, {profile.threads} threads: Python's lock was held in "
            f"{100 * profile.held:.0f} % of the samples, mostly for: {', '.join(largest)}."
        )
    findings += [_beside_study(profile) for profile in profiles]
    unknown = max(profile.share(stacks.OTHER) for profile in profiles)
    findings.append(f"At most {100 * unknown:.1f} % of a case is of no known activity: “other”.")
    if few := [profile.label for profile in profiles if profile.work_samples < FEW_SAMPLES]:
        findings.append(
            f"Shares from fewer than {FEW_SAMPLES} samples are rough: {'; '.join(few)}."
        )
    return findings


def _beside_study(profile: Profile) -> str:
    parts = []
    for told, activities, action in (
        ("validation", (stacks.VALIDATION,), "Schema validation"),
        ("canonical bytes and hash", (stacks.HASHING,), "Crypto-conditions validation"),
        ("mempool and duplicates", stacks.MEMPOOL, "MongoDB queries"),
    ):
        low, high = profile.interval(*activities)
        parts.append(
            f"{told} {100 * profile.share(*activities):.1f} % ({100 * low:.1f} to "
            f"{100 * high:.1f}; in the study {action} {published.ACTIVITIES[action]:g} %)"
        )
    return f"mode={profile.mode}, {profile.threads} threads: {', '.join(parts)}."


def _metrics(profiles: Sequence[Profile]) -> list[Metric]:
    metrics = []
    for profile in profiles:
        for name in (stacks.VALIDATION, stacks.HASHING, *stacks.MEMPOOL, stacks.OTHER):
            low, high = profile.interval(name)
            label = f"share[{profile.label} threads, {name}]"
            metrics.append(Metric(label, profile.share(name), "", low, high))
    return metrics


EXPERIMENT = Experiment(
    name="profile",
    study="002",
    title="What a worker does while flights are posted",
    reproduces="the flame graphs and the table of shares",
    about="This experiment makes flame graphs of a live worker in each mode of an answer, and "
    "compares the shares of its activities with those of BigchainDB.",
    modes=(Mode.REAL,),
    measure=measure,
    analyse=analyse,
)
