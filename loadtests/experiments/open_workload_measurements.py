"""Starts the servers under test, and measures each in turns of a calibration and some runs.

The servers are the study's way of storing and answering, and our own scan. Each has one worker that
takes one request at a time. Blocks are really read, checked and filtered; with that, the study's
blocks take (46 + 39)/K ms each, and ours as long for each block read from a file. The service
leaves the generator a core, if there are two, and gives way to it on all of them.

Calibrations and loads ask what comes from one source, so that both are of the same distribution.
Runs between two calibrations that differ are rejected together, so there are only a few runs
between two; and at most a fifth of those of the steady state, because runs that share a calibration
are one replication. A rejected run is made again with new arrivals, whatever the reason, until as
many runs count as planned; at most twice as many are made as were lacking at the start or at a
resumption. Response times play no part in this.

L is 1/E[S] where one request is served at a time. Of a service on another machine it is the highest
throughput of closed runs, made once before its open runs, as a multiple of 1/E[S]; so L follows the
calibrations. Rates beyond the limit of the load generator (`lab.generator_check`) are not sent, and
`refused.csv` lists them.

Beside the raw rows this writes `plan.csv`, a line for each open run (`loads.RunLine`).
"""

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice, repeat
from math import ceil, hypot
from random import Random
from statistics import fmean
from time import monotonic

from loadtests.chains import generated, imported
from loadtests.experiments import open_workload_loads as loads
from loadtests.experiments.open_workload_loads import STEADY, Load, RunLine
from loadtests.generation.calibration import WARM_UP, Calibration
from loadtests.generation.run import RunRecord, Target, judge_run
from loadtests.generation.schedule import Request, arrivals
from loadtests.grouping import grouped
from loadtests.lab import generator_check
from loadtests.lab.experiment import Run
from loadtests.lab.repeated import accepted_by_run, reasons_by_run, unused_name
from loadtests.lab.results import TableWriter
from loadtests.machine import at_most_cores
from loadtests.models.estimates import LEAST_VALUES, TOLERANCE, confidence_interval
from loadtests.models.open_queue import ONE, Queue
from loadtests.models.random_times import poisson_times
from loadtests.models.sample_statistics import quantile
from loadtests.processes import ProgramFailed, running
from loadtests.questions import FEW_BLOCKS, Flight, sample
from loadtests.servers import study
from loadtests.servers.service import as_in_the_study

SCALE = 500.0
FLIGHTS, QUICK_FLIGHTS = 60_000, 40_000  # with fewer, a scan is too quick to be measured
RUN_BLOCKS = 2  # read at once; the study's 19 of 522 would be most of so short a chain
POLITELY = ("nice",)  # a service that computes all the time would make the generator late

Requests = Callable[[Random], Iterator[Request]]
"""Makes endless requests from a random generator."""


@dataclass(frozen=True, slots=True)
class Measured:
    """Holds a running server, and makes the requests to it.

    queue: its model. saturated: returns by a calibration how many requests it serves at once when
    all its workers are busy; None: one.
    """

    target: Target
    requests: Requests
    queue: Queue = ONE
    saturated: Callable[[Calibration], float] | None = None

    def choices(self, random: Random, count: int) -> Mapping[str, list[Request]]:
        """Return the next `count` requests by kind, for closed runs."""
        return grouped(islice(self.requests(random), count), lambda request: request.kind)


def all_days(flights: Sequence[Flight]) -> str:
    """Return the interval of the days of flights, as parameters."""
    days = sorted(str(flight["FL_DATE"]) for flight in flights)
    return f"INITIAL_DATE={days[0]}&FINAL_DATE={days[-1]}"


def scans(flights: Sequence[Flight], _: Random) -> Iterator[Request]:
    """Yield requests for a scan of the whole chain, the same each time, as in the study."""
    path = f"/flight_counter?{all_days(flights)}&ORIGIN={flights[0]['ORIGIN']}&engine=scan"
    return repeat(Request("scan", path))


