"""Starts the systems of study 001, each with the same flights, and measures a request type on one.

The flights are generated into a chain of the service, read from it over HTTP as CSV, and loaded
into MariaDB. Writes are equally durable: a system answers when the row is on the disk.

The study draws the number of rows of a query from an exponential distribution and the first row
from a uniform one, to make the service time exponential, too. Here are two ways to choose rows:

    position   LIMIT n OFFSET k, as in the study
    days       the service's own question, in SQL and over HTTP: a carrier's flights over some days.
               The first day is uniform, the number of days that follow exponential.

A write adds a copy of an existing flight.

`points.csv` lists every run for the analysis. After the last run of a group the customer who
calibrated it sends the same requests again; a run counts if both means agree within a percent
(`generation.rules`).
"""

# ruff: noqa: S608  statements are made of our own words and numbers

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import cached_property
from itertools import islice, product, repeat
from random import Random
from typing import Any

from pymysql.converters import escape_string

from loadtests.chains import Chain, generated, imported
from loadtests.generation.calibration import Calibration
from loadtests.generation.run import RunRecord, Target, judge_run
from loadtests.generation.schedule import KNOWN_KIND, Request, arrivals, demanded, gamma_demands
from loadtests.lab import generator_check
from loadtests.lab.experiment import Run
from loadtests.lab.results import Line, TableWriter
from loadtests.models.random_times import poisson_times
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


# --- measuring -----------------------------------------------------------------------------------

POINTS = "points"
ALONE, LOAD = "alone", "load"
ALONE_UTILISATION = 0.03  # as in the study's figure 1
LEAST = 8

Start = Callable[[int], AbstractContextManager[Target]]  # starts a system with so many servers
Loads = Callable[[str, float, int], Iterable[tuple[str, float]]]
"""From system, E[S] (s) and number of servers to names, unique in a group, and rates (1/s)."""


@dataclass(frozen=True, slots=True)
class PointLine(Line):
    """Describes a run: how many servers (m) got so many requests, and at which rate.

    name: of the point that the run is a repetition of. rep: its number, from 1; each has
    calibrations and a run alone of its own, as what is common to the runs between two calibrations
    does not average out. role: `alone` is an open run at so low a rate that customers hardly ever
    wait, which gives the service time as in the study; `load` is a run at a higher rate. service_s:
    the mean for one closed customer before, from which the rate was chosen.
    """

    run: str
    system: str
    kind: str
    role: str
    servers: int
    name: str
    rep: int
    rate_per_s: float
    service_s: float
    arrivals: int


@dataclass(frozen=True, slots=True)
class Plan:
    """Says how many requests are made. calibration: by the closed customer, both before and after.

    alone: in the run alone, fewer if they would take longer than alone_s, but at least `LEAST`.
    load: in every other run.
    """

    calibration: int
    load: int
    alone: int
    alone_s: float


class Session:
    """Starts systems on flights in the run's scratch folder, and measures them.

    The flights are made when they are first needed; then ProgramFailed may be raised. counts:
    numbers of servers. points: the table of runs.
    """

    def __init__(
        self,
        run: Run,
        plan: Plan,
        counts: Sequence[int],
        loads: Loads,
        points: TableWriter[PointLine],
    ) -> None:
        self.run, self.plan, self.counts, self.loads, self.points = run, plan, counts, loads, points
        self.generator = run.generator()
        self._csv = run.scratch / "flights.csv"

    def measure(self, system: str, start: Start, kinds: Iterable[str] = ()) -> None:
        """Measure these request types, or all, each in as many groups as --reps says."""
        reps = self.run.options.reps or 1
        for kind, rep in product(kinds or SYSTEMS[system].templates, range(1, reps + 1)):
            self.run.say(f"{named(system, kind)}, {rep} of {reps}")
            Group(self, system, kind, rep).measure(start)

    @cached_property
    def _chain(self) -> Chain:
        flights = self.run.choose(QUICK_FLIGHTS, FULL_FLIGHTS)
        self.run.say(f"importing {flights:,} generated flights")
        return imported(generated(flights), self.run.scratch / "made", self.run.log)

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
        return running(self._chain.folder, self.run.log, settings=own | settings)

    @contextmanager
    def database(self, workers: int) -> Iterator[Database]:
        """Start a MariaDB with the flights and no index but the primary key."""
        count = self.flights.count
        self.run.say("starting MariaDB and loading the flights")
        with mariadb(self.run.scratch / "mariadb", self.run.log, workers) as database:
            if (loaded := database.load(self._csv)) != count:
                raise ProgramFailed(f"the chain has {count} flights, MariaDB loaded {loaded}")
            yield database

    def known(self, workers: int) -> AbstractContextManager[Service]:
        """Start the server of known, exponential service time."""
        return known_server(Gunicorn(workers=workers), self.run.log)


