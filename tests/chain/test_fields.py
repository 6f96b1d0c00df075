"""Every field says what a value means, or which field, which value and why not; nothing else."""

import math
from contextlib import suppress
from hashlib import sha256
from itertools import chain

import pytest
from hypothesis import example, given

from backend.base.errors import InvalidFlight, shown
from backend.chain.fields import FIELD, FIELD_NAMES, FIELDS, Field, Value
from tests.cases import each_of
from tests.chain.strategies import json_like, nested

CITY, DAY = FIELD["ORIGIN_CITY_NAME"], FIELD["FL_DATE"]
DELAY, NUMBER = FIELD["ARR_DELAY"], FIELD["OP_CARRIER_FL_NUM"]
CODE, TIME = FIELD["ORIGIN"], FIELD["DEP_TIME"]

GROWS, GROWN = "\u0958", "\u0915\u093c"  # one character, two in normal form C

MEANINGS: list[tuple[Field, object, Value]] = [
    (DELAY, "-11.00", -11),
    (DELAY, "+5", 5),
    (DELAY, " 7 ", 7),
    (DELAY, "007", 7),
    (DELAY, "3.", 3),
    (DELAY, -0.0, 0),
    (DELAY, "-0", 0),
    (DELAY, 12.0, 12),
    (DELAY, "", None),
    (DELAY, " \t", None),
    (DELAY, None, None),
    (DELAY, -10000, -10000),
    (TIME, 754, "0754"),
    (TIME, "754", "0754"),
    (TIME, "754.0", "0754"),
    (TIME, 7, "0007"),
    (TIME, 0, "0000"),
    (TIME, 2400, "2400"),
    (TIME, "2359", "2359"),
    (TIME, "", None),
    (DAY, "2008-01-03", "2008-01-03"),
    (DAY, "2008-01-03 00:00:00", "2008-01-03"),
    (DAY, "2008-01-03T00:00", "2008-01-03"),
    (DAY, "1/3/2008", "2008-01-03"),
    (DAY, "01/03/2008 12:00:00 AM", "2008-01-03"),
    (DAY, "2008-02-29", "2008-02-29"),
    (DAY, "2000-02-29", "2000-02-29"),
    (DAY, "1900-01-01", "1900-01-01"),
    (DAY, "2199-12-31", "2199-12-31"),
    (CODE, " IAD ", "IAD"),
    (CODE, "1G4", "1G4"),
    (CODE, "KIAD", "KIAD"),
    (CITY, "  Tampa, FL\n", "Tampa, FL"),
    (CITY, "Sa\u0303o", "São"),
    (CITY, 'a"b\\c', 'a"b\\c'),
    (CITY, "x" * 100, "x" * 100),
    (CITY, "\u2003\xa0Tampa\u3000\u2028", "Tampa"),
    (CITY, "a\xa0b\u3000c", "a\xa0b\u3000c"),
    (CITY, "e\u0301" * 100, "é" * 100),
    (CITY, GROWS * 50, GROWN * 50),
]

REFUSED: list[tuple[Field, object]] = [
    *(
        (DELAY, value)
        for value in (True, False, 1.5, math.nan, math.inf, -math.inf, 1e300, 2.0**53)
    ),
    *((DELAY, value) for value in ("1e3", "1.5", "0x10", "1_000", "--1", "+", ".", "٣", "1 000")),
    *((DELAY, value) for value in (-10001, 10001, 10**30, "9" * 15, "9" * 16, "9" * 5000)),
    *((DELAY, value) for value in ([], {}, [1], {"a": 1}, b"1", "NaN", "null", "true")),
    *((NUMBER, value) for value in (None, "", " ", 0, -1, 100000, "0")),
    *(
        (TIME, value)
        for value in (-1, -41, -100, 60, 1260, 2401, 2460, 9999, "24:00", "7:54", 0.5, True)
    ),
    *((DAY, value) for value in ("2008-02-30", "2007-02-29", "1900-02-29", "2008-13-01")),
    *((DAY, value) for value in ("2008-00-10", "2008-1-3", "20080103", "2008-01-03 00:01")),
    *((DAY, value) for value in ("13/1/2008", "1/3/08", "0000-01-01", "1899-12-31", "2200-01-01")),
    *((DAY, value) for value in (20080103, 0, True, None, "", "２００８-01-03", "2008-01-03Z")),
    *((CODE, value) for value in ("iad", "IA", "IADXX", "IÄD", "I D", "ＩＡＤ", 123, "IAD\n1")),
    *((field, " x ") for field in (DELAY, NUMBER, TIME, DAY, CODE)),
    (CITY, " a\0b\n"),
    *((CITY, value) for value in ("", " ", None, 5, True, ["Tampa"], "x" * 101)),
    *((CITY, value) for value in ("a\0b", "a\nb", "a\x7fb", "a\x85b", "a\u2028b", "a\u2029b")),
    *((CITY, value) for value in ("a\ud800b", "\udfff", "\ud83d \ude00")),
    *(
        (CITY, value)
        for value in ("a\xadb", "\u200b", "a\u200db", "\u200ea", "a\u202eb", "\ufeffa")
    ),
    *((CITY, value) for value in ("\ue000", "a\U000f0000", "\U0010fffd", "\U000e0041")),
    *((CITY, value) for value in ("é" * 101, "e\u0301" * 101, GROWS * 51, GROWS * 100, GROWN * 51)),
]


