"""Tells where airports are and which time they keep, from the table of `airportsdata`."""

from functools import cache
from typing import NamedTuple
from zoneinfo import ZoneInfo

import airportsdata


class Location(NamedTuple):
    """Where an airport is, in degrees, and the name of its time zone."""

    latitude: float
    longitude: float
    zone: str


@cache
def _locations() -> dict[str, Location]:
    table = airportsdata.load("IATA")  # a tenth of a second
    return {code: Location(row["lat"], row["lon"], row["tz"]) for code, row in table.items()}


def location_of(code: str) -> Location | None:
    """Return where the airport with an IATA code is; None for an unknown one."""
    return _locations().get(code)


def zone_of(code: str) -> ZoneInfo | None:
    """Return the time zone of an airport; None if the table or this system does not know it."""
    location = location_of(code)
    try:
        return ZoneInfo(location.zone) if location else None
    except (KeyError, ValueError):
        return None