@contextmanager
def measuring(run: Run, plan: Plan, counts: Sequence[int], loads: Loads) -> Iterator[Session]:
    """Check the load generator, and keep the table of points open until the `with` block ends."""
    generator_check.check(run)
    with run.results.table(POINTS, PointLine) as points:
        yield Session(run, plan, counts, loads, points)


def already(target: Target) -> Start:
    """Return the way to start what runs already."""
    return lambda _: nullcontext(target)


@dataclass(frozen=True, slots=True)
class Group:
    """Makes the runs of a request type between two calibrations. rep: as in `PointLine`."""

    session: Session
    system: str
    kind: str
    rep: int

    def measure(self, start: Start) -> None:
        """Calibrate and make the run alone with the first number of servers, then those at loads.

        The second calibration has the same requests and the last number; a quick run has none. If
        an exception ends the group, the runs made until then are still listed. Raises ProgramFailed
        if a request of a calibration fails.
        """
        run, counts = self.session.run, self.session.counts
        before = after = None
        records: list[tuple[str, RunRecord]] = []
        try:
            for servers in counts:
                with start(servers) as target:
                    before = before or self._calibrate(target, "before")
                    for line in self._lines(before, servers, is_first=not records):
                        record = self._open(target, line)
                        records.append((line.role, record))
                    if servers == counts[-1] and not run.options.quick:
                        after = self._calibrate(target, "after")
        finally:
            for role, record in records:
                facts = record.facts(before, after)
                if role == ALONE:  # its times count from sending, so late sending is no matter
                    facts = replace(facts, lag_mean_s=None, lag_p99_s=None)
                judge_run(run.results.folder, record, facts)

    def _lines(self, before: Calibration, servers: int, *, is_first: bool) -> list[PointLine]:
        """Return the runs to be made. E[S] of the known server is its sleep and its overhead."""
        service_s, plan = before.mean_s, self.session.plan
        if self.system == KNOWN and before.overhead_s is not None:
            service_s = KNOWN_SERVICE_TIME_S + before.overhead_s
        loads = self.session.loads(self.system, service_s, servers)
        runs = [(LOAD, name, rate_per_s, plan.load) for name, rate_per_s in loads]
        if is_first:
            per_s = ALONE_UTILISATION * servers / service_s
            count = min(plan.alone, max(LEAST, int(plan.alone_s * per_s)))
            runs.insert(0, (ALONE, ALONE, per_s, count))
        group, rep = (self.system, self.kind), self.rep
        return [
            PointLine(self._id(name), *group, role, servers, name, rep, per_s, service_s, count)
            for role, name, per_s, count in runs
        ]

    def _id(self, name: str) -> str:
        return f"{self.system}-{self.kind}-{name}-rep{self.rep:02d}"

    def _calibrate(self, target: Target, when: str) -> Calibration:
        generator, count = self.session.generator, self.session.plan.calibration
        choices = {self.kind: list(islice(self._requests(self._id("calibration")), count))}
        return generator.calibrate(target, choices, self._id(when), requests=count)

    def _open(self, target: Target, line: PointLine) -> RunRecord:
        random = self.session.run.random(f"{line.run} times")
        times_s = poisson_times(line.rate_per_s, random, count=line.arrivals)
        self.session.points.add(line)
        schedule = arrivals(times_s, self._requests(line.run))
        return self.session.generator.open(target, schedule, line.run)

    def _requests(self, purpose: str) -> Iterator[Request]:
        """Draw requests without end. Each purpose has its own random numbers."""
        run = self.session.run
        if self.system == KNOWN:
            random = run.random(f"{purpose} demands")
            return demanded(gamma_demands(KNOWN_SERVICE_TIME_S, 1, random))
        random, flights = run.random(f"{purpose} requests"), self.session.flights
        template = SYSTEMS[self.system].templates[self.kind]
        return (request(flights, self.kind, template, random) for _ in repeat(None))
