"""Reads the index. Each answer is one SQLite snapshot, and comes with the block it stands for.

Answers at the tip cost the same whatever the length of the chain. Answers as of an earlier height
are counted from the flights of the days asked for: they depend on the interval, not on the chain.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from functools import lru_cache, partial
from operator import itemgetter
from pathlib import Path
from typing import Any

from backend.chain.fields import FIELD_NAMES, POSITION, Value
from backend.chain.flight import Flight
from backend.errors import TryLater
from backend.index import breakdowns
from backend.index.breakdowns import (
    CARRIER_FLIGHTS,
    COUNTED,
    COUNTS,
    ROUTE_FLIGHTS,
    ROUTE_TOTALS,
    Rows,
)
from backend.index.connections import (
    NO_FILE,
    NOT_YET,
    RETRY_AFTER_S,
    Answer,
    Connections,
    File,
    Opened,
    Place,
    Report,
)
from backend.index.database import Position, snapshot
from backend.index.periods import DAY, cover
from backend.questions.values import (
    AverageDelays,
    Delays,
    DelayTotals,
    FilterTransactions,
    FlightCounter,
    FlightCounts,
    Options,
    status_of,
)
from backend.storage.block_store import BlockStore
from backend.storage.checked_sqlite import Wrong

_ORIGIN = ("ORIGIN_AIRPORT_ID", "ORIGIN", "ORIGIN_CITY_NAME", "ORIGIN_STATE_NM")
_DEST = ("DEST_AIRPORT_ID", "DEST", "DEST_CITY_NAME", "DEST_STATE_NM")

RECENT_S = 0.005

_EVERYTHING = 2**62  # above every transaction id

# Every statement says where the index stands, too: one statement is one snapshot.
_STANDS = "(SELECT height FROM position), (SELECT tip_hash FROM position)"

_POSITION = "SELECT height, tip_hash FROM position"
_LEGS = """
    SELECT position.height, tip_hash, id, carrier, origin, dest, dep_time, dep_delay, arr_time,
           arr_delay, cancelled, air_time, flight.height, timestamp
    FROM position LEFT JOIN flight ON day = ? AND number = ? AND id < ? ORDER BY id"""
_ANY_OF_DAY = "SELECT 1 FROM flight WHERE day = ? LIMIT 1"
_EQUAL = """
    SELECT id, origin, dest FROM flight
    WHERE day = ? AND dep_time IS ? AND arr_time IS ? AND number = ? AND carrier = ?
        AND dep_delay IS ? AND arr_delay IS ? AND cancelled = ? AND air_time IS ?
    ORDER BY id"""
_PLACE = """
    SELECT airport_id, code, name, state FROM place JOIN city USING (city) WHERE place = ?"""

_SUMS = ", ".join(f"coalesce(sum({count}), 0)" for count in COUNTS.split(", "))
_CARRIER_RANGE = f"""
    SELECT {COUNTS} FROM carrier_total
    WHERE carrier = ? AND span = ? AND period BETWEEN ? AND ?"""  # noqa: S608  our own names
_CARRIER_AS_OF = f"SELECT {_STANDS}, {COUNTED} {CARRIER_FLIGHTS}"
_ROUTE_RANGE = f"SELECT flights {ROUTE_TOTALS}"
_ROUTE_AS_OF = f"SELECT {_STANDS}, count(*) {ROUTE_FLIGHTS}"


def _over_ranges(sums: str, one_range: str) -> list[str]:
    """The statement that sums over n ranges of periods, at position n; `cover` gives 1 to 5."""
    ranges = (" UNION ALL ".join([one_range] * n) for n in range(6))
    return [f"SELECT {_STANDS}, {sums} FROM ({union})" for union in ranges]  # noqa: S608


_CARRIER_TOTALS = _over_ranges(_SUMS, _CARRIER_RANGE)
_ROUTE_TOTALS = _over_ranges("coalesce(sum(flights), 0)", _ROUTE_RANGE)

_FL_DATE = POSITION["FL_DATE"]
_number_and_day_of: Callable[[Flight], Any] = itemgetter(POSITION["OP_CARRIER_FL_NUM"], _FL_DATE)
_times_of = itemgetter(POSITION["DEP_TIME"], POSITION["ARR_TIME"])
_others_of = itemgetter(
    POSITION["OP_CARRIER_FL_NUM"],
    POSITION["OP_CARRIER_AIRLINE_ID"],
    POSITION["DEP_DELAY"],
    POSITION["ARR_DELAY"],
    POSITION["CANCELLED"],
    POSITION["AIR_TIME"],
)
_origin_of = itemgetter(*(POSITION[name] for name in _ORIGIN))
_dest_of = itemgetter(*(POSITION[name] for name in _DEST))

_HHMM = [f"{time:04d}" for time in range(2401)]


@dataclass(frozen=True, slots=True)
class AsOf:
    """The block that an answer stands for."""

    height: int
    tip_hash: str


@dataclass(frozen=True, slots=True)
class State:
    """What decides every answer at the tip: the file of the index and the block it stands for.

    The file belongs to it, because an index that was wrong is made anew for the same block.
    """

    file: File
    tip_hash: str


class IndexReader:
    """Answers from the index of the chain in `folder`.

    Safe for threads.

    Questions take `below`, the first transaction id that does not count (None: all count), and
    come with the block at which the index stood. Everything raises TryLater while there is no
    index that is believed, as `connections` explains.
    """

    def __init__(
        self, folder: Path, store: BlockStore | None = None, report: Report = lambda line: None
    ) -> None:
        """Open nothing yet.

        store: the blocks of the same chain. report: takes a line whenever the index proves wrong.
        """
        self._connections = Connections(folder, store or BlockStore(folder), report)
        self._agreed = AsOf(-1, "")  # where the index was last found to agree with the chain
        self._recent = (State(NO_FILE, ""), 0.0)

    def position(self) -> Position:
        """Where the index stands, which is compared with the chain."""
        position = self._connections.position()
        self._agreed = AsOf(position.height, position.tip_hash)
        return position

    def look(self) -> Position:
        """Where the index stands; looks at once whether another process has found it wrong."""
        self._connections.look_again()
        return self.position()

    def recent_state(self) -> State:
        """The index's file and the block at which it stands, or stood at most `RECENT_S` ago.

        This is nearly free, while `position` costs a tenth of a request.
        """
        state, until = self._recent
        now = time.monotonic()
        if now >= until:
            tip_hash = self.position().tip_hash
            state = State(self._connections.file, tip_hash)
            self._recent = (state, now + RECENT_S)
        return state

    def days(self) -> set[str]:
        """Every day that flights are known of, as ISO dates."""

        def ask(rows: Rows) -> set[str]:
            found = rows("SELECT DISTINCT period FROM carrier_total WHERE span = ?", (DAY,))
            return {date.fromordinal(day).isoformat() for (day,) in found}

        return self.snapshot(ask)[0]

    def legs(
        self, question: FilterTransactions, below: int | None = None
    ) -> tuple[list[dict[str, Value]], AsOf]:
        """The transactions with BLOCK_HEIGHT and status, in order of their ids."""
        day = _date(question.FL_DATE)
        number, carrier = question.OP_CARRIER_FL_NUM, question.OP_CARRIER_AIRLINE_ID
        bound = _EVERYTHING if below is None else below

        def ask(opened: Opened) -> tuple[list[dict[str, Value]], AsOf]:
            values = (day.toordinal(), number, bound)
            rows = opened.connection.execute(_LEGS, values).fetchall()
            as_of = _as_of(rows)
            if rows[0][2] is None:  # the position alone
                return [], as_of
            wanted = rows if carrier is None else [row for row in rows if row[3] == carrier]
            return [_leg(opened, row, number, day) for row in wanted], as_of

        return self._agreeing(self._connections.ask(ask))

    def first_ids(self, flights: Sequence[Flight]) -> list[int | None]:
        """For each flight the id of the first one that equals it in all fields, or None."""
        self.recent_state()  # raises TryLater for an index that is not believed
        if len(flights) == 1:  # reading all of its number would be more; of many it is less
            return [self._connections.ask(partial(_first_id, flights[0]))]
        days = {str(flight[_FL_DATE]) for flight in flights}
        known = {d for d in days if self._rows(_ANY_OF_DAY, (_date(d).toordinal(),))}
        legs: dict[object, dict[Flight, list[int]]] = {}
        for number, day in {leg for leg in map(_number_and_day_of, flights) if leg[1] in known}:
            legs[number, day] = self.flights_of(number, day, None)
        equal = (legs.get(_number_and_day_of(flight), {}).get(flight, ()) for flight in flights)
        return [next(iter(ids), None) for ids in equal]

    def flights_of(self, number: int, day: str, below: int | None) -> dict[Flight, list[int]]:
        """The flights with this number on this ISO date, and the ids of each, oldest first."""
        legs, _ = self.legs(FilterTransactions(number, day), below)
        found: dict[Flight, list[int]] = {}
        for leg in legs:
            flight = tuple(leg[name] for name in FIELD_NAMES)
            found.setdefault(flight, []).append(int(leg["TRANSACTION_ID"] or 0))
        return found

    def delays(
        self, question: AverageDelays, options: Options, below: int | None = None
    ) -> tuple[Delays, AsOf]:
        """The counts and sums behind the averages, broken down as `options` say."""
        if options.group_by is None and not options.distribution:
            totals, as_of = self.delay_totals(question, below)
            return Delays(totals), as_of

        def ask(rows: Rows) -> Delays:
            totals, _ = _delay_totals(rows, question, below)
            by_day = breakdowns.delays_by_day(rows, question, below) if options.group_by else {}
            counts = breakdowns.delay_counts(rows, question, below) if options.distribution else {}
            return Delays(totals, by_day, counts)

        return self.snapshot(ask)

    def flight_counts(
        self, question: FlightCounter, options: Options, below: int | None = None
    ) -> tuple[FlightCounts, AsOf]:
        """How many flights went, broken down as `options` say."""
        if options.group_by is None:
            count, as_of = self.route_count(question, below)
            return FlightCounts(count), as_of

        def ask(rows: Rows) -> FlightCounts:
            if options.group_by == "day":
                by_day = breakdowns.flights_by_day(rows, question, below)
                return FlightCounts(sum(by_day.values()), by_day=by_day)
            by_carrier = breakdowns.flights_by_carrier(rows, question, below)
            return FlightCounts(sum(by_carrier.values()), by_carrier=by_carrier)

        return self.snapshot(ask)

    def delay_totals(
        self, question: AverageDelays, below: int | None = None
    ) -> tuple[DelayTotals, AsOf]:
        """The counts and sums behind the averages."""
        return self._agreeing(_delay_totals(self._rows, question, below))

    def route_count(self, question: FlightCounter, below: int | None = None) -> tuple[int, AsOf]:
        """How many flights went."""
        return self._agreeing(_route_count(self._rows, question, below))

    def snapshot(self, ask: Callable[[Rows], Answer]) -> tuple[Answer, AsOf]:
        """What `ask` finds with statements that all see the index as it stands at one block."""

        def run(opened: Opened) -> tuple[Answer, AsOf]:
            def rows(sql: str, values: Sequence[object]) -> list[Any]:
                return opened.connection.execute(sql, values).fetchall()

            with snapshot(opened.connection):
                as_of = _as_of(rows(_POSITION, ()))
                return ask(rows), as_of

        return self._agreeing(self._connections.ask(run))

    def _rows(self, sql: str, values: Sequence[object]) -> list[Any]:
        """All rows of one statement."""
        return self._connections.ask(
            lambda opened: opened.connection.execute(sql, values).fetchall()
        )

    def _agreeing(self, answer: tuple[Answer, AsOf]) -> tuple[Answer, AsOf]:
        """An answer of an index that agrees with the chain; seen again whenever it has moved."""
        if answer[1] != self._agreed:
            self.position()
        return answer

    def close(self) -> None:
        """Close the connections that nobody uses."""
        self._connections.close()


def _delay_totals(
    rows: Rows, question: AverageDelays, below: int | None
) -> tuple[DelayTotals, AsOf]:
    carrier = question.OP_CARRIER_AIRLINE_ID
    first, last = _date(question.INITIAL_DATE), _date(question.FINAL_DATE)
    if below is not None:
        values = [first.toordinal(), last.toordinal(), carrier, below]
        found = rows(_CARRIER_AS_OF, values)
    else:
        ranges = _covered(first, last)
        values = [value for periods in ranges for value in (carrier, *periods)]
        found = rows(_CARRIER_TOTALS[len(ranges)], values)
    return DelayTotals(*found[0][2:]), _as_of(found)


def _route_count(rows: Rows, question: FlightCounter, below: int | None) -> tuple[int, AsOf]:
    cities = (question.ORIGIN_CITY_NAME, question.DEST_CITY_NAME)
    first, last = _date(question.INITIAL_DATE), _date(question.FINAL_DATE)
    if below is not None:
        found = rows(_ROUTE_AS_OF, [first.toordinal(), last.toordinal(), below, *cities])
    else:
        ranges = _covered(first, last)
        values = [value for periods in ranges for value in (*cities, *periods)]
        found = rows(_ROUTE_TOTALS[len(ranges)], values)
    return found[0][2], _as_of(found)


def _leg(opened: Opened, row: tuple[Any, ...], number: int, day: date) -> dict[str, Value]:
    (_, _, transaction_id, carrier, origin, dest, dep_time, dep_delay, arr_time, arr_delay,
     cancelled, air_time, height, timestamp) = row  # fmt: skip
    origin_id, origin_code, origin_city, origin_state = _place(opened, origin)
    dest_id, dest_code, dest_city, dest_state = _place(opened, dest)
    return {
        "TRANSACTION_ID": transaction_id,
        "timestamp": timestamp,
        "YEAR": day.year,
        "DAY_OF_WEEK": day.isoweekday(),
        "FL_DATE": day.isoformat(),
        "OP_CARRIER_AIRLINE_ID": carrier,
        "OP_CARRIER_FL_NUM": number,
        "ORIGIN_AIRPORT_ID": origin_id,
        "ORIGIN": origin_code,
        "ORIGIN_CITY_NAME": origin_city,
        "ORIGIN_STATE_NM": origin_state,
        "DEST_AIRPORT_ID": dest_id,
        "DEST": dest_code,
        "DEST_CITY_NAME": dest_city,
        "DEST_STATE_NM": dest_state,
        "DEP_TIME": None if dep_time is None else _HHMM[dep_time],
        "DEP_DELAY": dep_delay,
        "ARR_TIME": None if arr_time is None else _HHMM[arr_time],
        "ARR_DELAY": arr_delay,
        "CANCELLED": cancelled,
        "AIR_TIME": air_time,
        "BLOCK_HEIGHT": height,
        "status": status_of(cancelled, arr_delay),
    }


def _first_id(flight: Flight, opened: Opened) -> int | None:
    day = _date(str(flight[_FL_DATE])).toordinal()
    dep_time, arr_time = (None if time is None else int(time) for time in _times_of(flight))
    values = (day, dep_time, arr_time, *_others_of(flight))
    for transaction_id, origin, dest in opened.connection.execute(_EQUAL, values):
        places = (_place(opened, origin), _place(opened, dest))
        if places == (_origin_of(flight), _dest_of(flight)):
            found: int = transaction_id
            return found
    return None


def _place(opened: Opened, place: int) -> Place:
    """An airport; places of one index file never change, so each is read once."""
    found = opened.places.get(place)
    if found is None:
        row: Any = opened.connection.execute(_PLACE, (place,)).fetchone()
        if row is None:
            raise Wrong(f"it lacks place {place}")
        found = opened.places[place] = row
    return found


def _as_of(rows: list[Any]) -> AsOf:
    if not rows or rows[0][0] is None:
        raise TryLater(NOT_YET, RETRY_AFTER_S)
    return AsOf(rows[0][0], rows[0][1])


_date = lru_cache(maxsize=4096)(date.fromisoformat)
_covered = lru_cache(maxsize=4096)(cover)
