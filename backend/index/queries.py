"""Reads the index. Each answer is one SQLite snapshot, and comes with the block it stands for.

Answers at the tip cost the same whatever the length of the chain. Answers as of an earlier height
are counted from the flights of the days asked for: they depend on the interval, not on the chain.
"""

import json
import time
from collections.abc import Callable, Sequence, Set
from datetime import date
from functools import lru_cache
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from backend.base.errors import TryLater
from backend.base.words import Report
from backend.chain.fields import FIELD_NAMES, POSITION, Value
from backend.chain.flight import Flight
from backend.chain.identity import Leg, Stored, leg_of
from backend.index import group_counts
from backend.index.connections import (
    NO_FILE,
    NOT_YET,
    RETRY_AFTER_S,
    Answer,
    Connections,
    File,
    Opened,
)
from backend.index.index_file import Place, Position, Rows
from backend.index.periods import DAY, date_of, day_number
from backend.index.totals import MINUTE
from backend.index.views import BLOCK_OF
from backend.questions.answer_types import AsOf
from backend.questions.counts import FlightCounts, status_of
from backend.questions.groups import Shown
from backend.questions.values import (
    MOST_DEPARTURES,
    AverageDelays,
    Departures,
    FilterTransactions,
    FlightCounter,
    Options,
)
from backend.storage.block_store import BlockStore
from backend.storage.caches import RECENT_S
from backend.storage.checked_sqlite import Wrong

_EVERYTHING = 2**62  # above every transaction id

_POSITION = "SELECT height, tip_hash FROM position"
_LEG = f"""
    id, day, carrier, route, dep_time, dep_delay, arr_time, arr_delay, cancelled, air_time,
    {BLOCK_OF.format(column="height", id="id")},
    later + {BLOCK_OF.format(column="timestamp", id="id")}"""
# The position is a row of its own, because it costs as much as a leg to read.
_NO_LEG = ", ".join(["NULL"] * 12)
_AND_POSITION = f"UNION ALL SELECT height, tip_hash, {_NO_LEG} FROM position"  # noqa: S608
# Sorted here, because with ORDER BY SQLite plans such a statement again each time.
_LEGS = f"""
    SELECT number, NULL, {_LEG} FROM flight WHERE day = ? AND number = ? AND id < ?
    {_AND_POSITION}"""  # noqa: S608
# Day by day, within the days that have flights: the index is in the order of days.
_LEGS_BETWEEN = f"""
    WITH RECURSIVE asked (day, last) AS (
        SELECT max(?, (SELECT min(day) FROM flight)), min(?, (SELECT max(day) FROM flight))
        UNION ALL
        SELECT day + 1, last FROM asked WHERE day < last)
    SELECT number, NULL, {_LEG} FROM asked CROSS JOIN flight USING (day)
    WHERE day <= last AND number = ? AND id < ?
    {_AND_POSITION}"""  # noqa: S608
_ANY_OF_DAY = "SELECT 1 FROM flight WHERE day = ? LIMIT 1"
_FEW = 32  # rows
_RECORD = "route, dep_time, dep_delay, arr_time, arr_delay, cancelled, air_time"
_BY_SCHEDULE = f"ORDER BY {MINUTE} IS NULL, {MINUTE}, id LIMIT ? OFFSET ?"
_OF_NUMBER = f"""
    SELECT number, NULL, {_LEG}
    FROM flight WHERE day = ? AND number = ? AND carrier = ? AND id < ? LIMIT {_FEW}"""  # noqa: S608
# The oldest of each content, because somebody may have posted the same flight ten thousand times.
_OF_NUMBERS = f"""
    WITH asked (day, number, carrier) AS (
        SELECT value ->> 0, value ->> 1, value ->> 2 FROM json_each(?)),
    oldest AS (
        SELECT number, day, carrier, {_RECORD}, min(id) AS id, later
        FROM asked CROSS JOIN flight USING (day, number, carrier) WHERE id < ?
        GROUP BY day, number, carrier, {_RECORD})
    SELECT number, NULL, {_LEG} FROM oldest"""  # noqa: S608
_ROUTE = "SELECT origin, dest FROM route WHERE route = ?"
_PLACE = """
    SELECT airport_id, code, name, state FROM place JOIN city USING (city) WHERE place = ?"""

_FL_DATE = POSITION["FL_DATE"]

_HHMM = [f"{time:04d}" for time in range(2401)]


class State(NamedTuple):
    """The file of the index and its block, which decide every answer at the tip.

    The file belongs to it, because an index that was wrong is rebuilt for the same block.
    """

    file: File
    tip_hash: str


