"""Asks a Flightchain and adds flights to it; copy this file beside your own code.

    from datetime import date
    from flightchain_client import Client

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
        print(added.accepted, "flights:", added.transactions, added.already_there, "were there")

A GET, and a POST with a key, is sent again after a lost connection, a timeout, and an answer that
means "later" (such as 503, after the time in Retry-After), up to `attempts` times and for
`give_up_after_s` in all. The key makes that safe: for a day the ledger answers a request with the
same key by the ids that the first one got. `add_batch` makes keys itself. A POST without a key is
sent once. What goes wrong is a FlightchainError: a Problem, Unreachable or StillPending.

Each thread needs a Client of its own, because a `requests.Session` is not safe for threads. The
module needs Python 3.11 and the package `requests`.
"""

import json
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import KW_ONLY, InitVar, dataclass, field, fields
from datetime import UTC, date, datetime
from email.utils import mktime_tz, parsedate_tz
from functools import partial
from itertools import count, islice
from math import inf
from os import SEEK_END
from pathlib import Path
from types import UnionType
from typing import IO, Any, Literal, TypedDict, TypeVar, Unpack, cast, get_origin, get_type_hints

import requests
from urllib3.exceptions import NewConnectionError

Mode = Literal["sync", "async", "commit"]
Times = Literal["day", "weekday", "hour", "weekday_hour", "month", "year"]
Suggested = Literal["city", "airport", "carrier", "flight_number"]
Question = Literal["filter_transactions", "average_delays", "flight_counter"]
Group = Times | Literal["carrier", "origin", "destination", "route", "departure"]
Duplicates = Literal["accept", "skip"]
OnError = Literal["reject", "skip"]
Dates = Literal["day-first", "month-first", "year-first"]
Day = date | str
Flight = Mapping[str, object]
Flights = str | Path | Iterable[Flight]  # or the file of them at a path
Json = dict[str, Any]  # flights that come back have all 19 fields, and TRANSACTION_ID, timestamp
Made = TypeVar("Made")

JSON, NDJSON = "application/json", "application/x-ndjson"
ANY = "application/octet-stream"
PART_BYTES, LEAST_PART_BYTES = 2**20, 2**16  # of a file; the least is what every service takes
BATCH_SIZE = 1000  # flights; as many as a block holds
MOST_ERRORS_KEPT = 1000
MOST_CHARACTERS = 1000  # of what a service says, in a message
HEADERS_PER_PAGE = 100  # the most that the service gives at once
FLIGHTS_PER_PAGE = 10_000
REPEATED = frozenset({408, 429, 502, 503, 504})
FIRST_WAIT_S, LONGEST_WAIT_S = 0.5, 15.0  # used where there is no Retry-After
FIRST_POLL_S, LONGEST_POLL_S = 0.1, 2.0
FILE_PATIENCE_S = 600.0  # while the service reads the file of somebody else
AT_WORK = {"checking", "adding"}  # states of a file

HINTS = {
    401: "make a token where the service runs (python -m backend token add NAME), give it as token",
    404: "check the id or height; if no address is found, check the base_url",
    413: "make the batches smaller (batch_size)",
    421: "use a host name of the service, or add this one to FLIGHTCHAIN_HOSTS where it runs",
    503: "the service is full, starting or being repaired: try again later",
}


# --- what is asked, and what comes back ----------------------------------------------------------


class Options(TypedDict, total=False):
    """What narrows down which flights are meant, and how an answer is made.

    origin, destination: codes of airports. as_of: a block height, for an earlier state of the
    ledger. engine: "scan" has every block read and verified. group_by: the same for groups, too.
    The others are those of the service, for groups, legs and exports.
    """

    origin: str | None
    destination: str | None
    group_by: Group | None
    engine: Literal["index", "scan"]
    as_of: int | None
    distribution: Literal[True]
    sort: str
    order: Literal["ascending", "descending"]
    least_flights: int
    offset: int
    limit: int | None
    cursor: int


class Cities(Options, total=False):
    """The options of a question between two cities, which are written as "Tampa, FL"."""

    origin_city: str | None
    destination_city: str | None


class Adding(TypedDict, total=False):
    """How batches are added.

    on_error="reject": a bad flight keeps its batch out; "skip": the others are added, the bad ones
    are in `errors`. duplicates="skip": flights that the ledger has are left out, so another run
    adds only what is missing; "accept": they are added again and count twice. dates: how days are
    written, if a file leaves that open. dry_run: check the flights and add none.
    """

    mode: Mode
    on_error: OnError
    duplicates: Duplicates
    dates: Dates | None
    dry_run: bool


