"""Schedules of an open workload: when each request arrives, and what it asks. Pure.

A schedule is computed from a seed before anything is sent, so that a run can be repeated, replayed
through a model arrival by arrival, and divided over several load generators:

    random = Random(21)
    times_s = poisson_times(20.0, random, count=3000)
    schedule = arrivals(times_s, demanded(gamma_demands(0.0405, 0.03, random)))

`index` is the position in the schedule, from 0 without gaps; `intended_s` are seconds from the
run's start and never fall. On disk a schedule is a CSV file with a header line (RFC 4180):
`index,intended_s,kind,path,demand_s,body`; the demand is empty if only the server knows it.
"""

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, repeat
from math import inf
from pathlib import Path
from random import Random

from loadtests.models.distributions import with_mean_and_cv

COLUMNS = ("index", "intended_s", "kind", "path", "demand_s", "body")
REQUEST_COLUMNS = ("kind", "path", "demand_s", "body")
KNOWN_KIND = "known"

Choices = Mapping[str, Sequence["Request"]]  # kind -> requests to choose from


@dataclass(frozen=True, slots=True)
class Request:
    """A request to be sent. path: percent-encoded, with its query. demand_s: its service time.

    body: JSON to post; "" means GET. For a database, the path is its name after a slash and the
    body an SQL statement.
    """

    kind: str
    path: str
    demand_s: float | None = None
    body: str = ""


@dataclass(frozen=True, slots=True)
class Arrival:
    """One request of a schedule. intended_s: seconds from the run's start."""

    index: int
    intended_s: float
    kind: str
    path: str
    demand_s: float | None = None
    body: str = ""


# --- when ------------------------------------------------------------------------------------


def recorded_times(path: Path) -> list[float]:
    """Arrival times from the column `intended_s` of a CSV file. Raises ValueError."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file)
        if "intended_s" not in (rows.fieldnames or ()):
            raise ValueError(f"{path} has no column intended_s; it has {rows.fieldnames}")
        return _checked([_number(path, row, "intended_s") for row in rows], str(path))


# --- what ------------------------------------------------------------------------------------


def mixed(
    choices: Choices, random: Random, shares: Mapping[str, float] | None = None
) -> Iterator[Request]:
    """Endless requests at random: a kind by its share (equal if None), then one of that kind.

    Shares are relative weights: 60, 30, 10. Raises ValueError for a kind without requests.
    """
    weights = dict.fromkeys(choices, 1.0) if shares is None else dict(shares)
    missing = sorted(kind for kind in weights if not choices.get(kind))
    if missing or not weights:
        raise ValueError(f"no requests of kind {missing}; there are {sorted(choices)}")
    if min(weights.values()) < 0 or not sum(weights.values()):
        raise ValueError(f"shares are {weights}; none may be negative, nor all zero")
    return _mixed({kind: list(choices[kind]) for kind in weights}, random, weights)


def _mixed(
    choices: Mapping[str, list[Request]], random: Random, weights: Mapping[str, float]
) -> Iterator[Request]:
    kinds, shares = list(weights), list(weights.values())
    while True:
        yield random.choice(choices[random.choices(kinds, shares)[0]])


def gamma_demands(mean_s: float, cv: float, random: Random) -> Iterator[float]:
    """Endless service demands, gamma distributed with this mean and coefficient of variation.

    cv 0 is deterministic, 1 exponential. Raises ValueError.
    """
    law = with_mean_and_cv(mean_s, cv)
    return (law.draw(random) for _ in repeat(None))


def demanded(
    demands_s: Iterable[float], kind: str = KNOWN_KIND, path: str = "/"
) -> Iterator[Request]:
    """Requests to a server of known service time (`loadtests.servers.known`), one per demand."""
    return (Request(kind, f"{path}?service_s={demand_s:.9f}", demand_s) for demand_s in demands_s)


def arrivals(times_s: Sequence[float], requests: Iterable[Request]) -> list[Arrival]:
    """The schedule in which the i-th request arrives at the i-th time. Raises ValueError."""
    asked = iter(requests)
    found = []
    for index, at_s in enumerate(_checked(times_s, "the schedule")):
        request = next(asked, None)
        if request is None:
            raise ValueError(f"{len(times_s)} arrivals have only {index} requests")
        found.append(
            Arrival(index, at_s, request.kind, request.path, request.demand_s, request.body)
        )
    return found


def _checked(times_s: Sequence[float], what: str) -> list[float]:
    if not times_s:
        raise ValueError(f"{what} has no arrivals")
    if not 0 <= times_s[0] <= times_s[-1] < inf or any(b < a for a, b in pairwise(times_s)):
        raise ValueError(f"{what}: arrival times must be finite, not negative, and never fall")
    return list(times_s)


# --- dividing and keeping --------------------------------------------------------------------


def part(schedule: Sequence[Arrival], position: int, of: int) -> list[Arrival]:
    """The arrivals that generator number `position` (from 0) of `of` sends: every `of`-th one."""
    if not 0 <= position < of:
        raise ValueError(f"position is {position} of {of}")
    return [arrival for arrival in schedule if arrival.index % of == position]


def save(path: Path, schedule: Iterable[Arrival]) -> None:
    """Write a schedule without any loss: `load` returns an equal one."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for arrival in schedule:
            demand = "" if arrival.demand_s is None else repr(arrival.demand_s)
            times = (arrival.index, repr(arrival.intended_s))
            writer.writerow((*times, arrival.kind, arrival.path, demand, arrival.body))


