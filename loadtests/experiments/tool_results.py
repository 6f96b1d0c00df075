"""Reports on runs of any load generator: percentiles, and whether one customer forecasts them.

Runs in which no request met another tell the service time: they are one customer's, and calibrate
the forecast, unless others of their load met. Runs of a load are pooled: they have as many
customers, and nearly one rate. Runs with a row for each request are judged as the lab's own: each
belongs to one calibration, and is compared with the same arrivals at a simulated server that is
empty at first, with service times drawn from its calibration. So the forecast holds for any
arrivals. In place of arrivals, closed customers keep their think times, if rows tell them.

Nothing is forecast of a run that is only summed up, of which nobody knows whether it is open or
closed, or how long its customers thought; a wrong guess would be a wrong verdict.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import cycle, pairwise
from math import sqrt
from statistics import fmean

import numpy as np

from loadtests.experiments.open_workload_comparison import (
    FORECASTS,
    JUDGED,
    REPLICATIONS_FROM,
    Steady,
    percent,
)
from loadtests.experiments.open_workload_loads import OpenRun
from loadtests.generation.calibration import WARM_UP, Calibration, calibration_of
from loadtests.generation.rows import Row, row_file
from loadtests.generation.rules import Facts, judge
from loadtests.generation.run import REQUESTS
from loadtests.grouping import grouped
from loadtests.lab.content import Column, Metric, Report, Section, Table
from loadtests.lab.experiment import Experiment, Run
from loadtests.lab.repeated import rows_by_run
from loadtests.lab.response_times import Group, Times, times_of
from loadtests.lab.results import Line, Results, ResultsError
from loadtests.lab.sentences import Sentences
from loadtests.lab.tool_runs import JOINT, OPEN, UNKNOWN, ToolRun
from loadtests.models import replay
from loadtests.models.estimates import (
    LEAST_VALUES,
    REPLICATIONS,
    Interval,
    Verdict,
    confidence_interval,
)
from loadtests.number_format import format_number

RUNS, QUANTILES = "tool_runs", "quantiles"
NEARLY = 0.05  # rates that differ by less are one load's ...
CHANCE = 3.0  # ... and so are those that differ by fewer standard errors of Poisson arrivals
AT_ONCE = 0.05  # think times beside times of answers, or how they vary, that hardly matter
DEPENDENT = 0.2  # correlation with the answers before from which think times depend on these
_DECIMAL = re.compile(r"\d+\.\d+")


@dataclass(frozen=True, slots=True)
class RunLine(Line):
    """Lists a run. customers: as of `ToolRun`. Its sums are those of `Times`."""

    run: str
    tool: str
    customers: int
    requests: int
    failed: int
    duration_s: float
    mean_s: float


@dataclass(frozen=True, slots=True)
class QuantileLine(Line):
    """Lists a quantile of a run whose file only sums up."""

    run: str
    share: float
    value_s: float


def write(runs: Sequence[ToolRun], results: Results) -> None:
    with (
        results.table(RUNS, RunLine) as table,
        results.table(QUANTILES, QuantileLine) as quantiles,
        closing(row_file(results.folder / REQUESTS)) as file,
    ):
        for run in runs:
            sums = run.times.requests, run.times.failed, run.times.duration_s, run.times.mean_s
            table.add(RunLine(run.name, run.tool, run.customers, *sums))
            file.add(*(replace(row, run=run.name) for row in run.rows))
            for share, value_s in run.times.quantiles:
                quantiles.add(QuantileLine(run.name, share, value_s))


def written_runs(results: Results) -> list[ToolRun]:
    rows, runs = rows_by_run(results), list[ToolRun]()
    quantiles = grouped(results.lines(QUANTILES, QuantileLine), lambda line: line.run)
    for line in results.lines(RUNS, RunLine):
        in_order = sorted(rows[line.run], key=lambda row: row.intended_s)
        known = [(quantile.share, quantile.value_s) for quantile in quantiles.get(line.run, [])]
        sums = line.requests, line.failed, line.duration_s, line.mean_s
        times = times_of(in_order, is_open=line.customers <= OPEN) or Times(*sums, quantiles=known)
        runs.append(ToolRun(line.run, line.tool, times, in_order, line.customers))
    return runs


# --- loads ---------------------------------------------------------------------------------------


def alone_and_loads(runs: Sequence[ToolRun]) -> tuple[list[ToolRun], dict[str, list[ToolRun]]]:
    """Return the runs of one customer, and those of each load.

    A load keeps its runs in which no request met another: they are the ones that were quick.
    """
    pools = pooled(runs)
    loads = {name: same for name, same in pools.items() if not all(run.is_alone for run in same)}
    met = {run.name for same in loads.values() for run in same}
    return [run for run in runs if run.name not in met], loads


def pooled(runs: Sequence[ToolRun]) -> dict[str, list[ToolRun]]:
    """Return the runs of each load: as many customers, and nearly one rate.

    A decimal number in their names, as of a nominal rate, tells loads apart that chance may hide.
    """
    nominal = grouped(runs, lambda run: (run.customers, (_DECIMAL.findall(run.name) or [""])[-1]))
    load_of = dict[str, str]()
    for same in nominal.values():
        in_order = sorted(same, key=lambda run: run.rate_per_s)
        ends = [at for at in range(1, len(same)) if _are_apart(*in_order[at - 1 : at + 1])]
        for first, end in pairwise([0, *ends, len(same)]):
            part = in_order[first:end]
            load_of |= {run.name: _name(part) for run in part}
    pools = grouped(runs, lambda run: load_of[run.name])
    return dict(sorted(pools.items(), key=lambda item: item[1][0].rate_per_s))


def _are_apart(slower: ToolRun, faster: ToolRun) -> bool:
    chance = CHANCE / sqrt(min(slower.times.requests, faster.times.requests))
    return faster.rate_per_s > slower.rate_per_s * (1 + max(NEARLY, chance))


def _name(runs: Sequence[ToolRun]) -> str:
    customers = runs[0].customers
    rate = f"{format_number(fmean(run.rate_per_s for run in runs), '.3g')}/s"
    if customers == UNKNOWN:
        return f"{rate} (open or closed)"
    return rate if customers == OPEN else f"N = {customers}, {rate}"


def lacks(run: ToolRun) -> str:
    """Return what keeps a run from a forecast, a word of the template; "" if nothing does."""
    if not run.rows:
        return "rows"
    if not judge(Facts(run.times.requests, run.times.failed)).accepted:
        return "answers"
    if run.tool == JOINT:
        return "all"
    if run.customers == UNKNOWN:
        return "customers"
    return "" if run.customers <= 1 or _tells_think_times(run) else "think times"


def _tells_think_times(run: ToolRun) -> bool:
    """Tell whether think times are known, and do not depend on the answer before, as at a pace."""
    if len(run.of_customers) != run.customers:
        return False
    pairs = [
        (a.closed_response_s, b.sent_s - a.done_s)
        for own in run.of_customers
        for a, b in pairwise(own)
    ]
    took_s, thought_s = np.array(pairs or [(1.0, 0.0)]).T
    think_s = thought_s.mean()
    if think_s <= AT_ONCE * took_s.mean() or thought_s.std() <= AT_ONCE * think_s:
        return True
    chance = CHANCE / sqrt(len(pairs))  # of times that do not depend on each other
    with np.errstate(invalid="ignore", divide="ignore"):  # of constant times
        return not abs(np.corrcoef(took_s, thought_s)[0, 1]) > max(DEPENDENT, chance)


# --- forecasts -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class ReplayedRun(OpenRun):
    """Compares a run with the same arrivals, or the same customers, at a server empty at first.

    of_customers: the rows of each closed customer; empty of an open run.
    """

    of_customers: Sequence[Sequence[Row]] = ()

    @property
    def warm_up(self) -> int:
        """Return 0: the simulated server begins in the same way."""
        return 0

    @property
    def responses_s(self) -> list[float]:
        """Return response times (s), of closed customers from sending."""
        if not self.of_customers:
            return super().responses_s
        return [row.closed_response_s for row in self.rows]

    def replayed_s(self, services_s: Sequence[float]) -> list[float]:
        """Return the response times (s) of the same arrivals or customers at the model's server."""
        if not self.of_customers:
            return super().replayed_s(services_s)
        thinks_s = [
            [max(0.0, b.sent_s - a.done_s) + self.delay_s for a, b in pairwise(own)]
            for own in self.of_customers
        ]
        begun_s = [own[0].sent_s for own in self.of_customers]
        times_s = replay.closed(begun_s, thinks_s, services_s, self.servers)
        return [time_s + self.delay_s for time_s in times_s]


