"""Where airports are, from the package `airportsdata`."""

from collections.abc import Iterable

import airportsdata

from frontend.charts.sphere import Place


class Places:
    """Coordinates of airports, looked up when they are asked for first.

    The package reads a table of 28,000 airports for that: 0.15 s and 8 MB for a moment. What was
    asked for is kept, be it known or not.
    """

    def __init__(self) -> None:
        self._known: dict[str, Place | None] = {}

    def of(self, codes: Iterable[str]) -> dict[str, Place]:
        """The places of those among the IATA codes that are known, in the same order."""
        wanted = list(codes)
        new = [code for code in wanted if code not in self._known]
        if new:
            table = airportsdata.load("IATA")
            for code in new:
                row = table.get(code)
                self._known[code] = (row["lat"], row["lon"]) if row else None
        found = ((code, self._known[code]) for code in wanted)
        return {code: place for code, place in found if place}
