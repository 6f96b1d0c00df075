"""Reports on runs of any load generator: percentiles, and whether one customer forecasts them.

Runs in which no request met another tell the service time: they are one customer's, and calibrate
the forecast, unless others of their load met. Runs whose names differ by a last number only are
pooled, and so are others, if they are open and their rates differ by no more than chance, or closed
by as many customers whose think times do. The forecast of a run sends its very arrivals (or those
of `Measured.arrivals_s`, if the file only sums up) through a queue in order of arrival with times
drawn from the calibrations, so it holds for any arrivals; closed customers are simulated, with the
think times of `tool_think_times`, and a verdict holds for all laws that these may have. Nothing is
forecast of a run of which neither its file nor its rows say whether it is open or closed.

A verdict needs five runs and five calibrations. Its interval is that of the differences of runs
from their forecasts, over runs, and of E[S], over calibrations, times what E[S] moves the forecast.
"""

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from heapq import heapreplace
from math import hypot, inf
from pathlib import Path
from statistics import fmean
from zlib import crc32

import numpy as np

from loadtests.experiments.open_workload_comparison import FORECASTS, percent
from loadtests.experiments.tool_loads import (
    QUANTILES,
    RUNS,
    Measured,
    QuantileLine,
    RunLine,
    alone_and_loads,
    measured_runs,
)
from loadtests.experiments.tool_think_times import Law, ThinkTimes, laws, longest
from loadtests.generation.rows import RowFile
from loadtests.generation.run import REQUESTS
from loadtests.lab.content import Metric, Report, Section, Table
from loadtests.lab.experiment import Experiment, Run
from loadtests.lab.response_times import Group, Values
from loadtests.lab.results import Results, ResultsError
from loadtests.lab.sentences import Sentences
from loadtests.lab.tool_outputs import read_all
from loadtests.lab.tool_runs import UNKNOWN, ToolRun
from loadtests.models import estimates, replay
from loadtests.models.estimates import LEAST_VALUES, Interval, Verdict, confidence_interval

DRAWS = 16  # simulations of each run
THREADS_S = 0.002  # by which threads of wrk2 begin after each other at most
STEP = 0.01  # by which E[S] is moved to see what the forecast does


def read(
    files: Sequence[Path], workers: int, alone: Sequence[Path] = ()
) -> list[tuple[RunLine, ToolRun]]:
    """Read the runs in files. workers: of the server. alone: of one customer. As `read_all`."""
    return [(_line(run, workers), run) for run in read_all(files, alone)]


def _line(run: ToolRun, workers: int) -> RunLine:
    sums = run.requests, run.failed, run.duration_s, run.mean_s
    if run.rows:
        times_s = [row.open_response_s for row in run.rows if row.succeeded]
        start_s = min(row.intended_s for row in run.rows)
        duration_s = max(row.done_s for row in run.rows) - start_s
        sums = len(run.rows), len(run.rows) - len(times_s), duration_s, fmean(times_s)
    connections = run.threads, run.connections
    return RunLine(run.name, run.tool, workers, *sums, run.customers, *connections)


def write(runs: Sequence[tuple[RunLine, ToolRun]], results: Results) -> None:
    """Write runs that were read into the tables of `results`."""
    with (
        results.table(RUNS, RunLine) as table,
        results.table(QUANTILES, QuantileLine) as quantiles,
        closing(RowFile(results.folder / REQUESTS)) as file,
    ):
        for line, run in runs:
            table.add(line)
            file.write(run.rows)
            for share, value_s in run.quantiles:
                quantiles.add(QuantileLine(run.name, share, value_s))


# --- forecasts -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Calibrated:
    """Forecasts runs from those of one customer."""

    runs: Sequence[Measured]

    @property
    def means_s(self) -> list[float]:
        """Return E[S] of each calibration."""
        return [run.line.mean_s for run in self.runs]

    @property
    def mean_s(self) -> float:
        """Return E[S]."""
        return fmean(self.means_s)

    @property
    def busy_share(self) -> float:
        """Return the share of E[S] that keeps a worker busy."""
        return fmean(run.busy_share for run in self.runs)

    @property
    def cv(self) -> float:
        """Return the coefficient of variation of service times."""
        drawn_s = self.drawn_s(np.random.default_rng(1), 4000)
        return float(drawn_s.std() / drawn_s.mean())

    def drawn_s(self, rng: np.random.Generator, count: int) -> Values:
        """Draw service times from calibrations chosen at random."""
        counts = np.bincount(rng.integers(0, len(self.runs), count), minlength=len(self.runs))
        pairs = zip(self.runs, counts.tolist(), strict=True)
        return rng.permutation(np.concatenate([run.drawn_s(rng, part) for run, part in pairs]))

    def forecast_s(
        self, run: Measured, slower: float = 1.0, law: Law | None = None, threads_s: float = 0.0
    ) -> float:
        """Simulate the mean response time of a run if E[S] is `slower` times as long.

        law: of the think times of closed customers; None of open runs. threads_s: as of
        `Measured.arrivals_s`.
        """
        rng = np.random.default_rng(crc32(repr(run.line).encode()))
        thinks = law(run) if law else None
        busy, means_s = self.busy_share, []
        for _ in range(DRAWS):
            times_s = slower * self.drawn_s(rng, len(run.rows) or run.line.requests)
            queued_s = (
                _closed_s(busy * times_s, thinks, run.line.workers, rng)
                if thinks
                else _open_s(run, busy * times_s, threads_s)
            )
            means_s.append(queued_s + (1 - busy) * float(times_s.mean()))
        return fmean(means_s)


