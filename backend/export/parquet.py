"""Exports the flights of a chain as Parquet, or adds what is new, and compares exports with it.

Files are written in a folder of their own. When the last one is whole and on the disk, all get
their places, and then the manifest is replaced; the next run removes what an interrupted one left.

The same blocks always give the same tables in the same order, so that an export can be checked by
making its tables again. Rows are sorted by carrier, day and id. So programs skip the row groups of
other carriers by their statistics, and a flight takes 10 bytes; sorted by day first, it takes 14.
"""

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import date
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from msgspec.structs import asdict

from backend.base import files
from backend.base.progress import Progress
from backend.chain.block import NO_PREVIOUS, Block
from backend.chain.columns import COLUMN_NAMES, Column
from backend.chain.fields import FIELD, FIELDS
from backend.export import manifest as manifests
from backend.export.manifest import (
    DATA,
    LOCK_NAME,
    UNFINISHED,
    ExportedFile,
    ExportRefused,
    Manifest,
    Run,
    not_whole,
)
from backend.storage.block_store import BlockStore
from backend.storage.codec import decoded, linked

MOST_ROWS = 1_000_000  # in memory, and so in a file
PARTITION = "YEAR"  # stands in the name of the folder, as does the month
ID, HEIGHT = "TRANSACTION_ID", "BLOCK_HEIGHT"
_SORTED_BY = [(name, "ascending") for name in ("OP_CARRIER_AIRLINE_ID", "FL_DATE", ID)]
_TYPES = {"integer": pa.int32(), "date": pa.date32()}
_TIME = pa.timestamp("ms", "UTC")
_NAMES = [name for name in COLUMN_NAMES if name != PARTITION]
ROWS_OF_GROUP = 65_536
MOST_BYTES_A_FLIGHT = 30  # that a disk must have room for; real months take 10
_DELTA = "DELTA_BINARY_PACKED"
_ENCODINGS = {ID: _DELTA, HEIGHT: _DELTA, "timestamp": _DELTA}
_DICTIONARIES = [field.name for field in FIELDS]
_UNFINISHED = "a run was interrupted, or still runs; export again"


# --- tables of the flights in blocks ---------------------------------------------------------


class MonthTable(NamedTuple):
    """Flights of a month, at most `MOST_ROWS`."""

    year: int
    month: int
    rows: pa.Table


def tables(store: BlockStore, first: int, height: int, progress: Progress) -> Iterator[MonthTable]:
    """Yield the flights in blocks `first` to `height`, each of which is checked and linked.

    Raises DamagedBlock.
    """
    months: defaultdict[tuple[int, int], list[pa.Table]] = defaultdict(list)
    counts: defaultdict[tuple[int, int], int] = defaultdict(int)
    below = store.place(first - 1).hash.hex() if first else NO_PREVIOUS
    for block in linked(range(first, height + 1), store.block, below):
        for month, rows in _by_month(block):
            months[month].append(rows)
            counts[month] += rows.num_rows
        if sum(counts.values()) >= MOST_ROWS:
            largest = max(counts, key=lambda month: (counts[month], month))
            del counts[largest]
            yield _sorted(largest, months.pop(largest))
        progress(block.header.height + 1 - first, height + 1 - first)
    for month in sorted(months):
        yield _sorted(month, months.pop(month))


def _by_month(block: Block) -> Iterator[tuple[tuple[int, int], pa.Table]]:
    header = block.header
    if not header.transaction_count:
        return
    columns = decoded(block)
    arrays = {name: _array(name, columns[name]) for name in _NAMES}
    ids = range(header.first_transaction, header.first_transaction + columns.count)
    arrays[ID] = pa.array(ids, pa.int64())
    arrays[HEIGHT] = pa.repeat(pa.scalar(header.height, pa.int32()), columns.count)
    table, days = pa.table(arrays), columns["FL_DATE"]
    months = [(day.year, day.month) for day in map(_day, days.values)]
    if len(set(months)) == 1:
        yield months[0], table
        return
    months_of_rows = [months[code] for code in days.codes]
    for month in sorted(set(months)):
        yield month, table.filter(pa.array([other == month for other in months_of_rows]))


