"""Reports on runs of any load generator: percentiles, and whether one customer forecasts them.

Runs in which no request met another tell the service time: they are one customer's, and calibrate
the forecast. Open runs of nearly the same rate are pooled, and so are closed runs of as many
customers. The forecast of a run sends its very arrivals (or evenly spaced ones, if the file only
sums up) through a queue in order of arrival with times drawn from the calibrations, so it holds for
any arrivals; closed customers are simulated, with the think time that Little's law gives.

A verdict needs five runs and five calibrations. Its interval is that of the differences of runs
from their forecasts, over runs, and of E[S], over calibrations, times what E[S] moves the forecast.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from heapq import heapreplace
from math import hypot, inf, sqrt
from pathlib import Path
from statistics import fmean

import numpy as np

from loadtests.experiments.open_workload_comparison import FORECASTS, percent
from loadtests.generation.rows import Row, RowFile
from loadtests.generation.run import REQUESTS
from loadtests.grouping import grouped
from loadtests.lab.content import Metric, Report, Section, Table
from loadtests.lab.experiment import Experiment, Run
from loadtests.lab.repeated import rows_by_run
from loadtests.lab.response_times import Group, Times, Values
from loadtests.lab.results import Line, Results, ResultsError
from loadtests.lab.sentences import Sentences
from loadtests.lab.tool_outputs import ToolRun, read_all
from loadtests.models import estimates, replay
from loadtests.models.estimates import Interval, Verdict, confidence_interval
from loadtests.models.sequential import LEAST_VALUES

RUNS, QUANTILES = "tool_runs", "quantiles"
DRAWS = 16  # simulations of each run
STEP = 0.01  # by which E[S] is moved to see what the forecast does
WHOLE = 0.03  # X·R this close to a whole number is a number of customers
ROUNDED_S = 0.00016  # requests seem to meet for so long if three times are rounded to 0.1 ms
SAME_RATE = 0.01
EVEN = 0.05  # arrivals whose gaps vary less are a generator's, not those of closed customers
FULL = 0.9  # customers who do not think are in the system for at least this share of the time


@dataclass(frozen=True, slots=True)
class RunLine(Line):
    """Sums up a run. customers: of a closed one; 0: it is open; None: the file does not say.

    workers: of the server. duration_s: from the first start to the last answer. mean_s: the mean
    response time of the requests that succeeded.
    """

    run: str
    tool: str
    workers: int
    requests: int
    failed: int
    duration_s: float
    mean_s: float
    customers: int | None


@dataclass(frozen=True, slots=True)
class QuantileLine(Line):
    """Lists a quantile of a run whose file only sums up."""

    run: str
    share: float
    value_s: float


def read(
    files: Sequence[Path], workers: int, alone: Sequence[Path] = ()
) -> list[tuple[RunLine, ToolRun]]:
    """Read the runs in files. workers: of the server. alone: of one customer. As `read_all`."""
    return [(_line(run, workers), run) for run in read_all(files, alone)]


def _line(run: ToolRun, workers: int) -> RunLine:
    sums = run.requests, run.failed, run.duration_s, run.mean_s
    if run.rows:
        times_s = [row.open_response_s for row in run.rows if row.succeeded]
        if not times_s:
            raise ResultsError(f"{run.name}: no request succeeded")
        start_s = min(row.intended_s for row in run.rows)
        duration_s = max(row.done_s for row in run.rows) - start_s
        sums = len(run.rows), len(run.rows) - len(times_s), duration_s, fmean(times_s)
    return RunLine(run.name, run.tool, workers, *sums, run.customers)


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


# --- runs ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Measured:
    """Holds a run: rows of the requests that succeeded, by their start, or quantiles.

    quantiles: (share, seconds), from the least to the largest.
    """

    line: RunLine
    rows: Sequence[Row]
    quantiles: Sequence[tuple[float, float]]

    @cached_property
    def starts_s(self) -> Values:
        """Return when requests began or should have begun, in order."""
        return np.array([row.intended_s for row in self.rows])

    @cached_property
    def responses_s(self) -> Values:
        """Return the response times of the rows."""
        return np.array([row.open_response_s for row in self.rows])

    @property
    def _ends_s(self) -> Values:
        """Return when requests had ended for certain, however the tool rounds."""
        return self.starts_s + np.maximum(0.0, self.responses_s - ROUNDED_S)

    @property
    def rate_per_s(self) -> float:
        """Return the number of arrivals a second."""
        length_s = float(self.starts_s[-1] - self.starts_s[0]) if self.rows else 0.0
        if length_s > 0:
            return (len(self.rows) - 1) / length_s
        return self.line.requests / self.line.duration_s  # all at once, or only summed up

    @property
    def times(self) -> Times:
        """Return the response times, for percentiles."""
        line = self.line
        sums = line.requests, line.failed, line.duration_s, line.mean_s
        return Times(*sums, self.starts_s, self.responses_s, self.quantiles)

    @cached_property
    def is_alone(self) -> bool:
        """Tell whether no request met another, so that response times are service times."""
        if self.customers == 1:
            return True
        if not self.rows:
            return self.customers == 0 and self.quantiles[-1][1] < 1 / self.rate_per_s
        return bool(np.all(self._ends_s[:-1] <= self.starts_s[1:]))

    @cached_property
    def customers(self) -> int:
        """Return the number of customers of a closed run; 0 of an open one.

        If the file does not say, it is closed if as many are in the system nearly all the time
        and requests do not begin at even intervals.
        """
        if self.line.customers is not None:
            return self.line.customers
        inside = self.line.requests / self.line.duration_s * self.line.mean_s
        if not self.rows:
            whole = max(1, round(inside))
            return whole if abs(inside - whole) < WHOLE * inside else 0
        steps = np.repeat([1, -1], len(self.rows))
        times_s = np.concatenate([self.starts_s, self._ends_s]).round(6)
        most = int(np.cumsum(steps[np.lexsort((steps, times_s))]).max())
        return most if inside >= FULL * most and self.gaps_cv > EVEN else 0

    @property
    def gaps_cv(self) -> float:
        """Return the coefficient of variation of times between arrivals; 0 of fewer than three."""
        gaps_s = np.diff(self.starts_s)
        return float(gaps_s.std() / gaps_s.mean()) if gaps_s.any() else 0.0

    @property
    def think_s(self) -> float:
        """Return Z of closed customers, by Little's law: N = X·(R + Z)."""
        x = (self.line.requests - self.line.failed) / self.line.duration_s
        return max(0.0, self.customers / x - self.line.mean_s)

    def drawn_s(self, rng: np.random.Generator, count: int) -> Values:
        """Draw response times from those of this run."""
        if len(self.responses_s):
            return rng.choice(self.responses_s, count)
        shares, values_s = np.transpose(self.quantiles)
        mean_s = float(np.trapezoid(values_s, shares) / (shares[-1] - shares[0]))
        drawn_s = np.interp(rng.random(count), shares, values_s)
        return np.asarray(drawn_s * (self.line.mean_s / mean_s), dtype=float)

    @property
    def busy_share(self) -> float:
        """Return the share of response times that is service; 1 if the server reports none."""
        services_s = [row.service_s for row in self.rows if row.service_s is not None]
        if not services_s or len(services_s) < len(self.rows):
            return 1.0
        return min(1.0, sum(services_s) / float(self.responses_s.sum()))


