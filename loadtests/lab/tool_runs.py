"""Holds the run of a load generator, and what readers of its files share."""

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from loadtests.generation.rows import Row
from loadtests.lab.results import ResultsError

ENCODING = "utf-8-sig"  # with or without the mark that some programs begin with
S, MS, US, NS = 1.0, 1e-3, 1e-6, 1e-9
UNKNOWN = -1  # customers of a run that may be closed, by how many is not known or changed
MOSTLY = 0.9  # a number that so many requests say is that of the run
K6_STATS = "avg,min,med,max,p(90),p(95),p(99)"
ALL_FAILED = "has no request that succeeded"
REMEDY = "correct the line, or take it out if the file was cut off there"


@dataclass(frozen=True, slots=True)
class ToolRun:
    """Holds a run of a load generator.

    rows: of each request; none of a file that only sums up. duration_s, mean_s: of such a file.
    quantiles: (share, seconds) from the least to the largest. customers: of a closed run; 0 of one
    that is known to be open; None if only rows can tell; or UNKNOWN. threads, connections: of an
    open run without rows, whose connections each send at even intervals, as wrk2's do.
    """

    name: str
    tool: str
    rows: Sequence[Row] = ()
    requests: int = 0
    failed: int = 0
    duration_s: float = 0.0
    mean_s: float = 0.0
    quantiles: Sequence[tuple[float, float]] = ()
    customers: int | None = None
    threads: int = 1
    connections: int = 1


def summary(
    name: str,
    tool: str,
    sums: tuple[int, int, float, float],
    quantiles: Mapping[float, float],
    customers: int | None = None,
) -> list[ToolRun]:
    """Return a run. sums: requests, failed ones, seconds, and the mean time.

    Raises ResultsError if no request succeeded.
    """
    if 0 < sums[0] <= sums[1]:
        raise ResultsError(ALL_FAILED)
    return [ToolRun(name, tool, (), *sums, tuple(sorted(quantiles.items())), customers)]


NOT_READ = (ValueError, IndexError, TypeError, AttributeError, ArithmeticError, csv.Error)


def value_of(problem: Exception) -> str:
    """Return what could not be read, by the exception that says so."""
    return str(problem).rpartition(": ")[2][:60]  # without Python's words for it


@contextmanager
def line_of(number: int) -> Iterator[None]:
    """Turn what goes wrong with a line into a ResultsError that names it."""
    try:
        yield
    except ResultsError as problem:
        raise ResultsError(f"has in line {number} {problem}") from None
    except KeyError as problem:
        raise ResultsError(f"lacks {problem} in line {number}, which its format has") from problem
    except NOT_READ as problem:
        why = f"a value that its format does not allow, {value_of(problem)}; {REMEDY}"
        raise ResultsError(f"has in line {number} {why}") from problem


def table(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the number of each line and its cells, which a comma, semicolon or tab separates."""
    with path.open(encoding=ENCODING, newline="") as file:
        delimiter = _delimiter(file.readline())
        file.seek(0)
        reader = csv.DictReader(file, delimiter=delimiter, restval="")
        for row in reader:
            yield reader.line_num, row


def _delimiter(header: str) -> str:
    return max(",;\t", key=header.count)


def has_columns(head: str, names: set[str]) -> bool:
    """Return whether the first line of a file has these names of columns."""
    header = head.partition("\n")[0].strip()
    return names <= set(next(csv.reader([header], delimiter=_delimiter(header)), []))


def k6_customers(least: int, most: int, initialized: int, busy_s: float, duration_s: float) -> int:
    """Return the customers of a run of k6.

    least, most: virtual users at work (`vus`). initialized: all there are (`vus_max`). busy_s: what
    all iterations took, 0 if it is not known. Those of a closed run are always at an iteration, in
    which they sleep, too. If some are not, they wait for an arrival, unless their number is raised.
    """
    is_constant = busy_s >= MOSTLY * most * duration_s if busy_s else least == most
    if initialized == 1 or (most == initialized and is_constant):
        return initialized
    return 0 if most < initialized or least == most else UNKNOWN


Form = tuple[Callable[[str], bool], Callable[[Path], list[ToolRun]]]  # is it, and its reader


def has(*words: str) -> Callable[[str], bool]:
    """Return a test of whether the beginning of a file has all these words."""
    return lambda head: all(word in head for word in words)
