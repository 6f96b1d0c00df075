"""Messages: any value and any name from outside may stand in one, cut and escaped."""

import pickle

from hypothesis import example, given
from hypothesis import strategies as st

from backend.base.errors import (
    BadRow,
    DamagedBlock,
    FlightchainError,
    InvalidFlight,
    RuleViolation,
    TryLater,
    shown,
)
from tests.cases import each_of
from tests.chain.strategies import any_text, json_like, nested


class Broken:
    def __repr__(self) -> str:
        raise RuntimeError


def ring() -> object:
    around: list[object] = []
    around.append(around)
    return around


AWKWARD: list[object] = [
    10**5000,
    -(10**5000),
    [10**5000],
    {"a": 10**5000},
    10**4000,
    nested(5000),
    {"a": nested(5000)},
    ring(),
    Broken(),
    [Broken()],
    "\ud800",
    ["\ud800"],
    {"\ud800": "\udfff"},
    "a\nb\0\x7f\x9b\u202e\U0010ffff",
    ["\x1b[2J\n\u202e"],
    "x" * 1_000_000,
    ["x" * 1_000_000] * 1000,
    b"\xff" * 1000,
    {1: 2, "a": 3, None: 4},
    float("nan"),
    object,
]


def assert_fit_for_a_message(text: str, limit: int) -> None:
    assert 0 < len(text) <= limit
    assert text.isprintable()
    text.encode()


@each_of("limit", [2, 10, 80, 200])
@each_of("value", AWKWARD)
def test_an_awkward_value_is_shown(value: object, limit: int) -> None:
    assert_fit_for_a_message(shown(value, limit), limit)


@given(value=json_like, limit=st.integers(2, 100))
def test_any_value_is_shown(value: object, limit: int) -> None:
    assert_fit_for_a_message(shown(value, limit), limit)


@given(text=any_text)
def test_a_text_is_shown_escaped(text: str) -> None:
    assert shown(text, 1000) == ascii(text)


def test_what_is_cut_ends_in_an_ellipsis() -> None:
    assert shown("x" * 100, 10) == "'xxxxxxxx…"
    assert shown("x" * 8, 10) == "'xxxxxxxx'"
    assert shown("\n" * 5, 10) == r"'\n\n\n\n…"


@given(name=any_text, value=json_like)
@example(name="x" * 100_000, value="y" * 100_000)
@example(name="\ud800", value="\ud800")
@example(name="YEAR\nERROR forged", value=1)
def test_any_field_and_value_can_be_refused(name: str, value: object) -> None:
    problem = InvalidFlight(name, value, "is wrong")
    assert_fit_for_a_message(str(problem), 200)
    assert str(problem).endswith(" is wrong" if value is None else f" {shown(value)}: is wrong")
    assert problem.field == name
    assert problem.value is value


@each_of(
    "error",
    [
        InvalidFlight("YEAR", "x", "is wrong"),
        BadRow("a.csv, line 2", "YEAR", "x", "is wrong"),
        TryLater("is full", 3),
        DamagedBlock(4, "is gone"),
        RuleViolation(5, "R4", "went back"),
    ],
)
def test_an_error_arrives_in_another_process_as_it_was(error: FlightchainError) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert str(copy) == str(error)
    assert copy.args == error.args
    assert vars(copy) == vars(error)


@each_of("name", ["YEAR", "OP_CARRIER_FL_NUM", "FLIGHTCHAIN_PORT", "n" * 60])
def test_a_plain_name_stands_as_it_is(name: str) -> None:
    assert str(InvalidFlight(name, 5, "is wrong")) == f"{name} 5: is wrong"
