"""Selects the flights of an export: by days, and perhaps by carrier, cities and airports.

Both dates are inclusive. A parameter that is not given selects all flights.
"""

from dataclasses import dataclass
from typing import Any

from backend.questions.parameters import AS_OF, Given, Number, by_name, require_order
from backend.questions.values import CARRIER_OR_ANY, NARROWING_PLACES, PERIOD, Between


@dataclass(frozen=True, slots=True)
class Selection(Between):
    """Flights from INITIAL_DATE to FINAL_DATE; None for a carrier, city or airport means any.

    cursor: the lowest transaction id that counts. limit: the most flights; None for all.
    """

    INITIAL_DATE: str
    FINAL_DATE: str
    OP_CARRIER_AIRLINE_ID: int | None = None
    ORIGIN_CITY_NAME: str | None = None
    DEST_CITY_NAME: str | None = None
    ORIGIN: str | None = None
    DEST: str | None = None
    cursor: int = 0
    limit: int | None = None


CURSOR = Number(
    "cursor",
    "Leave out transactions with ids below this. For the next page, give the last id plus one.",
    "1000",
    default=0,
)
LIMIT = Number("limit", "Largest number of flights; by default all.", "1000", least=1)
PARAMETERS = by_name(*PERIOD, CARRIER_OR_ANY, *NARROWING_PLACES, CURSOR, LIMIT)


def selected(parameters: Given) -> tuple[Selection, int | None]:
    """Read the selection and the height `as_of` (None: the tip) from `parameters` (name -> text).

    Raises InvalidQuery if one is missing or malformed, or the dates are in the wrong order.
    """
    values: dict[str, Any] = {
        name: parameter.find(parameters) for name, parameter in PARAMETERS.items()
    }
    selection = Selection(**values)
    require_order(selection.INITIAL_DATE, selection.FINAL_DATE)
    return selection, AS_OF.find(parameters)
