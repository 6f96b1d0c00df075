"""Defines the three questions as values, and the parameters that ask them.

    FilterTransactions  what happened to flight N on day D?
    AverageDelays       how late was carrier C on average between two dates?
    FlightCounter       how many flights went from city A to city B between two dates?

and the list of departures of a day. A question is made from parameters of a query string or a
command line, and both engines (index and scan) answer it. Both dates are inclusive.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from typing import TYPE_CHECKING, Any, TypeVar

from backend.base.errors import InvalidQuery
from backend.chain.fields import Value
from backend.questions.carriers import carrier_number
from backend.questions.counts import DELAY_NAMES
from backend.questions.groups import EVERYTHING, GROUPS, Shown
from backend.questions.parameters import (
    AS_OF,
    Choice,
    Given,
    Number,
    OfField,
    by_name,
    require_known,
    require_order,
)

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


class Between:
    """A question about the days from INITIAL_DATE to FINAL_DATE, which its class has as fields."""

    __slots__ = ()

    INITIAL_DATE: str
    FINAL_DATE: str

    @property
    def interval(self) -> tuple[str, str]:
        return self.INITIAL_DATE, self.FINAL_DATE


@dataclass(frozen=True, slots=True)
class FilterTransactions:
    """Which legs flew as number OP_CARRIER_FL_NUM, of one carrier or of all?

    They flew on FL_DATE or, if FINAL_DATE is given, from FL_DATE to FINAL_DATE.
    """

    OP_CARRIER_FL_NUM: int
    FL_DATE: str
    OP_CARRIER_AIRLINE_ID: int | None = None
    FINAL_DATE: str | None = None

    @property
    def interval(self) -> tuple[str, str]:
        return self.FL_DATE, self.FINAL_DATE or self.FL_DATE


@dataclass(frozen=True, slots=True)
class AverageDelays(Between):
    """How late were flights from INITIAL_DATE to FINAL_DATE?

    Everything else narrows down which flights are meant; None means any.
    """

    OP_CARRIER_AIRLINE_ID: int | None
    INITIAL_DATE: str
    FINAL_DATE: str
    ORIGIN_CITY_NAME: str | None = None
    DEST_CITY_NAME: str | None = None
    ORIGIN: str | None = None
    DEST: str | None = None


@dataclass(frozen=True, slots=True)
class FlightCounter(Between):
    """How many flights went from INITIAL_DATE to FINAL_DATE?

    Everything else narrows down which flights are meant; None means any.
    """

    ORIGIN_CITY_NAME: str | None
    DEST_CITY_NAME: str | None
    INITIAL_DATE: str
    FINAL_DATE: str
    ORIGIN: str | None = None
    DEST: str | None = None


@dataclass(frozen=True, slots=True)
class Departures:
    """Which flights leave on FL_DATE?

    Everything else narrows down which flights are meant; None means any. hour: of the scheduled
    departure; flights of which it is not known remain.
    """

    FL_DATE: str
    ORIGIN_CITY_NAME: str | None = None
    DEST_CITY_NAME: str | None = None
    ORIGIN: str | None = None
    DEST: str | None = None
    OP_CARRIER_AIRLINE_ID: int | None = None
    hour: int | None = None

    @property
    def interval(self) -> tuple[str, str]:
        return self.FL_DATE, self.FL_DATE


Question = FilterTransactions | AverageDelays | FlightCounter
NAMES: Mapping[type[Question], str] = {
    FilterTransactions: "filter_transactions",
    AverageDelays: "average_delays",
    FlightCounter: "flight_counter",
}
"""The three questions by their names, in addresses, proofs and on the command line."""
Selecting = Question | Departures
Asked = TypeVar("Asked", FilterTransactions, AverageDelays, FlightCounter, Departures)


@dataclass(frozen=True, slots=True)
class Options:
    """Says how to answer a question.

    engine: "index" or "scan". as_of: a height, None for the tip. group_by: a name of GROUPS, to
    break the answer down. distribution: whether to add the distribution of delays. shown: which of
    the groups, or of the legs, are shown.
    """

    engine: str = "index"
    as_of: int | None = None
    group_by: str | None = None
    distribution: bool = False
    shown: Shown = EVERYTHING


ENGINE = Choice(
    "engine",
    "Answer from the index, or by a scan that verifies every block. Both answers are the same.",
    example="index",
    default="index",
    choices=("index", "scan"),
)


def _day(name: str, meaning: str, example: str) -> OfField:
    return OfField(name, meaning, example, required=True, field="FL_DATE")


def _of_flights(name: str, meaning: str, example: str) -> OfField:
    return OfField(name, meaning, example, required=True, field=name)


def _or_any(parameter: OfField, example: str = "") -> OfField:
    """Return a parameter that may be left out."""
    meaning = f"{parameter.meaning} If left out, any."
    return replace(parameter, meaning=meaning, example=example or parameter.example, required=False)


PERIOD = (
    _day("INITIAL_DATE", "First day, inclusive.", "2013-07-01"),
    _day("FINAL_DATE", "Last day, inclusive; not before INITIAL_DATE.", "2013-07-31"),
)
_CARRIER = OfField(
    "OP_CARRIER_AIRLINE_ID",
    "DOT number of the carrier; GET /suggest?field=carrier lists them.",
    "20366",
    required=True,
    field="OP_CARRIER_AIRLINE_ID",
    hint="; GET /suggest?field=carrier lists the numbers of carriers",
)
_CITIES = (
    _of_flights("ORIGIN_CITY_NAME", "City of departure, with its state.", "New York, NY"),
    _of_flights("DEST_CITY_NAME", "City of arrival, with its state.", "Chicago, IL"),
)
_AIRPORTS = (
    _of_flights("ORIGIN", "Code of the airport of departure.", "LGA"),
    _of_flights("DEST", "Code of the airport of arrival.", "ORD"),
)
NARROWING_PLACES = tuple(map(_or_any, _CITIES + _AIRPORTS))
CARRIER_OR_ANY = _or_any(_CARRIER, "19977")
_NUMBER = _of_flights(
    "OP_CARRIER_FL_NUM",
    "Flight number. `UA1545` is also understood: 1545, and the OP_CARRIER_AIRLINE_ID of UA.",
    "1545",
)
_FLIGHT_DAY = _day("FL_DATE", "Day of the flight.", "2013-01-01")
_HOUR = Number(
    "hour",
    "Only flights that were scheduled in this hour, and those whose hour is not known.",
    "7",
    most=23,
)

PROVABLE: dict[type[Selecting], dict[str, OfField]] = {
    FilterTransactions: by_name(_NUMBER, _FLIGHT_DAY, CARRIER_OR_ANY),
    AverageDelays: by_name(_CARRIER, *PERIOD),
    FlightCounter: by_name(*_CITIES, *PERIOD),
}
"""For each question the parameters of its form that can be proved, which is the study's."""

