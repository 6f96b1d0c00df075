"""Times 100,000 round trips and 100,000 validations as whole processes, as study 002 did.

Ours is `python -m backend.lab.measure`, the service's own code in a process of its own, so that
this module need not import it. It is compared with what a Python programmer would write without us:
the standard json, and the package jsonschema with the schema that the service publishes. All use
the same flights, which the service itself has made, and are timed from outside.

Tables: `processes.csv` has a row for each process; `runs.csv`, whether the machine was quiet then.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from itertools import product
from statistics import median

from loadtests.generation.rules import Facts, judge
from loadtests.grouping import grouped
from loadtests.lab import published
from loadtests.lab.experiment import Experiment, Mode, Run
from loadtests.lab.repeated import Estimate, accepted_by_run
from loadtests.lab.repeated import of as estimated
from loadtests.lab.report.content import Figure, Metric, Report, Section, Table
from loadtests.lab.report.drawing import Axis, Series, Source, figure
from loadtests.lab.results import Line, Results, ResultsError
from loadtests.lab.timed import timed
from loadtests.models.estimates import Interval, confidence_interval
from loadtests.programs.known import PROGRAMS, ROUND_TRIPS, TIMES, VALIDATIONS, Program, make_inputs

REPEATS, QUICK_REPEATS, LEAST_REPEATS = 5, 3, 3
PROCESSES, RUNS = "processes", "runs"
DISTURBED = "disturbed"  # marks programs for which too few processes had a quiet machine


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
    make_inputs(run.results.folder, run.scratch / "chain", run.options.seed, run.log)
    repeats = run.options.reps or run.choose(QUICK_REPEATS, REPEATS)
    with (
        run.results.table(PROCESSES, ProcessLine) as processes,
        run.results.table(RUNS, ("run", "accepted", "reasons", "foreign_cpu")) as runs,
    ):
        for repeat, program in product(range(1, repeats + 1), PROGRAMS):
            run.say(f"{program.task}, {program.told}: {repeat} of {repeats}")
            for count in (0, run.choose(program.quick_times, TIMES)):
                took = timed(program.arguments(run.results.folder, count), run.log)
                name = f"{program.task.replace(' ', '-')}-{program.name}-{count}-{repeat}"
                what, times_s = f"{program.task} {program.name}", astuple(took)[:3]
                processes.add(ProcessLine(name, what, count, repeat, *times_s))
                verdict = judge(Facts(requests=1, failed=0, foreign_cpu=took.foreign_cpu))
                told = {"accepted": verdict.accepted, "reasons": verdict.reasons}
                runs.write(run=name, **told, foreign_cpu=took.foreign_cpu)


# --- analysing -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Measured:
    """The processes of a program. counted: those that count. made: their number in all.

    start_s: median wall time of the start alone. is_disturbed: the machine was quiet for too few
    processes, so all of them count.
    """

    program: Program
    times: int
    counted: list[ProcessLine]
    made: int
    start_s: float
    is_disturbed: bool

    @property
    def walls_s(self) -> list[float]:
        """Wall times for as many repetitions as in the study.

        If there were fewer, the time beyond the start is extrapolated.
        """
        if self.times == published.REPEATED_TIMES:
            return [one.wall_s for one in self.counted]
        factor = published.REPEATED_TIMES / self.times
        works_s = [max(0.0, one.wall_s - self.start_s) for one in self.counted]
        return [self.start_s + factor * work_s for work_s in works_s]

    @property
    def median_s(self) -> float:
        """The median of `walls_s`."""
        return median(self.walls_s)

    @property
    def interval(self) -> Interval | None:
        """The interval of the mean of `walls_s`; None for a single process."""
        return confidence_interval(self.walls_s) if len(self.counted) > 1 else None


def analyse(results: Results) -> Report:
    """Make the report from `processes.csv` and `runs.csv`."""
    found = {task: _measured(results, task) for task in (ROUND_TRIPS, VALIDATIONS)}
    every = [one for some in found.values() for one in some]
    sections = [
        _section("Serialising and parsing", ROUND_TRIPS, found[ROUND_TRIPS]),
        _section("Validating", VALIDATIONS, found[VALIDATIONS]),
        Section("Every process", parts=[_processes(every)]),
    ]
    return Report(_findings(found), sections, _metrics(every))


_SERIALISATION, _VALIDATION = published.SERIALISATION, published.SCHEMA_VALIDATION
_GO_TOLD_S = _VALIDATION.python_s / published.SCHEMA_GO_TIMES_FASTER
_PRINTED = {
    ROUND_TRIPS: {
        "the study's Python": _SERIALISATION.python_s,
        "the study's Go": _SERIALISATION.go_s,
    },
    VALIDATIONS: {
        "the study's Python": _VALIDATION.python_s,
        "the study's Go, as printed": _VALIDATION.go_s,
        "the study's Go, as its text says": _GO_TOLD_S,
    },
}
_TOLD = {
    ROUND_TRIPS: """\
