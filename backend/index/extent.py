"""Tells what a ledger covers: from which day to which, which carriers, which airports.

Read from tables that grow with the variety of flights, not with their number.
"""

from backend.index import completions
from backend.index.index_file import Rows
from backend.index.periods import date_of
from backend.questions.answer_types import Covered, CoveredAirport, CoveredCarrier
from backend.questions.carriers import CARRIER


def covered(rows: Rows) -> Covered:
    """Return days, carriers and airports of the ledger; those with the most flights come first."""
    first, last = completions.days(rows)
    carriers = sorted(completions.carriers(rows), key=lambda known: (-known[1], known[0]))
    airports = sorted(completions.airports(rows), key=lambda known: (-known[3], *known[:3]))
    return Covered(
        flights=sum(flights for _, flights in carriers),
        first_date=_iso(first),
        last_date=_iso(last),
        carriers=[_carrier(*known) for known in carriers],
        airports=[CoveredAirport(*known) for known in airports],
    )


def _carrier(number: int, flights: int) -> CoveredCarrier:
    known = CARRIER.get(number)
    code, name = (known.code, known.name) if known else (None, None)
    return CoveredCarrier(number, code, name, flights)


def _iso(day: int | None) -> str | None:
    return None if day is None else date_of(day).isoformat()
