"""Completions of what somebody types, from what occurs in the ledger.

Neither case nor accents matter. Matches at the start of a text come first, then at the start of a
word, then anywhere; among these what is more common; then in alphabetical order of the labels.
Nothing typed means everything.
"""

import unicodedata
from collections.abc import Callable, Iterable
from functools import lru_cache
from heapq import nsmallest
from itertools import groupby, starmap
from operator import itemgetter

from msgspec.structs import asdict

from backend.base.errors import InvalidFlight, InvalidQuery
from backend.chain.fields import FIELD
from backend.index import completions
from backend.index.index_file import Rows
from backend.questions.answer_types import (
    AirportSuggestion,
    CarrierOfNumber,
    CarrierSuggestion,
    CitySuggestion,
    FlightNumberSuggestion,
    Suggestion,
)
from backend.questions.carriers import code_and_name, code_of

_START, _WORD, _ANYWHERE = range(3)


def typed(field: str, q: str) -> str:
    """Return `q` as it is looked up for one of FIELDS. Raises InvalidQuery for a bad `q`."""
    bare = q.strip()
    if field == "flight_number" and bare and not (bare.isascii() and bare.isdigit()):
        raise InvalidQuery("q", q, "must be the beginning of a flight number, in digits")
    try:
        return str(FIELD["ORIGIN_CITY_NAME"].parse(bare)) if bare else ""
    except InvalidFlight as error:
        raise InvalidQuery("q", q, error.reason) from None


def suggested(rows: Rows, field: str, q: str, limit: int) -> list[Suggestion]:
    """Return the best `limit` completions. field, q: as `typed` let them pass."""
    return FIELDS[field](rows, q, limit)


def best(candidates: Iterable[Suggestion], q: str, limit: int) -> list[Suggestion]:
    """Return the first `limit` of the candidates that match, in the order of this module."""
    wanted = folded(q)
    ranked: list[tuple[tuple[object, ...], Suggestion]] = []
    for shown in candidates:
        texts = _searched(shown)
        rank = min(_rank(folded(text), wanted) for text in texts)
        if rank <= _ANYWHERE:
            order = (rank, -shown.flights, folded(shown.label), shown.label, texts)
            ranked.append((order, shown))
    return [shown for _, shown in nsmallest(limit, ranked, key=itemgetter(0))]


def _searched(shown: Suggestion) -> tuple[str, ...]:
    """Return what is looked through: all but the label, which is made of it, and the flights."""
    members = asdict(shown)
    del members["label"], members["flights"]
    return tuple(str(value) for value in members.values() if value is not None)


def _rank(text: str, wanted: str) -> int:
    """Return where `wanted` begins in `text`; more than _ANYWHERE if it does not."""
    at = text.find(wanted)
    if at <= 0:
        return _START if at == 0 else _ANYWHERE + 1
    while at > 0:
        if not text[at - 1].isalnum():
            return _WORD
        at = text.find(wanted, at + 1)
    return _ANYWHERE


@lru_cache(maxsize=8192)  # the names of a few hundred cities and airports, again and again
def folded(text: str) -> str:
    """Return `text` without case and accents."""
    decomposed = unicodedata.normalize("NFKD", text)
    return "".join(c for c in decomposed if not unicodedata.combining(c)).casefold()


# --- the fields ------------------------------------------------------------------------------


def _cities(rows: Rows, q: str, limit: int) -> list[Suggestion]:
    cities = completions.cities(rows)
    return best((CitySuggestion(name, name, flights) for name, flights in cities), q, limit)


def _airports(rows: Rows, q: str, limit: int) -> list[Suggestion]:
    candidates = (
        AirportSuggestion(code, f"{city} ({code})", city, state, flights)
        for code, city, state, flights in completions.airports(rows)
    )
    return best(candidates, q, limit)


def _carriers(rows: Rows, q: str, limit: int) -> list[Suggestion]:
    return best(starmap(_carrier, completions.carriers(rows)), q, limit)


def _carrier(number: int, flights: int) -> CarrierSuggestion:
    code, name = code_and_name(number)
    label = f"{name} ({code})" if name else str(number)
    return CarrierSuggestion(number, label, code, name, flights)


def _flight_numbers(rows: Rows, q: str, limit: int) -> list[Suggestion]:
    numbers = completions.flight_numbers(rows, q, limit)
    matches: list[Suggestion] = []
    for (number, total), used in groupby(numbers, itemgetter(0, 1)):
        carriers = [
            CarrierOfNumber(carrier, code_of(carrier), flights) for _, _, carrier, flights in used
        ]
        matches.append(FlightNumberSuggestion(number, str(number), carriers, total))
    return matches


FIELDS: dict[str, Callable[[Rows, str, int], list[Suggestion]]] = {
    "city": _cities,
    "airport": _airports,
    "carrier": _carriers,
    "flight_number": _flight_numbers,
}
