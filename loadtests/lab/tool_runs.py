"""Holds a run of a load generator, makes it of the requests in a file, and names what is wrong."""

import csv
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import pairwise
from math import inf
from pathlib import Path
from typing import TypeVar

import numpy as np

from loadtests.generation.rows import CUSTOMERS_AT_MOST, Row, closed_index, customer_of
from loadtests.grouping import grouped
from loadtests.lab.response_times import Times, times_of
from loadtests.lab.results import ResultsError

ENCODING = "utf-8-sig"  # with or without the mark that some programs begin with
MS, NS = 1e-3, 1e-9
OPEN, UNKNOWN = 0, -1  # in place of a number of customers
JOINT = "Locust --raw, beside others"  # tool of a run that was only a part of what came meanwhile
MOSTLY = 0.9  # a number that so many requests say is that of the run
EVEN = 0.05  # arrivals whose gaps vary less are a generator's, not those of closed customers
PRECISE_S = 1e-5
LEAST_REQUESTS = 20
STEP_S = 1.0  # by which a clock is set back at least
ALL_FAILED = "has no request that succeeded"
FAULTS = (
    ResultsError,
    LookupError,
    ValueError,
    TypeError,
    AttributeError,
    ArithmeticError,
    csv.Error,
)

Item = TypeVar("Item")
Parsed = TypeVar("Parsed")


@dataclass(frozen=True, slots=True)
class ToolRun:
    """Holds a run of a load generator.

    rows: of each request by its start, whose indexes name the customers if these are known; none of
    a file that only sums up. customers: of a closed run, OPEN or UNKNOWN.
    """

    name: str
    tool: str
    times: Times
    rows: Sequence[Row]
    customers: int

    @property
    def is_alone(self) -> bool:
        """Tell whether no request met another, so that response times are service times."""
        if self.customers != OPEN or not self.rows:
            return self.customers == 1
        return all(a.done_s <= b.intended_s + PRECISE_S for a, b in pairwise(self.rows))

    @property
    def rate_per_s(self) -> float:
        """Return the number of arrivals a second."""
        length_s = self.rows[-1].intended_s - self.rows[0].intended_s if self.rows else 0.0
        if length_s > 0:
            return (len(self.rows) - 1) / length_s
        return self.times.requests / self.times.duration_s  # all at once, or only summed up

    @property
    def of_customers(self) -> list[list[Row]]:
        """Return the rows of each closed customer, if rows name them."""
        return [*grouped(self.rows, customer_of).values()]


@dataclass(frozen=True, slots=True)
class Request:
    """Holds a request as a file tells it. user: empty if the file does not say."""

    start_s: float
    took_s: float
    status: int
    kind: str = ""
    user: str = ""


def run_of_requests(
    path: Path,
    tool: str,
    requests: Iterable[Request],
    customers: int | None = None,
    rounded_s: float = PRECISE_S,
) -> ToolRun:
    """Return a run with a row for each request.

    customers: as the file says; None if it does not. rounded_s: requests seem to meet for so long
    because of how the tool rounds. Raises ResultsError if no request succeeded, and if the tool's
    clock was set back meanwhile.
    """
    given = [*requests]
    require_requests(len(given))
    require_times([request.took_s for request in given])
    _require_steady_clock(given)
    in_order = sorted(given, key=lambda request: request.start_s)
    known, indexes = _customers(in_order, customers, rounded_s)
    rows = []
    for index, request in zip(indexes, in_order, strict=True):
        at_s = request.start_s - in_order[0].start_s
        times_s = at_s, at_s, None, at_s + request.took_s, None
        rows.append(Row(path.name, index, request.kind or "-", *times_s, request.status, ""))
    return run_of_rows(path.name, tool, rows, known)


def run_of_rows(name: str, tool: str, rows: Sequence[Row], customers: int) -> ToolRun:
    """Return a run with these rows. Raises ResultsError if there are few, or none succeeded."""
    require_requests(len(rows))
    if (times := times_of(rows, is_open=customers <= OPEN)) is None:
        raise ResultsError(ALL_FAILED)
    return ToolRun(name, tool, times, rows, customers)


def require_requests(count: int) -> None:
    if count < LEAST_REQUESTS:
        raise ResultsError(f"has too few requests, {count}; at least {LEAST_REQUESTS} are needed")


