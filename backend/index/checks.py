"""Comparing an index with the chain, for `verify`.

Every flight of the chain is looked up and compared; then the totals are compared with what the
flights add up to. The index must hold nothing else.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing
from itertools import groupby, zip_longest
from operator import itemgetter
from pathlib import Path
from typing import Any

import apsw

from backend.chain.block import Block
from backend.chain.columns import Columns
from backend.chain.content import Content
from backend.errors import Damage
from backend.index.database import Position, index_path, open_to_read, position_in
from backend.index.delays import encode_counts
from backend.index.periods import DAY, MONTH, YEAR
from backend.index.totals import FlightRow
from backend.index.writer import Airport, SealedBlock, flight_rows

_FLIGHT = "SELECT * FROM flight WHERE day = ? AND number = ? AND id = ?"
_COLUMNS = "SELECT name FROM pragma_table_info('flight') ORDER BY cid"
_AIRPORTS = "SELECT airport_id, code, name, state, place FROM place JOIN city USING (city)"

# The period of a day in SQL: ordinal 719163 is 1970-01-01.
_MONTH = (
    "12 * strftime('%Y', (day - 719163) * 86400, 'unixepoch')"
    " + strftime('%m', (day - 719163) * 86400, 'unixepoch') - 1"
)
_YEAR = "CAST(strftime('%Y', (day - 719163) * 86400, 'unixepoch') AS INTEGER)"
_PERIODS = {DAY: "day", MONTH: _MONTH, YEAR: _YEAR}

_CARRIERS = """
    SELECT carrier, {span}, {period}, count(*), sum(cancelled), count(arr_delay), count(dep_delay),
           count(CASE WHEN arr_delay < 15 THEN 1 END), coalesce(sum(arr_delay), 0),
           coalesce(sum(dep_delay), 0)
    FROM flight GROUP BY carrier, {period}"""
_ROUTES = """
    SELECT o.city, d.city, {span}, {period}, carrier, count(*) FROM flight
    JOIN place AS o ON o.place = flight.origin JOIN place AS d ON d.place = flight.dest
    GROUP BY o.city, d.city, {period}, carrier"""
_NUMBERS = "SELECT number, carrier, count(*) FROM flight GROUP BY number, carrier"
_PLACES = """
    SELECT place, count(*)
    FROM (SELECT origin AS place FROM flight UNION ALL SELECT dest FROM flight) GROUP BY place"""
_DELAYS = """
    SELECT carrier, {period} AS period, arr_delay, count(*) FROM flight
    WHERE arr_delay IS NOT NULL GROUP BY carrier, period, arr_delay
    ORDER BY carrier, period, arr_delay"""
_STORED_DELAYS = """
    SELECT carrier, period, counts FROM carrier_delays WHERE span = ? ORDER BY carrier, period"""
_STRAYS = """
    SELECT (SELECT count(*) FROM carrier_total WHERE span NOT IN (0, 1, 2))
         + (SELECT count(*) FROM route_total WHERE span NOT IN (0, 1, 2))
         + (SELECT count(*) FROM carrier_delays WHERE span NOT IN (0, 1, 2))
         + (SELECT count(*) FROM city WHERE city NOT IN (SELECT city FROM place))
         + (SELECT count(*) FROM place WHERE place NOT IN
               (SELECT origin FROM flight UNION SELECT dest FROM flight))"""
_BY_PERIOD = {"carrier_total": _CARRIERS, "route_total": _ROUTES}


class IndexCheck:
    """One snapshot of the index of the chain in `folder`, to be compared with its blocks.

    A context manager. Give every block to `compare`, in order, then call `finish`: what is wrong
    with the index is said only there, after the whole chain has been looked at.
    """

    def __init__(self, folder: Path) -> None:
        self._path = index_path(folder)
        self._opened = ExitStack()
        self._connection: apsw.Connection | None = None
        self._position: Position | None = None
        self._places: dict[Airport, int] = {}
        self._flights = 0
        self._problem = ""

    def __enter__(self) -> "IndexCheck":
        if self._path.exists():
            self._tried(self._open)
        return self

    def __exit__(self, *error: object) -> None:
        self._opened.close()

    def _open(self) -> None:
        self._connection = connection = open_to_read(self._path)
        self._opened.enter_context(closing(connection))
        connection.execute("BEGIN")
        self._position = position_in(connection)
        if self._position is None:
            self._problem = "it holds no block"
            return
        rows: list[Any] = connection.execute(_AIRPORTS).fetchall()
        self._places = {(i, code, city, state): place for i, code, city, state, place in rows}

    def compare(self, block: Block, columns: Columns) -> None:
        """Compare what the index says of a checked block."""
        position = self._position
        if self._problem or position is None or block.header.height > position.height:
            return
        self._flights += columns.count
        self._tried(lambda: self._compare_flights(block, columns))
        for height, found in ((0, position.genesis_hash), (position.height, position.tip_hash)):
            if not self._problem and block.header.height == height and found != block.hash:
                self._problem = f"it is of another chain: its block {height} is {found}"

    def _compare_flights(self, block: Block, columns: Columns) -> None:
        assert self._connection is not None
        sealed = SealedBlock(block.header, block.hash, Content(columns, block.body, []))
        for row in flight_rows(sealed, lambda airport: self._places.get(airport, -1)):
            found = self._connection.execute(_FLIGHT, row[:3]).fetchone()
            if found != row:
                self._problem = self._difference(block, row, found)
                return

    def _difference(self, block: Block, row: FlightRow, found: FlightRow | None) -> str:
        assert self._connection is not None
        if found is None:
            return f"it lacks transaction {row[2]} of block {block.header.height}"
        names = self._connection.execute(_COLUMNS).fetchall()
        pairs = zip(names, row, found, strict=True)
        (name,), value, stored = next(p for p in pairs if p[1] != p[2])
        return (
            f"it has {name} {stored!r} instead of {value!r} for transaction {row[2]} "
            f"of block {block.header.height}"
        )

    def finish(self, height: int) -> int | None:
        """The height up to which the index agrees with a chain of `height`; None if there is none.

        Raises Damage naming the first thing that is wrong.
        """
        if not self._problem and self._position is not None:
            if self._position.height > height:
                self._problem = f"it stands at block {self._position.height}, above the tip"
            else:
                self._tried(self._compare_the_rest)
        if self._problem:
            raise Damage(f"the index is wrong: {self._problem}; run `reindex`")
        return None if self._position is None else self._position.height

    def _compare_the_rest(self) -> None:
        """The file, the number of flights, and totals that must be what the flights add up to."""
        assert self._connection is not None
        assert self._position is not None
        for sql, expected, what in (
            ("PRAGMA integrity_check", "ok", "SQLite's check of the file"),
            ("SELECT count(*) FROM flight", self._flights, "the number of flights"),
            (_STRAYS, 0, "the number of rows that belong to nothing"),
        ):
            found = next(self._connection.execute(sql))[0]
            if found != expected:
                words = " ".join(str(found).split())  # SQLite's come in lines
                self._problem = self._problem or f"{what} is {words}, not {expected}"
        if self._position.transactions != self._flights:
            self._problem = self._problem or f"it claims {self._position.transactions} flights"
        self._compare_rows("number_total", _NUMBERS, "SELECT * FROM number_total")
        self._compare_rows("place", _PLACES, "SELECT place, flights FROM place")
        for span, period in _PERIODS.items():
            for table, expected_totals in _BY_PERIOD.items():
                stored = f"SELECT * FROM {table} WHERE span = {span}"  # noqa: S608  our own names
                summed = expected_totals.format(span=span, period=period)
                self._compare_rows(table, summed, stored)
            self._compare_delays(span, _DELAYS.format(period=period))

    def _compare_rows(self, table: str, expected: str, stored: str) -> None:
        assert self._connection is not None
        for one, other in ((expected, stored), (stored, expected)):
            sql = f"SELECT * FROM ({one}) EXCEPT SELECT * FROM ({other}) LIMIT 1"  # noqa: S608
            if row := self._connection.execute(sql).fetchone():
                self._problem = self._problem or f"table {table} has or lacks {row}"

    def _compare_delays(self, span: int, expected: str) -> None:
        """Distributions are compared as bytes: each has one spelling."""
        assert self._connection is not None
        counted = _distributions(self._connection.execute(expected))
        stored = self._connection.execute(_STORED_DELAYS, (span,))
        for one, other in zip_longest(counted, stored):
            if one != other:
                found = f"{other or one!r:.80}"
                self._problem = self._problem or f"table carrier_delays has or lacks {found}"
                return

    def _tried(self, action: Callable[[], None]) -> None:
        """Do something with the index; what SQLite finds wrong is a problem of the index."""
        try:
            action()
        except apsw.Error as error:
            self._problem = self._problem or str(error)


def _distributions(
    rows: Iterable[tuple[int, int, int, int]],
) -> Iterator[tuple[int, int, bytes]]:
    """Carrier, period and encoded distribution of rows (carrier, period, delay, flights)."""
    for key, group in groupby(rows, itemgetter(0, 1)):
        yield (*key, encode_counts({delay: flights for _, _, delay, flights in group}))
