"""What every experiment does with its runs: read, choose, estimate, tell, draw.

cells = Repeated.of_each(made, lambda run: run.customers)  # of accepted runs; rejected if none was
x = cells[0].over(lambda run: run.throughput)   # mean and interval
x.give_or_take(1000)                            # "± 3.1", in thousandths
measured("HTTP", "ours", xs, [x, …])            # a series with intervals
crosses(cells, x, y)                            # for what counts nowhere
lines({"HTTP": cells, …}, sources, x, y)        # both, for several series
x.metric("throughput[8]", "1/s")                # for `compare`
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Generic, Protocol, Self, TypeVar

from loadtests.generation.rows import Row, read_rows
from loadtests.generation.run import REQUESTS, RUNS, SAMPLES
from loadtests.grouping import grouped
from loadtests.lab.content import NONE, Metric, capital, shown, times
from loadtests.lab.report.drawing import Series, Shape, Source
from loadtests.lab.results import YES, Results
from loadtests.machine_samples import Sample
from loadtests.machine_samples import read as read_samples
from loadtests.models.estimates import Interval, confidence_interval
from loadtests.tables import Line

OneLine = TypeVar("OneLine", bound=Line)


def rows_by_run(results: Results) -> Mapping[str, list[Row]]:
    """Run -> its rows, in the order in which they were written; an unknown run has no rows.

    Raises ValueError if the file is not one of raw rows.
    """
    found: dict[str, list[Row]] = defaultdict(list)
    path = results.folder / REQUESTS
    for row in read_rows(path) if path.exists() else ():
        found[row.run].append(row)
    return found


def accepted_by_run(results: Results) -> Mapping[str, bool]:
    """Run -> whether it counts by the rules, for all runs that were judged."""
    lines = results.rows_if_any(RUNS.removesuffix(".csv"))
    return {line["run"]: line["accepted"] == YES for line in lines}


def reasons_by_run(results: Results) -> Mapping[str, str]:
    """Run -> why it does not count, "" if it does, for all runs that were judged."""
    return {line["run"]: line["reasons"] for line in results.rows_if_any(RUNS.removesuffix(".csv"))}


def samples_by_run(results: Results) -> Mapping[str, list[Sample]]:
    """Run -> the samples of the machine during it, if there are any."""
    path = results.folder / SAMPLES
    return read_samples(path) if path.exists() else {}


def recorded_runs(
    results: Results, table: str, kind: type[OneLine]
) -> Iterator[tuple[OneLine, list[Row], bool]]:
    """Each line of a table of runs, with the rows of that run, and whether it counts."""
    rows, is_accepted = rows_by_run(results), accepted_by_run(results)
    for line in results.lines(table, kind):
        run = line.cells()["run"]
        yield line, rows[run], is_accepted.get(run, False)


def unused_name(results: Results, prefix: str) -> str:
    """`prefix-N` with the lowest N from 1 under which no run, not even a broken one, left rows."""
    taken = {*rows_by_run(results), *samples_by_run(results), *accepted_by_run(results)}
    return next(name for n in count(1) if (name := f"{prefix}-{n}") not in taken)


LEAST_DRAWN = 10  # an interval is drawn down to this part of its mean: axes may be logarithmic


class Judged(Protocol):
    """A run that was judged by the rules."""

    @property
    def is_accepted(self) -> bool:
        """Whether it counts."""


Run = TypeVar("Run", bound=Judged)


def that_count(made: Sequence[Run]) -> list[Run]:
    """The accepted runs; if there is none, all of them, to be shown as rejected."""
    return accepted(made) or list(made)


@dataclass(frozen=True)
class Repeated(Generic[Run]):
    """A measurement that was repeated: its runs that count, or the rejected ones if none does."""

    runs: Sequence[Run]
    made: int  # number of all its runs

    @classmethod
    def of_each(cls, runs: Iterable[Run], key: Callable[[Run], Hashable]) -> list[Self]:
        """A measurement for all runs of the same key, in the order of the keys' first runs."""
        return [cls(that_count(made), len(made)) for made in grouped(runs, key).values()]

    @property
    def is_accepted(self) -> bool:
        """Whether its runs count."""
        return self.runs[0].is_accepted

    @property
    def counted(self) -> str:
        """How many of its runs count, as a cell of a table."""
        return f"{len(self.runs)} of {self.made}" + ("" if self.is_accepted else ", rejected")

    def over(self, value: Callable[[Run], float]) -> "Estimate":
        """The mean of `value` over its runs."""
        return estimate([value(run) for run in self.runs])


