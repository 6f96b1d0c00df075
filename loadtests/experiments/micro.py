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
from functools import cached_property
from itertools import product
from operator import itemgetter
from pathlib import Path
from statistics import median
from typing import NamedTuple

from loadtests.generation.rules import Facts
from loadtests.generation.run import RunRecord, judge_run
from loadtests.grouping import grouped
from loadtests.lab import published
from loadtests.lab.content import Figure, Metric, Report, Section, Table
from loadtests.lab.experiment import Experiment, Run
from loadtests.lab.repeated import accepted_by_run
from loadtests.lab.report.drawing import Axis, Series, Source, figure
from loadtests.lab.results import Line, NothingCounts, Results
from loadtests.lab.sentences import Sentences
from loadtests.machine_samples import Sampler
from loadtests.models.estimates import Interval, confidence_interval
from loadtests.processes import backend, finished, plain_environment, running
from loadtests.questions import all_blocks, as_sent

REPEATS, QUICK_REPEATS = 5, 3
TIMES, QUICK_TIMES = published.REPEATED_TIMES, 20_000  # of a task, in one process
FLIGHTS = 1000  # number of different flights, which programs take again and again
PROCESSES = "processes"
ROUND_TRIPS, VALIDATIONS = "round trips", "validations"
OURS = "ours"
TRANSACTIONS, POSTED, SCHEMA = "transactions.ndjson", "flights.ndjson", "schema.json"
_PROGRAM = "loadtests.in_process.repetition"


@dataclass(frozen=True, slots=True)
class Program:
    """Describes a way to do a task. title: its name in reports.

    files: its input, and what else it needs.
    """

    name: str
    title: str
    task: str
    files: tuple[str, ...]

    @property
    def key(self) -> str:
        return f"{self.task} {self.name}"

    def command(self, folder: Path, times: int) -> list[str]:
        """Return the command line that does the task so often, with files in `folder`."""
        task, files = self.task.replace(" ", "-"), [str(folder / name) for name in self.files]
        return [sys.executable, "-m", _PROGRAM, task, self.name, files[0], str(times), *files[1:]]


PROGRAMS = (
    Program(OURS, "the service", ROUND_TRIPS, (TRANSACTIONS,)),
    Program("json", "json of Python", ROUND_TRIPS, (TRANSACTIONS,)),
    Program(OURS, "the service", VALIDATIONS, (POSTED,)),
    Program("jsonschema", "jsonschema 4.26", VALIDATIONS, (POSTED, SCHEMA)),
)


@dataclass(frozen=True, slots=True)
class ProcessLine(Line):
    """Describes a process. program: its task and name. times: how often it did the task, or 0."""

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
            run.say(f"{program.task}, {program.title}: {repeat} of {repeats}")
            for count in (0, run.choose(QUICK_TIMES, TIMES)):
                sampler = Sampler(None, None)
                _, spent = finished(program.command(folder, count), plain_environment(), log)
                foreign_cpu = sampler.sample().foreign_cpu
                name = f"{program.task.replace(' ', '-')}-{program.name}-{count}-{repeat}"
                processes.add(ProcessLine(name, program.key, count, repeat, *astuple(spent)))
                record = RunRecord(name, "process", (), (), None)
                judge_run(folder, record, Facts(requests=1, failed=0, foreign_cpu=foreign_cpu))


def make_inputs(folder: Path, chain: Path, seed: int, log: Path) -> None:
    """Generate flights in a new `chain`, and write them and the service's schema into `folder`.

    One file has transactions in canonical bytes (RFC 8785, for integers, strings and null), another
    has flights as they are posted, with their fields in the usual order.
    """
    backend(chain, "import", "--generate", str(FLIGHTS), "--seed", str(seed), log=log)
    with running(chain, log) as service:
        flights = [flight for block in all_blocks(service) for flight in block]
        schema = service.get("/openapi.json")["components"]["schemas"]["Flight"]
    for name, records, is_sorted in (
        (TRANSACTIONS, flights, True),
        (POSTED, map(as_sent, flights), False),
    ):
        encoder = json.JSONEncoder(ensure_ascii=False, sort_keys=is_sorted, separators=(",", ":"))
        lines = "".join(f"{encoder.encode(record)}\n" for record in records)
        (folder / name).write_text(lines, encoding="utf-8")
    (folder / SCHEMA).write_text(json.dumps(schema, indent=1), encoding="utf-8")


# --- analysing -----------------------------------------------------------------------------------


class Task(NamedTuple):
    """Says how a task is reported. printed_s: times of the study's programs, its Python first.

    The last is that of its Go, to compare with.
    """

    title: str
    printed_s: Mapping[str, float]


