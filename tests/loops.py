"""The worker's loop with a small service, run step by step in the test, and clients of it."""

import asyncio
import os
import select
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from io import BytesIO
from types import SimpleNamespace
from typing import Any

import pytest
import uvloop
from flask import Response
from gunicorn.config import Config
from gunicorn.glogging import Logger

from backend.api import Service
from backend.api.metrics import CountedRequests
from backend.api.operation import OPERATION, Operation
from backend.api.problems import Problems
from backend.api.reception import Reception
from backend.api.routes import Lane, Post, Row, Table
from backend.base.processes.shared_numbers import Numbers
from backend.base.settings import Settings
from backend.ledger.ledger import Ledger
from backend.questions.parameters import Given
from backend.service.web_server import front_of
from backend.serving.connection import ANSWER
from backend.serving.environs import Environ
from backend.serving.front import Front
from backend.serving.host_policy import HostPolicy
from backend.serving.lanes import Group
from backend.serving.worker import MOST_WORKERS, FrontServer, FrontWorker
from tests.api.processes import WITHIN_S, free_port

BIG = 20_000_000  # more than the system buffers for a connection
TURNS = 10  # of the loop; accepting, reading and answering take three, however busy the machine is
MAX_BODY_BYTES = 2**16
KEEPALIVE_S = 30
THREADS = 2
OWN_THREADS = (Lane.QUESTION, Lane.SCAN, Lane.EXPORT, Lane.BATCH, Lane.COMMIT)


class AnyParameters(Operation):
    """An operation that takes any query string."""

    def given(self, environ: Environ) -> Given:
        return {}


class Small:
    """A service that answers with what it was asked, each path in a lane.

    /quick is answered in the loop, /slow by a thread, /together with others, each group of which is
    noted in `groups`; /question, /scan, /export, /batch and /commit by threads of their own. /big
    behind a path gives much, /error raises.
    """

    def __init__(self, **options: Any) -> None:
        self.before: Callable[[], object] = lambda: None  # run by threads and by groups
        self.groups: list[list[str]] = []  # what was asked in each
        numbers = CountedRequests(Numbers())
        self.metrics: Any = SimpleNamespace(sample=lambda: None, watch=lambda lanes: None)
        self.settings = Settings(threads=THREADS, max_body_bytes=MAX_BODY_BYTES, **options)
        self.reception = Reception(
            HostPolicy("127.0.0.1", "localhost", "machine"), numbers, access_log=False
        )
        self.problems = Problems(lambda: None)
        self.table = Table(self._rows())
        self.ledger = SimpleNamespace(
            submitter=SimpleNamespace(stop_waiting=lambda: None), cached_blocks=SimpleNamespace()
        )
        self.flask: Any = Response(status=404)

    def _rows(self) -> Iterator[Row]:
        lanes = {
            "/quick": Lane.INLINE,
            "/slow": Lane.THREAD,
            "/together": Lane.GROUPED,
            **{f"/{lane}": lane for lane in OWN_THREADS},
        }
        operation = AnyParameters("small", OPERATION, "", {})
        group = Group(self._prepare, self._accept_all)
        for method in ("GET", "POST"):
            yield Row(method, "/ignored", operation, self._ignored, Lane.INLINE)
            for path, lane in lanes.items():
                for more in ("", "/big", "/error"):
                    yield Row(method, path + more, operation, self._answer, lane, group)

    def _ignored(self, *_: object) -> Response:
        return Response("/ignored  ")

    def _answer(self, environ: Environ, *_: object) -> Response:
        path = environ["PATH_INFO"]
        if "error" in path:
            raise ValueError(path)
        if not path.startswith(("/quick", "/together")):
            self.before()
        given = environ["wsgi.input"].read()
        body = b"x" * BIG if "big" in path else f"{path} {environ['QUERY_STRING']} ".encode()
        return Response(body if "big" in path else body + given)

    def _prepare(self, environ: Environ) -> Post:
        environ["wsgi.input"] = BytesIO(environ["wsgi.input"].read())  # a body is read here
        return Post(environ["QUERY_STRING"], lambda _: self._answer(environ))

    def _accept_all(self, posts: Sequence[Post]) -> list[Response | Exception]:
        self.groups.append([post.offer for post in posts])
        self.before()
        outcomes: list[Response | Exception] = []
        for post in posts:
            try:
                outcomes.append(post.answer(None))
            except ValueError as error:
                outcomes.append(error)
        return outcomes


