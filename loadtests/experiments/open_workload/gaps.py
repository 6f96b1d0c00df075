"""Accounts for the gap between measured and predicted response time at each load, from the rows.

The prediction is that of the formula, with mean and variance of the calibrations alone. A run lies
between two calibrations: the last before its rows in the file, and the first after them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from random import Random
from statistics import fmean

from loadtests.experiments.open_workload.plan import SERVERS, STEADY, warm_up
from loadtests.experiments.open_workload.reading import OpenRun
from loadtests.generation.calibrating import WARM_UP
from loadtests.generation.rows import Row
from loadtests.lab.gaps import Gap, gap_told, of_ledger, waterfall
from loadtests.lab.repeated import rows_by_run
from loadtests.lab.report.content import Section
from loadtests.lab.results import Results
from loadtests.models.estimates import warm_up_of
from loadtests.models.gap_ledger import Calibrated, Ledger, Model, Recorded, account, ledger
from loadtests.models.sequential import LEAST_VALUES

CALIBRATION = "calibration-"
TOLD = (
    "Measured less predicted, cause by cause: the arrivals of each run are replayed again and "
    "again, and each time one more thing that was recorded is replaced by what the formula "
    "assumes, from the measurement (below) up to the prediction. So the entries sum to the gap, "
    "and each says what its cause adds to a run from which those below it have been removed. The "
    "intervals hold together with 95 % confidence, and calibrations are their unit: runs that "
    f"share one are one replication, and fewer than {LEAST_VALUES} have no intervals."
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
        found, gap = _gap(list(of_load), around)
        title = f"Gap at {fraction:.2g} of L, {SERVERS[server]}"
        figures.append(waterfall(title, f"{gap_told(gap)} {_counted(found)}", gap))
    return Section("Where the gaps come from", [TOLD], figures)


def _counted(found: Ledger) -> str:
    few = f", too few for intervals, which need {LEAST_VALUES}" if found.gap is None else ""
    return f"Runs: {found.runs}, calibrations: {found.calibrations}{few}."


def _gap(runs: Sequence[OpenRun], around: Mapping[str, Between]) -> tuple[Ledger, Gap]:
    cv = fmean([run.cv**2 for run in runs]) ** 0.5
    models = [_model(run, cv) for run in runs]
    accounts = [
        account(
            _recorded(run, known),
            known,
            model,
            Random(run.run),  # noqa: S311  no secrets
        )
        for run, model in zip(runs, models, strict=True)
        for known in [_calibrated(run, cv, around.get(run.run))]
    ]
    found = ledger(accounts, [run.unit for run in runs])
    return found, of_ledger(found, fmean([model.predicted_s for model in models]))


def _model(run: OpenRun, cv: float) -> Model:
    found = run.queue.steady(run.rate_per_s, run.busy_s, cv)
    predicted_s = found.response_time_s + run.delay_s
    return Model(run.rate_per_s, predicted_s, run.queue.replayed_s, run.queue.servers)


def _recorded(run: OpenRun, known: Calibrated) -> Recorded:
    """The run, with the server's own times if it told all of them."""
    starts_s = [row.server_start_s for row in run.rows if row.server_start_s is not None]
    services_s = [row.service_s for row in run.rows if row.service_s is not None]
    is_whole = len(starts_s) == len(services_s) == len(run.rows)
    is_known = run.overhead_s == 0 or known.connecting_s > 0
    has_starts = is_known and is_whole
    own_s = services_s if has_starts else run.served_s
    return Recorded(
        run.arrivals_s,
        [row.sent_s for row in run.rows],
        [row.done_s for row in run.rows],
        own_s or [(1 + (known.drift or 0.0) / 2) * time_s for time_s in run.drawn_s()],
        starts_s if has_starts else None,
        warm_up_of(len(run.rows), warm_up(run.fraction)),
        is_told=own_s is not None,
    )


def _calibrated(run: OpenRun, cv: float, around: Between | None) -> Calibrated:
    known = Calibrated(run.service_time_s, (cv * run.busy_s) ** 2, delay_s=run.delay_s)
    before, after = (_served(around.before), _served(around.after)) if around else ([], [])
    if not before:
        return known
    services_s = _mean_service_s(before)
    changed_s = _mean_service_s(after) - services_s if after else 0.0
    starts_s = [row.server_start_s for row in before if row.server_start_s is not None]
    if len(starts_s) < len(before):
        return replace(known, drift=changed_s / run.busy_s)
    connecting_s = fmean(starts_s) - fmean([row.sent_s for row in before])
    response_s = fmean([row.closed_response_s for row in before])
    return replace(
        known,
        connecting_s=connecting_s,
        receiving_s=response_s - connecting_s - services_s,
        drift=changed_s / services_s,
    )


def _served(rows: Sequence[Row]) -> list[Row]:
    """The rows of a calibration that count and say how long the server took."""
    counted = sorted(rows, key=lambda row: row.index)[WARM_UP:]
    return [row for row in counted if row.service_s is not None]


def _mean_service_s(rows: Sequence[Row]) -> float:
    return fmean([row.service_s or 0.0 for row in rows])


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
