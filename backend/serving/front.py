"""The ASGI application of both ports: answers requests in the loop, in groups, or in threads.

A request comes as an ASGI scope and is represented by a WSGI environ, as it would be without this
front. The site says which WSGI application answers it, and in which lane. Inline requests are
answered in the loop; posts are gathered while others wait for the disk; all other requests go to
the threads of their lanes.

A client may ask before it sends a body (`Expect: 100-continue`). It gets the final answer at once
if the application makes it without reading the body. If it reads the body, it is asked again when
that has come.
"""

# ruff: noqa: ARG001, ARG002 (methods of a site may do nothing, and must have a body)
import asyncio
import logging
import math
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from contextlib import suppress
from io import BytesIO
from typing import Any, NamedTuple, Protocol

from backend.serving.body_files import body_file
from backend.serving.body_stream import BodyStream
from backend.serving.environs import (
    ABANDONED,
    CLOSE,
    CONNECTION,
    STARTED,
    WAIT,
    ClientGoneError,
    Environ,
    Receive,
    Scope,
    environ_of,
    receive_body,
)
from backend.serving.lanes import (
    GROUPED,
    INLINE,
    Group,
    LaneFullError,
    LaneNumbers,
    RequestGroups,
    Threads,
)

MOMENT_S, MOST_MOMENTS = 0.001, 2  # how long and how often long work waits for others
# So many requests that find their lane full are told so at once in so many seconds; further ones
# have to wait for that.
REFUSED_AT_ONCE, REFUSED_IN_S = 50, 1.0
REFUSED_AFTER_S = 0.5

LENGTH = "Content-Length"
LOG = logging.getLogger("gunicorn.error")