NAMES = {
    "flight_number": "OP_CARRIER_FL_NUM",
    "day": "FL_DATE",
    "first_day": "INITIAL_DATE",
    "last_day": "FINAL_DATE",
    "carrier": "OP_CARRIER_AIRLINE_ID",
    "origin_city": "ORIGIN_CITY_NAME",
    "destination_city": "DEST_CITY_NAME",
    "origin": "ORIGIN",
    "destination": "DEST",
}


@dataclass(frozen=True, slots=True)
class AsOf:
    """The block up to which an answer counts."""

    height: int
    tip_hash: str


@dataclass(frozen=True, slots=True)
class Legs:
    """What happened to a flight number: flights with BLOCK_HEIGHT and status, such as on_time.

    warnings: parameters whose value no flight has, with those that may be meant (`did_you_mean`).
    """

    count: int
    flights: list[Json]
    as_of: AsOf
    warnings: list[Json]


@dataclass(frozen=True, slots=True)
class Averages:
    """How late flights were. Delays are in minutes, and None where there is nothing to average.

    groups: the same for each group, as the service tells it; empty without `group_by`.
    distribution: of the delays at arrival; None without `distribution=True`. warnings: as in Legs.
    """

    average_delay: float | None
    flights: int
    arrived: int
    cancelled: int
    no_arrival: int
    on_time_share_of_arrived: float | None
    on_time_share_of_scheduled: float | None
    average_departure_delay: float | None
    distribution: Json | None
    groups: list[Json]
    as_of: AsOf
    warnings: list[Json]


@dataclass(frozen=True, slots=True)
class Count:
    """How many flights there are. groups, warnings: as in Averages."""

    count: int
    groups: list[Json]
    as_of: AsOf
    warnings: list[Json]


@dataclass(frozen=True, slots=True)
class Tip:
    """The state of the ledger. Times are UTC milliseconds.

    next_block_at: when the miner seals what is pending by then; if nothing is, no block comes. None
    without a miner.
    """

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
    transactions: list[Json]


@dataclass(frozen=True, slots=True)
class Entry:
    """A transaction, its state (pending or mined), and the height and hash of its block."""

    state: str
    transaction: Json
    height: int | None
    hash: str | None


