"""Times 100,000 round trips and 100,000 validations as whole processes, as study 002 did.

Ours is `python -m backend.lab.measure`, the service's own code in a process of its own, so that
this module need not import it. It is compared with what a Python programmer would write without us:
the standard json, and the package jsonschema with the schema that the service publishes. All use
the same flights, which the service itself has made, and are timed from outside.

Tables: `processes.csv` has a row for each process; `runs.csv`, whether the machine was quiet then.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from loadtests.generation.rules import Facts, judge
from loadtests.lab import published
from loadtests.lab.experiment import Experiment, Mode, Run
from loadtests.lab.report.content import Cell, Figure, Metric, Report, Section, Table
from loadtests.lab.report.drawing import Axis, Series, drawn
from loadtests.lab.results import Results, ResultsError
from loadtests.lab.timed import Timed, timed
from loadtests.models.estimates import Interval, confidence_interval
from loadtests.programs.known import PROGRAMS, ROUND_TRIPS, TIMES, VALIDATIONS, Program, make_inputs

REPEATS, QUICK_REPEATS, LEAST_REPEATS = 5, 3, 3
PROCESSES, RUNS = "processes", "runs"
DISTURBED = "disturbed"  # marks programs for which too few processes had a quiet machine
COLUMNS = ("run", "program", "times", "repeat", "wall_s", "user_s", "sys_s")


# --- measuring -----------------------------------------------------------------------------------


def measure(run: Run) -> None:
    """Make the flights, then time all programs in turns: the start alone, and the whole task."""
    make_inputs(run.results.folder, run.scratch / "chain", run.options.seed, run.log)
    repeats = run.options.reps or int(run.choose(QUICK_REPEATS, REPEATS))
    with (
        run.results.table(PROCESSES, COLUMNS) as processes,
        run.results.table(RUNS, ("run", "accepted", "reasons", "foreign_cpu")) as runs,
    ):
        for repeat in range(repeats):
            for program in PROGRAMS:
                run.say(f"{program.task}, {program.told}: {repeat + 1} of {repeats}")
                for count in (0, int(run.choose(program.quick_times, TIMES))):
                    took = timed(program.arguments(run.results.folder, count), run.log)
                    name = f"{program.task.replace(' ', '-')}-{program.name}-{count}-{repeat + 1}"
                    processes.write(
                        run=name,
                        program=f"{program.task} {program.name}",
                        times=count,
                        repeat=repeat + 1,
                        wall_s=took.wall_s,
                        user_s=took.user_s,
                        sys_s=took.sys_s,
                    )
                    verdict = judge(Facts(requests=1, failed=0, foreign_cpu=took.foreign_cpu))
                    runs.write(
                        run=name,
                        accepted="yes" if verdict.accepted else "no",
                        reasons=verdict.reasons,
                        foreign_cpu=took.foreign_cpu,
                    )


# --- analysing -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Measured:
    """The processes of a program. counted: those that count. made: their number in all.

    start_s: median wall time of the start alone. is_disturbed: the machine was quiet for too few
    processes, so all of them count.
    """

    program: Program
    times: int
    counted: list[Timed]
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
    serialisation, validation = published.SERIALISATION, published.SCHEMA_VALIDATION
    go_s = validation.python_s / published.SCHEMA_GO_TIMES_FASTER
    known = {
        ROUND_TRIPS: [
            ("the study's Python", serialisation.python_s),
            ("the study's Go", serialisation.go_s),
        ],
        VALIDATIONS: [
            ("the study's Python", validation.python_s),
            ("the study's Go, as printed", validation.go_s),
            ("the study's Go, as its text says", go_s),
        ],
    }
    sections = [
        _section("Serialising and parsing", known, found, ROUND_TRIPS),
        _section("Validating", known, found, VALIDATIONS),
        Section("Every process", parts=[_processes(found)]),
    ]
    return Report(_findings(found, known), sections, _metrics(found))


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
    rows = results.rows(PROCESSES)
    foreign = {row["run"]: row for row in results.rows(RUNS)}
    found = []
    for program in (program for program in PROGRAMS if program.task == task):
        own = [row for row in rows if row["program"] == f"{task} {program.name}"]
        if not any(int(row["times"]) for row in own):
            continue
        times = max(int(row["times"]) for row in own)
        quiet = [row for row in own if foreign[row["run"]]["accepted"] == "yes"]
        starts, works = _split(quiet)
        is_disturbed = len(works) < LEAST_REPEATS or not starts
        if is_disturbed:
            starts, works = _split(own)
        made = sum(int(row["times"]) > 0 for row in own)
        start_s = median(float(row["wall_s"]) for row in starts)
        counted = [_timed(row, foreign[row["run"]]) for row in works]
        found.append(Measured(program, times, counted, made, start_s, is_disturbed))
    if not found:
        raise ResultsError(f"{results.folder} has no process that did {task}")
    return found


def _split(rows: list[dict[str, str]]) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
    """The rows of processes that only started, and those of processes that worked."""
    return [r for r in rows if r["times"] == "0"], [r for r in rows if r["times"] != "0"]


def _timed(row: dict[str, str], judged: dict[str, str]) -> Timed:
    return Timed(
        float(row["wall_s"]),
        float(row["user_s"]),
        float(row["sys_s"]),
        float(judged["foreign_cpu"]),
    )


def _section(
    title: str,
    known: dict[str, list[tuple[str, float]]],
    found: dict[str, list[Measured]],
    task: str,
) -> Section:
    go_s = published.SERIALISATION.go_s
    ours_s = found[task][0].median_s
    rows: list[list[Cell]] = [
        [
            name,
            seconds,
            _microseconds(seconds),
            seconds / go_s,
            seconds / ours_s,
            "one, on the study's machine",
        ]
        for name, seconds in known[task]
    ]
    for one in found[task]:
        seconds, note = one.median_s, f"median of {len(one.counted)}"
        note += f", {DISTURBED}" if one.is_disturbed else ""
        rows.append(
            [
                one.program.told,
                seconds,
                _microseconds(seconds),
                seconds / go_s,
                seconds / ours_s,
                note,
            ]
        )
    rows.sort(key=lambda row: -float(str(row[1])))
    columns = (
        "Program",
        "s per 100,000",
        "µs each",
        "times the study's Go",
        "times ours",
        "Processes",
    )
    note = "Times are wall times of the whole process, including its start."
    for one in found[task]:
        if one.times != published.REPEATED_TIMES:
            note += f" {one.program.told}: measured with {one.times:,} and extrapolated."
    table = Table(f"100,000 {task}", columns, rows, note)
    return Section(title, _TOLD[task].split("\n\n"), [_figure(task, rows, table)])


def _microseconds(seconds: float) -> float:
    return seconds / published.REPEATED_TIMES * 1e6


def _figure(task: str, rows: Sequence[Sequence[Cell]], table: Table) -> Figure:
    names = [str(row[0]) for row in rows]
    ys = [float(str(row[1])) for row in rows]
    studies = [y if "study's" in name else None for name, y in zip(names, ys, strict=True)]
    disturbed = [
        y if str(row[-1]).endswith(DISTURBED) else None for y, row in zip(ys, rows, strict=True)
    ]
    others = zip(ys, studies, disturbed, strict=True)
    ours = [None if printed or noisy else y for y, printed, noisy in others]
    series = [
        Series("measured here", "ours", names, ours, shape="rows"),
        Series("printed by the study", "study", names, studies, shape="rows"),
        *([Series("rejected", "bound", names, disturbed, shape="rows")] if any(disturbed) else []),
    ]
    limits = (10.0 ** math.floor(math.log10(min(ys))), 1.2 * max(ys))
    svg = drawn(Axis("s per 100,000", is_logarithmic=True, limits=limits), Axis(""), series)
    fastest = min(
        (row for row in rows if DISTURBED not in str(row[-1])), key=lambda row: float(str(row[1]))
    )
    told = f"The scale is logarithmic. The fastest is {fastest[0]} with {fastest[1]:.3g} s."
    return Figure(f"100,000 {task}", svg, told, table)


def _processes(found: dict[str, list[Measured]]) -> Table:
    rows: list[list[Cell]] = []
    for one in (one for some in found.values() for one in some):
        walls_s = [each.wall_s for each in one.counted]
        interval = one.interval
        rows.append(
            [
                f"{one.program.task}, {one.program.told}",
                f"{one.times:,}",
                f"{len(one.counted)} of {one.made}",
                min(walls_s),
                median(walls_s),
                interval.half_width if interval else None,
                median(each.user_s for each in one.counted),
                median(each.sys_s for each in one.counted),
                one.start_s,
            ]
        )
    columns = (
        "Program",
        "Times",
        "Counted",
        "Least wall (s)",
        "Median wall (s)",
        "± of the mean (s)",
        "User (s)",
        "Sys (s)",
        "Start alone (s)",
    )
    note = (
        "± is the 95 % interval of the mean (Student's t) for 100,000. A process counts if other "
        "programs used less than 10 % of a core meanwhile. If fewer than three processes had so "
        "quiet a machine, all count; user time then says more than wall time. Start alone is the "
        "same program with nothing to do."
    )
    return Table("Whole processes, timed as by `time`", columns, rows, note)


def _findings(
    found: dict[str, list[Measured]], known: dict[str, list[tuple[str, float]]]
) -> list[str]:
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
        name, seconds = known[task][0]
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
    go_s = published.SERIALISATION.go_s
    interval = ours.interval
    said = f"100,000 {task} by the service's own code take {ours.median_s:.3g} s as a whole process"
    said += f" ({median(one.cpu_s for one in ours.counted):.3g} s of processor time)"
    if ours.is_disturbed:
        return f"{said}; the machine was too busy to compare that with Go's {go_s} s."
    if interval is None:
        return f"{said}; one process is too few to compare that with Go's {go_s} s."
    if interval.high < go_s:
        return f"{said}, less than the {go_s} s that the study prints for Go."
    if interval.low > go_s:
        return f"{said}, more than the {go_s} s that the study prints for Go."
    return f"{said}, which does not clearly differ from the {go_s} s that the study prints for Go."


def _metrics(found: dict[str, list[Measured]]) -> list[Metric]:
    metrics = []
    for one in (one for some in found.values() for one in some):
        name = f"wall_per_100000[{one.program.task}, {one.program.name}]"
        interval = one.interval
        if one.is_disturbed:
            continue
        if interval is None:
            metrics.append(Metric(name, one.median_s, "s"))
        else:
            metrics.append(
                Metric.of_amount(name, interval.estimate, "s", interval.low, interval.high)
            )
    return metrics


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
