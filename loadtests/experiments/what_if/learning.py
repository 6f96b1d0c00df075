"""Learns what requests demand on several occasions, because a machine changes its speed.

An occasion starts each of the services anew. One customer asks it twice: first without a pause,
which is how busy workers take requests, then with pauses, so that the service is idle half of the
time. Requests take longer then, because caches and processors have turned to other things.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from statistics import fmean

from loadtests.experiments.open_workload import demands, exploring
from loadtests.experiments.open_workload.demands import ENGINE, FILES, Demand, Demands
from loadtests.experiments.open_workload.servers import Measured
from loadtests.experiments.what_if.changes import LEARNT, Change
from loadtests.experiments.what_if.runs import closed
from loadtests.generation.run import RUNS, judge_run
from loadtests.lab.experiment import Run
from loadtests.lab.one_customer import Recorded
from loadtests.lab.raw import accepted_by_run
from loadtests.lab.results import Results
from loadtests.models.queue import Queue
from loadtests.models.samples import summary
from loadtests.processes import ProgramFailed

OCCASIONS, QUICK_OCCASIONS = 4, 2
TRIES = 3

BUSY, HALF_IDLE, GENERATOR = "busy", "half-idle", "generator"

Occasion = Sequence[Demand]
"""The demands of each request of one customer."""


@dataclass(frozen=True, slots=True)
class Speed:
    """How much the time that the same work takes varies from one occasion to the next.

    deviation: the standard deviation of its logarithm. degrees_of_freedom: of the deviation.
    occasions: how many are known of each service.
    """

    deviation: float
    degrees_of_freedom: int
    occasions: int

    def factor(self, random: Random) -> float:
        """The time on an occasion yet to come, in times of the mean of the known ones.

        Its logarithm has Student's t distribution, as that of the next of several normal values.
        """
        chi_squared = random.gammavariate(self.degrees_of_freedom / 2, 2)
        t = random.gauss(0, 1) / math.sqrt(chi_squared / self.degrees_of_freedom)
        return math.exp(t * self.deviation * math.sqrt(1 + 1 / self.occasions))


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of the services, busy or half idle. requests: of all occasions, by service.

    generator_s: processor time that the load generator needs for a request.
    """

    requests: Mapping[str, Sequence[Demand]]
    speed: Speed
    generator_s: float


def known(occasions: Mapping[str, Sequence[Occasion]], generator_s: float) -> Known:
    """What is known from several occasions, by service. Raises ValueError if none has two."""
    requests = {
        service: [one for occasion in of for one in occasion] for service, of in occasions.items()
    }
    return Known(requests, _speed(list(occasions.values())), generator_s)


def _speed(of_services: Sequence[Sequence[Occasion]]) -> Speed:
    """The speed, from the occasions of each service; its spread is the same for all of them."""
    squares = 0.0
    for of in of_services:
        logs = [math.log(fmean([one.processor_s for one in occasion])) for occasion in of]
        squares += summary(logs).squares
    degrees_of_freedom = sum(len(of) - 1 for of in of_services)
    if degrees_of_freedom < 1:
        raise ValueError("a speed needs two occasions of a service at least")
    deviation = math.sqrt(squares / degrees_of_freedom)
    return Speed(deviation, degrees_of_freedom, min(map(len, of_services)))


def learn(run: Run) -> None:
    """Let one customer ask each service on each occasion, as far as the results lack it.

    Raises ProgramFailed if a service does not start, or is disturbed time and again.
    """
    occasions = int(run.choose(QUICK_OCCASIONS, OCCASIONS))
    for number in range(1, occasions + 1):
        for change in LEARNT:
            if _lacks(run.results, change, HALF_IDLE, number):
                run.say(f"occasion {number} of {occasions}: {change.told}")
                with change.made(run) as found:
                    if not run.results.has(GENERATOR):  # on the first occasion
                        _learn_generator(run, found)
                    for how in (BUSY, HALF_IDLE):
                        _learn(run, found, change, how, number)


def _learn_generator(run: Run, found: Measured) -> None:
    """Let the load generator be one customer, and note its processor time for each request."""
    run.say("what a request demands of the load generator")
    begun = sum(name.startswith(f"{GENERATOR}-") for name in accepted_by_run(run.results))
    rounds = int(run.choose(exploring.QUICK_REQUESTS, exploring.REQUESTS))
    record = closed(run, found, f"{GENERATOR}-{begun + 1}", 1, rounds)
    judge_run(run.results.folder, record)
    took_s = max(row.done_s for row in record.rows)
    cores = record.facts().client_cpu or 0.0
    with run.results.table(GENERATOR, ("run", "processor_s")) as table:
        table.write(run=record.run, processor_s=cores * took_s / len(record.rows))


def _learn(run: Run, found: Measured, change: Change, how: str, number: int) -> None:
    for _ in range(TRIES):
        if not _lacks(run.results, change, how, number):
            return
        pause_s = 0.0
        if how == HALF_IDLE:
            means, _ = demands.learnt(run.results)[_name(change, BUSY)][-1]
            pause_s = means.busy_s + means.network_s
        exploring.learn(run, found, _name(change, how), Queue(change.workers), pause_s)
    if _lacks(run.results, change, how, number):
        raise ProgramFailed(
            f"{change.name}: the runs of one customer were rejected {TRIES} times; "
            f"{run.results.folder / RUNS} says why. `scripts/lab resume {run.results.folder}` "
            "goes on when the machine is quiet"
        )


def _lacks(results: Results, change: Change, how: str, occasions: int) -> bool:
    return len(demands.learnt(results).get(_name(change, how), ())) < occasions


def _name(change: Change, how: str) -> str:
    return f"{change.name}-{how}"


def learnt(results: Results, how: str) -> Known:
    """What is known of the services if they are BUSY or HALF_IDLE."""
    found = demands.learnt(results)
    (generator,) = results.rows(GENERATOR)
    return known(
        {
            change.name: [_occasion(means, run) for means, run in found[_name(change, how)]]
            for change in LEARNT
        },
        float(generator["processor_s"]),
    )


def _occasion(means: Demands, run: Recorded) -> Occasion:
    """The demands of each request. means: those of which only a mean is known."""
    found = []
    for one in run.asked:
        engine_s = sum(map(one.duration_s, ENGINE))
        files_s = sum(map(one.duration_s, FILES))
        rest_s = max(0.0, one.duration_s("total") - engine_s - files_s)
        found.append(Demand(engine_s, files_s, rest_s, means.front_s, means.network_s))
    return found
