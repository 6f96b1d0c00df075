"""Holds the numbers that the studies printed, unchanged, in their units.

Those that are wrong are listed in docs/explanation/studies.md.

Sources: 000 "Blockchain app Report" (flight study, a Pi 4B with a USB hard disk), with unrounded
values from its authors' own files where they are known; 001 "Project on Client-Server Application
Performance"; 002 "Profiling and benchmarking BigchainDB"; 003 "Programming Assignment 3"; 004
"COMP 512: Performance Analysis Report".
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

# --- study 000 ---------------------------------------------------------------------------------


class ServiceTime(NamedTuple):
    """Holds mean (s) and variance (s²) of a service time, one customer at a time."""

    mean_s: float
    variance_s2: float

    @property
    def variation(self) -> float:
        """Return the coefficient of variation."""
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
NETWORK_AT_N: Sequence[tuple[float, float, tuple[float, float, float]]] = (
    (0.020398421978, 44.0234, (0.008534699756, 0.481361961839, 0.408111228515)),
    (0.029175259820, 63.551231843, (0.012311111180, 1.019884796692, 0.821927793027)),
    (0.033504540883, 84.540101756, (0.014190880754, 1.597002030287, 1.221284384541)),
    (0.035987524834, 106.149628057, (0.015270855042, 2.205461412050, 1.599330108737)),
    (0.037573625930, 128.072065213, (0.015960875225, 2.842162187856, 1.954008807271)),
    (0.038661468926, 150.193275546, (0.016434141055, 3.505332675912, 2.284925838405)),
    (0.039444702487, 172.463627780, (0.016774887055, 4.193636142313, 2.592365458198)),
    (0.040028560374, 194.857300021, (0.017028894624, 4.905877370436, 2.876950933072)),
    (0.040475164691, 217.358576395, (0.017223189983, 5.640897994686, 3.139502991877)),
    (0.040823565895, 239.956553420, (0.017374762044, 6.397539020319, 3.380968388160)),
    (0.041099550480, 262.642829944, (0.017494829231, 7.174630399100, 3.602377019266)),
    (0.041320833526, 285.410405019, (0.017591098495, 7.970992422755, 3.804812311120)),
    (0.041499985802, 308.253119216, (0.017669038753, 8.785442380855, 3.989388651381)),
    (0.041646170705, 331.165360777, (0.017732636544, 9.616803357644, 4.157233152288)),
    (0.041766220090, 354.141908647, (0.017784864070, 10.463913550682, 4.309470484800)),
    (0.041865325360, 377.177849146, (0.017827979851, 11.325635227634, 4.447210165713)),
    (0.041947495576, 400.268533114, (0.017863728031, 12.200862829731, 4.571535964356)),
    (0.042015869577, 423.409555279, (0.017893474163, 13.088529959049, 4.683497218904)),
    (0.042072933853, 446.596745462, (0.017918299996, 13.987615130040, 4.784101900699)),
    (0.042120677944, 469.826165583, (0.017939071079, 14.897146260028, 4.874311279172)),
    (0.042160707433, 493.094108914, (0.017956485921, 15.816203936853, 4.955036040061)),
    (0.042194327546, 516.397099549, (0.017971112363, 16.743923544245, 5.027133705661)),
    (0.042222605986, 539.731890960, (0.017983414908, 17.679496352539, 5.091407202623)),
    (0.042246420821, 563.095463091, (0.017993775559, 18.622169697843, 5.148604422495)),
    (0.042266497455, 586.485017806, (0.018002509906, 19.571246379455, 5.199418623362)),
    (0.042283437503, 609.897972710, (0.018009879680, 20.526083405339, 5.244489527465)),
    (0.042297741562, 633.331953509, (0.018016102665, 21.486090210566, 5.284404978961)),
    (0.042309827347, 656.784785140, (0.018021360590, 22.450726465310, 5.319703037366)),
    (0.042320044253, 680.254481934, (0.018025805458, 23.419499578353, 5.350874394924)),
    (0.042328685123, 703.739237066, (0.018029564672, 24.391961990223, 5.378365019491)),
)
"""Figures 8 to 11, from the authors' own solver file. The rows are for 1, 2 … 30 customers:
throughput in 1/s, response time in s, mean customers at CPU, DISK and DELAY."""

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

BULK_THREADS = (100, 1000)  # in the modes async, sync and commit; no throughput is printed

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
