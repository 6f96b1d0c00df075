"""Reads files of load generators that have a row for each request."""

import csv
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from html import unescape
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from loadtests.generation.rows import (
    COLUMNS,
    CUSTOMERS_AT_MOST,
    NO_ANSWER,
    Row,
    closed_index,
    customer_of,
    read_rows,
)
from loadtests.grouping import grouped
from loadtests.lab.results import ResultsError
from loadtests.lab.tool_runs import (
    ALL_FAILED,
    ENCODING,
    MOSTLY,
    MS,
    NS,
    REMEDY,
    UNKNOWN,
    US,
    Form,
    S,
    ToolRun,
    has,
    has_columns,
    k6_customers,
    line_of,
    summary,
    table,
)

TOGETHER_S = 0.0025  # requests that begin so long before the end of others are no rounding


@dataclass(frozen=True, slots=True)
class _Request:
    start_s: float
    took_s: float
    status: str
    kind: str = ""
    user: str = ""  # empty if the file does not say


def _status(code: str, success: str = "") -> str:
    """Return a status that says what the tool says of success, "true" or "false", if it does."""
    is_good = "200" <= code < "400" and len(code) == 3
    return code if not success or is_good == (success == "true") else _STATUSES[success]


_STATUSES = {"true": "200", "false": str(NO_ANSWER)}


def _of_requests(
    path: Path, tool: str, requests: Sequence[_Request], customers: int | None = None
) -> list[ToolRun]:
    """Return a run of these requests, summed up if times are whole seconds, which do not order."""
    if not requests:
        return [ToolRun(path.stem, tool)]
    in_order = sorted(requests, key=lambda request: request.start_s)
    begun_s = in_order[0].start_s
    rows = []
    for index, request in zip(_indexes(in_order, customers), in_order, strict=True):
        status = int(request.status) if request.status.isdigit() else NO_ANSWER
        at_s = request.start_s - begun_s
        times_s = at_s, at_s, None, at_s + request.took_s, None
        rows.append(Row(path.stem, index, request.kind or "-", *times_s, status, ""))
    run = ToolRun(path.stem, tool, tuple(rows), customers=customers)
    ends_s = [request.start_s + request.took_s for request in in_order]  # as k6 has them
    if _are_whole([request.start_s for request in in_order]) or _are_whole(ends_s):
        return _summed(run)
    pairs = zip(ends_s, in_order[1:], strict=False)
    met = sum(request.start_s < end_s - TOGETHER_S for end_s, request in pairs)
    if customers == 1 and met > (1 - MOSTLY) * len(rows):  # k6's user may send several at once
        return [replace(run, customers=UNKNOWN)]
    return [run]


def _indexes(requests: Sequence[_Request], customers: int | None) -> Sequence[int]:
    """Return the index of each row, with the customer if the file names as many as there are."""
    users = grouped(requests, lambda request: request.user)
    if "" in users or len(users) != customers or customers > CUSTOMERS_AT_MOST:
        return range(len(requests))
    indexes = {user: map(partial(closed_index, who), count()) for who, user in enumerate(users)}
    return [next(indexes[request.user]) for request in requests]


def _are_whole(times_s: Iterable[float]) -> bool:
    return all(round(time_s, 5).is_integer() for time_s in times_s)


def _summed(run: ToolRun) -> list[ToolRun]:
    """Return a run without its rows, as a file that only sums up would have it."""
    good = sorted(row.closed_response_s for row in run.rows if row.succeeded)
    if not good:
        raise ResultsError(ALL_FAILED)
    last, mean_s = len(good) - 1, sum(good) / len(good)
    quantiles = {at / 200: good[round(at / 200 * last)] for at in range(201)}
    duration_s = max(row.done_s for row in run.rows)
    sums = len(run.rows), len(run.rows) - len(good), duration_s, mean_s
    return summary(run.name, run.tool, sums, quantiles, run.customers)


def _own_rows(path: Path) -> list[ToolRun]:
    runs = []
    for name, rows in grouped(read_rows(path), lambda row: row.run).items():
        is_closed = len(rows) > 1 and max(row.index for row in rows) >= 2 * len(rows)
        customers = len(set(map(customer_of, rows))) if is_closed else 0
        moved = tuple(replace(row, run=f"{path.stem}-{name}") for row in rows)
        runs.append(ToolRun(f"{path.stem}-{name}", "Locust --raw", moved, customers=customers))
    return runs


