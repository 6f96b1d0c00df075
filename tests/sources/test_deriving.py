"""What a file lacks is derived, and what cannot be, is a bad row that says so."""

from collections import Counter
from collections.abc import Mapping

import pytest

from backend.chain.fields import FIELD_NAMES, Value
from backend.sources.airports import Airport
from backend.sources.cells import LOOSE, STORED
from backend.sources.deriving import Deriver
from backend.sources.kinds import reading_of
from backend.sources.records import RecordBatch
from backend.sources.source import RawRows, Unusable, Validator
from tests.cases import each_of
from tests.sources.samples import CANCELLED, FLOWN

EXPO = {
    "Year": "2008",
    "Month": "1",
    "DayofMonth": "3",
    "UniqueCarrier": "WN",
    "FlightNum": "335",
    "CRSDepTime": "1955",
    "Origin": "IAD",
    "Dest": "TPA",
    "DepTime": "2003",
    "DepDelay": "8",
    "ArrTime": "2211",
    "ArrDelay": "-14",
    "Cancelled": "0",
    "AirTime": "116",
}


def ledger(code: str) -> Airport | None:
    return Airport("XQX", "Nowhere, TX", "Texas") if code == "XQX" else None


def derived(*rows: Mapping[str, object]) -> tuple[RawRows, Counter[str]]:
    """The rows, read as a file with their titles is, and what was emptied."""
    titles = tuple(rows[0])
    reading = reading_of(titles)
    deriver = Deriver(reading, None, ledger, STORED if reading.kind.is_of_ledger else LOOSE)
    columns = {place: [row[title] for row in rows] for place, title in enumerate(titles)}
    batch = RecordBatch(columns, range(1, 1 + len(rows)))
    return deriver.raw_rows(batch, "rows, row"), deriver.emptied


def read(*rows: Mapping[str, object]) -> tuple[list[dict[str, Value]], list[str], dict[str, int]]:
    """The flights in the rows, what is wrong with the others, and what was emptied."""
    raw, emptied = derived(*rows)
    columns, bad = Validator().judge(raw)
    named = [dict(zip(FIELD_NAMES, flight, strict=True)) for flight in zip(*columns, strict=True)]
    return named, [str(problem) for problem in bad], dict(emptied)


def value(field: str, row: Mapping[str, object]) -> Value:
    flights, bad, _ = read(row)
    assert not bad
    return flights[0][field]


def test_a_flight_of_the_data_expo_gets_all_that_can_be_derived() -> None:
    (flight,), _, _ = read(EXPO)
    absent = {"ORIGIN_AIRPORT_ID": None, "DEST_AIRPORT_ID": None}
    expected = {name: str(value) for name, value in flight.items() if value is not None}
    flown = FLOWN | {"ORIGIN_STATE_NM": "Virginia"}
    assert expected == {name: text for name, text in flown.items() if name not in absent}


def test_no_rows_are_no_flights() -> None:
    deriver = Deriver(reading_of(tuple(EXPO)), None, ledger)
    raw = deriver.raw_rows(RecordBatch({n: [] for n in range(len(EXPO))}, []))
    assert list(map(len, raw.columns)) == [0] * len(FIELD_NAMES)


def test_a_code_that_nobody_had_then_is_named_with_the_day() -> None:
    _, (message,), _ = read(EXPO, EXPO | {"UniqueCarrier": "OH", "Year": "2013"})
    assert message == (
        "rows, row 2: OP_CARRIER_AIRLINE_ID 'OH': is not the code of a known carrier on "
        "2013-01-03; correct it, or write the DOT number in a column OP_CARRIER_AIRLINE_ID"
    )


def test_an_airport_is_looked_up_in_the_ledger_and_in_the_table() -> None:
    assert value("DEST_CITY_NAME", EXPO | {"Dest": "XQX"}) == "Nowhere, TX"
    assert value("DEST_CITY_NAME", EXPO | {"Dest": "ISP"}) == "Islip, NY"
    _, bad, _ = read(EXPO | {"Dest": "QQQ"}, EXPO | {"Dest": "99999"})
    assert bad[0].startswith(
        "rows, row 1: DEST_CITY_NAME 'QQQ': is an airport whose city and state"
    )
    assert bad[1].startswith("rows, row 2: DEST '99999': is not a number in the table of airports")


