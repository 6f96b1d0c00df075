"""Makes the runs of a service: closed ones of customers who ask again at once, and open ones."""

from itertools import islice

from loadtests.experiments.open_workload.servers import Measured
from loadtests.generation.run import RunRecord, closed_run, open_run
from loadtests.generation.schedule import arrivals
from loadtests.lab.experiment import Run
from loadtests.models.arrivals import poisson_times

WARM_UP = 5  # requests of each customer of a closed run that do not count
QUESTIONS_A_ROUND = 40  # so many different ones that hardly any is asked twice


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


def opened(run: Run, service: Measured, name: str, rate_per_s: float, count: int) -> RunRecord:
    """Send `count` requests as a Poisson stream."""
    random = run.random(name)
    times_s = poisson_times(rate_per_s, random, count=count)
    schedule = arrivals(times_s, service.requests(random))
    return open_run(
        service.target, schedule, run=name, folder=run.results.folder, say=lambda text: None
    )
