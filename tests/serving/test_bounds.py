"""Places for connections: who counts as one client, and who gives way when all are taken."""

from types import SimpleNamespace
from typing import Any

import pytest

from backend.serving.client_bounds import Bounds, address_of


@pytest.mark.parametrize(
    ("address", "other", "are_one"),
    [
        ("192.0.2.1", "192.0.2.1", True),
        ("192.0.2.1", "192.0.2.2", False),
        ("2001:db8:1:2::3", "2001:db8:1:2:ffff::4", True),  # who has one has all of the network
        ("2001:db8:1:2::3", "2001:db8:1:3::3", False),
        ("fe80::1%eth0", "fe80::2%eth1", True),
        ("", "", True),
    ],
)
def test_addresses_of_one_client(address: str, other: str, are_one: bool) -> None:
    clients: list[Any] = [
        SimpleNamespace(client=(host, 5000) if host else None) for host in (address, other)
    ]
    assert (address_of(clients[0]) == address_of(clients[1])) is are_one


class Idle:
    """A connection without a request in hand."""

    def __init__(self, address: str, since: float) -> None:
        self.client = (address, 5000)
        self.since = since
        self.transport: Any = SimpleNamespace(abort=lambda: self.ended.append(True))
        self.ended: list[bool] = []

    def is_idle(self) -> bool:
        return True


def test_the_address_with_the_most_connections_gives_way_and_nobody_else() -> None:
    nothing: Any = None
    bounds = Bounds(nothing, 10, lambda: None)
    older: list[Any] = [Idle(f"192.0.2.{number}", number) for number in range(6)]
    many: list[Any] = [Idle("192.0.2.9", 100 + number) for number in range(4)]
    newest: Any = Idle("192.0.2.10", 200)
    for connection in [*older, *many, newest]:
        bounds.connections.add(connection)
        bounds.admit(connection)
    assert [connection for connection in [*older, *many, newest] if connection.ended] == many[:1]
    assert newest in bounds.connections
