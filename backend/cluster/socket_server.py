"""Serves ABCI over a Unix socket: answers the engine's requests one by one, in their order.

The engine opens four connections (consensus, mempool, query, snapshots), each served by a thread.
A message is preceded by its length as a varint. Answers are sent when the engine asks to flush, as
it does whenever it waits for one.

An application that fails cannot go on: it and the engine would no longer agree on what was done. So
the error is sent, which ends the engine, and `failed` is told.
"""

import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from io import BufferedRWPair
from pathlib import Path

from backend.cluster import messages
from backend.cluster.wire import Message, Schema, WireError, decode, encode, varint

MOST_MESSAGE_BYTES = 100 * 2**20  # as in the engine
CONNECTIONS = 4

Handle = Callable[[str, Message], Message]


@contextmanager
def socket_name(path: Path) -> Iterator[str]:
    """Yield a name of a Unix socket that is short enough for Linux (107 bytes), wherever it is.

    It is good for this process while the block lasts.
    """
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)


class SocketServer:
    """Listens at `path`; `start` serves, in threads of its own."""

    def __init__(self, path: Path, handle: Handle, failed: Callable[[Exception], None]) -> None:
        """handle: answers a request, by its name. failed: takes the error that ended serving."""
        self._path = path
        self._handle = handle
        self._failed = failed
        path.unlink(missing_ok=True)
        self._listener = socket.socket(socket.AF_UNIX)
        with socket_name(path) as name:
            self._listener.bind(name)
        path.chmod(0o600)
        self._listener.listen(CONNECTIONS)

    def start(self) -> None:
        threading.Thread(target=self._accept, name="abci", daemon=True).start()

    def close(self) -> None:
        """Take no more connections; those that there are end with the engine."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._path.unlink(missing_ok=True)

    def _accept(self) -> None:
        with suppress(OSError):  # until it is closed
            while True:
                connection, _ = self._listener.accept()
                threading.Thread(
                    target=self._serve, args=(connection,), name="abci connection", daemon=True
                ).start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            with connection, connection.makefile("rwb") as stream:
                while (data := _read(stream)) is not None:
                    name, answer = self._answer(data)
                    stream.write(framed(messages.RESPONSE, name, answer))
                    if name in {"flush", "exception"}:
                        stream.flush()
        except WireError as error:
            self._failed(error)
        except OSError:  # the engine has ended
            pass

    def _answer(self, data: bytes) -> tuple[str, Message]:
        request = decode(messages.REQUEST, data)
        name = next((name for name, value in request.items() if value is not None), None)
        if name is None:
            raise WireError("a request of an unknown kind")
        try:
            return name, self._handle(name, request[name])
        except Exception as error:  # noqa: BLE001  whatever it is, the engine must not go on
            self._failed(error)
            return "exception", {"error": str(error)}


def _read(stream: BufferedRWPair) -> bytes | None:
    """Return the next message; None at the end of the stream. Raises WireError."""
    length = shift = 0
    while True:
        byte = stream.read(1)
        if not byte:
            return None
        length |= (byte[0] & 0x7F) << shift
        shift += 7
        if byte[0] < 0x80:
            break
    if length > MOST_MESSAGE_BYTES:
        raise WireError(f"a message of {length} bytes is too long")
    data = stream.read(length)
    return data if len(data) == length else None


def framed(schema: Schema, name: str, content: Message) -> bytes:
    """Return a request or an answer as it is sent: its length, then itself."""
    data = encode(schema, {name: content})
    return varint(len(data)) + data
