"""The components of the document in `openapi_sample`."""

from typing import Any

Json = dict[str, Any]


def ref(kind: str, name: str) -> Json:
    return {"$ref": f"#/components/{kind}/{name}"}


def query(name: str, schema: Json, description: str, **more: Any) -> Json:
    return {"name": name, "in": "query", "schema": schema, "description": description, **more}


DATE = {"type": "string", "format": "date"}
HEIGHT = {"type": "integer", "minimum": 0, "examples": [300]}
_FLIGHT_MEMBERS: Json = {
    "YEAR": {"type": "integer", "minimum": 1900, "maximum": 2199, "examples": [2013]},
    "DAY_OF_WEEK": {
        "type": "integer",
        "minimum": 1,
        "maximum": 7,
        "description": "Weekday of `FL_DATE`, 1 = Monday.",
        "examples": [2],
    },
    "FL_DATE": {**DATE, "description": "Day of the flight.", "examples": ["2013-01-01"]},
    "OP_CARRIER_AIRLINE_ID": {
        "type": "integer",
        "description": "DOT number of the carrier.",
        "examples": [19977],
    },
    "OP_CARRIER_FL_NUM": {"type": "integer", "exclusiveMinimum": 0, "examples": [1545]},
    "ORIGIN": {"type": "string", "pattern": "^[A-Z0-9]{3,4}$", "examples": ["EWR"]},
    "ORIGIN_CITY_NAME": {"type": "string", "maxLength": 100, "examples": ["Newark, NJ"]},
    "DEST": {"type": "string", "minLength": 3, "maxLength": 4, "examples": ["IAH"]},
    "DEST_CITY_NAME": {"type": "string", "maxLength": 100, "examples": ["Houston, TX"]},
    "DEP_TIME": {
        "type": ["string", "null"],
        "description": "Actual local departure, `hhmm`; `2400` is midnight.",
        "examples": ["0517"],
    },
    "ARR_DELAY": {
        "type": ["integer", "null"],
        "minimum": -10000,
        "maximum": 10000,
        "description": "Minutes late at arrival, negative is early; null if none was recorded.",
        "examples": [11],
    },
    "CANCELLED": {"enum": [0, 1], "examples": [0]},
}

