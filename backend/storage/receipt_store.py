"""Keeps where the flights that each node accepted were mined: `cluster.sqlite` beside the chain.

A node numbers what it accepts; that number is the receipt until the flight has its id. For each
block the file says which node accepted each of its flights, so a number leads to an id and an id to
a number. One byte a flight is all it takes, whatever the age of the ledger.

A block's entry is on the disk before the block is. So entries above the tip do not count: after a
crash they are dropped, and the engine replays the block. An entry that is missing, or names another
block, is damage: the file was lost, or the chain was not written by this cluster.

The pages carry checksums (`storage.checked_sqlite`), and SQLite keeps a rollback journal rather
than a write-ahead log, whose pages would have none. The file can be made again by replaying all
that the engine keeps.
"""

import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apsw

from backend.base.errors import Damage, FlightchainError, WriteFailed
from backend.storage import checked_sqlite
from backend.storage.block_store import BlockStore, short_table
from backend.storage.layout import BLOCKS_FOLDER

FILE_NAME = "cluster.sqlite"

_SCHEMA = """
    PRAGMA user_version = 1;
    CREATE TABLE node (own INTEGER, engine_height INTEGER NOT NULL, height INTEGER NOT NULL);
    CREATE TABLE block (
        height        INTEGER PRIMARY KEY,
        hash          TEXT NOT NULL,
        engine_height INTEGER NOT NULL,
        proposer      TEXT NOT NULL,
        senders       BLOB NOT NULL
    );
    CREATE TABLE run (
        node      INTEGER NOT NULL,
        first     INTEGER NOT NULL,
        following INTEGER NOT NULL,
        height    INTEGER NOT NULL,
        PRIMARY KEY (node, first)
    ) WITHOUT ROWID"""
_LAST_RUN = "SELECT following FROM run WHERE node = ? AND height <= ? ORDER BY first DESC LIMIT 1"
_RUN_OF = (
    "SELECT first, following, height FROM run WHERE node = ? AND first <= ? "
    "ORDER BY first DESC LIMIT 1"
)


@dataclass(frozen=True, slots=True)
class Run:
    """The flights of one node in a block: numbers `first` to `following` (exclusive)."""

    node: int
    first: int
    following: int


@dataclass(frozen=True, slots=True)
class Entry:
    """The entry of a block. engine_height: the height of the engine's block that it was made of.

    proposer: the name of the voter who proposed that. senders: for each flight the index of the
    node that accepted it. runs: one for each such node.
    """

    height: int
    hash: str
    engine_height: int
    proposer: str
    senders: bytes
    runs: Sequence[Run]


def belongs_to_cluster(folder: Path) -> bool:
    """Return whether the chain in `folder` is written by a cluster."""
    return (folder / FILE_NAME).exists()


def require_no_cluster(folder: Path) -> None:
    """Raise FlightchainError if a cluster writes the chain in `folder`."""
    if belongs_to_cluster(folder):
        raise FlightchainError(
            f"the ledger in {folder} belongs to a cluster, which alone writes its blocks and makes "
            "its index; send files to a node instead, by its page /upload or by POST /imports"
        )


def blocks_to_come(folder: Path) -> str:
    """Say where the blocks come from that a chain lacks; "" if they are lost."""
    if (message := short_table(folder)) or not belongs_to_cluster(folder):
        return message
    return (
        f"{folder / BLOCKS_FOLDER} lacks blocks that this node had, and nothing is accepted until "
        "it has them from the others; if it does not get them, rebuild its chain as "
        "docs/how-to/cluster.md says"
    )


