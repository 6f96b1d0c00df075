"""Learns, writes the forecasts down, makes each change and measures it.

`forecasts.csv` has a line for each forecast and when it was made; what is measured comes later, so
a forecast cannot know it. A run that the rules reject is made again, at most three times in all.
"""

import os
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial

from loadtests.experiments.what_if import learning, runs
from loadtests.experiments.what_if.changes import CHANGES, Change
from loadtests.experiments.what_if.forecasting import (
    CUSTOMERS,
    FRACTION,
    QUANTITIES,
    RESPONSE,
    THROUGHPUT,
    Forecast,
    Plan,
    forecasts,
)
from loadtests.experiments.what_if.scoring import FORECASTS, forecasts_of, runs_of
from loadtests.generation.run import RunRecord, judge_run
from loadtests.lab.experiment import Run
from loadtests.lab.repeated import unused_name

ROUNDS, QUICK_ROUNDS = 600, 80
ARRIVALS, QUICK_ARRIVALS = 800, 100


def forecast(run: Run) -> None:
    """Learn what requests demand and write the forecasts, unless the results have them."""
    if run.results.has(FORECASTS):
        return
    learning.learn(run)
    pressed, half_idle = learning.learnt(run.results)
    plan, cores = _plan(run), len(os.sched_getaffinity(0))
    made = datetime.now(UTC).isoformat(timespec="seconds")
    with run.results.table(FORECASTS, ("made", *Forecast.columns())) as table:
        for change in CHANGES:
            run.say(f"forecast: {change.told}")
            stream = partial(runs.stream, run, change.name, count=plan.arrivals)
            random = run.random(change.name)
            for one in forecasts(change, pressed, half_idle, plan, cores, stream, random):
                table.write(made=made, **one.cells())


def _plan(run: Run) -> Plan:
    return Plan(run.choose(QUICK_ROUNDS, ROUNDS), run.choose(QUICK_ARRIVALS, ARRIVALS))


def measure(run: Run) -> None:
    """Write the forecasts, and measure what they are of, as far as the results lack it."""
    forecast(run)
    found = forecasts_of(run.results)
    for change in CHANGES:
        if not all(_counts(run, change, quantity) for quantity in QUANTITIES):
            run.say(f"measured: {change.told}")
            _measure(run, change, FRACTION * found[change.name, THROUGHPUT].middle)


def _measure(run: Run, change: Change, rate_per_s: float) -> None:
    """Make a change, and the runs that it lacks. rate_per_s: of the open run."""
    plan = _plan(run)
    with change.made(run) as service:

        def closed(name: str) -> RunRecord:
            return runs.closed(run, service, name, CUSTOMERS, plan.rounds)

        def opened(name: str) -> RunRecord:
            times_s = runs.stream(run, change.name, rate_per_s, plan.arrivals)
            return runs.opened(run, service, name, times_s)

        _tried(run, change, THROUGHPUT, closed)
        _tried(run, change, RESPONSE, opened)


def _tried(run: Run, change: Change, quantity: str, made: Callable[[str], RunRecord]) -> None:
    """Make a run until one counts. made: makes it, given its name."""

    def make() -> None:
        record = made(unused_name(run.results, f"{change.name}-{quantity}"))
        judge_run(run.results.folder, record)

    runs.tried(lambda: _counts(run, change, quantity), make)


def _counts(run: Run, change: Change, quantity: str) -> bool:
    return any(runs_of(run.results, change.name, quantity).values())
