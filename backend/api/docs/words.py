"""Puts schemas and texts of our OpenAPI document into words, as HTML.

The page has words only for what our document uses. A schema with anything else is an error, so that
nothing can be missing from the page unnoticed.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec
from markupsafe import Markup, escape

from backend.errors import FlightchainError

Part = Mapping[str, Any]

_CODE = re.compile("`([^`]+)`")
_RANGES = (("minimum", "maximum", ""), ("minLength", "maxLength", " characters"))
_TOLD = {  # keywords that `type_of`, `limits` or the template put into words
    *("$ref", "anyOf", "type", "items", "properties", "required", "additionalProperties"),
    *("minimum", "maximum", "minLength", "maxLength", "format", "pattern", "enum", "default"),
    *("description", "examples"),
}
_BY_TYPE: dict[str, Any] = {"string": "text", "integer": 1, "number": 1.5, "boolean": True}


def phrase(text: str) -> Markup:
    """`text`, escaped, with the parts between backticks as code."""
    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(text))))  # noqa: S704  it is escaped


def plain(value: Any) -> str:
    """A value as it is written in an address: text bare, the rest as in JSON."""
    return value if isinstance(value, str) else json_text(value)


def json_text(value: Any) -> str:
    """`value` as JSON on one line."""
    return msgspec.json.encode(value).decode()


def json_lines(value: Any) -> str:
    """`value` as JSON to be read: indented."""
    return msgspec.json.format(msgspec.json.encode(value)).decode()


def name_of(part: Part) -> str:
    """The name of the component that `part` refers to; "" if it stands for itself."""
    reference: str = part.get("$ref", "")
    return reference.rpartition("/")[2]


def type_of(schema: Part) -> Markup:
    """The kind of a value: "integer or null", "array of Flight" with a link to Flight."""
    if "$ref" in schema:
        return Markup('<a href="#schema-{0}">{0}</a>').format(name_of(schema))
    if "anyOf" in schema:
        return Markup(" or ").join(type_of(each) for each in schema["anyOf"])
    if "items" in schema:
        items = type_of(schema["items"])
        if " or " in items:
            return Markup("array of ({})").format(items)
        return Markup("array of {}").format(items)
    return escape(" or ".join(_types(schema)))


def limits(schema: Part) -> Iterator[Markup]:
    """The other conditions of a value, each in a few words.

    Raises FlightchainError for a keyword that the page has no words for.
    """
    if unknown := schema.keys() - _TOLD:
        raise FlightchainError(f"/docs has no words for {sorted(unknown)} of a schema")
    yield from map(escape, _ranges(schema))
    for keyword in ("format", "pattern"):
        if keyword in schema:
            yield Markup("{} <code>{}</code>").format(keyword, schema[keyword])
    if "enum" in schema:
        yield escape("one of " if len(schema["enum"]) > 1 else "only ") + _codes(schema["enum"])
    if "default" in schema:
        yield Markup("default ") + _codes([schema["default"] or json_text(schema["default"])])
    if schema.get("additionalProperties") is False:
        yield Markup("no other members")


def example_of(schema: Part, schemas: Mapping[str, Part]) -> Any:
    """A value that fits: the schema's own example, if it has one. schemas: by their names."""
    if "$ref" in schema:
        return example_of(schemas[name_of(schema)], schemas)
    if "anyOf" in schema:
        return example_of(schema["anyOf"][0], schemas)
    for given in (schema.get("examples"), [schema.get("default")], schema.get("enum")):
        if given and given[0] is not None:
            return given[0]
    kind = _types(schema)[0]
    if kind == "object":
        members = schema.get("properties", {})
        return {name: example_of(member, schemas) for name, member in members.items()}
    if kind == "array":
        return [example_of(schema["items"], schemas)]
    made_up = "2013-01-01" if schema.get("format") == "date" else _BY_TYPE.get(kind)
    return schema.get("minimum", made_up)


def _types(schema: Part) -> list[str]:
    given = schema.get("type", "any value")
    return [given] if isinstance(given, str) else list(given)


def _codes(values: Iterable[Any]) -> Markup:
    return Markup(", ").join(Markup("<code>{}</code>").format(plain(each)) for each in values)


def _ranges(schema: Part) -> Iterator[str]:
    for low, high, counted in _RANGES:
        least, most = schema.get(low), schema.get(high)
        if least is not None and most is not None:
            words = f"exactly {least}" if least == most else f"{least} to {most}"
        elif least is not None:
            words = f"at least {least}"
        elif most is not None:
            words = f"at most {most}"
        else:
            continue
        yield words + counted
