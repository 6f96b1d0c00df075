"""Cells are read as people write them, but what could be meant in two ways is not."""

import math

import pytest

from backend.base.errors import InvalidFlight
from backend.chain.fields import POSITION, Value
from backend.sources.airports import airport_of
from backend.sources.cells import (
    COMMAS,
    DECIMALS,
    DIALECTS,
    LOOSE,
    PARSERS,
    STATES,
    STORED,
    flag,
    is_zero,
)
from backend.sources.source import Unusable
from backend.sources.times_of_file import dialect_of
from tests.cases import each_of


def parsed(field: str, value: object, dialect: str = LOOSE) -> Value:
    return PARSERS[dialect][POSITION[field]](value)


WORDS = (
    "?",
    "nil",
    "undefined",
    "n.a.",
    "<null>",
    "[NULL]",
    "#NULL!",
    "-nan",
    "-1.#IND",
    "1.#QNAN",
    "-1.#QNAN",
    "NA",
    "N/A",
    "#N/A",
    "<NA>",
    "NaN",
    "NULL",
    "(null)",
    "None",
    "\\N",
    ".",
    "-",
    "--",
    "\u2013",
    "#NV",
    "#N/D",
    "missing",
)


@each_of("word", WORDS)
def test_words_for_empty_count_where_a_field_may_be_empty(word: str) -> None:
    for field in ("DEP_TIME", "DEP_DELAY", "ARR_TIME", "ARR_DELAY", "AIR_TIME", "DEST_AIRPORT_ID"):
        assert parsed(field, word) is None
        assert parsed(field, f" {word} ") is None
    for field in ("CANCELLED", "OP_CARRIER_FL_NUM", "YEAR"):
        with pytest.raises(InvalidFlight):
            parsed(field, word)


def test_words_for_empty_are_no_names_but_where_a_ledger_has_them() -> None:
    assert parsed("ORIGIN", "NAN") == "NAN"
    for word in WORDS:
        for field in ("ORIGIN_CITY_NAME", "DEST_STATE_NM"):
            with pytest.raises(InvalidFlight, match="is not the name of a city or state"):
                parsed(field, word)
    assert parsed("ORIGIN_CITY_NAME", "None", STORED) == "None"
    assert parsed("ORIGIN_CITY_NAME", "Nantucket, MA") == "Nantucket, MA"


def test_a_number_that_is_none_is_empty() -> None:
    assert parsed("ARR_DELAY", math.nan) is None


@each_of(
    ("field", "value", "meaning"),
    [
        ("DEP_TIME", "517.0", "0517"),
        ("DEP_TIME", "08:11", "0811"),
        ("DEP_TIME", "8:11", "0811"),
        ("DEP_TIME", "08:11:00", "0811"),
        ("ARR_TIME", "0 days 08:11:00", "0811"),
        ("DEP_TIME", "1900-01-01 08:11:00", "0811"),
        ("DEP_TIME", "1 days 00:00:00", "2400"),
        ("DEP_TIME", "1 day, 0:00:00", "2400"),
        ("ARR_TIME", "1900-01-02 00:00:00", "2400"),
        ("DEP_TIME", "24:00", "2400"),
        ("DEP_TIME", "8:11 AM", "0811"),
        ("DEP_TIME", "08:11:00 pm", "2011"),
        ("DEP_TIME", "12:00 AM", "2400"),
        ("DEP_TIME", "12:05 a.m.", "0005"),
        ("DEP_TIME", "12:05PM", "1205"),
        ("DEP_TIME", "8:11\u202fPM", "2011"),
        ("DEP_TIME", "8:11 a. m.", "0811"),
        ("DEP_TIME", "08h11", "0811"),
        ("DEP_TIME", "24.0", "0024"),
        ("DEP_TIME", 24.0, "0024"),
        ("DEP_TIME", 2400.0, "2400"),
        ("DEP_TIME", "8.0", "0008"),
        ("DEP_TIME", "2e3", "2000"),
        ("DEP_TIME", "811.00", "0811"),
        ("DEP_TIME", "2400.0", "2400"),
        ("DEP_TIME", "811,0", "0811"),
        ("OP_CARRIER_FL_NUM", "3e3", 3000),
        ("DEP_DELAY", "-4,00", -4),
        ("DEP_DELAY", "+7,0", 7),
        ("DEP_DELAY", "\u22124", -4),
        ("DEP_DELAY", "\u20134,0", -4),
        ("DEP_DELAY", " (4) ", -4),
        ("ARR_DELAY", "12,000000", 12),
        ("DAY_OF_WEEK", "1.0", 1),
        ("DAY_OF_WEEK", " SUN", 7),
        ("DAY_OF_WEEK", "Thursday", 4),
        ("DAY_OF_WEEK", "Tues", 2),
        ("DAY_OF_WEEK", "0", 7),
        ("ORIGIN_AIRPORT_ID", "10397.0", 10397),
        ("ORIGIN_STATE_NM", "GA", "Georgia"),
        ("ORIGIN_STATE_NM", "US-GA", "Georgia"),
        ("ORIGIN_STATE_NM", "georgia", "Georgia"),
        ("ORIGIN_STATE_NM", "U.S. Virgin Islands", "U.S. Virgin Islands"),
        ("DEST_STATE_NM", "Ontario", "Ontario"),
        ("DEST_STATE_NM", "NEW\u00a0YORK", "New York"),
        ("DEST_CITY_NAME", "Tampa,\u00a0 FL", "Tampa, FL"),
        ("DEST_CITY_NAME", "100 Mile House, BC", "100 Mile House, BC"),
        ("DEST_CITY_NAME", "S\u00c3O PAULO", "S\u00c3O PAULO"),
    ],
)
def test_a_cell_is_read_as_it_is_meant(field: str, value: object, meaning: Value) -> None:
    assert parsed(field, value) == meaning


