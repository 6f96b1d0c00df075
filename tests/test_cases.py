"""A test that is made for many cases fails at the case that fails, and names it."""

import pytest

from tests.cases import each_of

TRIED: list[tuple[int, str]] = []


@each_of(("number", "text"), [(1, "a"), (2, "b")])
@each_of("more", "xy")
def test_every_case_is_tried_with_the_fixtures(
    number: int, more: str, text: str, request: pytest.FixtureRequest
) -> None:
    assert request.node.name == "test_every_case_is_tried_with_the_fixtures"
    TRIED.append((number, text + more))


def test_each_was_tried_once() -> None:
    assert TRIED == [(1, "ax"), (1, "ay"), (2, "bx"), (2, "by")]


def test_a_case_that_fails_is_named_and_none_is_refused() -> None:
    @each_of("number", [1, 2, 3])
    def is_odd(number: int) -> None:
        assert number % 2

    with pytest.raises(AssertionError) as caught:
        is_odd()
    assert caught.value.__notes__ == ["with number = 2"]
    with pytest.raises(AssertionError):
        each_of("number", [])(is_odd)()
