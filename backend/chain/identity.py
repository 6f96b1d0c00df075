"""Decides when two records are of the same flight, and whether they say the same about it.

`docs/how-to/add.md` has the rules, under "What makes two records one flight". Their reasons:

- The scheduled departure (DEP_TIME less DEP_DELAY) is counted from the midnight at which FL_DATE
  begins, and may be before that: BTS gives the delayed flight of the night before the date of its
  departure, so in January 2008 flight 240 of Frontier left Denver for Jacksonville twice on the
  13th, at 00:23 (28 minutes late) and at 23:50 (5 minutes early).
- Of the 942,541 flights of January 2008 and of New York in 2013, no two but those have the same
  day, carrier, number, origin and destination. So that is enough for a record without times, as
  most cancelled flights are.
- Cities, states and airport ids do not tell flights apart, because sources spell or lack them.
"""

from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import NamedTuple

from backend.chain.fields import FIELD_NAMES, POSITION, Value
from backend.chain.flight import Flight, as_mapping

LEG_FIELDS = ("FL_DATE", "OP_CARRIER_AIRLINE_ID", "OP_CARRIER_FL_NUM", "ORIGIN", "DEST")
MAY_BE_LEFT_OUT = frozenset(
    ("ORIGIN_AIRPORT_ID", "DEST_AIRPORT_ID", "DEP_TIME", "DEP_DELAY", "ARR_TIME", "AIR_TIME")
)
STATES_OF_ONE_AIRPORT = ({"District of Columbia", "Virginia"}, {"Ohio", "Kentucky"})
"""The states of DCA, IAD and CVG: tables of BTS have that of their city, its months their own."""
MIDNIGHT = {"2400": "0000"}  # two spellings of one time

Leg = tuple[Value, ...]

leg_of = itemgetter(*(POSITION[name] for name in LEG_FIELDS))
"""Return day, carrier, number, origin and destination of a flight."""

_DEP_TIME, _DEP_DELAY = POSITION["DEP_TIME"], POSITION["DEP_DELAY"]


class Stored(NamedTuple):
    """A flight that the ledger has. transaction_id, height: None while it is in no block."""

    transaction_id: int | None
    height: int | None
    flight: Flight

    @property
    def place(self) -> str:
        """Return where it is, in words."""
        if self.transaction_id is None:
            return "a record before it"
        block = "which is pending" if self.height is None else f"block {self.height}"
        return f"transaction {self.transaction_id} ({block})"


def scheduled_departure(flight: Flight) -> int | None:
    """Return the minutes from the beginning of FL_DATE to the scheduled departure, if known."""
    time, delay = flight[_DEP_TIME], flight[_DEP_DELAY]
    if time is None or delay is None:
        return None
    hours, minutes = divmod(int(time) % 2400, 100)
    return 60 * hours + minutes - int(delay)


def departure_of(flight: Flight) -> Value:
    """Return what tells flights of one leg apart: scheduled departure, else departure, or None."""
    scheduled = scheduled_departure(flight)
    return _clock(flight[_DEP_TIME]) if scheduled is None else scheduled


def have_same_departure(flight: Flight, other: Flight) -> bool | None:
    """Return whether two flights of one leg depart at the same time; None if one does not say."""
    times: list[Value] = [scheduled_departure(flight), scheduled_departure(other)]
    if None in times:
        times = [_clock(flight[_DEP_TIME]), _clock(other[_DEP_TIME])]
    return None if None in times else times[0] == times[1]


def differences(flight: Flight, other: Flight) -> tuple[str, ...]:
    """Return the names of the fields in which two records of the same flight contradict."""
    if flight == other:
        return ()
    triples = zip(FIELD_NAMES, flight, other, strict=True)
    return tuple(name for name, value, second in triples if _contradict(name, value, second))


def _contradict(name: str, value: Value, other: Value) -> bool:
    is_unsaid = name in MAY_BE_LEFT_OUT and None in {value, other}
    if value == other or is_unsaid or {value, other} in STATES_OF_ONE_AIRPORT:
        return False
    return _clock(value) != _clock(other) or not name.endswith("_TIME")


def _clock(time: Value) -> Value:
    return MIDNIGHT.get(str(time), time)


def match(flight: Flight, records: Iterable[Stored], *, exactly: bool = False) -> Stored | None:
    """Return the record of the same flight among those of its leg, or None.

    exactly: leave out those of which only one says when it departed, which are right for records of
    one file. One that says the same comes before one that does not.
    """
    best: Stored | None = None
    best_rank = (True, True)
    for record in records:
        is_same = have_same_departure(flight, record.flight)
        if is_same is None and departure_of(flight) == departure_of(record.flight):
            is_same = True  # neither says it
        if is_same is False or (is_same is None and exactly):
            continue
        rank = (is_same is None, bool(differences(flight, record.flight)))
        if best is None or rank < best_rank:
            best, best_rank = record, rank
    return best


def all_matches(
    flights: Sequence[Flight], known: Sequence[Sequence[Stored]]
) -> list[Stored | None]:
    """Return for each flight the record of it among those `known` of its leg, or before it here."""
    new = NewFlights()
    return [new.match_or_add(*pair) for pair in zip(flights, known, strict=True)]


class NewFlights:
    """The flights of one file or batch of which there was no record before.

    by_leg: these flights, by their legs.
    """

    def __init__(self) -> None:
        self.by_leg: dict[Leg, list[Stored]] = {}

    def match_or_add(self, flight: Flight, records: Iterable[Stored]) -> Stored | None:
        """Return the record of a flight among `records` of its leg, or here; else add it."""
        stored = match(flight, records)
        if stored is None:
            of_leg = self.by_leg.setdefault(leg_of(flight), [])
            stored = match(flight, of_leg, exactly=True)
            if stored is None:
                of_leg.append(Stored(None, None, flight))
        return stored


class Conflict(NamedTuple):
    """A record that contradicts an earlier one of the same flight."""

    flight: Flight
    stored: Stored

    def __str__(self) -> str:
        day, carrier, number, origin, dest = leg_of(self.flight)
        here, there = as_mapping(self.flight), as_mapping(self.stored.flight)
        names = differences(self.flight, self.stored.flight)
        pairs = [f"{name} {_shown(here[name])}, earlier {_shown(there[name])}" for name in names]
        return (
            f"flight {number} of carrier {carrier} on {day} from {origin} to {dest} contradicts "
            f"{self.stored.place}: {'; '.join(pairs)}"
        )


def _shown(value: Value) -> str:
    return "empty" if value is None else repr(value)
