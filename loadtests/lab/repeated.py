"""Does what every experiment does with its runs: reads, chooses, estimates, describes, draws.

cells = Repeated.of_each(made, lambda run: run.customers)  # of accepted runs, or all rejected
x = cells[0].over(lambda run: run.throughput)   # mean and interval
x.give_or_take(1000)                            # "± 3.1", in thousandths
measured("HTTP", "ours", xs, [x, …])            # a series with intervals
crosses(cells, x, y)                            # for what counts nowhere
lines({"HTTP": cells, …}, sources, x, y)        # both, for several series
x.metric("throughput[8]", "1/s")                # for `compare`
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count
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
    """Return the rows of each run, in the order of writing; an unknown run has no rows.

    Raises ValueError if the file is not one of raw rows.
    """
    path = results.folder / REQUESTS
    rows = read_rows(path) if path.exists() else []
    return defaultdict(list, grouped(rows, lambda row: row.run))


def accepted_by_run(results: Results) -> Mapping[str, bool]:
    """Return, for each run that was judged, whether it counts by the rules."""
    lines = results.rows_if_any(RUNS.removesuffix(".csv"))
    return {line["run"]: line["accepted"] == YES for line in lines}


def reasons_by_run(results: Results) -> Mapping[str, str]:
    """Return, for each run that was judged, why it does not count; "" if it does."""
    return {line["run"]: line["reasons"] for line in results.rows_if_any(RUNS.removesuffix(".csv"))}


def most_common_reason(results: Results) -> str:
    """Return the words of the rule that rejected most runs; "" if none was rejected."""
    reasons = chain.from_iterable(text.split("; ") for text in reasons_by_run(results).values())
    words = Counter(reason.partition(": ")[2] for reason in reasons if reason)
    return words.most_common(1)[0][0] if words else ""


def samples_by_run(results: Results) -> Mapping[str, list[Sample]]:
    """Return the samples of the machine during each run, if there are any."""
    return read_samples(results.folder / SAMPLES)


def recorded_runs(
    results: Results, table: str, kind: type[OneLine]
) -> Iterator[tuple[OneLine, list[Row], bool]]:
    """Yield each line of a table of runs, with the rows of that run, and whether it counts.

    There are none without the table.
    """
    rows, is_accepted = rows_by_run(results), accepted_by_run(results)
    for line in results.lines_if_any(table, kind):
        run = line.cells()["run"]
        yield line, rows[run], is_accepted.get(run, False)


def unused_name(results: Results, prefix: str) -> str:
    """Return `prefix-N` with the lowest N from 1 under which no run left rows, broken or not."""
    taken = {*rows_by_run(results), *samples_by_run(results), *accepted_by_run(results)}
    return next(name for n in count(1) if (name := f"{prefix}-{n}") not in taken)


LEAST_DRAWN = 10  # an interval is drawn down to this part of its mean: axes may be logarithmic


class Judged(Protocol):
    """Stands for a run that was judged by the rules."""

    @property
    def is_accepted(self) -> bool:
        """Return whether it counts."""


Run = TypeVar("Run", bound=Judged)


def that_count(made: Sequence[Run]) -> list[Run]:
    """Return the accepted runs; if there is none, all of them, to be shown as rejected."""
    return accepted(made) or list(made)


@dataclass(frozen=True)
class Repeated(Generic[Run]):
    """Holds the runs of a measurement that count, or the rejected ones if none does."""

    runs: Sequence[Run]
    made: int  # number of all its runs

    @classmethod
    def of_each(cls, runs: Iterable[Run], key: Callable[[Run], Hashable]) -> list[Self]:
        """Return a measurement for all runs of a key, in the order of the keys' first runs."""
        return [cls(that_count(made), len(made)) for made in grouped(runs, key).values()]

    @property
    def is_accepted(self) -> bool:
        """Return whether its runs count."""
        return self.runs[0].is_accepted

    @property
    def counted(self) -> str:
        """Return how many of its runs count, as a cell of a table."""
        return f"{len(self.runs)} of {self.made}" + ("" if self.is_accepted else ", rejected")

    def over(self, value: Callable[[Run], float]) -> "Estimate":
        """Return the mean of `value` over its runs."""
        return estimate([value(run) for run in self.runs])


