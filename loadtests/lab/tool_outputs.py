"""Reads what load generators write: wrk2, vegeta, k6, JMeter, oha, hey, Locust, and the lab itself.

A file is recognised by its form, not by its name. Some have a row for each request, from which all
can be computed; others only sum up: how many requests, their mean, and percentiles. What holds too
little is refused in a sentence that says what to bring in its place. Whether a request succeeded,
and how many customers there were, is what the file says, if it says so.

Forms: wrk2 -L (HdrHistogram's percentiles), vegeta encode (JSON, CSV) and report -type=json, k6
--out json and csv and --summary-export, JMeter's JTL (CSV, XML), oha --output-format json and csv,
hey -o csv, Locust --csv (the files _stats and _stats_history together), and --raw of this lab.
"""

import csv
import json
import os
import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from html import unescape
from math import inf
from pathlib import Path
from typing import Any

from loadtests.generation.rows import COLUMNS, NO_ANSWER, Row, customer_of, read_rows
from loadtests.grouping import grouped
from loadtests.lab.results import ResultsError

LEAST_REQUESTS = 20
HEAD_BYTES = 4096
ENCODING = "utf-8-sig"  # with or without the mark that some programs begin with
S, MS, US, NS = 1.0, 1e-3, 1e-6, 1e-9
UNKNOWN = -1  # customers of a run that may be closed, by how many is not known or changed
MOSTLY = 0.9  # a number that so many requests say is that of the run
TOGETHER_S = 0.0025  # requests that begin so long before the end of others are no rounding
csv.field_size_limit(2**30)  # answers are in vegeta's


@dataclass(frozen=True, slots=True)
class ToolRun:
    """Holds a run of a load generator.

    rows: of each request; none of a file that only sums up. duration_s, mean_s: of such a file.
    quantiles: (share, seconds) from the least to the largest. customers: of a closed run; 0 of one
    that is known to be open; None if only rows can tell; or UNKNOWN.
    """

    name: str
    tool: str
    rows: Sequence[Row] = ()
    requests: int = 0
    failed: int = 0
    duration_s: float = 0.0
    mean_s: float = 0.0
    quantiles: Sequence[tuple[float, float]] = ()
    customers: int | None = None


def read(path: Path) -> list[ToolRun]:
    """Return the runs in a file; only the lab's own raw rows have several. Raises ResultsError."""
    try:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
        if b"\0" in head:
            is_vegeta = b"Result" in head and b"Attack" in head
            is_wide = head.startswith((BOM_UTF16_LE, BOM_UTF16_BE))
            raise ResultsError(_BINARY if is_vegeta else _WIDE if is_wide else _UNKNOWN)
        text = head.decode(ENCODING, errors="replace")
        form = next((form for is_form, form in _FORMS if is_form(text)), None)
        if form is None:
            raise ResultsError(_UNKNOWN)
        runs = form(path)
        for run in runs:
            _require_times(run)
    except ResultsError as problem:
        raise ResultsError(f"{path} {problem}") from None
    except KeyError as problem:
        raise ResultsError(f"{path} lacks {problem}, which its form has") from problem
    except (OSError, *_NOT_READ) as problem:
        message = f"{path} has a value that its form does not have, {_value(problem)}"
        raise ResultsError(f"{message}; was it cut off, or changed?") from problem
    return runs


_NOT_READ = (ValueError, IndexError, TypeError, AttributeError, ArithmeticError, csv.Error)


def _value(problem: Exception) -> str:
    return str(problem).rpartition(": ")[2][:60]  # without Python's words for it


@contextmanager
def _line(number: int) -> Iterator[None]:
    """Turn what goes wrong with a line into a ResultsError that names it."""
    try:
        yield
    except ResultsError as problem:
        raise ResultsError(f"has in line {number} {problem}") from None
    except KeyError as problem:
        raise ResultsError(f"lacks {problem} in line {number}, which its form has") from problem
    except _NOT_READ as problem:
        remedy = "correct the line, or take it out if the file was cut off there"
        message = f"has in line {number} a value that its form does not have, {_value(problem)}"
        raise ResultsError(f"{message}; {remedy}") from problem


