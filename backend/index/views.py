"""Defines views of the index for people who ask in SQL, with `sqlite3 -readonly` or Datasette.

Flights have the names of their fields, in the order of `chain.fields`. The tables below may change
with each release; the columns of a view stay, and new ones come at its end. Any change raises
SCHEMA_VERSION, so that the index is rebuilt with it.
"""

from backend.index.periods import DAY, WEEKDAY, YEAR
from backend.index.totals import SUMS
from backend.questions.carriers import CARRIER

_DATE = "date(86400 * {day}, 'unixepoch')"
BLOCK_OF = """(
    SELECT block.{column} FROM block WHERE first_transaction <= {id}
    ORDER BY first_transaction DESC LIMIT 1)"""  # of the transaction with an id
_COUNTED = f"""
    {SUMS}, 1.0 * sum(sum_arr_delay) / sum(arrived), 1.0 * sum(sum_dep_delay) / sum(departed),
    1.0 * sum(on_time) / sum(flights)"""
_COUNTS = """flights, cancelled, arrived, departed, on_time, sum_arr_delay, sum_dep_delay,
    average_delay, average_departure_delay, on_time_share_of_scheduled"""


def _texts(*values: object) -> str:
    """Write a row of values for SQL; none of ours has a quote in it."""
    return "({})".format(", ".join(f"'{value}'" for value in values))


_NAMES = ", ".join(
    _texts(carrier.number, carrier.code, carrier.name) for carrier in CARRIER.values()
)

VIEWS = {
    "flights": f"""
        SELECT
            flight.id AS TRANSACTION_ID,
            CAST(strftime('%Y', 86400 * day, 'unixepoch') AS INTEGER) AS YEAR,
            1 + {WEEKDAY.format(day="day")} AS DAY_OF_WEEK,
            {_DATE.format(day="day")} AS FL_DATE,
            carrier AS OP_CARRIER_AIRLINE_ID,
            number AS OP_CARRIER_FL_NUM,
            origin.airport_id AS ORIGIN_AIRPORT_ID,
            origin.code AS ORIGIN,
            origin_city.name AS ORIGIN_CITY_NAME,
            origin.state AS ORIGIN_STATE_NM,
            dest.airport_id AS DEST_AIRPORT_ID,
            dest.code AS DEST,
            dest_city.name AS DEST_CITY_NAME,
            dest.state AS DEST_STATE_NM,
            substr('000' || dep_time, -4) AS DEP_TIME,
            dep_delay AS DEP_DELAY,
            substr('000' || arr_time, -4) AS ARR_TIME,
            arr_delay AS ARR_DELAY,
            cancelled AS CANCELLED,
            air_time AS AIR_TIME,
            later + {BLOCK_OF.format(column="timestamp", id="flight.id")} AS timestamp,
            {BLOCK_OF.format(column="height", id="flight.id")} AS BLOCK_HEIGHT,
            day AS DAY_NUMBER
        FROM flight JOIN route USING (route)
        JOIN place AS origin ON origin.place = route.origin
        JOIN city AS origin_city ON origin_city.city = origin.city
        JOIN place AS dest ON dest.place = route.dest
        JOIN city AS dest_city ON dest_city.city = dest.city""",  # noqa: S608  our own names
    "carriers": f"""
        WITH known (number, code, name) AS (VALUES {_NAMES})
        SELECT
            carrier AS OP_CARRIER_AIRLINE_ID,
            known.code,
            known.name,
            {_COUNTED}
        FROM carrier_total LEFT JOIN known ON known.number = CAST(carrier AS TEXT)
        WHERE span = {YEAR} GROUP BY carrier""",  # noqa: S608
    "airports": """
        SELECT
            first.code, coalesce(first.airport_id, min(place.airport_id)) AS airport_id,
            city.name AS city, first.state,
            sum(place.flights) AS flights
        FROM place JOIN place AS first ON first.place = place.airport
        JOIN city ON city.city = first.city GROUP BY first.place""",
    "days": f"""
        SELECT {_DATE.format(day="period")} AS FL_DATE, {_COUNTED}
        FROM carrier_total WHERE span = {DAY} GROUP BY period""",  # noqa: S608
}
_COLUMNS = {
    "carriers": f" (OP_CARRIER_AIRLINE_ID, code, name, {_COUNTS})",
    "days": f" (FL_DATE, {_COUNTS})",
}


def statements() -> str:
    """Return the statements that make all views."""
    views = (f"CREATE VIEW {name}{_COLUMNS.get(name, '')} AS {VIEWS[name]};" for name in VIEWS)
    return "\n".join(views)
