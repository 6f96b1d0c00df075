"""An OpenAPI document as large as the service's and with every feature that the page knows."""

from copy import deepcopy
from typing import Any

from tests.api.openapi_parts import COMPONENTS, DATE, HEIGHT, Json, query, ref

JSON = "application/json"
METHODS = {"get", "post", "delete"}
STRUCTURE = {"$ref", "type", "in", "name", "operationId", "tags", "required", "security", "scheme"}
STRUCTURE |= {"openapi", "mode"}
"""Keys whose values are names and types, no text."""


_FIRST_DAY = query("INITIAL_DATE", DATE, "First day.", required=True, example="2013-07-01")
_LAST_DAY = query("FINAL_DATE", DATE, "Last day, itself included.", required=True)
_LAST_DAY["examples"] = {
    "month": {"summary": "a month", "value": "2013-07-31"},
    "year": {"value": "2013-12-31"},
}
_PROBLEMS = {
    "400": ref("responses", "BadParameter"),
    "500": ref("responses", "Damaged"),
    "503": ref("responses", "TryLater"),
}
_OPTIONS = [ref("parameters", "Engine"), ref("parameters", "AsOf")]
_REQUEST_ID = {"description": "Its name in the logs.", "schema": {"type": "string"}}
_TAGGED = {"ETag": ref("headers", "ETag"), "Cache-Control": ref("headers", "Cache-Control")}


def _answer(name: str, description: str, **more: Any) -> Json:
    content = {JSON: {"schema": ref("schemas", name)}}
    return {
        "200": {
            "description": description,
            "headers": {**_TAGGED, "X-Request-ID": {**_REQUEST_ID, "required": name != "Header"}},
            "content": content,
            **more,
        }
    }


def _read(tag: str, name: str, summary: str, parameters: list[Json], answer: Json) -> Json:
    return {
        "get": {
            "tags": [tag],
            "operationId": name,
            "summary": summary,
            "description": "The answer stands for the block that `as_of` names.",
            "parameters": parameters,
            "responses": {**answer, **_PROBLEMS},
        }
    }


_CARRIER = query(
    "OP_CARRIER_AIRLINE_ID",
    {"type": "integer", "minimum": 1, "maximum": 99999, "examples": [20366]},
    "DOT number of the carrier.",
    required=True,
)
_FROM = query(
    "ORIGIN_CITY_NAME",
    {"type": "string", "minLength": 1, "maxLength": 100, "examples": ["New York, NY"]},
    "City, as the ledger spells it; [suggest](#suggest) knows them.",
    required=True,
)
_TO = query(
    "DEST_CITY_NAME",
    {"type": "string", "minLength": 1},
    "The other city.",
    required=True,
    deprecated=True,
    example="Coeur d'Alene, ID",
)
_LIMIT = {"type": "integer", "minimum": 1, "maximum": 50, "default": 10}

