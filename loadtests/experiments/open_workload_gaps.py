"""Accounts for the gap between measured and predicted response time at each load, from the rows.

The prediction is that of the formula, with mean and variance of the calibrations alone.
"""

from collections.abc import Sequence
from random import Random
from statistics import fmean

from loadtests.experiments.open_workload_comparison import Steady
from loadtests.experiments.open_workload_loads import OpenRun
from loadtests.lab.content import Figure, Section
from loadtests.lab.gaps import waterfall
from loadtests.models.gap_ledger import Calibrated, Model, Recorded, account, ledger


def gap_section(points: Sequence[Steady], told: Sequence[str]) -> Section:
    """A waterfall for each load of the steady state."""
    return Section("Where the gaps come from", told, [_figure(point) for point in points])


def _figure(point: Steady) -> Figure:
    accounts, predicted_s = [], []
    for run in point.runs:
        known = _calibrated(run, point.cv)
        predicted_s.append(run.predicted_s(point.cv))
        model = Model(run.rate_per_s, predicted_s[-1], run.queue.replayed_s, run.servers)
        random = Random(run.run)  # noqa: S311  no secrets
        accounts.append(account(_recorded(run, known), known, model, random))
    found = ledger(accounts, [run.unit for run in point.runs])
    return waterfall(f"Gap at {point.key.told}", found, fmean(predicted_s))


def _recorded(run: OpenRun, known: Calibrated) -> Recorded:
    """The run, with the server's own times if it told them, else with those of the calibration."""
    own_s = run.served_s
    return Recorded(
        [row.intended_s for row in run.rows],
        [row.sent_s for row in run.rows],
        [row.done_s for row in run.rows],
        own_s or [(1 + (known.drift or 0.0) / 2) * time_s for time_s in next(run.drawn_s())],
        run.warm_up,
        is_told=own_s is not None,
    )


def _calibrated(run: OpenRun, cv: float) -> Calibrated:
    before_s, after_s = (
        [row.service_s for row in rows if row.service_s is not None]
        for rows in (run.before, run.after)
    )
    drift = None
    if before_s:
        drift = (fmean(after_s) - fmean(before_s)) / run.busy_s if after_s else 0.0
    return Calibrated(run.service_time_s, (cv * run.busy_s) ** 2, drift, run.delay_s)