@contextmanager
def _study(run: Run) -> Iterator[Measured]:
    folder = run.scratch / "study"
    if not folder.exists():
        study.write_small_chain(folder, study.BLOCKS)
    with study.running(folder, run.log, emulated_disk=run.options.scale or SCALE) as service:
        yield Measured(service, lambda random: repeat(Request("scan", study.FLIGHT_COUNTER)))


@contextmanager
def _scan(run: Run) -> Iterator[Measured]:
    """Run our own scan, with the time of the study's disk divided by K. Raises ProgramFailed."""
    scale = run.options.scale or SCALE
    if scale != int(scale):
        raise ProgramFailed(f"--scale {scale:g}: must be a whole number for the service")
    flights = run.choose(QUICK_FLIGHTS, FLIGHTS)
    ledger = imported(generated(flights), run.scratch / "chain", run.log)
    settings = as_in_the_study(
        ledger.block_bytes,
        max(1, ledger.flights // 1000),
        emulated_disk=int(scale),
        run_blocks=RUN_BLOCKS,
    )
    with ExitStack() as stack:
        with at_most_cores(max(1, len(os.sched_getaffinity(0)) - 1)):
            started = running(ledger.folder, run.log, settings=settings, prefix=POLITELY)
            service = stack.enter_context(started)
        yield Measured(service, partial(scans, sample(service, FEW_BLOCKS)))


Starts = Mapping[str, Callable[[Run], AbstractContextManager[Measured]]]
"""Name -> runs the server of this name until the `with` block ends. Raises ProgramFailed."""
STARTS: Starts = {loads.STUDY: _study, loads.SCAN: _scan}


# --- measuring -----------------------------------------------------------------------------------

CALIBRATION_REQUESTS, QUICK_CALIBRATION_REQUESTS = 200, 60
CALIBRATED_EVERY_S = 200.0
MOST_TIMES = 2  # the most runs to make, as a multiple of those lacking


@dataclass(frozen=True, slots=True)
class Shortfall:
    """Says that a load lacks accepted runs. made: runs so far; lacking: those that are to count."""

    load: Load
    made: int
    lacking: int


def measure(run: Run) -> None:
    """Check the load generator, and make the runs that the results lack, at first all."""
    plan = loads.planned(run.options)
    if not lacks_nothing(run, plan):
        generator_check.check(run)
        measure_loads(run, plan, STARTS)


def lacks_nothing(run: Run, plan: Sequence[Load]) -> bool:
    """Tell whether all runs of the plan were made and count, and say then how there can be more."""
    if shortfalls(run, plan):
        return False
    run.say(
        "no run is missing, so nothing is measured; for more runs, begin a new measurement with "
        "more --minutes or --reps"
    )
    return True


def measure_loads(run: Run, plan: Sequence[Load], starts: Starts) -> None:
    """Make the runs of these loads that the results lack, in order."""
    left = shortfalls(run, plan)
    with run.results.more(loads.PLAN, RunLine) as table:
        for server, own in grouped(left, lambda shortfall: shortfall.load.server).items():
            with starts[server](run) as subject:
                shares = sorted({shortfall.load.fraction for shortfall in own})
                under_test = _UnderTest(run, table, server, subject, shares)
                for n in range(len(own)):
                    under_test.make(left[n:])
            left = left[len(own) :]


def shortfalls(run: Run, plan: Sequence[Load]) -> list[Shortfall]:
    """Return the loads of which the results lack runs, without those that cannot be sent."""
    verdicts = accepted_by_run(run.results)
    refused = {line.key for line in run.results.lines_if_any(loads.REFUSED, loads.RefusedLine)}
    lines = run.results.lines_if_any(loads.PLAN, RunLine)
    made = Counter(line.key for line in lines)
    accepted = Counter(line.key for line in lines if verdicts.get(line.run, False))
    return [
        Shortfall(load, made[load.key], load.runs - accepted[load.key])
        for load in plan
        if accepted[load.key] < load.runs and load.key not in refused
    ]


def _label(load: Load) -> str:
    return load.key.label + (", as the study" if load.part == loads.AS_THE_STUDY else "")


class _UnderTest:
    """Measures a server that is ready for open runs, and keeps its latest calibration."""

    def __init__(
        self,
        run: Run,
        table: TableWriter[RunLine],
        server: str,
        subject: Measured,
        shares: Sequence[float],
    ) -> None:
        """Calibrate the server and find out its L. shares: of L, that are to be measured."""
        self._run, self._table, self._subject = run, table, subject
        self._calibrations = f"{loads.CALIBRATION}{server}"
        self._requests = run.choose(QUICK_CALIBRATION_REQUESTS, CALIBRATION_REQUESTS)
        self._before = self._calibrated()
        if warning := describe_changes(self._before, subject.queue, shares):
            run.say(warning)
        self._busy_workers = subject.saturated(self._before) if subject.saturated else 1.0

    def _calibrated(self) -> Calibration:
        name = unused_name(self._run.results, self._calibrations)
        choices = self._subject.choices(self._run.random(name), WARM_UP + self._requests)
        given = self._subject.target, choices, name
        generator = self._run.generator()
        return generator.calibrate(*given, requests=self._requests, each_once=True)

    def make(self, left: Sequence[Shortfall]) -> None:
        run, load, made, lacking = self._run, left[0].load, left[0].made, left[0].lacking
        if self._is_refused(load):
            return
        if monotonic() > run.until_s:
            run.say(f"{_label(load)}: not measured, because the time was over")
            return
        run.say(self._progress(left))
        most = made + run.choose(lacking, MOST_TIMES * lacking)
        while lacking > 0 and made < most and monotonic() < run.until_s:
            together = min(self._together(load), lacking, most - made)
            lacking -= self._accepted(load, range(made + 1, made + together + 1))
            made += together
            if why := reasons_by_run(run.results).get(load.name(made)):
                run.say(f"{load.fraction:g} of L: run {made} does not count: {why}")
        if lacking > 0 and monotonic() > run.until_s:
            run.say(f"{_label(load)}: the time is over; `resume` makes the missing runs: {lacking}")

    def _is_refused(self, load: Load) -> bool:
        """Tell whether the load generator cannot send so much, and list the load then."""
        rate_per_s = self._rate_per_s(load)
        limit_per_s = generator_check.limit_per_s(generator_check.last_check(self._run.results))
        if rate_per_s <= limit_per_s:
            return False
        line = loads.RefusedLine(*load.key, rate_per_s, limit_per_s)
        self._run.say(loads.SENTENCES.paragraph("refused", line=line))
        with self._run.results.more(loads.REFUSED, loads.RefusedLine) as table:
            table.add(line)
        return True

    def _progress(self, left: Sequence[Shortfall]) -> str:
        """Say which load comes now, and how long it and all that is left take.

        The time is known for this server; other servers are taken to be as fast. Rejected runs are
        made once more. When the time is over, no new run is begun.
        """
        most_s = max(0.0, self._run.until_s - monotonic())
        times_s = [self._takes_s(shortfall) for shortfall in left]
        first, total = (min(most_s, time_s) / 60 for time_s in (times_s[0], sum(times_s)))
        return (
            f"{_label(left[0].load)}, runs: {left[0].lacking}, about {first:.1f} min of about "
            f"{total + self._run.later_s / 60:.1f} min left in all"
        )

    def _takes_s(self, shortfall: Shortfall) -> float:
        """Return how long (s) this load takes, with a calibration after each few runs."""
        calibrations = ceil(shortfall.lacking / self._together(shortfall.load))
        runs_s = shortfall.lacking * self._duration_s(shortfall.load)
        return runs_s + calibrations * self._requests * self._before.mean_s

    def _together(self, load: Load) -> int:
        """Return how many runs two calibrations have between them; a load needs enough of these."""
        at_most = load.runs // LEAST_VALUES if load.part == STEADY else load.runs
        return max(1, min(at_most, int(CALIBRATED_EVERY_S / self._duration_s(load))))

    def _rate_per_s(self, load: Load) -> float:
        return load.fraction * self._busy_workers / self._before.mean_s

    def _duration_s(self, load: Load) -> float:
        services = load.services or load.arrivals / load.fraction / self._busy_workers
        return services * self._before.mean_s

    def _accepted(self, load: Load, numbers: range) -> int:
        """Make these runs and a calibration after them. Returns how many count."""
        before, after, records = self._before, None, list[RunRecord]()
        try:
            for number in numbers:
                records.append(self._open_run(load.name(number), load))
            after = self._before = self._calibrated()
        finally:
            accepted = self._judged(load, records, before, after)
        return accepted

    def _open_run(self, name: str, load: Load) -> RunRecord:
        """Make an open run, with at least one arrival, and list it in the plan."""
        random, before = self._run.random(name), self._before
        line = RunLine(
            run=name,
            server=load.server,
            part=load.part,
            fraction=load.fraction,
            rate_per_s=self._rate_per_s(load),
            duration_s=self._duration_s(load),
            calibration=before.run,
            service_time_s=before.mean_s,
            service_variance_s2=before.variance_s2,
            overhead_s=before.overhead_s,
            delay_s=max(0.0, before.overhead_s or 0.0) if self._subject.saturated else 0.0,
            servers=self._subject.queue.servers,
        )
        if load.arrivals:
            times_s = poisson_times(line.rate_per_s, random, count=load.arrivals)
        else:
            times_s = poisson_times(line.rate_per_s, random, until_s=line.duration_s)
            times_s = times_s or [line.duration_s * random.random()]
        schedule = arrivals(times_s, self._subject.requests(random))
        self._table.add(line)
        return self._run.generator(is_quiet=True).open(self._subject.target, schedule, name)

    def _judged(
        self,
        load: Load,
        records: Sequence[RunRecord],
        before: Calibration,
        after: Calibration | None,
    ) -> int:
        """List the runs. Returns how many count: none if there is no calibration after them.

        A run of the study's length has too few requests for a 99th percentile of its own.
        """
        lags_s = [row.lag_s for record in records for row in record.rows]
        accepted = 0
        for record in records:
            facts = record.facts(before, after)
            if load.part == loads.AS_THE_STUDY and lags_s:
                facts = replace(facts, lag_p99_s=quantile(lags_s, 0.99), lag_mean_s=fmean(lags_s))
            facts = replace(facts, is_interrupted=facts.is_interrupted or after is None)
            accepted += judge_run(self._run.results.folder, record, facts)
        return accepted


def describe_changes(calibration: Calibration, queue: Queue, fractions: Sequence[float]) -> str:
    """Say which loads cannot be decided if E[S] goes on changing so; "" if all can.

    A forecast moves by more than E[S] does, and the more the busier the server is.
    """
    half = len(calibration.times_s) // 2
    if half < 2:
        return ""
    earlier, later = calibration.times_s[:half], calibration.times_s[half:]
    chance_s = hypot(*(confidence_interval(part).half_width for part in (earlier, later)))
    change = max(0.0, abs(fmean(later) - fmean(earlier)) - chance_s) / calibration.mean_s
    cv = calibration.variance_s2**0.5 / calibration.mean_s

    def moved(fraction: float) -> float:
        forecast, changed = (
            queue.steady(share * queue.servers, 1.0, cv).response_time_s
            for share in (fraction, min(fraction * (1 + change), 0.999))
        )
        return (1 + change) * changed / forecast - 1

    decided = [fraction for fraction in fractions if moved(fraction) <= TOLERANCE]
    if len(decided) == len(fractions):
        return ""
    highest = fractions[-1]
    words = {"change": change, "highest": highest, "moved": moved(highest), "decided": decided}
    return loads.SENTENCES.paragraph("changes", **words)
