"""Says what a cell of a file means, where people write more loosely than `chain.fields` allows.

Only what can be meant in one way is read: a clock with a colon, True and False, a comma before
decimals that are zero, a state by its abbreviation, and words for "empty". These words count in
fields that may be empty, and nowhere else: NAN is an airport.
"""

import re
from collections.abc import Callable

from backend.chain.fields import FIELDS, Field, Value

_EMPTY = frozenset(
    ("", "na", "n/a", "#n/a", "<na>", "nan", "nat", "null", "none", "\\n", ".", "-", "--")
)
_CLOCK = re.compile(r"(\d{1,2}):([0-5]\d)(?::00(?:\.0+)?)?", re.ASCII)
_WHOLE = re.compile(r"\d{1,4}(\.0*)?", re.ASCII)
_DECIMAL_COMMA = re.compile(r"([+-]?\d+),0{1,2}", re.ASCII)
_FLAGS = {"true": 1, "t": 1, "yes": 1, "y": 1, "false": 0, "f": 0, "no": 0, "n": 0}
_STATE_TABLE = """
AK=Alaska|AL=Alabama|AR=Arkansas|AZ=Arizona|CA=California|CO=Colorado|CT=Connecticut
DC=District of Columbia|DE=Delaware|FL=Florida|GA=Georgia|HI=Hawaii|IA=Iowa|ID=Idaho|IL=Illinois
IN=Indiana|KS=Kansas|KY=Kentucky|LA=Louisiana|MA=Massachusetts|MD=Maryland|ME=Maine|MI=Michigan
MN=Minnesota|MO=Missouri|MS=Mississippi|MT=Montana|NC=North Carolina|ND=North Dakota|NE=Nebraska
NH=New Hampshire|NJ=New Jersey|NM=New Mexico|NV=Nevada|NY=New York|OH=Ohio|OK=Oklahoma|OR=Oregon
PA=Pennsylvania|PR=Puerto Rico|RI=Rhode Island|SC=South Carolina|SD=South Dakota|TN=Tennessee
TT=U.S. Pacific Trust Territories and Possessions|TX=Texas|UT=Utah|VA=Virginia
VI=U.S. Virgin Islands|VT=Vermont|WA=Washington|WI=Wisconsin|WV=West Virginia|WY=Wyoming
"""
STATES: dict[str, str] = dict(
    entry.split("=") for line in _STATE_TABLE.split("\n")[1:-1] for entry in line.split("|")
)
"""Abbreviation of a state -> its name, as BTS writes both."""

_STATE_OF = {name.casefold(): name for pair in STATES.items() for name in pair} | {
    abbreviation.casefold(): name for abbreviation, name in STATES.items()
}


def unless_empty(value: object) -> object:
    """Return None for blanks, a word that means "empty", and a number that is none."""
    if isinstance(value, str):
        return None if value.strip().casefold() in _EMPTY else value
    return None if value != value else value  # noqa: PLR0124 - only NaN is not itself


def number(value: object) -> object:
    """Return `value` without a decimal comma."""
    if isinstance(value, str) and (match := _DECIMAL_COMMA.fullmatch(value.strip())):
        return match[1]
    return value


def clock(value: object) -> object:
    """Return a time of day as hhmm if it has a colon."""
    if isinstance(value, str) and (match := _CLOCK.fullmatch(value.strip())):
        return match[1] + match[2]
    return number(value)


def flag(value: object) -> object:
    """Return 1 or 0 for True, False and the like."""
    if isinstance(value, bool):
        return int(value)
    return _FLAGS.get(value.strip().casefold(), number(value)) if isinstance(value, str) else value


def state(value: object) -> object:
    """Return the name of a state as BTS writes it, given its name in any case or abbreviated."""
    return _STATE_OF.get(value.strip().casefold(), value) if isinstance(value, str) else value


def is_zero(value: object) -> bool:
    """Return whether a cell is the number 0 or the time 00:00."""
    written = clock(value)
    try:
        return float(written) == 0 if isinstance(written, str | int | float) else False
    except ValueError:
        return False


def whole(value: object) -> int:
    """Return a whole number, perhaps with decimals that are zero. Raises ValueError."""
    written = str(number(value)).strip()
    if not _WHOLE.fullmatch(written):
        raise ValueError(f"{written} is not a whole number")
    return int(float(written))


def _meaning(field: Field) -> Callable[[object], object]:
    if field.name.endswith("_STATE_NM"):
        return state
    usual = clock if field.kind == "time" else number
    return (lambda value: usual(unless_empty(value))) if field.nullable else usual


def _parser(field: Field) -> Callable[[object], Value]:
    if field.kind in {"code", "date"} or field.name.endswith("_CITY_NAME"):
        return field.parse
    meaning = _meaning(field)
    return lambda value: field.parse(meaning(value))


PARSERS: tuple[Callable[[object], Value], ...] = tuple(map(_parser, FIELDS))
"""What reads a cell of each field, in the order of `FIELDS`. They raise InvalidFlight."""
