"""Tells by the first times and delays of a file in what form and unit it has them."""

import re
from collections import Counter
from collections.abc import Iterable
from itertools import compress
from operator import or_

from backend.base.errors import shown
from backend.sources.cells import DECIMALS, LOOSE, STORED, TIMES, clock, thousands, unless_empty
from backend.sources.kinds import Reading
from backend.sources.records import RecordBatch

ROWS = 500  # with times at both ends: so many tell
BATCHES = 50  # with departures that are read: months before 1995 have no minutes in the air
_TELLING = 5  # different delays, which are all full minutes in seconds by chance in no file
_TIME_WITH_DECIMALS = re.compile(r"\d{3,4}([.,])0+", re.ASCII)
_WHOLE = re.compile(r"([+-]?\d+)(\.0*)?", re.ASCII)
_BEFORE_CLOCK = re.compile(r"(0 days|\d[-/.\d]+)[ T](?=\d)", re.ASCII)
_NAMES = ("DEP_DELAY", "DEP_TIME", "ARR_DELAY", "ARR_TIME", "AIR_TIME")


class TimesOfFile:
    """Holds the times and delays of some flights that departed.

    places: name -> the position of its column.
    """

    def __init__(self, reading: Reading, batches: Iterable[RecordBatch]) -> None:
        """batches: the first ones of the file, or others of it."""
        self.places = {name: reading.places[name] for name in _NAMES if name in reading.places}
        self._filled = Counter[str]()
        self._is_of_ledger = reading.kind.is_of_ledger
        self._cells: dict[str, list[object]] = {name: [] for name in _NAMES}
        self._batches = self._rows = 0
        for batch in batches:
            self.add(batch)

    def add(self, batch: RecordBatch) -> None:
        """Add the flights of a batch that departed: 0 with a delay of 0 may stand for nothing."""
        self._rows += len(batch.numbers)
        columns = {name: batch.columns[place] for name, place in self.places.items()}
        has = {name: _has_meaning(column) for name, column in columns.items()}
        self._filled.update({name: sum(flags) for name, flags in has.items()})
        departed = list(map(or_, has["DEP_TIME"], has["DEP_DELAY"]))
        self._batches += any(departed)
        is_kept = has["ARR_TIME"] if len(self._cells["DEP_TIME"]) > ROWS else departed
        for name, column in columns.items():
            self._cells[name] += compress(column, is_kept)

    def are_enough(self) -> bool:
        """Return whether the rows tell, or no more of them need be read.

        A file that is sorted may begin with thousands of cancelled or diverted flights.
        """
        wanted = min(ROWS, self._rows // 2)
        has_times = min(self._filled["DEP_TIME"], self._filled["ARR_TIME"]) >= wanted
        has_minutes = self.have_minutes() or "AIR_TIME" not in self.places
        return self._batches >= BATCHES or (has_times and has_minutes)

    def have_minutes(self) -> bool:
        """Return whether some rows have minutes in the air, other than zeros."""
        return self._filled["AIR_TIME"] > 0

    def dialect(self) -> str:
        """Return how cells are written, of `cells.DIALECTS`."""
        cells = self._cells
        return STORED if self._is_of_ledger else dialect_of(cells["DEP_DELAY"], cells["DEP_TIME"])

    def other_unit(self) -> str:
        """Return why times or delays may not mean what they should; "" if they do.

        Those of the arrivals of the same flights may leave no doubt about those of the departures.
        What an export of a ledger has was judged before.
        """
        if self._is_of_ledger:
            return ""
        delays, times, late, arrivals = (self._cells[name] for name in _NAMES[:4])
        texts = _texts(times)
        for row in TIMES:
            odd = [text for text in texts if re.fullmatch(row["some"], text)]
            is_each_so = all(re.fullmatch(row["all"], text) for text in texts)
            if len(odd) > row["share"] * len(texts) and len(texts) >= row["least"] and is_each_so:
                if row["unless"] == "earlier":
                    is_certain = _are_minutes(times, arrivals)
                else:
                    is_certain = any(re.fullmatch(row["unless"], text) for text in _texts(arrivals))
                if not is_certain:
                    return f"has times such as {shown(odd[-1])}, {row['reason']}"
        minutes, others = ({n for n in map(_whole, column) if n} for column in (delays, late))
        is_certain = 2 * sum(delay % 60 > 0 for delay in others) > len(others)
        if len(minutes) >= _TELLING and not any(d % 60 for d in minutes) and not is_certain:
            return (
                f"has only delays that are multiples of 60, such as {max(minutes)}, so they may be "
                "seconds; write delays in minutes"
            )
        return ""

    def may_lack_pm(self) -> bool:
        """Return whether some clocks may be of twelve hours, and none shows that they are not."""
        texts = _texts([*self._cells["DEP_TIME"], *self._cells["ARR_TIME"]])
        return any(
            any(re.fullmatch(row["all"], text) for text in texts)
            and not any(re.fullmatch(row["unless"], text) for text in texts)
            for row in TIMES
            if row.get("may_lack_pm")
        )


def _has_meaning(column: Iterable[object]) -> list[bool]:
    cells = list(column)
    # Zeros as usual programs write them: `is_zero` knows more forms, in five times the time.
    void = {v for v in set(cells) if unless_empty(v) is None or not str(v).strip(" 0.:")}
    return [cell not in void for cell in cells]


def dialect_of(delays: Iterable[object], times: Iterable[object] = ()) -> str:
    """Return `DECIMALS` if some delays show three decimals, as none is so many thousands.

    Or what stands before the decimals of a time behind hhmm, as hours are no more than 24.
    """
    matches = (thousands(cell.strip()) for cell in delays if isinstance(cell, str))
    if any(match and (int(match[1]) == 0 or abs(int(match[1])) > 10) for match in matches):
        return DECIMALS
    texts = (_TIME_WITH_DECIMALS.fullmatch(time.strip()) for time in times if isinstance(time, str))
    return min((match[1] for match in texts if match), default=LOOSE)


def _texts(values: Iterable[object]) -> list[str]:
    """Return the different cells of a column that are not empty, and of times with a day these."""
    texts = {str(value).strip() for value in map(unless_empty, values) if value is not None}
    return sorted({_BEFORE_CLOCK.sub("", text) for text in texts})


def _whole(value: object) -> int | None:
    match = _WHOLE.fullmatch(str(clock(value)))
    return int(match[1]) if match else None


def _are_minutes(times: Iterable[object], arrivals: Iterable[object]) -> bool:
    """Return whether times up to 24 are minutes after midnight.

    If they were hours, flights would arrive before they leave, for the most part.
    """
    pairs = zip(map(_whole, times), map(_whole, arrivals), strict=False)
    both = [(time, arrival) for time, arrival in pairs if time is not None and arrival]
    return 2 * sum(24 < arrival < 100 * time for time, arrival in both) > len(both)
