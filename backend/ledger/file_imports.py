"""Keeps files of flights that were sent to the service, until they are checked and added.

A file comes in parts. Then `python -m backend sent-file ID` checks it in a process of its own, by
the reader of `import`, and with `--add` adds its flights. In the chain's folder stand

    import-ID.file   what was sent; its lock is held while that process runs
    import-ID.json   how far it is, which whoever sent it asks for
    import.lock      held while a request decides what is done with a file next

The process ends with the service. Files that nobody has touched for a day are removed.
"""

import os
import re
import secrets
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread
from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from backend.base import files
from backend.base.errors import (
    InvalidQuery,
    NotFound,
    PlacesTaken,
    TryLater,
    WriteFailed,
    WriterBusy,
)
from backend.base.files import FileLock
from backend.base.processes.own_command import started
from backend.base.settings import Settings
from backend.base.state_file import StateFile
from backend.base.words import counted
from backend.chain.json_objects import Json
from backend.questions.answer_types import Answer, Count, Share, ref

KEPT_S = 24 * 3600
LEAP_S = 3600.0  # if the clock gains or loses more than this on the time since boot, it was set
ID_BYTES = 16
MOST_NAME_CHARACTERS = 255  # no system takes a longer name
AT_WORK = {"checking", "adding"}
BUSY = "another file is being checked or added; wait until it is done"

_is_id = re.compile(r"[0-9a-f]{32}", re.ASCII).fullmatch
_Id = Annotated[Count | None, Meta(description="null in a cluster until the flight is mined")]
_Address = Annotated[str, Meta(description="in a cluster, the address of its receipt")] | UnsetType


class Added(Answer, kw_only=True):
    """What was added of a file."""

    flights: Count
    first_transaction: _Id
    last_transaction: _Id
    receipt: _Address = UNSET
    last_receipt: _Address = UNSET
    already_there: Count
    conflicts: Count
    left_out: Annotated[Count, Meta(description="bad rows")]


class FileImport(Answer, kw_only=True):
    """A file of flights that was sent, and how far it is."""

    IMPORT_ID: str
    name: str
    size: Annotated[Count, Meta(description="how many bytes it has")]
    received: Annotated[Count, Meta(description="how many of them have arrived")]
    state: Literal["receiving", "checking", "checked", "refused", "adding", "added", "stopped"]
    message: Annotated[str, Meta(description="how far it is, or why it is refused")]
    fraction: Annotated[Share, Meta(description="share of the present step that is done")]
    dates: Annotated[str, Meta(description="how days are written, if the sender said that")]
    day: Annotated[str, Meta(description="a day that can be read in two ways")] | UnsetType = UNSET
    readings: (
        Annotated[
            dict[str, str],
            Meta(description="what `day` means, by the value of `dates`: YYYY-MM-DD"),
        ]
        | UnsetType
    ) = UNSET
    report: (
        Annotated[
            Json, Meta(description="result of the check", extra_json_schema=ref("BatchTried"))
        ]
        | None
    )
    added: Added | None


