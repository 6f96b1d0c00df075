"""Makes the 19 raw columns of a flight from the columns of a file, as a `Reading` says.

What a file has, is passed on; what it lacks, is derived or stays empty. Values are looked up, as
columns repeat few distinct ones, so a file that needs nothing derived costs next to nothing.

Some rows of real files say more of a flight than there can be: of a cancelled one minutes in the
air (48 of 43,978 rows of a sample of 1995), or, where a program filled empty cells, half a
departure of a cancelled one, or zeros for times and delays that do not exist. These cells are
emptied and counted, so that no cancelled or diverted flight is lost for a cell that means nothing,
or counts as punctual. Nothing else is repaired: zeros that may be true, a cancelled flight that
arrived, a clock beyond 2400 (ARR_TIME 2427 in 2003 and 2004) and negative minutes in the air are
bad rows, because nobody knows what was meant.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from contextlib import suppress
from datetime import date
from itertools import compress, count, repeat
from operator import eq

from backend.base.errors import InvalidFlight
from backend.chain.fields import FIELD_NAMES, FIRST_YEAR, POSITION, whole_number
from backend.chain.flight import EMPTY_WHEN_CANCELLED, year_and_weekday
from backend.chain.parse_cache import ParseCache
from backend.questions.carriers import carrier_number
from backend.sources.airports import Airport, Lookup, airport_of, city_names
from backend.sources.cells import (
    LOOSE,
    PARSERS,
    STATES,
    STORED,
    STRICT,
    clock,
    flag,
    is_zero,
    moment,
    number,
    unless_empty,
)
from backend.sources.dates import beside, is_short, iso_day
from backend.sources.kinds import CARRIER, DAY, DIVERTED, MONTH, Reading
from backend.sources.records import RecordBatch
from backend.sources.source import RawRows, Unusable

Column = Sequence[object]
_PARTS = ("YEAR", MONTH, DAY)  # of a day
_DAY = 24 * 60
_BLANK = frozenset({None, ""})
_DEPARTURE, _ARRIVAL = ("DEP_TIME", "DEP_DELAY"), ("ARR_TIME", "ARR_DELAY")
_TIMES = (*_DEPARTURE, *EMPTY_WHEN_CANCELLED)
_DOUBTFUL_ZERO = (
    "is 0 beside other zeros, so the flight may have been punctual, cancelled or diverted; empty "
    "the cells without a value, and write midnight as 2400"
)
_NOT_LEFT = (
    "is empty, although the flight was not cancelled; write the time, write 1 as CANCELLED, or "
    "remove the row if the flight has not left yet"
)
_DIVERTED = "must be empty: the flight was diverted"
_NO_ARRIVAL = (
    "has a value although ARR_TIME is empty, so the flight may not have arrived; empty it, or "
    "write ARR_TIME"
)
_NO_CLOCK = "is not on the flight's day, or no local time without a zone; write local times as hhmm"
_ICAO = "is an ICAO code; write the IATA code, such as JFK instead of KJFK"
_is_icao = re.compile("([KP][A-Z]|T[IJ])[A-Z]{2}").fullmatch  # of an airport of BTS


class Deriver:
    """Turns batches of one file into raw rows.

    reading: what the columns mean. is_strict: whether nothing is derived. emptied: how many cells
    that mean nothing were emptied, by field.
    """

    def __init__(
        self,
        reading: Reading,
        order: str | None,
        ledger: Lookup,
        dialect: str = LOOSE,
        filled: Set[str] = frozenset(),
    ) -> None:
        """order: as in `dates`. ledger: knows airports from flights that are stored.

        dialect: how cells are written, of `cells.DIALECTS`; if `STRICT`, nothing is derived.
        filled: of ARR_TIME and AIR_TIME, those that some rows of the file are known to have.
        """
        self.reading = reading
        self.is_strict = dialect == STRICT
        self._dialect = dialect
        self._ledger = ledger
        self._filled = filled
        self._sources = reading.sources
        self._days = ParseCache[object, object](lambda day: iso_day(day, order))
        self._calendar = ParseCache(_calendar)
        self._joined_days = ParseCache[tuple[object, ...], object](_joined_day)
        self._beside = ParseCache(beside)
        self._carriers = ParseCache[tuple[object, object], object](_carrier)
        self._codes = ParseCache(_code)
        self._airports = ParseCache[object, tuple[object, object, object]](self._airport)
        self._cities = ParseCache[tuple[object, object], object](self._city)
        self._flags = ParseCache(_flag)
        self._zeros = ParseCache(_zero)
        self.emptied: Counter[str] = Counter()

    def raw_rows(self, batch: RecordBatch, place: str = "", header: str | None = None) -> RawRows:
        """Return the flights of a batch, unchecked. place, header: as in `RawRows`."""
        columns: dict[str, Column] = {
            meaning: batch.columns[place] for meaning, place in self.reading.places.items()
        }
        if not self.is_strict:
            self._derive(columns)
        nothing = [None] * len(batch.numbers)
        raw = [columns.get(name, nothing) for name in FIELD_NAMES]
        rows = (batch.numbers, place, batch.faults, self._dialect, header, batch.text)
        return RawRows(raw, *rows)

    def _derive(self, columns: dict[str, Column]) -> None:
        columns["FL_DATE"] = self._dates(columns)
        for part, name in enumerate(("YEAR", "DAY_OF_WEEK")):
            if name not in columns:
                columns[name] = [self._calendar[day][part] for day in columns["FL_DATE"]]
        if self._sources["OP_CARRIER_AIRLINE_ID"]:
            pairs = zip(columns[CARRIER], columns["FL_DATE"], strict=True)
            columns["OP_CARRIER_AIRLINE_ID"] = [self._carriers[pair] for pair in pairs]
        for end in ("ORIGIN", "DEST"):
            self._add_place(columns, end)
        if self._sources["CANCELLED"]:
            departures = map(unless_empty, columns["DEP_TIME"])
            columns["CANCELLED"] = [int(time in _BLANK) for time in departures]
        columns["CANCELLED"] = list(map(self._flags.__getitem__, columns["CANCELLED"]))
        for name, delay in (_DEPARTURE, _ARRIVAL):
            if moment(str(next(filter(unless_empty, columns[name]), ""))):
                rows = zip(columns[name], columns[delay], columns["FL_DATE"], strict=True)
                columns[name] = [self._clock(*row, name == "ARR_TIME") for row in rows]
        if self._dialect != STORED:
            self._clear_times(columns)

    def _dates(self, columns: dict[str, Column]) -> Column:
        if "FL_DATE" not in columns:
            return self._joined(columns)
        days = list(map(self._days.__getitem__, columns["FL_DATE"]))
        if MONTH not in columns and DAY not in columns:
            return days
        if columns.keys() >= set(_PARTS) and any(isinstance(day, Unusable) for day in set(days)):
            both = zip(days, self._joined(columns), strict=True)
            days = [whole if is_short(day, whole) else day for day, whole in both]
        months, days_of_month = (columns.get(name, repeat(None)) for name in (MONTH, DAY))
        return list(map(self._beside.__getitem__, zip(days, months, days_of_month, strict=False)))

    def _clock(self, time: object, delay: object, day: object, margin: int) -> object:
        """Return a time without its day. margin: days to the scheduled one, at most."""
        if (match := moment(str(time))) is None:
            return time
        with suppress(ValueError):
            own, its = (date.fromisoformat(str(d)) for d in (self._days[match[1]], day))
            late, written = whole_number(str(number(unless_empty(delay)) or 0)), clock(match[2])
            is_near = late // _DAY - margin <= (own - its).days <= -(-late // _DAY) + margin
            if (is_near or own == its) and str(written).isdecimal():
                return written
        return Unusable(time, _NO_CLOCK)

    def _joined(self, columns: Mapping[str, Column]) -> Column:
        parts = zip(*(columns[name] for name in _PARTS), strict=True)
        return list(map(self._joined_days.__getitem__, parts))

    def _add_place(self, columns: dict[str, Column], end: str) -> None:
        """Add what a file lacks of code, city and state of an airport."""
        city, its_state, abbreviation = f"{end}_CITY_NAME", f"{end}_STATE_NM", f"{end}_STATE"
        if end in columns and self._dialect != STORED:
            columns[end] = list(map(self._codes.__getitem__, columns[end]))
            if not city_names().issuperset(columns.get(city, ())):
                pairs = zip(columns[end], columns[city], strict=True)
                columns[city] = [self._cities[pair] for pair in pairs]
        if self._sources[its_state] == (abbreviation,):
            columns[its_state] = columns[abbreviation]
        if end in columns and city in columns and its_state in columns:
            return
        keys = columns[end] if end in columns else columns[f"{end}_AIRPORT_ID"]
        airports = [self._airports[key] for key in keys]
        codes, cities, known_states = zip(*airports, strict=True) if airports else ((), (), ())
        states: Column = known_states
        if city in columns:  # an airport that nobody knows is in the state of its city
            names = zip(known_states, columns[city], strict=True)
            states = [
                s if isinstance(s, str) else STATES.get(str(name).rpartition(", ")[2], s)
                for s, name in names
            ]
        columns |= {end: codes, city: columns.get(city, cities)}
        columns[its_state] = columns.get(its_state, states)

    def _city(self, code_and_city: tuple[object, object]) -> object:
        """Return a city, as BTS spells it if only its state, case and blanks are otherwise."""
        code, city = code_and_city
        known = self._airports[code][1]
        name, _, state = map(re.escape, str(known).partition(", "))
        spelled = re.compile(rf"{name}(?:[\s,]+{state})?", re.IGNORECASE)
        return known if spelled.fullmatch(" ".join(str(city).split())) else city

    def _airport(self, key: object) -> tuple[object, object, object]:
        """Return code, city and state of an airport, given its code or DOT number."""
        name = str(key).strip().removesuffix(".0")
        airport: Airport | None = self._ledger(name) or airport_of(name)
        if airport is not None:
            return airport
        is_number = name.isdecimal()
        reason = (
            "is not a number in the table of airports; correct it, or write the airport's code of "
            "three letters"
            if is_number
            else "is an airport whose city and state are unknown to the file, the ledger and the "
            "table of airports; correct the code, or add columns with its city and state"
        )
        unknown = Unusable(key, reason)
        return unknown if is_number else key, unknown, unknown

    def _clear_times(self, columns: dict[str, Column]) -> None:
        """Empty times, delays and minutes that there cannot be; refuse flights that lack some."""
        flags = columns["CANCELLED"]
        times = {name: columns[name] for name in _TIMES if name in columns}
        diverted = list(map(eq, map(self._flags.__getitem__, columns.get(DIVERTED, ())), repeat(1)))
        lacks_departure, not_arrived = set[int](), list[int]()
        if not self.reading.is_of_fields:  # whoever posts a flight's fields decides what is empty
            lacks_departure = {row for row in self._blank(times["DEP_TIME"]) if flags[row] == 0}
            not_arrived = self._blank(times["ARR_TIME"])
        some_arrived = "ARR_TIME" in self._filled or len(not_arrived) < len(flags)
        without_arrival = {*compress(count(), diverted), *(not_arrived if some_arrived else ())}
        rows = {r for r in without_arrival if self._zeros[times["ARR_DELAY"][r]] is not None}
        rows.update(self._rows_with_zeros(times, diverted), lacks_departure)
        if not all(_BLANK.issuperset(compress(column, flags)) for column in times.values()):
            rows.update(compress(count(), map(eq, flags, repeat(1))))
        if not rows:
            return
        changed = {name: list(column) for name, column in times.items()}
        for row in sorted(rows):
            if flags[row] == 1:
                self._clear_cancelled(changed, row)
                continue
            if row in lacks_departure:
                changed["DEP_TIME"][row] = Unusable(None, _NOT_LEFT)
                continue
            is_diverted = bool(diverted) and diverted[row]
            if is_diverted:
                self._clear_arrival(changed, row)
            self._clear_filled(changed, row)
            delay = changed["ARR_DELAY"][row]
            if row in without_arrival and _zero(delay) is not None and type(delay) is not Unusable:
                reason = _DIVERTED if is_diverted else _NO_ARRIVAL
                changed["ARR_DELAY"][row] = Unusable(delay, reason)
        columns |= changed

    def _blank(self, column: Column) -> list[int]:
        """Return the rows in which a column is empty."""
        zeros = map(self._zeros.__getitem__, column)
        return [row for row, zero in enumerate(zeros) if zero is None]

    def _rows_with_zeros(self, times: Mapping[str, Column], diverted: Sequence[bool]) -> list[int]:
        """Return the rows in which zeros may stand for nothing.

        diverted: whether each flight was; empty if the file does not say it.
        """
        zeros, delays = self._zeros, times["ARR_DELAY"]
        arrivals, departures = times["ARR_TIME"], times["DEP_TIME"]
        minutes = times.get("AIR_TIME") or [None] * len(delays)
        empty = {minute for minute in set(minutes) if zeros[minute] is not False}
        have_minutes = "AIR_TIME" in self._filled or len(empty) < len(set(minutes))

        def may_mean_nothing(row: int, minute: object) -> bool | None:
            arrival = zeros[arrivals[row]]
            if zeros[minute] or arrival or zeros[departures[row]]:
                return True
            # Others have minutes in the air or a time of arrival, if they arrived.
            return not diverted and zeros[delays[row]] and (have_minutes or arrival is None)

        without = compress(enumerate(minutes), map(empty.__contains__, minutes))
        return [row for row, minute in without if may_mean_nothing(row, minute)]

    def _clear_cancelled(self, columns: Mapping[str, list[object]], row: int) -> None:
        departure = [_zero(columns[name][row]) for name in _DEPARTURE]
        is_filled = None in departure and not self.reading.is_of_fields
        has_left = False in departure and not (is_filled and self._are_valid(columns, row))
        has_arrived = any(_zero(columns[name][row]) is False for name in _ARRIVAL)
        for name, column in columns.items():
            if (name in _DEPARTURE and not has_left) or (name == "AIR_TIME" and not has_arrived):
                is_void = unless_empty(column[row]) not in _BLANK
            else:
                is_void = name not in _DEPARTURE and is_zero(column[row])
            if is_void:
                self._empty(name, column, row)

    def _are_valid(self, columns: Mapping[str, list[object]], row: int) -> bool:
        """Return whether what a row has of a departure is a time or delay."""
        parsers = PARSERS[self._dialect]
        try:
            for name in _DEPARTURE:
                parsers[POSITION[name]](columns[name][row])
        except InvalidFlight:
            return False
        return True

    def _clear_filled(self, columns: Mapping[str, list[object]], row: int) -> None:
        """Empty what is no time in a flight with zeros; one that may have arrived is a bad row."""
        cells = {name: columns[name][row] for name in (*_ARRIVAL, *_DEPARTURE)}
        has_minutes = "AIR_TIME" in columns and is_zero(columns["AIR_TIME"][row])
        if _zero(cells["ARR_DELAY"]) is False:  # it arrived, and was in the air for a while
            if has_minutes:
                self._empty("AIR_TIME", columns["AIR_TIME"], row)
            return
        doubtful = [name for name, cell in cells.items() if is_zero(cell)]
        if any(_zero(cells[name]) is False for name in _DEPARTURE):
            has_arrived = not has_minutes or _zero(cells["ARR_TIME"]) is False
            doubtful = ["ARR_DELAY"] if has_arrived and "ARR_DELAY" in doubtful else []
        if doubtful:
            columns[doubtful[-1]][row] = Unusable(cells[doubtful[-1]], _DOUBTFUL_ZERO)
        elif has_minutes:
            self._clear_arrival(columns, row)

    def _clear_arrival(self, columns: Mapping[str, list[object]], row: int) -> None:
        for name in EMPTY_WHEN_CANCELLED:
            if name in columns and is_zero(columns[name][row]):
                self._empty(name, columns[name], row)

    def _empty(self, name: str, column: list[object], row: int) -> None:
        column[row] = None
        self.emptied[name] += 1


def _zero(value: object) -> bool | None:
    """Return whether a cell is zero; None if it is empty."""
    return None if unless_empty(value) in _BLANK else is_zero(value)


def _flag(value: object) -> object:
    meaning = flag(value.value if isinstance(value, Unusable) else value)
    return value if meaning is None else meaning


def _joined_day(parts: tuple[object, ...]) -> object:
    """Return a day as YYYY-MM-DD, given year, month and day of the month."""
    try:
        year, month, day = (whole_number(str(number(part)).strip()) for part in parts)
    except ValueError:
        return iso_day(" ".join(map(str, reversed(parts))), None)  # 3 January 2008
    return f"{year:04d}-{month:02d}-{day:02d}"


def _code(value: object) -> object:
    """Return the code of an airport in capitals; an `Unusable` if it is that of the ICAO."""
    code = str(value).strip().upper()
    if _is_icao(code):
        return Unusable(value, _ICAO)
    is_code = len(code) == 3 and code.isalpha() and unless_empty(value)  # nan is no airport
    return code if is_code else value


def _calendar(day: object) -> tuple[int, int]:
    """Return the year and weekday of a day that is derived or read."""
    try:
        return year_and_weekday(str(day))
    except ValueError:
        return (FIRST_YEAR, 1)  # the row is refused for its FL_DATE, so these must only be valid


def _carrier(code_and_day: tuple[object, object]) -> object:
    """Return the DOT number of the carrier that had this code on this day."""
    code, day = code_and_day
    year = str(day)[:4]
    found = carrier_number(str(code).strip().upper(), int(year)) if year.isdecimal() else None
    reason = f"is not the code of a known carrier on {day}; correct it, or write the DOT number"
    return Unusable(code, f"{reason} in a column OP_CARRIER_AIRLINE_ID") if found is None else found
