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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass
from itertools import product
from pathlib import Path
from statistics import median
from typing import NamedTuple

from loadtests.generation.rules import Facts
from loadtests.generation.run import RunRecord, judge_run
from loadtests.grouping import grouped
from loadtests.lab import published
from loadtests.lab.content import Figure, Report, Section, Table
from loadtests.lab.experiment import Experiment, Run
from loadtests.lab.repeated import (
    Estimate,
    Repeated,
    accepted,
    accepted_by_run,
    rejected_told,
)
from loadtests.lab.report.drawing import Axis, Series, Source, figure
from loadtests.lab.results import Line, Results, ResultsError
from loadtests.lab.sentences import Sentences
from loadtests.machine import moment
from loadtests.processes import backend, finished, plain_environment, running
from loadtests.questions import all_blocks, as_sent

REPEATS, QUICK_REPEATS = 5, 3
TIMES = published.REPEATED_TIMES
FLIGHTS = 1000  # number of different flights, which programs take again and again
PROCESSES = "processes"
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

    @property
    def key(self) -> str:
        """What it is called in the table: its task and name."""
        return f"{self.task} {self.name}"

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
    with run.results.table(PROCESSES, ProcessLine) as processes:
        for repeat, program in product(range(1, repeats + 1), PROGRAMS):
            run.say(f"{program.task}, {program.told}: {repeat} of {repeats}")
            for count in (0, run.choose(program.quick_times, TIMES)):
                before = moment(None)
                _, took = finished(program.command(folder, count), plain_environment(), log)
                foreign_cpu = before.until(moment(None)).foreign_cores
                name = f"{program.task.replace(' ', '-')}-{program.name}-{count}-{repeat}"
                processes.add(ProcessLine(name, program.key, count, repeat, *astuple(took)))
                record = RunRecord(name, "process", (), (), None, 0.0)
                judge_run(folder, record, Facts(requests=1, failed=0, foreign_cpu=foreign_cpu))


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
class Process:
    """A process that did its task. start_s: median wall time of the start of its program alone."""

    line: ProcessLine
    start_s: float
    is_accepted: bool

    @property
    def wall_s(self) -> float:
        """The wall time for as many repetitions as in the study.

        If there were fewer, the time beyond the start is extrapolated.
        """
        line, factor = self.line, TIMES / self.line.times
        if factor == 1:
            return line.wall_s
        return self.start_s + factor * max(0.0, line.wall_s - self.start_s)


@dataclass(frozen=True)
class Timed(Repeated[Process]):
    """The processes of a program."""

    @property
    def program(self) -> Program:
        """What they ran."""
        return next(one for one in PROGRAMS if one.key == self.runs[0].line.program)

    @property
    def times(self) -> int:
        """How often each did its task."""
        return self.runs[0].line.times

    def median(self, value: Callable[[Process], float]) -> float:
        """The median of a value of them."""
        return median(map(value, self.runs))

    @property
    def median_s(self) -> float:
        """The median of the wall times."""
        return self.median(lambda one: one.wall_s)

    @property
    def processor_s(self) -> float:
        """The median of the processor time."""
        return self.median(lambda one: one.line.user_s + one.line.sys_s)

    @property
    def mean(self) -> Estimate:
        """The mean of the wall times."""
        return self.over(lambda one: one.wall_s)


def analyse(results: Results) -> Report:
    """Make the report from `processes.csv` and `runs.csv`."""
    sentences, every = Sentences("micro"), timed(results)
    found = grouped(every, lambda one: one.program.task)
    if missing := [task for task in TASKS if task not in found]:
        raise ResultsError(f"{results.folder} has no process that did {missing[0]}")
    sections = [
        Section(TASKS[task].title, sentences(task.replace(" ", "_")), [_figure(task, some)])
        for task, some in found.items()
    ]
    note = sentences.one("processes")
    sections.append(Section("Every process", parts=[_processes(every, note)]))
    metrics = [
        one.mean.metric(f"wall_per_100000[{one.program.task}, {one.program.name}]", "s")
        for one in accepted(every)
    ]
    findings = sentences("findings", measured=found, tasks=TASKS)
    return Report([*findings, *rejected_told(every, "programs")], sections, metrics)


def timed(results: Results) -> list[Timed]:
    """The programs that did their tasks, in their order."""
    is_accepted = accepted_by_run(results)
    lines = grouped(results.lines(PROCESSES, ProcessLine), lambda line: line.program)
    made = []
    for own in (lines.get(program.key, []) for program in PROGRAMS):
        start_s = median([line.wall_s for line in own if not line.times] or [0.0])
        made += [Process(line, start_s, is_accepted[line.run]) for line in own if line.times]
    return Timed.of_each(made, lambda one: one.line.program)


class Compared(NamedTuple):
    """A line of a comparison. source: where it is from; `bound` if its processes were rejected."""

    name: str
    seconds: float
    processes: str
    source: Source


def _compared(task: str, found: Sequence[Timed]) -> list[Compared]:
    """What the study printed and what was measured here, the slowest first."""
    compared = [
        Compared(name, printed_s, "one, on the study's machine", "study")
        for name, printed_s in TASKS[task].printed.items()
    ]
    for one in found:
        source: Source = "ours" if one.is_accepted else "bound"
        compared.append(Compared(one.program.told, one.median_s, one.counted, source))
    return sorted(compared, key=lambda one: -one.seconds)


def _table(task: str, found: Sequence[Timed]) -> Table:
    note = "Times are wall times of the whole process, including its start."
    for one in found:
        if one.times != TIMES:
            note += f" {one.program.told}: measured with {one.times:,} and extrapolated."
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


def _figure(task: str, found: Sequence[Timed]) -> Figure:
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
    told = "The scale is logarithmic."
    x = Axis("s per 100,000", is_logarithmic=True, limits=limits)
    return figure(f"100,000 {task}", told, x, Axis(""), series, _table(task, found))


def _processes(every: Sequence[Timed], note: str) -> Table:
    return Table.of(
        "Whole processes, timed as by `time`",
        every,
        [
            ("Program", lambda one: f"{one.program.task}, {one.program.told}"),
            ("Times", lambda one: f"{one.times:,}"),
            ("Counted", lambda one: one.counted),
            ("Least wall (s)", lambda one: min(each.line.wall_s for each in one.runs)),
            ("Median wall (s)", lambda one: one.median(lambda each: each.line.wall_s)),
            ("± of the mean (s)", lambda one: one.mean.half_width),
            ("User (s)", lambda one: one.median(lambda each: each.line.user_s)),
            ("Sys (s)", lambda one: one.median(lambda each: each.line.sys_s)),
            ("Start alone (s)", lambda one: one.runs[0].start_s),
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
    measure=measure,
    analyse=analyse,
)
