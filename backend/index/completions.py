"""What occurs in the ledger, and how often: cities, airports, carriers, days, flight numbers.

Each function asks one statement of `rows` and reads tables that grow with the variety of flights,
not with their number. The flights of a city or airport are those that leave plus those that arrive.
"""

from backend.chain.fields import FIELD
from backend.index.breakdowns import Rows
from backend.index.periods import YEAR

_MOST_DIGITS = len(str(FIELD["OP_CARRIER_FL_NUM"].maximum))

_CITIES = "SELECT name, sum(flights) FROM place JOIN city USING (city) GROUP BY city"
_AIRPORTS = """
    SELECT code, name, state, sum(flights) FROM place JOIN city USING (city)
    GROUP BY code, city, state"""

# From one carrier to the next by the key: no row of a day is read.
_CARRIERS = f"""
    WITH RECURSIVE known (carrier) AS (
        SELECT min(carrier) FROM carrier_total
        UNION ALL
        SELECT (SELECT min(carrier) FROM carrier_total WHERE carrier > known.carrier)
        FROM known WHERE carrier IS NOT NULL)
    SELECT known.carrier,
           (SELECT sum(flights) FROM carrier_total
            WHERE carrier = known.carrier AND span = {YEAR})
    FROM known WHERE carrier IS NOT NULL"""  # noqa: S608  our own names

# Each half reads one end of the table's key.
_DAYS = "SELECT (SELECT min(day) FROM flight), (SELECT max(day) FROM flight)"

_ONE_RANGE = "SELECT number, flights FROM number_total WHERE number BETWEEN ? AND ?"
_NUMBERS = f"""
    WITH chosen AS (
        SELECT number, sum(flights) AS total
        FROM ({" UNION ALL ".join([_ONE_RANGE] * _MOST_DIGITS)})
        GROUP BY number ORDER BY total DESC, CAST(number AS TEXT) LIMIT ?)
    SELECT number, total, carrier, flights FROM chosen JOIN number_total USING (number)
    ORDER BY total DESC, CAST(number AS TEXT), flights DESC, carrier"""  # noqa: S608


def cities(rows: Rows) -> list[tuple[str, int]]:
    """City name, flights."""
    return rows(_CITIES, ())


def airports(rows: Rows) -> list[tuple[str, str, str, int]]:
    """Code, city, state, flights."""
    return rows(_AIRPORTS, ())


def carriers(rows: Rows) -> list[tuple[int, int]]:
    """DOT number of the carrier, flights."""
    return rows(_CARRIERS, ())


def days(rows: Rows) -> tuple[int | None, int | None]:
    """The first and the last day with flights, as ordinals; None if there are no flights."""
    ((first, last),) = rows(_DAYS, ())
    return first, last


def flight_numbers(rows: Rows, prefix: str, limit: int) -> list[tuple[int, int, int, int]]:
    """Flight number, its flights, a carrier that uses it, that carrier's flights of this number.

    Of the numbers whose digits begin with `prefix` the `limit` most common, one row for each
    carrier; both the most common first, equals in the order of their digits and DOT numbers.
    """
    ranges = [_range(prefix, length) for length in range(1, _MOST_DIGITS + 1)]
    return rows(_NUMBERS, (*(end for ends in ranges for end in ends), limit))


def _range(prefix: str, length: int) -> tuple[int, int]:
    """First and last number of `length` digits that begins with `prefix`; if none, an empty one."""
    if prefix.startswith("0") or len(prefix) > length:
        return 1, 0
    first = int(prefix.ljust(length, "0")) if prefix else 10 ** (length - 1)
    return first, int(prefix.ljust(length, "9"))
