"""Times in words, whatever somebody has signed, and shares."""

import pytest

from frontend.filters import NOTHING, moment, number, one_in, plus, sentence, share

LAST_MS = 253_402_300_799_999  # of the year 9999


@pytest.mark.parametrize(
    ("milliseconds", "words"),
    [
        (None, NOTHING),
        (0, "1970-01-01 00:00:00 UTC"),
        (1_357_017_443_000, "2013-01-01 05:17:23 UTC"),
        (LAST_MS, "9999-12-31 23:59:59 UTC"),
        (LAST_MS + 1, "after the year 9999"),
        (1000 * 2**63, "after the year 9999"),
        (1000 * (2**64 - 1), "after the year 9999"),
    ],
)
def test_a_moment_up_to_the_last_year(milliseconds: int | None, words: str) -> None:
    assert moment(milliseconds) == words


def test_a_share_is_not_torn_from_its_sign() -> None:
    assert [share(0.748), share(None)] == ["74.8\xa0%", NOTHING]


def test_a_chance_in_words_is_exact_for_few_and_never_all_or_none_of_many() -> None:
    for total in range(2, 11):
        for count in range(1, total):
            some, _, all_ = one_in(count / total).partition(" in ")
            assert int(some) / int(all_) == count / total
            assert one_in(1 - count / total) == one_in((total - count) / total)
    shares = [None, 0.0, 1 / 41, 0.21, 0.35, 24 / 25, 0.99999, 1.0]
    words = [NOTHING, "none", "1 in 41", "1 in 5", "1 in 3", "24 in 25", "99,999 in 100,000", "all"]
    assert [one_in(share) for share in shares] == words


def test_what_is_rounded_to_zero_has_no_minus() -> None:
    assert [number(-0.3), number(-0.04, 1), number(-1234.5, 1)] == ["0", "0.0", "−1,234.5"]


def test_days_end_with_the_calendar() -> None:
    assert plus("2013-01-31", 1) == "2013-02-01"
    assert plus("9999-12-31", 1) == "9999-12-31"
    assert plus("0001-01-01", -1) == "0001-01-01"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("there is no block 9", "There is no block 9."),
        ("must be a number", "Must be a number."),
        ("nothing: it isn't there!", "Nothing: it isn't there!"),
        ("non-finite", "Non-finite."),
        ("q 'b': is given more than once", "q 'b': is given more than once."),
        ("http://127.0.0.1:18399 does not answer", "http://127.0.0.1:18399 does not answer."),
        ("as_of 'x' is no height", "as_of 'x' is no height."),
        ("“x” is not a day", "“x” is not a day."),
        ("easyJet or Delta?", "easyJet or Delta?"),
    ],
)
def test_only_a_word_gets_a_capital_letter(text: str, shown: str) -> None:
    assert sentence(text) == shown
