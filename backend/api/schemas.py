"""The bodies of requests and answers, as JSON Schema (2020-12, the dialect of OpenAPI 3.1).

The fields of a flight come from `chain.fields`, those of a header from `chain.block`, which are the
tables that validate. A test holds real answers against these schemas.
"""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from backend.chain.block import Header
from backend.chain.fields import FIELD, FIELDS, Field
from backend.questions.groups import GROUPS
from backend.questions.parameters import Schema, stored
from backend.questions.values import (
    BREAKDOWNS,
    DISTRIBUTION,
    ENGINE,
    PARAMETERS,
    AverageDelays,
    FilterTransactions,
    FlightCounter,
    Question,
)

HASH: Schema = {"type": "string", "pattern": "^[0-9a-f]{64}$", "description": "SHA-256"}
COUNT: Schema = {"type": "integer", "format": "int64", "minimum": 0}
MEAN: Schema = {"type": ["number", "null"]}
SHARE: Schema = {**MEAN, "minimum": 0, "maximum": 1}
MILLISECONDS: Schema = {**COUNT, "description": "UTC, milliseconds"}
DAY: Schema = {"type": "string", "format": "date"}
TEXT: Schema = {"type": "string"}
TEXT_OR_NULL: Schema = {"type": ["string", "null"]}


def ref(name: str) -> Schema:
    """A reference to a component."""
    return {"$ref": f"#/components/schemas/{name}"}


def array(items: Schema) -> Schema:
    """A list of `items`."""
    return {"type": "array", "items": items}


