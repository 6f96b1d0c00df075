"""An experiment as small as one can be: squares, one row each."""

from dataclasses import dataclass, replace

from loadtests.lab.content import Figure, Metric, Report, Section, Table
from loadtests.lab.experiment import Experiment, Run
from loadtests.lab.report import drawing
from loadtests.lab.report.drawing import Axis, Series
from loadtests.lab.results import Line, Results
from tests.loadtests.experiments.made_up import JudgedLine


@dataclass(frozen=True, slots=True)
class Square(Line):
    """A row."""

    x: int
    square: float


def measure(run: Run) -> None:
    with run.results.table("squares", Square) as table:
        for x in range(int(run.choose(quick=3, full=6))):
            if x == run.options.reps:
                raise KeyboardInterrupt
            table.add(Square(x, float(x * x)))
    with run.results.table("runs", JudgedLine) as table:
        table.add(JudgedLine("one", True), JudgedLine("two", False, "a <neighbour> was loud"))


def analyse(results: Results) -> Report:
    rows = results.rows("squares")
    xs, ys = [float(row["x"]) for row in rows], [float(row["square"]) for row in rows]
    top = max(ys)
    table = Table("Squares", ("x", "Square"), list(zip(xs, ys, strict=True)))
    svg = drawing.drawn(Axis("x"), Axis("square"), [Series("squares", "ours", xs, ys)])
    figure = Figure("Squares", svg, "They grow.", table)
    return Report(
        findings=[f"The largest is {top:g} & no more."],
        sections=[Section("Growth", ["A < B"], [figure])],
        metrics=[Metric("largest", top, "s", top - 1, top + 1)],
    )


EXPERIMENT = Experiment(
    name="miniature",
    study="002",
    title="Squares",
    reproduces="nothing",
    about="It squares.",
    measure=measure,
    analyse=analyse,
)
EMULATED = replace(
    EXPERIMENT, name="emulated", scales=(100, 400), emulated_so="Waits took their place."
)
BOTH = {"miniature": EXPERIMENT, "emulated": EMULATED}
