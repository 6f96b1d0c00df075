"""The gunicorn worker: accepts connections, watches their deadlines, and stops cleanly.

gunicorn's `ASGIWorker` with uvloop runs the loop. `FrontWorker` adds:

- Workers take turns with new connections: a worker that has more than another leaves them to it for
  a moment. Otherwise few clients can all end up with the same worker, while the others idle. A
  connection counts twice while threads of a lane have its request, which may take long, and no
  more when it has been answered and only has to end.
- Connections never take the descriptors that the site needs for its files.
- Once a second the worker gives up the connections whose deadline has come, and counts.
- The bytes of incomplete requests, and of answers that are not read, are bounded for all clients
  together.
- Its threads take their memory from one arena. One for each, as the C library has it, keeps a fifth
  more of what long requests have given back.
- When it is told to stop, it ends long waits, finishes the requests in hand and drops silent
  clients.
"""

import asyncio
import ctypes
import os
import resource
import sys
import time
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from multiprocessing.sharedctypes import RawArray
from socket import socket
from typing import Any

from gunicorn.workers.gasgi import ASGIWorker

from serving.connection import MAX_HEAD_BYTES, Connection
from serving.front import Front
from serving.parsing import use_quick_parser

MAX_RECEIVED_BYTES = 32 * 2**20  # of incomplete requests, in one worker
MAX_UNSENT_BYTES = 32 * 2**20  # of answers that clients do not read, in one worker
LEAVE_TO_OTHERS_S = 0.002
TAKEN_AFTER_S = 5 * LEAVE_TO_OTHERS_S  # a connection that was left and not offered since is taken
NOT_ACCEPTING_S = 0.5  # the pause after the system has refused a connection
LOOK_EVERY_S = 1.0
STOP_LOOK_S = 0.02
OTHER_DESCRIPTORS = 100  # a worker keeps so many free for files, and some for each thread
DESCRIPTORS_A_THREAD = 4
MOST_WORKERS = 128  # live ones and those that have just died
SWITCH_INTERVAL_S = 0.0005  # how long a thread may keep the loop waiting for the interpreter
M_ARENA_MAX = -8  # in malloc.h of glibc; see mallopt(3)

use_quick_parser()


