"""Reads what load generators write: wrk2, vegeta, k6, JMeter, oha, hey, Locust, and the lab itself.

A file is recognised by its form, not by its name. Some have a row for each request, from which all
can be computed; others only sum up: how many requests, their mean, and percentiles. What holds too
little is refused in a sentence that says what to bring in its place.

Forms: wrk2 -L (HdrHistogram's percentiles), vegeta encode (JSON, CSV) and report -type=json, k6
--out json and csv and --summary-export, JMeter's JTL (CSV, XML), oha --output-format json and csv,
hey -o csv, Locust --csv (the files _stats and _stats_history together), and --raw of this lab.
"""

import csv
import json
import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
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


@dataclass(frozen=True, slots=True)
class ToolRun:
    """Holds a run of a load generator.

    rows: of each request; none of a file that only sums up. duration_s, mean_s: of such a file.
    quantiles: (share, seconds) from the least to the largest. customers: of a closed run; 0 of one
    that is known to be open; None if the file does not say.
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
    except (OSError, ValueError, IndexError, TypeError, AttributeError, csv.Error) as problem:
        value = str(problem).rpartition(": ")[2]  # without Python's words for it
        message = f"{path} has a value that its form does not have, {value}; was it cut off?"
        raise ResultsError(message) from problem
    return runs


def _require_times(run: ToolRun) -> None:
    """Raise ResultsError for a run of too few requests, or with times that cannot be."""
    if (count := len(run.rows) or run.requests) < LEAST_REQUESTS:
        raise ResultsError(f"has {count} requests; it takes at least {LEAST_REQUESTS}")
    if run.rows:
        took_s = [row.closed_response_s for row in run.rows]
        times_s = [*took_s, *(row.intended_s for row in run.rows)]
    else:
        if not run.duration_s > 0:
            raise ResultsError(f"has {count} requests in {run.duration_s:g} s, which cannot be")
        times_s = [run.duration_s, run.mean_s, *(value_s for _, value_s in run.quantiles)]
    if wrong := [time_s for time_s in times_s if not 0 <= time_s < inf]:
        raise ResultsError(f"has a time of {wrong[0]:g} s, which cannot be")


_BINARY = "is vegeta's binary form; write `vegeta encode --to csv FILE > FILE.csv` and bring that"
_WIDE = "is UTF-16, as PowerShell writes; save it as UTF-8 and bring that"
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
    customers: str = ""


def _of_requests(path: Path, tool: str, requests: Sequence[_Request]) -> list[ToolRun]:
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
    counts = Counter(request.customers for request in requests)
    most, times = counts.most_common(1)[0]
    customers = int(most) if most and times >= 0.9 * len(requests) else None
    run = ToolRun(path.stem, tool, tuple(rows), customers=customers)
    ends_s = (request.start_s + request.took_s for request in requests)  # as k6 has them
    if any(map(_are_whole, ([request.start_s for request in requests], ends_s))):
        return _summed(run)
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


@dataclass(frozen=True, slots=True)
class _Columns:
    """Reads a CSV file with a row for each request by names of columns and units of times."""

    tool: str
    start: str
    start_unit: float
    took: str
    took_unit: float
    status: str
    kind: str = ""
    customers: str = ""
    success: str = ""  # a column that is `false` if what was answered is not what was wanted
    metric: tuple[str, str] = ("", "")  # a column, and what it must hold
    is_end: bool = False  # whether the time is that of the answer

    def is_form(self, head: str) -> bool:
        header = next(csv.reader([head.partition("\n")[0].strip()]), [])
        return {self.start, self.took, self.status} <= set(header)

    def read(self, path: Path) -> list[ToolRun]:
        name, wanted = self.metric
        with path.open(encoding=ENCODING, newline="") as file:
            rows = list(csv.DictReader(file))
        users = {float(row[self.took]) for row in rows if name and row[name] in K6_USERS}
        customers = {self.customers: "1"} if users and max(users) == 1 else {}
        return _of_requests(
            path,
            self.tool,
            [self._request(row | customers) for row in rows if not name or row[name] == wanted],
        )

    def _request(self, row: Mapping[str, str]) -> _Request:
        took_s = float(row[self.took]) * self.took_unit
        at_s = float(row[self.start]) * (self.start_unit or _unit_of(float(row[self.start])))
        is_wrong = row.get(self.success, "").lower() == "false"
        status = str(NO_ANSWER) if is_wrong or not row[self.status] else row[self.status]
        kind, customers = row.get(self.kind, ""), row.get(self.customers, "")
        return _Request(at_s - took_s * self.is_end, took_s, status, kind, customers)


def _unit_of(unix: float) -> float:
    """Return the unit of a time since 1970, by its size: seconds, milli-, micro- or nanoseconds."""
    return S if unix < 1e11 else MS if unix < 1e14 else US if unix < 1e17 else NS


K6_USERS = ("vus", "vus_max")  # metrics that tell how many customers there were
_TABLES = (
    _Columns(
        *("JMeter", "timeStamp", MS, "elapsed", MS, "responseCode", "label", "allThreads"),
        success="success",
    ),
    _Columns(
        *("k6", "timestamp", 0.0, "metric_value", MS, "status", "name", "users"),
        metric=("metric_name", "http_req_duration"),
        is_end=True,
    ),
    _Columns("oha", "request-start", S, "request-duration", S, "status"),
    _Columns("hey", "offset", S, "response-time", S, "status-code"),
)


def _vegeta_csv(path: Path) -> list[ToolRun]:
    with path.open(encoding=ENCODING, newline="") as file:
        rows = [(float(at) * NS, float(took) * NS, code) for at, code, took, *_ in csv.reader(file)]
    return _of_requests(path, "vegeta", [_Request(*row) for row in rows])


def _json_lines(path: Path) -> Iterator[Any]:
    with path.open(encoding=ENCODING) as file:
        for line in file:
            with suppress(json.JSONDecodeError):  # a last line that was cut off
                yield json.loads(line)


def _vegeta_json(path: Path) -> list[ToolRun]:
    requests = [
        _Request(_unix_s(line["timestamp"]), line["latency"] * NS, str(line["code"]))
        for line in _json_lines(path)
    ]
    return _of_requests(path, "vegeta", requests)


def _k6_json(path: Path) -> list[ToolRun]:
    requests = []
    for line in _json_lines(path):
        if line.get("type") == "Point" and line.get("metric") == "http_req_duration":
            data = line.get("data", {})
            took_s, tags = data["value"] * MS, data.get("tags") or {}
            start_s, status = _unix_s(data["time"]) - took_s, str(tags.get("status", "200"))
            requests.append(_Request(start_s, took_s, status, tags.get("name", "")))
    return _of_requests(path, "k6", requests)


def _unix_s(text: str) -> float:
    """Return the seconds since 1970 of a time with up to nine decimals."""
    decimals = re.search(r"\.\d+", text)
    whole = text.replace(decimals[0], "", 1) if decimals else text
    return datetime.fromisoformat(whole).timestamp() + float(decimals[0] if decimals else 0)


def _jmeter_xml(path: Path) -> list[ToolRun]:
    text, requests = path.read_text(encoding=ENCODING), []
    for sample in re.finditer(r"<(?:httpSample|sample)\b([^>]*)>", text):
        at = dict(re.findall(r'(\w+)="([^"]*)"', sample[1]))
        label, customers = unescape(at.get("lb", "")), at.get("na", "")
        times_s = float(at["ts"]) * MS, float(at["t"]) * MS
        status = str(NO_ANSWER) if at.get("s") == "false" else at.get("rc", "200")
        requests.append(_Request(*times_s, status, label, customers))
    return _of_requests(path, "JMeter", requests)


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


def _wrk2(path: Path) -> list[ToolRun]:
    text = path.read_text(encoding=ENCODING)
    lines = re.findall(r"^ *([\d.]+) +([\d.]+) +(\d+) +(?:[\d.]+|inf) *$", text, re.MULTILINE)
    mean = re.search(r"#\[Mean *= *([\d.]+)", text)
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
    return _summary(
        path.stem, "vegeta", (made, made - good, duration_s, at["mean"] * NS), quantiles
    )


def _k6_summary(path: Path) -> list[ToolRun]:
    metrics = json.loads(path.read_text(encoding=ENCODING))["metrics"]

    def values(name: str) -> Mapping[str, Any]:
        metric: Mapping[str, Any] = metrics.get(name, {})
        inner: Mapping[str, Any] = metric.get("values", metric)
        return inner

    took, made, users = values("http_req_duration"), values("http_reqs"), values("vus_max")
    named = {"min": 0.0, "med": 0.5, "max": 1.0}
    named |= {name: float(name[2:-1]) / 100 for name in took if re.fullmatch(r"p\([\d.]+\)", name)}
    failed = values("http_req_failed")
    share = failed.get("rate", failed.get("value", 0.0))
    customers = 1 if users.get("max", users.get("value")) == 1 else None
    count, duration_s = int(made["count"]), made["count"] / (made["rate"] or 1)
    sums = count, round(share * count), duration_s, took["avg"] * MS
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
    duration_s = count / float(total["Requests/s"])
    sums = count, failed, duration_s, float(total["Average Response Time"]) * MS
    return _summary(base, "Locust --csv", sums, quantiles, users.most_common(1)[0][0])


def _aggregated(path: Path) -> list[dict[str, str]]:
    with path.open(encoding=ENCODING, newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["Name"] == "Aggregated"]
    if not rows:
        raise ResultsError("has no row Aggregated, so no request was made")
    return rows


# --- which form ----------------------------------------------------------------------------------

_Form = tuple[Callable[[str], bool], Callable[[Path], list[ToolRun]]]


def _has(*words: str) -> Callable[[str], bool]:
    return lambda head: all(word in head for word in words)


_FORMS: Sequence[_Form] = (
    (_has(",".join(COLUMNS)), _own_rows),
    (_has("Request Count,Failure Count"), _locust),
    (_has("Timestamp,User Count"), _locust),
    *((table.is_form, table.read) for table in _TABLES),
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

    alone: further files, whose runs are of one customer, whatever they say.
    """
    runs: dict[tuple[Path, str], ToolRun] = {}
    for path in (*alone, *paths):
        for run in read(path):
            known = replace(run, customers=1) if path in alone else run
            runs.setdefault((path.parent.resolve(), run.name), known)
    names = Counter(run.name for run in runs.values())
    return [
        replace(run, name=f"{folder.name}-{run.name}") if names[run.name] > 1 else run
        for (folder, _), run in runs.items()
    ]
