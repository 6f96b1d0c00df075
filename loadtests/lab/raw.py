"""What experiments with load leave in common, by run: raw rows, and whether a run counts."""

from collections import defaultdict
from collections.abc import Mapping

from loadtests.generation.rows import Row, read_rows
from loadtests.generation.run import REQUESTS, RUNS
from loadtests.lab.results import Results


def rows_by_run(results: Results) -> Mapping[str, list[Row]]:
    """Run -> its rows in the order in which they were written; none for any other run.

    Raises ValueError for a file that is not of raw rows.
    """
    found: dict[str, list[Row]] = defaultdict(list)
    path = results.folder / REQUESTS
    for row in read_rows(path) if path.exists() else ():
        found[row.run].append(row)
    return found


def accepted_by_run(results: Results) -> Mapping[str, bool]:
    """Run -> whether the rules let it count, of the runs that were judged."""
    table = RUNS.removesuffix(".csv")
    lines = results.rows(table) if results.has(table) else ()
    return {line["run"]: line["accepted"] == "yes" for line in lines}