def _array(name: str, column: Column) -> pa.Array:
    """Return a column of a block as an array with the type of its field."""
    field = FIELD.get(name)
    kind = _TYPES.get(field.kind, pa.string()) if field else _TIME
    values: Sequence[object] = column.values
    if kind == pa.date32():
        values = list(map(_day, values))
    width = pa.uint8() if isinstance(column.codes, bytes) else pa.uint16()
    codes = pa.Array.from_buffers(width, len(column.codes), [None, pa.py_buffer(column.codes)])
    return pa.array(values, kind).take(codes)


def _day(value: object) -> date:
    return date.fromisoformat(str(value))


def _sorted(month: tuple[int, int], parts: list[pa.Table]) -> MonthTable:
    rows = pa.concat_tables(parts)
    return MonthTable(*month, rows.take(pc.sort_indices(rows, _SORTED_BY)).combine_chunks())


# --- exporting -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Exported:
    """An export that was made. new_flights, new_bytes: what this run added."""

    manifest: Manifest
    new_flights: int
    new_bytes: int


def export(chain: Path, folder: Path, progress: Progress) -> Exported:
    """Bring the export in `folder` up to the tip of the chain, or begin one there.

    Raises ExportRefused, DamagedBlock, WriteFailed, and WriterBusy if another export runs there.
    """
    with _chain_in(chain) as store:
        files.make_folder(folder)
        manifests.require_own_folder(folder)
        remedy = "another export runs there; export again when it has ended"
        with files.FileLock(folder / LOCK_NAME, waits=False, remedy=remedy):
            manifest = _begun(store, folder)
            manifests.require_all_files(folder, manifest)
            for path in manifests.left_over(folder, manifest):
                files.remove(path)
            height = store.height()
            if height == manifest.height:
                return Exported(manifest, 0, 0)
            run = _run(store, folder, manifest, height, progress)
            manifests.FILE.write(folder, manifest.with_run(run))
            return Exported(
                manifest.with_run(run),
                sum(file.flights for file in run.files),
                sum(file.bytes for file in run.files),
            )


@contextmanager
def _chain_in(folder: Path) -> Iterator[BlockStore]:
    with closing(BlockStore(folder)) as store:
        if store.height() < 0:
            raise ExportRefused(f"{folder} holds no chain; let FLIGHTCHAIN_DIR name a ledger")
        yield store


def _begun(store: BlockStore, folder: Path) -> Manifest:
    """Return the manifest of the export in `folder`; a new one is written if there is none."""
    manifest = manifests.read(folder)
    if manifest is None:
        manifest = Manifest(genesis_hash=store.place(0).hash.hex())
        if manifests.left_over(folder, manifest):
            raise ExportRefused(f"{folder} has no {manifests.NAME}; choose an empty folder")
        manifests.FILE.write(folder, manifest)
    _require_same_chain(store, folder, manifest)
    return manifest


def _require_same_chain(store: BlockStore, folder: Path, manifest: Manifest) -> None:
    if store.place(0).hash.hex() != manifest.genesis_hash:
        raise ExportRefused(
            f"{folder} holds flights of another chain, whose block 0 is {manifest.genesis_hash}; "
            "choose another folder"
        )
    tip = store.height()
    for run in manifest.runs:
        if run.height > tip or store.place(run.height).hash.hex() != run.tip_hash:
            raise ExportRefused(
                f"{folder} holds flights up to a block {run.height} with hash {run.tip_hash}, but "
                f"the chain, which ends at block {tip}, has no such block: it has lost blocks, or "
                f"{manifests.NAME} was altered; keep this export, and restore the chain from a "
                "backup, or export to another folder if their loss is accepted"
            )
    flights = store.place(manifest.height).next_transaction if manifest.runs else 0
    if manifest.flights != flights:
        what = f"names {manifest.flights:,} flights up to block {manifest.height}"
        raise not_whole(folder / manifests.NAME, f"{what}, where the chain has {flights:,}")


def _run(
    store: BlockStore, folder: Path, manifest: Manifest, height: int, progress: Progress
) -> Run:
    tip = store.place(height)
    new = tip.next_transaction - manifest.flights
    files.require_room(folder, MOST_BYTES_A_FLIGHT * new)
    run = Run(manifest.height + 1, height, tip.hash.hex(), [])
    metadata = _metadata(manifest, run)
    for table in tables(store, run.first, height, progress):
        run.files.append(_write(folder, table, metadata))
    for file in run.files:
        path = folder / file.path
        files.make_folder(path.parent)
        files.rename(_unfinished(folder, file.path), path)
    return run


