"""`GET /openapi.json`: describes the service in OpenAPI 3.1, made from the table of routes.

Every row has an operation, so nothing can be left out. What it says besides is in `openapi.toml`.
"""

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from werkzeug.http import HTTP_STATUS_CODES

from backend.api.json_answers import encode, made_once
from backend.api.operation import JSON, OPERATION, Answer, Media, Operation
from backend.api.problems import MIMETYPE as PROBLEM_JSON
from backend.api.reading import MAX_KEY_CHARACTERS
from backend.api.routes import Lane, Row
from backend.api.schemas import plain, schemas
from backend.base.version import VERSION
from backend.questions.answer_types import ref
from backend.questions.parameters import Parameter, Schema

_TEXTS: Schema = tomllib.loads(Path(__file__).with_name("openapi.toml").read_text("utf-8"))
_TEXTS["parameters"]["IdempotencyKey"]["schema"]["maxLength"] = MAX_KEY_CHARACTERS

PROBLEMS = {
    int(status): Answer(meaning, headers=tuple(_TEXTS["problem_headers"].get(status, ())))
    for status, meaning in _TEXTS["problems"].items()
}
"""Status -> what it means. The body of each is a Problem."""

_PROBLEM = {PROBLEM_JSON: Media(ref("Problem"))}

EVERYWHERE = (400, 421, 500, 503)  # 503: any request may get it when too many come at once
FOR_BODIES = (411, 413, 415)

_OF_ALL = ("X-Request-ID", "Cache-Control")
_OF_GOOD = (*_OF_ALL, "Server-Timing")  # the worker's own problems have none
_OF_LAB = ("X-Emulated-Disk", "X-Service-Start", "X-Boot-Id", "X-Worker")

_NUMBER: Schema = {"type": "integer", "minimum": 1}
_SCHEMAS = {"Retry-After": _NUMBER, "X-Emulated-Disk": _NUMBER}  # other headers are texts

DESCRIBE = Operation(
    "describe_service",
    OPERATION,
    "Get this document",
    {200: Answer("OpenAPI 3.1.", {JSON: Media(plain({"type": "object"}))})},
    has_etag=True,
)


def rows(described: Callable[[], Schema]) -> list[Row]:
    """Return the route of the document that `described` returns, which is called when needed."""
    handler = made_once(lambda: encode(described()))
    return [Row("GET", "/openapi.json", DESCRIBE, handler, Lane.READ)]


def document(rows: Iterable[Row]) -> Schema:
    """Return the OpenAPI document of `rows`."""
    paths: dict[str, Schema] = {}
    for row in sorted(rows, key=_place):
        paths.setdefault(path_of(row.rule), {})[row.method.lower()] = _operation(row.operation)
    return {
        "openapi": "3.1.0",
        "info": {name: _TEXTS[name] for name in ("title", "description")} | {"version": VERSION},
        "servers": [{"url": "/"}],
        "tags": [{"name": name, "description": what} for name, what in _TEXTS["tags"].items()],
        "paths": paths,
        "components": {
            "schemas": schemas(),
            "responses": {
                _name(status): _response(answer, _PROBLEM, _OF_ALL, "Server-Timing", *_OF_LAB)
                for status, answer in PROBLEMS.items()
            },
            "parameters": _TEXTS["parameters"],
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def path_of(rule: str) -> str:
    """Return `/transactions/{TRANSACTION_ID}` for `/transactions/<id:transaction_id>`."""
    return re.sub(r"<(?:\w+:)?(\w+)>", lambda parameter: f"{{{parameter[1].upper()}}}", rule)


def _place(row: Row) -> int:
    return list(_TEXTS["tags"]).index(row.operation.tag)


def _operation(operation: Operation) -> Schema:
    described: Schema = {
        "operationId": operation.name,
        "tags": [operation.tag],
        "summary": operation.summary,
        "deprecated": False,
        "parameters": list(_parameters(operation)),
        "responses": dict(_responses(operation)),
    }
    if operation.body:
        described["requestBody"] = {"required": True, "content": _content(operation.body)}
    if operation.writes:
        without: list[Schema] = [] if operation.always_needs_token else [{}]
        described["security"] = [*without, {"token": []}]
    return described


def _parameters(operation: Operation) -> Iterator[Schema]:
    for parameter in operation.in_path:
        yield {**_parameter(parameter), "in": "path", "required": True}
    yield from map(_parameter, operation.parameters)
    if operation.has_etag:
        yield {"$ref": "#/components/parameters/IfNoneMatch"}
    if operation.takes_key:
        yield {"$ref": "#/components/parameters/IdempotencyKey"}


def _parameter(parameter: Parameter[Any]) -> Schema:
    schema = parameter.schema()
    return {
        "name": parameter.name,
        "in": "query",
        "required": parameter.required,
        "description": parameter.meaning,
        "schema": schema,
        "example": int(parameter.example) if schema["type"] == "integer" else parameter.example,
    }


def _responses(operation: Operation) -> Iterator[tuple[str, Schema]]:
    always = (*_OF_GOOD, "ETag") if operation.has_etag else _OF_GOOD
    for status, answer in operation.answers.items():
        yield str(status), _response(answer, answer.content, always, *_OF_LAB)
    if operation.has_etag:
        unchanged = Answer("The client's copy is still right.")
        yield "304", _response(unchanged, {}, always, *_OF_LAB)
    for status in sorted(_errors_of(operation)):
        yield str(status), {"$ref": f"#/components/responses/{_name(status)}"}


def _response(
    answer: Answer, content: Mapping[str, Media], always: tuple[str, ...], *sometimes: str
) -> Schema:
    described: Schema = {"description": answer.meaning, "headers": {}}
    for name in (*always, *sometimes, *answer.headers, *answer.may_have):
        what, schema = _TEXTS["headers"][name], _SCHEMAS.get(name, {"type": "string"})
        is_always = name not in {*sometimes, *answer.may_have}
        described["headers"][name] = {"description": what, "required": is_always, "schema": schema}
    return {**described, "content": _content(content)} if content else described


def _errors_of(operation: Operation) -> set[int]:
    statuses = {*EVERYWHERE, *operation.errors}
    if operation.body:
        statuses.update(FOR_BODIES)
    if operation.takes_key:
        statuses.add(422)
    if operation.writes:
        statuses.add(401)
    return statuses


def _content(bodies: Mapping[str, Media]) -> Schema:
    return {
        mimetype: {"schema": media.schema}
        | ({} if media.example is None else {"example": media.example})
        for mimetype, media in bodies.items()
    }


def _name(status: int) -> str:
    """Return the name of the component that describes answers with this status: `NotFound`."""
    return HTTP_STATUS_CODES[status].title().replace(" ", "")
