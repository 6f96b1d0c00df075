"""Reads and appends the records in the mempool's file, `mempool/mempool.sqlite`.

A `Store` is what one process has read of the file. Every process takes in what others have written.
The process that holds the lock between processes appends, rebuilds a damaged file, and removes
records. Every process notices what is wrong: a record that is not as it was written, ids that are
missing between two records or at the end, a file that is gone or was replaced. That raises
NeedsRepair.

The newest record is never removed, so the id after it tells an older file from the present one.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import apsw

from backend.base import files
from backend.base.errors import DamagedMempool, FlightchainError, NeedsRepair, TryLater, WriteFailed
from backend.chain.flight import Flight
from backend.mempool import database, last_release
from backend.mempool.idempotency_keys import KEPT_MS, IdempotencyKey, KeyUse
from backend.mempool.records import Accepted, Record, UnsoundRecord, sound_record
from backend.mempool.watermark import Mark
from backend.storage import checked_sqlite

LOG_BYTES = 4 * 2**20  # of the write-ahead log; then it is copied into the file and emptied
REMOVED_AT_ONCE = 5000  # records; others wait for the lock meanwhile
_LARGE = 100  # flights of a record that stays decoded, because it is sealed block by block

_HEADS = "SELECT first, count FROM record WHERE first >= ? ORDER BY first LIMIT 2"
_FROM = "SELECT * FROM record WHERE first >= ? ORDER BY first"
_HOLDING = "SELECT * FROM record WHERE first <= ? ORDER BY first DESC LIMIT 1"
_ALL_RECORDS = "SELECT * FROM record ORDER BY first"
_ALL_KEYS = "SELECT * FROM key_use ORDER BY key"
_OLDEST = "SELECT first FROM record ORDER BY first LIMIT 1"


def require_blocks(missing: int, mined: int) -> None:
    """Raise DamagedMempool if blocks held a transaction once that is missing now.

    missing: its id. mined: how many transactions blocks held at some time.
    """
    if missing < mined:
        raise DamagedMempool(
            f"the chain ends at transaction {missing - 1}, but its blocks held {mined} "
            "transactions once: the chain has lost blocks, and nothing is accepted or mined; "
            "restore it from a copy; or, if you know that the blocks are gone, run `python -m "
            "backend accept-loss`, which lets void entries take the places of their flights"
        )


def missing_ids(records: Iterable[Record], end: int, mined: int) -> Iterator[range]:
    """Yield the runs of ids below `end` that neither records nor blocks hold.

    records: in order. mined: how many transactions blocks hold.
    """
    following = mined
    for record in records:
        if following < record.first:
            yield range(following, record.first)
        following = max(following, record.next)
    if following < end:
        yield range(following, end)


class Store:
    """What this process has read of the file in `folder`. It is not safe for threads."""

    def __init__(
        self,
        folder: Path,
        chain_transactions: Callable[[], int],
        genesis: Callable[[], str],
    ) -> None:
        """chain_transactions: how many transactions blocks hold. genesis: names the ledger."""
        self.path = folder / database.FILE_NAME
        self.log_path = folder / f"{database.FILE_NAME}-wal"
        self._name = str(self.path)
        self._beside = (str(self.log_path), str(folder / f"{database.FILE_NAME}-shm"))
        self._chain_transactions = chain_transactions
        self._genesis = genesis
        self.last_timestamp = 0  # of the newest record; acceptance times never go back
        self._connection: apsw.Connection | None = None
        self._log_descriptor: int | None = None
        self._log_limit = LOG_BYTES
        self._is_log_ours = False  # whether this process has emptied the log, or begun it
        self._forget()

    def _forget(self) -> None:
        self.next = 0  # the id after the last one
        self.mined = 0  # how many transactions blocks held when the newest record was written
        self.is_named = False  # whether the file names its ledger
        self._newest: tuple[int, int] | None = None  # its first id and its count
        self._inode = 0
        self._beside_inodes: list[int] | None = None
        self._keys: dict[str, KeyUse] = {}  # of the records, in the order of their ids
        self._decoded: tuple[Record, list[Flight]] | None = None

    def close(self) -> None:
        """Close every descriptor, and forget all that was read, except `last_timestamp`."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        if self._log_descriptor is not None:
            os.close(self._log_descriptor)
            self._log_descriptor = None
        self._forget()

    # --- looking ---------------------------------------------------------------------------------

    def look(self, mark: Mark | None) -> None:
        """Take in what other processes have written.

        mark: as it was read before. Raises NeedsRepair, TryLater if the file cannot be read now,
        and DamagedMempool if it is another ledger's, or the chain has lost blocks.
        """
        with self._reading():
            if self._is_open():
                self._take_in()
        self._require_all(mark or Mark())

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Turn errors of SQLite into ours, which name the file."""
        try:
            with database.errors_of(self.path):
                yield
        except UnsoundRecord as error:
            raise NeedsRepair(f"{self.path} is damaged: {error}") from error

    def _is_open(self) -> bool:
        """Open the file if it is there and is not open. A file that was replaced is opened anew."""
        inode = _inode_of(self._name)
        if self._connection is not None and inode != self._inode:
            self.close()
        if self._connection is None and inode:
            self._open(inode)
        elif not inode:
            self._require_nothing_else()
        return self._connection is not None

    def _require_nothing_else(self) -> None:
        """Raise NeedsRepair if the file is missing, but not all that it is made of or leaves."""
        self._require_not_rebuilt()
        if last_release.is_to_be_read(self.path.parent):
            raise NeedsRepair(f"{self.path.parent} is of the last release, and is not read yet")
        if _size_of(self.log_path):
            raise NeedsRepair(f"{self.path} is missing, but its write-ahead log is there")

    def _require_not_rebuilt(self) -> None:
        if self.path.with_name(database.NEW_NAME).exists():
            raise NeedsRepair(f"{self.path} is being rebuilt")

    def _open(self, inode: int) -> None:
        self._require_not_rebuilt()
        last_release.require_none(self.path.parent)
        connection = database.connected(self.path)
        try:
            named = database.require_ours(connection, self.path, self._genesis())
        except BaseException:
            connection.close()
            raise
        self._connection, self._inode, self.is_named = connection, inode, bool(named)

    def _take_in(self) -> None:
        heads = self._run(_HEADS, self._newest[0] if self._newest else 0).fetchall()
        if heads and heads[0] == self._newest:
            del heads[0]
        elif not heads and self._newest is not None:  # of all records, the newest is not removed
            raise NeedsRepair(f"{self.path}: the record of transaction {self._newest[0]} is gone")
        if heads:
            for record in self._records(_FROM, heads[0][0]):
                self._require_follows(record)
                self._add(record)
        if self._keys:
            self._forget_removed_keys()

    def _add(self, record: Record) -> None:
        self.next, self.mined, self.last_timestamp = record.next, record.mined, record.timestamp
        self._newest = (record.first, record.flight_count)
        if record.key:
            self._keys.pop(record.key, None)  # used again after a day: it moves to the end
            self._keys[record.key] = record.key_use()

    def _forget_removed_keys(self) -> None:
        """Drop the keys whose records are removed, and which are in the table of keys now."""
        oldest = self._run(_OLDEST).get
        while self._keys and next(iter(self._keys.values())).first < (oldest or 0):
            del self._keys[next(iter(self._keys))]

    def _require_follows(self, record: Record) -> None:
        """Raise NeedsRepair or DamagedMempool if ids are missing before `record`.

        Ids that are in blocks may be missing: imported flights never were here.
        """
        if record.first == self.next:
            return
        mined = self._chain_transactions()
        if self.next < record.first <= mined:
            return
        require_blocks(max(self.next, mined), record.mined)
        raise NeedsRepair(
            f"{self.path}: id {record.first} follows instead of {max(self.next, mined)}"
        )

    def _require_all(self, mark: Mark) -> None:
        """Raise NeedsRepair if acknowledged flights are missing at the end."""
        if mark.next <= self.next:
            return
        first = max(self.next, self._chain_transactions())
        if first < mark.next:
            require_blocks(first, mark.mined)
            raise NeedsRepair(
                f"transactions {first} to {mark.next - 1} were acknowledged and are missing in "
                f"{self.path}, which ends at transaction {self.next - 1}"
            )

    # --- reading ---------------------------------------------------------------------------------

    def _run(self, sql: str, *values: object) -> apsw.Cursor:
        assert self._connection is not None
        return self._connection.execute(sql, values)

    def _records(self, sql: str, *values: object) -> Iterator[Record]:
        """Read records. Raises NeedsRepair at one that is not as it was written."""
        assert self._connection is not None
        with closing(self._connection.cursor()) as cursor:
            for row in cursor.execute(sql, values):
                yield sound_record(row)

    def _holding(self, transaction_id: int) -> Record | None:
        """The record that holds a transaction; None if none does."""
        if self._connection is None:
            return None
        record = next(self._records(_HOLDING, transaction_id), None)
        return record if record is not None and transaction_id < record.next else None

    def _flights_of(self, record: Record) -> list[Flight]:
        if self._decoded is not None and self._decoded[0].digest == record.digest:
            return self._decoded[1]
        flights = record.decoded()
        if len(flights) >= _LARGE:
            self._decoded = (record, flights)
        return flights

    def flight_at(self, transaction_id: int) -> tuple[Flight, int] | None:
        """A transaction's flight and acceptance time; None if it is not here."""
        with self._reading():
            record = self._holding(transaction_id)
            if record is None:
                return None
            return self._flights_of(record)[transaction_id - record.first], record.timestamp

    def timestamp_at(self, transaction_id: int) -> int | None:
        """When a transaction was accepted, UTC milliseconds; None if it is not here."""
        with self._reading():
            record = self._holding(transaction_id)
        return None if record is None else record.timestamp

    def oldest(self) -> int | None:
        """The first id of the oldest record; None without any."""
        with self._reading():
            if not self._is_open():
                return None
            first: int | None = self._run(_OLDEST).get
            return first

    def parts(self, start: int, limit: int) -> Iterator[Accepted]:
        """The flights from id `start` on, at most `limit`, in the order of ids.

        Raises NeedsRepair if an id is missing.
        """
        with self._reading():
            if (record := self._large_record(start)) is not None:
                part = self._part(record, start, limit)
                yield part
                start, limit = record.next, limit - len(part.flights)
            if limit <= 0 or start >= self.next:
                return
            first = self._run("SELECT max(first) FROM record WHERE first <= ?", start).get
            for record in self._records(_FROM, first or 0):
                if limit <= 0:
                    return
                if record.next <= start:
                    continue
                if record.first > start:
                    raise NeedsRepair(f"{self.path}: transaction {start} is missing")
                part = self._part(record, start, limit)
                yield part
                start, limit = record.next, limit - len(part.flights)

    def _large_record(self, transaction_id: int) -> Record | None:
        """The record that is decoded already, if it holds a transaction."""
        if self._decoded is None:
            return None
        record = self._decoded[0]
        return record if record.first <= transaction_id < record.next else None

    def _part(self, record: Record, start: int, limit: int) -> Accepted:
        skip = max(0, start - record.first)
        flights = self._flights_of(record)[skip : skip + limit]
        return Accepted(record.first + skip, record.timestamp, flights)

    def forget_mined(self, mined: int) -> None:
        """Drop what is decoded if blocks hold it, because it may be a large batch."""
        if self._decoded is not None and self._decoded[0].next <= mined:
            self._decoded = None

    def key_use(self, key: IdempotencyKey, now_ms: int) -> KeyUse | None:
        """What `key` was used for in the last day; None if it was not used.

        Raises KeyReused if it came with another body, and NeedsRepair.
        """
        use = self._keys.get(key.text) or self._kept_key(key.text)
        return use if use is not None and use.counts_for(key, now_ms) else None

    def _kept_key(self, text: str) -> KeyUse | None:
        with self._reading():
            if self._connection is None:
                return None
            rows = self._run("SELECT * FROM key_use WHERE key = ?", text).fetchall()
            return database.keys_in(rows).get(text)

    def everything(self) -> tuple[list[Record], dict[str, KeyUse]]:
        """All records, and the keys whose records are removed, as at one moment."""
        with self._reading():
            if self._connection is None:
                return [], {}
            try:
                self._run("BEGIN")
                return list(self._records(_ALL_RECORDS)), database.keys_in(self._run(_ALL_KEYS))
            finally:
                if self._connection.in_transaction:  # SQLite may have ended it after an error
                    self._run("COMMIT")

    def readable(self) -> tuple[dict[int, Record], dict[str, KeyUse]]:
        """All records by their first ids, and all keys, that can be read of a damaged file.

        They are read forwards and backwards, so what follows one bad place is found, too.
        """
        records: dict[int, Record] = {}
        keys: dict[str, KeyUse] = {}
        with self._forgiving():
            self._is_open()
        if self._connection is None:
            return records, keys
        for order in ("", " DESC"):
            with self._forgiving():
                for row in self._run(_ALL_RECORDS + order):
                    with self._forgiving():
                        record = sound_record(row)
                        record.decoded()
                        records[record.first] = record
            with self._forgiving():
                for row in self._run(_ALL_KEYS + order):
                    with self._forgiving():
                        keys |= database.keys_in([row])
        return records, keys

    @contextmanager
    def _forgiving(self) -> Iterator[None]:
        """Pass over what is damaged, and only that."""
        try:
            with self._reading():
                yield
        except NeedsRepair:
            pass

    def check(self) -> tuple[list[Record], dict[str, KeyUse]]:
        """Read every page, record and key. Raises DamagedMempool."""
        with self._reading():
            if not self._is_open():
                return [], {}
            assert self._connection is not None
            checked_sqlite.require_checksums(self._connection)
            database.read_every_page(self._connection)
            problem = self._run("PRAGMA integrity_check(1)").get
            if problem != "ok":
                raise checked_sqlite.Wrong(str(problem))
            records, keys = self.everything()
            for record in records:
                record.decoded()
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
            if self._connection is None and not self._is_open():
                database.write_file(self.path, self._genesis(), [], {})
                files.sync_folder(self.path.parent.parent)
                self._open(_inode_of(self._name))
            self._run("BEGIN IMMEDIATE")
            with self._reading():
                self._take_in()
            self._name_new_log()
            yield
            self._run("COMMIT")
        except apsw.BusyError as error:
            self.close()
            raise TryLater(f"{self.path} is in use by another program: {error}") from error
        except apsw.Error as error:
            self.close()  # which also takes back what was written
            raise self._refused(error) from error
        except BaseException:
            self.close()
            raise

    def _name_new_log(self) -> None:
        """Write the name of the ledger into a log that is empty.

        SQLite reads any log into any file, and records do not name their ledger. A row that is
        changed to what it was would not be written.
        """
        if not _size_of(self.log_path):
            named = self._run("SELECT genesis FROM ledger").get
            self._run("DELETE FROM ledger")
            self._run("INSERT INTO ledger VALUES (?)", named)

    def _refused(self, error: apsw.Error) -> FlightchainError:
        """NeedsRepair if the file is damaged, else WriteFailed."""
        if database.is_damage(error):
            return NeedsRepair(f"{self.path} is damaged: {database.reason(error)}")
        return WriteFailed(f"{self.path} cannot be written: {error}")

    def append(self, record: Record) -> None:
        """Write a record behind all others. Only in `writing`."""
        self._run(database.INSERT_RECORD, *record)
        self._add(record)

    def bind(self) -> None:
        """Write the name of the ledger into a file that was made before there was one."""
        if not self.is_named and self._connection is not None and (genesis := self._genesis()):
            with self.writing():
                self._run("UPDATE ledger SET genesis = ?", genesis)
            self.is_named = True

    def remove(self, below: int, now_ms: int) -> bool:
        """Remove some records whose ids are all below `below`. Returns whether there are more.

        Their keys go to the table of keys, from which those are removed that are older than a day.
        """
        if self._connection is None:
            return False
        with self._reading():
            end = self._run("SELECT max(first) FROM record WHERE first <= ?", below).get
            next_limit = self._run(
                "SELECT first FROM record WHERE first < ? ORDER BY first LIMIT 1 OFFSET ?",
                *(end or 0, REMOVED_AT_ONCE),
            ).get
        with self.writing():
            limit = next_limit or end or 0
            going = {text: use for text, use in self._keys.items() if use.first < limit}
            assert self._connection is not None
            self._connection.executemany(database.INSERT_KEY, database.key_rows(going))
            self._run("DELETE FROM record WHERE first < ?", limit)
            self._run(
                "DELETE FROM key_use WHERE timestamp NOT BETWEEN ? AND ?",
                *(now_ms - KEPT_MS, now_ms + KEPT_MS),
            )
        return next_limit is not None

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

    def log_descriptor(self) -> int:
        """A new descriptor of the write-ahead log, to sync it. Raises WriteFailed.

        Its name is on the disk, whoever made it.
        """
        if self._log_descriptor is None:
            self._log_descriptor = files.open_for_writing(self.log_path)
        return os.dup(self._log_descriptor)

    def sync(self) -> None:
        """Return when all that was written is on the disk, whoever wrote it. Raises WriteFailed."""
        descriptor = self.log_descriptor()
        try:
            files.sync(descriptor, self.log_path)
        finally:
            os.close(descriptor)

    def log_is_due(self) -> bool:
        """Whether the write-ahead log has to be emptied before this process writes.

        It is when the log is long, and at first: if a sync failed before this process started, the
        kernel takes lost bytes for written, and no later sync of the log writes them. Who copies
        them into the file writes them anew.
        """
        if not self._is_log_ours and _size_of(self.log_path):
            return True
        self._is_log_ours = True
        return self._log_size() >= self._log_limit

    def _log_size(self) -> int:
        return 0 if self._log_descriptor is None else os.fstat(self._log_descriptor).st_size

    def empty_log(self) -> None:
        """Copy the write-ahead log into the file, and empty it. Raises WriteFailed, NeedsRepair.

        If a reader is in the way, it is tried again when the log has grown. Only under the lock
        between processes; reading goes on meanwhile.
        """
        try:
            is_empty = database.empty_log(self.path)
        except apsw.Error as error:
            raise self._refused(error) from error
        self._is_log_ours = True
        self._log_limit = LOG_BYTES if is_empty else self._log_size() + LOG_BYTES


def _size_of(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _inode_of(path: str) -> int:
    try:
        return os.stat(path).st_ino  # noqa: PTH116  this is asked often
    except FileNotFoundError:
        return 0
