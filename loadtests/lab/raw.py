"""Reads what all experiments with load write: raw rows by run, and whether a run counts."""

from collections import defaultdict
from collections.abc import Mapping

from loadtests.generation.rows import Row, read_rows
from loadtests.generation.run import REQUESTS, RUNS
from loadtests.lab.results import YES, Results


def rows_by_run(results: Results) -> Mapping[str, list[Row]]:
    """Run -> its rows, in the order in which they were written; an unknown run has no rows.

    Raises ValueError if the file is not one of raw rows.
    """
    found: dict[str, list[Row]] = defaultdict(list)
    path = results.folder / REQUESTS
    for row in read_rows(path) if path.exists() else ():
        found[row.run].append(row)
    return found


def accepted_by_run(results: Results) -> Mapping[str, bool]:
    """Run -> whether it counts by the rules, for all runs that were judged."""
    lines = results.rows_if_any(RUNS.removesuffix(".csv"))
    return {line["run"]: line["accepted"] == YES for line in lines}
