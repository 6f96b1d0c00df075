"""`GET /docs`: the service's OpenAPI description as a page to be read.

The page has its style in it: nothing is fetched and nothing runs, so it can be saved and read
anywhere. The Content-Security-Policy allows that style alone, by its hash.
"""

import json
import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, lru_cache
from hashlib import sha256
from pathlib import Path
from shlex import quote as shell_quoted
from typing import Any
from urllib.parse import quote

from flask import Response
from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup, escape

from backend.api.json_answers import made_once
from backend.api.operation import OPERATION, Answer, Media, Operation
from backend.api.routes import Lane, Row
from backend.questions.parameters import Given
from backend.serving.environs import Environ

MIMETYPE = "text/html; charset=utf-8"
MOST_PAGES = 4  # that are kept; each names the host that a client has asked

READ = Operation(
    "read_description",
    OPERATION,
    "Show this document as a page",
    {200: Answer("The page, which loads nothing else.", {"text/html": Media({"type": "string"})})},
    has_etag=True,
)

Part = Mapping[str, Any]

_TEMPLATES = Path(__file__).parent / "templates"
_CODE = re.compile("`([^`]+)`")
_LIMITS = ("format", "minimum", "maximum", "minLength", "maxLength", "pattern", "enum", "default")


def rows(spec: Callable[[], Part], port: int) -> list[Row]:
    """Return the route of the page about `spec`, which is called when needed.

    port: of the service, for a client that does not say which host it asks.
    """

    @lru_cache(maxsize=MOST_PAGES)
    def rendered(server: str) -> Callable[..., Response]:
        return made_once(lambda: page(spec(), server).encode(), MIMETYPE)

    def docs(environ: Environ, _: Given) -> Response:
        host = environ.get("HTTP_HOST", f"127.0.0.1:{port}")
        response = rendered(f"{environ['wsgi.url_scheme']}://{host}")(environ)
        response.headers["Content-Security-Policy"] = content_security_policy()
        return response

    return [Row("GET", "/docs", READ, docs, Lane.READ)]


def page(spec: Part, server: str) -> str:
    """Return an OpenAPI document of the service as HTML, with commands that ask `server`."""
    operations = [
        {"method": method.upper(), "path": path, **part, **_followed(spec, part, path)}
        for path, item in spec["paths"].items()
        for method, part in item.items()
    ]
    for operation in operations:
        operation["commands"] = list(_commands(server, operation))
    tags = [
        (tag, [operation for operation in operations if tag["name"] in operation["tags"]])
        for tag in spec["tags"]
    ]
    style = Markup(_style())  # noqa: S704  our own file
    return _template().render(style=style, spec=spec, tags=tags)


def content_security_policy() -> str:
    """Return what a browser may do with the page."""
    digest = b64encode(sha256(_style().encode()).digest()).decode()
    return (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; form-action 'none'; "
        "base-uri 'none'; frame-ancestors 'none'"
    )


def _followed(spec: Part, part: Part, path: str) -> dict[str, Any]:
    """Return an operation's parameters and responses without references, and an address."""
    components = spec["components"]
    parameters = [
        _resolved(components["parameters"], reference) for reference in part["parameters"]
    ]
    return {
        "parameters": parameters,
        "bodies": part.get("requestBody", {}).get("content", {}),
        "responses": {
            status: _resolved(components["responses"], answer)
            for status, answer in sorted(part["responses"].items())
        },
        "address": example_address(path, parameters),
    }


def _resolved(components: Part, part: Part) -> Part:
    component: Part = components[name_of(part)] if "$ref" in part else part
    return component


def name_of(part: Part) -> str:
    """Return the name of the component that `part` refers to; "" if it refers to none."""
    reference: str = part.get("$ref", "")
    return reference.rpartition("/")[2]


def example_address(path: str, parameters: Iterable[Part]) -> str:
    """Return the path with examples of its parameters, and with the query that must be given."""
    query = []
    for parameter in parameters:
        name, example = parameter["name"], str(parameter.get("example", ""))
        if parameter["in"] == "path":
            path = path.replace(f"{{{name}}}", quote(example, safe=""))
        elif parameter["in"] == "query" and parameter["required"]:
            query.append(f"{name}={quote(example, safe=',:')}")
    return f"{path}?{'&'.join(query)}" if query else path


def _commands(server: str, operation: Part) -> Iterator[str]:
    """Yield lines for a shell: one that asks for an operation, or one for each body's example."""
    method, bodies = operation["method"], operation["bodies"]
    chosen = "" if bodies or method == "GET" else f"--request {method} "
    request = f"curl {chosen}{shell_quoted(server + operation['address'])}"
    for media_type, content in bodies.items():
        example = content["example"]
        sent = example if isinstance(example, str) else json.dumps(example, ensure_ascii=False)
        header = shell_quoted(f"Content-Type: {media_type}")
        yield f"{request} \\\n  --header {header} \\\n  --data-binary {shell_quoted(sent)}"
    if not bodies:
        yield request


def kind_of(schema: Part) -> Markup:
    """Return the type and limits of a value, in a line; a link to the schema that it refers to."""
    if "$ref" in schema:
        return Markup('<a href="#schema-{0}">{0}</a>').format(name_of(schema))
    if "oneOf" in schema:
        return Markup(" or ").join(kind_of(choice) for choice in schema["oneOf"])
    if "items" in schema:
        return Markup("array of {}").format(kind_of(schema["items"]))
    types = schema.get("type", [])
    limits = [f"{name} {_plain(schema[name])}" for name in _LIMITS if name in schema]
    names = types if isinstance(types, str) else " or ".join(types)
    return escape(", ".join(filter(None, [names, *limits])) or "any value")


def _plain(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def phrase(text: str) -> Markup:
    """Return `text`, escaped, with the parts between backticks as code."""
    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(text))))  # noqa: S704  it is escaped


@cache
def _style() -> str:
    return (_TEMPLATES / "docs.css").read_text(encoding="utf-8")


@cache
def _template() -> Template:
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(kind_of=kind_of, phrase=phrase)
    return environment.get_template("docs.html")