@dataclass(frozen=True, slots=True)
class _Columns:
    """Reads a CSV file with a row for each request by names of columns; times are in seconds."""

    tool: str
    start: str
    took: str
    status: str

    def is_form(self, head: str) -> bool:
        return has_columns(head, {self.start, self.took, self.status})

    def read(self, path: Path) -> list[ToolRun]:
        requests = []
        for number, row in table(path):
            with line_of(number):
                times_s = float(row[self.start]), float(row[self.took])
                requests.append(_Request(*times_s, row[self.status]))
        return _of_requests(path, self.tool, requests)


_TABLES = (
    _Columns("oha", "request-start", "request-duration", "status"),
    _Columns("hey", "offset", "response-time", "status-code"),
)


def _unix_s(text: str) -> float:
    """Return the seconds since 1970 of a number in s, ms, µs or ns, or of a time in words."""
    if re.fullmatch(r"[\d.]+", text):
        unix = float(text)
        return unix * (S if unix < 1e11 else MS if unix < 1e14 else US if unix < 1e17 else NS)
    decimals = re.search(r"\.\d+", text)  # up to nine, which datetime does not take
    whole = text.replace(decimals[0], "", 1) if decimals else text
    try:
        moment = datetime.fromisoformat(whole.replace("/", "-"))
    except ValueError:
        raise ResultsError(
            f"the time {text!r}, which cannot be read; ask JMeter for timestamp_format=ms and k6 "
            "for K6_CSV_TIME_FORMAT=unix_nano"
        ) from None
    known = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return known.timestamp() + float(decimals[0] if decimals else 0)


def _vegeta_csv(path: Path) -> list[ToolRun]:
    requests = []
    with path.open(encoding=ENCODING, newline="") as file:
        reader = csv.reader(file)
        for cells in reader:
            with line_of(reader.line_num):
                at, code, took, *_ = *cells, "", ""
                requests.append(_Request(float(at) * NS, float(took) * NS, code))
    return _of_requests(path, "vegeta", requests)


def _json_lines(path: Path) -> Iterator[tuple[int, Any]]:
    with path.open(encoding=ENCODING) as file:
        for number, line in enumerate(file, start=1):
            if line.strip() and line.endswith(("}", "\n")):  # not a last one that was cut off
                try:
                    yield number, json.loads(line)
                except json.JSONDecodeError:
                    raise ResultsError(f"has in line {number} no JSON; {REMEDY}") from None


def _vegeta_json(path: Path) -> list[ToolRun]:
    requests = []
    for number, line in _json_lines(path):
        with line_of(number):
            at_s, took_s = _unix_s(line["timestamp"]), line["latency"] * NS
            requests.append(_Request(at_s, took_s, str(line["code"])))
    return _of_requests(path, "vegeta", requests)


# --- k6 ------------------------------------------------------------------------------------------

_Point = tuple[str, str, float, Mapping[str, str]]  # metric, time, value, tags and metadata


def _k6_csv(path: Path) -> list[ToolRun]:
    return _k6(path, table(path), _csv_point)


def _k6_json(path: Path) -> list[ToolRun]:
    points = ((number, line) for number, line in _json_lines(path) if line.get("type") == "Point")
    return _k6(path, points, _json_point)


def _csv_point(row: Mapping[str, str]) -> _Point:
    metadata = dict(parse_qsl(row.get("metadata", "")))
    return row["metric_name"], row["timestamp"], float(row["metric_value"]), {**row, **metadata}


def _json_point(line: Mapping[str, Any]) -> _Point:
    data = line["data"]
    tags = (data.get("tags") or {}) | (data.get("metadata") or {})
    return line["metric"], data["time"], float(data["value"]), tags


def _k6(
    path: Path, lines: Iterable[tuple[int, Any]], point: Callable[[Any], _Point]
) -> list[ToolRun]:
    requests, users, busy_s, initialized = list[_Request](), list[int](), 0.0, 0
    for number, line in lines:
        with line_of(number):
            metric, at, value, tags = point(line)
            if metric == "http_req_duration":
                status = _status(tags.get("status", "200"), tags.get("expected_response", ""))
                took_s, names = value * MS, (tags.get("name", ""), tags.get("vu", ""))
                requests.append(_Request(_unix_s(at) - took_s, took_s, status, *names))
            elif metric == "vus":
                users.append(int(value))
            elif metric == "vus_max":
                initialized = max(initialized, int(value))
            elif metric == "iteration_duration":
                busy_s += value * MS
    if not users or not requests:
        return _of_requests(path, "k6", requests)
    ends_s = [request.start_s + request.took_s for request in requests]
    duration_s = max(ends_s) - min(request.start_s for request in requests)
    of_users = min(users), max(users), initialized or max(users)
    customers = k6_customers(*of_users, busy_s, duration_s)
    return _of_requests(path, "k6", requests, customers)


