"""Learns what requests demand on several occasions, because a machine changes its speed.

An occasion starts each of the services anew. Two customers who ask again at once press it: its
worker is never idle and tells how long requests take then, and how soon it turns to the next. Then
one customer asks who pauses, so that it is idle half of the time: requests take longer, because
processor and caches have turned to other things meanwhile; and the answers tell the parts of it.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from statistics import fmean

from loadtests.experiments.open_workload import demands, exploring
from loadtests.experiments.open_workload.demands import FILES, Demands
from loadtests.experiments.open_workload.servers import Measured
from loadtests.experiments.what_if.changes import LEARNT, Change, Demand
from loadtests.experiments.what_if.runs import TRIES, WARM_UP, closed, tried
from loadtests.generation.calibration import turnaround_s
from loadtests.generation.run import RUNS, RunRecord, judge_run
from loadtests.generation.window import closed_window
from loadtests.grouping import grouped
from loadtests.lab.experiment import Run
from loadtests.lab.one_customer import Recorded
from loadtests.lab.repeated import accepted_by_run, unused_name
from loadtests.lab.results import Line, Results
from loadtests.models.open_queue import Queue
from loadtests.models.samples import summary
from loadtests.processes import ProgramFailed

OCCASIONS, QUICK_OCCASIONS = 4, 2
PRESSING = 2  # customers, so that one worker is never idle
PRESSED = "pressed"

Occasion = Sequence[Demand]
"""The demands of each request on an occasion."""


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
    """What is known of services, pressed or half idle. requests: of all occasions, by service."""

    requests: Mapping[str, Sequence[Demand]]
    speed: Speed


def known(occasions: Mapping[str, Sequence[Occasion]]) -> Known:
    """What is known from several occasions, by service. Raises ValueError if none has two."""
    requests = {
        service: [one for occasion in of for one in occasion] for service, of in occasions.items()
    }
    return Known(requests, _speed(list(occasions.values())))


def _speed(of_services: Sequence[Sequence[Occasion]]) -> Speed:
    """The speed, from the occasions of each service; its spread is the same for all of them."""
    squares = 0.0
    for of in of_services:
        squares += summary([math.log(_mean_processor_s(occasion)) for occasion in of]).squares
    degrees_of_freedom = sum(len(of) - 1 for of in of_services)
    if degrees_of_freedom < 1:
        raise ValueError("a speed needs two occasions of a service at least")
    deviation = math.sqrt(squares / degrees_of_freedom)
    return Speed(deviation, degrees_of_freedom, min(map(len, of_services)))


def _mean_processor_s(occasion: Occasion) -> float:
    return fmean([one.processor_s for one in occasion])


# --- asking --------------------------------------------------------------------------------------


def learn(run: Run) -> None:
    """Press each service on each occasion and let one customer ask, as far as the results lack it.

    Raises ProgramFailed if a service does not start, or is disturbed time and again.
    """
    occasions = run.choose(QUICK_OCCASIONS, OCCASIONS)
    for number in range(1, occasions + 1):
        for change in LEARNT:
            if _known_of(run.results, change) < number:
                run.say(f"occasion {number} of {occasions}: {change.told}")
                with change.made(run) as service:
                    _learn(run, service, change, number)


def _learn(run: Run, service: Measured, change: Change, number: int) -> None:
    def ask() -> None:
        pause_s = _pressed(run.results)[change.name][-1].handler_s
        exploring.learn(run, service, _half_idle(change), Queue(change.workers), pause_s)

    is_pressed = tried(
        lambda: _times_pressed(run.results, change) >= number, lambda: _press(run, service, change)
    )
    if not (is_pressed and tried(lambda: _known_of(run.results, change) >= number, ask)):
        raise ProgramFailed(
            f"{change.name}: its runs were rejected {TRIES} times; {run.results.folder / RUNS} "
            f"says why. `scripts/lab resume {run.results.folder}` goes on when the machine is quiet"
        )


def _press(run: Run, service: Measured, change: Change) -> None:
    rounds = run.choose(exploring.QUICK_REQUESTS, exploring.REQUESTS)
    name = unused_name(run.results, f"{PRESSED}-{change.name}")
    run.say(f"{change.name}, pressed by {PRESSING} customers")
    record = closed(run, service, name, PRESSING, rounds)
    judge_run(run.results.folder, record)
    with run.results.more(PRESSED, PressedLine) as table:
        table.add(_line(record, change))


def _line(record: RunRecord, change: Change) -> PressedLine:
    rows = closed_window(record.rows, WARM_UP).rows
    told_s = [row.service_s for row in rows if row.service_s is not None]
    turn_s, cores = turnaround_s(rows, overhead_s=0.0), record.facts().client_cpu
    if not told_s or turn_s is None or cores is None:
        raise ProgramFailed(
            f"{change.name}, pressed: too few answers tell when their request began and how long "
            "it took"
        )
    took_s = max(row.done_s for row in record.rows)
    return PressedLine(
        run=record.run,
        service=change.name,
        handler_s=fmean(told_s),
        turn_s=turn_s,
        generator_s=cores * took_s / len(record.rows),
    )


# --- what was learnt -----------------------------------------------------------------------------


def _pressed(results: Results) -> Mapping[str, Sequence[PressedLine]]:
    """The runs that pressed a service and count, by service."""
    accepted = accepted_by_run(results)
    lines = results.lines_if_any(PRESSED, PressedLine)
    counted = [line for line in lines if accepted.get(line.run, False)]
    return grouped(counted, lambda line: line.service)


def _half_idle(change: Change) -> str:
    """The name under which `demands` has a service that one customer asked with pauses."""
    return f"half-idle-{change.name}"


def _times_pressed(results: Results, change: Change) -> int:
    return len(_pressed(results).get(change.name, ()))


def _known_of(results: Results, change: Change) -> int:
    """On how many occasions all was learnt of a service."""
    return min(
        _times_pressed(results, change), len(demands.learnt(results).get(_half_idle(change), ()))
    )


def learnt(results: Results) -> tuple[Known, Known]:
    """What is known of the services if they are pressed, and if they are half idle."""
    found, lines = demands.learnt(results), _pressed(results)
    half_idle = {
        change.name: [
            _occasion(means, run, line)
            for (means, run), line in zip(
                found[_half_idle(change)], lines[change.name], strict=False
            )
        ]
        for change in LEARNT
    }
    pressed = {
        service: [_as_pressed(of, line) for of, line in zip(found, lines[service], strict=False)]
        for service, found in half_idle.items()
    }
    return known(pressed), known(half_idle)


def _occasion(means: Demands, run: Recorded, line: PressedLine) -> Occasion:
    """The demands of each request of one customer. means: of what is known by its mean alone."""
    beside_s = means.front_s + means.network_s
    found = []
    for one in run.asked:
        files_s = sum(map(one.duration_s, FILES))
        found.append(
            Demand(
                processor_s=max(0.0, one.duration_s("total") - files_s),
                files_s=files_s,
                turn_s=line.turn_s,
                kept_s=means.front_s,
                network_s=max(0.0, beside_s - line.turn_s),
                generator_s=line.generator_s,
            )
        )
    return found


def _as_pressed(half_idle: Occasion, line: PressedLine) -> Occasion:
    """The demands of these requests on a worker that is never idle."""
    files_s = fmean([one.files_s for one in half_idle])
    quicker = max(0.0, line.handler_s - files_s) / _mean_processor_s(half_idle)
    return [replace(one, processor_s=quicker * one.processor_s) for one in half_idle]
