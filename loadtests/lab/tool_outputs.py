"""Reads what load generators write: wrk2, vegeta, k6, JMeter, oha, Locust, and the lab itself.

A file is recognised by its form, not by its name. It has a row for each request, from which all can
be computed; only wrk2 and Locust's own CSV sum up: how many requests, their mean, and percentiles.
What holds too little is refused in a sentence that says what to bring in its place. Whether a
request succeeded, and how many customers there were, is what the file says, if it says so.
"""

import csv
import json
import os
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from math import inf
from pathlib import Path
from typing import Any

from loadtests.generation.rows import COLUMNS, NO_ANSWER, Row, customer_of, read_rows
from loadtests.grouping import grouped
from loadtests.lab.response_times import Times
from loadtests.lab.results import ResultsError
from loadtests.lab.tool_runs import (
    ALL_FAILED,
    ENCODING,
    FAULTS,
    JOINT,
    MOSTLY,
    MS,
    NS,
    OPEN,
    UNKNOWN,
    Request,
    ToolRun,
    fault,
    parsed,
    require_requests,
    require_times,
    run_of_requests,
    run_of_rows,
)
from loadtests.number_format import finite
from loadtests.wrk import UNIT_MS

# --- a row for each request ----------------------------------------------------------------------

TRANSACTION = "Number of samples in transaction"  # what a Transaction Controller says of its row
JMETER_ROUNDS_S = 0.0025  # a start and a time, in whole milliseconds
_JUDGED = {"true": 200, "false": NO_ANSWER}


