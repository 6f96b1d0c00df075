"""The encoding of protobuf, against bytes that its documentation gives and by round trips."""

import socket
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.base.errors import FlightchainError
from backend.cluster import messages
from backend.cluster.socket_server import SocketServer, framed, socket_name
from backend.cluster.wire import Field, Schema, WireError, decode, encode, varint

INNER: Schema = {"a": Field(1, int)}
ALL: Schema = {
    "number": Field(1, int),
    "text": Field(2, str),
    "data": Field(3, bytes),
    "inner": Field(4, INNER),
    "many": Field(5, bytes, repeated=True),
    "rows": Field(6, INNER, repeated=True),
}
INT64 = st.integers(-(2**63), 2**63 - 1)


def test_the_examples_of_the_documentation() -> None:
    assert encode(INNER, {"a": 150}) == bytes.fromhex("089601")
    assert encode({"b": Field(2, str)}, {"b": "testing"}) == bytes.fromhex("120774657374696e67")
    assert encode({"c": Field(3, INNER)}, {"c": {"a": 150}}) == bytes.fromhex("1a03089601")
    assert varint(-2) == bytes.fromhex("feffffffffffffffff01")


def test_defaults_are_not_written_but_empty_messages_are() -> None:
    assert encode(ALL, {"number": 0, "text": "", "data": b""}) == b""
    assert encode(ALL, {"inner": {}, "rows": [{}], "many": [b""]}) == bytes.fromhex("220032002a00")


@given(
    st.fixed_dictionaries({
        "number": INT64,
        "text": st.text(),
        "data": st.binary(),
        "inner": st.none() | st.fixed_dictionaries({"a": INT64}),
        "many": st.lists(st.binary()),
        "rows": st.lists(st.fixed_dictionaries({"a": INT64})),
    })
)  # fmt: skip
def test_what_is_written_is_read(message: dict[str, object]) -> None:
    written = {name: value for name, value in message.items() if value is not None}
    assert decode(ALL, encode(ALL, written)) == message


def test_unknown_fields_of_every_type_are_skipped() -> None:
    data = encode(INNER, {"a": 7})
    unknown = bytes.fromhex("780179" + "00" * 8 + "7a01617d" + "00" * 4)
    assert decode(INNER, unknown + data) == {"a": 7}


@given(st.binary(max_size=40))
def test_nonsense_is_read_or_refused(data: bytes) -> None:
    with suppress(WireError):
        decode(ALL, data)


@pytest.mark.parametrize("data", ["08", "0a05", "0a0161", "0b", "08" + "ff" * 11])
def test_what_is_cut_short_or_of_another_type_is_refused(data: str) -> None:
    with pytest.raises(WireError):
        decode(INNER, bytes.fromhex(data))


def test_a_request_over_the_socket_is_answered_and_an_error_is_told(tmp_path: Path) -> None:
    failures: list[Exception] = []

    def handle(name: str, request: object) -> dict[str, object]:
        if name == "commit":
            raise FlightchainError("cannot go on")
        return {"log": f"{name} {request}"} if name == "query" else {}

    folder = tmp_path / ("deep" * 30)  # longer than the name of a socket may be
    folder.mkdir()
    path = folder / "abci.sock"
    server = SocketServer(path, handle, failures.append)
    server.start()
    with socket.socket(socket.AF_UNIX) as client:
        with socket_name(path) as name:
            client.connect(name)
        for name, content in (("query", {"path": "x"}), ("flush", {}), ("commit", {})):
            client.sendall(framed(messages.REQUEST, name, content))
        wanted = [
            framed(messages.RESPONSE, "query", {"log": "query {'path': 'x'}"}),
            framed(messages.RESPONSE, "flush", {}),
            framed(messages.RESPONSE, "exception", {"error": "cannot go on"}),
        ]
        received = b""
        while len(received) < len(b"".join(wanted)):
            received += client.recv(4096)
    server.close()
    assert received == b"".join(wanted)
    assert [str(error) for error in failures] == ["cannot go on"]
