"""The table of routes: which handler answers which method of which address, and in which lane.

Everything that knows the service's addresses is made from it: what Flask routes, what the front
answers without Flask, the OpenAPI document and the labels of the metrics. A row's handler takes the
WSGI environ of a request and the parameter in its path, and returns the response. It is called once
for each request, whether that came by Flask or by the front.

The lane says which requests may have to wait for each other:

- `INLINE`: answered at once; the handler waits for nothing, neither a disk nor a lock nor a thread.
- `GROUPED`: posts that are durable when they are answered. Those that come while the disk is synced
  share the next sync (see `backend.serving.lanes.Group`).
- `THREAD`: requests that may wait for the disk, briefly.
- `READ`: requests that read or make much, in tens of milliseconds: blocks, proofs, documents.
- `SCAN`, `EXPORT`, `BATCH`, `COMMIT`: long requests; each kind has threads of its own.

A row's lane may depend on the request. A lane only tells which threads a request may keep busy, and
never what is answered.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from flask import Flask, Response, request

from backend.api.operation import Operation
from backend.serving import lanes
from backend.serving.environs import Environ
from backend.serving.lanes import Group

Handler = Callable[..., Response]

READING = frozenset({"GET", "HEAD"})


class Lane(StrEnum):
    """Requests of one lane may wait for each other. The value names it in metrics and documents."""

    INLINE = lanes.INLINE
    GROUPED = lanes.GROUPED
    THREAD = "thread"
    QUESTION = "question"
    READ = "read"
    SCAN = "scan"
    EXPORT = "export"
    BATCH = "batch"
    COMMIT = "commit"


class Post(NamedTuple):
    """A post that can share its sync with others.

    offer: what the ledger is asked to accept. answer: makes the response from the outcome, or
    raises the error that prevents it.
    """

    offer: Any
    answer: Callable[[Any], Response]


@dataclass(frozen=True, slots=True)
class Row:
    """One method of one address.

    method: GET also answers HEAD. rule: the address as Flask writes it; it may have a parameter.
    handler: takes the environ and the parameter by its name. lane: a lane, or a function that
    chooses it from the same arguments. group: needed if the lane may be GROUPED.
    """

    method: str
    rule: str
    operation: Operation
    handler: Handler
    lane: Lane | Callable[..., Lane] = Lane.THREAD
    group: Group | None = None

    @property
    def before_parameter(self) -> str:
        """The rule up to its parameter; all of it if there is none."""
        return self.rule.partition("<")[0]

    @property
    def parameter(self) -> str:
        """The name of the parameter in the path; "" if there is none."""
        return self.rule.partition("<")[2].partition(">")[0].rpartition(":")[2]

    @property
    def after_parameter(self) -> str:
        """The rule after its parameter."""
        return self.rule.partition(">")[2]


class Match(NamedTuple):
    """A row, and the value in the path for its parameter."""

    row: Row
    parameters: dict[str, str]

    def answer(self, environ: Environ) -> Response:
        """The answer of the row's handler. Raises the handler's errors."""
        return self.row.handler(environ, **self.parameters)

    def lane(self, environ: Environ) -> Lane:
        """The lane of this request."""
        lane = self.row.lane
        return lane if isinstance(lane, Lane) else lane(environ, **self.parameters)


class Table:
    """All rows, in the order in which they are described.

    With Werkzeug's router in place of `match`, the service takes 1.1 times the processor time for
    `GET /transactions/ID`, 1.2 for a kept question and for the empty endpoint (rows of
    `scripts/bench`: transactions anywhere, the three questions, the empty endpoint).
    """

    def __init__(self, rows: Iterable[Row] = ()) -> None:
        self._rows: list[Row] = []
        self._whole: dict[tuple[str, str], Match] = {}
        self._with_parameter: dict[tuple[str, str, str], Row] = {}
        self._addresses: set[str] = set()  # those without a parameter, which no parameter matches
        self.add(rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows)

    def add(self, rows: Iterable[Row]) -> None:
        """Append rows. Raises ValueError if a method of an address has a row already."""
        for row in rows:
            self._rows.append(row)
            for method in READING if row.method == "GET" else {row.method}:
                around = (method, row.before_parameter, row.after_parameter)
                if (method, row.rule) in self._whole or around in self._with_parameter:
                    raise ValueError(f"there are two rows for {method} {row.rule}")
                if row.parameter:
                    self._with_parameter[around] = row
                else:
                    self._addresses.add(row.rule)
                    self._whole[method, row.rule] = Match(row, {})

    def match(self, environ: Environ) -> Match | None:
        """The row for a request; None for an unknown address or another method."""
        method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"]
        found = self._whole.get((method, path))
        if found is not None:
            return found
        at = path.find("/", 1) + 1
        text, slash, after = path[at:].partition("/")
        row = self._with_parameter.get((method, path[:at], slash + after))
        if row is None or not text or path in self._addresses:
            return None
        if not text.isascii():  # WSGI hands bytes over as Latin-1 (PEP 3333)
            text = text.encode("latin-1").decode(errors="replace")
        return Match(row, {row.parameter: text})


def install(app: Flask, table: Table) -> None:
    """Let `app` route the rows of `table`."""
    for row in table:
        app.add_url_rule(
            row.rule, endpoint=row.operation.name, view_func=_view(row), methods=[row.method]
        )


def _view(row: Row) -> Handler:
    def view(**parameters: str) -> Response:
        return row.handler(request.environ, **parameters)

    return view
