"""A choice of flights, as an export is asked for: days, and perhaps a carrier and cities.

Both dates are inclusive. What is not given is not looked at.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from backend.chain.fields import FIELD, Field, Value
from backend.errors import InvalidFlight, InvalidQuery

MAX_HEIGHT_DIGITS = 15


@dataclass(frozen=True, slots=True)
class Selection:
    """Flights from INITIAL_DATE to FINAL_DATE."""

    INITIAL_DATE: str
    FINAL_DATE: str
    OP_CARRIER_AIRLINE_ID: int | None = None
    ORIGIN_CITY_NAME: str | None = None
    DEST_CITY_NAME: str | None = None


EQUAL = ("OP_CARRIER_AIRLINE_ID", "ORIGIN_CITY_NAME", "DEST_CITY_NAME")
PARAMETERS: dict[str, Field] = {
    "INITIAL_DATE": FIELD["FL_DATE"],
    "FINAL_DATE": FIELD["FL_DATE"],
    **{name: FIELD[name] for name in EQUAL},
}


def selected(parameters: Mapping[str, str]) -> tuple[Selection, int | None]:
    """The selection and the height `as_of` (None: the tip) that `parameters` (name -> text) name.

    Raises InvalidQuery: unknown, missing, malformed, or dates in the wrong order.
    """
    for name, text in parameters.items():
        if name not in PARAMETERS and name != "as_of":
            names = ", ".join([*PARAMETERS, "as_of", "format"])
            raise InvalidQuery(name, text, f"is no parameter here; there are {names}")
    values: dict[str, Any] = {
        name: _value(name, field, parameters.get(name)) for name, field in PARAMETERS.items()
    }
    selection = Selection(**values)
    if selection.INITIAL_DATE > selection.FINAL_DATE:
        reason = f"is after FINAL_DATE {selection.FINAL_DATE}"
        raise InvalidQuery("INITIAL_DATE", selection.INITIAL_DATE, reason)
    return selection, _height(parameters.get("as_of"))


def _height(text: str | None) -> int | None:
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= MAX_HEIGHT_DIGITS):
        raise InvalidQuery("as_of", text, "must be a block height, a whole number from 0")
    return int(text)


def _value(name: str, field: Field, text: str | None) -> Value:
    if text is None and name in EQUAL:
        return None
    if not text or not text.strip():
        raise InvalidQuery(name, text, f"is missing; for example {name}={field.example}")
    try:
        return field.parse(text)
    except InvalidFlight as error:
        raise InvalidQuery(name, text, error.reason) from None
