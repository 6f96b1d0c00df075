"""What may be asked: every parameter with every kind of wrong value, as one table."""

import re
from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.base.errors import InvalidFlight, InvalidQuery
from backend.chain.fields import FIELD, Field
from backend.questions.values import (
    PARAMETERS,
    PROVABLE,
    AverageDelays,
    Departures,
    FilterTransactions,
    FlightCounter,
    Options,
    asked,
    provable,
    understood,
)
from tests.cases import each_of
from tests.chain.test_fields import REFUSED

Kind = type[Any]  # one of the three questions

GOOD: dict[Kind, dict[str, str]] = {
    FilterTransactions: {
        "OP_CARRIER_FL_NUM": "335",
        "FL_DATE": "2008-01-03",
        "OP_CARRIER_AIRLINE_ID": "19393",
    },
    AverageDelays: {
        "OP_CARRIER_AIRLINE_ID": "19393",
        "INITIAL_DATE": "2008-01-01",
        "FINAL_DATE": "2008-01-31",
    },
    FlightCounter: {
        "ORIGIN_CITY_NAME": "Washington, DC",
        "DEST_CITY_NAME": "Tampa, FL",
        "INITIAL_DATE": "2008-01-01",
        "FINAL_DATE": "2008-01-31",
    },
}

GROUPS = (
    *("day", "weekday", "hour", "weekday_hour", "month", "year"),
    *("carrier", "origin", "destination", "route", "departure"),
)
GROUPED: tuple[Kind, ...] = (AverageDelays, FlightCounter)
OPTIONAL = ("OP_CARRIER_AIRLINE_ID", "ORIGIN_CITY_NAME", "DEST_CITY_NAME")

BLANK = ("", " ", "\t\n", "\u00a0", "\u2003")
NO_HEIGHTS = (
    *("", " ", "-1", "+1", "1.0", "1e3", " 1", "1 ", "0x1", "1_0", "tip", "null", "NaN"),
    *("²", "٣", "１", "1\0", "\ud800", "9" * 16, "9" * 5000),
)
NO_ENGINES = ("", " ", "Index", "INDEX", "scan ", "both", "0", "\0", "индекс", "x" * 5000)
OPTIONS: dict[str, list[tuple[str, str]]] = {
    "engine": [(text, "must be one of index, scan") for text in NO_ENGINES],
    "as_of": [(text, "must be a block height, a whole number from 0") for text in NO_HEIGHTS],
}


def wrong(name: str) -> list[tuple[str, str]]:
    """Texts that a parameter refuses, each with the beginning of the reason.

    One that is a field refuses what the field does, and for its reason; `tests.chain` tries that.
    """
    if name in OPTIONS:
        return OPTIONS[name]
    field = FIELD["FL_DATE" if name.endswith("_DATE") else name]
    texts = [text for other, text in REFUSED if other.kind == field.kind and isinstance(text, str)]
    if name == "OP_CARRIER_FL_NUM":
        texts = [text for text in texts if text not in {"1e3", "0x10"}]  # "1E" may be a carrier
    reason = "is empty; leave it out" if name in OPTIONAL else "is missing; for example"
    blank = [(text, reason) for text in BLANK]
    return blank + [(text, reason_of(field, text)) for text in texts if text.strip()]


def reason_of(field: Field, text: str) -> str:
    with pytest.raises(InvalidFlight) as caught:
        field.parse(text)
    return caught.value.reason


def refused(kind: Kind, parameters: dict[str, str]) -> InvalidQuery:
    with pytest.raises(InvalidQuery) as caught:
        asked(kind, parameters)
    return caught.value


@each_of(
    ("kind", "name"),
    [(kind, name) for kind, names in GOOD.items() for name in (*names, "engine", "as_of")],
)
def test_every_wrong_value_of_every_parameter_is_named_with_its_reason(
    kind: Kind, name: str
) -> None:
    for value, reason in wrong(name):
        error = refused(kind, {**GOOD[kind], name: value})
        assert (error.field, error.value) == (name, value)
        assert error.reason.startswith(reason), repr(value)[:100]
        str(error).encode()  # can be written down
        assert len(str(error)) < 400


def test_who_names_a_carrier_by_its_code_is_told_where_its_number_is() -> None:
    error = refused(AverageDelays, {**GOOD[AverageDelays], "OP_CARRIER_AIRLINE_ID": "UA"})
    assert error.reason.startswith("must be a whole number; GET /suggest?field=carrier")