Each of 1000 different transactions, made by the service, is parsed from its canonical bytes (21
members) into a record, and serialised back; the bytes must be equal. Our parser and serialiser know
the fields and their types; the hash of a receipt is computed with this serialiser. json is the
standard library's loads and dumps with sorted keys.

The study's task was a different one: it parsed a fulfillment from Base64 and serialised it back.
Its times are shown only for their order of magnitude, because they are from another machine.""",
    VALIDATIONS: """\
1000 different flights, read from JSON once, are validated again and again. Our code does all checks
of POST: no field is unknown or missing; each has the right type and is within its bounds; dates,
times and codes have the right form; text is printable; and fields agree: year and weekday with the
date, and a cancelled flight has no arrival. Like a worker of the service, it remembers which names
and codes are well formed and the weekdays of dates, but nothing about a whole flight. jsonschema
checks the same flights against the schema that the service publishes, with format checks; it cannot
check whether fields agree.

The study prints 0.578 s for Go, which is the time of its serialisation, to the millisecond; its
text says 15 times faster than Python, which would be 5.07 s. Both are shown.""",
}


def _measured(results: Results, task: str) -> list[Measured]:
    lines = grouped(results.lines(PROCESSES, ProcessLine), lambda line: line.program)
    is_quiet = accepted_by_run(results)
    found = []
    for program in (program for program in PROGRAMS if program.task == task):
        own = lines.get(f"{task} {program.name}", [])
        made = [line for line in own if line.times]
        if not made:
            continue
        starts, works = _split([line for line in own if is_quiet[line.run]])
        is_disturbed = len(works) < LEAST_REPEATS or not starts
        if is_disturbed:
            starts, works = _split(own)
        times, start_s = max(line.times for line in made), median(one.wall_s for one in starts)
        found.append(Measured(program, times, works, len(made), start_s, is_disturbed))
    if not found:
        raise ResultsError(f"{results.folder} has no process that did {task}")
    return found


def _split(lines: Sequence[ProcessLine]) -> tuple[list[ProcessLine], list[ProcessLine]]:
    """The processes that only started, and those that worked."""
    return [one for one in lines if not one.times], [one for one in lines if one.times]


@dataclass(frozen=True, slots=True)
class Compared:
    """A line of a comparison. source: where it is from; `bound` if the machine was too busy."""

    name: str
    seconds: float
    processes: str
    source: Source


def _compared(task: str, found: Sequence[Measured]) -> list[Compared]:
    """What the study printed and what was measured here, the slowest first."""
    every = [
        Compared(name, printed_s, "one, on the study's machine", "study")
        for name, printed_s in _PRINTED[task].items()
    ]
    for one in found:
        note = f"median of {len(one.counted)}" + f", {DISTURBED}" * one.is_disturbed
        source: Source = "bound" if one.is_disturbed else "ours"
        every.append(Compared(one.program.told, one.median_s, note, source))
    return sorted(every, key=lambda one: -one.seconds)


def _section(title: str, task: str, found: Sequence[Measured]) -> Section:
    go_s, ours_s = _SERIALISATION.go_s, found[0].median_s
    note = "Times are wall times of the whole process, including its start."
    for one in found:
        if one.times != published.REPEATED_TIMES:
            note += f" {one.program.told}: measured with {one.times:,} and extrapolated."
    compared = _compared(task, found)
    table = Table.of(
        f"100,000 {task}",
        compared,
        [
            ("Program", lambda one: one.name),
            ("s per 100,000", lambda one: one.seconds),
            ("µs each", lambda one: one.seconds / published.REPEATED_TIMES * 1e6),
            ("times the study's Go", lambda one: one.seconds / go_s),
            ("times ours", lambda one: one.seconds / ours_s),
            ("Processes", lambda one: one.processes),
        ],
        note,
    )
    return Section(title, _TOLD[task].split("\n\n"), [_figure(task, compared, table)])


def _figure(task: str, compared: Sequence[Compared], table: Table) -> Figure:
    names, seconds = [one.name for one in compared], [one.seconds for one in compared]
    sources: dict[str, Source] = {"measured here": "ours", "printed by the study": "study"}
    if any(one.source == "bound" for one in compared):
        sources["rejected"] = "bound"
    series = [
        Series(
            name,
            source,
            names,
            [one.seconds if one.source == source else None for one in compared],
            shape="rows",
        )
        for name, source in sources.items()
    ]
    limits = (10.0 ** math.floor(math.log10(min(seconds))), 1.2 * max(seconds))
    fastest = min((one for one in compared if one.source != "bound"), key=lambda one: one.seconds)
    told = f"The scale is logarithmic. The fastest is {fastest.name} with {fastest.seconds:.3g} s."
    x = Axis("s per 100,000", is_logarithmic=True, limits=limits)
    return figure(f"100,000 {task}", told, x, Axis(""), series, table)


def _processes(every: Sequence[Measured]) -> Table:
    return Table.of(
        "Whole processes, timed as by `time`",
        every,
        [
            ("Program", lambda one: f"{one.program.task}, {one.program.told}"),
            ("Times", lambda one: f"{one.times:,}"),
            ("Counted", lambda one: f"{len(one.counted)} of {one.made}"),
            ("Least wall (s)", lambda one: min(each.wall_s for each in one.counted)),
            ("Median wall (s)", lambda one: median(each.wall_s for each in one.counted)),
            ("± of the mean (s)", lambda one: one.interval.half_width if one.interval else None),
            ("User (s)", lambda one: median(each.user_s for each in one.counted)),
            ("Sys (s)", lambda one: median(each.sys_s for each in one.counted)),
            ("Start alone (s)", lambda one: one.start_s),
        ],
        "± is the 95 % interval of the mean (Student's t) for 100,000. A process counts if other "
        "programs used less than 10 % of a core meanwhile. If fewer than three processes had so "
        "quiet a machine, all count; user time then says more than wall time. Start alone is the "
        "same program with nothing to do.",
    )


def _findings(found: Mapping[str, Sequence[Measured]]) -> list[str]:
    findings = [_against_go(found[task][0], task) for task in found]
    for task, some in found.items():
        ours, *others = some
        if ours.is_disturbed:
            continue
        findings += [
            f"{task.capitalize()} with {other.program.told} take {other.median_s:.3g} s, "
            f"{_times(other.median_s, ours.median_s)} our time."
            for other in others
            if not other.is_disturbed
        ]
        name, seconds = next(iter(_PRINTED[task].items()))
        findings.append(
            f"For {task}, {name} took {seconds:.3g} s on its machine, "
            f"{_times(seconds, ours.median_s)} our time on this one."
        )
    if any(one.is_disturbed for some in found.values() for one in some):
        findings.append(
            "The machine was busy with other work, so some wall times are too long: they are shown "
            "as disturbed and used for no finding; the table of every process shows which."
        )
    return findings


def _times(above: float, below: float) -> str:
    return f"{above / below:.3g} times"


def _against_go(ours: Measured, task: str) -> str:
    """A sentence that compares our time with Go's, by the interval of the mean."""
    go_s = _SERIALISATION.go_s
    interval = ours.interval
    said = f"100,000 {task} by the service's own code take {ours.median_s:.3g} s as a whole process"
    said += f" ({median(one.user_s + one.sys_s for one in ours.counted):.3g} s of processor time)"
    if ours.is_disturbed:
        return f"{said}; the machine was too busy to compare that with Go's {go_s} s."
    if interval is None:
        return f"{said}; one process is too few to compare that with Go's {go_s} s."
    if interval.high < go_s:
        return f"{said}, less than the {go_s} s that the study prints for Go."
    if interval.low > go_s:
        return f"{said}, more than the {go_s} s that the study prints for Go."
    return f"{said}, which does not clearly differ from the {go_s} s that the study prints for Go."


def _metrics(every: Sequence[Measured]) -> list[Metric]:
    return [
        (estimated(one.interval) if one.interval else Estimate(one.median_s)).metric(
            f"wall_per_100000[{one.program.task}, {one.program.name}]", "s"
        )
        for one in every
        if not one.is_disturbed
    ]


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
