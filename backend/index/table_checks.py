"""Compares an index with the chain.

The index must hold the flights of all blocks up to the one where it stands, totals that these add
up to, and nothing else.

Whether it holds the right flights is seen from one number: each row of tables flight and block is
hashed, and the hashes are added up, in whatever order the rows come. The rows that the blocks say
must give the same sum. Python hashes bytes with a key that each run draws anew (SipHash, PEP 456),
so nobody can prepare rows that make up for each other. Only where the sums differ is every flight
looked up, to name the first that is wrong.

Totals are compared with what the flights add up to, or with what other totals do that they are made
of.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from itertools import chain, groupby, zip_longest
from operator import itemgetter
from pathlib import Path
from typing import Any

import apsw
import msgspec

from backend.chain.block import Block
from backend.chain.columns import Columns
from backend.index.delay_distributions import decode_counts, encode_counts
from backend.index.index_file import (
    OUTDATED,
    Outdated,
    Place,
    Position,
    index_path,
    is_wrong,
    open_to_read,
    position_in,
    unreadable,
)
from backend.index.periods import DAY, MONTH, WEEKDAY, YEAR, date_of, periods_of
from backend.index.totals import (
    ALL_CARRIERS,
    COUNTED,
    DESTINATION,
    FIRST_WEEKDAY_SLOT,
    HOUR,
    ORIGIN,
    PAIR,
    SUMS,
    FlightRow,
)
from backend.index.writer import SealedBlock, block_rows, flight_rows

STEPS_BETWEEN_PAUSES = 20_000  # of SQLite's machine: about a millisecond

Pause = Callable[[], bool]  # True ends what is being done
Row = tuple[Any, ...]

_FLIGHTS = "SELECT * FROM flight"
_FLIGHT = f"{_FLIGHTS} WHERE route = ? AND day = ? AND id = ?"
_BLOCKS = "SELECT * FROM block"
_BLOCKS_FROM = f"{_BLOCKS} WHERE first_transaction BETWEEN ? AND ?"
_COLUMNS = "SELECT name FROM pragma_table_info('flight') ORDER BY cid"
_PLACES = "SELECT airport_id, code, name, state, place FROM place JOIN city USING (city)"
_ROUTES = "SELECT origin, dest, route FROM route"
_STRAYS = """
    SELECT (SELECT count(*) FROM block, position WHERE first_transaction >= transactions)
         + (SELECT count(*) FROM carrier_total WHERE span NOT IN (0, 1, 2))
         + (SELECT count(*) FROM carrier_delays WHERE span NOT IN (0, 1, 2))
         + (SELECT count(*) FROM city WHERE city NOT IN (SELECT city FROM place))"""

_LOST = "SELECT count(*) FROM pragma_foreign_key_check"

_DATE = "86400 * period, 'unixepoch'"
_CALENDAR = f"""
    WITH calendar (day, month, weekday) AS MATERIALIZED (
        SELECT DISTINCT period, 12 * strftime('%Y', {_DATE}) + strftime('%m', {_DATE}) - 1,
            {FIRST_WEEKDAY_SLOT} + {WEEKDAY.format(day="period")}
        FROM carrier_total WHERE span = {DAY})"""  # noqa: S608
# Flights in the order in which they are stored; by day, SQLite would look each up by itself.
_FLIGHTS_BY_MONTH = "flight NOT INDEXED CROSS JOIN calendar USING (day)"
_WITH_HOUR = "dep_time + dep_delay IS NOT NULL"
_AIRPORT_OF = "SELECT place, airport FROM place"
_MONTHS_OF_ROUTES = "route_total JOIN route USING (route)"
_AIRPORTS_OF_ROUTES = f"{_MONTHS_OF_ROUTES} JOIN ({_AIRPORT_OF}) ON place"


def _ranked(kind: int, item: str, source: str) -> str:
    """Return rows of table ranking by the totals of routes."""
    return f"""
        SELECT {kind}, carrier, span, period, {item}, {SUMS} FROM {source}
        GROUP BY 2, 3, 4, 5"""  # noqa: S608


# What the rows of a table must be, by the flights or by tables that stand before it, and the
# table's own rows, in the same order.
_EXPECTED = {
    "number_total": (
        "SELECT number, carrier, count(*) FROM flight GROUP BY 1, 2 ORDER BY 1, 2",
        "SELECT * FROM number_total ORDER BY 1, 2",
    ),
    "place": (
        """WITH flown AS (SELECT route, count(*) AS flights FROM flight GROUP BY route)
           SELECT place, min(place) OVER (PARTITION BY code, city), added FROM (
               SELECT place, sum(flights) AS added FROM (
                   SELECT origin AS place, flights FROM flown JOIN route USING (route)
                   UNION ALL SELECT dest, flights FROM flown JOIN route USING (route))
               GROUP BY 1) JOIN place USING (place)
           ORDER BY 1""",
        "SELECT place, airport, flights FROM place ORDER BY 1",
    ),
    "route": (
        """SELECT route, min(route) OVER (PARTITION BY o.airport, d.airport)
           FROM (SELECT DISTINCT route FROM flight) JOIN route USING (route)
           JOIN place AS o ON o.place = origin JOIN place AS d ON d.place = dest ORDER BY 1""",
        "SELECT route, pair FROM route ORDER BY 1",
    ),
    "route_total": (
        f"""{_CALENDAR}
            SELECT route, {MONTH}, month, carrier, {COUNTED} FROM {_FLIGHTS_BY_MONTH}
            GROUP BY 1, 3, 4
            UNION ALL SELECT route, {YEAR}, period / 12, carrier, {SUMS} FROM route_total
            WHERE span = {MONTH} GROUP BY 1, 3, 4 ORDER BY 1, 2, 3, 4""",  # noqa: S608
        "SELECT * FROM route_total ORDER BY 1, 2, 3, 4",
    ),
    "carrier_total": (
        f"""{_CALENDAR}
            SELECT carrier, {DAY}, day, {COUNTED} FROM flight GROUP BY 1, 3
            UNION ALL SELECT carrier, {MONTH}, month, {SUMS}
            FROM carrier_total JOIN calendar ON day = period WHERE span = {DAY} GROUP BY 1, 3
            UNION ALL SELECT carrier, {YEAR}, period / 12, {SUMS} FROM carrier_total
            WHERE span = {MONTH} GROUP BY 1, 3 ORDER BY 1, 2, 3""",  # noqa: S608
        "SELECT * FROM carrier_total ORDER BY 1, 2, 3",
    ),
    "route_slot": (
        f"""{_CALENDAR}
            SELECT month, route, {HOUR}, carrier, {COUNTED}
            FROM {_FLIGHTS_BY_MONTH} WHERE {_WITH_HOUR} GROUP BY 2, 1, 3, 4
            UNION ALL SELECT month, route, weekday, carrier, {COUNTED} FROM {_FLIGHTS_BY_MONTH}
            GROUP BY 2, 1, 3, 4 ORDER BY 1, 2, 3, 4""",  # noqa: S608
        "SELECT * FROM route_slot ORDER BY 1, 2, 3, 4",
    ),
    "carrier_slot": (
        f"""SELECT carrier, {DAY}, day, {HOUR}, {COUNTED}
            FROM flight WHERE {_WITH_HOUR} GROUP BY 1, 3, 4
            UNION ALL SELECT carrier, {MONTH}, month, slot, {SUMS} FROM route_slot GROUP BY 1, 3, 4
            UNION ALL SELECT {ALL_CARRIERS}, span, period, slot, {SUMS} FROM carrier_slot
            WHERE carrier != {ALL_CARRIERS} GROUP BY 2, 3, 4 ORDER BY 1, 2, 3, 4""",  # noqa: S608
        "SELECT * FROM carrier_slot ORDER BY 1, 2, 3, 4",
    ),
    "ranking": (
        f"""{_ranked(PAIR, "pair", _MONTHS_OF_ROUTES)}
            UNION ALL {_ranked(ORIGIN, "airport", f"{_AIRPORTS_OF_ROUTES} = origin")}
            UNION ALL {_ranked(DESTINATION, "airport", f"{_AIRPORTS_OF_ROUTES} = dest")}
            UNION ALL SELECT kind, {ALL_CARRIERS}, span, period, item, {SUMS} FROM ranking
            WHERE carrier != {ALL_CARRIERS} GROUP BY 1, 3, 4, 5 ORDER BY 1, 2, 3, 4, 5""",  # noqa: S608
        "SELECT * FROM ranking ORDER BY 1, 2, 3, 4, 5",
    ),
}

_DELAYS = """
    SELECT carrier, day, arr_delay, count(*) FROM flight
    WHERE arr_delay IS NOT NULL GROUP BY 1, 2, 3 ORDER BY 1, 2, 3"""
_STORED_DELAYS = """
    SELECT carrier, period, counts FROM carrier_delays WHERE span = {span}
    ORDER BY carrier, period"""

FILE, FLIGHT, DELAYS = "file", "flight", "carrier_delays"
PARTS = (FILE, FLIGHT, *_EXPECTED, DELAYS)  # each is checked by itself

_encode = msgspec.msgpack.Encoder().encode


@dataclass(frozen=True, slots=True)
class ExpectedFlights:
    """Says what an index must have in table flight, by block. Processes can send it.

    height: the height of the block at which the index stands, -1 if there is nothing to compare.
    places, routes: the index's numbers of places, and of routes by two of these.
    """

    height: int = -1
    places: Mapping[Place, int] = field(default_factory=dict)
    routes: Mapping[tuple[int, int], int] = field(default_factory=dict)

    def rows(self, block: Block, columns: Columns) -> Iterator[FlightRow]:
        """Return the rows of a checked block in table flight."""
        return flight_rows(SealedBlock(block.header, block.hash, columns), self._route)

    def _route(self, origin: Place, dest: Place) -> int:
        places = self.places.get(origin, -1), self.places.get(dest, -1)
        return self.routes.get(places, -1)

    def sum(self, block: Block, columns: Columns) -> int:
        """Return the sum of the hashes of these rows; 0 for a block that the index may lack."""
        if block.header.height > self.height:
            return 0
        return _sum_of_hashes(chain(self.rows(block, columns), block_rows(block.header, columns)))


def _sum_of_hashes(rows: Iterable[FlightRow]) -> int:
    return sum(map(hash, map(_encode, rows)))


@dataclass(frozen=True, slots=True)
class Examined:
    """The sum of the hashes of what an index holds of each block, or what is wrong with it."""

    sum: int = 0
    problem: str = ""


class IndexCheck:
    """One snapshot of the index of the chain in `folder`, to be compared with its blocks.

    A context manager. What is wrong with the index is said in words, never raised; "" is nothing.
    """

    def __init__(self, folder: Path, pause: Pause | None = None) -> None:
        """Open nothing yet.

        pause: is called about every millisecond while SQLite is at work, and may sleep.
        """
        self.path = index_path(folder).resolve()  # the file, whatever the link names later
        self._pause = pause
        self._opened = ExitStack()
        self._connection: apsw.Connection | None = None
        self.position: Position | None = None  # None, too, while there is no index
        self.expected = ExpectedFlights()
        self.problem = ""  # of opening it
        self.is_outdated = False  # made by an earlier release, so there is nothing to compare

    def __enter__(self) -> "IndexCheck":
        if self.path.exists():
            self.problem = _in_words(self._open_unless_outdated)
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; what is known of the index remains."""
        self._opened.close()

    def _open_unless_outdated(self) -> str:
        try:
            return self._open()
        except Outdated:
            self.is_outdated = True
            return ""

    def _open(self) -> str:
        self._connection = connection = open_to_read(self.path)
        self._opened.enter_context(closing(connection))
        if self._pause is not None:
            connection.set_progress_handler(self._pause, STEPS_BETWEEN_PAUSES)
        connection.execute("BEGIN")
        position = position_in(connection)
        if position is None:
            return "it holds no block"
        rows: list[Any] = connection.execute(_PLACES).fetchall()
        places = {(i, code, city, state): place for i, code, city, state, place in rows}
        routes_found: list[Any] = connection.execute(_ROUTES).fetchall()
        routes = {(origin, dest): route for origin, dest, route in routes_found}
        self.position = position
        self.expected = ExpectedFlights(position.height, places, routes)
        return ""

    def look_up(self, block: Block, columns: Columns) -> str:
        """Return what is wrong with the flights of a checked block, each looked up by itself.

        Like everything below, it is asked of an index that could be opened.
        """
        if block.header.height > self.expected.height:
            return ""
        return _in_words(lambda: self._look_up(block, columns))

    def _look_up(self, block: Block, columns: Columns) -> str:
        header = block.header
        first, expected = header.first_transaction, list(block_rows(header, columns))
        ids = (first, first + header.transaction_count - 1)
        if (listed := list(self._rows(_BLOCKS_FROM, ids))) != expected:
            return f"table block has {listed!r:.80} for block {header.height}"
        for row in self.expected.rows(block, columns):
            stored = next(self._rows(_FLIGHT, row[:3]), None)
            if stored != row:
                return self._difference(block, row, stored)
        return ""

    def _difference(self, block: Block, row: FlightRow, stored_row: FlightRow | None) -> str:
        if stored_row is None:
            return f"it lacks transaction {row[2]} of block {block.header.height}"
        pairs = zip(self._rows(_COLUMNS), row, stored_row, strict=True)
        (name,), value, stored = next(p for p in pairs if p[1] != p[2])
        return (
            f"it has {name} {stored!r} instead of {value!r} for transaction {row[2]} "
            f"of block {block.header.height}"
        )

    def add_up(self) -> Examined:
        """Add up the hashes of the index's flights and of its list of blocks."""
        sums: list[int] = []

        def add() -> str:
            sums.append(_sum_of_hashes(chain(self._rows(_FLIGHTS), self._rows(_BLOCKS))))
            return ""

        problem = _in_words(add)
        return Examined(sum(sums), problem)

    def wrong_part(self, part: str, flights: int) -> str:
        """Return what is wrong with one of PARTS. flights: as many as the index should hold."""
        return _in_words(lambda: next(self._problems(part, flights), ""))

    def _problems(self, part: str, flights: int) -> Iterator[str]:
        if part == FILE:
            yield from self._differs("PRAGMA integrity_check", "ok", "check of the file by SQLite")
            yield from self._differs(_LOST, 0, "number of rows that refer to no other")
        elif part == FLIGHT:
            yield from self._differs("SELECT count(*) FROM flight", flights, "number of flights")
            yield from self._differs(_STRAYS, 0, "number of rows that belong to nothing")
        elif part == DELAYS:
            counted = _distributions(self._rows(_DELAYS))
            yield from self._unequal(part, counted, _STORED_DELAYS.format(span=DAY))
            for span in (MONTH, YEAR):
                added = _added_up(self._rows(_STORED_DELAYS.format(span=DAY)), span)
                yield from self._unequal(part, added, _STORED_DELAYS.format(span=span))
        else:
            summed, stored = _EXPECTED[part]
            yield from self._unequal(part, self._rows(summed), stored)

    def _differs(self, sql: str, expected: object, what: str) -> Iterator[str]:
        value = next(self._rows(sql))[0]
        if value != expected:
            words = " ".join(str(value).split())  # SQLite's come in lines
            yield f"the {what} is {words}, not {expected}"

    def _unequal(self, table: str, expected: Iterable[Row], stored: str) -> Iterator[str]:
        """Yield the first row that `table` has or lacks, by rows in the same order."""
        for row, stored_row in zip_longest(expected, self._rows(stored)):
            if row != stored_row:
                yield f"table {table} has or lacks {stored_row or row!r:.80}"
                return

    def _rows(self, sql: str, values: Row = ()) -> Iterator[Row]:
        assert self._connection is not None
        return iter(self._connection.execute(sql, values))


