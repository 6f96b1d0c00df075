"""Imports months that the Bureau of Transportation Statistics publishes, each when it has come.

While a month is imported, a process downloads the next. A month is left out if the ledger has as
many flights of it as when it was imported whole, which `fetched.json` remembers: without that file
nothing is wrong, but the months are downloaded again, and their flights found to be there.
"""

import sys
import time
from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from backend.base.clock import now_ms
from backend.base.download import Downloader, DownloadFailed, NotThere
from backend.base.errors import FlightchainError, InvalidInput
from backend.base.files import FileLock, make_folder, remove
from backend.base.progress import EVERY_S, Line, counting, left
from backend.base.settings import Settings
from backend.base.state_file import StateFile
from backend.base.words import counted
from backend.cli.output import say
from backend.index.queries import IndexReader
from backend.ledger.bts_months import MAGIC, Month, MonthRange
from backend.questions.values import AverageDelays, Options
from backend.sealing.child import Send, sent_by
from backend.sealing.sealer import Sealer
from backend.sources.packed import files_of
from backend.storage.layout import make_ledger_folder
from backend.storage.receipt_store import require_no_cluster

MEMORY, LOCK_NAME = StateFile("fetched.json", dict[str, int]), "months.lock"
ImportFile = Callable[[Path, Month], None]
MOST_MONTHS_BEHIND = 24  # that the newest published month is looked for


def import_months(
    settings: Settings, wanted: MonthRange, keep: Path | None, import_file: ImportFile
) -> None:
    """Download and import months one after the other.

    keep: the folder where their files stay; None: they are removed when they are imported.
    import_file: imports a file; if it raises InvalidInput, the file is removed. Raises NotThere for
    a month that is not published, DownloadFailed, WriterBusy if another process does the same,
    FlightchainError if a cluster writes the ledger, and what `import_file` raises; what came before
    stays.
    """
    require_no_cluster(settings.folder)
    make_ledger_folder(settings.folder)
    remedy = "another import of months into this ledger is running; wait until it ends"
    with FileLock(settings.folder / LOCK_NAME, waits=False, remedy=remedy):
        _import_months(settings, wanted, keep, import_file)


def _import_months(
    settings: Settings, wanted: MonthRange, keep: Path | None, import_file: ImportFile
) -> None:
    folder = keep or settings.folder
    make_folder(folder)
    months = _months(settings, wanted)
    memory = _Memory(settings)
    there = [month for month in months if memory.has(month)]
    if there:
        several = f"{len(there)} months from {there[0]} to {there[-1]} are"
        these = several if len(there) > 1 else f"{there[0]} is"
        say(f"{these} in the ledger already")
    to_do = [month for month in months if month not in there]
    done = 0
    try:
        with closing(_files(settings, to_do, folder)) as files:
            for month, path in files:
                _import_or_remove(month, path, import_file)
                if keep is None:  # before it counts as imported, so that nothing is left behind
                    remove(path)
                memory.add(month)
                done += 1
    except FlightchainError as error:
        if done:
            before = counted(done, "month was", "months were")
            error.args = (f"{error}; {before} imported before that",)
        raise


def _import_or_remove(month: Month, path: Path, import_file: ImportFile) -> None:
    """Import a file; one with which something is wrong must not keep its month away for ever."""
    try:
        import_file(path, month)
    except InvalidInput as error:
        remove(path)
        error.args = (f"{error}; {path} was removed: import the month again to download it again",)
        raise


def _files(
    settings: Settings, months: Sequence[Month], folder: Path
) -> Generator[tuple[Month, Path], None, None]:
    """Yield months with their files; while a file is used, the next one is downloaded."""
    arrivals = (_Arrival(settings, month, folder) for month in months)
    arrival = next(arrivals, None)
    try:
        for month in months:
            assert arrival is not None
            path = arrival.file()
            arrival = next(arrivals, None)
            yield month, path
    finally:
        if arrival:
            arrival.close()


def _months(settings: Settings, wanted: MonthRange) -> list[Month]:
    """Return the months of a range. Raises NotThere if it begins after the newest one."""
    today = _today()
    if wanted.first and wanted.first > (today.year, today.month):
        raise NotThere(
            f"{wanted.first} is not published: this machine's date is {today:%Y-%m-%d}; name an "
            "earlier month, or set the date if it is wrong"
        )
    if None not in (wanted.first, wanted.last):
        return list(wanted.months())
    newest = _newest(settings)
    if wanted.first and wanted.first > newest:
        raise NotThere(f"{wanted.first} is not published; the newest is {newest}")
    return list(wanted.months(newest))


def _today() -> datetime:
    return datetime.fromtimestamp(now_ms() / 1000, UTC)