@dataclass(frozen=True)
class Load(Steady):
    """Compares the runs of a load with their forecasts."""

    runs: Sequence[ReplayedRun]

    @property
    def name(self) -> str:
        return self.key.part

    @cached_property
    def predicted(self) -> float:
        """Return the forecast, for whatever arrivals there were."""
        return fmean(self.means(run.forecast_s.tolist() for run in self.runs))

    @property
    def measured_s(self) -> Interval:
        return confidence_interval([run.mean(run.responses_s) for run in self.runs])

    @property
    def forecast_s(self) -> float:
        return fmean(run.mean(run.forecast_s) for run in self.runs)

    @property
    def is_enough(self) -> bool:
        """Tell whether there are runs and calibrations enough for a verdict."""
        return not self._lacking(self.difference)

    @property
    def overload(self) -> float:
        """Return λE[S] if the workers have no steady state at this rate; else 0."""
        run = self.runs[0]
        return 0.0 if run.of_customers or run.is_stable else run.rate_per_s * run.busy_s

    @property
    def forecast(self) -> Verdict:
        return Verdict.NOT_DECIDED if self.overload else super().forecast


def _load(name: str, runs: Sequence[ToolRun], alone: Sequence[ToolRun], workers: int) -> Load:
    """Return a load, each of whose runs belongs to a calibration, in turn."""
    rate_per_s, replayed = fmean(run.rate_per_s for run in runs), list[ReplayedRun]()
    for run, before in zip(runs, cycle(alone), strict=False):
        calibration, is_closed = _calibration(before), run.customers != OPEN
        delay_s = calibration.overhead_s or 0.0
        share = rate_per_s * (calibration.mean_s - delay_s) / workers
        replayed.append(
            ReplayedRun(
                run=run.name,
                server=run.tool,
                part=name,
                fraction=0.0 if is_closed else share,
                rate_per_s=rate_per_s,
                duration_s=run.times.duration_s,
                calibration=before.name,
                service_time_s=calibration.mean_s,
                service_variance_s2=calibration.variance_s2,
                overhead_s=calibration.overhead_s,
                delay_s=delay_s,
                servers=workers,
                is_accepted=True,
                rows=run.rows,
                before=_counted(before),
                of_customers=run.of_customers if is_closed else (),
            )
        )
    return Load(replayed)