def test_the_state_of_an_airport_that_nobody_knows_is_that_of_its_city() -> None:
    row = EXPO | {"OriginCityName": "Nowhere, OH", "Origin": "QQQ"}
    assert value("ORIGIN_STATE_NM", row) == "Ohio"
    assert value(
        "ORIGIN_STATE_NM", row | {"OriginCityName": "Cincinnati, OH", "Origin": "CVG"}
    ) == ("Kentucky")
    _, bad, _ = read(row | {"OriginCityName": "Nowhere"})
    assert "ORIGIN_STATE_NM 'QQQ': is an airport whose city and state" in bad[0]


@pytest.mark.parametrize(
    "city",
    [
        "Tampa",
        "TAMPA, FL",
        "Tampa,FL",
        " tampa  fl ",
        "Tampa (FL)",
        "Tampa - F.L.",
        "Tampa, Florida",
    ],
)
def test_a_city_in_another_spelling_is_the_same_city(city: str) -> None:
    assert value("DEST_CITY_NAME", EXPO | {"DestCityName": city}) == "Tampa, FL"
    places = {"Dest": "SJU", "DestCityName": "San\u00a0Juan"}
    assert value("DEST_CITY_NAME", EXPO | places) == "San Juan, PR"
    assert value("DEST_CITY_NAME", EXPO | {"Dest": "XQX", "DestCityName": "nowhere"}) == (
        "Nowhere, TX"
    )


@pytest.mark.parametrize(
    ("code", "city"), [("TPA", "Tampa Bay"), ("TPA", "Atlanta, GA"), ("QQQ", "Tampa, fl")]
)
def test_another_city_is_stored_as_the_file_has_it(code: str, city: str) -> None:
    row = EXPO | {"Dest": code, "DestCityName": city, "DestStateName": "Florida"}
    assert value("DEST_CITY_NAME", row) == city


def test_the_month_of_a_day_may_be_named() -> None:
    assert value("FL_DATE", EXPO | {"Month": "JAN"}) == "2008-01-03"
    assert value("DAY_OF_WEEK", EXPO | {"Month": "January", "DayOfWeek": "Thu"}) == 4
    assert value("FL_DATE", EXPO | {"Year": "2e3", "DayOfWeek": "1"}) == "2000-01-03"


def test_a_day_that_no_calendar_has_is_a_bad_row() -> None:
    _, bad, _ = read(EXPO | {"Month": "2", "DayofMonth": "30"}, EXPO | {"Month": "Mai"})
    assert bad == [
        "rows, row 1: FL_DATE '2008-02-30': is not a day of the calendar",
        "rows, row 2: FL_DATE '3 Mai 2008': must be a date, YYYY-MM-DD",
    ]


def test_the_value_of_a_bad_row_is_shown_without_quotes() -> None:
    raw, _ = derived(EXPO | {"Month": "Mai"}, EXPO | {"FlightNum": "abc"})
    _, bad = Validator().judge(raw)
    assert [problem.described()["value"] for problem in bad] == ["3 Mai 2008", "abc"]


@pytest.mark.parametrize("true", ["1", "1.00", "1.0", "True", "true", 1, 1.0, Unusable(True)])
def test_cancelled_in_every_form(true: object) -> None:
    assert value("CANCELLED", CANCELLED | {"CANCELLED": true}) == 1


@pytest.mark.parametrize(
    ("odd", "reason"),
    [
        *((word, "must be 1 or True") for word in ("2", "0.5", "B", "NA")),
        ("", "is missing"),
        *((value, "must be a whole number") for value in (Unusable(None), Unusable([1]))),
    ],
)
def test_whether_a_flight_was_cancelled_is_not_guessed(odd: object, reason: str) -> None:
    _, (message,), _ = read(FLOWN | {"CANCELLED": odd})
    assert message.startswith("rows, row 1: CANCELLED")
    assert reason in message


# --- rows of real files that say too much of a cancelled flight ------------------------------


