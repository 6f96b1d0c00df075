"""Half as much again as each lane can do, while others ask, post and look at pages.

First some clients find out how many requests of a kind the service answers in a second. Then 1.5
times as many arrive, whether or not earlier ones have been answered. Those that are let in are
answered within `ADMITTED_WITHIN_S`, the others refused with 503 at once. When no more arrive, all
are gone within `DRAINED_WITHIN_S`. Clients of other kinds hardly notice any of it. The overload
comes from a process of its own, so that those who measure do not wait for it.
"""

import itertools
import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from typing import NamedTuple

import requests

from backend.chain.flight import as_mapping
from tests.faults.hostile import EXPORT, serving_flights
from tests.faults.probes import judge, probes, probing
from tests.faults.report import Outcome, Task
from tests.flights import flights

CALIBRATED_BY = 8  # clients
CALIBRATED_S = 3.0
OVERLOAD = 1.5
MOST_AT_ONCE = 800
ADMITTED_WITHIN_S = 5.0
DRAINED_WITHIN_S = 5.0
REFUSED_WITHIN_S = 1.0
GIVEN_UP_S = 60.0
BATCH = 500
FIRST_SERIAL = 9 * 10**8

Send = Callable[[str], requests.Response]


class Lane(NamedTuple):
    """A kind of request that shares its workers with its like only."""

    name: str
    send: Send


class Answer(NamedTuple):
    """status: 0 if there was none."""

    status: int
    took_s: float


_serials: Iterator[int] = itertools.count(FIRST_SERIAL, BATCH)
_carriers = itertools.cycle(range(19_000, 21_000, 7))


def _scan(url: str) -> requests.Response:
    asked = f"OP_CARRIER_AIRLINE_ID={next(_carriers)}&INITIAL_DATE=2015-01-01&FINAL_DATE=2015-12-31"
    return requests.get(f"{url}/average_delays?{asked}&engine=scan", timeout=GIVEN_UP_S)


def _export(url: str) -> requests.Response:
    return requests.get(url + EXPORT, timeout=GIVEN_UP_S)


def _batch(url: str) -> requests.Response:
    rows = flights(BATCH, next(_serials))
    body = "\n".join(json.dumps(as_mapping(row)) for row in rows)
    kind = {"Content-Type": "application/x-ndjson"}
    return requests.post(f"{url}/transactions/batch", data=body, headers=kind, timeout=GIVEN_UP_S)


def _commit(url: str) -> requests.Response:
    row = as_mapping(flights(1, next(_serials))[0])
    return requests.post(f"{url}/transactions?mode=commit", json=row, timeout=GIVEN_UP_S)


LANES = (
    Lane("scans", _scan),
    Lane("exports", _export),
    Lane("batches", _batch),
    Lane("waits for a block", _commit),
)


def run(task: Task) -> Outcome:
    """Overload every lane for `task.count` seconds."""
    outcome = Outcome()
    with (
        ProcessPoolExecutor(1, get_context("spawn")) as elsewhere,
        serving_flights(task.folder / "chain") as (service, pages, rows),
    ):
        for lane in LANES:
            rate = OVERLOAD * elsewhere.submit(_capacity, lane, service.url).result()
            name = f"{lane.name} at {rate:.1f}/s"
            some = probes(service.port, pages, rows, task.chance.randrange(1000))
            with probing(some):
                arrivals = elsewhere.submit(_arrivals, lane, service.url, rate, task.count)
                answers, drained_s = arrivals.result()
            judge(some, name, outcome)
            _judge(name, answers, drained_s, outcome)
            outcome.done += 1
            task.says(f"{name}: {len(outcome.findings)} findings")
    return outcome


def _asked(lane: Lane, url: str) -> Answer:
    started = time.monotonic()
    try:
        status = lane.send(url).status_code
    except requests.RequestException:
        status = 0
    return Answer(status, time.monotonic() - started)


def _capacity(lane: Lane, url: str) -> float:
    """Requests a second that a few clients are answered."""
    until = time.monotonic() + CALIBRATED_S

    def client(_: int) -> int:
        answered = 0
        while time.monotonic() < until:
            answered += 200 <= _asked(lane, url).status < 300
        return answered

    started = time.monotonic()
    with ThreadPoolExecutor(CALIBRATED_BY) as pool:
        answered = sum(pool.map(client, range(CALIBRATED_BY)))
    return max(1, answered) / (time.monotonic() - started)


def _arrivals(lane: Lane, url: str, rate: float, duration_s: float) -> tuple[list[Answer], float]:
    """The answers to requests that arrive at `rate`, and how long the last ones took to be gone."""
    with ThreadPoolExecutor(MOST_AT_ONCE) as pool:
        started = time.monotonic()
        futures = []
        for number in range(max(1, int(rate * duration_s))):
            time.sleep(max(0.0, started + number / rate - time.monotonic()))
            futures.append(pool.submit(_asked, lane, url))
        last = time.monotonic()
        answers = [future.result() for future in futures]
        return answers, time.monotonic() - last


def _judge(name: str, answers: list[Answer], drained_s: float, outcome: Outcome) -> None:
    admitted = [answer.took_s for answer in answers if 200 <= answer.status < 300]
    refused = [answer.took_s for answer in answers if answer.status == 503]
    others = len(answers) - len(admitted) - len(refused)
    outcome.notes.append(
        f"{name}: {len(admitted)} answered, {len(refused)} refused, {others} neither; "
        f"drained in {drained_s:.1f} s"
    )
    for what, took, within_s in (
        ("answered", max(admitted, default=0), ADMITTED_WITHIN_S),
        ("refused", max(refused, default=0), REFUSED_WITHIN_S),
        ("drained", drained_s, DRAINED_WITHIN_S),
    ):
        if took > within_s:
            outcome.add("slow", f"{name}: {what} after {took:.1f} s, not within {within_s:.0f} s")
    if others:
        outcome.add("refused", f"{name}: {others} got neither an answer nor 503")
