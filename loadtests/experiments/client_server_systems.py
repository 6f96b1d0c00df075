"""Starts the systems that are measured, each with the same flights, and draws their requests.

The flights are generated into a chain of the service, read from it over HTTP as CSV, and loaded
into MariaDB. Writes are equally durable: a system answers when the row is on the disk.

The study draws the number of rows of a query from an exponential distribution and the first row
from a uniform one, to make the service time exponential, too. Here are two ways to choose rows:

    position   LIMIT n OFFSET k, as in the study
    days       the service's own question, in SQL and over HTTP: a carrier's flights over some days.
               The first day is uniform, the number of days that follow exponential.

A write adds a copy of an existing flight.
"""

# ruff: noqa: S608  statements are made of our own words and numbers

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cached_property
from random import Random
from typing import Any

from pymysql.converters import escape_string

from loadtests.chains import Chain, generated, imported
from loadtests.generation.schedule import KNOWN_KIND, Request
from loadtests.lab.experiment import Run
from loadtests.processes import ProgramFailed, Service, exchanged, running
from loadtests.questions import as_sent, flights_of_block
from loadtests.servers.gunicorn import Gunicorn
from loadtests.servers.known import known_server
from loadtests.servers.mariadb import COLUMNS, PATH, Database, mariadb
from loadtests.servers.service import ENDLESS_QUEUE

AVERAGE, SELECT, WRITE = "average", "select", "write"
KINDS = (AVERAGE, SELECT, WRITE)

MEAN_SHARE = {AVERAGE: 1 / 5, SELECT: 1 / 20}  # mean share of all flights that a query reads
MEAN_DAYS_SHARE = 1 / 4  # mean share of all days in an interval

KNOWN_SERVICE_TIME_S = 0.04
SERVICE_THREADS = 32  # number of each worker; a quarter of them may export flights at once
QUICK_FLIGHTS, FULL_FLIGHTS = 40_000, 200_000

_POSITIONS = "FROM flights LIMIT {rows} OFFSET {first}"
_DAYS = (
    "FROM flights WHERE OP_CARRIER_AIRLINE_ID = {carrier} "
    "AND FL_DATE BETWEEN '{initial}' AND '{final}'"
)
_INSERT = "INSERT INTO flights ({columns}) VALUES ({values})"
_QUESTION = "OP_CARRIER_AIRLINE_ID={carrier}&INITIAL_DATE={initial}&FINAL_DATE={final}"


@dataclass(frozen=True, slots=True)
class System:
    """Tells what reports call a system, and what it can be asked.

    templates: request type -> statement, or path over HTTP, with places that `request` fills.
    """

    title: str
    templates: Mapping[str, str]


KNOWN, POSITION, INDEXED = "known", "mariadb-position", "mariadb-indexed"
SERVICE, SCAN = "service", "service-scan"
SYSTEMS = {
    POSITION: System(
        "MariaDB, as in the study",
        {
            AVERAGE: f"SELECT AVG(ARR_DELAY) FROM (SELECT ARR_DELAY {_POSITIONS}) AS chosen",
            SELECT: f"SELECT * {_POSITIONS}",
            WRITE: _INSERT,
        },
    ),
    INDEXED: System(
        "MariaDB, days, indexed",
        {
            AVERAGE: f"SELECT AVG(ARR_DELAY) {_DAYS}",
            SELECT: f"SELECT * {_DAYS}",
            WRITE: _INSERT,
        },
    ),
    SERVICE: System(
        "Flightchain",
        {
            AVERAGE: f"/average_delays?{_QUESTION}",
            SELECT: f"/flights?{_QUESTION}&format=csv",
            WRITE: "/transactions",
        },
    ),
    SCAN: System("Flightchain, engine=scan", {AVERAGE: f"/average_delays?{_QUESTION}&engine=scan"}),
    KNOWN: System("Known server", {KNOWN_KIND: "/"}),
}


def named(system: str, kind: str) -> str:
    """Return what reports call a request type of a system; the known server has a single type."""
    title = SYSTEMS[system].title
    return title if kind == KNOWN_KIND else f"{title}, {kind}"


@dataclass(frozen=True, slots=True)
class Flights:
    """Describes the flights of every system. carriers: id -> number of flights. new: one to add."""

    count: int
    carriers: Mapping[int, int]
    first_day: date
    last_day: date
    new: Mapping[str, Any]


