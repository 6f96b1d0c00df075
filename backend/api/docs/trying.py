"""Ways to try an operation: a line for the shell, a link, and a form without JavaScript.

A form sends every field it has, an empty one as `name=`. That is not the same as leaving the
parameter out, and mostly an error. So a parameter that may be left out is a field that sends
nothing until it is chosen: a checkbox, or radio buttons with values known to be good. A parameter
with a default is an ordinary field, because sending the default is the same as leaving it out.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from shlex import quote as shell_quoted
from typing import Any
from urllib.parse import quote

from backend.api.docs.words import Part, json_text, plain
from backend.errors import FlightchainError

SERVER = "http://127.0.0.1:8000"

_INPUT_LIMITS = {
    "minimum": "min",
    "maximum": "max",
    "minLength": "minlength",
    "maxLength": "maxlength",
}


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a form: an input with attributes, or one with choices.

    may_be_left_out: it sends nothing until a choice is made. Otherwise `value` is chosen.
    """

    name: str
    value: str
    choices: Sequence[str] = ()
    may_be_left_out: bool = False
    attributes: Mapping[str, str] = field(default_factory=dict)


def address(path: str, parameters: Iterable[Part]) -> str:
    """The path with examples in place of its parameters, and with the query that must be given.

    Raises FlightchainError for a parameter in the path that is not described.
    """
    query = []
    for parameter in parameters:
        name, example = parameter["name"], plain(parameter["example"])
        if parameter["in"] == "path":
            path = path.replace(f"{{{name}}}", quote(example, safe=""))
        elif parameter["in"] == "query" and parameter["required"]:
            query.append(f"{quote(name, safe='')}={quote(example, safe=',:')}")
    if "{" in path:
        raise FlightchainError(f"the path {path} has a parameter that is not described")
    return f"{path}?{'&'.join(query)}" if query else path


def commands(url: str, bodies: Mapping[str, Part]) -> Iterator[tuple[str, str]]:
    """Lines for the shell that ask for `url`: one to get it, or one to send each of `bodies`.

    Yields (media type, line). bodies: media type -> its description in OpenAPI.
    """
    asked = f"curl {shell_quoted(SERVER + url)}"
    for media_type, content in bodies.items():
        example = content["example"]
        sent = example if isinstance(example, str) else json_text(example)
        header = shell_quoted(f"Content-Type: {media_type}")
        parts = (asked, f"--header {header}", f"--data-binary {shell_quoted(sent)}")
        yield media_type, " \\\n  ".join(parts)
    if not bodies:
        yield "", asked


def fields(parameters: Iterable[Part]) -> list[Field]:
    """The form's fields: one for each parameter in the query."""
    return [_field(each) for each in parameters if each["in"] == "query"]


def _field(parameter: Part) -> Field:
    schema, name, example = parameter["schema"], parameter["name"], plain(parameter["example"])
    choices = [plain(each) for each in schema.get("enum", ())]
    if not parameter["required"] and "default" not in schema:
        return Field(name, "", choices or [example], may_be_left_out=True)
    if choices:
        return Field(name, plain(schema.get("default", example)), choices)
    return Field(name, example, attributes=_attributes(parameter, schema))


def _attributes(parameter: Part, schema: Part) -> dict[str, Any]:
    """Attributes of an input by which the browser refuses what does not fit."""
    kind = "number" if schema["type"] == "integer" else "text"
    found = {"type": "date" if schema.get("format") == "date" else kind}
    for keyword, attribute in _INPUT_LIMITS.items():
        if keyword in schema:
            found[attribute] = str(schema[keyword])
    if parameter["required"] or schema["default"] != "":
        found["required"] = ""  # so that the browser does not send it empty
    return found
