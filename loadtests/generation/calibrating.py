"""Measures the service time with one customer, who asks again as soon as an answer comes."""

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean, variance

from loadtests.generation.calibration import Calibration
from loadtests.generation.rows import Row
from loadtests.generation.run import Say, Target, closed_run, to_stderr
from loadtests.generation.schedule import Choices
from loadtests.processes import ProgramFailed

WARM_UP = 10


def calibrate(
    target: Target,
    choices: Choices,
    *,
    requests: int,
    run: str,
    folder: Path,
    seed: int = 1,
    say: Say = to_stderr,
) -> Calibration:
    """Measure mean and variance of `requests` response times, after WARM_UP that do not count.

    requests: at least 2. choices: the requests to draw from at random, with `seed`. The rows are
    kept as those of `run`. Raises ValueError, and ProgramFailed if a request fails.
    """
    if requests < 2:
        raise ValueError(f"requests is {requests}; a variance needs at least 2")
    record = closed_run(
        target,
        choices,
        customers=1,
        requests=requests,
        warm_up=WARM_UP,
        run=run,
        folder=folder,
        seed=seed,
        say=say,
    )
    if failed := [row for row in record.rows if not row.succeeded]:
        raise ProgramFailed(f"{run}: {len(failed)} requests failed, one with {failed[0].status}")
    return calibration_of(run, record.rows[WARM_UP:])


def calibration_of(run: str, rows: Sequence[Row]) -> Calibration:
    """The calibration by the rows of one customer that count, at least 2."""
    times_s = [row.closed_response_s for row in rows]
    told_s = [row.service_s for row in rows if row.service_s is not None]
    overhead_s = fmean(times_s) - fmean(told_s) if len(told_s) == len(rows) else None
    return Calibration(run, len(rows), fmean(times_s), variance(times_s), overhead_s, times_s)
