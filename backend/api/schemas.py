"""The bodies of requests and answers, as JSON Schema (2020-12, the dialect of OpenAPI 3.1).

Schemas of answers derive from `questions.answer_types` and `body_types`, those of flights from
`chain.fields`, which is the table that validates, and those of questions from their parameters. A
test holds real answers against these schemas.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from backend.api.body_types import ANSWERS
from backend.base.once import once
from backend.chain.fields import FIELDS, Field
from backend.questions.answer_types import AsOf, value_of
from backend.questions.parameters import Schema, stored
from backend.questions.values import BREAKDOWNS, DISTRIBUTION, ENGINE, PARAMETERS, Selecting

COUNT: Schema = {"type": "integer", "format": "int64", "minimum": 0}
FLIGHT_EXAMPLE = {field.name: field.example for field in FIELDS}


def record(properties: Mapping[str, Schema], *optional: str, **more: Any) -> Schema:
    """Return an object with exactly these properties, all of them there but perhaps `optional`."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": [name for name in properties if name not in optional],
        "additionalProperties": False,
        **more,
    }


def sent(field: Field) -> Schema:
    """Return the schema of a field as sent: a number may be a text, and an empty text is null.

    Texts are checked when they are read. Two types in one `type` would be the same to validators,
    but generators of clients for Go stop there.
    """
    about = {"description": field.meaning, "examples": [field.example]}
    if field.kind not in {"integer", "time"}:
        return {**stored(field), **about}
    least, most = (0, 2400) if field.kind == "time" else (field.minimum, field.maximum)
    or_empty, or_null = ("|", [{"type": "null"}]) if field.nullable else ("", [])
    number = {"type": "integer", "format": "int64", "minimum": least, "maximum": most}
    text = {"type": "string", "pattern": rf"^\s*([+-]?[0-9]{{1,15}}(\.0*)?{or_empty})\s*$"}
    return {"oneOf": [number, text, *or_null], **about}


def query_of(kind: type[Selecting]) -> Schema:
    """Return a question as the answer repeats it."""
    known, breakdowns = PARAMETERS[kind], BREAKDOWNS[kind]
    properties = {name: parameter.schema() for name, parameter in known.items()}
    properties["engine"] = {"type": "string", "enum": list(ENGINE.choices)}
    properties |= {
        name: {"type": "boolean"} if option is DISTRIBUTION else option.schema()
        for name, option in breakdowns.items()
    }
    left_out = (name for name, parameter in known.items() if not parameter.required)
    return record(properties, *left_out, *breakdowns, description="the question as understood")


def plain(schema: Schema) -> Schema:
    """Return a schema of msgspec as this document has it: no titles, and `type` lists for null."""
    if "$ref" in schema:
        return {"$ref": schema["$ref"]}
    cleaned: Schema = {name: value for name, value in schema.items() if name != "title"}
    if "properties" in cleaned:
        cleaned["properties"] = {name: plain(part) for name, part in cleaned["properties"].items()}
    if "enum" in cleaned:  # without a type, generated Java does not compile
        cleaned["type"] = "string" if isinstance(cleaned["enum"][0], str) else "integer"
    if cleaned.get("type") == "number":  # which generated Go takes for 32 bits
        cleaned["format"] = "double"
    if cleaned.get("type") == "object" and "properties" not in cleaned:  # empty in TypeScript
        cleaned.setdefault("additionalProperties", True)
    if "items" in cleaned:
        cleaned["items"] = plain(cleaned["items"])
    if "anyOf" in cleaned:
        # ogen, a generator for Go, stops at anyOf.
        cleaned["oneOf"] = [plain(part) for part in cleaned.pop("anyOf")]
        return _with_null(cleaned)
    return cleaned


def _with_null(schema: Schema) -> Schema:
    """Return `schema`, one of two, as one schema if the other is null and it has a type."""
    first, *others = schema["oneOf"]
    if others != [{"type": "null"}] or "type" not in first:
        return schema
    about = {name: value for name, value in schema.items() if name != "oneOf"}
    return {**first, **about, "type": [first["type"], "null"]}


_FLIGHT = {field.name: value_of(field) for field in FIELDS}
_ACCEPTED = {"timestamp": {**COUNT, "description": "UTC, milliseconds"}, **_FLIGHT}
_TRANSACTION = {"TRANSACTION_ID": COUNT, **_ACCEPTED}
_NO_ID = {**COUNT, "type": ["integer", "null"], "description": "null until it is mined"}
_STATUS = {"type": "string", "enum": ["on_time", "late", "cancelled", "no_arrival"]}


@once  # also because two threads that ask msgspec about the same types end the process
def schemas() -> dict[str, Schema]:
    """Return the schemas of all bodies by name. They are derived when somebody asks for them."""
    _, derived = msgspec.json.schema_components(
        (AsOf, *ANSWERS), ref_template="#/components/schemas/{name}"
    )
    return {
        "Flight": record(
            {field.name: sent(field) for field in FIELDS},
            *(field.name for field in FIELDS if field.nullable),
            description='A flight as a client sends it. Numbers may also be texts (`"-11.00"`), '
            "and an empty text is null; YEAR and DAY_OF_WEEK agree with FL_DATE.",
            examples=[FLIGHT_EXAMPLE],
        ),
        "StoredFlight": record(_FLIGHT, description="the flight as the ledger would hold it"),
        "Transaction": record(_TRANSACTION),
        "AcceptedTransaction": record({"TRANSACTION_ID": _NO_ID, **_ACCEPTED}),
        "Leg": record({**_TRANSACTION, "BLOCK_HEIGHT": COUNT, "status": _STATUS}),
        **{f"{kind.__name__}Query": query_of(kind) for kind in PARAMETERS},
        **{name: plain(schema) for name, schema in derived.items()},
    }
