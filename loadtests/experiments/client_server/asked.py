"""Draws requests of the study's three types: average, select, write. Pure.

The study draws the number of rows of a query from an exponential distribution and the first row
from a uniform one, to make the service time exponential, too. Here are three ways to choose rows:

    position   LIMIT n OFFSET k, as in the study
    key        the same rows, found by the primary key
    days       the service's own question, in SQL and over HTTP: a carrier's flights over some days.
               The first day is uniform, the number of days that follow exponential.

A write adds a copy of an existing flight. Everything is drawn from `Flights` with a `Random` of the
caller.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from random import Random
from typing import Any
from urllib.parse import urlencode

from loadtests.generation.schedule import Request
from loadtests.servers.mariadb import COLUMNS, PATH

AVERAGE, SELECT, WRITE = "average", "select", "write"
KINDS = (AVERAGE, SELECT, WRITE)

MEAN_SHARE = {AVERAGE: 1 / 5, SELECT: 1 / 20}  # mean share of all flights that a query reads
MEAN_DAYS_SHARE = 1 / 4  # mean share of all days in an interval

_WHAT = {AVERAGE: "AVG(ARR_DELAY)", SELECT: "*"}
_POSITIONS = "SELECT {what} FROM flights LIMIT {rows} OFFSET {first}"
_AVERAGE_OF_POSITIONS = (
    "SELECT {what} FROM (SELECT ARR_DELAY FROM flights LIMIT {rows} OFFSET {first}) AS chosen"
)
_KEYS = "SELECT {what} FROM flights WHERE TRANSACTION_ID BETWEEN {first} AND {last}"
_DAYS = (
    "SELECT {what} FROM flights WHERE OP_CARRIER_AIRLINE_ID = {carrier} "
    "AND FL_DATE BETWEEN '{initial}' AND '{final}'"
)

_SIZES = (
    re.compile(r"LIMIT (?P<rows>\d+) OFFSET (?P<passed>\d+)"),
    re.compile(r"TRANSACTION_ID BETWEEN (?P<first>\d+) AND (?P<last>\d+)"),
)

Flight = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Flights:
    """The flights that every system has. carriers: id -> number of flights. one: to be written."""

    count: int
    carriers: Mapping[int, int]
    first_day: date
    last_day: date
    one: Flight

    @property
    def days(self) -> int:
        """The number of days from the first to the last, both included."""
        return (self.last_day - self.first_day).days + 1


Drawn = Callable[[Flights, Random], Request]


def rows_drawn(flights: Flights, kind: str, random: Random) -> tuple[int, int]:
    """The number of rows, exponential and at most all, and the number of rows to skip before."""
    mean = flights.count * MEAN_SHARE[kind]
    rows = min(flights.count, 1 + int(random.expovariate(1 / mean)))
    return rows, random.randint(0, flights.count - rows)


def interval_drawn(flights: Flights, random: Random) -> tuple[int, date, date]:
    """A carrier, weighted by its flights, a uniform first day, and the last one.

    The number of days between them is exponential.
    """
    carriers = list(flights.carriers)
    carrier = random.choices(carriers, [flights.carriers[one] for one in carriers])[0]
    initial = flights.first_day + timedelta(random.randrange(flights.days))
    more = int(random.expovariate(1 / max(1.0, flights.days * MEAN_DAYS_SHARE)))
    return carrier, initial, min(flights.last_day, initial + timedelta(more))


def _of_rows(kind: str, statement: str) -> Drawn:
    """statement: has places for the number of rows, and of the first one and the last one."""

    def drawn(flights: Flights, random: Random) -> Request:
        rows, first = rows_drawn(flights, kind, random)
        places = {"rows": rows, "first": first, "last": first + rows - 1}
        return _sql(kind, statement.format(what=_WHAT[kind], **places))

    return drawn


def _of_days(kind: str) -> Drawn:
    def drawn(flights: Flights, random: Random) -> Request:
        carrier, initial, final = interval_drawn(flights, random)
        places = {"carrier": carrier, "initial": initial, "final": final}
        return _sql(kind, _DAYS.format(what=_WHAT[kind], **places))

    return drawn


def _over_http(kind: str, path: str, **more: str) -> Drawn:
    def drawn(flights: Flights, random: Random) -> Request:
        carrier, initial, final = interval_drawn(flights, random)
        question = {
            "OP_CARRIER_AIRLINE_ID": str(carrier),
            "INITIAL_DATE": initial.isoformat(),
            "FINAL_DATE": final.isoformat(),
        }
        return Request(kind, f"{path}?{urlencode(question | more)}")

    return drawn


def _insert(flights: Flights, _random: Random) -> Request:
    given = {name: flights.one[name] for name in COLUMNS if name in flights.one}
    values = ", ".join(_literal(value) for value in given.values())
    return _sql(WRITE, f"INSERT INTO flights ({', '.join(given)}) VALUES ({values})")  # noqa: S608


def _literal(value: object) -> str:
    if value is None:
        return "NULL"
    return "'" + str(value).replace("\\", "\\\\").replace("'", "''") + "'"


def _post(flights: Flights, _random: Random) -> Request:
    return Request(WRITE, "/transactions", body=json.dumps(dict(flights.one)))


def _sql(kind: str, statement: str) -> Request:
    return Request(kind, PATH, body=statement)


BY_POSITION: Mapping[str, Drawn] = {
    AVERAGE: _of_rows(AVERAGE, _AVERAGE_OF_POSITIONS),
    SELECT: _of_rows(SELECT, _POSITIONS),
    WRITE: _insert,
}
BY_KEY: Mapping[str, Drawn] = {kind: _of_rows(kind, _KEYS) for kind in _WHAT}
BY_DAYS: Mapping[str, Drawn] = {**{kind: _of_days(kind) for kind in _WHAT}, WRITE: _insert}
OF_SERVICE: Mapping[str, Drawn] = {
    AVERAGE: _over_http(AVERAGE, "/average_delays"),
    SELECT: _over_http(SELECT, "/flights", format="csv"),
    WRITE: _post,
}
OF_SERVICE_BY_SCAN: Mapping[str, Drawn] = {
    AVERAGE: _over_http(AVERAGE, "/average_delays", engine="scan"),
}


def sizes(statement: str) -> Sequence[float]:
    """The sizes that the work of a statement may grow with: 1, its rows, the rows skipped before.

    Rows are in thousands. A statement without numbers of rows, or a request over HTTP, has only 1.
    """
    by_position, by_key = (pattern.search(statement) for pattern in _SIZES)
    if by_position:
        return 1.0, int(by_position["rows"]) / 1e3, int(by_position["passed"]) / 1e3
    if by_key:
        return 1.0, (int(by_key["last"]) - int(by_key["first"]) + 1) / 1e3
    return (1.0,)
