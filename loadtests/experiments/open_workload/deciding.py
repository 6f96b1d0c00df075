"""Judges a load while it is measured, so that the lab can say what is missing and stop in time.

The values are the paired differences of the runs between two calibrations: what is common to them
counts once. The verdict comes from a confidence sequence (`loadtests.models.sequential`), which may
be looked at after every calibration; so a load that is stopped because it is decided is judged as
honestly as one whose length was fixed before.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from math import ceil
from statistics import fmean
from time import monotonic

from loadtests.experiments.open_workload import tables
from loadtests.experiments.open_workload.comparing import Steady, steady_points
from loadtests.experiments.open_workload.plan import SETTLED_UP_TO, STEADY, LoadKey
from loadtests.experiments.open_workload.reading import open_runs
from loadtests.lab.results import Results
from loadtests.models.estimates import Verdict
from loadtests.models.sequential import confidence_sequence, sequential_verdict, values_needed

AT_MOST_TIMES = 3  # as many runs as planned, if they do not decide


@dataclass(frozen=True, slots=True)
class Progress:
    """What is known of a load. differences: one for each calibration, see `Steady.judged`.

    name: what they are called. mean: the mean response time of which they are shares. Times are in
    E[S].
    """

    name: str
    mean: float
    differences: Sequence[float]

    @property
    def verdict(self) -> Verdict:
        """The verdict until now."""
        if not self.differences:
            return Verdict.NOT_DECIDED
        return sequential_verdict(self.differences, self.mean)

    def told(self, each_s: float) -> str:
        """A line to show. each_s: how long a calibration and its runs take."""
        if not self.differences:
            return "no run counts yet"
        found = confidence_sequence(self.differences)
        known = f"{self.name} {tables.percent(found, self.mean)}"
        seen = f"calibrations: {found.values}"
        if self.verdict is not Verdict.NOT_DECIDED:
            return f"{known}, {seen}: the model {self.verdict}"
        more = values_needed(self.differences, self.mean)
        if more is None:
            return f"{known}, {seen}: it cannot be said yet when this is decided"
        minutes = max(1, ceil(more * each_s / 60))
        unit = "minute" if minutes == 1 else "minutes"
        return f"{known}, {seen}: decided in about {minutes} {unit}; {more} more needed"


def can_be_decided(key: LoadKey) -> bool:
    """Whether a verdict about the load is possible: its runs reach the steady state."""
    _, part, fraction = key
    return part == STEADY and fraction <= SETTLED_UP_TO


def progress(results: Results, key: LoadKey) -> Progress:
    """What the runs of a load that count say until now."""
    runs = [
        run
        for run in open_runs(results)
        if run.key == key and run.is_accepted and run.is_long_enough
    ]
    points = steady_points(runs, is_simulated=False)
    if not points:
        return Progress("", 1.0, [])
    (point,) = points
    together = groupby(zip(runs, point.differences, strict=True), key=lambda pair: pair[0].unit)
    _, mean = point.judged
    differences = [fmean([difference for _, difference in of]) for _, of in together]
    return Progress(point.judged_name, mean, differences)


def judged(results: Results, point: Steady) -> Steady:
    """A point of a result that was measured until decided, judged by its confidence sequence."""
    key = point.server, STEADY, point.fraction
    if not can_be_decided(key):
        return point
    found = progress(results, key)
    sequence = confidence_sequence(found.differences)
    if point.is_as_served:
        return replace(point, as_served=sequence, verdict=found.verdict)
    return replace(point, difference=sequence, verdict=found.verdict)


class Watch:
    """Watches a load while it is measured."""

    def __init__(self, results: Results, key: LoadKey) -> None:
        self._results, self._key = results, key
        self._began_s, self._calibrations = monotonic(), 0

    def told(self) -> str:
        """What is known after one more calibration."""
        self._calibrations += 1
        each_s = (monotonic() - self._began_s) / self._calibrations
        return progress(self._results, self._key).told(each_s)

    def is_decided(self) -> bool:
        """Whether more runs are not needed."""
        found = progress(self._results, self._key)
        return can_be_decided(self._key) and found.verdict is not Verdict.NOT_DECIDED
