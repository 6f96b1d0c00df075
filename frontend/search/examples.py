"""Makes examples for the search from the ledger's own names, so that each of them finds something.

They are made when a page shows them and are kept for a minute. The search field of every other
page shows what is kept, so that no page waits for them.
"""

import time
from collections.abc import Iterator
from datetime import date

from frontend.backend_client import Backend
from frontend.coverage import Coverage, CoverageKeeper, all_days
from frontend.search.completing import written

MAKE_AGAIN_S = 60.0
UNTIL_KNOWN = "Flight, route or airline"
MOST_SHOWN_IN_FIELD = 2


class Examples:
    """Texts that find something in the ledger behind `backend`."""

    def __init__(self, backend: Backend, coverage: CoverageKeeper) -> None:
        self._backend = backend
        self._coverage = coverage
        self._made: tuple[float, list[str]] | None = None

    def now(self) -> list[str]:
        made = self._made
        if made is None or time.monotonic() - made[0] > MAKE_AGAIN_S:
            made = self._made = (time.monotonic(), self._make(self._coverage.now()))
        return made[1]

    def for_field(self) -> str:
        """Return what an empty search field shows: it never asks the backend."""
        kept = self._made[1] if self._made else []
        return ", ".join(kept[:MOST_SHOWN_IN_FIELD]) or UNTIL_KNOWN

    def _make(self, known: Coverage) -> list[str]:
        if not known.carriers or known.last_date is None:
            return []
        newest = date.fromisoformat(known.last_date)
        return [
            *self._flight_numbers(known),
            *self._routes(known),
            f"How late is {written(known.carriers[0])}?",
            f"Worst route in {newest:%B}",
            f"{newest:%B %Y}",
            newest.isoformat(),
            f"block {self._backend.get('/tip')['height']}",
            "transaction 0",
        ]

    def _flight_numbers(self, known: Coverage) -> Iterator[str]:
        """Yield the most common flight number, with the carrier that uses it most."""
        question = {"field": "flight_number", "limit": 1}
        for number in self._backend.get("/suggest", question)["suggestions"]:
            carrier = known.carrier(number["carriers"][0]["OP_CARRIER_AIRLINE_ID"])
            yield f"{carrier.code or ''} {number['label']}".strip()

    def _routes(self, known: Coverage) -> Iterator[str]:
        """Yield the route with the most flights, by its airports and by its cities."""
        question = {**all_days(known), "group_by": "route", "limit": 1}
        for route in self._backend.get("/average_delays", question)["by_route"]:
            yield f"{route['ORIGIN']}-{route['DEST']}"
            cities = (route[f"{end}_CITY_NAME"].partition(",")[0] for end in ("ORIGIN", "DEST"))
            yield " to ".join(cities)
