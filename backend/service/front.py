"""The application that connections are served by: what answers at once, and what waits in threads.

A request comes as an ASGI scope and is represented by its WSGI environ, as in every other door. The
table of routes says who answers it, and in which lane. Inline rows are answered in the loop; posts
are gathered while others wait for the disk; the rest goes to the threads of its lane, and whatever
is in no row to the Flask application there. A handler is called once.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, MutableMapping
from functools import partial
from threading import Lock
from typing import Any, NamedTuple

from flask import Response

from backend.api import Service
from backend.api.conditions import Environ
from backend.api.metrics import LaneNumbers
from backend.api.observing import ROUTE, WAIT, Headers
from backend.api.problems import problem
from backend.api.reception import STARTED
from backend.api.routes import Group, Lane, Match
from backend.service.environs import Receive, Scope, body_of, environ_of
from backend.service.http_connection import CONNECTION
from backend.service.lanes import LaneFullError, RequestGroups, Threads, threads_of

PIECE_BYTES = 256 * 1024  # of an answer that is longer, this much is in memory
RETRY_AFTER_S = 5  # when a lane is full

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Wsgi = Callable[..., Iterable[bytes]]


class Answer(NamedTuple):
    """The begin of an answer.

    rest: what follows the body; None if that is all. threads: who may ask for the rest.
    """

    status: str
    headers: Headers
    body: bytes
    rest: "Rest | None" = None
    threads: Threads | None = None


class Front:
    """ASGI in front of a service."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self._table = service.table
        self._reception = service.reception
        self._lanes = threads_of(service.settings)
        self._groups: dict[Any, RequestGroups] = {}
        service.metrics.watch(self._numbers)

    def _all_lanes(self) -> list[Threads | RequestGroups]:
        return [*self._lanes.values(), *self._groups.values()]

    def _numbers(self) -> list[LaneNumbers]:
        return [lane.numbers() for lane in self._all_lanes()]

    def close(self) -> None:
        """End the threads, when all they had to do is done."""
        for lane in self._all_lanes():
            lane.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, all of which has come."""
        environ = environ_of(scope, await body_of(scope, receive))
        refusal = self._reception.receive(environ)
        try:
            if refusal is None:
                answer = await self._answer(environ)
            else:
                answer = self._taken(refusal, environ)
        except asyncio.CancelledError:  # the client is gone
            self._reception.log(environ, 0, is_whole=False)
            raise
        finally:
            self._reception.leave(environ)
        await self._send(answer, environ, scope, send)

    async def _answer(self, environ: Environ) -> Answer:
        match = self._table.match(environ)
        if match is None:
            return await self._in_thread(Lane.THREAD, environ, self.service.flask)
        environ[ROUTE] = match.row.rule
        lane = match.lane(environ)
        if lane is Lane.INLINE:
            return self._taken(self._responded(match, environ), environ)
        if lane is Lane.GROUPED and match.row.group is not None:
            return self._taken(await self._grouped(match.row.group, environ), environ)
        return await self._in_thread(lane, environ, partial(self._by_row, match))

    def _responded(self, match: Match, environ: Environ) -> Response:
        try:
            return match.answer(environ)
        except Exception as error:  # noqa: BLE001  every error is answered
            return self.service.problems.answer(error, environ)

    def _by_row(self, match: Match, environ: Environ, start_response: Any) -> Iterable[bytes]:
        """The response to a request, handed over as WSGI applications do."""
        return self._responded(match, environ)(environ, start_response)

    async def _grouped(self, group: Group, environ: Environ) -> Response:
        groups = self._groups.get(group.accept_all)
        if groups is None:
            groups = self._groups[group.accept_all] = RequestGroups(group.accept_all)
        try:
            outcome = await groups.outcome(group.prepare(environ))
        except LaneFullError:
            return full(Lane.GROUPED)
        except Exception as error:  # noqa: BLE001  every error is answered
            outcome = error
        if isinstance(outcome, Exception):
            return self.service.problems.answer(outcome, environ)
        response: Response = outcome
        return response

    async def _in_thread(self, lane: Lane, environ: Environ, application: Wsgi) -> Answer:
        threads = self._lanes[lane]

        def answered(wait_s: float) -> Answer:
            environ[STARTED] = time.perf_counter()
            environ[WAIT] = f", wait;dur={1000 * wait_s:.3f}"
            begun: list[Any] = []

            def start(status: str, headers: Headers, exc_info: Any = None) -> None:  # noqa: ARG001
                self._reception.dismiss(environ, status, headers)
                begun[:] = status, headers

            rest = Rest(application(environ, start))
            body = rest.piece()
            status, headers = begun
            return Answer(status, headers, body, rest, threads)

        try:
            return await threads.run(answered, close)
        except LaneFullError:
            return self._taken(full(lane), environ)

    def _taken(self, response: Response, environ: Environ) -> Answer:
        """The answer that a response is, which is short."""
        pieces, status, headers = response.get_wsgi_response(environ)
        self._reception.dismiss(environ, status, headers)
        if isinstance(pieces, list):
            return Answer(status, headers, b"".join(pieces))
        rest = Rest(pieces)
        return Answer(status, headers, rest.piece(), rest)

    async def _send(self, answer: Answer, environ: Environ, scope: Scope, send: Send) -> None:
        status, headers, body, rest, threads = answer
        await send({"type": "http.response.start", "status": int(status[:3]), "headers": headers})
        if rest is None:
            await send({"type": "http.response.body", "body": body})
            self._reception.log(environ, len(body), is_whole=True)
            return
        sent_bytes = len(body)
        try:
            while not rest.is_taken and threads is not None:
                await send({"type": "http.response.body", "body": body, "more_body": True})
                body = await threads.run(lambda _: rest.piece(), is_admitted=True)
                sent_bytes += len(body)
            await send({"type": "http.response.body", "body": body})
        except ConnectionResetError:  # it cannot be finished and must not look finished
            if scope["http_version"] == "1.0":
                scope[CONNECTION].reset()
        finally:
            rest.close()
            self._reception.log(environ, sent_bytes, is_whole=rest.is_taken)


def close(answer: Answer) -> None:
    """Let go an answer that nobody waits for any more."""
    if answer.rest is not None:
        answer.rest.close()


def full(lane: Lane) -> Response:
    """What a request is told whose lane is full."""
    detail = f"as many requests as may wait for the lane {lane} wait already; try again"
    response = problem(503, detail)
    response.headers["Retry-After"] = str(RETRY_AFTER_S)
    return response


class Rest:
    """What of an answer has not been taken. is_taken: nothing is left.

    One thread at a time takes pieces. Whoever waits for it may close meanwhile.
    """

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces: Iterable[bytes] | None = pieces
        self._iterator: Iterator[bytes] = iter(pieces)
        self._broken: ConnectionResetError | None = None
        self._taking = Lock()
        self._is_closing = False
        self.is_taken = False

    def piece(self) -> bytes:
        """At least `PIECE_BYTES` more, or what is left.

        Raises ConnectionResetError where the answer breaks off, after what comes before that.
        """
        try:
            with self._taking:
                return b"" if self._is_closing else self._piece()
        finally:
            if self._is_closing:
                self.close()

    def _piece(self) -> bytes:
        if self._broken:
            raise self._broken
        collected: list[bytes] = []
        size = 0
        try:
            for piece in self._iterator:
                collected.append(piece)
                size += len(piece)
                if size >= PIECE_BYTES:
                    return b"".join(collected)
            self.is_taken = True
        except ConnectionResetError as error:
            self._broken = error
        return collected[0] if len(collected) == 1 else b"".join(collected)

    def close(self) -> None:
        """Let go what the answer is made of, when the piece that is being taken is there."""
        self._is_closing = True
        if self._taking.acquire(blocking=False):
            try:
                pieces, self._pieces = self._pieces, None
                if close := getattr(pieces, "close", None):
                    close()
            finally:
                self._taking.release()
