"""The calculator's closed network: from stations, think time and customers to X, R, U and bounds.

It uses exact mean value analysis and its bounds: `loadtests.models.mva`, `loadtests.models.bounds`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from frontend.lab import study
from frontend.lab.inputs import Inputs
from loadtests.models import mva
from loadtests.models.laws import DELAY, Station, service_demand_s

MOST_STATIONS = 10
MOST_CUSTOMERS = 200
MOST_SERVERS = 64
MOST_MULTI_SERVERS = 2  # each of them doubles the networks to solve
MOST_VISITS = 1e6
MOST_S = 1e6
MOST_NAME = 24  # characters: ten of them fit in an address

KINDS = {"queue": "Queue", "delay": "Delay (nobody waits)"}
AGAINST = ("", "study")
ASKED_OF_A_ROW = ("name", "visits", "service_time_s")
OF_A_ROW = (*ASKED_OF_A_ROW, "kind", "servers")
FIELDS = (
    "customers",
    "think_time_s",
    "against",
    *(f"{name}_{row}" for row in range(1, MOST_STATIONS + 1) for name in OF_A_ROW),
)


@dataclass(frozen=True, slots=True)
class Visited:
    """A station of a form. visits: V, per request. service_time_s: S, per visit.

    servers: m, or DELAY.
    """

    name: str
    visits: float
    service_time_s: float
    servers: int | None = 1

    @property
    def station(self) -> Station:
        """The station as the models take it, with its demand D = V·S."""
        demand_s = service_demand_s(self.visits, self.service_time_s)
        return Station(self.name, demand_s, self.servers)

    @property
    def is_limiting(self) -> bool:
        """Whether customers queue here, so that the throughput has a bound."""
        return self.servers is not DELAY and self.visits * self.service_time_s > 0

    def as_json(self) -> dict[str, Any]:
        kind = "delay" if self.servers is DELAY else "queue"
        return {**asdict(self), "kind": kind, "demand_s": self.station.demand_s}


@dataclass(frozen=True, slots=True)
class Network:
    """A closed network. customers: the largest N. think_time_s: Z, between requests."""

    visited: tuple[Visited, ...]
    customers: int
    think_time_s: float

    @property
    def stations(self) -> list[Station]:
        return [visited.station for visited in self.visited]


STUDIED = (
    Visited("CPU", study.CPU_VISITS, study.CPU_S),
    Visited("DISK", study.BLOCK_READS, study.DISK_S),
    Visited("DELAY", study.BLOCK_READS, study.DELAY_S),
)


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a form: the network and its curve. before: the study's, to compare with."""

    network: Network
    curve: mva.Curve
    before: "Answer | None" = None

    def as_json(self) -> dict[str, Any]:
        content: dict[str, Any] = {
            "stations": [visited.as_json() for visited in self.network.visited],
            "think_time_s": self.network.think_time_s,
            "demand_s": self.curve.demand_s,
            "bottleneck": self.curve.bottleneck.name,
            "maximum_throughput_per_s": self.curve.most_throughput_per_s,
            "optimal_population": self.curve.optimal_population,
            "populations": self.curve.rows(),
        }
        return content | ({"study": self.before.as_json()} if self.before else {})


# --- from a form -----------------------------------------------------------------------------


def filled_rows(given: Mapping[str, str]) -> list[int]:
    """Return the rows of the form in which something was typed."""
    return [
        row
        for row in range(1, MOST_STATIONS + 1)
        if any(f"{name}_{row}" in given for name in ASKED_OF_A_ROW)
    ]


def without_blanks(given: Mapping[str, str]) -> dict[str, str]:
    """Return `given` without the defaults that browsers send for rows with nothing typed."""
    empty = set(range(1, MOST_STATIONS + 1)) - set(filled_rows(given))
    blank = {f"{name}_{row}" for row in empty for name in OF_A_ROW}
    return {name: text for name, text in given.items() if name not in blank}


def read(given: Mapping[str, str]) -> Network:
    """Return the network that a form describes. Raises Refused."""
    inputs = Inputs(given, FIELDS)
    rows = filled_rows(given)
    if not rows:
        for name in ASKED_OF_A_ROW:
            inputs.refuse(f"{name}_1", "is missing")
    visited = tuple(_read_row(inputs, row) for row in rows)
    _check_together(inputs, rows, visited)
    customers = inputs.whole("customers", 1, MOST_CUSTOMERS)
    think_time_s = inputs.number("think_time_s", 0, MOST_S)
    inputs.choice("against", AGAINST, "")
    inputs.check()
    return Network(visited, customers, think_time_s)


def _read_row(inputs: Inputs, row: int) -> Visited:
    name = inputs.text(f"name_{row}", MOST_NAME)
    visits = inputs.number(f"visits_{row}", 0, MOST_VISITS)
    service_time_s = inputs.number(f"service_time_s_{row}", 0, MOST_S)
    if inputs.choice(f"kind_{row}", KINDS, "queue") == "delay":
        return Visited(name, visits, service_time_s, DELAY)
    servers = inputs.whole(f"servers_{row}", 1, MOST_SERVERS, default="1")
    return Visited(name, visits, service_time_s, servers)


def _check_together(inputs: Inputs, rows: Sequence[int], stations: Sequence[Visited]) -> None:
    names: set[str] = set()
    several = 0
    for row, station in zip(rows, stations, strict=True):
        if station.name and station.name in names:
            detail = f"must be unique: another station is called {station.name!r}"
            inputs.refuse(f"name_{row}", detail)
        names.add(station.name)
        is_multi = (station.servers or 1) > 1
        several += is_multi
        if is_multi and several > MOST_MULTI_SERVERS:
            detail = f"must be 1: at most {MOST_MULTI_SERVERS} stations may have several servers"
            inputs.refuse(f"servers_{row}", detail)
    if rows and not any(station.is_limiting for station in stations):
        inputs.refuse(
            f"service_time_s_{rows[0]}",
            "is too little: a station with a queue must have visits and a service time above 0, "
            "because otherwise nothing limits the throughput",
        )


# --- answers ---------------------------------------------------------------------------------


def answer(network: Network) -> Answer:
    return Answer(network, mva.curve(network.stations, network.customers, network.think_time_s))


def answer_to(given: Mapping[str, str]) -> Answer:
    """Return the answer to a form, beside the study's if it asks for that. Raises Refused."""
    network = read(given)
    if given.get("against") != "study":
        return answer(network)
    studied = Network(STUDIED, network.customers, study.THINK_TIME_S)
    return replace(answer(network), before=answer(studied))