def _require_times(run: ToolRun) -> None:
    """Raise ResultsError for a run of too few requests, or with times that cannot be."""
    if (count := len(run.rows) or run.requests) < LEAST_REQUESTS:
        raise ResultsError(f"has {count} requests; it takes at least {LEAST_REQUESTS}")
    if run.rows:
        if not any(row.succeeded for row in run.rows):
            raise ResultsError(_ALL_FAILED)
        took_s = [row.closed_response_s for row in run.rows]
        times_s = [*took_s, *(row.intended_s for row in run.rows)]
    else:
        if not run.duration_s > 0:
            raise ResultsError(f"has {count} requests in {run.duration_s:g} s, which cannot be")
        known = {share for share, _ in run.quantiles}
        if missing := [name for share, name in _NEEDED.items() if share not in known]:
            k6 = f" (k6: --summary-trend-stats {K6_STATS})"
            raise ResultsError(
                f"lacks the {' and the '.join(missing)} time; bring a file that has the shortest, "
                f"the median and the longest{k6 * (run.tool == 'k6')}"
            )
        times_s = [run.duration_s, run.mean_s, *(value_s for _, value_s in run.quantiles)]
    if wrong := [time_s for time_s in times_s if not 0 <= time_s < inf]:
        raise ResultsError(f"has a time of {wrong[0]:g} s, which cannot be")


_BINARY = "is vegeta's binary form; write `vegeta encode --to csv FILE > FILE.csv` and bring that"
_WIDE = "is UTF-16, as PowerShell writes; save it as UTF-8 and bring that"
_NEEDED = {0.0: "shortest", 0.5: "median", 1.0: "longest"}
_ALL_FAILED = "has no request that succeeded"
_UNKNOWN = (
    "is no output that is known here: of wrk2 -L, vegeta encode or report -type=json, k6, JMeter, "
    "oha, hey, Locust --csv or --raw"
)


# --- rows of requests ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Request:
    start_s: float
    took_s: float
    status: str
    kind: str = ""


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
    for index, request in enumerate(in_order):
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


def _are_whole(times_s: Iterable[float]) -> bool:
    return all(round(time_s, 5).is_integer() for time_s in times_s)


def _summed(run: ToolRun) -> list[ToolRun]:
    """Return a run without its rows, as a file that only sums up would have it."""
    good = sorted(row.closed_response_s for row in run.rows if row.succeeded)
    if not good:
        raise ResultsError(_ALL_FAILED)
    last, mean_s = len(good) - 1, sum(good) / len(good)
    quantiles = {at / 200: good[round(at / 200 * last)] for at in range(201)}
    duration_s = max(row.done_s for row in run.rows)
    sums = len(run.rows), len(run.rows) - len(good), duration_s, mean_s
    return _summary(run.name, run.tool, sums, quantiles, run.customers)


def _own_rows(path: Path) -> list[ToolRun]:
    runs = []
    for name, rows in grouped(read_rows(path), lambda row: row.run).items():
        is_closed = len(rows) > 1 and max(row.index for row in rows) >= 2 * len(rows)
        customers = len(set(map(customer_of, rows))) if is_closed else 0
        moved = tuple(replace(row, run=f"{path.stem}-{name}") for row in rows)
        runs.append(ToolRun(f"{path.stem}-{name}", "Locust --raw", moved, customers=customers))
    return runs


