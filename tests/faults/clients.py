"""Clients that post flights of their own, one after the other, and keep the receipts."""

import http.client
import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from backend.chain.flight import Flight, as_mapping
from tests.flights import flight

POSTED_FROM = 10**8  # serials of posted flights; those of imports are below
SERIALS_EACH = 10**6
ANSWER_WITHIN_S = 30.0
JOIN_WITHIN_S = 60.0
PAUSE_AFTER_LOSS_S = 0.05  # before a client connects again
GOOD, REFUSED = {201, 202}, {503, 507}


@dataclass
class Receipt:
    """What the service promised about a flight."""

    transaction_id: int
    content_hash: str
    serial: int


@dataclass
class Memory:
    """What one client submitted (serials from `first` on), and what it was told."""

    first: int
    submitted: int = 0
    acknowledged: list[Receipt] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)  # pushed back: 503
    unexpected: list[str] = field(default_factory=list)  # any other answer

    def flights(self) -> Iterator[Flight]:
        """Everything that was submitted."""
        return (flight(self.first + number) for number in range(self.submitted))


class Client:
    """Posts until it is told to stop. A request without an answer is not sent again."""

    def __init__(
        self, port: int, memory: Memory, stopping: threading.Event, pause_s: float, mode: str
    ) -> None:
        self.memory = memory
        self._port, self._stopping, self._pause_s = port, stopping, pause_s
        self._path = f"/transactions?mode={mode}"
        self._connection: http.client.HTTPConnection | None = None
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def join(self) -> None:
        """Wait until its last request is over."""
        self._thread.join(JOIN_WITHIN_S)
        assert not self._thread.is_alive(), "a client does not end"

    def _run(self) -> None:
        while not self._stopping.wait(self._pause_s):
            serial = self.memory.first + self.memory.submitted
            self.memory.submitted += 1
            try:
                self._post(serial)
            except (OSError, http.client.HTTPException):
                self._disconnect()
                self._stopping.wait(PAUSE_AFTER_LOSS_S)
        self._disconnect()

    def _post(self, serial: int) -> None:
        if self._connection is None:
            self._connection = http.client.HTTPConnection(
                "127.0.0.1", self._port, timeout=ANSWER_WITHIN_S
            )
        body = json.dumps(as_mapping(flight(serial)))
        self._connection.request("POST", self._path, body, {"Content-Type": "application/json"})
        response = self._connection.getresponse()
        self._remember(serial, response.status, response.read().decode())

    def _remember(self, serial: int, status: int, text: str) -> None:
        if status in GOOD:
            receipt: Any = json.loads(text)
            taken = Receipt(receipt["TRANSACTION_ID"], receipt["content_hash"], serial)
            self.memory.acknowledged.append(taken)
        elif status in REFUSED:
            self.memory.refused.append(f"{status} {text}")
            self._stopping.wait(PAUSE_AFTER_LOSS_S)
        else:
            self.memory.unexpected.append(f"{status} {text}")

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


@contextmanager
def posting(
    port: int, memories: Sequence[Memory], pause_s: float = 0.01, mode: str = "sync"
) -> Iterator[None]:
    """A client for each memory, each posting every `pause_s` seconds and the time of an answer."""
    stopping = threading.Event()
    clients = [Client(port, memory, stopping, pause_s, mode) for memory in memories]
    try:
        yield
    finally:
        stopping.set()
        for client in clients:
            client.join()


def memories(count: int, life: int = 0) -> list[Memory]:
    """Memories for `count` clients; life: another one posts other flights."""
    start = POSTED_FROM + life * count * SERIALS_EACH
    return [Memory(start + number * SERIALS_EACH) for number in range(count)]