class _Stepped(FrontWorker):
    """Leaves signals and the loop to the test."""

    def init_signals(self) -> None:
        pass

    def run(self) -> None:
        self.loop = uvloop.new_event_loop()
        asyncio.set_event_loop(self.loop)
        self.config.app = self.wsgi
        self.config.load()
        self.server = FrontServer(self.config, self)
        self.server.server_state.default_headers = []
        self.loop.run_until_complete(self.server.startup(self.sockets))
        self.connections = self.server.bounds.connections
        self.tick = self.server.tick

    @property
    def load(self) -> int:
        """The load that others see."""
        load: int = self._loads[self.age % MOST_WORKERS]
        return load


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

    def hears(self) -> bool:
        """Returns whether something has come that is not read yet."""
        return bool(select.select([self.socket], [], [], 0)[0])

    def ended(self) -> bool:
        """Returns whether the loop has ended the connection."""
        self.read()
        return self.has_ended

    def reset(self) -> None:
        """Vanish without a word."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()


class Loop:
    """A worker, its service and its clients."""

    service: Any

    def __init__(
        self,
        patch: pytest.MonkeyPatch,
        address: Any,
        family: socket.AddressFamily,
        front: Front | None,
        service: Any,
        **options: int,
    ) -> None:
        self.later_s = 0.0  # how far the worker's clock is ahead
        now = lambda: time.monotonic() + self.later_s  # noqa: E731
        for module in ("worker", "connection"):
            patch.setattr(f"backend.serving.{module}.time", SimpleNamespace(monotonic=now))
        self.listener = socket.socket(family)
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind(address)
        self.listener.listen(100)
        self.address, self.family = address, family
        cfg = Config()
        given = {"keepalive": KEEPALIVE_S, **options}
        for name, value in given.items():
            cfg.set(name, value)
        cfg.set("errorlog", os.devnull)
        self.service = service or Small()
        served = front or front_of(self.service)
        application: Any = SimpleNamespace(wsgi=lambda: served)
        FrontWorker.check_config(cfg, None)
        self.worker: Any = _Stepped(
            1, os.getppid(), [self.listener], application, 30, cfg, Logger(cfg)
        )
        interval = sys.getswitchinterval()
        self.worker.init_process()
        sys.setswitchinterval(interval)
        self.clients: list[Client] = []

    @property
    def application(self) -> Small:
        """The small service."""
        assert isinstance(self.service, Small)
        return self.service

    def client(self, data: bytes = b"", **options: int) -> Client:
        """A new client that has said `data`. options: of its socket."""
        client = Client(self.address, self.family, **options)
        self.clients.append(client)
        client.say(data)
        return client

    def step(self, timeout_s: float = 0.002) -> None:
        """Lets the worker go on for a moment."""
        self.worker.loop.run_until_complete(self._turns(timeout_s))
        self.worker.tick()
        self.check()

    @staticmethod
    async def _turns(timeout_s: float) -> None:
        for _ in range(TURNS):
            await asyncio.sleep(0)
        await asyncio.sleep(timeout_s)

    def check(self) -> None:
        """Checks what must be true between steps."""
        for connection in self.worker.connections:
            is_incomplete = connection.received_bytes > 0 and connection.waits_for != ANSWER
            assert not is_incomplete or connection.deadline < float("inf")

    def until(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + WITHIN_S
        while not condition():
            assert time.monotonic() < deadline, [client.got[-300:] for client in self.clients]
            self.step()

    def until_answered(self, *clients: Client) -> None:
        self.until(lambda: all(answers(client.read()) for client in clients))

    @contextmanager
    def held(self) -> Iterator[None]:
        """All that threads and groups do waits until this ends."""
        goes_on = threading.Event()
        self.application.before = lambda: goes_on.wait(WITHIN_S)
        try:
            yield
        finally:
            goes_on.set()

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
        for client in self.clients:
            client.socket.close()
        self.until(lambda: not self.worker.connections and list(FrontWorker._loads).count(0) == 1)
        self.worker.wsgi.close()
        self.worker.server._stop_listening()
        self.worker.loop.close()
        self.worker.tmp.close()
        for descriptor in self.worker.PIPE:
            os.close(descriptor)
        for handler in self.worker.log.error_log.handlers:
            handler.close()
        self.listener.close()
        asyncio.set_event_loop(None)


@contextmanager
def looping(
    address: Any = None,
    family: socket.AddressFamily = socket.AF_INET,
    front: Front | None = None,
    service: Any = None,
    **options: int,
) -> Iterator[Loop]:
    """A loop at a free port, or at `address`, with a small service, `service` or `front`.

    options: settings of gunicorn.
    """
    with pytest.MonkeyPatch.context() as patch:
        address = address or ("127.0.0.1", free_port())
        loop = Loop(patch, address, family, front, service, **options)
        try:
            yield loop
        finally:
            loop.close()


@contextmanager
def looping_service(
    settings: Settings, restart: Callable[[], None] = lambda: None
) -> Iterator[tuple[Loop, Ledger]]:
    """A loop with the real service over the chain of `settings`, and its ledger."""
    service = Service(settings, restart)
    with closing(service.ledger) as ledger, looping(service=service) as loop:
        yield loop, ledger


def answers(received: bytes) -> list[tuple[int, bytes]]:
    """Returns status and body of every whole answer with a length in `received`."""
    answers: list[tuple[int, bytes]] = []
    while True:
        head, end, rest = received.partition(b"\r\n\r\n")
        if not end:
            return answers
        status = int(head.split(None, 2)[1])
        lengths = [
            int(line.partition(b":")[2])
            for line in head.lower().split(b"\r\n")
            if line.startswith(b"content-length:")
        ]
        length = lengths[0] if lengths else 0
        if len(rest) < length:
            return answers
        answers.append((status, rest[:length]))
        received = rest[length:]