@dataclass(frozen=True, slots=True)
class Receipt:
    """A flight was accepted. state: pending or mined.

    duplicate_of, conflicts_with: the id of a record that the ledger had of this flight already, and
    which says the same or contradicts it. In a cluster the id and the hash are None until the
    flight is mined; `receipt` is the path where it is found until then, else None.
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
class Added:
    """What became of one batch, or of all that `add_batch` has sent so far.

    accepted, rejected: flights. transactions: the ids, in order; empty after a dry run, and in a
    cluster, where flights get them when they are mined. already_there: flights that the ledger has
    a record of that says the same; they were left out, unless they are `duplicates`, which were
    accepted again. conflicts: those that contradict a record, and were left out, too. errors,
    conflicting: the first of them, with the numbers of their rows, and with both versions. state:
    of the last batch, as that of a Receipt; "none" if nothing of it was accepted.
    """

    accepted: int = 0
    rejected: int = 0
    batches: int = 0
    transactions: tuple[range, ...] = ()
    errors: tuple[Json, ...] = ()
    already_there: int = 0
    conflicts: int = 0
    conflicting: tuple[Json, ...] = ()
    duplicates: int = field(default=0, compare=False)
    state: str = field(default="none", compare=False)

    def __add__(self, other: "Added") -> "Added":
        sums = {f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self)[:-1]}
        for name in ("errors", "conflicting"):
            sums[name] = sums[name][:MOST_ERRORS_KEPT]
        ids, more = self.transactions, other.transactions
        if ids and more and ids[-1].stop == more[0].start:
            sums["transactions"] = (*ids[:-1], range(ids[-1].start, more[0].stop))
        return Added(**sums, state=other.state)


# --- errors ---------------------------------------------------------------------------------------


class FlightchainError(Exception):
    """The base of all errors. added: what `add_batch` had added before the error."""

    added: Added | None = None

    def __str__(self) -> str:
        return super().__str__() + self._before()

    def _before(self) -> str:
        """Say what `add_batch` had added, if it was something."""
        count = self.added.accepted if self.added else 0
        return f"; {count} flights were added before" if count else ""


class Problem(FlightchainError):
    """The service refused, with an `application/problem+json` (RFC 9457) or another answer."""

    def __init__(
        self, status: int, problem: Mapping[str, Any], retry_after_s: float | None = None
    ) -> None:
        self.status = status
        texts = {name: text for name, text in problem.items() if isinstance(text, str)}
        self.title, self.detail = texts.get("title", ""), texts.get("detail", "")
        self.field = texts.get("field")
        self.value: object = problem.get("value")
        self.errors = _faults(problem.get("errors"))
        readings = problem.get("readings")
        self.readings: Mapping[str, str] = readings if isinstance(readings, dict) else {}
        self.retry_after_s = retry_after_s
        super().__init__(status, problem)

    def __str__(self) -> str:
        rows = [fault["row"] for fault in self.errors if "row" in fault]
        where = f"row {rows[0]}: " if rows else ""
        hint = f"; {HINTS[self.status]}" if self.status in HINTS else ""
        title, detail = (_printable(text) for text in (self.title, self.detail))
        reason = detail or "the service gives no reason"
        return f"{self.status} {title}: {where}{reason}{hint}{self._before()}"


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


def batches(flights: Iterable[Flight], size: int = BATCH_SIZE) -> Iterator[Batch]:
    """Cut flights into batches of `size`."""
    if size < 1:
        raise ValueError(f"a batch of {size} flights; give a size of 1 or more")
    if isinstance(flights, Mapping):
        raise TypeError("this is one flight; give a list of flights, or use add()")
    return cut(map(_line, flights), size, NDJSON)


def cut(lines: Iterator[bytes], size: int, kind: str, header: bytes = b"") -> Iterator[Batch]:
    """Yield batches of `size` lines, each below the header. kind: their content type."""
    for offset in count(0, size):
        if part := list(islice(lines, size)):
            yield Batch(header + b"".join(part), kind, len(part), offset)
        if len(part) < size:
            return


def _line(flight: Flight) -> bytes:
    """Return a flight as a line of JSON, with null for NaN, by which pandas says nothing."""
    try:
        text = json.dumps(flight, default=_date, allow_nan=False)
    except ValueError:
        known = {name: None if value != value else value for name, value in flight.items()}  # noqa: PLR0124
        text = json.dumps(known, default=_date)
    return text.encode() + b"\n"


def _date(value: object) -> str:
    if isinstance(value, date):
        return _text(value)
    raise TypeError(f"{value!r} is a {type(value).__name__}; a flight has int, str, date and None")


def _text(value: object) -> str:
    """Return a value in an address: a day as the service reads it, and true instead of True."""
    if isinstance(value, date):
        return f"{value:%Y-%m-%d}"
    return str(value).lower() if isinstance(value, bool) else str(value)


# --- the client -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Wait:
    """A request will be sent again. attempt: how many were made. wait_s: seconds from now."""

    error: Problem | Unreachable
    attempt: int
    wait_s: float


@dataclass(frozen=True, slots=True)
class _Request:
    """A request. patience_s: how long it is sent again after a 503, however often."""

    path: str
    parameters: Mapping[str, object]
    body: bytes | None = None
    content_type: str = JSON
    key: str | None = None
    is_safe: bool = False
    method: str = ""
    patience_s: float = 0

    def asked(self) -> dict[str, str]:
        given = ((name, value) for name, value in self.parameters.items() if value is not None)
        return {NAMES.get(name, name): _text(value) for name, value in given}

    def may_repeat(self) -> bool:
        is_tried = bool(self.parameters.get("dry_run"))
        return self.is_safe or is_tried or self.body is None or self.key is not None


@dataclass(eq=False)
class Client:
    """A connection to the service at `base_url`; `with` or `close` closes it.

    token: for writing, if the service asks for one. timeout_s: how long to wait for an answer.
    commit_timeout_s: the same for mode="commit"; more than the service's FLIGHTCHAIN_COMMIT_WAIT_S.
    attempts, give_up_after_s: how often and how long a request is sent again. on_wait: is called
    before each wait for that.
    """

    base_url: str
    token: InitVar[str | None] = None
    timeout_s: float = 30
    _: KW_ONLY
    commit_timeout_s: float = 120
    attempts: int = 10
    give_up_after_s: float = 300
    on_wait: Callable[[Wait], None] | None = None

    def __post_init__(self, token: str | None) -> None:
        self.base_url = self.base_url.rstrip("/")
        self._session, self._has_answered = requests.Session(), False
        if token is not None:
            self._session.auth = partial(_authorized, f"Bearer {token.strip()}")

    def __enter__(self) -> "Client":
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
        **options: Unpack[Options],
    ) -> Legs:
        """What happened to flight `flight_number` on `day`, or from then to `last_day`?"""
        asked: Json = {"flight_number": flight_number, "day": day, "last_day": last_day}
        asked["carrier"] = carrier
        return self._asked(Legs, "/filter_transactions", asked, options)

    def average_delays(
        self, carrier: int | None, first_day: Day, last_day: Day, **options: Unpack[Cities]
    ) -> Averages:
        """How late were flights between two dates? carrier: its DOT number."""
        asked = {"carrier": carrier, "first_day": first_day, "last_day": last_day}
        return self._asked(Averages, "/average_delays", asked, options)

    def flight_counter(
        self,
        origin_city: str | None,
        destination_city: str | None,
        first_day: Day,
        last_day: Day,
        **options: Unpack[Options],
    ) -> Count:
        """How many flights went between two dates? The cities are as "Tampa, FL"."""
        asked: Json = {"origin_city": origin_city, "destination_city": destination_city}
        asked |= {"first_day": first_day, "last_day": last_day}
        return self._asked(Count, "/flight_counter", asked, options)

    def _asked(self, kind: type[Made], path: str, asked: Json, options: Any) -> Made:
        """Return an answer with its parts that may be left out."""
        answer = self._get(path, {**asked, **options})
        as_of = _made(AsOf, _part(answer, "as_of", dict))
        groups = answer.get(f"by_{options.get('group_by')}", [])
        answer = {"distribution": None, "warnings": [], **answer, "groups": groups}
        return _made(kind, answer, as_of=as_of)

    # --- all flights, completions, and what there is

    def flights(
        self, first_day: Day, last_day: Day, carrier: int | None = None, **options: Unpack[Cities]
    ) -> Iterator[Json]:
        """Yield the mined flights between two dates, oldest id first, all as of one block."""
        asked: Json = {"first_day": first_day, "last_day": last_day, "carrier": carrier, **options}
        most = asked.pop("limit", None)
        left = inf if most is None else most
        while left > 0:
            limit = min(left, FLIGHTS_PER_PAGE)
            *page, end = self._lines("/flights", {**asked, "format": "ndjson", "limit": limit})
            asked["as_of"] = _part(_part(end, "as_of", dict), "height", int)
            yield from page
            if len(page) < limit:
                return
            asked["cursor"] = _part(page[-1], "TRANSACTION_ID", int) + 1
            left -= limit

    def suggest(self, field: Suggested, text: str = "", limit: int | None = None) -> list[Json]:
        """Completions of `text`, best first."""
        answer = self._get("/suggest", {"field": field, "q": text, "limit": limit})
        return _part(answer, "suggestions", list)

    def coverage(self) -> Json:
        """Return the first and last day, the carriers, and the airports of the ledger."""
        answer = self._get("/coverage")
        _part(answer, "carriers", list)
        return answer

    # --- proofs, as scripts/verify.py takes them from a file

    def transaction_proof(self, transaction_id: int) -> bytes:
        """Return the proof that a transaction is in the ledger, at its place, with every value."""
        return self._content(f"/transactions/{transaction_id}/proof")

    def answer_proof(self, question: Question, **asked: object) -> bytes:
        """Return the proof of an answer to what is `asked`, as by the method for the question."""
        return self._content(f"/{question}/proof", asked)

    def growth_proof(self, older: int, newer: int | None = None) -> bytes:
        """Return the proof that the log of `newer` blocks, or all, begins with that of `older`."""
        return self._content("/proofs/consistency", {"from": older, "to": newer})

    def checkpoint(self) -> bytes:
        """Return the signed root of the log; keep one, and later proofs can be compared with it."""
        return self._content("/log/checkpoint")

    # --- the chain

    def tip(self) -> Tip:
        """Return the state of the ledger: its newest block, and how many flights are pending."""
        return _made(Tip, self._get("/tip"))

    def block(self, height: int) -> Block:
        """Return the block at `height`."""
        block = _part(self._get(f"/blocks/{height}"), "block", dict)
        return _made(Block, block, header=_made(Header, block))

    def blocks(self, before: int | None = None) -> Iterator[Header]:
        """Yield the headers of all blocks, newest first. before: only blocks below this height.

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

    def transaction(self, transaction_id: int | str) -> Entry:
        """Return a transaction, pending or mined, by its id, or in a cluster by its `receipt`."""
        name = str(transaction_id)
        answer = self._get(name if name.startswith("/") else f"/transactions/{name}")
        is_mined = answer.get("block") is not None
        where = _part(answer, "block", dict) if is_mined else {"height": None, "hash": None}
        return _made(Entry, {**answer, **where})

    def wait(self, accepted: Receipt | int, timeout_s: float = 120) -> Entry:
        """Wait until a transaction is mined, and return it. Questions count it a moment later.

        accepted: its receipt, or its id. Raises StillPending after `timeout_s`.
        """
        name: object = accepted
        if isinstance(accepted, Receipt):
            name = accepted.receipt or accepted.transaction_id
        for _ in _polls(timeout_s):
            if (entry := self.transaction(str(name))).state == "mined":
                return entry
        hint = "wait longer, or see if a miner runs: tip().next_block_at is None if not"
        raise StillPending(f"transaction {name} is not in a block; {hint}")

    # --- adding

    def add(self, flight: Flight, mode: Mode = "sync", key: str | None = None) -> Receipt:
        """Add one flight: a mapping of the fields by their BTS names; dates may be `date`s.

        mode="sync" returns when it is on the disk, "commit" when it is in a block (or pending after
        FLIGHTCHAIN_COMMIT_WAIT_S), "async" when it has its id. key: a text of your choice; with it
        the flight is sent again after a lost connection, and is added only once.
        """
        answer = self._sent(_Request("/transactions", {"mode": mode}, _line(flight), JSON, key))
        named = _part(answer, "TRANSACTION_ID", object)
        return _made(Receipt, {"receipt": None, **answer}, transaction_id=named)

    def add_batch(
        self,
        flights: Flights,
        *,
        batch_size: int = BATCH_SIZE,
        key: str | None = None,
        progress: Callable[[Added], None] | None = None,
        **how: Unpack[Adding],
    ) -> Added:
        """Add any number of flights, `batch_size` in a request; the path of one goes to `add_file`.

        An error ends the call; its `added` says what was added before. progress: is called after
        every batch. key: the beginning of the keys of the batches; with one of your own, a second
        run within a day that is the same in all else gets the answers of the first one. A file is
        one batch, and needs no key.
        """
        if isinstance(flights, str | Path):
            if how.get("duplicates", "skip") != "skip":
                raise ValueError("leave out duplicates: of a file only what is missing is added")
            on_error, is_dry = how.get("on_error", "reject"), how.get("dry_run", False)
            dates = how.get("dates")
            added = self.add_file(flights, on_error=on_error, dates=dates, dry_run=is_dry)
            if progress:
                progress(added)
            return added
        key = uuid.uuid4().hex if key is None else key
        added = Added()
        for number, batch in enumerate(batches(flights, batch_size)):
            try:
                added += self.send(batch, f"{key}/{number}", **how)
            except FlightchainError as error:
                error.added = Added() if how.get("dry_run") else added
                error.add_note(f"in the batch from row {batch.offset + 1} on; see `added`")
                raise
            if progress:
                progress(added)
        return added

    def add_file(
        self,
        path: str | Path,
        *,
        on_error: OnError = "reject",
        dates: Dates | None = None,
        dry_run: bool = False,
        progress: Callable[[Json], None] | None = None,
    ) -> Added:
        """Add the flights in a file of any kind and length, or none if any of them is bad.

        The service checks the whole file, as `python -m backend import` does, before it adds the
        first flight. Flights that the ledger has are left out. progress: is called again and again
        with what the service says of the file. The other options are those of `Adding`. Raises
        ValueError for an empty file, OSError if it cannot be read.
        """
        with closing(_SentFile(self, Path(path), progress)) as file:
            return file.added(on_error, dates, is_dry=dry_run)

    def check_file(self, path: str | Path, dates: Dates | None = None) -> Json:
        """Return what the service finds in a file, of which it adds nothing (`BatchTried`).

        Raises Problem if the file is refused, or has bad flights.
        """
        with closing(_SentFile(self, Path(path))) as file:
            return file.report("reject", dates)

    def send(self, batch: Batch, key: str | None = None, **how: Unpack[Adding]) -> Added:
        """Send one batch, which `batches` made, as one request."""
        options = {"mode": "sync", "duplicates": "skip", **how}
        body, kind = batch.body, batch.content_type
        try:
            answer = self._sent(_Request("/transactions/batch", options, body, kind, key))
        except Problem as problem:
            problem.errors = _faults(problem.errors, batch.offset)
            raise
        ids: tuple[range, ...] = ()
        if answer.get("first_transaction") is not None:  # else none has one yet
            first, last = (_part(answer, f"{end}_transaction", int) for end in ("first", "last"))
            ids = (range(first, last + 1),)
        return _made(
            Added,
            {"state": "none", **answer},
            batches=1,
            transactions=ids,
            errors=tuple(_faults(_part(answer, "errors", list), batch.offset)),
            conflicting=tuple(_part(answer, "conflicting", list)),
        )

    # --- sending

    def _get(self, path: str, parameters: Mapping[str, object] | None = None) -> Json:
        return self._sent(_Request(path, parameters or {}))

    def _sent(self, request: _Request) -> Json:
        response = self._send(request)
        if (answer := _body(response)) is None:
            raise _problem(response)
        return answer

    def _content(self, path: str, parameters: Mapping[str, object] | None = None) -> bytes:
        return self._send(_Request(path, parameters or {})).content

    def _lines(self, path: str, parameters: Mapping[str, object]) -> list[Json]:
        """Return the lines of an export, the last of which says that it is complete."""
        try:
            rows = [json.loads(line) for line in self._content(path, parameters).splitlines()]
        except (ValueError, RecursionError):
            rows = []
        if not rows or not _part(rows[-1], "complete", bool):
            raise FlightchainError(
                f"{path}: the last line of the answer does not say that it is complete, so flights "
                "may be missing; ask again, and check that the base_url is that of Flightchain"
            )
        return rows

    def _send(self, request: _Request) -> requests.Response:
        """Send a request, and again while that may help, if it may be sent more than once."""
        started, patient = time.monotonic(), 0
        for attempt in count(1):
            try:
                return self._sent_once(request)
            except (Problem, Unreachable) as error:
                wait_s = _wait_s(error, attempt)
                ends_s = time.monotonic() - started + wait_s
                if isinstance(error, Problem):
                    may_help = error.status in REPEATED
                else:  # who never answered does not run, or has another address
                    may_help = self._has_answered or error.may_have_arrived
                if not (may_help and request.may_repeat()):
                    raise
                is_busy = isinstance(error, Problem) and error.status == 503
                patient += is_busy and ends_s <= request.patience_s
                is_late = ends_s > max(self.give_up_after_s, request.patience_s)
                if is_late or attempt - patient >= self.attempts:
                    error.add_note(f"given up after {attempt} attempts in {ends_s - wait_s:.1f} s")
                    raise
                if self.on_wait:
                    self.on_wait(Wait(error, attempt, wait_s))
            time.sleep(wait_s)
        raise AssertionError("count() has no end")

    def _sent_once(self, request: _Request) -> requests.Response:
        url = self.base_url + request.path
        waits_for_block = request.parameters.get("mode") == "commit"
        timeout_s = self.commit_timeout_s if waits_for_block else self.timeout_s
        headers = {} if request.body is None else {"Content-Type": request.content_type}
        if request.key is not None:
            headers["Idempotency-Key"] = request.key
        try:
            response = self._session.request(
                request.method or ("GET" if request.body is None else "POST"),
                url,
                params=request.asked(),
                data=request.body,
                headers=headers,
                timeout=timeout_s,
                allow_redirects=False,  # a POST would become a GET
            )
            is_json = response.headers.get("Content-Type") == JSON
            if is_json and response.raw.length_remaining != 0:  # its length does not tell the end
                with suppress(RecursionError):
                    response.json()  # fails if only a part of it has come
        except (requests.RequestException, UnicodeError) as error:
            raise _translated(error, url, request, timeout_s) from error
        self._has_answered = True
        if not requests.codes.ok <= response.status_code < requests.codes.multiple_choices:
            raise _problem(response)
        return response


