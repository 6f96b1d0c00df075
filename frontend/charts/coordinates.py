"""Places of airports, from the package `airportsdata`."""

from collections.abc import Iterable

import airportsdata

from frontend.charts.sphere import Place

_known: dict[str, Place | None] = {}
"""What was looked up, also if the airport is not known. A look-up reads the package's table of
28,000 airports: 0.15 s, and 8 MB for a moment."""


def places_of(codes: Iterable[str]) -> dict[str, Place]:
    """The places of the IATA codes that are known, in the same order."""
    wanted = list(codes)
    if any(code not in _known for code in wanted):
        table = airportsdata.load("IATA")
        for code in wanted:
            row = table.get(code)
            _known[code] = (row["lat"], row["lon"]) if row else None
    return {code: place for code in wanted if (place := _known[code])}
