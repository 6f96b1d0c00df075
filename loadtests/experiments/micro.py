"""Times 100,000 round trips and 100,000 validations as whole processes, as study 002 did.

`python -m loadtests.in_process.repetition` has the service's own code in a process of its own, so
that this module need not import it, and what a Python programmer would write without us: the
standard json, and the package jsonschema with the schema that the service publishes. All use the
same flights, which the service itself has made, and are timed from outside.

Tables: `processes.csv` has a row for each process; `runs.csv`, whether the machine was quiet then.
"""

import json
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from itertools import product
from pathlib import Path
from statistics import median
from typing import NamedTuple

from loadtests.generation.rules import Facts, judge
from loadtests.grouping import grouped
from loadtests.lab import published
from loadtests.lab.content import Figure, Report, Section, Table
from loadtests.lab.experiment import Experiment, Mode, Run
from loadtests.lab.repeated import Estimate, accepted_by_run, estimate
from loadtests.lab.report.drawing import Axis, Series, Source, figure
from loadtests.lab.results import Line, Results, ResultsError
from loadtests.lab.sentences import Sentences
from loadtests.machine import moment
from loadtests.processes import backend, finished, plain_environment, running
from loadtests.questions import all_blocks, as_sent

REPEATS, QUICK_REPEATS, LEAST_REPEATS = 5, 3, 3
TIMES = published.REPEATED_TIMES
FLIGHTS = 1000  # number of different flights, which programs take again and again
PROCESSES, RUNS = "processes", "runs"
ROUND_TRIPS, VALIDATIONS = "round trips", "validations"
TRANSACTIONS, POSTED, SCHEMA = "transactions.ndjson", "flights.ndjson", "schema.json"
_PROGRAM = "loadtests.in_process.repetition"


@dataclass(frozen=True, slots=True)
class Program:
    """A way to do a task. told: its name in reports.

    quick_times: how often it does its task in a quick run, from which slow programs are
    extrapolated. files: its input, and what else it needs.
    """

    name: str
    told: str
    task: str
    quick_times: int
    files: tuple[str, ...]

    def command(self, folder: Path, times: int) -> list[str]:
        """The command line that does the task so often, with files in `folder`."""
        task, (file, *more) = self.task.replace(" ", "-"), (str(folder / one) for one in self.files)
        return [sys.executable, "-m", _PROGRAM, task, self.name, file, str(times), *more]


PROGRAMS = (
    Program("ours", "the service", ROUND_TRIPS, TIMES, (TRANSACTIONS,)),
    Program("json", "json of Python", ROUND_TRIPS, 20_000, (TRANSACTIONS,)),
    Program("ours", "the service", VALIDATIONS, TIMES, (POSTED,)),
    Program("jsonschema", "jsonschema 4.26", VALIDATIONS, 2_000, (POSTED, SCHEMA)),
)


@dataclass(frozen=True, slots=True)
class ProcessLine(Line):
    """A process. program: its task and name. times: how often it did the task; 0: only started."""

    run: str
    program: str
    times: int
    repeat: int
    wall_s: float
    user_s: float
    sys_s: float


# --- measuring -----------------------------------------------------------------------------------


def measure(run: Run) -> None:
    """Make the flights, then time all programs in turns: the start alone, and the whole task."""
    folder, log = run.results.folder, run.log
    make_inputs(folder, run.scratch / "chain", run.options.seed, log)
    repeats = run.options.reps or run.choose(QUICK_REPEATS, REPEATS)
    with (
        run.results.table(PROCESSES, ProcessLine) as processes,
        run.results.table(RUNS, ("run", "accepted", "reasons", "foreign_cpu")) as runs,
    ):
        for repeat, program in product(range(1, repeats + 1), PROGRAMS):
            run.say(f"{program.task}, {program.told}: {repeat} of {repeats}")
            for count in (0, run.choose(program.quick_times, TIMES)):
                before = moment(None)
                _, took = finished(program.command(folder, count), plain_environment(), log)
                foreign_cpu = before.until(moment(None)).foreign_cores
                name = f"{program.task.replace(' ', '-')}-{program.name}-{count}-{repeat}"
                what = f"{program.task} {program.name}"
                processes.add(ProcessLine(name, what, count, repeat, *astuple(took)))
                verdict = judge(Facts(requests=1, failed=0, foreign_cpu=foreign_cpu))
                told = {"accepted": verdict.accepted, "reasons": verdict.reasons}
                runs.write(run=name, **told, foreign_cpu=foreign_cpu)


