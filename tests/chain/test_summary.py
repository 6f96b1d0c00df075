"""Cells: what one carrier's flights of one day add up to."""

from hypothesis import example, given

from backend.chain.columns import columns_of
from backend.chain.flight import Flight
from backend.chain.summary import cells_of, summary_root
from tests.chain import independent
from tests.chain.strategies import batches, rows_of
from tests.same_flights import CANCELLED, flown

AROUND_15_MINUTES = [flown(ARR_DELAY=delay) for delay in (-60, 0, 14, 15, 16)]
NOT_ARRIVED = [flown(**CANCELLED), flown(ARR_TIME=None, ARR_DELAY=None, AIR_TIME=None)]


@given(batch=batches(20))
@example(batch=([], []))
@example(batch=(AROUND_15_MINUTES + NOT_ARRIVED, [0] * 7))
def test_cells_are_those_of_a_plain_loop(batch: tuple[list[Flight], list[int]]) -> None:
    cells = cells_of(columns_of(*batch))
    expected = independent.cells(rows_of(*batch))
    assert [cell.canonical() for cell in cells] == expected
    assert summary_root(cells) == independent.tree_hash(expected)
