"""The gunicorn worker: accepts connections, watches their deadlines, and stops cleanly.

`uvicorn-worker` runs uvicorn's server with uvloop. `FrontWorker` adds:

- Workers take turns with new connections: a worker that has more than another leaves them to it for
  a moment. Otherwise few clients can all end up with the same worker, while the others idle. A
  connection counts twice while threads of a lane have its request, which may take long.
- Connections never take the descriptors that the site needs for its files.
- Once a second the worker gives up the connections whose deadline has come, and counts.
- Its threads take their memory from one arena. One for each, as the C library has it, keeps a fifth
  more of what long requests have given back.
- When it is told to stop, it ends long waits, finishes the requests in hand and drops silent
  clients.
"""

import asyncio
import ctypes
import math
import os
import resource
import signal
import sys
import time
from contextlib import suppress
from multiprocessing.sharedctypes import RawArray
from socket import socket
from typing import Any

from gunicorn.arbiter import Arbiter
from uvicorn.config import Config
from uvicorn.server import Server
from uvicorn_worker import UvicornWorker

from backend.serving.client_bounds import Bounds
from backend.serving.connection import Connection
from backend.serving.front import Front

LEAVE_TO_OTHERS_S = 0.002
TAKEN_AFTER_S = 5 * LEAVE_TO_OTHERS_S  # a connection that was left and not taken since is taken
TOLERANCE = 8  # an eighth more than others is even: in a flood nobody can leave each to another
NOT_ACCEPTING_S = 0.5  # the pause after the system has refused a connection
TICKS_A_SECOND = 10  # of uvicorn
STOP_LOOK_S = 0.02
OTHER_DESCRIPTORS = 100  # a worker keeps so many free for files, and some for each thread
DESCRIPTORS_A_THREAD = 4
MOST_WORKERS = 128  # live ones and those that have just died
SWITCH_INTERVAL_S = 0.0005  # how long a thread may keep the loop waiting for the interpreter
M_ARENA_MAX = -8  # in malloc.h of glibc; see mallopt(3)


class FrontServer(Server):
    """uvicorn's server for a front: it takes turns with others, and watches its connections."""

    def __init__(self, config: Config, worker: "FrontWorker") -> None:
        super().__init__(config)
        self._worker = worker
        self._site = worker.wsgi.site
        self.bounds = Bounds(self._site, self._most_connections(), self._note_load)
        self.server_state = self.bounds
        self._in_lanes = 0
        self._joining: set[asyncio.Task[Any]] = set()  # accepted, and not yet among connections
        self._listeners: list[socket] = []
        self._left_at = -math.inf  # when it left a connection to others that it may take now
        for lane in self._site.lanes.values():
            lane.changed = self._count_in_lanes
        self._note_load()

    def _most_connections(self) -> int:
        """Return as many as leave the site descriptors for its files."""
        most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        threads = 1 + sum(lane.count for lane in self._site.lanes.values())  # 1 is for groups
        others = OTHER_DESCRIPTORS + DESCRIPTORS_A_THREAD * threads
        return int(min(self._worker.cfg.worker_connections, max(1, most - others)))

    # --- accepting ---------------------------------------------------------------------------

    async def startup(self, sockets: list[socket] | None = None) -> None:
        """Accept connections."""
        self._loop = asyncio.get_running_loop()
        self._listeners = list(sockets or ())
        for listener in self._listeners:
            listener.setblocking(False)
        self._listen()
        self.started = True

    def _listen(self) -> None:
        if self.should_exit:
            return
        for listener in self._listeners:
            self._loop.add_reader(listener.fileno(), self._accept, listener)

    def _pause(self, seconds: float) -> None:
        self._stop_listening()
        self._loop.call_later(seconds, self._listen)

    def _stop_listening(self) -> None:
        for listener in self._listeners:
            self._loop.remove_reader(listener.fileno())

    def _accept(self, listener: socket) -> None:
        now = time.monotonic()
        if now - self._left_at > TAKEN_AFTER_S and self._worker.has_more_than_others():
            self._left_at = now
            self._pause(LEAVE_TO_OTHERS_S)
            return
        self._left_at = -math.inf
        try:
            raw, _ = listener.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return
        except OSError as error:  # no descriptor is left, or no memory
            self._worker.log.warning("cannot accept connections for a moment: %s", error)
            self._pause(NOT_ACCEPTING_S)
            return
        raw.setblocking(False)
        joining = self._loop.create_task(
            self._loop.connect_accepted_socket(self._new_connection, raw)
        )
        self._joining.add(joining)
        joining.add_done_callback(self._has_joined)
        self._note_load()

    def _new_connection(self) -> Connection:
        return Connection(self.config, self.bounds, {}, self._loop)

    def _has_joined(self, joining: "asyncio.Task[Any]") -> None:
        self._joining.discard(joining)
        self._note_load()
        if not joining.cancelled() and (error := joining.exception()):
            self._worker.log.debug("a client was gone before it was served: %s", error)

    def _note_load(self) -> None:
        """Count what there is to do here, and let other workers know."""
        connections = len(self.bounds.connections) + len(self._joining)
        self._worker.note_load(connections + self._in_lanes)

    def _count_in_lanes(self, more: int) -> None:
        self._in_lanes += more
        self._note_load()

    # --- each second, and the end ------------------------------------------------------------

    async def on_tick(self, counter: int) -> bool:
        """Do the work that is due. Returns whether to stop."""
        if counter % TICKS_A_SECOND == 0:
            with suppress(OSError):  # on a disk that is gone; gunicorn then replaces the worker
                self._worker.notify()
            self.tick()
        if os.getppid() != self._worker.ppid:
            self.should_exit = True
        return await super().on_tick(counter)

    def tick(self) -> None:
        """Do the work that is due once a second."""
        self._site.tick()
        self._give_up_the_late()

    def _give_up_the_late(self) -> None:
        now = time.monotonic()
        for connection in list(self.bounds.connections):
            connection.give_up_if_late(now)

    async def shutdown(self, sockets: list[socket] | None = None) -> None:  # noqa: ARG002
        """Finish the requests in hand, within the time that gunicorn gives."""
        self._site.stop()
        self._stop_listening()
        deadline = time.monotonic() + float(self._worker.cfg.graceful_timeout)
        while (self._joining or self.bounds.connections) and time.monotonic() < deadline:
            for connection in list(self.bounds.connections):
                connection.shutdown()
            self._give_up_the_late()
            await asyncio.sleep(STOP_LOOK_S)
        for connection in list(self.bounds.connections):
            connection.transport.abort()
        self._site.tick()
        self._site.close()


