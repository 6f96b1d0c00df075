"""Reads a batch of flights from the body of a request.

It is read as files are, packed or not, and is what its bytes say. Only NDJSON with the names of a
flight's fields has the rules of a single flight. Blank lines are skipped; rows are numbered by
their lines. What the service exported can be posted back.

Whatever the body holds, time and memory grow with its bytes and no faster: it is taken apart piece
by piece, and of the rows that are wrong only the first `MOST_ERRORS` are described.
"""

from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field

from backend.base.errors import BadRow, excerpt
from backend.chain.flight import MOST_ERRORS, Flight
from backend.sources.airports import Lookup, no_airport
from backend.sources.flight_file import FlightFile
from backend.sources.packed import SentFile
from backend.sources.source import Understanding, Validator, is_misdated, state_of

CSV, NDJSON, ANY = "csv", "ndjson", ""
REMEMBERED_VALUES = 2000  # for each field, in every worker

_validator = Validator(REMEMBERED_VALUES)


@dataclass(slots=True)
class Batch:
    """The flights of a batch, in their order, and its bad rows.

    errors: what is wrong with the first `MOST_ERRORS` of the bad rows. rejected: how many bad rows
    there are. misdated: how many of them `is_misdated`. states: what became of the flights in them,
    by `source.state_of`. rows_read: how many rows were read. is_whole: whether these are all rows.
    understood: what the body was taken for.
    """

    flights: list[Flight] = field(default_factory=list)
    errors: list[BadRow] = field(default_factory=list)
    rejected: int = 0
    misdated: int = 0
    states: Counter[str] = field(default_factory=Counter)
    rows_read: int = 0
    is_whole: bool = True
    understood: Understanding | None = None


def batch_of(
    body: bytes,
    kind: str,
    most_flights: int,
    *,
    dates: str = "",
    ledger: Lookup = no_airport,
    stops: bool = True,
    pause: Callable[[], None] = lambda: None,
) -> Batch:
    """Read the flights in `body`. kind: `NDJSON` if it must be that.

    dates, ledger: as in `FlightFile`. pause: called again and again meanwhile; what it raises ends
    the work. It is read no further when there are more flights than `most_flights`, or more bad
    rows; or, if `stops`, as many bad rows as `MOST_ERRORS`.

    Raises InvalidFlight or BadRow if the body cannot be read at all, because it is no table of
    flights or not UTF-8.
    """
    batch = Batch()
    file = SentFile(body, is_strict=kind == NDJSON, pause=pause)
    source = FlightFile(file, dates=dates, ledger=ledger)
    with closing(source.rows()) as rows:
        for raw in rows:
            is_long = max(len(batch.flights), batch.rejected) > most_flights
            if is_long or (stops and batch.rejected >= MOST_ERRORS):
                batch.is_whole = False
                break
            columns, bad = _validator.judge(raw)
            batch.flights.extend(zip(*columns, strict=True))
            for error in bad[: MOST_ERRORS - len(batch.errors)]:
                error.value = excerpt(error.value)  # a line may be long, what it holds still larger
                batch.errors.append(error)
            batch.states.update(state_of(raw, problem) for problem in bad)
            batch.rejected += len(bad)
            batch.misdated += sum(map(is_misdated, bad))
            batch.rows_read += len(raw.faults) + len(raw.lines)
    batch.understood = source.understood()
    return batch
