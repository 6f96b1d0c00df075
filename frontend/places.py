"""Which cities of the ledger a person means by what was typed."""

import unicodedata
from difflib import get_close_matches

from frontend.coverage import Coverage

MOST = 3


def folded(text: str) -> str:
    """`text` without case and accents."""
    decomposed = unicodedata.normalize("NFKD", text)
    return "".join(c for c in decomposed if not unicodedata.combining(c)).casefold()


def cities(coverage: Coverage, typed: str) -> list[str]:
    """The city of the airport with that code, or cities whose names begin so; at most `MOST`.

    Whole names come before beginnings, and these in the order of their flights.
    """
    of_code = [airport.city for airport in coverage.airports if airport.code == typed.upper()]
    if of_code:
        return of_code[:1]
    wanted = folded(typed)
    found = [city for city in coverage.cities if folded(city).startswith(wanted)]
    return sorted(found, key=lambda city: wanted not in _names(city))[:MOST]


def alike(coverage: Coverage, typed: str) -> list[str]:
    """Cities that are spelled nearly so, at most `MOST`."""
    by_name = {name: city for city in reversed(coverage.cities) for name in _names(city)}
    close = get_close_matches(folded(typed), by_name, n=MOST, cutoff=0.75)
    return list(dict.fromkeys(by_name[name] for name in close))


def _names(city: str) -> tuple[str, str]:
    """As in "Chicago, IL", with and without its state."""
    whole = folded(city)
    return whole, whole.partition(",")[0]