def _newest(settings: Settings) -> Month:
    """Return the newest month that is published. Raises NotThere, DownloadFailed."""
    today = _today()
    with closing(Downloader(0, MAGIC, say)) as downloader:
        for months_ago in range(1, 1 + MOST_MONTHS_BEHIND):
            month = Month(today.year, today.month).moved(-months_ago)
            if downloader.has(_url(settings, month)):
                return month
    raise NotThere(
        f"{settings.bts_url} has none of the last {MOST_MONTHS_BEHIND} months; check its address, "
        f"and this machine's date, which is {today:%Y-%m-%d}"
    )


def _url(settings: Settings, month: Month) -> str:
    return f"{settings.bts_url.rstrip('/')}/{month.file_name}"


class _Arrival:
    """The file of a month, which a process downloads meanwhile."""

    def __init__(self, settings: Settings, month: Month, folder: Path) -> None:
        """folder: where it is put, with the part that has come before."""
        self._month = month
        self._path = folder / month.file_name
        work = partial(_download, _url(settings, month), self._path, settings.min_free_bytes)
        self._messages = sent_by(work)
        next(self._messages)  # the process runs

    def file(self) -> Path:
        """Return the file when it is whole, and show progress until then.

        Raises NotThere, DownloadFailed, WriterBusy, WriteFailed.
        """
        with closing(Line(in_a_log=True)) as line, closing(self):
            try:
                for message in self._messages:
                    if isinstance(message, str):
                        line.say(message)
                    else:
                        line.show(_progress_words(self._month, *message))
            except NotThere as error:
                raise NotThere(f"{self._month} is not published, or not yet: {error}") from error
        return self._path

    def close(self) -> None:
        """End the process. What it has downloaded stays as a part."""
        self._messages.close()


def _progress_words(month: Month, done: int, whole: int, held: int, elapsed_s: float) -> str:
    """Say how much has come. done, whole: bytes that are there and in all; 0: not known.

    held: of these, those that were there `elapsed_s` ago, as an earlier run had left them.
    """
    share = (done - held) / (whole - held) if whole > held else 0.0
    size = f" of {whole / 1e6:,.1f}" if whole else ""
    return f"downloading {month}: {done / 1e6:,.1f}{size} MB{left(share, elapsed_s)}"


def _download(url: str, path: Path, least_free: int, send: Send) -> None:
    """Run as a process: make sure that `path` is the file at a URL, whole and undamaged."""
    began_s, sent_s, held = time.monotonic(), 0.0, sys.maxsize

    def progress(done: int, whole: int) -> None:
        nonlocal sent_s, held
        held = min(held, done)  # less if the server has another file now
        if (now_s := time.monotonic()) - sent_s >= EVERY_S:
            sent_s = now_s
            send((done, whole, held, now_s - began_s))

    send((0, 0, 0, 0.0))
    with closing(Downloader(least_free, MAGIC, send)) as downloader:
        for _ in range(2):  # a part of another file may have been continued
            if not path.exists():
                downloader.download(url, path, progress)
            if not (problem := _problem(path)):
                return
            send(f"{url} {problem}; it was removed")
            remove(path)
    raise DownloadFailed(f"{url} {problem}; try again later, or download it by hand")


def _problem(path: Path) -> str:
    """Say what is wrong with a file; "" if all its tables can be unpacked to their end."""
    try:
        for table in files_of(path):
            with table.opened() as blocks:
                deque(blocks, 0)
    except InvalidInput as error:
        return error.reason.partition("; ")[0]  # what follows is to be done by hand
    return ""


class _Memory:
    """Remembers how many flights of a month the ledger had when that was imported whole."""

    def __init__(self, settings: Settings) -> None:
        self._folder = settings.folder
        self._flights: dict[str, int] = {}
        try:
            self._flights = MEMORY.load(self._folder)
        except (FileNotFoundError, ValueError):
            return
        with (  # an index that is behind, or of an earlier release, would count too few
            closing(Sealer(settings, say)) as sealer,
            counting("making the index", "block") as progress,
            sealer.writing(wait=True, progress=progress, sign=False),
        ):
            pass

    def has(self, month: Month) -> bool:
        flights = self._flights.get(str(month), 0)
        return flights > 0 and self._stored(month) >= flights

    def add(self, month: Month) -> None:
        self._flights[str(month)] = self._stored(month)
        MEMORY.write(self._folder, self._flights)

    def _stored(self, month: Month) -> int:
        days = (month.first_day.isoformat(), month.last_day.isoformat())
        with closing(IndexReader(self._folder)) as reader:
            return reader.counts(AverageDelays(None, *days), Options())[0].totals.flights
