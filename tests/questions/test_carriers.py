"""The table of carriers."""

from collections import Counter

import pytest

from backend.chain.fields import FIELD
from backend.questions.carriers import CARRIER, CARRIERS, code_of


def test_numbers_are_unique_and_valid_and_in_order() -> None:
    numbers = [carrier.number for carrier in CARRIERS]
    assert numbers == sorted(set(numbers))
    for number in numbers:
        assert FIELD["OP_CARRIER_AIRLINE_ID"].parse(number) == number


def test_codes_are_two_letters_or_digits_and_each_is_one_carriers() -> None:
    codes = Counter(carrier.code for carrier in CARRIERS)
    assert all(len(code) == 2 and code.isalnum() and code == code.upper() for code in codes)
    assert set(codes.values()) == {1}


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
