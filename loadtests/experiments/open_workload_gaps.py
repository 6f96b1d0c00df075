"""Splits the gap between measured and predicted mean response time at a load into its causes.

The prediction is the formula of the steady state, with mean and variance of the calibrations. Each
cause is a difference of response times to the same arrivals, from what was measured (the first of
`Cause`) to the prediction (the last), so the entries sum to the gap. Causes multiply: one per cent
more service is six per cent more waiting at 0.85 of L. An entry says what its cause adds to a run
from which those above it have been removed.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from math import inf
from statistics import fmean

import numpy as np

from loadtests.experiments.open_workload_comparison import Steady
from loadtests.experiments.open_workload_loads import SENTENCES, Array, OpenRun
from loadtests.lab.content import Cell, Table
from loadtests.models.estimates import CONFIDENCE, LEAST_VALUES, Interval, clustered_interval


class Cause(StrEnum):
    """Names the causes of a gap, by what is subtracted from the one above."""

    SERVER = "order, connecting, receiving"  # sent as it was, and served as the server reported
    WHOLE = "the server, not split"  # of one that reports no times: served as calibrated
    DISPATCH = "dispatch lag"  # sent when intended
    SERVICE = "service times"  # served as calibrated
    CHANCE = "chance"  # the formula, for which all arrivals count that could have come


WORDS: Mapping[Cause, str] = {
    Cause.SERVER: "Order of service, connecting and receiving, unlike in the calibration,",
    Cause.WHOLE: "The server as a whole, which reported no times that would separate causes,",
    Cause.DISPATCH: "Late sending by the generator",
    Cause.SERVICE: "Service times unlike those of the calibration",
    Cause.CHANCE: "The chance of these arrivals, of which the first met an empty queue,",
}
_ALIKE = 1e-6  # an entry below this share of the prediction is none


def entries_s(run: OpenRun, predicted_s: float) -> dict[Cause, Array]:
    """Return what each cause adds (s) to each response time beyond the predicted mean."""
    measured_s = np.array(run.responses_s)
    intended_s, sent_s = np.array([(row.intended_s, row.sent_s) for row in run.rows]).T
    served_s = run.served_s
    services_s = served_s or next(run.drawn_s())
    late_s = sent_s - intended_s + run.as_served_s(services_s, sent_s)
    in_time_s = run.as_served_s(services_s, intended_s)
    if served_s is None:
        split = {Cause.WHOLE: measured_s - late_s, Cause.DISPATCH: late_s - in_time_s}
        return split | {Cause.CHANCE: in_time_s - predicted_s}
    return {
        Cause.SERVER: measured_s - late_s,
        Cause.DISPATCH: late_s - in_time_s,
        Cause.SERVICE: in_time_s - run.forecast_s,
        Cause.CHANCE: run.forecast_s - predicted_s,
    }


def gap_table(point: Steady) -> Table:
    """Lead from the predicted to the measured mean at a load, cause by cause.

    The intervals of the causes hold together with CONFIDENCE, however entries depend on each other
    (C. E. Bonferroni, 1936), and that of the gap does alone.
    """
    predicted_s = [run.predicted_s(point.cv) for run in point.runs]
    by_run = [
        {cause: 1000 * run.mean(more_s) for cause, more_s in entries_s(run, s).items()}
        for run, s in zip(point.runs, predicted_s, strict=True)
    ]
    causes = [cause for cause in reversed(Cause) if any(cause in entries for entries in by_run)]
    joint = 1 - (1 - CONFIDENCE) / len(causes)
    estimates = {
        cause: _interval(point, [entries.get(cause, 0.0) for entries in by_run], joint)
        for cause in causes
    }
    gap = _interval(point, [sum(entries.values()) for entries in by_run])
    return ledger(point, 1000 * fmean(predicted_s), estimates, gap)


def _interval(point: Steady, means: Sequence[float], confidence: float = CONFIDENCE) -> Interval:
    """Return the interval over calibrations; infinitely wide if these are too few."""
    calibrations = [run.calibration for run in point.runs]
    if (units := len(set(calibrations))) < LEAST_VALUES:
        return Interval(fmean(means), values=units)
    return clustered_interval(means, calibrations, confidence)


def ledger(
    point: Steady, predicted: float, causes: Mapping[Cause, Interval], gap: Interval
) -> Table:
    """Return the table of a gap. Times are in ms."""
    entries = {
        cause: interval if abs(interval.estimate) >= _ALIKE * predicted else Interval(0.0)
        for cause, interval in causes.items()
    }
    rows: list[Sequence[Cell]] = [
        ("predicted", predicted, None, None),
        *((str(cause), entry.estimate, *entry.ends) for cause, entry in entries.items()),
        ("measured", predicted + gap.estimate, None, None),
    ]
    columns, words = ("Cause", "Adds / ms", "from", "to"), _words(entries, gap, len(point.runs))
    return Table(f"Gap at {point.key.label}", columns, rows, words, digits=4)


def _words(entries: Mapping[Cause, Interval], gap: Interval, runs: int) -> str:
    """Name the causes that are seen, or the largest if there are no intervals."""
    seen = [cause for cause, own in entries.items() if own.half_width < inf and own.is_finding]
    if gap.half_width == inf:
        seen = [max(entries, key=lambda cause: abs(entries[cause].estimate))]
    return SENTENCES.paragraph(
        "gap",
        gap=gap,
        runs=runs,
        seen={WORDS[cause]: entries[cause] for cause in seen},
        least=LEAST_VALUES,
    )
