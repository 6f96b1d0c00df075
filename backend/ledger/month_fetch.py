"""Has the command line fetch a month of BTS, in a process of its own, and says how far that is.

The process holds a lock on `months.log`, into which it writes what it says, so that every worker
can tell how far it is, and none starts another. It ends with the service; a later one goes on.
"""

import os
import sys
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Annotated, Literal

from msgspec import Meta

from backend.base.errors import PlacesTaken, WriterBusy
from backend.base.files import LOCK_MODE, MOMENT_S, is_locked, lock_within, reason_of, refusals
from backend.base.processes.own_command import started
from backend.ledger.bts_months import PREFIX, Month
from backend.questions.answer_types import Answer

LOG_NAME = "months.log"
ENDED = "ended with status "


class MonthFetch(Answer):
    """How far a month is that is downloaded from BTS and imported."""

    state: Literal["idle", "running", "done", "failed"]
    month: Annotated[str | None, Meta(description="null if none was ever fetched")]
    message: Annotated[str, Meta(description="last message of its import")]


class MonthFetcher:
    """Fetches months into the ledger in `folder`, one at a time."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / LOG_NAME

    def start(self, month: Month) -> MonthFetch:
        """Begin to fetch a month. Raises PlacesTaken while one is fetched already; WriteFailed."""
        with refusals("open", self._path):
            log = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND, LOCK_MODE)
        try:
            lock_within(log, MOMENT_S, self._path)
            with refusals("write", self._path):
                os.truncate(log, 0)
                os.write(log, f"{month}\n".encode())
            Thread(target=_fetch, args=(month, log), name="month-fetch", daemon=True).start()
        except BaseException as error:
            os.close(log)
            if isinstance(error, WriterBusy):  # it names a process of this service
                raise PlacesTaken(
                    "a month is being fetched already; wait until it is done", retry_after_s=60
                ) from error
            raise
        return MonthFetch("running", str(month), "")

    def look(self) -> MonthFetch:
        """Return how far the last fetch is."""
        is_running = is_locked(self._path)
        try:
            month, *lines = self._path.read_text("utf-8", "replace").splitlines()
        except (FileNotFoundError, ValueError):
            return MonthFetch("idle", None, "")
        if is_running:
            return MonthFetch("running", month, lines[-1] if lines else "")
        *said, end = lines or [""]
        if end == f"{ENDED}0":
            return MonthFetch("done", month, said[-1] if said else "")
        if not said or not end.startswith(ENDED) or end.startswith(f"{ENDED}-"):  # by a signal
            return MonthFetch(
                "failed", month, "it was interrupted; fetch the month again to continue"
            )
        return MonthFetch("failed", month, said[-1])


def _fetch(month: Month, log: int) -> None:
    """Run the command until it ends. log: a descriptor that has the lock, which is closed then."""
    try:
        try:
            command = started("import", f"{PREFIX}{month}", stdout=log, stderr=log)
        except OSError as error:
            end = f"cannot start {reason_of(error, sys.executable)}\n{ENDED}1\n"
        else:
            end = f"{ENDED}{command.wait()}\n"
        with suppress(OSError):  # without its end, a fetch counts as interrupted
            os.write(log, end.encode())
    finally:
        os.close(log)
