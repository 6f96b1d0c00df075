"""Reads and appends the records in the mempool's file, `mempool/mempool.sqlite`.

A `Store` is what one process has read of the file. Every process takes in what others have written.
The process that holds the lock between processes appends, rebuilds a damaged file, and removes
records. Every process notices what is wrong: a record that is not as it was written, ids that are
missing between two records or at the end, a file that is gone or was replaced. That raises
NeedsRepair.

The newest record is never removed, so the id after it tells an older file from the present one.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import apsw

from backend.base import files
from backend.base.errors import DamagedMempool, FlightchainError, NeedsRepair, TryLater, WriteFailed
from backend.base.words import COMMAND, counted
from backend.chain.flight import Flight
from backend.mempool import database, last_release
from backend.mempool.idempotency_keys import KEPT_MS, IdempotencyKey, KeyUse
from backend.mempool.records import Accepted, Record, Unsound, sound_record
from backend.mempool.watermark import Mark
from backend.storage import checked_sqlite
from backend.storage.genesis import genesis_in
from backend.storage.layout import BLOCKS_FOLDER
from backend.storage.receipt_store import blocks_to_come

LOG_BYTES = 4 * 2**20  # of the write-ahead log; then it is copied into the file and emptied
REMOVED_AT_ONCE = 5000  # records; others wait for the lock meanwhile

_FROM = "SELECT * FROM record WHERE first >= ? ORDER BY first"
_HOLDING = "SELECT * FROM record WHERE first <= ? ORDER BY first DESC LIMIT 1"
_ALL_RECORDS = "SELECT * FROM record ORDER BY first"
_ALL_KEYS = "SELECT * FROM key_use ORDER BY key"


def no_blocks(folder: Path, mined: int) -> str:
    """Say that a chain's folder has no blocks, which held so many transactions at some time."""
    return (
        f"there are no blocks in {folder / BLOCKS_FOLDER}, but they once held "
        f"{counted(mined, 'transaction')}: is the disk mounted? If it is, restore the chain "
        "from a backup; for a new chain, use an empty folder"
    )


def require_blocks(folder: Path, missing: int, mined: int) -> None:
    """Raise DamagedMempool if blocks held a transaction once that is missing now.

    folder: the chain's. missing: its id. mined: how many transactions blocks held at some time.
    """
    if missing < mined:
        if not missing and not genesis_in(folder):
            raise DamagedMempool(no_blocks(folder, mined))
        end = f"ends at transaction {missing - 1}" if missing else "holds no transaction"
        raise DamagedMempool(
            blocks_to_come(folder)
            or f"the chain {end}, but its blocks once held {counted(mined, 'transaction')}: "
            "the chain has lost blocks, and nothing is accepted or mined; restore it "
            f"from a copy. If the blocks are gone for ever, run `{COMMAND} accept-loss`, "
            "which puts void entries in the places of their flights"
        )