def make_inputs(folder: Path, chain: Path, seed: int, log: Path) -> None:
    """Generate flights in a new `chain`, and write them and the service's schema into `folder`.

    One file has transactions in canonical bytes (RFC 8785, for integers, strings and null), another
    has flights as they are posted, with their fields in the usual order.
    """
    backend(chain, "import", "--generate", str(FLIGHTS), "--seed", str(seed), log=log)
    with running(chain, log) as service:
        found = [flight for block in all_blocks(service) for flight in block]
        schema = service.get("/openapi.json")["components"]["schemas"]["Flight"]
    for name, records, is_sorted in (
        (TRANSACTIONS, found, True),
        (POSTED, map(as_sent, found), False),
    ):
        encoder = json.JSONEncoder(ensure_ascii=False, sort_keys=is_sorted, separators=(",", ":"))
        lines = "".join(f"{encoder.encode(record)}\n" for record in records)
        (folder / name).write_text(lines, encoding="utf-8")
    (folder / SCHEMA).write_text(json.dumps(schema, indent=1), encoding="utf-8")


# --- analysing -----------------------------------------------------------------------------------


class Task(NamedTuple):
    """How a task is reported. printed: seconds of whole programs by the study, its Python first."""

    title: str
    printed: Mapping[str, float]
    go_s: float  # of the study's Go, to compare with


_SERIALISATION, _VALIDATION = published.SERIALISATION, published.SCHEMA_VALIDATION
_GO_VALIDATION_S = _VALIDATION.python_s / published.SCHEMA_GO_TIMES_FASTER
TASKS = {
    ROUND_TRIPS: Task(
        "Serialising and parsing",
        {"the study's Python": _SERIALISATION.python_s, "the study's Go": _SERIALISATION.go_s},
        _SERIALISATION.go_s,
    ),
    VALIDATIONS: Task(
        "Validating",
        {
            "the study's Python": _VALIDATION.python_s,
            "the study's Go, as printed": _VALIDATION.go_s,
            "the study's Go, as its text says": _GO_VALIDATION_S,
        },
        _GO_VALIDATION_S,
    ),
}


@dataclass(frozen=True, slots=True)
class Measured:
    """The processes of a program. counted: those that count. made: their number in all.

    start_s: median wall time of the start alone. is_disturbed: the machine was quiet for too few
    processes, so all of them count. walls_s: wall times for as many repetitions as in the study; if
    there were fewer, the time beyond the start is extrapolated.
    """

    program: Program
    counted: list[ProcessLine]
    made: int
    start_s: float
    is_disturbed: bool
    walls_s: list[float]

    @property
    def median_s(self) -> float:
        """The median of `walls_s`."""
        return median(self.walls_s)

    @property
    def processor_s(self) -> float:
        """The median of the processor time."""
        return median(one.user_s + one.sys_s for one in self.counted)

    @property
    def mean(self) -> Estimate:
        """The mean of `walls_s`, without an interval for a single process."""
        return estimate(self.walls_s)


def analyse(results: Results) -> Report:
    """Make the report from `processes.csv` and `runs.csv`."""
    sentences, found = Sentences("micro"), {task: _measured(results, task) for task in TASKS}
    every = [one for some in found.values() for one in some]
    sections = [
        Section(TASKS[task].title, sentences(task.replace(" ", "_")), [_figure(task, some)])
        for task, some in found.items()
    ]
    note = sentences.one("processes")
    sections.append(Section("Every process", parts=[_processes(every, note)]))
    metrics = [
        one.mean.metric(f"wall_per_100000[{one.program.task}, {one.program.name}]", "s")
        for one in every
        if not one.is_disturbed
    ]
    return Report(sentences("findings", measured=found, tasks=TASKS), sections, metrics)


def _measured(results: Results, task: str) -> list[Measured]:
    lines = grouped(results.lines(PROCESSES, ProcessLine), lambda line: line.program)
    is_quiet = accepted_by_run(results)
    found = []
    for program in (program for program in PROGRAMS if program.task == task):
        own = lines.get(f"{task} {program.name}", [])
        starts, works = _split(own)
        if not works:
            continue
        quiet_starts, quiet_works = _split([line for line in own if is_quiet[line.run]])
        made, is_disturbed = len(works), len(quiet_works) < LEAST_REPEATS or not quiet_starts
        if not is_disturbed:
            starts, works = quiet_starts, quiet_works
        start_s, factor = median(one.wall_s for one in starts), TIMES / works[0].times
        walls_s = [one.wall_s for one in works]
        if factor != 1:
            walls_s = [start_s + factor * max(0.0, wall_s - start_s) for wall_s in walls_s]
        found.append(Measured(program, works, made, start_s, is_disturbed, walls_s))
    if not found:
        raise ResultsError(f"{results.folder} has no process that did {task}")
    return found


