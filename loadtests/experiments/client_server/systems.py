"""The systems that are measured, and code that starts each with the same flights in it.

The flights are generated into a chain of the service, read from it over HTTP as CSV, and loaded
into MariaDB, so that both have the same ones. Writes are equally durable: both answer when the row
is on the disk.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from shutil import copyfileobj
from typing import Any

from loadtests.chains import generated, imported
from loadtests.experiments.client_server import asked
from loadtests.experiments.client_server.asked import AVERAGE, SELECT, Drawn, Flights
from loadtests.lab.experiment import Run
from loadtests.processes import ProgramFailed, Service, running
from loadtests.questions import as_sent, flights_of_block
from loadtests.servers.gunicorn import Gunicorn
from loadtests.servers.known import known_server
from loadtests.servers.mariadb import Database, mariadb

KNOWN, POSITION, KEY, UNINDEXED, INDEXED, SERVICE, SCAN = (
    "known",
    "mariadb-position",
    "mariadb-key",
    "mariadb-unindexed",
    "mariadb-indexed",
    "service",
    "service-scan",
)
KNOWN_SERVICE_TIME_S = 0.04
SERVICE_THREADS = 32  # number of each worker; a quarter of them may export flights at once
LANE_QUEUE = 100_000
QUICK_FLIGHTS, FULL_FLIGHTS = 40_000, 200_000

_EXPORT = "/flights?format=csv&INITIAL_DATE={}&FINAL_DATE={}"


@dataclass(frozen=True, slots=True)
class System:
    """A system. title: in reports. drawn: request type -> function that draws a request."""

    title: str
    drawn: Mapping[str, Drawn]


SYSTEMS = {
    POSITION: System("MariaDB, as in the study", asked.BY_POSITION),
    KEY: System("MariaDB, by key", asked.BY_KEY),
    UNINDEXED: System(
        "MariaDB, days, no index", {kind: asked.BY_DAYS[kind] for kind in (AVERAGE, SELECT)}
    ),
    INDEXED: System("MariaDB, days, indexed", asked.BY_DAYS),
    SERVICE: System("Flightchain", asked.OF_SERVICE),
    SCAN: System("Flightchain, engine=scan", asked.OF_SERVICE_BY_SCAN),
    KNOWN: System("Known server", {}),
}


class Rig:
    """The flights, as a chain and as a file, below the run's scratch folder."""

    def __init__(self, run: Run) -> None:
        """Make them. Raises ProgramFailed."""
        self._run = run
        flights = QUICK_FLIGHTS if run.options.quick else FULL_FLIGHTS
        run.say(f"importing {flights:,} generated flights")
        self._chain = imported(generated(flights), run.scratch / "made", run.log)
        self._csv = run.scratch / "flights.csv"
        with self.service() as service:
            self.flights = _learned(service)
            _export(service, self.flights, self._csv)

    @contextmanager
    def service(self, workers: int = 2, **settings: object) -> Iterator[Service]:
        """Our service on the chain, with default settings except these.

        No request is refused because many wait: the models let every customer wait.
        """
        ours = {"workers": workers, "threads": SERVICE_THREADS, "lane_queue": LANE_QUEUE}
        settings = {**ours, **settings}
        with running(self._chain.folder, self._run.log, settings=settings) as service:
            yield service

    @contextmanager
    def database(self, workers: int) -> Iterator[Database]:
        """A MariaDB with the flights and no index but the primary key."""
        self._run.say("starting MariaDB and loading the flights")
        folder = self._run.scratch / "mariadb"
        with mariadb(folder, self._run.log, workers) as database:
            loaded = database.load(self._csv)
            if loaded != self.flights.count:
                raise ProgramFailed(f"the chain has {self.flights.count} flights, not {loaded}")
            yield database

    @contextmanager
    def known(self, workers: int) -> Iterator[Service]:
        """The server of known, exponential service time."""
        with known_server(Gunicorn(workers=workers), self._run.log) as service:
            yield service


def _learned(service: Service) -> Flights:
    covered: dict[str, Any] = service.get("/coverage")
    return Flights(
        count=covered["flights"],
        carriers={each["OP_CARRIER_AIRLINE_ID"]: each["flights"] for each in covered["carriers"]},
        first_day=date.fromisoformat(covered["first_date"]),
        last_day=date.fromisoformat(covered["last_date"]),
        one=as_sent(flights_of_block(service, 1)[0]),
    )


def _export(service: Service, flights: Flights, to: Path) -> None:
    path = _EXPORT.format(flights.first_day, flights.last_day)
    with service.connection() as connection:
        connection.request("GET", path)
        response = connection.getresponse()
        if response.status != 200:
            raise ProgramFailed(f"GET {path} was answered {response.status}")
        with to.open("wb") as file:
            copyfileobj(response, file)
