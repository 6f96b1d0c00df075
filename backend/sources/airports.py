"""Finds city and state of an airport as BTS writes them, which is not as others do.

BTS names a market ("Islip, NY"), others the town of the runway. The table has the airports that
reporting carriers serve or served, with names and, where known, DOT numbers of BTS's lookup tables
(L_AIRPORT, L_AIRPORT_ID; public domain).
"""

import csv
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

from backend.sources.cells import STATES

_TABLE = Path(__file__).with_name("airports.csv")


class Airport(NamedTuple):
    """An airport: its code, and its city and state as BTS writes them."""

    code: str
    city: str
    state: str


Lookup = Callable[[str], Airport | None]
"""Finds an airport by its code, or by its DOT number written in digits."""


@cache
def _airports() -> dict[str, Airport]:
    """Return all airports of the table by their codes and numbers."""
    airports: dict[str, Airport] = {}
    with _TABLE.open(encoding="utf-8", newline="") as table:
        for row in csv.DictReader(table):
            airport = Airport(row["code"], row["city"], STATES[row["state"]])
            airports[airport.code] = airports[row["number"]] = airport
    return airports


def airport_of(key: str) -> Airport | None:
    """Return the airport with this code or DOT number; None if the table does not have it."""
    return _airports().get(key) if key else None


@cache
def airport_numbers() -> dict[str, str]:
    """Return the DOT numbers of airports by their codes, as far as the table has them."""
    return {airport.code: key for key, airport in _airports().items() if key.isdecimal()}


@cache
def city_names() -> frozenset[str]:
    """Return the cities of all airports of the table."""
    return frozenset(airport.city for airport in _airports().values())


def no_airport(_: str) -> None:
    """Find nothing, where there is no ledger."""
