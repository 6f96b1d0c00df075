"""Reads files of load generators that only sum up their requests."""

import csv
import re
from collections import Counter
from collections.abc import Mapping
from math import inf
from pathlib import Path

from loadtests.lab.response_times import Times
from loadtests.lab.results import ResultsError
from loadtests.lab.tool_runs import (
    ALL_FAILED,
    ENCODING,
    MS,
    OPEN,
    ToolRun,
    require_requests,
    require_times,
)

_DISTRIBUTION = "Latency Distribution"
STATS, HISTORY = "_stats.csv", "_stats_history.csv"
STEADY = 0.8  # share of the history with the same number of users


def read_wrk2(path: Path) -> list[ToolRun]:
    """Read what `wrk2 -L` prints: the percentiles of an HdrHistogram."""
    text = path.read_text(encoding=ENCODING)
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
    unit = {"ms": MS, "s": 1.0, "m": 60.0, "h": 3600.0}[made[3]]
    bad = re.search(r"Non-2xx or 3xx responses: (\d+)", text)
    # Requests that are not among those made; `timeout` counts idle connections, too (wrk.c).
    errors = re.search(r"Socket errors: (.+?), timeout", text)
    lost = sum(map(int, re.findall(r"\d+", errors[1]))) if errors else 0
    counts = int(made[1]) + lost, lost + (int(bad[1]) if bad else 0)
    quantiles = {float(share): float(value) * MS for value, share, _ in lines}
    times = _times(*counts, float(made[2]) * unit, float(mean[1]) * MS, quantiles)
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
    users = Counter(int(float(row["User Count"])) for row in _aggregated(history))
    del users[0]
    (most,) = users.most_common(1) or [(0, 0)]
    if not most[1] or most[1] < STEADY * users.total():
        raise ResultsError("has a number of users that changed most of the time; keep it constant")
    shares = [name for name in total if re.fullmatch(r"[\d.]+%", name)]
    quantiles = {float(name[:-1]) / 100: float(total[name]) * MS for name in shares}
    quantiles[0.0] = float(total["Min Response Time"]) * MS
    count, mean_s = int(total["Request Count"]), float(total["Average Response Time"]) * MS
    duration_s = count / (float(total["Requests/s"]) or inf)
    times = _times(count, int(total["Failure Count"]), duration_s, mean_s, quantiles)
    return [ToolRun(base, "Locust --csv", times, (), most[0])]


def _aggregated(path: Path) -> list[dict[str, str]]:
    with path.open(encoding=ENCODING, newline="") as file:
        if rows := [row for row in csv.DictReader(file) if row["Name"] == "Aggregated"]:
            return rows
    raise ResultsError("has no row Aggregated, so no request was made")