def _counted(run: ToolRun) -> list[Row]:
    return [row for row in run.rows if row.succeeded][WARM_UP:]


def _calibration(run: ToolRun) -> Calibration:
    return calibration_of(run.name, _counted(run))


# --- the report ----------------------------------------------------------------------------------

SENTENCES = Sentences("tool_results")


def analyse(results: Results) -> Report:
    """Report the percentiles of all runs, and forecasts if there are calibrations."""
    runs, workers = written_runs(results), results.manifest()["workers"]
    lacking, (of_one, pools) = grouped(runs, lacks), alone_and_loads(runs)
    fit = {run.name for run in lacking.pop("", [])}
    alone = [run for run in of_one if run.name in fit]
    counted = {name: [run for run in same if run.name in fit] for name, same in pools.items()}
    loads = [_load(name, same, alone, workers) for name, same in counted.items() if same and alone]
    findings = SENTENCES(
        "findings",
        loads=loads,
        has_loads=any(counted.values()),
        alone=alone,
        lacking={lack: sorted(run.name for run in its_runs) for lack, its_runs in lacking.items()},
        forecasts=FORECASTS,
        percent=percent,
        least=LEAST_VALUES,
        replications=REPLICATIONS,
        replications_from=REPLICATIONS_FROM,
    )
    means_s = [_calibration(run).mean_s for run in alone]
    metrics, title = [*_metrics(loads, means_s)], "The forecast from one customer"
    if not loads:
        return Report(findings, [], metrics)
    verdicts = [FORECASTS[load.forecast] for load in loads]
    table = Table.from_items(title, loads, _COLUMNS, SENTENCES.paragraph("note"))
    lead = SENTENCES("lead", means_s=means_s, tools={run.tool for run in runs})
    return Report(
        findings,
        [Section(title, lead, [table])],
        metrics,
        conclusion=SENTENCES.paragraph("conclusion", verdicts=verdicts),
    )


_COLUMNS: Sequence[Column[Load]] = [
    ("Load", lambda load: load.name),
    ("Tools", lambda load: ", ".join(sorted({run.server for run in load.runs}))),
    *JUDGED,
]


def groups(results: Results) -> list[Group]:
    alone, loads = alone_and_loads(written_runs(results))
    named = {"one customer": alone, **loads}
    return [Group(name, [run.times for run in same]) for name, same in named.items() if same]


def _metrics(loads: Sequence[Load], means_s: Sequence[float]) -> Iterator[Metric]:
    if means_s:
        yield Metric.of_amount("service_time", confidence_interval(means_s), "s")
    for load in loads:
        yield Metric.of_amount(f"response_time[{load.name}]", load.measured_s, "s")
        share = load.difference.times(1 / load.predicted)
        yield Metric(f"difference[{load.name}]", share.estimate, "", *share.ends)


def _measure(_: Run) -> None:
    raise ResultsError("tool-results has nothing to measure: bring files with `analyse FILE...`")


EXPERIMENT = Experiment.described("tool-results", "", _measure, analyse)
