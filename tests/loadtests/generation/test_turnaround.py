from collections.abc import Sequence

import pytest

from loadtests.generation.calibration import LEAST_TURNS, turnaround_s
from loadtests.generation.rows import Row

OVERHEAD_S = 0.5


def row(sent_s: float, start_s: float | None, service_s: float | None, worker: str = "1") -> Row:
    return Row("r", 0, "k", sent_s, sent_s, start_s, 100.0, service_s, 200, worker)


def back_to_back(count: int, worker: str = "1") -> Sequence[Row]:
    """All sent at once to a worker that takes 2 s for each, and 0.1 s until the next."""
    return [row(0.0, OVERHEAD_S + n * 2.1, 2.0, worker) for n in range(count)]


def test_is_the_time_between_requests_of_a_worker_of_which_the_next_waited() -> None:
    rows = [*back_to_back(LEAST_TURNS + 1), *back_to_back(LEAST_TURNS + 1, "2")]
    idle = row(90.0, 90.5, 1.0)
    just_missed = row(91.4, 91.9, 1.0)
    assert turnaround_s([*rows, idle, just_missed], OVERHEAD_S) == pytest.approx(0.1)


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param([], id="none"),
        pytest.param(back_to_back(LEAST_TURNS), id="too few"),
        pytest.param(
            [
                *back_to_back(LEAST_TURNS + 1),
                *(row(20.0 * n, 20.0 * n, 1.0) for n in range(9, 99)),
            ],
            id="too few of all",
        ),
        pytest.param([row(0.0, None, 2.0)] * 20, id="no starts"),
        pytest.param([row(0.0, 1.0, None)] * 20, id="no services"),
        pytest.param([row(10.0 * n, 10.0 * n + 0.5, 1.0) for n in range(20)], id="idle between"),
        pytest.param([row(0.0, 0.5 + n, 9.0) for n in range(20)], id="several at a time"),
    ],
)
def test_is_not_known_otherwise(rows: Sequence[Row]) -> None:
    assert turnaround_s(rows, OVERHEAD_S) is None
