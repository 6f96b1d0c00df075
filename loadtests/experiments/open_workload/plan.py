"""Defines how much is measured: shares of L, and numbers and lengths of runs. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from loadtests.lab.experiment import Options
from loadtests.lab.published import OPEN_RUN_S, OPEN_RUNS, UNROUNDED
from loadtests.models.estimates import WARM_UP_ARRIVALS

STUDY_FRACTIONS = (0.3, 0.5, 0.8, 0.85)
STUDY_SERVICES = OPEN_RUN_S / UNROUNDED.mean_s
"""The length of a run of the study in service times: 44."""

AS_THE_STUDY, STEADY = "as-the-study", "steady"
FCFS, SHARED = "fcfs", "shared"
LoadKey = tuple[str, str, float]  # server, part, share of L

BRIEF_WARM_UP, WARM_UP = 50, WARM_UP_ARRIVALS
BRIEF_UP_TO = 0.5
SETTLED_UP_TO = 0.85


@dataclass(frozen=True, slots=True)
class Load:
    """Runs at one share of L.

    part: AS_THE_STUDY (each run lasts `services` service times, from empty) or STEADY (each has
    `arrivals` arrivals). server: FCFS, one worker that takes one request at a time, or SHARED,
    threads.
    """

    server: str
    part: str
    fraction: float
    runs: int
    arrivals: int = 0
    services: float = 0.0

    @property
    def key(self) -> LoadKey:
        """The key of a load in the tables."""
        return self.server, self.part, self.fraction


def key_of(line: Mapping[str, str]) -> LoadKey:
    """The key of the load of a line in the table of runs."""
    return line["server"], line["part"], float(line["fraction"])


def warm_up(fraction: float) -> int:
    """The least number of arrivals at the beginning of a steady-state run that do not count.

    By simulation, R of a queue that began empty is within 0.5 % of the steady state after 20
    arrivals at half of L, and within 1 % after 200 at 0.85 of L. Above `SETTLED_UP_TO` far more are
    needed.
    """
    return BRIEF_WARM_UP if fraction <= BRIEF_UP_TO else WARM_UP


def loads(options: Options) -> Sequence[Load]:
    """All loads, in the order in which they are measured."""
    return _quick(options.reps) if options.quick else _full(options.reps)


def _full(reps: int | None) -> Sequence[Load]:
    """The full plan: 50 minutes with a service time of 84 ms, if no run is rejected."""
    of_study = [
        Load(FCFS, AS_THE_STUDY, fraction, OPEN_RUNS, services=STUDY_SERVICES)
        for fraction in STUDY_FRACTIONS
    ]
    arrivals = {0.3: 120, 0.5: 170, 0.8: 500, 0.85: 600}
    steady = [Load(FCFS, STEADY, f, reps or 10, arrivals=n) for f, n in arrivals.items()]
    sweep = [Load(FCFS, STEADY, f, reps or 4, arrivals=n) for f, n in ((0.9, 320), (0.95, 320))]
    shared = [Load(SHARED, STEADY, f, reps or 4, arrivals=n) for f, n in ((0.5, 170), (0.8, 320))]
    return [*of_study, *steady, *sweep, *shared]


def _quick(reps: int | None) -> Sequence[Load]:
    """The quick plan: less than two minutes with a service time of 42 ms."""
    of_study = [Load(FCFS, AS_THE_STUDY, f, 2, services=STUDY_SERVICES) for f in (0.3, 0.85)]
    steady = [Load(FCFS, STEADY, f, reps or 1, arrivals=n) for f, n in ((0.5, 150), (0.85, 300))]
    return [*of_study, *steady, Load(SHARED, STEADY, 0.5, reps or 1, arrivals=120)]
