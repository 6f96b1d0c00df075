"""Reads runs of `scripts/bulk_post`: the answers that count while all threads post."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, Protocol, TypeVar

from loadtests.generation.rows import Row
from loadtests.generation.window import Window, busy_window
from loadtests.lab.repeated import accepted_by_run, rows_by_run
from loadtests.lab.results import Results

MINED = 201  # the status of an answer about a flight that is in a block
BUSY_CLIENT = 0.7  # cores; above this the program that posts is near its own limit


class Posting(Protocol):
    """A line of a table about a run. until_s: when it was told to end, since its first request."""

    @property
    def run(self) -> str:
        """The id of the run."""

    @property
    def mode(self) -> str:
        """What an answer promises."""

    @property
    def until_s(self) -> float:
        """The end, in seconds."""


Told = TypeVar("Told", bound=Posting)


@dataclass(frozen=True)
class Posts(Generic[Told]):
    """A run. window: while all threads post. rows: those of the whole run."""

    line: Told
    rows: Sequence[Row]
    window: Window
    is_accepted: bool

    @cached_property
    def kept(self) -> list[Row]:
        """Good answers that promise what their mode says: in commit mode, only mined flights."""
        is_commit = self.line.mode == "commit"
        return [row for row in self.window.rows if row.status == MINED or not is_commit]

    @property
    def kept_per_s(self) -> float:
        """The throughput of the answers in `kept`."""
        return len(self.kept) / (self.window.end_s - self.window.start_s)


def posts(results: Results, lines: Iterable[Told]) -> tuple[list[Posts[Told]], list[str]]:
    """The runs of these lines, and a sentence about each run that has no figures."""
    rows, accepted = rows_by_run(results), accepted_by_run(results)
    found, unfinished = list[Posts[Told]](), []
    for line in lines:
        own = rows[line.run]
        try:
            window = busy_window(own, line.until_s)
        except ValueError as problem:
            unfinished.append(f"Run {line.run} has no figures: {problem}.")
        else:
            found.append(Posts(line, own, window, accepted.get(line.run, False)))
    return found, unfinished