def _table(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the number of each line and its cells, which a comma, semicolon or tab separates."""
    with path.open(encoding=ENCODING, newline="") as file:
        delimiter = _delimiter(file.readline())
        file.seek(0)
        reader = csv.DictReader(file, delimiter=delimiter, restval="")
        for row in reader:
            yield reader.line_num, row


def _delimiter(header: str) -> str:
    return max(",;\t", key=header.count)


@dataclass(frozen=True, slots=True)
class _Columns:
    """Reads a CSV file with a row for each request by names of columns; times are in `unit`."""

    tool: str
    start: str
    took: str
    status: str
    unit: float = S

    def is_form(self, head: str) -> bool:
        return _has_columns(head, {self.start, self.took, self.status})

    def read(self, path: Path) -> list[ToolRun]:
        requests = []
        for number, row in _table(path):
            with _line(number):
                times_s = float(row[self.start]), float(row[self.took])
                requests.append(_Request(*times_s, row[self.status]))
        return _of_requests(path, self.tool, requests)


def _has_columns(head: str, names: set[str]) -> bool:
    header = head.partition("\n")[0].strip()
    return names <= set(next(csv.reader([header], delimiter=_delimiter(header)), []))


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
            with _line(reader.line_num):
                at, code, took, *_ = *cells, "", ""
                requests.append(_Request(float(at) * NS, float(took) * NS, code))
    return _of_requests(path, "vegeta", requests)


def _json_lines(path: Path) -> Iterator[tuple[int, Any]]:
    with path.open(encoding=ENCODING) as file:
        for number, line in enumerate(file, start=1):
            if line.endswith(("}", "}\n")):  # not a last line that was cut off
                with _line(number):
                    content = json.loads(line)
                yield number, content


def _vegeta_json(path: Path) -> list[ToolRun]:
    requests = []
    for number, line in _json_lines(path):
        with _line(number):
            at_s, took_s = _unix_s(line["timestamp"]), line["latency"] * NS
            requests.append(_Request(at_s, took_s, str(line["code"])))
    return _of_requests(path, "vegeta", requests)


# --- k6 ------------------------------------------------------------------------------------------

_Point = tuple[str, str, float, Mapping[str, str]]  # metric, time, value, tags


def _k6_csv(path: Path) -> list[ToolRun]:
    return _k6(path, _table(path), _csv_point)


def _k6_json(path: Path) -> list[ToolRun]:
    points = ((number, line) for number, line in _json_lines(path) if line.get("type") == "Point")
    return _k6(path, points, _json_point)


def _csv_point(row: Mapping[str, str]) -> _Point:
    return row["metric_name"], row["timestamp"], float(row["metric_value"]), row


def _json_point(line: Mapping[str, Any]) -> _Point:
    data = line["data"]
    return line["metric"], data["time"], float(data["value"]), data.get("tags") or {}


def _k6(
    path: Path, lines: Iterable[tuple[int, Any]], point: Callable[[Any], _Point]
) -> list[ToolRun]:
    requests, users, busy_s = list[_Request](), list[int](), 0.0
    for number, line in lines:
        with _line(number):
            metric, at, value, tags = point(line)
            if metric == "http_req_duration":
                status = _status(tags.get("status", "200"), tags.get("expected_response", ""))
                took_s, kind = value * MS, tags.get("name", "")
                requests.append(_Request(_unix_s(at) - took_s, took_s, status, kind))
            elif metric == "vus" and value:
                users.append(int(value))
            elif metric == "iteration_duration":
                busy_s += value * MS
    if not users or not requests:
        return _of_requests(path, "k6", requests)
    ends_s = [request.start_s + request.took_s for request in requests]
    duration_s = max(ends_s) - min(request.start_s for request in requests)
    customers = _k6_customers(min(users), max(users), busy_s, duration_s)
    return _of_requests(path, "k6", requests, customers)


def _k6_customers(least: int, most: int, busy_s: float, duration_s: float) -> int:
    """Return the customers of so many virtual users, whose iterations took `busy_s` together.

    Those of a closed run are always at an iteration, in which they sleep, too. Those who wait for
    an arrival are not, so the run is open if they are as many all the time.
    """
    if busy_s >= MOSTLY * most * duration_s or (not busy_s and least == most):
        return most
    return 0 if busy_s and least == most else UNKNOWN


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
    "na": "allThreads",
}


def _is_jmeter(head: str) -> bool:
    times = {"timeStamp", "elapsed"}
    return any(_has_columns(head, times | {name}) for name in ("responseCode", "success"))


def _jmeter_csv(path: Path) -> list[ToolRun]:
    return _jmeter(path, _table(path))


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
    """Return the run of samples. Those that sum up others are left out; these are there, too."""
    requests, threads, transactions = list[_Request](), Counter[str](), 0
    for number, sample in samples:
        if sample.get("responseMessage", "").startswith(TRANSACTION):
            transactions += 1
            continue
        with _line(number):
            status = _status(sample.get("responseCode", "200"), sample.get("success", "").lower())
            times_s = _unix_s(sample["timeStamp"]), float(sample["elapsed"]) * MS
            requests.append(_Request(*times_s, status, sample.get("label", "")))
            threads[sample.get("allThreads", "")] += 1
    if transactions and not requests:
        raise ResultsError(
            "has only rows of Transaction Controllers, not of their requests; switch off their "
            "'Generate parent sample', or save results as XML"
        )
    most, times = max(threads.items(), key=lambda item: item[1], default=("", 0))
    is_known = bool(most) and times >= MOSTLY * len(requests)
    return _of_requests(path, "JMeter", requests, int(most) if is_known else UNKNOWN)


# --- files that only sum up ----------------------------------------------------------------------


def _summary(
    name: str,
    tool: str,
    sums: tuple[int, int, float, float],
    quantiles: Mapping[float, float],
    customers: int | None = None,
) -> list[ToolRun]:
    """Return a run. sums: requests, failed ones, seconds, and the mean time.

    Raises ResultsError if no request succeeded.
    """
    if 0 < sums[0] <= sums[1]:
        raise ResultsError(_ALL_FAILED)
    return [ToolRun(name, tool, (), *sums, tuple(sorted(quantiles.items())), customers)]


_DISTRIBUTION = "Latency Distribution"


def _wrk2(path: Path) -> list[ToolRun]:
    text = path.read_text(encoding=ENCODING)
    corrected = "".join(text.split(_DISTRIBUTION)[:2])  # with -U another follows, which is not
    row = r"^ *([\d.]+) +([\d.]+) +(\d+) +(?:[\d.]+|inf) *$"
    lines = re.findall(row, corrected, re.MULTILINE)
    mean = re.search(r"#\[Mean *= *([\d.]+)", corrected)
    made = re.search(r"(\d+) requests in ([\d.]+)(ms|s|m|h)", text)
    if not lines or not mean or not made:
        raise ResultsError(
            "is of wrk or wrk2 without the whole distribution; ask wrk2 with -L (--latency) and "
            "keep all that it prints"
        )
    unit = {"ms": MS, "s": S, "m": 60.0, "h": 3600.0}[made[3]]
    bad = re.search(r"Non-2xx or 3xx responses: (\d+)", text)
    errors = re.search(r"Socket errors: (.+)", text)  # of requests that are not among those made
    lost = sum(map(int, re.findall(r"\d+", errors[1]))) if errors else 0
    failed = lost + (int(bad[1]) if bad else 0)
    sums = int(made[1]) + lost, failed, float(made[2]) * unit, float(mean[1]) * MS
    quantiles = {float(share): float(value) * MS for value, share, _ in lines}
    return _summary(path.stem, "wrk2", sums, quantiles, customers=0)


def _vegeta_report(path: Path) -> list[ToolRun]:
    content = json.loads(path.read_text(encoding=ENCODING))
    at = content["latencies"]
    names = {"min": 0.0, "50th": 0.5, "90th": 0.9, "95th": 0.95, "99th": 0.99, "max": 1.0}
    good = sum(count for code, count in content["status_codes"].items() if code[0] in "23")
    made, duration_s = content["requests"], content["duration"] * NS
    quantiles = {p: at[name] * NS for name, p in names.items() if name in at}
    sums = made, made - good, duration_s, at["mean"] * NS
    return _summary(path.stem, "vegeta", sums, quantiles, customers=0)


K6_STATS = "avg,min,med,max,p(90),p(95),p(99)"


def _k6_summary(path: Path) -> list[ToolRun]:
    metrics = json.loads(path.read_text(encoding=ENCODING)).get("metrics")
    if not isinstance(metrics, dict):
        raise ResultsError("is a summary of k6 that is not known here; bring --out json=FILE")

    def values(name: str) -> Mapping[str, Any]:
        metric: Mapping[str, Any] = metrics.get(name, {})
        inner: Mapping[str, Any] = metric.get("values", metric)
        return inner

    took, made = values("http_req_duration"), values("http_reqs")
    named = {"min": 0.0, "med": 0.5, "max": 1.0}
    named |= {name: float(name[2:-1]) / 100 for name in took if re.fullmatch(r"p\([\d.]+\)", name)}
    failed = values("http_req_failed")
    share = failed.get("rate", failed.get("value", 0.0))
    count, duration_s = int(made["count"]), made["count"] / (made["rate"] or 1)
    if "avg" not in took:
        raise ResultsError("lacks the mean time; run k6 with --summary-trend-stats " + K6_STATS)
    sums = count, round(share * count), duration_s, took["avg"] * MS
    users, of_most = values("vus") or values("vus_max"), values("vus_max")
    busy_s = values("iterations").get("count", 0) * values("iteration_duration").get("avg", 0) * MS
    fewest, most = users.get("min", users.get("value")), of_most.get("max", of_most.get("value"))
    is_said = fewest is not None and most is not None
    customers = _k6_customers(int(fewest), int(most), busy_s, duration_s) if is_said else None
    quantiles = {p: took[name] * MS for name, p in named.items() if name in took}
    return _summary(path.stem, "k6", sums, quantiles, customers)


OHA_CUT_OFF = "aborted due to deadline"  # requests that were under way at the end


def _oha_json(path: Path) -> list[ToolRun]:
    content = json.loads(path.read_text(encoding=ENCODING))
    sums, at = content["summary"], content["latencyPercentiles"]
    quantiles = {float(name[1:]) / 100: value for name, value in at.items() if value is not None}
    codes = content.get("statusCodeDistribution", {})
    good = sum(count for code, count in codes.items() if code[0] in "23")
    errors = content.get("errorDistribution", {})
    lost = sum(count for why, count in errors.items() if why != OHA_CUT_OFF)
    made = sum(codes.values()) + lost or round(sums["requestsPerSec"] * sums["total"])
    quantiles |= {0.0: sums["fastest"], 1.0: sums["slowest"]}
    failed = made - good if codes or lost else 0
    return _summary(path.stem, "oha", (made, failed, sums["total"], sums["average"]), quantiles)


LOCUST = "Locust --csv"
STATS, HISTORY = "_stats.csv", "_stats_history.csv"


def _locust(path: Path) -> list[ToolRun]:
    """Return the run of Locust's two files, of percentiles and of users, whichever is given."""
    base = path.name.removesuffix(HISTORY).removesuffix(STATS)
    stats, history = (path.with_name(base + end) for end in (STATS, HISTORY))
    if missing := [file.name for file in (stats, history) if not file.exists()]:
        raise ResultsError(
            f"is one of Locust's two files; beside it {missing[0]} is missing, and only both "
            "together tell times and numbers of users"
        )
    total = _aggregated(stats)[-1]
    users = Counter(int(float(row["User Count"])) for row in _aggregated(history))
    del users[0]
    if not users or users.most_common(1)[0][1] < 0.8 * users.total():
        raise ResultsError("has a number of users that changed most of the time; keep it constant")
    count, failed = int(total["Request Count"]), int(total["Failure Count"])
    shares = [name for name in total if re.fullmatch(r"[\d.]+%", name)]
    quantiles = {float(name[:-1]) / 100: float(total[name]) * MS for name in shares}
    quantiles[0.0] = float(total["Min Response Time"]) * MS
    duration_s = count / (float(total["Requests/s"]) or inf)
    sums = count, failed, duration_s, float(total["Average Response Time"]) * MS
    return _summary(base, LOCUST, sums, quantiles, users.most_common(1)[0][0])


def _aggregated(path: Path) -> list[dict[str, str]]:
    if rows := [row for _, row in _table(path) if row["Name"] == "Aggregated"]:
        return rows
    raise ResultsError("has no row Aggregated, so no request was made")


# --- which form ----------------------------------------------------------------------------------

_Form = tuple[Callable[[str], bool], Callable[[Path], list[ToolRun]]]


def _has(*words: str) -> Callable[[str], bool]:
    return lambda head: all(word in head for word in words)


_FORMS: Sequence[_Form] = (
    (_has(",".join(COLUMNS)), _own_rows),
    (_has("Request Count,Failure Count"), _locust),
    (_has("Timestamp,User Count"), _locust),
    *((table.is_form, table.read) for table in _TABLES),
    (_is_jmeter, _jmeter_csv),
    (lambda head: _has_columns(head, {"metric_name", "timestamp", "metric_value"}), _k6_csv),
    (lambda head: bool(_NO_HEADER.match(head)), _jmeter_without_header),
    (lambda head: bool(re.match(r"\d{19},\d+,\d+,", head)), _vegeta_csv),
    (_has('"latencies"', '"status_codes"'), _vegeta_report),
    (_has('"timestamp"', '"latency"', '"code"'), _vegeta_json),
    (_has('"type":"Metric"'), _k6_json),
    (_has('"type":"Point"'), _k6_json),
    (_has('"latencyPercentiles"'), _oha_json),
    (_has('"summary"', '"successRate"'), _oha_json),
    (_has('"metrics"'), _k6_summary),
    (_has('"root_group"'), _k6_summary),
    (_has("<testResults"), _jmeter_xml),
    (lambda head: bool(re.match(r"\s*Running .+ test @ ", head)), _wrk2),
)


def read_all(paths: Sequence[Path], alone: Sequence[Path] = ()) -> list[ToolRun]:
    """Return the runs of all files; Locust's two files are one run. Raises ResultsError.

    alone: further files, whose runs are of one customer, whatever they say. If two files have one
    name, all runs are named with their folders and endings.
    """
    runs: dict[tuple[Path, str], ToolRun] = {}
    for path in (*alone, *paths):
        for run in read(path):
            of = path.with_name(run.name) if run.tool == LOCUST else path
            known = replace(run, customers=1) if path in alone else run
            runs.setdefault((of.resolve(), run.name), known)
    if len({run.name for run in runs.values()}) == len(runs):
        return list(runs.values())
    top = os.path.commonpath([path.parent for path, _ in runs])
    return [
        _renamed(run, f"{path.relative_to(top)}{run.name.removeprefix(path.stem)}")
        for (path, _), run in runs.items()
    ]


def _renamed(run: ToolRun, name: str) -> ToolRun:
    return replace(run, name=name, rows=tuple(replace(row, run=name) for row in run.rows))