class _SentFile:
    """A file that the service has been sent, and reads.

    progress: is called with what the service says of it, again and again.
    """

    def __init__(
        self, client: Client, path: Path, progress: Callable[[Json], None] | None = None
    ) -> None:
        self._client, self._path = client, path
        self._progress = progress or (lambda answer: None)
        self._stops = 0
        with path.open("rb") as file:
            size = file.seek(0, SEEK_END)
            if not size:
                raise ValueError(f"{path} is empty")
            begun = self._post("/imports", {"NAME": path.name, "SIZE": size})
            self._where = f"/imports/{_part(begun, 'IMPORT_ID', str)}"
            try:
                self._send(file, size)
            except BaseException:
                self.close()
                raise

    def close(self) -> None:
        """Have it removed; if that fails, the service does so after a day."""
        with suppress(FlightchainError):
            self._client._sent_once(_Request(self._where, {}, method="DELETE"))

    def added(self, on_error: OnError, dates: Dates | None, *, is_dry: bool) -> Added:
        """Have its flights added, and return what became of them."""
        first: Json = {}
        while True:  # those that are there already are left out
            report = self.report(on_error, dates)
            first = first or report
            earlier = first["accepted"] - report["accepted"]
            if is_dry or not report["accepted"]:
                return _added_of(report, {}, earlier)
            answer = self._done("add", {"on_error": on_error})
            if answer["state"] == "added":
                return _added_of(report, _part(answer, "added", dict), earlier)

    def report(self, on_error: OnError, dates: Dates | None) -> Json:
        """Have it checked, and return what was found. Raises Problem for bad flights."""
        while (answer := self._done("check", {"dates": dates}))["state"] != "checked":
            pass
        report = _part(answer, "report", dict)
        if (bad := _faults(_part(report, "errors", list))) and on_error != "skip":
            where = f"{bad[0]['table']}: " if "table" in bad[0] else ""
            what = f"{bad[0].get('field')} {bad[0].get('value')!r}: {bad[0].get('detail')}"
            raise Problem(422, {"title": "bad flights", "detail": where + what, "errors": bad})
        return report

    def _send(self, file: IO[bytes], size: int) -> None:
        offset, part_bytes = 0, PART_BYTES
        while offset < size:
            file.seek(offset)
            if not (part := file.read(min(part_bytes, size - offset))):
                raise ValueError(f"{self._path} became shorter while it was sent")
            try:
                answer = self._post(self._where, {"OFFSET": offset}, part)
            except Problem as problem:
                if problem.status != 413 or part_bytes == LEAST_PART_BYTES:
                    raise
                part_bytes = LEAST_PART_BYTES
            else:
                offset += len(part)
                self._progress(answer)

    def _done(self, step: str, asked: Json) -> Json:
        """Have a step done, and return what the service says at its end.

        If it was stopped, this waits first. Raises FlightchainError if that happens too often.
        """
        self._post(f"{self._where}/{step}", asked, patience_s=FILE_PATIENCE_S)
        for _ in _polls():
            answer = self._client._get(self._where)
            if _part(answer, "state", str) not in AT_WORK:
                break
            self._progress(answer)
        if answer["state"] == "refused":
            detail = f"{self._path.name}: {answer['message']}"
            raise Problem(422, {**answer, "title": "Unprocessable Content", "detail": detail})
        if answer["state"] == "stopped":
            self._stops += 1
            if self._stops == self._client.attempts:
                raise FlightchainError(f"{self._path.name} was not added: {answer['message']}")
            time.sleep(_growing_s(self._stops + 1))
        return answer

    def _post(self, path: str, asked: Json, body: bytes = b"", patience_s: float = 0) -> Json:
        """Send what may be sent again."""
        request = _Request(path, asked, body, ANY, is_safe=True, patience_s=patience_s)
        return self._client._sent(request)


