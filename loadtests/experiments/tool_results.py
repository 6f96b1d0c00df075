"""Reports on runs of any load generator: percentiles, and whether one customer forecasts them.

Runs in which no request met another tell the service time: they are one customer's, and calibrate
the forecast. Runs whose names differ by a last number only are pooled, and so are others, if they
are open and their rates differ by no more than chance, or closed by as many customers whose think
times do. The forecast of a run sends its very arrivals (or evenly spaced ones, if the file only
sums up) through a queue in order of arrival with times drawn from the calibrations, so it holds for
any arrivals; closed customers are simulated, with the think time that Little's law gives. Nothing
is forecast of a run of which neither its file nor its rows say whether it is open or closed.

A verdict needs five runs and five calibrations. Its interval is that of the differences of runs
from their forecasts, over runs, and of E[S], over calibrations, times what E[S] moves the forecast.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from heapq import heapreplace
from math import hypot, inf, sqrt
from pathlib import Path
from statistics import NormalDist, fmean
from zlib import crc32

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
from loadtests.lab.tool_outputs import read_all
from loadtests.lab.tool_runs import UNKNOWN, ToolRun
from loadtests.models import estimates, replay
from loadtests.models.estimates import Interval, Verdict, confidence_interval
from loadtests.models.sequential import LEAST_VALUES
from loadtests.number_format import format_number

RUNS, QUANTILES = "tool_runs", "quantiles"
DRAWS = 16  # simulations of each run
STEP = 0.01  # by which E[S] is moved to see what the forecast does
ROUNDED_S = 0.00016  # requests seem to meet for so long if three times are rounded to 0.1 ms
SAME = 0.005  # standard error of rates and cycles beside that of chance
SPLIT = 0.999  # runs differ by more than chance if so few that do not would differ as much
EVEN = 0.05  # arrivals whose gaps vary less are a generator's, not those of closed customers
FULL = 0.9  # customers who do not think are in the system for at least this share of the time


@dataclass(frozen=True, slots=True)
class RunLine(Line):
    """Sums up a run. customers: of a closed one; 0: it is open; None, UNKNOWN: as of `ToolRun`.

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
        """Return the number of customers of a closed run; 0 of an open one; or UNKNOWN.

        If the file does not say, rows show a closed run: as many are in the system nearly all the
        time, and requests do not begin at even intervals.
        """
        said = self.line.customers
        if said is not None and said != UNKNOWN:
            return said
        if not self.rows:
            return UNKNOWN
        inside = self.line.requests / self.line.duration_s * self.line.mean_s
        steps = np.repeat([1, -1], len(self.rows))
        times_s = np.concatenate([self.starts_s, self._ends_s]).round(6)
        most = int(np.cumsum(steps[np.lexsort((steps, times_s))]).max())
        return most if inside >= FULL * most and self.gaps_cv > EVEN else said or 0

    @property
    def gaps_cv(self) -> float:
        """Return the coefficient of variation of times between arrivals; 1 if not known."""
        gaps_s = np.diff(self.starts_s)
        return float(gaps_s.std() / gaps_s.mean()) if gaps_s.any() else float(not self.rows)

    @property
    def think_s(self) -> float:
        """Return Z of closed customers, by Little's law: N = X·(R + Z)."""
        return max(0.0, self.cycle_s - self.line.mean_s)

    @property
    def cycle_s(self) -> float:
        """Return R + Z of closed customers."""
        return self.customers * self.line.duration_s / (self.line.requests - self.line.failed)

    @property
    def load(self) -> tuple[float, float]:
        """Return what tells loads apart and its standard error: the rate, or Z of closed runs."""
        root = sqrt(max(1, self.line.requests))
        if self.customers > 0:
            return self.think_s, hypot(self.think_s / root, SAME * self.cycle_s)
        return self.rate_per_s, self.rate_per_s * hypot(self.gaps_cv / root, SAME)

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
        rng = np.random.default_rng(crc32(repr(run.line).encode()))
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
        begun_s = run.starts_s[: run.customers].tolist() or [0.0] * run.customers
        return _closed_s(services_s, thinks_s, begun_s, workers)
    starts_s = run.starts_s if run.rows else np.arange(len(services_s)) / run.rate_per_s
    if workers > 1:
        return fmean(replay.multi_server(starts_s.tolist(), services_s.tolist(), workers))
    done_s = np.cumsum(services_s)
    idle_s = np.maximum.accumulate(starts_s - done_s + services_s)
    return float(np.mean(idle_s + done_s - starts_s))


