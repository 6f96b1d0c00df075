"""Learns what requests demand, writes the forecasts down, makes each change and measures it.

Requests are learnt on several occasions, because a machine changes its speed. An occasion starts
each of the services anew. Two customers who ask again at once press it: its worker is never idle
and tells how long requests take then, and how soon it turns to the next. Then one customer asks who
pauses, so that it is idle half of the time: requests take longer, because processor and caches have
turned to other things meanwhile; and the answers tell the parts of it.

`forecasts.csv` has a line for each forecast and when it was made; what is measured comes later, so
a forecast cannot know it. A run that the rules reject is made again, at most three times in all.
"""

import os
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from statistics import fmean

from loadtests.experiments.open_workload import demands
from loadtests.experiments.open_workload.demands import FILES, TRIES, Demands, tried
from loadtests.experiments.open_workload.servers import Measured
from loadtests.experiments.what_if import forecasting
from loadtests.experiments.what_if.forecasting import LEARNT, Change, Demand, Forecast, Occasion
from loadtests.experiments.what_if.scoring import FORECASTS, WARM_UP, runs_of
from loadtests.generation.calibration import turnaround_s
from loadtests.generation.run import RUNS, RunRecord, judge_run
from loadtests.generation.schedule import arrivals
from loadtests.generation.window import closed_window
from loadtests.lab.experiment import Run
from loadtests.lab.one_customer import Recorded
from loadtests.lab.repeated import accepted_by_run, unused_name
from loadtests.lab.results import Line, Results
from loadtests.models.open_queue import Queue
from loadtests.models.random_times import poisson_times
from loadtests.processes import ProgramFailed

OCCASIONS, QUICK_OCCASIONS = 4, 2
PRESSING = 2  # customers, so that one worker is never idle
PRESSED, HALF_IDLE = "pressed", "half-idle"
QUESTIONS_A_ROUND = 40  # so many different ones that hardly any is asked twice
ROUNDS, QUICK_ROUNDS = 600, 80
ARRIVALS, QUICK_ARRIVALS = 800, 100


@dataclass(frozen=True, slots=True)
class PressedLine(Line):
    """A run that pressed a service. handler_s: mean time in the handler. turn_s: the turnaround.

    generator_s: processor time of the load generator for each request.
    """

    run: str
    service: str
    handler_s: float
    turn_s: float
    generator_s: float


def forecast(run: Run) -> None:
    """Learn what requests demand and write the forecasts, unless the results have them."""
    if run.results.has(FORECASTS):
        return
    learn(run)
    pressed, half_idle = learnt(run.results)
    rounds, cores = run.choose(QUICK_ROUNDS, ROUNDS), len(os.sched_getaffinity(0))
    made = datetime.now(UTC).isoformat(timespec="seconds")
    with run.results.table(FORECASTS, Forecast) as table:
        for change in forecasting.CHANGES:
            run.say(f"forecast: {change.told}")
            stream, random = partial(_stream, run, change), run.random(change.name)
            given = rounds, cores, stream, random, made
            for one in forecasting.forecasts(change, pressed, half_idle, *given):
                table.add(one)


def measure(run: Run) -> None:
    """Write the forecasts, and measure what they are of, as far as the results lack it."""
    forecast(run)
    for change in forecasting.CHANGES:
        if not all(_counts(run, change, quantity) for quantity in forecasting.QUANTITIES):
            run.say(f"measured: {change.told}")
            with change.made(run) as service:
                for quantity in forecasting.QUANTITIES:
                    is_done = partial(_counts, run, change, quantity)
                    tried(is_done, partial(_measure, run, service, change, quantity))


def _counts(run: Run, change: Change, quantity: str) -> bool:
    return any(runs_of(run.results, change.name, quantity).values())


def _measure(run: Run, service: Measured, change: Change, quantity: str) -> None:
    """Make the run that a forecast is about."""
    name = unused_name(run.results, f"{change.name}-{quantity}")
    if quantity == forecasting.THROUGHPUT:
        record = _closed(
            run, service, name, forecasting.CUSTOMERS, run.choose(QUICK_ROUNDS, ROUNDS)
        )
    else:
        found = run.results.lines(FORECASTS, Forecast)
        x = next(
            one
            for one in found
            if (one.change, one.quantity) == (change.name, forecasting.THROUGHPUT)
        )
        times_s = _stream(run, change, forecasting.FRACTION * x.middle)
        schedule = arrivals(times_s, service.requests(run.random(name)))
        record = run.generator.open(service.target, schedule, name)
    judge_run(run.results.folder, record)


def _closed(run: Run, service: Measured, name: str, customers: int, rounds: int) -> RunRecord:
    """Let `customers` ask `rounds` times together, after their warm-up."""
    requests = list(islice(service.requests(run.random(name)), QUESTIONS_A_ROUND * rounds))
    return run.generator.closed(
        service.target,
        {requests[0].kind: requests},
        name,
        customers=customers,
        requests=rounds // customers,
        warm_up=WARM_UP,
    )