@pytest.mark.parametrize(
    ("cells", "emptied"),
    [
        ({"AIR_TIME": "53"}, {"AIR_TIME"}),
        ({"AIR_TIME": "-1329"}, {"AIR_TIME"}),
        ({"AIR_TIME": "0", "ARR_DELAY": "0.00"}, {"AIR_TIME", "ARR_DELAY"}),
        (
            {"DEP_TIME": "0", "DEP_DELAY": "0", "ARR_TIME": "0", "ARR_DELAY": "0", "AIR_TIME": "0"},
            {"DEP_TIME", "DEP_DELAY", "ARR_TIME", "ARR_DELAY", "AIR_TIME"},
        ),
        ({"DEP_TIME": "0811", "DEP_DELAY": "0", "ARR_TIME": "00:00"}, {"ARR_TIME"}),
    ],
)
def test_a_cancelled_flight_is_not_lost_for_a_minute_that_means_nothing(
    cells: dict[str, str], emptied: set[str]
) -> None:
    (flight, other), bad, counts = read(CANCELLED | cells, CANCELLED)
    assert not bad
    assert flight["CANCELLED"] == other["CANCELLED"] == 1
    assert counts == dict.fromkeys(emptied, 1)
    for field in ("DEP_TIME", "DEP_DELAY", "ARR_TIME", "ARR_DELAY", "AIR_TIME"):
        assert (flight[field] is None) == (field in emptied or field not in cells)


@pytest.mark.parametrize("field", ["DEP_TIME", "DEP_DELAY"])
def test_half_a_departure_of_a_cancelled_flight_was_filled_in(field: str) -> None:
    row = CANCELLED | {field: "11"}
    (flight,), bad, counts = read(row | {"DIVERTED": "0"})
    assert (flight[field], bad, counts) == (None, [], {field: 1})
    assert value(field, row) == {"DEP_TIME": "0011", "DEP_DELAY": 11}[field]  # its fields alone


def test_a_cancelled_flight_that_arrived_is_a_contradiction() -> None:
    _, (message,), counts = read(FLOWN | {"CANCELLED": "1"})
    assert "must be empty: the flight was cancelled" in message
    assert counts == {}


@pytest.mark.parametrize(
    ("field", "cell", "delay", "possible"),
    [
        ("AIR_TIME", "-1329", "ARR_DELAY", "2999"),
        ("AIR_TIME", "3508.0", "ARR_DELAY", "720"),
        ("ARR_TIME", "2427", "ARR_DELAY", "2400"),
        ("DEP_TIME", "2652.0", "DEP_DELAY", "2359"),
    ],
)
def test_a_few_values_that_no_flight_can_have_are_emptied(
    field: str, cell: str, delay: str, possible: str
) -> None:
    """Those of EV in 2003 and 2004; in many rows, another column may be below the title."""
    odd, others = FLOWN | {field: cell}, [FLOWN | {"DIVERTED": "0"}] * 19
    flights, bad, counts = read(*others, odd | {"DIVERTED": "0"})
    assert (flights, bad, counts) == (read(*others)[0] + [flights[19]], [], {field: 1})
    assert flights[19] == flights[0] | {field: None}
    undiverted = [row | {"TAIL_NUM": "N1"} for row in [FLOWN] * 19 + [odd]]  # for all that it says
    for rows in ([*others[1:], odd | {"DIVERTED": "0"}], [FLOWN] * 19 + [odd], undiverted):
        (message,) = read(*rows)[1]
        assert message.startswith(f"rows, row {len(rows)}: {field} '{cell}': must be ")
    assert read(*others, odd | {"DIVERTED": "0", delay: ""})[1], "it may not have flown"
    assert read(*others, odd | {"DIVERTED": "0", field: possible})[1:] == ([], {})


def test_a_year_of_two_digits_is_that_of_the_columns_beside_it() -> None:
    parts = {"YEAR": "2008", "MONTH": "1", "DAY_OF_MONTH": "3"}
    for day in ("03.01.08", "1/3/08", "08-01-03", "03-JAN-08"):
        assert value("FL_DATE", FLOWN | parts | {"FL_DATE": day}) == "2008-01-03"
    for day in ("04.01.08", "03.01.09", "03.01", "03-FEB-08"):
        assert "FL_DATE" in read(FLOWN | parts | {"FL_DATE": day})[1][0]
    assert "FL_DATE" in read(FLOWN | {"FL_DATE": "03.01.08"})[1][0]


# --- zeros that a program wrote for empty cells ----------------------------------------------

TIMES = ("DEP_TIME", "DEP_DELAY", "ARR_TIME", "ARR_DELAY", "AIR_TIME")


