"""Makes the 19 raw columns of a flight from the columns of a file, as a `Reading` says.

What a file has, is passed on; what it lacks, is derived or stays empty. Values are looked up, as
columns repeat few distinct ones, so a file that needs nothing derived costs next to nothing.

Some rows of real files say more of a flight than there can be: of a cancelled one minutes in the
air (48 of 43,978 rows of a sample of 1995), or, where a program filled empty cells, half a
departure of a cancelled one, or zeros for times and delays that do not exist. These cells are
emptied and counted, so that no cancelled or diverted flight is lost for a cell that means nothing,
or counts as punctual. So are clocks beyond 2400 and impossible minutes in the air in a few rows
(of EV and OH in 2003 and 2004), beside the delays that say when these flights arrived, in files
that say which were diverted. Nothing else is repaired: zeros that may be true and a cancelled
flight that arrived are bad rows, because nobody knows what was meant.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import date
from itertools import repeat

from backend.chain.fields import FIELD_NAMES, FIRST_YEAR, whole_number
from backend.chain.flight import EMPTY_WHEN_CANCELLED, year_and_weekday
from backend.chain.parse_cache import ParseCache
from backend.questions.carriers import carrier_number
from backend.sources.airports import Airport, Lookup, airport_of, city_names
from backend.sources.cells import (
    LOOSE,
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
from backend.sources.dates import beside, is_short, iso_day, readings
from backend.sources.kinds import CARRIER, DAY, DIVERTED, MONTH, Reading, plain
from backend.sources.records import RecordBatch
from backend.sources.source import RawRows, Unusable

Column = Sequence[object]
_PARTS = ("YEAR", MONTH, DAY)  # of a day
_DAY = 24 * 60
_BLANK = frozenset({None, ""})
_DEPARTURE, _ARRIVAL = ("DEP_TIME", "DEP_DELAY"), ("ARR_TIME", "ARR_DELAY")
_TIMES = (*_DEPARTURE, *EMPTY_WHEN_CANCELLED)
_FEW = 20  # one of so many rows, at most; in more of them, another column may be below the title
_BEYOND_2400 = re.compile(r"(24(?!00)|2[5-9])[0-5]\d(\.0*)?", re.ASCII)
_NO_MINUTES = re.compile(r"(-\d+|[3-9]\d{3})(\.0*)?", re.ASCII)
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
_NO_DEPARTURE = Unusable(
    "",
    "is unknown: the flight has no departure but arrived; write the time of departure, or empty "
    "the arrival if it was cancelled",
)
_NO_FLAG = "must be 1 or True for a cancelled flight, and 0 or False for any other"
_NO_CLOCK = "is not on the flight's day, or no local time without a zone; write local times as hhmm"
_ICAO = "is an ICAO code; write the IATA code, such as JFK instead of KJFK"
_is_icao = re.compile("([KP][A-Z]|T[IJ])[A-Z]{2}").fullmatch  # of an airport of BTS


class Deriver:
    """Turns batches of one file into raw rows.

    reading: what the columns mean. is_strict: whether nothing is derived. emptied: how many cells
    that cannot be right were emptied, by field.
    """

    def __init__(
        self,
        reading: Reading,
        order: str | None,
        ledger: Lookup,
        dialect: str = LOOSE,
        *,
        have_minutes: bool = False,
    ) -> None:
        """order: as in `dates`. ledger: knows airports from flights that are stored.

        dialect: how cells are written, of `cells.DIALECTS`; if `STRICT`, nothing is derived.
        have_minutes: whether some rows of the file are known to have minutes in the air.
        """
        self.reading = reading
        self.is_strict = dialect == STRICT
        self.dialect = dialect
        self._ledger = ledger
        self._have_minutes = have_minutes
        self._sources = reading.sources
        self._days = ParseCache[object, object](lambda day: iso_day(day, order))
        self._moments = ParseCache[object, Mapping[str, date]](readings)
        self._calendar = ParseCache(_calendar)
        self._joined_days = ParseCache[tuple[object, ...], object](_joined_day)
        self._beside = ParseCache(beside)
        self._carriers = ParseCache[tuple[object, object], object](_carrier)
        self._codes = ParseCache(_code)
        self._airports = ParseCache[object, tuple[object, object, object]](self._airport)
        self._cities = ParseCache[tuple[object, object], object](self._city)
        self._flags = ParseCache(_flag)
        self._zeros = ParseCache(_zero)
        self._beyond_2400 = ParseCache(_matching(_BEYOND_2400))
        self._no_minutes = ParseCache(_matching(_NO_MINUTES))
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
        rows = (batch.numbers, place, batch.faults, self.dialect, header, batch.text)
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
            cells = (columns[name] for name in ("DEP_TIME", *_ARRIVAL))
            zeros = (map(self._zeros.__getitem__, column) for column in cells)
            columns["CANCELLED"] = list(map(_lacks_departure, *zeros))
        columns["CANCELLED"] = list(map(self._flags.__getitem__, columns["CANCELLED"]))
        for name, delay in (_DEPARTURE, _ARRIVAL):
            if moment(str(next(filter(unless_empty, columns[name]), ""))):
                rows = zip(columns[name], columns[delay], columns["FL_DATE"], strict=True)
                columns[name] = [self._clock(*row, name == "ARR_TIME") for row in rows]
        if self.dialect != STORED:
            self._clear_times(columns)
            if DIVERTED in columns:  # else the delay beside them may be of no arrival
                self._clear_impossible(columns)

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
            its, written = date.fromisoformat(str(day)), clock(match[2])
            late = whole_number(str(number(unless_empty(delay)) or 0))
            near = {0, *range(late // _DAY - margin, -(-late // _DAY) + margin + 1)}
            # Only one of two days that may be meant is near, and the clock is the same in both.
            is_near = any((own - its).days in near for own in self._moments[match[1]].values())
            if is_near and str(written).isdecimal():
                return written
        return Unusable(time, _NO_CLOCK)

    def _joined(self, columns: Mapping[str, Column]) -> Column:
        parts = zip(*(columns[name] for name in _PARTS), strict=True)
        return list(map(self._joined_days.__getitem__, parts))

    def _add_place(self, columns: dict[str, Column], end: str) -> None:
        """Add what a file lacks of code, city and state of an airport."""
        city, its_state, abbreviation = f"{end}_CITY_NAME", f"{end}_STATE_NM", f"{end}_STATE"
        if end in columns and self.dialect != STORED:
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
        """Return a city, as BTS spells it if it has the same letters and any form of its state."""
        code, city = code_and_city
        known = self._airports[code][1]
        if not isinstance(known, str):
            return city
        name, _, state = known.partition(", ")
        spellings = {plain(name + end) for end in ("", state, STATES.get(state, state))}
        text = " ".join(str(city).split())
        return known if text.isprintable() and plain(text) in spellings else city

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
        flags, nothing = columns["CANCELLED"], [None] * len(columns["CANCELLED"])
        times = {name: columns.get(name, nothing) for name in _TIMES}
        zeros = {name: list(map(self._zeros.__getitem__, column)) for name, column in times.items()}
        diverted: Column = nothing
        if DIVERTED in columns:
            diverted = [self._flags[cell] == 1 for cell in columns[DIVERTED]]
        rows = list(zip(flags, diverted, *zeros.values(), strict=True))
        file = (self.reading.is_of_fields, self._have_minutes or False in zeros["AIR_TIME"])
        changes = {row: _changes(*file, *row) for row in set(rows)}
        if not any(changes.values()):
            return
        changed = {name: list(column) for name, column in times.items()}
        for place, row in enumerate(rows):
            for name, reason in changes[row].items():
                if reason:
                    changed[name][place] = Unusable(unless_empty(times[name][place]), reason)
                else:
                    changed[name][place] = None
                    self.emptied[name] += 1
        columns |= changed

    def _clear_impossible(self, columns: dict[str, Column]) -> None:
        """Empty a few clocks beyond 2400, and minutes that no flight has, beside a delay."""
        clocks = ((*end, self._beyond_2400) for end in (_DEPARTURE, _ARRIVAL))
        for name, delay, is_odd in (*clocks, ("AIR_TIME", "ARR_DELAY", self._no_minutes)):
            column = list(columns.get(name, ()))
            odd = set(filter(is_odd.__getitem__, set(column)))
            rows = zip(column, columns[delay], strict=True) if odd else ()
            void = [cell in odd and self._zeros[beside] is not None for cell, beside in rows]
            if 0 < _FEW * sum(void) <= len(column):
                pairs = zip(column, void, strict=True)
                columns[name] = [None if is_void else cell for cell, is_void in pairs]
                self.emptied[name] += sum(void)


def _changes(
    is_of_fields: bool,
    have_minutes: bool,
    cancelled: object,
    diverted: bool | None,
    *cells: bool | None,
) -> Mapping[str, str]:
    """Return the cells of a row that cannot stay, and what is wrong with each; "" empties it.

    is_of_fields: whether the file has a flight's fields alone; whoever posts these decides what is
    empty. have_minutes: whether others have minutes in the air. diverted: None if the file does not
    say it of any flight. cells: for each of `_TIMES` whether it is zero; None if it is empty.
    """
    zeros = {name for name, is_zero in zip(_TIMES, cells, strict=True) if is_zero}
    values = {name for name, is_zero in zip(_TIMES, cells, strict=True) if is_zero is False}
    full = zeros | values
    if cancelled == 1:
        return dict.fromkeys(_void_if_cancelled(zeros, values, is_of_fields=is_of_fields), "")
    if cancelled == 0 and "DEP_TIME" not in full and not is_of_fields:
        return {"DEP_TIME": _NOT_LEFT}
    lacks_arrival = "ARR_TIME" not in full and not is_of_fields
    has_odd_delay = "ARR_DELAY" in full and (lacks_arrival or diverted)
    # Others have minutes in the air or a time of arrival, if they arrived.
    is_without = have_minutes or "ARR_TIME" not in full
    has_zeros = zeros & {"AIR_TIME", "ARR_TIME", "DEP_TIME"} or (
        diverted is None and "ARR_DELAY" in zeros and is_without
    )
    if not has_odd_delay and ("AIR_TIME" in values or not has_zeros):
        return {}
    void = zeros.difference(_DEPARTURE if diverted else _TIMES)
    # A flight that left, arrived and was not diverted: before 1995 none has minutes in the air.
    is_certain = diverted is False and {"DEP_TIME", "ARR_TIME"} <= values
    changes = dict.fromkeys(void, "") | _of_zeros(zeros - void, values, is_certain=is_certain)
    if has_odd_delay and "ARR_DELAY" not in changes:
        changes["ARR_DELAY"] = _DIVERTED if diverted else _NO_ARRIVAL
    return changes


def _void_if_cancelled(zeros: set[str], values: set[str], *, is_of_fields: bool) -> set[str]:
    """Return the cells of a cancelled flight that mean nothing; it may have left the gate."""
    departure = (zeros | values).intersection(_DEPARTURE)
    has_left = departure - zeros and (is_of_fields or len(departure) == len(_DEPARTURE))
    void = (zeros if values.intersection(_ARRIVAL) else zeros | values) - departure
    return void if has_left else void | departure


def _of_zeros(zeros: set[str], values: set[str], *, is_certain: bool) -> dict[str, str]:
    """Return what is wrong with zeros; those of a flight that may have arrived are doubtful.

    is_certain: whether the flight is known to have arrived.
    """
    has_no_minutes = "AIR_TIME" in zeros
    if is_certain or "ARR_DELAY" in values:  # it arrived, and was in the air for a while
        return {"AIR_TIME": ""} if has_no_minutes else {}
    doubtful = [name for name in (*_ARRIVAL, *_DEPARTURE) if name in zeros]
    if values.intersection(_DEPARTURE):
        has_arrived = not has_no_minutes or "ARR_TIME" in values
        doubtful = ["ARR_DELAY"] if has_arrived and "ARR_DELAY" in zeros else []
    if doubtful:
        return {doubtful[-1]: _DOUBTFUL_ZERO}
    is_void = has_no_minutes or "ARR_DELAY" not in zeros
    return dict.fromkeys(zeros.difference(_DEPARTURE) if is_void else (), "")


def _matching(pattern: re.Pattern[str]) -> Callable[[object], bool]:
    return lambda value: pattern.fullmatch(str(clock(value))) is not None


def _zero(value: object) -> bool | None:
    """Return whether a cell is zero; None if it is empty."""
    return None if unless_empty(value) in _BLANK else is_zero(value)


def _lacks_departure(departure: bool | None, *arrival: bool | None) -> object:
    """Return whether a flight was cancelled, from cells as `_zero` has them.

    An `Unusable` if it arrived.
    """
    if departure is None and False in arrival:
        return _NO_DEPARTURE
    return int(departure is None)


def _flag(value: object) -> object:
    meaning = flag(value.value if isinstance(value, Unusable) else value)
    if meaning is None and isinstance(value, str) and value.strip():
        return Unusable(value, _NO_FLAG)
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
    number = carrier_number(str(code).strip().upper(), int(year)) if year.isdecimal() else None
    reason = f"is not the code of a known carrier on {day}; correct it, or write the DOT number"
    return (
        Unusable(code, f"{reason} in a column OP_CARRIER_AIRLINE_ID") if number is None else number
    )
