"""Measures each server in turns of a calibration and some runs at one share of L.

All calibrations of a server send the same requests, so a difference between two is due to the
machine. Machines change their speed now and then, and runs between two calibrations that differ are
rejected together, so there are only a few runs between two. A rejected run is made again with new
arrivals, whatever the reason, until as many runs count as planned; at most twice as many runs are
made as were lacking at the start or at a resumption. Response times play no part in this.

Beside the raw rows this writes `plan.csv`, a line for each run: its load and rate, the E[S] and
variance from which its rate and models come, and the calibrated overhead if the server was told the
service times. The mode `model` has no server: its rows come from a simulated queue.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count, groupby, islice
from math import ceil
from random import Random

from loadtests.experiments.open_workload.plan import (
    AS_THE_STUDY,
    FCFS,
    Load,
    LoadKey,
    key_of,
    loads,
)
from loadtests.experiments.open_workload.servers import Measured, measured, scale_of
from loadtests.generation import samples as sampling
from loadtests.generation.calibrating import calibrate
from loadtests.generation.calibration import Calibration
from loadtests.generation.rows import Row, RowFile
from loadtests.generation.rules import judge
from loadtests.generation.run import REQUESTS, SAMPLES, RunRecord, append_verdict, open_run
from loadtests.generation.schedule import Arrival, Choices, arrivals, poisson_times
from loadtests.lab.experiment import Mode, Run
from loadtests.lab.published import UNROUNDED
from loadtests.lab.raw import accepted_by_run
from loadtests.lab.results import TableWriter
from loadtests.models import replay
from loadtests.models.distributions import with_mean_and_cv

PLAN = "plan"
COLUMNS = (
    *("run", "server", "part", "fraction", "rate_per_s", "duration_s"),
    *("service_time_s", "service_variance_s2", "overhead_s"),
)
CALIBRATION_REQUESTS, QUICK_CALIBRATION_REQUESTS = 200, 60
CALIBRATED_EVERY_S = 200.0
MOST_TIMES = 2  # the most runs to make, as a multiple of those lacking


@dataclass(frozen=True, slots=True)
class Missing:
    """A load without enough accepted runs. made: runs so far, of which `accepted` count."""

    load: Load
    made: int
    accepted: int


def measure(run: Run) -> None:
    """Make the runs that the results lack, at first all, in the order of the plan."""
    missing = _missing(run)
    with run.results.more(PLAN, COLUMNS) as table:
        for server, of_server in groupby(missing, key=lambda one: one.load.server):
            if run.options.mode is Mode.MODEL:
                _simulate(run, table, list(of_server))
            else:
                _measure_server(run, table, server, list(of_server))


def _missing(run: Run) -> list[Missing]:
    made, accepted = Counter[LoadKey](), Counter[LoadKey]()
    verdicts, is_judged = accepted_by_run(run.results), run.options.mode is not Mode.MODEL
    for line in run.results.rows(PLAN) if run.results.has(PLAN) else ():
        made[key_of(line)] += 1
        accepted[key_of(line)] += verdicts.get(line["run"], not is_judged)
    found = [Missing(load, made[load.key], accepted[load.key]) for load in loads(run.options)]
    return [one for one in found if one.accepted < one.load.runs]


def _measure_server(
    run: Run, table: TableWriter, server: str, of_server: Sequence[Missing]
) -> None:
    name, samples = f"calibration-{server}", run.results.folder / SAMPLES
    runs = sampling.read(samples) if samples.exists() else ()
    there_are = sum(one.startswith(f"{name}-") for one in runs)
    with measured(run, server) as found:
        asked = found.choices(run.random(name))
        calibrations = (_calibrated(run, found, asked, f"{name}-{n}") for n in count(there_are))
        before = next(calibrations)
        for missing in of_server:
            before = _measure_load(run, found, table, missing, before, calibrations)


def _measure_load(
    run: Run,
    found: Measured,
    table: TableWriter,
    missing: Missing,
    before: Calibration,
    calibrations: Iterator[Calibration],
) -> Calibration:
    """Make the runs that a load lacks. Returns the calibration after the last of them."""
    load, made, accepted = missing.load, missing.made, missing.accepted
    lacking = load.runs - accepted
    run.say(f"{load.server}, {load.part}, {load.fraction:g} of L, runs: {lacking}")
    most = made + int(run.choose(lacking, MOST_TIMES * lacking))
    while accepted < load.runs and made < most:
        together = min(_together(load, before), load.runs - accepted, most - made)
        records = list[RunRecord]()
        try:
            for rep in range(together):
                records.append(_one(run, found, table, load, made + rep, before))
            after = next(calibrations)
        except BaseException:
            _judge(run, load, records, before, None)
            raise
        accepted += _judge(run, load, records, before, after)
        made += together
        before = after
    return before


def _judge(
    run: Run,
    load: Load,
    records: Sequence[RunRecord],
    before: Calibration,
    after: Calibration | None,
) -> int:
    """List the runs. Returns how many count: none if there is no calibration after them."""
    accepted = 0
    lag_p99_s = _lag_p99_s(records) if records and load.part == AS_THE_STUDY else None
    for record in records:
        facts = record.facts(before, after)
        verdict = judge(
            replace(
                facts,
                is_interrupted=facts.is_interrupted or after is None,
                lag_p99_s=lag_p99_s or facts.lag_p99_s,
            )
        )
        append_verdict(run.results.folder, record, verdict)
        accepted += verdict.accepted
    return accepted


def _lag_p99_s(records: Sequence[RunRecord]) -> float | None:
    """The 99th percentile of all runs, because one run of 13 to 38 requests is too short for it."""
    rows = tuple(row for record in records for row in record.rows)
    return replace(records[0], rows=rows).facts().lag_p99_s


def _together(load: Load, found: Calibration) -> int:
    """The number of runs between two calibrations."""
    return max(1, int(CALIBRATED_EVERY_S / _duration_s(load, found.mean_s)))


def _duration_s(load: Load, service_time_s: float) -> float:
    """The duration of a run."""
    return (load.services or load.arrivals / load.fraction) * service_time_s


def _calibrated(run: Run, found: Measured, asked: Choices, name: str) -> Calibration:
    requests = int(run.choose(QUICK_CALIBRATION_REQUESTS, CALIBRATION_REQUESTS))
    return calibrate(
        found.target,
        asked,
        requests=requests,
        run=name,
        folder=run.results.folder,
        seed=run.options.seed,
        say=run.say,
    )


def _one(
    run: Run, found: Measured, table: TableWriter, load: Load, rep: int, before: Calibration
) -> RunRecord:
    name = f"{load.server}-{load.part}-{load.fraction:g}-{rep + 1:02}"
    random = run.random(name)
    schedule = _schedule(load, before.mean_s, found, random)
    _note(table, name, load, before.mean_s, before.variance_s2, before.overhead_s)
    return open_run(
        found.target, schedule, run=name, folder=run.results.folder, say=lambda text: None
    )


def _schedule(load: Load, service_time_s: float, found: Measured, random: Random) -> list[Arrival]:
    rate_per_s = load.fraction / service_time_s
    if load.part == AS_THE_STUDY:
        until_s = load.services * service_time_s
        times_s = poisson_times(rate_per_s, random, until_s=until_s)
        times_s = times_s or [until_s * random.random()]  # a run needs at least one customer
    else:
        times_s = poisson_times(rate_per_s, random, count=load.arrivals)
    return arrivals(times_s, found.requests(random))


def _note(
    table: TableWriter,
    name: str,
    load: Load,
    service_time_s: float,
    variance_s2: float,
    overhead_s: float | None,
) -> None:
    rate_per_s = load.fraction / service_time_s
    table.write(
        run=name,
        server=load.server,
        part=load.part,
        fraction=load.fraction,
        rate_per_s=rate_per_s,
        duration_s=_duration_s(load, service_time_s),
        service_time_s=service_time_s,
        service_variance_s2=variance_s2,
        overhead_s=overhead_s,
    )


# --- without a server ------------------------------------------------------------------------


def _simulate(run: Run, table: TableWriter, of_server: Sequence[Missing]) -> None:
    """Make the runs in a simulated queue, with the study's own service times divided by K."""
    mean_s = UNROUNDED.mean_s / scale_of(run)
    law = with_mean_and_cv(mean_s, UNROUNDED.variation)
    rows = RowFile(run.results.folder / REQUESTS)
    for missing in of_server:
        load = missing.load
        run.say(f"{load.server}, {load.part}, {load.fraction:g} of L, simulated runs: {load.runs}")
        for rep in range(missing.made, load.runs):
            name = f"{load.server}-{load.part}-{load.fraction:g}-{rep + 1:02}"
            random = run.random(name)
            _note(table, name, load, mean_s, (law.cv * mean_s) ** 2, 0.0)
            times_s = _times(load, mean_s, random)
            rows.write(_simulated(name, load, times_s, [law.draw(random) for _ in times_s]))
    rows.close()


def _times(load: Load, mean_s: float, random: Random) -> list[float]:
    rate_per_s = load.fraction / mean_s
    most = load.arrivals or ceil(3 * load.services * load.fraction)
    times_s = poisson_times(rate_per_s, random, count=most)
    until_s = load.services * mean_s
    return [at_s for at_s in times_s if not until_s or at_s < until_s] or times_s[:1]


def _simulated(
    name: str, load: Load, times_s: Sequence[float], services_s: Sequence[float]
) -> Iterator[Row]:
    discipline = replay.fcfs if load.server == FCFS else replay.processor_sharing
    responses_s = discipline(times_s, services_s)
    together = zip(times_s, services_s, responses_s, strict=True)
    for index, (at_s, service_s, response_s) in enumerate(islice(together, None)):
        done_s = at_s + response_s
        start_s = done_s - service_s if load.server == FCFS else at_s
        yield Row(name, index, "model", at_s, at_s, start_s, done_s, service_s, 200, "")
