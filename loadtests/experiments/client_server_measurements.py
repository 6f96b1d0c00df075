"""Measures a request type on a system, and records the purpose of each run.

`points.csv` lists every run for the analysis. After the last run of a group the customer who
calibrated it sends the same requests again; a run counts if both means agree within a percent
(`generation.rules`).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from itertools import islice, product, repeat

from loadtests.experiments import client_server_systems as systems
from loadtests.generation.calibration import Calibration
from loadtests.generation.run import Generator, RunRecord, Target, judge_run
from loadtests.generation.schedule import Request, arrivals, demanded, gamma_demands
from loadtests.lab import generator_check
from loadtests.lab.experiment import Run
from loadtests.lab.results import Line, TableWriter
from loadtests.models.random_times import poisson_times

POINTS = "points"
ALONE, LOAD = "alone", "load"
ALONE_UTILISATION = 0.03  # as in the study's figure 1
LEAST = 8

Start = Callable[[int], AbstractContextManager[Target]]  # starts a system with so many servers
Loads = Callable[[str, float, int], Iterable[tuple[str, float]]]
"""From system, E[S] (s) and number of servers to names, unique in a group, and rates (1/s)."""


@dataclass(frozen=True, slots=True)
class PointLine(Line):
    """Describes a run: how many servers (m) got so many requests, and at which rate.

    name: of the point that the run is a repetition of. rep: its number, from 1; each has
    calibrations and a run alone of its own, as what is common to the runs between two calibrations
    does not average out. role: `alone` is an open run at so low a rate that customers hardly ever
    wait, which gives the service time as in the study; `load` is a run at a higher rate. service_s:
    the mean for one closed customer before, from which the rate was chosen.
    """

    run: str
    system: str
    kind: str
    role: str
    servers: int
    name: str
    rep: int
    rate_per_s: float
    service_s: float
    arrivals: int


@dataclass(frozen=True, slots=True)
class Plan:
    """Says how many requests are made. calibration: by the closed customer, both before and after.

    alone: in the run alone, fewer if they would take longer than alone_s, but at least `LEAST`.
    load: in every other run.
    """

    calibration: int
    load: int
    alone: int
    alone_s: float


@dataclass(frozen=True, slots=True)
class Measuring:
    """Measures systems with these numbers of servers at these loads. points: table of the runs."""

    run: Run
    plan: Plan
    counts: Sequence[int]
    loads: Loads
    rig: systems.Rig
    generator: Generator
    points: TableWriter

    def measure(self, system: str, start: Start, kinds: Iterable[str] = ()) -> None:
        """Measure these request types, or all, each in as many groups as --reps says."""
        reps = self.run.options.reps or 1
        for kind, rep in product(kinds or systems.SYSTEMS[system].templates, range(1, reps + 1)):
            self.run.say(f"{systems.named(system, kind)}, {rep} of {reps}")
            Group(self, system, kind, rep).measure(start)


@contextmanager
def measuring(run: Run, plan: Plan, counts: Sequence[int], loads: Loads) -> Iterator[Measuring]:
    """Check the load generator, and keep the table of points open until the `with` block ends."""
    generator_check.check(run)
    generator = Generator(run.results.folder, run.options.seed, run.say)
    with run.results.table(POINTS, PointLine) as points:
        yield Measuring(run, plan, counts, loads, systems.Rig(run), generator, points)


def already(target: Target) -> Start:
    """Return the way to start what runs already."""
    return lambda _: nullcontext(target)


@dataclass(frozen=True, slots=True)
class Group:
    """Makes the runs of a request type between two calibrations. rep: as in `PointLine`."""

    measuring: Measuring
    system: str
    kind: str
    rep: int

    def measure(self, start: Start) -> None:
        """Calibrate and make the run alone with the first number of servers, then those at loads.

        The second calibration has the same requests and the last number; a quick run has none. If
        an exception ends the group, the runs made until then are still listed. Raises ProgramFailed
        if a request of a calibration fails.
        """
        run, counts = self.measuring.run, self.measuring.counts
        before = after = None
        records: list[tuple[str, RunRecord]] = []
        try:
            for servers in counts:
                with start(servers) as target:
                    before = before or self._calibrate(target, "before")
                    for line in self._lines(before, servers, is_first=not records):
                        record = self._open(target, line)
                        records.append((line.role, record))
                    if servers == counts[-1] and not run.options.quick:
                        after = self._calibrate(target, "after")
        finally:
            for role, record in records:
                facts = record.facts(before, after)
                if role == ALONE:  # its times count from sending, so late sending is no matter
                    facts = replace(facts, lag_mean_s=None, lag_p99_s=None)
                judge_run(run.results.folder, record, facts)

    def _lines(self, before: Calibration, servers: int, *, is_first: bool) -> list[PointLine]:
        """Return the runs to be made. E[S] of the known server is its sleep and its overhead."""
        service_s, plan = before.mean_s, self.measuring.plan
        if self.system == systems.KNOWN and before.overhead_s is not None:
            service_s = systems.KNOWN_SERVICE_TIME_S + before.overhead_s
        loads = self.measuring.loads(self.system, service_s, servers)
        runs = [(LOAD, name, rate_per_s, plan.load) for name, rate_per_s in loads]
        if is_first:
            per_s = ALONE_UTILISATION * servers / service_s
            count = min(plan.alone, max(LEAST, int(plan.alone_s * per_s)))
            runs.insert(0, (ALONE, ALONE, per_s, count))
        group, rep = (self.system, self.kind), self.rep
        return [
            PointLine(self._id(name), *group, role, servers, name, rep, per_s, service_s, count)
            for role, name, per_s, count in runs
        ]

    def _id(self, name: str) -> str:
        return f"{self.system}-{self.kind}-{name}-rep{self.rep:02d}"

    def _calibrate(self, target: Target, when: str) -> Calibration:
        generator, count = self.measuring.generator, self.measuring.plan.calibration
        choices = {self.kind: list(islice(self._requests(self._id("calibration")), count))}
        return generator.calibrate(target, choices, self._id(when), requests=count)

    def _open(self, target: Target, line: PointLine) -> RunRecord:
        random = self.measuring.run.random(f"{line.run} times")
        times_s = poisson_times(line.rate_per_s, random, count=line.arrivals)
        self.measuring.points.add(line)
        schedule = arrivals(times_s, self._requests(line.run))
        return self.measuring.generator.open(target, schedule, line.run)

    def _requests(self, purpose: str) -> Iterator[Request]:
        """Draw requests without end. Each purpose has its own random numbers."""
        run = self.measuring.run
        if self.system == systems.KNOWN:
            random = run.random(f"{purpose} demands")
            return demanded(gamma_demands(systems.KNOWN_SERVICE_TIME_S, 1, random))
        random, flights = run.random(f"{purpose} requests"), self.measuring.rig.flights
        template = systems.SYSTEMS[self.system].templates[self.kind]
        return (systems.request(flights, self.kind, template, random) for _ in repeat(None))