def require_times(times_s: Sequence[float]) -> None:
    """Raise ResultsError for times that cannot be, and if all are 0."""
    if wrong := [time_s for time_s in times_s if not 0 <= time_s < inf]:
        raise ResultsError(f"has a time of {wrong[0]:g} s, which cannot be")
    if not any(times_s):
        raise ResultsError("has only times of 0 s; the clock is too coarse for this server")


def _require_steady_clock(requests: Sequence[Request]) -> None:
    """Raise ResultsError if a request ended long before one that was written earlier began.

    That cannot be if they are written as they begin, or as they end. Several machines of JMeter
    write into one file by turns, so there only the requests of each user are in order.
    """
    counts = Counter(request.user for request in requests)
    latest_s = defaultdict[str, float](lambda: -inf)
    for request in requests:
        user = request.user if counts[request.user] > 1 else ""
        latest_s[user] = max(latest_s[user], request.start_s)
        if (back_s := latest_s[user] - request.start_s - request.took_s) > STEP_S:
            why = (
                "its clock was set back, or its lines are in disorder; measure again, or sort them"
            )
            raise ResultsError(
                f"has a request that ended {back_s:.1f} s before one above it began; {why}"
            )


def _customers(
    requests: Sequence[Request], said: int | None, rounded_s: float
) -> tuple[int, Sequence[int]]:
    """Return how many customers sent the requests, and the index of each row.

    Users are customers if there are as many as the file says, and each waits for an answer.
    Otherwise rows show customers who ask again at once: as many requests are under way nearly all
    the time, and do not begin at even intervals. A run is open if neither says anything else.
    """
    users = [request.user for request in requests]
    own = grouped(requests, lambda request: request.user).values()
    met = any(b.start_s < a.start_s + a.took_s - rounded_s for us in own for a, b in pairwise(us))
    if len(own) == said and said <= CUSTOMERS_AT_MOST and not met:
        return said, _closed_indexes(users)
    askers = _askers(requests, rounded_s)
    most, starts_s = max(askers) + 1, np.array([request.start_s for request in requests])
    took_s = [request.took_s for request in requests]
    length_s = float(np.max(starts_s + took_s) - starts_s[0])
    gaps_s = np.diff(starts_s)
    if (
        said in {None, UNKNOWN, most}
        and most <= CUSTOMERS_AT_MOST
        and MOSTLY <= sum(took_s) / length_s / most <= 1 / MOSTLY
        and gaps_s.std() > EVEN * gaps_s.mean()
    ):
        return most, _closed_indexes(askers)
    several = UNKNOWN if said == 1 else said or OPEN  # a user of k6 may send several at once
    return several, range(len(requests))


def _askers(requests: Sequence[Request], rounded_s: float) -> list[int]:
    """Return who sent each request if whoever was answered first asks again first."""
    ends_s, askers, customers = list[tuple[float, int]](), list[int](), 0
    for request in requests:
        if ends_s and ends_s[0][0] <= request.start_s + rounded_s:
            _, customer = heappop(ends_s)
        else:
            customer, customers = customers, customers + 1
        heappush(ends_s, (request.start_s + request.took_s, customer))
        askers.append(customer)
    return askers


def _closed_indexes(askers: Sequence[str] | Sequence[int]) -> list[int]:
    numbers, indexes = dict[str | int, list[int]](), list[int]()
    for asker in askers:
        customer, number = numbers.setdefault(asker, [len(numbers), 0])
        indexes.append(closed_index(customer, number))
        numbers[asker][1] += 1
    return indexes


def fault(problem: Exception) -> str:
    """Say what is wrong with a file, by one of FAULTS."""
    if isinstance(problem, ResultsError):
        return str(problem)
    if isinstance(problem, KeyError):
        return f"lacks {problem}, which its format has"
    if isinstance(problem, json.JSONDecodeError):
        return "has text that is not JSON by itself"
    value = str(problem).rpartition(": ")[2][:60]  # without Python's words for it
    return f"has a value that its format does not allow, {value}"


def parsed(lines: Iterable[tuple[int, Item]], parse: Callable[[Item], Parsed]) -> Iterator[Parsed]:
    """Yield what is in each numbered line. Raises ResultsError that names a line with a fault."""
    for number, line in lines:
        try:
            item = parse(line)
        except FAULTS as problem:
            cure = "correct it, or take it out if the file was cut off there"
            raise ResultsError(f"{fault(problem)}, in line {number}; {cure}") from problem
        yield item
