"""Asks a Flightchain and adds flights to it; copy this file beside your own code.

    from datetime import date
    from flightchain_client import Client, Problem

    with Client("http://127.0.0.1:8000") as ledger:
        july = ledger.average_delays(19393, date(2015, 7, 1), date(2015, 7, 31))
        print(july.flights, july.average_delay, "as of block", july.as_of.height)

        flight = {"YEAR": 2008, "DAY_OF_WEEK": 4, "FL_DATE": date(2008, 1, 3),
                  "OP_CARRIER_AIRLINE_ID": 19393, "OP_CARRIER_FL_NUM": 335, "ORIGIN": "IAD",
                  "ORIGIN_CITY_NAME": "Washington, DC", "ORIGIN_STATE_NM": "Virginia",
                  "DEST": "TPA", "DEST_CITY_NAME": "Tampa, FL", "DEST_STATE_NM": "Florida",
                  "DEP_TIME": "2003", "DEP_DELAY": 8, "ARR_TIME": "2211", "ARR_DELAY": -14,
                  "CANCELLED": 0, "AIR_TIME": 116}
        receipt = ledger.add(flight, key="my flight 335")     # sent again, it is not added again
        print(ledger.wait(receipt).state)

        more = [{**flight, "OP_CARRIER_FL_NUM": number} for number in range(335, 2835)]
        added = ledger.add_batch(more, progress=lambda so_far: print(so_far.accepted))
        print(added.accepted, "flights:", added.transactions)
        print(added.already_there, "of them was there already")

        try:
            ledger.add({**flight, "ARR_DELAY": "late"})
        except Problem as problem:
            print(problem.status, problem.field, problem.value)

`add_batch` takes any iterable of flights, or the path of a file: CSV as BTS publishes it, or
NDJSON; plain, .gz or .zip. It leaves out flights that the ledger has, so a script can be run again.

A GET, and a POST with a key, is sent again after a lost connection, a timeout, and an answer that
means "later" (such as 503, after the time in Retry-After), up to `attempts` times and for
`give_up_after_s` in all. The key makes that safe: for a day the ledger answers a request with the
same key by the ids that the first one got. `add_batch` makes a key for every batch itself. A POST
without a key is sent once.

Errors:

    FlightchainError        base; `added` says what add_batch had added before
    ├── Problem             the service refused: status, title, detail, field, value, errors
    ├── Unreachable         no answer: refused, lost or too slow; `may_have_arrived`
    └── StillPending        `wait` has waited long enough

Each thread needs a Client of its own, because a `requests.Session` is not safe for threads. The
module needs Python 3.11 and the package `requests`.
"""