def accepted(made: Sequence[Run]) -> list[Run]:
    """The accepted ones, alone fit for findings."""
    return [run for run in made if run.is_accepted]


def rejected_told(made: Sequence[Judged], what: str = "points") -> Iterator[str]:
    """A sentence about those without an accepted run, if there are any."""
    if without := len(made) - len(accepted(made)):
        yield (
            f"{capital(what)} without an accepted run: {without} of {len(made)}. They are shown as "
            "rejected, and used for no finding; the table of runs has the reasons."
        )


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean and, if enough values are known, its 95 % interval. values: how many."""

    value: float
    low: float | None = None
    high: float | None = None
    values: int = 1

    def __str__(self) -> str:
        if self.low is None or self.high is None:
            return shown(self.value)
        return f"{shown(self.value)} ({shown(self.low)} to {shown(self.high)})"

    @property
    def half_width(self) -> float | None:
        """Half the width of the interval."""
        return None if self.high is None else self.high - self.value

    @property
    def is_finding(self) -> bool:
        """Whether a sentence may state it: not with an interval that holds 0 or is of two values.

        A single value has no interval; a report of single values says that it proves nothing.
        """
        if self.low is None or self.high is None:
            return True
        return self.values > 2 and not self.low <= 0 <= self.high

    def give_or_take(self, factor: float = 1) -> str:
        """The half-width times `factor` as text."""
        half = self.half_width
        return NONE if half is None else f"±\N{NO-BREAK SPACE}{shown(factor * half, 2)}"

    def plus_minus(self, factor: float = 1) -> str:
        """The mean and its half-width, if it has one, times `factor`: "3.14 ± 0.12"."""
        mean = shown(factor * self.value)
        return mean if self.half_width is None else f"{mean} {self.give_or_take(factor)}"

    def metric(self, name: str, unit: str) -> Metric:
        """The estimate of an amount, for comparisons, with an interval that begins at 0 or above.

        The interval of a mean is symmetric, and with few runs it may reach below 0.
        """
        low = None if self.low is None else max(0.0, self.low)
        return Metric(name, self.value, unit, low, self.high)


def estimate(values: Sequence[float]) -> Estimate:
    """The estimate from independent values, at least one."""
    return of(confidence_interval(values)) if len(values) > 1 else Estimate(values[0])


def of(interval: Interval) -> Estimate:
    """An interval as an estimate."""
    low, high = interval.ends
    return Estimate(interval.estimate, low, high, interval.values)


def measured(
    name: str,
    source: Source,
    xs: Sequence[float] | Sequence[str],
    found: Sequence[Estimate | None],
    *,
    factor: float = 1,
    shape: Shape = "line",
) -> Series:
    """The series of what was measured, times `factor`, with a gap where nothing counts."""
    return Series(
        name,
        source,
        xs,
        [factor * one.value if one else None for one in found],
        [times(factor, _lowest(one)) if one else None for one in found],
        [times(factor, one.high) if one else None for one in found],
        shape=shape,
    )


def _lowest(one: Estimate) -> float | None:
    return None if one.low is None else max(one.low, one.value / LEAST_DRAWN)


def crosses(
    made: Sequence[Run], x: Callable[[Run], float], y: Callable[[Run], float]
) -> list[Series]:
    """Crosses for those without an accepted run; nothing if there are none."""
    without = [one for one in made if not one.is_accepted]
    return rejected([x(one) for one in without], [y(one) for one in without])


def rejected(xs: Sequence[float], ys: Sequence[float]) -> list[Series]:
    """Crosses for rejected runs; nothing if there are none."""
    return [Series("rejected", "bound", xs, ys, shape="points")] if len(xs) else []


def lines(
    made: Mapping[str, Sequence[Run]],
    sources: Mapping[str, Source],
    x: Callable[[Run], float],
    y: Callable[[Run], Estimate],
    factor: float = 1,
) -> list[Series]:
    """A line of what was accepted under each name, times `factor`, and crosses for the others."""
    series = []
    for name, of in made.items():
        if counted := accepted(of):
            xs, ys = list(map(x, counted)), list(map(y, counted))
            series.append(measured(name, sources[name], xs, ys, factor=factor))
    every = [one for of in made.values() for one in of]
    return [*series, *crosses(every, x, lambda one: factor * y(one).value)]
