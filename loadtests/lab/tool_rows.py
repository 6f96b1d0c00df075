"""Reads files of load generators that have a row for each request."""

import csv
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from loadtests.generation.rows import NO_ANSWER, customer_of, read_rows
from loadtests.grouping import grouped
from loadtests.lab.results import ResultsError
from loadtests.lab.tool_runs import (
    ENCODING,
    MOSTLY,
    MS,
    NS,
    OPEN,
    UNKNOWN,
    Request,
    ToolRun,
    parsed,
    require_requests,
    run_of_requests,
    run_of_rows,
)
from loadtests.number_format import finite

TRANSACTION = "Number of samples in transaction"  # what a Transaction Controller says of its row
JMETER_ROUNDS_S = 0.0025  # a start and a time, in whole milliseconds
_JUDGED = {"true": 200, "false": NO_ANSWER}


def read_own(path: Path) -> list[ToolRun]:
    """Read `--raw` of the scenarios, which may have several runs."""
    require_requests(len(every := read_rows(path)))
    runs = []
    for name, rows in grouped(every, lambda row: row.run).items():
        is_closed = len(rows) > 1 and max(row.index for row in rows) >= 2 * len(rows)
        customers = len(set(map(customer_of, rows))) if is_closed else OPEN
        runs.append(run_of_rows(f"{path.name}:{name}", "Locust --raw", rows, customers))
    return runs


def read_oha(path: Path) -> list[ToolRun]:
    """Read `oha --output-format csv`, whose threads may write one after the other."""

    def request(row: Mapping[str, str]) -> Request:
        times_s = finite(row["request-start"]), finite(row["request-duration"])
        return Request(*times_s, int(row["status"]))

    requests = sorted(parsed(_table(path), request), key=lambda request: request.start_s)
    return [run_of_requests(path, "oha", requests)]


def _table(path: Path) -> Iterator[tuple[int, Mapping[str, str]]]:
    with path.open(encoding=ENCODING, newline="") as file:
        reader = csv.DictReader(file, restval="")
        if len(reader.fieldnames or ()) < 2:
            raise ResultsError("parts its columns not by commas; write it with commas")
        for row in reader:
            yield reader.line_num, row


def read_vegeta(path: Path) -> list[ToolRun]:

    def request(text: str) -> Request:
        line = json.loads(text)
        return Request(_unix_s(line["timestamp"]), line["latency"] * NS, line["code"])

    return [run_of_requests(path, "vegeta", parsed(_lines(path), request))]


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    with path.open(encoding=ENCODING) as file:
        for number, line in enumerate(file, start=1):
            if line.strip() and line.endswith(("}", "\n")):  # not a last one that was cut off
                yield number, line


def _unix_s(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def read_k6(path: Path) -> list[ToolRun]:
    """Read `k6 --out json`.

    Virtual users of a closed run are always at an iteration, in which they sleep, too. If some are
    not, they wait for an arrival, unless their number is raised.
    """
    requests, users, busy_s, initialized = list[Request](), list[int](), 0.0, 0
    for metric, value, request in parsed(_lines(path), _k6_point):
        if request is not None:
            requests.append(request)
        elif metric == "vus":
            users.append(int(value))
        elif metric == "vus_max":
            initialized = max(initialized, int(value))
        elif metric == "iteration_duration":
            busy_s += value * MS
    if not users or not requests:
        return [run_of_requests(path, "k6", requests)]
    least, most = min(users), max(users)
    initialized = initialized or most
    begun_s = min(request.start_s for request in requests)
    length_s = max(request.start_s + request.took_s for request in requests) - begun_s
    is_constant = busy_s >= MOSTLY * most * length_s if busy_s else least == most
    customers = OPEN if most < initialized or least == most else UNKNOWN
    if initialized == 1 or (most == initialized and is_constant):
        customers = initialized
    return [run_of_requests(path, "k6", requests, customers)]


def _k6_point(text: str) -> tuple[str, float, Request | None]:
    """Return the metric and value of a line, and the request if it is one."""
    line = json.loads(text)
    data, metric = line["data"], line["metric"]
    if line["type"] != "Point":
        return "", 0.0, None
    value = float(data["value"])
    if metric != "http_req_duration":
        return metric, value, None
    tags: Mapping[str, Any] = (data.get("tags") or {}) | (data.get("metadata") or {})
    judged = _JUDGED.get(tags.get("expected_response", ""), int(tags.get("status", 200)))
    names = tags.get("name", ""), str(tags.get("vu", ""))
    return metric, value, Request(_unix_s(data["time"]) - value * MS, value * MS, judged, *names)


def read_jmeter(path: Path) -> list[ToolRun]:
    """Read JMeter's CSV, without the rows of transactions, whose requests are there, too.

    It is open if each thread asked once, as those of an Open Model Thread Group do: one begins for
    each arrival.
    """
    rows = [
        (number, row)
        for number, row in _table(path)
        if not row.get("responseMessage", "").startswith(TRANSACTION)
    ]
    requests = [*parsed(rows, _jmeter_request)]
    users = {request.user for request in requests}
    threads = Counter(row.get("allThreads", "") for _, row in rows)
    most, times = max(threads.items(), key=lambda item: item[1], default=("", 0))
    asked_once = len(users) >= MOSTLY * len(requests) and "" not in users
    customers = OPEN if asked_once else UNKNOWN
    if most and times >= MOSTLY * len(requests) and not (asked_once and most == "1"):
        customers = int(most)
    return [run_of_requests(path, "JMeter", requests, customers, JMETER_ROUNDS_S)]


def _jmeter_request(row: Mapping[str, str]) -> Request:
    if not (at := row["timeStamp"]).isdecimal():
        raise ResultsError(f"has the time {at!r}; ask JMeter for timestamp_format=ms")
    times_s, judged = (int(at) * MS, int(row["elapsed"]) * MS), _JUDGED[row["success"].lower()]
    return Request(*times_s, judged, row.get("label", ""), row.get("threadName", ""))