class Store:
    """Holds what this process has read of the file in `folder`. It is not safe for threads."""

    def __init__(
        self, folder: Path, chain_transactions: Callable[[], int], genesis: Callable[[], str]
    ) -> None:
        """chain_transactions: how many transactions blocks hold. genesis: names the ledger."""
        self.path = folder / database.FILE_NAME
        self.log_path = folder / f"{database.FILE_NAME}-wal"
        self.genesis = genesis
        self._chain_folder = folder.parent
        self._beside = (str(self.log_path), str(folder / f"{database.FILE_NAME}-shm"))
        self._chain_transactions = chain_transactions
        self.last_timestamp = 0  # of the newest record; acceptance times never go back
        self._connection: apsw.Connection | None = None
        self._log_descriptor: int | None = None  # the log was empty or written anew when it opened
        self._log_limit = LOG_BYTES
        self._forget()

    def _forget(self) -> None:
        self.next = 0  # the id after the last one
        self.mined = 0  # how many transactions blocks held when the newest record was written
        self._newest: tuple[int, bytes] | None = None  # first id and digest of the newest record
        self._read = Accepted(0, 0, [])  # a record that was read last, as flights
        self._is_named = False  # whether the file names its ledger
        self._inode = 0
        self._beside_inodes: list[int] | None = None

    def close(self) -> None:
        """Close every descriptor, and forget all that was read, except `last_timestamp`."""
        self.read_anew()
        self._close_log()

    def read_anew(self) -> None:
        """Forget all that was read, except `last_timestamp`, and open the file again next time.

        The log stays open: a thread that has written may not have synced it yet.
        """
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        self._forget()

    def _close_log(self) -> None:
        if self._log_descriptor is not None:
            os.close(self._log_descriptor)
            self._log_descriptor = None

    # --- looking ---------------------------------------------------------------------------------

    def look(self, mark: Mark | None) -> None:
        """Take in what other processes have written.

        mark: as it was read before. Raises NeedsRepair, TryLater if the file cannot be read now,
        and DamagedMempool if it is another ledger's, or the chain has lost blocks.
        """
        with database.errors_of(self.path):
            if self._open_if_there():
                self._take_in()
        if mark is not None and self.next < mark.end:
            self._require_up_to(mark)

    def _require_up_to(self, mark: Mark) -> None:
        """Raise NeedsRepair or DamagedMempool if the file ends before the mark."""
        first, where = max(self.next, self._chain_transactions()), "missing"
        require_blocks(self._chain_folder, first, mark.mined)
        if first >= mark.next:
            first, where = self.next, "in blocks only"
        if first < mark.next:
            end = f"ends at transaction {self.next - 1}" if self.next else "is missing or empty"
            raise NeedsRepair(
                f"transactions {first} to {mark.next - 1} were acknowledged and are {where}: "
                f"{self.path} {end}"
            )

    def _open_if_there(self) -> bool:
        """Open the file if it is there, anew if it was replaced. Returns whether it is open."""
        inode = _inode_of(str(self.path))
        if self._connection is not None and inode != self._inode:
            self.close()
        if self._connection is None:
            if self.path.is_symlink():
                raise DamagedMempool(
                    f"{self.path} is a link, and SQLite would keep its log where that leads, which "
                    "nobody syncs. Nothing is accepted or mined: put the file itself here, with "
                    "the -wal beside it; the whole folder may be a link"
                )
            if self.path.with_name(database.NEW_NAME).exists():
                raise NeedsRepair(f"{self.path} is being rebuilt")
            if inode:
                self._open(inode)
            elif last_release.is_to_be_read(self.path.parent):
                raise NeedsRepair(
                    f"{self.path.parent} is of the last release, and is not converted yet"
                )
            elif _size_of(self.log_path):
                raise NeedsRepair(f"{self.path} is missing, but its write-ahead log is there")
        return self._connection is not None

    def _open(self, inode: int) -> None:
        last_release.require_none(self.path.parent)
        connection = database.connected(self.path)
        with checked_sqlite.closed_on_error(connection):
            named = database.require_ours(connection, self.path, self.genesis())
        self._connection, self._inode, self._is_named = connection, inode, bool(named)
        log = self._log_descriptor
        if log is not None and os.fstat(log).st_ino != _inode_of(str(self.log_path)):
            self._close_log()  # of a file that was replaced

    def _take_in(self) -> None:
        known, is_there = self._newest, self._newest is None
        for record in self._records(_FROM, known[0] if known else 0):
            if (record.first, record.digest) != known:
                self._require_follows(record)
                self._add(record)
            is_there = True
        if not is_there:  # of all records, the newest is not removed
            raise NeedsRepair(
                f"{self.path}: the record of transaction {known and known[0]} is gone"
            )

    def _add(self, record: Record) -> None:
        self.next, self.mined, self.last_timestamp = record.next, record.mined, record.timestamp
        self._newest = (record.first, record.digest)

    def _require_follows(self, record: Record) -> None:
        """Raise NeedsRepair or DamagedMempool if ids are missing before `record`.

        Ids that are in blocks may be missing: imported flights never were here.
        """
        if record.first == self.next:
            return
        mined = self._chain_transactions()
        if self.next < record.first <= mined:
            return
        require_blocks(self._chain_folder, max(self.next, mined), record.mined)
        raise NeedsRepair(
            f"{self.path}: id {record.first} follows instead of {max(self.next, mined)}"
        )

    # --- reading ---------------------------------------------------------------------------------

    def _run(self, sql: str, *values: object) -> apsw.Cursor:
        assert self._connection is not None
        return self._connection.execute(sql, values)

    def _records(self, sql: str, *values: object) -> Iterator[Record]:
        """Read records, if there is a file. Raises Unsound at one that is not as it was written."""
        if self._connection is not None:
            with closing(self._connection.cursor()) as cursor:
                yield from map(sound_record, cursor.execute(sql, values))

    def flight_at(self, transaction_id: int) -> tuple[Flight, int] | None:
        """Return a transaction's flight and acceptance time; None if it is not here."""
        at = transaction_id - self._read.first_transaction
        if not 0 <= at < len(self._read.flights):  # else it is in the record that was read last
            with database.errors_of(self.path):
                for record in self._records(_HOLDING, transaction_id):
                    self._read = record.part(record.first, record.flight_count)
            at = transaction_id - self._read.first_transaction
        flights = self._read.flights[at : at + 1] if at >= 0 else []
        return (flights[0], self._read.timestamp) if flights else None

    def parts(self, start: int, limit: int) -> Iterator[Accepted]:
        """Yield the flights from id `start` on, at most `limit`, in the order of ids.

        Raises NeedsRepair if an id is missing.
        """
        if start >= self.next:  # as when nothing was accepted since
            return
        with database.errors_of(self.path):
            held = next(self._records(_HOLDING, start), None)
            for record in self._records(_FROM, held.first if held else start):
                if limit <= 0:
                    return
                if record.next <= start:
                    continue
                if record.first > start:
                    raise NeedsRepair(f"{self.path}: transaction {start} is missing")
                part = record.part(start, limit)
                yield part
                start, limit = record.next, limit - len(part.flights)

    def key_use(self, text: str) -> KeyUse | None:
        """Return what a key was used for, or None. Only in `writing`. Raises NeedsRepair."""
        with database.errors_of(self.path):
            rows = self._run("SELECT * FROM key_use WHERE key = ?", text)
            return database.keys_in(rows).get(text)

    def everything(self) -> tuple[list[Record], dict[str, KeyUse]]:
        """Return all records and keys, as at one moment."""
        with database.errors_of(self.path):
            if self._connection is None:
                return [], {}
            try:
                self._run("BEGIN")
                return list(self._records(_ALL_RECORDS)), database.keys_in(self._run(_ALL_KEYS))
            finally:
                if self._connection.in_transaction:  # SQLite may have ended it after an error
                    self._run("COMMIT")

    def readable(self) -> tuple[list[Record], dict[str, KeyUse]]:
        """Return what can be read of a damaged file: sound rows before the first bad page."""
        records: list[Record] = []
        keys: dict[str, KeyUse] = {}
        with suppress(NeedsRepair), database.errors_of(self.path):
            self._open_if_there()
        for row in self._readable_rows(_ALL_RECORDS):
            with suppress(Unsound):
                record = sound_record(row)
                record.decoded()
                records.append(record)
        for row in self._readable_rows(_ALL_KEYS):
            with suppress(Unsound):
                keys |= database.keys_in([row])
        return records, keys

    def _readable_rows(self, sql: str) -> Iterator[tuple[Any, ...]]:
        with suppress(NeedsRepair), database.errors_of(self.path):
            if self._connection is not None:
                yield from self._run(sql)

    def check(self) -> tuple[list[Record], dict[str, KeyUse]]:
        """Read every page, record and key. Raises DamagedMempool."""
        with database.errors_of(self.path):
            if not self._open_if_there():
                return [], {}
            assert self._connection is not None
            checked_sqlite.require_checksums(self._connection)
            records, keys = self.everything()
            for record in records:
                record.decoded()
            problem = self._run("PRAGMA integrity_check(1)").get
            if problem != "ok":
                raise checked_sqlite.Wrong(str(problem))
            return records, keys

    # --- writing ---------------------------------------------------------------------------------

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Write in one transaction, which others see whole or not at all, and which is not synced.

        Only under the lock between processes, after `look`. What another thread has forgotten since
        then is read again. Raises WriteFailed, and NeedsRepair if the file is damaged; nothing is
        written then, and all that was read is forgotten.
        """
        try:
            if self._connection is None and not self._open_if_there():
                database.write_file(self.path, self.genesis(), [], {})
                files.sync_folder(self.path.parent.parent)
                self._open(_inode_of(str(self.path)))
            self._run("BEGIN IMMEDIATE")
            self._open_log()
            with database.errors_of(self.path):
                self._take_in()
            self._name_ledger()
            yield
            self._run("COMMIT")
        except apsw.BusyError as error:
            self.read_anew()
            raise TryLater(
                f"{self.path} is in use by another program; close that program: {error}"
            ) from error
        except apsw.Error as error:
            self.read_anew()  # which also takes back what was written
            raise self._refused(error) from error
        except BaseException:
            self.read_anew()
            raise

    def _name_ledger(self) -> None:
        """Write the name of the ledger into a log that is empty, and into a file that has none.

        SQLite reads any log into any file, and records do not name their ledger. A row that is
        changed to what it was would not be written.
        """
        genesis = self.genesis()
        if bool(genesis) > self._is_named or not _size_of(self.log_path):
            named = genesis or self._run("SELECT genesis FROM ledger").get
            self._run("DELETE FROM ledger")
            self._run("INSERT INTO ledger VALUES (?)", named)
            self._is_named = bool(named)

    def _refused(self, error: apsw.Error) -> FlightchainError:
        """Return NeedsRepair if the file is damaged, else WriteFailed."""
        if damage := database.damage_in(error):
            return NeedsRepair(f"{self.path} is damaged: {damage}")
        reason = checked_sqlite.in_words(error, self.path)
        return WriteFailed(f"{self.path} cannot be written: {reason}")

    def append(self, records: Sequence[Record], key: IdempotencyKey | None) -> None:
        """Write records of one offer behind all others, and its key. Only in `writing`."""
        for record in records:
            self._run(database.INSERT_RECORD, *record)
            self._add(record)
        if key is not None:
            first, count = records[0].first, records[-1].next - records[0].first
            use = KeyUse(key.body_hash, first, count, records[0].timestamp)
            self._run(database.INSERT_KEY, *database.key_row(key.text, use))

    def remove(self, below: int, now_ms: int) -> bool:
        """Remove some records whose ids are all below `below`, and keys that are older than a day.

        Returns whether there are more such records.
        """
        if self._connection is None:
            return False
        with self.writing():
            end = self._run("SELECT max(first) FROM record WHERE first <= ?", below).get or 0
            limit = self._run(
                "SELECT first FROM record WHERE first < ? ORDER BY first LIMIT 1 OFFSET ?",
                *(end, REMOVED_AT_ONCE),
            ).get
            self._run("DELETE FROM record WHERE first < ?", limit or end)
            self._run("DELETE FROM key_use WHERE timestamp < ?", now_ms - KEPT_MS)
        return limit is not None

    def require_whole_files(self) -> None:
        """Raise NeedsRepair if what SQLite has beside the file was removed or replaced.

        Who wrote to a log that has another name, or none, would write where nobody reads.
        """
        if self._connection is None:
            return
        inodes = [_inode_of(name) for name in self._beside]
        if self._beside_inodes is None:
            self._beside_inodes = inodes
        elif self._beside_inodes != inodes:
            raise NeedsRepair(f"{self.log_path} was removed or replaced")

    # --- the write-ahead log ---------------------------------------------------------------------

    def log_sync(self) -> Callable[[], None]:
        """Return a function that syncs the write-ahead log, whoever wrote to it; to be called once.

        It may run beside other users of the store. Both raise WriteFailed.
        """
        opened = self._log_descriptor
        descriptor = files.open_for_writing(self.log_path) if opened is None else os.dup(opened)

        def sync() -> None:
            try:
                files.sync(descriptor, self.log_path)
            finally:
                os.close(descriptor)

        return sync

    @property
    def has_written(self) -> bool:
        """Whether this process writes to the write-ahead log."""
        return self._log_descriptor is not None

    def log_is_due(self) -> bool:
        """Return whether the write-ahead log is so long that it has to be emptied."""
        return _size_of(self.log_path) >= self._log_limit

    def empty_log(self) -> None:
        """Copy the write-ahead log into the file, and empty it. Raises WriteFailed, NeedsRepair.

        If a reader is in the way, it is tried again when the log has grown. Only under the lock
        between processes; reading goes on meanwhile.
        """
        try:
            is_empty = database.empty_log(self.path)
        except apsw.Error as error:
            raise self._refused(error) from error
        self._log_limit = LOG_BYTES if is_empty else _size_of(self.log_path) + LOG_BYTES

    def _open_log(self) -> None:
        """Open the write-ahead log before this process writes to it, if it is not open.

        What a sync that failed has lost of it is written again.
        """
        if self._log_descriptor is not None:
            return
        descriptor = files.open_for_writing(self.log_path)
        try:
            files.write_again(descriptor, self.log_path)
        except BaseException:
            os.close(descriptor)
            raise
        self._log_descriptor = descriptor


def _size_of(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _inode_of(path: str) -> int:
    try:
        return os.stat(path).st_ino  # noqa: PTH116  this is asked often
    except FileNotFoundError:
        return 0