def load(path: Path) -> list[Arrival]:
    """Read a saved schedule. Raises ValueError with the file's name if it is not one."""
    rows = _table(path, COLUMNS[:5])
    schedule = [
        Arrival(
            index,
            _number(path, row, "intended_s"),
            row["kind"],
            row["path"],
            _demand(path, row),
            row.get("body", ""),
        )
        for index, row in enumerate(rows)
    ]
    if [row["index"] for row in rows] != [str(arrival.index) for arrival in schedule]:
        raise ValueError(f"{path}: index does not count from 0 without gaps")
    _checked([arrival.intended_s for arrival in schedule], str(path))
    return schedule


def save_requests(path: Path, choices: Choices) -> None:
    """Write requests to choose from as a CSV file `kind,path,demand_s,body`."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(REQUEST_COLUMNS)
        for request in (request for asked in choices.values() for request in asked):
            demand = "" if request.demand_s is None else repr(request.demand_s)
            writer.writerow((request.kind, request.path, demand, request.body))


def load_requests(path: Path) -> dict[str, list[Request]]:
    """Read requests to choose from, by kind. Columns demand_s and body may be missing.

    Raises ValueError.
    """
    found: dict[str, list[Request]] = {}
    for row in _table(path, REQUEST_COLUMNS[:2]):
        request = Request(row["kind"], row["path"], _demand(path, row), row.get("body", ""))
        found.setdefault(request.kind, []).append(request)
    return found


def _table(path: Path, columns: Sequence[str]) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file, restval="")
        if missing := sorted(set(columns) - set(reader.fieldnames or ())):
            raise ValueError(f"{path} has no column {missing[0]}; it has {reader.fieldnames}")
        rows = list(reader)
    if not rows:
        raise ValueError(f"{path} has no rows")
    if bad := [row["path"] for row in rows if not row["path"].startswith("/")]:
        raise ValueError(f"{path}: path {bad[0]!r} does not begin with /")
    return rows


def _demand(path: Path, row: Mapping[str, str]) -> float | None:
    return _number(path, row, "demand_s") if row.get("demand_s") else None


def _number(path: Path, row: Mapping[str, str], column: str) -> float:
    try:
        return float(row[column])
    except ValueError as problem:
        raise ValueError(f"{path}: {column} is {row[column]!r}, not a number") from problem
