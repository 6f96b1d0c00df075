"""Accounts for the gap between measured and predicted response time at each load, from the rows.

The prediction is that of the formula, with mean and variance of the calibrations alone. A run lies
between two calibrations: the last before its rows in the file, and the first after them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from random import Random
from statistics import fmean

from loadtests.experiments.open_workload.plan import SERVERS, STEADY, warm_up
from loadtests.experiments.open_workload.reading import OpenRun
from loadtests.generation.calibrating import WARM_UP
from loadtests.generation.rows import Row
from loadtests.lab.gaps import Gap, gap_told, of_ledger, waterfall
from loadtests.lab.raw import rows_by_run
from loadtests.lab.report.content import Section
from loadtests.lab.results import Results
from loadtests.models.estimates import warm_up_of
from loadtests.models.gap_ledger import Calibrated, Model, Recorded, account, ledger

CALIBRATION = "calibration-"
TOLD = (
    "Measured less predicted, cause by cause: the arrivals of each run are replayed again and "
    "again, and each time one more thing that was recorded is replaced by what the formula "
    "assumes, from the measurement (below) up to the prediction. So the entries sum to the gap, "
    "and each says what its cause adds to a run from which those below it have been removed. The "
    "intervals hold together with 95 % confidence, and calibrations are their unit: runs that "
    "share one are one replication."
)


@dataclass(frozen=True, slots=True)
class Between:
    """The calibrations around a run. name: of the one before it."""

    name: str
    before: Sequence[Row]
    after: Sequence[Row]


def gap_section(results: Results, runs: Sequence[OpenRun]) -> Section:
    """A waterfall for each load of the steady state at which the formula has one."""
    around = between(results)
    of_part = [run for run in runs if run.part == STEADY and run.is_accepted]
    long_enough = [run for run in of_part if run.is_long_enough and run.utilisation < 1]
    figures = []
    for (server, fraction), of_load in groupby(
        long_enough, key=lambda run: (run.server, run.fraction)
    ):
        found, count = _gap(list(of_load), around)
        title = f"Gap at {fraction:.2g} of L, {SERVERS[server]}"
        figures.append(waterfall(title, f"{gap_told(found)} Runs: {count}.", found))
    return Section("Where the gaps come from", [TOLD], figures)


def _gap(runs: Sequence[OpenRun], around: Mapping[str, Between]) -> tuple[Gap, int]:
    cv = fmean([run.cv**2 for run in runs]) ** 0.5
    models = [_model(run, cv) for run in runs]
    accounts = [
        account(
            _recorded(run, around.get(run.run)),
            _calibrated(run, cv, around.get(run.run)),
            model,
            Random(run.run),  # noqa: S311  no secrets
        )
        for run, model in zip(runs, models, strict=True)
    ]
    names = [around[run.run].name if run.run in around else run.run for run in runs]
    predicted_s = fmean([model.predicted_s for model in models])
    return of_ledger(ledger(accounts, names), predicted_s), len(runs)


def _model(run: OpenRun, cv: float) -> Model:
    found = run.queue.steady(run.rate_per_s, run.busy_s, cv)
    predicted_s = found.response_time_s + run.delay_s
    return Model(run.rate_per_s, predicted_s, run.queue.replayed_s, run.queue.servers)


def _recorded(run: OpenRun, around: Between | None) -> Recorded:
    starts_s = [row.server_start_s for row in run.rows if row.server_start_s is not None]
    services_s = [row.service_s for row in run.rows if row.service_s is not None]
    is_known = run.overhead_s == 0 or (around is not None and bool(_served(around.before)))
    is_whole = len(starts_s) == len(services_s) == len(run.rows)
    told = is_known and is_whole and not run.queue.is_shared
    return Recorded(
        run.arrivals_s,
        [row.sent_s for row in run.rows],
        [row.done_s for row in run.rows],
        services_s if told else run.served_s or run.drawn_s(),
        starts_s if told else None,
        warm_up_of(len(run.rows), warm_up(run.fraction)),
    )


def _calibrated(run: OpenRun, cv: float, around: Between | None) -> Calibrated:
    variance_s2 = (cv * run.busy_s) ** 2
    before = _served(around.before) if around else []
    if around is None or not before:
        return Calibrated(run.service_time_s, variance_s2, delay_s=run.delay_s)
    services_s, after = fmean([row.service_s or 0.0 for row in before]), _served(around.after)
    return Calibrated(
        run.service_time_s,
        variance_s2,
        connecting_s=fmean([(row.server_start_s or 0.0) - row.sent_s for row in before]),
        receiving_s=fmean([_received_s(row) for row in before]),
        drift=fmean([row.service_s or 0.0 for row in after]) / services_s - 1 if after else 0.0,
        delay_s=run.delay_s,
    )


def _served(rows: Sequence[Row]) -> list[Row]:
    """The rows of a calibration that count and say what the server did."""
    counted = sorted(rows, key=lambda row: row.index)[WARM_UP:]
    return [row for row in counted if row.server_start_s is not None and row.service_s is not None]


def _received_s(row: Row) -> float:
    return row.done_s - (row.server_start_s or 0.0) - (row.service_s or 0.0)


def between(results: Results) -> Mapping[str, Between]:
    """Run -> the calibrations around it, for runs after a calibration."""
    rows = rows_by_run(results)
    found, names = dict[str, Between](), list(rows)
    for at, name in enumerate(names):
        earlier = [one for one in names[:at] if one.startswith(CALIBRATION)]
        later = [one for one in names[at:] if one.startswith(CALIBRATION)]
        if earlier and not name.startswith(CALIBRATION):
            after = rows[later[0]] if later else []
            found[name] = Between(earlier[-1], rows[earlier[-1]], after)
    return found
