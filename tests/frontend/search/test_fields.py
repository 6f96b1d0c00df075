"""A field of a form takes what the search takes, and it means the same there."""

import re
from dataclasses import replace

import pytest

from frontend.errors import Refused
from frontend.search.fields import alternatives, as_asked, require_clear_days, with_number
from frontend.search.finding import readings_with_flights
from tests.cases import each_of
from tests.frontend.search.ledger import KNOWN
from tests.frontend.search.test_times import TIMES

CODES = {airport.code for airport in KNOWN.airports}


def asked(**fields: str) -> dict[str, str]:
    return dict(as_asked(fields.items(), KNOWN))


SEVERAL_DAYS = {
    "1/5/2013": "may be 5 January 2013 or 1 May 2013; write 2013-01-05 or 2013-05-01",
    "1/5/13": "may be 5 January 2013 or 1 May 2013; write 2013-01-05 or 2013-05-01",
    "1-5-2013": "may be 5 January 2013 or 1 May 2013; write 2013-01-05 or 2013-05-01",
    "Jan-13": "may be January 2013 or 13 January 2013; write 2013-01-01 to 2013-01-31 or",
    "3/8/87": "may be 8 March 1987 or 3 August 1987; write 1987-03-08 or 1987-08-03",
    "4/3/2013 to 5/4/2013": "may be 3 April to 4 May 2013 or 3 to 5 April 2013 or",
}
ONE_DAY = [(text, days) for text, days in TIMES.items() if days and text not in SEVERAL_DAYS]


def end(place: str) -> dict[str, str]:
    return {"ORIGIN": place} if place in CODES else {"ORIGIN_CITY_NAME": place}


@each_of(("text", "days"), ONE_DAY)
def test_a_field_takes_every_form_of_a_day_that_the_search_takes(
    text: str, days: tuple[str, str]
) -> None:
    assert asked(days=text) == dict(zip(("INITIAL_DATE", "FINAL_DATE"), days, strict=True))
    first, last = days
    expected = {"FL_DATE": first} | ({"FINAL_DATE": last} if first != last else {})
    assert asked(FL_DATE=text) == expected


def test_days_without_a_year_are_the_latest_with_flights() -> None:
    """As in the search: a flight that is added today leaves years without any before it."""
    known = replace(KNOWN, last_date="2026-11-29", months=lambda: ["2013-01", "2013-02", "2026-11"])
    for text, first in (
        ("February", "2013-02-01"),
        ("Jan", "2013-01-01"),  # also the code of an airport
        ("14 Feb", "2013-02-14"),
        ("November", "2026-11-01"),
        ("March", "2026-03-01"),  # of no year, so of the latest
        ("February 2020", "2020-02-01"),
    ):
        assert dict(as_asked([("days", text)], known))["INITIAL_DATE"] == first


@each_of(
    ("text", "months"),
    [
        ("November vs February", ["2026-11", "2013-02"]),
        ("Feb vs November", ["2013-02", "2026-11"]),
        ("February vs March", ["2013-02", "2013-03"]),
        ("March vs February", ["2026-03", "2013-02"]),
    ],
)
def test_each_month_that_is_compared_is_the_latest_with_flights(
    text: str, months: list[str]
) -> None:
    known = replace(KNOWN, last_date="2026-11-29", months=lambda: ["2013-01", "2013-02", "2026-11"])
    (reading, *_) = readings_with_flights(text, known)
    assert [str(days.first)[:7] for days in reading.all_days] == months


def test_days_may_be_open_at_one_end() -> None:
    until = asked(days="until 10 January")
    assert until == {"INITIAL_DATE": "2013-01-01", "FINAL_DATE": "2013-01-10"}
    assert asked(days="10 January to 5 January") == {"INITIAL_DATE": "10 January to 5 January"}


@each_of(("text", "reason"), SEVERAL_DAYS.items())
def test_a_field_does_not_guess_which_of_two_days_is_meant(text: str, reason: str) -> None:
    assert asked(days=text) == {"INITIAL_DATE": text}
    assert asked(FL_DATE=text) == {"FL_DATE": text}
    with pytest.raises(Refused, match=re.escape(f"“{text}” {reason}")) as refused:
        require_clear_days({"ORIGIN": "JFK", "FL_DATE": text}, KNOWN)
    assert refused.value.fields == ["FL_DATE"]


@each_of("city", KNOWN.cities)
def test_a_city_as_pages_write_it_is_taken_wherever_a_code_is(city: str) -> None:
    assert asked(ORIGIN=city) == asked(ORIGIN_CITY_NAME=city) == {"ORIGIN_CITY_NAME": city}


ALONE = {
    "jet blue": "20409",
    "Fort Worth": "Dallas/Fort Worth, TX",
    "montrose": "Montrose/Delta, CO",
    "Jackson, MS": "Jackson/Vicksburg, MS",
    "Dallas TX": "Dallas, TX",
    "Newark": "Newark, NJ",
    "JAN": "JAN",
    "Comair (OH)": "20417",
    "PSA Airlines (OH)": "20397",
    "nyc": "New York, NY",
}


