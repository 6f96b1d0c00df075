"""Hypothesis strategies: flights that are valid, and values that may be anything."""

import unicodedata
from datetime import date

from hypothesis import strategies as st

from backend.chain.columns import COLUMN_NAMES
from backend.chain.fields import FIELD_NAMES, Value
from backend.chain.flight import Flight
from tests.chain.independent import Row

LAST_TIME = 2**53 - 1

any_text = st.text(st.characters(), max_size=30)  # lone surrogates and controls included
scalars = st.none() | st.booleans() | st.integers() | st.floats() | any_text
json_like: st.SearchStrategy[object] = st.recursive(
    scalars, lambda inner: st.lists(inner) | st.dictionaries(any_text, inner), max_leaves=5
)


def nested(depth: int) -> object:
    """A list in a list in a list …"""
    deep: list[object] = []
    for _ in range(depth):
        deep = [deep]
    return deep


def _normal(text: str) -> str:
    return unicodedata.normalize("NFC", text).strip()


names = (
    st.text(
        st.characters(exclude_categories=("Cc", "Cf", "Co", "Cs", "Zl", "Zp")),
        min_size=1,
        max_size=20,
    )
    .map(_normal)
    .filter(bool)
)
codes = st.text("ABCXYZ019", min_size=3, max_size=4)
delays = st.none() | st.integers(-10000, 10000) | st.integers(14, 16)
times = st.none() | st.builds("{:02d}{:02d}".format, st.integers(0, 23), st.integers(0, 59))
airport_ids = st.none() | st.integers(1, 99999)


@st.composite
def flights(draw: st.DrawFn) -> Flight:
    """A valid flight: cancelled, diverted or arrived."""
    day = draw(st.dates(date(1900, 1, 1), date(2199, 12, 31)))
    cancelled = draw(st.integers(0, 1))
    arrived = not cancelled
    flight: dict[str, Value] = {
        "YEAR": day.year,
        "DAY_OF_WEEK": day.isoweekday(),
        "FL_DATE": day.isoformat(),
        "OP_CARRIER_AIRLINE_ID": draw(st.integers(1, 3) | st.integers(1, 99999)),
        "OP_CARRIER_FL_NUM": draw(st.integers(1, 99999)),
        "ORIGIN_AIRPORT_ID": draw(airport_ids),
        "ORIGIN": draw(codes),
        "ORIGIN_CITY_NAME": draw(names),
        "ORIGIN_STATE_NM": draw(names),
        "DEST_AIRPORT_ID": draw(airport_ids),
        "DEST": draw(codes),
        "DEST_CITY_NAME": draw(names),
        "DEST_STATE_NM": draw(names),
        "DEP_TIME": draw(times | st.just("2400")),
        "DEP_DELAY": draw(delays),
        "ARR_TIME": draw(times | st.just("2400")) if arrived else None,
        "ARR_DELAY": draw(delays) if arrived else None,
        "CANCELLED": cancelled,
        "AIR_TIME": draw(st.none() | st.integers(0, 3000)) if arrived else None,
    }
    return tuple(flight[name] for name in FIELD_NAMES)


@st.composite
def batches(draw: st.DrawFn, max_size: int = 8) -> tuple[list[Flight], list[int]]:
    """Some flights, a few of them repeated, and their acceptance times in order."""
    some = draw(st.lists(flights(), max_size=4))
    chosen = draw(st.lists(st.sampled_from(some), max_size=max_size)) if some else []
    accepted = draw(st.lists(st.integers(0, LAST_TIME), min_size=len(chosen), max_size=len(chosen)))
    return chosen, sorted(accepted)


def rows_of(some: list[Flight], accepted: list[int]) -> list[Row]:
    """The same as rows for `independent`."""
    return [
        dict(zip(COLUMN_NAMES, (*flight, time), strict=True))
        for flight, time in zip(some, accepted, strict=True)
    ]