PATHS: Json = {
    "/filter_transactions": _read(
        "questions",
        "filter_transactions",
        "What happened to flight N on day D?",
        [
            query(
                "OP_CARRIER_FL_NUM",
                {"type": "integer", "minimum": 1},
                "Flight number.",
                required=True,
                example=1545,
            ),
            query("FL_DATE", DATE, "Day.", required=True, example="2013-01-01"),
            {**_CARRIER, "required": False},
            query("format", {"enum": ["csv", "ndjson"]}, "Lines instead of JSON."),
            *_OPTIONS,
        ],
        {
            "200": {
                "description": "The legs.",
                "headers": {
                    **_TAGGED,
                    "X-Flightchain-As-Of": {
                        "description": "The block that an export stands for.",
                        "schema": {"type": "string"},
                        "example": "337 0014",
                    },
                },
                "content": {
                    JSON: {
                        "schema": ref("schemas", "Flights"),
                        "examples": {
                            "one": {
                                "summary": "One leg",
                                "description": "as most flights",
                                "value": {"count": 1, "flights": [{"FL_DATE": "2013-01-01"}]},
                            },
                            "none": {"value": {"count": 0, "flights": []}},
                        },
                    },
                    "text/csv": {"schema": {"type": "string"}, "example": "FL_DATE\n2013-01-01\n"},
                },
            },
            "304": {"description": "The client has it."},
        },
    ),
    "/average_delays": _read(
        "questions",
        "average_delays",
        "How late was carrier C on average between two dates?",
        [
            _CARRIER,
            _FIRST_DAY,
            _LAST_DAY,
            query("group_by", {"enum": ["day"]}, "Adds `by_day`."),
            query("distribution", {"type": "boolean"}, "Adds the distribution.", example=True),
            *_OPTIONS,
        ],
        _answer("Delays", "Means, counts and shares."),
    ),
    "/flight_counter": _read(
        "questions",
        "flight_counter",
        "How many flights went from city A to city B between two dates?",
        [
            *(_FROM, _TO, _FIRST_DAY, _LAST_DAY),
            query("group_by", {"enum": ["day", "carrier"]}, "Breaks the count down."),
            *_OPTIONS,
        ],
        {
            "200": {
                "description": "The count.",
                "content": {
                    JSON: {
                        "schema": {
                            "type": "object",
                            "required": ["count"],
                            "properties": {
                                "count": {"type": "integer", "description": "Flights."},
                                "as_of": {
                                    "type": "object",
                                    "properties": {"height": HEIGHT},
                                },
                            },
                            "additionalProperties": {"type": "integer"},
                        },
                    }
                },
            }
        },
    ),
    "/suggest": _read(
        "questions",
        "suggest",
        "Completions from the ledger, best first.",
        [
            query("field", {"enum": ["city", "airport"]}, "Of what.", required=True),
            query("q", {"type": "string", "default": ""}, "How it begins.", example="New"),
            query("limit", _LIMIT, "At most so many."),
            query(
                "state",
                {"type": "array", "items": {"type": "string"}, "minItems": 1},
                "Only in these states.",
                example=["New York", "Texas"],
            ),
        ],
        {"200": {"description": "Texts.", "content": {JSON: {"schema": {"type": "array"}}}}},
    ),
    "/transactions": {
        "summary": "Flights that are accepted one by one.",
        "post": {
            "tags": ["flights", "writing"],
            "operationId": "add_transaction",
            "summary": "Accept one flight.",
            "description": "Durable when it answers.\n\nWith `mode=commit` it is in a block, too; "
            "see [the modes](#tag-writing).",
            "security": [{"bearer": []}, {"key": []}],
            "parameters": [
                query("mode", {"enum": ["sync", "async", "commit"], "default": "sync"}, "When."),
                {
                    "name": "Idempotency-Key",
                    "in": "header",
                    "schema": {"type": "string", "minLength": 1, "maxLength": 255},
                    "description": "The same key for a day, the same ids.",
                    "example": "8f14e45f",
                },
                {
                    "name": "X-Request-ID",
                    "in": "header",
                    "required": True,
                    "schema": {"type": "string", "pattern": "[A-Za-z0-9._-]{1,64}"},
                    "example": "it's mine",
                },
            ],
            "requestBody": {
                "description": "The flight.",
                "required": True,
                "content": {
                    JSON: {
                        "schema": ref("schemas", "Flight"),
                        "examples": {
                            "plain": {
                                "summary": "A flight",
                                "value": {
                                    "FL_DATE": "2013-01-01",
                                    "OP_CARRIER_FL_NUM": 9999,
                                    "ORIGIN_CITY_NAME": "Coeur d'Alene, ID",
                                },
                            },
                            "Newark": ref("examples", "Newark"),
                        },
                    }
                },
            },
            "responses": {
                "201": {
                    "description": "Mined.",
                    "headers": {"Location": {"schema": {"type": "string", "format": "uri"}}},
                    "content": {JSON: {"schema": ref("schemas", "Receipt")}},
                },
                "202": {
                    "description": "Accepted.",
                    "content": {JSON: {"schema": ref("schemas", "AcceptedOne")}},
                },
                "401": ref("responses", "NotAllowed"),
                **_PROBLEMS,
                "default": {"description": "Anything else is a problem, too."},
            },
        },
    },
    "/transactions/batch": {
        "post": {
            "tags": ["flights"],
            "operationId": "add_batch",
            "summary": "Accept many flights, all or none.",
            "security": [{}, {"bearer": []}],
            "requestBody": ref("requestBodies", "Batch"),
            "responses": {
                "202": {
                    "description": "Accepted.",
                    "content": {JSON: {"schema": ref("schemas", "AcceptedMany")}},
                },
                **_PROBLEMS,
            },
        }
    },
    "/transactions/{TRANSACTION_ID}": {
        "parameters": [
            {
                "name": "TRANSACTION_ID",
                "in": "path",
                "required": True,
                "description": "Its position in the ledger.",
                "schema": {"type": "integer", "minimum": 0},
                "examples": {"first": {"value": 0}, "another": {"value": 336775}},
            }
        ],
        "get": {
            "tags": ["flights"],
            "operationId": "transaction",
            "summary": "A flight, pending or mined, and its block.",
            "responses": {
                **_answer("Transaction", "The flight."),
                "404": ref("responses", "NotFound"),
                **_PROBLEMS,
            },
        },
        "delete": {
            "tags": ["flights"],
            "deprecated": True,
            "summary": "Never possible.",
            "security": [{"key": []}],
            "responses": {"405": {"description": "Nothing is deleted."}},
        },
    },
    "/blocks/{HEIGHT}": {
        "get": {
            "tags": ["blocks"],
            "operationId": "block",
            "summary": "A block with its flights.",
            "externalDocs": {"url": "https://www.rfc-editor.org/rfc/rfc6962"},
            "parameters": [
                {
                    "name": "HEIGHT",
                    "in": "path",
                    "required": True,
                    "schema": HEIGHT,
                    "description": "Its height.",
                },
                query("offset", {"type": "integer", "minimum": 0, "default": 0}, "Skips so many."),
                query("limit", {"type": "integer", "maximum": 1000}, "At most so many."),
            ],
            "responses": {
                **_answer("Header", "The block."),
                "404": ref("responses", "NotFound"),
                **_PROBLEMS,
            },
        }
    },
    "/tip": _read("blocks", "tip", "Where the ledger stands.", [], _answer("AsOf", "The tip.")),
    "/health/live": {
        "get": {
            "summary": "Whether it answers.",
            "responses": {
                "200": {"description": "It does.", "content": {"text/plain": {"example": "ok"}}}
            },
        }
    },
}

