"""Numbers with units, as people read them."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontend.lab.quantities import change, plain, rate, significant, time
from tests.cases import each_of


@each_of(
    ("value", "text"),
    [
        (40.499375, "40.50"),
        (1234567.8, "1,234,568"),
        (7142.857, "7,143"),
        (0.99997, "1.000"),
        (0.0246917, "0.02469"),
        (2.938e-6, "2.938·10⁻⁶"),
        (0.0, "0"),
        (-3.25, "−3.250"),
        (None, "–"),
        (float("nan"), "–"),
        (float("inf"), "–"),
    ],
)
def test_a_number_has_four_significant_digits(value: float | None, text: str) -> None:
    assert significant(value) == text


@given(st.floats(1e-4, 9999))
def test_what_is_shown_is_the_value_to_four_digits(value: float) -> None:
    assert float(significant(value).replace(",", "")) == pytest.approx(value, rel=5.1e-4)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (155.3446, "155.3 s"),
        (0.1, "0.1000 s"),
        (0.046, "46.00 ms"),
        (0.00014, "0.1400 ms"),
        (4.1e-10, "0.0004100 µs"),
        (0.0, "0 s"),
        (None, "–"),
    ],
)
def test_a_time_has_the_unit_that_fits(seconds: float | None, text: str) -> None:
    assert time(seconds) == text


def test_a_change_says_its_direction() -> None:
    assert change(155.34, 63.63) == "÷ 2.44"
    assert change(0.02469, 0.03147) == "× 1.27"
    assert change(40.5, 40.51) == "the same"
    assert change(703.7, 0.0001401) == "÷ 5,020,000"


def test_a_rate_is_by_the_second() -> None:
    assert rate(0.0209880) == "0.02099/s"
    assert rate(None) == "–"


@given(st.floats(1e-12, 1e12))
def test_a_number_in_a_field_reads_as_itself(value: float) -> None:
    assert re.fullmatch(r"[\d.]+(e[+-]\d+)?", plain(value))
    assert float(plain(value)) == pytest.approx(value, rel=1e-6)