class IndexReader:
    """Answers from the index of the chain in `folder`.

    Safe for threads.

    Questions take `below`, the first transaction id that does not count (None: all count), and
    come with the block at which the index stood. Everything raises TryLater while there is no
    index that is trusted, as `connections` explains.
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
        """Return where the index stands, which is compared with the chain."""
        position = self._connections.position()
        self._agreed = AsOf(position.height, position.tip_hash)
        return position

    def look(self) -> Position:
        """Return where the index stands, after a look whether another process found it wrong."""
        self._connections.look_again()
        return self.position()

    def recent_state(self) -> State:
        """Return the index's file and the block where it stands, or stood `RECENT_S` ago at most.

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
        """Return every day that flights are known of, as ISO dates."""

        def ask(rows: Rows) -> set[str]:
            periods = rows("SELECT DISTINCT period FROM carrier_total WHERE span = ?", (DAY,))
            return {date_of(day).isoformat() for (day,) in periods}

        return self.snapshot(ask)[0]

    def legs(
        self, question: FilterTransactions, below: int | None = None
    ) -> tuple[list[dict[str, Value]], AsOf]:
        """Return the transactions with BLOCK_HEIGHT and status, in order of their ids."""
        first, last = (day_number(_date(day)) for day in question.interval)
        days, statement = ((first,), _LEGS) if first == last else ((first, last), _LEGS_BETWEEN)
        number, carrier = question.OP_CARRIER_FL_NUM, question.OP_CARRIER_AIRLINE_ID
        bound = _EVERYTHING if below is None else below

        def ask(opened: Opened) -> tuple[list[dict[str, Value]], AsOf]:
            rows = opened.connection.execute(statement, (*days, number, bound)).fetchall()
            as_of = _as_of(next((row for row in rows if row[2] is None), None))
            legs = [row for row in rows if row[2] is not None and carrier in {None, row[4]}]
            legs.sort(key=itemgetter(2))
            return [_leg(opened, row, number) for row in legs], as_of

        return self._agreeing(self._connections.ask(ask))

    def departures(
        self, question: Departures, shown: Shown, below: int | None = None
    ) -> tuple[tuple[int, list[dict[str, Value]]], AsOf]:
        """Return how many flights leave on a day, and those that are shown, by schedule."""
        source, values = group_counts.flights_on(question, below)
        page = (shown.limit or MOST_DEPARTURES, shown.offset)
        select = f"SELECT number, NULL, {_LEG} FROM (SELECT flight.* {source} {_BY_SCHEDULE})"  # noqa: S608

        def ask(opened: Opened) -> tuple[int, list[dict[str, Value]]]:
            run = opened.connection.execute
            count: Any = run(f"SELECT count(*) {source}", values).get
            rows: list[Any] = run(select, (*values, *page)).fetchall()
            return count, [_leg(opened, row, row[0]) for row in rows]

        return self._at_one_block(ask)

    def records_of(
        self, flights: Sequence[Flight], below: int | None = None
    ) -> dict[Leg, list[Stored]]:
        """Return the stored records with the legs of `flights`, oldest first; of equal ones, one.

        Days without flights cost next to nothing.
        """
        self.recent_state()  # raises TryLater for an index that is not trusted
        bound = _EVERYTHING if below is None else below

        def ask(opened: Opened) -> dict[Leg, list[Stored]]:
            records: dict[Leg, dict[Flight, Stored]] = {}
            legs = _legs_of_known_days(opened, flights)
            for row in _records(opened, legs, bound):
                flight = _flight(opened, row, row[0])
                if (leg := leg_of(flight)) in legs:
                    records.setdefault(leg, {}).setdefault(flight, Stored(row[2], row[12], flight))
            return {leg: list(of_leg.values()) for leg, of_leg in records.items()}

        return self._connections.ask(ask)

    def counts(
        self, question: AverageDelays | FlightCounter, options: Options, below: int | None = None
    ) -> tuple[FlightCounts, AsOf]:
        """Return the counts behind an answer, broken down as `options` say."""
        return self.snapshot(lambda rows: group_counts.counted(rows, question, options, below))

    def snapshot(self, ask: Callable[[Rows], Answer]) -> tuple[Answer, AsOf]:
        """Return what `ask` finds with statements that all see the index at the same block."""

        def run(opened: Opened) -> Answer:
            def rows(sql: str, values: Sequence[object]) -> list[Any]:
                return opened.connection.execute(sql, values).fetchall()

            return ask(rows)

        return self._at_one_block(run)

    def _at_one_block(self, ask: Callable[[Opened], Answer]) -> tuple[Answer, AsOf]:
        """Return what `ask` finds while a statement that reads the position is not finished.

        Until then SQLite shows one moment to all statements, as in a transaction.
        """

        def run(opened: Opened) -> tuple[Answer, AsOf]:
            position = opened.connection.execute(_POSITION)
            try:
                as_of = _as_of(position.fetchone())
                return ask(opened), as_of
            finally:
                position.close()

        return self._agreeing(self._connections.ask(run))

    def _agreeing(self, answer: tuple[Answer, AsOf]) -> tuple[Answer, AsOf]:
        """Return an answer of an index that agrees with the chain, compared when it has moved."""
        if answer[1] != self._agreed:
            self.position()
        return answer

    def close(self) -> None:
        """Close the connections that nobody uses."""
        self._connections.close()


