"""The table of routes: which handler answers which method of which address, and in which lane.

Everything that knows the service's addresses is made from it: what Flask routes, what the front
answers without Flask, the OpenAPI document and the labels of the metrics. A row's handler takes the
WSGI environ of a request, the parameters in its query string, which are those of the row's
operation, and the parameter in its path, and returns the response. It is called once for each
request, whether that came by Flask or by the front.

The lane says which requests may have to wait for each other:

- `INLINE`: answered at once; the handler waits for nothing, neither a disk nor a lock nor a thread.
- `GROUPED`: posts that are durable when they are answered. Those that come while the disk is synced
  share the next sync (see `backend.serving.lanes.Group`).
- `THREAD`: requests that may wait for the disk, briefly.
- `QUESTION`: questions that may read tens of thousands of rows of the index.
- `READ`: requests that read or make much, in tens of milliseconds: blocks, proofs, documents.
- `SCAN`, `EXPORT`, `BATCH`, `COMMIT`: long requests; each kind has threads of its own.

A row's lane may depend on the request. A lane only tells which threads a request may keep busy, and
never what is answered.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from flask import Flask, Response, request
from werkzeug.exceptions import HTTPException
from werkzeug.routing import BaseConverter, Map, Rule
from werkzeug.routing.converters import DEFAULT_CONVERTERS

from backend.api.operation import Operation
from backend.questions.parameters import Given
from backend.serving import lanes
from backend.serving.environs import Environ
from backend.serving.lanes import Group

Handler = Callable[..., Response]

READING_METHODS = frozenset({"GET", "HEAD"})


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


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """One method of one address.

    method: GET also answers HEAD. rule: the address as Flask writes it; it may have a parameter.
    handler: takes the environ, the query's parameters, and that of the path by its name. lane: a
    lane, or a function that chooses it from the same arguments. group: needed if the lane may be
    GROUPED.
    """

    method: str
    rule: str
    operation: Operation
    handler: Handler
    lane: Lane | Callable[..., Lane] = Lane.THREAD
    group: Group | None = None

    def lane_of(self, environ: Environ, given: Given, parameters: Mapping[str, str]) -> Lane:
        """Return the lane of a request. Raises the errors that its handler would meet."""
        lane = self.lane
        return lane if isinstance(lane, Lane) else lane(environ, given, **parameters)


class Match(NamedTuple):
    """A row, and the value in the path for its parameter."""

    row: Row
    parameters: dict[str, str]


class Id(BaseConverter):
    """Matches an id in a path: any text but `batch`, which has a route of its own for POST.

    So `GET /transactions/batch` is 405, and not an invalid id.
    """

    regex = "(?!batch$)[^/]+"
    part_isolating = True  # it never takes a slash


class Table:
    """Holds all rows, in the order in which they are described.

    Addresses without a parameter are looked up in a dictionary: with Werkzeug's router alone, a
    kept question takes 1.2 times the processor time.
    """

    def __init__(self, rows: Iterable[Row] = ()) -> None:
        self._rows: list[Row] = []
        self._exact: dict[tuple[str, str], Match] = {}
        self._map = Map(merge_slashes=False, converters={**DEFAULT_CONVERTERS, "id": Id})
        self._router = self._map.bind("")
        self.add(rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows)

    def add(self, rows: Iterable[Row]) -> None:
        """Append rows. Raises ValueError if a method of an address has a row already."""
        for row in rows:
            if any((row.method, row.rule) == (other.method, other.rule) for other in self._rows):
                raise ValueError(f"there are two rows for {row.method} {row.rule}")
            self._rows.append(row)
            self._map.add(Rule(row.rule, methods=[row.method], endpoint=row))
            if "<" not in row.rule:
                for method in READING_METHODS if row.method == "GET" else {row.method}:
                    self._exact[method, row.rule] = Match(row, {})

    def match(self, environ: Environ) -> Match | None:
        """Return the row for a request; None for an unknown address or another method."""
        method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"]
        if (match := self._exact.get((method, path))) is not None:
            return match
        path = path.encode("latin-1").decode(errors="replace")  # WSGI's bytes (PEP 3333)
        try:
            row, parameters = self._router.match(path, method)
        except HTTPException:
            return None
        return Match(row, dict(parameters))


def install(app: Flask, table: Table) -> None:
    """Let `app` route the rows of `table`."""
    app.url_map.merge_slashes = False  # so that an unknown address is 404, not a redirect
    app.url_map.converters["id"] = Id
    for row in table:
        app.add_url_rule(
            row.rule, endpoint=row.operation.name, view_func=_view(row), methods=[row.method]
        )


def _view(row: Row) -> Handler:
    def view(**parameters: str) -> Response:
        environ = request.environ
        return row.handler(environ, row.operation.given(environ), **parameters)

    return view
