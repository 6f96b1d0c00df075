"""Measures one system at one rate, and records the purpose of each run.

`points.csv` lists every run for the analysis. After the last run of a group the customer who
calibrated it sends the same requests again; a run counts if both means agree within a percent
(`generation.rules`).
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import islice

from loadtests.experiments.client_server.asked import Drawn, Flights
from loadtests.generation.calibrating import calibrate
from loadtests.generation.calibration import Calibration
from loadtests.generation.run import RunRecord, Target, judge_run, open_run
from loadtests.generation.schedule import Request, arrivals, demanded, gamma_demands
from loadtests.lab.experiment import Run
from loadtests.lab.results import Line, TableWriter
from loadtests.models.random_times import poisson_times

POINTS = "points"


@dataclass(frozen=True, slots=True)
class PointLine(Line):
    """A run: how many servers (m) got so many requests, and at which rate.

    name: of the point that the run is a repetition of. rep: its number; each has calibrations and a
    run alone of its own, as what is common to the runs between two calibrations does not average
    out. role: `alone` is an open run at so low a rate that customers hardly ever wait, which gives
    the service time as in the study; `load` is a run at a higher rate. service_s: the mean for one
    closed customer before, from which the rate was chosen.
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


ALONE, LOAD = "alone", "load"
ALONE_UTILISATION = 0.03  # as in the study's figure 1
LEAST = 8

Requests = Callable[[str], Iterator[Request]]  # each purpose has its own random numbers


@dataclass(frozen=True, slots=True)
class Plan:
    """How many requests are made. calibration: by the closed customer, both before and after.

    alone: in the run alone, fewer if they would take longer than alone_s, but at least `LEAST`.
    load: in every other run.
    """

    calibration: int
    alone: int
    load: int
    alone_s: float


@dataclass
class Group:
    """Runs of one request type on one system, between two calibrations. `Measuring` makes them.

    rep: number of the repetition, from 1. asked_s: the mean service time that requests ask for;
    None if the server decides.
    """

    measuring: "Measuring"
    system: str
    kind: str
    requests: Requests
    rep: int
    asked_s: float | None
    _before: Calibration | None = None
    _pending: list[tuple[str, RunRecord]] = field(default_factory=list)

    @property
    def service_s(self) -> float:
        """E[S]: measured by the closed customer, or `asked_s` plus the overhead it measured.

        `begin` must have been called.
        """
        assert self._before is not None
        if self.asked_s is None or self._before.overhead_s is None:
            return self._before.mean_s
        return self.asked_s + self._before.overhead_s

    def begin(self, target: Target) -> None:
        """Calibrate before the runs. Raises ProgramFailed if a request fails."""
        self._before = self._calibrated(target, "before")

    def end(self, target: Target) -> None:
        """Calibrate after the runs, with the same requests (not in a quick run), and judge them."""
        is_quick = self.measuring.run.options.quick
        self.judge(None if is_quick else self._calibrated(target, "after"))

    def alone(self, target: Target, servers: int) -> None:
        """Make the run alone, at so low a rate that customers hardly ever wait."""
        plan = self.measuring.plan
        rate_per_s = ALONE_UTILISATION * servers / self.service_s
        count = min(plan.alone, max(LEAST, int(plan.alone_s * rate_per_s)))
        self._open(target, ALONE, servers, rate_per_s, count, ALONE)

    def load(self, target: Target, servers: int, rate_per_s: float, name: str) -> None:
        """Make a run at this rate. name: of the point, unique in the group."""
        self._open(target, LOAD, servers, rate_per_s, self.measuring.plan.load, name)

    def judge(self, after: Calibration | None) -> None:
        """Judge the runs by the rules, and list them.

        Times of the run alone count from sending, so late sending does not matter there.
        """
        pending, self._pending = self._pending, []
        for role, record in pending:
            facts = record.facts(self._before, after)
            facts = replace(facts, lag_p99_s=None) if role == ALONE else facts
            judge_run(self.measuring.run.results.folder, record, facts)

    def _calibrated(self, target: Target, when: str) -> Calibration:
        run, count = self.measuring.run, self.measuring.plan.calibration
        asked = list(islice(self.requests(self._id("calibration")), count))
        return calibrate(
            target,
            {self.kind: asked},
            requests=count,
            run=self._id(when),
            folder=run.results.folder,
            seed=run.options.seed,
            say=run.say,
        )

    def _id(self, name: str) -> str:
        return f"{self.system}-{self.kind}-{name}-rep{self.rep:02d}"

    def _open(
        self, target: Target, role: str, servers: int, rate_per_s: float, count: int, name: str
    ) -> None:
        run, run_id = self.measuring.run, self._id(name)
        times_s = poisson_times(rate_per_s, run.random(f"{run_id} times"), count=count)
        of = self.system, self.kind, role, servers, name, self.rep
        line = PointLine(run_id, *of, rate_per_s, self.service_s, count)
        self.measuring.points.add(line)
        schedule = arrivals(times_s, self.requests(run_id))
        folder = run.results.folder
        record = open_run(target, schedule, run=run_id, folder=folder, say=run.say)
        self._pending.append((role, record))


@dataclass(frozen=True, slots=True)
class Measuring:
    """Makes the runs of an experiment. points: the table of its runs."""

    run: Run
    plan: Plan
    points: TableWriter

    @property
    def reps(self) -> range:
        """The repetitions, as many as --reps says. Each is a group of its own."""
        return range(1, (self.run.options.reps or 1) + 1)

    @contextmanager
    def group(
        self, system: str, kind: str, requests: Requests, rep: int, asked_s: float | None = None
    ) -> Iterator[Group]:
        """A group of runs. If an exception ends it, the runs made until then are still listed."""
        self.run.say(f"{system}, {kind}, {rep} of {len(self.reps)}")
        group = Group(self, system, kind, requests, rep, asked_s)
        try:
            yield group
        finally:
            group.judge(None)


@contextmanager
def measuring(run: Run, plan: Plan) -> Iterator[Measuring]:
    """A `Measuring`, with the table of points open until the `with` block ends."""
    with run.results.table(POINTS, PointLine) as points:
        yield Measuring(run, plan, points)


def from_flights(run: Run, drawn: Drawn, flights: Flights) -> Requests:
    """Endless requests about `flights`, made by `drawn`."""

    def requests(purpose: str) -> Iterator[Request]:
        random = run.random(f"{purpose} requests")
        while True:
            yield drawn(flights, random)

    return requests


def exponential(run: Run, mean_s: float) -> Requests:
    """Requests to the server of known service time, with exponential times."""
    return lambda purpose: demanded(gamma_demands(mean_s, 1, run.random(f"{purpose} demands")))
