"""Requests as the connection hands them to the front, and its answers; without a server."""

import asyncio
from collections.abc import Mapping, MutableMapping
from types import SimpleNamespace
from typing import Any, NamedTuple

from backend.serving.environs import CONNECTION, environ_of
from backend.serving.front import Front


class Seen(NamedTuple):
    """An answer."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes


def scope_of(
    method: str, target: str, headers: Mapping[str, str] | None = None, version: str = "1.1"
) -> dict[str, Any]:
    """The ASGI scope of a request, as gunicorn makes it."""
    path, _, query = target.partition("?")
    given = {"Host": "localhost", **(headers or {})}
    return {
        "type": "http",
        "http_version": version,
        "method": method,
        "scheme": "http",
        "raw_path": path.encode("latin-1"),
        "query_string": query.encode("latin-1"),
        "headers": [(n.lower().encode(), text.encode("latin-1")) for n, text in given.items()],
        "client": ("127.0.0.1", 50000),
        "server": ("127.0.0.1", 8000),
    }


def environ(
    method: str, target: str, headers: Mapping[str, str] | None = None, version: str = "1.1"
) -> dict[str, Any]:
    """The WSGI environ that the front makes of a request without a body."""
    return environ_of(scope_of(method, target, headers, version))


def asked(
    front: Front,
    method: str,
    target: str,
    given: Mapping[str, str] | None = None,
    body: bytes | None = None,
) -> Seen:
    """Returns what the front answers."""
    wanted = dict(given or {})
    if body is not None:
        wanted["Content-Length"] = str(len(body))
    sent: list[MutableMapping[str, Any]] = []

    async def receive() -> MutableMapping[str, Any]:
        return {"type": "http.request", "body": body or b"", "more_body": False}

    def send_whole(status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        encoded = [(name.encode("latin-1"), text.encode("latin-1")) for name, text in headers]
        sent.extend(({"status": status, "headers": encoded}, {"body": body}))

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    scope = {**scope_of(method, target, wanted), CONNECTION: SimpleNamespace(send_whole=send_whole)}
    asyncio.run(front(scope, receive, send))
    data = b"".join(message["body"] for message in sent[1:])
    fields = sent[0]["headers"]
    headers = [(name.decode("latin-1"), text.decode("latin-1")) for name, text in fields]
    return Seen(sent[0]["status"], headers, data)
