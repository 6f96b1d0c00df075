"""Types of what the service answers. They write the JSON, and OpenAPI's schemas derive from them.

Docstrings and `Meta` are what readers of the OpenAPI document see. Members that are UNSET are left
out of an answer. Rows of flights are mappings from field names to values, because they come from
columns by the thousand; their schemas derive from the table of fields, `chain.fields`.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, get_args

from msgspec import UNSET, Meta, Struct, UnsetType, defstruct
from msgspec.structs import fields

from backend.chain.fields import FIELD, Field, Value
from backend.questions.groups import GROUPS
from backend.questions.parameters import Schema, stored


def ref(name: str) -> Schema:
    """Return a reference to a component of the OpenAPI document."""
    return {"$ref": f"#/components/schemas/{name}"}


def value_of(field: Field) -> Schema:
    """Return the schema of a field's value as it is stored."""
    schema = stored(field)
    if field.nullable:
        schema["type"] = [schema["type"], "null"]
    return {**schema, "description": field.meaning, "examples": [field.example]}


Count = Annotated[int, Meta(ge=0, extra_json_schema={"format": "int64"})]
Hash = Annotated[str, Meta(pattern="^[0-9a-f]{64}$", description="SHA-256")]
Milliseconds = Annotated[Count, Meta(description="UTC, milliseconds")]
Day = Annotated[str, Meta(extra_json_schema={"format": "date"})]
Share = Annotated[float, Meta(ge=0, le=1)]
TransactionRow = Annotated[Mapping[str, Value], Meta(extra_json_schema=ref("Transaction"))]
LegRow = Annotated[Mapping[str, Value], Meta(extra_json_schema=ref("Leg"))]


