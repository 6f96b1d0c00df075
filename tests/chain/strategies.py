"""Hypothesis strategies: flights that are valid, and values that may be anything."""

import unicodedata
from datetime import date

from hypothesis import strategies as st

from backend.chain.columns import COLUMN_NAMES
from backend.chain.fields import Value
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
times = st.sampled_from((None, "2400")) | st.builds(
    "{:02d}{:02d}".format, st.integers(0, 23), st.integers(0, 59)
)
airport_ids = st.none() | st.integers(1, 99999)
all_days = st.dates(date(1900, 1, 1), date(2199, 12, 31))
any_carrier = st.integers(1, 3) | st.integers(1, 99999)
any_airport: st.SearchStrategy[tuple[Value, ...]] = st.tuples(airport_ids, codes, names, names)


@st.composite
def flights(
    draw: st.DrawFn,
    days: st.SearchStrategy[date] = all_days,
    carriers: st.SearchStrategy[int] = any_carrier,
    numbers: st.SearchStrategy[int] = st.integers(1, 99999),  # noqa: B008
    airports: st.SearchStrategy[tuple[Value, ...]] = any_airport,
    times: st.SearchStrategy[Value] = times,
    delays: st.SearchStrategy[Value] = delays,
) -> Flight:
    """A valid flight: cancelled, perhaps after it left, diverted or arrived."""
    day = draw(days)
    fate = draw(st.sampled_from(("cancelled", "diverted", "arrived", "arrived")))
    flew = fate != "cancelled"
    return (
        *(day.year, day.isoweekday(), day.isoformat(), draw(carriers), draw(numbers)),
        *(*draw(airports), *draw(airports)),
        *(draw(times), draw(delays)),
        draw(times) if flew else None,
        draw(delays) if fate == "arrived" else None,
        int(not flew),
        draw(st.none() | st.integers(0, 3000)) if flew else None,
    )


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