def request(flights: Flights, kind: str, template: str, random: Random) -> Request:
    """Draw a request of this type at random. template: of `System.templates`."""
    is_path = template.startswith("/")
    if kind == WRITE:
        if is_path:
            return Request(kind, template, body=json.dumps(flights.new))
        new = {name: flights.new[name] for name in COLUMNS if name in flights.new}
        columns, values = ", ".join(new), ", ".join(map(_literal, new.values()))
        return Request(kind, PATH, body=template.format(columns=columns, values=values))
    places: Mapping[str, object] = (
        draw_days(flights, random) if "{carrier}" in template else draw_rows(flights, kind, random)
    )
    text = template.format(**places)
    return Request(kind, text) if is_path else Request(kind, PATH, body=text)


def draw_rows(flights: Flights, kind: str, random: Random) -> dict[str, int]:
    """Draw a number of rows, exponential and at most all, and the first row, from 0."""
    mean = flights.count * MEAN_SHARE[kind]
    rows = min(flights.count, 1 + int(random.expovariate(1 / mean)))
    return {"rows": rows, "first": random.randint(0, flights.count - rows)}


def draw_days(flights: Flights, random: Random) -> dict[str, object]:
    """Draw a carrier, weighted by its flights, a uniform first day, and an exponential length."""
    days = (flights.last_day - flights.first_day).days + 1
    carrier = random.choices(list(flights.carriers), list(flights.carriers.values()))[0]
    initial = flights.first_day + timedelta(random.randrange(days))
    more = int(random.expovariate(1 / max(1.0, days * MEAN_DAYS_SHARE)))
    final = min(flights.last_day, initial + timedelta(more))
    return {"carrier": carrier, "initial": initial, "final": final}


def _literal(value: object) -> str:
    return "NULL" if value is None else f"'{escape_string(str(value))}'"


def sizes(statement: str) -> Sequence[float]:
    """Return what the work of a statement may grow with: 1, its rows, the rows skipped before.

    Rows are in thousands. A statement without numbers of rows, or a request over HTTP, has only 1.
    """
    position = re.search(r"LIMIT (\d+) OFFSET (\d+)", statement)
    return 1.0, *(int(rows) / 1e3 for rows in (position.groups() if position else ()))


class Rig:
    """Starts the systems, on flights in the run's scratch folder.

    The flights are made when they are first needed; then ProgramFailed may be raised.
    """

    def __init__(self, run: Run) -> None:
        self._run, self._csv = run, run.scratch / "flights.csv"

    @cached_property
    def _chain(self) -> Chain:
        flights = self._run.choose(QUICK_FLIGHTS, FULL_FLIGHTS)
        self._run.say(f"importing {flights:,} generated flights")
        return imported(generated(flights), self._run.scratch / "made", self._run.log)

    @cached_property
    def flights(self) -> Flights:
        """Write the flights into a file for MariaDB. Return what requests are drawn from."""
        with self.service() as service:
            coverage: dict[str, Any] = service.get("/coverage")
            first, last = (date.fromisoformat(coverage[f"{end}_date"]) for end in ("first", "last"))
            new = as_sent(flights_of_block(service, 1)[0])
            path = f"/flights?format=csv&INITIAL_DATE={first}&FINAL_DATE={last}"
            with service.connection() as connection:
                self._csv.write_bytes(exchanged(connection, path, status=200)[1])
        carriers = {row["OP_CARRIER_AIRLINE_ID"]: row["flights"] for row in coverage["carriers"]}
        return Flights(coverage["flights"], carriers, first, last, new)

    def service(self, workers: int = 2, **settings: object) -> AbstractContextManager[Service]:
        """Start our service on the chain, with default settings except these.

        No request is refused because many wait: the models let every customer wait.
        """
        own = {"workers": workers, "threads": SERVICE_THREADS, "lane_queue": ENDLESS_QUEUE}
        return running(self._chain.folder, self._run.log, settings=own | settings)

    @contextmanager
    def database(self, workers: int) -> Iterator[Database]:
        """Start a MariaDB with the flights and no index but the primary key."""
        count = self.flights.count
        self._run.say("starting MariaDB and loading the flights")
        with mariadb(self._run.scratch / "mariadb", self._run.log, workers) as database:
            if (loaded := database.load(self._csv)) != count:
                raise ProgramFailed(f"the chain has {count} flights, MariaDB loaded {loaded}")
            yield database

    def known(self, workers: int) -> AbstractContextManager[Service]:
        """Start the server of known, exponential service time."""
        return known_server(Gunicorn(workers=workers), self._run.log)
