"""A port that is free may be taken, and one that is not is named before anything starts."""

import socket

import pytest

from backend.base.errors import FlightchainError
from backend.base.settings import Settings
from backend.service.supervisor import require_ports


def test_a_port_is_free_as_soon_as_nobody_listens_whatever_the_system_remembers() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        settings = Settings(port=listener.getsockname()[1])
        with pytest.raises(FlightchainError, match=f"port {settings.port}: Address already in use"):
            require_ports(settings, frontend=False)
        with socket.create_connection(listener.getsockname()):
            listener.accept()[0].close()  # who closes first has to remember the connection
    require_ports(settings, frontend=False)
