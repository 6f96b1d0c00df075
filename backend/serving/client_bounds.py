"""Bounds what the clients of one worker take together: connections, received and unsent bytes.

When all places are taken, or one address has more than its share of them, the oldest connection
without a request in hand gives way, one of the address that has the most. If there is none, the new
one is refused at once: a port that is full says so. So whoever opens thousands of connections
only closes older ones of its own.
"""

from collections.abc import Callable
from heapq import nsmallest
from http import HTTPStatus
from ipaddress import ip_interface
from operator import itemgetter
from typing import Any, Protocol

from uvicorn.server import ServerState

from backend.serving.environs import CLOSE
from backend.serving.front import Site

MAX_RECEIVED_BYTES = 32 * 2**20  # of requests that are not answered yet, in one worker
MAX_UNSENT_BYTES = 32 * 2**20  # of answers that clients do not read, in one worker
MAX_BUFFERED_BYTES = 12 * 1024  # of an answer; its client counts as slow to read beyond that
NEXT = 32
SHARE = 0.5  # of all places, for one address: a proxy or a page's server may need many
IPV6_PREFIX = 64  # who has one address of such a network has all of them


class Bounded(Protocol):
    """A client's connection; `backend.serving.connection` says what its members mean."""

    transport: Any
    client: Any
    since: float
    deadline: float
    kept_bytes: int

    def is_idle(self) -> bool: ...
    def held_bytes(self) -> int: ...
    def give_up_if_late(self, now: float) -> None: ...
    def shutdown(self) -> None: ...


class Bounds(ServerState):
    """The connections of a worker, and what they may take.

    most: how many connections there may be. slow_readers: those whose clients have not read their
    answer. changed: called when their number has changed.
    """

    connections: set[Bounded]  # type: ignore[assignment]

    def __init__(self, site: Site, most: int, changed: Callable[[], None]) -> None:
        super().__init__()
        self.site = site
        self.most = most
        self.changed = changed
        self.slow_readers: set[Bounded] = set()
        self._next: list[tuple[float, Bounded]] = []  # that give way, the oldest last
        self._by_address: dict[str, set[Bounded]] = {}

    # --- connections -------------------------------------------------------------------------

    def admit(self, connection: Bounded) -> None:
        """Count a new connection, and make room for it; refuse it if there is none."""
        its_own = self._by_address.setdefault(address_of(connection), set())
        its_own.add(connection)
        is_over_share = len(its_own) > max(1, SHARE * self.most)
        if is_over_share or len(self.connections) > self.most:
            crowd = its_own if is_over_share else max(self._by_address.values(), key=len)
            self._make_room(connection, crowd)
        self.changed()

    def _make_room(self, newest: Bounded, some: set[Bounded]) -> None:
        oldest = self._oldest_idle(newest, some)
        if oldest is not None:
            self.left(oldest)
            oldest.transport.abort()
            return
        newest.transport.write(self.problem(newest, 503, "too many connections; try later"))
        newest.transport.close()

    def _oldest_idle(self, newest: Bounded, some: set[Bounded]) -> Bounded | None:
        """Return the connection of some that has been idle for longest.

        In a flood of thousands not all are looked at for each: the oldest few wait to be next.
        """
        for _ in range(2):
            while self._next:
                since, connection = self._next.pop()
                if connection in some and connection.since == since and connection.is_idle():
                    return connection
            idle = (
                (other.since, other) for other in some if other.is_idle() and other is not newest
            )
            self._next = nsmallest(NEXT, idle, itemgetter(0))[::-1]
        return None

    def left(self, connection: Bounded) -> None:
        self.connections.discard(connection)
        self.slow_readers.discard(connection)
        address = address_of(connection)
        its_own = self._by_address.get(address, set())
        its_own.discard(connection)
        if not its_own:
            self._by_address.pop(address, None)
        self.changed()

    # --- bytes -------------------------------------------------------------------------------

    def has_room_for(self, connection: Bounded) -> bool:
        """Return whether a client may send more, considering what all clients have sent in part.

        Small requests always may: those below an equal share of the room.
        """
        if connection.held_bytes() <= MAX_RECEIVED_BYTES // self.most:
            return True
        room = max(MAX_RECEIVED_BYTES, self.site.max_body_bytes_in_memory + 2**15)
        return sum(other.held_bytes() for other in self.connections) <= room

    def limit_unsent(self, connection: Bounded) -> None:
        """Give up the clients whose time to read ends first, while too many bytes are unsent."""
        self.slow_readers.add(connection)
        waiting = sorted(self.slow_readers, key=lambda reader: reader.deadline)
        total = sum(reader.kept_bytes for reader in waiting)
        total += MAX_BUFFERED_BYTES * (len(self.connections) - len(waiting))
        for slow in waiting[:-1]:
            if total <= MAX_UNSENT_BYTES:
                break
            total -= slow.kept_bytes
            slow.transport.abort()

    # --- refusals ----------------------------------------------------------------------------

    def problem(self, connection: Bounded, status: int, detail: str, **more: object) -> bytes:
        """Return the complete answer to a refused request, after which the connection ends."""
        headers, body = self.site.reject(connection.client, status, detail, **more)
        last = (("Content-Length", str(len(body))), CLOSE)
        lines = [f"{name}: {value}" for name, value in (*headers, *last)]
        head = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}", *lines, "", ""]
        return "\r\n".join(head).encode("ascii") + body


def address_of(connection: Bounded) -> str:
    """Return the address, or the network of an IPv6 client; "" at a Unix socket."""
    host = connection.client[0] if connection.client else ""
    if ":" not in host:
        return str(host)
    return str(ip_interface(f"{host.partition('%')[0]}/{IPV6_PREFIX}").network)
