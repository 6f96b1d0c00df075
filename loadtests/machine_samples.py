"""Samples who uses the processor of the machine: once a second during a run, or once. Linux only.

Shares are of one core: 1.0 is a core that was busy all the time. Foreign time is that of all
programs but the generator, the server and this process, including what a hypervisor gave to others
(steal). Linux counts in ticks, mostly of 10 ms; over a second, a difference is good to 2 or 3 % of
a core. Source: proc(5), /proc/stat and /proc/pid/stat.
"""

import csv
import os
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage
from time import monotonic

from loadtests.grouping import grouped
from loadtests.process_table import family, stat_fields
from loadtests.processes import LOOK_EVERY_S
from loadtests.tables import Line, TableWriter, lines_of, whole_lines

SAMPLE_EVERY_S = 1.0

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_IDLE = slice(3, 5)  # idle, iowait
_COUNTED = slice(0, 8)  # user to steal; guest is within user


@dataclass(frozen=True, slots=True)
class Sample(Line):
    """Holds the shares of the time before at_s. server_cpu: None for a server elsewhere."""

    at_s: float
    client_cpu: float
    server_cpu: float | None
    foreign_cpu: float
    run: str = ""  # whose it is, in a table


class Sampler:
    """Samples the machine. client_pid, server_pid: counted with all their descendants.

    Without a client, the client is this process, with those of its children that have ended.
    """

    def __init__(self, client_pid: int | None, server_pid: int | None) -> None:
        self._client_pid, self._server_pid = client_pid, server_pid
        self._last = self._looked()

    def sample(self) -> Sample:
        """Return a sample of the time since the last call or since construction."""
        before_s, busy_before_s, used_before = self._last
        now_s, busy_now_s, used = self._last = self._looked()
        passed_s = now_s - before_s
        ours = [spent_s / passed_s for spent_s in map(used_s, used, used_before)]
        client, server = ours[:2]
        foreign = (busy_now_s - busy_before_s) / passed_s - sum(ours)
        server_cpu = None if self._server_pid is None else server
        return Sample(now_s, client, server_cpu, max(0.0, foreign))

    def while_running(
        self, process: "subprocess.Popen[bytes]", start_s: float, until_s: float = inf
    ) -> Iterator[Sample]:
        """Yield a sample for each second from `start_s` until `process` ends or `until_s` has come.

        All times are on CLOCK_MONOTONIC, those of the samples, too.
        """
        next_s = start_s + SAMPLE_EVERY_S
        while process.poll() is None and (now_s := monotonic()) < until_s:
            try:
                process.wait(max(LOOK_EVERY_S, min(next_s, until_s) - now_s))
            except subprocess.TimeoutExpired:
                yield self.sample()
                next_s += SAMPLE_EVERY_S

    def _looked(self) -> tuple[float, float, list[dict[int, float]]]:
        """Return the time, the busy time of all cores, and that of client, server and us.

        If the client is this process, there is nobody else of us.
        """
        server = cpu_s(() if self._server_pid is None else family(self._server_pid))
        if self._client_pid is None:
            usages = [getrusage(whose) for whose in (RUSAGE_SELF, RUSAGE_CHILDREN)]
            own_s = sum(usage.ru_utime + usage.ru_stime for usage in usages)
            return monotonic(), busy_s(), [{os.getpid(): own_s}, server]
        used = [cpu_s(family(self._client_pid)), server, cpu_s([os.getpid()])]
        return monotonic(), busy_s(), used


def busy_s(stat: str | None = None) -> float:
    """Return for how many s all cores together were busy. stat: as in /proc/stat; None: now."""
    total = (stat or Path("/proc/stat").read_text("ascii")).splitlines()[0]
    ticks = [int(value) for value in total.split()[1:][_COUNTED]]
    return (sum(ticks) - sum(ticks[_IDLE])) / TICKS_PER_S


def cpu_s(pids: Iterable[int]) -> dict[int, float]:
    """Return the processor time in s of each process, without processes that have ended."""
    known = ((pid, stat_fields(pid)) for pid in pids)
    return {pid: sum(map(int, fields[11:13])) / TICKS_PER_S for pid, fields in known if fields}


def used_s(now: Mapping[int, float], before: Mapping[int, float]) -> float:
    """Return the s that the processes of `now` have used since `before`, both as by `cpu_s`."""
    return sum(after_s - before.get(pid, 0.0) for pid, after_s in now.items())


def append(path: Path, run: str, samples: Sequence[Sample]) -> None:
    """Append the samples of a run to a table, which is made if it is missing."""
    if samples:
        with closing(TableWriter(path, Sample, decimals=3)) as table:
            table.add(*(replace(sample, run=run) for sample in samples))


def read(path: Path) -> dict[str, list[Sample]]:
    """Return the samples of every run in a file; none if it is missing. Raises ValueError."""
    if not path.exists():
        return {}
    samples = lines_of(Sample, path, csv.reader(whole_lines(path)))
    return grouped(samples, lambda sample: sample.run)
