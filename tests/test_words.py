"""Counts in words."""

import pytest

from backend.words import counted


@pytest.mark.parametrize(
    ("count", "words"),
    [(0, "0 flights"), (1, "1 flight"), (2, "2 flights"), (1500, "1,500 flights")],
)
def test_what_is_counted_stands_in_the_singular_behind_1_alone(count: int, words: str) -> None:
    assert counted(count, "flight") == words


def test_words_that_need_more_than_an_s_are_given() -> None:
    assert counted(1, "byte is", "bytes are") == "1 byte is"
    assert counted(7, "byte is", "bytes are") == "7 bytes are"
