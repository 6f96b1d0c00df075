"""Measures service times with one customer.

A single customer needs no load generator: this process sends each request on a new connection, as
soon as the last one is answered. Rows go to `requests.csv`. Runs are judged by the same rules as
any other, and listed in `runs.csv`.

    measure_alone(run.results, service, "study-flight_counter-1", requests, warm_up=1, least=5)
"""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from http.client import HTTPException
from itertools import islice
from math import inf
from typing import Generic
from urllib.parse import urlsplit

from loadtests.generation.rows import NO_ANSWER, Row, closed_index, row_file
from loadtests.generation.run import REQUESTS, RunRecord, Target, judge_run
from loadtests.generation.schedule import Request
from loadtests.lab.repeated import accepted_by_run, rows_by_run
from loadtests.lab.results import Results, TableWriter
from loadtests.machine_samples import Sampler
from loadtests.processes import ProgramFailed, Site, exchanged
from loadtests.servers.timing import reported
from loadtests.tables import OneLine


def measure_alone(
    results: Results,
    server: Target,
    run: str,
    requests: Iterable[Request],
    *,
    warm_up: int = 0,
    least: int = 1,
    least_s: float = 0.0,
    most_s: float = inf,
) -> list[Row]:
    """Send `warm_up` requests, which do not count, then more until both minima are reached.

    least: smallest number of requests that count. least_s: least time they take together.
    most_s: time after which no more are sent, even if they are fewer.
    Returns the rows of all requests. Raises ProgramFailed if none succeeded.
    """
    with closing(row_file(results.folder / REQUESTS)) as table:
        answers = _answers(server.url, run, requests, table)
        rows = list(islice(answers, warm_up))
        sampler = Sampler(None, server.pid)
        took_s = 0.0
        for row in answers:
            rows.append(row)
            took_s += row.closed_response_s
            is_enough = len(rows) >= warm_up + least and took_s >= least_s
            if is_enough or took_s >= most_s:
                break
    used = sampler.sample()
    record = RunRecord(run, "closed", tuple(rows), (), None)
    facts = record.facts()
    facts = replace(facts, foreign_cpu=used.foreign_cpu, client_cpu=used.client_cpu)
    judge_run(results.folder, record, facts)
    if not any(row.succeeded for row in rows):
        last = f"the last with status {rows[-1].status}" if rows else "there was none to ask"
        raise ProgramFailed(f"{run}: no request of {len(rows)} succeeded, {last}")
    return rows


def _answers(
    url: str, run: str, requests: Iterable[Request], table: TableWriter[Row]
) -> Iterator[Row]:
    """Send a request whenever the row of the last one is taken, and write its row."""
    start_s = time.monotonic()
    for number, request in enumerate(requests):
        sent_s = time.monotonic()
        status, headers = _answer(url, request.path)
        done_s, timing, index = time.monotonic(), reported(headers), closed_index(0, number)
        times_s = sent_s, sent_s, timing.start_s, done_s, timing.service_s
        row = Row(run, index, request.kind, *times_s, status, timing.worker).since(start_s)
        table.add(row)
        yield row


def _answer(url: str, path: str) -> tuple[int, Mapping[str, str]]:
    """GET `path` and read the whole answer. Returns its status and its headers, in lower case."""
    try:
        with Site(url).connection() as connection:
            whole = urlsplit(url).path.rstrip("/") + path
            response, _ = exchanged(connection, whole, headers={"Connection": "close"})
            return response.status, {name.lower(): text for name, text in response.getheaders()}
    except (OSError, HTTPException):
        return NO_ANSWER, {}


# --- reading -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Recorded(Generic[OneLine]):
    """Holds a run: its rows after the warm-up, in order, and whether it counts."""

    line: OneLine
    is_accepted: bool
    rows: Sequence[Row]

    @property
    def times_s(self) -> list[float]:
        """Return the response times, which are service times: there is only one customer."""
        return [row.closed_response_s for row in self.rows]


def recorded(results: Results, table: str, kind: type[OneLine]) -> list[Recorded[OneLine]]:
    """Return the completed runs of a table, if there is one, with their rows after the warm-up.

    Its lines have `run`, and `warm_up`: how many of the first rows of the run do not count.
    """
    runs, judged, rows = [], accepted_by_run(results), rows_by_run(results)
    for line in results.lines_if_any(table, kind):
        run, warm_up = (line.cells()[name] for name in ("run", "warm_up"))
        counted = [row for row in rows[run][warm_up:] if row.succeeded]
        if counted and run in judged:
            runs.append(Recorded(line, judged[run], counted))
    return runs
