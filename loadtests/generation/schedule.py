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
from itertools import chain, islice, pairwise, repeat
from math import inf
from operator import attrgetter
from pathlib import Path
from random import Random

from loadtests.grouping import grouped
from loadtests.models.random_times import Gamma

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
        times_s = [_number(path, row, "intended_s") for row in rows]
    _check(times_s, str(path))
    return times_s


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
    law = Gamma(mean_s, cv)
    return (law.draw(random) for _ in repeat(None))


def demanded(demands_s: Iterable[float]) -> Iterator[Request]:
    """Requests to a server of known service time (`loadtests.servers.known`), one per demand."""
    return (Request(KNOWN_KIND, f"/?service_s={each_s:.9f}", each_s) for each_s in demands_s)


def arrivals(times_s: Sequence[float], requests: Iterable[Request]) -> list[Arrival]:
    """The schedule in which the i-th request arrives at the i-th time. Raises ValueError."""
    _check(times_s, "the schedule")
    asked = list(islice(requests, len(times_s)))
    if len(asked) < len(times_s):
        raise ValueError(f"{len(times_s)} arrivals have only {len(asked)} requests")
    return [
        Arrival(index, at_s, request.kind, request.path, request.demand_s, request.body)
        for index, (at_s, request) in enumerate(zip(times_s, asked, strict=True))
    ]


def _check(times_s: Sequence[float], what: str) -> None:
    if not times_s:
        raise ValueError(f"{what} has no arrivals")
    if not 0 <= times_s[0] <= times_s[-1] < inf or any(b < a for a, b in pairwise(times_s)):
        raise ValueError(f"{what}: arrival times must be finite, not negative, and never fall")


# --- keeping ---------------------------------------------------------------------------------


def save(path: Path, schedule: Iterable[Arrival]) -> None:
    """Write a schedule without any loss: `load` returns an equal one."""
    _write(path, COLUMNS, schedule)


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
    _check([arrival.intended_s for arrival in schedule], str(path))
    return schedule


def save_requests(path: Path, choices: Choices) -> None:
    """Write requests to choose from as a CSV file `kind,path,demand_s,body`."""
    _write(path, REQUEST_COLUMNS, chain.from_iterable(choices.values()))


def load_requests(path: Path) -> dict[str, list[Request]]:
    """Read requests to choose from, by kind. Columns demand_s and body may be missing.

    Raises ValueError.
    """
    requests = (
        Request(row["kind"], row["path"], _demand(path, row), row.get("body", ""))
        for row in _table(path, REQUEST_COLUMNS[:2])
    )
    return grouped(requests, lambda request: request.kind)


def _write(path: Path, columns: Sequence[str], records: Iterable[Arrival | Request]) -> None:
    """Write the fields of these names. The writer keeps all digits, and None becomes empty."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(map(attrgetter(*columns), records))


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
