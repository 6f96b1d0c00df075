"""Keeps the index at the tip of the chain, in the one process that holds the writer lock.

A crash may lose the newest transactions of SQLite; the index then stands at an earlier block and
follows again. An index that is missing, damaged or marked so, of another chain, of another schema,
ahead of the chain or on another branch is rebuilt beside the old one, and put in its place when
complete. So is one that may hold pages of two moments (see `checkpoint_note`) and is inconsistent.

Between two sessions (`follow` to `close`) other processes may write, so nothing is remembered.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar

import apsw

from backend.base import files
from backend.base.errors import WriteFailed
from backend.base.progress import Progress, no_progress
from backend.base.words import Report
from backend.index import damage_mark, index_file
from backend.index.checkpoint_note import is_settled, note_settled
from backend.index.index_file import (
    difference_from,
    index_path,
    is_wrong,
    open_to_read,
    position_in,
    unreadable,
)
from backend.index.table_checks import inconsistency
from backend.index.writer import IndexWriter, SealedBlock, sealed_block
from backend.storage.block_store import BlockStore
from backend.storage.checked_sqlite import in_words
from backend.storage.codec import verified_block

BLOCKS_AT_ONCE = 48

Done = TypeVar("Done")


class IndexFollower:
    """The index of the chain in `folder`, kept at the tip of `store`."""

    def __init__(self, folder: Path, store: BlockStore, report: Report = lambda line: None) -> None:
        """Open nothing yet. report: takes a line when the index is checked or rebuilt."""
        self.rebuild_count = 0  # how often, so far
        self._report = report
        self._folder = folder
        self._path = index_path(folder)
        self._store = store
        self._writer: IndexWriter | None = None
        self._helper: Executor | None = None  # takes in blocks in a thread
        self._unfinished: Callable[[], None] | None = None  # ends when the last blocks are in

    def close(self) -> None:
        self.wait()
        if self._writer is not None:
            writer, self._writer = self._writer, None
            try:
                writer.close()
            except apsw.Error as error:
                self._given_up(error)
                if not damage_mark.mark(self._path.resolve(), str(error)):  # for the next session
                    raise WriteFailed(
                        f"the index is wrong, but cannot be marked as wrong: {error}"
                    ) from error

    def follow(self, progress: Progress = no_progress) -> None:
        """Begin a session: bring the index to the tip, rebuilt if it is not one of this chain.

        progress: is called before any block is done, too. Raises WriteFailed, DamagedBlock, or
        TryLater if the index cannot be looked at now.
        """
        self.close()
        if not self._path.exists():
            self.rebuild(progress)
            return
        if problem := self._problem(progress):
            self._rebuild_because(problem, progress)
            return
        try:
            self._writer = IndexWriter(self._path)
            _follow(self._writer, self._store, progress)
        except apsw.Error as error:
            self._given_up(error)
            self._rebuild_because(str(error), progress)

    def apply(self, blocks: Sequence[SealedBlock]) -> None:
        """Take in blocks that were just appended, without reading them from the disk again."""
        has_all = self.wait()
        if self._writer is None or self.is_marked():
            self.follow()
        elif not has_all:
            take_in = partial(self._writer.apply, blocks)
            if self._helper is not None:
                self._unfinished = self._helper.submit(take_in).result
            else:
                self._unfinished = take_in
                self.wait()

    @contextmanager
    def behind(self) -> Iterator[None]:
        """Let `apply` return at once inside, and wait for the blocks of the call before it.

        A thread takes them in meanwhile. What goes wrong with them is raised by the next call, or
        at the end.
        """
        with ThreadPoolExecutor(1, "index") as helper:
            # Starts the thread now: after Ctrl-C while it starts nobody would wait for its work.
            helper.submit(int).result()
            self._helper = helper
            try:
                yield
            finally:
                self._helper = None
                self.wait()

    def wait(self) -> bool:
        """Wait until the blocks of the last `apply` are in.

        Returns whether the index was rebuilt for that, with all blocks of the chain.
        """
        unfinished, self._unfinished = self._unfinished, None
        if unfinished is None:
            return False
        try:
            unfinished()
        except apsw.Error as error:
            self._given_up(error)
            self._rebuild_because(str(error), no_progress)
            return True
        return False

    def is_marked(self) -> bool:
        """Return whether somebody has found the index in use to be wrong.

        Raises TryLater if that cannot be told now.
        """
        try:
            return damage_mark.damage_of(self._path.resolve()) is not None
        except OSError as error:
            raise unreadable(error) from error

    def _rebuild_because(self, problem: str, progress: Progress) -> None:
        """Rebuild an index that is wrong, and report why."""
        self.rebuild(progress)
        self.rebuild_count += 1
        self._report(f"the index was rebuilt: {problem}")

    def rebuild(self, progress: Progress = no_progress) -> None:
        """Build the index again; readers have the old one until it is complete."""
        self.close()
        files.make_folder(self._path.parent)
        files.require_links(self._path.parent)
        index_file.remove_all_but(self._path.resolve())  # of builds that were never completed
        path = index_file.new_file(self._folder)
        try:
            self._tried(lambda: _build(path, self._store, progress))
        except BaseException:
            index_file.remove_all_but(self._path.resolve())
            raise
        index_file.use(path)
        self._writer = self._tried(lambda: IndexWriter(path))

    def _given_up(self, error: apsw.Error) -> None:
        """Close an index that is to be rebuilt; raise WriteFailed if that would not help."""
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.abandon()
        if not is_wrong(error):
            raise self._write_failed(error) from error

    def _tried(self, action: Callable[[], Done]) -> Done:
        try:
            return action()
        except apsw.Error as error:
            raise self._write_failed(error) from error

    def _write_failed(self, error: apsw.Error) -> WriteFailed:
        return WriteFailed(f"the index cannot be written: {in_words(error, self._path.resolve())}")

    def _problem(self, progress: Progress) -> str | None:
        """Return why the index that is there cannot be gone on with; None if it can.

        progress: called before the whole file is read. Raises TryLater if nothing can be said now.
        """
        path = self._path.resolve()
        try:
            if (marked := damage_mark.damage_of(path)) is not None:
                return marked
            with closing(open_to_read(path)) as connection:
                position = position_in(connection)
                problem = difference_from(self._store, position)
                if problem is not None or position is None or is_settled(connection, path):
                    return problem
            progress(0, self._store.height() + 1)
            self._report(
                "the index was changed since it was written, as by a copy; it is checked first"
            )
            problem = inconsistency(self._folder) or None
            if problem is None:
                note_settled(path, position.height)  # it may be a copy, which readers refuse
        except (apsw.Error, OSError) as error:
            if is_wrong(error):
                return str(error)
            raise unreadable(error) from error
        return problem


def _build(path: Path, store: BlockStore, progress: Progress) -> None:
    with closing(IndexWriter(path)) as writer:
        _follow(writer, store, progress)


def _follow(writer: IndexWriter, store: BlockStore, progress: Progress) -> None:
    """Take in all blocks up to the tip; while some are taken in, a thread reads the next."""
    position = writer.position()
    start = 0 if position is None else position.height + 1
    end = store.height() + 1
    if start >= end:
        return
    progress(0, end - start)  # the first blocks may take long, too
    with ThreadPoolExecutor(1, "reading") as helper:
        coming = helper.submit(_sealed_blocks, store, start, end)
        while blocks := coming.result():
            at = blocks[-1].header.height + 1
            coming = helper.submit(_sealed_blocks, store, at, end)
            writer.apply(blocks)
            progress(at - start, end - start)


def _sealed_blocks(store: BlockStore, start: int, end: int) -> list[SealedBlock]:
    """Return the next blocks from a height on, as many as are taken in together.

    The last two batches are one. An import that is killed leaves a batch, and blocks of what was
    posted: then no log is brought into the file before the service is ready.
    """
    count = end - start if end - start <= 2 * BLOCKS_AT_ONCE else BLOCKS_AT_ONCE
    return [
        sealed_block(verified_block(frame, start + i, place.hash))
        for i, (place, frame) in enumerate(store.frames(start, count))
    ]
