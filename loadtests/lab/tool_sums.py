"""Reads files of load generators that only sum up their requests."""

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

from loadtests.lab.results import ResultsError
from loadtests.lab.tool_runs import (
    ENCODING,
    K6_STATS,
    MS,
    NS,
    Form,
    S,
    ToolRun,
    has,
    k6_customers,
    summary,
    table,
)

_DISTRIBUTION = "Latency Distribution"


def _wrk2(path: Path) -> list[ToolRun]:
    text = path.read_text(encoding=ENCODING)
    corrected = "".join(text.split(_DISTRIBUTION)[:2])  # with -U another follows, which is not
    row = r"^ *([\d.]+) +([\d.]+) +(\d+) +(?:[\d.]+|inf) *$"
    lines = re.findall(row, corrected, re.MULTILINE)
    mean = re.search(r"#\[Mean *= *([\d.]+)", corrected)
    made = re.search(r"(\d+) requests in ([\d.]+)(ms|s|m|h)", text)
    of = re.search(r"^ *([1-9]\d*) threads and ([1-9]\d*) connections", text, re.MULTILINE)
    if not lines or not mean or not made or not of:
        raise ResultsError(
            "is of wrk or wrk2 without the whole distribution; ask wrk2 with -L (--latency) and "
            "-d30s, as it leaves out the first 10 s, and keep all that it prints"
        )
    unit = {"ms": MS, "s": S, "m": 60.0, "h": 3600.0}[made[3]]
    bad = re.search(r"Non-2xx or 3xx responses: (\d+)", text)
    # Requests that are not among those made; `timeout` counts idle connections, too (wrk.c).
    errors = re.search(r"Socket errors: (.+?), timeout", text)
    lost = sum(map(int, re.findall(r"\d+", errors[1]))) if errors else 0
    failed = lost + (int(bad[1]) if bad else 0)
    sums = int(made[1]) + lost, failed, float(made[2]) * unit, float(mean[1]) * MS
    quantiles = {float(share): float(value) * MS for value, share, _ in lines}
    (run,) = summary(path.stem, "wrk2", sums, quantiles, customers=0)
    return [replace(run, threads=int(of[1]), connections=int(of[2]))]


def _content(path: Path) -> Any:
    return json.loads(path.read_text(encoding=ENCODING))


def _succeeded(counts: Mapping[str, int]) -> int:
    """Return how many requests succeeded. counts: of requests by status."""
    return sum(count for code, count in counts.items() if code[0] in "23")


def _vegeta_report(path: Path) -> list[ToolRun]:
    content = _content(path)
    at = content["latencies"]
    names = {"min": 0.0, "50th": 0.5, "90th": 0.9, "95th": 0.95, "99th": 0.99, "max": 1.0}
    good = _succeeded(content["status_codes"])
    made, duration_s = content["requests"], content["duration"] * NS
    quantiles = {p: at[name] * NS for name, p in names.items() if name in at}
    sums = made, made - good, duration_s, at["mean"] * NS
    return summary(path.stem, "vegeta", sums, quantiles, customers=0)


def _k6_summary(path: Path) -> list[ToolRun]:
    metrics = _content(path).get("metrics")
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
    busy_s = values("iterations").get("count", 0) * values("iteration_duration").get("avg", 0) * MS
    customers = None
    if of_all := values("vus_max"):
        initialized = int(of_all.get("max", of_all["value"]))
        users = values("vus") or {"value": initialized}
        least, most = (int(users.get(name, users["value"])) for name in ("min", "max"))
        customers = k6_customers(least, most, initialized, busy_s, duration_s)
    quantiles = {p: took[name] * MS for name, p in named.items() if name in took}
    return summary(path.stem, "k6", sums, quantiles, customers)


OHA_CUT_OFF = "aborted due to deadline"  # requests that were under way at the end


def _oha_json(path: Path) -> list[ToolRun]:
    content = _content(path)
    sums, at = content["summary"], content["latencyPercentiles"]
    quantiles = {float(name[1:]) / 100: value for name, value in at.items() if value is not None}
    codes = content.get("statusCodeDistribution", {})
    good = _succeeded(codes)
    errors = content.get("errorDistribution", {})
    lost = sum(count for why, count in errors.items() if why != OHA_CUT_OFF)
    made = sum(codes.values()) + lost or round(sums["requestsPerSec"] * sums["total"])
    quantiles |= {0.0: sums["fastest"], 1.0: sums["slowest"]}
    failed = made - good if codes or lost else 0
    return summary(path.stem, "oha", (made, failed, sums["total"], sums["average"]), quantiles)


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
    return summary(base, LOCUST, sums, quantiles, users.most_common(1)[0][0])


def _aggregated(path: Path) -> list[dict[str, str]]:
    if rows := [row for _, row in table(path) if row["Name"] == "Aggregated"]:
        return rows
    raise ResultsError("has no row Aggregated, so no request was made")


FORMS: Sequence[Form] = (
    (has("Request Count,Failure Count"), _locust),
    (has("Timestamp,User Count"), _locust),
    (has('"latencies"', '"status_codes"'), _vegeta_report),
    (has('"latencyPercentiles"'), _oha_json),
    (has('"summary"', '"successRate"'), _oha_json),
    (has('"metrics"'), _k6_summary),
    (has('"root_group"'), _k6_summary),
    (lambda head: bool(re.match(r"\s*Running .+ test @ ", head)), _wrk2),
)