def _open_s(run: Measured, services_s: Values, threads_s: float) -> float:
    """Return the mean response time of a run with these service times, from an empty server."""
    workers = run.line.workers
    starts_s = run.arrivals_s(threads_s)
    if workers > 1:
        return fmean(replay.multi_server(starts_s.tolist(), services_s.tolist(), workers))
    done_s = np.cumsum(services_s)
    idle_s = np.maximum.accumulate(starts_s - done_s + services_s)
    return float(np.mean(idle_s + done_s - starts_s))


def _closed_s(
    services_s: Values, thinks: ThinkTimes, workers: int, rng: np.random.Generator
) -> float:
    """Return the mean response time of customers who ask again after their think times."""
    of_customers = thinks.of_customers(rng, len(services_s))
    ready_s = sorted((begun_s, who) for who, begun_s in enumerate(thinks.begun_s))
    free_s, total_s, is_paced = [0.0] * workers, 0.0, thinks.is_paced
    for service_s in services_s.tolist():
        start_s, who = ready_s[0]
        done_s = max(start_s, free_s[0]) + service_s
        think_s = next(of_customers[who])
        again_s = max(done_s, start_s + think_s) if is_paced else done_s + think_s
        heapreplace(free_s, done_s)
        heapreplace(ready_s, (again_s, who))
        total_s += done_s - start_s
    return total_s / len(services_s)


@dataclass(frozen=True)
class Forecast:
    """Compares runs of the same load with what the calibrations forecast.

    law: of think times; None of open runs. threads_s: as of `Measured.arrivals_s`.
    """

    runs: Sequence[Measured]
    calibrated: Calibrated
    law: Law | None = None
    threads_s: float = 0.0

    def _of_runs_s(self, slower: float = 1.0) -> list[float]:
        how = slower, self.law, self.threads_s
        return [self.calibrated.forecast_s(run, *how) for run in self.runs]

    @cached_property
    def values_s(self) -> list[float]:
        """Return the forecast of each run."""
        return self._of_runs_s()

    @property
    def mean_s(self) -> float:
        """Return the mean of the forecasts."""
        return fmean(self.values_s)

    @cached_property
    def difference(self) -> Interval:
        """Return measured less forecast; infinitely wide with a single run or calibration."""
        pairs = zip(self.runs, self.values_s, strict=True)
        values = [run.line.mean_s - forecast_s for run, forecast_s in pairs]
        means_s = self.calibrated.means_s
        if min(len(values), len(means_s)) < 2:
            return Interval(fmean(values), inf, 1)
        over_runs = confidence_interval(values)
        quicker_s, slower_s = (fmean(self._of_runs_s(1 + step)) for step in (-STEP, STEP))
        slope = (slower_s - quicker_s) / (2 * STEP)
        of_calibrations = slope * confidence_interval(means_s).half_width / self.calibrated.mean_s
        half = hypot(over_runs.half_width, of_calibrations)
        return Interval(over_runs.estimate, half, min(over_runs.values, len(means_s)))

    @property
    def verdict(self) -> Verdict:
        """Tell whether the forecast holds within the tolerance."""
        return estimates.verdict(self.difference, self.mean_s)