@each_of(
    ("field", "value"),
    [
        ("DEP_TIME", "2427"),
        ("DEP_TIME", "25:00"),
        ("DEP_TIME", "08:61"),
        ("DEP_TIME", "08:11:30"),
        ("ARR_TIME", "1 days 08:11:00"),
        ("ARR_TIME", "2019-03-04 08:11:00"),
        ("DEP_TIME", "13:11 PM"),
        ("DEP_TIME", "8.00"),
        ("DEP_TIME", "24,00"),
        ("DEP_DELAY", "-9999"),
        ("ARR_DELAY", "9999.0"),
        ("ARR_DELAY", 9999),
        ("DEST_CITY_NAME", "San Ju\ufffdn, PR"),
        ("DEST_CITY_NAME", "San Ju\u00c3\u00a1n, PR"),
        ("DEST_CITY_NAME", 'Tampa, FL"'),
        ("DEST_STATE_NM", "Tampa, FL"),
        ("DEST_CITY_NAME", "Tampa,&nbsp;FL"),
        ("DEST_STATE_NM", "FL|"),
        ("DEST_STATE_NM", "12"),  # of another column
        ("DEP_DELAY", "4,5"),
        ("DEP_DELAY", "()"),
        ("DEP_DELAY", "Sat"),
        ("DAY_OF_WEEK", "Th"),
        ("DEP_DELAY", "(-4)"),
        ("DEP_DELAY", "1,000"),
        ("AIR_TIME", "-1329"),
    ],
)
def test_what_nobody_can_mean_is_refused_as_it_stands(field: str, value: object) -> None:
    with pytest.raises(InvalidFlight) as caught:
        parsed(field, value)
    assert ascii(str(value))[1:-1].replace(":", "") in str(caught.value).replace(":", "")


@pytest.mark.parametrize("value", [None, 5, ["x"], Unusable("x")])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_is_no_text_is_no_name(dialect: str, value: object) -> None:
    with pytest.raises(InvalidFlight):
        parsed("DEST_CITY_NAME", value, dialect)


def test_what_is_no_time_is_told_how_to_write_one() -> None:
    with pytest.raises(InvalidFlight, match="must be a local time hhmm between 0000 and 2400"):
        parsed("DEP_TIME", "2019-03-04T08:11:00Z")


def test_a_comma_between_thousands_is_to_be_left_out() -> None:
    for field, cell in (
        ("OP_CARRIER_FL_NUM", "1,545"),
        ("DEP_DELAY", "-1,000"),
        ("DEP_TIME", "2,003"),
    ):
        with pytest.raises(InvalidFlight, match=f"{cell}.*; write the number without it"):
            parsed(field, cell)