SPEC: Json = {
    "openapi": "3.1.0",
    "info": {
        "title": "Flightchain",
        "version": "1.0.0",
        "summary": "Flight records in a blockchain, and three questions about them.",
        "description": "Both dates are inclusive. Errors are `application/problem+json`; "
        "see [Problem](#schema-Problem).\n\nUnknown parameters are errors & <never> ignored.",
        "license": {"name": "MIT", "url": "https://opensource.org/license/mit"},
    },
    "jsonSchemaDialect": "https://json-schema.org/draft/2020-12/schema",
    "servers": [{"url": "http://127.0.0.1:8000", "description": "where `scripts/run` serves"}],
    "tags": [
        {"name": "questions", "description": "What happened, how late, how many."},
        {"name": "flights", "description": "One or many."},
        {
            "name": "writing",
            "description": "`sync`, `async` and `commit` promise different things.",
        },
        {"name": "blocks"},
    ],
    "paths": PATHS,
    "components": COMPONENTS,
}


def sample() -> Json:
    """The document, to be changed at will."""
    return deepcopy(SPEC)


def large() -> Json:
    """The document with 25 operations."""
    spec = sample()
    paths = [(path, item) for path, item in spec["paths"].items() if "get" in item]
    for number in range(25 - sum(len(set(i) & {"get", "post", "delete"}) for i in PATHS.values())):
        path, item = paths[number % len(paths)]
        spec["paths"][f"/again{number}{path}"] = copy = deepcopy(item)
        copy["get"]["operationId"] = f"again{number}"
        copy.pop("delete", None)
    return spec


def small(**operation: Any) -> Json:
    """A document with one operation."""
    responses = {"200": {"description": "fine"}}
    item = {"get": {"operationId": "one", "responses": responses, **operation}}
    info = {"title": "Small", "version": "1"}
    return {"openapi": "3.1.0", "info": info, "paths": {"/one": item}}