@dataclass(frozen=True)
class Load:
    """Compares runs of the same load with their forecasts."""

    name: str
    runs: Sequence[Measured]
    calibrated: Calibrated

    @property
    def mean_s(self) -> float:
        """Return the mean response time as measured."""
        return fmean(run.line.mean_s for run in self.runs)

    @cached_property
    def forecasts(self) -> list[Forecast]:
        """Return forecasts, several if think times or beginnings of threads are not known."""
        known = self.runs, self.calibrated
        if self.runs[0].customers:
            return [Forecast(*known, law) for law in laws(self.runs)]
        has_threads = any(run.line.threads > 1 and not run.rows for run in self.runs)
        later_s = [0.0, THREADS_S] if has_threads else [0.0]
        return [Forecast(*known, threads_s=threads_s) for threads_s in later_s]

    @cached_property
    def forecast(self) -> Forecast:
        """Return the forecast that is nearest to what was measured."""
        return min(self.forecasts, key=lambda forecast: abs(forecast.difference.estimate))

    @property
    def is_enough(self) -> bool:
        """Tell whether there are runs and calibrations enough for a verdict."""
        return min(len(self.runs), len(self.calibrated.runs)) >= LEAST_VALUES

    @property
    def overload(self) -> float:
        """Return λE[S] of one worker if the workers have no steady state at this rate; else 0."""
        first, busy_s = self.runs[0], self.calibrated.mean_s * self.calibrated.busy_share
        brought = 0.0 if first.customers else fmean(r.rate_per_s for r in self.runs) * busy_s
        return brought if brought >= first.line.workers else 0.0

    @cached_property
    def verdict(self) -> Verdict:
        """Tell whether the forecast holds within the tolerance, by all forecasts alike."""
        if not self.is_enough or self.overload:
            return Verdict.NOT_DECIDED
        verdicts = {forecast.verdict for forecast in self.forecasts}
        if verdicts != {Verdict.DISAGREES}:
            return verdicts.pop() if len(verdicts) == 1 else Verdict.NOT_DECIDED
        every = [*self.forecasts, *self._bounds()]
        sides = {(forecast.verdict, forecast.difference.estimate > 0) for forecast in every}
        return Verdict.DISAGREES if len(sides) == 1 else Verdict.NOT_DECIDED

    def _bounds(self) -> list[Forecast]:
        """Return a forecast that is unlikely but possible: it keeps from saying "does not hold".

        Customers may all ask at once, and threads of wrk2 begin at even intervals, if each loads a
        long script.
        """
        known, first = (self.runs, self.calibrated), self.runs[0]
        if first.customers:
            return [Forecast(*known, law) for law in longest(self.runs)]
        if len(self.forecasts) == 1:
            return []
        turn_s = first.line.connections / first.rate_per_s
        return [Forecast(*known, threads_s=turn_s / first.line.threads)]

    @property
    def apart_s(self) -> list[float]:
        """Return the forecasts, from the least, if their differences keep it from a verdict."""
        if (
            not self.is_enough
            or self.verdict is not Verdict.NOT_DECIDED
            or len(self.forecasts) == 1
        ):
            return []
        return sorted(forecast.mean_s for forecast in self.forecasts)


# --- the report ----------------------------------------------------------------------------------

SENTENCES = Sentences("tool_results")


def analyse(results: Results) -> Report:
    """Report the percentiles of all runs, and forecasts if there are calibrations."""
    alone, made = alone_and_loads(measured_runs(results))
    busy = {name: same for name, same in made.items() if same[0].customers != UNKNOWN}
    unknown = sorted(run.line.run for name in made.keys() - busy for run in made[name])
    of_unknown = SENTENCES("unknown", runs=unknown)
    if not alone or not busy:
        of_all = "no_calibration" if not alone else "only_calibrations"
        findings = [*(SENTENCES(of_all) if busy or not unknown else []), *of_unknown]
        return Report(findings, [], [*_metrics([], Calibrated(alone))] if alone else [])
    calibrated = Calibrated(alone)
    loads = [Load(name, same, calibrated) for name, same in busy.items()]
    lead = SENTENCES("lead", calibrated=calibrated)
    findings = SENTENCES(
        "findings", loads=loads, forecasts=FORECASTS, percent=percent, least=LEAST_VALUES
    )
    return Report(
        [*findings, *of_unknown],
        [Section("The forecast of one customer", lead, [_table(loads)])],
        [*_metrics(loads, calibrated)],
        conclusion=SENTENCES.paragraph(
            "conclusion", verdicts=[FORECASTS[load.verdict] for load in loads]
        ),
    )


def groups(results: Results) -> list[Group]:
    """Return the runs by load, for percentiles."""
    alone, loads = alone_and_loads(measured_runs(results))
    named = {"one customer": alone, **loads}
    return [Group(name, [run.times for run in same]) for name, same in named.items() if same]


def _table(loads: Sequence[Load]) -> Table:
    return Table.from_items(
        "Measured and forecast",
        loads,
        [
            ("Load", lambda load: load.name),
            ("Tools", lambda load: ", ".join(sorted({run.line.tool for run in load.runs}))),
            ("Runs", lambda load: len(load.runs)),
            ("Measured / ms", lambda load: 1000 * load.mean_s),
            ("Forecast / ms", lambda load: 1000 * load.forecast.mean_s),
            ("Difference", lambda load: percent(load.forecast.difference, load.forecast.mean_s)),
            ("The forecast", lambda load: FORECASTS[load.verdict]),
        ],
        "Intervals are over runs and calibrations; the tolerance was fixed before.",
    )


def _metrics(loads: Sequence[Load], calibrated: Calibrated) -> Iterator[Metric]:
    yield Metric("service_time", calibrated.mean_s, "s")
    for load in loads:
        yield Metric(f"response_time[{load.name}]", load.mean_s, "s")
        share = load.forecast.difference.times(1 / load.forecast.mean_s)
        yield Metric(f"difference[{load.name}]", share.estimate, "", *share.ends)


def _measure(_: Run) -> None:
    raise ResultsError("tool-results has nothing to measure: bring files with `analyse FILE...`")


EXPERIMENT = Experiment(
    name="tool-results",
    study="",
    title="Measured with other tools",
    reproduces="runs of any load generator",
    about=(
        "Runs of other load generators: their percentiles, and whether the service times of one "
        "customer forecast the response times of many."
    ),
    measure=_measure,
    analyse=analyse,
)
