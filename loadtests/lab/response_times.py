"""Shows response times as percentiles, distribution and course over time, and tests thresholds.

A group has runs of the same load. A percentile is that of all their requests together. Its interval
comes from how much the percentiles of sections differ from it, with Student's t: sections are runs,
or five parts of each if there are fewer than four runs (S. Asmussen and P. W. Glynn, Stochastic
Simulation, 2007, section IV.5). There is none if a section is so short that no request is expected
beyond its percentile. Runs that are only summed up have none until there are four.

A threshold is written like `p99 > 50 ms`, `mean > 0.2 s`, `failed > 1 %` or `rate < 90 /s`. If it
is true of any load, or cannot be judged there, the report is a failure. Runs that count nowhere
because of failed requests are judged, too: otherwise a server would pass in which many fail.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from math import sqrt
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from loadtests.generation.rows import Row, customer_of
from loadtests.lab.content import Cell, Figure, Metric, Section, Table
from loadtests.lab.repeated import judged_runs, rows_by_run
from loadtests.lab.report.drawing import IN_TURN, Axis, Series, figure
from loadtests.lab.results import YES, Results, ResultsError
from loadtests.lab.sentences import Sentences
from loadtests.models import student_t
from loadtests.models.estimates import CONFIDENCE, Interval, confidence_interval
from loadtests.number_format import format_number

SHARES = (0.5, 0.9, 0.95, 0.99)
LEAST_RUNS = 4  # for an interval over runs
SECTIONS = 5  # of each run, if there are fewer
DRAWN_GROUPS, POINTS = 6, 200
BINS = 30  # of a run's time, in thirds
_THRESHOLD = re.compile(
    r"\s*(mean|max|failed|rate|p\d{1,2}(?:\.\d+)?)\s*([<>])\s*(\d+\.?\d*|\.\d+)\s*(ms|s|us|µs|%|/s)?\s*"
)
_EXACT = 1e-9  # shares closer than this are the same
_NUMBER = re.compile(r"-(?:rep)?\d+$")  # of a run among those of one load
_SENTENCES = Sentences("response_times")
_UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6}

Values = NDArray[np.float64]


@dataclass(frozen=True)
class Times:
    """Holds response times of a run. starts_s, responses_s: of requests that succeeded, by start.

    quantiles: (share, seconds) of a run that is only summed up, which has no starts and responses;
    the last one has the share 1.
    """

    requests: int
    failed: int
    duration_s: float
    mean_s: float
    starts_s: Values = field(default_factory=lambda: np.empty(0))
    responses_s: Values = field(default_factory=lambda: np.empty(0))
    quantiles: Sequence[tuple[float, float]] = ()

    @property
    def longest_s(self) -> float:
        return float(max(self.responses_s)) if len(self.responses_s) else self.quantiles[-1][1]

    def quantile_s(self, share: float) -> float | None:
        """Return the time in s that this share of the requests does not exceed.

        None if that is only summed up, and neither this share nor others close around it are known.
        """
        if len(self.responses_s):
            return _quantile_s(self.responses_s, share)
        shares, values_s = (np.array(part) for part in zip(*self.quantiles, strict=True))
        near = shares[np.abs(shares - share) <= max(_EXACT, (1 - share) / 4)]
        if not len(near) or not near[0] - _EXACT <= share <= near[-1] + _EXACT:
            return None
        return float(np.interp(share, shares, values_s))


@dataclass(frozen=True)
class Group:
    """Holds runs of the same load. name: for people and in metrics.

    is_load: they are open, or of more than one customer, so that thresholds judge them. lost: the
    requests of further runs, in which none succeeded.
    """

    name: str
    runs: Sequence[Times]
    is_load: bool = True
    lost: int = 0

    def percentile_s(self, share: float) -> Interval | None:
        """Return the percentile, with its interval if there is one; None if a run lacks it."""
        values_s = [run.quantile_s(share) for run in self.runs]
        known_s = [value_s for value_s in values_s if value_s is not None]
        if len(known_s) < len(values_s):
            return None
        if not all(len(run.responses_s) for run in self.runs):
            interval = confidence_interval(known_s)
            return interval if len(known_s) >= LEAST_RUNS else Interval(interval.estimate)
        parts = [run.responses_s for run in self.runs]
        together_s = _quantile_s(np.concatenate(parts), share)
        if len(parts) < LEAST_RUNS:
            parts = [part for whole in parts for part in np.array_split(whole, SECTIONS)]
        if min(map(len, parts)) * (1 - share) < 1 - _EXACT:
            return Interval(together_s)
        known_s, count = [_quantile_s(part, share) for part in parts], len(parts)
        deviations = sum((value_s - together_s) ** 2 for value_s in known_s)
        t = student_t.quantile((1 + CONFIDENCE) / 2, count - 1)
        half_s = t * sqrt(deviations / (count * (count - 1)))
        return Interval(together_s, half_s, count)

    @property
    def mean_s(self) -> Interval:
        """Return the mean over runs, with an interval from two on."""
        return confidence_interval([run.mean_s for run in self.runs])

    @property
    def longest_s(self) -> float:
        """Return the longest time in s of all runs."""
        return max(run.longest_s for run in self.runs)

    @property
    def failed(self) -> float:
        requests = self.lost + sum(run.requests for run in self.runs)
        return (self.lost + sum(run.failed for run in self.runs)) / requests

    @property
    def rate_per_s(self) -> float:
        """Return the answered requests a second, the mean over runs."""
        return fmean((run.requests - run.failed) / run.duration_s for run in self.runs)


def _quantile_s(values_s: Values, share: float) -> float:
    return float(np.quantile(values_s, share, method="inverted_cdf"))


# --- thresholds ----------------------------------------------------------------------------------


def check_threshold(text: str) -> str:
    """Return `text`, if it is a threshold. Raises ResultsError."""
    match = _THRESHOLD.fullmatch(text)
    kind = "time" if match and match[1] not in {"failed", "rate"} else match and match[1]
    units = {"time": {*_UNITS}, "failed": {"%"}, "rate": {"/s"}}
    if not match or (match[4] or "") not in units[str(kind)]:
        raise ResultsError(
            f"{text!r} is no threshold; write one like 'p99 > 50 ms', 'mean > 0.2 s', "
            "'failed > 1 %' or 'rate < 90 /s'"
        )
    return text


def broken(thresholds: Sequence[str], groups: Sequence[Group]) -> Iterator[str]:
    """Yield a sentence for each threshold and group of which it is true, or not known."""
    for text in thresholds:
        match = _THRESHOLD.fullmatch(check_threshold(text))
        assert match is not None
        name, sign, limit, unit = match[1], match[2], float(match[3]), match[4]
        for group in groups:
            if (measured := _value(group, name)) is None:
                why = f"its files lack {name}" if group.runs else "none of its runs counts"
                yield f"{group.name}: {why}, so {text.strip()!r} is not judged"
                continue
            value = measured / _UNITS.get(unit, 0.01 if unit == "%" else 1.0)
            if value > limit if sign == ">" else value < limit:
                number = format_number(value, ".4g")
                yield f"{group.name}: {name} is {number} {unit}, and it fails if {text.strip()}"


def _value(group: Group, name: str) -> float | None:
    if name == "failed" and (group.runs or group.lost):
        return group.failed
    if not group.runs:
        return None
    if name == "rate":
        return group.rate_per_s
    if name == "mean":
        return group.mean_s.estimate
    if name == "max":
        return group.longest_s
    percentile_s = group.percentile_s(float(name[1:]) / 100)
    return percentile_s.estimate if percentile_s else None


# --- in a report ---------------------------------------------------------------------------------


def section(groups: Sequence[Group]) -> Section:
    """Return the percentiles of all groups, and figures of those with the most requests."""
    rows: list[list[Cell]] = [
        [
            group.name,
            len(group.runs),
            sum(run.requests for run in group.runs),
            group.mean_s.times(1000),
            *(p.times(1000) if p else None for p in map(group.percentile_s, SHARES)),
            1000 * group.longest_s,
            100 * group.failed,
        ]
        for group in groups
    ]
    names = [f"p{100 * share:g} / ms" for share in SHARES]
    columns = ("Load", "Runs", "Requests", "Mean / ms", *names, "Max / ms", "Failed / %")
    sums = any(run.quantiles for group in groups for run in group.runs)
    note = _SENTENCES.paragraph("note", sums=sums)
    parts: list[Table | Figure] = [Table("Percentiles of response times", columns, rows, note)]
    whole = [group for group in groups if any(len(run.responses_s) for run in group.runs)]
    largest = sorted(whole, key=lambda group: -sum(run.requests for run in group.runs))
    if drawn := [group for group in whole if group in largest[:DRAWN_GROUPS]]:
        most = f"the {DRAWN_GROUPS} loads with the most requests"
        loads = "each load" if len(drawn) == len(whole) else most
        parts += [_distribution(drawn, loads), _course(drawn, loads)]
    return Section("Percentiles, distribution and course", parts=parts)


def metrics(groups: Sequence[Group]) -> Iterator[Metric]:
    for group in groups:
        for share in SHARES:
            name = f"response_time_p{100 * share:g}[{group.name}]"
            if percentile_s := group.percentile_s(share):
                yield Metric.of_amount(name, percentile_s, "s")


def _distribution(groups: Sequence[Group], loads: str) -> Figure:
    shares = [at / POINTS for at in range(POINTS + 1)]
    series, rows = [], list[list[Cell]]()
    for group, source in zip(groups, IN_TURN, strict=False):
        values = np.concatenate([run.responses_s for run in group.runs])
        xs = [1000 * float(x) for x in np.quantile(values, shares, method="inverted_cdf")]
        series.append(Series(group.name, source, xs, shares, shape="steps"))
        rows.append([group.name, *(xs[round(POINTS * share)] for share in (0, 0.25, 0.5, 0.75, 1))])
    table = Table("Distribution", ("Load", "Least / ms", "25 %", "50 %", "75 %", "Most / ms"), rows)
    words = _SENTENCES.paragraph("distribution", loads=loads)
    x, y = Axis("response time / ms", is_logarithmic=True), Axis("share of the requests")
    return figure("How response times are distributed", words, x, y, series, table)


def _course(groups: Sequence[Group], loads: str) -> Figure:
    edges, series, rows = [bin_ / BINS for bin_ in range(BINS + 1)], [], list[list[Cell]]()
    for group, source in zip(groups, IN_TURN, strict=False):
        sums_s, counts = _over_time(group)
        means = [_mean_ms(*part) for part in zip(sums_s, counts, strict=True)]
        series.append(Series(group.name, source, edges, [*means, means[-1]], shape="steps"))
        thirds = zip(
            *(values.reshape(3, -1).sum(axis=1) for values in (sums_s, counts)), strict=True
        )
        cells = [(_mean_ms(sum_s, count), int(count)) for sum_s, count in thirds]
        rows.append([group.name, *chain.from_iterable(cells)])
    thirds_of = ("First third / ms", "Second third / ms", "Last third / ms")
    columns = ("Load", *chain.from_iterable((third, "Requests") for third in thirds_of))
    words = _SENTENCES.paragraph("course", loads=loads)
    x, y = Axis("share of the run"), Axis("mean response time / ms")
    return figure("Response time over a run", words, x, y, series, Table("Course", columns, rows))


def _over_time(group: Group) -> tuple[Values, Values]:
    """Return the response times (s) of requests that began in each part of a run, and how many."""
    sums_s, counts = np.zeros(BINS), np.zeros(BINS)
    for run in group.runs:
        if len(run.starts_s):
            length_s = float(run.starts_s[-1]) or 1.0
            bins = np.minimum((run.starts_s / length_s * BINS).astype(int), BINS - 1)
            sums_s += np.bincount(bins, run.responses_s, BINS)
            counts += np.bincount(bins, minlength=BINS)
    return sums_s, counts


def _mean_ms(sum_s: float, count: float) -> float | None:
    return 1000 * float(sum_s / count) if count else None


def groups_of(results: Results, *, with_failed: bool = False) -> list[Group]:
    """Return the open and closed runs of a folder that count, by their names without the number.

    with_failed: and those with too many failed requests, and loads of which no run counts.
    """
    rows, made = rows_by_run(results), defaultdict[tuple[str, bool], list[Times]](list)
    lost = Counter[tuple[str, bool]]()
    for line in judged_runs(results):
        run, workload, reasons = line["run"], line.get("workload"), line.get("reasons") or ""
        if workload not in {"open", "closed"}:
            continue
        own, is_open = rows[run], workload == "open"
        load = _NUMBER.sub("", run), is_open or len(set(map(customer_of, own))) > 1
        times_of_load = made[load]
        is_failed = with_failed and "failed_requests " in reasons and "interrupted " not in reasons
        if line.get("accepted") == YES or is_failed:
            if times := times_of(own, is_open=is_open):
                times_of_load.append(times)
            else:
                lost[load] += len(own)
    return [
        Group(name, times, is_load, lost[name, is_load])
        for (name, is_load), times in made.items()
        if times or with_failed
    ]


def times_of(rows: Sequence[Row], *, is_open: bool) -> Times | None:
    """Return the response times of a run by its rows; None if no request succeeded."""
    good = sorted((row for row in rows if row.succeeded), key=lambda row: row.intended_s)
    if not good:
        return None
    took_s = [row.open_response_s if is_open else row.closed_response_s for row in good]
    starts_s = np.array([row.intended_s for row in good])
    length_s = max(row.done_s for row in good) - starts_s[0]
    counts = len(rows), len(rows) - len(good), float(length_s), sum(took_s) / len(took_s)
    return Times(*counts, starts_s - starts_s[0], np.array(took_s))