def read_own(path: Path) -> list[ToolRun]:
    """Read `--raw` of the scenarios, which may have several runs.

    Each command appends its run, and all may have the same name: then indexes come again. Runs
    whose rows take turns went on together.
    """
    require_requests(len(every := read_rows(path)))
    runs, more, indexes = [], Counter[str](), defaultdict[str, set[int]](set)

    def name_of(row: Row) -> str:
        if row.index in indexes[row.run]:
            more[row.run] += 1
            indexes[row.run].clear()
        indexes[row.run].add(row.index)
        return f"{row.run} ({1 + more[row.run]})" if more[row.run] else row.run

    names = [name_of(row) for row in every]
    places = grouped(range(len(every)), names.__getitem__)
    for name, own in places.items():
        rows = [every[place] for place in own]
        others = (those for those in places.values() if those is not own)
        is_joint = any(own[0] < those[-1] and those[0] < own[-1] for those in others)
        is_closed = len(rows) > 1 and max(row.index for row in rows) >= 2 * len(rows)
        customers = len(set(map(customer_of, rows))) if is_closed else OPEN
        tool = JOINT if is_joint else "Locust --raw"
        runs.append(run_of_rows(f"{path.name}:{name}", tool, rows, customers))
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
            if [*row.values()] == reader.fieldnames:
                raise ResultsError("has several runs; write each into a file of its own")
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
    not, they wait for an arrival, unless their number is raised. An arrival for which no user was
    free is a request that failed. Each of these has a point of its own; iterations for which the
    time was over have one together. So a run with several is open, even if all users were busy.
    """
    requests, users, busy_s, initialized = list[Request](), list[int](), 0.0, 0
    dropped = 0
    for metric, value, request in parsed(_lines(path), _k6_point):
        if request is not None:
            requests.append(request)
            dropped += metric == "dropped_iterations"
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
    is_open = dropped > 1 or most < initialized or least == most
    customers = OPEN if is_open else UNKNOWN
    if dropped <= 1 and (initialized == 1 or (most == initialized and is_constant)):
        customers = initialized
    return [run_of_requests(path, "k6", requests, customers)]


def _k6_point(text: str) -> tuple[str, float, Request | None]:
    """Return the metric and value of a line, and the request if it is one."""
    line = json.loads(text)
    data, metric = line["data"], line["metric"]
    if line["type"] != "Point":
        return "", 0.0, None
    value = float(data["value"])
    if metric == "dropped_iterations" and value == 1:
        return metric, value, Request(_unix_s(data["time"]), 0.0, NO_ANSWER)
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
    every = [*_table(path)]
    rows = [
        line for line in every if not line[1].get("responseMessage", "").startswith(TRANSACTION)
    ]
    if every and not rows:
        raise ResultsError(
            "has only rows of transactions, each of several requests and pauses; let their "
            "Transaction Controllers not generate a parent sample"
        )
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
    if (success := row["success"].lower()) not in _JUDGED:
        raise ResultsError(f"has the success {success!r}, which must be true or false")
    times_s = int(at) * MS, int(row["elapsed"]) * MS
    return Request(*times_s, _JUDGED[success], row.get("label", ""), row.get("threadName", ""))


# --- sums ----------------------------------------------------------------------------------------

_DISTRIBUTION = "Latency Distribution"
STATS, HISTORY = "_stats.csv", "_stats_history.csv"
STEADY = 0.8  # share of the history with the same number of users


def read_wrk2(path: Path) -> list[ToolRun]:
    """Read what `wrk2 -L` prints: the percentiles of an HdrHistogram."""
    text = path.read_text(encoding=ENCODING)
    if len(re.findall(r"^Running .* test @ ", text, re.MULTILINE)) > 1:
        raise ResultsError("has several runs of wrk2; write each into a file of its own")
    corrected = "".join(text.split(_DISTRIBUTION)[:2])  # with -U another follows, which is not
    row = r"^ *([\d.]+) +([\d.]+) +(\d+) +(?:[\d.]+|inf) *$"
    lines = re.findall(row, corrected, re.MULTILINE)
    mean = re.search(r"#\[Mean *= *([\d.]+)", corrected)
    made = re.search(r"(\d+) requests in ([\d.]+)(ms|s|m|h)", text)
    if not lines or not mean or not made:
        raise ResultsError(
            "is of wrk or wrk2 without the whole distribution; ask wrk2 with -L (--latency) and "
            "-d30s, as it leaves out the first 10 s, and keep all that it prints"
        )
    bad = re.search(r"Non-2xx or 3xx responses: (\d+)", text)
    # Requests that are not among those made; `timeout` counts idle connections, too (wrk.c).
    errors = re.search(r"Socket errors: (.+?), timeout", text)
    lost = sum(map(int, re.findall(r"\d+", errors[1]))) if errors else 0
    counts = int(made[1]) + lost, lost + (int(bad[1]) if bad else 0)
    quantiles = {float(share): float(value) * MS for value, share, _ in lines}
    duration_s = float(made[2]) * UNIT_MS[made[3]] * MS
    times = _times(*counts, duration_s, float(mean[1]) * MS, quantiles)
    return [ToolRun(path.name, "wrk2", times, (), OPEN)]


def _times(
    requests: int, failed: int, duration_s: float, mean_s: float, quantiles: Mapping[float, float]
) -> Times:
    """Return the times of a run. Raises ResultsError for those that cannot be, or are too few."""
    require_requests(requests)
    if requests == failed:
        raise ResultsError(ALL_FAILED)
    if not duration_s > 0:
        raise ResultsError(f"has {requests} requests in {duration_s:g} s, which cannot be")
    require_times([mean_s, *quantiles.values()])
    return Times(requests, failed, duration_s, mean_s, quantiles=sorted(quantiles.items()))


def read_locust(path: Path) -> list[ToolRun]:
    """Read Locust's two files, of percentiles and of users, whichever of them is given."""
    base = path.name.removesuffix(HISTORY).removesuffix(STATS)
    stats, history = (path.with_name(base + end) for end in (STATS, HISTORY))
    if missing := [file.name for file in (stats, history) if not file.exists()]:
        raise ResultsError(
            f"is one of Locust's two files; beside it {missing[0]} is missing, and only both "
            "together tell times and numbers of users"
        )
    total = _aggregated(stats)[-1]
    require_requests(count := int(total["Request Count"]))  # else its times are N/A
    users = Counter(int(float(row["User Count"])) for row in _aggregated(history))
    del users[0]
    (most,) = users.most_common(1) or [(0, 0)]
    if not most[1] or most[1] < STEADY * users.total():
        raise ResultsError("has a number of users that changed most of the time; keep it constant")
    shares = [name for name in total if re.fullmatch(r"[\d.]+%", name)]
    quantiles = {float(name[:-1]) / 100: float(total[name]) * MS for name in shares}
    quantiles[0.0] = float(total["Min Response Time"]) * MS
    mean_s = float(total["Average Response Time"]) * MS
    duration_s = count / (float(total["Requests/s"]) or inf)
    times = _times(count, int(total["Failure Count"]), duration_s, mean_s, quantiles)
    # A single user may send all arrivals of an open run, as that of open_workload.py does.
    customers = most[0] if most[0] > 1 else UNKNOWN
    return [ToolRun(base, "Locust --csv", times, (), customers)]


