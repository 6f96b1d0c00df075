"""Places of airports, from the package `airportsdata`."""

from collections.abc import Iterable

import airportsdata

from frontend.charts.sphere import Place


class Places:
    """Coordinates of airports, each looked up when it is first asked for.

    A look-up reads the package's table of 28,000 airports: 0.15 s, and 8 MB for a moment. Its
    result is kept, also if the airport is not known.
    """

    def __init__(self) -> None:
        self._known: dict[str, Place | None] = {}

    def of(self, codes: Iterable[str]) -> dict[str, Place]:
        """The places of the IATA codes that are known, in the same order."""
        wanted = list(codes)
        new = [code for code in wanted if code not in self._known]
        if new:
            table = airportsdata.load("IATA")
            for code in new:
                row = table.get(code)
                self._known[code] = (row["lat"], row["lon"]) if row else None
        found = ((code, self._known[code]) for code in wanted)
        return {code: place for code, place in found if place}
