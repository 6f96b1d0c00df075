"""The two verdicts on an open workload, on ten servers of which the truth is known."""

from random import Random

import pytest

from loadtests.experiments.open_workload_comparison import steady_points
from tests.loadtests.experiments.planted_servers import PLANTED


@pytest.mark.parametrize("name", PLANTED)
def test_both_verdicts_are_right(name: str) -> None:
    planted = PLANTED[name]
    (point,) = steady_points(planted.runs(Random(f"{name} 1")))
    assert (point.forecast, point.order) == (planted.forecast, planted.order)