def record(properties: Mapping[str, Schema], *optional: str, **more: Any) -> Schema:
    """An object with exactly these properties, all of which but `optional` are always there."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": [name for name in properties if name not in optional],
        "additionalProperties": False,
        **more,
    }


def nullable(schema: Schema) -> Schema:
    """`schema`, or null."""
    return {**schema, "type": [schema["type"], "null"]}


def value_of(field: Field) -> Schema:
    """A value of a field of a flight, as it is stored."""
    found = nullable(stored(field)) if field.nullable else stored(field)
    return {**found, "description": field.meaning, "examples": [field.example]}


def sent(field: Field) -> Schema:
    """A value of a field as it may be sent: a number may be a text, and an empty text is null.

    The bounds are those for numbers; texts are checked when they are read.
    """
    about = {"description": field.meaning, "examples": [field.example]}
    if field.kind not in {"integer", "time"}:
        return {**stored(field), **about}
    least, most = (0, 2400) if field.kind == "time" else (field.minimum, field.maximum)
    or_empty, or_null = ("|", ["null"]) if field.nullable else ("", [])
    return {
        "type": ["integer", "string", *or_null],
        "minimum": least,
        "maximum": most,
        "pattern": rf"^\s*([+-]?[0-9]{{1,15}}(\.0*)?{or_empty})\s*$",
        **about,
    }


def query_of(kind: type[Question]) -> Schema:
    """A question as the answer repeats it."""
    known, breakdowns = PARAMETERS[kind], BREAKDOWNS[kind]
    properties = {name: parameter.schema() for name, parameter in known.items()}
    properties["engine"] = {"type": "string", "enum": list(ENGINE.choices)}
    properties |= {
        name: {"type": "boolean"} if one is DISTRIBUTION else one.schema()
        for name, one in breakdowns.items()
    }
    left_out = (name for name, parameter in known.items() if not parameter.required)
    return record(properties, *left_out, *breakdowns, description="the question as understood")


def context(kind: type[Question]) -> dict[str, Schema]:
    """The members of every answer to a question."""
    return {"as_of": ref("AsOf"), "query": ref(f"{kind.__name__}Query")}


_BASE64: Schema = {"type": "string", "pattern": "^[A-Za-z0-9+/]{43}=$", "description": "SHA-256"}
_PATH = array(_BASE64)


def _proof(kind: str) -> dict[str, Schema]:
    """The members of every proof."""
    return {
        "flightchain_proof": {"type": "integer", "enum": [1]},
        "kind": {"type": "string", "enum": [kind]},
        "size": {**COUNT, "description": "the proof covers blocks 0 to size - 1"},
        "consistency": _PATH | {"description": "from the tree of `size` to that of the checkpoint"},
        "checkpoint": {**TEXT, "description": "a signed note (C2SP tlog-checkpoint)"},
        "key": {**TEXT, "description": "the verifier key of the log"},
        "successions": array(TEXT) | {"description": "notes by which keys name the next one"},
    }


FLIGHT_EXAMPLE = {field.name: field.example for field in FIELDS}

_FLIGHT = {field.name: value_of(field) for field in FIELDS}
_TRANSACTION = {"TRANSACTION_ID": COUNT, "timestamp": MILLISECONDS, **_FLIGHT}
_HEADER: dict[str, Schema] = {
    field.name: HASH if field.type is str else COUNT for field in fields(Header)
}
STATE: Schema = {"type": "string", "enum": ["pending", "mined"]}
_AS_OF = record(
    {"height": COUNT, "tip_hash": HASH}, description="the block up to which an answer counts"
)
_MADE: dict[str, Schema] = {
    "hour": {"type": "integer", "minimum": 0, "maximum": 23},
    "month": {"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}$"},
}
_AVERAGES: dict[str, Schema] = {
    "average_delay": MEAN | {"description": "mean ARR_DELAY of the arrived flights, in minutes"},
    "flights": COUNT,
    "arrived": COUNT,
    "cancelled": COUNT,
    "no_arrival": COUNT
    | {"description": "flights that left and have no arrival: most were diverted"},
    "on_time_share_of_arrived": SHARE
    | {"description": "share of the arrived flights that were less than 15 minutes late"},
    "on_time_share_of_scheduled": SHARE
    | {"description": "share of all flights that arrived less than 15 minutes late"},
    "average_departure_delay": MEAN | {"description": "mean DEP_DELAY, in minutes"},
}
_KEYS: dict[str, dict[str, Schema]] = {
    by: {name: _MADE[name] if name in _MADE else value_of(FIELD[name]) for name in group.names}
    for by, group in GROUPS.items()
}


def _name_of(prefix: str, by: str) -> str:
    """The name of the schema of one group."""
    return f"{prefix}{by.capitalize()}"


def _groups(prefix: str) -> dict[str, Schema]:
    """The members that `group_by` adds to an answer."""
    lists = {f"by_{by}": array(ref(_name_of(prefix, by))) for by in GROUPS}
    return {
        **lists,
        "groups": COUNT | {"description": "how many groups have least_flights or more"},
        "without_hour": COUNT
        | {"description": "flights whose hour of scheduled departure is not known"},
    }


_RECEIPT: dict[str, Schema] = {
    "state": STATE,
    "timestamp": MILLISECONDS,
    "durable": {"type": "boolean", "description": "false: a power cut may still lose it"},
    "receipt": TEXT
    | {
        "description": "only in a cluster, where a flight gets its id when it is mined: the "
        "address that shows the flight before and after that"
    },
}
_ID_WHEN_MINED = nullable(COUNT) | {"description": "in a cluster null until it is mined"}
_ERROR = record(
    {
        "row": COUNT | {"description": "the line in the batch"},
        "field": {"type": "string"},
        "value": {},
        "detail": {"type": "string"},
    },
    "row",
)
_REJECTED: dict[str, Schema] = {"rejected": COUNT, "errors": array(ref("Error"))}

_SUGGESTED: dict[str, Schema] = {
    "CitySuggestion": record({"value": TEXT, "label": TEXT, "flights": COUNT}),
    "AirportSuggestion": record(
        {"value": TEXT, "label": TEXT, "city": TEXT, "state": TEXT, "flights": COUNT}
    ),
    "CarrierSuggestion": record(
        {
            "value": COUNT,
            "label": TEXT,
            "code": TEXT_OR_NULL,
            "name": TEXT_OR_NULL,
            "flights": COUNT,
        }
    ),
    "FlightNumberSuggestion": record(
        {
            "value": COUNT,
            "label": TEXT,
            "carriers": array(ref("CarrierOfNumber")),
            "flights": COUNT,
        }
    ),
}

SCHEMAS: dict[str, Schema] = {
    "AsOf": _AS_OF,
    "Flight": record(
        {field.name: sent(field) for field in FIELDS},
        *(field.name for field in FIELDS if field.nullable),
        description='A flight as a client sends it. Numbers may also be texts (`"-11.00"`), and an '
        "empty text is null; YEAR and DAY_OF_WEEK agree with FL_DATE.",
        examples=[FLIGHT_EXAMPLE],
    ),
    "Transaction": record(_TRANSACTION),
    "Leg": record(
        {
            **_TRANSACTION,
            "BLOCK_HEIGHT": COUNT,
            "status": {"type": "string", "enum": ["on_time", "late", "cancelled", "no_arrival"]},
        }
    ),
    "Legs": record({"count": COUNT, "flights": array(ref("Leg")), **context(FilterTransactions)}),
    "AverageDelays": record(
        {
            **_AVERAGES,
            **_groups("DelaysOf"),
            "distribution": ref("Distribution"),
            **context(AverageDelays),
        },
        *_groups(""),
        "distribution",
    ),
    **{_name_of("DelaysOf", by): record({**_KEYS[by], **_AVERAGES}) for by in GROUPS},
    "Distribution": record(
        {
            "median": MEAN | {"description": "the middle delay, or the mean of the middle two"},
            "p90": {
                "type": ["integer", "null"],
                "description": "90th percentile by nearest rank: the smallest delay that at least "
                "90 % of the arrivals do not exceed",
            },
            "histogram": array(ref("Bin")),
        },
        description="how ARR_DELAY is distributed, in minutes",
    ),
    "Bin": record(
        {
            "from": {"type": ["integer", "null"], "description": "inclusive; null: no bound"},
            "to": {"type": ["integer", "null"], "description": "exclusive; null: no bound"},
            "flights": COUNT,
        }
    ),
    "FlightCount": record(
        {"count": COUNT, **_groups("CountOf"), **context(FlightCounter)}, *_groups("")
    ),
    **{_name_of("CountOf", by): record({**_KEYS[by], "count": COUNT}) for by in GROUPS},
    **{f"{kind.__name__}Query": query_of(kind) for kind in PARAMETERS},
    "Header": record({**_HEADER, "hash": HASH}),
    "Block": record({**_HEADER, "hash": HASH, "transactions": array(ref("Transaction"))}),
    "BlockFound": record({"block": ref("Block")}),
    "Headers": record(
        {
            "blocks": array(ref("Header")),
            "damaged": array(ref("DamagedBlock")),
            "next": {"type": ["string", "null"], "description": "the address of the next page"},
        },
        "damaged",
    ),
    "DamagedBlock": record(
        {
            "height": COUNT,
            "hash": nullable(HASH),
            "first_transaction": nullable(COUNT),
            "transaction_count": nullable(COUNT),
            "detail": {"type": "string", "description": "what is wrong with it"},
        },
        description="A block that cannot be read, with what the table of heights says about it",
    ),
    "TransactionState": record(
        {
            "state": STATE,
            "transaction": ref("Transaction"),
            "block": {"anyOf": [ref("Place"), {"type": "null"}]},
        }
    ),
    "AcceptedState": record(
        {
            "state": STATE,
            "transaction": record(_TRANSACTION | {"TRANSACTION_ID": _ID_WHEN_MINED}),
            "block": {"anyOf": [ref("Place"), {"type": "null"}]},
        }
    ),
    "Place": record({"height": COUNT, "hash": HASH}, description="the block that holds it"),
    "Transactions": record({"transactions": array(ref("Transaction"))}),
    "Receipt": record(
        {
            "TRANSACTION_ID": _ID_WHEN_MINED,
            **_RECEIPT,
            "content_hash": nullable(HASH)
            | {
                "description": "leaf hash of the transaction (RFC 6962); null as long as it has "
                "no id"
            },
            "duplicate_of": {
                "type": ["integer", "null"],
                "description": "the id of the oldest equal flight",
            },
        },
        "receipt",
    ),
    "BatchReceipt": record(
        {
            "accepted": COUNT,
            "first_transaction": _ID_WHEN_MINED,
            "last_transaction": _ID_WHEN_MINED,
            **_RECEIPT,
            "duplicates": COUNT,
            "duplicate_of": array(ref("Duplicate")),
            **_REJECTED,
        },
        "receipt",
    ),
    "Duplicate": record({"TRANSACTION_ID": _ID_WHEN_MINED, "duplicate_of": COUNT}),
    "BatchTried": record(
        {
            "dry_run": {"type": "boolean"},
            "accepted": COUNT,
            "duplicates": COUNT,
            "duplicate_of": array(COUNT),
            **_REJECTED,
        }
    ),
    "Tried": record(
        {
            "dry_run": {"type": "boolean"},
            "accepted": COUNT,
            "duplicate_of": nullable(COUNT),
            "flight": record(_FLIGHT, description="the flight as the ledger would hold it"),
        }
    ),
    "Error": _ERROR,
    "Tip": record(
        {
            "height": COUNT,
            "hash": HASH,
            "timestamp": MILLISECONDS,
            "transactions": COUNT,
            "pending": COUNT,
            "next_block_at": {
                "type": ["integer", "null"],
                "description": "null: no miner is running",
            },
            "cluster": ref("ClusterState"),
        },
        "cluster",
    ),
    "ClusterState": record(
        {
            "node": TEXT_OR_NULL | {"description": "this node; null if it only reads"},
            "members": array(TEXT),
            "proposer": TEXT_OR_NULL | {"description": "the node that proposed the newest block"},
            "running": {"type": "boolean"},
            "engine_height": nullable(COUNT)
            | {"description": "blocks that the consensus engine has decided, with the empty ones"},
            "peers": array(TEXT),
            "votes": COUNT | {"description": "weight of the votes of this node and its peers"},
            "votes_total": COUNT,
            "lag_blocks": nullable(COUNT)
            | {"description": "blocks of the engine that a peer has and this node lacks"},
            "accepts": {"type": "boolean", "description": "whether flights can be added here now"},
        },
        description="only in a cluster",
    ),
    "Coverage": record(
        {
            "flights": COUNT,
            "first_date": nullable(DAY),
            "last_date": nullable(DAY),
            "carriers": array(ref("CoveredCarrier")),
            "airports": array(ref("CoveredAirport")),
            "as_of": ref("AsOf"),
        }
    ),
    "CoveredCarrier": record(
        {
            "OP_CARRIER_AIRLINE_ID": COUNT,
            "code": TEXT_OR_NULL,
            "name": TEXT_OR_NULL,
            "flights": COUNT,
        }
    ),
    "CoveredAirport": record({"code": TEXT, "city": TEXT, "state": TEXT, "flights": COUNT}),
    "Suggestions": record(
        {
            "field": {"type": "string"},
            "q": {"type": "string"},
            "suggestions": array({"anyOf": [ref(name) for name in _SUGGESTED]}),
            "as_of": ref("AsOf"),
        }
    ),
    **_SUGGESTED,
    "CarrierOfNumber": record(
        {"OP_CARRIER_AIRLINE_ID": COUNT, "code": TEXT_OR_NULL, "flights": COUNT}
    ),
    "TransactionProof": record(
        {
            **_proof("transaction"),
            "transaction": {**TEXT, "description": "the canonical bytes"},
            "path": _PATH | {"description": "from the transaction to transactions_root"},
            "header": {**TEXT, "description": "of its block, canonical"},
            "history": _PATH | {"description": "from the hash of the block to the root"},
        }
    ),
    "ConsistencyProof": record(
        {
            **_proof("consistency"),
            "from": COUNT,
            "from_root": _BASE64,
            "root": _BASE64,
            "path": _PATH,
        }
    ),
    "Witnesses": record(
        {
            "size": {**COUNT, "description": "the number of blocks in the newest checkpoint"},
            "witnesses": array(record({"name": TEXT, "cosigned_at": MILLISECONDS})),
        }
    ),
    "Cheats": record({"cheats": array(ref("Cheat"))}),
    "Cheat": record(
        {
            "name": TEXT,
            "what": TEXT,
            "verify": {
                **TEXT_OR_NULL,
                "description": "what `verify` says; null: it notices nothing",
            },
            "witness": {
                **TEXT_OR_NULL,
                "description": "what a witness says; null: it notices nothing",
            },
        }
    ),
    "Status": record({"status": {"type": "string"}}),
    "Problem": record(
        {
            "type": TEXT,
            "title": TEXT,
            "status": {"type": "integer"},
            "detail": TEXT,
            "field": {**TEXT, "description": "the field that is wrong"},
            "value": {"description": "the value of the field, as it was given"},
            "errors": array(ref("Error")),
            "reasons": array(TEXT),
            "damaged_blocks": {**array(COUNT), "description": "heights of blocks"},
        },
        *("field", "value", "errors", "reasons", "damaged_blocks"),
        description="RFC 9457",
    ),
}