_SERIALISATION, _VALIDATION = published.SERIALISATION, published.SCHEMA_VALIDATION
TASKS = {
    ROUND_TRIPS: Task(
        "Serialising and parsing",
        {"the study's Python": _SERIALISATION.python_s, "the study's Go": _SERIALISATION.go_s},
    ),
    VALIDATIONS: Task(
        "Validating",
        {
            "the study's Python": _VALIDATION.python_s,
            "the study's Go, as printed": _VALIDATION.go_s,
            "the study's Go, if it was 15 times faster": (
                _VALIDATION.python_s / published.SCHEMA_GO_TIMES_FASTER
            ),
        },
    ),
}


@dataclass(frozen=True)
class Timed:
    """Holds the processes in which a program did its task.

    start_s: median wall time of those in which it only started.
    """

    program: Program
    start_s: float
    lines: Sequence[ProcessLine]

    @cached_property
    def walls_s(self) -> list[float]:
        """Return wall times (s) for as many repetitions as in the study, from any number."""
        return [
            self.start_s + TIMES / line.times * max(0.0, line.wall_s - self.start_s)
            for line in self.lines
        ]

    @property
    def median_s(self) -> float:
        return median(self.walls_s)

    @property
    def mean(self) -> Interval:
        return confidence_interval(self.walls_s)


def analyse(results: Results) -> Report:
    """Report each task. Raises NothingCounts if no process of ours that counts did a task."""
    sentences, programs = Sentences("micro"), timed_programs(results)
    by_task = grouped(programs, lambda timed: timed.program.task)
    ours = {timed.program.task for timed in programs if timed.program.name == OURS}
    if missing := [task for task in TASKS if task not in ours]:
        raise NothingCounts(f"{results.folder} has no process of ours that counts for {missing[0]}")
    note = sentences.paragraph("processes", times=programs[0].lines[0].times)
    sections = [
        Section(TASKS[task].title, sentences(task.replace(" ", "_")), [_figure(task, timed, note)])
        for task, timed in by_task.items()
    ]
    metrics = [
        Metric.of_amount(f"wall_per_100000[{task}, {timed.program.name}]", timed.mean, "s")
        for task, programs_of_task in by_task.items()
        for timed in programs_of_task
    ]
    findings = sentences("findings", measured=by_task, tasks=TASKS)
    return Report(findings, sections, metrics)


def timed_programs(results: Results) -> list[Timed]:
    """Return the programs that have a process that counts, in the order of PROGRAMS."""
    judged = accepted_by_run(results)
    counted = (line for line in results.lines(PROCESSES, ProcessLine) if judged.get(line.run))
    lines, programs = grouped(counted, lambda line: line.program), []
    for program in PROGRAMS:
        own = lines.get(program.key, [])
        start_s = median([line.wall_s for line in own if not line.times] or [0.0])
        if done := [line for line in own if line.times]:
            programs.append(Timed(program, start_s, done))
    return programs


_SOURCES: Mapping[Source, str] = {"ours": "measured here", "study": "printed by the study"}


def _figure(task: str, programs: Sequence[Timed], note: str) -> Figure:
    """Compare what the study printed with what was measured here, the slowest first."""
    bars: list[tuple[float, Interval | None, str, str, Source]] = [
        (printed_s, None, name, "one, on the study's machine", "study")
        for name, printed_s in TASKS[task].printed_s.items()
    ]
    for timed in programs:
        count = str(len(timed.lines))
        bars.append((timed.median_s, timed.mean, timed.program.title, count, "ours"))
    bars.sort(key=itemgetter(0), reverse=True)
    go_s, ours_s = [*TASKS[task].printed_s.values()][-1], programs[0].median_s
    columns = (
        *("Program", "s per 100,000", "mean", "µs each"),
        *("times the study's Go", "times ours", "Processes"),
    )
    rows = [
        (name, wall_s, mean_s, wall_s / TIMES * 1e6, wall_s / go_s, wall_s / ours_s, processes)
        for wall_s, mean_s, name, processes, _ in bars
    ]
    names = [name for *_, name, _, _ in bars]
    series = [
        Series(name, source, names, walls_s, shape="rows")
        for source, name in _SOURCES.items()
        if any(walls_s := [wall_s if kind == source else None for wall_s, *_, kind in bars])
    ]
    limits = (10.0 ** math.floor(math.log10(bars[-1][0])), 1.2 * bars[0][0])
    x = Axis("s per 100,000", is_logarithmic=True, limits=limits)
    title = f"100,000 {task}"
    table = Table(title, columns, rows, note)
    return figure(title, "The scale is logarithmic.", x, Axis(""), series, table)


EXPERIMENT = Experiment.described("micro", "002", measure, analyse)
