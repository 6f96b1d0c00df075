"""Runs the lab's servers under gunicorn.

m workers, or m threads of one, are m servers behind one queue.
"""

import sys
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from loadtests.processes import HOST, Service, free_port, plain_environment, serving

TIMEOUT_S = 3600  # gunicorn's default of 30 would kill a worker during a long request


@dataclass(frozen=True, slots=True)
class Gunicorn:
    """Settings of gunicorn.

    worker_class: `sync`, `gthread` or `asgi`. With `sync` each worker is first come, first served.
    threads: number in each gthread worker. options: further options of the command line.
    """

    worker_class: str = "sync"
    workers: int = 1
    threads: int = 1
    options: tuple[str, ...] = ()

    def command(self, application: str, port: int) -> list[str]:
        """The command line. application: `module:name` or `module:factory(arguments)`."""
        return [
            *(sys.executable, "-m", "gunicorn", "--bind", f"{HOST}:{port}"),
            *("--worker-class", self.worker_class, "--workers", str(self.workers)),
            *("--threads", str(self.threads), "--timeout", str(TIMEOUT_S)),
            *("--graceful-timeout", "2", "--worker-tmp-dir", "/dev/shm"),  # noqa: S108
            *("--no-control-socket", "--log-level", "warning"),
            *self.options,
            application,
        ]


FCFS = Gunicorn("sync", workers=1)


def gunicorn_server(
    application: str, how: Gunicorn, log: Path, asking: str = "/"
) -> AbstractContextManager[Service]:
    """Run an application under gunicorn on a free loopback port, until the `with` block ends.

    application: as in `Gunicorn.command`. asking: the path that it must answer with JSON and status
    200 before the block begins. Raises ProgramFailed if it does not start.
    """
    port = free_port()
    return serving(how.command(application, port), port, log, asking, plain_environment())