class FrontWorker(ASGIWorker):
    """Serves `asgi`, a `Front`, to the connections of one process."""

    asgi: Front
    loop: Any
    _loads: Any  # connections and requests in lanes, by `_place`; -1 where there is no worker

    @classmethod
    def check_config(cls, cfg: Any, log: Any) -> None:
        """Do not complain about threads, which the lanes of the front have."""

    @classmethod
    def setup(cls) -> None:
        """Make what workers share. gunicorn calls it before it starts them."""
        cls._loads = RawArray("i", [-1] * MOST_WORKERS)

    @classmethod
    def forget(cls, worker: Any) -> None:
        """Forget a worker of any kind that has died. gunicorn calls it."""
        if isinstance(worker, cls):
            cls._loads[worker.age % MOST_WORKERS] = -1

    def init_process(self) -> None:
        """Run the worker, in its new process, until it ends."""
        sys.setswitchinterval(SWITCH_INTERVAL_S)
        _use_one_arena()
        self.connections: set[Connection] = set()
        self._coming: set[asyncio.Task[Any]] = set()  # accepted, and not yet among `connections`
        self._ending: set[Connection] = set()  # of `connections`
        self._place = self.age % MOST_WORKERS
        self._leaves_since = self._left_at = 0.0
        self._listens = False
        self._accept_from = 0.0
        self._told = asyncio.Event()
        self._in_lanes = 0
        self._count()
        super().init_process()

    def load_wsgi(self) -> None:
        """Load the front, and remember its site."""
        super().load_wsgi()
        self._site = self.asgi.site
        self.max_body_bytes = self._site.max_body_bytes
        for lane in self._site.lanes.values():
            lane.changed = self._count_in_lanes
        self._keep_descriptors_free()

    def _keep_descriptors_free(self) -> None:
        """Accept no connections that would leave the site without descriptors for its files."""
        most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        threads = 1 + sum(lane.count for lane in self._site.lanes.values())  # 1 is for groups
        others = OTHER_DESCRIPTORS + DESCRIPTORS_A_THREAD * threads
        self.worker_connections = min(self.worker_connections, max(1, most - others))

    # --- accepting ---------------------------------------------------------------------------

    async def _serve(self) -> None:
        """Serve until told to stop."""
        self.listen()
        while self.alive and self.ppid == os.getppid():
            self.notify()
            self.look()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._told.wait(), LOOK_EVERY_S)
        await self._shutdown()

    def listen(self) -> None:
        """Accept connections, if there is room for one more and the system can."""
        is_full = self._taken() >= self.worker_connections
        if self._listens or is_full or not self.alive or time.monotonic() < self._accept_from:
            return
        self._listens = True
        for listener in self.sockets:
            listener.setblocking(False)
            self.loop.add_reader(listener.fileno(), self._accept, listener)

    def _stop_listening(self) -> None:
        self._listens = False
        for listener in self.sockets:
            self.loop.remove_reader(listener.fileno())

    def _taken(self) -> int:
        return len(self.connections) + len(self._coming)

    def _count(self) -> None:
        ending = len(self._ending) if self._taken() < self.worker_connections else 0
        self._loads[self._place] = self._taken() - ending + self._in_lanes  # full: takes no more

    def _count_in_lanes(self, more: int) -> None:
        self._in_lanes += more
        self._count()

    def _accept(self, listener: socket) -> None:
        if self._taken() >= self.worker_connections:
            self._stop_listening()
            return
        if self._leaves_to_others():
            return
        try:
            raw, _ = listener.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return
        except OSError as error:  # no descriptor is left, or no memory
            self.log.warning("cannot accept connections for a moment: %s", error)
            self._accept_from = time.monotonic() + NOT_ACCEPTING_S
            self._stop_listening()
            return
        raw.setblocking(False)
        joining = self.loop.create_task(
            self.loop.connect_accepted_socket(partial(Connection, self), raw)
        )
        self._coming.add(joining)
        self._count()
        joining.add_done_callback(self._has_come)

    def _has_come(self, joining: "asyncio.Task[Any]") -> None:
        self._coming.discard(joining)
        self._count()
        if not joining.cancelled() and (error := joining.exception()):
            self.log.debug("a client was gone before it was served: %s", error)

    def _leaves_to_others(self) -> bool:
        """Whether a worker with less to do should take the next connection; it has a moment to."""
        least = min((count for count in self._loads if count >= 0), default=0)
        now = time.monotonic()
        if self._loads[self._place] <= least:
            self._leaves_since = 0.0
        elif not self._leaves_since or now - self._left_at > TAKEN_AFTER_S:
            self._leaves_since = now
        elif now - self._leaves_since > LEAVE_TO_OTHERS_S:
            self._leaves_since = 0.0
        self._left_at = now
        return self._leaves_since > 0

    def joined(self, connection: Connection) -> None:
        """Note that a connection has begun."""
        self.connections.add(connection)
        self._count()

    def ends(self, connection: Connection) -> None:
        """Note that a connection has been answered and only has to end."""
        self._ending.add(connection)
        self._count()

    def left(self, connection: Connection) -> None:
        """Note that a connection has ended."""
        self.connections.discard(connection)
        self._ending.discard(connection)
        self._count()
        self.listen()

    # --- bounds ------------------------------------------------------------------------------

    def look(self) -> None:
        """Do the work that is due once a second."""
        self._site.look()
        self.listen()
        self._give_up_the_late()
        self.limit_unsent()

    def _give_up_the_late(self) -> None:
        now = time.monotonic()
        for connection in list(self.connections):
            if now >= connection.deadline:
                connection.give_up()

    def has_room_for(self, connection: Connection) -> bool:
        """Whether a client may send more, considering what all clients have sent in part.

        Small requests always may: those below an equal share of the room.
        """
        share = MAX_RECEIVED_BYTES // self.worker_connections
        if connection.held_bytes() <= share:
            return True
        room = max(MAX_RECEIVED_BYTES, self.max_body_bytes + MAX_HEAD_BYTES)
        return sum(one.held_bytes() for one in self.connections) <= room

    def limit_unsent(self) -> None:
        """Give up the clients whose time to read ends first, while too many bytes are unsent."""
        waiting = [(one.deadline, one.unsent_bytes(), one) for one in self.connections]
        waiting = sorted((w for w in waiting if w[1]), key=lambda w: w[0])
        total = sum(size for _, size, _ in waiting)
        for _, size, connection in waiting[:-1]:
            if total <= MAX_UNSENT_BYTES:
                break
            total -= size
            connection.transport.abort()

    def problem(self, connection: Connection, status: int, detail: str, **more: object) -> bytes:
        """The complete answer to a request that is refused, after which the connection ends."""
        client = connection.transport.get_extra_info("peername")
        headers, body = self._site.unread(client, status, detail, **more)
        last = (("Content-Length", str(len(body))), ("Connection", "close"))
        lines = [f"{name}: {value}" for name, value in (*headers, *last)]
        head = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}", *lines, "", ""]
        return "\r\n".join(head).encode("ascii") + body

    # --- ending ------------------------------------------------------------------------------

    def handle_exit_signal(self) -> None:
        """Stop in order."""
        self._site.stop()
        super().handle_exit_signal()
        self._told.set()

    def handle_quit_signal(self) -> None:
        """End at once."""
        os._exit(0)

    async def _shutdown(self) -> None:
        """Finish the requests in hand, within the time that gunicorn gives."""
        self._stop_listening()
        deadline = time.monotonic() + float(self.cfg.graceful_timeout)
        while self._taken() and time.monotonic() < deadline:
            for connection in list(self.connections):
                connection.end_if_idle()
            self._give_up_the_late()
            self.notify()
            await asyncio.sleep(STOP_LOOK_S)
        for connection in list(self.connections):
            connection.transport.abort()
        self._site.look()


def _use_one_arena() -> None:
    """Let all threads that begin from now on take memory from one arena, if this is glibc."""
    if mallopt := getattr(ctypes.CDLL(None), "mallopt", None):
        mallopt(M_ARENA_MAX, 1)
