"""A disk that takes its time to sync: strace delays the return of every sync of a service.

On a disk that syncs in a fraction of a millisecond, the processor decides how fast flights are
accepted. The disk of a Pi takes 5 to 20 ms, and then sharing syncs decides. strace halts a process
only at its syncs (--seccomp-bpf), so that everything else runs at full speed. The delays of several
processes pass at the same time; a real disk may make them queue.
"""

import shutil
import subprocess
from collections.abc import Sequence

SYNC_MS = 10

_SYNCS = "fdatasync,fsync"


def slowed(sync_ms: int, strace: str = "strace") -> list[str]:
    """A prefix for a command that makes its syncs so much longer; it keeps the process id."""
    delay_us = 1000 * sync_ms
    return [
        *(strace, "--daemonize", "--follow-forks", "--seccomp-bpf", "--quiet=all"),
        *(f"--trace={_SYNCS}", f"--inject={_SYNCS}:delay_exit={delay_us}"),
        *("--output=/dev/null", "--"),
    ]


def obstacle(prefix: Sequence[str]) -> str | None:
    """Why commands cannot be run with `prefix` here; None if they can."""
    if shutil.which(prefix[0]) is None:
        return f"{prefix[0]} is missing; on Debian: sudo apt install strace"
    tried = subprocess.run(  # noqa: S603  our own command
        [*prefix, "true"], capture_output=True, text=True, check=False
    )
    return None if tried.returncode == 0 else f"{prefix[0]} does not work: {tried.stderr.strip()}"
