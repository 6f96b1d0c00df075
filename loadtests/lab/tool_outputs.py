"""Reads what load generators write: wrk2, vegeta, k6, JMeter, oha, Locust, and the lab itself.

A file is recognised by its form, not by its name. It has a row for each request, from which all can
be computed; only wrk2 and Locust's own CSV sum up: how many requests, their mean, and percentiles.
What holds too little is refused in a sentence that says what to bring in its place. Whether a
request succeeded, and how many customers there were, is what the file says, if it says so.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from loadtests.generation.rows import COLUMNS
from loadtests.lab import tool_rows, tool_sums
from loadtests.lab.results import ResultsError
from loadtests.lab.tool_runs import FAULTS, ToolRun, fault

_SUMS = "it only sums up requests, so bring a row for each:"
_FORMS: Mapping[Sequence[str], Callable[[Path], list[ToolRun]] | str] = {
    (",".join(COLUMNS),): tool_rows.read_own,
    ("request-start", "request-duration", "status"): tool_rows.read_oha,
    ("timeStamp", "elapsed", "success"): tool_rows.read_jmeter,
    ('"timestamp"', '"latency"', '"code"'): tool_rows.read_vegeta,
    ('"type":"Metric"',): tool_rows.read_k6,
    ('"type":"Point"',): tool_rows.read_k6,
    ("Request Count,Failure Count",): tool_sums.read_locust,
    ("Timestamp,User Count",): tool_sums.read_locust,
    ("Running ", " test @ "): tool_sums.read_wrk2,
    ("Result", "Attack"): "is vegeta's binary form; bring what `vegeta encode` writes of it",
    ('"latencies"', '"status_codes"'): f"is a report of vegeta; {_SUMS} `vegeta encode`",
    ("[total, rate, throughput]",): f"is a report of vegeta; {_SUMS} `vegeta encode`",
    ("metric_name", "metric_value"): "is k6's CSV; bring --out json=FILE",
    ('"metrics"',): f"is a summary of k6; {_SUMS} --out json=FILE",
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
