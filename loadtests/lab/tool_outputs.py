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
import os
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from math import inf
from pathlib import Path

from loadtests.lab import tool_rows, tool_sums
from loadtests.lab.results import ResultsError
from loadtests.lab.tool_runs import (
    ALL_FAILED,
    ENCODING,
    K6_STATS,
    NOT_READ,
    ToolRun,
    value_of,
)

_FORMS = (*tool_rows.FORMS, *tool_sums.FORMS)
LEAST_REQUESTS = 20
HEAD_BYTES = 4096
LONGEST_CELL = 2**30


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
        with _long_cells():
            runs = form(path)
        for run in runs or [ToolRun(path.stem, "")]:
            _require_times(run)
    except ResultsError as problem:
        raise ResultsError(f"{path} {problem}") from None
    except KeyError as problem:
        raise ResultsError(f"{path} lacks {problem}, which its format has") from problem
    except (OSError, *NOT_READ) as problem:
        message = f"{path} has a value that its format does not allow, {value_of(problem)}"
        raise ResultsError(f"{message}; was it cut off, or changed?") from problem
    return runs


@contextmanager
def _long_cells() -> Iterator[None]:
    """Let cells be long inside: vegeta's files have the answers in them."""
    before = csv.field_size_limit(LONGEST_CELL)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _require_times(run: ToolRun) -> None:
    """Raise ResultsError for a run of too few requests, or with times that cannot be."""
    if (count := len(run.rows) or run.requests) < LEAST_REQUESTS:
        raise ResultsError(f"has {count} requests; at least {LEAST_REQUESTS} are needed")
    if run.rows:
        if not (good_s := [row.closed_response_s for row in run.rows if row.succeeded]):
            raise ResultsError(ALL_FAILED)
        took_s = [row.closed_response_s for row in run.rows]
        times_s, is_timed = [*took_s, *(row.intended_s for row in run.rows)], any(good_s)
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
        is_timed = run.mean_s > 0 and any(times_s[2:])
    if wrong := [time_s for time_s in times_s if not 0 <= time_s < inf]:
        raise ResultsError(f"has a time of {wrong[0]:g} s, which cannot be")
    if not is_timed:
        raise ResultsError("has only times of 0 s; the clock is too coarse for this server")


_BINARY = "is vegeta's binary form; write `vegeta encode --to csv FILE > FILE.csv` and bring that"
_WIDE = "is UTF-16, as PowerShell writes; save it as UTF-8 and bring that"
_NEEDED = {0.0: "shortest", 0.5: "median", 1.0: "longest"}
_UNKNOWN = (
    "is no output that is known here: of wrk2 -L, vegeta encode or report -type=json, k6 --out "
    "json or csv, JMeter -l, oha --output-format json or csv, hey -o csv, Locust --csv or --raw"
)


def read_all(paths: Sequence[Path], alone: Sequence[Path] = ()) -> list[ToolRun]:
    """Return the runs of all files; Locust's two files are one run. Raises ResultsError.

    alone: further files, whose runs are of one customer, whatever they say. If two files have one
    name, all runs are named with their folders and endings.
    """
    runs: dict[tuple[Path, str], ToolRun] = {}
    for path in (*alone, *paths):
        for run in read(path):
            of = path.with_name(run.name) if run.tool == tool_sums.LOCUST else path
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
