"""Writes blocks into one index file.

Flights are inserted in the order of their key, many blocks at a time: SQLite then fills pages
instead of splitting them. What they add to the totals is computed in totals.py. A long log is
brought into the file by a thread, while the next blocks are prepared.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import date
from operator import getitem
from pathlib import Path
from typing import Any, TypeVar

import apsw

from backend.base import files
from backend.base.errors import Damage
from backend.chain.block import Block, Header
from backend.chain.columns import Column, Columns
from backend.chain.fields import Value
from backend.chain.parse_cache import ParseCache
from backend.index import totals, views
from backend.index.checkpoint_note import frames_in_log, is_settled, note_moving, note_settled
from backend.index.index_file import (
    SCHEMA_VERSION,
    Place,
    Position,
    open_apart,
    open_to_write,
    position_in,
)
from backend.index.periods import day_number
from backend.index.totals import FlightRow
from backend.storage import checked_sqlite
from backend.storage.checked_sqlite import Wrong
from backend.storage.codec import decoded

_SCHEMA = Path(__file__).with_name("schema.sql")
_WRITER_CACHE_KIB = 16384  # 48 MiB is no faster, from an empty ledger to 8 million flights
_CHECKPOINT_PAGES = 8192  # 32 MB of log; each checkpoint syncs

_PLACES = """
    SELECT place, airport_id, code, name, state, airport FROM place JOIN city USING (city)
    ORDER BY place"""
_PUT_BLOCK = "INSERT INTO block VALUES (?, ?, ?)"
_ROUTES = "SELECT route, origin, dest, pair FROM route"

# The members of both airports of a flight.
_ROUTE_COLUMNS = (
    *("ORIGIN_AIRPORT_ID", "ORIGIN", "ORIGIN_CITY_NAME", "ORIGIN_STATE_NM"),
    *("DEST_AIRPORT_ID", "DEST", "DEST_CITY_NAME", "DEST_STATE_NM"),
)

T = TypeVar("T")
BlockRow = tuple[int, int, int]
Route = tuple[int, int]  # the places of departure and arrival


@dataclass(frozen=True, slots=True)
class SealedBlock:
    """A block as the index needs it: with its transactions in columns."""

    header: Header
    hash: str
    columns: Columns


def sealed_block(block: Block) -> SealedBlock:
    """Return a block as the index needs it. Raises DamagedBlock if its body is none."""
    return SealedBlock(block.header, block.hash, decoded(block))


class IndexWriter:
    """One index file, open for writing."""

    def __init__(self, path: Path) -> None:
        """Open the index at `path`; an empty one is made if there is none.

        A new one is not synced before `close`; what is added to an old one is never there in part:
        a power cut may lose the newest transactions, which the chain has. Raises apsw.Error.
        """
        self._is_new = not path.exists()
        self._path = path.resolve()
        self._log_pages = 0
        self._new_names: list[tuple[str, tuple[object, ...]]] = []  # statements, and their values
        self._connection = open_to_write(path)
        with checked_sqlite.closed_on_error(self._connection):
            self._prepare()

    def _prepare(self) -> None:
        run = self._connection.execute
        self._be_synchronous(self._connection)
        run(f"PRAGMA cache_size = -{_WRITER_CACHE_KIB}")
        self._connection.set_wal_hook(self._has_grown)  # instead of checkpoints by themselves
        self._connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        if self._is_new:
            run(_SCHEMA.read_text(encoding="utf-8"))
            run(views.statements())
        cities: list[Any] = run("SELECT name, city FROM city").fetchall()
        self._cities: dict[str, int] = dict(cities)
        places: list[Any] = run(_PLACES).fetchall()
        self._places: dict[Place, int] = {
            (airport_id, code, name, state): place
            for place, airport_id, code, name, state, _ in places
        }
        self._airports: dict[tuple[Value, Value], int] = {}  # of a code and a city
        self._airport_of: dict[int, int] = {}  # of a place
        for place, _, code, name, _, airport in places:
            self._airport_of[place] = self._airports[code, name] = airport
        routes: list[Any] = run(_ROUTES).fetchall()
        self._routes: dict[Route, int] = {
            (origin, dest): route for route, origin, dest, _ in routes
        }
        self._pairs = {
            (self._airport_of[origin], self._airport_of[dest]): pair
            for _, origin, dest, pair in routes
        }
        totals.prepare(self._connection)

    def _be_synchronous(self, connection: apsw.Connection) -> None:
        connection.execute(f"PRAGMA synchronous = {'OFF' if self._is_new else 'NORMAL'}")

    def close(self) -> None:
        """Bring what can be into the one file, and close it; a new one is synced."""
        try:
            position = self.position()
            self._connection.set_busy_timeout(0)  # readers are not waited for
            is_gone = not self._path.exists()  # another process rebuilt the index
            if is_gone or self._is_whole() or self._settle(position):
                self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                self._connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)
        finally:
            self._connection.close()
        if self._is_new:
            files.sync_file(self._path)
            if position is not None:
                note_settled(self._path, position.height)

    def _has_grown(self, _connection: apsw.Connection, _name: str, pages: int) -> int:
        """Take note of the length of the log after a commit."""
        self._log_pages = pages
        return apsw.SQLITE_OK

    def _is_whole(self) -> bool:
        """Return whether the file has everything already, and a note that says so."""
        return not frames_in_log(self._connection) and is_settled(self._connection, self._path)

    def _settle(self, position: Position | None) -> bool:
        """Bring the log into the file and leave notes, as `checkpoint_note` says.

        Returns whether all could be brought there: what readers still use cannot. position: where
        the index stands, by the connection that wrote it.
        """
        with closing(checked_sqlite.connect(self._path)) as connection:  # which makes none anew
            self._be_synchronous(connection)
            self._require_whole_log(position)
            used_at = None if position is None or self._is_new else position.height
            if used_at is not None:
                note_moving(self._path, used_at)
            frames, moved = connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        if used_at is not None and moved == frames:
            note_settled(self._path, used_at)
        return moved == frames

    @contextmanager
    def _settling(self) -> Iterator[None]:
        """Settle a long log in a thread, and wait for it at the end.

        Inside, nothing may be written to the log: SQLite would make it longer instead of beginning
        it anew.
        """
        if self._log_pages < _CHECKPOINT_PAGES:
            yield
            return
        position = self.position()
        with ThreadPoolExecutor(1, "settling") as helper:
            # Starts the thread now: after Ctrl-C while it starts nobody would wait for its work.
            helper.submit(int).result()
            settled = helper.submit(self._settle, position)
            yield
        settled.result()

    def _require_whole_log(self, position: Position | None) -> None:
        """Raise Wrong if the log does not say what was written: in the file, it would be trusted.

        Every transaction moves the position, so the last one is whole if it can be read again.
        """
        with closing(open_apart(self._path)) as apart:
            written = position_in(apart)
        if written != position:
            raise Wrong(f"its log was damaged: it leads to {written}, not to {position}")

    def abandon(self) -> None:
        """Close a file that is not to be used any more, whatever state it is in."""
        self._connection.close()

    def position(self) -> Position | None:
        """Return where the index stands; None for an empty one."""
        return position_in(self._connection)

    def apply(self, blocks: Sequence[SealedBlock]) -> None:
        """Take in the next blocks, all or nothing.

        Raises Damage if they do not follow, or apsw.Error. After an error this object must be
        closed: it may remember cities that are not there.
        """
        if not blocks:
            return
        with self._settling():
            rows = [row for block in blocks for row in flight_rows(block, self._route)]
            totals.stage(self._connection, rows)
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            self._require_next(blocks)
            self._add_new_names()
            totals.add_staged(self._connection, rows)
            for block in blocks:
                listed = block_rows(block.header, block.columns)
                self._connection.executemany(_PUT_BLOCK, listed)
            self._move_to(blocks)
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise

    def _require_next(self, blocks: Sequence[SealedBlock]) -> None:
        position = self.position()
        height = -1 if position is None else position.height
        tip_hash = None if position is None else position.tip_hash
        for block in blocks:
            header = block.header
            if header.height != height + 1 or tip_hash not in {None, header.previous_hash}:
                raise Damage(f"the index stands at block {height}; {header.height} does not follow")
            height, tip_hash = header.height, block.hash

    def _move_to(self, blocks: Sequence[SealedBlock]) -> None:
        first, last = blocks[0], blocks[-1]
        header = last.header
        transactions = header.first_transaction + header.transaction_count
        moved = (header.height, last.hash, transactions)
        if first.header.height == 0:
            values = (1, SCHEMA_VERSION, first.hash, *moved)
            self._connection.execute("INSERT INTO position VALUES (?, ?, ?, ?, ?, ?)", values)
        else:
            self._connection.execute(
                "UPDATE position SET height = ?, tip_hash = ?, transactions = ?", moved
            )

    # --- places and routes -------------------------------------------------------------------

    def _add_new_names(self) -> None:
        """Add the cities, places and routes that the blocks have brought."""
        for statement, values in self._new_names:
            self._connection.execute(statement, values)
        self._new_names.clear()

    def _route(self, origin: Place, dest: Place) -> int:
        key = self._place(origin), self._place(dest)
        if key not in self._routes:
            route = len(self._routes) + 1
            airports = self._airport_of[key[0]], self._airport_of[key[1]]
            pair = self._pairs.setdefault(airports, route)
            self._new_names.append(("INSERT INTO route VALUES (?, ?, ?, ?)", (route, *key, pair)))
            self._routes[key] = route
        return self._routes[key]

    def _place(self, place: Place) -> int:
        if place not in self._places:
            airport_id, code, name, state = place
            number = len(self._places) + 1
            airport = self._airports.setdefault((code, name), number)
            values = (number, airport_id, code, self._city(str(name)), state, airport)
            self._new_names.append(("INSERT INTO place VALUES (?, ?, ?, ?, ?, ?, 0)", values))
            self._places[place] = number
            self._airport_of[number] = airport
        return self._places[place]

    def _city(self, name: str) -> int:
        if name not in self._cities:
            city = len(self._cities) + 1
            self._new_names.append(("INSERT INTO city VALUES (?, ?)", (city, name)))
            self._cities[name] = city
        return self._cities[name]


def block_rows(header: Header, columns: Columns) -> Iterator[BlockRow]:
    """Yield the row of table block, if the block has transactions."""
    for timestamp in _times(columns)[:1]:
        yield header.first_transaction, header.height, timestamp


def flight_rows(block: SealedBlock, route_of: Callable[[Place, Place], int]) -> Iterator[FlightRow]:
    """Return the rows of table flight for a block, in the order of its columns.

    route_of: the index's number of the route from one place to another.
    """
    columns, header = block.columns, block.header
    first = header.first_transaction
    return zip(
        _routes(columns, route_of),
        _mapped(columns["FL_DATE"], _day),
        range(first, first + columns.count),
        columns["OP_CARRIER_FL_NUM"].expanded(),
        columns["OP_CARRIER_AIRLINE_ID"].expanded(),
        _mapped(columns["DEP_TIME"], _hhmm),
        columns["DEP_DELAY"].expanded(),
        _mapped(columns["ARR_TIME"], _hhmm),
        columns["ARR_DELAY"].expanded(),
        columns["CANCELLED"].expanded(),
        columns["AIR_TIME"].expanded(),
        _later(columns),
        strict=True,
    )


def _routes(columns: Columns, route_of: Callable[[Place, Place], int]) -> Iterable[int]:
    """Return the route of each row.

    Codes are compared, not texts: an import does this for each flight.
    """
    ends = [columns[name] for name in _ROUTE_COLUMNS]
    all_values = [column.values for column in ends]

    def route(codes: tuple[int, ...]) -> int:
        a, b, c, d, e, f, g, h = map(getitem, all_values, codes)
        return route_of((a, b, c, d), (e, f, g, h))

    routes: ParseCache[tuple[int, ...], int] = ParseCache(route)
    return map(routes.__getitem__, zip(*(column.codes for column in ends), strict=True))


def _times(columns: Columns) -> list[int]:
    """Return the distinct timestamps of a block's transactions; that of the first comes first."""
    return [int(time or 0) for time in columns["timestamp"].values]


def _later(columns: Columns) -> Iterator[int]:
    """Yield by how many ms the timestamp of each row is later than that of the first."""
    times = _times(columns)
    return map([time - times[0] for time in times].__getitem__, columns["timestamp"].codes)


def _mapped(column: Column, convert: ParseCache[Value, T]) -> Iterator[T]:
    """Return what `convert` makes of every row's value."""
    converted = list(map(convert.__getitem__, column.values))
    return map(converted.__getitem__, column.codes)


_day: ParseCache[Value, int] = ParseCache(lambda day: day_number(date.fromisoformat(str(day))))
_hhmm: ParseCache[Value, int | None] = ParseCache(lambda time: None if time is None else int(time))
