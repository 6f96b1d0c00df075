"""Runs a cluster of our service on this machine, for experiments that measure it.

    with running_cluster(folder, log, chain.folder, nodes=4, interval_s=0.5) as cluster:
        cluster.service   # node 0; its `pid` is the parent of all processes of all nodes
        cluster.urls      # of all nodes
        cluster.cpu_s()   # used by the consensus engines, and by all else

A single node is a cluster of one without an engine, so that both are measured alike: `alone`.
"""

import os
import shutil
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep

from loadtests.generation.samples import cpu_s
from loadtests.processes import (
    HOST,
    LOOK_EVERY_S,
    READY_WITHIN_S,
    ProgramFailed,
    Service,
    Site,
    environment,
    failure,
    family,
    started,
    stop,
)
from loadtests.programs.cluster import UP

ENGINE = "cometbft"
MINED_WITHIN_S = 120.0
LOOK_AT_TIPS_EVERY_S = 0.05


@dataclass(frozen=True, slots=True)
class Cluster:
    """Nodes that keep one ledger. service: node 0, with the parent of all processes as its pid."""

    service: Service
    urls: tuple[str, ...]

    def cpu_s(self) -> tuple[float, float]:
        """Seconds of processor time used so far: by the engines of all nodes, and by all else."""
        used = cpu_s(family(self.service.pid))
        engines_s = sum(s for pid, s in used.items() if is_engine(pid))
        return engines_s, sum(used.values()) - engines_s

    def wait_until_mined(self) -> None:
        """Return when no node has a flight that is not mined. Raises ProgramFailed."""
        until_s = monotonic() + MINED_WITHIN_S
        while any(Site(url).get("/tip")["pending"] for url in self.urls):
            if monotonic() > until_s:
                raise ProgramFailed(f"flights were not mined within {MINED_WITHIN_S:g} s")
            sleep(LOOK_AT_TIPS_EVERY_S)


def is_engine(pid: int) -> bool:
    """Whether a process is a consensus engine."""
    try:
        program = Path(f"/proc/{pid}/cmdline").read_bytes().partition(b"\0")[0]
    except OSError:
        return False
    return Path(program.decode(errors="replace")).name == ENGINE


def missing() -> str | None:
    """Why no cluster can run here; None if it can."""
    named = os.environ.get("COMETBFT") or shutil.which(ENGINE)
    if Path(named or Path.home() / "go" / "bin" / ENGINE).exists():
        return None
    return "the consensus engine CometBFT is missing; scripts/cluster up builds it"


def alone(service: Service) -> Cluster:
    """A single node, without consensus."""
    return Cluster(service, (service.url,))


@contextmanager
def running_cluster(
    folder: Path, log: Path, chain: Path, *, nodes: int, interval_s: float
) -> Iterator[Cluster]:
    """A cluster in the new `folder` that begins with a copy of the ledger in `chain`, ready.

    interval_s: the time between blocks. Raises ProgramFailed, for instance without CometBFT.
    """
    port = _free_ports(2 * nodes)
    given = (folder, nodes, chain, port, port + nodes)
    command = [sys.executable, "-m", "loadtests.programs.cluster", *map(str, given)]
    process = started(command, log, environment(folder, {"mine_interval_s": interval_s}))
    try:
        until_s = monotonic() + READY_WITHIN_S
        while not (folder / UP).exists():
            if process.poll() is not None:
                raise ProgramFailed(failure(command, process.returncode, log))
            if monotonic() > until_s:
                raise ProgramFailed(
                    f"the cluster was not ready within {READY_WITHIN_S} s; see {log}"
                )
            sleep(LOOK_EVERY_S)
        urls = tuple(f"http://{HOST}:{port + i}" for i in range(nodes))
        yield Cluster(Service(process.pid, port), urls)
    finally:
        stop(process)


def _free_ports(count: int) -> int:
    """The first of so many free ports of the loopback address, one after the other."""
    while True:
        probes = [socket.socket() for _ in range(count)]
        try:
            probes[0].bind((HOST, 0))
            first: int = probes[0].getsockname()[1]
            for i, probe in enumerate(probes[1:], start=1):
                probe.bind((HOST, first + i))
        except (OSError, OverflowError):
            continue
        else:
            return first
        finally:
            for probe in probes:
                probe.close()
