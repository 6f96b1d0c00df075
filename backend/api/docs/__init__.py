"""`GET /docs`: the service's OpenAPI description as a page to be read.

One document with its style in it: nothing is fetched, nothing runs, and it can be saved and read
anywhere. The Content-Security-Policy allows that style alone, by its hash, and forms that ask this
service. `operations`, `schemas` and `trying` say what is on the page, `templates/docs.html` how it
looks.
"""

from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from flask import Response
from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup

from backend.api.answers import versioned
from backend.api.conditions import REVALIDATE, Environ, tag_of_content
from backend.api.docs.operations import Operation, Operations, Other, others
from backend.api.docs.prose import phrase, prose
from backend.api.docs.references import Document, Part
from backend.api.docs.schemas import Schemas
from backend.api.encodings import compressed
from backend.api.operation import OPERATION, Answer, Media
from backend.api.operation import Operation as Described
from backend.api.routes import Row

MIMETYPE = "text/html; charset=utf-8"

READ = Described(
    "read_description",
    OPERATION,
    "This document as a page",
    {200: Answer("It needs nothing but itself.", {"text/html": Media({"type": "string"})})},
    has_etag=True,
)

_TEMPLATES = Path(__file__).parent.parent / "templates"
_TOLD_OF_DOCUMENTS = {"openapi", "info", "servers", "tags", "paths", "components", "security"}
_TOLD_OF_COMPONENTS = {"schemas", "responses", "headers", "securitySchemes"} | {
    *("parameters", "examples", "requestBodies", "pathItems")  # told wherever they are used
}
_UNTAGGED = "Other"


@dataclass(frozen=True, slots=True)
class Group:
    """The operations under a tag."""

    name: str
    anchor: str
    meaning: Markup
    operations: list[Operation]
    others: list[Other]


@dataclass(frozen=True, slots=True)
class Scheme:
    """A way to be let in."""

    name: str
    kind: str
    meaning: Markup
    others: list[Other]


def rows(spec: Callable[[], Mapping[str, Any]]) -> list[Row]:
    """The page of what `spec` says; it is asked once in each process, when the page is wanted."""
    kept_compressed = lru_cache(maxsize=4)(compressed)

    @cache
    def rendered() -> tuple[bytes, str, str]:
        body = page(spec()).encode()
        return body, tag_of_content(body), content_security_policy()

    def docs(environ: Environ) -> Response:
        """The service's description, to be read."""
        READ.given(environ)
        body, tag, policy = rendered()
        response = versioned(environ, body, tag, REVALIDATE, kept_compressed, MIMETYPE)
        response.headers["Content-Security-Policy"] = policy
        response.headers["Referrer-Policy"] = "no-referrer"
        response.headers["X-Content-Type-Options"] = "nosniff"
        return response

    return [Row("GET", "/docs", READ, docs)]


def page(spec: Mapping[str, Any]) -> str:
    """An OpenAPI 3.1 document as HTML; the same for the same document.

    Raises BrokenReference for a `$ref` that names nothing, FlightchainError for a parameter in a
    path that is not described.
    """
    document = Document(spec)
    schemas = Schemas(document)
    operations = Operations(document, schemas)
    components = spec.get("components", {})
    return _template().render(
        style=Markup(_style()),  # noqa: S704  our own file
        info=spec["info"],
        openapi=spec["openapi"],
        servers=spec.get("servers", []),
        others=others(spec, _TOLD_OF_DOCUMENTS) + others(components, _TOLD_OF_COMPONENTS),
        others_of_info=others(spec["info"], {"title", "version", "summary", "description"}),
        groups=list(_groups(spec.get("tags", ()), operations.all())),
        schemes=[
            _scheme(n, document.followed(p)) for n, p in _named(components, "securitySchemes")
        ],
        answers=[(n, operations.answer("", p)) for n, p in _named(components, "responses")],
        headers=operations.headers(),
        schemas=[schemas.component(n, schema) for n, schema in _named(components, "schemas")],
    )


def content_security_policy() -> str:
    """What a browser may do with the page."""
    digest = b64encode(sha256(_style().encode()).digest()).decode()
    return (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; form-action 'self'; "
        "base-uri 'none'; frame-ancestors 'none'"
    )


def _groups(tags: Iterable[Part], operations: Iterable[Operation]) -> Iterable[Group]:
    """The operations by their first tag: tags as they are declared, then others as they come."""
    by_tag: dict[str, list[Operation]] = {tag["name"]: [] for tag in tags}
    for operation in operations:
        by_tag.setdefault(operation.tag or _UNTAGGED, []).append(operation)
    told = {tag["name"]: tag for tag in tags}
    for name, found in by_tag.items():
        tag = told.get(name, {})
        anchor = "tag-" + "-".join(name.split())
        more = others(tag, {"name", "description"})
        yield Group(name, anchor, prose(tag.get("description", "")), found, more)


def _named(components: Part, kind: str) -> Iterable[tuple[str, Any]]:
    found: Mapping[str, Any] = components.get(kind, {})
    return found.items()


def _scheme(name: str, part: Part) -> Scheme:
    kind = " ".join(str(part[key]) for key in ("type", "scheme", "in", "name") if key in part)
    meaning = prose(part.get("description", ""))
    told = {"type", "scheme", "in", "name", "description", "$ref"}
    return Scheme(name, kind, meaning, others(part, told))


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
    environment.filters.update(prose=prose, phrase=phrase)
    return environment.get_template("docs.html")