def measured_runs(results: Results) -> list[Measured]:
    """Return all runs, in their order."""
    rows = rows_by_run(results)
    quantiles = grouped(results.lines(QUANTILES, QuantileLine), lambda line: line.run)
    return [
        Measured(
            line,
            sorted((r for r in rows[line.run] if r.succeeded), key=lambda row: row.intended_s),
            [(quantile.share, quantile.value_s) for quantile in quantiles.get(line.run, [])],
        )
        for line in results.lines(RUNS, RunLine)
    ]


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

    def forecast_s(self, run: Measured, slower: float = 1.0) -> float:
        """Simulate the mean response time of a run if E[S] is `slower` times as long."""
        rng = np.random.default_rng(run.line.requests)
        busy, means_s = self.busy_share, []
        for _ in range(DRAWS):
            times_s = slower * self.drawn_s(rng, len(run.rows) or run.line.requests)
            queued_s = _simulated_s(run, busy * times_s, rng)
            means_s.append(queued_s + (1 - busy) * float(times_s.mean()))
        return fmean(means_s)


def _simulated_s(run: Measured, services_s: Values, rng: np.random.Generator) -> float:
    """Return the mean response time of a run with these service times, from an empty server."""
    workers = run.line.workers
    if run.customers:
        thinks_s = rng.exponential(run.think_s, len(services_s))
        return _closed_s(services_s, thinks_s, run.customers, workers)
    starts_s = run.starts_s if run.rows else np.arange(len(services_s)) / run.rate_per_s
    if workers > 1:
        return fmean(replay.multi_server(starts_s.tolist(), services_s.tolist(), workers))
    done_s = np.cumsum(services_s)
    idle_s = np.maximum.accumulate(starts_s - done_s + services_s)
    return float(np.mean(idle_s + done_s - starts_s))


