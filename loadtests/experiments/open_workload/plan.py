"""Defines what is measured: servers under test, shares of L, and numbers and lengths of runs. Pure.

L is the rate at which a server is busy all the time.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from loadtests.lab.experiment import Mode, Options
from loadtests.lab.published import OPEN_RUN_S, OPEN_RUNS, UNROUNDED
from loadtests.models.estimates import REPLICATIONS, WARM_UP_ARRIVALS

STUDY_FRACTIONS = (0.3, 0.5, 0.8, 0.85)
STUDY_SERVICES = OPEN_RUN_S / UNROUNDED.mean_s
"""The length of a run of the study in service times: 44."""

AS_THE_STUDY, STEADY = "as-the-study", "steady"
LoadKey = tuple[str, str, float]  # server, part, share of L

STUDY, SCAN = "study", "scan"
SERVICE, SERVICE_SCANS, SERVICE_WORKERS = "service", "service-scans", "service-workers"
WORKERS = 2  # of the service as shipped
SERVERS: Mapping[str, str] = {
    STUDY: "the study's way",
    SCAN: "our scan",
    SERVICE: "the service, index, one worker",
    SERVICE_WORKERS: f"the service, index, {WORKERS} workers",
    SERVICE_SCANS: "the service, scans, one worker",
    "elsewhere": "the service at --host",
    "brought": "the raw file",
}
"""Name in tables -> what it is. The last two: a service on another machine, and a file of rows."""

_AS_SERVED = (SERVICE, SERVICE_WORKERS, SERVICE_SCANS, "elsewhere")

BRIEF_WARM_UP, WARM_UP = 50, WARM_UP_ARRIVALS
BRIEF_UP_TO = 0.5
SETTLED_UP_TO = 0.85


@dataclass(frozen=True, slots=True)
class Load:
    """Runs of a server at one share of L.

    part: AS_THE_STUDY (each run lasts `services` service times, from empty) or STEADY (each has
    `arrivals` arrivals).
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


def warm_up(fraction: float) -> int:
    """The least number of arrivals at the beginning of a steady-state run that do not count.

    By simulation, R of a queue that began empty is within 0.5 % of the steady state after 20
    arrivals at half of L, and within 1 % after 200 at 0.85 of L. Above `SETTLED_UP_TO` far more are
    needed.
    """
    return BRIEF_WARM_UP if fraction <= BRIEF_UP_TO else WARM_UP


def is_as_served(server: str, overhead_s: float | None) -> bool:
    """Whether a server is judged as served: by arrivals and service times as they were in the run.

    The service is, because it tells how long each request took; overhead_s is None if it does not.
    Then neither a machine that changes its speed nor a generator that sends late can be taken for
    an error of the model, so runs are not rejected for these. What was predicted from calibrations
    is reported beside the verdict, and the gap ledger accounts for the difference.
    """
    return server in _AS_SERVED and overhead_s is not None


def servers_of(options: Options) -> Sequence[str]:
    """The servers that these options measure, in order."""
    if options.host:
        return ("elsewhere",)
    if options.mode is Mode.REAL:
        return (SERVICE, SERVICE_WORKERS, SERVICE_SCANS)
    return (STUDY, SCAN) if options.mode is Mode.EMULATED else (STUDY,)


def loads(options: Options) -> Sequence[Load]:
    """All loads, or those that were chosen, in the order in which they are measured."""
    planned = _quick if options.quick else _full
    found = [load for server in servers_of(options) for load in planned(server, options.reps)]
    return [load for load in found if not options.loads or load.fraction in options.loads]


def fractions(options: Options) -> Sequence[float]:
    """The shares of L from which one may choose."""
    return sorted({load.fraction for load in loads(replace(options, loads=()))})


BRIEFLY = (SCAN, SERVICE_WORKERS, SERVICE_SCANS)
ARRIVALS: Mapping[float, int] = {0.3: 120, 0.5: 170, 0.8: 500, 0.85: 600}


def _full(server: str, reps: int | None) -> Sequence[Load]:
    """The study's way and the service with one worker at all loads, the others at two."""
    of_study = [
        Load(server, AS_THE_STUDY, fraction, OPEN_RUNS, services=STUDY_SERVICES)
        for fraction in STUDY_FRACTIONS
    ]
    chosen = (0.5, 0.85) if server in BRIEFLY else ARRIVALS
    steady = [Load(server, STEADY, f, reps or REPLICATIONS, arrivals=ARRIVALS[f]) for f in chosen]
    sweep = [Load(server, STEADY, f, reps or 4, arrivals=320) for f in (0.9, 0.95)]
    return [*of_study, *steady, *sweep] if server == STUDY else steady


def _quick(server: str, reps: int | None) -> Sequence[Load]:
    """Both servers with emulated storage, or all of the service, within two minutes."""
    steady = [Load(server, STEADY, f, reps or 1, arrivals=n) for f, n in ((0.5, 150), (0.85, 300))]
    if server != STUDY:
        return steady[:1]
    of_study = [Load(server, AS_THE_STUDY, f, 2, services=STUDY_SERVICES) for f in (0.3, 0.85)]
    return [*of_study, *steady]
