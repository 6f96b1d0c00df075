"""How a reader tries an operation: a line for the shell, links, and a form without JavaScript.

A form sends every field it has, an empty one as `name=`, which is another question than leaving it
out and mostly an error. So a parameter that may be left out is a field that sends nothing until it
is chosen: a checkbox or radio buttons with the values known to be good. Unless it has a default:
to send that says the same as not to, so it is a field like the others.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from shlex import quote as shell_quoted
from typing import Any
from urllib.parse import quote

from backend.api.docs.schemas import plain
from backend.errors import FlightchainError

Pair = tuple[str, Any]

MOST_LINKS = 6
_INDENT = " \\\n  "
_INPUT_TYPES = {"integer": "number", "number": "number"}
_INPUT_FORMATS = {"date": "date"}
_INPUT_LIMITS = {
    "minimum": "min",
    "maximum": "max",
    "minLength": "minlength",
    "maxLength": "maxlength",
}


@dataclass(frozen=True, slots=True)
class Given:
    """A parameter as it is sent: its name and place, its schema, and values that are good."""

    name: str
    place: str
    is_required: bool
    schema: Mapping[str, Any]
    examples: Sequence[Any]


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a form. kind: "input", "select", or "choice", which may be left out."""

    name: str
    kind: str
    value: str
    choices: list[str]
    attributes: dict[str, str]
    is_one: bool = False  # of the choices at most one


@dataclass(frozen=True, slots=True)
class Form:
    """A form that is sent with GET."""

    action: str
    fields: list[Field]


def address(path: str, parameters: Iterable[Given]) -> str:
    """The path with examples in the place of its parameters, and the query that must be given."""
    known = list(parameters)
    filled = _filled(path, {each.name: each.examples[0] for each in known if each.place == "path"})
    wanted = [(p.name, p.examples[0]) for p in known if p.place == "query" and p.is_required]
    return with_query(filled, wanted)


def with_query(path: str, pairs: Iterable[Pair]) -> str:
    """`path` with a query string; a list is sent as its name with each value."""
    written = [
        f"{quote(name, safe='')}={quote(plain(value), safe=',:')}"
        for name, values in pairs
        for value in (values if isinstance(values, list) else [values])
    ]
    return f"{path}?{'&'.join(written)}" if written else path


def curl(url: str, method: str, options: Iterable[tuple[str, str]], body: str | None) -> str:
    """A line for the shell. options: flags of curl with what comes behind them, quoted already."""
    is_usual = method == ("GET" if body is None else "POST")
    flag = "" if is_usual else "--head " if method == "HEAD" else f"--request {method} "
    parts = [f"curl {flag}{shell_quoted(url)}"]
    parts += [f"{flag} {value}" for flag, value in options]
    if body is not None:
        parts.append(f"--data-binary {shell_quoted(body)}")
    return _INDENT.join(parts)


def links(path: str, parameters: Sequence[Given]) -> list[str]:
    """Addresses to follow where there is nothing to fill in: one for each example in the path."""
    in_path = [each for each in parameters if each.place == "path"]
    if not in_path and any(each.place == "query" for each in parameters):
        return []
    rows = product(*(each.examples for each in in_path))
    query = [(p.name, p.examples[0]) for p in parameters if p.place == "query" and p.is_required]
    names = [each.name for each in in_path]
    found = [with_query(_filled(path, dict(zip(names, row, strict=True))), query) for row in rows]
    return found[:MOST_LINKS]


def form(path: str, parameters: Sequence[Given]) -> Form | None:
    """A form with the parameters in the query; None if there are none."""
    fields = [_field(each) for each in parameters if each.place == "query"]
    bare = [each for each in parameters if each.place == "path"]
    return Form(address(path, bare), fields) if fields else None


def _filled(path: str, values: Mapping[str, Any]) -> str:
    for name, value in values.items():
        path = path.replace(f"{{{name}}}", quote(plain(value), safe=""))
    if "{" in path:
        raise FlightchainError(f"the path {path} has a parameter that is not described")
    return path


def _field(parameter: Given) -> Field:
    schema, name = parameter.schema, parameter.name
    is_list = schema.get("type") == "array"
    if is_list:
        schema = schema.get("items", {})
    choices = [plain(each) for each in schema.get("enum", [])]
    may_be_left_out = not parameter.is_required and "default" not in parameter.schema
    if is_list or may_be_left_out:
        given = [each for one in parameter.examples for each in (one if is_list else [one])]
        good = choices or list(dict.fromkeys(plain(each) for each in given))
        return Field(name, "choice", "", good, {}, is_one=not is_list and len(good) > 1)
    if schema.get("type") == "boolean":
        choices = ["true", "false"]
    if choices:
        chosen = parameter.schema.get("default", parameter.examples[0])
        return Field(name, "select", plain(chosen), choices, {})
    attributes = _attributes(schema)
    if parameter.is_required or parameter.schema["default"] != "":
        attributes["required"] = ""  # so that the browser does not send it empty
    return Field(name, "input", plain(parameter.examples[0]), [], attributes)


def _attributes(schema: Mapping[str, Any]) -> dict[str, str]:
    """Attributes of an input that let the browser say what does not fit."""
    of_type = _INPUT_TYPES.get(str(schema.get("type")), "text")
    found = {"type": _INPUT_FORMATS.get(schema.get("format", ""), of_type)}
    for keyword, attribute in _INPUT_LIMITS.items():
        if keyword in schema:
            found[attribute] = str(schema[keyword])
    return found
