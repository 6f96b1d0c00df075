"""Draws the study's figures 3 to 5, what happens during a run, with our numbers."""

from collections.abc import Mapping, Sequence
from itertools import accumulate
from statistics import fmean

from loadtests.experiments.open_workload.plan import SERVERS
from loadtests.experiments.open_workload.reading import OpenRun
from loadtests.experiments.open_workload.tables import REPORT_S
from loadtests.generation.samples import Sample
from loadtests.grouping import grouped
from loadtests.lab.published import OPEN_WORKLOADS
from loadtests.lab.report.content import Cell, Figure, Table
from loadtests.lab.report.drawing import Axis, Series, Shape, Source, figure
from loadtests.models.recorded import (
    customers_over_time,
    load_average,
    mean_customers,
    peak_customers,
)
from loadtests.models.samples import mean_of_known

FOUR: tuple[Source, ...] = ("ours", "third", "second", "fourth")
_STUDY = {one.fraction: one for one in OPEN_WORKLOADS}
_TIME = Axis("time / report seconds")
_LOAD = Axis("load average, 1 minute")


def over_time(runs: Sequence[OpenRun]) -> list[Figure]:
    """Figures 3 and 4: one run of the study's length at the lowest and one at the highest load."""
    low = min(runs, key=lambda run: run.fraction)
    high = max(runs, key=lambda run: run.fraction)
    both = list({run.fraction: run for run in (low, high)}.values())
    return [_durations(both), _customers(both)]


def _report_time(run: OpenRun, time_s: float) -> float:
    return time_s / run.service_time_s * REPORT_S


def _of(run: OpenRun) -> str:
    return f"{run.fraction:g} of L"


def _studys(name: str, runs: Sequence[OpenRun], ys: Sequence[float | None]) -> list[Series]:
    """For each of these runs a level line at what the study printed for the load, if it did."""
    end = max(_report_time(run, run.duration_s) for run in runs)
    known = [y for y in ys if y is not None]
    return [
        Series("" if at else name, "study", [0.0, end], [y, y], shape="steps")
        for at, y in enumerate(known)
    ]


def _durations(runs: Sequence[OpenRun]) -> Figure:
    """Figure 3."""
    theirs = [_STUDY[run.fraction].longest_s if run.fraction in _STUDY else None for run in runs]
    series = [
        Series(
            _of(run),
            source,
            [_report_time(run, row.done_s) for row in run.rows],
            [_report_time(run, row.open_response_s) for row in run.rows],
            shape="points",
        )
        for run, source in zip(runs, FOUR, strict=False)
    ]
    told = (
        "Figure 3 of the study: response time of each request against the time of its answer, in "
        "one run of 30 report minutes that began empty. Of the study's curves only the longest "
        f"times are known, which the dotted lines show. Server: {SERVERS[runs[0].server]}."
    )
    rows = [
        (_of(run), len(run.rows), max(_report_time(run, one) for one in run.responses_s), longest)
        for run, longest in zip(runs, theirs, strict=True)
    ]
    columns = ("Load", "Requests", "Longest / report s", "The study's longest / s")
    return figure(
        "Response times over a run",
        told,
        _TIME,
        Axis("response time / report seconds"),
        [*series, *_studys("the study's longest", runs, theirs)],
        Table("One run at each load", columns, rows),
    )


def _customers(runs: Sequence[OpenRun]) -> Figure:
    """Figure 4."""
    theirs = [_STUDY.get(run.fraction) for run in runs]
    peaks = [None if one is None else one.most_customers for one in theirs]
    series, rows = [], list[Sequence[Cell]]()
    for run, source, study in zip(runs, FOUR, theirs, strict=False):
        steps = customers_over_time(run.arrivals_s, [row.done_s for row in run.rows])
        xs = [_report_time(run, step.time_s) for step in steps]
        ys: list[float | None] = [float(step.customers) for step in steps]
        series.append(Series(_of(run), source, [0.0, *xs], [0.0, *ys], shape="steps"))
        until_s = max(run.duration_s, steps[-1].time_s)
        ours = peak_customers(steps), mean_customers(steps, 0.0, until_s)
        printed = (study.most_customers, study.mean_customers) if study else (None, None)
        rows.append((_of(run), *ours, *printed))
    told = (
        "Figure 4 of the study: requests in the system during the same runs. Of the study's curves "
        "only peaks, which the dotted lines show, and means over time are known. Server: "
        f"{SERVERS[runs[0].server]}."
    )
    columns = ("Load", "At most", "Mean over time", "The study's most", "The study's mean")
    return figure(
        "Customers over a run",
        told,
        _TIME,
        Axis("requests in the system"),
        [*series, *_studys("the study's peak", runs, peaks)],
        Table("Customers in the system", columns, rows),
    )


# --- figure 5 --------------------------------------------------------------------------------