@each_of(
    ("name", "value", "reason"),
    [
        ("OP_CARRIER_FL_NUM", "abc", "must be a whole number"),
        ("OP_CARRIER_FL_NUM", "100000", "must be between 1 and 99999"),
        ("FL_DATE", "yesterday", "must be a date, YYYY-MM-DD"),
        ("FL_DATE", "2008-02-30", "is not a day of the calendar"),
        ("FL_DATE", "1899-12-31", "must be between 1900 and 2199"),
        ("ORIGIN_CITY_NAME", "Tam\npa", "must not contain control"),
        ("ORIGIN_CITY_NAME", "x" * 101, "must have at most 100 characters"),
    ],
)
def test_a_field_says_what_it_takes(name: str, value: str, reason: str) -> None:
    assert reason_of(FIELD[name], value).startswith(reason)


def test_breakdowns_are_understood() -> None:
    for kind in GROUPED:
        for group in GROUPS:
            parameters = {**GOOD[kind], "ORIGIN": "JFK", "group_by": group}
            question, options = asked(kind, parameters)
            assert options == Options(group_by=group)
            assert understood(question, options)["group_by"] == group
    for days in ({"ORIGIN": "JFK", "FINAL_DATE": "2008-12-31"}, {}):
        error = refused(
            AverageDelays,
            {**GOOD[AverageDelays], **days, "group_by": "departure", "INITIAL_DATE": "2007-12-31"},
        )
        assert error.reason == (
            "takes at most 366 days, or 31 if no city or airport is named; ask for fewer days"
        )
    parameters = {**GOOD[AverageDelays], "distribution": "true", "engine": "scan", "as_of": "3"}
    question, options = asked(AverageDelays, parameters)
    assert options == Options("scan", 3, None, True)
    assert understood(question, options)["distribution"] is True
    assert "group_by" not in understood(question, options)


@each_of("kind", PROVABLE)
@each_of("changed", [*PARAMETERS[FilterTransactions], "ORIGIN"])
def test_only_the_form_of_the_study_can_be_proved(kind: Kind, changed: str) -> None:
    examples = {parameter.name: parameter.example for parameter in PROVABLE[kind].values()}
    question, _ = provable(kind, examples)
    assert question == asked(kind, examples)[0]
    if changed in examples and (kind, changed) != (FilterTransactions, "OP_CARRIER_AIRLINE_ID"):
        empty = {**examples, changed: " "}
        del examples[changed]
        for without in (examples, empty):
            with pytest.raises(InvalidQuery, match=f"{changed} .*is missing"):
                provable(kind, without)


INTERVAL = {"INITIAL_DATE": "2008-01-01", "FINAL_DATE": "2008-01-31"}


def test_a_flight_is_asked_for_on_a_day_or_between_two_days() -> None:
    given = {"OP_CARRIER_FL_NUM": "335", "FL_DATE": "2008-01-03", "FINAL_DATE": "2008-01-31"}
    question, _ = asked(FilterTransactions, given)
    assert question == FilterTransactions(335, "2008-01-03", None, "2008-01-31")
    assert question.interval == ("2008-01-03", "2008-01-31")
    assert FilterTransactions(335, "2008-01-03").interval == ("2008-01-03", "2008-01-03")
    error = refused(FilterTransactions, {**given, "FINAL_DATE": "2008-01-02"})
    assert (error.field, error.value) == ("FL_DATE", "2008-01-03")
    assert error.reason == "is after FINAL_DATE 2008-01-02"


@each_of(
    "places",
    [
        {"ORIGIN": "JFK", "DEST": "LAX"},
        {"ORIGIN_CITY_NAME": "New York, NY", "DEST": "LAX"},
        {"ORIGIN": "JFK", "ORIGIN_CITY_NAME": "New York, NY", "DEST_CITY_NAME": "Reno, NV"},
        {"DEST": "LAX"},
        {},
    ],
)
def test_a_place_is_a_city_or_an_airport_or_both_or_any(places: dict[str, str]) -> None:
    for kind in GROUPED:
        question, options = asked(kind, {**places, **INTERVAL})
        assert understood(question, options) == {**places, **INTERVAL, "engine": "index"}


SHOWN = {
    "sort": ("count", "flights", "", "COUNT"),
    "order": ("descending", "down", "", "desc"),
    "least_flights": ("5", "0", "-1", "many"),
    "offset": ("5", "-1", "", "x"),
    "limit": ("5", "0", "10001", "all"),
}


