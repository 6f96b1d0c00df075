"""A flight is 19 values in the order of `fields.FIELDS`, each valid and all in agreement.

`Flight` is a plain tuple, because a block holds a thousand of them. `flight_of` makes one from a
mapping (JSON); the import makes whole columns at once and shares `disagreement` with it. Both ask
`Field.parse` what a value means.
"""

from collections.abc import Mapping
from datetime import date
from functools import lru_cache
from itertools import islice

from backend.base.errors import InvalidFlight
from backend.chain.fields import FIELD, FIELD_NAMES, FIELDS, POSITION, Value

Flight = tuple[Value, ...]

REMEMBERED_DAYS = 4000  # eleven years
MOST_ERRORS = 100  # that are described of one request
EMPTY_WHEN_CANCELLED = ("ARR_TIME", "ARR_DELAY", "AIR_TIME")

_YEAR, _WEEKDAY, _DATE = (POSITION[n] for n in ("YEAR", "DAY_OF_WEEK", "FL_DATE"))
_CANCELLED = POSITION["CANCELLED"]


def calendar_disagreement(year: Value, weekday: Value, day: Value) -> InvalidFlight | None:
    """Return the first thing wrong with YEAR and DAY_OF_WEEK beside FL_DATE, or None."""
    return next(iter(_calendar_disagreements(year, weekday, day)), None)


def _calendar_disagreements(year: Value, weekday: Value, day: Value) -> list[InvalidFlight]:
    its_year, its_weekday = year_and_weekday(day)
    problems = []
    if year != its_year:
        problems.append(InvalidFlight("YEAR", year, f"disagrees with FL_DATE {day}"))
    if weekday != its_weekday:
        reason = f"disagrees with FL_DATE {day}, which is day {its_weekday} (1 = Monday)"
        problems.append(InvalidFlight("DAY_OF_WEEK", weekday, reason))
    return problems


@lru_cache(REMEMBERED_DAYS)
def year_and_weekday(day: Value) -> tuple[int, int]:
    """Return year and weekday (1 = Monday) of an FL_DATE. Raises ValueError if it is no day."""
    parsed = date.fromisoformat(str(day))
    return parsed.year, parsed.isoweekday()


def disagreements(flight: Flight) -> list[InvalidFlight]:
    """Return every rule between fields that `flight` (of valid fields) breaks."""
    problems = _calendar_disagreements(flight[_YEAR], flight[_WEEKDAY], flight[_DATE])
    if flight[_CANCELLED] == 1:
        for name in EMPTY_WHEN_CANCELLED:
            if (value := flight[POSITION[name]]) is not None:
                reason = "must be empty: the flight was cancelled"
                problems.append(InvalidFlight(name, value, reason))
    return problems


def disagreement(flight: Flight) -> InvalidFlight | None:
    """Return the first rule between fields that `flight` (of valid fields) breaks, or None."""
    return next(iter(disagreements(flight)), None)


def flight_of(record: Mapping[str, object]) -> Flight:
    """Return the flight that `record` (field name -> value, loosely typed) describes.

    A nullable field may be absent. Raises InvalidFlight naming the field and the value: unknown
    field, missing field, bad value, or fields that contradict each other.
    """
    flight, problems = examine(record)
    if problems:
        raise problems[0]
    return flight


def examine(record: Mapping[str, object]) -> tuple[Flight, list[InvalidFlight]]:
    """Return the flight in `record` and everything that is wrong with it; of unknown fields, some.

    The flight is meaningful only if the list is empty; rules between fields are tried only when
    each field alone is valid.
    """
    unknown = islice((name for name in record if name not in FIELD), MOST_ERRORS)
    problems = [InvalidFlight(str(n), record[n], unknown_reason(n)) for n in unknown]
    values: list[Value] = []
    for field in FIELDS:
        try:
            values.append(field.parse(record.get(field.name)))
        except InvalidFlight as problem:
            problems.append(problem)
    flight = tuple(values)
    if len(flight) == len(FIELDS):
        problems += disagreements(flight)
    return flight, problems


def unknown_reason(name: str) -> str:
    """Return what is wrong with a field that a flight does not have."""
    if name in {"TRANSACTION_ID", "timestamp"}:
        return "must not be sent, because the ledger sets it"
    return "is not a field of a flight"


def as_mapping(flight: Flight) -> dict[str, Value]:
    """Return `flight` with its field names."""
    return dict(zip(FIELD_NAMES, flight, strict=True))
