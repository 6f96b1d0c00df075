"""Says by a plain loop which records are of the same flight, as a judge of `chain.identity`."""

from collections.abc import Sequence

from hypothesis import strategies as st

from backend.chain.fields import FIELD_NAMES, Value
from backend.chain.flight import Flight, as_mapping
from tests.flights import EXAMPLE, changed

CANCELLED: dict[str, Value] = {
    **dict.fromkeys(("DEP_TIME", "DEP_DELAY", "ARR_TIME", "ARR_DELAY", "AIR_TIME")),
    "CANCELLED": 1,
}
LEG = ("FL_DATE", "OP_CARRIER_AIRLINE_ID", "OP_CARRIER_FL_NUM", "ORIGIN", "DEST")
QUIET = (
    *("ORIGIN_AIRPORT_ID", "DEST_AIRPORT_ID"),
    *("DEP_TIME", "DEP_DELAY", "ARR_TIME", "AIR_TIME"),
)


def flown(**values: Value) -> Flight:
    """The example flight (scheduled at 19:55, left at 20:03) with some other values."""
    return changed(EXAMPLE, **values)


_FLOWN: st.SearchStrategy[dict[str, Value]] = st.fixed_dictionaries({
    "OP_CARRIER_FL_NUM": st.sampled_from([1, 2]),
    "ORIGIN": st.sampled_from(["IAD", "IAD", "DCA"]),
    "ORIGIN_AIRPORT_ID": st.sampled_from([12264, None]),
    "DEP_TIME": st.sampled_from([None, "0000", "0010", "2350", "2400"]),
    "DEP_DELAY": st.sampled_from([None, -10, 0, 10]),
    "ARR_DELAY": st.sampled_from([None, 5, 5, 6]),
})  # fmt: skip
same_or_similar: st.SearchStrategy[Flight] = _FLOWN.map(lambda values: flown(**values)) | (
    st.sampled_from([1, 2]).map(lambda number: flown(**CANCELLED, OP_CARRIER_FL_NUM=number))
)
"""Flights of few legs, of which many are the same."""


def _clock(time: Value) -> Value:
    return "0000" if time == "2400" else time


def _scheduled(flight: dict[str, Value]) -> int | None:
    if flight["DEP_TIME"] is None or flight["DEP_DELAY"] is None:
        return None
    time = str(_clock(flight["DEP_TIME"]))
    return 60 * int(time[:2]) + int(time[2:]) - int(flight["DEP_DELAY"])


def rank(flight: Flight, other: Flight) -> tuple[bool, bool] | None:
    """Returns whether sameness is uncertain, and whether the two contradict; None for others."""
    first, second = dict(as_mapping(flight)), dict(as_mapping(other))
    if any(first[name] != second[name] for name in LEG):
        return None
    when: list[Value] = [_scheduled(first), _scheduled(second)]
    if None in when:
        when = [_clock(first["DEP_TIME"]), _clock(second["DEP_TIME"])]
    if None not in when and when[0] != when[1]:
        return None
    differs = False
    for name in FIELD_NAMES:
        is_time = name.endswith("_TIME") and name != "AIR_TIME"
        pair = [_clock(f[name]) if is_time else f[name] for f in (first, second)]
        differs |= pair[0] != pair[1] and not (name in QUIET and None in pair)
    return (when[0] is None) != (when[1] is None), differs


def found_among(
    flight: Flight, records: Sequence[Flight], *, exactly: bool = False
) -> tuple[int, bool] | None:
    """The place of the record of a flight, and whether it contradicts; None without one."""
    ranks = [(rank(flight, record), place) for place, record in enumerate(records)]
    known = [(*r, place) for r, place in ranks if r is not None and not (exactly and r[0])]
    if not known:
        return None
    _, contradicts, place = min(known)
    return place, contradicts


def kept_of(batch: Sequence[Flight], kept: Sequence[Flight]) -> tuple[list[Flight], int, int]:
    """The flights of a batch that are new, and how many are there already and contradict.

    kept: what the ledger holds.
    """
    new: list[Flight] = []
    duplicates = conflicts = 0
    for flight in batch:
        match = found_among(flight, kept) or found_among(flight, new, exactly=True)
        if match is None:
            new.append(flight)
        else:
            conflicts += match[1]
            duplicates += not match[1]
    return new, duplicates, conflicts
