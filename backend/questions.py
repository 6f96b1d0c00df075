"""The three questions as values: what may be asked, and what is counted.

    FilterTransactions  what happened to flight N on day D?
    AverageDelays       how late was carrier C on average between two dates?
    FlightCounter       how many flights went from city A to city B between two dates?

Each is made from parameters as they come in a query string or on a command line; both engines
answer the same values. Both dates are inclusive.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeVar

from backend.chain.fields import FIELD, Field, Value
from backend.chain.summary import ON_TIME_BEFORE_MINUTES
from backend.errors import InvalidFlight, InvalidQuery

ENGINES = ("index", "scan")

Parameters = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class FilterTransactions:
    """Legs of flight number OP_CARRIER_FL_NUM on FL_DATE, of one carrier or of all."""

    OP_CARRIER_FL_NUM: int
    FL_DATE: str
    OP_CARRIER_AIRLINE_ID: int | None = None


@dataclass(frozen=True, slots=True)
class AverageDelays:
    """Flights of carrier OP_CARRIER_AIRLINE_ID from INITIAL_DATE to FINAL_DATE."""

    OP_CARRIER_AIRLINE_ID: int
    INITIAL_DATE: str
    FINAL_DATE: str


@dataclass(frozen=True, slots=True)
class FlightCounter:
    """Flights from one city to another from INITIAL_DATE to FINAL_DATE."""

    ORIGIN_CITY_NAME: str
    DEST_CITY_NAME: str
    INITIAL_DATE: str
    FINAL_DATE: str


Question = FilterTransactions | AverageDelays | FlightCounter
Asked = TypeVar("Asked", FilterTransactions, AverageDelays, FlightCounter)


@dataclass(frozen=True, slots=True)
class Options:
    """How to answer.

    engine: "index" or "scan". as_of: a height, None for the tip. group_by: "day" or "carrier", to
    break the answer down. distribution: whether that of the delays is wanted, too.
    """

    engine: str = "index"
    as_of: int | None = None
    group_by: str | None = None
    distribution: bool = False


_DAY = FIELD["FL_DATE"]
PARAMETERS: dict[type[Question], dict[str, Field]] = {
    FilterTransactions: {
        "OP_CARRIER_FL_NUM": FIELD["OP_CARRIER_FL_NUM"],
        "FL_DATE": _DAY,
        "OP_CARRIER_AIRLINE_ID": FIELD["OP_CARRIER_AIRLINE_ID"],
    },
    AverageDelays: {
        "OP_CARRIER_AIRLINE_ID": FIELD["OP_CARRIER_AIRLINE_ID"],
        "INITIAL_DATE": _DAY,
        "FINAL_DATE": _DAY,
    },
    FlightCounter: {
        "ORIGIN_CITY_NAME": FIELD["ORIGIN_CITY_NAME"],
        "DEST_CITY_NAME": FIELD["DEST_CITY_NAME"],
        "INITIAL_DATE": _DAY,
        "FINAL_DATE": _DAY,
    },
}
OPTIONAL = {(FilterTransactions, "OP_CARRIER_AIRLINE_ID")}
OPTION_NAMES = ("engine", "as_of")
BREAKDOWNS: dict[type[Question], dict[str, tuple[str, ...]]] = {
    FilterTransactions: {},
    AverageDelays: {"group_by": ("day",), "distribution": ("true",)},
    FlightCounter: {"group_by": ("day", "carrier")},
}
"""For each question its other options, with the values that they may have."""


def asked(kind: type[Asked], parameters: Parameters) -> tuple[Asked, Options]:
    """The question and options that `parameters` (name -> text) ask.

    Raises InvalidQuery naming the parameter and its value: unknown, missing, malformed, or dates in
    the wrong order.
    """
    known: dict[str, Field] = PARAMETERS[kind]
    breakdowns: dict[str, tuple[str, ...]] = BREAKDOWNS[kind]
    for name, text in parameters.items():
        if name not in known and name not in OPTION_NAMES and name not in breakdowns:
            names = ", ".join([*known, *OPTION_NAMES, *breakdowns])
            raise InvalidQuery(name, text, f"is no parameter here; there are {names}")
    values: list[Any] = [
        _value(kind, name, field, parameters.get(name)) for name, field in known.items()
    ]
    question = kind(*values)
    if not isinstance(question, FilterTransactions):
        _require_order(question)
    return question, options_from(kind, parameters)


def _value(kind: type[Question], name: str, field: Field, text: str | None) -> Value:
    if not text or not text.strip():
        if (kind, name) in OPTIONAL and text is None:
            return None
        raise InvalidQuery(name, text, f"is missing; for example {name}={field.example}")
    try:
        return _parsed(field.name, text)
    except InvalidFlight as error:
        raise InvalidQuery(name, text, error.reason) from None


@lru_cache(maxsize=8192)  # people ask for the same days and cities
def _parsed(name: str, text: str) -> Value:
    return FIELD[name].parse(text)


def _require_order(question: AverageDelays | FlightCounter) -> None:
    if question.INITIAL_DATE > question.FINAL_DATE:
        reason = f"is after FINAL_DATE {question.FINAL_DATE}"
        raise InvalidQuery("INITIAL_DATE", question.INITIAL_DATE, reason)


def options_from(kind: type[Question], parameters: Parameters) -> Options:
    """The options among the `parameters` of a question. Raises InvalidQuery."""
    engine = parameters.get("engine", "index")
    if engine not in ENGINES:
        raise InvalidQuery("engine", engine, f"must be one of {', '.join(ENGINES)}")
    as_of = parameters.get("as_of")
    if as_of is not None and not (as_of.isascii() and as_of.isdigit() and len(as_of) <= 15):
        raise InvalidQuery("as_of", as_of, "must be a block height, a whole number from 0")
    for name, choices in BREAKDOWNS[kind].items():
        if (text := parameters.get(name)) is not None and text not in choices:
            raise InvalidQuery(name, text, f"must be {' or '.join(choices)}, or left out")
    return Options(
        engine,
        None if as_of is None else int(as_of),
        parameters.get("group_by"),
        "distribution" in parameters,
    )


def understood(question: Question, options: Options) -> dict[str, Value]:
    """The question as its parameters, those not given left out."""
    values = ((name, getattr(question, name)) for name in PARAMETERS[type(question)])
    found = {name: value for name, value in values if value is not None}
    found["engine"] = options.engine
    if options.group_by is not None:
        found["group_by"] = options.group_by
    if options.distribution:
        found["distribution"] = True
    return found


@dataclass(frozen=True, slots=True)
class DelayTotals:
    """What the average is made of. The seven counts of a summary cell: see `chain.summary`."""

    flights: int = 0
    cancelled: int = 0
    arrived: int = 0
    departed: int = 0
    on_time: int = 0
    sum_arr_delay: int = 0
    sum_dep_delay: int = 0


@dataclass(frozen=True, slots=True)
class Delays:
    """What `average_delays` is made of.

    by_day: the totals of each ISO date that has flights. counts: how often each ARR_DELAY occurs.
    Both only if they were asked for.
    """

    totals: DelayTotals
    by_day: Mapping[str, DelayTotals] = field(default_factory=dict)
    counts: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FlightCounts:
    """What `flight_counter` says: all flights; those of each ISO date or carrier, if asked for."""

    count: int
    by_day: Mapping[str, int] = field(default_factory=dict)
    by_carrier: Mapping[int, int] = field(default_factory=dict)


def status_of(cancelled: object, arr_delay: object) -> str:
    """What happened to a flight: "cancelled", "no_arrival", "late" (15 minutes or more) or
    "on_time".
    """
    if cancelled:
        return "cancelled"
    if not isinstance(arr_delay, int):
        return "no_arrival"
    return "on_time" if arr_delay < ON_TIME_BEFORE_MINUTES else "late"
