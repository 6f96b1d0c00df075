"""Answers held against /openapi.json: status, media type, headers that are always there, schema.

The schemas are closed (`additionalProperties: false`) and have every member that is always there
as required, so an answer with one more or one less fails.
"""

from functools import cache
from typing import Any

import jsonschema_rs
from flask.testing import FlaskClient
from werkzeug.exceptions import HTTPException
from werkzeug.test import TestResponse

from backend.api import Service
from backend.api.specification import document, path_of
from backend.base.settings import Settings

Json = dict[str, Any]

JSON_BODIES = {"application/json", "application/problem+json"}


class HeldClient(FlaskClient):
    """A client that fails at an answer which is not as the document says."""

    def open(self, *args: Any, **kwargs: Any) -> TestResponse:
        response = super().open(*args, **kwargs)
        hold(response, self._path(response))
        return response

    def _path(self, response: TestResponse) -> str | None:
        """The path in the document that was asked for; None for what is no route or method."""
        request = response.request
        routes = self.application.url_map.bind("localhost")
        try:
            rule, _ = routes.match(request.path, request.method, return_rule=True)
        except HTTPException:
            return None
        return path_of(rule.rule)


def hold(response: TestResponse, path: str | None) -> None:
    """Fail unless the document has this answer to this request, which went to `path`."""
    method, status = response.request.method, response.status_code
    if method == "OPTIONS" and status in {200, 421}:
        return
    if status == 308 and not response.request.environ["PATH_INFO"]:  # which is no path in HTTP
        return
    if path is None:
        assert status in {400, 404, 405, 421}, response.status
        return
    answer = answers(path, "get" if method == "HEAD" else method.lower()).get(str(status))
    assert answer is not None, f"{path}: {status} is not in the document"
    if status != 304:  # has no more than a cache needs
        always = {name for name, header in answer["headers"].items() if header["required"]}
        assert always <= {*response.headers.keys()}, f"{path}: {status} lacks a header"
    if "content" not in answer:
        assert response.get_data() == b""
        return
    assert response.mimetype in answer["content"], f"{path}: {status} {response.mimetype}"
    if response.mimetype in JSON_BODIES and method != "HEAD" and not response.content_encoding:
        held = validator(path, method.lower(), status, response.mimetype)
        held.validate(response.get_json(force=True))


@cache
def described() -> Json:
    """The document; of an application that nothing is asked of, since all of them have the same."""
    return document(Service(Settings()).table)


@cache
def answers(path: str, method: str) -> dict[str, Json]:
    """Returns the answers that the document declares for a call, by status."""
    components = described()["components"]["responses"]
    responses = described()["paths"][path][method]["responses"]
    return {
        status: components[answer["$ref"].rpartition("/")[2]] if "$ref" in answer else answer
        for status, answer in responses.items()
    }


@cache
def validator(path: str, method: str, status: int, mimetype: str) -> Any:
    """What holds the body of an answer."""
    schema = answers(path, method)[str(status)]["content"][mimetype]["schema"]
    components = described()["components"]
    return jsonschema_rs.Draft202012Validator(
        {**schema, "components": components}, validate_formats=True
    )
