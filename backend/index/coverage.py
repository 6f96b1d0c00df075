"""What a ledger covers: from which day to which, which carriers, which airports.

Read from tables that grow with the variety of flights, not with their number.
"""

from datetime import date
from typing import Any

from backend.index import completions
from backend.index.database import Rows
from backend.questions.carriers import CARRIER

Json = dict[str, Any]


def covered(rows: Rows) -> Json:
    """`flights`, `first_date` and `last_date` (None without flights), `carriers`, `airports`.

    Carriers and airports come with their `flights`, the most first. An airport's are those that
    leave plus those that arrive.
    """
    first, last = completions.days(rows)
    carriers = sorted(completions.carriers(rows), key=lambda known: (-known[1], known[0]))
    airports = sorted(completions.airports(rows), key=lambda known: (-known[3], *known[:3]))
    return {
        "flights": sum(flights for _, flights in carriers),
        "first_date": _iso(first),
        "last_date": _iso(last),
        "carriers": [_carrier(*known) for known in carriers],
        "airports": [
            {"code": code, "city": city, "state": state, "flights": flights}
            for code, city, state, flights in airports
        ],
    }


def _carrier(number: int, flights: int) -> Json:
    known = CARRIER.get(number)
    return {
        "OP_CARRIER_AIRLINE_ID": number,
        "code": known and known.code,
        "name": known and known.name,
        "flights": flights,
    }


def _iso(day: int | None) -> str | None:
    return None if day is None else date.fromordinal(day).isoformat()
