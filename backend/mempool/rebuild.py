"""Rebuilds a damaged mempool: it keeps what can be read, names what is lost, and changes no id.

The process that holds the lock between processes reads all records that are as they were written,
from the file as SQLite sees it and, if that is not all, from a copy of the file and its write-ahead
log, because what SQLite shares between processes may be damaged, too. Where acknowledged ids are
missing, void entries take their places, and `lost-FIRST-COUNT.bin` names them. The damaged file is
kept as `damaged-NEXT.sqlite`. If transactions are missing that blocks once held, then the chain has
lost blocks. That cannot be repaired here, and nothing is changed until a person gives them up.

A new file is written whole and synced, and gets a name under which it counts (`NEW_NAME`). Then the
old one and its log are removed, and the new one is renamed. A crash on the way loses nothing: the
next process goes on there. Others notice by the file's inode that theirs was replaced.
"""

import os
import shutil
from bisect import bisect_left
from collections.abc import Callable, Iterator
from contextlib import closing
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from backend.base import files
from backend.base.clock import now_ms
from backend.base.errors import NeedsRepair
from backend.base.words import Report
from backend.mempool import last_release, lost_files
from backend.mempool.database import FILE_NAME, NEW_NAME, write_file
from backend.mempool.idempotency_keys import KeyUse
from backend.mempool.records import Record, void_record
from backend.mempool.store import Store, missing_ids, require_blocks
from backend.mempool.watermark import Mark

KEYS_FORGOTTEN = "idempotency keys that came with it may be used again"
END_MISSING = (
    f"its end is missing, or it is an older copy; blocks hold those flights; {KEYS_FORGOTTEN}"
)
MARK_UNKNOWN = (
    "acknowledged.dat was missing or damaged, so nobody knows whether more was acknowledged"
)
_BESIDE = ("-wal", "-shm")


class Contents(NamedTuple):
    """What can be read of a mempool: records in the order of their ids, and keys.

    problem: what was wrong, in words; "" if nothing was. is_of_last_release: whether the last
    release wrote it.
    """

    records: list[Record]
    keys: dict[str, KeyUse]
    problem: str = ""
    is_of_last_release: bool = False


def finish_replacing(folder: Path) -> None:
    """Put a new file in its place that another process had completed when it died."""
    if os.path.exists(f"{folder}/{NEW_NAME}"):  # noqa: PTH110  this is asked often
        new = folder / NEW_NAME
        for ending in _BESIDE:
            files.remove(folder / f"{FILE_NAME}{ending}")
        last_release.remove(folder)
        files.rename(new, folder / FILE_NAME)


