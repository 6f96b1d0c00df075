"""A small log, what it signs, and servers that answer as a test wants."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from backend.trust.log import notes
from backend.trust.log.checkpoints import Checkpoint
from backend.trust.log.notes import Note
from backend.trust.log.secret_keys import SecretKey
from tests.api.worlds import seal, settings_for
from tests.flights import flights
from tests.http_servers import Handler, served_by

# Of a path and a body: a status and a body, and perhaps headers with their values.
Reply = Callable[[str, bytes], tuple[Any, ...]]


def grow(folder: Path, serial: int = 100) -> None:
    """Let the chain in `folder` have one more block."""
    seal(settings_for(folder), [flights(2, serial)])


def note_of(folder: Path) -> Note:
    return notes.parse((folder / "checkpoint").read_bytes())


def signed(key: SecretKey, size: int, root: bytes, more: str = "") -> bytes:
    """Sign a checkpoint. more: lines below the root."""
    return str(key.note(f"{Checkpoint(key.verifier.name, size, root)}{more}")).encode()


@contextmanager
def answering(reply: Reply) -> Iterator[str]:
    """Yield the URL of a server that answers every request as `reply` says."""

    class Replying(Handler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            status, text, *headers = reply(self.path, body)
            self.send_response(status)
            for name, value in headers:
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(text)

        do_POST = do_GET

    with served_by(Replying) as url:
        yield url