class FileImports:
    """The files that were sent to the ledger with these settings."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.folder = settings.folder
        self._booted_at, self._keeps_until_s = time.time() - _uptime_s(), 0.0

    def begin(self, name: str, size: int) -> FileImport:
        """Begin a file. Raises InvalidQuery, TryLater if the disk has no room for it, WriteFailed.

        name: as its sender calls it. size: how many bytes it will have.
        """
        if not 0 < len(name) <= MOST_NAME_CHARACTERS:
            reason = f"must have 1 to {MOST_NAME_CHARACTERS} characters"
            raise InvalidQuery("NAME", name, reason)
        self._remove_old()
        files.require_free(self.folder, self._settings.min_free_bytes, size)
        sent = FileImport(
            IMPORT_ID=secrets.token_hex(ID_BYTES),
            name=name,
            size=size,
            received=0,
            state="receiving",
            message="",
            fraction=0.0,
            dates="",
            report=None,
            added=None,
        )
        files.write_new(self.path(sent.IMPORT_ID), b"")
        self.note(sent)
        return sent

    def path(self, import_id: str) -> Path:
        return self.folder / f"import-{import_id}.file"

    def note(self, sent: FileImport) -> None:
        """Write how far a file is. Raises WriteFailed."""
        _state(sent.IMPORT_ID).write_unsynced(self.folder, sent)

    def of(self, import_id: str) -> FileImport:
        """Return a file, and how far it is. Raises NotFound."""
        sent = self._read(import_id)
        if sent.state not in AT_WORK or files.is_locked(self.path(import_id)):
            return sent
        now = self._read(import_id)  # its process may have noted its outcome just before
        if now.state == sent.state:
            how_far = f" ({now.message})" if now.message else ""
            now.message = f"this was interrupted{how_far}; check the file again"
            now.state = "stopped"
        return now

    def _read(self, import_id: str) -> FileImport:
        sent = _state(import_id).read(self.folder) if _is_id(import_id) else None
        path = self.path(import_id)
        is_needed = sent is not None and sent.state not in {"added", *AT_WORK}
        if sent is None or (is_needed and not path.exists()):
            raise NotFound(
                f"there is no file {import_id!a}; files are kept for a day, so send it again"
            )
        if sent.state == "receiving":
            sent.received = path.stat().st_size
        return sent

    def remove_content(self, import_id: str) -> None:
        """Remove what was sent, which nobody needs any more. Raises WriteFailed."""
        files.remove(self.path(import_id))

    def remove(self, import_id: str) -> None:
        """Remove a file with which nothing is done now. Raises NotFound, InvalidQuery, TryLater."""
        with self._deciding():
            _require(self.of(import_id), "receiving", "checked", "refused", "stopped", "added")
            self.remove_content(import_id)
            files.remove(self.folder / f"import-{import_id}.json")

    def append(self, import_id: str, offset: int, part: bytes) -> FileImport:
        """Write a part of a file, which begins where the file ends, or before that if sent again.

        Raises InvalidQuery for a place or a part that cannot be right, NotFound, and TryLater if
        the disk has no room.
        """
        sent, end = self.of(import_id), offset + len(part)
        _require(sent, "receiving")
        if offset > sent.received or end > sent.size:
            reason = (
                f"{len(part)} more bytes cannot begin here: the file has {sent.received} of "
                f"{sent.size} bytes"
            )
            remedy = f"send the part that begins at {sent.received}"
            raise InvalidQuery("OFFSET", str(offset), f"{reason}; {remedy}")
        files.require_free(self.folder, self._settings.min_free_bytes, len(part))
        path = self.path(sent.IMPORT_ID)
        descriptor = files.open_for_writing(path)
        try:
            files.write_at(descriptor, part, offset, path)
        except WriteFailed as error:  # no block is at risk, so this process may go on
            raise TryLater(str(error), retry_after_s=60) from error
        finally:
            os.close(descriptor)
        sent.received = max(sent.received, end)
        return sent

    def check(self, import_id: str, dates: str) -> FileImport:
        """Begin to check a file that has come whole. dates: how days are written, or "".

        A request that is sent again changes nothing. Raises NotFound, InvalidQuery; TryLater while
        another file is checked or added; WriteFailed.
        """
        with self._deciding():
            sent = self.of(import_id)
            if (sent.state, sent.dates) == ("checking", dates):
                return sent
            _require(sent, "receiving", "checked", "refused", "stopped")
            if sent.received != sent.size:
                reason = f"has received {sent.received} of {sent.size} bytes; send the rest first"
                raise InvalidQuery("IMPORT_ID", import_id, reason)
            sent.state, sent.dates, sent.report = "checking", dates, None
            return self._started(sent)

    def add(self, import_id: str, *, skips: bool) -> FileImport:
        """Begin to add the flights of a checked file. skips: whether bad rows are left out.

        A request that is sent again changes nothing. Raises as `check`.
        """
        with self._deciding():
            sent = self.of(import_id)
            if sent.state in {"adding", "added"}:
                return sent
            _require(sent, "checked")
            if sent.report and sent.report["rejected"] and not skips:
                bad = counted(sent.report["rejected"], "row is", "rows are")
                reason = f"would add nothing: {bad} bad; send on_error=skip"
                raise InvalidQuery("on_error", "reject", reason)
            sent.state = "adding"
            return self._started(sent)

    @contextmanager
    def _deciding(self) -> Iterator[None]:
        """Let one request at a time, of those of all processes, decide.

        Raises PlacesTaken if another one takes long, or if the decision meets a lock that is taken.
        """
        try:
            with FileLock(self.folder / "import.lock"):
                yield
        except WriterBusy as error:
            raise PlacesTaken(BUSY, retry_after_s=5) from error

    def _started(self, sent: FileImport) -> FileImport:
        """Begin a step of a file. Only inside `_deciding`."""
        self._require_no_other()
        lock = FileLock(self.path(sent.IMPORT_ID))
        lock.acquire(wait=True)  # its last process has noted its outcome, and may end just now
        try:
            sent.message, sent.fraction, sent.day, sent.readings = "", 0.0, UNSET, UNSET
            self.note(sent)
            Thread(target=self._run, args=(sent, lock), name="sent file", daemon=True).start()
        except BaseException:
            lock.release()
            raise
        return sent

    def _require_no_other(self) -> None:
        """Raise WriterBusy while a file is checked or added."""
        for path in self.folder.glob("import-*.file"):
            import_id = path.stem.removeprefix("import-")
            if files.is_locked(path) and self.of(import_id).state in AT_WORK:
                raise WriterBusy(BUSY)

    def _run(self, sent: FileImport, lock: FileLock) -> None:
        """Run the command until it ends."""
        adds = ["--add"] if sent.state == "adding" else []
        try:
            started("sent-file", sent.IMPORT_ID, *adds).wait()
        except OSError as error:
            reason = files.reason_of(error, sys.executable)
            sent.state, sent.message = "stopped", f"cannot start {reason}; check the file again"
            with suppress(WriteFailed):  # then it counts as interrupted
                self.note(sent)
        finally:
            lock.release()

    def _remove_old(self) -> None:
        """Remove the files that nobody has touched for a day, and what a crash has left.

        A clock that was set does not tell how old they are, so all are kept for another day.
        """
        booted_at = time.time() - _uptime_s()
        if abs(booted_at - self._booted_at) > LEAP_S:
            self._booted_at, self._keeps_until_s = booted_at, _uptime_s() + KEPT_S
        if _uptime_s() < self._keeps_until_s:
            return
        families: dict[str, list[Path]] = {}
        for path in self.folder.glob("import-*"):
            families.setdefault(path.name.partition(".")[0], []).append(path)
        for family in families.values():
            with suppress(FileNotFoundError):  # another process has removed it
                touched = max(path.stat().st_mtime for path in family)
                if touched < time.time() - KEPT_S and not any(map(files.is_locked, family)):
                    for path in family:
                        files.remove(path)


def _uptime_s() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


_STATE = StateFile(".json", FileImport)


def _state(import_id: str) -> StateFile[FileImport]:
    return _STATE.named(f"import-{import_id}")


def _require(sent: FileImport, *states: str) -> None:
    if sent.state not in states:
        needed = " or ".join(states)
        reason = f"the state of the file is {sent.state}, and must be {needed} for this"
        raise InvalidQuery("IMPORT_ID", sent.IMPORT_ID, reason)