class Rebuild:
    """Rebuilds the mempool in `folder`. Only under the lock between processes."""

    def __init__(
        self,
        folder: Path,
        mined: int,
        mark: Mark | None,
        genesis: Callable[[], str],
        report: Report,
    ) -> None:
        """mined: how many transactions blocks hold.

        mark: how far flights have been acknowledged; None if that is not known. genesis: names the
        ledger.
        """
        self._folder = folder
        self._path = folder / FILE_NAME
        self._mined = mined
        self._mark = mark or Mark()
        self._is_mark_known = mark is not None
        self._genesis = genesis
        self._report = report

    def run(self, store: Store, problem: str, *, accepts_loss: bool = False) -> Mark:
        """Rebuild the file. Returns the mark that holds for the new one.

        store: what this process has open. problem: what is wrong with it, in words. accepts_loss:
        whether a person has given up blocks that are lost. Raises WriteFailed, TryLater if the disk
        is full, or DamagedMempool if blocks are lost or the file is another ledger's; then nothing
        is changed.
        """
        files.make_folder(self._folder)
        finish_replacing(self._folder)
        sizes = [path.stat().st_size for path in self._files()]
        files.require_free(self._folder, 3 * sum(sizes))  # a copy, what is kept, and the new file
        contents = self._contents(store)
        store.close()
        if not accepts_loss:
            self._require_all_blocks(contents.records)
        voids = list(self._voids(contents.records))
        records = sorted(contents.records + voids)
        messages = self._kept_aside(contents, voids, problem)
        write_file(self._folder / NEW_NAME, self._genesis(), records, contents.keys)
        finish_replacing(self._folder)
        for message in messages:
            self._report(message)
        end = records[-1].next if records else 0
        once = max([self._mined, *(record.mined for record in records)])
        return Mark(max(self._mark.next, end if not self._is_mark_known else 0), once, end)

    # --- reading ---------------------------------------------------------------------------------

    def _contents(self, store: Store) -> Contents:
        """Everything that can be read, in whatever format."""
        if last_release.is_to_be_read(self._folder):
            return Contents(*last_release.read(self._folder), is_of_last_release=True)
        records, keys = store.readable()  # also of a log that has no name any more
        problem = self._problem_of(store)
        others = [store.readable()]
        if problem and self._path.exists():
            others.append(self._readable_in_copy())
        for more, more_keys in others:
            records, keys = {**more, **records}, {**more_keys, **keys}
        return Contents(list(_in_order(records)), keys, problem)

    def _problem_of(self, store: Store) -> str:
        try:
            store.close()
            store.look(self._mark)
            store.everything()
        except NeedsRepair as error:
            return str(error)
        return ""

    def _readable_in_copy(self) -> tuple[dict[int, Record], dict[str, KeyUse]]:
        """What can be read without what SQLite shares between processes."""
        copy = self._folder / "copy"
        shutil.rmtree(copy, ignore_errors=True)  # of a process that died in this place
        try:
            with files.refusals("copy", self._path):
                copy.mkdir()
                for path in self._files():
                    (copy / path.name).write_bytes(path.read_bytes())
            with closing(Store(copy, lambda: self._mined, self._genesis)) as store:
                return store.readable()
        finally:
            shutil.rmtree(copy, ignore_errors=True)

    def _files(self) -> list[Path]:
        """The file and its write-ahead log, as far as they are there."""
        paths = (self._path, self._path.with_name(f"{FILE_NAME}-wal"))
        return [path for path in paths if path.exists()]

    def _require_all_blocks(self, records: list[Record]) -> None:
        """Raise DamagedMempool if any missing transaction was in a block once."""
        once = max([self._mark.mined, *(record.mined for record in records)])
        for ids in missing_ids(records, self._mark.next, self._mined):
            require_blocks(ids[0], once)

    # --- what is missing -------------------------------------------------------------------------

    def _voids(self, records: list[Record]) -> Iterator[Record]:
        """Yield records for ids that are missing, and that no block holds.

        The last one ends where the store ended, so that the new file is not taken for an older one.
        """
        end = max(self._mark.stored, self._mark.next if self._mark.next > self._mined else 0)
        following = records[-1].next if records else 0
        all_mined = [range(following, end)] if following < end <= self._mined else []
        for ids in [*missing_ids(records, end, self._mined), *all_mined]:
            at = bisect_left(records, ids[0], key=attrgetter("first"))
            timestamp = records[max(at - 1, 0)].timestamp if records else now_ms()
            yield void_record(ids[0], len(ids), timestamp, self._mined)

    def _kept_aside(self, contents: Contents, voids: list[Record], problem: str) -> list[str]:
        """Keep the damaged file, and name what is lost in files. Returns messages about that."""
        lost = [void for void in voids if void.next > self._mined]
        if contents.is_of_last_release and not (contents.problem or voids):
            return [
                f"{self._folder}: the mempool of the last release was read, and is one file now"
            ]
        aside = self._keep_damaged(contents)
        where = f"; what was there is kept as {aside.name}" if aside else ""
        problem = contents.problem or problem
        messages = [f"{problem}; it was rebuilt{where}; {self._cost(voids, lost)}"]
        doubt = "" if self._is_mark_known else f" ({MARK_UNKNOWN})"
        for void in lost:
            text = f"{problem}{where}\n".encode()
            named = lost_files.keep(
                self._folder, f"lost-{void.first}-{void.flight_count}", ".bin", text
            )
            messages.append(lost_files.lost_words(void.first, void.flight_count, named) + doubt)
        return messages

    def _cost(self, voids: list[Record], lost: list[Record]) -> str:
        """What the damage costs, in words."""
        if lost:
            return "acknowledged flights are lost"
        if voids:
            return f"blocks hold the missing flights; {KEYS_FORGOTTEN}"
        if not self._is_mark_known:
            return MARK_UNKNOWN
        return f"no flight is missing; {KEYS_FORGOTTEN} if they were damaged"

    def _keep_damaged(self, contents: Contents) -> Path | None:
        """Copy the damaged file and its log aside. Returns the copy's path."""
        following = contents.records[-1].next if contents.records else 0
        if contents.is_of_last_release:
            return last_release.keep(self._folder, following)
        log = lost_files.bytes_of(self._folder / f"{FILE_NAME}-wal")
        if not log and not self._path.exists():
            return None
        data = lost_files.bytes_of(self._path)
        return lost_files.keep(self._folder, f"damaged-{following}", ".sqlite", data, log)


def _in_order(records: dict[int, Record]) -> Iterator[Record]:
    """Yield records by their ids, without those that begin within another one."""
    following = 0
    for first in sorted(records):
        if first >= following:
            yield records[first]
            following = records[first].next
