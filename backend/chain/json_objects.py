"""Reads one JSON value, in which no object may name a member twice.

Most readers of JSON silently keep the last of two members with one name, msgspec too.
"""

import json
from typing import Any

import msgspec

Json = dict[str, Any]  # an object

_object = msgspec.json.Decoder(Json).decode

MAX_BYTES = 64 * 1024  # of a flight; more would only cost time and memory


class RepeatedNameError(ValueError):
    """An object names a member twice. name, value: of the second."""

    def __init__(self, name: str, value: object) -> None:
        super().__init__("is given twice; give it once")
        self.name = name
        self.value = value


def decoded(data: bytes) -> object:
    """Return the JSON value in `data`.

    Raises RepeatedNameError, and ValueError or RecursionError if it is not JSON. It takes time in
    proportion to the bytes, whatever they are.
    """
    value = msgspec.json.decode(data)
    if isinstance(value, dict) and data.count(b":") != len(value):  # a name may come twice
        json.loads(data, object_pairs_hook=each_once)
    return value


def object_of(data: bytes) -> Json | None:
    """Return the JSON object that `data` is, or None if it is none."""
    try:
        return _object(data)
    except (ValueError, RecursionError):
        return None


def each_once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return an object of these members, for `json.loads`. Raises RepeatedNameError."""
    members: dict[str, object] = {}
    for name, value in pairs:
        if name in members:
            raise RepeatedNameError(name, value)
        members[name] = value
    return members
