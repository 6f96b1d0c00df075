"""Defines the three questions as values: what may be asked, and what is counted.

    FilterTransactions  what happened to flight N on day D?
    AverageDelays       how late was carrier C on average between two dates?
    FlightCounter       how many flights went from city A to city B between two dates?

A question is made from parameters of a query string or a command line, and both engines (index and
scan) answer it. Both dates are inclusive.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from backend.chain.fields import Value
from backend.chain.summary import ON_TIME_BEFORE_MINUTES
from backend.questions.parameters import (
    AS_OF,
    Choice,
    Given,
    OfField,
    by_name,
    require_known,
    require_order,
)


@dataclass(frozen=True, slots=True)
class FilterTransactions:
    """Which legs flew as number OP_CARRIER_FL_NUM on FL_DATE, of one carrier or of all?"""

    OP_CARRIER_FL_NUM: int
    FL_DATE: str
    OP_CARRIER_AIRLINE_ID: int | None = None


@dataclass(frozen=True, slots=True)
class AverageDelays:
    """How late was carrier OP_CARRIER_AIRLINE_ID from INITIAL_DATE to FINAL_DATE?"""

    OP_CARRIER_AIRLINE_ID: int
    INITIAL_DATE: str
    FINAL_DATE: str


@dataclass(frozen=True, slots=True)
class FlightCounter:
    """How many flights went from one city to another from INITIAL_DATE to FINAL_DATE?"""

    ORIGIN_CITY_NAME: str
    DEST_CITY_NAME: str
    INITIAL_DATE: str
    FINAL_DATE: str


Question = FilterTransactions | AverageDelays | FlightCounter
Asked = TypeVar("Asked", FilterTransactions, AverageDelays, FlightCounter)


@dataclass(frozen=True, slots=True)
class Options:
    """How to answer a question.

    engine: "index" or "scan". as_of: a height, None for the tip. group_by: "day" or "carrier", to
    break the answer down. distribution: whether to add the distribution of delays.
    """

    engine: str = "index"
    as_of: int | None = None
    group_by: str | None = None
    distribution: bool = False


ENGINE = Choice(
    "engine",
    "Answer from the index, or by a scan that verifies every block. Both answers are the same.",
    example="index",
    default="index",
    choices=("index", "scan"),
)
OPTION_NAMES = (ENGINE.name, AS_OF.name)


def _day(name: str, meaning: str, example: str) -> OfField:
    return OfField(name, meaning, example, required=True, field="FL_DATE")


def _of_flights(name: str, meaning: str, example: str, *, required: bool = True) -> OfField:
    return OfField(name, meaning, example, required=required, field=name)


PERIOD = (
    _day("INITIAL_DATE", "First day, inclusive.", "2013-07-01"),
    _day("FINAL_DATE", "Last day, inclusive; not before INITIAL_DATE.", "2013-07-31"),
)
_CARRIER = "DOT number of the carrier; GET /suggest?field=carrier lists them."

PARAMETERS: dict[type[Question], dict[str, OfField]] = {
    FilterTransactions: by_name(
        _of_flights("OP_CARRIER_FL_NUM", "Flight number, without the carrier's code.", "1545"),
        _day("FL_DATE", "Day of the flight.", "2013-01-01"),
        _of_flights(
            "OP_CARRIER_AIRLINE_ID", f"{_CARRIER} If left out, all.", "19977", required=False
        ),
    ),
    AverageDelays: by_name(_of_flights("OP_CARRIER_AIRLINE_ID", _CARRIER, "20366"), *PERIOD),
    FlightCounter: by_name(
        _of_flights("ORIGIN_CITY_NAME", "City of departure, with its state.", "New York, NY"),
        _of_flights("DEST_CITY_NAME", "City of arrival, with its state.", "Chicago, IL"),
        *PERIOD,
    ),
}
"""For each question the parameters that ask it."""

BREAKDOWNS: dict[type[Question], dict[str, Choice]] = {
    FilterTransactions: {},
    AverageDelays: by_name(
        Choice("group_by", "Add the same numbers for each day.", "day", choices=("day",)),
        Choice("distribution", "Add the distribution of ARR_DELAY.", "true", choices=("true",)),
    ),
    FlightCounter: by_name(
        Choice("group_by", "Add counts by day or carrier.", "carrier", choices=("day", "carrier")),
    ),
}
"""For each question the options that only some questions have."""

_PLAIN = Options()
_KNOWN = {kind: (*PARAMETERS[kind], *OPTION_NAMES, *BREAKDOWNS[kind]) for kind in PARAMETERS}


def asked(kind: type[Asked], parameters: Given) -> tuple[Asked, Options]:
    """Read the question and its options from `parameters` (name -> text).

    Raises InvalidQuery, which names the parameter and its value, if one is unknown, missing or
    malformed, or if the dates are in the wrong order.
    """
    require_known(parameters, _KNOWN[kind])
    known: dict[str, OfField] = PARAMETERS[kind]
    values: list[Any] = [parameter.find(parameters) for parameter in known.values()]
    question = kind(*values)
    if not isinstance(question, FilterTransactions):
        require_order(question.INITIAL_DATE, question.FINAL_DATE)
    return question, options_from(kind, parameters)


def options_from(kind: type[Question], parameters: Given) -> Options:
    """The options among the `parameters` of a question. Raises InvalidQuery."""
    if parameters.keys() <= PARAMETERS[kind].keys():
        return _PLAIN  # most questions are asked without options
    breakdowns = {name: one.find(parameters) for name, one in BREAKDOWNS[kind].items()}
    return Options(
        ENGINE.of(parameters),
        AS_OF.find(parameters),
        breakdowns.get("group_by"),
        breakdowns.get("distribution") is not None,
    )


def asked_for(question: Question) -> dict[str, Value]:
    """The question as parameters, without those that were not given."""
    values = ((name, getattr(question, name)) for name in PARAMETERS[type(question)])
    return {name: value for name, value in values if value is not None}


def understood(question: Question, options: Options) -> dict[str, Value]:
    """The question and its options as parameters, without those that were not given."""
    found = asked_for(question)
    found["engine"] = options.engine
    if options.group_by is not None:
        found["group_by"] = options.group_by
    if options.distribution:
        found["distribution"] = True
    return found


@dataclass(frozen=True, slots=True)
class DelayTotals:
    """The seven counts from which averages are made; `chain.summary.Cell` explains them."""

    flights: int = 0
    cancelled: int = 0
    arrived: int = 0
    departed: int = 0
    on_time: int = 0
    sum_arr_delay: int = 0
    sum_dep_delay: int = 0


@dataclass(frozen=True, slots=True)
class Delays:
    """The counts behind an answer to `average_delays`.

    by_day: the totals of each ISO date that has flights. counts: how often each ARR_DELAY occurs.
    Both are empty unless they were asked for.
    """

    totals: DelayTotals
    by_day: Mapping[str, DelayTotals] = field(default_factory=dict)
    counts: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FlightCounts:
    """The answer to `flight_counter`: all flights, and by ISO date or carrier if asked for."""

    count: int
    by_day: Mapping[str, int] = field(default_factory=dict)
    by_carrier: Mapping[int, int] = field(default_factory=dict)


def status_of(cancelled: object, arr_delay: object) -> str:
    """What happened to a flight.

    It is "cancelled", "no_arrival", "late" (15 minutes or more) or "on_time".
    """
    if cancelled:
        return "cancelled"
    if not isinstance(arr_delay, int):
        return "no_arrival"
    return "on_time" if arr_delay < ON_TIME_BEFORE_MINUTES else "late"
