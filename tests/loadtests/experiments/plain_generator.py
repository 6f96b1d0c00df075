"""A load generator of threads, which keeps what it sees as Locust's does, and starts at once.

Tests of experiments measure real servers with it; `tests/loadtests/generation` tests Locust's own.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from itertools import chain, cycle
from time import monotonic, sleep
from typing import Any
from urllib.parse import urlsplit

import pymysql

from loadtests import machine_samples as sampling
from loadtests.generation.interactions import ADDED, Interaction, step_index
from loadtests.generation.rows import Row, closed_index, row_file
from loadtests.generation.run import REQUESTS, SAMPLES, SCHEDULES, Generator, RunRecord
from loadtests.generation.schedule import Arrival, Choices, Request, save
from loadtests.machine_samples import Sampler
from loadtests.processes import Site, exchanged
from loadtests.servers.timing import NOTHING_REPORTED, reported

AT_ONCE = 32
Ask = Callable[[int, str, str, str, float], tuple[Row, bytes]]


def open_run(by: Generator, target: Any, schedule: list[Arrival], run: str) -> RunRecord:
    """Measure open arrivals, as `Generator.open` does."""
    path = by.folder / SCHEDULES / f"{run}.csv"
    path.parent.mkdir(exist_ok=True)
    save(path, schedule)

    def send(ask: Ask, start_s: float, arrival: Arrival) -> Row:
        due_s = start_s + arrival.intended_s
        sleep(max(0.0, due_s - monotonic()))
        return ask(arrival.index, arrival.kind, arrival.path, arrival.body, due_s)[0]

    def rows(ask: Ask, start_s: float) -> Iterable[Row]:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            return list(pool.map(lambda arrival: send(ask, start_s, arrival), schedule))

    return _kept(by, target, run, "open", rows, len(schedule))


def closed_run(
    by: Generator,
    target: Any,
    choices: Choices,
    run: str,
    *,
    customers: int,
    think_s: float = 0.0,
    requests: int = 0,
    warm_up: int = 0,
    duration_s: float = 0.0,
    each_once: bool = False,
) -> RunRecord:
    """Measure customers who wait for answers, as `Generator.closed` does."""
    in_turn = list(chain.from_iterable(zip(*choices.values(), strict=False)))
    asked: Iterator[Request] = iter(in_turn) if each_once else cycle(in_turn)

    def rows(ask: Ask, start_s: float) -> Iterable[Row]:
        def customer(number: int) -> list[Row]:
            results: list[Row] = []
            while len(results) < warm_up + requests or monotonic() - start_s < duration_s:
                request, index = next(asked), closed_index(number, len(results))
                results.append(ask(index, request.kind, request.path, request.body, monotonic())[0])
                sleep(think_s)
            return results

        with ThreadPoolExecutor(customers) as pool:
            return list(chain.from_iterable(pool.map(customer, range(customers))))

    return _kept(by, target, run, "closed", rows)


def interactions(
    by: Generator, target: Any, sequences: Any, run: str, *, interval_s: float = 0.0
) -> RunRecord:
    """Measure customers with sequences of interactions, as `Generator.interactions` does."""

    def rows(ask: Ask, start_s: float) -> Iterable[Row]:
        def customer(number: int) -> list[Row]:
            results: list[Row] = []
            due_s = start_s
            for at, interaction in enumerate(sequences[number]):
                sleep(max(0.0, due_s - monotonic()))
                results += _steps(ask, interaction, number, at, due_s)
                due_s = due_s + interval_s if interval_s else monotonic()
            return results

        with ThreadPoolExecutor(len(sequences)) as pool:
            return list(chain.from_iterable(pool.map(customer, range(len(sequences)))))

    return _kept(by, target, run, "interaction", rows)


def _steps(ask: Ask, task: Interaction, customer: int, number: int, due_s: float) -> Iterator[Row]:
    added = ""
    for at, step in enumerate(task.steps):
        index, kind = step_index(customer, number, at), task.row_kind(step)
        row, body = ask(index, kind, step.path.replace(ADDED, added), step.body, due_s)
        yield row
        due_s = monotonic()
        if step.method == "POST" and "/batch" not in step.path:
            answer = json.loads(body)
            added = answer.get("receipt") or f"/transactions/{answer['TRANSACTION_ID']}"


def _kept(
    by: Generator,
    target: Any,
    run: str,
    workload: str,
    rows: Callable[[Ask, float], Iterable[Row]],
    scheduled: int | None = None,
) -> RunRecord:
    start_s, sampler = monotonic(), Sampler(1, target.pid)

    def ask(index: int, kind: str, path: str, body: str, due_s: float) -> tuple[Row, bytes]:
        sent_s = monotonic()
        status, headers, answer = _answered(target.url, path, body)
        done_s, report = monotonic(), reported(headers) if headers else NOTHING_REPORTED
        times_s = due_s, sent_s, report.start_s, done_s, report.service_s
        return Row(run, index, kind, *times_s, status, report.worker), answer

    moved = tuple(row.since(start_s) for row in rows(ask, start_s))
    with closing(row_file(by.folder / REQUESTS)) as file:
        file.add(*moved)
    sample = sampler.sample()
    samples = (replace(sample, at_s=sample.at_s - start_s),)
    sampling.append(by.folder / SAMPLES, run, samples)
    return RunRecord(run, workload, moved, samples, scheduled)


def _answered(url: str, path: str, body: str) -> tuple[int, dict[str, str], bytes]:
    parts = urlsplit(url)
    if parts.scheme == "mariadb":
        to: dict[str, Any] = {"host": parts.hostname, "port": parts.port, "user": parts.username}
        with closing(pymysql.connect(**to, database=path[1:], autocommit=True)) as database:
            database.cursor().execute(body)
        return 200, {}, b""
    kind = "application/x-ndjson" if "/batch" in path else "application/json"
    with Site(url).connection() as connection:
        headers = {"Content-Type": kind} if body else {}
        response, answer = exchanged(connection, path, body or None, headers)
        return response.status, {n.lower(): text for n, text in response.getheaders()}, answer
