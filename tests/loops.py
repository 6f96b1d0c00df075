"""The worker's loop with a small application, run step by step in the test, and clients of it."""

import os
import socket
import struct
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from types import SimpleNamespace
from typing import Any

import pytest
from gunicorn.config import Config
from gunicorn.glogging import Logger

from backend.api import LEDGER, METRICS, QUICK, TOGETHER, create_app
from backend.api.observing import ACCESS_LOG, ALWAYS
from backend.ledger import Ledger
from backend.settings import Settings
from backend.together import Together
from backend.worker import LoopWorker
from tests.api.processes import WITHIN_S, free_port

BIG = 20_000_000  # more than the system buffers for a connection
MAX_BODY_BYTES = 64 * 1024
KEEPALIVE_S = 30


class Refusals:
    """Counts as the metrics do."""

    def __init__(self) -> None:
        self.statuses: list[int] = []

    def refused(self, status: int) -> None:
        self.statuses.append(status)

    def sample(self) -> None:
        pass


class Application:
    """Answers with what it was asked. What starts with /quick is quick; /big gives much.

    What starts with /together goes together, and each group of it is noted in `groups`.
    """

    def __init__(self) -> None:
        self.extensions: dict[str, object] = {
            QUICK: lambda request: b" /quick" in request.partition(b"\r\n")[0],
            TOGETHER: lambda request: b" /together" in request.partition(b"\r\n")[0],
            ACCESS_LOG: False,
            ALWAYS: (),
            METRICS: Refusals(),
        }
        self.config = {"MAX_CONTENT_LENGTH": MAX_BODY_BYTES}
        self.before: Callable[[], object] = lambda: None  # run by requests for /slow and by groups
        self.groups: list[list[str]] = []  # what was asked in each
        self._together = Together(self._meet)

    def wsgi(self) -> "Application":
        return self

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        path = environ["PATH_INFO"]
        if "error" in path:
            raise ValueError(path)
        if path == "/slow":
            self.before()
        if path == "/together":
            self._together(environ["QUERY_STRING"])
        given = b"" if path == "/ignored" else environ["wsgi.input"].read()
        body = (
            b"x" * BIG if "big" in path else f"{path} {environ['QUERY_STRING']} ".encode() + given
        )
        start_response("200 OK", [("Content-Length", str(len(body)))])
        return [] if environ["REQUEST_METHOD"] == "HEAD" else [body]

    def _meet(self, asked: list[str]) -> list[None]:
        self.groups.append(asked)
        self.before()
        return [None] * len(asked)


class _Stepped(LoopWorker):
    """Leaves signals and the loop to the test."""

    def init_signals(self) -> None:
        pass

    def run(self) -> None:
        pass


