"""The form for one flight: makes a record from what was typed, and messages from a refusal.

The backend judges the record. A value that only the form refuses (a departure without a time, a
time of day of two digits) is sent as `REFUSED`, which the backend refuses in any field: so all
that is wrong is known at once, and nothing is added. Weekday and year follow from the day, city and
state from the airport if the ledger has it.
"""

import re
from datetime import date
from typing import Any

from frontend.coverage import Coverage
from frontend.errors import Refused
from frontend.filters import sentence
from frontend.form_request import Values
from frontend.question import CARRIER, NUMBER
from frontend.search.fields import with_number

Record = dict[str, Any]

REFUSED = "?"
OTHER = "other"  # is chosen in place of a carrier of the ledger
AIRPORTS = ("ORIGIN", "DEST")
TIMES = ("DEP_TIME", "ARR_TIME")
NEEDED_UNLESS_CANCELLED = ("DEP_TIME", "DEP_DELAY")
WHEN_IT_FLEW = ("DEP_TIME", "DEP_DELAY", "ARR_TIME", "ARR_DELAY", "AIR_TIME")

FIELDS = (
    *("FL_DATE", "OP_CARRIER_AIRLINE_ID", "OTHER_CARRIER", "OP_CARRIER_FL_NUM"),
    *(f"{airport}{part}" for airport in AIRPORTS for part in ("", "_CITY_NAME", "_STATE_NM")),
    *("CANCELLED", *WHEN_IT_FLEW),
)

FOLLOW_FROM_THE_DAY = {"YEAR", "DAY_OF_WEEK"}
MISSING = "Please fill this in."
MISSING_DEPARTURE = "Please fill this in, or tick that the flight was cancelled."
NO_TIME = "Must be a time of day such as 05:17, from 00:00 to 24:00."
NO_DAY = "Must be a day such as 2013-01-31."
REWORDED = {
    "is missing; this field is required": MISSING,
    "must be a date, YYYY-MM-DD": NO_DAY,
    "must be an airport code of three or four capitals or digits": "Must be an airport's code of "
    "three or four letters or digits, such as ORD.",
}

_time_of_day = re.compile(r"(\d{1,2}):?(\d{2})", re.ASCII).fullmatch
_is_code = re.compile(r"[A-Z0-9]{3,4}").fullmatch


def typed(values: Values) -> dict[str, str]:
    """Return the values as they are meant: without spaces around, airport codes in capitals.

    City and state are left out if they were typed for another airport, whose code was corrected
    since. The token is left out, because it is not shown again anywhere.
    """
    fields = {name: values[name].strip() for name in FIELDS if values.get(name, "").strip()}
    for name in AIRPORTS:
        if name in fields:
            fields[name] = fields[name].upper()
        if values.get(f"{name}_PLACE_OF", fields.get(name)) != fields.get(name):
            for part in ("CITY_NAME", "STATE_NM"):
                fields.pop(f"{name}_{part}", None)
    return fields


def record_of(values: Values, known: Coverage) -> Record:
    """Return the record that the backend is asked to add. values: as `typed` returns them."""
    try:
        flight = _number_and_carrier(values, known)
    except Refused:
        flight = {NUMBER: REFUSED, CARRIER: values.get(carrier_field(values), "")}
    record: Record = {
        "FL_DATE": values.get("FL_DATE"),
        **_calendar(values.get("FL_DATE", "")),
        **{name: text or None for name, text in flight.items()},
        "CANCELLED": int("CANCELLED" in values),
    }
    for name in AIRPORTS:
        record |= _airport(name, values, known)
    if "CANCELLED" not in values:
        record |= {name: _when_it_flew(name, values.get(name, "")) for name in WHEN_IT_FLEW}
    return record


def _number_and_carrier(values: Values, known: Coverage) -> dict[str, str]:
    """Return the number alone and the carrier that its code may name; "" where there is none.

    Raises Refused for a code that does not fit.
    """
    given = {NUMBER: values.get(NUMBER, ""), CARRIER: values.get(carrier_field(values), "")}
    return with_number(given, known)


def carrier_field(values: Values) -> str:
    """Return the name of the field, of the two, that says the carrier."""
    chosen = values.get("OP_CARRIER_AIRLINE_ID", OTHER if "OTHER_CARRIER" in values else "")
    return "OTHER_CARRIER" if chosen == OTHER else "OP_CARRIER_AIRLINE_ID"


def _calendar(day: str) -> Record:
    try:
        when = date.fromisoformat(day)
    except ValueError:
        return {"YEAR": None, "DAY_OF_WEEK": None}
    return {"YEAR": when.year, "DAY_OF_WEEK": when.isoweekday()}


def _airport(name: str, values: Values, known: Coverage) -> Record:
    code = values.get(name, "")
    airport = known.airport(code)
    city, state = f"{name}_CITY_NAME", f"{name}_STATE_NM"
    if airport:
        return {name: code, city: airport.city, state: airport.state}
    return {name: code, city: values.get(city), state: values.get(state)}


def asks_where(name: str, values: Values, known: Coverage) -> bool:
    """Return whether the ledger does not know where the airport in field `name` is."""
    code = values.get(name, "")
    return bool(_is_code(code)) and known.airport(code) is None


def _when_it_flew(name: str, text: str) -> str | None:
    if not text:
        return REFUSED if name in NEEDED_UNLESS_CANCELLED else None
    if name not in TIMES:
        return text.replace("−", "-")
    match = _time_of_day(text)
    return f"{match[1]:0>2}{match[2]}" if match else REFUSED


def problems_of(refused: Refused, values: Values, known: Coverage) -> dict[str, str]:
    """Return what is wrong with each field, in the words of the form. known: as for the record."""
    problems: dict[str, str] = {}
    for error in refused.errors:
        name = str(error["field"])
        if name in FOLLOW_FROM_THE_DAY:
            problems.setdefault("FL_DATE", NO_DAY)
        elif name == "OP_CARRIER_AIRLINE_ID":
            problems[carrier_field(values)] = _in_words(error["detail"])
        elif name in NEEDED_UNLESS_CANCELLED and name not in values:
            problems[name] = MISSING_DEPARTURE
        else:
            problems[name] = NO_TIME if name in TIMES else _in_words(error["detail"])
    try:
        _number_and_carrier(values, known)
    except Refused as refused_code:
        problems[NUMBER] = sentence(refused_code.detail)
    return _without_consequences(problems)


def _in_words(reason: str) -> str:
    return REWORDED.get(reason) or sentence(reason)


def _without_consequences(problems: dict[str, str]) -> dict[str, str]:
    """Return problems without those about an airport's place whose code is wrong already."""
    return {
        name: text
        for name, text in problems.items()
        if not any(name.startswith(f"{code}_") and code in problems for code in AIRPORTS)
    }
