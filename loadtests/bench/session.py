"""Holds what all measurements of a benchmark run share: the plan, and the services.

Things that are compared are measured in turns, and nothing else is measured meanwhile. Files are
warm in the page cache unless they do not fit into it.
"""

import gzip
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.client import HTTPConnection
from pathlib import Path
from tempfile import mkdtemp
from time import perf_counter
from typing import NamedTuple, TypeVar

from loadtests import wrk
from loadtests.chains import Chain, Source, generated, imported, is_imported
from loadtests.processes import ProgramFailed, Service, exchanged, running
from loadtests.questions import Questions, tried_out
from loadtests.servers.timing import SERVER_TIMING, durations_s

SEED = 2008
LONGEST_FACTOR = 100
DISK_BYTES_A_FLIGHT = 120  # of its blocks and its index, at most
FLIGHTS = 606_000  # they make as many blocks as a month of all US flights
RECENT_BLOCKS = 20
PAGE = 20

Result = TypeVar("Result")
Sent = tuple[Service, Path] | tuple[Service, Path, int]  # a load, as `Bench.load` takes it


@dataclass(frozen=True, slots=True)
class Plan:
    """Says how much is measured. factors: of the long chains. hours: of requests, for row 7."""

    rows: frozenset[int] = frozenset()
    flights: int = FLIGHTS
    factors: tuple[int, ...] = (4,)
    rounds: int = 5
    round_s: int = 3
    scan_rounds: int = 3
    repeats: int = 3
    questions_per_kind: int = 2000
    hours: float = 1.0


QUICK = Plan(
    flights=3000, rounds=1, round_s=1, scan_rounds=1, repeats=1, questions_per_kind=50, hours=0.01
)


@dataclass
class Bench:
    """Holds what the measurements of a run share.

    month_source: the source of the month. folder: of the chains. scratch: a folder for files that
    are not kept. import_log: takes the progress of imports; None shows it.
    """

    plan: Plan
    month_source: Source
    folder: Path
    scratch: Path
    log: Path
    import_log: Path | None
    _drawn: dict[Path, Questions] = field(default_factory=dict)

    def month(self) -> Chain:
        return self._chain(self.month_source)

    def generated(self, factor: int) -> Chain:
        """Return a generated chain `factor` times as long as the shortest."""
        return self._chain(generated(factor * self.plan.flights))

    def _chain(self, source: Source) -> Chain:
        if not is_imported(self._home(source)):
            say(f"importing {source.label}")
        return imported(source, self._home(source), self.import_log)

    def _home(self, source: Source) -> Path:
        return self.folder / source.label.replace(" ", "-").replace(",", "").replace("/", "-")

    def require_room(self) -> None:
        """Raise ProgramFailed if the disk has no room for the long chains that are not kept yet."""
        counts = [factor * self.plan.flights for factor in self.plan.factors]
        flights = sum(n for n in counts if not is_imported(self._home(generated(n))))
        need_bytes, free_bytes = DISK_BYTES_A_FLIGHT * flights, shutil.disk_usage(self.folder).free
        if free_bytes < need_bytes:
            raise ProgramFailed(
                f"{flights:,} generated flights need {need_bytes / 1e9:.1f} GB, and {self.folder} "
                f"has {free_bytes / 1e9:.1f} GB; choose another folder with --keep"
            )

    def service(
        self, chain: Chain, arguments: Sequence[str] = ("serve",), **settings: object
    ) -> AbstractContextManager[Service]:
        """Run a service on `chain`, with these settings and defaults for the others."""
        return running(chain.folder, self.log, arguments, settings=settings)

    def questions(self, chain: Chain, service: Service) -> Questions:
        """Return questions about `chain`, which `service` holds; drawn and tried out once."""
        if chain.folder not in self._drawn:
            say(f"drawing questions about {chain.label}, and asking each once")
            self._drawn[chain.folder] = tried_out(service, self.plan.questions_per_kind, SEED)
        return self._drawn[chain.folder]

    def script(self, paths: Sequence[str], etags: Sequence[str] = ()) -> Path:
        """Write a script for wrk that asks for `paths`. etags: those that the client has."""
        return wrk.write_script(self.empty_folder() / "get.lua", paths, etags)

    def posting_script(self, flights: Sequence[bytes]) -> Path:
        return wrk.write_posting_script(self.empty_folder() / "post.lua", "/transactions", flights)

    def load(self, service: Service, script: Path, connections: int = wrk.CONNECTIONS) -> wrk.Load:
        round_s = self.plan.round_s
        return wrk.load(service.url, script, round_s, connections, service.pid)

    def in_turns(self, what: str, *loads: Sent) -> list[list[wrk.Load]]:
        """Send each load once in every round. Returns the rounds of each, in their order."""
        rounds = []
        for number in range(1, self.plan.rounds + 1):
            say(f"{what}, round {number} of {self.plan.rounds}")
            rounds.append([self.load(*load) for load in loads])
        return list(map(list, zip(*rounds, strict=True)))

    def repeats(self, what: str) -> Iterator[int]:
        """Yield the numbers of the times that something is repeated, each said as it begins."""
        for number in range(1, self.plan.repeats + 1):
            say(f"{what}, {number} of {self.plan.repeats}")
            yield number

    def empty_folder(self) -> Path:
        """Return a folder for a new chain, on the disk of the others."""
        return Path(mkdtemp(dir=self.scratch))


def say(text: str) -> None:
    print(f"[{datetime.now(UTC):%H:%M:%S}] {text}", file=sys.stderr, flush=True)


def timed(call: Callable[[], Result]) -> tuple[Result, float]:
    """Return what a call returns, and the seconds that it takes."""
    start_s = perf_counter()
    return call(), perf_counter() - start_s


class Got(NamedTuple):
    """Holds an answer. sent_bytes: as it came, perhaps compressed. timing_ms: Server-Timing's."""

    body: bytes
    sent_bytes: int
    took_s: float
    timing_ms: Mapping[str, float]


def got(
    connection: HTTPConnection, path: str, *entries: str, headers: Mapping[str, str] | None = None
) -> Got:
    """GET `path`. Raises ProgramFailed unless it is there, and Server-Timing has all `entries`."""
    (response, data), took_s = timed(
        lambda: exchanged(connection, path, headers=headers, status=200)
    )
    timing = response.headers.get(SERVER_TIMING, "")
    timing_ms = {name: 1000 * duration_s for name, duration_s in durations_s(timing).items()}
    if not timing_ms.keys() >= set(entries):
        raise ProgramFailed(f"{path} has the timing {timing!r}")
    is_packed = response.headers.get("Content-Encoding") == "gzip"
    return Got(gzip.decompress(data) if is_packed else data, len(data), took_s, timing_ms)


def newest_blocks(service: Service) -> tuple[range, range]:
    """Return the heights of the newest RECENT_BLOCKS blocks, and their transactions' numbers."""
    tip = service.get("/tip")
    heights = range(max(1, tip["height"] + 1 - RECENT_BLOCKS), tip["height"] + 1)
    block = service.get(f"/blocks/{heights.start}?limit=1")["block"]
    return heights, range(block["first_transaction"], tip["transactions"])