def load_computed(runs: Sequence[OpenRun]) -> Figure:
    """Figure 5 for runs of the study's length, as their load average would have been on its Pi."""
    of_load = {run.fraction: run for run in reversed(runs)}  # the first run at each load
    series, rows = [], list[Sequence[Cell]]()
    for fraction, source in zip(sorted(of_load), FOUR, strict=False):
        run = of_load[fraction]
        factor = REPORT_S / run.service_time_s
        one = _modelled([run], _of(run), source, run.duration_s, "steps", factor)
        series.append(one)
        values = [y for y in one.ys if y is not None]
        rows.append((_of(run), fmean(values), max(values), fraction, _published(run)))
    told = (
        "Figure 5 of the study: the load average over a run, computed. Linux averages the number "
        "of processes at work over a minute, which no division of times shortens, and it does not "
        "count a wait that is put in for a disk. So the requests in service (one at a time) of a "
        "run at each load, with times as the study's, are averaged as Linux does; a run lasts 30 "
        f"of these minutes. The study drew 0.3 and 0.85. Server: {SERVERS[runs[0].server]}."
    )
    columns = ("Load", "Mean over the run", "Highest", "In the long run", "The study's mean")
    table = Table("Load average", columns, rows)
    return figure("Load average over a run", told, _TIME, _LOAD, series, table)


def _published(run: OpenRun) -> float | None:
    return _STUDY[run.fraction].load_average if run.fraction in _STUDY else None


def load(runs: Sequence[OpenRun], samples: Mapping[str, Sequence[Sample]]) -> Figure | None:
    """Figure 5 as this machine told it, with all runs of a load one after the other.

    Samples of runs against a server on another machine tell nothing of that machine, and are left
    out. None if there are no others.
    """
    told_here = [
        run for run in runs if any(one.server_cpu is not None for one in samples.get(run.run, ()))
    ]
    if not told_here:
        return None
    of_first = [run for run in told_here if run.server == told_here[0].server]
    of_load = grouped(sorted(of_first, key=lambda run: run.fraction), lambda run: run.fraction)
    series = []
    for fraction, source in zip(dict.fromkeys((min(of_load), max(of_load))), FOUR, strict=False):
        own = of_load[fraction]
        series += [
            _told(own, samples, source),
            _modelled(own, f"model, {_of(own[0])}", source, _begins_s(own)[-1], "curve"),
        ]
    rows = [_load_row(own, samples) for own in of_load.values()]
    told = (
        "Figure 5 of the study: the load average of this machine, generator included, over the "
        "runs of a load, one after the other without the calibrations between them. It is the "
        "average of a minute, so it also tells what was before. The model counts the requests in "
        f"service alone. Server: {SERVERS[of_first[0].server]}."
    )
    columns = ("Load", "Runs", "Seconds", "Mean load average", "Server / cores", "The study's mean")
    table = Table("Load over the runs of a load", columns, rows)
    return figure("Load over the runs of a load", told, Axis("time / s"), _LOAD, series, table)


def _lasts_s(run: OpenRun) -> float:
    return max(run.duration_s, *(row.done_s for row in run.rows))


def _begins_s(runs: Sequence[OpenRun]) -> Sequence[float]:
    """When each of these runs begins if they follow each other, and when the last one ends."""
    return list(accumulate(map(_lasts_s, runs), initial=0.0))


def _told(
    runs: Sequence[OpenRun], samples: Mapping[str, Sequence[Sample]], source: Source
) -> Series:
    found = [
        (begin_s + one.at_s, one.load_average_1m)
        for run, begin_s in zip(runs, _begins_s(runs), strict=False)
        for one in samples[run.run]
        if one.at_s <= _lasts_s(run)
    ]
    return Series(_of(runs[0]), source, [x for x, _ in found], [y for _, y in found], shape="steps")


def _modelled(
    runs: Sequence[OpenRun],
    name: str,
    source: Source,
    until_s: float,
    shape: Shape,
    factor: float = 1.0,
) -> Series:
    """The load average of runs that follow each other, with all times multiplied by `factor`."""
    begins_s = _begins_s(runs)
    both = list(zip(runs, begins_s, strict=False))
    arrivals_s = [factor * (begin_s + one) for run, begin_s in both for one in run.arrivals_s]
    ends_s = [factor * (begin_s + row.done_s) for run, begin_s in both for row in run.rows]
    steps = customers_over_time(arrivals_s, ends_s)
    found = load_average(steps, factor * until_s, runs[0].servers)
    return Series(name, source, [x for x, _ in found], [y for _, y in found], shape=shape)


def _load_row(runs: Sequence[OpenRun], samples: Mapping[str, Sequence[Sample]]) -> Sequence[Cell]:
    own = [one for run in runs for one in samples[run.run]]
    return (
        _of(runs[0]),
        len(runs),
        _begins_s(runs)[-1],
        fmean([one.load_average_1m for one in own]),
        mean_of_known(one.server_cpu for one in own),
        _published(runs[0]),
    )
