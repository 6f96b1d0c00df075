"""Reads CSV files of the US Bureau of Transportation Statistics (BTS).

Its table is "Reporting Carrier On-Time Performance". Its columns have two sets of names: with
`FL_DATE` where the user picks fields (and in this project), with `FlightDate` in the ready-made
monthly zip. Columns may be in any order, and others are ignored. YEAR and DAY_OF_WEEK may be
absent, because they follow from FL_DATE; the airport ids may be absent, and stay empty then.
Nothing is repaired: a row that contradicts itself is a bad row.
"""

from collections.abc import Generator, Sequence
from pathlib import Path

from backend.base.errors import shown
from backend.chain.fields import FIELD_NAMES
from backend.chain.parse_cache import ParseCache
from backend.sources.formats import opened_records
from backend.sources.packed import PackedFile, SentFile, files_of
from backend.sources.records import NeedsNoReason
from backend.sources.source import RawRows, year_and_weekday

MONTHLY_NAMES: dict[str, str] = {
    "Year": "YEAR",
    "DayOfWeek": "DAY_OF_WEEK",
    "FlightDate": "FL_DATE",
    "DOT_ID_Reporting_Airline": "OP_CARRIER_AIRLINE_ID",
    "Flight_Number_Reporting_Airline": "OP_CARRIER_FL_NUM",
    "OriginAirportID": "ORIGIN_AIRPORT_ID",
    "Origin": "ORIGIN",
    "OriginCityName": "ORIGIN_CITY_NAME",
    "OriginStateName": "ORIGIN_STATE_NM",
    "DestAirportID": "DEST_AIRPORT_ID",
    "Dest": "DEST",
    "DestCityName": "DEST_CITY_NAME",
    "DestStateName": "DEST_STATE_NM",
    "DepTime": "DEP_TIME",
    "DepDelay": "DEP_DELAY",
    "ArrTime": "ARR_TIME",
    "ArrDelay": "ARR_DELAY",
    "Cancelled": "CANCELLED",
    "AirTime": "AIR_TIME",
}
_FIELD_OF = MONTHLY_NAMES | {name: name for name in FIELD_NAMES}
_DERIVED = ("YEAR", "DAY_OF_WEEK")
_MAY_BE_ABSENT = {*_DERIVED, "ORIGIN_AIRPORT_ID", "DEST_AIRPORT_ID"}

Columns = dict[str, Sequence[object]]


class BtsFile:
    """Reads the BTS file at a path, plain or packed as `packed` allows, or in a request.

    needs_no_reason: as in `records`.
    """

    def __init__(
        self, place: Path | SentFile, needs_no_reason: NeedsNoReason = lambda: False
    ) -> None:
        self._needs_no_reason = needs_no_reason
        self._files = [place] if isinstance(place, SentFile) else files_of(place)
        self.label = place.label if isinstance(place, SentFile) else place.name or str(place)
        self.unit = "line"
        self._done = 0

    def progress(self) -> float:
        """Return the share of the files read, 0 to 1."""
        current = self._files[self._done : self._done + 1]
        return (self._done + sum(file.progress() for file in current)) / len(self._files)

    def check(self) -> None:
        """Raise InvalidInput unless the files open and have the columns of a flight."""
        for file in self._files:
            with opened_records(file) as records:
                self._places(file, records.titles)

    def rows(self) -> Generator[RawRows, None, None]:
        """Yield all rows. Raises InvalidInput if a file is unreadable or lacks columns."""
        calendar = ParseCache(year_and_weekday)
        for done, file in enumerate(self._files):
            self._done = done
            with opened_records(file, self._needs_no_reason) as records:
                self.unit = records.unit
                places = self._places(file, records.titles)
                for batch in records.batches:
                    columns = {name: batch.columns[place] for name, place in places.items()}
                    _complete(columns, len(batch.numbers), calendar)
                    raw = [columns[name] for name in FIELD_NAMES]
                    yield RawRows(raw, batch.numbers, batch.faults, file.part, batch.hopeless)
        self._done = len(self._files)

    @staticmethod
    def _places(file: PackedFile, header: Sequence[str]) -> dict[str, int]:
        """Map each field's name to the number of its column."""
        places: dict[str, int] = {}
        for position, title in enumerate(header):
            name = _FIELD_OF.get(title)
            if name in places:
                raise file.problem(f"has more than one column for {name}")
            if name is not None:
                places[name] = position
        missing = [n for n in FIELD_NAMES if n not in places and n not in _MAY_BE_ABSENT]
        if missing:
            raise file.problem(_missing_reason(missing, places, header))
        return places


def _missing_reason(missing: list[str], places: dict[str, int], header: Sequence[str]) -> str:
    if not places:
        return f"does not have any column of a flight; its first line is {shown(', '.join(header))}"
    known_columns = ", ".join(header[position] for position in places.values())
    return f"lacks the columns {', '.join(missing)}; it has {known_columns}"


def _complete(columns: Columns, count: int, calendar: ParseCache[object, tuple[int, int]]) -> None:
    """Add the columns that the file does not have."""
    for name in FIELD_NAMES:
        if name in columns:
            continue
        if name in _DERIVED:
            part = _DERIVED.index(name)
            columns[name] = [calendar[day][part] for day in columns["FL_DATE"]]
        else:
            columns[name] = [None] * count
