"""Valid flights, cheaply, and what a chain on disk holds of them."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from backend.base.settings import Settings
from backend.chain.block_rules import check
from backend.chain.fields import FIELD_NAMES, FIELDS, POSITION, Value
from backend.chain.flight import Flight, as_mapping, flight_of
from backend.chain.state import empty_state
from backend.sealing.importer import Tally, Watcher, import_all
from backend.sources import Source
from backend.storage.block_store import BlockStore

EXAMPLE = flight_of({field.name: field.example for field in FIELDS})
_NUMBER, _CARRIER = POSITION["OP_CARRIER_FL_NUM"], POSITION["OP_CARRIER_AIRLINE_ID"]
_NUMBERS = 99_999  # flight numbers, and DOT numbers of carriers, go from 1 to this


def flight(serial: int) -> Flight:
    """A valid flight of its own for every `serial` from 0 on (up to ten thousand million)."""
    carrier, number = divmod(serial, _NUMBERS)
    values = list(EXAMPLE)
    values[_NUMBER], values[_CARRIER] = number + 1, carrier + 1
    return tuple(values)


def changed(flight: Flight, **values: Value) -> Flight:
    """A flight with some other values; on another day with its year and weekday."""
    if "FL_DATE" in values:
        day = date.fromisoformat(str(values["FL_DATE"]))
        values = {"YEAR": day.year, "DAY_OF_WEEK": day.isoweekday(), **values}
    return tuple({**as_mapping(flight), **values}[name] for name in FIELD_NAMES)


def flights(count: int, start: int = 0) -> list[Flight]:
    """`count` different valid flights, those with the serials from `start` on."""
    return [flight(serial) for serial in range(start, start + count)]


def import_flights(settings: Settings, source: Source, watcher: Watcher | None = None) -> Tally:
    """Import a single source. Returns what was done with it."""
    return import_all(settings, [source], watcher or Watcher())[0]


def csv_of(rows: Iterable[Sequence[object]]) -> str:
    """`rows` (values in the order of the fields) as a BTS file."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(FIELD_NAMES)
    writer.writerows(rows)
    return text.getvalue()


def csv_of_days(flights: Iterable[Mapping[str, Value]], days: Iterable[str]) -> str:
    """Flights on these days, written like this and without weekdays, as a CSV file."""
    names = [name for name in FIELD_NAMES if name not in {"YEAR", "DAY_OF_WEEK"}]
    text = io.StringIO()
    writer = csv.DictWriter(text, names, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows({**row, "FL_DATE": day} for row, day in zip(flights, days, strict=True))
    return text.getvalue()


@dataclass(frozen=True, slots=True)
class OnDisk:
    """The transactions of a chain in order: flight and acceptance time; id is the position.

    sizes: how many transactions each block has, without genesis.
    """

    flights: list[Flight]
    timestamps: list[int]
    sizes: list[int]


def on_disk(folder: Path) -> OnDisk:
    """Read every block of the chain in `folder`, and check it by the rules."""
    contents = OnDisk([], [], [])
    with closing(BlockStore(folder)) as store:
        state = empty_state(store.block(0).header.difficulty_bits)
        for height in range(store.height() + 1):
            block = store.block(height)
            columns, state = check(block, state), state.applied(block)
            if not height:
                continue
            rows = zip(*(columns[name].expanded() for name in FIELD_NAMES), strict=True)
            contents.flights.extend(rows)
            contents.timestamps.extend(int(time or 0) for time in columns["timestamp"].expanded())
            contents.sizes.append(columns.count)
    return contents


def transactions_in(folder: Path) -> int:
    """Returns how many transactions the blocks in `folder` hold now."""
    with closing(BlockStore(folder)) as store:
        return store.transactions()
