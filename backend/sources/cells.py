"""Says what a cell of a file means, where people write more loosely than `chain.fields` allows.

Only what can be meant in one way is read: a clock with a colon, perhaps of twelve hours, True and
False, a comma before decimals that are zero, a state by its abbreviation, and words for "empty",
as `cells.toml` lists them. These count in fields that may be empty, and nowhere else: NAN is an
airport.
"""

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from backend.base.errors import InvalidFlight
from backend.chain.fields import FIELDS, Field, Value


def numbers_of(names: str) -> dict[str, int]:
    """Number names from 1, as they are and as their first three or more letters."""
    numbered = enumerate(names.split(), 1)
    return {name[:size]: n for n, name in numbered for size in range(3, len(name) + 1)}


_TABLE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
_EMPTY = frozenset(_TABLE["empty"].split()) | {""}
_FLAGS = dict.fromkeys(_TABLE["true"].split(), 1) | dict.fromkeys(_TABLE["false"].split(), 0)
STATES: dict[str, str] = _TABLE["states"]
"""Abbreviation of a state -> its name, as BTS writes both."""

TIMES: Sequence[Mapping[str, Any]] = _TABLE["times"]
"""Times of a column that do not mean what they should, as `cells.toml` explains."""

_STATE_OF = {key.casefold(): name for short, name in STATES.items() for key in (short, name)}
_PANDAS = "(?:0 days |1900-01-01[ T])?"  # before a clock that it has as a duration or a moment
_MIDNIGHT = re.compile("(?:1 day(s |, )|1900-01-02[ T])0?0:00:00")  # of Python, at the day's end
_CLOCK = re.compile(rf"{_PANDAS}(\d{{1,2}})[:h]([0-5]\d)(?::00(?:\.0+)?)?", re.ASCII)
moment = re.compile(r"\s*(?!1900-01-0[12])(\d[-/.\d]+)[ T](\d.*)", re.ASCII).match
"""Matches a time that is given with its day, and returns both."""
BLANK = "[ \u00a0\u202f]?"  # what browsers write before AM since 2023, or a usual one
_TWELVE_HOURS = re.compile(
    rf"(0?\d|1[0-2]):([0-5]\d)(?::00)?{BLANK}([aApP])\.?{BLANK}[mM]\.?", re.ASCII
)
_DAYS = "monday tuesday wednesday thursday friday saturday sunday"
_WEEKDAY_OF = numbers_of(_DAYS)
_MINUS = re.compile(r"^[\u2212\u2013](.*)$|^\((\d.*)\)$")  # of people and accountants
_DECIMAL_COMMA = re.compile(r"([+-]?\d+),(?:0{1,2}|0{4,})", re.ASCII)
_THOUSANDS = re.compile(r"([+-]?\d+)e(\d)", re.ASCII)  # write_csv of R makes 2e3 of 2000
_HOURS = re.compile(r"([1-9]|0[1-9]|1\d|2[0-4])[.,]00", re.ASCII)
_COMMAS = re.compile(r"[+-]?\d{1,3}(?:,\d{3})+", re.ASCII)
thousands = re.compile(r"([+-]?\d{1,3})\.000", re.ASCII).fullmatch
_NO_DELAY = (9999, -9999)  # stand for nothing where a program knows no empty cell
_LOST = re.compile("[\ufffd\udc80-\udcff]")  # what stands for a character that is not UTF-8
_WORDS = "|".join(map(re.escape, _EMPTY))
_NO_NAME = re.compile(rf'{_LOST.pattern}|[";|]|[ÃÂ][^A-Za-z ]|^([\W\d_]*|(?i:{_WORDS}))$')
STRICT, STORED, LOOSE, DECIMALS, COMMAS = DIALECTS = ("strict", "stored", "loose", ".", ",")
"""How cells are written: as `chain` wants them; as an export of a ledger has them, whose names are
right as they stand; as people write them, so that in 1.000 a point may stand before thousands or
before decimals; as they do where a point, or a comma, stands before decimals, and so not between
hours and minutes."""


def unless_empty(value: object) -> object:
    """Return None for blanks, a word that means "empty", and a number that is none."""
    if isinstance(value, str):
        return None if value.strip().casefold() in _EMPTY else value
    return None if value != value else value  # noqa: PLR0124 - only NaN is not itself