def _closed_s(services_s: Values, thinks_s: Values, customers: int, workers: int) -> float:
    """Return the mean response time of customers who ask again after each of these think times."""
    ready_s, free_s, total_s = [0.0] * customers, [0.0] * workers, 0.0
    for service_s, think_s in zip(services_s.tolist(), thinks_s.tolist(), strict=True):
        start_s = ready_s[0]
        done_s = max(start_s, free_s[0]) + service_s
        heapreplace(free_s, done_s)
        heapreplace(ready_s, done_s + think_s)
        total_s += done_s - start_s
    return total_s / len(services_s)


@dataclass(frozen=True)
class Load:
    """Compares runs of the same load with what the calibrations forecast."""

    name: str
    runs: Sequence[Measured]
    calibrated: Calibrated

    @property
    def mean_s(self) -> float:
        """Return the mean response time as measured."""
        return fmean(run.line.mean_s for run in self.runs)

    @cached_property
    def forecasts_s(self) -> list[float]:
        """Return the forecast of each run."""
        return [self.calibrated.forecast_s(run) for run in self.runs]

    @property
    def forecast_s(self) -> float:
        """Return the mean of the forecasts."""
        return fmean(self.forecasts_s)

    @cached_property
    def difference(self) -> Interval:
        """Return measured less forecast; infinitely wide with a single run or calibration."""
        pairs = zip(self.runs, self.forecasts_s, strict=True)
        values = [run.line.mean_s - forecast_s for run, forecast_s in pairs]
        means_s = self.calibrated.means_s
        if min(len(values), len(means_s)) < 2:
            return Interval(fmean(values), inf, 1)
        over_runs = confidence_interval(values)
        quicker_s, slower_s = (
            fmean(self.calibrated.forecast_s(run, 1 + step) for run in self.runs)
            for step in (-STEP, STEP)
        )
        slope = (slower_s - quicker_s) / (2 * STEP)
        of_calibrations = slope * confidence_interval(means_s).half_width / self.calibrated.mean_s
        half = hypot(over_runs.half_width, of_calibrations)
        return Interval(over_runs.estimate, half, min(over_runs.values, len(means_s)))

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

    @property
    def verdict(self) -> Verdict:
        """Tell whether the forecast holds within the tolerance."""
        if not self.is_enough or self.overload:
            return Verdict.NOT_DECIDED
        return estimates.verdict(self.difference, self.forecast_s)


