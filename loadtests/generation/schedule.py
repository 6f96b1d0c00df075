"""Makes schedules of an open workload: when each request arrives, and what it asks. Pure.

A schedule is computed from a seed before anything is sent, so that a run can be repeated, replayed
through a model arrival by arrival, and divided over several load generators.

On disk a schedule is a table (`loadtests.tables`) of arrivals. Functions raise ValueError, which
names the file.
"""

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from itertools import chain, pairwise, repeat
from math import inf
from pathlib import Path
from random import Random
from typing import TypeVar

from loadtests.grouping import grouped
from loadtests.models.random_times import Gamma
from loadtests.tables import lines_of, types_of

KNOWN_KIND = "known"

Choices = Mapping[str, Sequence["Request"]]  # kind -> requests to choose from


@dataclass(frozen=True, slots=True)
class Request:
    """Describes a request. path: percent-encoded, with its query. body: JSON to post; "": a GET.

    For a database, the path is its name after a slash and the body an SQL statement. demand_s: its
    service time; None if only the server knows it.
    """

    kind: str
    path: str
    demand_s: float | None = None
    body: str = ""


@dataclass(frozen=True, slots=True)
class Arrival:
    """Describes a request of a schedule. index: its position, from 0 without gaps.

    intended_s: seconds from the run's start, which never fall.
    """

    index: int
    intended_s: float
    kind: str
    path: str
    demand_s: float | None = None
    body: str = ""


def mixed(
    choices: Choices, random: Random, shares: Mapping[str, float] | None = None
) -> Iterator[Request]:
    """Draw requests without end: a kind by its share (equal if None), then one of that kind.

    Shares are relative weights: 60, 30, 10.
    """
    weights = dict.fromkeys(choices, 1.0) if shares is None else dict(shares)
    missing = sorted(kind for kind in weights if not choices.get(kind))
    if missing or not weights:
        raise ValueError(f"no requests of kind {missing}; there are {sorted(choices)}")
    if min(weights.values()) < 0 or not sum(weights.values()):
        raise ValueError(f"shares are {weights}; none may be negative, nor all zero")
    kinds = [list(choices[kind]) for kind in weights]
    relative = list(weights.values())
    return (random.choice(random.choices(kinds, relative)[0]) for _ in repeat(None))


def gamma_demands(mean_s: float, cv: float, random: Random) -> Iterator[float]:
    return map(Gamma(mean_s, cv).draw, repeat(random))


def demanded(demands_s: Iterable[float]) -> Iterator[Request]:
    """Yield a request to a server of known service time (`loadtests.servers.known`) per demand."""
    return (Request(KNOWN_KIND, f"/?service_s={demand_s:.9f}", demand_s) for demand_s in demands_s)


def arrivals(times_s: Sequence[float], requests: Iterable[Request]) -> list[Arrival]:
    """Return the schedule in which the i-th request arrives at the i-th time."""
    _check(times_s, "the schedule")
    schedule = [
        Arrival(index, at_s, *astuple(request))
        for index, (at_s, request) in enumerate(zip(times_s, requests, strict=False))
    ]
    if len(schedule) < len(times_s):
        raise ValueError(f"{len(times_s)} arrivals have only {len(schedule)} requests")
    return schedule


def _check(times_s: Sequence[float], what: str) -> None:
    if not times_s:
        raise ValueError(f"{what} has no arrivals")
    if not 0 <= times_s[0] <= times_s[-1] < inf or any(b < a for a, b in pairwise(times_s)):
        raise ValueError(f"{what}: arrival times must be finite, not negative, and never fall")


def save(path: Path, schedule: Iterable[Arrival]) -> None:
    """Write a schedule without any loss: `load` returns an equal one."""
    _write(path, Arrival, schedule)


def load(path: Path) -> list[Arrival]:
    schedule = _read(path, Arrival)
    if [arrival.index for arrival in schedule] != list(range(len(schedule))):
        raise ValueError(f"{path}: index does not count from 0 without gaps")
    _check([arrival.intended_s for arrival in schedule], str(path))
    return schedule


def save_requests(path: Path, choices: Choices) -> None:
    """Write requests to choose from as a CSV file `kind,path,demand_s,body`."""
    _write(path, Request, chain.from_iterable(choices.values()))


def load_requests(path: Path) -> dict[str, list[Request]]:
    """Read requests to choose from, by kind. Columns demand_s and body may be missing."""
    return grouped(_read(path, Request), lambda request: request.kind)


Record = TypeVar("Record", Request, Arrival)


def _write(path: Path, kind: type[Record], records: Iterable[Record]) -> None:
    """Write these records. The writer keeps all digits, and None becomes empty."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(types_of(kind))
        writer.writerows(map(astuple, records))


def _read(path: Path, kind: type[Record]) -> list[Record]:
    with path.open(encoding="utf-8", newline="") as file:
        records = list(lines_of(kind, path, csv.reader(file)))
    if not records:
        raise ValueError(f"{path} has no rows")
    if bad := [record.path for record in records if not record.path.startswith("/")]:
        raise ValueError(f"{path}: path {bad[0]!r} does not begin with /")
    return records
