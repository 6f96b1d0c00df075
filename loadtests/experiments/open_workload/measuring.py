"""Measures each server in turns of a calibration and some runs at one share of L.

All calibrations of a server send the same requests, so a difference between two is due to the
machine. Machines change their speed now and then, and runs between two calibrations that differ are
rejected together, so there are only a few runs between two; and at most a fifth of those of the
steady state, because runs that share a calibration are one replication. The service tells how long
each request took and is judged by that (`plan.is_as_served`), so no run of it is rejected for such
a difference, or for late sending. A rejected run is made again with new arrivals, whatever the
reason, until as many runs count as planned; at most twice as many runs are made as were lacking at
the start or at a resumption. Response times play no part in this.

With the option `until_decided` there is a calibration after each run of the steady state, and a
load ends as soon as its confidence sequence decides, or after `AT_MOST_TIMES` as many runs as
planned.

L is 1/E[S] where one request is served at a time. Of the service it is the highest throughput of
closed runs, made once before its open runs, as a multiple of 1/E[S]; so L follows the calibrations.

Beside the raw rows this writes `plan.csv`, a line for each open run: its load and rate, and what
was calibrated before it (`reading.RunLine`); and `demands.csv` and `closed.csv` for the service.
The mode `model` has no server: its rows come from a simulated queue.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from math import ceil
from random import Random

from loadtests.experiments.open_workload.deciding import AT_MOST_TIMES, Watch, can_be_decided
from loadtests.experiments.open_workload.exploring import Rated, explored
from loadtests.experiments.open_workload.plan import (
    AS_THE_STUDY,
    STEADY,
    Load,
    is_as_served,
    loads,
)
from loadtests.experiments.open_workload.reading import PLAN, RunLine
from loadtests.experiments.open_workload.servers import SCALE, Measured, measured
from loadtests.generation import samples as sampling
from loadtests.generation.calibrating import calibrate
from loadtests.generation.calibration import Calibration
from loadtests.generation.rows import Row, RowFile
from loadtests.generation.run import REQUESTS, SAMPLES, RunRecord, judge_run, open_run
from loadtests.generation.schedule import Choices, arrivals
from loadtests.grouping import grouped
from loadtests.lab.experiment import Mode, Run
from loadtests.lab.published import UNROUNDED
from loadtests.lab.repeated import accepted_by_run
from loadtests.lab.results import TableWriter
from loadtests.models.open_queue import ONE
from loadtests.models.random_times import poisson_times, with_mean_and_cv
from loadtests.models.sequential import LEAST_VALUES

CALIBRATION_REQUESTS, QUICK_CALIBRATION_REQUESTS = 200, 60
CALIBRATED_EVERY_S = 200.0
VARIED_TIMES = 4  # times of the service vary by 0.07 of their mean, where waits vary by 0.01
MOST_TIMES = 2  # the most runs to make, as a multiple of those lacking


@dataclass(frozen=True, slots=True)
class Missing:
    """A load without enough accepted runs. made: runs so far, of which `accepted` count."""

    load: Load
    made: int
    accepted: int


@dataclass(frozen=True, slots=True)
class Ready:
    """A server that is ready for open runs. table: the plan."""

    run: Run
    found: Measured
    rated: Rated
    table: TableWriter


def measure(run: Run) -> None:
    """Make the runs that the results lack, at first all, in the order of the plan."""
    missing = _missing(run)
    with run.results.more(PLAN, RunLine) as table:
        for server, of_server in grouped(missing, lambda one: one.load.server).items():
            if run.options.mode is Mode.MODEL:
                _simulate(run, table, of_server)
            else:
                _measure_server(run, table, server, missing)
            missing = missing[len(of_server) :]


def _missing(run: Run) -> list[Missing]:
    verdicts, is_judged = accepted_by_run(run.results), run.options.mode is not Mode.MODEL
    lines = run.results.lines_if_any(PLAN, RunLine)
    made = Counter(line.key for line in lines)
    accepted = Counter(line.key for line in lines if verdicts.get(line.run, not is_judged))
    found = [Missing(load, made[load.key], accepted[load.key]) for load in _planned(run)]
    return [one for one in found if one.accepted < one.load.runs and not _is_decided(run, one)]


def _planned(run: Run) -> Sequence[Load]:
    planned = loads(run.options)
    if not run.options.until_decided:
        return planned
    return [
        replace(load, runs=AT_MOST_TIMES * load.runs) if can_be_decided(load.key) else load
        for load in planned
    ]


def _is_decided(run: Run, one: Missing) -> bool:
    was_measured = run.options.until_decided and one.made
    return bool(was_measured) and Watch(run.results, one.load.key).is_decided()


def _measure_server(run: Run, table: TableWriter, server: str, left: Sequence[Missing]) -> None:
    """Make what a server lacks. left: its loads, and then those of other servers."""
    name, samples = f"calibration-{server}", run.results.folder / SAMPLES
    runs = sampling.read(samples) if samples.exists() else ()
    there_are = sum(one.startswith(f"{name}-") for one in runs)
    with measured(run, server) as found:
        asked = found.choices(run.random(name))
        calibrations = (_calibrated(run, found, asked, f"{name}-{n}") for n in count(there_are))
        before = next(calibrations)
        rated = explored(run, found, server, asked, before) if found.is_service else Rated()
        ready = Ready(run, found, rated, table)
        while left and left[0].load.server == server:
            before = _measure_load(ready, left, before, calibrations)
            left = left[1:]


def _measure_load(
    ready: Ready,
    left: Sequence[Missing],
    before: Calibration,
    calibrations: Iterator[Calibration],
) -> Calibration:
    """Make the runs that the first load lacks. Returns the calibration after the last of them."""
    run, load, made, accepted = ready.run, left[0].load, left[0].made, left[0].accepted
    lacking = load.runs - accepted
    run.say(_progress(ready, left, before))
    most = made + run.choose(lacking, MOST_TIMES * lacking)
    watch = Watch(run.results, load.key)
    while accepted < load.runs and made < most:
        together = min(_together(ready, load, before), load.runs - accepted, most - made)
        records = list[RunRecord]()
        try:
            for rep in range(together):
                records.append(_one(ready, load, made + rep, before))
            after = next(calibrations)
        except BaseException:
            _judge(run, load, records, before, None)
            raise
        accepted += _judge(run, load, records, before, after)
        made += together
        before = after
        if can_be_decided(load.key):
            run.say(f"{load.fraction:g} of L: {watch.told()}")
            if run.options.until_decided and watch.is_decided():
                break
    return before


def _progress(ready: Ready, left: Sequence[Missing], before: Calibration) -> str:
    """Which load comes now, and how long it and all that is left take.

    The time is known for this server; other servers are taken to be as fast. Rejected runs are made
    once more, and a load that is measured until it is decided may end sooner.
    """
    load, lacking = left[0].load, left[0].load.runs - left[0].accepted
    own, total = (_takes_s(ready, of, before) / 60 for of in (left[:1], left))
    about = "at most" if ready.run.options.until_decided else "about"
    return (
        f"{load.server}, {load.part}, {load.fraction:g} of L, runs: {lacking}, {about} "
        f"{own:.1f} min; with all that is left {about} {total:.1f} min"
    )


def _takes_s(ready: Ready, missing: Sequence[Missing], before: Calibration) -> float:
    """How long these loads take, with a calibration after each few runs."""
    calibration_s = _calibration_requests(ready.run, ready.found) * before.mean_s
    total_s = 0.0
    for one in missing:
        lacking = one.load.runs - one.accepted
        total_s += lacking * _duration_s(ready.rated, one.load, before.mean_s)
        total_s += ceil(lacking / _together(ready, one.load, before)) * calibration_s
    return total_s


def _judge(
    run: Run,
    load: Load,
    records: Sequence[RunRecord],
    before: Calibration,
    after: Calibration | None,
) -> int:
    """List the runs. Returns how many count: none if there is no calibration after them."""
    accepted = 0
    as_served = is_as_served(load.server, before.overhead_s)
    lag_p99_s = _lag_p99_s(records) if records and load.part == AS_THE_STUDY else None
    for record in records:
        facts = record.facts(before, None if as_served else after)
        facts = replace(
            facts,
            is_interrupted=facts.is_interrupted or after is None,
            lag_p99_s=None if as_served else lag_p99_s or facts.lag_p99_s,
        )
        accepted += judge_run(run.results.folder, record, facts)
    return accepted


def _lag_p99_s(records: Sequence[RunRecord]) -> float | None:
    """The 99th percentile of all runs, because one run of 13 to 38 requests is too short for it."""
    rows = tuple(row for record in records for row in record.rows)
    return replace(records[0], rows=rows).facts().lag_p99_s


def _together(ready: Ready, load: Load, found: Calibration) -> int:
    """The number of runs between two calibrations.

    Calibrations are the units of intervals, so the runs of a load are spread over enough of them.
    """
    if ready.run.options.until_decided and can_be_decided(load.key):
        return 1
    at_most = load.runs // LEAST_VALUES if load.part == STEADY else load.runs
    in_time = int(CALIBRATED_EVERY_S / _duration_s(ready.rated, load, found.mean_s))
    return max(1, min(at_most, in_time))


def _duration_s(rated: Rated, load: Load, service_time_s: float) -> float:
    """The duration of a run."""
    services = load.services or load.arrivals / load.fraction / rated.busy_workers
    return services * service_time_s


def _calibration_requests(run: Run, found: Measured) -> int:
    requests = run.choose(QUICK_CALIBRATION_REQUESTS, CALIBRATION_REQUESTS)
    return VARIED_TIMES * requests if found.is_service else requests


def _calibrated(run: Run, found: Measured, asked: Choices, name: str) -> Calibration:
    return calibrate(
        found.target,
        asked,
        requests=_calibration_requests(run, found),
        run=name,
        folder=run.results.folder,
        seed=run.options.seed,
        say=run.say,
    )


def _one(ready: Ready, load: Load, rep: int, before: Calibration) -> RunRecord:
    name = f"{load.server}-{load.part}-{load.fraction:g}-{rep + 1:02}"
    run = ready.run
    random = run.random(name)
    times_s = _times(load, ready.rated.busy_workers, before.mean_s, random)
    schedule = arrivals(times_s, ready.found.requests(random))
    note(ready.table, ready.rated, name, load, before)
    return open_run(
        ready.found.target, schedule, run=name, folder=run.results.folder, say=lambda text: None
    )


def _times(load: Load, busy_workers: float, service_time_s: float, random: Random) -> list[float]:
    """The times of the arrivals of a run, at least one."""
    rate_per_s = load.fraction * busy_workers / service_time_s
    if load.part != AS_THE_STUDY:
        return poisson_times(rate_per_s, random, count=load.arrivals)
    until_s = load.services * service_time_s
    times_s = poisson_times(rate_per_s, random, until_s=until_s)
    return times_s or [until_s * random.random()]


def note(table: TableWriter, rated: Rated, name: str, load: Load, before: Calibration) -> None:
    """Write the line of a run in the plan."""
    table.add(
        RunLine(
            run=name,
            server=load.server,
            part=load.part,
            fraction=load.fraction,
            rate_per_s=load.fraction * rated.busy_workers / before.mean_s,
            duration_s=_duration_s(rated, load, before.mean_s),
            calibration=before.run,
            service_time_s=before.mean_s,
            service_variance_s2=before.variance_s2,
            overhead_s=before.overhead_s,
            delay_s=rated.delay_s(before),
            servers=rated.queue.servers,
        )
    )


# --- without a server ------------------------------------------------------------------------


def _simulate(run: Run, table: TableWriter, missing: Sequence[Missing]) -> None:
    """Make the runs in a simulated queue, with the study's own service times divided by K."""
    mean_s = UNROUNDED.mean_s / (run.options.scale or SCALE)
    law = with_mean_and_cv(mean_s, UNROUNDED.variation)
    told = Calibration("", 0, mean_s, (law.cv * mean_s) ** 2, 0.0)
    rows = RowFile(run.results.folder / REQUESTS)
    for one in missing:
        load = one.load
        run.say(f"{load.server}, {load.part}, {load.fraction:g} of L, simulated runs: {load.runs}")
        for rep in range(one.made, load.runs):
            name = f"{load.server}-{load.part}-{load.fraction:g}-{rep + 1:02}"
            random = run.random(name)
            note(table, Rated(), name, load, told)
            times_s = _times(load, 1.0, mean_s, random)
            rows.write(_simulated(name, times_s, [law.draw(random) for _ in times_s]))
    rows.close()


def _simulated(name: str, times_s: Sequence[float], services_s: Sequence[float]) -> Iterator[Row]:
    together = zip(times_s, services_s, ONE.replayed_s(times_s, services_s), strict=True)
    for index, (at_s, service_s, response_s) in enumerate(together):
        done_s = at_s + response_s
        start_s = done_s - service_s
        yield Row(name, index, "model", at_s, at_s, start_s, done_s, service_s, 200, "")