import gzip
import json
import time
import uuid
import zipfile
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from itertools import chain, count, islice
from pathlib import Path
from types import UnionType
from typing import (
    IO,
    Any,
    Literal,
    NoReturn,
    NotRequired,
    Self,
    TypedDict,
    TypeVar,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

import requests
from urllib3.exceptions import NewConnectionError

Mode = Literal["sync", "async", "commit"]
Engine = Literal["index", "scan"]
Times = Literal["day", "weekday", "hour", "weekday_hour", "month", "year"]
Group = Times | Literal["carrier", "origin", "destination", "route"]
OnError = Literal["reject", "skip"]
Duplicates = Literal["accept", "skip"]
Day = date | str
Flight = Mapping[str, object]
Json = dict[str, Any]
Made = TypeVar("Made")

JSON, NDJSON, CSV = "application/json", "application/x-ndjson", "text/csv"
CONTENT_TYPES = {".csv": CSV, ".ndjson": NDJSON, ".jsonl": NDJSON}
BATCH_SIZE = 1000  # flights; as many as a block holds
MOST_ERRORS_KEPT = 1000
MOST_CHARACTERS = 1000  # of what a service says, in a message
HEADERS_PER_PAGE = 100  # the most that the service gives at once
REPEATED = frozenset({408, 429, 502, 503, 504})
FIRST_WAIT_S, LONGEST_WAIT_S = 0.5, 15.0  # used where there is no Retry-After
FIRST_POLL_S, LONGEST_POLL_S = 0.1, 2.0

HINTS = {
    401: "make a token where the service runs (python -m backend token add NAME), give it as token",
    404: "check the id or height; if no address is found, check the base_url",
    413: "make the batches smaller (batch_size)",
    421: "use a host name of the service, or add this one to FLIGHTCHAIN_HOSTS where it runs",
    503: "the service is full, starting or being repaired: try again later",
}


# --- what comes back ------------------------------------------------------------------------------


class Transaction(TypedDict):
    """A flight in the ledger. timestamp: when it was accepted, UTC milliseconds. Times are hhmm."""

    TRANSACTION_ID: int
    timestamp: int
    YEAR: int
    DAY_OF_WEEK: int
    FL_DATE: str
    OP_CARRIER_AIRLINE_ID: int
    OP_CARRIER_FL_NUM: int
    ORIGIN_AIRPORT_ID: int | None
    ORIGIN: str
    ORIGIN_CITY_NAME: str
    ORIGIN_STATE_NM: str
    DEST_AIRPORT_ID: int | None
    DEST: str
    DEST_CITY_NAME: str
    DEST_STATE_NM: str
    DEP_TIME: str | None
    DEP_DELAY: int | None
    ARR_TIME: str | None
    ARR_DELAY: int | None
    CANCELLED: int
    AIR_TIME: int | None


class Leg(Transaction):
    """A mined flight. status: on_time, late, cancelled or no_arrival."""

    BLOCK_HEIGHT: int
    status: str


class Fault(TypedDict):
    """What is wrong with a flight. row: its number, counted from 1, or its line in the file."""

    row: NotRequired[int]
    field: str
    value: object
    detail: str


class Conflict(TypedDict):
    """A flight that contradicts a record that the ledger has of it, in these fields.

    TRANSACTION_ID, BLOCK_HEIGHT: of the record, once it has them.
    """

    TRANSACTION_ID: int | None
    BLOCK_HEIGHT: int | None
    fields: list[str]
    flight: Mapping[str, object]
    stored: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class AsOf:
    """The block up to which an answer counts."""

    height: int
    tip_hash: str


@dataclass(frozen=True, slots=True)
class Legs:
    """What happened to a flight number on a day."""

    count: int
    flights: list[Leg]
    as_of: AsOf


@dataclass(frozen=True, slots=True)
class Averages:
    """How late flights were. Delays are in minutes, and None where there is nothing to average.

    groups: the same for each group, as the service tells it; empty without `group_by`.
    """

    average_delay: float | None
    flights: int
    arrived: int
    cancelled: int
    no_arrival: int
    on_time_share_of_arrived: float | None
    on_time_share_of_scheduled: float | None
    average_departure_delay: float | None
    groups: list[dict[str, Any]]
    as_of: AsOf


@dataclass(frozen=True, slots=True)
class Count:
    """How many flights there are. groups: the same for each group; empty without `group_by`."""

    count: int
    groups: list[dict[str, Any]]
    as_of: AsOf


@dataclass(frozen=True, slots=True)
class Tip:
    """The state of the ledger. Times are UTC milliseconds; next_block_at: None without a miner."""

    height: int
    hash: str
    timestamp: int
    transactions: int
    pending: int
    next_block_at: int | None


@dataclass(frozen=True, slots=True)
class Header:
    """A block's header and hash. Hashes are hexadecimal; timestamp: UTC milliseconds."""

    version: int
    height: int
    previous_hash: str
    timestamp: int
    first_transaction: int
    transaction_count: int
    transactions_root: str
    body_hash: str
    summary_root: str
    history_root: str
    difficulty_bits: int
    nonce: int
    hash: str


@dataclass(frozen=True, slots=True)
class Block:
    """A block with its transactions."""

    header: Header
    transactions: list[Transaction]


@dataclass(frozen=True, slots=True)
class Entry:
    """A transaction, its state (pending or mined), and the height and hash of its block."""

    state: str
    transaction: Transaction
    height: int | None
    hash: str | None


@dataclass(frozen=True, slots=True)
class Receipt:
    """A flight was accepted. state: pending or mined.

    duplicate_of, conflicts_with: the id of a record that the ledger had of this flight already, and
    which says the same or contradicts it.

    In a cluster the id and the hash are None until the flight is mined; `receipt` is the path where
    it is found until then. Without a cluster that is None.
    """

    transaction_id: int | None
    state: str
    timestamp: int
    durable: bool
    content_hash: str | None
    duplicate_of: int | None
    conflicts_with: int | None
    receipt: str | None


@dataclass(frozen=True, slots=True)
class BatchReceipt:
    """A batch was accepted, at least in part. errors, conflicting: the first hundred.

    already_there, duplicates: flights of which the ledger had a record that says the same; they
    were left out, or accepted again. conflicts: those that contradict a record. transactions: the
    ids of the batch; empty in a cluster, where it has none until it is mined.
    """

    accepted: int
    already_there: int
    duplicates: int
    conflicts: int
    rejected: int
    transactions: range
    state: str
    durable: bool
    errors: list[Fault]
    conflicting: list[Conflict]


@dataclass(frozen=True, slots=True)
class Added:
    """What `add_batch` has done so far.

    accepted, rejected: flights. transactions: the ids, in order; empty after a dry run. errors,
    conflicting: the first thousand. already_there: flights that were left out, because the ledger
    has a record that says the same. conflicts: those that contradict a record of the ledger, and
    were left out, too.
    """

    accepted: int = 0
    rejected: int = 0
    batches: int = 0
    transactions: tuple[range, ...] = ()
    errors: tuple[Fault, ...] = ()
    already_there: int = 0
    conflicts: int = 0
    conflicting: tuple[Conflict, ...] = ()

    def and_then(self, receipt: BatchReceipt) -> "Added":
        """The sum of this and one more batch."""
        ids, more = self.transactions, receipt.transactions
        if more and ids and ids[-1].stop == more.start:
            ids, more = ids[:-1], range(ids[-1].start, more.stop)
        return Added(
            self.accepted + receipt.accepted,
            self.rejected + receipt.rejected,
            self.batches + 1,
            (*ids, more) if more else ids,
            (*self.errors, *receipt.errors)[:MOST_ERRORS_KEPT],
            self.already_there + receipt.already_there,
            self.conflicts + receipt.conflicts,
            (*self.conflicting, *receipt.conflicting)[:MOST_ERRORS_KEPT],
        )


# --- errors ---------------------------------------------------------------------------------------


class FlightchainError(Exception):
    """The base of all errors. added: what `add_batch` had added before the error."""

    added: Added | None = None


class Problem(FlightchainError):
    """The service refused, with an `application/problem+json` (RFC 9457) or another answer."""

    def __init__(
        self, status: int, problem: Mapping[str, Any], retry_after_s: float | None = None
    ) -> None:
        self.status = status
        texts = {name: text for name, text in problem.items() if isinstance(text, str)}
        self.title, self.detail = texts.get("title", ""), texts.get("detail", "")
        self.field, errors = texts.get("field"), problem.get("errors")
        self.value: object = problem.get("value")
        self.errors: list[Fault] = _faults(errors) if isinstance(errors, list) else []
        readings = problem.get("readings")
        self.readings: Mapping[str, str] = readings if isinstance(readings, dict) else {}
        self.retry_after_s = retry_after_s
        super().__init__(status, problem)

    def __str__(self) -> str:
        rows = [fault["row"] for fault in self.errors if "row" in fault]
        where = f"row {rows[0]}: " if rows else ""
        hint = f"; {HINTS[self.status]}" if self.status in HINTS else ""
        title, detail = (_printable(text) for text in (self.title, self.detail))
        return f"{self.status} {title}: {where}{detail or 'the service gives no reason'}{hint}"


class Unreachable(FlightchainError):
    """The service did not answer. may_have_arrived: whether it may have acted on the request."""

    def __init__(self, message: str, *, may_have_arrived: bool) -> None:
        super().__init__(message)
        self.may_have_arrived = may_have_arrived


class StillPending(FlightchainError):
    """The transaction is in no block yet."""


# --- batches --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Batch:
    """A body for POST /transactions/batch.

    lines: how many lines of flights it has. offset: added to the number of a row in the body, this
    gives its number among all flights.
    """

    body: bytes
    content_type: str
    lines: int
    offset: int


def batches(
    flights: str | Path | Iterable[Flight], size: int = BATCH_SIZE
) -> Generator[Batch, None, None]:
    """Cut flights into batches of `size`: any iterable of them, or the file at a path.

    Lines of files are sent unchanged, because the service checks the flights. Raises ValueError for
    a file that is neither CSV nor NDJSON by its name, or empty; OSError if it cannot be read.
    """
    if size < 1:
        raise ValueError(f"a batch of {size} flights; give a size of 1 or more")
    if isinstance(flights, Mapping):
        raise TypeError("this is one flight; give a list of flights, or use add()")
    if not isinstance(flights, str | Path):
        yield from _cut(map(_line, flights), size, NDJSON)
        return
    with opened(Path(flights)) as (file, content_type):
        first = file.readline()
        if not first:
            raise ValueError(f"{flights} is empty")
        header = _ended(first) if content_type == CSV else b""
        lines = map(_ended, file if header else chain([first], file))
        is_cut = False
        for batch in _cut(lines, size, content_type, header):
            is_cut = True
            yield batch
        if not is_cut:  # the service checks the header even of a table without rows
            yield Batch(header, CSV, 0, 0)


def _cut(
    lines: Iterator[bytes], size: int, content_type: str, header: bytes = b""
) -> Iterator[Batch]:
    offset = 0
    while part := list(islice(lines, size)):
        yield Batch(header + b"".join(part), content_type, len(part), offset)
        offset += len(part)


def _line(flight: Flight) -> bytes:
    return json.dumps(flight, default=_date).encode() + b"\n"


def _date(value: object) -> str:
    if isinstance(value, date):
        return _day(value)
    raise TypeError(f"{value!r} is a {type(value).__name__}; a flight has int, str, date and None")


def _day(value: Day) -> str:
    return value if isinstance(value, str) else f"{value:%Y-%m-%d}"


def _ended(line: bytes) -> bytes:
    return line if line.endswith(b"\n") else line + b"\n"


@contextmanager
def opened(path: Path) -> Iterator[tuple[IO[bytes], str]]:
    """Open the file of flights at `path`, unpacked, and tell its content type.

    Raises ValueError for another kind of file or a damaged one, OSError if it cannot be read.
    """
    is_packed = path.suffix.lower() == ".gz"
    content_type = _content_type(path.stem if is_packed else path.name)
    try:
        if path.suffix.lower() == ".zip":
            with zipfile.ZipFile(path) as archive:
                name = _member(path, archive)
                with archive.open(name) as file:
                    yield file, _content_type(name)
        elif content_type:
            with gzip.open(path) if is_packed else path.open("rb") as plain:
                yield cast("IO[bytes]", plain), content_type
        else:
            kinds = ", ".join(CONTENT_TYPES)
            raise ValueError(f"{path}: the name must end in {kinds}; those with .gz; or in .zip")
    except (EOFError, zlib.error, zipfile.BadZipFile) as error:
        raise ValueError(f"{path} is damaged or incomplete ({error})") from error


def _member(path: Path, archive: zipfile.ZipFile) -> str:
    """The name of the one file of flights in an archive, without the metadata that macOS adds."""
    names = [name for name in archive.namelist() if _content_type(name)]
    names = [name for name in names if not name.startswith("__MACOSX/")]
    if len(names) != 1:
        raise ValueError(f"{path} holds {len(names)} files of flights; one is needed")
    return names[0]


def _content_type(name: str) -> str:
    return CONTENT_TYPES.get(Path(name).suffix.lower(), "")


# --- the client -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Wait:
    """A request will be sent again. attempt: how many were made. wait_s: seconds from now."""

    error: Problem | Unreachable
    attempt: int
    wait_s: float


@dataclass(frozen=True, slots=True)
class _Request:
    method: str
    path: str
    parameters: Mapping[str, object]
    timeout_s: float
    body: bytes | None = None
    content_type: str = JSON
    key: str | None = None

    def may_repeat(self) -> bool:
        return self.method == "GET" or self.key is not None


class _Bearer(requests.auth.AuthBase):
    """Sends the token as an `auth`, since requests prefers passwords in ~/.netrc to a header."""

    def __init__(self, token: str) -> None:
        self._value = f"Bearer {token.strip()}"

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers["Authorization"] = self._value
        return request


class Client:
    """A connection to the service at `base_url`; `with` or `close` closes it."""

    def __init__(
        self,
        base_url: str,
        token: str | None = None,
        timeout_s: float = 30,
        *,
        commit_timeout_s: float = 120,
        attempts: int = 10,
        give_up_after_s: float = 300,
        on_wait: Callable[[Wait], None] | None = None,
    ) -> None:
        """token: a token for writing, if the service asks for one.

        timeout_s: how long to wait for an answer. commit_timeout_s: the same for mode="commit";
        more than the service's FLIGHTCHAIN_COMMIT_WAIT_S. attempts, give_up_after_s: how often and
        how long a request is sent again. on_wait: is called before each wait for that.
        """
        self.base_url = base_url.rstrip("/")
        self.timeout_s = timeout_s
        self.commit_timeout_s = commit_timeout_s
        self.attempts = attempts
        self.give_up_after_s = give_up_after_s
        self._on_wait = on_wait or (lambda wait: None)
        self._session = requests.Session()
        self._session.headers["Accept"] = JSON
        if token is not None:
            self._session.auth = _Bearer(token)
        self._has_answered = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._session.close()

    # --- the three questions; both dates are inclusive

    def filter_transactions(
        self,
        flight_number: int,
        day: Day,
        carrier: int | None = None,
        *,
        last_day: Day | None = None,
        engine: Engine = "index",
        as_of: int | None = None,
    ) -> Legs:
        """What happened to flight `flight_number` on `day`, or from then to `last_day`?

        carrier: only that of this DOT number. In all three questions, engine="scan" has every block
        read and verified, and as_of, a block height, asks for an earlier state of the ledger.
        """
        asked: dict[str, object] = {"OP_CARRIER_FL_NUM": flight_number, "FL_DATE": _day(day)}
        if last_day is not None:
            asked["FINAL_DATE"] = _day(last_day)
        asked["OP_CARRIER_AIRLINE_ID"] = carrier
        answer, as_of_block = self._asked("/filter_transactions", asked, engine, as_of)
        return _made(Legs, answer, as_of=as_of_block)

    def average_delays(
        self,
        carrier: int | None,
        first_day: Day,
        last_day: Day,
        *,
        origin_city: str | None = None,
        destination_city: str | None = None,
        origin: str | None = None,
        destination: str | None = None,
        group_by: Group | None = None,
        engine: Engine = "index",
        as_of: int | None = None,
    ) -> Averages:
        """How late were flights between two dates?

        carrier: its DOT number. origin_city, destination_city: as "Tampa, FL". origin, destination:
        codes of airports. Each of these that is not None narrows down which flights are meant.
        """
        asked = {
            "OP_CARRIER_AIRLINE_ID": carrier,
            **_places(origin_city, destination_city, origin, destination),
            **_period(first_day, last_day),
            "group_by": group_by,
        }
        answer, as_of_block = self._asked("/average_delays", asked, engine, as_of)
        return _made(Averages, answer, groups=answer.get(f"by_{group_by}", []), as_of=as_of_block)

    def flight_counter(
        self,
        origin_city: str | None,
        destination_city: str | None,
        first_day: Day,
        last_day: Day,
        *,
        origin: str | None = None,
        destination: str | None = None,
        group_by: Group | None = None,
        engine: Engine = "index",
        as_of: int | None = None,
    ) -> Count:
        """How many flights went between two dates? For the places see `average_delays`."""
        asked = {
            **_places(origin_city, destination_city, origin, destination),
            **_period(first_day, last_day),
            "group_by": group_by,
        }
        answer, as_of_block = self._asked("/flight_counter", asked, engine, as_of)
        return _made(Count, answer, groups=answer.get(f"by_{group_by}", []), as_of=as_of_block)

    def _asked(
        self, path: str, asked: Mapping[str, object], engine: Engine, as_of: int | None
    ) -> tuple[Mapping[str, Any], AsOf]:
        """An answer, and the block up to which it counts."""
        answer = self._get(
            path, {**asked, "engine": None if engine == "index" else engine, "as_of": as_of}
        )
        return answer, _made(AsOf, _part(answer, "as_of", dict))

    # --- the chain

    def tip(self) -> Tip:
        """The state of the ledger: its newest block, and how many flights are pending."""
        return _made(Tip, self._get("/tip"))

    def block(self, height: int) -> Block:
        """The block at `height`."""
        block = _part(self._get(f"/blocks/{height}"), "block", dict)
        return _made(Block, block, header=_made(Header, block))

    def blocks(self, before: int | None = None) -> Iterator[Header]:
        """The headers of all blocks, newest first. before: only blocks below this height.

        Raises Problem at a block that is damaged; to go on below it, ask anew with its height.
        """
        while True:
            page = self._get("/blocks", {"before": before, "limit": HEADERS_PER_PAGE})
            headers = _part(page, "blocks", list) + _part({"damaged": [], **page}, "damaged", list)
            for header in sorted(headers, key=lambda row: -_part(row, "height", int)):
                before = header["height"]
                if "detail" in header:
                    raise Problem(503, {"title": "Service Unavailable", **header})
                yield _made(Header, header)
            if page.get("next") is None or not headers:
                return

    def transaction(self, transaction_id: int) -> Entry:
        """A transaction, pending or mined."""
        return self._entry(f"/transactions/{transaction_id}")

    def _entry(self, path: str) -> Entry:
        answer = self._get(path)
        is_mined = answer.get("block") is not None
        where = _part(answer, "block", dict) if is_mined else {"height": None, "hash": None}
        return _made(Entry, {**answer, **where})

    def wait(self, accepted: Receipt | int, timeout_s: float = 120) -> Entry:
        """Wait until a transaction is mined, and return it. Questions count it a moment later.

        accepted: its receipt, or its id. Raises StillPending after `timeout_s`.
        """
        known = accepted.transaction_id if isinstance(accepted, Receipt) else accepted
        is_named = isinstance(accepted, Receipt) and known is None and accepted.receipt
        path = is_named or f"/transactions/{known}"
        deadline = time.monotonic() + timeout_s
        poll_s = FIRST_POLL_S
        while (entry := self._entry(path)).state != "mined":
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                raise StillPending(
                    f"{path} is in no block after {timeout_s:g} s; "
                    "wait longer, or see if a miner runs: tip().next_block_at is None without one"
                )
            time.sleep(min(poll_s, left_s))
            poll_s = min(2 * poll_s, LONGEST_POLL_S)
        return entry

    # --- adding

    def add(self, flight: Flight, mode: Mode = "sync", key: str | None = None) -> Receipt:
        """Add one flight: a mapping of the fields by their BTS names; dates may be `date`s.

        mode="sync" returns when it is on the disk, "commit" when it is in a block (or pending after
        FLIGHTCHAIN_COMMIT_WAIT_S), "async" when it has its id. key: a text of your choice; with it
        the flight is sent again after a lost connection, and is added only once.
        """
        body = _line(flight)
        answer = self._send(self._post("/transactions", {}, mode, body, JSON, key))
        known = {"receipt": None, **answer}
        return _made(Receipt, known, transaction_id=_part(answer, "TRANSACTION_ID", object))

    def add_batch(
        self,
        flights: str | Path | Iterable[Flight],
        *,
        mode: Mode = "sync",
        on_error: OnError = "reject",
        duplicates: Duplicates = "skip",
        dry_run: bool = False,
        batch_size: int = BATCH_SIZE,
        key: str | None = None,
        progress: Callable[[Added], None] | None = None,
    ) -> Added:
        """Add any number of flights, or those in a file, `batch_size` in a request.

        on_error="reject": a bad flight keeps its batch out and ends the call (with a Problem, whose
        `added` says what was added before); "skip": the others are added, the bad ones are in
        `errors`. duplicates="skip": flights that the ledger has are left out, so another run adds
        only what is missing; "accept": they are added again and count twice. dry_run: check the
        flights and add none. progress: is called after every batch. key: the beginning of the keys
        of the batches. With a key of your own, a second run within a day gets the answers of the
        first one (with the same flights, batch_size and options).
        """
        key = uuid.uuid4().hex if key is None else key
        added = Added()
        with closing(batches(flights, batch_size)) as cut:
            for number, batch in enumerate(cut):
                try:
                    receipt = self.send(
                        batch,
                        mode=mode,
                        on_error=on_error,
                        duplicates=duplicates,
                        dry_run=dry_run,
                        key=f"{key}/{number}",
                    )
                except FlightchainError as error:
                    error.added = added
                    first = batch.offset + 1
                    error.add_note(f"in the batch from row {first} on; see `added`")
                    raise
                added = added.and_then(receipt)
                if progress:
                    progress(added)
        return added

    def send(
        self,
        batch: Batch,
        *,
        mode: Mode = "sync",
        on_error: OnError = "reject",
        duplicates: Duplicates = "skip",
        dry_run: bool = False,
        key: str | None = None,
    ) -> BatchReceipt:
        """Send one batch, which `batches` made, as one request."""
        options = {
            "on_error": on_error,
            "duplicates": duplicates,
            "dry_run": "true" if dry_run else None,
        }
        request = self._post(
            "/transactions/batch", options, mode, batch.body, batch.content_type, key
        )
        try:
            answer = self._send(request)
        except Problem as problem:
            problem.errors = _numbered(problem.errors, batch.offset)
            raise
        ids = {"first_transaction": 0, "last_transaction": -1, **answer}
        if ids["first_transaction"] is None:  # in a cluster
            ids |= {"first_transaction": 0, "last_transaction": -1}
        first, last = (_part(ids, name, int) for name in ("first_transaction", "last_transaction"))
        return _made(
            BatchReceipt,
            {"state": "none", "durable": False, **answer},
            transactions=range(first, last + 1),
            errors=_numbered(_faults(_part(answer, "errors", list)), batch.offset),
        )

    # --- sending

    def _get(self, path: str, parameters: Mapping[str, object] | None = None) -> Json:
        return self._send(_Request("GET", path, parameters or {}, self.timeout_s))

    def _post(
        self,
        path: str,
        options: Mapping[str, object],
        mode: Mode,
        body: bytes,
        content_type: str,
        key: str | None,
    ) -> _Request:
        timeout_s = self.commit_timeout_s if mode == "commit" else self.timeout_s
        return _Request("POST", path, {"mode": mode, **options}, timeout_s, body, content_type, key)

    def _send(self, request: _Request) -> Json:
        """Send a request, and again while that may help, if it may be sent more than once."""
        started = time.monotonic()
        for attempt in count(1):
            try:
                return self._sent_once(request)
            except (Problem, Unreachable) as error:
                wait_s = _wait_s(error, attempt)
                ends_s = time.monotonic() - started + wait_s
                if not (request.may_repeat() and self._passes(error)):
                    raise
                if attempt >= self.attempts or ends_s > self.give_up_after_s:
                    error.add_note(f"given up after {attempt} attempts in {ends_s - wait_s:.1f} s")
                    raise
                self._on_wait(Wait(error, attempt, wait_s))
            time.sleep(wait_s)
        raise AssertionError("count() has no end")

    def _passes(self, error: Problem | Unreachable) -> bool:
        """Whether another attempt may help.

        It does not if the service has never answered: then the address is wrong, or the service is
        not running.
        """
        if isinstance(error, Problem):
            return error.status in REPEATED
        return self._has_answered or error.may_have_arrived

    def _sent_once(self, request: _Request) -> Json:
        url = self.base_url + request.path
        headers = {} if request.body is None else {"Content-Type": request.content_type}
        if request.key is not None:
            headers["Idempotency-Key"] = request.key
        try:
            response = self._session.request(
                request.method,
                url,
                params={name: str(v) for name, v in request.parameters.items() if v is not None},
                data=request.body,
                headers=headers,
                timeout=request.timeout_s,
                allow_redirects=False,  # a POST would become a GET
            )
        except (requests.RequestException, UnicodeError) as error:
            _translate(error, url, request)
        self._has_answered = True
        return _answer(response)


def _translate(error: Exception, url: str, request: _Request) -> NoReturn:
    """Raise the error of this module that an error of requests stands for."""
    lost = (requests.ConnectionError, requests.Timeout, requests.exceptions.ChunkedEncodingError)
    if not isinstance(error, lost):
        raise FlightchainError(f"{url}: the request could not be sent: {error}") from error
    reason = getattr(error.args[0] if error.args else None, "reason", None)
    never_sent = (requests.ConnectTimeout, requests.exceptions.SSLError)
    if isinstance(error, never_sent) or isinstance(reason, NewConnectionError):
        what = "cannot be connected to; is the service running, and the base_url right?"
        raise Unreachable(f"{url}: {what} ({reason or error})", may_have_arrived=False) from error
    what = "the connection was lost before the answer came"
    if isinstance(error, requests.Timeout):
        what = f"no answer within {request.timeout_s:g} s; try again, or give a longer timeout"
    if not request.may_repeat():
        what += "; what was sent may have been accepted: a key makes it safe to send it again"
    raise Unreachable(f"{url}: {what} ({error})", may_have_arrived=True) from error


def _answer(response: requests.Response) -> Json:
    """The JSON of a good answer. Raises Problem for any other."""
    try:
        body = response.json()
    except (ValueError, RecursionError):
        body = None
    status = response.status_code
    if requests.codes.ok <= status < requests.codes.multiple_choices and isinstance(body, dict):
        return body
    if not isinstance(body, dict):
        detail = f"{response.url} did not answer with JSON; is the base_url that of Flightchain?"
        if "Location" in response.headers:
            detail = f"{response.url} has moved to {response.headers['Location']}; use that"
        body = {"title": response.reason, "detail": detail}
    raise Problem(status, body, _retry_after_s(response.headers.get("Retry-After")))


def _retry_after_s(text: str | None) -> float | None:
    """The seconds to wait. The header holds a number of seconds or a date (RFC 9110, 10.2.3)."""
    if text is None:
        return None
    if text.strip().isdecimal():
        return float(text)
    try:
        then = parsedate_to_datetime(text)
    except ValueError:
        return None
    then = then if then.tzinfo else then.replace(tzinfo=UTC)
    return max(0.0, (then - datetime.now(UTC)).total_seconds())


def _wait_s(error: Problem | Unreachable, attempt: int) -> float:
    if isinstance(error, Problem) and error.retry_after_s is not None:
        return error.retry_after_s
    return float(min(FIRST_WAIT_S * 2 ** (attempt - 1), LONGEST_WAIT_S))


def _places(
    origin_city: str | None, destination_city: str | None, origin: str | None, dest: str | None
) -> dict[str, str | None]:
    return {
        "ORIGIN_CITY_NAME": origin_city,
        "DEST_CITY_NAME": destination_city,
        "ORIGIN": origin,
        "DEST": dest,
    }


def _period(first_day: Day, last_day: Day) -> dict[str, str]:
    return {"INITIAL_DATE": _day(first_day), "FINAL_DATE": _day(last_day)}


def _numbered(faults: Sequence[Fault], offset: int) -> list[Fault]:
    """The faults of one batch, with the numbers that their rows have among all flights."""
    return [
        {**fault, "row": fault["row"] + offset} if "row" in fault else fault for fault in faults
    ]


def _faults(errors: Sequence[object]) -> list[Fault]:
    """Return what the errors in an answer say of rows; others are left out."""
    return [
        cast("Fault", fault)
        for fault in errors
        if isinstance(fault, dict) and type(fault.get("row", 0)) is int
    ]


def _printable(text: str) -> str:
    """Text from outside in one line, which moves no cursor and is not too long."""
    shown = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text[:MOST_CHARACTERS])
    return shown if len(text) <= MOST_CHARACTERS else f"{shown}…"