def test_a_point_before_three_zeros_may_stand_before_thousands() -> None:
    for field, cell in (
        ("DEP_DELAY", "-4.000"),
        ("OP_CARRIER_FL_NUM", "1.000"),
        ("ARR_TIME", "1.000"),
    ):
        assert str(parsed(field, cell, DECIMALS)).lstrip("0") == cell[:-4]
        with pytest.raises(
            InvalidFlight, match=r"may be .* or .*000; write the number without a point"
        ):
            parsed(field, cell)
    assert parsed("AIR_TIME", "58.000") == 58  # 58,000 minutes are out of the question
    assert parsed("AIR_TIME", "0.000") == 0
    assert dialect_of(["", "-4", "1.000", 7, None, "-10.000"]) == LOOSE
    assert dialect_of(["1.000", "-11.000"]) == dialect_of(["0.000"]) == DECIMALS


def test_a_point_behind_hhmm_is_no_point_behind_hours() -> None:
    for cell, meaning in (("5.00", "0005"), ("24.00", "0024")):
        with pytest.raises(InvalidFlight, match=r"may be .* write the time with a colon"):
            parsed("DEP_TIME", cell)
        assert parsed("DEP_TIME", cell, DECIMALS) == meaning
    assert dialect_of([], ["5.00", "24.00", 517.0, None]) == LOOSE
    assert dialect_of([], ["5.00", "517.00"]) == DECIMALS
    with pytest.raises(InvalidFlight, match=r"may be .* write the time with a colon"):
        parsed("DEP_TIME", "5,00", DECIMALS)
    assert dialect_of([], ["5,00", "517,00"]) == COMMAS
    assert parsed("DEP_TIME", "5,00", COMMAS) == "0005"
    with pytest.raises(InvalidFlight, match=r"may be 1 or 1000"):
        parsed("DEP_DELAY", "1.000", COMMAS)


@each_of(
    ("value", "meaning"),
    [
        *[("True", 1), ("false", 0), (True, 1), (False, 0), ("T", 1), ("n", 0), ("maybe", None)],
        *[("WAHR", 1), ("FALSCH", 0), ("vrai", 1), ("FAUX", 0), ("VERDADEIRO", 1), ("FAŁSZ", 0)],
        *[("sí", 1), ("no", 0), ("Oui", 1), ("non", 0), ("ja", 1), ("nein", 0)],
    ],
)
def test_true_and_false_are_1_and_0(value: object, meaning: object) -> None:
    assert flag(value) == meaning


def test_zero_is_seen_however_it_is_written() -> None:
    assert all(map(is_zero, ["0", "0.00", "0,00", "0000", "00:00", 0, 0.0]))
    assert not any(map(is_zero, ["", None, "NA", "1", "x", [0]]))


def test_fifty_states_and_four_more() -> None:
    assert len(STATES) == len(set(STATES.values())) == 54
    assert all(len(abbreviation) == 2 for abbreviation in STATES)


@pytest.mark.parametrize(
    ("code", "number", "city", "state"),
    [
        ("ISP", 12391, "Islip, NY", "New York"),
        ("SWF", 15070, "Newburgh/Poughkeepsie, NY", "New York"),
        ("MFE", 13256, "Mission/McAllen/Edinburg, TX", "Texas"),
        ("DET", 11295, "Detroit, MI", "Michigan"),  # of the first years
        ("ROR", 14583, "Koror, Palau", "U.S. Pacific Trust Territories and Possessions"),
        ("CVG", 11193, "Cincinnati, OH", "Kentucky"),
        ("DCA", 11278, "Washington, DC", "Virginia"),
        ("STT", 15024, "Charlotte Amalie, VI", "U.S. Virgin Islands"),
        ("GUM", 12016, "Guam, TT", "U.S. Pacific Trust Territories and Possessions"),
    ],
)
def test_airports_are_named_as_bts_names_them(
    code: str, number: int, city: str, state: str
) -> None:
    assert airport_of(code) == airport_of(str(number)) == (code, city, state)


def test_an_airport_that_is_not_in_the_table_has_no_name() -> None:
    assert airport_of("ZZZ") is airport_of("99999") is airport_of("") is None