def _stream(run: Run, change: Change, rate_per_s: float) -> list[float]:
    """The times of Poisson arrivals, always the same for a change but for their rate."""
    count = run.choose(QUICK_ARRIVALS, ARRIVALS)
    return poisson_times(rate_per_s, run.random(f"{change.name} arrivals"), count=count)


# --- learning ------------------------------------------------------------------------------------


def learn(run: Run) -> None:
    """Press each service on each occasion and let one customer ask, as far as the results lack it.

    Raises ProgramFailed if a service does not start, or is disturbed time and again.
    """
    occasions = run.choose(QUICK_OCCASIONS, OCCASIONS)
    for number in range(1, occasions + 1):
        for change in LEARNT:
            if len(_occasions(run.results, change)) < number:
                run.say(f"occasion {number} of {occasions}: {change.told}")
                with change.made(run) as service:
                    _learn(run, service, change, number)


def _learn(run: Run, service: Measured, change: Change, number: int) -> None:
    results = run.results

    def ask() -> None:
        pause_s = _pressed(results, change)[-1].handler_s
        name, queue = f"{HALF_IDLE}-{change.name}", Queue(change.workers)
        demands.learn(run, service, name, queue, pause_s)

    is_pressed = tried(
        lambda: len(_pressed(results, change)) >= number, partial(_press, run, service, change)
    )
    if not (is_pressed and tried(lambda: len(_occasions(results, change)) >= number, ask)):
        raise ProgramFailed(
            f"{change.name}: its runs were rejected {TRIES} times; {results.folder / RUNS} "
            f"says why. `scripts/lab resume {results.folder}` goes on when the machine is quiet"
        )


def _press(run: Run, service: Measured, change: Change) -> None:
    name = unused_name(run.results, f"{PRESSED}-{change.name}")
    run.say(f"{change.name}, pressed by {PRESSING} customers")
    rounds = run.choose(demands.QUICK_REQUESTS, demands.REQUESTS)
    record = _closed(run, service, name, PRESSING, rounds)
    judge_run(run.results.folder, record)
    rows = closed_window(record.rows, WARM_UP).rows
    told_s = [row.service_s for row in rows if row.service_s is not None]
    turn_s, cores = turnaround_s(rows, overhead_s=0.0), record.facts().client_cpu
    if not told_s or turn_s is None or cores is None:
        raise ProgramFailed(
            f"{change.name}, pressed: too few answers tell when their request began and how long "
            "it took"
        )
    generator_s = cores * max(row.done_s for row in record.rows) / len(record.rows)
    with run.results.more(PRESSED, PressedLine) as table:
        table.add(PressedLine(name, change.name, fmean(told_s), turn_s, generator_s))


def _pressed(results: Results, change: Change) -> list[PressedLine]:
    """The runs that pressed a service and count."""
    accepted = accepted_by_run(results)
    return [
        line
        for line in results.lines_if_any(PRESSED, PressedLine)
        if line.service == change.name and accepted.get(line.run, False)
    ]


def _occasions(results: Results, change: Change) -> list[tuple[Occasion, PressedLine]]:
    """The occasions on which all was learnt of a service, each with the run that pressed it."""
    asked = demands.learnt(results).get(f"{HALF_IDLE}-{change.name}", ())
    both = zip(asked, _pressed(results, change), strict=False)
    return [(_occasion(means, run, line), line) for (means, run), line in both]


def learnt(results: Results) -> tuple[forecasting.Known, forecasting.Known]:
    """What is known of the services if they are pressed, and if they are half idle."""
    found = {change.name: _occasions(results, change) for change in LEARNT}
    half_idle = {name: [occasion for occasion, _ in of] for name, of in found.items()}
    pressed = {name: [_as_pressed(*occasion) for occasion in of] for name, of in found.items()}
    return forecasting.known(pressed), forecasting.known(half_idle)


def _occasion(means: Demands, run: Recorded, line: PressedLine) -> Occasion:
    """The demands of each request of one customer. means: of what is known by its mean alone."""
    files_s = [sum(map(one.duration_s, FILES)) for one in run.asked]
    return [
        Demand(
            processor_s=max(0.0, one.duration_s("total") - of_files_s),
            files_s=of_files_s,
            turn_s=line.turn_s,
            kept_s=means.front_s,
            network_s=max(0.0, means.front_s + means.network_s - line.turn_s),
            generator_s=line.generator_s,
        )
        for one, of_files_s in zip(run.asked, files_s, strict=True)
    ]


def _as_pressed(half_idle: Occasion, line: PressedLine) -> Occasion:
    """The demands of these requests on a worker that is never idle."""
    files_s = fmean([one.files_s for one in half_idle])
    quicker = max(0.0, line.handler_s - files_s) / forecasting.mean_processor_s(half_idle)
    return [replace(one, processor_s=quicker * one.processor_s) for one in half_idle]
