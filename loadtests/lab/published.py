"""Holds the numbers that the studies printed, unchanged, in their units.

Those that are wrong are listed in docs/explanation/studies.md.

Sources: 000 "Blockchain app Report" (flight study, a Pi 4B with a USB hard disk), with unrounded
values from its authors' own files where they are known; 001 "Project on Client-Server Application
Performance"; 002 "Profiling and benchmarking BigchainDB"; 003 "Programming Assignment 3"; 004
"COMP 512: Performance Analysis Report".
"""

from collections.abc import Mapping
from typing import NamedTuple

# --- study 000 ---------------------------------------------------------------------------------


class ServiceTime(NamedTuple):
    """Holds mean (s) and variance (s²) of a service time, one customer at a time."""

    mean_s: float
    variance_s2: float

    @property
    def variation(self) -> float:
        return float(self.variance_s2**0.5 / self.mean_s)


SERVICE_TIMES: Mapping[str, ServiceTime] = {
    "flight_counter": ServiceTime(40.49938, 1.38635),
    "average_delays": ServiceTime(41.67625, 1.46747),
    "filter_transactions": ServiceTime(41.565, 2.20881),
    "get_block": ServiceTime(1.43812, 0.0349),
    "get_transaction": ServiceTime(1.40188, 0.02117),
}
# `flight_counter` from the authors' own files; the open workloads come from these
UNROUNDED = ServiceTime(40.499375, 1.38635369655895)


class OpenWorkload(NamedTuple):
    """Holds a row of the table of open workloads. None: not printed."""

    fraction: float  # utilisation
    fcfs_s: float  # predicted mean response time; so is the next
    ps_s: float
    tested_s: float
    mean_customers: float  # over the tested run, from the authors' files; so is the next
    load_average: float
    longest_s: float | None = None
    most_customers: int | None = None


OPEN_WORKLOADS = (
    OpenWorkload(0.3, 49.18515, 57.85625, 50.891, 0.29, 0.50, 73.75, 2),
    OpenWorkload(0.5, 60.76618, 80.99875, 59.1855, 0.70, 0.67),
    OpenWorkload(0.8, 121.56659, 202.49688, 95.04, 1.06, 0.90),
    OpenWorkload(0.85, 155.34459, 269.99583, 102.12, 1.92, 1.07, 223.94, 6),
)
OPEN_RUN_S, OPEN_RUNS = 1800.0, 15  # of each open workload; they began empty


class NetworkStation(NamedTuple):
    """Holds a station of the queueing network (figure 7). service_s: time of one visit."""

    name: str
    visits: int
    service_s: float


NETWORK = (
    NetworkStation("CPU", 523, 0.0008),
    NetworkStation("DISK", 513, 0.046),
    NetworkStation("DELAY", 513, 0.039),
)
NETWORK_THINK_S = 5.0
NETWORK_CACHE_BLOCKS = 19  # that each of the two caches held
NETWORK_CUSTOMERS = 30
"""Highest number in figures 8 to 11. They are exact mean value analysis (JMVA); our solver gives
each number of the authors' file to nine digits, so these are not written down here."""

# --- study 002 ---------------------------------------------------------------------------------


class Repeated(NamedTuple):
    """Holds the times of 100,000 repetitions in one process: `real` of `time`."""

    python_s: float
    go_s: float


REPEATED_TIMES = 100_000
# parsing and serialising a fulfillment, and validating a transaction against two schemas, by
# BigchainDB's Python and by Go; the second time of Go is wrong
SERIALISATION, SCHEMA_VALIDATION = Repeated(22.658, 0.578), Repeated(75.996, 0.578)
SCHEMA_GO_TIMES_FASTER = 15.0  # than Python, as the text says

ACTIVITIES: Mapping[str, float] = {
    "Crypto-conditions validation": 41.76,
    "MongoDB queries": 28.42,
    "Schema validation": 1.40,
    "An extra deep copy": 2.24,
    "Mining": 0.0,
}
"""Shares of a flame graph (%), 100 threads, mode=async; the first summed correctly."""

# --- study 003 ---------------------------------------------------------------------------------


class Mixed(NamedTuple):
    """Says how study 003 measured."""

    customers: tuple[int, int]  # lowest and highest number
    books: tuple[int, ...]  # in the store
    runs: int
    warm_up: int  # requests of each customer; so is the next
    measured: int
    cores: int  # of the processor; so is the next
    hardware_threads: int


MIXED = Mixed((1, 60), (0, 100, 1000), 4, 100, 500, 6, 12)
MIXED_RPC_TIMES_SLOWER = 10.0  # than local calls, "more than ten-fold"; the figures have no table

# --- study 004 ---------------------------------------------------------------------------------


class ItineraryTimes(NamedTuple):
    """Holds a row of table 1: mean response times of one client, in ms."""

    begin_ms: float
    query_ms: float
    reserve_ms: float
    commit_ms: float
    transaction_ms: float

    @property
    def requests_ms(self) -> float:
        """Return the time in ms of the nine requests of a transaction."""
        return self.begin_ms + 4 * self.query_ms + 3 * self.reserve_ms + self.commit_ms

    @property
    def between(self) -> float:
        """Return the share of a transaction that its requests do not take."""
        return (self.transaction_ms - self.requests_ms) / self.transaction_ms


ITINERARY: Mapping[str, ItineraryTimes] = {
    "Single RM": ItineraryTimes(0.31, 0.533768, 0.650833, 0.61, 5.02),
    "Multiple RM": ItineraryTimes(0.3375, 0.903125, 1.0575, 2.2875, 9.425),
}
ITINERARY_CLIENTS = (1, 2, 4, 6, 8)
ITINERARY_ITERATIONS, ITINERARY_COUNTED = 100, 80
ITINERARY_SATURATED_PER_S = 1000.0  # above this; the text once has 100