class Client:
    """A connection that takes what comes, and never waits for it."""

    def __init__(self, address: Any, family: socket.AddressFamily, **options: int) -> None:
        self.socket = socket.socket(family)
        for name, value in options.items():
            self.socket.setsockopt(socket.SOL_SOCKET, getattr(socket, name), value)
        self.socket.settimeout(WITHIN_S)
        self.socket.connect(address)
        self.got = b""
        self.has_ended = False

    def say(self, data: bytes) -> None:
        self.socket.sendall(data)

    def read(self) -> bytes:
        """Everything so far."""
        self.socket.setblocking(False)
        with suppress(BlockingIOError):
            try:
                while part := self.socket.recv(2**20):
                    self.got += part
                self.has_ended = True
            except ConnectionError:
                self.has_ended = True
        self.socket.settimeout(WITHIN_S)
        return self.got

    def ended(self) -> bool:
        """Whether the loop has ended the connection."""
        self.read()
        return self.has_ended

    def reset(self) -> None:
        """Vanish without a word."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()


class Loop:
    """A worker, its application and its clients."""

    def __init__(
        self,
        patch: pytest.MonkeyPatch,
        address: Any,
        family: socket.AddressFamily,
        application: Any,
        **options: int,
    ) -> None:
        self.later_s = 0.0  # how far the worker's clock is ahead
        now = lambda: time.monotonic() + self.later_s  # noqa: E731
        patch.setattr("backend.worker.time", SimpleNamespace(monotonic=now))
        self.listener = socket.socket(family)
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind(address)
        self.listener.listen(100)
        self.address, self.family = address, family
        cfg = Config()
        for name, value in {"threads": 2, "keepalive": KEEPALIVE_S, **options}.items():
            cfg.set(name, value)
        cfg.set("errorlog", os.devnull)
        application = application or Application()
        self.application: Application = application
        LoopWorker.setup()
        self.worker = _Stepped(1, os.getppid(), [self.listener], application, 30, cfg, Logger(cfg))
        interval = sys.getswitchinterval()
        self.worker.init_process()
        sys.setswitchinterval(interval)
        queue: Any = self.worker.method_queue
        self.worker.poller.register(queue.fileno(), 1, queue.run_callbacks)
        self.clients: list[Client] = []

    def client(self, data: bytes = b"", **options: int) -> Client:
        """A new client that has said `data`. options: of its socket."""
        found = Client(self.address, self.family, **options)
        self.clients.append(found)
        found.say(data)
        return found

    def step(self, timeout_s: float = 0.02) -> None:
        """What gunicorn's main loop does in a round."""
        worker = self.worker
        worker.set_accept_enabled(worker.nr_conns < worker.worker_connections)
        worker.wait_for_and_dispatch_events(timeout_s)
        worker.murder_keepalived()
        self.check()

    def check(self) -> None:
        """What must be true between rounds."""
        worker = self.worker
        assert worker.nr_conns == len(worker.connections)
        watched = {key.fileobj for key in worker.poller.get_map().values()}
        for one in worker.connections:
            assert one.raw.fileno() >= 0
            assert (one.raw in watched) == (one.deadline < float("inf"))
        others = watched - {self.listener, worker.method_queue.fileno()}
        assert others <= {one.raw for one in worker.connections}

    def until(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + WITHIN_S
        while not condition():
            assert time.monotonic() < deadline, [client.got[-300:] for client in self.clients]
            self.step()

    def settle(self) -> None:
        """Let everything be done that can be done now."""
        for _ in range(3):
            self.step()

    def wait(self, seconds: float) -> None:
        """Let time pass for the worker."""
        self.later_s += seconds
        self.settle()

    def answered(self, data: bytes, count: int = 1) -> Client:
        """A client that has said `data` and read this many whole answers (or problems)."""
        client = self.client(data)
        self.until(lambda: len(answers(client.read())) >= count or client.has_ended)
        return client

    def close(self) -> None:
        self.until(self._is_idle)
        for client in self.clients:
            client.socket.close()
        self.until(lambda: not self.worker.connections)
        assert list(LoopWorker._open_connections).count(0) == 1
        self.worker.set_accept_enabled(False)
        self.worker.tpool.shutdown()
        self.worker.poller.close()
        self.worker.method_queue.close()
        self.worker.tmp.close()
        for descriptor in self.worker.PIPE:
            os.close(descriptor)
        for handler in self.worker.log.error_log.handlers:
            handler.close()
        self.listener.close()

    def _is_idle(self) -> bool:
        return all(one.deadline < float("inf") for one in self.worker.connections)


@contextmanager
def looping(
    address: Any = None,
    family: socket.AddressFamily = socket.AF_INET,
    application: Any = None,
    **options: int,
) -> Iterator[Loop]:
    """A loop at a free port, or at `address`, with a small application, or with `application`.

    options: settings of gunicorn.
    """
    with pytest.MonkeyPatch.context() as patch:
        address = address or ("127.0.0.1", free_port())
        loop = Loop(patch, address, family, application, **options)
        try:
            yield loop
        finally:
            loop.close()


@contextmanager
def looping_service(
    settings: Settings, restart: Callable[[], None] = lambda: None
) -> Iterator[tuple[Loop, Ledger]]:
    """A loop with the real application over the chain of `settings`, and its ledger."""
    app = create_app(settings, restart)
    application = SimpleNamespace(
        wsgi=lambda: app, extensions=app.extensions, config=app.config
    )  # as gunicorn wants it
    with closing(app.extensions[LEDGER]) as ledger, looping(application=application) as loop:
        yield loop, ledger


def answers(received: bytes) -> list[tuple[int, bytes]]:
    """Status and body of every whole answer with a length in `received`."""
    found: list[tuple[int, bytes]] = []
    while True:
        head, end, rest = received.partition(b"\r\n\r\n")
        if not end:
            return found
        status = int(head.split(None, 2)[1])
        lengths = [
            int(line.partition(b":")[2])
            for line in head.lower().split(b"\r\n")
            if line.startswith(b"content-length:")
        ]
        length = lengths[0] if lengths else 0
        if len(rest) < length:
            return found
        found.append((status, rest[:length]))
        received = rest[length:]
