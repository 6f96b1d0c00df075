"""Makes a result of raw rows that were measured elsewhere, by Locust by hand for example.

Among the files must be an open run and a calibration: a closed run of one customer. Closed runs of
several customers are kept and not used. The calibration's E[S] and the number of workers are all
that is known of the server, so workers are taken to serve in order of arrival, and L to be their
number over the part of E[S] that the server reported.
"""

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from loadtests.experiments.open_workload.exploring import Rated
from loadtests.experiments.open_workload.measuring import note
from loadtests.experiments.open_workload.plan import STEADY, Load
from loadtests.experiments.open_workload.reading import PLAN, RunLine
from loadtests.generation.calibrating import WARM_UP, calibration_of
from loadtests.generation.calibration import Calibration
from loadtests.generation.rows import CUSTOMERS_AT_MOST, Row, RowFile, read_rows
from loadtests.generation.run import REQUESTS, RunRecord, judge_run
from loadtests.lab.results import Results, ResultsError
from loadtests.models.open_queue import Queue

NEEDED = "an open run and a closed run of one customer, for E[S], of more than {} requests"


def bring(files: Sequence[Path], results: Results, workers: int) -> None:
    """Write the rows of `files` to `results`, with a plan and verdicts.

    Raises ResultsError if a file is not one of raw rows or a run is missing.
    """
    runs = _runs(files)
    alone = {name: rows for name, rows in runs.items() if _is_calibration(rows)}
    opened = {name: rows for name, rows in runs.items() if _is_open(rows)}
    if not alone or not opened:
        raise ResultsError(
            f"the files have {', '.join(runs)}; needed: {NEEDED.format(WARM_UP + 1)}"
        )
    calibrations = [calibration_of(name, rows[WARM_UP:]) for name, rows in alone.items()]
    with closing(RowFile(results.folder / REQUESTS)) as file:
        file.write(row for rows in runs.values() for row in rows)
    with results.table(PLAN, RunLine) as table:
        for name, rows in opened.items():
            note(table, *_load(name, rows, calibrations[0], workers), calibrations[0])
            record = RunRecord(name, "open", tuple(rows), (), len(rows), 0.0)
            after = calibrations[-1] if len(calibrations) > 1 else None
            judge_run(results.folder, record, record.facts(calibrations[0], after))


def _runs(files: Sequence[Path]) -> Mapping[str, list[Row]]:
    """Name -> rows. Different files may have runs of one name, so the file's comes before it."""
    found: dict[str, list[Row]] = {}
    for path in files:
        try:
            rows = read_rows(path)
        except (OSError, ValueError) as problem:
            raise ResultsError(f"{path} has no raw rows: {problem}") from problem
        for row in rows:
            name = f"{path.stem}-{row.run}"
            found.setdefault(name, []).append(replace(row, run=name))
    return found


def _is_calibration(rows: Sequence[Row]) -> bool:
    is_alone = all(row.index % CUSTOMERS_AT_MOST == 0 for row in rows)
    return is_alone and len(rows) > WARM_UP + 1


def _is_open(rows: Sequence[Row]) -> bool:
    """Whether rows are numbered as in a schedule, where a few may be missing."""
    return max(row.index for row in rows) < 2 * len(rows)


def _load(
    name: str, rows: Sequence[Row], found: Calibration, workers: int
) -> tuple[Rated, str, Load]:
    """The arguments of `note`. The rate is that of the arrivals that were sent."""
    rated = Rated(Queue(workers), 1.0, 0.0)
    rate_per_s = len(rows) / max(row.intended_s for row in rows)
    rated = replace(
        rated, busy_workers=workers * found.mean_s / (found.mean_s - rated.delay_s(found))
    )
    fraction = rate_per_s * found.mean_s / rated.busy_workers
    return rated, name, Load("brought", STEADY, fraction, 1, arrivals=len(rows))