def _metadata(manifest: Manifest, run: Run) -> dict[str, str]:
    return {
        "flightchain.format": str(manifests.FORMAT),
        "flightchain.genesis_hash": manifest.genesis_hash,
        "flightchain.height": str(run.height),
        "flightchain.tip_hash": run.tip_hash,
    }


def _unfinished(folder: Path, name: str) -> Path:
    return folder / UNFINISHED / Path(name).name


def _write(folder: Path, table: MonthTable, metadata: dict[str, str]) -> ExportedFile:
    """Write a file where no program looks for it, and say what it will be."""
    path = _unfinished(folder, _name(table))
    files.make_folder(path.parent)
    with files.refusals("write", path):
        pq.write_table(
            table.rows.replace_schema_metadata(metadata),
            path,
            compression="zstd",
            compression_level=6,
            use_dictionary=[name for name in table.rows.column_names if name in _DICTIONARIES],
            column_encoding=_ENCODINGS,
            row_group_size=ROWS_OF_GROUP,
        )
    with path.open("rb") as file:
        files.sync(file.fileno(), path)
    return _described(path, table)


def _name(table: MonthTable) -> str:
    first_id = pc.min(table.rows[ID]).as_py()
    return f"{DATA}/YEAR={table.year}/MONTH={table.month}/flights-{first_id:012}.parquet"


def _described(path: Path, table: MonthTable) -> ExportedFile:
    """Return what the manifest must say of the file at `path`, which has the flights of a table."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return ExportedFile(_name(table), table.rows.num_rows, path.stat().st_size, digest)


# --- checking --------------------------------------------------------------------------------


def check(chain: Path, folder: Path, progress: Progress) -> Manifest:
    """Compare the export in `folder` with the blocks that it stands for, flight by flight.

    Raises ExportRefused for the first difference.
    """
    manifest = manifests.read(folder)
    if manifest is None:
        raise ExportRefused(f"{folder} holds no export: {manifests.NAME} is missing")
    manifests.require_own_folder(folder)
    if not manifest.runs:
        raise ExportRefused(f"{folder} holds no flights yet: {_UNFINISHED}")
    with _chain_in(chain) as store:
        _require_same_chain(store, folder, manifest)
        if left := manifests.left_over(folder, manifest):
            raise ExportRefused(f"{left[0]} is not in {manifests.NAME}: {_UNFINISHED}")
        for run in manifest.runs:
            expected = tables(store, run.first, run.height, progress)
            for file, table in zip_longest(run.files, expected):
                if file is None or table is None:
                    what = f"has other files than an export of blocks {run.first} to {run.height}"
                    raise not_whole(folder / manifests.NAME, what)
                _compare(folder / file.path, file, table, _metadata(manifest, run))
    return manifest


def _compare(path: Path, file: ExportedFile, table: MonthTable, metadata: dict[str, str]) -> None:
    """Raise ExportRefused unless a file has these flights, and is as it was written."""
    try:
        described = _described(path, table)
        rows = pq.read_table(path, partitioning=None)
        is_same = rows.equals(table.rows)
        misleading = sorted(set(wrong_statistics(path, rows))) if is_same else []
    except (OSError, ValueError, OverflowError, pa.ArrowException) as error:
        raise not_whole(path, f"cannot be read: {error}") from error
    said = rows.schema.metadata or {}
    wrong = [name for name, value in asdict(described).items() if getattr(file, name) != value]
    wrong += [name for name in metadata if said.get(name.encode()) != metadata[name].encode()]
    if wrong:
        raise not_whole(path, f"differs from what was written in {', '.join(wrong)}")
    if not is_same:
        raise not_whole(path, "has other flights than the blocks")
    if misleading:
        what = f"has no or wrong statistics of {', '.join(misleading)}"
        raise not_whole(path, f"{what}, by which programs skip flights")


def wrong_statistics(path: Path, rows: pa.Table) -> Iterator[str]:
    """Yield columns of which a row group does not say the bounds, or the nulls, that it has."""
    about, start = pq.read_metadata(path), 0
    for group in map(about.row_group, range(about.num_row_groups)):
        part = rows.slice(start, group.num_rows)
        start += group.num_rows
        for column in map(group.column, range(group.num_columns)):
            values, said = part[column.path_in_schema], column.statistics
            bounds = {"min": said.min, "max": said.max} if said else {}
            if bounds != pc.min_max(values).as_py() or said.null_count != values.null_count:
                yield column.path_in_schema