def pooled(runs: Sequence[Measured]) -> Mapping[str, list[Measured]]:
    """Return the runs of each load: closed by customers, open by rates that differ by chance."""
    closed = sorted((run for run in runs if run.customers), key=lambda run: run.customers)
    groups: list[list[Measured]] = []
    for run in sorted((run for run in runs if not run.customers), key=lambda run: run.rate_per_s):
        if not groups or not _is_same_rate(groups[-1], run):
            groups.append([])
        groups[-1].append(run)
    return grouped(closed, lambda run: f"N = {run.customers}") | {
        f"{fmean(run.rate_per_s for run in group):.3g}/s": group for group in groups
    }


def _is_same_rate(group: Sequence[Measured], run: Measured) -> bool:
    mean = fmean(other.rate_per_s for other in group)
    chance = hypot(_rate_error(run), hypot(*map(_rate_error, group)) / len(group))
    return run.rate_per_s - mean <= mean * (2 * chance + SAME_RATE)


def _rate_error(run: Measured) -> float:
    """Return the relative standard error of a rate, by how much the gaps of arrivals vary."""
    return run.gaps_cv / sqrt(max(1, len(run.rows)))


# --- the report ----------------------------------------------------------------------------------

SENTENCES = Sentences("tool_results")


def analyse(results: Results) -> Report:
    """Report the percentiles of all runs, and forecasts if there are calibrations."""
    runs = measured_runs(results)
    alone = [run for run in runs if run.is_alone]
    busy = [run for run in runs if not run.is_alone]
    if not alone or not busy:
        findings = SENTENCES("only_calibrations" if alone else "no_calibration")
        return Report(findings, [], [*_metrics([], Calibrated(alone))] if alone else [])
    calibrated = Calibrated(alone)
    loads = [Load(name, same, calibrated) for name, same in pooled(busy).items()]
    lead = SENTENCES("lead", calibrated=calibrated)
    return Report(
        SENTENCES(
            "findings", loads=loads, forecasts=FORECASTS, percent=percent, least=LEAST_VALUES
        ),
        [Section("The forecast of one customer", lead, [_table(loads)])],
        [*_metrics(loads, calibrated)],
        conclusion=SENTENCES.paragraph(
            "conclusion", verdicts=[FORECASTS[load.verdict] for load in loads]
        ),
    )


def groups(results: Results) -> list[Group]:
    """Return the runs by load, for percentiles."""
    runs = measured_runs(results)
    loads = {"one customer": [run for run in runs if run.is_alone]}
    loads |= pooled([run for run in runs if not run.is_alone])
    return [Group(name, [run.times for run in same]) for name, same in loads.items() if same]


def _table(loads: Sequence[Load]) -> Table:
    return Table.from_items(
        "Measured and forecast",
        loads,
        [
            ("Load", lambda load: load.name),
            ("Tools", lambda load: ", ".join(sorted({run.line.tool for run in load.runs}))),
            ("Runs", lambda load: len(load.runs)),
            ("Measured / ms", lambda load: 1000 * load.mean_s),
            ("Forecast / ms", lambda load: 1000 * load.forecast_s),
            ("Difference", lambda load: percent(load.difference, load.forecast_s)),
            ("The forecast", lambda load: FORECASTS[load.verdict]),
        ],
        "Intervals are over runs and calibrations; the tolerance was fixed before.",
    )


def _metrics(loads: Sequence[Load], calibrated: Calibrated) -> Iterator[Metric]:
    yield Metric("service_time", calibrated.mean_s, "s")
    for load in loads:
        yield Metric(f"response_time[{load.name}]", load.mean_s, "s")
        share = load.difference.times(1 / load.forecast_s)
        yield Metric(f"difference[{load.name}]", share.estimate, "", *share.ends)


def _measure(_: Run) -> None:
    raise ResultsError("tool-results has nothing to measure: bring files with `analyse FILE...`")


EXPERIMENT = Experiment(
    name="tool-results",
    study="",
    title="Measured with other tools",
    reproduces="runs of any load generator",
    about=(
        "Runs that other load generators made: their percentiles, and whether what one customer "
        "alone takes forecasts what many will wait."
    ),
    measure=_measure,
    analyse=analyse,
)
