"""Defines the 19 fields of a flight in a table for validation, storage, JSON and documents.

The names are those of the Bureau of Transportation Statistics (BTS, "Reporting Carrier On-Time
Performance"). A value is an integer, a string or null; nothing else is ever stored. Input may be
looser than that (`"-11.00"`, `754`, `""`): `Field.parse` says what a value means or why it has no
meaning, and the same parser serves JSON, CSV and query parameters.
"""

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date

from backend.base.errors import InvalidFlight

Value = int | str | None

_DECIMAL = re.compile(r"([+-]?\d{1,40})(?:\.0*)?", re.ASCII)
_ISO_DATE = re.compile(r"(\d{4})-(\d{2})-(\d{2})(?:[ T]00:00(?::00)?)?", re.ASCII)
_US_DATE = re.compile(r"(\d{1,2})/(\d{1,2})/(\d{4})(?: 12:00:00 AM)?", re.ASCII)

_INVISIBLE = {"Cc", "Cf", "Co", "Cs", "Zl", "Zp"}  # Unicode general categories
# Unicode 14, of Python 3.11, does not know these characters. Later versions take some for
# invisible, and reorder others; but what a valid block is must not depend on the release of Python.
_NEWER = re.compile(
    "([\U00010efd-\U00010eff\U00011f41\U00011f42\U00013439-\U0001343f"
    "\U0001e08f\U0001e4ec-\U0001e4ef]+)"
)

MAX_TEXT_CHARACTERS = 100
MISSING = "is missing; this field is required"
FIRST_YEAR, LAST_YEAR = 1900, 2199
CODE_PATTERN = "[A-Z0-9]{3,4}"  # of an airport

_is_code = re.compile(CODE_PATTERN).fullmatch


def whole_number(value: object, reason: str = "must be a whole number") -> int:
    """Return a whole number given as int, integral float or decimal text; else ValueError."""
    if isinstance(value, bool):
        raise ValueError(f"{reason}, not true or false")
    if isinstance(value, int):
        return value
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    if isinstance(value, str) and (match := _DECIMAL.fullmatch(value)):
        return int(match[1])
    raise ValueError(reason)


def _text(value: object) -> str:
    """Return a short text in Unicode normal form C, without control characters; else ValueError."""
    if not isinstance(value, str):
        raise ValueError("must be text")
    normal, known = (value, value) if value.isascii() else _normal_form(value)
    if len(normal) > MAX_TEXT_CHARACTERS:
        raise ValueError(f"must have at most {MAX_TEXT_CHARACTERS} characters")
    is_plain = normal.isascii() and normal.isprintable()
    if not is_plain and any(unicodedata.category(c) in _INVISIBLE for c in known):
        raise ValueError("must not contain control or formatting characters or broken Unicode")
    return normal


def _normal_form(text: str) -> tuple[str, str]:
    """Return a text in normal form C by Unicode 14, and that without characters of later ones."""
    parts = _NEWER.split(text)
    parts[::2] = [unicodedata.normalize("NFC", part) for part in parts[::2]]
    return "".join(parts), "".join(parts[::2])


def _date(value: object) -> str:
    """Return a calendar day as YYYY-MM-DD (or the M/D/YYYY of some BTS files); else ValueError."""
    if not isinstance(value, str):
        raise ValueError("must be a date, YYYY-MM-DD")
    if match := _ISO_DATE.fullmatch(value):
        year, month, day = map(int, match.groups())
    elif match := _US_DATE.fullmatch(value):
        month, day, year = map(int, match.groups())
    else:
        raise ValueError("must be a date, YYYY-MM-DD")
    try:
        parsed = date(year, month, day)
    except ValueError:
        raise ValueError("is not a day of the calendar") from None
    if not FIRST_YEAR <= parsed.year <= LAST_YEAR:
        raise ValueError(f"must be between {FIRST_YEAR} and {LAST_YEAR}")
    return parsed.isoformat()


def _time_of_day(value: object) -> str:
    """Return a local time as hhmm, leading zeros restored (`754` is `0754`), 2400 allowed."""
    reason = "must be a local time hhmm between 0000 and 2400"
    number = whole_number(value, reason)
    hours, minutes = divmod(number, 100)
    if number < 0 or minutes > 59 or number > 2400:
        raise ValueError(reason)
    return f"{hours:02d}{minutes:02d}"


