"""What counts of a closed run."""

import pytest

from loadtests.generation.rows import Row, closed_index, closed_window


def rows_of(customer: int, *done_s: float, status: int = 200) -> list[Row]:
    """A customer's requests, each begun when the one before was answered."""
    sent_s = [0.0, *done_s]
    return [
        Row("r", closed_index(customer, n), "k", at, at, None, done, None, status, "")
        for n, (at, done) in enumerate(zip(sent_s, done_s, strict=False))
    ]


def test_it_ends_with_the_first_customer_to_finish() -> None:
    quick, slow = rows_of(0, 1, 2, 3, 4), rows_of(1, 2, 4.5, 6, 9)
    window = closed_window([*slow, *quick])
    assert (window.customers, window.start_s, window.end_s) == (2, 0.0, 4)
    assert [row.done_s for row in window.rows] == [1, 2, 2, 3, 4]
    assert window.throughput_per_s == 5 / 4
    assert window.mean_response_s == pytest.approx((1 + 1 + 2 + 1 + 1) / 5)


def test_it_begins_when_the_last_has_warmed_up() -> None:
    quick, slow = rows_of(0, 1, 2, 3, 4), rows_of(1, 1.5, 2.5, 3.5, 4.5)
    window = closed_window([*quick, *slow], warm_up=2)
    assert window.start_s == 2.5
    assert [row.done_s for row in window.rows] == [3, 3.5, 4]


def test_failures_are_no_throughput() -> None:
    window = closed_window([*rows_of(0, 1, 2), *rows_of(1, 1, 2, status=503)])
    assert [row.done_s for row in window.rows] == [1, 2]


@pytest.mark.parametrize("warm_up", [2, 3])
def test_nothing_between_warm_up_and_end_is_an_error(warm_up: int) -> None:
    with pytest.raises(ValueError, match=r"before the last was ready|did not do 3 requests"):
        closed_window([*rows_of(0, 1, 2), *rows_of(1, 3, 9)], warm_up)


def test_no_rows_is_an_error() -> None:
    with pytest.raises(ValueError, match="without rows"):
        closed_window([])