class Receipts:
    """Reads the entries of the chain in `folder`, whose blocks `store` has. It is safe for threads.

    Everything raises Damage if the file cannot be used.
    """

    def __init__(self, folder: Path, store: BlockStore) -> None:
        self._path = folder / FILE_NAME
        self._store = store
        self._local = threading.local()
        self._opened: list[apsw.Connection] = []
        self._mined: tuple[int, int] = (-1, 0)  # a height, and the own flights mined up to it

    def close(self) -> None:
        while self._opened:
            self._opened.pop().close()
        self._local = threading.local()

    def is_there(self) -> bool:
        """Return whether a cluster writes this chain."""
        return self._path.exists()

    def own(self) -> int | None:
        """Return the index of this node among the members; None if it only reads."""
        if not self.is_there():  # the node has not started yet
            return None
        with self._usable() as run:
            row: Any = run("SELECT own FROM node").fetchone()
        return None if row is None else row[0]

    def require_own(self, own: int | None) -> None:
        """Raise Damage if the file is another node's than that with this index."""
        if self.own() != own:
            raise Damage(
                f"{self._path} is of member {self.own()}, but this node is member {own} by its "
                "engine/config/node_key.json; each node needs a folder of its own, with its own key"
            )

    def own_mined(self) -> int:
        """Return how many flights of this node are in blocks: the first pending number."""
        height = self._store.height()
        if self._mined[0] != height:
            own = self.own()
            self._mined = (height, 0 if own is None else self.mined(own, height))
        return self._mined[1]

    def mined(self, node: int, height: int) -> int:
        """Return how many flights of a node are in blocks up to a height."""
        with self._usable() as run:
            row: Any = run(_LAST_RUN, (node, height)).fetchone()
        return 0 if row is None else row[0]

    def id_of(self, node: int, number: int) -> int | None:
        """Return the id of the flight that a node accepted as `number`; None if no block has it."""
        if not self.is_there():
            return None
        with self._usable() as run:
            row: Any = run(_RUN_OF, (node, number)).fetchone()
            if row is None or number >= row[1] or row[2] > self._store.height():
                return None
            first, _, height = row
            block: Any = run("SELECT senders FROM block WHERE height = ?", (height,)).fetchone()
        at = _position(block[0], node, number - first)
        return self._store.place(height).first_transaction + at

    def newest(self) -> Entry | None:
        """Return the entry of the newest block that has one, without its flights."""
        if not self.is_there():
            return None
        with self._usable() as run:
            row: Any = run(
                "SELECT height, hash, engine_height, proposer FROM block "
                "WHERE height <= ? ORDER BY height DESC LIMIT 1",
                (self._store.height(),),
            ).fetchone()
        if row is None:
            return None
        height, block_hash, engine_height, proposer = row
        return Entry(height, block_hash, engine_height, proposer, b"", ())

    def check(self) -> int:
        """Compare every entry with its block. Returns how many entries there are.

        Raises Damage that names the first block whose entry is missing or does not fit.
        """
        height, mined, expected = self._store.height(), Counter[int](), 0
        with self._usable() as run:
            entries: Any = run(
                "SELECT height, hash, senders FROM block WHERE height <= ? ORDER BY height",
                (height,),
            ).fetchall()
            for at, block_hash, senders in entries:
                if expected and at != expected:
                    break
                expected = at + 1
                runs: Any = run("SELECT node, first, following FROM run WHERE height = ?", (at,))
                place = self._store.place(at)
                fits = (block_hash, len(senders)) == (place.hash.hex(), place.transaction_count)
                if not (fits and _adds_up(runs, Counter(senders), mined)):
                    raise Damage(f"{self._path}: the entry of block {at} is not that of this block")
        if entries and expected != height + 1:
            raise Damage(f"{self._path}: block {expected} has no entry")
        return len(entries)

    @contextmanager
    def _usable(self) -> Iterator[Any]:
        """Lend a function that runs a statement."""
        try:
            yield self._connection().execute
        except apsw.Error as error:
            raise Damage(
                f"{self._path} cannot be used: {error}; rebuild the node's chain as "
                "docs/how-to/cluster.md says"
            ) from error

    def _connection(self) -> apsw.Connection:
        if not hasattr(self._local, "connection"):
            self._local.connection = self._open()
            self._opened.append(self._local.connection)
        connection: apsw.Connection = self._local.connection
        return connection

    def _open(self) -> apsw.Connection:
        # It is opened for writing because SQLite must roll back what a dead writer left unfinished.
        connection = checked_sqlite.connect(self._path)
        with checked_sqlite.closed_on_error(connection):
            checked_sqlite.require_checksums(connection)
        return connection


