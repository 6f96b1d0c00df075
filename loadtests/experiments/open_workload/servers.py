"""Starts the measured servers of each mode, and makes requests to them.

`emulated`: up to K = 250, one FCFS worker stores and answers in the study's way, with the waits of
each block divided by K. Above that the real work of a block would take longer than its waits, so
one wait replaces the whole request. Threads that share a processor use a server that burns that
much processor time, because waits would not share anything.

`real`: the service as it is, which scans its whole chain for each request, with one worker that
takes one request at a time (gunicorn's sync) and with its own worker and threads.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from itertools import repeat
from random import Random
from typing import Final

from loadtests.chains import generated, imported
from loadtests.experiments.open_workload.plan import FCFS, SHARED
from loadtests.generation.run import Target
from loadtests.generation.schedule import Request, demanded, gamma_demands
from loadtests.lab.experiment import Mode, Run
from loadtests.lab.published import UNROUNDED
from loadtests.machine import at_most_cores
from loadtests.processes import Service, running
from loadtests.questions import Question, flights_of_block
from loadtests.servers import known, study

SCALE, QUICK_SCALE = 500.0, 1000.0
BLOCKWISE_UP_TO = 250.0
FLIGHTS, QUICK_FLIGHTS = 200_000, 20_000
CALIBRATIONS_DRAWN = 1000  # number of requests from which a calibration draws

_KIND: Final = "flight_counter"


@dataclass(frozen=True, slots=True)
class Measured:
    """A running server. requests: makes endless requests to it from a random generator."""

    target: Target
    requests: Callable[[Random], Iterator[Request]]

    def choices(self, random: Random) -> Mapping[str, list[Request]]:
        """Requests for calibrations to draw from."""
        asked = self.requests(random)
        found = [next(asked) for _ in range(CALIBRATIONS_DRAWN)]
        return {found[0].kind: found}


def scale_of(run: Run) -> float:
    """K: as in the options, or the experiment's default."""
    return run.options.scale or run.choose(QUICK_SCALE, SCALE)


@contextmanager
def measured(run: Run, server: str) -> Iterator[Measured]:
    """Run the server `server` in the mode of `run` until the `with` block ends."""
    starts = _EMULATED if run.options.mode is Mode.EMULATED else _REAL
    with starts[server](run) as found:
        yield found


@contextmanager
def _emulated(run: Run) -> Iterator[Measured]:
    blockwise = scale_of(run) <= BLOCKWISE_UP_TO
    with _study(run) if blockwise else _waiting(run) as found:
        yield found


@contextmanager
def _study(run: Run) -> Iterator[Measured]:
    folder = run.scratch / "study"
    if not folder.exists():
        study.write_small_chain(folder)
    with study.running(folder, run.log, emulated_disk=scale_of(run)) as service:
        asked = Request(_KIND, study.FLIGHT_COUNTER)
        yield Measured(service, lambda random: repeat(asked))


@contextmanager
def _waiting(run: Run) -> Iterator[Measured]:
    with known.known_server(known.FCFS, run.log) as service:
        yield Measured(service, _demands(run))


@contextmanager
def _burning(run: Run) -> Iterator[Measured]:
    with ExitStack() as stack:
        with at_most_cores(1):  # the server can use no more; the others are for the generator
            starting = known.known_server(known.PROCESSOR_SHARING, run.log, mode="burn")
            service = stack.enter_context(starting)
        yield Measured(service, _demands(run))


def _demands(run: Run) -> Callable[[Random], Iterator[Request]]:
    """Requests with the study's service time divided by K and its coefficient of variation."""
    mean_s, cv = UNROUNDED.mean_s / scale_of(run), UNROUNDED.variation
    return lambda random: demanded(gamma_demands(mean_s, cv, random))


@contextmanager
def _scanning(run: Run, **settings: object) -> Iterator[Measured]:
    flights = int(run.choose(QUICK_FLIGHTS, FLIGHTS))
    chain = imported(generated(flights), run.scratch / "chain", run.log)
    with running(chain.folder, run.log, settings={"workers": 1, **settings}) as service:
        asked = Request(_KIND, _scan_path(service))
        yield Measured(service, lambda random: repeat(asked))


def _sharing(run: Run) -> AbstractContextManager[Measured]:
    """A service whose scans share the processors, eight at a time; further scans wait."""
    return _scanning(run, lane_threads=8, lane_queue=100_000)


def _scan_path(service: Service) -> str:
    """The path of the study's question about two cities of this chain, for a scan of all of it."""
    flight = flights_of_block(service, 1)[0]
    cities = {f"{end}_CITY_NAME": flight[f"{end}_CITY_NAME"] for end in ("ORIGIN", "DEST")}
    days = dict.fromkeys(("INITIAL_DATE", "FINAL_DATE"), flight["FL_DATE"])
    return Question(_KIND, cities | days).scan_path


_EMULATED = {FCFS: _emulated, SHARED: _burning}
_REAL = {FCFS: lambda run: _scanning(run, worker_type="sync"), SHARED: _sharing}
