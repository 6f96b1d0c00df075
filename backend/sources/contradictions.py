"""Notices a file whose columns contradict each other, as where two titles were swapped.

Each of its flights would be valid, and be stored for ever at a wrong airport or carrier. What the
tables of airports and carriers know of a code is compared with what stands beside it. One airport
that disagrees is no contradiction: people give some of them to other cities than BTS does.
"""

from collections.abc import Callable, Mapping, Sequence, Set
from functools import lru_cache
from itertools import chain

from backend.base.errors import shown
from backend.questions.carriers import CARRIER
from backend.sources.airports import airport_of
from backend.sources.cells import STATES, state
from backend.sources.kinds import Reading
from backend.sources.records import RecordBatch

_STATES = frozenset(STATES.values())
_REMEDY = "in most rows; put the titles of its columns right, or write what belongs together"


@lru_cache(maxsize=1000)
def _states_of_airport(text: str) -> Set[str]:
    airport = airport_of(text)
    states = {airport.state, *_state_of_city(airport.city)} if airport else set[str]()
    return states | {STATES["VA"]} if STATES["DC"] in states else states  # of DCA and IAD


def _state_of_city(text: str) -> Set[str]:
    return _state_named(text.rpartition(", ")[2]) if ", " in text else set()


@lru_cache(maxsize=1000)
def _state_named(text: str) -> Set[str]:
    return {str(state(text))} & _STATES


def _is_carrier(text: str) -> bool:
    return text.isdecimal() and int(text) in CARRIER


_BESIDE: Mapping[str, Callable[[str], Set[str]]] = {
    "_AIRPORT_ID": _states_of_airport,
    "_CITY_NAME": _state_of_city,
    "_STATE_NM": _state_named,
    "_STATE": _state_named,
}
"""What stands beside an airport, and in which states a cell says that it may be."""

_NUMBERS = (
    ("OP_CARRIER_AIRLINE_ID", "an airport", airport_of),
    ("OP_CARRIER_FL_NUM", "an airport", airport_of),
    ("OP_CARRIER_FL_NUM", "a carrier", _is_carrier),
    ("ORIGIN_AIRPORT_ID", "a carrier", _is_carrier),
    ("DEST_AIRPORT_ID", "a carrier", _is_carrier),
)
"""Columns of numbers, and how to notice those of something else."""


def contradiction(reading: Reading, batches: Sequence[RecordBatch]) -> str:
    """Return which columns contradict each other in most of these rows; "" if none do."""

    def rows(*columns: str) -> list[list[str]]:
        """Return the different rows of some columns; none if the file lacks one of them."""
        if not reading.places.keys() >= set(columns):
            return []
        places = [reading.places[column] for column in columns]
        cells = (zip(*(batch.columns[at] for at in places), strict=True) for batch in batches)
        return [[str(c).strip().removesuffix(".0") for c in row] for row in set(chain(*cells))]

    for column, what, is_other in _NUMBERS:
        cells = [row[0] for row in rows(column)]
        others = list(filter(is_other, cells))
        if 2 * len(others) > len(cells):
            title = reading.columns[column]
            return f"has {title} {min(others)}, which is the number of {what}, {_REMEDY}"
    wrong = []
    for end in ("ORIGIN", "DEST"):
        airport = end if end in reading.places else f"{end}_AIRPORT_ID"
        for suffix, meant in _BESIDE.items():
            column = f"{end}{suffix}"
            if suffix == "_STATE" and f"{end}_STATE_NM" in reading.places:
                continue  # it is not used
            pairs = rows(airport, column)
            known = [(a, b) for a, b in pairs if _states_of_airport(a) and meant(b)]
            odd = [(a, b) for a, b in known if _states_of_airport(a).isdisjoint(meant(b))]
            if 2 * len(odd) > len(known):
                title, other = (reading.titles[reading.places[n]] for n in (airport, column))
                wrong += [f"has {title} {shown(a)} beside {other} {shown(b)}" for a, b in odd]
    return f"{min(wrong)} {_REMEDY}" if len(wrong) > 1 else ""