def _added_of(report: Json, added: Json, earlier: int) -> Added:
    """Return what became of a file.

    added: what was, if anything. earlier: how many flights were added before the service stopped.
    """
    first, last = (added.get(f"{end}_transaction") for end in ("first", "last"))
    count = earlier + (added["flights"] if added else report["accepted"])
    ids = () if first is None or last is None else (range(first, last + 1),)
    if ids and len(ids[0]) != count:  # others have posted meanwhile, or some were added earlier
        ids = ()
    state = "none" if not added.get("flights") else "pending" if first is None else "mined"
    return _made(
        Added,
        {**report, **added, "state": state},
        accepted=count,
        already_there=(added or report)["already_there"] - earlier,
        rejected=added.get("left_out", report["rejected"]),
        batches=1,
        duplicates=0,
        transactions=ids,
        errors=tuple(_faults(report["errors"])),
        conflicting=tuple(report["conflicting"]),
    )


def _authorized(value: str, request: requests.PreparedRequest) -> requests.PreparedRequest:
    """Add a token, as an `auth`, because requests prefers passwords in ~/.netrc to a header."""
    request.headers["Authorization"] = value
    return request


def _translated(
    error: Exception, url: str, request: _Request, timeout_s: float
) -> FlightchainError:
    """Return the error of this module that an error of requests stands for."""
    in_part = requests.exceptions.ChunkedEncodingError, requests.exceptions.ContentDecodingError
    lost = (requests.ConnectionError, requests.Timeout, requests.JSONDecodeError, *in_part)
    if not isinstance(error, lost):
        is_http = url.lower().startswith(("http://", "https://"))
        why = error if is_http else "the base_url must begin with http:// or https://"
        return FlightchainError(f"{url}: the request could not be sent: {why}")
    reason = getattr(error.args[0] if error.args else None, "reason", None)
    never_sent = (requests.ConnectTimeout, requests.exceptions.SSLError)
    if isinstance(error, never_sent) or isinstance(reason, NewConnectionError):
        what = "cannot be connected to; is the service running, and the base_url right?"
        return Unreachable(f"{url}: {what} ({reason or error})", may_have_arrived=False)
    what = "the connection was lost before all of the answer came"
    if isinstance(error, requests.Timeout):
        what = f"no answer within {timeout_s:g} s; try again, or give a longer timeout"
    if not request.may_repeat():
        what += "; what was sent may have been accepted: a key makes it safe to send it again"
    return Unreachable(f"{url}: {what} ({error})", may_have_arrived=True)


