"""Reads runs of `scripts/bulk_post`: the answers that count while all threads post."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, TypeVar

from loadtests.generation.rows import Row, Window, closed_window
from loadtests.lab.repeated import Repeated, recorded_runs, samples_by_run
from loadtests.lab.results import Line, Results
from loadtests.machine_samples import Sample
from loadtests.models.estimates import Interval

MINED = 201  # the status of an answer about a flight that is in a block
MINE_INTERVAL_S = 0.5
BUSY_CLIENT = 0.7  # cores; above this the program that posts is near its own limit


@dataclass(frozen=True, slots=True)
class PostsLine(Line):
    """Describes a run of posts."""

    run: str
    mode: str
    threads: int


RunLine = TypeVar("RunLine", bound=PostsLine)


@dataclass(frozen=True)
class Posts(Generic[RunLine]):
    """Holds a run, all its rows, and the window and samples of the time while all threads post."""

    line: RunLine
    rows: Sequence[Row]
    window: Window
    samples: Sequence[Sample]

    @cached_property
    def kept(self) -> list[Row]:
        """Return good answers that promise what their mode says: in commit mode, mined flights."""
        is_commit = self.line.mode == "commit"
        return [row for row in self.window.rows if row.status == MINED or not is_commit]


@dataclass(frozen=True)
class Posted(Repeated[Posts[RunLine]], Generic[RunLine]):
    """Holds all runs of a load."""

    @cached_property
    def kept_per_s(self) -> Interval:
        """Return the rate of answers that promise what their mode says."""
        return self.over(lambda run: len(run.kept) / (run.window.end_s - run.window.start_s))

    @cached_property
    def latencies_s(self) -> list[float]:
        return [row.closed_response_s for run in self.runs for row in run.kept]


def posts(
    results: Results, table: str, kind: type[RunLine]
) -> tuple[list[Posts[RunLine]], list[str]]:
    """Return the runs that the table has lines of, and a sentence about each without figures."""
    samples, runs, unfinished = samples_by_run(results), list[Posts[RunLine]](), []
    for line, rows in recorded_runs(results, table, kind):
        try:
            window = closed_window(rows)
        except ValueError as problem:
            unfinished.append(f"Run {line.run} has no figures: {problem}.")
        else:
            start_s, end_s = window.start_s, window.end_s + 1
            during = [
                sample for sample in samples.get(line.run, ()) if start_s < sample.at_s <= end_s
            ]
            runs.append(Posts(line, rows, window, during))
    return runs, unfinished
