"""`GET /docs`: the service's OpenAPI description as a page to be read.

The page has its style in it: nothing is fetched, nothing runs, and it can be saved and read
anywhere. The Content-Security-Policy allows that style alone, by its hash, and forms that ask this
service. `templates/docs.html` goes through the document; `words` puts schemas into words, and
`trying` makes commands, links and forms. The page knows what our document uses, not all of OpenAPI.
"""

from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from hashlib import sha256
from http import HTTPStatus
from pathlib import Path
from typing import Any

from flask import Response
from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup

from backend.api.conditions import REVALIDATE, tag_of_content
from backend.api.docs import trying, words
from backend.api.docs.words import Part
from backend.api.encodings import compressed
from backend.api.json_answers import versioned
from backend.api.operation import OPERATION, Answer, Media
from backend.api.operation import Operation as Described
from backend.api.routes import Row
from serving.environs import Environ

MIMETYPE = "text/html; charset=utf-8"

READ = Described(
    "read_description",
    OPERATION,
    "This document as a page",
    {200: Answer("The page, which loads nothing else.", {"text/html": Media({"type": "string"})})},
    has_etag=True,
)

_TEMPLATES = Path(__file__).parent.parent / "templates"


@dataclass(frozen=True, slots=True)
class Told:
    """An answer with one status. anchor: its full description, if operations share that."""

    status: str
    phrase: str
    anchor: str
    part: Part


@dataclass(frozen=True, slots=True)
class Operation:
    """A method of a path, with its references followed.

    bodies: media type of a request -> its description in OpenAPI. commands: media type of the body
    to send, and a line for the shell. address: a link to follow if nothing has to be filled in,
    otherwise "". action, fields: those of the form, if there is one.
    """

    method: str
    path: str
    part: Part
    parameters: list[Part]
    bodies: Mapping[str, Part]
    answers: list[Told]
    commands: list[tuple[str, str]]
    address: str
    action: str
    fields: list[trying.Field]


def rows(spec: Callable[[], Mapping[str, Any]]) -> list[Row]:
    """The route of the page about `spec`, which is called once in each process, when needed."""
    kept_compressed = lru_cache(maxsize=4)(compressed)

    @cache
    def rendered() -> tuple[bytes, str, str]:
        body = page(spec()).encode()
        return body, tag_of_content(body), content_security_policy()

    def docs(environ: Environ) -> Response:
        """The service's description as a page."""
        READ.given(environ)
        body, tag, policy = rendered()
        response = versioned(environ, body, tag, REVALIDATE, kept_compressed, MIMETYPE)
        response.headers["Content-Security-Policy"] = policy
        response.headers["Referrer-Policy"] = "no-referrer"
        response.headers["X-Content-Type-Options"] = "nosniff"
        return response

    return [Row("GET", "/docs", READ, docs)]


def page(spec: Mapping[str, Any]) -> str:
    """Our OpenAPI document as HTML; the same document gives the same page.

    Raises KeyError for a `$ref` that names nothing, and FlightchainError for a schema that the page
    has no words for and for a parameter in a path that is not described.
    """
    operations = [
        _operation(path, method, part, spec["components"])
        for path, item in spec["paths"].items()
        for method, part in item.items()
    ]

    def operations_of(tag: str) -> list[Operation]:
        return [each for each in operations if tag in each.part["tags"]]

    return _template().render(
        style=Markup(_style()),  # noqa: S704  our own file
        spec=spec,
        groups=[
            (tag, f"tag-{tag['name'].replace(' ', '-')}", operations_of(tag["name"]))
            for tag in spec["tags"]
        ],
        headers=_headers(spec),
        **spec["components"],
    )


def content_security_policy() -> str:
    """What a browser may do with the page."""
    digest = b64encode(sha256(_style().encode()).digest()).decode()
    return (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; form-action 'self'; "
        "base-uri 'none'; frame-ancestors 'none'"
    )


def _operation(path: str, method: str, part: Part, components: Part) -> Operation:
    parameters = [_followed(components["parameters"], each) for each in part["parameters"]]
    in_path = [each for each in parameters if each["in"] == "path"]
    bodies = part.get("requestBody", {}).get("content", {})
    address = trying.address(path, parameters)
    fields = trying.fields(parameters) if method == "get" else []
    return Operation(
        method=method.upper(),
        path=path,
        part=part,
        parameters=parameters,
        bodies=bodies,
        answers=[
            _answer(status, each, components) for status, each in sorted(part["responses"].items())
        ],
        commands=list(trying.commands(address, bodies)),
        address=address if method == "get" and (in_path or not fields) else "",
        action=trying.address(path, in_path),
        fields=fields,
    )


def _answer(status: str, part: Part, components: Part) -> Told:
    phrase = HTTPStatus(int(status)).phrase
    return Told(status, phrase, words.name_of(part), _followed(components["responses"], part))


def _followed(components: Mapping[str, Part], part: Part) -> Part:
    """`part`, or the component that it refers to."""
    return components[words.name_of(part)] if "$ref" in part else part


def _headers(spec: Part) -> dict[str, Part]:
    """The headers of all responses by their names; each says the same wherever it is."""
    operations = [part for item in spec["paths"].values() for part in item.values()]
    responses = [each for part in operations for each in part["responses"].values()]
    return {
        name: header
        for response in (*spec["components"]["responses"].values(), *responses)
        for name, header in response.get("headers", {}).items()
    }


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
    environment.filters["json"] = words.json_text
    environment.globals.update(
        example_of=words.example_of,
        json_lines=words.json_lines,
        limits=words.limits,
        phrase=words.phrase,
        plain=words.plain,
        type_of=words.type_of,
    )
    return environment.get_template("docs.html")