class Answer(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """Base of all answers."""


class AsOf(Struct, frozen=True, forbid_unknown_fields=True):
    """The block up to which an answer counts."""

    height: Count
    tip_hash: Hash


# --- the three questions -------------------------------------------------------------------------


class UnknownValue(Answer):
    """A value of a question that no flight has, so that the answer is about no flights."""

    field: Annotated[str, Meta(description="the parameter")]
    value: str
    detail: str
    did_you_mean: Annotated[
        list[str], Meta(description="values of the ledger that may be meant, best first")
    ]


Warnings = Annotated[
    list[UnknownValue] | UnsetType, Meta(description="why there are no flights, if that is known")
]


class Legs(Answer):
    """The legs of a flight number, in the order of their ids."""

    count: Count
    flights: Sequence[LegRow]
    as_of: AsOf
    query: Annotated[Mapping[str, Value], Meta(extra_json_schema=ref("FilterTransactionsQuery"))]
    warnings: Warnings = UNSET


class Departures(Answer):
    """Flights that leave on a day, by their scheduled times; those without one are the last."""

    count: Count
    flights: Sequence[LegRow]
    as_of: AsOf
    query: Annotated[Mapping[str, Value], Meta(extra_json_schema=ref("DeparturesQuery"))]
    warnings: Warnings = UNSET


class Averages(Answer):
    """How late flights were."""

    average_delay: Annotated[
        float | None, Meta(description="mean ARR_DELAY of the arrived flights, in minutes")
    ]
    flights: Count
    arrived: Count
    cancelled: Count
    no_arrival: Annotated[
        Count, Meta(description="flights neither cancelled nor arrived, such as diverted ones")
    ]
    on_time_share_of_arrived: Annotated[
        Share | None,
        Meta(description="share of the arrived flights that were less than 15 minutes late"),
    ]
    on_time_share_of_scheduled: Annotated[
        Share | None,
        Meta(description="share of all flights that arrived less than 15 minutes late"),
    ]
    average_departure_delay: Annotated[float | None, Meta(description="mean DEP_DELAY, in minutes")]


class Bin(Answer, rename={"from_": "from"}):
    """A bin of a histogram of delays, in minutes."""

    from_: Annotated[int | None, Meta(description="inclusive; null: no bound")]
    to: Annotated[int | None, Meta(description="exclusive; null: no bound")]
    flights: Count


class Distribution(Answer):
    """How ARR_DELAY is distributed, in minutes."""

    median: Annotated[
        float | None, Meta(description="the middle delay, or the mean of the middle two")
    ]
    p90: Annotated[
        int | None,
        Meta(
            description="90th percentile by nearest rank: the smallest delay that at least 90 % of "
            "the arrivals do not exceed"
        ),
    ]
    histogram: list[Bin]


GroupCount = Annotated[Count, Meta(description="how many groups have least_flights or more")]
WithoutHour = Annotated[
    Count, Meta(description="flights whose hour of scheduled departure is not known")
]


class Delays(Averages, kw_only=True):
    """How late flights were; with `group_by` also those of each group."""

    distribution: Distribution | UnsetType = UNSET
    as_of: AsOf
    query: Annotated[Mapping[str, Value], Meta(extra_json_schema=ref("AverageDelaysQuery"))]
    warnings: Warnings = UNSET
    groups: GroupCount | UnsetType = UNSET
    without_hour: WithoutHour | UnsetType = UNSET


class Flights(Answer):
    """How many flights there are."""

    count: Count


class Counts(Flights, kw_only=True):
    """How many flights there are; with `group_by` also those of each group."""

    as_of: AsOf
    query: Annotated[Mapping[str, Value], Meta(extra_json_schema=ref("FlightCounterQuery"))]
    warnings: Warnings = UNSET
    groups: GroupCount | UnsetType = UNSET
    without_hour: WithoutHour | UnsetType = UNSET


_MADE: dict[str, Schema] = {
    "hour": {"type": "integer", "minimum": 0, "maximum": 23},
    "month": {"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}$"},
    "departure": {
        "type": "string",
        "pattern": "^([0-9]{4})?$",
        "description": "scheduled departure, hhmm; empty if it is not known",
    },
}


def _groups_of(prefix: str, figures: type[Struct]) -> dict[str, type[Any]]:
    """Return the type of a group for each way to group: what tells it apart, and its figures."""
    made: dict[str, type[Any]] = {}
    for by, group in GROUPS.items():
        keys = [
            (name, _schema_as_type(_MADE.get(name) or value_of(FIELD[name])))
            for name in group.names
        ]
        members = [*keys, *((field.name, field.type) for field in fields(figures))]
        made[by] = defstruct(
            f"{prefix}{by.title().replace('_', '')}", members, forbid_unknown_fields=True
        )
    return made


def _schema_as_type(schema: Schema) -> Any:
    return Annotated[Any, Meta(extra_json_schema=schema)]


def _with_groups(name: str, base: type[Struct], groups: Mapping[str, type[Any]]) -> Any:
    members = [(f"by_{by}", list[row] | UnsetType, UNSET) for by, row in groups.items()]  # type: ignore[valid-type]
    namespace = {"__doc__": base.__doc__}
    return defstruct(name, members, bases=(base,), kw_only=True, namespace=namespace)


DELAYS_OF = _groups_of("DelaysOf", Averages)
COUNTS_OF = _groups_of("CountOf", Flights)
AverageDelays = _with_groups("AverageDelays", Delays, DELAYS_OF)
FlightCount = _with_groups("FlightCount", Counts, COUNTS_OF)


# --- what the ledger covers ----------------------------------------------------------------------


class CoveredCarrier(Answer):
    """A carrier of the ledger."""

    OP_CARRIER_AIRLINE_ID: Count
    code: str | None
    name: str | None
    flights: Count


class CoveredAirport(Answer):
    """An airport of the ledger, with the flights that leave and arrive."""

    code: str
    city: str
    state: str
    flights: Count


class Coverage(Answer):
    """What the ledger covers; the days are null without flights."""

    flights: Count
    first_date: Day | None
    last_date: Day | None
    carriers: list[CoveredCarrier]
    airports: list[CoveredAirport]
    as_of: AsOf


class CitySuggestion(Answer):
    """A city of the ledger."""

    value: str
    label: str
    flights: Count


class AirportSuggestion(Answer):
    """An airport of the ledger."""

    value: str
    label: str
    city: str
    state: str
    flights: Count


class CarrierSuggestion(Answer):
    """A carrier of the ledger."""

    value: Count
    label: str
    code: str | None
    name: str | None
    flights: Count


class CarrierOfNumber(Answer):
    """A carrier that uses a flight number."""

    OP_CARRIER_AIRLINE_ID: Count
    code: str | None
    flights: Count


class FlightNumberSuggestion(Answer):
    """A flight number of the ledger."""

    value: Count
    label: str
    carriers: list[CarrierOfNumber]
    flights: Count


Suggestion = AirportSuggestion | CarrierSuggestion | FlightNumberSuggestion | CitySuggestion
"""The kind with the fewest members is last: generated clients take the first that fits."""


class Suggestions(Answer):
    """Completions of what somebody types."""

    field: str
    q: str
    suggestions: Annotated[
        Sequence[Any],
        Meta(
            extra_json_schema={
                "items": {"anyOf": [ref(kind.__name__) for kind in get_args(Suggestion)]}
            }
        ),
    ]
    as_of: AsOf
