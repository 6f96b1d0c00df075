"""Imports of tests read and build in this process, but where their processes are the point.

To fork a process that has all tests in it takes a tenth of a second, and the child another: more
than all the rest of most imports of tests. Tests of what dies or happens meanwhile, and commands
that run as processes, import as everybody does.
"""

import pickle
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from backend.base.errors import FlightchainError
from backend.cli import month_import
from backend.sealing import importer, source_check
from backend.sealing.child import Send

IMPORTING = (importer, month_import, source_check)
Sent = Callable[[Callable[[Send], None]], Generator[Any, None, None]]


def sent_here(work: Callable[[Send], None]) -> Generator[Any, None, None]:
    """What `work` sends, and then the error that ends it, as `sent_by` yields and raises them."""
    messages: list[bytes] = []
    ended: FlightchainError | None = None
    try:
        work(lambda message: messages.append(pickle.dumps(message)))
    except FlightchainError as error:
        ended = pickle.loads(pickle.dumps(error))
    yield from map(pickle.loads, messages)
    if ended is not None:
        raise ended


@contextmanager
def importing(sent: Sent) -> Iterator[None]:
    """Let imports get what is read and built from there, such as `sent_by`, meanwhile."""
    with pytest.MonkeyPatch.context() as patch:
        for module in IMPORTING:
            patch.setattr(module, "sent_by", sent)
        yield
