"""Holds runs of other load generators, and pools them by load."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import hypot, inf, sqrt
from statistics import NormalDist, fmean

import numpy as np

from loadtests.generation.rows import Row
from loadtests.grouping import grouped
from loadtests.lab.repeated import rows_by_run
from loadtests.lab.response_times import Times, Values
from loadtests.lab.results import Line, Results
from loadtests.lab.tool_runs import UNKNOWN
from loadtests.number_format import format_number

RUNS, QUANTILES = "tool_runs", "quantiles"
ROUNDED_S = 0.00016  # requests seem to meet for so long if three times are rounded to 0.1 ms
CONNECTS_S = 0.005  # between the beginnings of wrk2's connections
SAME = 0.005  # standard error of rates and cycles beside that of chance
SPLIT = 0.999  # runs differ by more than chance if so few that do not would differ as much
EVEN = 0.05  # arrivals whose gaps vary less are a generator's, not those of closed customers
FULL = 0.9  # customers who do not think are in the system for at least this share of the time


@dataclass(frozen=True, slots=True)
class RunLine(Line):
    """Sums up a run. customers: of a closed one; 0: it is open; None, UNKNOWN: as of `ToolRun`.

    workers: of the server. duration_s: from the first start to the last answer. mean_s: the mean
    response time of the requests that succeeded. threads, connections: as of `ToolRun`.
    """

    run: str
    tool: str
    workers: int
    requests: int
    failed: int
    duration_s: float
    mean_s: float
    customers: int | None
    threads: int = 1
    connections: int = 1


@dataclass(frozen=True, slots=True)
class QuantileLine(Line):
    """Lists a quantile of a run whose file only sums up."""

    run: str
    share: float
    value_s: float


@dataclass(frozen=True)
class Measured:
    """Holds a run: its requests by their start, or quantiles.

    quantiles: (share, seconds), from the least to the largest.
    """

    line: RunLine
    sent: Sequence[Row]
    quantiles: Sequence[tuple[float, float]]

    @cached_property
    def rows(self) -> Sequence[Row]:
        """Return the requests that succeeded."""
        return [row for row in self.sent if row.succeeded]

    @cached_property
    def starts_s(self) -> Values:
        """Return when requests began or should have begun, in order."""
        return np.array([row.intended_s for row in self.rows])

    def arrivals_s(self, threads_s: float = 0.0) -> Values:
        """Return when requests arrived at an open run, or would have if the file only sums up.

        Then all connections send at even intervals of their own, those of a thread one after the
        other, as the source of wrk2 has it (src/wrk.c, thread_main and usec_to_next_send).
        threads_s: between the beginnings of threads.
        """
        if self.rows:
            return self.starts_s
        threads = min(self.line.threads, self.line.connections)
        of_thread = np.arange(self.line.connections // threads)
        begun_s = np.add.outer(threads_s * np.arange(threads), CONNECTS_S * of_thread).ravel()
        turns = np.arange(-(-self.line.requests // len(begun_s))) * len(begun_s) / self.rate_per_s
        return np.sort(np.add.outer(turns, begun_s), axis=None)[: self.line.requests]

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
            gaps_s = np.diff(self.arrivals_s())
            return self.customers == 0 and self.quantiles[-1][1] < gaps_s.min()
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
            sorted(rows[line.run], key=lambda row: row.intended_s),
            [(quantile.share, quantile.value_s) for quantile in quantiles.get(line.run, [])],
        )
        for line in results.lines(RUNS, RunLine)
    ]


def alone_and_loads(
    runs: Sequence[Measured],
) -> tuple[list[Measured], dict[str, list[Measured]]]:
    """Return the runs of one customer, and those of each load.

    A load keeps its runs in which no request met another: they are the ones that were quick.
    """
    pools = pooled(runs)
    loads = {name: same for name, same in pools.items() if not all(run.is_alone for run in same)}
    met = {run.line.run for same in loads.values() for run in same}
    return [run for run in runs if run.line.run not in met], loads


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
