"""What our connection, bounds and worker rely on in uvicorn is there, in the pinned release."""

import inspect
import re
from pathlib import Path

import pytest
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import Server, ServerState
from uvicorn_worker import UvicornWorker

from backend.serving.client_bounds import Bounds
from backend.serving.connection import Connection
from backend.serving.worker import FrontServer, FrontWorker

ROOT = Path(__file__).parents[2]
OURS = {HttpToolsProtocol: Connection, Server: FrontServer, UvicornWorker: FrontWorker}

# Methods that uvicorn calls, or that replace its own.
CALLED = {
    HttpToolsProtocol: (
        *("connection_made", "connection_lost", "data_received", "eof_received", "shutdown"),
        *("pause_writing", "resume_writing", "_start_asgi_task", "on_response_complete"),
        *("on_url", "on_header", "on_headers_complete", "on_body", "on_message_complete"),
    ),
    Server: ("startup", "shutdown", "on_tick"),
    UvicornWorker: ("_serve", "init_process"),
}
# What its methods do, in its own words.
DONE = {
    HttpToolsProtocol.connection_made: ("self.connections.add(self)", "FlowControl(transport)"),
    HttpToolsProtocol.connection_lost: (
        "self.cycle.message_event.set()",
        "self.flow.resume_writing()",
        "self.parser = None",
    ),
    HttpToolsProtocol.on_message_begin: ("self.headers = []", "self.scope = {", 'self.url = b""'),
    HttpToolsProtocol.on_headers_complete: (
        "expect_100_continue=self.expect_100_continue",
        "self._start_asgi_task(self.cycle, app)",
        'keep_alive=http_version != "1.0" and self.parser.should_keep_alive()',
        "on_response=self.on_response_complete",
        'self.scope["raw_path"]',
    ),
    HttpToolsProtocol.on_body: ("self.cycle.response_complete", "self.flow.pause_reading()"),
    RequestResponseCycle.run_asgi: ("self.scope, self.receive, self.send", "self.disconnected"),
    RequestResponseCycle.send: (
        "if self.flow.write_paused and not self.disconnected:",
        "if num_bytes > self.expected_content_length",
        "self.chunked_encoding is None and",
        "if not self.keep_alive:\n                    self.transport.close()\n",
        "self.on_response()",
    ),
    RequestResponseCycle.receive: ("if self.waiting_for_100_continue and", "http.disconnect"),
    Server.main_loop: ("await asyncio.sleep(0.1)", "self.on_tick(counter)"),
    Server.on_tick: ("self.server_state.default_headers =", "if self.should_exit:"),
    Server._serve: ("await self.startup(sockets=sockets)", "await self.shutdown(sockets=sockets)"),
}


def test_the_release_is_the_one_that_was_read() -> None:
    pinned = re.search(r"^uvicorn==(\S+)", (ROOT / "requirements.in").read_text(), re.MULTILINE)
    assert pinned is not None
    assert uvicorn.__version__ == pinned[1]


@pytest.mark.parametrize("theirs", CALLED)
def test_every_method_that_is_overridden_is_there_with_the_same_parameters(theirs: type) -> None:
    for name in CALLED[theirs]:
        expected = list(inspect.signature(getattr(theirs, name)).parameters)
        assert list(inspect.signature(getattr(OURS[theirs], name)).parameters) == expected, name
        assert name in vars(OURS[theirs]), name


@pytest.mark.parametrize("method", DONE, ids=lambda method: method.__qualname__)
def test_what_uvicorn_does_is_what_it_did(method: object) -> None:
    source = inspect.getsource(method)  # type: ignore[arg-type]
    for part in DONE[method]:  # type: ignore[index]
        assert part in source, part


def test_all_that_workers_count_is_a_server_state() -> None:
    assert vars(ServerState()).keys() <= vars(Bounds(None, 1, lambda: None)).keys()  # type: ignore[arg-type]