def inconsistency(folder: Path) -> str:
    """Return what is wrong between the tables of the index of the chain in `folder`, or "".

    Reads the whole file, not the chain. Raises TryLater.
    """
    with IndexCheck(folder) as check:
        if check.position is None:
            return check.problem or OUTDATED
        flights = check.position.transactions
        return next(filter(None, (check.wrong_part(part, flights) for part in PARTS)), "")


def _in_words(action: Callable[[], str]) -> str:
    """Return what `action`, or SQLite during it, finds wrong.

    Raises TryLater if this is unknown now.
    """
    try:
        return action()
    except UnicodeDecodeError as error:
        return f"it holds a text that is not UTF-8 ({error})"
    except apsw.Error as error:
        if is_wrong(error):
            return str(error)
        raise unreadable(error) from error


def _distributions(rows: Iterable[Row]) -> Iterator[Row]:
    """Yield carrier, period and encoded distribution of rows (carrier, period, delay, flights)."""
    for key, group in groupby(rows, itemgetter(0, 1)):
        yield (*key, encode_counts({delay: flights for _, _, delay, flights in group}))


def _added_up(days: Iterable[Row], span: int) -> Iterator[Row]:
    """Yield carrier, period and distribution of whole periods of `span`, from those of days."""
    for carrier, group in groupby(days, itemgetter(0)):
        periods: defaultdict[int, Counter[int]] = defaultdict(Counter)
        for _, day, counts in group:
            periods[dict(periods_of(date_of(day)))[span]].update(decode_counts(counts))
        for period, counts in sorted(periods.items()):
            yield (carrier, period, encode_counts(counts))