SCHEMAS: Json = {
    "Flight": {
        "type": "object",
        "title": "Flight record",
        "description": "One flight, with the names of the Bureau of Transportation Statistics.\n\n"
        "A cancelled flight has no arrival. See also [a transaction](#schema-Transaction).",
        "required": ["FL_DATE", "OP_CARRIER_FL_NUM"],
        "additionalProperties": False,
        "properties": _FLIGHT_MEMBERS,
    },
    "Transaction": {
        "description": "A flight with its place in the ledger.",
        "allOf": [
            ref("schemas", "Flight"),
            {
                "type": "object",
                "required": ["TRANSACTION_ID"],
                "properties": {
                    "TRANSACTION_ID": {"type": "integer", "minimum": 0, "readOnly": True},
                    "timestamp": {"type": "integer", "description": "UTC milliseconds."},
                    "BLOCK_HEIGHT": {"type": ["integer", "null"], "examples": [1]},
                    "status": ref("schemas", "Status"),
                },
            },
        ],
    },
    "Status": {
        "type": "string",
        "enum": ["on_time", "late", "cancelled", "no_arrival"],
        "description": "`late` is 15 minutes or more.",
        "examples": ["late"],
    },
    "AsOf": {
        "type": "object",
        "required": ["height", "tip_hash"],
        "properties": {
            "height": HEIGHT,
            "tip_hash": {
                "type": "string",
                "minLength": 64,
                "maxLength": 64,
                "examples": ["00" * 32],
            },
        },
    },
    "Flights": {
        "type": "object",
        "required": ["count", "flights", "as_of"],
        "properties": {
            "count": {"type": "integer", "minimum": 0, "examples": [1]},
            "flights": {"type": "array", "items": ref("schemas", "Transaction")},
            "as_of": ref("schemas", "AsOf"),
            "query": {"type": "object", "additionalProperties": {"type": ["string", "integer"]}},
        },
    },
    "Delays": {
        "type": "object",
        "properties": {
            "average_delay": {"type": ["number", "null"], "examples": [21.66837090402045]},
            "by_day": {"type": "array", "items": ref("schemas", "Day"), "maxItems": 366},
            "distribution": {"anyOf": [ref("schemas", "Distribution"), {"type": "null"}]},
            "as_of": ref("schemas", "AsOf"),
        },
    },
    "Day": {
        "type": "object",
        "properties": {
            "day": {**DATE, "examples": ["2013-07-01"]},
            "flights": {"type": "integer"},
        },
    },
    "Distribution": {
        "type": "object",
        "properties": {
            "median": {"type": "number", "multipleOf": 0.5, "examples": [4.5]},
            "histogram": {
                "type": "array",
                "minItems": 1,
                "items": {
                    "type": "object",
                    "properties": {
                        "from": {"type": ["integer", "null"], "examples": [-15]},
                        "count": {"type": "integer", "examples": [812]},
                    },
                },
            },
        },
    },
    "Header": {
        "type": "object",
        "description": "A block's header. Its parent is a header, too.",
        "properties": {
            "height": HEIGHT,
            "previous": {"oneOf": [ref("schemas", "Header"), {"type": "null"}], "default": None},
            "hash": {"type": "string", "examples": ["001466248309f77a"]},
            "version": {"const": 1},
            "labels": {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
        },
        "x-frozen": "since version 1",
    },
    "Receipt": {
        "oneOf": [ref("schemas", "AcceptedOne"), ref("schemas", "AcceptedMany")],
        "description": "What was accepted.",
    },
    "AcceptedOne": {
        "type": "object",
        "properties": {
            "TRANSACTION_ID": {"type": "integer", "examples": [336776]},
            "state": {"enum": ["pending", "mined"]},
            "duplicate_of": {"type": "integer", "deprecated": True},
        },
        "examples": [{"TRANSACTION_ID": 336776, "state": "pending"}],
    },
    "AcceptedMany": {
        "type": "object",
        "properties": {
            "first_transaction": {"type": "integer", "examples": [336776]},
            "accepted": {"type": "integer", "examples": [2]},
        },
    },
    "Problem": {
        "type": "object",
        "description": "RFC 9457.",
        "properties": {
            "type": {"type": "string", "default": "about:blank"},
            "title": {"type": "string", "examples": ["Bad Request"]},
            "status": {"type": "integer", "minimum": 400, "maximum": 599, "examples": [400]},
            "detail": {"type": "string", "examples": ["FL_DATE '2013-02-30': is not a day"]},
            "field": {"type": ["string", "null"], "examples": ["FL_DATE"]},
        },
    },
    "Anything": True,
}

_PROBLEM = {"application/problem+json": {"schema": ref("schemas", "Problem")}}
_BATCH = (
    '{"FL_DATE":"2013-01-01","OP_CARRIER_FL_NUM":9998}\n'
    '{"FL_DATE":"2013-01-01","OP_CARRIER_FL_NUM":9999}\n'
)

COMPONENTS: Json = {
    "schemas": SCHEMAS,
    "parameters": {
        "Engine": query(
            "engine",
            {"type": "string", "enum": ["index", "scan"], "default": "index"},
            "`scan` walks every block instead of asking the index; the answer is the same.",
        ),
        "AsOf": query("as_of", HEIGHT, "Answers for an earlier state: a block's height."),
    },
    "examples": {"Newark": {"summary": "Newark to Houston", "value": {"OP_CARRIER_FL_NUM": 1545}}},
    "requestBodies": {
        "Batch": {
            "description": "Many flights, at most 16 MB.",
            "required": True,
            "content": {
                "application/x-ndjson": {"schema": {"type": "string"}, "example": _BATCH},
                "text/csv": {
                    "x-header-line": "present",
                    "schema": {"type": "string"},
                    "example": 'FL_DATE,ORIGIN_CITY_NAME\n2013-01-01,"O\'Hare"\n',
                },
            },
        }
    },
    "headers": {
        "ETag": {
            "description": "Names these bytes; `If-None-Match` with it is answered 304.",
            "schema": {"type": "string", "examples": ['"00146624-5f1c2a3b1"']},
        },
        "Cache-Control": {
            "description": "How long the answer may be kept.",
            "schema": {"enum": ["no-cache", "no-store", "public, max-age=600"]},
        },
        "Retry-After": {"schema": {"type": "integer", "minimum": 1}, "description": "Seconds."},
    },
    "responses": {
        "BadParameter": {
            "description": "A parameter is unknown, missing or malformed; `field` names it.",
            "content": _PROBLEM,
        },
        "NotFound": {"description": "Nothing by that height or id.", "content": _PROBLEM},
        "NotAllowed": {
            "description": "No token, or one that is not known here.",
            "content": _PROBLEM,
            "headers": {
                "WWW-Authenticate": {
                    "description": "How to send a token.",
                    "schema": {"const": "Bearer"},
                    "example": "Bearer",
                }
            },
        },
        "Damaged": {"description": "Stored bytes are not what they must be.", "content": _PROBLEM},
        "TryLater": {
            "description": "Full, starting or rebuilding.",
            "headers": {"Retry-After": ref("headers", "Retry-After")},
            "content": _PROBLEM,
        },
    },
    "securitySchemes": {
        "bearer": {
            "type": "http",
            "scheme": "bearer",
            "bearerFormat": "256 random bits",
            "description": "`python -m backend token add NAME` makes a token.",
        },
        "key": {"type": "apiKey", "in": "header", "name": "X-Key", "description": "For machines."},
    },
}
