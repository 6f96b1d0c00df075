"""The table of carriers."""

import pytest

from backend.chain.fields import FIELD
from backend.questions.carriers import CARRIER, CODES, carrier_number, code_of
from tests.cases import each_of

CARRIERS = [carrier for carrier in CODES if CARRIER[carrier.number] is carrier]


def test_numbers_are_unique_and_valid_and_in_order() -> None:
    numbers = [carrier.number for carrier in CARRIERS]
    assert numbers == sorted(set(numbers))
    for number in numbers:
        assert FIELD["OP_CARRIER_AIRLINE_ID"].parse(number) == number


def test_codes_are_two_letters_or_digits_and_each_is_one_carriers_at_a_time() -> None:
    codes = {carrier.code for carrier in CARRIERS}
    assert all(len(code) == 2 and code.isalnum() and code == code.upper() for code in codes)
    for year in range(1987, 2030):
        used = [carrier.code for carrier in CARRIERS if carrier.first <= year <= carrier.last]
        assert len(used) == len(set(used))


@each_of(
    ("code", "year", "number"),
    [
        ("OH", 2008, 20417),
        ("OH", 2010, 20417),
        ("OH", 2013, None),
        ("OH", 2015, 20397),
        ("OH", 2024, 20397),
        ("OH (1)", 2008, 20417),
        ("PA", 1990, 20384),
        ("PA (1)", 1988, 20384),
        ("PA", 2004, None),
        ("ML (1)", 1991, 20295),
        ("PS", 1987, 19391),
        ("PI", 1989, 19822),
        ("EA", 1990, 19707),
        ("TW", 2001, 20211),
        ("TW", 2010, None),
        ("HP", 2005, 19991),
        ("HP", 2019, None),
        ("DH", 2004, 20404),
        ("TZ", 2006, 20312),
        ("QX", 2019, 19687),
        ("RU", 2005, 20374),
        ("XE", 2008, 20374),
        ("XE", 2015, None),
        ("EV", 2013, 20366),
        ("AQ", 2008, 19678),
        ("US", 1987, 20355),
        ("US", 2015, 20355),
        ("US", 2016, None),
        ("YX", 2005, 20314),
        ("YX", 2009, None),
        ("YX", 2019, 20452),
        ("MQ", 2001, 20398),
        ("AA", 1987, 19805),
        ("AA", 2030, 19805),
        ("ZZ", 2008, None),
        ("", 2008, None),
    ],
)
def test_a_code_names_a_carrier_in_the_years_in_which_it_had_it(
    code: str, year: int, number: int | None
) -> None:
    assert carrier_number(code, year) == number


@pytest.mark.parametrize(
    ("number", "code", "name"),
    [
        (19393, "WN", "Southwest"),
        (20398, "MQ", "American Eagle"),
        (20417, "OH", "Comair"),
        (20374, "XE", "ExpressJet"),
    ],
)
def test_a_carrier_by_its_number(number: int, code: str, name: str) -> None:
    assert CARRIER[number].code == code_of(number) == code
    assert name in CARRIER[number].name


def test_an_unknown_carrier_is_shown_as_its_number() -> None:
    assert code_of(99999) == "99999"
