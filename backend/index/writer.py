"""Writes blocks into one index file.

Flights are inserted in the order of their key, many blocks at a time: SQLite then fills pages
instead of splitting them. What is to be added to the totals is counted in totals.py.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import date
from itertools import chain, repeat
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeVar

import apsw

from backend.chain.block import Block, Header
from backend.chain.columns import Column, Columns, decode_body
from backend.chain.content import Content
from backend.chain.fields import Value
from backend.chain.memo import Memo
from backend.chain.summary import cells_of
from backend.errors import Damage
from backend.index import totals
from backend.index.database import (
    SCHEMA_VERSION,
    Position,
    open_apart,
    open_to_write,
    position_in,
)
from backend.index.delays import decode_counts, encode_counts
from backend.index.settled import frames_in_log, is_settled, note_moving, note_settled
from backend.index.totals import CarrierPeriod, FlightRow
from backend.storage import files
from backend.storage.checked_sqlite import Wrong

_SCHEMA = Path(__file__).with_name("schema.sql")
_WRITER_CACHE_KIB = 65536
_CHECKPOINT_PAGES = 8192  # 32 MB of log; each checkpoint syncs

_ROWS_AT_ONCE = 50  # in one statement: a third less time than one by one


class _Insert:
    """INSERT statements for one row and for many rows of a table."""

    def __init__(self, table: str, columns: int, on_conflict: str = "") -> None:
        row = f"({', '.join('?' * columns)})"
        one = f"INSERT INTO {table} VALUES {row}"  # noqa: S608  our own names
        self.one = one + on_conflict
        self.many = one + f", {row}" * (_ROWS_AT_ONCE - 1) + on_conflict


_ADD_COUNTS = """
    ON CONFLICT DO UPDATE SET
        flights = flights + excluded.flights,
        cancelled = cancelled + excluded.cancelled,
        arrived = arrived + excluded.arrived,
        departed = departed + excluded.departed,
        on_time = on_time + excluded.on_time,
        sum_arr_delay = sum_arr_delay + excluded.sum_arr_delay,
        sum_dep_delay = sum_dep_delay + excluded.sum_dep_delay"""
_ADD_FLIGHTS = " ON CONFLICT DO UPDATE SET flights = flights + excluded.flights"

_FLIGHTS = _Insert("flight", 14)
_CARRIER_TOTALS = _Insert("carrier_total", 10, _ADD_COUNTS)
_ROUTE_TOTALS = _Insert("route_total", 6, _ADD_FLIGHTS)
_NUMBER_TOTALS = _Insert("number_total", 3, _ADD_FLIGHTS)
_CARRIER_DELAYS = _Insert(
    "carrier_delays", 4, " ON CONFLICT DO UPDATE SET counts = excluded.counts"
)
_AIRPORTS = "SELECT place, city, airport_id, code, name, state FROM place JOIN city USING (city)"
_DELAYS_OF = "SELECT counts FROM carrier_delays WHERE carrier = ? AND span = ? AND period = ?"

T = TypeVar("T")
Airport = tuple[Value, Value, Value, Value]  # DOT number, code, city, state


@dataclass(frozen=True, slots=True)
class SealedBlock:
    """A block as the index needs it."""

    header: Header
    hash: str
    content: Content


def sealed_block(block: Block) -> SealedBlock:
    """A block as the index needs it, decoded."""
    columns = decode_body(block.body, block.header.transaction_count)
    return SealedBlock(block.header, block.hash, Content(columns, block.body, cells_of(columns)))


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
        self._connection = open_to_write(path)
        try:
            self._prepare()
        except BaseException:
            self._connection.close()
            raise

    def _prepare(self) -> None:
        run = self._connection.execute
        run(f"PRAGMA synchronous = {'OFF' if self._is_new else 'NORMAL'}")
        run(f"PRAGMA cache_size = -{_WRITER_CACHE_KIB}")
        self._connection.set_wal_hook(self._has_grown)  # instead of checkpoints by themselves
        self._connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        if self._is_new:
            run(_SCHEMA.read_text(encoding="utf-8"))
        cities: list[Any] = run("SELECT name, city FROM city").fetchall()
        self._cities: dict[str, int] = dict(cities)
        airports: list[Any] = run(_AIRPORTS).fetchall()
        self._city_of: dict[int, int] = {place: city for place, city, *_ in airports}
        self._places: dict[Airport, int] = {
            (airport_id, code, name, state): place
            for place, _, airport_id, code, name, state in airports
        }

    def close(self) -> None:
        """Bring what can be into the one file, and close it; a new one is synced."""
        try:
            position = self.position()
            self._connection.set_busy_timeout(0)  # readers are not waited for
            is_gone = not self._path.exists()  # another process made the index anew
            if is_gone or self._is_whole() or self._settle():
                self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                self._connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)
        finally:
            self._connection.close()
        if self._is_new:
            self._sync()
            if position is not None:
                note_settled(self._path, position.height)

    def _sync(self) -> None:
        descriptor = files.open_for_writing(self._path)
        try:
            files.sync(descriptor, self._path)
        finally:
            os.close(descriptor)

    def _has_grown(self, _connection: apsw.Connection, _name: str, pages: int) -> int:
        """Take note of the length of the log after a commit."""
        self._log_pages = pages
        return apsw.SQLITE_OK

    def _is_whole(self) -> bool:
        """Whether the file has everything already, and a note that says so."""
        return not frames_in_log(self._connection) and is_settled(self._connection, self._path)

    def _settle(self) -> bool:
        """Bring the log into the file and leave notes, as `settled` says.

        Whether all could be brought there: what readers still use cannot.
        """
        position = self.position()
        self._require_whole_log(position)
        used_at = None if position is None or self._is_new else position.height
        if used_at is not None:
            note_moving(self._path, used_at)
        frames, moved = self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        if used_at is not None and moved == frames:
            note_settled(self._path, used_at)
        return moved == frames

    def _require_whole_log(self, position: Position | None) -> None:
        """Raise Wrong if the log does not say what was written: in the file, it would be believed.

        Every transaction moves the position, so the last one is whole if it can be read anew.
        """
        with closing(open_apart(self._path)) as apart:
            found = position_in(apart)
        if found != position:
            raise Wrong(f"its log was damaged: it leads to {found}, not to {position}")

    def abandon(self) -> None:
        """Close a file that is not to be used any more, whatever state it is in."""
        self._connection.close()

    def position(self) -> Position | None:
        """Where the index stands; None for an empty one."""
        return position_in(self._connection)

    def apply(self, blocks: Sequence[SealedBlock]) -> None:
        """Take in the next blocks, all or nothing.

        Raises Damage if they do not follow, or apsw.Error. After an error this object must be
        closed: it may remember cities that are not there.
        """
        if not blocks:
            return
        if self._log_pages >= _CHECKPOINT_PAGES:
            self._settle()
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            self._require_next(blocks)
            rows = [row for block in blocks for row in flight_rows(block, self._place)]
            self._add_totals(rows, blocks)
            rows.sort(key=itemgetter(1))  # by number, then by day; ids ascend already: a third
            rows.sort(key=itemgetter(0))  # less time than comparing whole rows
            self._insert(_FLIGHTS, rows)
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

    def _insert(self, statements: _Insert, rows: Sequence[tuple[Any, ...]]) -> None:
        """Insert rows, which stand in the order of their key."""
        rest = len(rows) % _ROWS_AT_ONCE
        for start in range(0, len(rows) - rest, _ROWS_AT_ONCE):
            values = list(chain.from_iterable(rows[start : start + _ROWS_AT_ONCE]))
            self._connection.execute(statements.many, values)
        self._connection.executemany(statements.one, rows[len(rows) - rest :])

    # --- airports ----------------------------------------------------------------------------

    def _place(self, airport: Airport) -> int:
        if airport not in self._places:
            airport_id, code, name, state = airport
            city = self._city(str(name))
            sql = (
                "INSERT INTO place (airport_id, code, city, state, flights) VALUES (?, ?, ?, ?, 0)"
            )
            place = self._places[airport] = self._inserted(sql, (airport_id, code, city, state))
            self._city_of[place] = city
        return self._places[airport]

    def _city(self, name: str) -> int:
        if name not in self._cities:
            self._cities[name] = self._inserted("INSERT INTO city (name) VALUES (?)", (name,))
        return self._cities[name]

    def _inserted(self, sql: str, values: tuple[Value, ...]) -> int:
        self._connection.execute(sql, values)
        return self._connection.last_insert_rowid()

    # --- totals ------------------------------------------------------------------------------

    def _add_totals(self, rows: Sequence[FlightRow], blocks: Sequence[SealedBlock]) -> None:
        cells = (cell for block in blocks for cell in block.content.cells)
        self._insert(_CARRIER_TOTALS, totals.carrier_rows(cells))
        grouped = totals.Grouped(rows)
        self._insert(_ROUTE_TOTALS, grouped.route_rows(self._city_of))
        self._insert(_NUMBER_TOTALS, grouped.number_rows())
        self._insert(_CARRIER_DELAYS, self._delay_rows(grouped.delay_counts()))
        self._connection.executemany(
            "UPDATE place SET flights = flights + ?2 WHERE place = ?1", grouped.place_rows()
        )

    def _delay_rows(
        self, counts: Mapping[CarrierPeriod, Counter[int]]
    ) -> list[tuple[int, int, int, bytes]]:
        """Rows of carrier_delays as they are to be when `counts` are added."""
        found: list[tuple[int, int, int, bytes]] = []
        for key, added in counts.items():
            stored = self._connection.execute(_DELAYS_OF, key).fetchone()
            if stored is not None:
                added.update(decode_counts(stored[0]))
            found.append((*key, encode_counts(added)))
        return found


def flight_rows(block: SealedBlock, place_of: Callable[[Airport], int]) -> Iterator[FlightRow]:
    """The rows of table flight for a block, in the order of its columns."""
    columns, header = block.content.columns, block.header
    first = header.first_transaction
    return zip(
        _mapped(columns["FL_DATE"], _ordinal),
        columns["OP_CARRIER_FL_NUM"].expanded(),
        range(first, first + columns.count),
        columns["OP_CARRIER_AIRLINE_ID"].expanded(),
        _places(columns, "ORIGIN", place_of),
        _places(columns, "DEST", place_of),
        _mapped(columns["DEP_TIME"], _hhmm),
        columns["DEP_DELAY"].expanded(),
        _mapped(columns["ARR_TIME"], _hhmm),
        columns["ARR_DELAY"].expanded(),
        columns["CANCELLED"].expanded(),
        columns["AIR_TIME"].expanded(),
        repeat(header.height, columns.count),
        columns["timestamp"].expanded(),
        strict=True,
    )


def _places(columns: Columns, end: str, place_of: Callable[[Airport], int]) -> Iterable[int]:
    """The place of each row's `end` ("ORIGIN" or "DEST")."""
    names = (f"{end}_AIRPORT_ID", end, f"{end}_CITY_NAME", f"{end}_STATE_NM")
    airport_id, code, city, state = (columns[name] for name in names)
    keys = list(zip(airport_id.codes, code.codes, city.codes, state.codes, strict=True))
    places = {
        key: place_of((airport_id.values[i], code.values[j], city.values[k], state.values[m]))
        for key in dict.fromkeys(keys)
        for i, j, k, m in [key]
    }
    return map(places.__getitem__, keys)


def _mapped(column: Column, convert: Memo[Value, T]) -> Iterator[T]:
    """What `convert` makes of every row's value."""
    converted = list(map(convert.__getitem__, column.values))
    return map(converted.__getitem__, column.codes)


_ordinal: Memo[Value, int] = Memo(lambda day: date.fromisoformat(str(day)).toordinal())
_hhmm: Memo[Value, int | None] = Memo(lambda time: None if time is None else int(time))
