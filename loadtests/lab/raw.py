"""Reads what all experiments with load write: raw rows by run, and whether a run counts."""

from collections import defaultdict
from collections.abc import Mapping
from itertools import count

from loadtests.generation import samples
from loadtests.generation.rows import Row, read_rows
from loadtests.generation.run import REQUESTS, RUNS, SAMPLES
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


def unused_name(results: Results, prefix: str) -> str:
    """`prefix-N` with the lowest N from 1 under which no run, not even a broken one, left rows."""
    path = results.folder / SAMPLES
    sampled = samples.read(path) if path.exists() else {}
    taken = {*rows_by_run(results), *sampled, *accepted_by_run(results)}
    return next(name for n in count(1) if (name := f"{prefix}-{n}") not in taken)
