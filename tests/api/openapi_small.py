"""An OpenAPI document with one operation, in the shape of the service's own."""

from typing import Any

Json = dict[str, Any]

STRUCTURE = {"$ref", "type", "in", "name", "operationId", "tags", "required", "security", "scheme"}
"""Keys whose values are names and types, no text."""


def query(name: str, schema: Json, *, required: bool = False, example: Any = "x") -> Json:
    """A parameter in the query."""
    said = {"required": required, "description": "", "schema": schema, "example": example}
    return {"name": name, "in": "query", **said}


def small(**operation: Any) -> Json:
    """A document with one operation."""
    said = {"operationId": "one", "tags": ["All"], "summary": "", "parameters": []}
    answers = {"responses": {"200": {"description": "fine", "headers": {}}}}
    kinds = ("schemas", "responses", "parameters", "securitySchemes")
    return {
        "openapi": "3.1.0",
        "info": {"title": "Small", "version": "1", "description": ""},
        "servers": [{"url": "/"}],
        "tags": [{"name": "All", "description": ""}],
        "paths": {"/one": {"get": {**said, **answers, **operation}}},
        "components": {kind: {} for kind in kinds},
    }