# --- JMeter --------------------------------------------------------------------------------------

TRANSACTION = "Number of samples in transaction"  # what a Transaction Controller says of its row
_NO_HEADER = re.compile(r"(\d{13}|\d{4}/\d\d/\d\d[\d :.]+)[,;\t]\d+[,;\t]")
_ATTRIBUTES = {
    "ts": "timeStamp",
    "t": "elapsed",
    "rc": "responseCode",
    "rm": "responseMessage",
    "s": "success",
    "lb": "label",
    "tn": "threadName",
    "na": "allThreads",
}


def _is_jmeter(head: str) -> bool:
    times = {"timeStamp", "elapsed"}
    return any(has_columns(head, times | {name}) for name in ("responseCode", "success"))


def _jmeter_csv(path: Path) -> list[ToolRun]:
    return _jmeter(path, table(path))


def _jmeter_without_header(_: Path) -> list[ToolRun]:
    raise ResultsError(
        "is JMeter's CSV without the names of its columns; put them into a first line, or let "
        "JMeter write them (jmeter.save.saveservice.print_field_names=true)"
    )


def _jmeter_xml(path: Path) -> list[ToolRun]:
    return _jmeter(path, _innermost(path.read_text(encoding=ENCODING)))


def _innermost(text: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the line and attributes of samples without others in them, which are requests."""
    above: list[tuple[str, int]] = []  # attributes, and the number of the sample
    count, line, at = 0, 1, 0
    for tag in re.finditer(r"<(/?)(?:httpSample|sample)\b([^>]*?)(/?)>", text):
        if not tag[1]:
            count += 1
            above.append((tag[2], count))
        if (tag[1] or tag[3]) and above:
            attributes, own = above.pop()
            line, at = line + text.count("\n", at, tag.start()), tag.start()
            if own == count:
                pairs = re.findall(r'(\w+)="([^"]*)"', attributes)
                yield line, {_ATTRIBUTES.get(name, name): unescape(of) for name, of in pairs}


def _jmeter(path: Path, samples: Iterable[tuple[int, Mapping[str, str]]]) -> list[ToolRun]:
    """Return the run of samples. Those that sum up others are left out; these are there, too.

    It is open if the number of threads changed and each asked once, as those of an Open Model
    Thread Group do: one begins for each arrival.
    """
    requests, threads, transactions = list[_Request](), Counter[str](), 0
    for number, sample in samples:
        if sample.get("responseMessage", "").startswith(TRANSACTION):
            transactions += 1
            continue
        with line_of(number):
            status = _status(sample.get("responseCode", "200"), sample.get("success", "").lower())
            times_s = _unix_s(sample["timeStamp"]), float(sample["elapsed"]) * MS
            names = sample.get("label", ""), sample.get("threadName", "")
            requests.append(_Request(*times_s, status, *names))
            threads[sample.get("allThreads", "")] += 1
    if transactions and not requests:
        raise ResultsError(
            "has only rows of Transaction Controllers, not of their requests; switch off their "
            "'Generate parent sample', or save results as XML"
        )
    most, times = max(threads.items(), key=lambda item: item[1], default=("", 0))
    users = {request.user for request in requests}
    asked_once = len(users) >= MOSTLY * len(requests) and "" not in users
    if bool(most) and times >= MOSTLY * len(requests) and not (asked_once and most == "1"):
        return _of_requests(path, "JMeter", requests, int(most))
    return _of_requests(path, "JMeter", requests, 0 if asked_once else UNKNOWN)


FORMS: Sequence[Form] = (
    (has(",".join(COLUMNS)), _own_rows),
    *((table.is_form, table.read) for table in _TABLES),
    (_is_jmeter, _jmeter_csv),
    (lambda head: has_columns(head, {"metric_name", "timestamp", "metric_value"}), _k6_csv),
    (lambda head: bool(_NO_HEADER.match(head)), _jmeter_without_header),
    (lambda head: bool(re.match(r"\d{19},\d+,\d+,", head)), _vegeta_csv),
    (has('"timestamp"', '"latency"', '"code"'), _vegeta_json),
    (has('"type":"Metric"'), _k6_json),
    (has('"type":"Point"'), _k6_json),
    (has("<testResults"), _jmeter_xml),
)