def _legs_of_known_days(opened: Opened, flights: Sequence[Flight]) -> set[Leg]:
    """Return the legs of flights on days of which there are any."""
    if len(flights) == 1:  # to ask for the leg takes no longer
        return {leg_of(flights[0])}
    days = set(map(itemgetter(_FL_DATE), flights))
    run = opened.connection.execute
    known = {day for day in days if run(_ANY_OF_DAY, (day_number(_date(day)),)).get}
    return {leg_of(flight) for flight in flights if flight[_FL_DATE] in known} if known else set()


def _records(opened: Opened, legs: Set[Leg], bound: int) -> list[Any]:
    """Return rows, in the order of ids, of flights with the days, numbers and carriers of `legs`.

    bound: ids are below this.
    """
    run = opened.connection.execute
    numbers = {(day_number(_date(day)), number, carrier) for day, carrier, number, *_ in legs}
    rows: list[Any] = []
    if len(numbers) == 1:
        rows = run(_OF_NUMBER, (*next(iter(numbers)), bound)).fetchall()
    if len(numbers) > 1 or len(rows) == _FEW:
        rows = run(_OF_NUMBERS, (json.dumps(list(numbers)), bound)).fetchall()
    return sorted(rows, key=itemgetter(2))


def _leg(opened: Opened, row: tuple[Any, ...], number: int) -> dict[str, Value]:
    cancelled, arr_delay, height, timestamp = row[10], row[9], row[12], row[13]
    return {
        "TRANSACTION_ID": row[2],
        "timestamp": timestamp,
        **dict(zip(FIELD_NAMES, _flight(opened, row, number), strict=True)),
        "BLOCK_HEIGHT": height,
        "status": status_of(cancelled, arr_delay),
    }


def _flight(opened: Opened, row: tuple[Any, ...], number: int) -> Flight:
    """Return the values of the fields, in their order."""
    (_, _, _, number_of_day, carrier, route, dep_time, dep_delay, arr_time, arr_delay,
     cancelled, air_time, _, _) = row  # fmt: skip
    day, (origin, dest) = date_of(number_of_day), _ends(opened, route)
    departed = None if dep_time is None else _HHMM[dep_time]
    arrived = None if arr_time is None else _HHMM[arr_time]
    return (
        day.year, day.isoweekday(), day.isoformat(), carrier, number, *origin, *dest,
        departed, dep_delay, arrived, arr_delay, cancelled, air_time,
    )  # fmt: skip


def _ends(opened: Opened, route: int) -> tuple[Place, Place]:
    """Return the airports of a route, which never change in an index file: each is read once."""
    places = opened.routes.get(route)
    if places is None:
        row: Any = opened.connection.execute(_ROUTE, (route,)).fetchone()
        if row is None:
            raise Wrong(f"it lacks route {route}")
        places = opened.routes[route] = (_place(opened, row[0]), _place(opened, row[1]))
    return places


def _place(opened: Opened, place: int) -> Place:
    airport = opened.places.get(place)
    if airport is None:
        row: Any = opened.connection.execute(_PLACE, (place,)).fetchone()
        if row is None:
            raise Wrong(f"it lacks place {place}")
        airport = opened.places[place] = row
    return airport


def _as_of(position: Any) -> AsOf:
    """Return the block in a row that begins with the position, if there is one."""
    if position is None or position[0] is None:
        raise TryLater(NOT_YET, RETRY_AFTER_S)
    return AsOf(position[0], position[1])


_date: Callable[[Any], date] = lru_cache(maxsize=4096)(date.fromisoformat)
