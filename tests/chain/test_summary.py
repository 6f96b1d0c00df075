"""Cells: what one carrier's flights of one day add up to."""

import pytest
from hypothesis import given

from backend.chain import merkle
from backend.chain.columns import columns_of
from backend.chain.fields import FIELDS
from backend.chain.flight import Flight
from backend.chain.merkle import EMPTY_ROOT
from backend.chain.summary import cells_of, summary_root
from tests.chain import independent
from tests.chain.strategies import batches, rows_of
from tests.same_flights import flown

EXAMPLE = {field.name: field.example for field in FIELDS}


@given(batch=batches(20))
def test_cells_are_those_of_a_plain_loop(batch: tuple[list[Flight], list[int]]) -> None:
    cells = cells_of(columns_of(*batch))
    expected = independent.cells(rows_of(*batch))
    assert [cell.canonical() for cell in cells] == expected
    assert summary_root(cells) == independent.tree_hash(expected)


@pytest.mark.parametrize(("delay", "on_time"), [(-60, 1), (0, 1), (14, 1), (15, 0), (16, 0)])
def test_on_time_is_less_than_15_minutes_late(delay: int, on_time: int) -> None:
    (cell,) = cells_of(columns_of([flown(ARR_DELAY=delay)], [0]))
    assert (cell.arrived, cell.on_time, cell.sum_arr_delay) == (1, on_time, delay)


def test_cancelled_and_diverted_flights_count_and_have_no_arrival() -> None:
    empty: dict[str, int | str | None] = {"ARR_TIME": None, "ARR_DELAY": None, "AIR_TIME": None}
    never_left: dict[str, int | str | None] = {"DEP_TIME": None, "DEP_DELAY": None}
    cancelled = flown(CANCELLED=1, **never_left, **empty)
    (cell,) = cells_of(columns_of([cancelled, flown(**empty), flown()], [0, 0, 0]))
    assert (cell.flights, cell.cancelled, cell.arrived, cell.departed) == (3, 1, 1, 2)
    assert (cell.sum_arr_delay, cell.sum_dep_delay) == (-14, 16)


def test_no_flights_have_no_cells_and_the_root_of_nothing() -> None:
    assert cells_of(columns_of([], [])) == []
    assert summary_root([]) == EMPTY_ROOT == merkle.root([])
