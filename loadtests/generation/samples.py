"""Samples of what the machine does during a run, once a second. Linux only.

Shares are of one core: 1.0 is a core that was busy all the time. Foreign time is that of all
programs but the generator, the server and this process, including what a hypervisor gave to others
(steal). It is nearly 0 on a quiet machine. The listen queue is the number of connections that the
kernel has accepted and the server has not.
"""

import csv
import os
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path
from time import monotonic

from loadtests.processes import LOOK_EVERY_S, family, stat_fields

SAMPLE_EVERY_S = 1.0

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_IDLE = slice(3, 5)  # idle, iowait
_COUNTED = slice(0, 8)  # user to steal; guest is within user
_LISTEN = "0A"


@dataclass(frozen=True, slots=True)
class Sample:
    """The second of a run before at_s.

    server_cpu, listen_queue: None if the server is on another machine.
    """

    at_s: float
    in_flight: int
    cores: tuple[float, ...]
    client_cpu: float
    server_cpu: float | None
    foreign_cpu: float
    load_average_1m: float
    listen_queue: int | None


class Sampler:
    """Samples the machine. client_pid, server_pid: counted with all their descendants."""

    def __init__(self, client_pid: int, server_pid: int | None, server_port: int | None) -> None:
        self._client_pid, self._server_pid, self._port = client_pid, server_pid, server_port
        self._last = self._looked()

    def sample(self, at_s: float) -> Sample:
        """A sample of the time since the last call or since construction. `in_flight` is 0."""
        before, now = self._last, self._looked()
        self._last = now
        wall_s = now.at_s - before.at_s
        cores = tuple(
            _share(late, early) for late, early in zip(now.cores, before.cores, strict=True)
        )
        client, server, own = (
            used_s(late, early) / wall_s for late, early in zip(now.used, before.used, strict=True)
        )
        return Sample(
            at_s,
            0,
            cores,
            client,
            None if self._server_pid is None else server,
            max(0.0, sum(cores) - client - server - own),
            os.getloadavg()[0],
            None if self._server_pid is None else listen_queue(self._port or 0),
        )

    def while_running(
        self, process: "subprocess.Popen[bytes]", start_s: float, until_s: float = inf
    ) -> Iterator[Sample]:
        """A sample for each second after `start_s`, until `process` ends or `until_s` has come.

        All times are on CLOCK_MONOTONIC, those of the samples, too.
        """
        next_s = start_s + SAMPLE_EVERY_S
        while process.poll() is None and (now_s := monotonic()) < until_s:
            try:
                process.wait(max(LOOK_EVERY_S, min(next_s, until_s) - now_s))
            except subprocess.TimeoutExpired:
                yield self.sample(monotonic())
                next_s += SAMPLE_EVERY_S

    def _looked(self) -> "_Look":
        server = {} if self._server_pid is None else cpu_s(family(self._server_pid))
        used = (cpu_s(family(self._client_pid)), server, cpu_s([os.getpid()]))
        return _Look(monotonic(), core_ticks(), used)


@dataclass(frozen=True, slots=True)
class _Look:
    at_s: float
    cores: list[tuple[int, int]]
    used: tuple[dict[int, float], ...]


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
    waiting = 0
    for line in (line for table in tables for line in table.splitlines()[1:]):
        _, local, _, state, queues = line.split()[:5]
        if state == _LISTEN and int(local.rpartition(":")[2], 16) == port:
            waiting += int(queues.rpartition(":")[2], 16)
    return waiting


# --- samples.csv -----------------------------------------------------------------------------


def append(path: Path, run: str, samples: Sequence[Sample]) -> None:
    """Append the samples of a run to a file, which is made with a header line if it is missing."""
    if not samples:
        return
    with path.open("a", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        if file.tell() == 0:
            writer.writerow(_columns(len(samples[0].cores)))
        for sample in samples:
            writer.writerow(_values(run, sample))


def _columns(cores: int) -> list[str]:
    each = [f"cpu_{core}" for core in range(cores)]
    ours = ["client_cpu", "server_cpu", "foreign_cpu"]
    return ["run", "at_s", "in_flight", *each, *ours, "load_average_1m", "listen_queue"]


def _values(run: str, sample: Sample) -> list[str]:
    server = "" if sample.server_cpu is None else f"{sample.server_cpu:.3f}"
    queue = "" if sample.listen_queue is None else str(sample.listen_queue)
    shares = [f"{share:.3f}" for share in sample.cores]
    ours = [f"{sample.client_cpu:.3f}", server, f"{sample.foreign_cpu:.3f}"]
    front = [run, f"{sample.at_s:.3f}", str(sample.in_flight)]
    return [*front, *shares, *ours, f"{sample.load_average_1m:.2f}", queue]


def read(path: Path, run: str | None = None) -> dict[str, list[Sample]]:
    """The samples of every run in a file, or of one. Raises OSError, ValueError."""
    found: dict[str, list[Sample]] = {}
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if run is None or row["run"] == run:
                found.setdefault(row["run"], []).append(_sample(row))
    return found


def _sample(row: dict[str, str]) -> Sample:
    cores = [name for name in row if name.startswith("cpu_")]
    return Sample(
        float(row["at_s"]),
        int(row["in_flight"]),
        tuple(float(row[name]) for name in cores),
        float(row["client_cpu"]),
        float(row["server_cpu"]) if row["server_cpu"] else None,
        float(row["foreign_cpu"]),
        float(row["load_average_1m"]),
        int(row["listen_queue"]) if row["listen_queue"] else None,
    )
