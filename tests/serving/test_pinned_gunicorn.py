"""What our connection and worker rely on in gunicorn is there, in the release that is pinned."""

import inspect
import re
from pathlib import Path

import gunicorn
import pytest
from gunicorn.asgi import protocol
from gunicorn.asgi.parser import PythonProtocol
from gunicorn.workers.gasgi import ASGIWorker

from serving.connection import Connection
from serving.parsing import Parser, Request
from serving.worker import FrontWorker

ROOT = Path(__file__).parents[2]

OWN = {  # methods that override none of gunicorn's
    *("end_if_idle", "give_up", "held_bytes", "refuse", "reset", "unsent_bytes", "eof_received"),
    *(
        "_parse",
        "_require_bounds",
        "_scope",
        "_serve",
        "_is_answered",
        "_turn_to_next",
        "_wait_for_head",
    ),
}
OWN_OF_WORKER = {
    *("setup", "forget", "has_room_for", "joined", "ends", "left", "limit_unsent", "listen"),
    *("look", "problem", "_accept", "_count", "_has_come", "_leaves_to_others", "_stop_listening"),
    *("_taken", "_keep_descriptors_free", "_give_up_the_late", "_count_in_lanes"),
}


def methods_of(kind: type) -> dict[str, object]:
    return {
        name: getattr(value, "__func__", value)
        for name, value in vars(kind).items()
        if inspect.isfunction(getattr(value, "__func__", value)) and name != "__init__"
    }


def test_the_release_is_the_one_that_was_read() -> None:
    pinned = re.search(r"^gunicorn==(\S+)", (ROOT / "requirements.in").read_text(), re.MULTILINE)
    assert pinned is not None
    assert gunicorn.__version__ == pinned[1]


@pytest.mark.parametrize(
    ("ours", "theirs", "own"),
    [(Connection, protocol.ASGIProtocol, OWN), (FrontWorker, ASGIWorker, OWN_OF_WORKER)],
)
def test_every_method_that_is_overridden_is_there_with_the_same_parameters(
    ours: type, theirs: type, own: set[str]
) -> None:
    methods = methods_of(ours)
    assert own <= methods.keys()
    for name in methods.keys() - own:
        expected = list(inspect.signature(getattr(theirs, name)).parameters)
        found = list(inspect.signature(getattr(ours, name)).parameters)
        assert found in (expected, ["self", *expected]), name


def test_what_is_called_or_read_is_used_by_gunicorn_as_it_was() -> None:
    source = inspect.getsource(protocol.ASGIProtocol)
    for name in (
        *("_callback_parser", "_current_request", "_body_receiver", "_flow_control", "_closed"),
        *("_keepalive", "_safe_write", "_pause_reading", "_resume_reading"),
    ):
        assert f"self.{name}" in source, name
    assert {"is_complete", "is_chunked", "content_length", "headers", "_buffer"} <= {
        *PythonProtocol.__slots__
    }
    assert {"feed", "remaining", "reset"} <= vars(PythonProtocol).keys()
    assert "self._task = self.worker.loop.create_task(self._handle_connection())" in source
    assert "self._task.cancel()" in inspect.getsource(protocol.ASGIProtocol.connection_lost)
    assert "def _will_close(self, request, response_requires_close):" in source


@pytest.mark.parametrize(
    "method", ["_is_valid_method", "_is_valid_token", "_has_invalid_header_chars"]
)
@pytest.mark.parametrize("around", [b"", b"x", b"x-1"])
def test_our_parser_takes_the_same_bytes(method: str, around: bytes) -> None:
    ours, theirs = (kind() for kind in (Parser, PythonProtocol))
    for byte in range(256):
        for data in (around, bytes([byte]) + around, around + bytes([byte]), around * 2):
            assert getattr(ours, method)(data) == getattr(theirs, method)(data), data


def test_connections_have_our_parser() -> None:
    assert vars(protocol)["PythonProtocol"] is Parser
    assert vars(protocol)["CallbackRequest"] is Request
    source = inspect.getsource(protocol.ASGIProtocol._setup_callback_parser)  # type: ignore[attr-defined]
    assert "parser_class = PythonProtocol" in source
    assert "CallbackRequest.from_parser(" in inspect.getsource(
        protocol.ASGIProtocol._on_headers_complete  # type: ignore[attr-defined]
    )
