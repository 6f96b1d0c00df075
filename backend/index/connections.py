"""Lends connections to the index in use, to one asker at a time, while the index is trusted.

It is trusted if every page that was read has its checksum (see `index_file`), its pages are of one
moment (`checkpoint_note`), and it stands at a block of the chain (`difference_from`). A file that
fails in any of these is refused as a whole: by this process at once, by others within a second
because of the mark that is left (`damage_mark`), until the miner has rebuilt the index.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

import apsw

from backend.base.errors import Damage, TryLater
from backend.base.words import COMMAND, Report
from backend.index import damage_mark
from backend.index.checkpoint_note import is_settled
from backend.index.index_file import (
    OUTDATED,
    Place,
    Position,
    difference_from,
    index_path,
    is_frozen,
    is_wrong,
    open_to_read,
    position_in,
    unreadable,
)
from backend.index.table_checks import inconsistency
from backend.storage.block_store import BlockStore
from backend.storage.checked_sqlite import Wrong, closed_on_error, log_bytes

Answer = TypeVar("Answer")
File = tuple[str, int]  # its name and inode; the number alone may come again with a newer file
Condition = tuple[int, ...]  # of a file; two that differ tell of a change

NO_FILE: File = ("", -1)
RETRY_AFTER_S = 5
NOT_YET = (
    f"there is no index yet; a running service or `{COMMAND} reindex` builds it: try again then, "
    "or ask with engine=scan, which reads the blocks instead"
)
UNCHECKED = (
    "the index was changed since its writer closed it, as by a copy; a running service checks it, "
    f"or `{COMMAND} reindex` makes it again: try again then, or ask with engine=scan"
)
CHANGED = "the index was changed while it was read; try again"

_LOOK_AGAIN_S = 1.0  # how often to look whether the index has been rebuilt, or is refused
_NONSENSE = (ArithmeticError, LookupError, TypeError, ValueError)  # what wrong rows may cause


@dataclass(frozen=True, slots=True)
class Opened:
    """A connection, its file, and the places and routes that it has read already.

    frozen: the condition of a file that is read without SQLite's locks, when it was opened.
    """

    path: Path
    file: File
    connection: apsw.Connection
    frozen: Condition | None
    places: dict[int, Place]
    routes: dict[int, tuple[Place, Place]]


class Connections:
    """Connections to the index of the chain in `folder`: a pool that grows to as many as are lent.

    Safe for threads. Everything raises TryLater while there is no index that is trusted.
    """

    def __init__(self, folder: Path, store: BlockStore, report: Report) -> None:
        """Open nothing yet.

        store: the blocks of the same chain. report: takes a line whenever a file proves wrong.
        """
        self._folder = folder
        self._path = index_path(folder)
        self._store = store
        self._report = report
        self._idle: list[Opened] = []
        self._looked_at = -_LOOK_AGAIN_S
        self._refused: dict[File, str] = {}  # files that are not trusted, and why
        self._consistent = NO_FILE  # a frozen file that was checked
        self.file = NO_FILE  # the one in use

    def close(self) -> None:
        """Close the connections that are not lent."""
        with suppress(IndexError):
            while True:
                self._idle.pop().connection.close()

    def ask(self, ask: Callable[[Opened], Answer]) -> Answer:
        """Return what `ask` finds with a connection; an index that proves wrong is refused."""
        opened = self._borrowed()
        try:
            answer = ask(opened)
            if opened.frozen is not None and opened.frozen != _condition(opened.path):
                raise TryLater(CHANGED)
        except BaseException as error:
            opened.connection.close()
            is_of_question = isinstance(error, UnicodeEncodeError)
            if isinstance(error, (apsw.Error, *_NONSENSE)) and not is_of_question:
                raise self._given_up(opened.path, opened.file, error) from error
            raise
        if opened.file == self.file:
            self._idle.append(opened)
        else:
            opened.connection.close()
        return answer

    def position(self) -> Position:
        """Return where the index stands, which is compared with the chain each time.

        One that is behind may have been replaced a moment ago, so it is looked for again.
        """
        ask = partial(self.ask, lambda opened: self._position_in(opened.connection))
        position = ask()
        if position.height < self._store.height():
            self.look_again()
            position = ask()
        return position

    def look_again(self) -> None:
        """Look before the next answer whether another process refuses the index."""
        self._looked_at = -_LOOK_AGAIN_S

    # --- opening -----------------------------------------------------------------------------

    def _borrowed(self) -> Opened:
        """Return an open connection that nobody else uses."""
        now = time.monotonic()
        if now - self._looked_at >= _LOOK_AGAIN_S:
            self._look()
            self._looked_at = now
        while True:
            try:
                opened = self._idle.pop()
            except IndexError:
                return self._open()
            if opened.file == self.file:
                return opened
            opened.connection.close()

    def _look(self) -> None:
        """Take note if the index has been rebuilt, or is refused."""
        path = self._in_use()
        with self._looking():
            self.file, damage = _file(path), damage_mark.damage_of(path)
        if damage is not None:
            self._refused[self.file] = damage
        if self.file in self._refused:
            raise _refusal(self._refused[self.file])

    def _in_use(self) -> Path:
        """Return the file that the link names."""
        with self._looking():
            return self._path.resolve(strict=True)

    @contextmanager
    def _looking(self) -> Iterator[None]:
        """Raise TryLater for a file that is not there, or that the system does not show."""
        try:
            yield
        except FileNotFoundError:
            raise self._not_yet() from None
        except OSError as error:
            raise TryLater(f"the index cannot be looked at ({error})", RETRY_AFTER_S) from error

    def _not_yet(self) -> TryLater:
        """Return the error for an index that does not exist, or has no blocks to stand for."""
        if self._store.height() < 0:
            return self._store.no_chain()
        return TryLater(NOT_YET, RETRY_AFTER_S)

    def _open(self) -> Opened:
        """Open the index in use; once more if it was exchanged in this very moment."""
        path = self._in_use()
        try:
            try:
                opened = self._opened(path)
            except (OSError, apsw.Error):
                if self._in_use() == path:
                    raise
                path = self._in_use()
                opened = self._opened(path)
        except OSError:  # it has gone
            self.look_again()
            raise self._not_yet() from None
        except apsw.Error as error:
            raise self._given_up(path, _file(path), error) from error
        except TryLater:
            self.look_again()
            raise
        self.file = opened.file
        return opened

    def _opened(self, path: Path) -> Opened:
        """Return a connection to an index file that is trusted.

        Raises apsw.Error, OSError, TryLater.
        """
        file, frozen = _file(path), _condition(path) if is_frozen(path) else None
        connection = open_to_read(path)
        with closed_on_error(connection):
            self._position_in(connection)
            if not (is_settled(connection, path) or (frozen and self._is_consistent(file))):
                raise TryLater(UNCHECKED, RETRY_AFTER_S)
        return Opened(path, file, connection, frozen, {}, {})

    def _is_consistent(self, file: File) -> bool:
        """Return whether a frozen file, which no miner will check, is consistent.

        Takes seconds, once.
        """
        if self._consistent != file and not inconsistency(self._folder):
            self._consistent = file
        return self._consistent == file

    # --- trusting ----------------------------------------------------------------------------

    def _position_in(self, connection: apsw.Connection) -> Position:
        """Return where the index stands. Raises Wrong if the chain says otherwise, TryLater."""
        position = position_in(connection)
        if position is None:
            raise self._not_yet()
        try:
            difference = difference_from(self._store, position)
        except (Damage, OSError) as error:
            raise TryLater(f"the index cannot be compared with the chain: {error}") from error
        if difference is None:
            return position
        if self._store.height() < 0:
            raise self._not_yet()
        raise Wrong(difference)

    def _given_up(self, path: Path, file: File, error: Exception) -> TryLater:
        """Return what to raise for an error in the file at `path`; a wrong one is refused."""
        self.look_again()
        if isinstance(error, apsw.Error) and not is_wrong(error):
            return unreadable(error, RETRY_AFTER_S)
        reason = str(error) if isinstance(error, apsw.Error) else f"its rows lead to {error!r}"
        self._refused[file] = reason
        is_marked = damage_mark.mark(path, reason)
        words = " is wrong" if is_marked else " is wrong, and cannot be marked as such"
        self._report(f"the index {path}{'' if reason == OUTDATED else words}: {reason}")
        return _refusal(reason)


def _refusal(reason: str) -> TryLater:
    wrong = f": {reason}" if reason == OUTDATED else f" is wrong ({reason})"
    words = f"the index{wrong}; the miner or `{COMMAND} reindex` rebuilds it"
    return TryLater(f"{words}; until then ask with engine=scan", RETRY_AFTER_S)


def _file(path: Path) -> File:
    return path.name, path.stat().st_ino


def _condition(path: Path) -> Condition:
    """Return numbers of the file system that are others whenever the content of a file is."""
    status = path.stat()
    return (status.st_ino, status.st_ctime_ns, status.st_size, log_bytes(path))