def _adds_up(
    runs: Iterable[tuple[int, int, int]], senders: Counter[int], mined: Counter[int]
) -> bool:
    """Return whether the runs of a block go on where `mined` ends, and are what its flights say.

    senders: how many flights each node has in it. mined: how many each has up to it, which goes on.
    """
    flights: Counter[int] = Counter()
    for node, first, following in runs:
        if node in mined and mined[node] != first:
            return False
        mined[node] = following
        flights[node] += following - first
    return flights == senders


def _position(senders: bytes, node: int, count: int) -> int:
    """Return the position of the flight that follows `count` flights of `node`. Raises Damage."""
    at = -1
    for _ in range(count + 1):
        at = senders.find(node, at + 1)
        if at < 0:
            raise Damage(f"{FILE_NAME} does not hold all flights of member {node} in a block")
    return at


class ReceiptWriter(Receipts):
    """Writes the entries, in the one process that writes blocks."""

    def begin(self, own: int | None) -> None:
        """Make the file if there is none. own: the index of this node; None if it only reads.

        Raises WriteFailed, or Damage if the file is another node's.
        """
        if not self.is_there():
            with checked_sqlite.new_file(self._path) as connection:
                connection.execute(_SCHEMA)
                connection.execute("INSERT INTO node VALUES (?, 0, 0)", (own,))
        self.require_own(own)

    def align(self, height: int, tip_hash: str, base: int) -> int:
        """Drop the entries above the tip. Returns the engine's height that the chain stands at.

        base: the height of the block that the cluster began with. Raises Damage if the newest
        entry is not that of the tip.
        """
        with self._writes() as run:
            run("DELETE FROM run WHERE height > ?", (height,))
            run("DELETE FROM block WHERE height > ?", (height,))
        newest = self.newest()
        ends = (base, tip_hash) if newest is None else (newest.height, newest.hash)
        if ends != (height, tip_hash):
            raise Damage(
                f"{self._path} ends at block {ends[0]}, and lacks block {height} {tip_hash}, with "
                "which the chain ends; rebuild the node's chain as docs/how-to/cluster.md says"
            )
        with self._usable() as run:  # what was noted above a tip that is lost does not count
            noted = run("SELECT engine_height FROM node WHERE height <= ?", (height,)).get
        return max(noted or 0, 0 if newest is None else newest.engine_height)

    def add(self, entry: Entry) -> None:
        """Make the entry of the next block durable, before the block is. Raises WriteFailed."""
        values = (entry.height, entry.hash, entry.engine_height, entry.proposer, entry.senders)
        with self._writes() as run:
            run("INSERT INTO block VALUES (?, ?, ?, ?, ?)", values)
            for part in entry.runs:
                row = (part.node, part.first, part.following, entry.height)
                run("INSERT INTO run VALUES (?, ?, ?, ?)", row)

    def passed(self, engine_height: int, height: int) -> None:
        """Note that the engine's block at this height made no block above `height`."""
        with self._writes() as run:
            run("UPDATE node SET engine_height = ?, height = ?", (engine_height, height))

    @contextmanager
    def _writes(self) -> Iterator[Any]:
        """Run statements in one transaction, which is on the disk at the end."""
        try:
            connection = self._connection()
            connection.execute("PRAGMA synchronous = EXTRA")  # syncs the folder, too
            with connection:
                yield connection.execute
        except apsw.Error as error:
            raise WriteFailed(f"{self._path} cannot be written: {error}") from error