@each_of("name", SHOWN)
def test_what_is_shown_of_groups_is_checked(name: str) -> None:
    good, *bad = SHOWN[name]
    given = {**GOOD[FlightCounter], "group_by": "carrier"}
    question, options = asked(FlightCounter, {**given, name: good})
    assert str(understood(question, options)[name]) == good
    for value in bad:
        error = refused(FlightCounter, {**given, name: value})
        assert (error.field, error.value) == (name, value)


ONLY_OF_OTHERS = {
    FilterTransactions: {"group_by", "distribution"},
    FlightCounter: {"distribution"},
}


@each_of("kind", GOOD)
def test_a_parameter_of_another_question_is_unknown_here(kind: Kind) -> None:
    others = {name for names in PARAMETERS.values() for name in names} - PARAMETERS[kind].keys()
    for name in others | ONLY_OF_OTHERS.get(kind, set()):
        error = refused(kind, {**GOOD[kind], name: "1"})
        assert error.field == name
        assert error.reason.startswith("unknown parameter; allowed:")
        assert error.reason.endswith((", as_of", ", limit"))


@each_of("code", ["\u017fFO", "\u017ffo", "\uff33FO", "\u212aOA"])
def test_letters_that_only_look_like_those_of_a_code_are_none(code: str) -> None:
    assert refused(Departures, {"FL_DATE": "2008-01-03", "ORIGIN": code}).field == "ORIGIN"


@each_of("kind", [AverageDelays, FlightCounter])
def test_the_initial_date_may_not_lie_after_the_final_one(kind: Kind) -> None:
    days = {"INITIAL_DATE": "2008-02-01", "FINAL_DATE": "1/31/2008"}
    error = refused(kind, {**GOOD[kind], **days})
    assert (error.field, error.value) == ("INITIAL_DATE", "2008-02-01")
    assert "2008-01-31" in error.reason


@each_of("text", ["1/3/2008", "3/1/2008 12:00:00 AM"])
def test_a_day_that_may_be_another_is_not_guessed(text: str) -> None:
    error = refused(Departures, {"FL_DATE": text})
    assert (error.field, error.value) == ("FL_DATE", text)
    assert {"2008-01-03", "2008-03-01"} <= {*re.findall("[0-9-]{10}", error.reason)}
    assert asked(Departures, {"FL_DATE": "3/3/2008"})[0] == Departures("2008-03-03")


ASKED: list[tuple[Kind, dict[str, str], Any]] = [
    (
        FilterTransactions,
        {"OP_CARRIER_FL_NUM": " 00335.0 ", "FL_DATE": "1/13/2008", "OP_CARRIER_AIRLINE_ID": "1"},
        FilterTransactions(335, "2008-01-13", 1),
    ),
    (
        FilterTransactions,
        {"FL_DATE": "2008-01-03 00:00:00"},
        FilterTransactions(335, "2008-01-03", 19393),
    ),
    (
        FlightCounter,
        {"ORIGIN_CITY_NAME": " Sa\u0303o Paulo ", "DEST_CITY_NAME": "東京 🛫"},
        FlightCounter("São Paulo", "東京 🛫", "2008-01-01", "2008-01-31"),
    ),
]


@each_of(("kind", "given_", "question"), ASKED)
def test_a_good_question_is_understood(kind: Kind, given_: dict[str, str], question: Any) -> None:
    assert asked(kind, {**GOOD[kind], **given_}) == (question, Options("index", None))


@given(
    st.sampled_from(list(GOOD)),
    st.dictionaries(st.text(max_size=8), st.text(max_size=12)),
    st.data(),
)
def test_whatever_is_asked_is_understood_or_refused_with_the_parameter_at_fault(
    kind: Kind, noise: dict[str, str], data: st.DataObject
) -> None:
    names = [*GOOD[kind], "engine", "as_of", "group_by", "distribution"]
    texts = st.sampled_from(
        [*GOOD[kind].values(), "scan", "0", "day", "carrier", "true"]
    ) | st.text(max_size=12)
    some = data.draw(st.dictionaries(st.sampled_from(names), texts))
    parameters = data.draw(st.sampled_from([some, {**GOOD[kind], **some}, {**some, **noise}]))
    try:
        question, options = asked(kind, parameters)
    except InvalidQuery as error:
        assert error.field in {*parameters, *names}
        assert error.value == parameters.get(error.field) or error.field == "INITIAL_DATE"
        return
    assert isinstance(question, kind)
    assert options.engine in {"index", "scan"}
    assert options.group_by in {None, *GROUPS}
    first, last = map(date.fromisoformat, question.interval)
    assert first <= last
