"""Tells by the first times and delays of a file in what form and unit it has them."""

from collections import Counter
from collections.abc import Iterable
from itertools import compress
from operator import or_

from backend.sources.cells import STORED, dialect_of, may_lack_pm, other_unit, unless_empty
from backend.sources.kinds import Reading
from backend.sources.records import RecordBatch

ROWS = 500  # with times at both ends: so many tell
BATCHES = 50  # with departures that are read: months before 1995 have no minutes in the air
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
        has_minutes = self._filled["AIR_TIME"] > 0 or "AIR_TIME" not in self.places
        return self._batches >= BATCHES or (has_times and has_minutes)

    def filled(self) -> set[str]:
        """Return the names of the columns that have more than zeros in some rows."""
        return {name for name, rows in self._filled.items() if rows}

    def dialect(self) -> str:
        """Return how cells are written, of `cells.DIALECTS`."""
        cells = self._cells
        return STORED if self._is_of_ledger else dialect_of(cells["DEP_DELAY"], cells["DEP_TIME"])

    def other_unit(self) -> str:
        """Return why times or delays may not mean what they should; "" if they do."""
        return other_unit(*(self._cells[name] for name in _NAMES[:4]))

    def may_lack_pm(self) -> bool:
        """Return whether clocks may be of twelve hours without AM or PM."""
        return may_lack_pm([*self._cells["DEP_TIME"], *self._cells["ARR_TIME"]])


def _has_meaning(column: Iterable[object]) -> list[bool]:
    cells = list(column)
    # Zeros as usual programs write them: `is_zero` knows more forms, in five times the time.
    void = {v for v in set(cells) if unless_empty(v) is None or not str(v).strip(" 0.:")}
    return [cell not in void for cell in cells]
