"""Finds the values of a question that no flight of the ledger has, and what may be meant instead.

Such a question is answered with zero flights. The answer then says why.
"""

from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches

from backend.chain.fields import Value
from backend.index import completions
from backend.index.index_file import Rows
from backend.index.suggestions import folded, suggested
from backend.questions.answer_types import UnknownValue

MOST_MEANT = 3
LEAST_LIKENESS = 0.7  # by difflib, from 0 to 1


def unknown_values(rows: Rows, asked: Mapping[str, Value]) -> list[UnknownValue]:
    """Return a warning for each value that no flight has. asked: parameters of a question."""
    warnings = [
        UnknownValue(name, str(value), f"no flight in the ledger has {what} {value}", meant)
        for name, value in asked.items()
        if name in _FIELDS
        for what, field in [_FIELDS[name]]
        if (meant := field(rows, str(value))) is not None
    ]
    return warnings + list(_unknown_days(rows, asked))


def _unknown_days(rows: Rows, asked: Mapping[str, Value]) -> Iterator[UnknownValue]:
    """Yield a warning if all days of a question are before or after those of the ledger."""
    known = completions.days(rows)
    if known is None:
        return
    first, last = known
    start = next(name for name in ("INITIAL_DATE", "FL_DATE") if name in asked)
    end = "FINAL_DATE" if "FINAL_DATE" in asked else start
    covers = f"the ledger has flights {f'from {first} to' if first < last else 'of'} {last}"
    if str(asked[start]) > last:
        yield UnknownValue(start, str(asked[start]), f"{covers}, and none later", [last])
    elif str(asked[end]) < first:
        yield UnknownValue(end, str(asked[end]), f"{covers}, and none earlier", [first])


def _city(rows: Rows, city: str) -> list[str] | None:
    """Return what may be meant by a city; None if it is one of the ledger. So do the others."""
    names = [name for name, _ in completions.cities(rows)]
    if city in names:
        return None
    of_airport = [name for code, name, *_ in completions.airports(rows) if code == city.upper()]
    return of_airport[:1] or _begun(rows, "city", city) or _alike(city, names)


def _airport(rows: Rows, code: str) -> list[str] | None:
    codes = [known for known, *_ in completions.airports(rows)]
    return None if code in codes else _begun(rows, "airport", code) or _alike(code, codes)


def _carrier(rows: Rows, number: str) -> list[str] | None:
    numbers = [str(known) for known, _ in completions.carriers(rows)]
    return None if number in numbers else _alike(number, numbers)


def _flight_number(rows: Rows, number: str) -> list[str] | None:
    if completions.has_flight_number(rows, int(number)):
        return None
    return _begun(rows, "flight_number", number)


def _begun(rows: Rows, field: str, text: str) -> list[str]:
    return [str(suggestion.value) for suggestion in suggested(rows, field, text, MOST_MEANT)]


def _alike(text: str, values: list[str]) -> list[str]:
    """Return the values that are spelt like `text`, with or without what follows a comma."""
    names = {folded(name): value for value in values for name in (value, value.partition(",")[0])}
    close = get_close_matches(folded(text), names, MOST_MEANT, LEAST_LIKENESS)
    return list(dict.fromkeys(names[name] for name in close))


_FIELDS: Mapping[str, tuple[str, Callable[[Rows, str], list[str] | None]]] = {
    "ORIGIN_CITY_NAME": ("the city", _city),
    "DEST_CITY_NAME": ("the city", _city),
    "ORIGIN": ("the airport", _airport),
    "DEST": ("the airport", _airport),
    "OP_CARRIER_AIRLINE_ID": ("the carrier", _carrier),
    "OP_CARRIER_FL_NUM": ("the flight number", _flight_number),
}