Headers = list[tuple[str, str]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Wsgi = Callable[[Environ, Callable[..., Any]], Iterable[bytes]]


class Route(NamedTuple):
    """Says how a request is answered.

    lane: INLINE, GROUPED, or the name of one of the site's lanes. application: answers the request,
    and raises nothing but BodyWanted, for a body that was not sent yet. group: answers it instead
    if the lane is GROUPED.
    """

    lane: str
    application: Wsgi
    group: Group | None = None


class Site(Protocol):
    """The application that a front serves.

    A subclass may leave out `receive`, `leave`, `finalise_response`, `log`, `tick`, `stop` and
    `close`.

    max_body_bytes: the most a request may have. max_body_bytes_in_memory: longer bodies are kept on
    a disk until they are answered. lanes: threads by the name of their lane.
    """

    max_body_bytes: int
    max_body_bytes_in_memory: int
    lanes: Mapping[Any, Threads]

    def receive(self, environ: Environ) -> Wsgi | None:
        """Begin a request, of which only the head is known. `leave` follows.

        Returns an answer if the request is refused; then its body is not read.
        """
        return None

    def route(self, environ: Environ) -> Route:
        """Say how a request is answered."""

    def leave(self, environ: Environ) -> None:
        """Note that the beginning of an answer has been made, or has failed."""
        return

    def finalise_response(self, environ: Environ, status: str, headers: Headers) -> None:
        """Complete the headers of an answer that goes out. status: as in WSGI, `200 OK`."""
        return

    def log(self, environ: Environ, sent_bytes: int, *, is_whole: bool) -> None:
        """Note that a body has gone out or broken off."""
        return

    def failed(self, error: Exception, environ: Environ) -> Wsgi:
        """Make the answer to a post that a group did not accept, or whose body has no room."""

    def full(self, lane: str) -> Wsgi:
        """Make the answer to a request whose lane is full."""

    def reject(
        self, client: object, status: int, detail: str, **more: object
    ) -> tuple[Headers, bytes]:
        """Make headers and body of the answer to a request that HTTP refuses.

        client: the client's address. more: further members of a problem (RFC 9457).
        """

    def tick(self) -> None:
        """Do the work that is due once a second: here, forget how long requests have waited."""
        for lane in self.lanes.values():
            lane.numbers()

    def stop(self) -> None:
        """End all long waits, because the worker ends."""
        return

    def close(self) -> None:
        """Finish what is left to do when the requests in hand are answered."""
        return


class Answer(NamedTuple):
    """The beginning of an answer.

    stream: what follows the body; None if nothing does. threads: those that may ask for it.
    """

    status: str
    headers: Headers
    body: bytes
    stream: BodyStream | None = None
    threads: Threads | None = None


class Front:
    """The ASGI application in front of a site."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self._groups: dict[Any, RequestGroups] = {}
        self._refused_at = deque([-math.inf] * REFUSED_AT_ONCE, REFUSED_AT_ONCE)  # monotonic

    def _all_lanes(self) -> list[Threads | RequestGroups]:
        return [*self.site.lanes.values(), *self._groups.values()]

    def numbers(self) -> list[LaneNumbers]:
        """Return the numbers of each lane to count; its waits are those since the last call."""
        return [lane.numbers() for lane in self._all_lanes()]

    def yield_to_short_requests(self, *lanes: str) -> None:
        """Wait a moment if there are posts in groups, or requests in these lanes.

        Long work calls this often, in its own thread. The interpreter runs one thread at a time, so
        that others wait for it whenever they come back from the disk or from a lock.
        """
        threads = [self.site.lanes[lane] for lane in lanes]
        for _ in range(MOST_MOMENTS):
            groups = list(self._groups.values())
            if not any(lane.in_hand for lane in threads) and not any(g.is_busy() for g in groups):
                return
            time.sleep(MOMENT_S)

    def close(self) -> None:
        """End the threads, when all their work is done."""
        for lane in self._all_lanes():
            lane.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, unless its client goes away meanwhile."""
        environ = environ_of(scope)
        try:
            answer = await self._answer_when_read(environ, receive)
        except (ClientGoneError, asyncio.CancelledError):
            self.site.log(environ, 0, is_whole=False)
            return
        with suppress(asyncio.CancelledError):  # `_send` has logged what went out
            await self._send(answer, environ, scope, send)

    async def _answer_when_read(self, environ: Environ, receive: Receive) -> Answer:
        """Answer a request. Its body is taken unless its head decides the answer."""
        refusal = self.site.receive(environ)
        try:
            if environ.get("CONTENT_LENGTH") and refusal is None:
                if "HTTP_EXPECT" in environ and environ["SERVER_PROTOCOL"] == "HTTP/1.1":
                    environ["wsgi.input"] = UnsentBody()
                    with suppress(BodyWanted):
                        return await self._answer(environ)
                refusal = await self._take_body(environ, receive)
            if refusal is not None:
                return self._begun(refusal, environ)
            return await self._answer(environ)
        except ClientGoneError:
            raise
        except Exception:
            LOG.exception("a request could not be answered")
            return self._failure(environ)
        finally:
            self.site.leave(environ)

    def _failure(self, environ: Environ) -> Answer:
        """Return the answer after an error of the front or the site itself; the connection ends."""
        client = (environ["REMOTE_ADDR"],)
        headers, body = self.site.reject(client, 500, "Internal Server Error")
        more = [(LENGTH, str(len(body))), CLOSE]
        return Answer("500 Internal Server Error", [*headers, *more], body)

    async def _take_body(self, environ: Environ, receive: Receive) -> Wsgi | None:
        """Wait for the body of a request. Returns an answer if it cannot be kept."""
        length = int(environ["CONTENT_LENGTH"])
        try:
            body = environ["wsgi.input"] = body_file(length, self.site.max_body_bytes_in_memory)
            await receive_body(receive, body)
        except OSError as error:  # the disk is full
            return self.site.failed(error, environ)
        except (ClientGoneError, asyncio.CancelledError):
            body.close()
            raise
        environ[STARTED] = time.perf_counter()  # the time that the client took is not ours
        return None

    async def _answer(self, environ: Environ) -> Answer:
        lane, application, group = self.site.route(environ)
        if lane == INLINE:
            return self._begun(application, environ)
        if lane == GROUPED and group is not None:
            return self._begun(await self._grouped(group, environ), environ)
        try:
            return await self._in_thread(self.site.lanes[lane], application, environ)
        except LaneFullError:
            return self._begun(await self._full(lane), environ)

    async def _grouped(self, group: Group, environ: Environ) -> Wsgi:
        groups = self._groups.get(group.accept_all)
        if groups is None:
            groups = self._groups[group.accept_all] = RequestGroups(group.accept_all)
        try:
            outcome = await groups.outcome(group.prepare(environ))
        except LaneFullError:
            return await self._full(GROUPED)
        except Exception as error:  # noqa: BLE001  every error is answered
            outcome = error
        if isinstance(outcome, Exception):
            return self.site.failed(outcome, environ)
        response: Wsgi = outcome
        return response

    async def _full(self, lane: str) -> Wsgi:
        """Return the answer to a request whose lane is full.

        It is given at once, but not to many requests a second: clients that ask again without a
        pause would have themselves refused thousands of times, and keep the worker busy with that.
        """
        now = time.monotonic()
        are_many = now - self._refused_at[0] < REFUSED_IN_S
        self._refused_at.append(now)
        if are_many:
            await asyncio.sleep(REFUSED_AFTER_S)
        return self.site.full(lane)

    async def _in_thread(self, threads: Threads, application: Wsgi, environ: Environ) -> Answer:
        def answered(wait_s: float) -> Answer:
            environ[STARTED] = time.perf_counter()
            environ[WAIT] = f", wait;dur={1000 * wait_s:.3f}"
            return self._begun(application, environ, threads)

        try:
            return await threads.run(answered, close)
        except asyncio.CancelledError:
            environ[ABANDONED] = True
            raise

    def _begun(self, application: Wsgi, environ: Environ, threads: Threads | None = None) -> Answer:
        """Return the beginning of an application's answer; all of it if it comes as a list."""
        begun: list[Any] = []

        def start(status: str, headers: Headers, exc_info: Any = None) -> None:
            self.site.finalise_response(environ, status, headers)
            begun[:] = status, headers

        try:
            pieces = application(environ, start)
        finally:
            environ["wsgi.input"].close()
        if isinstance(pieces, list):
            body, stream = b"".join(pieces), None
        else:
            stream = BodyStream(pieces)
            body = stream.whole() if threads is None else stream.piece()
        status, headers = begun
        return Answer(status, headers, body, stream, threads)

    async def _send(self, answer: Answer, environ: Environ, scope: Scope, send: Send) -> None:
        status, headers, body, stream, threads = answer
        if stream is not None and stream.is_taken and any(name == LENGTH for name, _ in headers):
            stream.close()
            stream = None
        if stream is None:
            scope[CONNECTION].send_whole(int(status[:3]), headers, body)
            self.site.log(environ, len(body), is_whole=True)
            return
        encoded = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
        await send({"type": "http.response.start", "status": int(status[:3]), "headers": encoded})
        sent_bytes = len(body)
        try:
            while threads is not None and not stream.is_taken:
                await send({"type": "http.response.body", "body": body, "more_body": True})
                await scope[CONNECTION].flow.drain()  # before there is another piece in memory
                body = await threads.run(lambda _: stream.piece(), is_admitted=True)
                sent_bytes += len(body)
            await send({"type": "http.response.body", "body": body})
        except ConnectionResetError:  # the answer cannot be finished and must not look finished
            scope[CONNECTION].break_off()
        finally:
            stream.close()
            self.site.log(environ, sent_bytes, is_whole=stream.is_taken)


def close(answer: Answer) -> None:
    """Drop an answer whose client is gone."""
    if answer.stream is not None:
        answer.stream.close()


class BodyWanted(BaseException):
    """The application reads a body that its client has not sent yet."""


class UnsentBody(BytesIO):
    """Stands for such a body."""

    def read(self, *_: Any) -> bytes:
        """Raise BodyWanted."""
        raise BodyWanted

    readline = readinto = read  # type: ignore[assignment]
