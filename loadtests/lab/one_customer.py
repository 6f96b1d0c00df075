"""One customer who asks a server again and again: service times, and what the server says of them.

A single customer needs no load generator: he asks from this process, each time on a connection of
his own, and asks again as soon as he is answered. Beside the raw rows of `requests.csv` there is
`parts.csv`, a line for each entry of an answer's Server-Timing, which `runs.csv` knows to be from a
run that was accepted or not, by the same rules as any other.

    with one_customer(run.results) as customer:
        customer.asks(service, "study-flight_counter-1", requests, warm_up=1, least=5, least_s=1)
"""

import re
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from http.client import HTTPException
from itertools import islice

from loadtests.generation.rows import NO_ANSWER, Row, RowFile, closed_index
from loadtests.generation.rules import Facts, judge
from loadtests.generation.run import REQUESTS, RunRecord, append_verdict
from loadtests.generation.schedule import Request
from loadtests.lab.raw import accepted_by_run, rows_by_run
from loadtests.lab.results import Results, TableWriter
from loadtests.processes import Service
from loadtests.processor_time import moment
from loadtests.servers.timing import SERVER_TIMING, Entry, entries, told

PARTS = "parts"
COLUMNS = ("run", "index", "name", "duration_s", "description")

_COUNT = re.compile(r"\d+")


@contextmanager
def one_customer(results: Results) -> Iterator["Customer"]:
    """The customer whose requests are written to `results`; only one at a time."""
    with (
        closing(RowFile(results.folder / REQUESTS)) as rows,
        results.table(PARTS, COLUMNS) as parts,
    ):
        yield Customer(results, rows, parts)


class Customer:
    """Asks, and writes down what came of it."""

    def __init__(self, results: Results, rows: RowFile, parts: TableWriter) -> None:
        self._results, self._rows, self._parts = results, rows, parts

    def asks(
        self,
        service: Service,
        run: str,
        requests: Iterable[Request],
        *,
        warm_up: int = 0,
        least: int = 1,
        least_s: float = 0.0,
    ) -> list[Row]:
        """Ask the first `warm_up` requests, which are not to count, then at least `least` more and
        for at least `least_s` seconds. The rows of all of them.
        """
        begun_unix_s, start_s = time.time(), time.monotonic()
        asked = enumerate(requests)
        rows = [self._ask(service, run, start_s, each) for each in islice(asked, warm_up)]
        before = moment(service.pid)
        for each in asked:
            rows.append(self._ask(service, run, start_s, each))
            if len(rows) >= warm_up + least and time.monotonic() >= before.at_s + least_s:
                break
        used = before.until(moment(service.pid))
        facts = Facts(
            requests=len(rows),
            failed=sum(not row.succeeded for row in rows),
            foreign_cpu=used.foreign_cores,
            client_cpu=used.own_s / used.wall_s,
        )
        record = RunRecord(run, "closed", tuple(rows), (), None, begun_unix_s)
        append_verdict(self._results.folder, record, judge(facts))
        return rows

    def _ask(
        self, service: Service, run: str, start_s: float, numbered: tuple[int, Request]
    ) -> Row:
        number, request = numbered
        sent_s = time.monotonic()
        status, headers = _answer(service, request.path)
        done_s = time.monotonic()
        said = told(headers)
        row = Row(
            run,
            closed_index(0, number),
            request.kind,
            sent_s - start_s,
            sent_s - start_s,
            None if said.start_s is None else said.start_s - start_s,
            done_s - start_s,
            said.service_s,
            status,
            said.worker,
        )
        self._rows.write([row])
        for entry in entries(headers.get(SERVER_TIMING.lower(), "")):
            self._parts.write(
                run=run,
                index=row.index,
                name=entry.name,
                duration_s=entry.duration_s,
                description=entry.description,
            )
        return row


def _answer(service: Service, path: str) -> tuple[int, Mapping[str, str]]:
    """Status and headers, by names in lower case, when the whole answer has been read."""
    try:
        with service.connection() as connection:
            connection.request("GET", path, headers={"Connection": "close"})
            response = connection.getresponse()
            response.read()
            return response.status, {name.lower(): text for name, text in response.getheaders()}
    except (OSError, HTTPException):
        return NO_ANSWER, {}


# --- reading -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Asked:
    """A request that counts, and what the server said of it by the names of its entries."""

    row: Row
    said: Mapping[str, Entry]

    def duration_s(self, name: str) -> float:
        """Seconds of that entry; 0 if there is none."""
        found = self.said.get(name)
        return (found.duration_s or 0.0) if found else 0.0

    def count(self, name: str, at: int = 0) -> int:
        """The number at place `at` in the description of that entry; 0 if there is none."""
        found = self.said.get(name)
        numbers = _COUNT.findall(found.description) if found else []
        return int(numbers[at]) if at < len(numbers) else 0


@dataclass(frozen=True, slots=True)
class Recorded:
    """A run: its requests after the warm-up, in order, and whether it counts."""

    run: str
    is_accepted: bool
    asked: Sequence[Asked]

    @property
    def times_s(self) -> list[float]:
        """The response times, which are service times: nobody else was there."""
        return [one.row.closed_response_s for one in self.asked]


def recorded(results: Results, warm_ups: Mapping[str, int]) -> dict[str, Recorded]:
    """The runs named in `warm_ups` that were written to their end, with rows after the warm-up."""
    rows, accepted = rows_by_run(results), accepted_by_run(results)
    said = _said(results)
    found = {}
    for run, warm_up in warm_ups.items():
        asked = [Asked(row, said[run, row.index]) for row in rows[run][warm_up:] if row.succeeded]
        if asked and run in accepted:
            found[run] = Recorded(run, accepted[run], asked)
    return found


def _said(results: Results) -> Mapping[tuple[str, int], dict[str, Entry]]:
    found: dict[tuple[str, int], dict[str, Entry]] = defaultdict(dict)
    for line in results.rows(PARTS) if results.has(PARTS) else []:
        duration_s = float(line["duration_s"]) if line["duration_s"] else None
        entry = Entry(line["name"], duration_s, line["description"])
        found[line["run"], int(line["index"])][entry.name] = entry
    return found