@each_of(
    ("cells", "stored"),
    [
        ("0,0,2211,-14,116", ("0000", 0, "2211", -14, 116)),
        ("2003,8,2211,-14,0", ("2003", 8, "2211", -14, None)),
        ("2003,8,0,3,116", ("2003", 8, "0000", 3, 116)),
        ("2003,8,0,0,", "ARR_DELAY"),
        ("2003,8,0,0,NA", "ARR_DELAY"),
        ("2003,8,0,3,", ("2003", 8, "0000", 3, None)),
        ("2003,8,0,0,0", ("2003", 8, None, None, None)),
        ("2003,0,0000,0.00,0.0", ("2003", 0, None, None, None)),
        ("2003,8,00:00,,0", ("2003", 8, None, None, None)),
        ("2003,8,2359,,0", ("2003", 8, "2359", None, None)),
        ("2003,8,0,,", ("2003", 8, None, None, None)),
        ("0,8,0.0,,", ("0000", 8, None, None, None)),
        ("2003,8,2400,,", ("2003", 8, "2400", None, None)),
        ("2003,8,2211,0,0", "ARR_DELAY"),
        ("0,0,0,0,0", "DEP_DELAY"),
        ("0,0,,,0", "DEP_DELAY"),
        ("0,0,,,", "DEP_DELAY"),
        ("2400,0,,,", ("2400", 0, None, None, None)),
        ("0000,3,,,", ("0000", 3, None, None, None)),
    ],
)
def test_a_flight_with_zeros_for_nothing_is_not_punctual(
    cells: str, stored: str | tuple[Value, ...]
) -> None:
    row = FLOWN | dict(zip(TIMES, cells.split(","), strict=True))
    flights, bad, emptied = read(row, CANCELLED, FLOWN)
    assert (flights[:-2], bad, emptied) == read(row), "the rows beside it make no difference"
    if isinstance(stored, str):
        assert (len(flights), emptied) == (2, {})
        assert f"row 1: {stored} '0': is 0 beside other zeros, so the" in bad[0]
    else:
        assert tuple(flights[0][name] for name in TIMES) == stored
        given = dict(zip(TIMES, cells.split(","), strict=True))
        assert set(emptied) == {n for n in TIMES if given[n] and flights[0][n] is None}


@pytest.mark.parametrize(
    "cells", ["2003,8,,0,", "2003,8,2211,0,", "2003,8,0,0,0", "2003,8,2211,0,0"]
)
def test_a_diverted_flight_has_not_arrived_whatever_zeros_say(cells: str) -> None:
    row = FLOWN | dict(zip(TIMES, cells.split(","), strict=True))
    (diverted, flown), bad, emptied = read(row | {"DIVERTED": "1.00"}, FLOWN | {"DIVERTED": "0"})
    arrival = "2211" if "2211" in cells else None
    assert tuple(diverted[name] for name in TIMES) == ("2003", 8, arrival, None, None)
    assert (flown["ARR_DELAY"], bad) == (-14, [])
    assert emptied["ARR_DELAY"] == 1


@pytest.mark.parametrize("delay", ["-5", "7.0", "999"])
@pytest.mark.parametrize("arrival", ["", "2211"])
def test_a_diverted_flight_with_a_delay_is_a_bad_row(delay: str, arrival: str) -> None:
    row = FLOWN | {"ARR_TIME": arrival, "ARR_DELAY": delay, "DIVERTED": "1"}
    flights, (message,), _ = read(row, FLOWN | {"DIVERTED": "0"})
    assert len(flights) == 1
    assert message == f"rows, row 1: ARR_DELAY '{delay}': must be empty: the flight was diverted"


@pytest.mark.parametrize("diverted", [{"TAIL_NUM": "N1"}, {"DIVERTED": "0"}])
@pytest.mark.parametrize("minutes", ["", "116"])
def test_a_delay_without_a_time_of_arrival_is_a_bad_row_alone_and_beside_others(
    minutes: str, diverted: dict[str, str]
) -> None:
    row = FLOWN | {"ARR_TIME": "NA", "ARR_DELAY": "27", "AIR_TIME": minutes} | diverted
    for others in ([], [FLOWN | diverted, CANCELLED | diverted]):
        _, (message,), _ = read(row, *others)
        assert message.startswith(
            "rows, row 1: ARR_DELAY '27': has a value although ARR_TIME is empty, so the flight"
        )