class FrontWorker(UvicornWorker):  # type: ignore[misc]
    """Serves a `Front` to the connections of one process."""

    CONFIG_KWARGS = {  # noqa: RUF012  as uvicorn-worker has it
        "loop": "uvloop",
        "http": Connection,
        "ws": "none",
        "lifespan": "off",
        "interface": "asgi3",
        "access_log": False,
        "proxy_headers": False,
        "server_header": False,
        "callback_notify": None,  # a leap of the clock would stop it
    }

    wsgi: Front
    _loads: Any  # by worker: connections and requests in lanes; -1 where there is none

    @classmethod
    def check_config(cls, cfg: Any, log: Any) -> None:  # noqa: ARG003
        """Make what workers share. gunicorn calls it before it starts them."""
        cls._loads = RawArray("i", [-1] * MOST_WORKERS)

    @classmethod
    def forget(cls, worker: Any) -> None:
        """Forget a worker of any kind that has died. gunicorn calls it."""
        if isinstance(worker, cls):
            cls._loads[worker.age % MOST_WORKERS] = -1

    def note_load(self, load: int) -> None:
        """Let other workers know how much there is to do here."""
        self._loads[self.age % MOST_WORKERS] = load

    def has_more_than_others(self) -> bool:
        """Return whether a worker with less to do should take the next connection."""
        least = min((load for load in self._loads if load >= 0), default=0)
        more: bool = self._loads[self.age % MOST_WORKERS] > least + least // TOLERANCE
        return more

    def init_process(self) -> None:
        """Run the worker, in its new process, until it ends."""
        sys.setswitchinterval(SWITCH_INTERVAL_S)
        _use_one_arena()
        super().init_process()

    async def _serve(self) -> None:
        self.config.app = self.wsgi
        self.config.load()
        server = FrontServer(self.config, self)
        asyncio.get_running_loop().add_signal_handler(signal.SIGQUIT, os._exit, 0)
        await server.serve(sockets=self.sockets)
        if not server.started:
            sys.exit(Arbiter.WORKER_BOOT_ERROR)


def _use_one_arena() -> None:
    """Let all threads that begin from now on take memory from one arena, if this is glibc."""
    with suppress(OSError):
        if mallopt := getattr(ctypes.CDLL(None), "mallopt", None):
            mallopt(M_ARENA_MAX, 1)