def number(value: object) -> object:
    """Return `value` without decimal comma or exponent, with a hyphen for a minus or brackets."""
    if not isinstance(value, str):
        return value
    text = _MINUS.sub(r"-\1\2", value.strip())
    if match := _THOUSANDS.fullmatch(text):
        return match[1] + "0" * int(match[2])
    match = _DECIMAL_COMMA.fullmatch(text)
    return match[1] if match else text


def clock(value: object) -> object:
    """Return a time of day as hhmm if it has a colon; 12:00 AM as 2400, as it is no filled zero."""
    text = value.strip() if isinstance(value, str) else ""
    if _MIDNIGHT.fullmatch(text):
        return "2400"
    if match := _CLOCK.fullmatch(text):
        return match[1] + match[2]
    if match := _TWELVE_HOURS.fullmatch(text):
        hour = int(match[1]) % 12 + 12 * (match[3] in "pP")
        return f"{hour:02d}{match[2]}".replace("0000", "2400")
    return number(value)


def flag(value: object) -> int | None:
    """Return 1 or 0 for True, False and the like; None for what is none of them."""
    text = str(number(value)).strip().casefold()
    try:
        return {0.0: 0, 1.0: 1}.get(float(_FLAGS.get(text, text)))
    except ValueError:
        return None


def state(value: object) -> object:
    """Return a name with usual blanks, that of a state in any case or abbreviated as BTS has it."""
    text = " ".join(value.split()) if isinstance(value, str) else ""
    return _STATE_OF.get(text.casefold().removeprefix("us-"), text or value)


def weekday(value: object) -> object:
    """Return the number of a weekday that is named by three or more letters; else `number`."""
    return _WEEKDAY_OF.get(str(value).strip().lower()) or number(value)


def is_zero(value: object) -> bool:
    """Return whether a cell is the number 0 or the time 00:00."""
    written = clock(value)
    try:
        return float(written) == 0 if isinstance(written, str | int | float) else False
    except ValueError:
        return False


def _doubt(field: Field, text: str, dialect: str) -> str:
    """Return why nobody knows what a cell means; "" if its form leaves no doubt."""
    if field.kind == "text" and text and (_LOST if dialect == STORED else _NO_NAME).search(text):
        return "is not the name of a city or state; correct it, or save the file as UTF-8"
    is_other = "," in text if field.name.endswith("_STATE_NM") else text.upper() in STATES
    if field.kind == "text" and is_other and dialect != STORED:
        return (
            "is a state instead of a city, or a city instead of a state; put cities that contain a "
            "comma in double quotes"
        )
    if field.kind == "time" and dialect not in text and (match := _HOURS.fullmatch(text)):
        hour = int(match[1])
        return f"may be {hour}:00 or 0:{hour:02d}; write the time with a colon"
    if dialect != DECIMALS and (match := thousands(text)) and int(match[1]):
        try:
            field.parse(f"{match[1]}000")
        except InvalidFlight:
            return ""
        return f"may be {match[1]} or {match[1]}000; write the number without a point"
    has_comma = field.kind in {"integer", "time"} and _COMMAS.fullmatch(text)
    return "has a comma before three digits; write the number without it" if has_comma else ""


def _weekday(value: object) -> object:
    return 7 if is_zero(value) else weekday(value)  # strftime's Sunday; no other day may have 0


def _parser(field: Field, dialect: str) -> Callable[[object], Value]:
    if dialect == STRICT or field.kind in {"code", "date"}:
        return field.parse
    names = state if dialect != STORED else lambda value: value
    numbers = _weekday if field.name == "DAY_OF_WEEK" else number
    meaning = {"text": names, "time": clock}.get(field.kind, numbers)

    def parse(value: object) -> Value:
        if isinstance(value, str) and (reason := _doubt(field, value.strip(), dialect)):
            raise InvalidFlight(field.name, value, reason)
        parsed = field.parse(meaning(unless_empty(value) if field.nullable else value))
        if parsed in _NO_DELAY and field.name.endswith("_DELAY"):
            reason = "marks a missing delay in some files and is not a delay; leave the cell empty"
            raise InvalidFlight(field.name, value, reason)
        return parsed

    return parse


PARSERS: Mapping[str, tuple[Callable[[object], Value], ...]] = {
    dialect: tuple(_parser(field, dialect) for field in FIELDS) for dialect in DIALECTS
}
"""What reads a cell of each field, in the order of `FIELDS`. They raise InvalidFlight."""
