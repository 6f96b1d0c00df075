"""Makes the runs of a service: closed ones of customers who ask again at once, and open ones."""

from collections.abc import Callable, Sequence
from itertools import islice

from loadtests.experiments.open_workload.servers import Measured
from loadtests.generation.run import RunRecord, closed_run, open_run
from loadtests.generation.schedule import arrivals
from loadtests.lab.experiment import Run
from loadtests.models.random_times import poisson_times

TRIES = 3
WARM_UP = 5  # requests of each customer of a closed run that do not count
QUESTIONS_A_ROUND = 40  # so many different ones that hardly any is asked twice


def tried(is_done: Callable[[], bool], make: Callable[[], object]) -> bool:
    """Make a run until one counts, at most TRIES times. Returns whether one does."""
    for _ in range(TRIES):
        if is_done():
            return True
        make()
    return is_done()


def closed(run: Run, service: Measured, name: str, customers: int, rounds: int) -> RunRecord:
    """Let `customers` ask `rounds` times together, after their warm-up."""
    random = run.random(name)
    requests = list(islice(service.requests(random), QUESTIONS_A_ROUND * rounds))
    return closed_run(
        service.target,
        {requests[0].kind: requests},
        customers=customers,
        requests=rounds // customers,
        warm_up=WARM_UP,
        run=name,
        folder=run.results.folder,
        seed=run.options.seed,
        say=lambda text: None,
    )


def stream(run: Run, change: str, rate_per_s: float, count: int) -> list[float]:
    """The times of `count` Poisson arrivals, always the same for a change but for their rate."""
    return poisson_times(rate_per_s, run.random(f"{change} arrivals"), count=count)


def opened(run: Run, service: Measured, name: str, times_s: Sequence[float]) -> RunRecord:
    """Send a request at each of these times."""
    schedule = arrivals(times_s, service.requests(run.random(name)))
    return open_run(
        service.target, schedule, run=name, folder=run.results.folder, say=lambda text: None
    )
