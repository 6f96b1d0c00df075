"""Learns, writes the forecasts down, makes each change and measures it.

`forecasts.csv` has a line for each forecast and when it was made; what is measured comes later, so
a forecast cannot know it. A run that the rules reject is made again, at most three times in all.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from itertools import islice

from loadtests.experiments.open_workload.servers import Measured
from loadtests.experiments.what_if import learning
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
from loadtests.experiments.what_if.learning import BUSY, HALF_IDLE, TRIES
from loadtests.experiments.what_if.scoring import CLOSED_WARM_UP, FORECASTS, forecasts_of, runs_of
from loadtests.generation.run import RunRecord, closed_run, judge_run, open_run
from loadtests.generation.schedule import arrivals, poisson_times
from loadtests.lab.experiment import Run

ROUNDS, QUICK_ROUNDS = 600, 80
ARRIVALS, QUICK_ARRIVALS = 800, 100
QUESTIONS_A_ROUND = 40  # so many different ones that hardly any is asked twice


def forecast(run: Run) -> None:
    """Learn what requests demand and write the forecasts, unless the results have them."""
    if run.results.has(FORECASTS):
        return
    learning.learn(run)
    busy, half_idle = (learning.learnt(run.results, how) for how in (BUSY, HALF_IDLE))
    made = datetime.now(UTC).isoformat(timespec="seconds")
    with run.results.table(FORECASTS, ("made", *Forecast.columns())) as table:
        for change in CHANGES:
            run.say(f"forecast: {change.told}")
            random = run.random(change.name)
            for one in forecasts(change, busy, half_idle, _plan(run), random):
                table.write(made=made, **one.cells())


def _plan(run: Run) -> Plan:
    return Plan(int(run.choose(QUICK_ROUNDS, ROUNDS)), int(run.choose(QUICK_ARRIVALS, ARRIVALS)))


def measure(run: Run) -> None:
    """Write the forecasts, and measure what they are of, as far as the results lack it."""
    forecast(run)
    found = forecasts_of(run.results)
    for change in CHANGES:
        if all(_counts(run, change, quantity) for quantity in QUANTITIES):
            continue
        run.say(f"measured: {change.told}")
        x = found[change.name, THROUGHPUT].middle
        with change.made(run) as service:
            _tried(run, change, THROUGHPUT, partial(_closed, run, service))
            _tried(run, change, RESPONSE, partial(_open, run, service, x))


def _tried(run: Run, change: Change, quantity: str, made: Callable[[str], RunRecord]) -> None:
    """Make a run until one counts. made: makes it, given its name."""
    begun = len(runs_of(run.results, change.name, quantity))
    for number in range(begun, begun + TRIES):
        if _counts(run, change, quantity):
            return
        record = made(f"{change.name}-{quantity}-{number + 1}")
        judge_run(run.results.folder, record)


def _counts(run: Run, change: Change, quantity: str) -> bool:
    return any(runs_of(run.results, change.name, quantity).values())


def _closed(run: Run, found: Measured, name: str) -> RunRecord:
    rounds = _plan(run).rounds
    random = run.random(name)
    requests = list(islice(found.requests(random), QUESTIONS_A_ROUND * rounds))
    return closed_run(
        found.target,
        {requests[0].kind: requests},
        customers=CUSTOMERS,
        requests=rounds // CUSTOMERS,
        warm_up=CLOSED_WARM_UP,
        run=name,
        folder=run.results.folder,
        seed=run.options.seed,
        say=lambda text: None,
    )


def _open(run: Run, found: Measured, throughput_per_s: float, name: str) -> RunRecord:
    random = run.random(name)
    times_s = poisson_times(FRACTION * throughput_per_s, random, count=_plan(run).arrivals)
    schedule = arrivals(times_s, found.requests(random))
    return open_run(
        found.target, schedule, run=name, folder=run.results.folder, say=lambda text: None
    )
