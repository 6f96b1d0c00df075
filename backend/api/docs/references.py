"""An OpenAPI document and the parts of it that name each other by `$ref`."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from backend.errors import FlightchainError

Part = Mapping[str, Any]

_DATA = {"example", "default", "const", "enum", "value"}  # no part of the description, whatever
_NAMES = {"properties", "schemas", "patternProperties", "$defs"}  # their members may be named so


class BrokenReference(FlightchainError):
    """A `$ref` that names nothing in its document, or itself."""


class Document:
    """An OpenAPI document in which every `$ref` names something.

    Raises BrokenReference, which says where the `$ref` stands.
    """

    def __init__(self, spec: Part) -> None:
        self.spec = spec
        for where, reference in _references(spec, ""):
            self.named(reference, where)

    def followed(self, part: Part) -> Part:
        """`part`, or what its `$ref` names, with what `part` says besides.

        Raises BrokenReference for one that leads back to itself.
        """
        seen: list[str] = []
        while "$ref" in part:
            reference = part["$ref"]
            if reference in seen:
                raise BrokenReference(f"$ref {reference!r} leads back to itself")
            seen.append(reference)
            besides = {name: value for name, value in part.items() if name != "$ref"}
            part = {**self.named(reference, "a reference"), **besides}
        return part

    def named(self, reference: str, where: str) -> Any:
        """What a JSON pointer (RFC 6901) behind a # names; where: who asks, for the message."""
        if not reference.startswith("#/"):
            raise BrokenReference(f"{where}: $ref {reference!r} leads out of this document")
        found: Any = self.spec
        for token in reference[2:].split("/"):
            step = token.replace("~1", "/").replace("~0", "~")
            try:
                found = found[int(step)] if isinstance(found, list) else found[step]
            except (KeyError, IndexError, ValueError, TypeError):
                message = f"{where}: $ref {reference!r} names nothing; there is no {step!r}"
                raise BrokenReference(message) from None
        return found

    def component(self, part: Part, kind: str) -> str:
        """The name of the component of this kind that `part` refers to; "" if it does not."""
        before = f"#/components/{kind}/"
        reference: str = part.get("$ref", "")
        name = reference.removeprefix(before)
        return name if reference.startswith(before) and "/" not in name else ""


def _references(part: Any, where: str, *, of_names: bool = False) -> Iterator[tuple[str, str]]:
    """(where, reference) of every `$ref`. of_names: the keys of `part` are names, not keywords."""
    if isinstance(part, Mapping):
        reference = part.get("$ref")
        if isinstance(reference, str):
            yield where, reference
        for name, value in part.items():
            is_data = name in _DATA or (name == "examples" and isinstance(value, list))
            if of_names or not is_data:
                inner = f"{where}.{name}" if where else str(name)
                yield from _references(value, inner, of_names=not of_names and name in _NAMES)
    elif isinstance(part, Sequence) and not isinstance(part, str):
        for number, value in enumerate(part):
            yield from _references(value, f"{where}[{number}]")