PARAMETERS: dict[type[Selecting], Mapping[str, OfField | Number]] = {
    FilterTransactions: PROVABLE[FilterTransactions]
    | by_name(
        replace(PERIOD[1], meaning="Last of several days; not before FL_DATE.", required=False)
    ),
    AverageDelays: by_name(CARRIER_OR_ANY, *PERIOD, *NARROWING_PLACES),
    FlightCounter: by_name(*NARROWING_PLACES[:2], *PERIOD, *NARROWING_PLACES[2:]),
    Departures: by_name(
        replace(_FLIGHT_DAY, meaning="Day of the flights."), *NARROWING_PLACES, CARRIER_OR_ANY
    )
    | by_name(_HOUR),
}
"""For each question the parameters that ask it."""

GROUP_BY = Choice(
    "group_by",
    "Add the same numbers for each group. The other parameters about groups matter only with this.",
    "carrier",
    choices=tuple(GROUPS),
)
DISTRIBUTION = Choice(
    "distribution", "Add the distribution of ARR_DELAY.", "true", choices=("true",)
)
ORDER = Choice(
    "order",
    "`ascending`: smallest or earliest group first. `descending`: largest or latest first. The "
    "default is `ascending`, but without `sort` groups with the most flights come first.",
    "descending",
    choices=("ascending", "descending"),
)
LEAST_FLIGHTS = Number("least_flights", "Leave out groups with fewer flights.", "100", least=1)
OFFSET = Number("offset", "How many of the first groups to leave out.", "10", least=0)
MOST_DEPARTURES = 10_000
LIMIT = Number(
    "limit", "Largest number of groups; by default all.", "10", least=1, most=MOST_DEPARTURES
)


def _sort(*names: str) -> Choice:
    meaning = (
        "What groups are ordered by; by default periods are in their own order, and other groups "
        "by flights, most first."
    )
    return Choice("sort", meaning, names[0], choices=names)


MOST_DAYS, MOST_DAYS_OF_ALL = 366, 31  # of departures by group, so that they fit the memory
PLACES = {parameter.name for parameter in NARROWING_PLACES}
_OF_GROUPS = (ORDER, LEAST_FLIGHTS, OFFSET, LIMIT)

_OFFSET = replace(OFFSET, meaning="How many of the first flights to leave out.", example="0")

BREAKDOWNS: dict[type[Selecting], dict[str, Choice | Number]] = {
    FilterTransactions: by_name(
        _OFFSET, replace(LIMIT, meaning="Largest number of legs; by default all.")
    ),
    Departures: by_name(_OFFSET, replace(LIMIT, meaning="Largest number of flights.")),
    AverageDelays: by_name(GROUP_BY, DISTRIBUTION, _sort(*DELAY_NAMES), *_OF_GROUPS),
    FlightCounter: by_name(GROUP_BY, _sort("count"), *_OF_GROUPS),
}
"""For each question the options that not all questions have."""