def _body(response: requests.Response) -> Json | None:
    """Return the JSON object of an answer; None if it is none."""
    try:
        body = response.json()
    except (ValueError, RecursionError):
        return None
    return body if isinstance(body, dict) else None


def _problem(response: requests.Response) -> Problem:
    """Return what an answer says that is no good one."""
    body = _body(response)
    if body is None:
        what = "is the base_url that of Flightchain's service, and not of its pages?"
        detail = f"{response.url} did not answer with JSON; {what}"
        if response.is_redirect:
            detail = f"{response.url} has moved to {response.headers['Location']}; use that"
        body = {"detail": detail}
    body = {"title": response.reason, **body}  # which a proxy may leave out
    return Problem(response.status_code, body, _retry_after_s(response.headers.get("Retry-After")))


def _retry_after_s(text: str | None) -> float | None:
    """Return the seconds to wait.

    The header holds a number of seconds or a date (RFC 9110, 10.2.3).
    """
    if text is not None and text.strip().isdecimal():
        return float(text)
    moment = parsedate_tz(text or "")
    with suppress(ValueError, OverflowError):  # of a year that no calendar has
        return max(0.0, mktime_tz(moment) - datetime.now(UTC).timestamp()) if moment else None
    return None


def _wait_s(error: Problem | Unreachable, attempt: int) -> float:
    if isinstance(error, Problem) and error.retry_after_s is not None:
        return error.retry_after_s
    return _growing_s(attempt)