def accepted(made: Sequence[Run]) -> list[Run]:
    """Return the accepted runs, which alone are fit for findings."""
    return [run for run in made if run.is_accepted]


def describe_rejected(made: Sequence[Judged], what: str = "points") -> Iterator[str]:
    """Yield a sentence about those without an accepted run, if there are any."""
    if without := len(made) - len(accepted(made)):
        yield (
            f"{capital(what)} without an accepted run: {without} of {len(made)}. They are shown as "
            "rejected, and used for no finding; the table of runs has the reasons."
        )


@dataclass(frozen=True, slots=True)
class Estimate:
    """Holds a mean and, if enough values are known, its 95 % interval. values: how many."""

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
        """Return half the width of the interval."""
        return None if self.high is None else self.high - self.value

    @property
    def is_finding(self) -> bool:
        """Return whether a sentence may state it: its interval must exclude 0 and have 3 values.

        A single value has no interval; a report of single values says that it proves nothing.
        """
        if self.low is None or self.high is None:
            return True
        return self.values > 2 and not self.low <= 0 <= self.high

    def give_or_take(self, factor: float = 1) -> str:
        """Return the half-width times `factor` as text."""
        half = self.half_width
        return NONE if half is None else f"±\N{NO-BREAK SPACE}{shown(factor * half, 2)}"

    def plus_minus(self, factor: float = 1) -> str:
        """Return the mean and any half-width, times `factor`, as text: "3.14 ± 0.12"."""
        mean = shown(factor * self.value)
        return mean if self.half_width is None else f"{mean} {self.give_or_take(factor)}"

    def metric(self, name: str, unit: str) -> Metric:
        """Return an amount's estimate for comparisons, with an interval that begins at 0 or above.

        The interval of a mean is symmetric, and with few runs it may reach below 0.
        """
        low = None if self.low is None else max(0.0, self.low)
        return Metric(name, self.value, unit, low, self.high)


def estimate(values: Sequence[float]) -> Estimate:
    """Return the estimate from independent values, at least one."""
    return from_interval(confidence_interval(values)) if len(values) > 1 else Estimate(values[0])


def from_interval(interval: Interval) -> Estimate:
    """Return an interval as an estimate."""
    low, high = interval.ends
    return Estimate(interval.estimate, low, high, interval.values)


def measured(
    name: str,
    source: Source,
    xs: Sequence[float] | Sequence[str],
    estimates: Sequence[Estimate | None],
    *,
    factor: float = 1,
    shape: Shape = "line",
) -> Series:
    """Return the series of what was measured, times `factor`, with a gap where nothing counts."""
    return Series(
        name,
        source,
        xs,
        [factor * mean.value if mean else None for mean in estimates],
        [times(factor, _lowest(mean)) if mean else None for mean in estimates],
        [times(factor, mean.high) if mean else None for mean in estimates],
        shape=shape,
    )


def _lowest(mean: Estimate) -> float | None:
    return None if mean.low is None else max(mean.low, mean.value / LEAST_DRAWN)


def crosses(
    made: Sequence[Run], x: Callable[[Run], float], y: Callable[[Run], float]
) -> list[Series]:
    """Return crosses for those without an accepted run; nothing if there are none."""
    without = [run for run in made if not run.is_accepted]
    return rejected(list(map(x, without)), list(map(y, without)))


def rejected(xs: Sequence[float], ys: Sequence[float]) -> list[Series]:
    """Return crosses for rejected runs; nothing if there are none."""
    return [Series("rejected", "bound", xs, ys, shape="points")] if len(xs) else []


def lines(
    made: Mapping[str, Sequence[Run]],
    sources: Mapping[str, Source],
    x: Callable[[Run], float],
    y: Callable[[Run], Estimate],
    factor: float = 1,
) -> list[Series]:
    """Return a line of the accepted runs of each name, times `factor`, and crosses for others."""
    series = []
    for name, runs in made.items():
        if counted := accepted(runs):
            xs, ys = list(map(x, counted)), list(map(y, counted))
            series.append(measured(name, sources[name], xs, ys, factor=factor))
    every = list(chain.from_iterable(made.values()))
    return [*series, *crosses(every, x, lambda run: factor * y(run).value)]