@each_of(("text", "meant"), ALONE.items())
def test_what_the_search_reads_as_one_thing_a_field_reads_as_the_same(
    text: str, meant: str
) -> None:
    if meant.isdigit():
        assert asked(OP_CARRIER_AIRLINE_ID=text) == {"OP_CARRIER_AIRLINE_ID": meant}
    else:
        assert asked(ORIGIN_CITY_NAME=text) == asked(ORIGIN=text) == end(meant)


@each_of("text", ["31 April", "31 February 2013", "32 July", "2013-02-29", "#335", "123456"])
def test_what_the_search_does_not_understand_a_field_takes_as_it_is(text: str) -> None:
    assert asked(ORIGIN_CITY_NAME=text) == {"ORIGIN_CITY_NAME": text}
    assert asked(days=text) == {"INITIAL_DATE": text}


@each_of("text", ["UA 1545", "ua1545", "united 1545", "flight UA-1545", "1545 UA"])
def test_a_flight_number_names_its_carrier(text: str) -> None:
    both = {"OP_CARRIER_FL_NUM": "1545", "OP_CARRIER_AIRLINE_ID": "19977"}
    assert asked(OP_CARRIER_FL_NUM=text) == both
    assert asked(OP_CARRIER_FL_NUM=text, OP_CARRIER_AIRLINE_ID="19977") == both
    other = {"OP_CARRIER_FL_NUM": text, "OP_CARRIER_AIRLINE_ID": "19790"}
    assert asked(**other) == other
    with pytest.raises(Refused, match="of United Airlines; that is not the carrier that is chosen"):
        with_number(other, KNOWN)


def test_a_code_of_several_carriers_needs_a_choice() -> None:
    typed = {"OP_CARRIER_FL_NUM": "OH 12"}
    assert asked(**typed) == typed
    with pytest.raises(Refused, match="of Comair or PSA Airlines; choose one of them"):
        with_number(typed, KNOWN)
    assert asked(**typed, OP_CARRIER_AIRLINE_ID="20397")["OP_CARRIER_FL_NUM"] == "12"


SEVERAL = {
    "OH": ["Comair (OH)", "PSA Airlines (OH)"],
    "OH 12": ["Comair (OH)", "PSA Airlines (OH)"],
    "Portland": ["Portland, OR", "Portland, ME"],
    "Newark-Jackson": ["Jackson, WY", "Jackson/Vicksburg, MS"],
    "Comair": [],
    "Gotham": [],
}


@each_of(("text", "names"), SEVERAL.items())
def test_a_name_of_several_carriers_or_places_is_told_with_all_of_them(
    text: str, names: list[str]
) -> None:
    of_carriers = alternatives(text, KNOWN, are_places=False)
    assert of_carriers + alternatives(text, KNOWN, are_places=True) == names


UNKNOWN_CARRIERS = {
    "ZZ 1": "ZZ",
    "zz1": "zz",
    "flight ZZ-1": "ZZ",
    "9Q12": "9Q",
    "Pan Am 5": "Pan Am",
    "Newark 5": "Newark",
}


@each_of(("text", "name"), UNKNOWN_CARRIERS.items())
def test_a_carrier_that_the_ledger_lacks_is_named(text: str, name: str) -> None:
    with pytest.raises(Refused) as refused:
        with_number({"OP_CARRIER_FL_NUM": text}, KNOWN)
    assert refused.value.message_for("OP_CARRIER_FL_NUM") == (
        f"no carrier of this ledger is called {name}; leave it out, or choose a carrier"
    )


@each_of("text", ["x", "UA", "UA 1234567", "12 34", "a" * 200_000])
def test_what_is_no_flight_number_is_refused(text: str) -> None:
    with pytest.raises(Refused, match="must be a number such as 1545"):
        with_number({"OP_CARRIER_FL_NUM": text}, KNOWN)


@each_of(
    "fields",
    [
        {"ORIGIN_CITY_NAME": "Portland", "DEST_CITY_NAME": "Gotham"},
        {"ORIGIN_CITY_NAME": "Jackson", "DEST_CITY_NAME": "Dallas"},
        {"ORIGIN_CITY_NAME": "JFK", "ORIGIN": "EWR"},
        {"ORIGIN_CITY_NAME": "JFK to LAX"},
        {"FL_DATE": "yesterday"},
        {"INITIAL_DATE": "1 july to today"},
        {"OP_CARRIER_FL_NUM": "ZZ 1"},
        {"as_of": " 7"},
    ],
)
def test_what_is_not_understood_stays_as_it_was_typed(fields: dict[str, str]) -> None:
    assert asked(**fields) == {name: text.strip() for name, text in fields.items()}


def test_empty_fields_are_left_out_and_carriers_may_be_several() -> None:
    pairs = [("OP_CARRIER_AIRLINE_ID", "UA"), ("days", " "), ("OP_CARRIER_AIRLINE_ID", "delta")]
    assert as_asked(pairs, KNOWN) == [
        ("OP_CARRIER_AIRLINE_ID", "19977"),
        ("OP_CARRIER_AIRLINE_ID", "19790"),
    ]