def _part(answer: object, name: str, kind: type[Made]) -> Made:
    """A member of an answer. Raises FlightchainError unless it is there, and of this kind."""
    known = answer if isinstance(answer, dict) else {}
    if name not in known:
        reason = "the service did what was asked, but is of another version than this client"
        raise FlightchainError(f"the answer has no {name!r}: {reason}")
    if not isinstance(known[name], kind):
        reason = "is the base_url that of Flightchain?"
        raise FlightchainError(f"the answer has a {name!r} of another kind; {reason}")
    return cast("Made", known[name])


def _made(kind: type[Made], answer: Mapping[str, Any], **more: Any) -> Made:
    """Make a `kind` of the members of an answer and `more`; others are left out.

    Raises FlightchainError if one is missing, or of another kind.
    """
    known, hints = {**answer, **more}, get_type_hints(kind)
    return kind(**{name: _part(known, name, _checked_as(hint)) for name, hint in hints.items()})


@cache
def _checked_as(hint: Any) -> Any:
    """What `isinstance` takes for the type of a member: lists and objects as such, 7 as 7.0."""
    if isinstance(hint, UnionType):
        return tuple(map(_checked_as, get_args(hint)))
    if is_typeddict(hint):
        return dict
    return (float, int) if hint is float else get_origin(hint) or hint
