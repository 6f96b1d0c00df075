"""Adds a batch of flights to the tables of the index, in SQL.

The batch stands in the temporary table `batch`, which has the columns of table flight. What can be
made from sums of it is made from these, because they are fewer than flights. An import spends most
of its time in one process, and this is part of it.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Any

import apsw

from backend.chain.summary import ON_TIME_BEFORE_MINUTES
from backend.index.delay_distributions import decode_counts, encode_counts
from backend.index.periods import DAY, MONTH, YEAR, date_of, periods_of

FlightRow = tuple[Any, ...]

ALL_CARRIERS = 0
FIRST_WEEKDAY_SLOT = 24  # the slots below are hours
ORIGIN, DESTINATION, PAIR = 0, 1, 2  # the kinds of table ranking

COUNTS = "flights, cancelled, arrived, departed, on_time, sum_arr_delay, sum_dep_delay"
COUNTED = f"""
    count(*), coalesce(sum(cancelled), 0), count(arr_delay), count(dep_delay),
    count(CASE WHEN arr_delay < {ON_TIME_BEFORE_MINUTES} THEN 1 END),
    coalesce(sum(arr_delay), 0), coalesce(sum(dep_delay), 0)"""
SUMS = ", ".join(f"sum({count})" for count in COUNTS.split(", "))

# Minute and hour of scheduled departure of a row of flight; NULL for a flight without one.
MINUTE = "((dep_time / 100 * 60 + dep_time % 100 - dep_delay) % 1440 + 1440) % 1440"
HOUR = f"{MINUTE} / 60"

_COLUMNS = 12
_DAY, _NUMBER, _CARRIER, _ARR_DELAY = 1, 3, 4, 8  # positions in a row of table flight
_PUT = f"INSERT INTO batch VALUES ({', '.join('?' * _COLUMNS)})"  # noqa: S608  our own names

_CALENDAR = "CREATE TEMP TABLE calendar (day INTEGER PRIMARY KEY, month INTEGER, slot INTEGER)"
_TEMPORARY = {
    "batch": "AS SELECT * FROM flight WHERE false",
    "day_sum": f"(route, carrier, day, {COUNTS})",
    "month_sum": f"(route, carrier, month, {COUNTS})",
    "slot_sum": f"(carrier, day, slot, {COUNTS})",
    "rank_sum": f"(kind, carrier, month, item, {COUNTS})",
}


def _summed(table: str, keys: str, source: str, counts: str = SUMS) -> str:
    """Return the statement that adds to `table` what the rows of `source` add up to by `keys`.

    An error ends its transaction, so a statement that fails need not be undone alone. To be able to
    do that, SQLite would keep a copy of each page before its first change.
    """
    added = ", ".join(f"{name} = {name} + excluded.{name}" for name in COUNTS.split(", "))
    positions = ", ".join(str(1 + at) for at in range(1 + keys.count(",")))
    return (
        f"INSERT OR FAIL INTO {table} SELECT {keys}, {counts} FROM {source} GROUP BY {positions}"  # noqa: S608  our own names
        f" ON CONFLICT DO UPDATE SET {added}"
    )


_DAYS = "day_sum JOIN calendar USING (day)"
_HAS_HOUR = "WHERE dep_time + dep_delay IS NOT NULL"
_HOURS_BY_MONTH = f"batch JOIN calendar USING (day) {_HAS_HOUR}"
_SLOTS = "slot_sum JOIN (SELECT day, month FROM calendar) USING (day)"
_AIRPORTS = """
    month_sum JOIN route USING (route) JOIN (SELECT place, airport FROM place) ON place"""
# Rows that are there already make SQLite keep such copies all the same, until the statement ends.
# In a long ledger each route has pages of its own in route_total; in a short one, neighbours share.
_QUARTERS = [f"month_sum WHERE route / 16 % 4 = {quarter}" for quarter in range(4)]
_IS_HOUR = f"WHERE slot < {FIRST_WEEKDAY_SLOT}"
_STAGES = (
    _summed("day_sum", "route, carrier, day", "batch", COUNTED),
    _summed("month_sum", "route, carrier, month", _DAYS),
)
_ADDITIONS = (
    "INSERT OR FAIL INTO flight SELECT * FROM batch ORDER BY route, day, id",
    *(
        _summed("route_total", f"route, {span}, {period}, carrier", quarter)
        for span, period in ((MONTH, "month"), (YEAR, "month / 12"))
        for quarter in _QUARTERS
    ),
    # The weekdays, which count every flight once, and then the hours, which do not.
    _summed("route_slot", "month, route, slot, carrier", _DAYS),
    _summed("slot_sum", "carrier, day, slot", _DAYS),
    _summed("carrier_total", f"carrier, {DAY}, day", "slot_sum"),
    _summed("carrier_total", f"carrier, {MONTH}, month", _SLOTS),
    _summed("carrier_total", f"carrier, {YEAR}, month / 12", _SLOTS),
    _summed("route_slot", f"month, route, {HOUR}, carrier", _HOURS_BY_MONTH, COUNTED),
    _summed("slot_sum", f"carrier, day, {HOUR}", f"batch {_HAS_HOUR}", COUNTED),
    _summed("slot_sum", f"{ALL_CARRIERS}, day, slot", "slot_sum"),
    _summed("carrier_slot", f"carrier, {DAY}, day, slot", f"slot_sum {_IS_HOUR}"),
    _summed("carrier_slot", f"carrier, {MONTH}, month, slot", _SLOTS),
    _summed("rank_sum", f"{PAIR}, carrier, month, pair", "month_sum JOIN route USING (route)"),
    _summed("rank_sum", f"{ORIGIN}, carrier, month, airport", f"{_AIRPORTS} = origin"),
    _summed("rank_sum", f"{DESTINATION}, carrier, month, airport", f"{_AIRPORTS} = dest"),
    _summed("rank_sum", f"kind, {ALL_CARRIERS}, month, item", "rank_sum"),
    _summed("ranking", f"kind, carrier, {MONTH}, month, item", "rank_sum"),
    _summed("ranking", f"kind, carrier, {YEAR}, month / 12, item", "rank_sum"),
    """UPDATE place SET flights = place.flights + added.flights
       FROM (SELECT place, sum(flights) AS flights
             FROM (SELECT origin AS place, flights FROM month_sum JOIN route USING (route)
                   UNION ALL SELECT dest, flights FROM month_sum JOIN route USING (route))
             GROUP BY place) AS added
       WHERE place.place = added.place""",
)
_ADD_NUMBERS = """
    INSERT INTO number_total VALUES (?, ?, ?)
    ON CONFLICT DO UPDATE SET flights = flights + excluded.flights"""
_DELAYS_OF = "SELECT counts FROM carrier_delays WHERE carrier = ? AND span = ? AND period = ?"
_PUT_DELAYS = """
    INSERT INTO carrier_delays VALUES (?, ?, ?, ?)
    ON CONFLICT DO UPDATE SET counts = excluded.counts"""


def prepare(connection: apsw.Connection) -> None:
    """Make the temporary tables of a connection that will write."""
    connection.execute("PRAGMA temp_store = MEMORY")
    connection.execute(_CALENDAR)
    for table, columns in _TEMPORARY.items():
        connection.execute(f"CREATE TEMP TABLE {table} {columns}")


def stage(connection: apsw.Connection, rows: Sequence[FlightRow]) -> None:
    """Take in rows of table flight, and begin to add them up, in temporary tables alone."""
    for table in _TEMPORARY:  # something is left if an addition before this one failed
        connection.execute(f"DELETE FROM {table}")  # noqa: S608  our own names
    with connection:
        connection.executemany(_PUT, rows)
    days = {row[_DAY] for row in rows}
    connection.executemany(
        "INSERT OR IGNORE INTO calendar VALUES (?, ?, ?)",
        [(day, *_month_and_slot(day)) for day in days],
    )
    for statement in _STAGES:
        connection.execute(statement)


def add_staged(connection: apsw.Connection, rows: Sequence[FlightRow]) -> None:
    """Add the rows that were staged, and what they add up to, to all tables but place and route.

    The routes of the flights must be there. Raises Wrong for a stored distribution that is none.
    """
    for statement in _ADDITIONS:
        connection.execute(statement)
    numbers = Counter(map(itemgetter(_NUMBER, _CARRIER), rows))
    connection.executemany(_ADD_NUMBERS, [(*key, n) for key, n in sorted(numbers.items())])
    _add_delays(connection, rows)


def _add_delays(connection: apsw.Connection, rows: Sequence[FlightRow]) -> None:
    """Add how often the arrived had each ARR_DELAY to carrier_delays."""
    added: defaultdict[tuple[int, int, int], Counter[int]] = defaultdict(Counter)
    delays = Counter(map(itemgetter(_CARRIER, _DAY, _ARR_DELAY), rows))
    for (carrier, day, delay), flights in delays.items():
        for period in _periods(day) if delay is not None else ():
            added[carrier, *period][delay] += flights
    changed: list[tuple[int, int, int, bytes]] = []
    for key, counts in sorted(added.items()):
        stored = connection.execute(_DELAYS_OF, key).fetchone()
        if stored is not None:
            counts.update(decode_counts(stored[0]))
        changed.append((*key, encode_counts(counts)))
    connection.executemany(_PUT_DELAYS, changed)


@lru_cache(maxsize=4096)
def _periods(day: int) -> tuple[tuple[int, int], ...]:
    return periods_of(date_of(day))


def _month_and_slot(day: int) -> tuple[int, int]:
    return dict(_periods(day))[MONTH], FIRST_WEEKDAY_SLOT + date_of(day).weekday()