def _code(value: object) -> str:
    if not isinstance(value, str) or not _is_code(value):
        raise ValueError("must be an airport code of three or four capitals or digits")
    return value


def _between(minimum: int, maximum: int) -> Callable[[object], int]:
    def parse(value: object) -> int:
        number = whole_number(value)
        if not minimum <= number <= maximum:
            raise ValueError(f"must be between {minimum} and {maximum}")
        return number

    return parse


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a flight.

    name: the BTS name. kind: "integer", "text", "date", "time" or "code". nullable: may be empty.
    minimum, maximum: bounds of an integer, else None. meaning: one line for people.
    example: a valid value.
    """

    name: str
    kind: str
    nullable: bool
    minimum: int | None
    maximum: int | None
    meaning: str
    example: Value

    def parse(self, value: object) -> Value:
        """Return the stored form of `value`.

        Raises InvalidFlight with this field's name, the value as given, and the reason.
        """
        bare = value.strip() if isinstance(value, str) else value
        if bare is None or bare == "":
            if self.nullable:
                return None
            raise InvalidFlight(self.name, value, MISSING)
        try:
            return _PARSERS[self.name](bare)
        except ValueError as error:
            raise InvalidFlight(self.name, value, str(error)) from None


def _number(name: str, low: int, high: int, meaning: str, example: int, nullable: bool) -> Field:
    return Field(name, "integer", nullable, low, high, meaning, example)


def _string(name: str, kind: str, meaning: str, example: str, nullable: bool = False) -> Field:
    return Field(name, kind, nullable, None, None, meaning, example)


FIELDS: tuple[Field, ...] = (
    _number("YEAR", FIRST_YEAR, LAST_YEAR, "year of FL_DATE", 2008, False),
    _number("DAY_OF_WEEK", 1, 7, "weekday of FL_DATE, 1 = Monday", 4, False),
    _string("FL_DATE", "date", "day of the flight, YYYY-MM-DD", "2008-01-03"),
    _number("OP_CARRIER_AIRLINE_ID", 1, 99999, "DOT number of the carrier", 19393, False),
    _number("OP_CARRIER_FL_NUM", 1, 99999, "flight number", 335, False),
    _number("ORIGIN_AIRPORT_ID", 1, 99999, "DOT number of the origin airport", 12264, True),
    _string("ORIGIN", "code", "code of the origin airport", "IAD"),
    _string("ORIGIN_CITY_NAME", "text", "city of the origin airport", "Washington, DC"),
    _string("ORIGIN_STATE_NM", "text", "state of the origin airport", "District of Columbia"),
    _number("DEST_AIRPORT_ID", 1, 99999, "DOT number of the destination airport", 15304, True),
    _string("DEST", "code", "code of the destination airport", "TPA"),
    _string("DEST_CITY_NAME", "text", "city of the destination airport", "Tampa, FL"),
    _string("DEST_STATE_NM", "text", "state of the destination airport", "Florida"),
    _string("DEP_TIME", "time", "actual local departure, hhmm", "2003", True),
    _number("DEP_DELAY", -10000, 10000, "minutes late at departure; negative if early", 8, True),
    _string("ARR_TIME", "time", "actual local arrival, hhmm", "2211", True),
    _number("ARR_DELAY", -10000, 10000, "minutes late at arrival; negative if early", -14, True),
    _number("CANCELLED", 0, 1, "1 if the flight was cancelled", 0, False),
    _number("AIR_TIME", 0, 3000, "minutes in the air", 116, True),
)

_TYPED: dict[str, Callable[[object], Value]] = {
    "text": _text,
    "date": _date,
    "time": _time_of_day,
    "code": _code,
}
_PARSERS: dict[str, Callable[[object], Value]] = {
    field.name: _between(field.minimum, field.maximum)
    if field.minimum is not None and field.maximum is not None
    else _TYPED[field.kind]
    for field in FIELDS
}

FIELD_NAMES: tuple[str, ...] = tuple(field.name for field in FIELDS)
FIELD: dict[str, Field] = {field.name: field for field in FIELDS}
POSITION: dict[str, int] = {name: i for i, name in enumerate(FIELD_NAMES)}
