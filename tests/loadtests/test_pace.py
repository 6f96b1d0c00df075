"""The pace of a ledger on an emulated disk: lower bounds, and what is taken off; never how late a
machine wakes a thread."""

from time import monotonic

import pytest

from loadtests.baseline import Pace

LONG_AGO_S = 3600.0


def test_pieces_take_their_time_in_all() -> None:
    pace = Pace(0.001)
    start_s = monotonic()
    pace.begin()
    for _ in range(30):
        pace.piece_done()
    assert monotonic() - start_s >= 0.030
    pace.end()


def test_what_was_too_long_is_taken_off_later_but_not_more_than_it_should_have_been() -> None:
    pace = Pace(0.02)
    pace.begin()
    pace.piece_done()
    pace._deadline_s -= LONG_AGO_S  # as if the real work had taken that long
    pace.end()
    start_s = monotonic()
    for _ in range(2):  # the first owes one piece, and so costs nothing; the second does not
        pace.begin()
        pace.piece_done()
        pace.end()
    assert 0.018 <= monotonic() - start_s < LONG_AGO_S


def test_a_pace_of_nothing_waits_for_nothing() -> None:
    pace = Pace(0)
    for _ in range(2):
        pace.begin()
        pace.piece_done()
        pace.end()
    assert pace._debt_s == 0


@pytest.mark.parametrize("piece_s", [-0.001, float("nan")])
def test_a_time_that_cannot_be_is_refused(piece_s: float) -> None:
    with pytest.raises(ValueError, match="piece_s"):
        Pace(piece_s)
