"""Tells whether a server can listen at a port."""

import socket


def why_not_free(host: str, port: int) -> str:
    """Return why nobody can listen at `port` now; "" if a server can."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            return f"cannot listen at {host} port {port}: {error.strerror}"
    return ""