def _aggregated(path: Path) -> list[dict[str, str]]:
    with path.open(encoding=ENCODING, newline="") as file:
        if rows := [row for row in csv.DictReader(file) if row["Name"] == "Aggregated"]:
            return rows
    raise ResultsError("has no row Aggregated, so no request was made")


# --- forms ---------------------------------------------------------------------------------------

_SUMS = "it only sums up requests, so bring a row for each:"
_LOCUST = f"leave it out, and bring the files that end in {STATS} and {HISTORY}"
_FORMS: Mapping[Sequence[str], Callable[[Path], list[ToolRun]] | str] = {
    (",".join(COLUMNS),): read_own,
    ("request-start", "request-duration", "status"): read_oha,
    ("timeStamp", "elapsed", "success"): read_jmeter,
    ('"timestamp"', '"latency"', '"code"'): read_vegeta,
    ('"type":"Metric"',): read_k6,
    ('"type":"Point"',): read_k6,
    ("Request Count,Failure Count",): read_locust,
    ("Timestamp,User Count",): read_locust,
    ("Method,Name,Error,Occurrences",): f"is Locust's list of failures; {_LOCUST}",
    ("Count,Message,Traceback,Nodes",): f"is Locust's list of exceptions; {_LOCUST}",
    ("Running ", " test @ "): read_wrk2,
    ("Result", "Attack"): "is vegeta's binary form; bring what `vegeta encode` writes of it",
    ('"latencies"', '"status_codes"'): f"is a report of vegeta; {_SUMS} `vegeta encode`",
    ("[total, rate, throughput]",): f"is a report of vegeta; {_SUMS} `vegeta encode`",
    ("metric_name", "metric_value"): "is k6's CSV; bring --out json=FILE",
    ('"metrics"',): f"is a summary of k6; {_SUMS} --out json=FILE",
    ('"root_group"',): f"is a summary of k6; {_SUMS} --out json=FILE",
    ("http_req_duration.", "avg="): f"is a summary of k6; {_SUMS} --out json=FILE",
    ("\x1f\ufffd\x08",): "is compressed; unpack it with gunzip",
    ("<testResults",): "is JMeter's XML; bring CSV (jmeter.save.saveservice.output_format=csv)",
    ('"latencyPercentiles"',): f"is oha's JSON; {_SUMS} --output-format csv",
    ("response-time,DNS+dialup",): "is hey's CSV, which is not read; bring oha --output-format csv",
}
"""Words at the beginning of a file -> its reader, or what is wrong with the form."""

HEAD_BYTES = 4096
_UNKNOWN = (
    "is no output that is known here: of wrk2 -L, vegeta encode (JSON), k6 --out json, JMeter -l "
    "(CSV with the names of its columns), oha --output-format csv, Locust --csv or --raw"
)


def read(path: Path) -> list[ToolRun]:
    """Return the runs in a file; only the lab's own raw rows have several. Raises ResultsError."""
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES).decode(errors="replace")
    forms = (form for words, form in _FORMS.items() if all(word in head for word in words))
    form = next(forms, _UNKNOWN)
    try:
        if isinstance(form, str):
            raise ResultsError(form)
        return form(path)
    except FAULTS as problem:
        raise ResultsError(f"{path} {fault(problem)}") from problem


def read_all(paths: Iterable[Path], alone: Sequence[Path] = ()) -> list[ToolRun]:
    """Return the runs of all files; Locust's two files are one run. Raises ResultsError.

    alone: further files, whose runs are of one customer, whatever they say. Files in several
    folders have these in the names of their runs.
    """
    runs: dict[tuple[Path, str], ToolRun] = {}
    for path in (*alone, *paths):
        for run in read(path):
            known = replace(run, customers=1) if path in alone else run
            runs.setdefault((path.resolve().parent, run.name), known)
    top = os.path.commonpath([folder for folder, _ in runs])
    return [
        replace(run, name=str(folder.relative_to(top) / name))
        for (folder, name), run in runs.items()
    ]
