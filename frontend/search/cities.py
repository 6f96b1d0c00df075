"""Finds the cities of the ledger that a text may mean, by one rule for the search and for routes.

Neither case nor accents matter. From sure to doubtful, a text means a city if it is the code of one
of its airports; the beginning of its name; a part of its name or of its state's name; or nearly its
name.
"""

from difflib import get_close_matches

from frontend.coverage import Coverage
from frontend.search.names import bare

MOST = 5
LEAST_LIKENESS = 0.7  # by difflib, from 0 to 1; two letters that changed places in a short name


def folded(text: str) -> str:
    """`text` without case and accents."""
    return bare(text).casefold()


def named(coverage: Coverage, typed: str) -> list[str]:
    """The city of the airport with that code, or cities whose names begin so; at most `MOST`.

    Whole names come before beginnings, and both are in the order of their flights.
    """
    airport = coverage.airport(typed.upper())
    if airport:
        return [airport.city]
    wanted = folded(typed)
    begun = [city for city in coverage.cities if folded(city).startswith(wanted)]
    return sorted(begun, key=lambda city: wanted not in _names(city))[:MOST]


def called(coverage: Coverage, typed: str) -> list[str]:
    """Return the cities with exactly that name, with or without their state."""
    wanted = folded(typed)
    return [city for city in coverage.cities if wanted in _names(city)]


def meant(coverage: Coverage, typed: str) -> list[str]:
    """The cities `named`; if none is, those with the text in their names, or with similar ones."""
    return named(coverage, typed) or _holding(coverage, typed) or _alike(coverage, typed)


def _holding(coverage: Coverage, typed: str) -> list[str]:
    wanted = folded(typed)
    states = {airport.city for airport in coverage.airports if folded(airport.state) == wanted}
    return [city for city in coverage.cities if wanted in folded(city) or city in states][:MOST]


def _alike(coverage: Coverage, typed: str) -> list[str]:
    by_name = {name: city for city in reversed(coverage.cities) for name in _names(city)}
    close = get_close_matches(folded(typed), by_name, n=MOST, cutoff=LEAST_LIKENESS)
    return list(dict.fromkeys(by_name[name] for name in close))


def _names(city: str) -> tuple[str, str]:
    """Return the name of a city such as "Chicago, IL", with and without its state."""
    whole = folded(city)
    return whole, whole.partition(",")[0]
