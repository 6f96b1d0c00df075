"""Ordinary clients that ask, post and look at pages, and how long each of their answers took."""

import http.client
import json
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from backend.chain.flight import as_mapping
from tests.api.worlds import Json
from tests.faults.report import Outcome
from tests.flights import flight

P99_S = 0.05
ANSWER_WITHIN_S = 30.0
PAUSE_S = 0.01
FEWEST = 50  # answers from which a percentile may be read
JSON_BODY = {"Content-Type": "application/json"}
FIRST_SERIAL = 7 * 10**8

Ask = Callable[[http.client.HTTPConnection], None]


@dataclass
class Probe:
    """One kind of request, again and again over one connection. times_s: of the answers."""

    name: str
    port: int
    ask: Ask
    times_s: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def run(self, stopping: threading.Event) -> None:
        """Ask until it is told to stop."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=ANSWER_WITHIN_S)
        while not stopping.wait(PAUSE_S):
            started = time.monotonic()
            try:
                self.ask(connection)
                response = connection.getresponse()
                response.read()
                if response.status >= 400:
                    self.failures.append(f"{self.name}: {response.status}")
            except (OSError, http.client.HTTPException) as error:
                self.failures.append(f"{self.name}: {type(error).__name__} {error}")
                connection.close()
            self.times_s.append(time.monotonic() - started)
        connection.close()

    def p99_s(self) -> float:
        """The time within which 99 of 100 answers were there."""
        ordered = sorted(self.times_s)
        return ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))] if ordered else 0.0


def probes(port: int, pages: int, rows: Sequence[Json], seed: int) -> list[Probe]:
    """One of each kind: questions, single posts and /tip at `port`, pages at `pages`."""
    chance = random.Random(seed)
    serials = iter(range(FIRST_SERIAL + seed * 10**6, 2 * 10**9))

    def question(connection: http.client.HTTPConnection) -> None:
        row = chance.choice(rows)
        asked = f"OP_CARRIER_FL_NUM={row['OP_CARRIER_FL_NUM']}&FL_DATE={row['FL_DATE']}"
        connection.request("GET", f"/filter_transactions?{asked}")

    def post(connection: http.client.HTTPConnection) -> None:
        body = json.dumps(as_mapping(flight(next(serials))))
        connection.request("POST", "/transactions", body, JSON_BODY)

    def tip(connection: http.client.HTTPConnection) -> None:
        connection.request("GET", "/tip")

    def page(connection: http.client.HTTPConnection) -> None:
        connection.request("GET", "/")

    return [
        Probe("questions", port, question),
        Probe("single posts", port, post),
        Probe("/tip", port, tip),
        Probe("pages", pages, page),
    ]


@contextmanager
def probing(some: Sequence[Probe]) -> Iterator[None]:
    """Every probe asks meanwhile."""
    stopping = threading.Event()
    threads = [threading.Thread(target=probe.run, args=(stopping,)) for probe in some]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stopping.set()
        for thread in threads:
            thread.join()


def judge(some: Sequence[Probe], under: str, outcome: Outcome) -> None:
    """Take down what was slow or failed while the service was `under` something."""
    for probe in some:
        took = f"p99 {1000 * probe.p99_s():.0f} ms of {len(probe.times_s)} answers"
        outcome.notes.append(f"{under}: {probe.name} {took}")
        if probe.p99_s() > P99_S or len(probe.times_s) < FEWEST:
            promised = f"{1000 * P99_S:.0f} ms are promised"
            outcome.add("slow", f"{under}: {probe.name} {took}, {promised}")
        if probe.failures:
            outcome.add("refused", f"{under}: {len(probe.failures)} like {probe.failures[0]}")
