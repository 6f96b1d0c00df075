"""Runs a part of an import in a process of its own, which sends what it makes through a pipe.

Messages go one way. When the pipe breaks, the child ends; it writes nothing that could be torn, so
it may be killed at any moment.
"""

import fcntl
import gc
import multiprocessing
import signal
from collections.abc import Callable, Generator
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

from backend.base.errors import FlightchainError
from backend.base.processes.parent_death import die_with_parent

PIPE_BYTES = 2**20  # the pipe holds many blocks, so that making and taking them overlap
SIGNAL_WITHIN_S = 1.0  # a signal that comes just before a read begins does not interrupt it

Send = Callable[[object], None]

_processes = multiprocessing.get_context("fork")
_END = None


def sent_by(work: Callable[[Send], None]) -> Generator[Any, None, None]:
    """Run `work` in a child, and yield what it sends.

    Raises the FlightchainError that ended it, or one that says that it died.
    """
    ours, theirs = _processes.Pipe(duplex=False)
    with suppress(OSError):  # a user with many pipes gets none of that size, and works slower
        fcntl.fcntl(ours.fileno(), fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    child = _processes.Process(target=_run, args=(work, ours, theirs))
    child.start()
    theirs.close()
    try:
        while (message := _received(ours)) is not _END:
            if isinstance(message, FlightchainError):
                raise message
            yield message
    finally:
        ours.close()
        child.kill()
        child.join()


def _received(connection: Connection) -> Any:
    try:
        while not connection.poll(SIGNAL_WITHIN_S):
            pass
        return connection.recv()
    except (EOFError, OSError):  # it may have died in the middle of a message
        raise FlightchainError(
            "the process that reads the source died; run the import again"
        ) from None


def _run(work: Callable[[Send], None], theirs: Connection, ours: Connection) -> None:
    """Run as the child. theirs, ours: the parent's end of the pipe, which is closed, and ours."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides, and breaks the pipe
    # A child that outlives the import would keep the writer lock that it inherited.
    die_with_parent(signal.SIGKILL)
    gc.disable()  # millions of tuples and no cycles: collecting costs a third of the time
    theirs.close()
    with suppress(BrokenPipeError):  # the parent is gone
        try:
            work(ours.send)
        except FlightchainError as error:
            ours.send(error)
        else:
            ours.send(_END)
