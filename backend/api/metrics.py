"""`GET /metrics` for Prometheus, and the counting behind it.

What belongs to a process (requests, caches, its use of memory) is counted in numbers that all
processes share; the worker that answers adds them up. A worker writes its numbers once a second,
when it is scraped, and when it ends. So the numbers of other processes may be a second old, and a
worker that is killed loses what it counted in its last second; nothing else is lost, and nothing is
counted twice. What belongs to the ledger (height, mempool, disk, index) is read from it
when it is scraped, and left out while it cannot be read; `/health/ready` says why.

Labels are bounded: a route is a rule of the application, never a path that a client made up.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import accumulate
from pathlib import Path
from threading import Lock
from time import perf_counter
from typing import NamedTuple

from flask import Response
from prometheus_client import generate_latest
from prometheus_client.core import CounterMetricFamily as Counter
from prometheus_client.core import GaugeMetricFamily as Gauge
from prometheus_client.core import HistogramMetricFamily as Histogram
from prometheus_client.core import Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.registry import Collector

from backend.api.conditions import NO_STORE
from backend.api.json_answers import AnswerCache
from backend.api.observing import route_of
from backend.api.operation import OPERATION, Answer, Media, Operation
from backend.api.responses import Whole
from backend.api.routes import Lane, Row
from backend.base import machine
from backend.base.errors import FlightchainError
from backend.base.files import free_bytes
from backend.base.lru import Counts
from backend.base.processes import shared_numbers
from backend.base.processes.shared_numbers import (
    BLOCKS_SEALED,
    BOUNDS_S,
    INDEX_REBUILDS,
    PROCESS_CPU,
    PROCESS_MEMORY,
    PROCESSES,
    SEAL_DURATION,
    SUM,
    TRANSACTIONS_SEALED,
    WRITE_EVERY_S,
    Numbers,
    note_own_use,
)
from backend.base.version import VERSION, commit
from backend.ledger.ledger import Ledger
from backend.serving.environs import Environ
from backend.serving.lanes import LaneNumbers

BUILD_INFO = "flightchain_build_info"
REQUESTS = "flightchain_requests_total"
DURATION = "flightchain_request_duration_seconds"
IN_PROGRESS = "flightchain_requests_in_progress"
LANE_IN_HAND, LANE_WAITING = "flightchain_lane_in_hand", "flightchain_lane_waiting"
LANE_REFUSED = "flightchain_lane_refused_total"
LANE_WAIT = "flightchain_lane_wait_seconds"
BLOCK_CACHE, ANSWER_CACHE = "flightchain_block_cache", "flightchain_answer_cache"

MACHINE = "flightchain_machine"
MACHINE_INFO = f"{MACHINE}_info"

ROLE = "worker"
UNMATCHED = "unmatched"  # the route of an unknown address
UNREAD = "unread"  # what the metrics show as route and method of a request that HTTP refused
OTHER = "other"
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"})


Request = tuple[str, str, str]  # route, method, status


class Counted(NamedTuple):
    """A metric that every process counts."""

    name: str
    kind: type[Counter | Gauge | Histogram]
    what: str
    labels: tuple[str, ...] = ()


COUNTED = (
    Counted(
        REQUESTS,
        Counter,
        "Requests answered, by rule, method and status.",
        ("route", "method", "status"),
    ),
    Counted(
        DURATION,
        Histogram,
        "Time in the application, without receiving, waiting for a thread, and sending.",
        ("route",),
    ),
    Counted(IN_PROGRESS, Gauge, "Requests in the application now."),
    Counted(LANE_IN_HAND, Gauge, "Requests in the threads of a lane.", ("lane",)),
    Counted(LANE_WAITING, Gauge, "Requests that wait for a lane.", ("lane",)),
    Counted(
        LANE_REFUSED,
        Counter,
        "Requests answered 503 because the queue of their lane was full.",
        ("lane",),
    ),
    Counted(LANE_WAIT, Histogram, "Time until a thread of the lane was free.", ("lane",)),
    Counted(f"{BLOCK_CACHE}_hits_total", Counter, "Blocks found.", ("cache",)),
    Counted(f"{BLOCK_CACHE}_misses_total", Counter, "Blocks not found.", ("cache",)),
    Counted(f"{BLOCK_CACHE}_evictions_total", Counter, "Blocks evicted.", ("cache",)),
    Counted(f"{BLOCK_CACHE}_bytes", Gauge, "Memory of all workers' blocks.", ("cache",)),
    Counted(f"{BLOCK_CACHE}_blocks", Gauge, "Blocks cached by all workers.", ("cache",)),
    Counted(f"{ANSWER_CACHE}_hits_total", Counter, "Answers found."),
    Counted(f"{ANSWER_CACHE}_misses_total", Counter, "Answers not found."),
    Counted(f"{ANSWER_CACHE}_evictions_total", Counter, "Answers evicted."),
    Counted(
        f"{ANSWER_CACHE}_limit_bytes",
        Gauge,
        "Memory that all workers' answers may take; 0 if none are cached.",
    ),
    Counted(f"{ANSWER_CACHE}_bytes", Gauge, "Memory of all workers' answers."),
    Counted(f"{ANSWER_CACHE}_answers", Gauge, "Answers cached by all workers."),
    Counted(
        SEAL_DURATION,
        Histogram,
        "Time to make a block of pending transactions, until it is on the disk and in the index.",
    ),
    Counted(BLOCKS_SEALED, Counter, "Blocks sealed by the miner."),
    Counted(INDEX_REBUILDS, Counter, "Times that a wrong index was rebuilt."),
    Counted(TRANSACTIONS_SEALED, Counter, "Transactions sealed by the miner."),
    Counted(PROCESSES, Gauge, "Processes that count.", ("role",)),
    Counted(PROCESS_CPU, Counter, "Processor time used.", ("role",)),
    Counted(
        PROCESS_MEMORY,
        Gauge,
        "Resident memory; pages that processes share count in each.",
        ("role",),
    ),
)

ASKED: tuple[tuple[str, str, Callable[[Ledger], float]], ...] = (
    ("flightchain_chain_height", "Height of the tip.", Ledger.height),
    ("flightchain_chain_transactions", "Transactions in blocks.", Ledger.mined_count),
    ("flightchain_mempool_transactions", "Pending transactions.", Ledger.pending_count),
    (
        "flightchain_mempool_oldest_age_seconds",
        "How long the oldest pending transaction has waited; 0 without any.",
        Ledger.oldest_pending_age_s,
    ),
    (
        "flightchain_index_believed",
        "1 if questions are answered from the index, 0 while it is missing or not trusted.",
        Ledger.index_is_trusted,
    ),
    ("flightchain_index_lag_blocks", "Blocks that the index lacks.", Ledger.index_lag_blocks),
    (
        "flightchain_scrub_progress",
        "Share of everything on the disk that this pass of the scrub has checked.",
        lambda ledger: ledger.scrub().progress,
    ),
    (
        "flightchain_scrub_last_complete_timestamp_seconds",
        "When the scrub last finished checking everything.",
        Ledger.scrub_completed_s,
    ),
    (
        "flightchain_scrub_problems",
        "Damaged blocks and other problems on the disk that are known and still there.",
        Ledger.scrub_problems,
    ),
    (
        "flightchain_cluster_votes",
        "Weight of the votes of this node and of the peers that it is connected with.",
        lambda ledger: ledger.cluster_status().votes,
    ),
    (
        "flightchain_cluster_votes_total",
        "Weight of all votes; more than two thirds must be connected.",
        lambda ledger: ledger.cluster_status().votes_total,
    ),
    (
        "flightchain_cluster_peers",
        "Members that are connected.",
        lambda ledger: len(ledger.cluster_status().peers),
    ),
    (
        "flightchain_cluster_lag_blocks",
        "Blocks of the consensus engine that a peer has and this node lacks.",
        lambda ledger: ledger.cluster_status().lag_blocks,
    ),
    (
        "flightchain_cluster_accepts",
        "1 if this node of a cluster accepts flights now, else 0.",
        lambda ledger: not ledger.cluster_status().refusal,
    ),
    (
        "flightchain_disk_free_bytes",
        "Free bytes on the chain's disk.",
        lambda ledger: free_bytes(ledger.settings.folder),
    ),
)


class Metrics(Collector):
    """The numbers of one application. Opens nothing until `share`."""

    def __init__(self, ledger: Ledger, answers: AnswerCache) -> None:
        self.numbers = Numbers()
        self.requests = CountedRequests(self.numbers)
        self._ledger = ledger
        self._answers = answers
        self._folder: Path | None = None
        self._lanes: Callable[[], Iterable[LaneNumbers]] = tuple

    def share(self, folder: Path) -> None:
        """Count in `folder`, where other processes find it. Called in a process that answers."""
        if self.numbers.share(folder, ROLE):
            self._folder = folder
        self.sample()

    def watch(self, lanes: Callable[[], Iterable[LaneNumbers]]) -> None:
        """Show the numbers of lanes, too. lanes: returns them; it is called once in each sample."""
        self._lanes = lanes

    def sample(self) -> None:
        """Copy what is counted elsewhere. Called once a second, when scraped, and at the end."""
        note_own_use(self.numbers, ROLE)
        self.numbers.set((IN_PROGRESS,), self.requests.in_progress())
        for lane in self._lanes():
            self.numbers.set((LANE_IN_HAND, lane.lane), lane.in_hand)
            self.numbers.set((LANE_WAITING, lane.lane), lane.waiting)
            self.numbers.follow((LANE_REFUSED, lane.lane), lane.refused)
            if lane.waits_s:
                self.numbers.observe((LANE_WAIT, lane.lane), lane.waits_s)
        for name, counts in self._ledger.cached_blocks.counts().items():
            self._note_cache(BLOCK_CACHE, (name,), counts, "blocks")
        self._note_cache(ANSWER_CACHE, (), self._answers.counts(), "answers")
        self.numbers.set((f"{ANSWER_CACHE}_limit_bytes",), self._answers.capacity_bytes)
        self.requests.count()  # which writes all of these

    def _note_cache(
        self, cache: str, labels: tuple[str, ...], counts: Counts, entries: str
    ) -> None:
        for what in ("hits", "misses", "evictions"):
            self.numbers.follow((f"{cache}_{what}_total", *labels), getattr(counts, what))
        self.numbers.set((f"{cache}_bytes", *labels), counts.bytes)
        self.numbers.set((f"{cache}_{entries}", *labels), counts.entries)

    def collect(self) -> Iterator[Metric]:
        """Yield what processes count, and how ledger and machine are now."""
        self.sample()
        numbers, folder = self.numbers, self._folder
        totals = numbers.totals() if folder is None else shared_numbers.totals(folder)
        series: dict[str, list[tuple[tuple[str, ...], list[float]]]] = {}
        for (name, *labels), values in sorted(totals.items()):
            series.setdefault(name, []).append((tuple(labels), values))
        for counted in COUNTED:
            if counted.name in series:
                yield _family(counted, series[counted.name])
        yield from _state_of(self._ledger)


class CountedRequests:
    """Counts and times the requests of an application.

    Between two requests much other code runs, so that every step here finds cold caches: adding up
    three numbers under a lock costs as much as all the rest. So a request only leaves its duration
    in a list, which takes no lock, and `count` adds them up.
    """

    def __init__(self, numbers: Numbers) -> None:
        self._numbers = numbers
        self._durations: dict[Request, list[float]] = {}
        self._in_hand: list[None] = []  # one entry for each request in the application
        self._count_at = 0.0
        self._counting = Lock()

    def begin(self) -> None:
        self._in_hand.append(None)

    def answered(self, environ: Environ, status: str, took_s: float) -> None:
        """Note that the headers of an answer go out."""
        route, method = route_of(environ) or UNMATCHED, environ["REQUEST_METHOD"]
        try:
            self._durations[route, method, status].append(took_s)
        except KeyError:  # the first with these labels
            known = method if method in METHODS else OTHER
            durations = self._durations.setdefault((route, known, status), [])
            durations.append(took_s)

    def end(self) -> None:
        """Note that a request has been answered."""
        self._in_hand.pop()
        if perf_counter() > self._count_at:
            self.count()

    def refused(self, status: int) -> None:
        """Count a request that was refused before it was complete."""
        self._numbers.add((REQUESTS, UNREAD, UNREAD, str(status)))

    def in_progress(self) -> int:
        return len(self._in_hand)

    def count(self) -> None:
        """Add up the durations that requests have left, and write all numbers."""
        with self._counting:
            self._count_at = perf_counter() + WRITE_EVERY_S
            for (route, method, status), durations in list(self._durations.items()):
                taken = durations[:]
                del durations[: len(taken)]  # others may have been appended meanwhile
                if taken:
                    self._numbers.add((REQUESTS, route, method, status[:3]), len(taken))
                    self._numbers.observe((DURATION, route), taken)
            self._numbers.write()


def _family(counted: Counted, series: list[tuple[tuple[str, ...], list[float]]]) -> Metric:
    family = counted.kind(counted.name, counted.what, labels=counted.labels)
    for labels, values in series:
        if isinstance(family, Histogram):
            family.add_metric(labels, _buckets(values), values[SUM])
        else:
            family.add_metric(labels, values[0])
    return family


def _buckets(values: list[float]) -> list[tuple[str, float]]:
    """Return cumulative counts by upper bound, as the text format wants them."""
    bounds = [*map(str, BOUNDS_S), "+Inf"]
    return list(zip(bounds, accumulate(values[:SUM]), strict=True))


def _state_of(ledger: Ledger) -> Iterator[Metric]:
    """Yield what is read when it is asked for."""
    build = Gauge(BUILD_INFO, "What runs; always 1.", labels=("version", "commit"))
    build.add_metric((VERSION, commit()), 1)
    yield build
    for name, what, ask in ASKED:
        with suppress(FlightchainError, OSError):
            yield Gauge(name, what, value=ask(ledger))
    info = Gauge(MACHINE_INFO, "The processor; always 1.", labels=("processor",))
    info.add_metric((machine.processor(),), 1)
    yield info
    for reading in machine.readings(ledger.settings.folder):
        kind = Counter if reading.is_total else Gauge
        yield kind(f"{MACHINE}_{reading.name}", reading.what, value=reading.value)


SHOW_METRICS = Operation(
    "metrics",
    OPERATION,
    "Show numbers for Prometheus",
    {200: Answer("The text format 0.0.4.", {"text/plain": Media({"type": "string"})})},
)


def rows(shown: Metrics) -> list[Row]:
    """Return the route that shows the numbers counted in `shown`."""

    def metrics(*_: object) -> Response:
        kind, control = ("Content-Type", CONTENT_TYPE_PLAIN_0_0_4), ("Cache-Control", NO_STORE)
        return Whole(generate_latest(shown), kind, control)

    return [Row("GET", "/metrics", SHOW_METRICS, metrics, Lane.READ)]