def _split(lines: Sequence[ProcessLine]) -> tuple[list[ProcessLine], list[ProcessLine]]:
    """The processes that only started, and those that worked."""
    return [one for one in lines if not one.times], [one for one in lines if one.times]


class Compared(NamedTuple):
    """A line of a comparison. source: where it is from; `bound` if the machine was too busy."""

    name: str
    seconds: float
    processes: str
    source: Source


def _compared(task: str, found: Sequence[Measured]) -> list[Compared]:
    """What the study printed and what was measured here, the slowest first."""
    compared = [
        Compared(name, printed_s, "one, on the study's machine", "study")
        for name, printed_s in TASKS[task].printed.items()
    ]
    for one in found:
        told = f"median of {len(one.counted)}" + ", disturbed" * one.is_disturbed
        source: Source = "bound" if one.is_disturbed else "ours"
        compared.append(Compared(one.program.told, one.median_s, told, source))
    return sorted(compared, key=lambda one: -one.seconds)


def _table(task: str, found: Sequence[Measured]) -> Table:
    note = "Times are wall times of the whole process, including its start."
    for one in found:
        if (times := one.counted[0].times) != TIMES:
            note += f" {one.program.told}: measured with {times:,} and extrapolated."
    return Table.of(
        f"100,000 {task}",
        _compared(task, found),
        [
            ("Program", lambda one: one.name),
            ("s per 100,000", lambda one: one.seconds),
            ("µs each", lambda one: one.seconds / TIMES * 1e6),
            ("times the study's Go", lambda one: one.seconds / TASKS[task].go_s),
            ("times ours", lambda one: one.seconds / found[0].median_s),
            ("Processes", lambda one: one.processes),
        ],
        note,
    )


def _figure(task: str, found: Sequence[Measured]) -> Figure:
    compared = _compared(task, found)
    names, seconds = [one.name for one in compared], [one.seconds for one in compared]
    sources: dict[Source, str] = {
        "ours": "measured here",
        "study": "printed by the study",
        "bound": "rejected",
    }
    series = [
        Series(
            name,
            source,
            names,
            [one.seconds if one.source == source else None for one in compared],
            shape="rows",
        )
        for source, name in sources.items()
        if any(one.source == source for one in compared)
    ]
    limits = (10.0 ** math.floor(math.log10(min(seconds))), 1.2 * max(seconds))
    fastest = min((one for one in compared if one.source != "bound"), key=lambda one: one.seconds)
    told = f"The scale is logarithmic. The fastest is {fastest.name} with {fastest.seconds:.3g} s."
    x = Axis("s per 100,000", is_logarithmic=True, limits=limits)
    return figure(f"100,000 {task}", told, x, Axis(""), series, _table(task, found))


def _processes(every: Sequence[Measured], note: str) -> Table:
    return Table.of(
        "Whole processes, timed as by `time`",
        every,
        [
            ("Program", lambda one: f"{one.program.task}, {one.program.told}"),
            ("Times", lambda one: f"{one.counted[0].times:,}"),
            ("Counted", lambda one: f"{len(one.counted)} of {one.made}"),
            ("Least wall (s)", lambda one: min(each.wall_s for each in one.counted)),
            ("Median wall (s)", lambda one: median(each.wall_s for each in one.counted)),
            ("± of the mean (s)", lambda one: one.mean.half_width),
            ("User (s)", lambda one: median(each.user_s for each in one.counted)),
            ("Sys (s)", lambda one: median(each.sys_s for each in one.counted)),
            ("Start alone (s)", lambda one: one.start_s),
        ],
        note,
    )


EXPERIMENT = Experiment(
    name="micro",
    study="002",
    title="Serialising and validating 100,000 times",
    reproduces="the benchmarks of serialisation and schema validation",
    about="This experiment compares the time that one transaction takes in the service's own code "
    "with the usual ways in Python and with the study's figures.",
    modes=(Mode.REAL,),
    measure=measure,
    analyse=analyse,
)