def _closed_s(services_s: Values, thinks_s: Values, begun_s: list[float], workers: int) -> float:
    """Return the mean response time of customers who ask again after each of these think times.

    begun_s: when each asks first, in order.
    """
    ready_s, free_s, total_s = begun_s, [0.0] * workers, 0.0
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
    """Return the runs of each load.

    Open ones are of nearly one rate, closed ones of as many customers with nearly one think time.
    Chance may hide a difference, so runs of different names are apart, if two or more differ by a
    last number only, or the name has a decimal number, as of a rate.
    """
    sets = grouped(runs, lambda run: (run.customers, _LAST_NUMBER.sub("", run.line.run)))
    is_named = {key: len(same) > 1 or bool(_RATE.search(key[1])) for key, same in sets.items()}
    named = [same for key, same in sets.items() if is_named[key]]
    others = [same[0] for key, same in sets.items() if not is_named[key]]
    groups = [*named, *grouped(others, lambda run: run.customers).values()]
    loads = sorted(
        (load for group in groups for load in _split(sorted(group, key=lambda run: run.load))),
        key=lambda load: (load[0].customers, _mean(load)),
    )
    names = [_name(load) for load in loads]
    return {
        f"{name} ({min(run.line.run for run in load)} …)" if names.count(name) > 1 else name: load
        for name, load in zip(names, loads, strict=True)
    }


_RATE = re.compile(r"\d\.\d")
_LAST_NUMBER = re.compile(
    r"(?<!\d)(?<!\d\.)[-_. ]*(rep|run)?[-_. ]*\d*(\.[a-z]\w*)?$", re.IGNORECASE
)


def _mean(runs: Sequence[Measured]) -> float:
    return fmean(run.load[0] for run in runs)


def _name(runs: Sequence[Measured]) -> str:
    customers, mean = runs[0].customers, _mean(runs)
    if customers > 0:
        thinks = f", Z = {format_number(mean, '.3g')} s" * (mean > EVEN * runs[0].cycle_s)
        return f"N = {customers}{thinks}"
    return f"{format_number(mean, '.3g')}/s" + (" (open or closed)" if customers == UNKNOWN else "")


def _split(runs: list[Measured]) -> list[list[Measured]]:
    """Return runs, in the order of their loads, in parts that differ by more than chance.

    They are parted where that leaves the least squares, and these parts again.
    """
    if _squares(runs) <= _most_squares(len(runs) - 1):
        return [runs]
    parts = [(runs[:at], runs[at:]) for at in range(1, len(runs))]
    return [
        load
        for part in min(parts, key=lambda two: sum(map(_squares, two)))
        for load in _split(part)
    ]


def _squares(runs: Sequence[Measured]) -> float:
    """Return the sum of squares of what loads differ from their mean, over their errors."""
    mean = _mean(runs)
    return sum(((value - mean) / error) ** 2 for value, error in (run.load for run in runs))


def _most_squares(freedom: int) -> float:
    """Return the quantile of chi-squared (E. B. Wilson and M. M. Hilferty, 1931)."""
    if not freedom:
        return inf
    part = 2 / (9 * freedom)
    return float(freedom * (1 - part + NormalDist().inv_cdf(SPLIT) * sqrt(part)) ** 3)


# --- the report ----------------------------------------------------------------------------------

SENTENCES = Sentences("tool_results")


def analyse(results: Results) -> Report:
    """Report the percentiles of all runs, and forecasts if there are calibrations."""
    runs = measured_runs(results)
    alone = [run for run in runs if run.is_alone]
    busy = [run for run in runs if not run.is_alone and run.customers != UNKNOWN]
    unknown = [run.line.run for run in runs if not run.is_alone and run.customers == UNKNOWN]
    of_unknown = SENTENCES("unknown", runs=unknown)
    if not alone or not busy:
        of_all = "no_calibration" if not alone else "only_calibrations"
        findings = [*(SENTENCES(of_all) if busy or not unknown else []), *of_unknown]
        return Report(findings, [], [*_metrics([], Calibrated(alone))] if alone else [])
    calibrated = Calibrated(alone)
    loads = [Load(name, same, calibrated) for name, same in pooled(busy).items()]
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