def test_whoever_posts_the_columns_of_a_flight_alone_decides_what_is_empty() -> None:
    rows = [FLOWN | {"DEP_TIME": "", "DEP_DELAY": ""}, FLOWN | {"ARR_TIME": ""}, FLOWN]
    flights, bad, _ = read(*rows)
    assert (len(flights), bad) == (3, [])


@pytest.mark.parametrize("cells", [",,,,", ",,,,0", ",,2211,0,0", "NA,8,2211,-14,116"])
def test_a_flight_that_neither_left_nor_was_cancelled_is_a_bad_row(cells: str) -> None:
    """As all of a timetable, or where a program filled CANCELLED."""
    row = FLOWN | dict(zip(TIMES, cells.split(","), strict=True))
    for others in ([], [CANCELLED, FLOWN]):
        _, (message,), _ = read(*({**flight, "TAIL_NUM": "N1"} for flight in (row, *others)))
        assert message.startswith("rows, row 1: DEP_TIME is empty, although the flight was not ")
    assert value("DEP_TIME", row | {"DEP_TIME": "", "TRANSACTION_ID": "7"}) is None


@pytest.mark.parametrize("without", ["ARR_TIME", "AIR_TIME"])
def test_no_delay_without_what_others_have_is_doubtful(without: str) -> None:
    row = (
        FLOWN
        | {"ARR_DELAY": "0", without: ""}
        | ({} if without == "AIR_TIME" else {"AIR_TIME": ""})
    )
    _, (message,), _ = read(row, FLOWN)
    assert "row 1: ARR_DELAY '0': is 0 beside" in message
    for diverted in ("0", "", None):  # the last one in Parquet
        others = FLOWN | {"DIVERTED": diverted}
        flights, bad, _ = read(row | {"DIVERTED": diverted}, others)
        delays = [flight["ARR_DELAY"] for flight in flights]
        assert (delays, len(bad)) == (([0, -14], 0) if without == "AIR_TIME" else ([-14], 1))


def test_no_delay_is_no_doubt_where_nobody_has_minutes_in_the_air() -> None:
    """As in all files of 1987 to 1994."""
    flights, bad, _ = read(*[FLOWN | {"ARR_DELAY": delay, "AIR_TIME": ""} for delay in ("0", "3")])
    assert ([flight["ARR_DELAY"] for flight in flights], bad) == ([0, 3], [])


def test_a_flight_that_was_not_diverted_has_arrived_although_its_minutes_are_zero() -> None:
    """As in months before 1995 from a database whose columns have no empty cells."""
    row = FLOWN | {"ARR_DELAY": "0", "AIR_TIME": "0"}
    (flight,), bad, emptied = read(row | {"DIVERTED": "0"})
    assert (flight["ARR_DELAY"], flight["AIR_TIME"], bad, emptied) == (0, None, [], {"AIR_TIME": 1})
    assert "ARR_DELAY '0': is 0 beside" in read(row | {"DIVERTED": "0", "DEP_TIME": "0"})[1][0]
    (flight,), _, _ = read(row | {"DIVERTED": "0", "ARR_TIME": "0"})
    assert flight["ARR_DELAY"] is None


def test_zeros_in_an_export_are_what_was_stored() -> None:
    row = FLOWN | {"ARR_DELAY": "0", "AIR_TIME": "0", "TRANSACTION_ID": "7"}
    (flight,), bad, emptied = read(row)
    assert (flight["ARR_DELAY"], flight["AIR_TIME"], bad, emptied) == (0, 0, [], {})


def test_zeros_without_minutes_in_the_air_are_doubtful_at_midnight_only() -> None:
    row = {name: cell for name, cell in FLOWN.items() if name != "AIR_TIME"} | {"ARR_DELAY": "0"}
    assert "ARR_DELAY '0': is 0 beside" in read(row | {"ARR_TIME": "0", "AIR_TIME": ""})[1][0]
    assert value("ARR_DELAY", row) == 0
    assert value("ARR_TIME", row | {"ARR_TIME": "2400"}) == "2400"
    _, (message,), _ = read(row | {"ARR_TIME": "0"})
    assert "ARR_DELAY '0': is 0 beside other zeros" in message
