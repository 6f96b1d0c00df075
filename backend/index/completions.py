"""Tells which cities, airports, carriers, days and flight numbers occur, and how often.

`covered` says all of it but the flight numbers. The others ask one statement of `rows` each, and
read tables that grow with the variety of flights, not with their number. `airports_in` names
airports for files that lack their names. The flights of a city or airport are those that leave plus
those that arrive. Void entries (`chain.placeholder`) stand for flights that were lost, so they
occur nowhere here.
"""

from collections.abc import Mapping
from functools import cache
from operator import itemgetter
from typing import Any

from backend.base.errors import TryLater
from backend.chain.fields import FIELD
from backend.chain.placeholder import VOID_DEST_CITY, VOID_NUMBER, VOID_ORIGIN_CITY
from backend.index.group_counts import KNOWN_CARRIERS
from backend.index.index_file import Rows
from backend.index.periods import YEAR, date_of
from backend.index.queries import IndexReader
from backend.questions.answer_types import CoveredAirport, CoveredCarrier
from backend.questions.carriers import code_and_name
from backend.sources.airports import Airport, Lookup

_MOST_DIGITS = len(str(FIELD["OP_CARRIER_FL_NUM"].maximum))

_PLACES = f"""
    FROM place JOIN city USING (city)
    WHERE name NOT IN ('{VOID_ORIGIN_CITY}', '{VOID_DEST_CITY}')"""
_CITIES = f"SELECT name, sum(flights) {_PLACES} GROUP BY city"
_AIRPORTS = f"""
    SELECT code, name, state, sum(flights) {_PLACES} GROUP BY code, city, state"""
_VOIDS = "SELECT total(flights) FROM place JOIN city USING (city) WHERE name = ?"

_CARRIERS = f"""
    SELECT carrier, sum(flights) FROM carrier_total
    WHERE carrier IN ({KNOWN_CARRIERS}) AND span = {YEAR} GROUP BY carrier"""  # noqa: S608  our own names

# Each half reads one end of the index of flights by number, and void entries if there are any.
_IS_REAL = f"""
    route NOT IN
    (SELECT route FROM route JOIN place ON place = origin JOIN city USING (city)
     WHERE name = '{VOID_ORIGIN_CITY}')"""  # noqa: S608
_DAYS = f"""
    SELECT (SELECT day FROM flight WHERE {_IS_REAL} ORDER BY day, number LIMIT 1),
           (SELECT day FROM flight WHERE {_IS_REAL} ORDER BY day DESC, number DESC LIMIT 1)"""  # noqa: S608

_IS_REAL_NUMBER = f"NOT (number = {VOID_NUMBER} AND carrier = {VOID_NUMBER})"
_ONE_RANGE = f"""
    SELECT number, flights FROM number_total
    WHERE number BETWEEN ? AND ? AND {_IS_REAL_NUMBER}"""  # noqa: S608
_NUMBERS = f"""
    WITH chosen AS (
        SELECT number, sum(flights) AS total
        FROM ({" UNION ALL ".join([_ONE_RANGE] * _MOST_DIGITS)})
        GROUP BY number ORDER BY total DESC, CAST(number AS TEXT) LIMIT ?)
    SELECT number, total, carrier, flights FROM chosen JOIN number_total USING (number)
    WHERE {_IS_REAL_NUMBER}
    ORDER BY total DESC, CAST(number AS TEXT), flights DESC, carrier"""  # noqa: S608


def cities(rows: Rows) -> list[tuple[str, int]]:
    """Return the name and the flights of each city."""
    return rows(_CITIES, ())


def airports(rows: Rows) -> list[tuple[str, str, str, int]]:
    """Return code, city, state and flights of each airport."""
    return rows(_AIRPORTS, ())


def airports_in(index: IndexReader) -> Lookup:
    """Return what finds airports in the index, which is read when the first is looked up.

    Of several names the one with the most flights counts. Nothing is found without an index.
    """

    @cache
    def known() -> Mapping[str, Airport]:
        try:
            stored, _ = index.snapshot(airports)
        except TryLater:
            return {}
        by_flights = sorted(stored, key=itemgetter(3))
        return {code: Airport(code, city, state) for code, city, state, _ in by_flights}

    return lambda key: known().get(key)


def carriers(rows: Rows) -> list[tuple[int, int]]:
    """Return the DOT number and the flights of each carrier."""
    flights_of = dict(rows(_CARRIERS, ()))
    if VOID_NUMBER in flights_of:
        ((voids,),) = rows(_VOIDS, (VOID_ORIGIN_CITY,))
        flights_of[VOID_NUMBER] -= int(voids)
    return [(carrier, flights) for carrier, flights in flights_of.items() if flights]


def has_flight_number(rows: Rows, number: int) -> bool:
    """Return whether any flight has this number."""
    return bool(rows("SELECT 1 FROM number_total WHERE number = ? LIMIT 1", (number,)))


def days(rows: Rows) -> tuple[str, str] | None:
    """Return the first and the last day with flights, as ISO dates; None if there are none."""
    ((first, last),) = rows(_DAYS, ())
    return None if first is None else (date_of(first).isoformat(), date_of(last).isoformat())


def flight_numbers(rows: Rows, prefix: str, limit: int) -> list[tuple[int, int, int, int]]:
    """Return flight number, its flights, a carrier that uses it, and this one's flights of it.

    There is a row for each carrier of the `limit` most common numbers whose digits begin with
    `prefix`. The most common numbers and carriers come first, equals in the order of their digits
    and DOT numbers.
    """
    ranges = [_range(prefix, length) for length in range(1, _MOST_DIGITS + 1)]
    return rows(_NUMBERS, (*(end for ends in ranges for end in ends), limit))


def _range(prefix: str, length: int) -> tuple[int, int]:
    """Return the least and the largest number of `length` digits with `prefix`; 1, 0 if none."""
    if prefix.startswith("0") or len(prefix) > length:
        return 1, 0
    first = int(prefix.ljust(length, "0")) if prefix else 10 ** (length - 1)
    return first, int(prefix.ljust(length, "9"))


def covered(rows: Rows) -> dict[str, Any]:
    """Return the members of `Coverage` but `as_of`; what has the most flights comes first."""
    first, last = days(rows) or (None, None)
    known_carriers = sorted(carriers(rows), key=lambda known: (-known[1], known[0]))
    known_airports = sorted(airports(rows), key=lambda known: (-known[3], *known[:3]))
    return {
        "flights": sum(flights for _, flights in known_carriers),
        "first_date": first,
        "last_date": last,
        "carriers": [
            CoveredCarrier(number, *code_and_name(number), flights)
            for number, flights in known_carriers
        ],
        "airports": [CoveredAirport(*known) for known in known_airports],
    }