_PLAIN = Options()
_KNOWN = {
    kind: (*PARAMETERS[kind], ENGINE.name, AS_OF.name, *BREAKDOWNS[kind]) for kind in PARAMETERS
}


def asked(kind: type[Asked], parameters: Given) -> tuple[Asked, Options]:
    """Read the question and its options from `parameters` (name -> text).

    Raises InvalidQuery, which names the parameter and its value, if one is unknown, missing or
    malformed, or if the dates are in the wrong order.
    """
    require_known(parameters, _KNOWN[kind])
    if _NUMBER.name in parameters:
        parameters = _with_carrier(parameters)
    known: Mapping[str, OfField | Number] = PARAMETERS[kind]
    values: dict[str, Any] = {name: parameter.find(parameters) for name, parameter in known.items()}
    question = kind(**values)
    if isinstance(question, FilterTransactions):
        require_order(*question.interval, "FL_DATE")
    else:
        require_order(*question.interval)
    options = options_from(kind, parameters)
    if options.group_by == "departure":
        _require_few_departures(question)
    return question, options


def _require_few_departures(question: Selecting) -> None:
    """Raise InvalidQuery unless the departures of a question are so few that they fit an answer."""
    first, last = map(date.fromisoformat, question.interval)
    most = MOST_DAYS if PLACES & asked_for(question).keys() else MOST_DAYS_OF_ALL
    if (last - first).days >= most:
        reason = (
            f"takes at most {MOST_DAYS} days, or {MOST_DAYS_OF_ALL} if no city or airport is "
            "named; ask for fewer days"
        )
        raise InvalidQuery(GROUP_BY.name, "departure", reason)


_with_code = re.compile(
    r"([A-Z][A-Z0-9]|[0-9][A-Z])[ -]?([0-9]{1,5})", re.IGNORECASE | re.ASCII
).fullmatch


def _with_carrier(parameters: Given) -> Given:
    """Return the parameters with the carrier whose code is in front of the number: UA1545.

    Raises InvalidQuery if the code is no carrier's, or if another carrier is named beside it.
    """
    number, carrier = _NUMBER.name, CARRIER_OR_ANY.name
    match = _with_code(parameters[number].strip())
    if match is None:
        return parameters
    code, year = match[1].upper(), str(_FLIGHT_DAY.of(parameters))[:4]
    named = carrier_number(code, int(year))
    if named is None:
        reason = f"begins with {code}, which is no known carrier's code in {year}; give {carrier}"
        raise InvalidQuery(number, parameters[number], reason)
    if CARRIER_OR_ANY.find(parameters) not in {None, named}:
        reason = (
            f"names the carrier {named}, but {carrier} is {parameters[carrier]}; name one carrier"
        )
        raise InvalidQuery(number, parameters[number], reason)
    return {**parameters, number: match[2], carrier: str(named)}


def provable(kind: type[Asked], parameters: Given) -> tuple[Asked, Options]:
    """Return what `asked` does, if the question can be proved in this form. Raises InvalidQuery."""
    for name, parameter in PROVABLE[kind].items():
        if parameter.required and not parameters.get(name, "").strip():
            raise parameter.missing(parameters.get(name))
    return asked(kind, parameters)


def options_from(kind: type[Selecting], parameters: Given) -> Options:
    """Return the options among the `parameters` of a question. Raises InvalidQuery."""
    if parameters.keys() <= PARAMETERS[kind].keys():
        return _PLAIN  # most questions are asked without options
    values: dict[str, Any] = {
        name: parameter.find(parameters) for name, parameter in BREAKDOWNS[kind].items()
    }
    shown = Shown(
        values.get("sort"),
        values.get("order"),
        values.get("least_flights") or 0,
        values["offset"] or 0,
        values["limit"],
    )
    return Options(
        ENGINE.of(parameters),
        AS_OF.find(parameters),
        values.get("group_by"),
        values.get("distribution") is not None,
        shown,
    )


def asked_for(question: "DataclassInstance") -> dict[str, Value]:
    """Return the question as parameters, without those that were not given."""
    names = question.__dataclass_fields__
    return {name: value for name in names if (value := getattr(question, name)) is not None}


def understood(question: Selecting, options: Options) -> dict[str, Value]:
    """Return the question and its options as parameters, without those that were not given."""
    shown = options.shown
    given: dict[str, Value | None] = {
        "group_by": options.group_by,
        "distribution": options.distribution or None,
        "sort": shown.sort,
        "order": shown.order,
        "least_flights": shown.least_flights or None,
        "offset": shown.offset or None,
        "limit": shown.limit,
    }
    parameters = {**asked_for(question), "engine": options.engine}
    return parameters | {name: value for name, value in given.items() if value is not None}
