"""JSON Schema (2020-12) in words: types, limits, members, and a value that fits."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup, escape

from backend.api.docs.prose import code, json_lines, json_text, link, phrase, prose
from backend.api.docs.references import Document, Part

Schema = Part | bool

MADE_UP = "(values made up from the schema)"
MOST_LEVELS = 8  # of what is made up for a schema that holds itself

_ALTERNATIVES = ("oneOf", "anyOf")
_TOLD = {  # keywords that the words below tell; whatever else there is is shown as JSON
    *("$ref", "type", "oneOf", "anyOf", "allOf", "items", "properties", "required"),
    *("additionalProperties", "description", "example", "examples", "enum", "const", "default"),
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength"),
    *("minItems", "maxItems", "minProperties", "maxProperties", "multipleOf", "format", "pattern"),
    *("readOnly", "writeOnly", "deprecated", "uniqueItems"),
}
_RANGES = (  # least, most, what is counted
    ("minimum", "maximum", ""),
    ("minLength", "maxLength", " characters"),
    ("minItems", "maxItems", " items"),
    ("minProperties", "maxProperties", " members"),
)
_SINGLE: tuple[tuple[str, Callable[[Any], Markup]], ...] = (
    ("exclusiveMinimum", lambda value: phrase(f"more than {value}")),
    ("exclusiveMaximum", lambda value: phrase(f"less than {value}")),
    ("multipleOf", lambda value: phrase(f"a multiple of {value}")),
    ("format", lambda value: Markup("format {}").format(code(value))),
    ("pattern", lambda value: Markup("pattern {}").format(code(value))),
    ("const", lambda value: Markup("always {}").format(code(plain(value)))),
    ("enum", lambda values: _choice([code(plain(value)) for value in values])),
    ("default", lambda value: Markup("default {}").format(code(plain(value) or '""'))),
)
_FLAGS = {
    "uniqueItems": "no item twice",
    "readOnly": "only in answers",
    "writeOnly": "only in requests",
    "deprecated": "deprecated",
}
_BY_TYPE: dict[str, Any] = {"string": "text", "integer": 1, "number": 1.5, "boolean": True}
_BY_FORMAT = {
    "date": "2013-01-01",
    "date-time": "2013-01-01T00:00:00Z",
    "uri": "/",
    "uuid": "00000000-0000-4000-8000-000000000000",
}


@dataclass(frozen=True, slots=True)
class Row:
    """A parameter, a header, or a member of an object.

    examples: values with what is said of them, mostly nothing. place: where a parameter stands.
    anchor: where a header is told in full, if it is shared.
    """

    name: str
    type: Markup
    limits: list[Markup]
    is_required: bool
    meaning: Markup
    examples: list[tuple[str, str]]
    place: str = ""
    anchor: str = ""


@dataclass(frozen=True, slots=True)
class Component:
    """A schema with a name of its own. examples: JSON, indented, with what is to say of it."""

    name: str
    type: Markup
    limits: list[Markup]
    meaning: Markup
    rows: list[Row]
    examples: list[tuple[str, str]]


def plain(value: Any) -> str:
    """A value as it is written in an address: text bare, the rest as in JSON."""
    return value if isinstance(value, str) else json_text(value)


def examples_in(part: Part) -> list[Any]:
    """The examples that a schema gives itself."""
    given: Any = part.get("examples", [])
    if "example" in part:
        return [part["example"], *given]
    return list(given)


class Schemas:
    """The schemas of `document`, in words."""

    def __init__(self, document: Document) -> None:
        self._document = document

    def type_of(self, schema: Schema) -> Markup:
        """What kind of value: "integer or null", "array of Flight" with a link to Flight."""
        if isinstance(schema, bool):
            return escape("anything" if schema else "nothing")
        if "$ref" in schema:
            name = self._document.component(schema, "schemas")
            if name:
                return link(f"#schema-{name}", name)
            return self.type_of(self._document.followed(schema))
        for keyword in _alternatives(schema):
            return self._either(schema[keyword], keyword)
        if "allOf" in schema:
            return Markup(" and ").join(self.type_of(part) for part in schema["allOf"])
        return Markup(" or ").join(self._single(name, schema) for name in _types(schema))

    def _either(self, parts: list[Schema], keyword: str) -> Markup:
        types = [self.type_of(part) for part in parts]
        several = sum(one != "null" for one in types) > 1
        before = escape("either " if keyword == "oneOf" and several else "")
        return before + Markup(" or ").join(types)

    def _single(self, name: str, schema: Part) -> Markup:
        if name == "array" and "items" in schema:
            items = self.type_of(schema["items"])
            several = " or " in items
            return Markup("array of ({})").format(items) if several else "array of " + items
        values = schema.get("additionalProperties", False)
        if name == "object" and values is not False and not schema.get("properties"):
            return Markup("object of {} by name").format(self.type_of(values))
        return escape(name)

    def limits(self, schema: Schema, name: str = "") -> list[Markup]:
        """What else a value must be, each in a few words. name: a title that need not be told."""
        if isinstance(schema, bool):
            return []
        found = [*_ranges(schema)]
        found += [tell(schema[keyword]) for keyword, tell in _SINGLE if keyword in schema]
        found += [escape(words) for keyword, words in _FLAGS.items() if schema.get(keyword)]
        if schema.get("additionalProperties") is False:
            found.append(Markup("no other members"))
        for part in _parts(schema):
            found += self.limits(part) if not _is_component(part) else []
        if "items" in schema and not _is_component(schema["items"]):
            found += [Markup("each {}").format(limit) for limit in self.limits(schema["items"])]
        return found + [
            Markup("{} {}").format(keyword, code(plain(value)))
            for keyword, value in schema.items()
            if (keyword not in _TOLD and not (keyword == "title" and value == name))
            or (keyword in _ALTERNATIVES and keyword not in _alternatives(schema))
        ]

    def row(self, name: str, schema: Schema, *, is_required: bool) -> Row:
        """A value with a name."""
        part: Part = {} if isinstance(schema, bool) else schema
        return Row(
            name,
            self.type_of(schema),
            self.limits(schema, name),
            is_required,
            phrase(part.get("description", "")),
            [(json_text(example), "") for example in examples_in(part)],
        )

    def component(self, name: str, schema: Schema) -> Component:
        """A schema to be told in full."""
        rows = list(self.members(schema))
        part: Part = {} if isinstance(schema, bool) else schema
        examples = [("", example) for example in examples_in(part)]
        if rows and not examples:
            examples = [(MADE_UP, self.value(schema))]
        return Component(
            name,
            self.type_of(schema),
            self.limits(schema, name),
            prose(part.get("description", "")),
            rows,
            [(said, json_lines(example)) for said, example in examples],
        )

    def members(self, schema: Schema, prefix: str = "") -> Iterator[Row]:
        """The members of an object, and of what stands within: `as_of.height`, `flights[].YEAR`."""
        if isinstance(schema, bool) or _is_component(schema):
            return
        required = schema.get("required", ())
        for name, value in schema.get("properties", {}).items():
            yield self.row(prefix + name, value, is_required=name in required)
            yield from self.members(value, f"{prefix}{name}.")
        others = schema.get("additionalProperties", False)
        if isinstance(others, Mapping) and schema.get("properties"):
            yield self.row(f"{prefix}*", others, is_required=False)
        yield from self.members(others, f"{prefix}*.")
        if "items" in schema:
            yield from self.members(schema["items"], f"{prefix.removesuffix('.')}[].")
        for part in _parts(schema):
            yield from self.members(part, prefix)

    def value(self, schema: Schema, levels: int = MOST_LEVELS) -> Any:
        """A value that fits, best one that the schema itself gives as an example."""
        if isinstance(schema, bool) or not levels:
            return None
        schema = self._document.followed(schema)
        given = [*examples_in(schema), *(schema[k] for k in ("default", "const") if k in schema)]
        if given or "enum" in schema:
            return (given or schema["enum"])[0]
        for keyword in _alternatives(schema):
            return self.value(schema[keyword][0], levels - 1)
        if "allOf" in schema:
            parts = [self.value(part, levels - 1) for part in schema["allOf"]]
            parts += [self._made_up(schema, levels)] if "properties" in schema else []
            return {name: value for part in parts for name, value in (part or {}).items()}
        return self._made_up(schema, levels)

    def _made_up(self, schema: Part, levels: int) -> Any:
        kind = _types(schema)[0]
        if kind == "object":
            members = schema.get("properties", {})
            return {name: self.value(member, levels - 1) for name, member in members.items()}
        if kind == "array":
            return [self.value(schema["items"], levels - 1)] if "items" in schema else []
        if kind in {"integer", "number"} and "minimum" in schema:
            return schema["minimum"]
        return _BY_FORMAT.get(schema.get("format", ""), _BY_TYPE.get(kind))


def _alternatives(schema: Part) -> list[str]:
    """The keywords that say what the type is; beside a type they only limit it."""
    return [each for each in _ALTERNATIVES if each in schema and "type" not in schema]


def _choice(values: list[Markup]) -> Markup:
    return escape("one of " if len(values) > 1 else "only ") + Markup(", ").join(values)


def _types(schema: Part) -> list[str]:
    """The names of the types of a schema without $ref; from its other keywords if it has none."""
    given = schema.get("type")
    if given is not None:
        return [given] if isinstance(given, str) else list(given)
    if "properties" in schema or "additionalProperties" in schema:
        return ["object"]
    if "items" in schema:
        return ["array"]
    values = schema.get("enum", [schema["const"]] if "const" in schema else [])
    if values and all(isinstance(value, str) for value in values):
        return ["string"]
    return ["any value"]


def _ranges(schema: Part) -> Iterator[Markup]:
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
        yield escape(words + (counted[:-1] if words.endswith(" 1") else counted))


def _parts(schema: Part) -> Iterator[Schema]:
    for keyword in (*_ALTERNATIVES, "allOf"):
        yield from schema.get(keyword, ())


def _is_component(schema: Schema) -> bool:
    """Whether it is told elsewhere on the page."""
    return isinstance(schema, Mapping) and "$ref" in schema