def _polls(timeout_s: float = inf) -> Iterator[None]:
    """Yield for each time to look, at ever longer intervals, until so much time is over."""
    ends_s, pause_s = time.monotonic() + timeout_s, FIRST_POLL_S
    while True:
        yield
        if (left_s := ends_s - time.monotonic()) <= 0:
            return
        time.sleep(min(pause_s, left_s))
        pause_s = min(2 * pause_s, LONGEST_POLL_S)


def _growing_s(attempt: int) -> float:
    """Return how long to wait after this many attempts, seconds."""
    return float(min(FIRST_WAIT_S * 2 ** (attempt - 1), LONGEST_WAIT_S))


def _faults(errors: object, offset: int = 0) -> list[Json]:
    """Return what the errors in an answer say of rows, with their numbers among all flights."""
    known = errors if isinstance(errors, list) else []
    faults = [e for e in known if isinstance(e, dict) and type(e.get("row", 0)) is int]
    return [{**f, "row": f["row"] + offset} if "row" in f else f for f in faults]


def _printable(text: str) -> str:
    """Text from outside in one line, which moves no cursor and is not too long."""
    shown = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text[:MOST_CHARACTERS])
    return shown if len(text) <= MOST_CHARACTERS else f"{shown}…"


def _part(answer: object, name: str, kind: type[Made]) -> Made:
    """Return a member of an answer.

    Raises FlightchainError unless it is there, and of this kind.
    """
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


def _checked_as(hint: Any) -> Any:
    """Return what `isinstance` takes for the type of a member: lists and objects, 7 as 7.0."""
    if isinstance(hint, UnionType):
        return tuple(map(_checked_as, hint.__args__))
    return (float, int) if hint is float else get_origin(hint) or hint
