"""Samples of what the machine does during a run, once a second. Linux only.

Shares are of one core: 1.0 is a core that was busy all the time. Foreign time is that of all
programs but the generator, the server and this process, including what a hypervisor gave to others
(steal). The listen queue is the number of connections that the kernel has accepted and the server
has not.
"""

import csv
import os
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from io import StringIO
from math import inf
from pathlib import Path
from time import monotonic

from loadtests.processes import LOOK_EVERY_S, ProgramFailed, family, stat_fields
from loadtests.tables import cell, parser, to_append, types_of, whole_lines

SAMPLE_EVERY_S = 1.0

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_IDLE = slice(3, 5)  # idle, iowait
_COUNTED = slice(0, 8)  # user to steal; guest is within user
_LISTEN = "0A"


@dataclass(frozen=True, slots=True)
class Sample:
    """The second of a run before at_s. server_cpu, listen_queue: None for a server elsewhere."""

    at_s: float
    in_flight: int
    cores: tuple[float, ...]
    client_cpu: float
    server_cpu: float | None
    foreign_cpu: float
    load_average_1m: float
    listen_queue: int | None


_LOAD = "load_average_1m"
_TYPES = {name: of for name, of in types_of(Sample).items() if name != "cores"}


class Sampler:
    """Samples the machine. client_pid, server_pid: counted with all their descendants."""

    def __init__(self, client_pid: int, server_pid: int | None, server_port: int | None) -> None:
        self._client_pid, self._server_pid, self._port = client_pid, server_pid, server_port
        self._last = self._looked()

    def sample(self) -> Sample:
        """A sample of the time since the last call or since construction. `in_flight` is 0."""
        before_s, ticks_before, used_before = self._last
        now_s, ticks, used = self._last = self._looked()
        cores = tuple(_share(*of_core) for of_core in zip(ticks, ticks_before, strict=True))
        client, server, own = (
            spent_s / (now_s - before_s) for spent_s in map(used_s, used, used_before)
        )
        is_here = self._server_pid is not None
        return Sample(
            at_s=now_s,
            in_flight=0,
            cores=cores,
            client_cpu=client,
            server_cpu=server if is_here else None,
            foreign_cpu=max(0.0, sum(cores) - client - server - own),
            load_average_1m=os.getloadavg()[0],
            listen_queue=listen_queue(self._port or 0) if is_here else None,
        )

    def while_running(
        self, process: "subprocess.Popen[bytes]", start_s: float, until_s: float = inf
    ) -> Iterator[Sample]:
        """A sample for each second from `start_s` until `process` ends or `until_s` has come.

        All times are on CLOCK_MONOTONIC, those of the samples, too.
        """
        next_s = start_s + SAMPLE_EVERY_S
        while process.poll() is None and (now_s := monotonic()) < until_s:
            try:
                process.wait(max(LOOK_EVERY_S, min(next_s, until_s) - now_s))
            except subprocess.TimeoutExpired:
                yield self.sample()
                next_s += SAMPLE_EVERY_S

    def _looked(self) -> tuple[float, list[tuple[int, int]], list[dict[int, float]]]:
        """The time, the ticks of all cores, and what client, server and this process have used."""
        server = () if self._server_pid is None else family(self._server_pid)
        used = [cpu_s(pids) for pids in (family(self._client_pid), server, [os.getpid()])]
        return monotonic(), core_ticks(), used


def core_ticks(stat: str | None = None) -> list[tuple[int, int]]:
    """Busy ticks and all ticks of every core so far. stat: as in /proc/stat; None: read now."""
    found = []
    for line in (stat or Path("/proc/stat").read_text("ascii")).splitlines():
        name, *values = line.split()
        if name.startswith("cpu") and name != "cpu":
            ticks = [int(value) for value in values[_COUNTED]]
            found.append((sum(ticks) - sum(ticks[_IDLE]), sum(ticks)))
    return found


def _share(now: tuple[int, int], before: tuple[int, int]) -> float:
    passed = now[1] - before[1]
    return (now[0] - before[0]) / passed if passed > 0 else 0.0


def cpu_s(pids: Iterable[int]) -> dict[int, float]:
    """Seconds of processor time that each process has used, without processes that have ended."""
    known = ((pid, stat_fields(pid)) for pid in pids)
    return {pid: (int(of[11]) + int(of[12])) / TICKS_PER_S for pid, of in known if of}


def used_s(now: Mapping[int, float], before: Mapping[int, float]) -> float:
    """Seconds that the processes of `now` have used since `before`, both as by `cpu_s`."""
    return sum(after_s - before.get(pid, 0.0) for pid, after_s in now.items())


def listen_queue(port: int) -> int:
    """Number of connections that wait to be accepted at `port`."""
    paths = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
    tables = [path.read_text("ascii") for path in paths if path.exists()]
    lines = (line.split() for table in tables for line in table.splitlines()[1:])
    return sum(
        int(queues.rpartition(":")[2], 16)
        for _, local, _, state, queues, *_ in lines
        if state == _LISTEN and int(local.rpartition(":")[2], 16) == port
    )


def require_same_machine(path: Path) -> None:
    """Raise ProgramFailed if a table has samples of a machine with another number of cores."""
    with closing(whole_lines(path) if path.exists() else StringIO()) as table:
        names = next(csv.reader(table), [])
    cores = sum(name.startswith("cpu_") for name in names)
    if cores not in {0, len(core_ticks())}:
        told = f"has samples of a machine with {cores} cores, and this one has {len(core_ticks())}"
        raise ProgramFailed(f"{path} {told}; begin anew")


def append(path: Path, run: str, samples: Sequence[Sample]) -> None:
    """Append the samples of a run to a table, which is made if it is missing: cpu_N is core N."""
    rows = [_cells(run, sample) for sample in samples]
    if rows:
        with to_append(path, tuple(rows[0])) as file:
            csv.writer(file).writerows(row.values() for row in rows)


def _cells(run: str, sample: Sample) -> dict[str, object]:
    values: dict[str, object] = {"run": run}
    for name, value in asdict(sample).items():
        if name == "cores":
            values |= {f"cpu_{core}": share for core, share in enumerate(value)}
        else:
            values[name] = value
    return {name: cell(value, 2 if name == _LOAD else 3) for name, value in values.items()}


def read(path: Path, run: str | None = None) -> dict[str, list[Sample]]:
    """The samples of every run in a file, or of one; none if it is missing. Raises ValueError."""
    found: dict[str, list[Sample]] = {}
    for row in csv.DictReader(whole_lines(path)) if path.exists() else ():
        if run is None or row["run"] == run:
            known = {name: parser(of)(row[name]) for name, of in _TYPES.items()}
            cores = tuple(float(row[name]) for name in row if name.startswith("cpu_"))
            found.setdefault(row["run"], []).append(Sample(cores=cores, **known))
    return found