@each_of(("field", "value", "meaning"), MEANINGS)
def test_a_value_means_what_people_mean_by_it(field: Field, value: object, meaning: Value) -> None:
    parsed = field.parse(value)
    assert parsed == meaning
    assert type(parsed) is type(meaning)


@each_of(("field", "value"), REFUSED)
def test_a_value_without_meaning_is_refused_by_name(field: Field, value: object) -> None:
    with pytest.raises(InvalidFlight) as caught:
        field.parse(value)
    assert caught.value.field == field.name
    assert caught.value.value is value
    beginning = field.name if value is None else f"{field.name} {shown(value)}:"
    assert str(caught.value) == f"{beginning} {caught.value.reason}"
    assert len(str(caught.value)) < 250


@given(value=json_like)
@example(value="\ud800")
@example(value=-(2**70))
@example(value=[[["deep"]]])
@example(value=GROWS * 100)
@example(value="\U0001d160" * 40)
def test_any_value_is_parsed_or_refused_and_never_fails_otherwise(value: object) -> None:
    for field in FIELDS:
        try:
            parsed = field.parse(value)
        except InvalidFlight as problem:
            assert problem.field == field.name
            str(problem).encode()
        else:
            assert field.parse(parsed) == parsed
            assert parsed is None or type(parsed) in {int, str}
            assert parsed is not None or field.nullable


@each_of("field", FIELDS)
@each_of("value", [10**5000, -(10**5000), [10**5000], nested(5000)])
def test_a_value_that_python_itself_cannot_write_out_is_refused(
    field: Field, value: object
) -> None:
    with pytest.raises(InvalidFlight) as caught:
        field.parse(value)
    assert caught.value.value is value
    assert len(str(caught.value)) < 250


def test_every_example_is_valid_as_it_stands() -> None:
    for field in FIELDS:
        assert field.parse(field.example) == field.example
        assert field.meaning
    assert len(FIELD_NAMES) == len(set(FIELD_NAMES)) == 19


FROZEN = """
YEAR integer False 1900 2199
DAY_OF_WEEK integer False 1 7
FL_DATE date False None None
OP_CARRIER_AIRLINE_ID integer False 1 99999
OP_CARRIER_FL_NUM integer False 1 99999
ORIGIN_AIRPORT_ID integer True 1 99999
ORIGIN code False None None
ORIGIN_CITY_NAME text False None None
ORIGIN_STATE_NM text False None None
DEST_AIRPORT_ID integer True 1 99999
DEST code False None None
DEST_CITY_NAME text False None None
DEST_STATE_NM text False None None
DEP_TIME time True None None
DEP_DELAY integer True -10000 10000
ARR_TIME time True None None
ARR_DELAY integer True -10000 10000
CANCELLED integer False 0 1
AIR_TIME integer True 0 3000
"""


def test_kinds_and_bounds_of_fields_are_those_of_the_format() -> None:
    rows = [f"{f.name} {f.kind} {f.nullable} {f.minimum} {f.maximum}" for f in FIELDS]
    assert rows == FROZEN.split("\n")[1:-1]


@pytest.mark.slow
def test_a_text_means_the_same_under_every_release_of_python() -> None:
    """Each character of Unicode, between marks whose order is a matter of the normal form.

    Otherwise a node of a cluster with another Python would make other blocks, and old blocks would
    be bad under a new one. All of 3.11, 3.12 and 3.13 come to this digest.
    """
    digest = sha256()
    for code in chain(range(0x32400), range(0xE0000, 0xE0200)):
        stored: Value = ""
        with suppress(InvalidFlight):
            stored = CITY.parse("e{0}\u0316{0}\u0301{0}".format(chr(code)))
        digest.update(f"{stored}\n".encode())
    assert digest.hexdigest() == "5d930064ad97e1406c437b533e5018b321f35c1d93b1a153c3aa6edc5c739b17"
