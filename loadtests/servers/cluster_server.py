"""Runs a cluster of our service on this machine, for experiments that measure it.

    with running_cluster(folder, log, chain.folder, nodes=4, interval_s=0.5) as cluster:
        cluster.service   # node 0; its `pid` is the parent of all processes of all nodes
        cluster.urls      # of all nodes
        cluster.cpu_s()   # used by the consensus engines, and by all else

A single node is a cluster of one without an engine, so that both are measured alike: `alone`.

As a program this module is the parent of all nodes, which keeps a cluster until it gets SIGTERM:

    python -m loadtests.servers.cluster_server FOLDER NODES CHAIN

FOLDER: new, for what the nodes keep. CHAIN: the folder of the ledger that they begin with. Their
ports are free ones. The file `up` in FOLDER says that all nodes are ready. Linux only.
"""

import ctypes
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from loadtests.machine_samples import cpu_s
from loadtests.process_table import family
from loadtests.processes import (
    PROJECT,
    Service,
    Site,
    environment,
    started,
    stop,
    wait_for,
    wait_until,
)

UP = "up"
ENGINE_OPTION = b"--proxy_app"  # no other program of ours has it
MINED_WITHIN_S = 120.0
LOOK_AT_TIPS_EVERY_S = 0.05
_PR_SET_CHILD_SUBREAPER = 36  # prctl(2): who loses its parent becomes a child of this process


@dataclass(frozen=True, slots=True)
class Cluster:
    """Watches nodes that keep a ledger. service: node 0; its pid is the parent of all processes."""

    service: Service
    urls: tuple[str, ...]

    def cpu_s(self) -> tuple[float, float]:
        """Return the processor time in s used so far: by the engines of all nodes, by all else."""
        used = cpu_s(family(self.service.pid))
        engines_s = sum(used_s for pid, used_s in used.items() if _is_engine(pid))
        return engines_s, sum(used.values()) - engines_s

    def engines(self) -> list[int]:
        return [pid for pid in family(self.service.pid) if _is_engine(pid)]

    def wait_until_mined(self, within_s: float = MINED_WITHIN_S) -> None:
        """Return when every node has mined all flights of all nodes. Raises ProgramFailed."""
        problem = f"not all flights were mined by all within {within_s:g} s"
        wait_for(self._is_settled, within_s, problem, LOOK_AT_TIPS_EVERY_S)

    def _is_settled(self) -> bool:
        tips = [Site(url).get("/tip") for url in self.urls]
        return not any(tip["pending"] for tip in tips) and len({tip["hash"] for tip in tips}) == 1


def _is_engine(pid: int) -> bool:
    try:
        return ENGINE_OPTION in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False


def missing() -> str | None:
    """Return why no cluster can run here; None if it can."""
    tried = subprocess.run(
        [sys.executable, "-c", "from backend.cluster.engine import program; program()"],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
    )
    return None if tried.returncode == 0 else tried.stderr.strip().rpartition("Error: ")[2]


def alone(service: Service) -> Cluster:
    """Return a single node, without consensus, as a cluster."""
    return Cluster(service, (service.url,))


def urls_of_nodes(folder: Path) -> list[str]:
    """Return where the nodes of the cluster in `folder` answer, in their order."""
    hosts = json.loads((folder / "hosts.json").read_bytes())
    return [f"http://{host['host']}:{host['port']}" for host in hosts]


@contextmanager
def running_cluster(
    folder: Path, log: Path, chain: Path, *, nodes: int, interval_s: float
) -> Iterator[Cluster]:
    """Run a cluster in the new `folder` that begins with a copy of the ledger in `chain`.

    interval_s: the time between blocks. Raises ProgramFailed, for instance without CometBFT.
    """
    program = [sys.executable, "-m", "loadtests.servers.cluster_server"]
    command = [*program, str(folder), str(nodes), str(chain)]
    process = started(command, log, environment(folder, {"mine_interval_s": interval_s}))
    try:
        wait_until((folder / UP).exists, process, command, log)
        urls = tuple(urls_of_nodes(folder))
        yield Cluster(Service(urls[0], process.pid), urls)
    finally:
        stop(process)


# --- the parent of the nodes ---------------------------------------------------------------------


def main(folder: str, nodes: str, chain: str) -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)
    ports = ["--port", "0", "--peer-port", "0"]
    try:
        _call("up", nodes, "--folder", folder, "--chain", chain, *ports)
        (Path(folder) / UP).touch()
        signal.pause()
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # what ends the nodes must not be ended
        try:
            _call("down", "--folder", folder)
        finally:
            for pid in family(os.getpid())[1:]:  # such as a node that was only just started
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


def _call(*arguments: str) -> None:
    command = [sys.executable, "-m", "backend", "cluster", *arguments]
    if status := subprocess.run(command, check=False).returncode:  # noqa: S603  ours
        sys.exit(status)


if __name__ == "__main__":
    main(*sys.argv[1:])
