"""Makes examples for the search from the ledger's own names, so that each of them finds something.

They are made when a page shows them and are kept for a minute. The search field of every other
page shows what is kept, so that no page waits for them.
"""

import time
from datetime import date

from frontend.backend_client import Backend
from frontend.coverage import Coverage, CoverageKeeper, all_days
from frontend.question import BOTH
from frontend.search.completing import written

MAKE_AGAIN_S = 60.0
UNTIL_KNOWN = "Flight or route"
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
        question = {"field": "flight_number", "limit": 1}
        numbers = self._backend.get("/suggest", question)["suggestions"]
        by_route = {**all_days(known), "group_by": "route", "limit": 1}
        routes = self._backend.get("/average_delays", by_route)["by_route"]
        carriers = [known.carrier(n["carriers"][0]["OP_CARRIER_AIRLINE_ID"]) for n in numbers]
        cities = [[route[f"{end}_CITY_NAME"].partition(",")[0] for end in BOTH] for route in routes]
        return [
            *(
                f"{c.code or ''} {n['label']}".strip()
                for c, n in zip(carriers, numbers, strict=True)
            ),
            *("-".join(route[end] for end in BOTH) for route in routes),
            *map(" to ".join, cities),
            f"How late is {written(known.carriers[0])}?",
            f"Worst route in {newest:%B}",
            f"{newest:%B %Y}",
            newest.isoformat(),
            f"block {self._backend.get('/tip')['height']}",
            "transaction 0",
        ]
