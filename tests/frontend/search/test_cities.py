"""Which cities of a ledger are meant by a text."""

import pytest

from frontend.coverage import Airport, Coverage
from frontend.search.cities import meant, named

PLACES = Coverage(
    flights=10,
    first_date="2013-01-01",
    last_date="2013-12-31",
    carriers=(),
    airports=(
        Airport("DFW", "Dallas/Fort Worth, TX", "Texas", 9),
        Airport("ORD", "Chicago, IL", "Illinois", 8),
        Airport("RFD", "Chicago/Rockford, IL", "Illinois", 7),
        Airport("PDX", "Portland, OR", "Oregon", 6),
        Airport("DAL", "Dallas, TX", "Texas", 5),
        Airport("PWM", "Portland, ME", "Maine", 4),
        Airport("BQN", "Aguadilla, PR", "Puerto Rico", 3),
        Airport("SJU", "San Juán, PR", "Puerto Rico", 2),
    ),
)


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("Chicago", ["Chicago, IL", "Chicago/Rockford, IL"]),
        ("chicago, il", ["Chicago, IL"]),
        ("Dallas", ["Dallas, TX", "Dallas/Fort Worth, TX"]),
        ("portland", ["Portland, OR", "Portland, ME"]),
        ("San Juan", ["San Juán, PR"]),
        ("pdx", ["Portland, OR"]),
        ("PDZ", []),
        ("icago", []),
    ],
)
def test_a_place_is_a_code_or_the_beginning_of_a_name(typed: str, expected: list[str]) -> None:
    assert named(PLACES, typed) == expected


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("Rockford", ["Chicago/Rockford, IL"]),
        ("Worth", ["Dallas/Fort Worth, TX"]),
        ("texas", ["Dallas/Fort Worth, TX", "Dallas, TX"]),
        ("Chicgo", ["Chicago, IL"]),
        ("Timbuktu", []),
    ],
)
def test_parts_of_names_and_mistakes_are_understood(typed: str, expected: list[str]) -> None:
    assert named(PLACES, typed) == []
    assert meant(PLACES, typed) == expected


def test_of_cities_that_are_spelled_alike_the_one_with_more_flights_comes_first() -> None:
    assert meant(PLACES, "Prtland")[0] == "Portland, OR"


def test_what_is_named_is_meant_and_nothing_else() -> None:
    assert meant(PLACES, "dal") == named(PLACES, "dal") == ["Dallas, TX"]
