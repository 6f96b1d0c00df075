"""Does what every experiment does with its runs: reads, groups, estimates, draws.

A run that was rejected by the rules is in no figure and no table but that of all runs.

cells = Repeated.of_each(runs, lambda run: run.customers)
x = cells[0].over(lambda run: run.throughput)   # mean and interval
measured("HTTP", "ours", xs, [x, …])            # a series with intervals
lines({"HTTP": cells, …}, sources, x, y)        # several of them
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count
from typing import Generic, Protocol, Self, TypeVar

from loadtests.generation.rows import Row, read_rows
from loadtests.generation.run import REQUESTS, RUNS, SAMPLES
from loadtests.grouping import grouped
from loadtests.lab.content import times
from loadtests.lab.report.drawing import Series, Shape, Source
from loadtests.lab.results import YES, Results, ResultsError
from loadtests.machine_samples import Sample
from loadtests.machine_samples import read as read_samples
from loadtests.models.estimates import Interval, confidence_interval
from loadtests.tables import OneLine


def rows_by_run(results: Results) -> Mapping[str, list[Row]]:
    """Return the rows of each run, in the order of writing; an unknown run has no rows.

    Raises ValueError if the file is not one of raw rows, and ResultsError if it lacks some.
    """
    path = results.folder / REQUESTS
    rows = read_rows(path) if path.exists() else []
    by_run = defaultdict(list, grouped(rows, lambda row: row.run))
    for line in judged_runs(results):
        run, made, kept = line["run"], int(line.get("requests") or 0), len(by_run[line["run"]])
        if kept < made:
            cure = f"take its line out of {RUNS} to do without it"
            raise ResultsError(f"{path} has {kept} of the {made} rows of {run}; {cure}")
    return by_run


def judged_runs(results: Results) -> list[dict[str, str]]:
    """Return the rows of the table that lists each run, whether it counts, and why not."""
    return results.rows_if_any(RUNS.removesuffix(".csv"))


def accepted_by_run(results: Results) -> Mapping[str, bool]:
    """Return, for each run that was judged, whether it counts by the rules."""
    return {line["run"]: line["accepted"] == YES for line in judged_runs(results)}


def reasons_by_run(results: Results) -> Mapping[str, str]:
    """Return, for each run that was judged, why it does not count; "" if it does."""
    return {line["run"]: line["reasons"] for line in judged_runs(results)}


def most_common_reason(results: Results, runs: Iterable[str] | None = None) -> str:
    """Return the words of the rule that rejected most of these runs, or of all; "" if none was."""
    by_run = reasons_by_run(results)
    texts = by_run.values() if runs is None else [by_run.get(run, "") for run in runs]
    reasons = chain.from_iterable(text.split("; ") for text in texts)
    words = Counter(reason.partition(": ")[2] for reason in reasons if reason)
    return words.most_common(1)[0][0] if words else ""


def samples_by_run(results: Results) -> Mapping[str, list[Sample]]:
    """Return the samples of the machine during each run, if there are any."""
    return read_samples(results.folder / SAMPLES)


def recorded_runs(
    results: Results, table: str, kind: type[OneLine]
) -> Iterator[tuple[OneLine, list[Row]]]:
    """Yield the line of each accepted run in a table of runs, if there is one, and its rows."""
    rows, is_accepted = rows_by_run(results), accepted_by_run(results)
    for line in results.lines_if_any(table, kind):
        run = line.cells()["run"]
        if is_accepted.get(run):
            yield line, rows[run]


def unused_name(results: Results, prefix: str) -> str:
    """Return `prefix-N` with the lowest N from 1 under which no run left rows, broken or not."""
    taken = {*rows_by_run(results), *samples_by_run(results), *accepted_by_run(results)}
    return next(name for n in count(1) if (name := f"{prefix}-{n}") not in taken)


LEAST_DRAWN = 10  # an interval is drawn down to this part of its mean: axes may be logarithmic


Run = TypeVar("Run")
Run_co = TypeVar("Run_co", covariant=True)
Line_co = TypeVar("Line_co", covariant=True)


class Listed(Protocol[Line_co]):
    """Has the line of a run in a table of runs."""

    @property
    def line(self) -> Line_co:
        """Return the line."""


@dataclass(frozen=True)
class Repeated(Generic[Run_co]):
    """Holds the runs of a measurement that count."""

    runs: Sequence[Run_co]

    @classmethod
    def of_each(cls, runs: Iterable[Run_co], key: Callable[[Run_co], Hashable]) -> list[Self]:
        """Return a measurement for all runs of a key, in the order of the keys' first runs."""
        return [cls(made) for made in grouped(runs, key).values()]

    def over(self, value: Callable[[Run_co], float]) -> Interval:
        return confidence_interval([value(run) for run in self.runs])

    @property
    def line(self: "Repeated[Listed[OneLine]]") -> OneLine:
        """Return the line of its first run, which has what is the same for all."""
        return self.runs[0].line


def measured(
    name: str,
    source: Source,
    xs: Sequence[float] | Sequence[str],
    means: Sequence[Interval | None],
    *,
    factor: float = 1,
    shape: Shape = "line",
) -> Series:
    """Return the series of what was measured, times `factor`, with a gap where nothing counts."""
    ends = [mean.ends if mean else (None, None) for mean in means]
    lows = [
        None if mean is None or low is None else max(low, mean.estimate / LEAST_DRAWN)
        for mean, (low, _) in zip(means, ends, strict=True)
    ]
    return Series(
        name,
        source,
        xs,
        [factor * mean.estimate if mean else None for mean in means],
        [times(factor, low) for low in lows],
        [times(factor, high) for _, high in ends],
        shape=shape,
    )


def lines(
    made: Mapping[str, Sequence[Run]],
    sources: Mapping[str, Source],
    x: Callable[[Run], float],
    y: Callable[[Run], Interval],
    factor: float = 1,
) -> list[Series]:
    """Return a line with intervals, times `factor`, for the runs of each name."""
    return [
        measured(name, sources[name], list(map(x, runs)), list(map(y, runs)), factor=factor)
        for name, runs in made.items()
    ]
