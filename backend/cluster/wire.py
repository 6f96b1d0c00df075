"""Encodes and decodes the protobuf messages of which this package has tables of field numbers.

The encoding is that of proto3 (protobuf.dev/programming-guides/encoding): a field is a varint that
holds its number and its type, then its value. A message is a mapping of names to values. Fields
that the table does not name are skipped, so messages of a later release can be read. A field that
is absent, or has its default value (0, nothing), is not written, and reads as that default.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

Message = Mapping[str, Any]

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5  # types of fields on the wire
_FIXED_BYTES = {_FIXED64: 8, _FIXED32: 4}
_SIGN_BIT, _ALL = 1 << 63, 1 << 64
_MOST_VARINT_BYTES = 10


class WireError(ValueError):
    """The bytes are not a message of the kind that was expected."""


class Field(NamedTuple):
    """A field of a message. kind: int, bytes, str, or the table of a message within."""

    number: int
    kind: "type[int] | type[bytes] | type[str] | Schema"
    repeated: bool = False


Schema = Mapping[str, Field]


def varint(number: int) -> bytes:
    """Encode a number; one below zero as its two's complement of 64 bits."""
    number %= _ALL
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def encode(schema: Schema, message: Message) -> bytes:
    """Encode a message. Raises KeyError for a value that its table does not name."""
    out = []
    for name, value in message.items():
        field = schema[name]
        if field.repeated:
            out += [_encoded(field, item) for item in value]
        elif value or isinstance(field.kind, Mapping):
            out.append(_encoded(field, value))
    return b"".join(out)


def _encoded(field: Field, value: Any) -> bytes:
    if field.kind is int:
        return varint(field.number << 3 | _VARINT) + varint(int(value))
    if isinstance(field.kind, Mapping):
        data = encode(field.kind, value)
    else:
        data = value.encode() if isinstance(value, str) else bytes(value)
    return varint(field.number << 3 | _BYTES) + varint(len(data)) + data


def decode(schema: Schema, data: bytes) -> dict[str, Any]:
    """Decode a message; every field of its table has a value. Raises WireError."""
    names = {field.number: name for name, field in schema.items()}
    members = {name: _default(field) for name, field in schema.items()}
    at = 0
    while at < len(data):
        tag, at = _varint_at(data, at)
        value, at = _value_at(data, at, tag & 7)
        name = names.get(tag >> 3)
        if name is None:
            continue
        decoded = _decoded(schema[name], name, value)
        if schema[name].repeated:
            members[name].append(decoded)
        else:
            members[name] = decoded
    return members


def _default(field: Field) -> Any:
    if field.repeated:
        return []
    return None if isinstance(field.kind, Mapping) else field.kind()


def _varint_at(data: bytes, at: int) -> tuple[int, int]:
    """Return the varint that starts `at`, and where it ends."""
    number = 0
    for i, byte in enumerate(data[at : at + _MOST_VARINT_BYTES]):
        number |= (byte & 0x7F) << 7 * i
        if byte < 0x80:
            return number % _ALL, at + i + 1
    raise WireError(f"no number ends after byte {at}")


def _value_at(data: bytes, at: int, kind: int) -> tuple[int | bytes, int]:
    """Return the value of a field, which starts `at`, and where it ends."""
    if kind == _VARINT:
        return _varint_at(data, at)
    if kind == _BYTES:
        length, at = _varint_at(data, at)
    elif kind in _FIXED_BYTES:
        length = _FIXED_BYTES[kind]
    else:
        raise WireError(f"type {kind} of a field is unknown")
    if at + length > len(data):
        raise WireError(
            f"{length} bytes are announced after byte {at}, and {len(data) - at} follow"
        )
    return data[at : at + length], at + length


def _decoded(field: Field, name: str, value: int | bytes) -> Any:
    if isinstance(value, int) is not (field.kind is int):
        raise WireError(f"{name} has a value of another type")
    if isinstance(value, int):
        return value - _ALL if value >= _SIGN_BIT else value
    if isinstance(field.kind, Mapping):
        return decode(field.kind, value)
    if field.kind is str:
        return value.decode("utf-8", errors="replace")
    return value
