"""Breaks answers of the index down: by day, by carrier, by delay.

Each function asks one statement of `rows`, which runs all of an answer in one snapshot. `below` is
the first transaction id that does not count; None, at the tip, reads totals instead of flights.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import date
from typing import Any

from backend.chain.summary import ON_TIME_BEFORE_MINUTES
from backend.index.delays import decode_counts
from backend.index.periods import DAY, cover
from backend.questions.values import AverageDelays, DelayTotals, FlightCounter

Rows = Callable[[str, Sequence[object]], list[Any]]  # statement, values -> all its rows

COUNTS = "flights, cancelled, arrived, departed, on_time, sum_arr_delay, sum_dep_delay"
COUNTED = f"""
    count(*), coalesce(sum(cancelled), 0), count(arr_delay), count(dep_delay),
    count(CASE WHEN arr_delay < {ON_TIME_BEFORE_MINUTES} THEN 1 END),
    coalesce(sum(arr_delay), 0), coalesce(sum(dep_delay), 0)"""
CARRIER_FLIGHTS = "FROM flight WHERE day BETWEEN ? AND ? AND carrier = ? AND id < ?"
ROUTE_FLIGHTS = """
    FROM flight WHERE day BETWEEN ? AND ? AND id < ?
    AND origin IN (SELECT place FROM place JOIN city USING (city) WHERE name = ?)
    AND dest IN (SELECT place FROM place JOIN city USING (city) WHERE name = ?)"""
ROUTE_TOTALS = """
    FROM route_total
    WHERE origin_city = (SELECT city FROM city WHERE name = ?)
    AND dest_city = (SELECT city FROM city WHERE name = ?)
    AND span = ? AND period BETWEEN ? AND ?"""

_DAILY_DELAYS = f"""
    SELECT period, {COUNTS} FROM carrier_total
    WHERE carrier = ? AND span = {DAY} AND period BETWEEN ? AND ?"""  # noqa: S608  our own names
_DAILY_DELAYS_AS_OF = f"SELECT day, {COUNTED} {CARRIER_FLIGHTS} GROUP BY day"
_DELAYS_RANGE = """
    SELECT counts FROM carrier_delays WHERE carrier = ? AND span = ? AND period BETWEEN ? AND ?"""
_DELAYS_AS_OF = f"""
    SELECT arr_delay, count(*) {CARRIER_FLIGHTS} AND arr_delay IS NOT NULL
    GROUP BY arr_delay"""

_DAILY_FLIGHTS = f"SELECT period, sum(flights) {ROUTE_TOTALS} GROUP BY period"
_DAILY_FLIGHTS_AS_OF = f"SELECT day, count(*) {ROUTE_FLIGHTS} GROUP BY day"
_CARRIERS_RANGE = f"SELECT carrier, flights {ROUTE_TOTALS}"
_CARRIERS_AS_OF = f"SELECT carrier, count(*) {ROUTE_FLIGHTS} GROUP BY carrier"


def delays_by_day(rows: Rows, question: AverageDelays, below: int | None) -> dict[str, DelayTotals]:
    """The counts of each day that has flights."""
    carrier, days = question.OP_CARRIER_AIRLINE_ID, _ordinals(question)
    if below is not None:
        found = rows(_DAILY_DELAYS_AS_OF, (*days, carrier, below))
    else:
        found = rows(_DAILY_DELAYS, (carrier, *days))
    return {_iso(day): DelayTotals(*counts) for day, *counts in found}


def delay_counts(rows: Rows, question: AverageDelays, below: int | None) -> Counter[int]:
    """How often each ARR_DELAY occurs among the flights that arrived."""
    carrier = question.OP_CARRIER_AIRLINE_ID
    if below is not None:
        return Counter(dict(rows(_DELAYS_AS_OF, (*_ordinals(question), carrier, below))))
    total: Counter[int] = Counter()
    for periods in _covered(question):
        for (stored,) in rows(_DELAYS_RANGE, (carrier, *periods)):
            total.update(decode_counts(stored))
    return total


def flights_by_day(rows: Rows, question: FlightCounter, below: int | None) -> dict[str, int]:
    """How many flights went on each day that has any."""
    cities, days = _cities(question), _ordinals(question)
    if below is not None:
        found = rows(_DAILY_FLIGHTS_AS_OF, (*days, below, *cities))
    else:
        found = rows(_DAILY_FLIGHTS, (*cities, DAY, *days))
    return {_iso(day): flights for day, flights in found}


def flights_by_carrier(rows: Rows, question: FlightCounter, below: int | None) -> dict[int, int]:
    """How many flights each carrier had, of those that had any."""
    cities = _cities(question)
    if below is not None:
        return dict(rows(_CARRIERS_AS_OF, (*_ordinals(question), below, *cities)))
    total: Counter[int] = Counter()
    for periods in _covered(question):
        for carrier, flights in rows(_CARRIERS_RANGE, (*cities, *periods)):
            total[carrier] += flights
    return total


def _cities(question: FlightCounter) -> tuple[str, str]:
    return question.ORIGIN_CITY_NAME, question.DEST_CITY_NAME


def _ordinals(question: AverageDelays | FlightCounter) -> tuple[int, int]:
    days = (question.INITIAL_DATE, question.FINAL_DATE)
    first, last = (date.fromisoformat(day).toordinal() for day in days)
    return first, last


def _covered(question: AverageDelays | FlightCounter) -> list[tuple[int, int, int]]:
    days = (question.INITIAL_DATE, question.FINAL_DATE)
    first, last = (date.fromisoformat(day) for day in days)
    return cover(first, last)


def _iso(day: int) -> str:
    return date.fromordinal(day).isoformat()
