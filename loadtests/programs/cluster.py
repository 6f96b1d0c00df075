"""Keep a cluster on this machine until this program gets SIGTERM, as the parent of all its nodes.

    python -m loadtests.programs.cluster FOLDER NODES CHAIN

FOLDER: new, for what the nodes keep. CHAIN: the folder of the ledger that they begin with. Their
ports are free ones. The file `up` in FOLDER says that all nodes are ready. Linux only.
"""

import ctypes
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from types import FrameType

from loadtests.processes import family

UP = "up"
_PR_SET_CHILD_SUBREAPER = 36  # prctl(2): who loses its parent becomes a child of this process
_COMMAND = [sys.executable, "-m", "backend", "cluster"]


def main(folder: str, nodes: str, chain: str) -> None:
    """Run the cluster."""
    signal.signal(signal.SIGTERM, _end)
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
    if status := subprocess.run([*_COMMAND, *arguments], check=False).returncode:  # noqa: S603  ours
        sys.exit(status)


def _end(_number: int, _frame: FrameType | None) -> None:
    sys.exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
